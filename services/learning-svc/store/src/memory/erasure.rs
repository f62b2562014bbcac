//! Erasing users, in memory.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use emend_core::{
    AcceptOrder, ContestId, Namespace, ResourceKey, Revision, UserId, kinds::Users, voter::VoterKey,
};
use jiff::SignedDuration;

use super::{
    MemoryStore, Result,
    tables::{ContestRow, Tables, Write, logged},
    work::Work,
};
use crate::erasure::{ErasedLog, Erasures};

/// A contest of an erased user that the log still names.
#[derive(Debug, Clone)]
pub(super) struct ErasedContest {
    pseudonym: UserId,
    /// The log names the user up to this revision.
    revision: Revision,
}

impl Tables {
    /// Deletes contests with everything proposed in them.
    pub(super) fn erase(&mut self, contests: &[ContestId], pseudonym: &UserId) -> Result<()> {
        let revision = Revision(self.head()?.revision);
        for contest in contests {
            let erased = self.erased_contests.entry(*contest).or_insert(ErasedContest {
                pseudonym: pseudonym.clone(),
                revision,
            });
            erased.revision = revision;
            for candidate in self.proposed.remove(contest).into_iter().flatten() {
                self.candidates.remove(&candidate);
                let history = self
                    .transitions
                    .range((candidate, i64::MIN)..=(candidate, i64::MAX));
                let history: Vec<_> = history.map(|(place, _)| *place).collect();
                for place in history {
                    self.transitions.remove(&place);
                }
            }
            let cast = self.ballots.keys().filter(|(_, voted)| voted == contest);
            let cast: Vec<_> = cast.copied().collect();
            for ballot in cast {
                self.ballots.remove(&ballot);
                self.details.remove(&ballot.0);
            }
            self.undoable.remove(contest);
            // The row itself stays for the log, and for the user, who may come back.
            if let Some(row) = self.contests.get_mut(contest) {
                row.pinned = false;
                row.pending = false;
                row.policy_version = 0;
            }
        }
        Ok(())
    }

    /// Whether anything was proposed in a contest, or cast.
    fn is_used(&self, contest: ContestId) -> bool {
        self.proposed.get(&contest).is_some_and(|ids| !ids.is_empty())
            || self.ballots.keys().any(|(_, voted)| *voted == contest)
    }

    /// Moves what the log says of an erased contest to one whose user is the pseudonym.
    fn forget_user(&mut self, contest: ContestId, erased: &ErasedContest) {
        self.erased_contests.remove(&contest);
        let Some(row) = self.contests.get(&contest) else {
            return;
        };
        let mut key = row.key.clone();
        let user = key.user.replace(erased.pseudonym.clone());
        let is_named = |revision: &Revision| *revision <= erased.revision;
        let named = self
            .changes
            .iter()
            .filter(|((revision, _), change)| is_named(revision) && change.key.contest_id() == contest);
        let named: Vec<(Revision, i32)> = named.map(|(place, _)| *place).collect();
        // Where there is nothing but users' own, the key tells of the user as the value does.
        if matches!(key.kind.rules().rule.users(), Users::Only)
            && !key.qualifier.is_empty()
            && let Some((Revision(first), ordinal)) = named.first()
        {
            key.qualifier = format!("erased {first}.{ordinal}");
        }
        for place in &named {
            if let Some(change) = self.changes.get_mut(place) {
                change.key = key.clone();
                change.candidate = None;
                change.value = change.value.take().map(|_| Bytes::new());
                change.before = change.before.take().map(|_| Bytes::new());
                if let Some(trigger) = &mut change.trigger {
                    trigger.traceparent.clear();
                }
            }
        }
        for (revision, _) in named {
            let changes = self.changes.range((revision, i32::MIN)..=(revision, i32::MAX));
            let changes: Vec<_> = changes.map(|(_, change)| change.clone()).collect();
            if let Some((write, committed_at)) = self.revisions.get_mut(&revision) {
                if user
                    .as_ref()
                    .is_some_and(|user| user.as_str() == write.actor.on_behalf_of)
                {
                    erased
                        .pseudonym
                        .as_str()
                        .clone_into(&mut write.actor.on_behalf_of);
                    write.reason.clear();
                }
                if let Some(streamed) = self.log.get_mut(&revision.0) {
                    let changes = changes.iter().map(|change| logged(change, write, *committed_at));
                    Arc::make_mut(streamed).changes = changes.collect();
                }
            }
        }
        self.contests
            .entry(key.contest_id())
            .or_insert_with(|| ContestRow::first(&key));
        let is_logged = self
            .changes
            .values()
            .any(|change| change.key.contest_id() == contest);
        if !is_logged && !self.is_used(contest) {
            self.contests.remove(&contest);
        }
    }
}

#[async_trait]
impl Erasures for Work {
    async fn erased_at(&mut self, voters: &[VoterKey]) -> Result<HashMap<VoterKey, AcceptOrder>> {
        self.read("erased_at", |tables| {
            let erased = voters
                .iter()
                .filter_map(|voter| Some((*voter, *tables.erased.get(voter)?)));
            Ok(erased.collect())
        })
        .await
    }

    async fn note(&mut self, voter: VoterKey, order: AcceptOrder) -> Result<()> {
        self.note("note_erased", Write::Erased(voter, order)).await
    }

    async fn contests_of(
        &mut self,
        namespace: &Namespace,
        user: &UserId,
        limit: u32,
    ) -> Result<Vec<ResourceKey>> {
        self.read("contests_of_user", |tables| {
            let own = tables.contests.iter().filter(|(contest, row)| {
                (&row.key.namespace, row.key.user.as_ref()) == (namespace, Some(user))
                    // What was erased before and not used since is there for the log alone.
                    && (!tables.erased_contests.contains_key(*contest) || tables.is_used(**contest))
            });
            Ok(own.map(|(_, row)| row.key.clone()).take(limit as usize).collect())
        })
        .await
    }

    /// No activities are recorded here.
    async fn forget_activities(&mut self, _namespace: &Namespace, _user: &UserId) -> Result<()> {
        Ok(())
    }

    async fn erase(&mut self, contests: &[ContestId], pseudonym: &UserId) -> Result<()> {
        self.note("erase", Write::Erase(contests.into(), pseudonym.clone()))
            .await
    }
}

#[async_trait]
impl ErasedLog for MemoryStore {
    async fn forget_erased(&self, limit: u32) -> Result<u64> {
        self.call("forget_erased", |state| {
            let horizon = state.tables.head()?.horizon;
            let erased = state.tables.erased_contests.iter();
            let expired = erased.filter(|(_, erased)| erased.revision.0 <= horizon);
            let expired: Vec<(ContestId, ErasedContest)> = expired
                .take(limit as usize)
                .map(|(contest, erased)| (*contest, erased.clone()))
                .collect();
            for (contest, erased) in &expired {
                state.tables.forget_user(*contest, erased);
            }
            Ok(expired.len() as u64)
        })
        .await
    }

    /// No activities are recorded here.
    async fn forget_activities(&self, _age: SignedDuration, _limit: u32) -> Result<u64> {
        Ok(0)
    }

    /// There are no files.
    async fn clean_files(&self) -> Result<bool> {
        Ok(true)
    }
}
