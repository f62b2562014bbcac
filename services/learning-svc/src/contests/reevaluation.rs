//! Re-evaluates pending contests after a policy change: in batches, resumable, on any number of replicas.
//!
//! It keeps no state: the work is the pending contests last evaluated by an older policy version than the one in force,
//! and a contest that is done drops out. It passes over them in the order in which they were created, so that one that can't be evaluated holds
//! up no other, and retries it on the next pass. A decision that began under the old policy and commits late shows up
//! again, which is why it looks again periodically.

use std::time::Duration;

use emend_base::Lifecycle;
use emend_core::{Event, ResourceKey, Revision};
use emend_store::StoreError;
use learning_store::contests::Place;
use tokio::time::timeout;

use crate::{
    contests::Contests,
    decisions::{numbering::RevisionChoice, open::Attribution},
    fail_points,
    failure::{Failure, refused, subject},
};

/// Contests per transaction. All their counted ballots are in memory at once: per contest, at most the policy's
/// `max_counted_feedback`.
const BATCH: u32 = 128;
/// How often it looks without being woken.
const PERIOD: Duration = Duration::from_secs(5);

/// The result of one step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// The last contest tried; none at the end of a pass.
    pub last: Option<Place>,
    /// Contests evaluated.
    pub evaluated: usize,
    /// Contests that failed and are left for the next pass.
    pub failed: usize,
}

impl Contests {
    /// Re-evaluates the next batch of a pass, after `after`.
    pub async fn reevaluate_once(&self, after: Option<Place>) -> Result<Step, StoreError> {
        let found = self.store.contests_to_reevaluate(after, BATCH).await?;
        let mut step = Step {
            last: found.last().map(|(place, _)| *place),
            ..Step::default()
        };
        let mut keys = Vec::with_capacity(found.len());
        for (_, key) in found {
            match key {
                Ok(key) => keys.push(key),
                Err(row) => {
                    tracing::error!(contest = %row.id, error = %row, "can't re-evaluate a contest");
                    step.failed += 1;
                }
            }
        }
        if keys.is_empty() {
            return Ok(step);
        }
        fail_points::REEVALUATION_BEGUN.pass();
        match self.reevaluate(&keys).await {
            Ok(()) => {
                step.evaluated = keys.len();
                Ok(step)
            }
            Err(Failure::Store(error @ StoreError::Unavailable(_))) => Err(error),
            // One by one, so that those that can be evaluated are.
            Err(_) => {
                for key in &keys {
                    match self.reevaluate(std::slice::from_ref(key)).await {
                        Ok(()) => step.evaluated += 1,
                        Err(Failure::Store(error @ StoreError::Unavailable(_))) => return Err(error),
                        Err(error) => {
                            let contest = key.contest_id();
                            tracing::error!(%contest, %error, "can't re-evaluate a contest");
                            step.failed += 1;
                        }
                    }
                }
                Ok(step)
            }
        }
    }

    async fn reevaluate(&self, keys: &[ResourceKey]) -> Result<(), Failure> {
        let last = self.decisions.retry(|| self.try_reevaluate(keys)).await?;
        fail_points::REEVALUATION_COMMITTED.pass();
        if last > Revision::default() {
            self.decisions.wake();
        }
        Ok(())
    }

    async fn try_reevaluate(&self, keys: &[ResourceKey]) -> Result<Revision, Failure> {
        let attribution = Attribution::system();
        let mut tx = self.store.begin().await?;
        let mut unit = self.decisions.open(&mut *tx, keys.iter().cloned()).await?;
        for key in keys {
            let contest = key.contest_id();
            let version = unit.policy(key).version;
            // Another replica or an event may have evaluated it already.
            if unit
                .found(contest)
                .is_some_and(|found| found.row.pending && found.row.policy_version < version)
            {
                unit.decide(contest, &Event::PolicyChanged, &attribution, RevisionChoice::Own)
                    .map_err(|refusal| refused(&refusal, &subject(key)))?;
            }
        }
        let written = self.decisions.commit(tx, &mut unit).await?;
        Ok(written.revisions.last())
    }

    /// Works until the lifecycle ends; `alive` is told whether the last step succeeded.
    pub async fn reevaluate_until_stopped(self, lifecycle: Lifecycle, alive: impl Fn(bool) + Send + Sync) {
        let mut after = None;
        loop {
            let step = tokio::select! {
                () = lifecycle.soft().cancelled() => return,
                step = self.reevaluate_once(after) => step,
            };
            alive(step.is_ok());
            match step {
                Ok(step) => {
                    after = step.last;
                    if after.is_some() {
                        continue;
                    }
                }
                Err(error) => tracing::warn!(%error, "can't re-evaluate contests; trying again"),
            }
            tokio::select! {
                () = lifecycle.soft().cancelled() => return,
                _ = timeout(PERIOD, self.policy_changed.notified()) => {}
            }
        }
    }
}
