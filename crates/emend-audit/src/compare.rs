//! Compares one feedback as feedback-svc stored it with what learning-svc applied of it.
//!
//! Each comparison checks only one direction, since the two were read at different moments.

use emend_core::{Proposal, Scope, correction::scope_user};
use emend_store::audit::Findings;
use feedback_store::audit::{Delivery, Entry as Stored};
use learning_store::audit::{CastBallot, CastRating, Entry as Taken, is_imported};

use crate::{
    BALLOT_DIFFERS, BALLOT_MISSING, INBOX_FEEDBACK, INBOX_MISSING, INBOX_SURPLUS, OUTCOME_DIFFERS,
    RETRACTION_DIFFERS,
};

/// Event numbers: the first records that feedback was stored, the second that it was retracted.
const RECORDED: i64 = 1;
const RETRACTED: i64 = 2;

/// Finds what was delivered at an earlier moment but is missing. `taken` is from a later moment.
pub(crate) fn lost(stored: &Stored, taken: Option<&Taken>, findings: &mut Findings) {
    if !stored.teaches() && taken.is_none() {
        return;
    }
    let id = format!("feedback {}", stored.id());
    let delivered = delivered(stored);
    let applied = taken.map_or(0, |taken| applied(stored, taken));
    if applied < delivered {
        findings.add(
            INBOX_MISSING,
            &id,
            format_args!("{delivered} of its events count as delivered, but {applied} were applied"),
        );
    }
    // With an erased user goes what was learned for that user alone.
    let erased = stored.scope() == Scope::User && taken.is_some_and(|taken| taken.redaction.is_some());
    let effects = effects(stored).map_or(0, |effects| effects.len());
    let cast = taken.map_or(0, |taken| {
        taken.ballots.len() + usize::from(taken.rating.is_some()) + taken.refused()
    });
    if stored.is_delivered(RECORDED) && !erased && cast < effects {
        findings.add(
            BALLOT_MISSING,
            &id,
            format_args!("it was delivered and has {effects} effects, but cast {cast} ballots"),
        );
    }
    let marked = taken.is_some_and(|taken| taken.retraction.is_some());
    if stored.is_retracted() && stored.is_delivered(RETRACTED) && !marked {
        findings.add(
            RETRACTION_DIFFERS,
            &id,
            "its retraction was delivered, but it is not marked as retracted",
        );
    }
    if let Some(Ok(outcome)) = stored.outcome() {
        let given = taken.is_some_and(|taken| taken.events.iter().any(|event| event.outcome == outcome));
        if !given {
            findings.add(
                OUTCOME_DIFFERS,
                &id,
                "learning-svc returned this outcome for none of its events",
            );
        }
    } else if stored.delivery() == Delivery::Delivered {
        findings.add(OUTCOME_DIFFERS, &id, "it was delivered, but has no outcome");
    }
}

/// How many of its events have left the outbox.
fn delivered(stored: &Stored) -> i64 {
    let waiting = i64::try_from(stored.outbox().len()).unwrap_or(i64::MAX);
    stored.events().saturating_sub(waiting)
}

/// How many of its events were applied. Events still in the outbox are not counted: they may have been applied and the
/// answer lost.
fn applied(stored: &Stored, taken: &Taken) -> i64 {
    let waits = |event| stored.outbox().iter().any(|entry| entry.event() == event);
    let applied = taken.events.iter().filter(|event| !waits(event.id)).count();
    i64::try_from(applied).unwrap_or(i64::MAX)
}

/// Finds what was applied although nothing called for it, as of a later moment. `taken` is from an earlier moment.
pub(crate) fn made_up(stored: Option<&Stored>, taken: &Taken, findings: &mut Findings) {
    let id = format!("feedback {}", taken.feedback);
    let Some(stored) = stored else {
        if is_imported(taken) {
            return;
        }
        findings.add(
            INBOX_FEEDBACK,
            &id,
            "learning-svc applied it, but feedback-svc does not have it",
        );
        return;
    };
    let (delivered, applied) = (delivered(stored), applied(stored, taken));
    if applied > delivered {
        findings.add(
            INBOX_SURPLUS,
            &id,
            format_args!("{delivered} of its events were delivered, but {applied} were applied"),
        );
    }
    if taken.retraction.is_some() && !stored.is_retracted() {
        findings.add(
            RETRACTION_DIFFERS,
            &id,
            "it is marked as retracted, but nobody retracted it",
        );
    }
    if let Some(rating) = &taken.rating
        && let Some(difference) = rating_difference(stored, rating)
    {
        findings.add(
            BALLOT_DIFFERS,
            &id,
            format_args!("the {difference} of its rating differs from that of the feedback"),
        );
    }
    for ballot in &taken.ballots {
        if let Some(difference) = difference(stored, ballot) {
            findings.add(
                BALLOT_DIFFERS,
                &id,
                format_args!("the {difference} of its ballot differs from that of the feedback"),
            );
        }
    }
}

/// What the rules derive from a feedback. `None` where its scope does not fit its reporter.
fn effects(stored: &Stored) -> Option<Vec<Proposal>> {
    let scope = if stored.is_redacted() {
        Scope::Global
    } else {
        stored.scope()
    };
    let user = scope_user(scope, stored.reporter().id.as_ref()).ok()?;
    Some(stored.correction().effects(stored.namespace(), user.as_ref()))
}

/// The first property in which a rating differs from the feedback.
fn rating_difference(stored: &Stored, rating: &CastRating) -> Option<&'static str> {
    let effects = effects(stored).unwrap_or_default();
    let effect = effects
        .iter()
        .find(|effect| effect.key.contest_id() == rating.contest);
    let Some(said) = effect.and_then(|effect| effect.rating.as_ref()) else {
        return Some("contest");
    };
    let same = [
        ("accept order", rating.accept_order == stored.accept_order()),
        ("voter", rating.voter == stored.voter().0),
        ("class", rating.class == said.class),
    ];
    same.into_iter()
        .find_map(|(name, is_same)| (!is_same).then_some(name))
}

/// The first property in which a ballot differs from the one that the rules derive from its feedback.
fn difference(stored: &Stored, ballot: &CastBallot) -> Option<&'static str> {
    let Some(effects) = effects(stored) else {
        return Some("scope");
    };
    // Of whom a correction of scope USER was is erased with its reporter.
    let is_nameless = stored.is_redacted() && stored.scope() == Scope::User;
    let of_contest = effects
        .iter()
        .find(|effect| effect.key.contest_id() == ballot.contest);
    let Some(effect) = of_contest.or(effects.first().filter(|_| is_nameless)) else {
        return Some("contest");
    };
    let (voter, identified) = stored.voter();
    let cast = &ballot.ballot;
    let same = [
        (
            "candidate",
            is_nameless || Some(cast.candidate) == effect.candidate_of(cast.feedback_id),
        ),
        ("accept order", cast.accept_order == stored.accept_order()),
        ("voter", cast.voter == voter),
        ("kind of voter", cast.identified == identified),
        ("caller", cast.caller == *stored.caller()),
        ("time", cast.received_at == stored.received_at()),
        (
            "system choice",
            ballot.system_choice == effect.system_choice.as_deref().unwrap_or_default(),
        ),
        ("trace context", ballot.traceparent == stored.traceparent()),
    ];
    same.into_iter().find(|(_, same)| !same).map(|(what, _)| what)
}
