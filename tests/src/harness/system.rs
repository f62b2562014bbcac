//! A whole Emend: replicas of both services on one database, each behind an address that survives restarts.

use std::net::SocketAddr;

use emend_audit::Databases;
use emend_store::testing::{TestDatabase, TestPostgres};
use tempfile::TempDir;

use super::{
    clients::{Feedback, Learning},
    gateway::Gateway,
    start::{self, Running},
    stored::Stored,
};

pub use super::start::Settings;

/// Where a system stores its data.
#[derive(Debug)]
pub enum Database {
    /// Two files in a directory of their own.
    Sqlite(TempDir),
    /// A database of its own.
    Postgres(PostgresDatabase),
}

/// A PostgreSQL database and how to reach it.
#[derive(Debug)]
pub struct PostgresDatabase {
    database: TestDatabase,
    server: String,
    address: SocketAddr,
    name: String,
}

impl Database {
    /// A new directory.
    ///
    /// # Panics
    /// If none can be made.
    pub fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().expect("a directory"))
    }

    /// A new database; `None` without a server, after one line of output that says so.
    ///
    /// # Panics
    /// If the server can't be used.
    pub async fn postgres() -> Option<Self> {
        let database = TestPostgres::create().await?;
        Some(Self::Postgres(PostgresDatabase::new(database).await))
    }

    /// A new, empty one of the same kind.
    ///
    /// # Panics
    /// If none can be made.
    #[must_use]
    pub async fn another(&self) -> Self {
        match self {
            Self::Sqlite(_) => Self::sqlite(),
            Self::Postgres(_) => Self::postgres().await.expect("there is a server"),
        }
    }

    /// A copy of it. No program may be using it.
    ///
    /// # Panics
    /// If it can't be copied.
    #[must_use]
    pub async fn copy(&self) -> Self {
        match self {
            Self::Sqlite(directory) => {
                let copy = tempfile::tempdir().expect("a directory");
                for service in [Service::Feedback, Service::Learning] {
                    let file = directory.path().join(service.file());
                    if file.is_file() {
                        std::fs::copy(file, copy.path().join(service.file())).expect("a file can be copied");
                    }
                }
                Self::Sqlite(copy)
            }
            Self::Postgres(database) => {
                Self::Postgres(PostgresDatabase::new(database.database.copy().await).await)
            }
        }
    }

    /// A gateway to the database for one replica alone; `None` on SQLite, which is reached through the file system
    /// only.
    pub async fn road(&self) -> Option<Gateway> {
        let Self::Postgres(database) = self else {
            return None;
        };
        let road = Gateway::open().await;
        road.lead_to(database.address);
        Some(road)
    }

    /// Reopens a closed gateway.
    pub fn reopen(&self, road: &Gateway) {
        if let Self::Postgres(database) = self {
            road.lead_to(database.address);
        }
    }

    /// One service's database URL, as `--database-url` takes it, through `road` if given.
    pub fn url(&self, service: Service, road: Option<&Gateway>) -> String {
        match self {
            Self::Sqlite(directory) => {
                let file = directory.path().join(service.file());
                format!("sqlite:{}", file.display())
            }
            Self::Postgres(database) => database.url(road.map_or(database.address, Gateway::address)),
        }
    }

    /// Both services' databases, for an audit.
    ///
    /// # Panics
    /// Never: these URLs are valid.
    pub fn databases(&self) -> Databases {
        let url = |service| self.url(service, None).parse().expect("a database");
        Databases {
            feedback: url(Service::Feedback),
            learning: url(Service::Learning),
        }
    }

    /// What learning-svc stored.
    pub fn stored(&self) -> Stored {
        match self {
            Self::Sqlite(directory) => Stored::Sqlite(directory.path().join(Service::Learning.file())),
            Self::Postgres(database) => Stored::Postgres(database.url(database.address)),
        }
    }
}

impl PostgresDatabase {
    async fn new(database: TestDatabase) -> Self {
        let server = std::env::var("EMEND_TEST_POSTGRES_URL").expect("set, or there were no database");
        let shown = database.url().to_string();
        let (before, name) = shown.rsplit_once('/').expect("a test's database has a name");
        let (_, address) = before.rsplit_once('@').expect("a server has a user");
        let address = tokio::net::lookup_host(address)
            .await
            .ok()
            .and_then(|mut addresses| addresses.next())
            .expect("the server has an address");
        Self {
            name: name.to_owned(),
            server,
            address,
            database,
        }
    }

    /// The server's URL, for creating and dropping databases.
    pub fn server_url(&self) -> String {
        self.server.clone()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The URL of another database on this server.
    pub fn url_of(&self, name: &str) -> String {
        self.url_to(self.address, name)
    }

    /// The URL of this database, with another address for the server.
    fn url(&self, address: SocketAddr) -> String {
        self.url_to(address, &self.name)
    }

    /// The URL of this database with another password for its user.
    #[must_use]
    pub fn url_with_password(&self, password: &str) -> String {
        let url = self.url(self.address);
        let (before, after) = url.rsplit_once('@').expect("a server has a user");
        let (scheme, credentials) = before.split_once("://").expect("a URL has a scheme");
        let user = credentials.split(':').next().unwrap_or_default();
        format!("{scheme}://{user}:{password}@{after}")
    }

    fn url_to(&self, address: SocketAddr, name: &str) -> String {
        let (scheme, rest) = self.server.split_once("://").expect("a URL has a scheme");
        let (authority, tail) = rest.split_once('/').unwrap_or((rest, ""));
        let credentials = authority
            .rsplit_once('@')
            .map_or(String::new(), |(credentials, _)| format!("{credentials}@"));
        let parameters = tail
            .split_once('?')
            .map_or(String::new(), |(_, parameters)| format!("?{parameters}"));
        format!("{scheme}://{credentials}{address}/{name}{parameters}")
    }
}

/// One of the two services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// feedback-svc.
    Feedback,
    /// learning-svc.
    Learning,
}

impl Service {
    /// Its file in a data directory.
    pub fn file(self) -> &'static str {
        match self {
            Self::Feedback => "feedback.db",
            Self::Learning => "learning.db",
        }
    }
}

/// One process's worth of a service.
#[derive(Debug)]
pub struct Replica {
    /// Where clients reach it.
    pub front: Gateway,
    /// Through which it reaches its database, on PostgreSQL.
    pub road: Option<Gateway>,
    /// Through which the relay of a feedback-svc reaches its learning-svc.
    pub onward: Gateway,
    running: Option<Running>,
}

impl Replica {
    async fn new(database: &Database) -> Self {
        Self {
            front: Gateway::open().await,
            road: database.road().await,
            onward: Gateway::open().await,
            running: None,
        }
    }

    /// Its own listen address, bypassing its gateway.
    ///
    /// # Panics
    /// If it is not running.
    pub fn address(&self) -> SocketAddr {
        self.running.as_ref().expect("it runs").address()
    }

    /// Where it serves raters in browsers, at the first address.
    ///
    /// # Panics
    /// If it does not.
    pub fn rating_address(&self) -> SocketAddr {
        *self
            .rating_addresses()
            .first()
            .expect("it serves raters in browsers")
    }

    /// Where it serves raters in browsers.
    ///
    /// # Panics
    /// If it is not running.
    pub fn rating_addresses(&self) -> &[SocketAddr] {
        self.running.as_ref().expect("it runs").rating_addresses()
    }

    async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
        // Only after the service has stopped: how its connections end is up to the service.
        self.front.close();
    }
}

/// Replicas of both services on one database.
#[derive(Debug)]
pub struct System {
    /// Replicas of feedback-svc. Replica i's relay delivers to learning-svc i, modulo the number of those.
    pub feedback: Vec<Replica>,
    /// Replicas of learning-svc.
    pub learning: Vec<Replica>,
    /// Settings for services started from now on.
    pub settings: Settings,
    /// Last, because it must be dropped after the services that use it.
    pub database: Database,
}

impl System {
    /// One replica of each on SQLite.
    pub async fn sqlite() -> Self {
        Self::start(Database::sqlite(), 1, 1, Settings::default()).await
    }

    /// The given numbers of replicas on one PostgreSQL database; `None` without a server, after one line of output that
    /// says so.
    pub async fn postgres(feedback: usize, learning: usize) -> Option<Self> {
        Some(
            Self::start(
                Database::postgres().await?,
                feedback,
                learning,
                Settings::default(),
            )
            .await,
        )
    }

    /// The given numbers of replicas on this database; on SQLite, one of each.
    pub async fn start(database: Database, feedback: usize, learning: usize, settings: Settings) -> Self {
        let mut system = Self {
            feedback: Vec::new(),
            learning: Vec::new(),
            settings,
            database,
        };
        for index in 0..learning {
            system.learning.push(Replica::new(&system.database).await);
            system.start_learning_at(index).await;
        }
        for index in 0..feedback {
            system.feedback.push(Replica::new(&system.database).await);
            system.start_feedback_at(index).await;
        }
        system
    }

    /// A client of the first feedback-svc.
    pub fn feedback(&self) -> Feedback {
        self.feedback_at(0)
    }

    /// A client of one feedback-svc.
    pub fn feedback_at(&self, index: usize) -> Feedback {
        Feedback::at(self.feedback[index].front.address())
    }

    /// Clients of the first learning-svc.
    pub fn learning(&self) -> Learning {
        self.learning_at(0)
    }

    /// Clients of one learning-svc.
    pub fn learning_at(&self, index: usize) -> Learning {
        Learning::at(self.learning[index].front.address())
    }

    /// What learning-svc stored.
    pub fn stored(&self) -> Stored {
        self.database.stored()
    }

    /// Starts the first feedback-svc again after it was stopped.
    pub async fn start_feedback(&mut self) {
        self.start_feedback_at(0).await;
    }

    /// Starts the first learning-svc again after it was stopped.
    pub async fn start_learning(&mut self) {
        self.start_learning_at(0).await;
    }

    /// Stops the first feedback-svc gracefully.
    pub async fn stop_feedback(&mut self) {
        self.feedback[0].stop().await;
    }

    /// Stops the first learning-svc gracefully.
    pub async fn stop_learning(&mut self) {
        self.stop_learning_at(0).await;
    }

    /// Stops one learning-svc gracefully.
    pub async fn stop_learning_at(&mut self, index: usize) {
        self.learning[index].stop().await;
    }

    async fn start_feedback_at(&mut self, index: usize) {
        let learning = self.learning[index % self.learning.len()].front.address();
        let replica = &mut self.feedback[index];
        replica.onward.lead_to(learning);
        let url = self.database.url(Service::Feedback, replica.road.as_ref());
        let running = start::feedback(&url, replica.onward.address(), &self.settings).await;
        replica.front.lead_to(running.address());
        replica.running = Some(running);
    }

    /// Starts one learning-svc again after it was stopped.
    pub async fn start_learning_at(&mut self, index: usize) {
        let replica = &mut self.learning[index];
        let url = self.database.url(Service::Learning, replica.road.as_ref());
        let running = start::learning(&url, &self.settings).await;
        replica.front.lead_to(running.address());
        replica.running = Some(running);
    }

    /// Stops everything gracefully.
    pub async fn stop(self) {
        self.into_database().await;
    }

    /// Stops everything gracefully and keeps the stored data.
    pub async fn into_database(mut self) -> Database {
        for replica in self.feedback.iter_mut().chain(&mut self.learning) {
            replica.stop().await;
        }
        self.database
    }
}
