//! The unit of work in memory: keeps its writes to itself until it commits, and holds its locks until it ends.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use emend_core::{Ballot, CandidateId, ContestId, EventId, FeedbackId, Policy, ResourceKey, Revision};
use emend_store::{CorruptRow, simulation::conflict};
use jiff::Timestamp;

use super::{
    Defect, MemoryStore, Result,
    locks::{Owner, Row},
    tables::{Tables, Write, value},
};
use crate::store::decisions::{
    DecisionWrites, KnownBallot, LockedContest, LockedHead, PolicyKey, PolicyWrite, Seen, StoredContest,
    StoredPolicy, Tx, VoteWrites, WrittenChange,
};
use crate::store::erasures::Erasures;

#[cfg(test)]
#[path = "../contract/decisions.rs"]
mod contract;

/// One unit of work, rolled back when it is dropped.
pub(super) struct Work {
    store: MemoryStore,
    owner: Owner,
    /// The `life` of the tables when it began.
    life: u64,
    writes: Vec<Write>,
    committed: bool,
}

impl Drop for Work {
    fn drop(&mut self) {
        if !self.committed && self.store.has(Defect::KeepsUncommitted) {
            let mut state = self.store.state();
            for write in self
                .writes
                .iter()
                .filter(|write| matches!(write, Write::Votes(_)))
            {
                // Keeps what it can of half a failed unit of work.
                let _ = state.tables.write(write, true);
            }
        }
        self.store.shared.locks.release(self.owner);
    }
}

impl Work {
    pub(super) async fn begin(store: &MemoryStore) -> Result<Self> {
        let life = store.call("begin", |state| Ok(state.tables.life)).await?;
        Ok(Self {
            owner: store.shared.locks.new_owner(),
            store: store.clone(),
            life,
            writes: Vec::new(),
            committed: false,
        })
    }

    async fn before(&self, call: &'static str) -> Result<()> {
        self.store.interference.before(call).await?;
        self.store.answers()
    }

    async fn after(&self, call: &'static str) -> Result<()> {
        self.store.interference.after(call).await
    }

    /// What this unit of work sees now: what is committed, and its own writes.
    fn seen_now(&self) -> Result<Tables> {
        let mut tables = self.store.state().tables.clone();
        let forgetful = self.store.has(Defect::ForgetsInbox);
        for write in &self.writes {
            tables.write(write, forgetful)?;
        }
        Ok(tables)
    }

    async fn read<T: Send>(
        &self,
        call: &'static str,
        read: impl FnOnce(&Tables) -> Result<T> + Send,
    ) -> Result<T> {
        self.before(call).await?;
        let answer = read(&self.seen_now()?)?;
        self.after(call).await?;
        Ok(answer)
    }

    async fn write(&mut self, call: &'static str, write: Write) -> Result<()> {
        self.before(call).await?;
        self.writes.push(write);
        // A write that fails does so now, not at the commit.
        let _ = self.seen_now()?;
        self.after(call).await
    }

    async fn lock(&self, row: Row) -> Result<()> {
        let taken = self.store.shared.locks.take(self.owner, row).await;
        taken.map_err(|_| conflict("deadlock"))
    }
}

#[async_trait]
impl Tx for Work {
    async fn lock_feedback(&mut self, ids: &[FeedbackId]) -> Result<()> {
        self.before("lock_feedback").await?;
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        for id in ids {
            if !self.store.has(Defect::LocksNoFeedback) {
                self.lock(Row::Feedback(id)).await?;
            }
        }
        self.after("lock_feedback").await
    }

    async fn seen(&mut self, events: &[EventId], feedback: &[FeedbackId]) -> Result<Seen> {
        let (forgets_inbox, forgets_marks) = (
            self.store.has(Defect::ForgetsInbox),
            self.store.has(Defect::ForgetsMarks),
        );
        self.read("seen", |tables| {
            let mut seen = Seen::default();
            for id in events.iter().filter(|_| !forgets_inbox) {
                if let Some(entry) = tables.inbox.get(id) {
                    seen.outcomes.insert(*id, entry.outcome.clone());
                }
            }
            for id in feedback {
                if tables.retraction_marks.contains_key(id) && !forgets_marks {
                    seen.retracted.push(*id);
                }
                if tables.redaction_marks.contains_key(id) {
                    seen.redacted.push(*id);
                }
                if let Some(new) = tables.ballots.get(id).filter(|_| !forgets_inbox)
                    && let Some(row) = tables.contests.get(&new.contest)
                {
                    let known = KnownBallot {
                        key: row.key.clone(),
                        ballot: new.ballot.clone(),
                        retracted: new.retracted,
                    };
                    seen.ballots.insert(*id, known);
                }
            }
            Ok(seen)
        })
        .await
    }

    async fn policies(&mut self, keys: &[PolicyKey]) -> Result<HashMap<PolicyKey, Policy>> {
        self.read("policies", |tables| {
            let policies = keys.iter().map(|key| (key.clone(), tables.policy(key).policy));
            Ok(policies.collect())
        })
        .await
    }

    async fn resource_counts(&mut self, keys: &[PolicyKey]) -> Result<HashMap<PolicyKey, u64>> {
        self.read("resource_counts", |tables| Ok(counts(tables, keys)))
            .await
    }

    async fn scopes_in_use(&mut self) -> Result<u64> {
        self.read("scopes_in_use", |tables| {
            Ok(tables.counts.values().filter(|count| **count > 0).count() as u64)
        })
        .await
    }

    async fn create_contests(&mut self, keys: &[&ResourceKey], _now: Timestamp) -> Result<()> {
        self.before("create_contests").await?;
        for key in keys {
            let contest = key.contest_id();
            // An insert waits for uncommitted inserts of the same row by others.
            if !self.seen_now()?.contests.contains_key(&contest) && !self.store.has(Defect::LocksNoContests) {
                self.lock(Row::Contest(contest)).await?;
            }
        }
        self.writes
            .push(Write::Contests(keys.iter().map(|key| (*key).clone()).collect()));
        self.after("create_contests").await
    }

    async fn lock_contests(&mut self, keys: &[&ResourceKey]) -> Result<Vec<LockedContest>> {
        self.before("lock_contests").await?;
        for key in keys {
            if !self.store.has(Defect::LocksNoContests) {
                self.lock(Row::Contest(key.contest_id())).await?;
            }
        }
        let tables = self.seen_now()?;
        let now = self.store.now(&self.store.state());
        let mut locked = Vec::with_capacity(keys.len());
        for key in keys {
            let contest = key.contest_id();
            let row = tables.contests.get(&contest).ok_or_else(|| {
                CorruptRow::new(
                    "contests",
                    "contest_id",
                    contest,
                    "a contest that was created is gone",
                )
            })?;
            if row.key != **key {
                let other = "another key than the one that was asked for";
                return Err(CorruptRow::new("contests", "key", contest, other).into());
            }
            locked.push(row.locked(now)?);
        }
        self.after("lock_contests").await?;
        Ok(locked)
    }

    async fn load_contests(&mut self, rows: Vec<LockedContest>) -> Result<Vec<StoredContest>> {
        self.read("load_contests", |tables| {
            rows.into_iter().map(|row| tables.contest(row)).collect()
        })
        .await
    }

    async fn newest_ballots(
        &mut self,
        contests: &[ContestId],
        limit: u32,
    ) -> Result<HashMap<ContestId, Vec<Ballot>>> {
        self.read("newest_ballots", |tables| {
            let newest = contests
                .iter()
                .map(|contest| (*contest, tables.newest_ballots(*contest, limit)));
            Ok(newest.filter(|(_, ballots)| !ballots.is_empty()).collect())
        })
        .await
    }

    async fn contest_of(&mut self, candidate: CandidateId) -> Result<Option<ResourceKey>> {
        self.read("contest_of", |tables| {
            Ok(tables.candidates.get(&candidate).map(|write| write.key.clone()))
        })
        .await
    }

    async fn changes_of(&mut self, revision: Revision) -> Result<Vec<WrittenChange>> {
        self.read("changes_of", |tables| {
            let changes = tables.changes.range((revision, i32::MIN)..=(revision, i32::MAX));
            let written = changes.map(|(_, change)| {
                let contest = change.key.contest_id();
                let same = tables.changes.values().filter(|other| other.key == change.key);
                let before = change.before.as_deref();
                Ok(WrittenChange {
                    key: change.key.clone(),
                    before: before
                        .map(|before| value(Some(before), "changes", contest))
                        .transpose()?,
                    newest: same.map(|other| other.revision).max().unwrap_or(revision),
                    // This store knows no erasure.
                    by_erasure: false,
                })
            });
            written.collect()
        })
        .await
    }

    async fn save_votes(&mut self, writes: &VoteWrites) -> Result<()> {
        self.write("save_votes", Write::Votes(Arc::new(writes.clone())))
            .await
    }

    async fn advance_head(&mut self, revisions: usize) -> Result<LockedHead> {
        self.before("advance_head").await?;
        if !self.store.has(Defect::LocksNoHead) {
            self.lock(Row::Head).await?;
        }
        self.writes
            .push(Write::Head(i64::try_from(revisions).unwrap_or(i64::MAX)));
        let head = self.seen_now()?.head()?;
        let now = {
            let mut state = self.store.state();
            // Advances time: no two revisions are committed at the same instant.
            state.clock_offset += 1;
            self.store.now(&state)
        };
        self.after("advance_head").await?;
        Ok(LockedHead {
            revision: Revision(head.revision),
            now,
        })
    }

    async fn save_decisions(&mut self, writes: &DecisionWrites) -> Result<HashMap<PolicyKey, u64>> {
        self.write("save_decisions", Write::Decisions(Arc::new(writes.clone())))
            .await?;
        let changed = writes.counts.iter().filter(|(_, by)| **by != 0);
        let changed: Vec<PolicyKey> = changed.map(|(key, _)| key.clone()).collect();
        Ok(counts(&self.seen_now()?, &changed))
    }

    async fn stored_policy(&mut self, key: &PolicyKey) -> Result<StoredPolicy> {
        self.read("stored_policy", |tables| Ok(tables.policy(key))).await
    }

    async fn save_policy(&mut self, policy: &PolicyWrite) -> Result<()> {
        self.write("save_policy", Write::Policy(Box::new(policy.clone())))
            .await
    }

    fn erasures(&mut self) -> Option<&mut dyn Erasures> {
        None
    }

    async fn commit(mut self: Box<Self>) -> Result<()> {
        self.before("commit").await?;
        {
            let tables = self.seen_now()?;
            let mut state = self.store.state();
            if state.tables.life != self.life {
                return Err(emend_store::simulation::unavailable());
            }
            state.tables = tables;
        }
        self.committed = true;
        // Waiters for its locks need not wait for its answer.
        self.store.shared.locks.release(self.owner);
        self.after("commit").await
    }
}

fn counts(tables: &Tables, keys: &[PolicyKey]) -> HashMap<PolicyKey, u64> {
    let count = |key: &PolicyKey| tables.counts.get(key).copied().unwrap_or(0);
    keys.iter()
        .map(|key| (key.clone(), u64::try_from(count(key)).unwrap_or(0)))
        .collect()
}

/// How the contract suite damages a store behind its back.
#[cfg(test)]
mod damage {
    use emend_core::{ContestId, normalize::NormalizedKey};

    use super::super::MemoryStore;

    pub(super) async fn rename_all_contests(store: &MemoryStore, key: &str) {
        let mut state = store.state();
        let contests: Vec<_> = state.tables.contests.keys().copied().collect();
        for contest in contests {
            let row = state.tables.contests.get_mut(&contest).unwrap();
            row.key.key = NormalizedKey::parse(key).unwrap();
        }
    }

    pub(super) async fn corrupt_candidates_of(store: &MemoryStore, contest: ContestId) {
        store.state().tables.corrupt.insert(contest);
    }

    pub(super) async fn retract_ballots_of(store: &MemoryStore, contest: ContestId) {
        let mut state = store.state();
        let feedback: Vec<_> = state.tables.ballots.keys().copied().collect();
        for id in feedback {
            let new = state.tables.ballots.get_mut(&id).unwrap();
            new.retracted |= new.contest == contest;
        }
    }

    pub(super) async fn touch_candidates_of(store: &MemoryStore, contest: ContestId) {
        let mut state = store.state();
        let proposed = state.tables.proposed.get(&contest).cloned();
        for id in proposed.into_iter().flatten() {
            state.tables.candidates.get_mut(&id).unwrap().kept.version += 1;
        }
    }
}
