//! What a decision means for the evidence graph: what is written into it, and the event that is kept of it.

use emend_core::{
    ContestState, Decision, Event, Kind, Learned, Namespace, ResourceValue, Revision, kinds::ClaimState,
};
use jiff::Timestamp;
use learning_store::evidence::{EventWrite, EvidenceAction, RulingWrite};

use crate::decisions::open::Attribution;

/// Whether decisions of a kind are about evidence.
pub(crate) fn is_about_evidence(kind: Kind) -> bool {
    matches!(kind, Kind::DomainRule | Kind::ClaimState | Kind::EdgeLabel)
}

/// The pattern whose rule changed, if the contest is about one.
pub(crate) fn changed_rules(state: &ContestState) -> Option<(Namespace, String)> {
    let key = &state.key;
    (key.kind == Kind::DomainRule).then(|| (key.namespace.clone(), key.key.as_str().to_owned()))
}

/// What people say of a claim or edge now, if the contest is about one.
pub(crate) fn ruling(state: &ContestState) -> Option<RulingWrite> {
    if !matches!(state.key.kind, Kind::ClaimState | Kind::EdgeLabel) {
        return None;
    }
    let ruled = match state.resource.as_ref().map(|resource| &resource.value.learned) {
        Some(Learned::ClaimState(claim)) => match claim {
            Some(ClaimState::Rejected(_)) => 1,
            Some(ClaimState::Restored) => 2,
            None => 0,
        },
        Some(Learned::EdgeLabel(label)) => label.map_or(0, |label| label.relation().number()),
        _ => 0,
    };
    let in_force = state.applied().filter(|_| ruled != 0);
    Some(RulingWrite {
        key: state.key.clone(),
        ruled,
        accept_order: in_force
            .and_then(|candidate| candidate.ruling.as_ref())
            .map(|ruling| ruling.accept_order)
            .unwrap_or_default(),
        candidate: in_force.map(|candidate| candidate.id),
    })
}

/// The event that is kept of a decision about evidence; none of what nobody did.
pub(crate) fn event(
    event: &Event,
    decision: &Decision,
    before: Option<&ResourceValue>,
    attribution: &Attribution,
    revision: Revision,
    at: Timestamp,
) -> Option<EventWrite> {
    let (action, proposed) = match event {
        Event::Recorded { value, .. } => (EvidenceAction::Corrected, Some(value)),
        Event::Retracted { .. } => (EvidenceAction::Retracted, None),
        Event::Approve { edited, .. } => (EvidenceAction::Approved, edited.as_ref()),
        Event::Reject { .. } => (EvidenceAction::Rejected, None),
        Event::Undo { .. } => (EvidenceAction::Undone, None),
        Event::Put { value, .. } => (EvidenceAction::Set, Some(value)),
        Event::Delete { .. } => (EvidenceAction::Set, None),
        Event::Revert { .. } => (EvidenceAction::Reverted, None),
        Event::TargetArrived => (EvidenceAction::Arrived, None),
        Event::TargetGone => (EvidenceAction::Deleted, None),
        Event::Rated { .. }
        | Event::RatingExcluded { .. }
        | Event::PolicyChanged
        | Event::Proposed { .. }
        | Event::Mined { .. }
        | Event::MakeCurrent { .. }
        | Event::Erase => return None,
    };
    let subject = decision.subject.and_then(|id| decision.after.candidate(id));
    if matches!(event, Event::Approve { .. }) && subject.is_some_and(emend_core::Candidate::awaits_second) {
        // Nothing is decided until another reviewer approves it too.
        return None;
    }
    if matches!(event, Event::TargetGone) && before.is_none() {
        // That it was deleted is an event of its own.
        return None;
    }
    let correction = match event {
        Event::Retracted { ballot, .. } => Some(ballot.candidate),
        Event::Approve { candidate, .. } | Event::Reject { candidate, .. } => Some(*candidate),
        Event::Undo { decision } => Some(decision.candidate),
        Event::TargetArrived => decision.after.applied().map(|candidate| candidate.id),
        _ => None,
    };
    let after = decision.after.resource.as_ref().map(|resource| &resource.value);
    let word = |value: Option<&ResourceValue>| {
        value.map_or_else(String::new, |value| value.learned.maps_to().to_owned())
    };
    Some(EventWrite {
        action,
        key: decision.after.key.clone(),
        task: attribution.task.clone().unwrap_or_default(),
        correction,
        actor: attribution.actor.clone(),
        reason: attribution.reason.clone(),
        before: word(before),
        after: word(after),
        proposed: word(proposed),
        feedback: attribution.trigger.as_ref().map(|trigger| trigger.feedback),
        candidate: decision.subject.or(correction),
        revision,
        at,
    })
}
