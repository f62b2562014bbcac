//! The Python package: mypy, pyright and pytest against the library that the workspace's build has made; each night, the
//! package as pip builds it.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};

use super::{installed::Guide, missing};
use crate::{
    process::{self, Workspace},
    steps::{Outcome, Steps},
    test::LONG_VARIABLE,
    tools,
};

/// What checks the package, and the real packages that its adapters and examples are for.
const PACKAGES: &[&str] = &[
    "pytest==9.2.0",
    "pytest-asyncio==1.5.0",
    "mypy==2.4.1",
    // With the runtime that it needs, which would be fetched from elsewhere.
    "pyright[nodejs]==1.1.414",
    "langchain-core==1.8.3",
    "fastapi==0.165.0",
    "uvicorn==0.54.0",
    "httpx==0.28.1",
    "gunicorn==27.0.1",
    "celery==5.7.0",
    // What serves a node the messages of a test, and the hash of what they say.
    "grpcio==1.85.1",
    "types-grpcio==1.85.0.20261028",
    "xxhash==4.1.0",
];
/// What a person does first.
const GUIDE: Guide = Guide {
    document: "docs/integration/python.md",
    install: "pip install ./clients/python",
    language: "python",
    file: "first_program.py",
    run: "python first_program.py",
};
/// Where the package is.
const PACKAGE: &str = "clients/python";
/// The module in Rust, as Python looks for it, beside the others.
const MODULE: &str = "emend/_emend.abi3.so";

/// What takes too long for each change: the tests that wait for minutes, and the package as pip builds it.
pub(super) fn check_long(workspace: &Workspace, may_install: bool, steps: &mut Steps) {
    if let Some(package) = provide(workspace, may_install, steps) {
        steps.run("pytest, the long tests", || {
            let mut tests = package.command(
                workspace,
                &["pytest", "-q", "-s", "-p", "no:cacheprovider", "-m", "long"],
            );
            process::run(tests.env(LONG_VARIABLE, "1")).map(|()| Outcome::Done)
        });
    }
    steps.run("guide in Python", || {
        GUIDE.is_right(workspace, |directory| {
            let own = directory.join("venv");
            process::run(workspace.command("python3").args(["-m", "venv"]).arg(&own))?;
            Ok(Some(own.join("bin")))
        })?;
        Ok(Outcome::Done)
    });
}

/// The types, and the tests against a real pair.
pub(super) fn check(workspace: &Workspace, may_install: bool, steps: &mut Steps) {
    let Some(package) = provide(workspace, may_install, steps) else {
        return;
    };
    let run =
        |arguments: &[&str]| process::run(&mut package.command(workspace, arguments)).map(|()| Outcome::Done);
    steps.run("mypy", || {
        run(&["mypy"]).and_then(|_| run(&["mypy", "--strict", "tests"]))
    });
    let interpreter = package.python.display().to_string();
    steps.run("pyright", || run(&["pyright", "--pythonpath", &interpreter]));
    steps.run("pytest", || run(&["pytest", "-q", "-p", "no:cacheprovider"]));
}

/// The package as the workspace's build has made it, and a Python with what checks it.
pub(super) struct Provided {
    python: PathBuf,
    assembled: PathBuf,
}

impl Provided {
    /// Runs a module of Python in the package's directory.
    fn command(&self, workspace: &Workspace, arguments: &[&str]) -> Command {
        let mut command = self.script(workspace, "-m");
        command
            .args(arguments)
            .env("EMEND_TEST_PROGRAM", workspace.target("debug/emend"));
        command
    }

    /// Runs a script of the package's directory.
    pub(super) fn script(&self, workspace: &Workspace, script: &str) -> Command {
        let mut command = workspace.command(&self.python);
        command
            .current_dir(workspace.path(PACKAGE))
            .arg(script)
            .env("PYTHONPATH", &self.assembled);
        command
    }
}

/// The package with its part in Rust from this directory of the target directory.
pub(super) fn built(workspace: &Workspace, built: &str, may_install: bool) -> Result<Provided> {
    let python = tools::venv(workspace, "python-client", PACKAGES, may_install)?;
    let assembled = assemble(workspace, built)?;
    Ok(Provided { python, assembled })
}

fn provide(workspace: &Workspace, may_install: bool, steps: &mut Steps) -> Option<Provided> {
    steps
        .run_for("client in Python", || {
            match tools::venv(workspace, "python-client", PACKAGES, may_install) {
                Ok(python) => {
                    let assembled = assemble(workspace, "debug")?;
                    Ok((Some(Provided { python, assembled }), Outcome::Done))
                }
                Err(error) => missing(error, may_install).map(|outcome| (None, outcome)),
            }
        })
        .flatten()
}

/// The package with its part in Rust, in a directory for `PYTHONPATH`.
fn assemble(workspace: &Workspace, built: &str) -> Result<PathBuf> {
    let directory = workspace.target(format!("tools/python-client-package-{built}"));
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    let sources = workspace.path(PACKAGE).join("python");
    for part in ["emend", "emend/_generated"] {
        let (from, to) = (sources.join(part), directory.join(part));
        fs::create_dir_all(&to)?;
        for file in fs::read_dir(&from).with_context(|| from.display().to_string())? {
            let path = file?.path();
            let is_text = path.extension().is_some_and(|name| name != "so");
            if let (true, Some(name)) = (is_text && path.is_file(), path.file_name()) {
                fs::copy(&path, to.join(name))?;
            }
        }
    }
    let library = workspace.target(built).join(LIBRARY);
    ensure!(
        library.is_file(),
        "{} is not built: `cargo build --workspace` builds it",
        library.display()
    );
    fs::copy(library, directory.join(MODULE))?;
    Ok(directory)
}

/// The library as cargo names it.
const LIBRARY: &str = if cfg!(target_os = "macos") {
    "lib_emend.dylib"
} else {
    "lib_emend.so"
};
