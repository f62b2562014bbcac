//! `cargo xtask lint`: static checks of the sources. Cheap steps come first.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::{
    dependencies, docs, manifests, observability,
    process::{self, Workspace},
    proto,
    steps::{Outcome, Steps},
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
    docs::check(workspace, may_install, steps);
    observability::check(workspace, may_install, steps);
}

/// Clippy and rustdoc.
pub(crate) fn check_code(workspace: &Workspace, steps: &mut Steps) {
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
    steps.run("docs", || {
        let doc = [
            "doc",
            "--locked",
            "--workspace",
            "--no-deps",
            "--document-private-items",
        ];
        process::run(workspace.cargo(doc).env("RUSTDOCFLAGS", "-D warnings"))?;
        Ok(Outcome::Done)
    });
}

fn needs_component(workspace: &Workspace, subcommand: &str, component: &str) -> Result<()> {
    process::output(&mut workspace.cargo([subcommand, "--version"]))
        .with_context(|| format!("{component} is missing: `rustup component add {component}`"))?;
    Ok(())
}
