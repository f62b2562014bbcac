//! The Node package: its types are written, checked and tested, with the example, against the programs that are built.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use super::{installed::Guide, missing};
use crate::{
    process::{self, Workspace},
    steps::{Outcome, Steps},
    test::LONG_VARIABLE,
    tools,
};

const PACKAGE: &str = "clients/node";
const EXAMPLE: &str = "examples/node";
/// What a person does first.
const GUIDE: Guide = Guide {
    document: "docs/integration/node.md",
    install: "npm install ./clients/node",
    language: "ts",
    file: "first.mjs",
    run: "node first.mjs",
};
/// What takes minutes is in these files, and is run each night.
const LONG_TESTS: &str = ".long.test.js";
/// The oldest Node that the package runs on.
const LEAST_NODE: u32 = 20;
/// Writes the types: of messages from the protos, and of everything else from the package's own code.
pub(super) fn write(workspace: &Workspace, may_install: bool, steps: &mut Steps) {
    steps.run("write types for Node", || {
        installed(workspace, PACKAGE)?;
        messages(workspace, may_install, &[])?;
        declarations(workspace, &workspace.path(PACKAGE).join("types"))?;
        Ok(Outcome::Done)
    });
}

/// Checks and tests the package with what is built.
pub(super) fn check(workspace: &Workspace, may_install: bool, steps: &mut Steps) {
    if let Err(error) = has_node(workspace) {
        steps.run("client in Node", || missing(error, may_install));
        return;
    }
    steps.run("client in Node", || {
        installed(workspace, PACKAGE)?;
        messages(workspace, may_install, &["--check"])?;
        let written = workspace.target("node-types");
        declarations(workspace, &written)?;
        agree(&written, &workspace.path(PACKAGE).join("types"))?;
        process::run(tsc(workspace).args(["--project", "test"]))?;
        Ok(Outcome::Done)
    });
    steps.run("example in Node", || {
        installed(workspace, EXAMPLE)?;
        let compiler = workspace.path(EXAMPLE).join("node_modules/.bin/tsc");
        process::run(workspace.command(compiler).current_dir(workspace.path(EXAMPLE)))?;
        Ok(Outcome::Done)
    });
    steps.run("tests in Node", || {
        process::run(&mut testing(workspace, |_| true)?)?;
        Ok(Outcome::Done)
    });
}

/// What takes too long for each change: the tests that wait for minutes, and the package as npm builds it.
pub(super) fn check_long(workspace: &Workspace, may_install: bool, steps: &mut Steps) {
    if let Err(error) = has_node(workspace) {
        steps.run("client in Node", || missing(error, may_install));
        return;
    }
    steps.run("long tests in Node", || {
        let mut tests = testing(workspace, |file| file.ends_with(LONG_TESTS))?;
        process::run(tests.env(LONG_VARIABLE, "1"))?;
        Ok(Outcome::Done)
    });
    steps.run("guide in Node", || {
        GUIDE.is_right(workspace, |_| Ok(None))?;
        Ok(Outcome::Done)
    });
}

/// Runs the tests of some files.
fn testing(workspace: &Workspace, wanted: impl Fn(&str) -> bool) -> Result<Command> {
    let mut command = workspace.command("node");
    command
        .args(["--test", "--test-reporter=spec"])
        .args(tests(workspace, wanted)?)
        .current_dir(workspace.path(PACKAGE))
        .env("EMEND_NODE_ADDON", addon(workspace, "debug")?)
        .env("EMEND_TEST_EMEND", workspace.target("debug/emend"));
    Ok(command)
}

fn has_node(workspace: &Workspace) -> Result<()> {
    let version = process::output(workspace.command("node").arg("--version"));
    let version = version.context("Node is missing: install Node 20 or newer, with npm")?;
    let major = version.trim().trim_start_matches('v').split('.').next();
    let is_new_enough = major.and_then(|major| major.parse().ok()) >= Some(LEAST_NODE);
    ensure!(
        is_new_enough,
        "Node is {}, {LEAST_NODE} or newer is needed",
        version.trim()
    );
    Ok(())
}

/// Installs what a package is checked with. Its scripts are not run: they would build the addon for release.
fn installed(workspace: &Workspace, package: &str) -> Result<()> {
    let options = [
        "install",
        "--ignore-scripts",
        "--no-package-lock",
        "--no-fund",
        "--no-audit",
        "--loglevel=error",
    ];
    process::run(
        workspace
            .command("npm")
            .args(options)
            .current_dir(workspace.path(package)),
    )
}

/// Writes the types of messages from the protos, or compares them.
fn messages(workspace: &Workspace, may_install: bool, options: &[&str]) -> Result<()> {
    let image = workspace.target("protos.json");
    let output = format!("{}#format=json", image.display());
    let buf = tools::buf(workspace, may_install)?;
    process::run(workspace.command(buf).args(["build", "--output", &output]))?;
    process::run(
        workspace
            .command("node")
            .arg(workspace.path(PACKAGE).join("scripts/messages.mjs"))
            .args(options)
            .stdin(fs::File::open(image)?),
    )
}

/// Has TypeScript check the package's code and write its declarations.
fn declarations(workspace: &Workspace, directory: &Path) -> Result<()> {
    process::run(
        tsc(workspace)
            .args(["--project", "."])
            .arg("--outDir")
            .arg(directory),
    )
}

fn tsc(workspace: &Workspace) -> Command {
    let mut command = workspace.command(workspace.path(PACKAGE).join("node_modules/.bin/tsc"));
    command.current_dir(workspace.path(PACKAGE));
    command
}

/// Fails unless the committed declarations are those that were just written.
fn agree(written: &Path, committed: &Path) -> Result<()> {
    for entry in fs::read_dir(written)? {
        let entry = entry?;
        let committed = committed.join(entry.file_name());
        ensure!(
            fs::read(entry.path())? == fs::read(&committed).unwrap_or_default(),
            "{} is out of date: `cargo xtask clients --write node`",
            committed.display()
        );
    }
    Ok(())
}

/// The addon as cargo built it, in this directory of the target directory.
pub(super) fn addon(workspace: &Workspace, built: &str) -> Result<PathBuf> {
    let directory = workspace.target(built);
    let library = ["libemend_node.so", "libemend_node.dylib"]
        .map(|name| directory.join(name))
        .into_iter()
        .find(|library| library.is_file())
        .context("the addon is not built")?;
    // Node loads nothing under another name.
    let addon = directory.join("emend.node");
    fs::copy(library, &addon)?;
    Ok(addon)
}

fn tests(workspace: &Workspace, wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let mut tests = Vec::new();
    for entry in fs::read_dir(workspace.path(PACKAGE).join("test"))? {
        let path = entry?.path();
        let name = path.to_string_lossy();
        if name.ends_with(".test.js") && wanted(&name) {
            tests.push(path);
        }
    }
    tests.sort();
    Ok(tests)
}
