//! Forgets queries that are older or more than the settings of their namespaces allow, and prunes what is counted of them.

use std::{sync::Arc, time::Duration};

use emend_base::{Entropy, Error};
use feedback_store::{
    ports::QueryStore,
    records::{
        erased::KNOWN,
        queries::{KeptCounts, Pruned},
    },
};
use tokio::{sync::Notify, time::sleep};
use tokio_util::sync::CancellationToken;

/// Queries forgotten in one transaction.
const BATCH: u32 = 500;
/// Erased queries and sessions forgotten in one transaction.
const ERASED_BATCH: u32 = 10_000;
/// How often it looks, give or take a fifth.
const INTERVAL: Duration = Duration::from_secs(30);

/// How often it looks whether counts are to be pruned, in rounds.
const PRUNED_EVERY: u32 = 20;

/// The worker.
#[derive(Debug)]
pub(crate) struct Forgetter {
    pub(crate) store: Arc<dyn QueryStore>,
    /// Wakes the worker that cleans the database's files.
    pub(crate) wake: Arc<Notify>,
    pub(crate) entropy: Entropy,
}

impl Forgetter {
    /// Forgets what can be forgotten now; returns how many queries and interactions.
    pub(crate) async fn run_once(&self) -> Result<u64, Error> {
        let mut forgotten = 0;
        loop {
            let batch = self.store.forget(BATCH).await?;
            if batch == 0 {
                break;
            }
            forgotten += batch;
        }
        if forgotten > 0 {
            // What was said is to leave the database's files, too.
            self.wake.notify_one();
        }
        Ok(forgotten)
    }

    /// Prunes counts, and what is known of erased queries.
    pub(crate) async fn prune(&self) -> Result<(), Error> {
        let Pruned { words, rows } = self.store.prune_counts(KeptCounts::SET).await?;
        if words + rows > 0 {
            tracing::info!(words, rows, "pruned the counts of queries");
        }
        while self.store.forget_erased(KNOWN, ERASED_BATCH).await? > 0 {}
        Ok(())
    }

    pub(crate) async fn run(self, soft: CancellationToken) {
        let rounds = async {
            let mut round: u32 = 0;
            loop {
                if round.is_multiple_of(PRUNED_EVERY)
                    && let Err(error) = self.prune().await
                {
                    tracing::warn!(%error, "can't prune what is known of old queries");
                }
                round = round.wrapping_add(1);
                match self.run_once().await {
                    Ok(0) => {}
                    Ok(forgotten) => tracing::info!(forgotten, "forgot old queries"),
                    Err(error) => tracing::warn!(%error, "can't forget old queries"),
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
