//! `cargo xtask lint`: static checks of the sources. Cheap steps come first.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

use crate::{
    dependencies, docs, manifests, observability,
    process::{self, Workspace},
    proto,
    steps::{Outcome, Steps},
    walls,
};

/// Runs the steps and prints their table; `quick` skips those that compile or need the manifests' tools.
pub(crate) fn lint(workspace: &Workspace, may_install: bool, quick: bool) -> ExitCode {
    let mut steps = Steps::default();
    check_texts(workspace, may_install, &mut steps);
    if !quick {
        manifests::check(workspace, may_install, &mut steps);
        check_code(workspace, &mut steps);
    }
    steps.finish()
}

/// Checks that need no compiling.
pub(crate) fn check_texts(workspace: &Workspace, may_install: bool, steps: &mut Steps) {
    steps.run("format", || {
        needs_component(workspace, "fmt", "rustfmt")?;
        process::run(&mut workspace.cargo(["fmt", "--all", "--check"]))
            .context("`cargo fmt --all` mends it")?;
        Ok(Outcome::Done)
    });
    proto::check(workspace, may_install, steps);
    dependencies::check(workspace, may_install, steps);
    steps.run("walls between modules", || walls::check(workspace));
    docs::check(workspace, may_install, steps);
    observability::check(workspace, may_install, steps);
}

/// The crates that others build on, whose public documentation is checked on each change; that of programs, tests and private items is
/// checked nightly.
const LIBRARIES: [&str; 8] = [
    "emend-proto",
    "emend-core",
    "emend-wire",
    "emend-base",
    "emend-serve",
    "emend-store",
    "emend-stream",
    "emend-client",
];

/// Clippy and rustdoc, for whoever builds nothing.
fn check_code(workspace: &Workspace, steps: &mut Steps) {
    steps.run("generated code", || proto::check_generated(workspace));
    steps.run("clippy", || {
        needs_component(workspace, "clippy", "clippy")?;
        let clippy = [
            "clippy",
            "--locked",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ];
        process::run(&mut workspace.cargo(clippy))?;
        Ok(Outcome::Done)
    });
    steps.run("docs", || check_docs(workspace));
}

/// Makes cargo compile the workspace's crates with clippy, which takes its findings and the compiler's warnings for errors: what is
/// built so needs no other look by clippy, which would be at all dependencies once more. The programs are real; only the compiler's
/// own simplifications before LLVM are off, which in a debug build nothing measurable depends on. Cargo keeps these crates apart
/// from those that it builds without.
pub(crate) fn linted(cargo: &mut Command) -> &mut Command {
    cargo
        .env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver")
        .env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__")
}

/// Rustdoc over what others build on.
pub(crate) fn check_docs(workspace: &Workspace) -> Result<Outcome> {
    let mut doc = workspace.cargo(["doc", "--locked", "--no-deps", "--lib"]);
    for library in LIBRARIES {
        doc.args(["--package", library]);
    }
    process::run(doc.env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(Outcome::Done)
}

/// Rustdoc over everything, private items included.
pub(crate) fn check_private_docs(workspace: &Workspace) -> Result<Outcome> {
    let doc = [
        "doc",
        "--locked",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ];
    process::run(workspace.cargo(doc).env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(Outcome::Done)
}

pub(crate) fn needs_component(workspace: &Workspace, subcommand: &str, component: &str) -> Result<()> {
    process::output(&mut workspace.cargo([subcommand, "--version"]))
        .with_context(|| format!("{component} is missing: `rustup component add {component}`"))?;
    Ok(())
}
