//! The whole service over real sockets, with a scripted learning-svc.

/// One test per scenario and database.
macro_rules! on_both {
    ($($scenario:ident)*) => {
        on_both!(on_sqlite, Backend::Sqlite, $($scenario)*);
        on_both!(on_postgres, Backend::Postgres, $($scenario)*);
    };
    ($module:ident, $backend:expr, $($scenario:ident)*) => {
        mod $module {
            use super::*;
            $(#[tokio::test]
            async fn $scenario() {
                if let Some(database) = Database::new($backend).await {
                    super::$scenario(database).await;
                }
            })*
        }
    };
}

mod credentials;
mod dead_letters;
mod installation;
mod learning;
mod present;
mod queries;
mod rating_http;
mod ratings;
mod search_ratings;
mod service;

use std::{collections::HashMap, future::Future, time::Duration};

use emend_base::{Environment, Lifecycle, lifecycle::Shutdown, telemetry::Metrics};
use emend_proto::{
    common::v1::{self as common, correction},
    feedback::v1::{
        self as pb, feedback_service_client::FeedbackServiceClient, query_service_client::QueryServiceClient,
    },
};
use emend_store::{
    DatabaseUrl,
    testing::{TestDatabase, TestPostgres},
};
use feedback_store::testing::Backend;
use tempfile::TempDir;
use tokio::{net::TcpListener, time::timeout};
use tonic::transport::Channel;

use crate::{Config, Handle, outbox::config::RelayConfig, start};

pub(super) const SOON: Duration = Duration::from_secs(20);

/// Waits for a condition, for a bounded time.
pub(super) async fn eventually<F: Future<Output = bool>>(expectation: &str, condition: impl Fn() -> F) {
    let met = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(
        timeout(SOON, met).await.is_ok(),
        "not within {SOON:?}: {expectation}"
    );
}

/// A database for services, kept across their restarts.
pub(super) enum Database {
    Sqlite(TempDir),
    Postgres(TestDatabase),
}

impl Database {
    pub(super) async fn new(backend: Backend) -> Option<Self> {
        match backend {
            Backend::Sqlite => Some(Self::Sqlite(tempfile::tempdir().unwrap())),
            Backend::Postgres => TestPostgres::create().await.map(Self::Postgres),
            // Whole services run on real databases only.
            Backend::Memory => None,
        }
    }

    pub(super) fn url(&self) -> DatabaseUrl {
        match self {
            Self::Sqlite(directory) => DatabaseUrl::sqlite(directory.path().join("feedback.db")),
            Self::Postgres(database) => database.database_url(),
        }
    }
}

/// A running feedback-svc and a client of it.
pub(super) struct Service {
    pub(super) handle: Handle,
    pub(super) client: FeedbackServiceClient<Channel>,
    pub(super) queries: QueryServiceClient<Channel>,
}

impl Service {
    pub(super) async fn start(database: &Database, learning: &str) -> Self {
        Self::start_with(database, learning, Metrics::new()).await
    }

    /// Starts one that registers its metrics there.
    pub(super) async fn start_with(database: &Database, learning: &str, metrics: Metrics) -> Self {
        Self::start_as(Config {
            metrics,
            ..Config::new(database.url(), learning.parse().unwrap())
        })
        .await
    }

    /// Starts one that is configured so, but for what makes tests quick.
    pub(super) async fn start_as(config: Config) -> Self {
        let config = Config {
            init: true,
            postgres_connections: 4,
            relay: RelayConfig {
                poll: Duration::from_millis(20),
                answer_timeout: Duration::from_secs(2),
                lease: Duration::from_secs(5),
                ..RelayConfig::default()
            },
            ..config
        };
        let environment = Environment::system(&Lifecycle::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let handle = start(config, listener, environment).await.unwrap();
        handle.ready().await;
        let channel = Channel::from_shared(format!("http://{}", handle.address())).unwrap();
        let channel = channel.connect_lazy();
        Self {
            queries: QueryServiceClient::new(channel.clone()),
            client: FeedbackServiceClient::new(channel),
            handle,
        }
    }

    pub(super) async fn submit(
        &self,
        request: pb::SubmitFeedbackRequest,
    ) -> Result<pb::Feedback, tonic::Status> {
        let response = self.client.clone().submit_feedback(request).await?;
        Ok(response.into_inner().feedback.expect("feedback is answered"))
    }

    pub(super) async fn get(&self, feedback_id: &str) -> pb::Feedback {
        let request = pb::GetFeedbackRequest {
            namespace: "fund-admin".into(),
            feedback_id: feedback_id.into(),
        };
        let response = self.client.clone().get_feedback(request).await.unwrap();
        response.into_inner().feedback.expect("feedback is answered")
    }

    pub(super) async fn list(&self) -> Vec<pb::Feedback> {
        let request = pb::ListFeedbackRequest {
            namespace: "fund-admin".into(),
            page_size: 500,
            ..pb::ListFeedbackRequest::default()
        };
        self.client
            .clone()
            .list_feedback(request)
            .await
            .unwrap()
            .into_inner()
            .feedback
    }

    pub(super) async fn delivered(&self, feedback_id: &str) {
        eventually("the feedback is delivered", || async {
            self.get(feedback_id).await.delivery_state() == pb::DeliveryState::Delivered
        })
        .await;
    }

    pub(super) async fn stop(self) {
        let Self {
            handle,
            client,
            queries,
        } = self;
        drop((client, queries));
        assert_eq!(handle.shutdown(SOON).await, Shutdown::Graceful);
    }
}

/// A valid submission.
pub(super) fn request(phrase: &str) -> pb::SubmitFeedbackRequest {
    pb::SubmitFeedbackRequest {
        namespace: "fund-admin".into(),
        reporter: Some(common::Reporter {
            id: "jane".into(),
            ..common::Reporter::default()
        }),
        reason: "ask jane.doe@example.org".into(),
        context: HashMap::from([("topic".into(), "custody".into())]),
        correction: Some(common::Correction {
            correction: Some(correction::Correction::Verb(common::VerbCorrection {
                original_input: phrase.into(),
                system_choice: "create_csa".into(),
                correct_choice: "create_isda".into(),
            })),
        }),
        ..pb::SubmitFeedbackRequest::default()
    }
}

pub(super) fn evaluated(request: pb::SubmitFeedbackRequest) -> pb::SubmitFeedbackRequest {
    pb::SubmitFeedbackRequest {
        wait: pb::Wait::Evaluated.into(),
        ..request
    }
}

pub(super) fn with_id(request_id: &str, request: pb::SubmitFeedbackRequest) -> pb::SubmitFeedbackRequest {
    pb::SubmitFeedbackRequest {
        request_id: request_id.into(),
        ..request
    }
}
