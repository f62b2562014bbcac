//! SQL of queries that come as several documents: what is stored of a query is joined with the documents of it that come later.

use std::collections::{HashMap, hash_map::Entry};

use emend_core::QueryId;
use emend_proto::feedback::v1 as pb;
use emend_store::{
    CorruptRow, StoreError,
    sql::{Conn, Statement},
};
use jiff::Timestamp;

use super::queries::{Counted, event_time};
use crate::{
    chunks::chunks,
    records::{
        documents::NamedResults,
        queries::{StoredQuery, query_message},
    },
    rows::queries::{self as rows, QueryRow},
};

type Result<T> = std::result::Result<T, StoreError>;

/// A query, as it was and with more documents.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) namespace: String,
    pub(super) before: StoredQuery,
    pub(super) after: StoredQuery,
}

impl Joined {
    /// What a rating's copy has of it, without interactions.
    pub(super) fn message(&self) -> pb::Query {
        query_message(self.after.clone())
    }
}

/// A query that documents may add to.
#[derive(Debug, sqlx_macros::FromRow)]
struct FoundRow {
    namespace: String,
    caller: String,
    #[sqlx(flatten)]
    query: QueryRow,
}

/// Joins what is stored with more documents of the same caller, in the order in which they came; what was recorded whole stays as it is. Returns
/// what changed. To be called by whoever has locked the ratings of these queries.
pub(super) async fn join(connection: &mut Conn, documents: &[Counted<'_>], now: i64) -> Result<Vec<Joined>> {
    let documents: Vec<_> = documents
        .iter()
        .map(|(new, _)| new)
        .filter(|new| new.item.named_results.is_some())
        .collect();
    let mut joined: Vec<(String, Joined)> = Vec::new();
    let mut places: HashMap<(String, QueryId), usize> = HashMap::new();
    for chunk in chunks(&documents) {
        let mut select = Statement::new("SELECT q.namespace, q.caller, ");
        select.push(QueryRow::COLUMNS).push(
            " FROM queries AS q JOIN query_personal AS p ON p.number = q.number
              WHERE q.named_results IS NOT NULL AND (q.namespace, q.query_id) IN (",
        );
        select.push_values(chunk, |mut row, new| {
            row.push_bind(new.namespace.as_str())
                .push_bind(new.item.id.as_str());
        });
        select.push(") ORDER BY q.number").for_update();
        let found: Vec<FoundRow> = connection.rows(select).await?;
        for FoundRow {
            namespace,
            caller,
            query,
        } in found
        {
            let before = StoredQuery::try_from(query)?;
            if let Entry::Vacant(place) = places.entry((namespace.clone(), before.query.id.clone())) {
                place.insert(joined.len());
                let after = before.clone();
                joined.push((
                    caller,
                    Joined {
                        namespace,
                        before,
                        after,
                    },
                ));
            }
        }
    }
    for new in documents {
        let key = (new.namespace.to_string(), new.item.id.clone());
        let Some(place) = places.get(&key) else { continue };
        let (caller, joined) = &mut joined[*place];
        if *caller != new.caller.as_str() {
            continue;
        }
        let searched_at = Timestamp::from_microsecond(event_time(new, now))
            .map_err(|error| CorruptRow::new("database_clock", "now", now, error))?;
        joined.after = joined.after.with(&StoredQuery {
            query: new.item.clone(),
            searched_at,
            ..joined.after.clone()
        });
    }
    let changed = joined.into_iter().map(|(_, joined)| joined);
    let changed: Vec<_> = changed.filter(|joined| joined.after != joined.before).collect();
    for joined in &changed {
        update(connection, &joined.after).await?;
    }
    Ok(changed)
}

async fn update(connection: &mut Conn, stored: &StoredQuery) -> Result<()> {
    let query = &stored.query;
    let statement = Statement::new(
        "UPDATE queries SET hit_count = $2, details = $3, named_results = $4, searched_at = $5 WHERE number = $1",
    )
    .bind(stored.number)
    .bind(query.hit_count.map(i64::from))
    .bind(rows::details(query))
    .bind(query.named_results.as_ref().map(NamedResults::bytes))
    .bind(stored.searched_at.as_microsecond());
    connection.execute(statement).await?;
    let statement = Statement::new(
        "UPDATE query_personal SET session_id = $2, query_text = $3, answer_text = $4, classification = $5 WHERE number = $1",
    )
    .bind(stored.number)
    .bind(query.session_id.as_str())
    .bind(query.query_text.as_str())
    .bind(query.answer_text.as_str())
    .bind(query.classification.as_str());
    connection.execute(statement).await?;
    Ok(())
}
