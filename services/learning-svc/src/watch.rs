//! What is looked at in the database all the time: whether it answers, which is one of the checks on which readiness hangs,
//! and what is shown of it in metrics.

use std::{sync::Arc, time::Duration};

use emend_runtime::{
    health::Readiness,
    telemetry::sampler::{INTERVAL, sample_until},
};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{metrics::LearningMetrics, store::Store, stream::Settings};

/// The check that the database answers.
pub(crate) const DATABASE: &str = "database";
/// The check that changed policies are worked on.
pub(crate) const REEVALUATION: &str = "reevaluation";

/// How often it is asked.
const PERIOD: Duration = Duration::from_secs(2);
/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Asks the database until `soft` is cancelled.
pub(crate) async fn watch_database(store: Arc<dyn Store>, readiness: Readiness, soft: CancellationToken) {
    loop {
        let answers = matches!(timeout(PATIENCE, store.ping()).await, Ok(Ok(())));
        readiness.set(DATABASE, answers);
        tokio::select! {
            () = soft.cancelled() => return,
            () = sleep(PERIOD) => {}
        }
    }
}

/// Shows what is in the database, until `soft` is cancelled.
pub(crate) async fn measure(
    metrics: LearningMetrics,
    store: Arc<dyn Store>,
    settings: Settings,
    soft: CancellationToken,
) {
    sample_until(soft, INTERVAL, || async {
        if let Err(error) = metrics.sample(&*store, &settings).await {
            // Readiness tells that the database is away; what was seen last is still shown.
            tracing::debug!(%error, "can't measure what is learned");
        }
    })
    .await;
}
