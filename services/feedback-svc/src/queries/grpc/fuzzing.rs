//! Fuzzes requests about queries.

use emend_core::Caller;
use emend_proto::feedback::v1 as pb;
use emend_wire::{page, render};
use feedback_store::records::queries::KEPT_RESULTS;
use jiff::Timestamp;

use crate::queries::grpc::{
    parse::{self, Listed},
    stats,
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// What is accepted is within its bounds.
pub(crate) fn record(request: pb::RecordQueryRequest) {
    for new in parse::queries(&Caller::anonymous(), request, NOW).unwrap_or_default() {
        let query = new.item;
        assert!(!query.query_text.is_empty());
        assert!(query.top_results.len() <= KEPT_RESULTS);
        let hits = query.hit_count.map_or(0, |hits| hits as usize);
        assert!(query.top_results.len() <= hits);
        assert!(
            query
                .top_results
                .is_sorted_by(|one, next| one.score.total_cmp(&next.score).is_ge())
        );
    }
}

/// What is accepted, rendered and parsed again is the same.
pub(crate) fn interact(request: &pb::RecordInteractionRequest) {
    let caller = Caller::anonymous();
    let Ok(parsed) = parse::interactions(&caller, request, NOW) else {
        return;
    };
    let messages = parsed.iter().map(|new| pb::QueryInteraction {
        query_id: new.item.query_id.to_string(),
        object_id: new.item.object_id.clone(),
        action: new.item.action.clone(),
        position: i32::try_from(new.item.position).expect("positions are small"),
        acted_at: new.at.map(render::timestamp),
    });
    let again = pb::RecordInteractionRequest {
        namespace: request.namespace.clone(),
        interactions: messages.collect(),
    };
    assert_eq!(parse::interactions(&caller, &again, NOW), Ok(parsed));
}

/// The same of a list.
pub(crate) fn list(request: &pb::ListQueriesRequest) {
    match parse::list(request, parse::list_hash(request)) {
        Ok(Listed::One(namespace, id)) => {
            let again = pb::ListQueriesRequest {
                namespace: namespace.to_string(),
                query_id: id.to_string(),
                ..pb::ListQueriesRequest::default()
            };
            let again = parse::list(&again, parse::list_hash(&again));
            assert!(matches!(again, Ok(Listed::One(found, same)) if (&found, &same) == (&namespace, &id)));
        }
        Ok(Listed::All(filter)) => {
            let mut again = pb::ListQueriesRequest {
                namespace: filter.namespace.to_string(),
                page_size: i32::try_from(filter.limit).expect("pages are small"),
                query_type: filter.query_type.clone().unwrap_or_default(),
                only_without_hits: filter.only_without_hits,
                searched_from: filter.from.map(render::timestamp),
                searched_before: filter.before.map(render::timestamp),
                ..pb::ListQueriesRequest::default()
            };
            let hash = parse::list_hash(&again);
            let token = filter.after.map(|after| page::number_token(hash, after));
            again.page_token = token.unwrap_or_default();
            let again = parse::list(&again, hash);
            assert!(matches!(again, Ok(Listed::All(same)) if same == filter));
        }
        Err(_) => {}
    }
}

/// Only the number of a query is a position.
pub(crate) fn page_token(position: &[u8]) {
    let mut request = pb::ListQueriesRequest {
        namespace: "a".to_owned(),
        ..pb::ListQueriesRequest::default()
    };
    let hash = parse::list_hash(&request);
    request.page_token = page::token(hash, position);
    assert_eq!(parse::list(&request, hash).is_ok(), position.len() == 8);
}

/// What is compared differs, and a period is no shorter than nothing.
pub(crate) fn stats(request: &pb::GetFeedbackStatsRequest) {
    if let Ok(asked) = stats::asked(request) {
        let period = asked.filter.from.zip(asked.filter.before);
        assert!(period.is_none_or(|(from, before)| from < before));
        assert!((1..=500).contains(&asked.top_queries));
        assert!((1..=500).contains(&asked.worst_queries));
        assert!(
            asked
                .compared
                .is_none_or(|compared| compared.one != compared.other)
        );
    }
}

/// The list is bounded.
pub(crate) fn terms(request: &pb::ListNegativeTermsRequest) {
    if let Ok((filter, limit)) = stats::asked_terms(request) {
        assert!((1..=500).contains(&limit));
        assert!(filter.query_type.is_none_or(|query_type| !query_type.is_empty()));
    }
}
