//! Computes what follows from changed evidence: in batches, resumable, on any number of replicas. It keeps no state: what is to be
//! computed is marked in the graph.

use std::time::Duration;

use emend_base::{Error, Lifecycle};
use tokio::time::timeout;

use crate::evidence::Evidence;

/// How often it looks without being woken: another replica may have been.
const PERIOD: Duration = Duration::from_secs(2);

impl Evidence {
    /// Gives effect to corrections whose targets arrived late, and brings levels, statuses and verified rules up to date. Returns
    /// whether there was anything to do; what it did may have left more.
    pub async fn follow_once(&self) -> Result<bool, Error> {
        let mut worked = false;
        let mut arrived = None;
        loop {
            arrived = self.arrive_once(arrived).await?;
            if arrived.is_none() {
                break;
            }
        }
        worked |= self.refresh_levels().await?;
        while self.mark_domains_once().await?.is_some() {
            worked = true;
        }
        while self.verify_claims_once().await? > 0 {
            worked = true;
            // After a large import many claims wait; a change of trust does not wait for them.
            self.refresh_levels().await?;
        }
        let mut after = 0;
        loop {
            let step = self.verify_domains_once(after).await?;
            worked |= step.settled > 0;
            match step.last {
                Some(last) => after = last,
                None => return Ok(worked),
            }
        }
    }

    /// Brings all levels up to date. Returns whether there was anything to do.
    async fn refresh_levels(&self) -> Result<bool, Error> {
        let mut worked = false;
        while self.refresh_levels_once().await?.is_some() {
            worked = true;
        }
        Ok(worked)
    }

    /// Works until the lifecycle ends.
    pub(crate) async fn follow_until_stopped(self, lifecycle: Lifecycle) {
        loop {
            let worked = tokio::select! {
                () = lifecycle.soft().cancelled() => return,
                worked = self.follow_once() => worked,
            };
            match worked {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "can't bring the evidence up to date; trying again"),
            }
            tokio::select! {
                () = lifecycle.soft().cancelled() => return,
                _ = timeout(PERIOD, self.changed()) => {}
            }
        }
    }
}
