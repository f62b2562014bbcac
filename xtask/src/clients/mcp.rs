//! The official conformance suite of the Model Context Protocol, against the transport with the suite's own fixtures, and against
//! `emend up --mcp-http` as it is. What does not apply to which is listed, with the reason, in crates/emend-mcp/conformance.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result};

use super::missing;
use crate::{
    process::{self, Workspace},
    steps::{Outcome, Steps},
    tools,
};

/// The example that has what the suite expects of a server.
pub(super) const FIXTURES: &str = "fixtures";
/// The revisions that the suite knows and the server offers.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// What is not expected to pass, a file for each server and revision.
const BASELINES: &str = "crates/emend-mcp/conformance";

/// Runs every scenario of each revision against each server.
pub(super) fn check(workspace: &Workspace, may_install: bool, steps: &mut Steps) {
    let mut emend = workspace.command(workspace.target("debug/emend"));
    emend.args([
        "up",
        "--ephemeral",
        "--console-addr",
        "off",
        "--mcp-http",
        "127.0.0.1:0",
    ]);
    emend.args([
        "--feedback-addr",
        "127.0.0.1:0",
        "--learning-addr",
        "127.0.0.1:0",
        "--log-level",
        "warn",
    ]);
    let fixtures = workspace.command(workspace.target(format!("debug/examples/{FIXTURES}")));
    for (step, name, command) in [
        ("MCP suite, its fixtures", FIXTURES, fixtures),
        ("MCP suite, emend up", "emend", emend),
    ] {
        steps.run(step, || {
            let suite = match tools::mcp_suite(workspace, may_install) {
                Ok(suite) => suite,
                Err(error) => return missing(error, may_install),
            };
            let server = Server::start(command)?;
            for revision in REVISIONS {
                let (node, script) = &suite;
                process::run(
                    workspace
                        .command(node)
                        .arg(script)
                        .args([
                            "server",
                            "--suite",
                            "all",
                            "--url",
                            &server.url,
                            "--spec-version",
                            revision,
                        ])
                        .arg("--expected-failures")
                        .arg(workspace.path(format!("{BASELINES}/{name}-{revision}.yaml")))
                        .arg("--output-dir")
                        .arg(workspace.target(format!("mcp-conformance/{name}-{revision}"))),
                )?;
            }
            Ok(Outcome::Done)
        });
    }
}

/// Nothing of it is left to the night.
pub(super) const fn check_long(_: &Workspace, _: bool, _: &mut Steps) {}

/// A server that answers. Dropping this ends it.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts it, and waits for the line that ends with its URL.
    fn start(mut command: Command) -> Result<Self> {
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"EMEND_") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .context("the server does not start")?;
        let mut line = String::new();
        let output = child.stdout.take().context("invariant: it is piped")?;
        BufReader::new(output).read_line(&mut line)?;
        let url = line.trim().rsplit([' ', '=']).next().unwrap_or_default();
        let server = Self {
            url: url.to_owned(),
            child,
        };
        anyhow::ensure!(server.url.ends_with("/mcp"), "the server said: {line:?}");
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
