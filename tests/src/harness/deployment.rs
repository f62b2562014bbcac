//! Both services as the installed programs, each behind an address that survives a kill and a restart.

use std::{net::SocketAddr, path::Path};

use emend_audit::Databases;
use tempfile::TempDir;
use tokio::process::Command;

use super::{
    clients::{Feedback, Learning},
    gateway::Gateway,
    process::{Process, binary, free_port},
    stored::Stored,
    system::{Database, Service},
};

/// feedback-svc and learning-svc as processes.
#[derive(Debug)]
pub struct Deployment {
    /// feedback-svc's storage, then learning-svc's. On SQLite each process has a directory of its own, which it locks.
    databases: [Database; 2],
    /// feedback-svc.
    pub feedback: Program,
    /// learning-svc.
    pub learning: Program,
    arguments: Arguments,
}

/// Arguments of the programs, besides their listen addresses and what they connect to.
#[derive(Debug, Clone, Default)]
pub struct Arguments {
    /// feedback-svc.
    pub feedback: Vec<String>,
    /// learning-svc.
    pub learning: Vec<String>,
}

/// One program, running or not.
#[derive(Debug)]
pub struct Program {
    /// Where clients reach it.
    pub front: Gateway,
    /// Its process, while it runs.
    pub process: Option<Process>,
}

impl Program {
    async fn new() -> Self {
        Self {
            front: Gateway::open().await,
            process: None,
        }
    }

    /// Kills it without warning.
    ///
    /// # Panics
    /// If it is not running.
    pub async fn kill(&mut self) {
        let mut process = self.process.take().expect("the program runs");
        process.kill().await;
        self.front.close();
    }

    /// Stops it gracefully.
    ///
    /// # Panics
    /// If it is not running, or does not end well.
    pub async fn stop(&mut self) {
        let mut process = self.process.take().expect("the program runs");
        process.terminate().await;
        let status = process.ended().await;
        assert!(status.success(), "{status}\n{}", process.output());
        self.front.close();
    }

    async fn start(&mut self, name: &str, service: &str, arguments: &[String]) -> SocketAddr {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port().await));
        let mut all = vec!["--listen".to_owned(), address.to_string()];
        all.extend_from_slice(arguments);
        let mut process = Process::start(name, &all).await;
        process.ready(address, service).await;
        self.front.lead_to(address);
        self.process = Some(process);
        address
    }
}

impl Deployment {
    /// On SQLite.
    pub async fn sqlite() -> Self {
        Self::sqlite_with(Arguments::default()).await
    }

    /// The same with more arguments.
    pub async fn sqlite_with(arguments: Arguments) -> Self {
        Self::start([Database::sqlite(), Database::sqlite()], arguments).await
    }

    /// On PostgreSQL; `None` without a server, after one line of output that says so.
    pub async fn postgres() -> Option<Self> {
        Self::postgres_with(Arguments::default()).await
    }

    /// The same with more arguments.
    pub async fn postgres_with(arguments: Arguments) -> Option<Self> {
        let databases = [Database::postgres().await?, Database::postgres().await?];
        Some(Self::start(databases, arguments).await)
    }

    async fn start(databases: [Database; 2], arguments: Arguments) -> Self {
        let mut deployment = Self {
            databases,
            feedback: Program::new().await,
            learning: Program::new().await,
            arguments,
        };
        deployment.start_learning().await;
        deployment.start_feedback().await;
        deployment
    }

    /// Starts feedback-svc, for the first time or again; answers with the process's listen address.
    pub async fn start_feedback(&mut self) -> SocketAddr {
        let mut arguments = vec![
            "--database-url".to_owned(),
            self.databases[0].url(Service::Feedback, None),
            "--learning-addr".to_owned(),
            self.learning.front.address().to_string(),
        ];
        arguments.extend_from_slice(&self.arguments.feedback);
        let service = "emend.feedback.v1.FeedbackService";
        self.feedback.start("feedback-svc", service, &arguments).await
    }

    /// Starts learning-svc, for the first time or again; answers with the process's listen address.
    pub async fn start_learning(&mut self) -> SocketAddr {
        let mut arguments = vec![
            "--database-url".to_owned(),
            self.databases[1].url(Service::Learning, None),
        ];
        arguments.extend_from_slice(&self.arguments.learning);
        let service = "emend.learning.v1.IngestService";
        self.learning.start("learning-svc", service, &arguments).await
    }

    /// A client of feedback-svc.
    pub fn feedback(&self) -> Feedback {
        Feedback::at(self.feedback.front.address())
    }

    /// Clients of learning-svc.
    pub fn learning(&self) -> Learning {
        Learning::at(self.learning.front.address())
    }

    /// Gives learning-svc this database from its next start on; answers with the one before.
    pub fn exchange_learning(&mut self, database: Database) -> Database {
        std::mem::replace(&mut self.databases[1], database)
    }

    /// Copies both databases. Neither program may be running.
    pub async fn back_up(&self) -> [Database; 2] {
        [self.databases[0].copy().await, self.databases[1].copy().await]
    }

    /// Gives both programs a backup from their next start on.
    pub fn restore(&mut self, backup: [Database; 2]) {
        self.databases = backup;
    }

    /// learning-svc's storage.
    pub fn learning_database(&self) -> &Database {
        &self.databases[1]
    }

    /// feedback-svc's database URL, as the service takes it.
    pub fn feedback_url(&self) -> String {
        self.databases[0].url(Service::Feedback, None)
    }

    /// Both services' databases, for an audit.
    pub fn databases(&self) -> Databases {
        Databases {
            feedback: self.databases[0].databases().feedback,
            learning: self.databases[1].databases().learning,
        }
    }

    /// What learning-svc stored.
    pub fn stored(&self) -> Stored {
        self.databases[1].stored()
    }
}

/// `emend up`, with its data in a directory of its own.
#[derive(Debug)]
pub struct Up {
    /// The process.
    pub process: Process,
    /// Where its feedback-svc listens.
    pub feedback: SocketAddr,
    /// Where its learning-svc listens.
    pub learning: SocketAddr,
    directory: TempDir,
}

impl Up {
    /// Starts it on free ports and waits for the line that announces that it is ready.
    ///
    /// # Panics
    /// If no directory can be made, or `emend` ends before that line.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// The same with these arguments. If there are any, they replace `--data-dir`.
    ///
    /// # Panics
    /// If no directory can be made, or `emend` ends before that line.
    pub async fn start_with(arguments: &[&str]) -> Self {
        Self::start_under(&[], arguments).await
    }

    /// The same with these environment variables set.
    ///
    /// # Panics
    /// If no directory can be made, or `emend` ends before that line.
    pub async fn start_under(variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().to_string_lossy().into_owned();
        let mut all = vec![
            "up",
            "--feedback-addr",
            "127.0.0.1:0",
            "--learning-addr",
            "127.0.0.1:0",
        ];
        if arguments.is_empty() {
            all.extend(["--data-dir", &data]);
        }
        all.extend_from_slice(arguments);
        let mut command = Command::new(binary("emend").await);
        command.args(all).envs(variables.iter().copied());
        let mut process = Process::spawn("emend", command);
        let (feedback, learning) = process.says("that it is ready", ready_addresses).await;
        Self {
            process,
            feedback,
            learning,
            directory,
        }
    }

    /// Its data directory.
    pub fn data_dir(&self) -> &Path {
        self.directory.path()
    }
}

/// `emend: ready feedback=HOST:PORT learning=HOST:PORT`, and perhaps ` console=URL`
fn ready_addresses(line: &str) -> Option<(SocketAddr, SocketAddr)> {
    let (feedback, learning) = line
        .strip_prefix("emend: ready feedback=")?
        .split(" console=")
        .next()?
        .split_once(" learning=")?;
    Some((feedback.parse().ok()?, learning.parse().ok()?))
}
