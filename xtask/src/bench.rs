//! `cargo xtask bench`: builds and runs the benchmark program.

use anyhow::Result;

use crate::process::{self, Workspace};

/// Passes the arguments on.
pub(crate) fn bench(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    process::run(
        workspace
            .cargo(["run", "--profile=dist", "--package=emend-benches", "--"])
            .args(arguments),
    )
}
