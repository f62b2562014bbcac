//! Runs `emend up` and other commands as processes, each with a time limit.

use std::{
    process::{ExitStatus, Stdio},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

/// How long anything may take.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(2);

/// The command, without any settings from the environment.
pub(crate) fn command() -> Command {
    command_of(env!("CARGO_BIN_EXE_emend"))
}

/// The same of any program.
pub(crate) fn command_of(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars() {
        if name.starts_with("EMEND_") {
            command.env_remove(name);
        }
    }
    command.kill_on_drop(true);
    command
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Completed {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Completed {
    /// Returns itself, if the command succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:#?}");
        self
    }

    /// The only JSON document that it printed.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let mut lines = self.lines();
        assert_eq!(lines.len(), 1, "{self:#?}");
        lines.remove(0)
    }

    /// The JSON lines that it printed.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {self:#?}")))
            .collect()
    }
}

/// Runs a command to its end.
pub(crate) async fn run(args: &[&str]) -> Completed {
    run_with(args, "").await
}

/// Runs a command to its end, with `stdin` on its standard input.
pub(crate) async fn run_with(args: &[&str], stdin: &str) -> Completed {
    let mut child = command()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("emend can be started");
    let mut input = child.stdin.take().expect("it is piped");
    let input_written = async {
        // A command that does not read its input may have exited.
        let _ = input.write_all(stdin.as_bytes()).await;
        drop(input);
    };
    let ((), output) = timeout(TIMEOUT, async {
        tokio::join!(input_written, child.wait_with_output())
    })
    .await
    .unwrap_or_else(|_| panic!("{args:?} takes too long"));
    let output = output.expect("emend can be waited for");
    Completed {
        code: output.status.code().expect("it was not killed"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// `emend up`, running and ready.
pub(crate) struct Up {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub(crate) feedback: String,
    pub(crate) learning: String,
    /// Where assistants are served over HTTP, if that was asked for.
    pub(crate) mcp: Option<String>,
}

impl Up {
    /// Starts it on free ports, with data that is removed at the end.
    pub(crate) async fn ephemeral() -> Self {
        Self::start(&["--ephemeral"]).await
    }

    /// Starts it on free ports.
    pub(crate) async fn start(args: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", args).await
    }

    /// Starts it with both services at this address, whose port is 0.
    pub(crate) async fn start_at(address: &str, args: &[&str]) -> Self {
        Self::start_by(command(), address, args).await
    }

    /// Starts it by this command, which may have variables set, with both services at this address.
    pub(crate) async fn start_by(mut command: Command, address: &str, args: &[&str]) -> Self {
        let mut child = command
            .args([
                "up",
                "--feedback-addr",
                address,
                "--learning-addr",
                address,
                "--log-level",
                "warn",
            ])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("emend can be started");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let ready = timeout(TIMEOUT, lines.next_line())
            .await
            .expect("emend up takes too long")
            .expect("a line")
            .expect("emend up ended before it was ready");
        let addresses = ready
            .strip_prefix("emend: ready feedback=")
            .and_then(|rest| rest.split(" console=").next())
            .and_then(|rest| rest.split_once(" learning="));
        let (feedback, learning) = addresses.unwrap_or_else(|| panic!("unexpected: {ready}"));
        let mcp = ready.split_once(" mcp=").map(|(_, url)| url.to_owned());
        let learning = learning.split(' ').next().unwrap_or_default();
        Self {
            mcp,
            child,
            feedback: feedback.to_owned(),
            learning: learning.to_owned(),
            lines,
        }
    }

    /// Runs a command against it.
    pub(crate) async fn run(&self, args: &[&str]) -> Completed {
        self.run_with(args, "").await
    }

    /// Runs a command against it, with `stdin` on its standard input.
    pub(crate) async fn run_with(&self, args: &[&str], stdin: &str) -> Completed {
        run_with(&self.args(args), stdin).await
    }

    /// The arguments, with the addresses of the services appended.
    pub(crate) fn args<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        let mut args = args.to_vec();
        args.extend([
            "--feedback-addr",
            &self.feedback,
            "--learning-addr",
            &self.learning,
        ]);
        args
    }

    /// The id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Sends it a signal.
    pub(crate) async fn signal(&self, name: &str) {
        let id = self.child.id().expect("it runs").to_string();
        // The shell's built-in kill, because kill(1) is not everywhere.
        let sent = Command::new("sh")
            .args(["-c", &format!("kill {name} {id}")])
            .status()
            .await
            .expect("a shell can be run");
        assert!(sent.success());
    }

    /// Waits for its end. Returns its exit status and what it wrote after it was ready.
    pub(crate) async fn ended(mut self) -> (ExitStatus, Vec<String>) {
        let ended = async {
            let mut more = Vec::new();
            while let Some(line) = self.lines.next_line().await.expect("a line") {
                more.push(line);
            }
            (self.child.wait().await.expect("it can be waited for"), more)
        };
        timeout(TIMEOUT, ended).await.expect("emend up does not end")
    }
}

/// A command for a line-by-line conversation.
pub(crate) struct Conversation {
    _child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Conversation {
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut child = command()
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("emend can be started");
        let stdin = child.stdin.take().expect("it is piped");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Self {
            _child: child,
            stdin,
            lines,
        }
    }

    /// Writes a line of JSON.
    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string()).await;
    }

    /// Writes a line.
    pub(crate) async fn send_line(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.stdin.write_all(line.as_bytes()).await.expect("it reads");
        self.stdin.flush().await.expect("it reads");
    }

    /// The next line of JSON.
    pub(crate) async fn receive(&mut self) -> Value {
        let line = timeout(TIMEOUT, self.lines.next_line())
            .await
            .expect("no line in time")
            .expect("a line")
            .expect("it has ended");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The next line of JSON for which `wanted` holds; others are skipped.
    pub(crate) async fn receive_until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let received = self.receive().await;
            if wanted(&received) {
                return received;
            }
        }
    }

    /// Closes its input and waits until its output has ended.
    pub(crate) async fn end(mut self) {
        drop(self.stdin);
        let rest = async { while let Ok(Some(_)) = self.lines.next_line().await {} };
        timeout(TIMEOUT, rest).await.expect("it does not end");
    }
}
