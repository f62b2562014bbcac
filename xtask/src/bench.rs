//! `cargo xtask bench`: builds and runs the benchmark program.

use anyhow::Result;

use crate::process::{self, Workspace};

/// Passes the arguments on. What runs sentence encoders is built only for the benchmark that may be given one.
pub(crate) fn bench(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let mut command = workspace.cargo(["run", "--profile=dist", "--package=emend-benches"]);
    if arguments
        .first()
        .is_some_and(|benchmark| benchmark == "generalise")
    {
        command.arg("--features=near-encoder");
    }
    process::run(command.arg("--").args(arguments))
}
