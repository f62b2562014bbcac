//! The Python package as a wheel for one platform and every CPython from 3.10 on.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail, ensure};

use super::{sbom, sources::Sources};
use crate::{
    process::{self, Workspace},
    tools,
};

/// The package's directory, and that of its crate.
const PACKAGE: &str = "clients/python";
/// What its bill of materials is called.
const NAME: &str = "emend-client-python";
/// What packs it: the same that pip runs in a checkout.
const MATURIN: &str = "maturin==1.16.0";

/// Builds and packs the package. Without Python there is none, which is said.
pub(super) fn pack(
    workspace: &Workspace,
    dist: &Path,
    profile: &str,
    sources: &Sources,
    may_install: bool,
) -> Result<()> {
    let python = match tools::venv(workspace, "maturin", &[MATURIN], may_install) {
        Ok(python) => python,
        Err(error) => {
            ensure!(!process::in_ci(), "maturin is missing: {error:#}");
            eprintln!("no package for Python: {error:#}");
            return Ok(());
        }
    };
    process::run(
        workspace
            .command(&python)
            .args([
                "-m",
                "maturin",
                "build",
                "--locked",
                "--strip",
                "--profile",
                profile,
            ])
            .arg("--manifest-path")
            .arg(workspace.path(PACKAGE).join("Cargo.toml"))
            .arg("--out")
            .arg(dist)
            // The time of everything in the archive.
            .env("SOURCE_DATE_EPOCH", &sources.committed),
    )?;
    let wheel = wheel_in(dist)?;
    let version = format!("-{}-", sources.version);
    ensure!(
        wheel.to_string_lossy().contains(&version),
        "{} is not of version {}",
        wheel.display(),
        sources.version
    );
    sbom::describe(workspace, dist, NAME, PACKAGE, &sources.committed, may_install)?;
    sbom::is_whole(workspace, dist, NAME, PACKAGE)?;
    try_out(workspace, dist, &python, &wheel)
}

fn wheel_in(dist: &Path) -> Result<PathBuf> {
    for entry in fs::read_dir(dist)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "whl") {
            return Ok(path);
        }
    }
    bail!("maturin packed no wheel")
}

/// Installs the wheel where nothing else is and nothing can be fetched, and starts a node of it.
fn try_out(workspace: &Workspace, dist: &Path, python: &Path, wheel: &Path) -> Result<()> {
    let directory = dist.join("tried-wheel");
    process::run(
        workspace
            .command(python)
            .args(["-m", "venv", "--clear"])
            .arg(&directory),
    )?;
    let own = directory.join("bin/python");
    process::run(
        workspace
            .command(&own)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-index",
            ])
            .arg(wheel),
    )?;
    let program = "import emend\n\
                   node = emend.Node('127.0.0.1:1', id='tried')\n\
                   print(node.resolve('shop', 'hello').feedback_hint)\n\
                   node.close()";
    let printed = process::output(
        workspace
            .command(&own)
            .args(["-c", program])
            .current_dir(&directory),
    )?;
    ensure!(
        printed == "False\n",
        "the packed package for Python printed {printed:?}"
    );
    fs::remove_dir_all(directory)?;
    Ok(())
}
