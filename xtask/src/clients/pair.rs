//! Both services for as long as something needs them, on free ports and on nothing that stays.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use crate::process::Workspace;

/// A running pair; dropping it ends it.
pub(super) struct Pair {
    child: Child,
    pub(super) feedback: String,
    pub(super) learning: String,
}

impl Pair {
    /// Starts the program that the workspace's build has made; nothing that it stores is kept.
    pub(super) fn start(workspace: &Workspace) -> Result<Self> {
        let mut command = workspace.command(workspace.target("debug/emend"));
        Self::of(command.args(["up", "--ephemeral"]))
    }

    /// Starts this program on a directory of its own.
    pub(super) fn keeping(workspace: &Workspace, program: &Path, data: &Path) -> Result<Self> {
        let mut command = workspace.command(program);
        Self::of(command.args(["up", "--data-dir"]).arg(data))
    }

    fn of(command: &mut Command) -> Result<Self> {
        let mut child = command
            .args([
                "--console-addr=off",
                "--feedback-addr=127.0.0.1:0",
                "--learning-addr=127.0.0.1:0",
            ])
            .stdout(Stdio::piped())
            .spawn()
            .context("emend is not built: `cargo build --workspace` builds it")?;
        let output = child.stdout.take().context("its standard output")?;
        let mut pair = Self {
            child,
            feedback: String::new(),
            learning: String::new(),
        };
        for line in BufReader::new(output).lines() {
            let line = line?;
            let said = |name: &str| {
                line.split(' ')
                    .find_map(|word| word.strip_prefix(name))
                    .map(str::to_owned)
            };
            if let (Some(feedback), Some(learning)) = (said("feedback="), said("learning=")) {
                (pair.feedback, pair.learning) = (feedback, learning);
                return Ok(pair);
            }
        }
        bail!("emend up did not say where it listens")
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
