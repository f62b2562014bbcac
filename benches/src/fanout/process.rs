//! This benchmark's processes: starting them, exchanging lines with them, and measuring their usage.
//!
//! Usage is read from Linux's /proc.

use std::{fs, io::Write as _, process::Stdio};

use anyhow::{Context as _, Result};
use clap::ValueEnum as _;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use super::Role;

/// The unit of times in /proc, in microseconds: a hundredth of a second on every current Linux.
const TICK: f64 = 1e4;
/// The unit of sizes in /proc, in bytes.
const PAGE: u64 = 4_096;

/// A child process running this program; killed on drop.
pub(super) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// The resources a process has used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    /// User and system CPU time of all its threads, in microseconds.
    pub(super) cpu: f64,
    /// Resident memory in bytes.
    pub(super) memory: u64,
}

impl Process {
    pub(super) fn start(role: Role, arguments: &[&str]) -> Result<Self> {
        let role = role.to_possible_value().context("a role has a name")?;
        let mut child = Command::new(std::env::current_exe()?)
            .args(["fanout", "--role", role.get_name()])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self {
            input: child.stdin.take().context("a pipe")?,
            output: BufReader::new(child.stdout.take().context("a pipe")?),
            child,
        })
    }

    /// The next line it prints.
    pub(super) async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line).await?;
        anyhow::ensure!(!line.is_empty(), "the process has ended");
        Ok(line.trim().to_owned())
    }

    /// Its answer to a question.
    pub(super) async fn ask(&mut self, question: &str) -> Result<String> {
        self.input.write_all(format!("{question}\n").as_bytes()).await?;
        self.line().await
    }

    pub(super) fn usage(&self) -> Result<Usage> {
        let id = self.child.id().context("the process has ended")?;
        let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
        // The name, in parentheses, may contain anything; after it come the state (field 3) and numbers.
        let (_, fields) = stat.rsplit_once(')').context("/proc/PID/stat")?;
        let field = |number: usize| -> Result<u32> {
            let text = fields.split_whitespace().nth(number - 3).context("a field")?;
            Ok(text.parse()?)
        };
        let memory = fs::read_to_string(format!("/proc/{id}/statm"))?;
        let pages: u64 = memory.split_whitespace().nth(1).context("a field")?.parse()?;
        Ok(Usage {
            cpu: TICK * f64::from(field(14)? + field(15)?),
            memory: pages * PAGE,
        })
    }
}

/// Sends a line to the parent process.
pub(super) fn tell(line: &str) {
    println!("{line}");
    // If this fails, the parent is gone.
    let _ = std::io::stdout().flush();
}

/// Waits until the parent process has ended or closed this process's input.
pub(super) async fn until_input_ends() {
    let _ = tokio::task::spawn_blocking(|| std::io::stdin().lines().count()).await;
}
