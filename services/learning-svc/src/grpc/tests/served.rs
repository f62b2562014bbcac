//! A service for one test, and clients for it.

use std::time::Duration;

use emend_base::{Environment, Lifecycle};
use emend_proto::learning::v1::{
    candidate_service_client::CandidateServiceClient, ingest_service_client::IngestServiceClient,
    policy_service_client::PolicyServiceClient, resource_service_client::ResourceServiceClient,
};
use emend_store::{
    DatabaseUrl,
    testing::{TestDatabase, TestPostgres},
};
use tokio::{net::TcpListener, time::timeout};
use tonic::transport::Channel;

use crate::{Config, Handle, start};

/// Longer than anything here takes.
const SOON: Duration = Duration::from_secs(30);

/// A database for one test.
pub(super) enum Database {
    Sqlite(tempfile::TempDir),
    Postgres(TestDatabase),
}

impl Database {
    pub(super) fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    pub(super) async fn postgres() -> Option<Self> {
        TestPostgres::create().await.map(Self::Postgres)
    }

    pub(super) fn url(&self) -> DatabaseUrl {
        match self {
            Self::Sqlite(directory) => DatabaseUrl::sqlite(directory.path().join("learning.db")),
            Self::Postgres(database) => database.database_url(),
        }
    }
}

/// A running service.
pub(super) struct Served {
    pub(super) handle: Handle,
    pub(super) channel: Channel,
    lifecycle: Lifecycle,
}

impl Served {
    pub(super) async fn on(database: &Database) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let lifecycle = Lifecycle::new();
        let environment = Environment::system(&lifecycle);
        let mut config = Config::new(database.url());
        config.init = true;
        let handle = start(config, listener, environment).await.unwrap();
        timeout(SOON, handle.ready()).await.expect("ready in time");
        let channel = Channel::from_shared(format!("http://{}", handle.address()))
            .unwrap()
            .connect()
            .await
            .unwrap();
        Self {
            handle,
            channel,
            lifecycle,
        }
    }

    pub(super) fn candidates(&self) -> CandidateServiceClient<Channel> {
        CandidateServiceClient::new(self.channel.clone())
    }

    pub(super) fn resources(&self) -> ResourceServiceClient<Channel> {
        ResourceServiceClient::new(self.channel.clone())
    }

    pub(super) fn policies(&self) -> PolicyServiceClient<Channel> {
        PolicyServiceClient::new(self.channel.clone())
    }

    pub(super) fn ingest(&self) -> IngestServiceClient<Channel> {
        IngestServiceClient::new(self.channel.clone())
    }

    pub(super) async fn stop(self) {
        self.handle.shutdown(SOON).await;
        assert_eq!(self.lifecycle.failure(), None);
    }
}
