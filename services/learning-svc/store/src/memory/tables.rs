//! The data of the store in memory, and how the writes of units of work change it.
//!
//! The maps are persistent: a unit of work that needs to see its own writes applies them to a copy, which costs next to
//! nothing. It must know nothing of locks.

use std::{collections::HashMap, sync::Arc};

use emend_core::{
    AcceptOrder, Ballot, CandidateId, ContestId, ContestState, EventId, FeedbackId, OutputTally, Policy,
    RatedId, ResourceKey, ResourceValue, Revision, Target, UserId,
    contest::{CurrentResource, Versions},
    digest::value_checksum,
    voter::VoterKey,
};
use emend_store::{
    CorruptRow,
    simulation::{conflict, unique_violation},
};
use emend_stream::log::{Head, LoggedChange, LoggedRevision};
use imbl::{OrdMap, OrdSet, Vector};
use jiff::Timestamp;

use super::{Result, erasure::ErasedContest};
use crate::{
    contests::{
        BallotDetails, CandidateRecord, CandidateWrite, LockedContest, NewBallot, StoredContest,
        TransitionWrite, UndoableRecord, VoteWrites,
    },
    evidence::EventWrite,
    ingest::{InboxWrite, Mark, Marks},
    log::{ChangeWrite, LogWrites, RevisionWrite},
    outputs::{NewRating, RatingWrites},
    policies::{PolicyKey, PolicyWrite, StoredPolicy},
    resources::{ResourceWrite, ResourceWrites},
};

/// Everything committed.
#[derive(Clone, Default)]
pub(super) struct Tables {
    /// Grows when the database is restored: units of work begun before that can't commit.
    pub(super) life: u64,
    pub(super) head: Option<Head>,
    pub(super) contests: OrdMap<ContestId, ContestRow>,
    /// The candidates of each contest.
    pub(super) proposed: OrdMap<ContestId, OrdSet<CandidateId>>,
    pub(super) candidates: OrdMap<CandidateId, CandidateWrite>,
    pub(super) ballots: OrdMap<(FeedbackId, ContestId), NewBallot>,
    pub(super) details: OrdMap<FeedbackId, BallotDetails>,
    pub(super) transitions: OrdMap<(CandidateId, i64), TransitionWrite>,
    pub(super) resources: OrdMap<ContestId, (ResourceWrite, i64)>,
    pub(super) counts: OrdMap<PolicyKey, i64>,
    pub(super) revisions: OrdMap<Revision, (RevisionWrite, i64)>,
    pub(super) changes: OrdMap<(Revision, i32), ChangeWrite>,
    /// Revisions and changes as streamed.
    pub(super) log: OrdMap<i64, Arc<LoggedRevision>>,
    pub(super) policies: OrdMap<(PolicyKey, i64), PolicyWrite>,
    pub(super) inbox: OrdMap<EventId, InboxWrite>,
    pub(super) retraction_marks: OrdMap<FeedbackId, Mark>,
    pub(super) redaction_marks: OrdMap<FeedbackId, Mark>,
    pub(super) ratings: OrdMap<FeedbackId, NewRating>,
    /// What outputs come to.
    pub(super) outputs: OrdMap<(ContestId, RatedId), OutputTally>,
    /// What was done to evidence.
    pub(super) events: Vector<Arc<EventWrite>>,
    /// Erased voters, each with its newest erasure.
    pub(super) erased: OrdMap<VoterKey, AcceptOrder>,
    pub(super) erased_contests: OrdMap<ContestId, ErasedContest>,
    /// What it takes to undo the newest approval or rejection of each contest.
    pub(super) undoable: OrdMap<ContestId, Arc<UndoableRecord>>,
    /// Contests whose candidates can't be read.
    pub(super) corrupt: OrdSet<ContestId>,
}

/// A contest's row.
#[derive(Debug, Clone)]
pub(super) struct ContestRow {
    pub(super) key: ResourceKey,
    pub(super) pinned: bool,
    pub(super) highest_accept_order: AcceptOrder,
    pub(super) policy_version: i64,
    pub(super) pending: bool,
    pub(super) target: Target,
    pub(super) versions: Versions,
    pub(super) decisions: u64,
}

/// A write of a unit of work.
#[derive(Debug, Clone)]
pub(super) enum Write {
    Contests(Vec<ResourceKey>),
    Votes(Arc<VoteWrites>),
    Marks(Arc<Marks>),
    Head(i64),
    Candidates(Arc<[CandidateWrite]>, Arc<[TransitionWrite]>),
    Log(Arc<LogWrites>),
    Resources(Arc<ResourceWrites>),
    Inbox(Arc<[InboxWrite]>),
    Policy(Box<PolicyWrite>),
    Ratings(Arc<RatingWrites>),
    Events(Arc<[EventWrite]>),
    Erased(VoterKey, AcceptOrder),
    Erase(Arc<[ContestId]>, UserId),
    Undoable(Arc<UndoableRecord>),
    NotUndoable(ContestId),
}

impl Tables {
    pub(super) fn head(&self) -> Result<Head> {
        let missing = || CorruptRow::new("head", "id", 1, "the log has no head").into();
        self.head.ok_or_else(missing)
    }

    /// Applies a write; fails with a conflict or a unique violation if a row exists already. `forgetful` overwrites it
    /// instead.
    pub(super) fn write(&mut self, write: &Write, forgetful: bool) -> Result<()> {
        match write {
            Write::Contests(keys) => {
                for key in keys {
                    let contest = self.contests.entry(key.contest_id());
                    contest.or_insert_with(|| ContestRow::first(key));
                }
                Ok(())
            }
            Write::Votes(writes) => self.write_votes(writes, forgetful),
            Write::Ratings(writes) => self.write_ratings(writes),
            Write::Events(events) => {
                self.events.extend(events.iter().cloned().map(Arc::new));
                Ok(())
            }
            Write::Erased(voter, order) => {
                let newest = self.erased.entry(*voter).or_insert(*order);
                *newest = (*newest).max(*order);
                Ok(())
            }
            Write::Erase(contests, pseudonym) => self.erase(contests, pseudonym),
            Write::Undoable(record) => {
                self.undoable.insert(record.contest, Arc::clone(record));
                Ok(())
            }
            Write::NotUndoable(contest) => {
                self.undoable.remove(contest);
                Ok(())
            }
            Write::Head(by) => {
                let mut head = self.head()?;
                head.revision += by;
                self.head = Some(head);
                Ok(())
            }
            Write::Marks(marks) => {
                for mark in &marks.retractions {
                    self.retraction_marks.insert(mark.feedback, mark.clone());
                }
                for mark in &marks.redactions {
                    self.redaction_marks.entry(mark.feedback).or_insert(mark.clone());
                }
                Ok(())
            }
            Write::Candidates(candidates, transitions) => {
                self.write_candidates(candidates, transitions);
                Ok(())
            }
            Write::Log(writes) => {
                self.write_log(writes);
                Ok(())
            }
            Write::Resources(writes) => {
                self.write_resources(writes);
                Ok(())
            }
            Write::Inbox(applied) => self.write_inbox(applied, forgetful),
            Write::Policy(write) => {
                let version = (write.key.clone(), write.policy.version);
                if self.policies.contains_key(&version) {
                    return Err(conflict("another update stored this version of the policy"));
                }
                self.policies.insert(version, (**write).clone());
                Ok(())
            }
        }
    }

    fn write_votes(&mut self, writes: &VoteWrites, forgetful: bool) -> Result<()> {
        for contest in &writes.contests {
            let row = ContestRow {
                key: contest.key.clone(),
                pinned: contest.pinned,
                highest_accept_order: contest.highest_accept_order,
                policy_version: contest.policy_version,
                pending: contest.pending,
                target: contest.target,
                versions: contest.versions,
                decisions: contest.decisions,
            };
            self.contests.insert(contest.key.contest_id(), row);
        }
        for new in &writes.ballots {
            let before = self
                .ballots
                .insert((new.ballot.feedback_id, new.contest), new.clone());
            if before.is_some() && !forgetful {
                return Err(unique_violation("ballots"));
            }
        }
        for details in &writes.details {
            self.details.insert(details.feedback, details.clone());
        }
        for retracted in &writes.retracted {
            let cast: Vec<_> = self.ballots_of(*retracted).cloned().collect();
            for new in cast {
                let key = (*retracted, new.contest);
                self.ballots.insert(
                    key,
                    NewBallot {
                        retracted: true,
                        ..new
                    },
                );
            }
        }
        for erased in &writes.erased {
            self.details.remove(erased);
        }
        Ok(())
    }

    fn write_candidates(&mut self, candidates: &[CandidateWrite], transitions: &[TransitionWrite]) {
        for write in candidates {
            let contest = write.key.contest_id();
            self.proposed
                .entry(contest)
                .or_default()
                .insert(write.candidate.id);
            self.candidates.insert(write.candidate.id, write.clone());
        }
        for transition in transitions {
            let place = (transition.candidate, transition.sequence);
            self.transitions.insert(place, transition.clone());
        }
    }

    fn write_log(&mut self, writes: &LogWrites) {
        for revision in &writes.revisions {
            let committed = (revision.clone(), writes.committed_at);
            self.revisions.insert(revision.revision, committed);
            let changes = writes
                .changes
                .iter()
                .filter(|change| change.revision == revision.revision);
            let logged = LoggedRevision {
                revision: revision.revision.0,
                committed_at: writes.committed_at,
                changes: changes
                    .map(|change| logged(change, revision, writes.committed_at))
                    .collect(),
            };
            self.log.insert(logged.revision, Arc::new(logged));
        }
        for change in &writes.changes {
            self.changes
                .insert((change.revision, change.ordinal), change.clone());
        }
    }

    fn write_resources(&mut self, writes: &ResourceWrites) {
        for resource in &writes.resources {
            let contest = resource.key.contest_id();
            if resource.value.is_some() {
                self.resources
                    .insert(contest, (resource.clone(), writes.committed_at));
            } else {
                self.resources.remove(&contest);
            }
        }
        for (key, by) in &writes.counts {
            *self.counts.entry(key.clone()).or_default() += by;
        }
    }

    fn write_inbox(&mut self, applied: &[InboxWrite], forgetful: bool) -> Result<()> {
        for entry in applied {
            let before = self.inbox.insert(entry.event, entry.clone());
            if before.is_some() && !forgetful {
                return Err(unique_violation("inbox"));
            }
        }
        Ok(())
    }

    /// The policy in force; the default if none was ever set.
    pub(super) fn policy(&self, key: &PolicyKey) -> StoredPolicy {
        let versions = (key.clone(), i64::MIN)..=(key.clone(), i64::MAX);
        match self.policies.range(versions).next_back() {
            Some((_, write)) => StoredPolicy {
                policy: write.policy.clone(),
                updated_at: Some(write.updated_at),
            },
            None => StoredPolicy {
                policy: Policy::default_for(key.kind),
                updated_at: None,
            },
        }
    }

    /// A locked contest with everything a decision needs except its ballots.
    pub(super) fn contest(&self, row: LockedContest) -> Result<StoredContest> {
        let contest = row.key.contest_id();
        if self.corrupt.contains(&contest) {
            return Err(CorruptRow::new("candidates", "status", contest, "unknown: 99").into());
        }
        let mut state = ContestState::new(row.key.clone());
        state.pinned = row.pinned;
        state.highest_accept_order = row.highest_accept_order;
        state.decisions = row.decisions;
        let mut found = self.candidates_of(contest);
        found.sort_by_key(|write| (write.kept.created_at, write.candidate.id));
        let mut kept = HashMap::new();
        for write in found {
            kept.insert(write.candidate.id, write.kept.clone());
            state.candidates.push(write.candidate.clone());
        }
        let mut committed_at = 0;
        if let Some((resource, at)) = self.resources.get(&contest) {
            committed_at = *at;
            state.resource = Some(CurrentResource {
                revision: resource.revision,
                value: value(resource.value.as_deref(), "resources", contest)?,
            });
        }
        Ok(StoredContest {
            row,
            state,
            kept,
            committed_at,
        })
    }

    pub(super) fn candidates_of(&self, contest: ContestId) -> Vec<&CandidateWrite> {
        let ids = self.proposed.get(&contest);
        ids.into_iter()
            .flatten()
            .filter_map(|id| self.candidates.get(id))
            .collect()
    }

    /// The ballots of a feedback, in the order of their contests' ids.
    pub(super) fn ballots_of(&self, feedback: FeedbackId) -> impl Iterator<Item = &NewBallot> {
        let first = (feedback, ContestId(uuid::Uuid::nil()));
        let last = (feedback, ContestId(uuid::Uuid::max()));
        self.ballots.range(first..=last).map(|(_, new)| new)
    }

    pub(super) fn newest_ballots(&self, contest: ContestId, limit: u32) -> Vec<Ballot> {
        let counting = self
            .ballots
            .values()
            .filter(|new| new.contest == contest && !new.retracted);
        let mut ballots: Vec<&Ballot> = counting.map(|new| &new.ballot).collect();
        ballots.sort_by_key(|ballot| (std::cmp::Reverse(ballot.accept_order), ballot.feedback_id));
        ballots.into_iter().take(limit as usize).cloned().collect()
    }

    pub(super) fn record(&self, write: &CandidateWrite) -> CandidateRecord {
        CandidateRecord {
            candidate: write.candidate.clone(),
            key: write.key.clone(),
            contest_pinned: self
                .contests
                .get(&write.key.contest_id())
                .is_some_and(|row| row.pinned),
            kept: write.kept.clone(),
        }
    }
}

impl ContestRow {
    /// A contest in which nothing was proposed yet.
    pub(super) fn first(key: &ResourceKey) -> Self {
        Self {
            key: key.clone(),
            pinned: false,
            highest_accept_order: AcceptOrder(0),
            policy_version: 0,
            pending: false,
            target: Target::at_first(key.kind),
            versions: Versions::default(),
            decisions: 0,
        }
    }

    pub(super) fn locked(&self, at: i64) -> Result<LockedContest> {
        Ok(LockedContest {
            key: self.key.clone(),
            pinned: self.pinned,
            highest_accept_order: self.highest_accept_order,
            policy_version: self.policy_version,
            pending: self.pending,
            target: self.target,
            versions: self.versions,
            decisions: self.decisions,
            locked_at: timestamp(at)?,
            is_stored: true,
        })
    }
}

pub(super) fn logged(change: &ChangeWrite, revision: &RevisionWrite, committed_at: i64) -> LoggedChange {
    let trigger = change.trigger.as_ref();
    LoggedChange {
        revision: change.revision.0,
        committed_at,
        cause: revision.cause.number(),
        namespace: change.key.namespace.as_str().to_owned(),
        kind: change.key.kind.number(),
        key: change.key.key.as_str().to_owned(),
        qualifier: change.key.qualifier.as_str().to_owned(),
        user_id: change.key.user_id().to_owned(),
        value: change.value.clone(),
        checksum: change.value.as_deref().map_or(0, value_checksum),
        feedback_received_at: trigger.map_or(0, |trigger| trigger.received_at.as_microsecond()),
        traceparent: trigger
            .map(|trigger| trigger.traceparent.clone())
            .unwrap_or_default(),
    }
}

/// Decodes the value in a column.
pub(super) fn value(bytes: Option<&[u8]>, table: &'static str, contest: ContestId) -> Result<ResourceValue> {
    emend_wire::value::decode(bytes.unwrap_or_default())
        .map_err(|error| CorruptRow::new(table, "value", contest, error).into())
}

/// The same of a column in which nothing may be left of a value but that it was there.
pub(super) fn kept_value(
    bytes: Option<&[u8]>,
    table: &'static str,
    contest: ContestId,
) -> Result<Option<ResourceValue>> {
    let kept = bytes.filter(|bytes| !bytes.is_empty());
    kept.map(|bytes| value(Some(bytes), table, contest)).transpose()
}

pub(super) fn timestamp(micros: i64) -> Result<Timestamp> {
    Timestamp::from_microsecond(micros).map_err(|error| CorruptRow::new("clock", "now", micros, error).into())
}
