//! Events in the form that learning-svc ingests: made here from what is to be stored, completed with what the database
//! assigned.

use bytes::Bytes;
use emend_core::{Caller, Correction, EventId, FeedbackId, Namespace, Reporter, ReporterId, voter::VoterKey};
use emend_proto::learning::v1::{
    CorrectionMined, ErasedVoter, Event, FeedbackRecorded, FeedbackRedacted, FeedbackRetracted,
    QueryUnanswered, ReporterRedacted, Respelling, event,
};
use emend_wire::render;
use prost::Message as _;

use crate::records::{
    erasure::Redaction,
    feedback::{Accepted, Submission},
    mining::{Seen, Unanswered},
};

/// An event ready to be stored, still without what the database assigns: its accept order and its time.
#[derive(Debug, Clone)]
pub struct NewEvent {
    /// Its id.
    pub id: EventId,
    /// As it will be sent.
    pub message: Event,
    /// `message`, encoded.
    pub payload: Bytes,
}

/// The event that a feedback was stored. `submission` is already masked. `sender_roles` are those that the caller has.
pub fn recorded(
    id: EventId,
    feedback_id: FeedbackId,
    caller: &Caller,
    sender_roles: Vec<String>,
    traceparent: &str,
    submission: &Submission,
    redaction: Option<&Redaction>,
) -> NewEvent {
    let recorded = FeedbackRecorded {
        reporter: Some(render::reporter(&submission.reporter)),
        caller: caller.to_string(),
        query_id: submission.query_id.clone(),
        reason: submission.reason.clone(),
        context: submission.context.clone().into_iter().collect(),
        scope: render::scope(submission.scope) as i32,
        correction: Some(render::correction(&submission.correction)),
        received_at: None,
        erased_voter: redaction.map(|redaction| erased_voter(redaction.voter, redaction.identified)),
        sender_roles,
    };
    new(
        id,
        feedback_id,
        &submission.namespace,
        traceparent,
        event::Event::Recorded(recorded),
    )
}

/// The event that a feedback was retracted. `reason` is already masked.
pub fn retracted(
    id: EventId,
    feedback_id: FeedbackId,
    namespace: &Namespace,
    caller: &Caller,
    sender_roles: Vec<String>,
    traceparent: &str,
    reason: &str,
) -> NewEvent {
    let retracted = FeedbackRetracted {
        caller: caller.to_string(),
        reason: reason.to_owned(),
        retracted_at: None,
        sender_roles,
    };
    new(
        id,
        feedback_id,
        namespace,
        traceparent,
        event::Event::Retracted(retracted),
    )
}

/// The event that the personal parts of a feedback are erased.
pub fn redacted(
    id: EventId,
    feedback_id: FeedbackId,
    namespace: &Namespace,
    caller: &Caller,
    traceparent: &str,
) -> NewEvent {
    let redacted = FeedbackRedacted {
        caller: caller.to_string(),
        redacted_at: None,
    };
    new(
        id,
        feedback_id,
        namespace,
        traceparent,
        event::Event::Redacted(redacted),
    )
}

/// The event that everything learned for a reporter alone is to be erased.
pub fn reporter_redacted(
    id: EventId,
    namespace: &Namespace,
    caller: &Caller,
    traceparent: &str,
    reporter: &ReporterId,
) -> NewEvent {
    let redacted = ReporterRedacted {
        caller: caller.to_string(),
        reporter_id: reporter.to_string(),
        redacted_at: None,
    };
    of_no_feedback(
        id,
        namespace,
        traceparent,
        event::Event::ReporterRedacted(redacted),
    )
}

/// The event that what users did proposes a correction.
pub fn mined(id: EventId, namespace: &Namespace, correction: &Correction, seen: Seen) -> NewEvent {
    let (sessions, respelling) = match seen {
        Seen::Reworded(sessions) => (sessions, None),
        Seen::Respelled {
            queries,
            sessions,
            clicks,
            clicked,
        } => {
            let respelling = Respelling {
                query_count: count(queries),
                click_count: count(clicks),
                clicked_session_count: count(clicked),
            };
            (sessions, Some(respelling))
        }
    };
    let mined = CorrectionMined {
        correction: Some(render::correction(correction)),
        session_count: count(sessions),
        respelling,
    };
    of_no_feedback(id, namespace, "", event::Event::Mined(mined))
}

/// The event that a query found nothing again and again.
pub fn unanswered(id: EventId, namespace: &Namespace, query: &Unanswered) -> NewEvent {
    let unanswered = QueryUnanswered {
        query_text: query.text.clone(),
        query_count: count(query.queries),
        session_count: count(query.sessions),
        click_count: count(query.clicks),
    };
    of_no_feedback(id, namespace, "", event::Event::Unanswered(unanswered))
}

fn count(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn of_no_feedback(id: EventId, namespace: &Namespace, traceparent: &str, event: event::Event) -> NewEvent {
    let mut event = new(id, FeedbackId::none(), namespace, traceparent, event);
    event.message.feedback_id.clear();
    event.payload = Bytes::from(event.message.encode_to_vec());
    event
}

/// The event without anything personal; the vote counts under the voter's pseudonym.
pub fn without_personal_parts(mut message: Event, voter: VoterKey, identified: bool) -> Event {
    match &mut message.event {
        Some(event::Event::Recorded(recorded)) => {
            recorded.reporter = Some(render::reporter(&Reporter::default()));
            recorded.query_id.clear();
            recorded.reason.clear();
            recorded.context.clear();
            if let Some(correction) = &mut recorded.correction {
                render::erase_texts(correction);
            }
            recorded.erased_voter = Some(erased_voter(voter, identified));
        }
        Some(event::Event::Retracted(retracted)) => retracted.reason.clear(),
        _ => {}
    }
    message
}

/// The event of a retraction without its reason.
pub fn without_reason(event: &NewEvent) -> NewEvent {
    let mut message = event.message.clone();
    if let Some(event::Event::Retracted(retracted)) = &mut message.event {
        retracted.reason.clear();
    }
    NewEvent {
        id: event.id,
        payload: Bytes::from(message.encode_to_vec()),
        message,
    }
}

fn erased_voter(voter: VoterKey, identified: bool) -> ErasedVoter {
    ErasedVoter {
        key: voter.0.to_string(),
        identified,
    }
}

fn new(
    id: EventId,
    feedback_id: FeedbackId,
    namespace: &Namespace,
    traceparent: &str,
    event: event::Event,
) -> NewEvent {
    let message = Event {
        event_id: id.to_string(),
        feedback_id: feedback_id.to_string(),
        namespace: namespace.to_string(),
        accept_order: 0,
        traceparent: traceparent.to_owned(),
        event: Some(event),
    };
    let payload = Bytes::from(message.encode_to_vec());
    NewEvent { id, message, payload }
}

/// The event completed with what the database assigned.
pub fn complete(mut message: Event, accepted: Accepted) -> Event {
    message.accept_order = accepted.order.0;
    let at = Some(render::timestamp(accepted.at));
    match &mut message.event {
        Some(event::Event::Recorded(recorded)) => recorded.received_at = at,
        Some(event::Event::Retracted(retracted)) => retracted.retracted_at = at,
        Some(event::Event::Redacted(redacted)) => redacted.redacted_at = at,
        Some(event::Event::ReporterRedacted(redacted)) => redacted.redacted_at = at,
        Some(event::Event::Mined(_) | event::Event::Unanswered(_)) | None => {}
    }
    message
}
