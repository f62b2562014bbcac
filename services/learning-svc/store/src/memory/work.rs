//! The unit of work in memory: keeps its writes to itself until it commits, and holds its locks until it ends.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use async_trait::async_trait;
use emend_core::{
    Ballot, Candidate, CandidateId, Cause, ContestId, EventId, FeedbackId, Policy, ResourceKey, Revision,
};
use emend_store::{CorruptRow, simulation::conflict};
use jiff::{SignedDuration, Timestamp};

use super::{
    Defect, MemoryStore, Result,
    locks::{Owner, Row},
    log::NodeChange,
    tables::{Tables, Write, kept_value},
};

use crate::{
    UnitOfWork,
    contests::{
        CandidateWrite, ContestRepository, KeptCandidate, KnownBallot, LockedContest, Named, StoredContest,
        TransitionWrite, UndoableRecord, VoteWrites,
    },
    erasure::Erasures,
    evidence::RulingRepository,
    ingest::{InboxRepository, InboxWrite, Marks, Seen},
    log::{LockedHead, LogRepository, LogWrites, WrittenChange},
    nodes::{NodeRepository, NodeWrite},
    outputs::{RatingRepository, improvements::Redactions},
    policies::{PolicyKey, PolicyRepository, PolicyWrite, StoredPolicy},
    profiles::EntryRepository,
    queue::QueueCount,
    resources::{ResourceRepository, ResourceWrites},
};

/// One unit of work, rolled back when it is dropped.
pub(super) struct Work {
    store: MemoryStore,
    owner: Owner,
    /// The `life` of the tables when it began.
    life: u64,
    writes: Vec<Write>,
    nodes: Vec<NodeChange>,
    committed: bool,
}

impl Drop for Work {
    fn drop(&mut self) {
        if !self.committed && self.store.has(Defect::KeepsUncommitted) {
            let mut state = self.store.state();
            for write in self
                .writes
                .iter()
                .filter(|write| matches!(write, Write::Votes(_) | Write::Marks(_)))
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
            nodes: Vec::new(),
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

    pub(super) async fn read<T: Send>(
        &self,
        call: &'static str,
        read: impl FnOnce(&Tables) -> Result<T> + Send,
    ) -> Result<T> {
        self.before(call).await?;
        let answer = read(&self.seen_now()?)?;
        self.after(call).await?;
        Ok(answer)
    }

    pub(super) async fn note(&mut self, call: &'static str, write: Write) -> Result<()> {
        self.before(call).await?;
        self.writes.push(write);
        // A write that fails does so now, not at the commit.
        let _ = self.seen_now()?;
        self.after(call).await
    }

    async fn take_lock(&self, row: Row) -> Result<()> {
        let taken = self.store.shared.locks.take(self.owner, row).await;
        taken.map_err(|_| conflict("deadlock"))
    }
}

#[async_trait]
impl UnitOfWork for Work {
    fn contests(&mut self) -> &mut dyn ContestRepository {
        self
    }

    fn resources(&mut self) -> &mut dyn ResourceRepository {
        self
    }

    fn policies(&mut self) -> &mut dyn PolicyRepository {
        self
    }

    fn log(&mut self) -> &mut dyn LogRepository {
        self
    }

    fn inbox(&mut self) -> &mut dyn InboxRepository {
        self
    }

    fn nodes(&mut self) -> &mut dyn NodeRepository {
        self
    }

    fn ratings(&mut self) -> &mut dyn RatingRepository {
        self
    }

    fn redactions(&mut self) -> &mut dyn Redactions {
        self
    }

    fn rulings(&mut self) -> &mut dyn RulingRepository {
        self
    }

    fn entries(&mut self) -> &mut dyn EntryRepository {
        self
    }

    fn erasures(&mut self) -> &mut dyn Erasures {
        self
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
            let now = self.store.now(&state);
            for change in &self.nodes {
                state.nodes.apply(change, now);
            }
        }
        self.committed = true;
        // Waiters for its locks need not wait for its answer.
        self.store.shared.locks.release(self.owner);
        self.after("commit").await
    }
}

#[async_trait]
impl InboxRepository for Work {
    async fn lock_feedback(&mut self, ids: &[FeedbackId]) -> Result<()> {
        self.before("lock_feedback").await?;
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        for id in ids {
            if !self.store.has(Defect::LocksNoFeedback) {
                self.take_lock(Row::Feedback(id)).await?;
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
            for id in feedback.iter().collect::<BTreeSet<_>>() {
                if let Some(mark) = tables.retraction_marks.get(id).filter(|_| !forgets_marks) {
                    seen.retracted.insert(*id, mark.sender.clone());
                }
                if tables.redaction_marks.contains_key(id) {
                    seen.redacted.push(*id);
                }
                for new in tables.ballots_of(*id).filter(|_| !forgets_inbox) {
                    if let Some(row) = tables.contests.get(&new.contest) {
                        seen.ballots.entry(*id).or_default().push(KnownBallot {
                            key: row.key.clone(),
                            ballot: new.ballot.clone(),
                            retracted: new.retracted,
                        });
                    }
                }
            }
            Ok(seen)
        })
        .await
    }

    async fn save_marks(&mut self, marks: &Marks) -> Result<()> {
        self.note("save_marks", Write::Marks(Arc::new(marks.clone())))
            .await
    }

    async fn save(&mut self, applied: &[InboxWrite]) -> Result<()> {
        self.note("save_inbox", Write::Inbox(applied.into())).await
    }
}

#[async_trait]
impl PolicyRepository for Work {
    async fn in_force(&mut self, keys: &[PolicyKey]) -> Result<HashMap<PolicyKey, Policy>> {
        self.read("policies", |tables| {
            let policies = keys.iter().map(|key| (key.clone(), tables.policy(key).policy));
            Ok(policies.collect())
        })
        .await
    }

    async fn stored(&mut self, key: &PolicyKey) -> Result<StoredPolicy> {
        self.read("stored_policy", |tables| Ok(tables.policy(key))).await
    }

    async fn save(&mut self, policy: &PolicyWrite) -> Result<()> {
        self.note("save_policy", Write::Policy(Box::new(policy.clone())))
            .await
    }
}

#[async_trait]
impl ResourceRepository for Work {
    async fn counts(&mut self, keys: &[PolicyKey]) -> Result<HashMap<PolicyKey, u64>> {
        self.read("resource_counts", |tables| Ok(counts(tables, keys)))
            .await
    }

    async fn scopes_in_use(&mut self) -> Result<u64> {
        self.read("scopes_in_use", |tables| {
            Ok(tables.counts.values().filter(|count| **count > 0).count() as u64)
        })
        .await
    }

    async fn save(&mut self, writes: &ResourceWrites) -> Result<HashMap<PolicyKey, u64>> {
        self.note("save_resources", Write::Resources(Arc::new(writes.clone())))
            .await?;
        let changed = writes.counts.iter().filter(|(_, by)| **by != 0);
        let changed: Vec<PolicyKey> = changed.map(|(key, _)| key.clone()).collect();
        Ok(counts(&self.seen_now()?, &changed))
    }
}

#[async_trait]
impl ContestRepository for Work {
    async fn create(&mut self, keys: &[&ResourceKey], _now: Timestamp) -> Result<()> {
        self.before("create_contests").await?;
        for key in keys {
            let contest = key.contest_id();
            // An insert waits for uncommitted inserts of the same row by others.
            if !self.seen_now()?.contests.contains_key(&contest) && !self.store.has(Defect::LocksNoContests) {
                self.take_lock(Row::Contest(contest)).await?;
            }
        }
        self.writes
            .push(Write::Contests(keys.iter().map(|key| (*key).clone()).collect()));
        self.after("create_contests").await
    }

    async fn lock(&mut self, keys: &[&ResourceKey]) -> Result<Vec<LockedContest>> {
        self.before("lock_contests").await?;
        for key in keys {
            if !self.store.has(Defect::LocksNoContests) {
                self.take_lock(Row::Contest(key.contest_id())).await?;
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
            if row.key.contest_id() != contest {
                let other = "another key than the one that gives this id";
                return Err(CorruptRow::new("contests", "key", contest, other).into());
            }
            locked.push(row.locked(now)?);
        }
        self.after("lock_contests").await?;
        Ok(locked)
    }

    async fn forget_new(&mut self, contests: &[ContestId]) -> Result<()> {
        self.before("forget_contests").await?;
        for write in &mut self.writes {
            if let Write::Contests(created) = write {
                created.retain(|key| !contests.contains(&key.contest_id()));
            }
        }
        self.after("forget_contests").await
    }

    async fn load(&mut self, rows: Vec<LockedContest>) -> Result<Vec<StoredContest>> {
        self.read("load_contests", |tables| {
            rows.into_iter().map(|row| tables.contest(row)).collect()
        })
        .await
    }

    async fn named(
        &mut self,
        contest: ContestId,
        which: Named,
    ) -> Result<Option<(Candidate, KeptCandidate)>> {
        self.read("named_candidate", |tables| {
            let found = tables
                .candidates_of(contest)
                .into_iter()
                .find(|write| match which {
                    Named::Candidate(id) => write.candidate.id == id,
                    Named::Version(version) => {
                        let proposal = write.candidate.proposal;
                        proposal.is_some_and(|kept| kept.version == version)
                    }
                });
            Ok(found.map(|write| (write.candidate.clone(), write.kept.clone())))
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

    async fn save_votes(&mut self, writes: &VoteWrites) -> Result<()> {
        self.note("save_votes", Write::Votes(Arc::new(writes.clone())))
            .await
    }

    async fn save_candidates(
        &mut self,
        candidates: &[CandidateWrite],
        transitions: &[(ContestId, TransitionWrite)],
    ) -> Result<()> {
        let transitions = transitions.iter().map(|(_, transition)| transition.clone());
        let write = Write::Candidates(candidates.into(), transitions.collect());
        self.note("save_candidates", write).await
    }

    /// Nobody asks this store for figures of days.
    async fn count(&mut self, _counts: &[QueueCount]) -> Result<()> {
        Ok(())
    }

    async fn save_undoable(&mut self, record: &UndoableRecord) -> Result<()> {
        self.note("save_undoable", Write::Undoable(Arc::new(record.clone())))
            .await
    }

    async fn undoable(&mut self, contest: ContestId) -> Result<Option<UndoableRecord>> {
        self.read("undoable", |tables| {
            Ok(tables.undoable.get(&contest).map(|record| (**record).clone()))
        })
        .await
    }

    async fn forget_undoable(&mut self, contest: ContestId) -> Result<()> {
        self.note("forget_undoable", Write::NotUndoable(contest)).await
    }
}

#[async_trait]
impl LogRepository for Work {
    async fn changes_of(&mut self, revision: Revision) -> Result<Vec<WrittenChange>> {
        self.read("changes_of", |tables| {
            let changes = tables.changes.range((revision, i32::MIN)..=(revision, i32::MAX));
            let written = changes.map(|(_, change)| {
                let contest = change.key.contest_id();
                let same = tables.changes.values().filter(|other| other.key == change.key);
                let newest = same.map(|other| other.revision).max().unwrap_or(revision);
                Ok(WrittenChange {
                    key: change.key.clone(),
                    before: kept_value(change.before.as_deref(), "changes", contest)?,
                    newest,
                    newest_operation: tables
                        .revisions
                        .get(&newest)
                        .and_then(|(write, _)| write.operation),
                    by_erasure: tables
                        .revisions
                        .get(&revision)
                        .is_some_and(|(write, _)| write.cause == Cause::Erasure),
                })
            });
            written.collect()
        })
        .await
    }

    async fn advance_head(&mut self, revisions: usize) -> Result<LockedHead> {
        self.before("advance_head").await?;
        if !self.store.has(Defect::LocksNoHead) {
            self.take_lock(Row::Head).await?;
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

    async fn append(&mut self, writes: &LogWrites) -> Result<()> {
        self.note("append", Write::Log(Arc::new(writes.clone()))).await
    }
}

#[async_trait]
impl NodeRepository for Work {
    async fn write(&mut self, replica: &str, writes: &[NodeWrite]) -> Result<()> {
        self.before("write_nodes").await?;
        let changes = writes.iter();
        self.nodes
            .extend(changes.map(|write| NodeChange::Write(replica.to_owned(), write.clone())));
        self.after("write_nodes").await
    }

    async fn touch(&mut self, replica: &str) -> Result<()> {
        self.nodes.push(NodeChange::Touch(replica.to_owned()));
        Ok(())
    }

    async fn forget(&mut self, unseen_for: SignedDuration) -> Result<u64> {
        let change = NodeChange::Forget(unseen_for);
        let forgotten = {
            let state = self.store.state();
            let now = self.store.now(&state);
            state.nodes.clone().apply(&change, now)
        };
        self.nodes.push(change);
        Ok(forgotten)
    }
}

fn counts(tables: &Tables, keys: &[PolicyKey]) -> HashMap<PolicyKey, u64> {
    let count = |key: &PolicyKey| tables.counts.get(key).copied().unwrap_or(0);
    keys.iter()
        .map(|key| (key.clone(), u64::try_from(count(key)).unwrap_or(0)))
        .collect()
}

/// How the contract suite damages what is stored here.
#[cfg(any(test, feature = "testing"))]
#[async_trait]
impl crate::contests::damage::Damage for MemoryStore {
    async fn rename_all_contests(&self, key: &str) {
        let mut state = self.state();
        let contests: Vec<_> = state.tables.contests.keys().copied().collect();
        for contest in contests {
            let row = state
                .tables
                .contests
                .get_mut(&contest)
                .expect("invariant: it was listed");
            row.key.key = emend_core::NormalizedKey::parse(key)
                .expect("a key in normal form")
                .into();
        }
    }

    async fn corrupt_candidates_of(&self, contest: ContestId) {
        self.state().tables.corrupt.insert(contest);
    }

    async fn retract_ballots_of(&self, contest: ContestId) {
        let mut state = self.state();
        let feedback: Vec<_> = state.tables.ballots.keys().copied().collect();
        for id in feedback {
            let new = state
                .tables
                .ballots
                .get_mut(&id)
                .expect("invariant: it was listed");
            new.retracted |= new.contest == contest;
        }
    }

    async fn touch_candidates_of(&self, contest: ContestId) {
        let mut state = self.state();
        let proposed = state.tables.proposed.get(&contest).cloned();
        for id in proposed.into_iter().flatten() {
            if let Some(candidate) = state.tables.candidates.get_mut(&id) {
                candidate.kept.version += 1;
            }
        }
    }
}
