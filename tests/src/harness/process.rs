//! The real programs as processes: started, asked to end, and killed without warning.

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader},
    process::{Child, Command},
    sync::OnceCell,
};
use tokio_util::task::AbortOnDropHandle;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use super::{
    rpc::channel,
    wait::{PATIENCE, eventually, holds, within, within_time},
};

/// The packages whose programs are run here, and this one, so that they are built with the features that it enables.
const PACKAGES: [&str; 6] = [
    "emend-cli",
    "emend-tests",
    "feedback-svc",
    "learning-svc",
    "search-node",
    "verb-node",
];

/// A running program. Dropping this kills it.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    output: Output,
    reading: [AbortOnDropHandle<()>; 2],
}

/// The lines that a program wrote, by stream.
#[derive(Debug, Clone, Default)]
struct Output(Arc<Mutex<Vec<(Stream, String)>>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Out,
    Err,
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The end says why; logs may be long.
        for (_, line) in lines.iter().skip(lines.len().saturating_sub(60)) {
            writeln!(f, "  | {line}")?;
        }
        Ok(())
    }
}

impl Process {
    /// Starts a program of this workspace.
    ///
    /// # Panics
    /// If it can't be started.
    pub async fn start(program: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        let mut command = Command::new(binary(program).await);
        command.args(arguments);
        Self::spawn(program, command)
    }

    /// Starts a command.
    ///
    /// # Panics
    /// If it can't be started.
    pub fn spawn(name: &str, mut command: Command) -> Self {
        forget_settings(&mut command);
        // Databases of tests are new.
        match name {
            "feedback-svc" => command.env("EMEND_FEEDBACK_INIT", "true"),
            "learning-svc" => command.env("EMEND_LEARNING_INIT", "true"),
            _ => &mut command,
        };
        // Error texts are checked; a backtrace would push them out of the lines that are kept.
        command.env("RUST_LIB_BACKTRACE", "0");
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        let output = Output::default();
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let reading = [
            read(out.expect("piped"), Stream::Out, output.clone()),
            read(err.expect("piped"), Stream::Err, output.clone()),
        ];
        Self {
            name: name.to_owned(),
            child,
            output,
            reading,
        }
    }

    /// Waits for a line on standard output that `found` accepts.
    pub async fn says<T>(&mut self, what: &str, found: impl Fn(&str) -> Option<T>) -> T {
        let Self {
            name, child, output, ..
        } = self;
        let output = output.clone();
        let child = Mutex::new(child);
        let name = name.as_str();
        eventually(&format!("{name} says {what}"), || async {
            {
                let lines = output.0.lock().unwrap_or_else(PoisonError::into_inner);
                let mut said = lines.iter().filter(|(stream, _)| *stream == Stream::Out);
                if let Some(found) = said.find_map(|(_, line)| found(line)) {
                    return Ok(found);
                }
            }
            let ended = child.lock().unwrap_or_else(PoisonError::into_inner).try_wait();
            assert!(
                matches!(ended, Ok(None)),
                "{name} ended ({ended:?}) before it said {what}:\n{output}"
            );
            Err(format!("\n{output}"))
        })
        .await
    }

    /// What `found` makes of the first log line so far that it accepts.
    pub fn logged<T>(&self, found: impl Fn(&str) -> Option<T>) -> Option<T> {
        let lines = self.output.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut log = lines.iter().filter(|(stream, _)| *stream == Stream::Err);
        log.find_map(|(_, line)| found(line))
    }

    /// All of its log so far.
    pub fn log(&self) -> String {
        let lines = self.output.0.lock().unwrap_or_else(PoisonError::into_inner);
        let log = lines.iter().filter(|(stream, _)| *stream == Stream::Err);
        let lines: Vec<&str> = log.map(|(_, line)| line.as_str()).collect();
        lines.join("\n")
    }

    /// The last 20 lines of its output that are not mere information.
    pub fn complaints(&self) -> String {
        let lines = self.output.0.lock().unwrap_or_else(PoisonError::into_inner);
        let complaints = lines
            .iter()
            .map(|(_, line)| line)
            .filter(|line| !line.contains(" INFO "));
        let complaints: Vec<&str> = complaints.map(String::as_str).collect();
        complaints[complaints.len().saturating_sub(20)..].join("\n")
    }

    /// Its exit status, if it has ended.
    ///
    /// # Panics
    /// If the system can't tell.
    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the system knows its processes")
    }

    /// Waits until its health service says that it is ready.
    pub async fn ready(&mut self, address: impl fmt::Display, service: &str) {
        let health = HealthClient::new(channel(&address));
        let Self {
            name, child, output, ..
        } = self;
        let child = Mutex::new(child);
        let name = name.as_str();
        eventually(&format!("{name} is ready at {address}"), || async {
            let ended = child.lock().unwrap_or_else(PoisonError::into_inner).try_wait();
            assert!(
                matches!(ended, Ok(None)),
                "{name} ended ({ended:?}) before it was ready:\n{output}"
            );
            let status = serving(&health, service).await;
            holds(status == Some(ServingStatus::Serving), || {
                format!("{status:?}\n{output}")
            })
        })
        .await;
    }

    /// Kills it without warning.
    ///
    /// # Panics
    /// If it has already ended.
    pub async fn kill(&mut self) {
        let ended = self.child.try_wait();
        assert!(
            matches!(ended, Ok(None)),
            "{} ended by itself ({ended:?}):\n{}",
            self.name,
            self.output
        );
        self.child.kill().await.expect("a running process can be killed");
    }

    /// Its resident memory, in bytes, as Linux reports it.
    ///
    /// # Panics
    /// If it has ended.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(self.of_the_system("status")).expect("the process runs");
        let kibibytes = status.lines().find_map(|line| {
            line.strip_prefix("VmRSS:")?
                .trim()
                .strip_suffix(" kB")?
                .parse::<u64>()
                .ok()
        });
        kibibytes.expect("Linux tells it") * 1024
    }

    /// Its number of open files and sockets, as Linux reports it.
    ///
    /// # Panics
    /// If it has ended.
    pub fn open_files(&self) -> usize {
        let files = std::fs::read_dir(self.of_the_system("fd")).expect("the process runs");
        files.count()
    }

    fn of_the_system(&self, what: &str) -> PathBuf {
        let id = self.child.id().expect("the process runs");
        Path::new("/proc").join(id.to_string()).join(what)
    }

    /// Asks it to end (SIGTERM), as a supervisor does.
    ///
    /// # Panics
    /// If it has ended.
    pub async fn terminate(&self) {
        self.signal("TERM").await;
    }

    /// Sends it a signal, by its name for the shell's `kill`.
    ///
    /// # Panics
    /// If it has ended.
    pub async fn signal(&self, name: &str) {
        let id = self.child.id().expect("the process runs");
        // The shell's builtin: not every system has kill(1).
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -{name} {id}")])
            .status()
            .await;
        assert!(sent.is_ok_and(|status| status.success()), "the signal is sent");
    }

    /// Waits until it has ended and all its output is read.
    ///
    /// # Panics
    /// If it does not.
    pub async fn ended(&mut self) -> ExitStatus {
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let status = status.unwrap_or_else(|_| panic!("{} does not end:\n{}", self.name, self.output));
        for reading in &mut self.reading {
            if !reading.is_finished() {
                let read = within("what an ended program wrote is read", reading).await;
                read.expect("reading does not panic");
            }
        }
        status.expect("an exit status")
    }

    /// Its process id.
    ///
    /// # Panics
    /// If it has ended.
    pub fn id(&self) -> u32 {
        self.child.id().expect("the process runs")
    }

    /// The last of its output so far, for failure messages.
    pub fn output(&self) -> String {
        self.output.to_string()
    }

    /// All its standard output so far.
    pub fn standard_output(&self) -> String {
        let lines = self.output.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        for (_, line) in lines.iter().filter(|(stream, _)| *stream == Stream::Out) {
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}

fn read(from: impl AsyncRead + Send + Unpin + 'static, stream: Stream, to: Output) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        let mut lines = BufReader::new(from).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let mut kept = to.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push((stream, line));
        }
    }))
}

/// The serving status from a health service; `None` if it does not answer.
pub async fn serving(
    health: &HealthClient<tonic::transport::Channel>,
    service: &str,
) -> Option<ServingStatus> {
    let request = HealthCheckRequest {
        service: service.to_owned(),
    };
    let answer = health.clone().check(request).await.ok()?;
    ServingStatus::try_from(answer.into_inner().status).ok()
}

/// A port on the loopback that was free a moment ago.
///
/// # Panics
/// If there is no free port.
pub async fn free_port() -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a free port");
    listener
        .local_addr()
        .expect("a bound socket has an address")
        .port()
}

/// A program of this workspace: built together with these tests, or now if it is missing.
pub async fn binary(name: &str) -> PathBuf {
    static BUILT: OnceCell<()> = OnceCell::const_new();
    let this = env::current_exe().expect("this test has a file");
    // target/PROFILE/deps/system-…
    let directory = this.ancestors().nth(2).expect("tests are built into a directory");
    let program = directory.join(name);
    if !program.is_file() {
        BUILT.get_or_init(|| build(directory)).await;
    }
    assert!(program.is_file(), "{} is not built", program.display());
    program
}

async fn build(directory: &Path) {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--bins"]);
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    let profile = directory.file_name().and_then(OsStr::to_str);
    if let Some(profile) = profile.filter(|&profile| profile != "debug") {
        command.args(["--profile", profile]);
    }
    let target = directory
        .parent()
        .expect("a profile's directory is in the target directory");
    command.arg("--target-dir").arg(target).stdin(Stdio::null());
    let built = command.status().await.expect("cargo runs");
    assert!(built.success(), "the programs do not build");
}

/// Removes inherited `EMEND_` variables from a program's environment. Those of the tests and their tools are not
/// settings of the program under test, which would take them as such or warn about them. What is set for this command
/// stays.
pub fn forget_settings(command: &mut Command) {
    forget(command, env::vars_os().map(|(name, _)| name));
}

fn forget(command: &mut Command, inherited: impl Iterator<Item = OsString>) {
    let command = command.as_std_mut();
    for name in inherited.filter(|name| name.as_encoded_bytes().starts_with(b"EMEND_")) {
        if command.get_envs().all(|(set, _)| set != name) {
            command.env_remove(name);
        }
    }
}

/// How long a command may take. Some fetch and compile what they need, beside other tests.
const COMMAND_PATIENCE: Duration = Duration::from_mins(5);

/// Runs a command to its end and answers with its standard output, or with both streams if it failed.
pub async fn run(name: &str, mut command: Command) -> Result<String, String> {
    forget_settings(&mut command);
    let child = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = within_time(COMMAND_PATIENCE, name, child)
        .await
        .map_err(|error| format!("{name}: {error}"))?;
    let out = String::from_utf8_lossy(&output.stdout);
    if output.status.success() {
        Ok(out.into_owned())
    } else {
        let err = String::from_utf8_lossy(&output.stderr);
        Err(format!("{name} ended with {}:\n{out}{err}", output.status))
    }
}

/// The result of a command that ran to its end.
#[derive(Debug)]
pub struct CommandOutput {
    /// Its exit code.
    pub code: i32,
    /// What it wrote on standard output.
    pub stdout: String,
    /// What it wrote on standard error.
    pub stderr: String,
}

impl CommandOutput {
    /// Its one JSON document.
    ///
    /// # Panics
    /// If it wrote anything else.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// Runs the `emend` command to its end.
///
/// # Panics
/// If it can't be run, or was killed.
pub async fn emend(arguments: &[&str]) -> CommandOutput {
    let mut command = Command::new(binary("emend").await);
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    forget_settings(&mut command);
    let output = within("emend runs", command.output())
        .await
        .expect("emend can be run");
    CommandOutput {
        code: output.status.code().expect("it was not killed"),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_only_the_variables_set_for_it() {
        let mut command = Command::new("feedback-svc");
        command
            .env("EMEND_FAIL_POINT", "stored:1")
            .env_remove("EMEND_DATA_DIR");
        let inherited = [
            "EMEND_DATA_DIR",
            "EMEND_FAIL_POINT",
            "EMEND_SKIPPED_FILE",
            "EMEND_TEST_SEED",
            "PATH",
        ];
        forget(&mut command, inherited.map(OsString::from).into_iter());
        let given: Vec<_> = command.as_std().get_envs().collect();
        let given: Vec<_> = given
            .iter()
            .map(|(name, value)| (name.to_str().unwrap(), value.is_some()))
            .collect();
        assert_eq!(
            given,
            [
                ("EMEND_DATA_DIR", false),
                ("EMEND_FAIL_POINT", true),
                ("EMEND_SKIPPED_FILE", false),
                ("EMEND_TEST_SEED", false),
            ]
        );
    }
}
