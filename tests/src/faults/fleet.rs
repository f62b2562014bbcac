//! Replicas of both services as processes on one database, each behind an address that survives any number of kills and
//! restarts.

use std::{
    ffi::OsString,
    net::SocketAddr,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
};

use emend_audit::Databases;
use emend_base::fail_point::{self, FailPoint};
use tempfile::TempDir;
use tokio::process::Command;

use crate::{
    audit::ledger::Audited,
    harness::{
        Database, Feedback, Gateway, Learning, Stored, eventually,
        process::{Process, binary},
        system::Service,
    },
};

/// Low, because many replicas of many tests share one PostgreSQL server.
const CONNECTIONS: &str = "5";

/// Where a fleet stores its data.
#[derive(Debug)]
pub enum Storage {
    /// A directory for each service, which locks it.
    Sqlite {
        /// feedback-svc's.
        feedback: TempDir,
        /// learning-svc's.
        learning: TempDir,
    },
    /// A database on the server that all tests share.
    Shared(Database),
    /// A database on the test's own server.
    Own(String),
}

impl Storage {
    /// New directories.
    ///
    /// # Panics
    /// If none can be made.
    pub fn sqlite() -> Self {
        let directory = || tempfile::tempdir().expect("a directory");
        Self::Sqlite {
            feedback: directory(),
            learning: directory(),
        }
    }

    /// A new database on the shared server; `None` without one, after one line of output that says so.
    pub async fn postgres() -> Option<Self> {
        Database::postgres().await.map(Self::Shared)
    }

    /// The URL, as `--database-url` takes it.
    pub fn url(&self, service: Service) -> String {
        match self {
            Self::Sqlite { feedback, learning } => {
                let file = match service {
                    Service::Feedback => feedback.path().join("feedback.db"),
                    Service::Learning => learning.path().join("learning.db"),
                };
                format!("sqlite:{}", file.display())
            }
            Self::Shared(database) => database.url(service, None),
            Self::Own(url) => url.clone(),
        }
    }

    /// Both services' databases, for an audit.
    ///
    /// # Panics
    /// Never: these URLs are valid.
    pub fn databases(&self) -> Databases {
        let url = |service| self.url(service).parse().expect("a database");
        Databases {
            feedback: url(Service::Feedback),
            learning: url(Service::Learning),
        }
    }

    /// What learning-svc stored.
    pub fn stored(&self) -> Stored {
        let url = self.url(Service::Learning);
        match url.strip_prefix("sqlite:") {
            Some(path) => Stored::Sqlite(path.into()),
            None => Stored::Postgres(url),
        }
    }
}

/// Replicas of both services on one database.
#[derive(Debug)]
pub struct Fleet {
    /// Replicas of feedback-svc. Replica i's relay delivers to learning-svc i, modulo the number of those.
    pub feedback: Vec<Member>,
    /// Replicas of learning-svc.
    pub learning: Vec<Member>,
    /// Last, because it must be dropped after the services that use it.
    pub storage: Storage,
}

/// One replica, running or not.
#[derive(Debug)]
pub struct Member {
    /// Where clients reach it.
    pub front: Gateway,
    /// Environment variables for the program, from its next start on.
    pub environment: Vec<(OsString, OsString)>,
    /// A command that runs the program it is given, from its next start on; empty for none.
    pub within: Vec<OsString>,
    /// Arguments for the program, from its next start on.
    pub arguments: Vec<String>,
    program: &'static str,
    service: &'static str,
    process: Option<Process>,
}

impl Fleet {
    /// One of each on SQLite.
    pub async fn sqlite() -> Self {
        Self::start(Storage::sqlite(), 1, 1).await
    }

    /// The given numbers of replicas on a database of the shared server; `None` without one.
    pub async fn postgres(feedback: usize, learning: usize) -> Option<Self> {
        Some(Self::start(Storage::postgres().await?, feedback, learning).await)
    }

    /// Starts the given numbers of replicas.
    pub async fn start(storage: Storage, feedback: usize, learning: usize) -> Self {
        let mut fleet = Self::stopped(storage, feedback, learning).await;
        fleet.start_all().await;
        fleet
    }

    /// The given numbers of replicas, none of them started.
    pub async fn stopped(storage: Storage, feedback: usize, learning: usize) -> Self {
        let mut fleet = Self {
            feedback: Vec::new(),
            learning: Vec::new(),
            storage,
        };
        for _ in 0..learning {
            let url = fleet.storage.url(Service::Learning);
            fleet
                .learning
                .push(Member::new(Service::Learning, &url, &[]).await);
        }
        for index in 0..feedback {
            let url = fleet.storage.url(Service::Feedback);
            let learning = fleet.learning[index % learning].front.address().to_string();
            let arguments = ["--learning-addr".to_owned(), learning];
            fleet
                .feedback
                .push(Member::new(Service::Feedback, &url, &arguments).await);
        }
        fleet
    }

    /// All replicas.
    pub fn members(&mut self) -> impl Iterator<Item = &mut Member> {
        self.learning.iter_mut().chain(&mut self.feedback)
    }

    /// Starts those that are not running.
    pub async fn start_all(&mut self) {
        for member in self.members() {
            if member.process.is_none() {
                member.start().await;
            }
        }
    }

    /// Asks all to end, and waits until they have ended.
    pub async fn stop_all(&mut self) {
        for member in self.members() {
            if member.process.is_some() {
                member.stop().await;
            }
        }
    }

    /// A client of each feedback-svc.
    pub fn feedback_clients(&self) -> Vec<Feedback> {
        let address = |member: &Member| Feedback::at(member.front.address());
        self.feedback.iter().map(address).collect()
    }

    /// Clients of each learning-svc.
    pub fn learning_clients(&self) -> Vec<Learning> {
        let address = |member: &Member| Learning::at(member.front.address());
        self.learning.iter().map(address).collect()
    }
}

impl Audited for Fleet {
    fn databases(&self) -> Databases {
        self.storage.databases()
    }

    fn stored(&self) -> Stored {
        self.storage.stored()
    }
}

impl Drop for Member {
    /// A failed run shows each service's complaints.
    #[expect(clippy::print_stderr, reason = "shown where the run fails")]
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(process) = &self.process
        {
            eprintln!("{}:\n{}", self.program, process.complaints());
        }
    }
}

impl Member {
    async fn new(service: Service, url: &str, more: &[String]) -> Self {
        let (program, service) = match service {
            Service::Feedback => ("feedback-svc", "emend.feedback.v1.FeedbackService"),
            Service::Learning => ("learning-svc", "emend.learning.v1.IngestService"),
        };
        let mut arguments: Vec<String> = ["--listen", "127.0.0.1:0", "--database-url", url]
            .map(str::to_owned)
            .into();
        if !url.starts_with("sqlite:") {
            arguments.extend(["--database-connections", CONNECTIONS].map(str::to_owned));
        }
        arguments.extend_from_slice(more);
        Self {
            front: Gateway::open().await,
            environment: Vec::new(),
            within: Vec::new(),
            program,
            service,
            arguments,
            process: None,
        }
    }

    /// Starts it and waits until it is ready.
    pub async fn start(&mut self) {
        let address = self.spawn(None).await;
        let process = self.process.as_mut().expect("it was started just now");
        let Some(address) = address else {
            panic!("{} ended before it served:\n{}", self.program, process.output());
        };
        process.ready(address, self.service).await;
    }

    /// Starts it so that it dies when it passes a fail point for the `count`th time. Returns once it serves or has
    /// died.
    pub async fn start_to_die_at(&mut self, point: FailPoint, count: usize) {
        self.spawn(Some(format!("{}:{count}", point.name()))).await;
    }

    /// Replaces it as a rolling upgrade does: a new process is ready and receives new connections before the old one is
    /// asked to end; waits until that one has ended gracefully.
    ///
    /// # Panics
    /// If it is not running, does not end gracefully, or the new one does not become ready.
    pub async fn roll(&mut self) {
        let mut old = self.process.take().expect("it runs");
        let address = self.launch(None).await;
        let new = self.process.as_mut().expect("it was started just now");
        let Some(address) = address else {
            panic!("{} ended before it served:\n{}", self.program, new.output());
        };
        new.ready(address, self.service).await;
        self.front.prefer(address);
        old.terminate().await;
        let status = old.ended().await;
        assert!(
            status.success(),
            "{} ended with {status}:\n{}",
            self.program,
            old.output()
        );
    }

    /// Starts it and points its front address there; answers with its listen address, unless it ends first.
    async fn spawn(&mut self, armed: Option<String>) -> Option<SocketAddr> {
        let address = self.launch(armed).await?;
        self.front.lead_to(address);
        Some(address)
    }

    /// Starts it; answers with its listen address, unless it ends first.
    async fn launch(&mut self, armed: Option<String>) -> Option<SocketAddr> {
        assert!(self.process.is_none(), "{} runs", self.program);
        let program = binary(self.program).await;
        let mut command = match self.within.split_first() {
            None => Command::new(program),
            Some((wrapper, arguments)) => {
                let mut command = Command::new(wrapper);
                command.args(arguments).arg(program);
                command
            }
        };
        command
            .args(&self.arguments)
            .envs(self.environment.iter().cloned());
        if let Some(armed) = armed {
            command.env(fail_point::VARIABLE, armed);
        }
        let process = std::sync::Mutex::new(Process::spawn(self.program, command));
        let address = eventually(&format!("{} serves or ends", self.program), || async {
            let mut process = process.lock().expect("nobody fails with it");
            if let Some(address) = process.logged(listens_at) {
                return Ok(Some(address));
            }
            match process.has_ended() {
                Some(_) => Ok(None),
                None => Err(process.output()),
            }
        })
        .await;
        self.process = Some(process.into_inner().expect("nobody fails with it"));
        address
    }

    /// Waits until it reports that it is ready, without a restart.
    ///
    /// # Panics
    /// If it does not, or is not running.
    pub async fn is_ready(&mut self) {
        let (address, service) = (self.front.address(), self.service);
        self.process().ready(address, service).await;
    }

    /// Whether it was started, and neither stopped nor seen to die since.
    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Kills it without warning.
    ///
    /// # Panics
    /// If it is not running, or ended by itself.
    pub async fn kill(&mut self) {
        let mut process = self.process.take().expect("it runs");
        process.kill().await;
        self.front.close();
    }

    /// Asks it to end, and waits until it has ended gracefully.
    ///
    /// # Panics
    /// If it does not.
    pub async fn stop(&mut self) {
        let mut process = self.process.take().expect("it runs");
        process.terminate().await;
        let status = process.ended().await;
        assert!(
            status.success(),
            "{} ended with {status}:\n{}",
            self.program,
            process.output()
        );
        self.front.close();
    }

    /// Waits until it has died at a fail point.
    ///
    /// # Panics
    /// If it does not, or ends in another way.
    pub async fn dies(&mut self, point: FailPoint) {
        const SIGABRT: i32 = 6;
        let mut process = self.process.take().expect("it runs");
        let ended = tokio::time::timeout(crate::harness::wait::PATIENCE, process.ended()).await;
        let status = ended.unwrap_or_else(|_| {
            panic!(
                "{} never came to {}:\n{}",
                self.program,
                point.name(),
                process.output()
            )
        });
        assert_eq!(
            status.signal(),
            Some(SIGABRT),
            "{} ended with {status}, not at {}:\n{}",
            self.program,
            point.name(),
            process.output()
        );
        self.front.close();
    }

    /// The process, while it runs.
    ///
    /// # Panics
    /// If it is not running.
    pub fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("it runs")
    }

    /// A path as this process sees it, which may have mounts of its own.
    pub fn sees(&mut self, path: &Path) -> PathBuf {
        let id = self.process().id();
        let relative = path.strip_prefix("/").expect("an absolute path");
        Path::new("/proc")
            .join(id.to_string())
            .join("root")
            .join(relative)
    }
}

/// Finds `… address=HOST:PORT …` in the line that announces that it serves.
fn listens_at(line: &str) -> Option<SocketAddr> {
    let said = line.split_once("address=")?.1;
    said.split_whitespace().next()?.parse().ok()
}
