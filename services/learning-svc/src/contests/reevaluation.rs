//! Re-evaluates pending contests after a policy change: in batches, resumable, on any number of replicas.
//!
//! It keeps no state: the work is the pending contests last evaluated by an older policy version than the one in force,
//! and a contest that is done drops out. It passes over them by contest id, so that one that can't be evaluated holds
//! up no other, and retries it on the next pass. A decision that began under the old policy and commits late shows up
//! again, which is why it looks again periodically.

use std::time::Duration;

use emend_base::Lifecycle;
use emend_core::{Caller, ContestId, Event, ResourceKey, Revision};
use emend_store::{CorruptRow, StoreError, retry_conflicts};
use tokio::time::timeout;

use crate::{
    actor::Actor,
    app::App,
    contests::open::{Attribution, OpenContests},
    fail_points,
    failure::{Failure, refused},
    log::numbering::RevisionChoice,
    resources::write::subject,
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
    pub last: Option<ContestId>,
    /// Contests evaluated.
    pub evaluated: usize,
    /// Contests that failed and are left for the next pass.
    pub failed: usize,
}

/// The next contest can't even be read: log the error and skip it.
fn unreadable(row: CorruptRow) -> Result<Step, StoreError> {
    let Ok(contest) = row.id.parse().map(ContestId) else {
        return Err(row.into());
    };
    tracing::error!(%contest, error = %row, "can't re-evaluate a contest");
    Ok(Step {
        last: Some(contest),
        evaluated: 0,
        failed: 1,
    })
}

impl App {
    /// Re-evaluates the next batch of a pass, after the contest `after`.
    pub async fn reevaluate_once(&self, after: Option<ContestId>) -> Result<Step, StoreError> {
        let keys = match self.store.contests_to_reevaluate(after, BATCH).await {
            Err(StoreError::Corrupt(_)) => match self.store.contests_to_reevaluate(after, 1).await {
                Err(StoreError::Corrupt(row)) => return unreadable(row),
                one => one?,
            },
            keys => keys?,
        };
        let mut step = Step {
            last: keys.last().map(ResourceKey::contest_id),
            ..Step::default()
        };
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
        let last = retry_conflicts::<_, Failure, _>(&self.entropy, || self.try_reevaluate(keys)).await?;
        fail_points::REEVALUATION_COMMITTED.pass();
        if last > Revision::default() {
            self.follower.wake();
        }
        Ok(())
    }

    async fn try_reevaluate(&self, keys: &[ResourceKey]) -> Result<Revision, Failure> {
        let attribution = Attribution {
            actor: Actor::caller(Caller::system()),
            reason: String::new(),
            operation: None,
            trigger: None,
        };
        let mut tx = self.store.begin().await?;
        let mut unit =
            OpenContests::open(&mut *tx, &self.hot, self.clock.now(), keys.iter().cloned(), 0).await?;
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
        let written = self.commit(tx, &mut unit).await?;
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
