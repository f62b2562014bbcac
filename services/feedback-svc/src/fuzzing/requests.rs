//! Fuzzes requests and page tokens.

use bytes::Bytes;
use emend_core::{
    Caller, EventId, FeedbackId,
    ratings::{OwnTarget, RatingClass},
};
use emend_proto::{codec, feedback::v1 as pb};
use emend_wire::{
    kinds::search_rating_value,
    page::{self, QueryHash},
    render,
};
use feedback_store::records::{
    event,
    feedback::{Accepted, Submission},
    labels::Tag,
    outbox::{DeadLetterPosition, Redrive},
    ratings::RatingFilter,
};
use jiff::Timestamp;
use prost::{Message, Name};
use uuid::Uuid;

use crate::{
    corrections::{
        cleaned::cleaned,
        grpc::parse::{self, Wait},
    },
    outbox::grpc as dead_letter_rpcs,
    queries::grpc::fuzzing as queries,
    ratings,
};

/// Parses one request of the method that the first byte selects. A valid request must survive being rendered and parsed
/// again.
pub fn request(bytes: &[u8]) {
    let Some((which, message)) = bytes.split_first() else {
        return;
    };
    match which % 14 {
        0 => read(message, |request| submission(&request)),
        1 => read(message, |request: pb::BatchSubmitFeedbackRequest| {
            if parse::batch(&request).is_ok() {
                request.requests.iter().for_each(submission);
            }
        }),
        2 => read(message, |request: pb::GetFeedbackRequest| {
            if let Ok((namespace, id)) = parse::get(&request) {
                let again = pb::GetFeedbackRequest {
                    namespace: namespace.to_string(),
                    feedback_id: id.to_string(),
                };
                assert_eq!(parse::get(&again), Ok((namespace, id)));
            }
        }),
        3 => read(message, |request| list(&request)),
        4 => read(message, |request: pb::RetractFeedbackRequest| {
            if let Ok(retraction) = parse::retraction(&request) {
                let again = pb::RetractFeedbackRequest {
                    namespace: retraction.namespace.to_string(),
                    feedback_id: retraction.id.to_string(),
                    reason: retraction.reason.clone(),
                    wait: wait(retraction.wait),
                };
                let again = parse::retraction(&again).expect("what was rendered is valid");
                assert_eq!(format!("{again:?}"), format!("{retraction:?}"));
            }
        }),
        5 => read(message, |request| dead_letters(&request)),
        7 => read(message, queries::record),
        8 => read(message, |it| queries::interact(&it)),
        9 => read(message, |it| queries::list(&it)),
        11 => read(message, |it| queries::stats(&it)),
        12 => read(message, |it| queries::terms(&it)),
        13 => read(message, |request: pb::ExportFeedbackRequest| {
            let parsed = ratings::grpc::export(&request);
            assert_eq!(parsed, ratings::grpc::export(&request.clone()));
        }),
        10 => read(message, |request: pb::UpdateFeedbackLabelsRequest| {
            if let Ok(change) = ratings::grpc::labels(&request) {
                let names =
                    |tags: &std::collections::BTreeSet<Tag>| tags.iter().map(ToString::to_string).collect();
                let again = pb::UpdateFeedbackLabelsRequest {
                    namespace: change.namespace.to_string(),
                    feedback_id: change.id.to_string(),
                    set_tags: names(&change.set),
                    clear_tags: names(&change.clear),
                    processed: change.processed,
                };
                assert_eq!(ratings::grpc::labels(&again), Ok(change));
            }
        }),
        _ => read(message, |request: pb::RedriveDeadLettersRequest| {
            if let Ok(which) = dead_letter_rpcs::redrive(&request) {
                let (namespace, events) = match &which {
                    Redrive::Namespace(namespace) => (Some(namespace), Vec::new()),
                    Redrive::Events(events, namespace) => (namespace.as_ref(), events.clone()),
                };
                let again = pb::RedriveDeadLettersRequest {
                    namespace: namespace.map(ToString::to_string).unwrap_or_default(),
                    event_ids: events.iter().map(ToString::to_string).collect(),
                };
                assert_eq!(dead_letter_rpcs::redrive(&again), Ok(which));
            }
        }),
    }
}

/// The encoded event of a valid `SubmitFeedbackRequest`, as it travels to learning-svc.
pub fn event(bytes: &[u8]) -> Option<Vec<u8>> {
    let request = pb::SubmitFeedbackRequest::decode(bytes).ok()?;
    let (submission, _) = parse::submission(&request, &own_targets()).ok()?;
    let (event_id, feedback_id) = (EventId(Uuid::from_u128(1)), FeedbackId(Uuid::from_u128(2)));
    let caller = Caller::anonymous();
    let new = event::recorded(
        event_id,
        feedback_id,
        &caller,
        Vec::new(),
        "",
        &cleaned(submission).0,
        None,
    );
    let accepted = Accepted {
        order: emend_core::AcceptOrder(1),
        at: Timestamp::UNIX_EPOCH,
    };
    Some(event::complete(new.message, accepted).encode_to_vec())
}

/// Round-trips any position through the page token of each list.
pub fn page_token(position: &[u8]) {
    let mut feedback = pb::ListFeedbackRequest {
        namespace: "a".to_owned(),
        ..Default::default()
    };
    let hash = parse::list_hash(&feedback);
    feedback.page_token = page::token(hash, position);
    assert_eq!(parse::list(&feedback, hash).is_ok(), position.len() == 8);
    queries::page_token(position);
    let mut letters = pb::ListDeadLettersRequest::default();
    let hash = dead_letter_rpcs::dead_letters_hash(&letters);
    letters.page_token = page::token(hash, position);
    assert_eq!(
        dead_letter_rpcs::dead_letters(&letters, hash).is_ok(),
        position.len() == 24
    );
}

fn read<M: Message + Name + Default>(bytes: &[u8], read: impl FnOnce(M)) {
    if let Ok(message) = codec::decode::<M>(Bytes::copy_from_slice(bytes)) {
        read(message);
    }
}

fn wait(wait: Wait) -> i32 {
    match wait {
        Wait::Recorded => pb::Wait::Recorded as i32,
        Wait::Evaluated => pb::Wait::Evaluated as i32,
    }
}

fn submission(request: &pb::SubmitFeedbackRequest) {
    let Ok((submission, how)) = parse::submission(request, &own_targets()) else {
        return;
    };
    let again = rendered(&submission, how);
    let parsed = parse::submission(&again, &own_targets());
    assert_eq!(parsed.as_ref(), Ok(&(submission.clone(), how)));
    assert_eq!(submission.hash(), parsed.expect("as was asserted").0.hash());
    // Masked once, never masked further: what is read from the database is what was stored.
    let (masked, _) = cleaned(submission);
    assert_eq!(cleaned(masked.clone()).0, masked);
    assert_eq!(
        parse::submission(&rendered(&masked, how), &own_targets()),
        Ok((masked, how)),
        "what is masked is valid"
    );
}

/// What can be rated in these namespaces beside what can be rated everywhere.
fn own_targets() -> [OwnTarget; 1] {
    let values = [("RIGHT", RatingClass::Good), ("WRONG", RatingClass::Bad)];
    [OwnTarget::parse("TRIAGE", values, true).expect("invariant: a valid target")]
}

fn rendered(submission: &Submission, how: Wait) -> pb::SubmitFeedbackRequest {
    pb::SubmitFeedbackRequest {
        request_id: submission
            .request_id
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        namespace: submission.namespace.to_string(),
        reporter: Some(render::reporter(&submission.reporter)),
        query_id: submission.query_id.clone(),
        reason: submission.reason.clone(),
        context: submission.context.clone().into_iter().collect(),
        scope: render::scope(submission.scope).into(),
        wait: wait(how),
        correction: Some(render::correction(&submission.correction)),
    }
}

fn list(request: &pb::ListFeedbackRequest) {
    let Ok(query) = parse::list(request, parse::list_hash(request)) else {
        return;
    };
    let mut again = pb::ListFeedbackRequest {
        namespace: query.namespace.to_string(),
        page_size: i32::try_from(query.limit).expect("pages are small"),
        page_token: String::new(),
        reporter_id: query
            .reporter
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        kind: query.kind.map(render::kind).unwrap_or_default(),
        delivery_state: request.delivery_state,
        received_from: query.from.map(render::timestamp),
        received_before: query.before.map(render::timestamp),
        rating_target: query.target.clone().unwrap_or_default(),
        rating_value: query.rating.clone().unwrap_or_default(),
        // The period says it already, unless nothing is in it.
        search_ratings: query.search_ratings.as_ref().map(filter_message),
        day: String::new(),
        time_zone: String::new(),
    };
    if query.from >= query.before && query.before.is_some() && query.from.is_some() {
        return;
    }
    let hash = parse::list_hash(&again);
    again.page_token = token(query.after.map(|after| page::number_token(hash, after.0)));
    assert_eq!(parse::list(&again, hash), Ok(query));
}

fn dead_letters(request: &pb::ListDeadLettersRequest) {
    let Ok(query) = dead_letter_rpcs::dead_letters(request, dead_letter_rpcs::dead_letters_hash(request))
    else {
        return;
    };
    let mut again = pb::ListDeadLettersRequest {
        namespace: query
            .namespace
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        page_size: i32::try_from(query.limit).expect("pages are small"),
        page_token: String::new(),
    };
    let hash = dead_letter_rpcs::dead_letters_hash(&again);
    again.page_token = token(query.after.as_ref().map(|after| position(hash, after)));
    assert_eq!(dead_letter_rpcs::dead_letters(&again, hash), Ok(query));
}

fn position(hash: QueryHash, after: &DeadLetterPosition) -> String {
    let mut bytes = after.dead_at.to_le_bytes().to_vec();
    bytes.extend_from_slice(after.event_id.0.as_bytes());
    page::token(hash, &bytes)
}

fn token(token: Option<String>) -> String {
    token.unwrap_or_default()
}

/// The message of a filter.
fn filter_message(filter: &RatingFilter) -> pb::SearchRatingFilter {
    pb::SearchRatingFilter {
        value: filter.value.map_or(0, |value| search_rating_value(value).into()),
        query_type: filter.query_type.clone().unwrap_or_default(),
        tag: filter.tag.as_ref().map(ToString::to_string).unwrap_or_default(),
        processed: filter.processed,
        counting: filter.only_counting,
        query_text: filter.query_text.clone().unwrap_or_default(),
    }
}
