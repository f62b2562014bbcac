//! Results of the use cases → responses.

use emend_proto::feedback::v1 as pb;
use emend_wire::{
    page::{self, QueryHash},
    render::timestamp,
};

use crate::{
    corrections::read::Page,
    queries::{StoredInteraction, StoredQuery, record::Dropped, store::rows},
};

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

pub(crate) fn query(stored: StoredQuery) -> pb::Query {
    let query = stored.query;
    pb::Query {
        query_id: query.id.to_string(),
        query_text: query.query_text,
        answer_text: query.answer_text,
        query_type: query.query_type,
        classification: query.classification,
        top_results: query.top_results.iter().map(rows::result).collect(),
        namespaces: query.namespaces,
        min_score: query.min_score,
        embedding_version: query.embedding_version,
        index_version: query.index_version,
        client_version: query.client_version,
        build: query.build,
        variant: query.variant,
        session_id: query.session_id,
        hit_count: query
            .hit_count
            .map(|hits| i32::try_from(hits).unwrap_or(i32::MAX)),
        searched_at: Some(timestamp(stored.searched_at)),
        recorded_at: Some(timestamp(stored.recorded_at)),
        interactions: stored.interactions.into_iter().map(interaction).collect(),
    }
}

pub(crate) fn interaction(stored: StoredInteraction) -> pb::QueryInteraction {
    let interaction = stored.interaction;
    pb::QueryInteraction {
        query_id: interaction.query_id.to_string(),
        object_id: interaction.object_id,
        action: interaction.action,
        position: i32::try_from(interaction.position).unwrap_or(i32::MAX),
        acted_at: Some(timestamp(stored.acted_at)),
    }
}

pub(super) fn page(page: Page<StoredQuery>, hash: QueryHash) -> pb::ListQueriesResponse {
    let numbers: Vec<i64> = page.items.iter().map(|stored| stored.number).collect();
    let (queries, was_cut) = page::cut(page.items.into_iter().map(query).collect());
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
