//! Fuzzes the requests of nodes.

use emend_core::Caller;
use emend_proto::learning::v1 as pb;
use emend_serve::{auth::Access, fair_semaphore::ClientKey};
use emend_wire::page::{self, QueryHash};

use crate::{fuzzing::requests::same, stream::grpc::parse};

fn nobody() -> (Caller, ClientKey) {
    (Caller::anonymous(), ClientKey::Unknown)
}

pub(crate) fn subscribe(request: pb::SubscribeRequest) {
    let Ok(subscription) = parse::subscription(request.clone(), nobody(), &Access::open()) else {
        return;
    };
    let subscription = subscription.stream;
    assert!((1..=3_600).contains(&subscription.bookmark_interval.as_secs()));
    assert!((64 * 1024..=3 * 1024 * 1024).contains(&subscription.max_batch_bytes));
    let again = pb::SubscribeRequest {
        cursor: subscription.cursor.map(|cursor| pb::Cursor {
            epoch: cursor.epoch.to_string(),
            revision: cursor.revision,
            filter_hash: cursor.filter_hash,
        }),
        bookmark_interval: Some(
            prost_types::Duration::try_from(subscription.bookmark_interval).expect("an hour at most"),
        ),
        max_batch_bytes: i32::try_from(subscription.max_batch_bytes).expect("3 MiB at most"),
        ..request
    };
    let parsed = parse::subscription(again, nobody(), &Access::open()).expect("what was rendered is valid");
    let parsed = parsed.stream;
    assert_eq!(
        parsed.cursor, subscription.cursor,
        "cursors come back as they were"
    );
    assert_eq!(parsed.bookmark_interval, subscription.bookmark_interval);
    assert_eq!(parsed.filter.hash(), subscription.filter.hash());
}

pub(crate) fn report_status(request: pb::ReportStatusRequest) {
    if let Ok((_, report)) = parse::report(request) {
        same(parse::report(report.clone()).map(|(_, report)| report), &report);
    }
}

pub(crate) fn list_nodes(request: pb::ListNodesRequest) {
    let Ok(list) = parse::list_nodes(request.clone()) else {
        return;
    };
    let parsed = parse::list_nodes(request).expect("it was valid before");
    assert_eq!((parsed.hash, parsed.after), (list.hash, list.after));
    assert!(list.seen_within.is_positive() && (1..=1_000).contains(&list.limit));
}

pub(crate) fn page_token(position: &[u8]) {
    let mut request = pb::ListNodesRequest::default();
    let hash = QueryHash::of("ListNodes", &request);
    request.page_token = page::token(hash, position);
    let is_position = std::str::from_utf8(position).is_ok_and(|text| text.contains('\0'));
    if request.page_token.len() <= 8 * 1024 {
        assert_eq!(parse::list_nodes(request).is_ok(), is_position);
    }
}
