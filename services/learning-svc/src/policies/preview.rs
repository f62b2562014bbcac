//! What a change of a policy would apply at once: what waits is decided by it, and nothing of that is written.

use std::collections::BTreeSet;

use emend_base::Error;
use emend_core::{ContestState, Event, ResourceKey, ResourceValue, Status};
use learning_store::contests::{CandidateFilter, Involvement, Listing};

use super::{
    Policies,
    update::{PolicyUpdate, changed},
};
use crate::{
    decisions::{numbering::RevisionChoice, open::Attribution},
    failure::{Failure, refused, subject},
};

/// The candidates whose contests are looked at, the newest.
const WAITING: u32 = 1_000;
/// Contests that are open at once.
const BATCH: usize = 128;

/// What would be applied at once.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// How many contests were looked at.
    pub contests: usize,
    /// Those that would apply another value.
    pub changes: Vec<Change>,
}

/// A contest that would apply another value.
#[derive(Debug)]
pub(super) struct Change {
    pub key: ResourceKey,
    pub before: Option<ResourceValue>,
    pub after: Option<ResourceValue>,
}

impl Policies {
    /// What an update would apply at once.
    pub(super) async fn preview(&self, update: &PolicyUpdate) -> Result<Applied, Error> {
        let filter = CandidateFilter {
            namespace: update.key.namespace.clone(),
            kinds: vec![update.key.kind],
            statuses: vec![Status::Pending, Status::AwaitingReview],
            keys: Vec::new(),
            user: None,
            reviewed: Involvement::default(),
        };
        let waiting = self
            .store
            .list_candidates(&filter, &Listing::default(), None, WAITING)
            .await?;
        let keys: BTreeSet<ResourceKey> = waiting.into_iter().map(|record| record.key).collect();
        let keys: Vec<ResourceKey> = keys.into_iter().collect();
        let mut applied = Applied {
            contests: keys.len(),
            changes: Vec::new(),
        };
        for keys in keys.chunks(BATCH) {
            let changes = self.decisions.retry(|| self.try_preview(update, keys)).await?;
            applied.changes.extend(changes);
        }
        Ok(applied)
    }

    async fn try_preview(&self, update: &PolicyUpdate, keys: &[ResourceKey]) -> Result<Vec<Change>, Failure> {
        // It ends without a commit.
        let mut tx = self.store.begin().await?;
        let before = tx.policies().stored(&update.key).await?.policy;
        let policy = changed(update, &before)?;
        let mut unit = self.decisions.open(&mut *tx, keys.iter().cloned()).await?;
        unit.try_policy(&update.key, policy);
        let attribution = Attribution::system();
        let mut changes = Vec::new();
        for key in keys {
            let contest = key.contest_id();
            unit.decide(contest, &Event::PolicyChanged, &attribution, RevisionChoice::Own)
                .map_err(|refusal| refused(&refusal, &subject(key)))?;
            let (Some(found), Some(then)) = (unit.found(contest), unit.state(contest)) else {
                continue;
            };
            let (before, after) = (value_of(&found.state), value_of(then));
            if before != after {
                changes.push(Change {
                    key: key.clone(),
                    before,
                    after,
                });
            }
        }
        Ok(changes)
    }
}

fn value_of(state: &ContestState) -> Option<ResourceValue> {
    state.resource.as_ref().map(|resource| resource.value.clone())
}
