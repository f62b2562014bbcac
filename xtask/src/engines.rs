//! The search engines of the edge's tests: from their makers' artifacts at Maven Central, in versions that the projects of
//! tests/engines pin.

use std::{env, fs, path::PathBuf};

use anyhow::{Context as _, Result};

use crate::{
    debian,
    process::{self, Workspace},
};

/// Names the directory with the libraries of each engine.
pub(crate) const ENGINES_VARIABLE: &str = "EMEND_TEST_ENGINES";
/// Lets the tests print their table.
const TABLE_VARIABLE: &str = "EMEND_TEST_ENGINES_TABLE";
/// The engines: folders of tests/engines.
const ENGINES: [&str; 2] = ["opensearch", "solr"];
/// Written once an engine's libraries are all there: what made them.
const STAMP: &str = "fetched-by.xml";

/// The directory with the libraries, and Java, fetched where they are missing.
pub(crate) fn provide(workspace: &Workspace, may_install: bool) -> Result<PathBuf> {
    if let Some(named) = env::var_os(ENGINES_VARIABLE) {
        return Ok(named.into());
    }
    let directory = workspace.target("tools/engines");
    for engine in ENGINES {
        let project = workspace.path(format!("tests/engines/{engine}/pom.xml"));
        let wanted = fs::read_to_string(&project)?;
        let libraries = directory.join(engine);
        if fs::read_to_string(libraries.join(STAMP)).is_ok_and(|is| is == wanted) && has("java") {
            continue;
        }
        if !has("java") || !has("mvn") {
            debian::install(&["default-jdk-headless", "maven"], may_install)
                .context("Java or Maven is missing")?;
        }
        anyhow::ensure!(
            may_install,
            "the libraries of {engine} are missing: run without --no-install"
        );
        process::run(
            workspace
                .command("mvn")
                .args(["--quiet", "--batch-mode", "--file"])
                .arg(&project)
                .arg("dependency:copy-dependencies")
                .arg(format!("-DoutputDirectory={}", libraries.display())),
        )?;
        fs::write(libraries.join(STAMP), wanted)?;
    }
    Ok(directory)
}

/// Prints how long a correction takes until an engine's next search is right, and how many searches fail meanwhile.
pub(crate) fn table(workspace: &Workspace, may_install: bool) -> Result<()> {
    let engines = provide(workspace, may_install)?;
    let mut command = workspace.cargo([
        "test",
        "--locked",
        "--workspace",
        "--test",
        "engines",
        "--",
        "table::",
    ]);
    command
        .arg("--nocapture")
        .env(ENGINES_VARIABLE, engines)
        .env(TABLE_VARIABLE, "1");
    process::run(&mut command)
}

fn has(program: &str) -> bool {
    process::find_program(program).is_some()
}
