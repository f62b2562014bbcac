//! `cargo xtask docs`: writes what is generated from the code: docs/configuration.md and the list of environment variables.
//! The tests that do so hold the files against the code in every other run.

use anyhow::Result;

use crate::process::{self, Workspace};

/// Tells those tests to write.
const UPDATE_VARIABLE: &str = "EMEND_UPDATE_DOCS";

/// Writes them.
pub(crate) fn docs(workspace: &Workspace) -> Result<()> {
    let tests = [
        "test",
        "--quiet",
        "--package=emend-cli",
        "--test=cli",
        "up_to_date",
    ];
    process::run(workspace.cargo(tests).env(UPDATE_VARIABLE, "1"))
}
