//! Results of the use cases → responses.

use emend_base::Error;
use emend_proto::{
    common::v1::{Outcome, OutcomeState},
    feedback::v1 as pb,
};
use emend_store::CorruptRow;
use emend_wire::{
    page::{self, QueryHash},
    render,
};
use feedback_store::records::{
    feedback::{Feedback, Retraction, Submission},
    outbox::{DeliveryState, EncodedOutcome},
    ratings::{ContextState, EncodedQuery, RatingState},
};
use prost::Message as _;

use crate::{corrections::present::Standings, page::Page};

fn delivery_state(state: DeliveryState) -> pb::DeliveryState {
    match state {
        DeliveryState::Pending => pb::DeliveryState::Pending,
        DeliveryState::Delivered => pb::DeliveryState::Delivered,
        DeliveryState::DeadLetter => pb::DeliveryState::DeadLetter,
    }
}

/// The outcome until learning-svc has answered.
fn not_evaluated() -> Outcome {
    Outcome {
        state: OutcomeState::Pending.into(),
        reason: "NOT_EVALUATED".to_owned(),
        message: "Noted. It has not been evaluated yet.".to_owned(),
        ..Outcome::default()
    }
}

/// The outcome of what teaches nothing.
fn nothing_to_learn(feedback: &Feedback) -> Outcome {
    let message = if feedback.retraction.is_some() {
        "Retracted."
    } else {
        "Noted. Nothing is learned from a rating alone."
    };
    Outcome {
        state: OutcomeState::NoEffect.into(),
        reason: "NOTHING_TO_LEARN".to_owned(),
        message: message.to_owned(),
        evaluated_at: Some(render::timestamp(feedback.accepted.at)),
        ..Outcome::default()
    }
}

/// What is known of a rating of a search answer.
fn search_rating(state: RatingState, order: i64) -> Result<pb::SearchRatingState, Error> {
    let context_state = match state.context {
        ContextState::Pending => pb::ContextState::Pending,
        ContextState::Complete => pb::ContextState::Complete,
        ContextState::Missing => pb::ContextState::Missing,
    };
    let query = state
        .query
        .map(|EncodedQuery(bytes)| pb::Query::decode(bytes))
        .transpose();
    let query =
        query.map_err(|error| Error::internal(CorruptRow::new("search_ratings", "query", order, error)))?;
    Ok(pb::SearchRatingState {
        query,
        context_state: context_state.into(),
        query_type: state.query_type,
        tags: state.tags.iter().map(ToString::to_string).collect(),
        processed: state.processed,
        replaced: state.replaced,
    })
}

pub(crate) fn feedback(feedback: Feedback, standings: &Standings) -> Result<pb::Feedback, Error> {
    let outcome = match &feedback.outcome {
        None if !feedback.submission.is_delivered() => nothing_to_learn(&feedback),
        None => not_evaluated(),
        Some(EncodedOutcome(bytes)) => Outcome::decode(&bytes[..]).map_err(|error| {
            Error::internal(CorruptRow::new(
                "feedback_status",
                "outcome",
                feedback.accepted.order,
                error,
            ))
        })?,
    };
    let present = standings.of(&feedback, &outcome);
    let Feedback {
        id,
        submission,
        caller,
        accepted,
        retraction,
        outcome: _,
        delivery,
        redaction,
        search_rating,
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
        redacted_at: redaction.map(|redaction| render::timestamp(redaction.at)),
        present,
        search_rating: search_rating
            .map(|state| self::search_rating(state, accepted.order.0))
            .transpose()?,
    })
}

pub(super) fn feedback_page(
    page: Page<Feedback>,
    hash: QueryHash,
    standings: &Standings,
) -> Result<pb::ListFeedbackResponse, Error> {
    let feedback = page
        .items
        .into_iter()
        .map(|item| feedback(item, standings))
        .collect::<Result<_, _>>()?;
    let (feedback, was_cut): (Vec<pb::Feedback>, _) = page::cut(feedback);
    let last = feedback.last().filter(|_| page.more || was_cut);
    let next_page_token = last
        .map(|last| page::number_token(hash, last.accept_order))
        .unwrap_or_default();
    Ok(pb::ListFeedbackResponse {
        feedback,
        next_page_token,
    })
}

/// The message size that gRPC clients accept by default, less room for what surrounds the results.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024 - 64 * 1024;

/// Results of a size that clients can read. The items are already stored, so a response that would be too large is
/// abridged, not failed.
pub(super) fn batch(results: Vec<pb::BatchSubmitFeedbackResult>) -> pb::BatchSubmitFeedbackResponse {
    let mut response = pb::BatchSubmitFeedbackResponse { results };
    let abridgements: [fn(&mut pb::Feedback); 3] = [
        |feedback| {
            feedback.context.clear();
            feedback.reason.clear();
        },
        |feedback| {
            if let Some(outcome) = &mut feedback.outcome {
                outcome.what_was_learned = None;
                outcome.message.clear();
            }
            feedback.present = None;
        },
        |feedback| feedback.correction = None,
    ];
    for abridge in abridgements {
        if response.encoded_len() <= MAX_ANSWER_BYTES {
            break;
        }
        for result in &mut response.results {
            if let Some(feedback) = &mut result.feedback {
                abridge(feedback);
                result.abridged = true;
            }
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use emend_core::AcceptOrder;
    use feedback_store::records::feedback::Accepted;
    use feedback_store::testing;
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;

    const CLIENT_LIMIT: usize = 4 * 1024 * 1024;

    #[test]
    fn a_page_of_large_feedback_holds_no_more_than_a_client_can_decode() {
        let new = testing::feedback("a");
        let large = |order| Feedback {
            id: new.id,
            submission: Submission {
                context: [("topic".to_owned(), "x".repeat(45_000))].into(),
                ..new.submission.clone()
            },
            caller: new.caller.clone(),
            accepted: Accepted {
                order: AcceptOrder(order),
                at: Timestamp::UNIX_EPOCH,
            },
            retraction: None,
            outcome: None,
            delivery: DeliveryState::Pending,
            redaction: None,
            search_rating: None,
        };
        let page = Page {
            items: (1..=500).rev().map(large).collect(),
            more: false,
        };
        let hash = QueryHash::of("List", &());
        let answered = feedback_page(page, hash, &Standings::default()).unwrap();
        assert!(
            answered.encoded_len() < CLIENT_LIMIT,
            "{}",
            answered.encoded_len()
        );
        let last = answered.feedback.last().unwrap().accept_order;
        assert!(last > 1);
        assert_eq!(
            page::number_position(hash, &answered.next_page_token),
            Ok(Some(last)),
            "the next page goes on behind the last one kept"
        );
    }

    fn batch_of(context: usize, message: usize) -> pb::BatchSubmitFeedbackResponse {
        let result = pb::BatchSubmitFeedbackResult {
            status: Some(emend_proto::common::v1::ItemStatus::default()),
            feedback: Some(pb::Feedback {
                feedback_id: Uuid::nil().to_string(),
                context: [("topic".to_owned(), "x".repeat(context))].into(),
                outcome: Some(emend_proto::common::v1::Outcome {
                    message: "y".repeat(message),
                    ..emend_proto::common::v1::Outcome::default()
                }),
                correction: Some(render::correction(&testing::feedback("a").submission.correction)),
                ..pb::Feedback::default()
            }),
            abridged: false,
        };
        batch(vec![result; 100])
    }

    #[test]
    fn the_response_to_a_large_batch_is_abridged_until_a_client_can_decode_it() {
        let small = batch_of(30_000, 300);
        assert!(small.results.iter().all(|result| !result.abridged));
        let large = batch_of(42_000, 300);
        assert!(large.encoded_len() < CLIENT_LIMIT);
        let first = large.results[0].feedback.as_ref().unwrap();
        assert!(large.results[0].abridged && first.context.is_empty() && !first.feedback_id.is_empty());
        let outcome = first.outcome.as_ref().unwrap();
        assert!(!outcome.message.is_empty(), "no more is left out than needs be");
        let larger = batch_of(42_000, 45_000);
        assert!(larger.encoded_len() < CLIENT_LIMIT);
        let first = larger.results[0].feedback.as_ref().unwrap();
        assert!(first.outcome.as_ref().unwrap().message.is_empty() && first.correction.is_some());
    }
}
