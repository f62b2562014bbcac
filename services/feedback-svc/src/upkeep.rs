//! Background work besides the relay: pruning old request ids, checking readiness, and sampling the outbox.
//!
//! Each step starts from the current state and may run at any time.

use std::{sync::Arc, time::Duration};

use emend_base::{
    Entropy, Lifecycle,
    telemetry::sampler::{INTERVAL, sample_until},
};
use emend_proto::feedback::v1::feedback_service_server::SERVICE_NAME;
use emend_serve::health::Readiness;
use emend_store::StoreError;
use feedback_store::ports::{Connected, CorrectionStore, OutboxStore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    config::Config,
    corrections::group_commit::Storing,
    fail_points,
    metrics::{FeedbackMetrics, SERVICE},
    outbox::worker::Relay,
};

/// Readiness condition: the database answers.
pub(crate) const DATABASE: &str = "database";
/// Readiness condition: the relay's workers make progress.
pub(crate) const RELAY: &str = "relay";

/// How many request ids are deleted in one transaction.
const PRUNE_BATCH: u32 = 1_000;
/// How often old request ids are pruned, give or take a fifth.
const PRUNE_INTERVAL: Duration = Duration::from_mins(10);
/// How often readiness is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How long the database may take to answer a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// Exports the state of this replica, read whenever metrics are asked for.
pub(crate) fn watch(
    config: &Config,
    store: Arc<dyn Connected>,
    readiness: &Readiness,
    lifecycle: &Lifecycle,
) {
    let metrics = &config.metrics;
    emend_store::metrics::watch_connections(metrics, SERVICE, move || store.connections());
    emend_serve::metrics::watch_readiness(metrics, SERVICE, readiness.clone(), SERVICE_NAME);
    let authenticator = config.authenticator.as_ref();
    emend_serve::metrics::watch_files(metrics, SERVICE, authenticator, config.tls.as_ref());
    if let Some(file) = config.learning.remote().certificate() {
        metrics.watch_client_certificate(SERVICE, file, lifecycle);
    }
}

/// Deletes request ids that are older than the retention.
#[derive(Debug)]
pub(crate) struct Pruner {
    pub(crate) store: Arc<dyn CorrectionStore>,
    pub(crate) retention: Duration,
    pub(crate) entropy: Entropy,
}

impl Pruner {
    /// Deletes all old request ids, a batch at a time; returns how many.
    pub(crate) async fn run_once(&self) -> Result<u64, StoreError> {
        let mut pruned = 0;
        loop {
            let batch = self.store.prune_request_ids(self.retention, PRUNE_BATCH).await?;
            fail_points::REQUEST_IDS_FORGOTTEN.pass();
            pruned += batch;
            if batch < u64::from(PRUNE_BATCH) {
                return Ok(pruned);
            }
        }
    }

    pub(crate) async fn run(self, soft: CancellationToken) {
        let rounds = async {
            loop {
                match self.run_once().await {
                    Ok(0) => {}
                    Ok(pruned) => tracing::info!(pruned, "forgot old request ids"),
                    Err(error) => tracing::warn!(%error, "can't forget old request ids"),
                }
                sleep(PRUNE_INTERVAL.mul_f64(self.entropy.jitter(0.2))).await;
            }
        };
        tokio::select! {
            () = soft.cancelled() => {}
            () = rounds => {}
        }
    }
}

/// Checks the conditions of readiness and reports them.
#[derive(Debug)]
pub(crate) struct ReadinessCheck {
    pub(crate) store: Arc<dyn Connected>,
    pub(crate) storing: Storing,
    pub(crate) relay: Arc<Relay>,
    pub(crate) readiness: Readiness,
}

impl ReadinessCheck {
    pub(crate) async fn run_once(&self) {
        let database = timeout(PING_TIMEOUT, self.store.ping()).await;
        // A new connection may reach a server that answers, while the committer's leads to one that never will.
        let answers = matches!(database, Ok(Ok(()))) && !self.storing.is_stuck();
        self.readiness.set(DATABASE, answers);
        self.readiness.set(RELAY, self.relay.is_alive());
    }

    pub(crate) async fn run(self, soft: CancellationToken) {
        let rounds = async {
            loop {
                self.run_once().await;
                sleep(CHECK_INTERVAL).await;
            }
        };
        tokio::select! {
            () = soft.cancelled() => {}
            () = rounds => {}
        }
    }
}

/// Samples the backlog of undelivered events.
#[derive(Debug)]
pub(crate) struct Sampler {
    pub(crate) store: Arc<dyn OutboxStore>,
    pub(crate) metrics: FeedbackMetrics,
}

impl Sampler {
    pub(crate) async fn run_once(&self) -> Result<(), StoreError> {
        self.metrics.sample(&self.store.backlog().await?);
        Ok(())
    }

    pub(crate) async fn run(self, soft: CancellationToken) {
        sample_until(soft, INTERVAL, || async {
            if let Err(error) = self.run_once().await {
                // Readiness reports that the database is away; the gauges keep their last values.
                tracing::debug!(%error, "can't measure the outbox");
            }
        })
        .await;
    }
}
