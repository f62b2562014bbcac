//! Results of the use cases → responses.

use emend_proto::feedback::v1 as pb;
use emend_wire::page::{self, QueryHash};
use feedback_store::records::queries::{StoredQuery, query_message};

use crate::{metrics::Dropped, page::Page};

pub(super) fn count(dropped: usize) -> i32 {
    i32::try_from(dropped).unwrap_or(i32::MAX)
}

pub(super) fn reason(dropped: Option<Dropped>) -> i32 {
    let reason = match dropped {
        None => pb::DropReason::Unspecified,
        Some(Dropped::QueueFull) => pb::DropReason::QueueFull,
        Some(Dropped::Stopping | Dropped::Database | Dropped::Refused) => pb::DropReason::Stopping,
    };
    reason.into()
}

pub(super) fn page(page: Page<StoredQuery>, hash: QueryHash) -> pb::ListQueriesResponse {
    let numbers: Vec<i64> = page.items.iter().map(|stored| stored.number).collect();
    let (queries, was_cut) = page::cut(page.items.into_iter().map(query_message).collect());
    let last = queries.len().checked_sub(1).and_then(|last| numbers.get(last));
    let next_page_token = match last {
        Some(last) if page.more || was_cut => page::number_token(hash, *last),
        _ => String::new(),
    };
    pb::ListQueriesResponse {
        queries,
        next_page_token,
    }
}
