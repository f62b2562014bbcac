//! What the use cases answer → responses.

use emend_proto::{
    common::v1::{Outcome, OutcomeState},
    feedback::v1 as pb,
};
use emend_runtime::{Error, store::CorruptRow};
use emend_wire::{
    page::{self, QueryHash},
    render,
};
use prost::Message as _;

use crate::{
    app::Page,
    domain::{DeadLetter, DeliveryState, EncodedOutcome, Feedback, Retraction, Submission},
};

fn delivery_state(state: DeliveryState) -> pb::DeliveryState {
    match state {
        DeliveryState::Pending => pb::DeliveryState::Pending,
        DeliveryState::Delivered => pb::DeliveryState::Delivered,
        DeliveryState::DeadLetter => pb::DeliveryState::DeadLetter,
    }
}

/// Until learning-svc has answered.
fn not_evaluated() -> Outcome {
    Outcome {
        state: OutcomeState::Pending.into(),
        reason: "NOT_EVALUATED".to_owned(),
        message: "Noted. It has not been evaluated yet.".to_owned(),
        ..Outcome::default()
    }
}

pub(super) fn feedback(feedback: Feedback) -> Result<pb::Feedback, Error> {
    let Feedback {
        id,
        submission,
        caller,
        accepted,
        retraction,
        outcome,
        delivery,
    } = feedback;
    let Submission {
        request_id,
        namespace,
        reporter,
        query_id,
        reason,
        context,
        scope,
        correction,
    } = submission;
    let outcome = match outcome {
        None => not_evaluated(),
        Some(EncodedOutcome(bytes)) => Outcome::decode(bytes).map_err(|error| {
            Error::internal(CorruptRow::new(
                "feedback_status",
                "outcome",
                accepted.order,
                error,
            ))
        })?,
    };
    let (retracted_at, retract_reason) = match retraction {
        None => (None, String::new()),
        Some(Retraction { at, reason }) => (Some(render::timestamp(at)), reason),
    };
    Ok(pb::Feedback {
        feedback_id: id.to_string(),
        namespace: namespace.to_string(),
        accept_order: accepted.order.0,
        request_id: request_id.map(|id| id.to_string()).unwrap_or_default(),
        reporter: Some(render::reporter(&reporter)),
        caller: caller.to_string(),
        query_id,
        reason,
        context: context.into_iter().collect(),
        scope: render::scope(scope).into(),
        correction: Some(render::correction(&correction)),
        received_at: Some(render::timestamp(accepted.at)),
        retracted_at,
        retract_reason,
        outcome: Some(outcome),
        delivery_state: delivery_state(delivery).into(),
    })
}

pub(super) fn feedback_page(
    page: Page<Feedback>,
    hash: QueryHash,
) -> Result<pb::ListFeedbackResponse, Error> {
    let last = page.items.last().filter(|_| page.more);
    let next_page_token = last
        .map(|last| page::number_token(hash, last.accepted.order.0))
        .unwrap_or_default();
    let feedback = page.items.into_iter().map(feedback).collect::<Result<_, _>>()?;
    Ok(pb::ListFeedbackResponse {
        feedback,
        next_page_token,
    })
}

fn dead_letter(letter: DeadLetter) -> pb::DeadLetter {
    pb::DeadLetter {
        event_id: letter.event_id.to_string(),
        feedback_id: letter.feedback_id.to_string(),
        namespace: letter.namespace.to_string(),
        attempts: i32::try_from(letter.attempts).unwrap_or(i32::MAX),
        code: letter.refusal.code,
        error: letter.refusal.error,
        dead_at: Some(render::timestamp_from_micros(letter.dead_at_us)),
    }
}

pub(super) fn dead_letter_page(page: Page<DeadLetter>, hash: QueryHash) -> pb::ListDeadLettersResponse {
    let last = page.items.last().filter(|_| page.more);
    let next_page_token = last.map(|last| {
        let mut position = last.dead_at_us.to_le_bytes().to_vec();
        position.extend_from_slice(last.event_id.0.as_bytes());
        page::token(hash, &position)
    });
    pb::ListDeadLettersResponse {
        dead_letters: page.items.into_iter().map(dead_letter).collect(),
        next_page_token: next_page_token.unwrap_or_default(),
    }
}
