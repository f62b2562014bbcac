//! Stored corrections and dead letters.

use emend_base::status::code_name;
use emend_core::ratings::RatingClass;
use emend_proto::feedback::v1::{
    ContextState, DeadLetter, DeliveryState, Feedback, RatedTarget, RatedValue, RatingLimits,
    RedactReporterResponse, SearchRatingState, Settings,
};
use serde_json::{Value, json};

use super::{
    common::{correction, outcome, reporter, standing},
    name, present, scope, span, time,
};

/// A stored correction.
pub fn feedback(feedback: &Feedback) -> Value {
    present(json!({
        "feedbackId": feedback.feedback_id,
        "namespace": feedback.namespace,
        "acceptOrder": feedback.accept_order,
        "requestId": feedback.request_id,
        "reporter": reporter(feedback.reporter.as_ref()),
        "caller": feedback.caller,
        "queryId": feedback.query_id,
        "reason": feedback.reason,
        "context": feedback.context,
        "scope": scope(feedback.scope),
        "correction": correction(feedback.correction.as_ref()),
        "receivedAt": time(feedback.received_at.as_ref()),
        "retractedAt": time(feedback.retracted_at.as_ref()),
        "retractReason": feedback.retract_reason,
        "redactedAt": time(feedback.redacted_at.as_ref()),
        "outcome": outcome(feedback.outcome.as_ref()),
        "present": standing(feedback.present.as_ref()),
        "searchRating": feedback.search_rating.as_ref().map(search_rating),
        "deliveryState": name(
            DeliveryState::try_from(feedback.delivery_state).ok().map(|state| state.as_str_name()),
            feedback.delivery_state,
        ),
    }))
}

fn search_rating(state: &SearchRatingState) -> Value {
    json!({
        "contextState": name(
            ContextState::try_from(state.context_state).ok().map(|state| state.as_str_name()),
            state.context_state,
        ),
        "queryType": state.query_type,
        "tags": state.tags,
        "processed": state.processed,
        "replaced": state.replaced,
        "query": state.query.as_ref().map(super::search::query),
    })
}

/// An event that was permanently refused.
pub fn dead_letter(letter: &DeadLetter) -> Value {
    present(json!({
        "eventId": letter.event_id,
        "feedbackId": letter.feedback_id,
        "namespace": letter.namespace,
        "attempts": letter.attempts,
        "code": code_name(letter.code.into()),
        "error": letter.error,
        "deadAt": time(letter.dead_at.as_ref()),
    }))
}

/// How far the erasure of a reporter is.
pub fn reporter_redaction(response: &RedactReporterResponse) -> Value {
    json!({
        "redactedCount": response.redacted_count,
        "remainingCount": response.remaining_count,
        "undeliveredCount": response.undelivered_count,
    })
}

/// The settings of a namespace.
pub fn settings(settings: &Settings) -> Value {
    present(json!({
        "namespace": settings.namespace,
        "personalRetention": span(settings.personal_retention.as_ref()),
        "queryRetention": span(settings.query_retention.as_ref()),
        "maxQueries": (settings.max_queries != 0).then_some(settings.max_queries),
        "ratedTargets": settings.rated_targets.iter().map(rated_target).collect::<Vec<_>>(),
        "ratingLimits": settings.rating_limits.as_ref().map(|RatingLimits { per_minute, per_hour }| {
            json!({"perMinute": per_minute, "perHour": per_hour})
        }),
        "version": settings.version,
        "etag": settings.etag,
        "updatedAt": time(settings.updated_at.as_ref()),
    }))
}

fn rated_target(target: &RatedTarget) -> Value {
    let value = |value: &RatedValue| {
        json!({
            "name": value.name,
            "countsAs": RatingClass::from_number(value.counts_as).map(RatingClass::name),
        })
    };
    json!({
        "name": target.name,
        "values": target.values.iter().map(value).collect::<Vec<_>>(),
        "isJudgement": target.is_judgement,
    })
}
