//! The Python package as a wheel for one platform and every CPython from 3.10 on.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};

use super::{sbom, sources::Sources};
use crate::{
    process::{self, Workspace},
    tools,
};

/// The package's directory, and that of its crate.
const PACKAGE: &str = "clients/python";
/// What its bill of materials is called.
const NAME: &str = "emend-client-python";
/// Its largest size, in bytes: 12 MB.
const MOST_BYTES: u64 = 12_000_000;
/// One wheel for every CPython from 3.10 on.
const TAG: &str = "-cp310-abi3-";
/// What tells type checkers that the package has types.
const TYPED: &str = "emend/py.typed";
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
    let packed = Packed {
        name: wheel
            .file_name()
            .context("a wheel is a file")?
            .to_string_lossy()
            .into(),
        bytes: fs::metadata(&wheel)?.len(),
        files: process::output(
            workspace
                .command(&python)
                .args(["-m", "zipfile", "--list"])
                .arg(&wheel),
        )?,
    };
    packed.is_right(&sources.version)?;
    sbom::describe(workspace, dist, NAME, PACKAGE, &sources.committed, may_install)?;
    sbom::is_whole(workspace, dist, NAME, PACKAGE)?;
    try_out(workspace, dist, &python, &wheel)
}

/// What was packed.
struct Packed {
    name: String,
    bytes: u64,
    /// A line for each file, which begins with its name.
    files: String,
}

impl Packed {
    fn is_right(&self, version: &str) -> Result<()> {
        let Self { name, bytes, files } = self;
        ensure!(
            name.contains(&format!("-{version}-")),
            "{name} is not of version {version}"
        );
        ensure!(
            name.contains(TAG),
            "{name} is not one wheel for every CPython from 3.10 on: {TAG} is not in its name"
        );
        ensure!(
            *bytes <= MOST_BYTES,
            "{name} has {bytes} bytes, more than {MOST_BYTES}"
        );
        let is_typed = files
            .lines()
            .any(|line| line.split_whitespace().next() == Some(TYPED));
        ensure!(
            is_typed,
            "{name} lacks {TYPED}: type checkers would not read its types"
        );
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn packed() -> Packed {
        Packed {
            name: "emend-0.1.0-cp310-abi3-manylinux_2_34_x86_64.whl".into(),
            bytes: MOST_BYTES,
            files: "File Name                Modified             Size\n\
                    emend/_emend.abi3.so     2026-01-01 00:00:00  100\n\
                    emend/py.typed           2026-01-01 00:00:00    0\n"
                .into(),
        }
    }

    #[test]
    fn a_wheel_that_is_not_what_it_should_be_is_refused_in_words() {
        packed().is_right("0.1.0").unwrap();
        let renamed = |name: &str| Packed {
            name: name.into(),
            ..packed()
        };
        let wrong = [
            (renamed("emend-0.2.0-cp310-abi3-any.whl"), "version 0.1.0"),
            (renamed("emend-0.1.0-cp312-cp312-any.whl"), TAG),
            (
                Packed {
                    bytes: MOST_BYTES + 1,
                    ..packed()
                },
                "12000001 bytes",
            ),
            (
                Packed {
                    files: packed().files.replace("emend/py.typed", "other/emend/py.typed"),
                    ..packed()
                },
                TYPED,
            ),
        ];
        for (packed, why) in wrong {
            let refused = packed.is_right("0.1.0").unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
