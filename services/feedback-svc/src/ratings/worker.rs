//! Gives up on the queries of ratings that were not recorded in time.

use std::{sync::Arc, time::Duration};

use emend_base::Entropy;
use emend_store::StoreError;
use feedback_store::ports::RatingStore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{metrics::RatingMetrics, ratings::LONGEST_WAIT};

/// Ratings looked at in one transaction.
const BATCH: u32 = 200;
/// How often it looks, give or take a fifth.
const INTERVAL: Duration = Duration::from_secs(2);

/// The worker.
#[derive(Debug)]
pub(crate) struct ContextWorker {
    pub(crate) store: Arc<dyn RatingStore>,
    pub(crate) metrics: RatingMetrics,
    pub(crate) entropy: Entropy,
}

impl ContextWorker {
    /// Looks once more for the queries of ratings that have waited long enough; returns of how many there was none.
    pub(crate) async fn run_once(&self) -> Result<u64, StoreError> {
        let mut missing = 0;
        loop {
            let settled = self.store.settle_contexts(LONGEST_WAIT, BATCH).await?;
            let count = settled.missing.len();
            missing += count as u64;
            self.metrics.missing(count as u64);
            self.metrics
                .settled(settled.complete.iter().chain(&settled.missing));
            if settled.complete.len() + count < BATCH as usize {
                return Ok(missing);
            }
        }
    }

    pub(crate) async fn run(self, soft: CancellationToken) {
        let rounds = async {
            loop {
                match self.run_once().await {
                    Ok(0) => {}
                    Ok(missing) => tracing::debug!(missing, "queries of ratings were not recorded"),
                    Err(error) => tracing::warn!(%error, "can't look for the queries of ratings"),
                }
                sleep(INTERVAL.mul_f64(self.entropy.jitter(0.2))).await;
            }
        };
        tokio::select! {
            () = soft.cancelled() => {}
            () = rounds => {}
        }
    }
}
