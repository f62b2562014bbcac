//! The clients in other languages: what their own tools say of their types, and their tests against a real pair. And what the
//! official suite of the Model Context Protocol says of the server for assistants.

pub(crate) mod go;
mod installed;
mod mcp;
pub(crate) mod measure;
mod node;
mod pair;
mod python;

use std::{panic, thread};

use clap::ValueEnum;

use crate::{
    process::{self, Workspace},
    steps::{Outcome, Steps},
};

/// The language of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// The package `emend` for Python.
    Python,
    /// The package `@emend/client` for Node.
    Node,
    /// The Go module.
    Go,
    /// None: the Model Context Protocol, by its official conformance suite.
    Mcp,
}

/// What is done for each language, and what each night; the workspace is built before.
const CHECKS: [(Language, Check, Check); 4] = [
    (Language::Python, python::check, python::check_long),
    (Language::Node, node::check, node::check_long),
    (Language::Go, go::check, go::check_long),
    (Language::Mcp, mcp::check, mcp::check_long),
];

type Check = fn(&Workspace, bool, &mut Steps);

/// Builds what the checks need, with the features that the whole workspace has.
pub(crate) fn build(workspace: &Workspace, steps: &mut Steps) {
    steps.run("build", || {
        let arguments = [
            "build",
            "--locked",
            "--workspace",
            "--lib",
            "--bin",
            "emend",
            "--example",
            mcp::FIXTURES,
        ];
        process::run(&mut workspace.cargo(arguments)).map(|()| Outcome::Done)
    });
}

/// Writes what is generated of the Node package.
pub(crate) fn write(workspace: &Workspace, may_install: bool, steps: &mut Steps) {
    node::write(workspace, may_install, steps);
}

/// Checks the clients of all languages side by side, for most of their tests wait; or of one.
pub(crate) fn check(workspace: &Workspace, may_install: bool, only: Option<Language>, steps: &mut Steps) {
    let all_steps = thread::scope(|scope| {
        let checks = CHECKS
            .into_iter()
            .filter(|(language, ..)| only.is_none_or(|only| only == *language));
        let running: Vec<_> = checks
            .map(|(_, check, _)| {
                scope.spawn(move || {
                    let mut steps = Steps::default();
                    check(workspace, may_install, &mut steps);
                    steps
                })
            })
            .collect();
        running.into_iter().map(join).collect::<Vec<_>>()
    });
    for its_steps in all_steps {
        steps.append(its_steps);
    }
}

fn join(running: thread::ScopedJoinHandle<'_, Steps>) -> Steps {
    running.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
}

/// Checks what takes too long for each change: ten minutes of updates, and the packages as people build and begin with them.
pub(crate) fn check_long(
    workspace: &Workspace,
    may_install: bool,
    only: Option<Language>,
    steps: &mut Steps,
) {
    for (language, _, check) in CHECKS {
        if only.is_none_or(|only| only == language) {
            check(workspace, may_install, steps);
        }
    }
}

/// A tool that is missing is a step that is not run, and in CI a failure.
fn missing(error: anyhow::Error, may_install: bool) -> anyhow::Result<Outcome> {
    if may_install || process::in_ci() {
        return Err(error);
    }
    Ok(Outcome::NotRun(format!("{error:#}")))
}
