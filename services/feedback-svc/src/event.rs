//! Events in the form that learning-svc ingests: made here from what is to be stored, completed with what the database
//! assigned.
//!
//! It must know nothing of how they are delivered.

use bytes::Bytes;
use emend_core::{Caller, EventId, FeedbackId, Namespace};
use emend_proto::learning::v1::{Event, FeedbackRecorded, FeedbackRetracted, event};
use emend_wire::render;
use prost::Message as _;

use crate::domain::{Accepted, NewEvent, Submission};

/// The event that a feedback was stored. `submission` is already masked.
pub(crate) fn recorded(
    id: EventId,
    feedback_id: FeedbackId,
    caller: &Caller,
    traceparent: &str,
    submission: &Submission,
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
        erased_voter: None,
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
pub(crate) fn retracted(
    id: EventId,
    feedback_id: FeedbackId,
    namespace: &Namespace,
    caller: &Caller,
    traceparent: &str,
    reason: &str,
) -> NewEvent {
    let retracted = FeedbackRetracted {
        caller: caller.to_string(),
        reason: reason.to_owned(),
        retracted_at: None,
    };
    new(
        id,
        feedback_id,
        namespace,
        traceparent,
        event::Event::Retracted(retracted),
    )
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
pub(crate) fn complete(mut message: Event, accepted: Accepted) -> Event {
    message.accept_order = accepted.order.0;
    let at = Some(render::timestamp(accepted.at));
    match &mut message.event {
        Some(event::Event::Recorded(recorded)) => recorded.received_at = at,
        Some(event::Event::Retracted(retracted)) => retracted.retracted_at = at,
        Some(event::Event::Redacted(redacted)) => redacted.redacted_at = at,
        Some(event::Event::ReporterRedacted(redacted)) => redacted.redacted_at = at,
        None => {}
    }
    message
}
