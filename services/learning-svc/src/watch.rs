//! Background checks on the database: whether it answers, which is one of the readiness checks, and samples for
//! metrics.

use std::{sync::Arc, time::Duration};

use emend_base::telemetry::sampler::{INTERVAL, sample_until};
use emend_serve::health::Readiness;
use learning_store::{Database, Store};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{metrics::LearningMetrics, stream::Settings};

/// The readiness check that the database answers.
pub(crate) const DATABASE: &str = "database";
/// The readiness check that re-evaluation after policy changes is running.
pub(crate) const REEVALUATION: &str = "reevaluation";

/// How often the database is pinged.
const PERIOD: Duration = Duration::from_secs(2);
/// How long a ping may take.
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// Pings the database until `soft` is cancelled.
pub(crate) async fn watch_database(store: Arc<dyn Store>, readiness: Readiness, soft: CancellationToken) {
    loop {
        let answers = matches!(timeout(PING_TIMEOUT, store.ping()).await, Ok(Ok(())));
        readiness.set(DATABASE, answers);
        tokio::select! {
            () = soft.cancelled() => return,
            () = sleep(PERIOD) => {}
        }
    }
}

/// Samples the database for metrics until `soft` is cancelled.
pub(crate) async fn measure(
    metrics: LearningMetrics,
    database: Arc<dyn Database>,
    settings: Settings,
    soft: CancellationToken,
) {
    sample_until(soft, INTERVAL, || async {
        if let Err(error) = metrics.sample(&*database, &settings).await {
            // Readiness already reports an unavailable database. The other samples stay visible.
            metrics.nodes.forget_nodes();
            tracing::debug!(%error, "can't sample metrics from the database");
        }
    })
    .await;
}
