//! SQL of ratings.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use async_trait::async_trait;
use emend_core::{AcceptOrder, Namespace, search::Rater};
use emend_store::{
    CorruptRow, StoreError, retry_conflicts,
    sql::{Conn, Statement},
};

use super::{SqlStore, contexts, ledger::Columns};
use crate::{
    chunks::chunks,
    ports::{Labelled, RatingStore, Settled},
    records::{
        labels::LabelChange,
        limits::{HOUR, REPLACED_WITHIN, RatingLimits, Windows},
        ratings::{ContextState, RatingState},
    },
    rows::{self, RatingColumns},
};

type Result<T> = std::result::Result<T, StoreError>;

/// Says of each item after how long it may be stored if it is a rating of somebody who has rated too often; of all others
/// none. A request that was stored before is one of these others. Must run in the transaction that stores the items, with the
/// raters locked.
pub(super) async fn too_often(
    connection: &mut Conn,
    items: &[&Columns<'_>],
) -> Result<Vec<Option<Duration>>> {
    let now: i64 = connection
        .value(Statement::new("SELECT now FROM database_clock"))
        .await?;
    let ratings: Vec<&Columns<'_>> = items
        .iter()
        .copied()
        .filter(|item| item.rater().is_some())
        .collect();
    let mut limits = BTreeMap::new();
    let mut windows = Vec::new();
    let mut repeated = HashSet::new();
    for item in &ratings {
        let namespace = &item.new.submission.namespace;
        if !limits.contains_key(namespace) {
            limits.insert(namespace.clone(), self::limits(connection, namespace).await?);
        }
    }
    let raters: HashSet<Rater> = ratings.iter().filter_map(|item| item.rater()).collect();
    let raters: Vec<Rater> = raters.into_iter().collect();
    // Each rater in one chunk, or what they rated before would count several times.
    for chunk in chunks(&raters) {
        windows.append(&mut rated_lately(connection, chunk, now).await?);
    }
    for chunk in chunks(&ratings) {
        repeated.extend(taken(connection, chunk).await?);
    }
    let mut windows = Windows::of(windows);
    let answers = items.iter().map(|item| {
        let rater = item.rater()?;
        let limits = limits
            .get(&item.new.submission.namespace)
            .copied()
            .unwrap_or_default();
        if !item.request_id.is_empty() && repeated.contains(&request(item)) {
            return None;
        }
        let admitted = windows.admit(rater, &item.new.submission.query_id, limits, now);
        // Of what is twice in the group the first that is stored is counted.
        if admitted.is_ok() && !item.request_id.is_empty() {
            repeated.insert(request(item));
        }
        admitted.err()
    });
    Ok(answers.collect())
}

/// What makes a request the same.
fn request(item: &Columns<'_>) -> (String, String, String) {
    let new = item.new;
    (
        new.submission.namespace.to_string(),
        new.caller.to_string(),
        item.request_id.to_owned(),
    )
}

/// The limits in force.
async fn limits(connection: &mut Conn, namespace: &Namespace) -> Result<RatingLimits> {
    let statement = Statement::new(
        "SELECT ratings_per_minute, ratings_per_hour FROM settings WHERE namespace = $1 ORDER BY version DESC LIMIT 1",
    )
    .bind(namespace.as_str());
    let found: Option<(Option<i64>, Option<i64>)> = connection.optional(statement).await?;
    let (per_minute, per_hour) = found.unwrap_or_default();
    Ok(stored_limits(namespace, per_minute, per_hour)?.unwrap_or_default())
}

/// The limits as they are stored with settings; none if they are those by default.
pub(super) fn stored_limits(
    namespace: &Namespace,
    per_minute: Option<i64>,
    per_hour: Option<i64>,
) -> std::result::Result<Option<RatingLimits>, CorruptRow> {
    let Some((per_minute, per_hour)) = per_minute.zip(per_hour) else {
        return Ok(None);
    };
    RatingLimits::parse(per_minute, per_hour)
        .map(Some)
        .map_err(|violations| CorruptRow::new("settings", "ratings_per_minute", namespace, violations))
}

/// What these raters rated and when, in the order of time: within the last hour, and before it what may have been replaced
/// within it.
async fn rated_lately(
    connection: &mut Conn,
    raters: &[Rater],
    now: i64,
) -> Result<Vec<(Rater, String, i64)>> {
    let mut query = Statement::new(
        "SELECT accept_order, rater, query_id, rated_at FROM search_ratings WHERE rated_at > ",
    );
    query
        .push_bind(now - HOUR - REPLACED_WITHIN)
        .push(" AND rater IN ");
    query.push_list(raters.iter().map(|rater| rater.0.as_bytes().to_vec()));
    query.push(" ORDER BY rated_at, accept_order");
    let found: Vec<(i64, Vec<u8>, String, i64)> = connection.rows(query).await?;
    let parsed = found
        .into_iter()
        .map(|(order, rater, query_id, at)| Ok((rows::rater(order, &rater)?, query_id, at)));
    parsed.collect()
}

/// Those requests of these items that were stored before.
async fn taken(connection: &mut Conn, items: &[&Columns<'_>]) -> Result<Vec<(String, String, String)>> {
    let asked: Vec<_> = items
        .iter()
        .copied()
        .filter(|item| !item.request_id.is_empty())
        .collect();
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = Statement::new(
        "SELECT namespace, caller, request_id FROM request_ids WHERE (namespace, caller, request_id) IN (",
    );
    query.push_values(asked, |mut row, item| {
        row.push_bind(item.new.submission.namespace.as_str())
            .push_bind(item.new.caller.as_str())
            .push_bind(item.request_id);
    });
    query.push(")");
    connection.rows(query).await
}

/// A feedback that was stored: its columns, accept order and time.
pub(super) type Placed<'a, 'b> = (&'a Columns<'b>, i64, i64);

/// Stores what is known of ratings. Earlier ones of the same query by the same rater no longer count.
pub(super) async fn insert(connection: &mut Conn, stored: &[Placed<'_, '_>]) -> Result<()> {
    let ratings: Vec<(&Columns<'_>, Rater, i64, i64, i64)> = stored
        .iter()
        .filter_map(|(item, order, at)| Some((*item, item.rater()?, item.search_rating?, *order, *at)))
        .collect();
    for chunk in chunks(&ratings) {
        let mut query = Statement::new(
            "INSERT INTO search_ratings (accept_order, namespace, rater, query_id, rating, context_state, rated_at,
                                         query_type, embedding_version, index_version, variant, query, session_id,
                                         tags, processed, known_at_once) ",
        );
        query.push_values(chunk, |mut row, (item, rater, value, order, at)| {
            row.push_bind(*order)
                .push_bind(item.new.submission.namespace.as_str())
                .push_bind(rater.0.as_bytes().to_vec())
                .push_bind(item.new.submission.query_id.as_str())
                .push_bind(*value)
                .push_bind(ContextState::Pending.number())
                .push_bind(*at);
            row.push("'', '', '', ''").push_bind(&[] as &[u8]);
            row.push("'', '', 0, 0");
        });
        connection.execute(query).await?;
    }
    replace(connection, &ratings).await?;
    // Others that wait for these queries are left to whoever settles them, and counts them then.
    let mut orders: Vec<i64> = ratings.iter().map(|(.., order, _)| *order).collect();
    orders.sort_unstable();
    contexts::complete(connection, &orders, true).await?;
    Ok(())
}

/// The newest rating of one query by one rater.
const NEWEST: &str = "
    (SELECT max(newer.accept_order) FROM search_ratings AS newer
     WHERE newer.namespace = search_ratings.namespace AND newer.query_id = search_ratings.query_id
       AND newer.query_id <> '' AND newer.rater = search_ratings.rater)";

/// Lets ratings of the same queries by the same raters no longer count.
async fn replace(connection: &mut Conn, newer: &[(&Columns<'_>, Rater, i64, i64, i64)]) -> Result<()> {
    let mut older: Vec<i64> = Vec::new();
    for chunk in chunks(newer) {
        let mut select = Statement::new("SELECT accept_order FROM search_ratings WHERE replaced_by IS NULL");
        select
            .push(" AND query_id <> '' AND accept_order < ")
            .push(NEWEST)
            .push(" AND (namespace, query_id) IN (");
        select.push_values(chunk, |mut row, (item, ..)| {
            row.push_bind(item.new.submission.namespace.as_str())
                .push_bind(item.new.submission.query_id.as_str());
        });
        select.push(")");
        let found: Vec<i64> = connection.values(select).await?;
        older.extend(found);
    }
    contexts::lock(connection, &mut older).await?;
    for chunk in chunks(&older) {
        let mut update = Statement::new("UPDATE search_ratings SET replaced_by = ");
        update
            .push(NEWEST)
            .push(" WHERE replaced_by IS NULL AND query_id <> '' AND accept_order IN ");
        update.push_list(chunk.iter().copied());
        connection.execute(update).await?;
    }
    Ok(())
}

/// What is known of a rating.
#[derive(Debug, sqlx_macros::FromRow)]
struct RatingRow {
    accept_order: i64,
    #[sqlx(flatten)]
    rating: RatingColumns,
}

/// What is known of ratings, by their accept orders.
pub(super) async fn states(
    connection: &mut Conn,
    orders: &[AcceptOrder],
) -> Result<HashMap<AcceptOrder, RatingState>> {
    let mut states = HashMap::with_capacity(orders.len());
    for chunk in chunks(orders) {
        let mut select = Statement::new("SELECT r.accept_order, ");
        select
            .push(RatingColumns::COLUMNS)
            .push(" FROM search_ratings AS r WHERE r.accept_order IN ");
        select.push_list(chunk.iter().map(|order| order.0));
        let found: Vec<RatingRow> = connection.rows(select).await?;
        for RatingRow { accept_order, rating } in found {
            if let Some(state) = rows::rating_state(accept_order, rating)? {
                states.insert(AcceptOrder(accept_order), state);
            }
        }
    }
    Ok(states)
}

impl SqlStore {
    async fn label_once(&self, change: &LabelChange) -> Result<Labelled> {
        let mut transaction = self.pools.begin_write().await?;
        let statement =
            Statement::new("SELECT accept_order FROM feedback WHERE feedback_id = $1 AND namespace = $2")
                .bind(change.id.0.as_bytes().as_slice())
                .bind(change.namespace.as_str());
        let found: Option<i64> = transaction.optional_value(statement).await?;
        let Some(order) = found else {
            return Ok(Labelled::NotFound);
        };
        // Locks the row until the tags are written.
        let statement = Statement::new(
            "UPDATE search_ratings SET processed = COALESCE($2, processed) WHERE accept_order = $1 RETURNING tags",
        )
        .bind(order)
        .bind(change.processed.map(i64::from));
        let tags: Option<String> = transaction.optional_value(statement).await?;
        let Some(tags) = tags else {
            return Ok(Labelled::NotARating);
        };
        let Some(tags) = change.applied_to(rows::tags(order, &tags)?) else {
            return Ok(Labelled::TooMany);
        };
        let statement = Statement::new("UPDATE search_ratings SET tags = $2 WHERE accept_order = $1")
            .bind(order)
            .bind(rows::tags_column(&tags));
        transaction.execute(statement).await?;
        transaction.commit().await?;
        Ok(Labelled::Done)
    }
}

#[async_trait]
impl RatingStore for SqlStore {
    async fn address_key(&self, drawn: [u8; 32]) -> Result<Vec<u8>> {
        let statement =
            Statement::new("INSERT INTO rating_key (one, key) VALUES (1, $1) ON CONFLICT (one) DO NOTHING")
                .bind(drawn.as_slice());
        self.pools.writer().await?.execute(statement).await?;
        let key = self
            .pools
            .reader()
            .await?
            .value(Statement::new("SELECT key FROM rating_key WHERE one = 1"))
            .await?;
        Ok(key)
    }

    async fn label(&self, change: &LabelChange) -> Result<Labelled> {
        retry_conflicts(&self.entropy, || self.label_once(change)).await
    }

    async fn mark_processed(&self, orders: &[AcceptOrder]) -> Result<()> {
        for chunk in chunks(orders) {
            let mut update = Statement::new(
                "UPDATE search_ratings SET processed = 1 WHERE accept_order IN (
                     SELECT accept_order FROM search_ratings WHERE processed = 0 AND accept_order IN ",
            );
            update.push_list(chunk.iter().map(|order| order.0));
            update.push(" ORDER BY accept_order").for_update().push(")");
            self.pools.writer().await?.execute(update).await?;
        }
        Ok(())
    }

    async fn settle_contexts(&self, waited: Duration, limit: u32) -> Result<Settled> {
        retry_conflicts(&self.entropy, || self.settle_contexts_once(waited, limit)).await
    }
}
