//! What must hold once the faults have stopped: nothing acknowledged was lost or counted twice, the log and its results
//! agree, and everything reaches the newest state.

use std::{collections::BTreeMap, sync::Arc};

use emend_core::{
    Ballot, CandidateId, ContestId, FeedbackId, Policy, ballots::Tally, correction::scope_user,
};
use emend_store::simulation::NoInterference;
use feedback_svc::simulation::StoredFeedback;
use learning_store::memory::MemoryStore;
use learning_svc::consistency::inconsistencies;

use crate::{
    node::Node,
    people::Acknowledged,
    world::{World, lock},
};

/// What has not arrived yet; `None` if everything has.
pub(crate) fn unfinished(world: &World, nodes: &[Arc<Node>]) -> Option<String> {
    let undelivered = world.feedback_database.undelivered();
    if undelivered.iter().any(|(_, dead)| !dead) {
        return Some(format!("{} events are not delivered", undelivered.len()));
    }
    nodes.iter().find_map(|node| node.behind())
}

/// Checks everything stored.
pub(crate) async fn ledger(world: &World, acknowledged: &Acknowledged) {
    for violation in world.feedback_database.violations() {
        world.violation(violation);
    }
    let kept = world.feedback_database.feedback();
    stored(world, acknowledged, &kept);
    let store = world.learning_database.connect(Arc::new(NoInterference));
    match inconsistencies(&store).await {
        Ok(found) => found.into_iter().for_each(|found| world.violation(found)),
        Err(error) => world.violation(format!("the audit fails: {error}")),
    }
    for (event, dead) in world.feedback_database.undelivered() {
        if dead {
            world.violation(format!("event {event} is a dead letter"));
        }
    }
    // Events that were applied and then lost with the database's tail are not sent again.
    if !world.lost_its_tail() {
        applied_once(world, &store, &kept);
        votes(world, &store, &kept);
    }
}

/// Checks that what was acknowledged is stored once.
fn stored(world: &World, acknowledged: &Acknowledged, kept: &[StoredFeedback]) {
    let mut of_request: BTreeMap<String, FeedbackId> = BTreeMap::new();
    for kept in kept {
        if let Some(request) = &kept.request_id
            && of_request.insert(request.as_str().to_owned(), kept.id).is_some()
        {
            world.violation(format!("request {request} is stored twice"));
        }
        if !kept.delivered || kept.outcome.is_none() {
            world.violation(format!("feedback {} has no outcome", kept.id));
        }
    }
    for (request, feedback) in &*lock(&acknowledged.stored) {
        let stored = of_request.get(request).map(ToString::to_string);
        if stored.as_ref() != Some(feedback) {
            world.violation(format!(
                "request {request} was acknowledged as {feedback}, stored is {stored:?}"
            ));
        }
    }
    for feedback in &*lock(&acknowledged.retracted) {
        let retracted = kept.iter().find(|kept| kept.id.to_string() == *feedback);
        if retracted.is_none_or(|kept| !kept.retracted) {
            world.violation(format!(
                "feedback {feedback} was acknowledged as retracted and is not"
            ));
        }
    }
}

/// Checks that every event was applied exactly once: the inbox has an entry for each, and there is a ballot for each
/// piece of feedback.
fn applied_once(world: &World, store: &MemoryStore, kept: &[StoredFeedback]) {
    let events = kept.len() + kept.iter().filter(|kept| kept.retracted).count();
    let applied = store.applied_events();
    if applied != events {
        world.violation(format!("{events} events were sent, {applied} applied"));
    }
    let mut cast: BTreeMap<(FeedbackId, ContestId), (Ballot, bool)> = store
        .cast()
        .into_iter()
        .map(|new| ((new.ballot.feedback_id, new.contest), (new.ballot, new.retracted)))
        .collect();
    for kept in kept {
        for (contest, ballot) in ballots(kept) {
            match cast.remove(&(kept.id, contest)) {
                Some((found, retracted)) if found == ballot && retracted == kept.retracted => {}
                found => world.violation(format!("the ballot of {kept:?} in {contest} is {found:?}")),
            }
        }
    }
    if !cast.is_empty() {
        world.violation(format!("ballots of nobody's feedback: {cast:?}"));
    }
}

/// The ballots that a piece of feedback casts, and their contests.
fn ballots(kept: &StoredFeedback) -> impl Iterator<Item = (ContestId, Ballot)> {
    let user = scope_user(kept.scope, kept.reporter.id.as_ref()).expect("it was accepted");
    let effects = kept.correction.effects(&kept.namespace, user.as_ref());
    let voter = kept.reporter.voter(&kept.caller);
    effects.into_iter().map(move |effect| {
        let contest = effect.key.contest_id();
        let ballot = Ballot {
            feedback_id: kept.id,
            accept_order: kept.accept_order,
            voter: voter.key(&kept.namespace),
            identified: voter.is_identified(),
            caller: kept.caller.clone(),
            candidate: effect.value.candidate_id(contest),
            received_at: kept.received_at,
        };
        (contest, ballot)
    })
}

/// Checks that the feedback, recounted by the rules alone and in any order, gives the candidates' figures.
fn votes(world: &World, store: &MemoryStore, kept: &[StoredFeedback]) {
    let mut contests: BTreeMap<ContestId, Vec<Ballot>> = BTreeMap::new();
    for kept in kept.iter().filter(|kept| !kept.retracted) {
        for (contest, ballot) in ballots(kept) {
            contests.entry(contest).or_default().push(ballot);
        }
    }
    let mut proposed: BTreeMap<ContestId, Vec<emend_core::Candidate>> = BTreeMap::new();
    let mut policies: BTreeMap<ContestId, Policy> = BTreeMap::new();
    for write in store.proposed() {
        let contest = write.key.contest_id();
        policies
            .entry(contest)
            .or_insert_with(|| Policy::default_for(write.key.kind));
        proposed.entry(contest).or_default().push(write.candidate);
    }
    for (contest, candidates) in &proposed {
        let ballots = contests.remove(contest).unwrap_or_default();
        let tally = Tally::count(&ballots, &policies[contest], jiff::Timestamp::UNIX_EPOCH);
        let standings = tally.standings(candidates);
        for candidate in candidates {
            let occurrences = ballots
                .iter()
                .filter(|ballot| ballot.candidate == candidate.id)
                .count() as u64;
            let counted = (
                occurrences,
                tally.of(candidate.id).voters,
                standings.net(candidate.id),
            );
            let stored = (candidate.occurrences, candidate.reporters, candidate.net);
            if counted != stored {
                world.violation(format!(
                    "candidate {}: occurrences, reporters and net are {stored:?}, should be {counted:?}",
                    candidate.id
                ));
            }
        }
    }
    let unknown: Vec<&CandidateId> = contests
        .values()
        .flatten()
        .map(|ballot| &ballot.candidate)
        .collect();
    if !unknown.is_empty() {
        world.violation(format!("nobody counted the ballots for {unknown:?}"));
    }
}
