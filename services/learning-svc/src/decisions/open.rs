//! A unit of work: contests that are locked, decided in memory one event after another, and written in one go.
//!
//! Revisions get their numbers last, under the head's lock ([`numbering`](crate::decisions::numbering)).

mod reading;
mod working;
mod writing;

use std::{
    collections::{BTreeMap, HashMap, HashSet, btree_map::Entry},
    sync::Arc,
};

use emend_core::{
    AcceptOrder, Caller, CandidateId, ContestId, ContestState, Event, EventId, FeedbackId, Kind, OperationId,
    Outcome, Policy, Refusal, ResourceChange, ResourceKey, ResourceValue, Revision, contest::MAX_CANDIDATES,
    decide, decide::Cause, policy::MAX_SCOPES,
};
use emend_proto::common::v1 as pb;
use emend_store::StoreError;
use emend_wire::value;
use jiff::Timestamp;
use learning_store::{
    UnitOfWork,
    actor::Actor,
    contests::{CandidateRecord, StoredContest, TransitionWrite, UndoableRecord, VoteWrites},
    evidence::EventWrite,
    ingest::Marks,
    log::{ChangeWrite, Trigger},
    policies::PolicyKey,
};

pub use self::reading::RatingsAhead;
use self::working::Working;
use crate::{
    decisions::{
        ballot_cache::{BallotCache, Fingerprint, MIN_BALLOTS},
        evidence,
        numbering::{NewRevisions, Numbers, RevisionChoice},
    },
    failure::{Failure, refused, subject},
};

/// Ballots read per contest beyond those that count, so that some can be retracted before more must be read.
const SPARE: u32 = 1_000;

/// Who acts, and why.
#[derive(Debug, Clone)]
pub struct Attribution {
    /// The actor.
    pub actor: Actor,
    /// The reason given; may be empty.
    pub reason: String,
    /// The import or bulk action this is part of.
    pub operation: Option<OperationId>,
    /// The feedback that caused it, if any.
    pub trigger: Option<Trigger>,
    /// The research task in which it was said, if any.
    pub task: Option<String>,
}

impl Attribution {
    /// Somebody acts by itself: no feedback caused it, and it is part of nothing larger.
    pub fn by(actor: Actor, reason: impl Into<String>) -> Self {
        Self {
            actor,
            reason: reason.into(),
            operation: None,
            trigger: None,
            task: None,
        }
    }

    /// The system acts by itself.
    pub fn system() -> Self {
        Self::by(Actor::caller(Caller::system()), "")
    }
}

/// The result of deciding one event.
#[derive(Debug)]
pub struct Decided {
    /// The outcome for the reporter; its revision is provisional if one is being written.
    pub outcome: Option<Outcome>,
    /// The provisional revision being written; 0 where no resource changes.
    pub revision: Revision,
    /// The candidate that was proposed, applied or rejected, if it is a single one.
    pub subject: Option<CandidateId>,
}

/// What was written.
#[derive(Debug)]
pub struct Written {
    /// The numbers of the revisions written.
    pub revisions: Numbers,
    /// The outcome of each answered event, in the order of [`OpenContests::answer`].
    pub outcomes: Vec<pb::Outcome>,
    /// What was applied, by kind and cause.
    pub promoted: Vec<(Kind, Cause)>,
    /// Whether the status of any candidate changed.
    pub moved: bool,
    /// Whether something follows for the evidence graph that is computed later.
    pub evidence: bool,
}

/// The contests of one unit of work. On drop, the ballots of contests on which nothing was decided, because the request
/// was refused or failed, go back to the cache.
pub struct OpenContests {
    cache: Arc<BallotCache>,
    now: Timestamp,
    contests: BTreeMap<ContestId, Working>,
    policies: HashMap<PolicyKey, Policy>,
    counts: HashMap<PolicyKey, u64>,
    /// How many scopes hold resources; read only if one of its own scopes holds none.
    scopes: u64,
    /// Further writes that go with the decisions and name no revision.
    pub votes: VoteWrites,
    /// Marks that go with them.
    pub marks: Marks,
    revisions: NewRevisions,
    transitions: Vec<(ContestId, TransitionWrite)>,
    answers: Vec<(EventId, FeedbackId, pb::Outcome)>,
    evidence_events: Vec<EventWrite>,
    promoted: Vec<(Kind, Cause)>,
    undoable: Vec<UndoableRecord>,
}

impl OpenContests {
    /// Locks the contests of `keys`, which may come in any order and repeat, and those that count their versions, and reads
    /// them, except for ballots that `cache` holds. `leaving` is how many ballots of one contest may leave it, at most 1,000, so
    /// that as many older ones can take their place; `ratings` what the events ahead say of ratings.
    pub(super) async fn open(
        tx: &mut dyn UnitOfWork,
        cache: &Arc<BallotCache>,
        now: Timestamp,
        keys: impl IntoIterator<Item = ResourceKey>,
        leaving: u32,
        ratings: RatingsAhead,
    ) -> Result<Self, Failure> {
        let mut named = BTreeMap::new();
        name(&mut named, keys.into_iter().map(|key| (key.contest_id(), key)))?;
        let numbering: Vec<ResourceKey> = named.values().filter_map(ResourceKey::numbered_with).collect();
        name(
            &mut named,
            numbering.into_iter().map(|key| (key.contest_id(), key)),
        )?;
        let keys: Vec<&ResourceKey> = named.values().collect();
        let mut scopes: Vec<PolicyKey> = keys.iter().map(|key| PolicyKey::of(key)).collect();
        scopes.sort_unstable();
        scopes.dedup();
        let policies = tx.policies().in_force(&scopes).await?;
        tx.contests().create(&keys, now).await?;
        let locked = tx.contests().lock(&keys).await?;
        for (key, locked) in keys.iter().zip(&locked) {
            is_of(&locked.key, key)?;
        }
        let contests = tx.contests().load(locked).await?;
        // Where every contest has a resource, none comes into being for which there would have to be room.
        let needs_room = contests.iter().any(|contest| contest.state.resource.is_none());
        let counts = if needs_room {
            tx.resources().counts(&scopes).await?
        } else {
            HashMap::new()
        };
        let is_new = counts.values().any(|count| *count == 0);
        let scopes = if is_new {
            tx.resources().scopes_in_use().await?
        } else {
            0
        };
        let contests = contests.into_iter().map(|before| {
            let working = Working {
                // Ballots are read into this copy only: changes are detected by comparing figures, not ballots.
                state: before.state.clone(),
                kept: before.kept.clone(),
                policy_version: before.row.policy_version,
                found_ratings: HashMap::new(),
                found_outputs: HashMap::new(),
                decided: false,
                resource_changed: false,
                voted_for: HashSet::new(),
                before,
            };
            (working.state.id(), working)
        });
        let mut unit = Self {
            cache: Arc::clone(cache),
            now,
            contests: contests.collect(),
            policies,
            counts,
            scopes,
            votes: VoteWrites::default(),
            marks: Marks::default(),
            revisions: NewRevisions::default(),
            transitions: Vec::new(),
            answers: Vec::new(),
            evidence_events: Vec::new(),
            promoted: Vec::new(),
            undoable: Vec::new(),
        };
        unit.read_targets(tx).await?;
        unit.read_ballots(tx, leaving).await?;
        unit.read_windows(tx, ratings).await?;
        Ok(unit)
    }

    /// A contest in its current state, after all decisions so far.
    pub fn state(&self, contest: ContestId) -> Option<&ContestState> {
        self.contests.get(&contest).map(|working| &working.state)
    }

    /// A contest as found, without its ballots.
    pub fn found(&self, contest: ContestId) -> Option<&StoredContest> {
        self.contests.get(&contest).map(|working| &working.before)
    }

    /// The resources of a kind that come into being, and those that are deleted (false).
    pub fn moved(&self, kind: Kind) -> impl Iterator<Item = (&ResourceKey, bool)> {
        let changed = self.contests.values().filter(move |working| {
            let is_there = working.state.resource.is_some();
            working.state.key.kind == kind && working.before.state.resource.is_some() != is_there
        });
        changed.map(|working| (&working.state.key, working.state.resource.is_some()))
    }

    /// The policy that applies to a key.
    pub fn policy(&self, key: &ResourceKey) -> Policy {
        self.policies
            .get(&PolicyKey::of(key))
            .cloned()
            .unwrap_or_else(|| Policy::default_for(key.kind))
    }

    /// From now on decides by this policy, for a trial that is not committed. Ballots are counted as far as they were read.
    pub(crate) fn try_policy(&mut self, key: &PolicyKey, policy: Policy) {
        self.policies.insert(key.clone(), policy);
    }

    /// Checks that a value is no larger than the key's policy allows; the error is the bound in bytes.
    pub fn check_size(&self, key: &ResourceKey, value: &ResourceValue) -> Result<(), u32> {
        let limit = self.policy(key).max_value_bytes;
        if value::encode(value).len() > limit as usize {
            return Err(limit);
        }
        Ok(())
    }

    /// Whether a correction may be this candidate: it is one already, or the contest has room for another.
    pub fn check_candidates(&self, contest: ContestId, candidate: CandidateId) -> bool {
        self.contests.get(&contest).is_none_or(|Working { state, .. }| {
            // Of rulings only those count that wait.
            let waits = |candidate: &&emend_core::Candidate| {
                candidate.ruling.is_none() || candidate.status == emend_core::Status::AwaitingReview
            };
            state.candidates.iter().filter(waits).count() < MAX_CANDIDATES
                || state.candidate(candidate).is_some()
        })
    }

    /// The accept order for what a person does to a contest now: newer than everything the contest has seen.
    pub fn next_accept_order(&self, contest: ContestId) -> AcceptOrder {
        self.contests
            .get(&contest)
            .map_or(AcceptOrder::default(), |working| {
                let newest = working.state.highest_accept_order.0;
                AcceptOrder(working.before.row.locked_at.as_microsecond().max(newest + 1))
            })
    }

    /// Records that a contest has seen this accept order, whatever the event did.
    pub fn note_accept_order(&mut self, contest: ContestId, order: AcceptOrder) {
        if let Some(working) = self.contests.get_mut(&contest)
            && working.state.highest_accept_order < order
        {
            working.state.highest_accept_order = order;
        }
    }

    /// The contest that counts the versions of this one, if it is another, and the last number that it gave.
    fn numbering(&self, contest: ContestId) -> Option<(ContestId, u32)> {
        let working = self.contests.get(&contest)?;
        let counting = working.state.key.numbered_with()?.contest_id();
        let last = self.contests.get(&counting)?.state.versions.last;
        Some((counting, last))
    }

    /// Decides an event. If refused, nothing changes.
    pub fn decide(
        &mut self,
        contest: ContestId,
        event: &Event,
        attribution: &Attribution,
        choice: RevisionChoice,
    ) -> Result<Decided, Refusal> {
        let person = event.is_by_person();
        let order = self.next_accept_order(contest);
        let numbered = self.numbering(contest);
        let Some(working) = self.contests.get_mut(&contest) else {
            return Err(Refusal::UnknownCandidate);
        };
        let scope = PolicyKey::of(&working.state.key);
        let default = Policy::default_for(scope.kind);
        let policy = self.policies.get(&scope).unwrap_or(&default);
        let count = self.counts.entry(scope).or_default();
        working.state.next_order = order;
        if let Some((_, last)) = numbered {
            working.state.versions.last = last;
        }
        working.state.full = *count >= policy.max_resources || (*count == 0 && self.scopes >= MAX_SCOPES);

        let placeholder = ContestState::new(working.state.key.clone());
        let state = std::mem::replace(&mut working.state, placeholder);
        let mut decision = match decide(state, event, policy, self.now) {
            Ok(decision) => decision,
            Err(refused) => {
                working.state = refused.state;
                if numbered.is_some() {
                    working.state.versions.last = 0;
                }
                return Err(refused.refusal);
            }
        };
        let last = decision.after.versions.last;
        if numbered.is_some() {
            decision.after.versions.last = 0;
        }
        if let Event::Recorded { ballot, .. } | Event::Retracted { ballot, .. } = event {
            working.voted_for.insert(ballot.candidate);
        }
        let before = decision.after.resource.clone();
        let revision = decision
            .resource
            .is_some()
            .then(|| self.revisions.choose(choice, decision.cause, attribution));
        if let (Some(change), Some(revision)) = (&decision.resource, revision) {
            self.revisions.add(ChangeWrite {
                revision,
                ordinal: 0,
                key: decision.after.key.clone(),
                value: match change {
                    ResourceChange::Put { value, .. } => Some(value::encode(value)),
                    ResourceChange::Delete { .. } => None,
                },
                before: before.as_ref().map(|resource| value::encode(&resource.value)),
                candidate: change.candidate(),
                trigger: attribution.trigger.clone(),
                policy_version: if person { 0 } else { decision.policy_version },
            });
            working.resource_changed = true;
            if matches!(change, ResourceChange::Put { .. }) {
                self.promoted.push((decision.after.key.kind, decision.cause));
            }
        }
        if let Some(revision) = revision {
            decision.stamp(revision);
        }
        if let Some(outcome) = &mut decision.outcome {
            // If nothing was written, the revision whose value applies.
            let applies = decision.after.resource.as_ref().map(|resource| resource.revision);
            outcome.revision = revision.or(applies).unwrap_or_default();
        }
        match (before.is_some(), decision.after.resource.is_some()) {
            (false, true) => {
                self.scopes += u64::from(*count == 0);
                *count += 1;
            }
            (true, false) => {
                *count = count.saturating_sub(1);
                self.scopes = self.scopes.saturating_sub(u64::from(*count == 0));
            }
            _ => {}
        }
        if let Some(decision) = decision.undoable.take() {
            self.undoable.push(UndoableRecord {
                contest,
                decision,
                actor: attribution.actor.clone(),
                made_at: working.before.row.locked_at,
            });
        }
        let outcome = decision.outcome.take();
        let subject = decision.subject;
        if evidence::is_about_evidence(decision.after.key.kind) {
            let before = before.as_ref().map(|resource| &resource.value);
            let write = evidence::event(
                event,
                &decision,
                before,
                attribution,
                revision.unwrap_or_default(),
                self.now,
            );
            self.evidence_events.extend(write);
        }
        let transitions = working.take(
            event,
            decision,
            attribution,
            revision.unwrap_or_default(),
            self.now,
        );
        self.transitions
            .extend(transitions.into_iter().map(|write| (contest, write)));
        if person {
            working.state.highest_accept_order = order;
        }
        if let Some(counting) = numbered.and_then(|(counting, _)| self.contests.get_mut(&counting)) {
            counting.state.versions.last = last;
        }
        Ok(Decided {
            outcome,
            revision: revision.unwrap_or_default(),
            subject,
        })
    }

    /// Lets the next `Shared` change begin another revision.
    pub fn end_shared_revision(&mut self) {
        self.revisions.end_shared();
    }

    /// Leaves out, before anything is written, those contests in which nothing was decided: a row that was created only to be
    /// locked goes again.
    pub async fn forget_untouched(&mut self, tx: &mut dyn UnitOfWork) -> Result<(), StoreError> {
        let untouched: Vec<ContestId> = self
            .contests
            .iter()
            .filter(|(_, working)| !working.is_touched())
            .map(|(contest, _)| *contest)
            .collect();
        tx.contests().forget_new(&untouched).await?;
        for contest in untouched {
            if let Some(working) = self.contests.remove(&contest) {
                self.keep_found(contest, working);
            }
        }
        Ok(())
    }

    /// Records the outcome of an event, to be stored with it. Returns its index in [`Written::outcomes`].
    pub fn answer(&mut self, event: EventId, feedback: FeedbackId, outcome: pb::Outcome) -> usize {
        self.answers.push((event, feedback, outcome));
        self.answers.len() - 1
    }

    /// Caches the ballots of contests with many votes for the next decision. Call it only after the commit.
    pub fn leave_ballots(&mut self) {
        for (contest, working) in &mut self.contests {
            let counted = self
                .policies
                .get(&PolicyKey::of(&working.state.key))
                .map_or(0, |policy| policy.votes.max_counted_feedback);
            let mut ballots = std::mem::take(&mut working.state.ballots);
            ballots.forget_beyond(counted.saturating_add(SPARE) as usize);
            if ballots.len() >= MIN_BALLOTS {
                let fingerprint = Fingerprint::of(&working.state, &working.kept);
                self.cache.keep(*contest, fingerprint, ballots);
            }
        }
    }

    /// Gives the ballots of a contest on which nothing was decided back to the cache.
    fn keep_found(&self, contest: ContestId, mut working: Working) {
        let ballots = std::mem::take(&mut working.state.ballots);
        if ballots.len() >= MIN_BALLOTS {
            self.cache.keep(contest, working.found_fingerprint(), ballots);
        }
    }

    /// A candidate as written.
    pub fn record(&self, contest: ContestId, candidate: emend_core::CandidateId) -> Option<CandidateRecord> {
        let working = self.contests.get(&contest)?;
        Some(CandidateRecord {
            candidate: working.state.candidate(candidate)?.clone(),
            key: working.state.key.clone(),
            contest_pinned: working.state.pinned,
            kept: working.kept.get(&candidate)?.clone(),
        })
    }
}

impl Drop for OpenContests {
    fn drop(&mut self) {
        for (contest, working) in std::mem::take(&mut self.contests) {
            // Decided but not committed, its ballots differ from the stored ones.
            if !working.decided {
                self.keep_found(contest, working);
            }
        }
    }
}

/// Adds keys by the ids of their contests, in whose order they are locked.
fn name(
    named: &mut BTreeMap<ContestId, ResourceKey>,
    keys: impl IntoIterator<Item = (ContestId, ResourceKey)>,
) -> Result<(), Failure> {
    for (id, key) in keys {
        match named.entry(id) {
            Entry::Occupied(known) => is_of(known.get(), &key)?,
            Entry::Vacant(new) => {
                new.insert(key);
            }
        }
    }
    Ok(())
}

/// Checks that the contest with the id of this key is the key's own: an id is a hash, of which two keys may have the same.
fn is_of(known: &ResourceKey, key: &ResourceKey) -> Result<(), Failure> {
    if known == key {
        Ok(())
    } else {
        Err(refused(&Refusal::SameId, &subject(key)).into())
    }
}

#[cfg(test)]
mod tests {
    use emend_base::Error;

    use super::*;

    #[test]
    fn two_keys_with_one_id_are_refused_for_good() {
        let key = |key| ResourceKey::parse("n", Some(Kind::InvocationPhrase), key, "", "").unwrap();
        let id = key("one").contest_id();
        let mut named = BTreeMap::new();
        name(&mut named, [(id, key("one")), (id, key("one"))]).unwrap();
        assert_eq!(named.len(), 1);
        let refused = name(&mut named, [(id, key("another"))]).unwrap_err();
        assert!(
            matches!(
                &refused,
                Failure::Refused(Error::FailedPrecondition {
                    reason: "SAME_ID",
                    ..
                })
            ),
            "{refused}"
        );
    }
}
