//! Whether what is known of ratings of search answers goes with the ratings.

use emend_proto::feedback::v1::Query;
use emend_store::{StoreError, audit::Findings};
use futures::StreamExt as _;
use prost::Message as _;

use crate::{
    audit::{RATING_CONTEXT, RATING_LABELS, RATING_TIME},
    records::{labels::MAX_TAGS, queries::query_key, ratings::ContextState},
    rows::audit::RatedRow,
    sql::Reading,
};

/// Checks all ratings.
pub(super) async fn check(reading: &mut Reading, findings: &mut Findings) -> Result<(), StoreError> {
    let mut rows = reading.ratings();
    while let Some(row) = rows.next().await {
        let row = row?;
        let mut wrong = |check, message: &str| {
            findings.add(check, format_args!("accept order {}", row.accept_order), message);
        };
        if let Some(message) = wrong_with_context(&row) {
            wrong(RATING_CONTEXT, message);
        }
        if !are_in_order(&row.tags) {
            wrong(RATING_LABELS, "its tags can't be found as they are written");
        }
        if row.rated_at != row.received_at {
            wrong(
                RATING_TIME,
                "it counts from another time than its feedback was stored",
            );
        }
    }
    Ok(())
}

fn wrong_with_context(row: &RatedRow) -> Option<&'static str> {
    let named = [
        &row.query_type,
        &row.embedding_version,
        &row.index_version,
        &row.variant,
        &row.session_id,
    ];
    if ContextState::from_number(row.context_state) != Some(ContextState::Complete) {
        let is_known = row.known_at_once != 0
            || !row.query.is_empty()
            || row.query_key.is_some()
            || named.iter().any(|name| !name.is_empty());
        return is_known.then_some("its query is not known, but something is stored of it");
    }
    if row.sent != "{}" {
        return Some("its query is known, but what its reporter sent of it is kept");
    }
    if row.query.is_empty() {
        let is_left = !row.session_id.is_empty() || row.query_key.is_some();
        return is_left.then_some("the copy of its query is erased, but not that query's session or key");
    }
    if row.redacted_at.is_some() {
        return Some("it is redacted, but has a copy of its query");
    }
    let Ok(copy) = Query::decode(&*row.query) else {
        return Some("the copy of its query can't be read");
    };
    let of_copy = [
        &copy.query_type,
        &copy.embedding_version,
        &copy.index_version,
        &copy.variant,
        &copy.session_id,
    ];
    let key = query_key(&copy.query_text);
    let is_same = copy.query_id == row.query_id
        && of_copy == named
        && row.query_key.as_deref() == key.as_ref().map(|key| &key[..]);
    (!is_same).then_some("the copy that it has is of another query than it says")
}

/// Whether tags are written as lists and exports look for them.
fn are_in_order(column: &str) -> bool {
    let tags: Vec<&str> = column.split_ascii_whitespace().collect();
    let written: String = tags.iter().flat_map(|tag| [" ", tag]).collect();
    let ends = if tags.is_empty() { "" } else { " " };
    tags.len() <= MAX_TAGS && tags.is_sorted_by(|one, next| one < next) && written + ends == column
}
