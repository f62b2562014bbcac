//! SQL of queries.

use std::{
    collections::{BTreeSet, HashMap, hash_map::Entry},
    time::Duration,
};

use async_trait::async_trait;
use emend_core::{FeedbackId, Namespace, QueryId};
use emend_store::{
    CorruptRow, StoreError, retry_conflicts,
    sql::{Conn, Statement},
};
use futures::TryStreamExt as _;

use super::{SqlStore, contexts, counts, documents, erased, erasure, next_accept_order, stats};
use crate::{
    chunks::chunks,
    ports::{CountedTerms, Group, QueryStore, Written},
    records::{
        documents::NamedResults,
        mining::{ClickedQuery, NewMined, SessionQuery},
        queries::{
            DEFAULT_MAX_QUERIES, DEFAULT_RETENTION, Interaction, KeptCounts, New, Pruned, Query, QueryFilter,
            StoredInteraction, StoredQuery,
        },
        stats::{Compared, KeptSearch, Shares, StatsFilter, WorstQuery},
    },
    rows::{
        micros,
        queries::{self as rows, InteractionRow, QueryRow, SessionRow},
    },
};

type Result<T> = std::result::Result<T, StoreError>;

/// Interactions shown of one query.
const SHOWN_INTERACTIONS: i64 = 100;

impl SqlStore {
    async fn record_once(&self, group: &Group) -> Result<Written> {
        let mut transaction = self.pools.begin_write().await?;
        let now: i64 = transaction
            .value(Statement::new("SELECT now FROM database_clock"))
            .await?;
        let group = &*erased::without_erased(&mut transaction, group, now).await?;
        let Inserted { arrived, known } = insert_queries(&mut transaction, &group.queries, now).await?;
        let interactions = insert_interactions(&mut transaction, &group.interactions, now).await?;
        let clicks = group.interactions.iter().filter(|new| new.item.is_click());
        let clicked = clicks.map(|new| (new.namespace.as_str(), new.item.query_id.as_str()));
        let of_ratings = arrived
            .iter()
            .chain(&known)
            .map(|(new, _)| (new.namespace.as_str(), new.item.id.as_str()));
        let ratings = contexts::lock_of(&mut transaction, &of_ratings.chain(clicked).collect()).await?;
        let joined = documents::join(&mut transaction, &known, now).await?;
        counts::count_terms(&mut transaction, &arrived, &joined).await?;
        counts::count_days(&mut transaction, &arrived, &joined, now).await?;
        contexts::renew(&mut transaction, &joined).await?;
        let rated = contexts::complete(&mut transaction, &ratings, false).await?;
        contexts::keep_clicks(&mut transaction, &ratings).await?;
        transaction.commit().await?;
        Ok(Written {
            queries: arrived.len() as u64,
            interactions,
            rated,
        })
    }

    async fn propose_once(&self, mined: &[NewMined]) -> Result<u64> {
        // Most were proposed before: writers need not wait for that.
        let mut reader = self.pools.reader().await?;
        let mut fresh = Vec::new();
        for new in mined {
            let statement = Statement::new(
                "SELECT accept_order FROM mined_rewrites WHERE namespace = $1 AND failed = $2 AND worked = $3",
            )
            .bind(new.namespace.as_str())
            .bind(new.failed.as_str())
            .bind(new.worked.as_str());
            let known: Option<(i64,)> = reader.optional(statement).await?;
            if known.is_none() {
                fresh.push(new);
            }
        }
        drop(reader);
        if fresh.is_empty() {
            return Ok(0);
        }
        let mut transaction = self.pools.begin_write().await?;
        let mut proposed = 0;
        for new in fresh {
            proposed += u64::from(insert_mined(&mut transaction, new).await?);
        }
        transaction.commit().await?;
        Ok(proposed)
    }

    async fn tell_once(
        &self,
        namespace: &Namespace,
        unanswered: &[NewMined],
        again: Duration,
        most: usize,
    ) -> Result<u64> {
        let mut transaction = self.pools.begin_write().await?;
        let statement = Statement::new(
            "DELETE FROM mined_rewrites
             WHERE namespace = $1 AND worked = '' AND told_at <= (SELECT now FROM database_clock) - $2
               AND NOT EXISTS (SELECT 1 FROM outbox AS o WHERE o.accept_order = mined_rewrites.accept_order)",
        )
        .bind(namespace.as_str())
        .bind(micros(again));
        transaction.execute(statement).await?;
        let statement =
            Statement::new("SELECT failed FROM mined_rewrites WHERE namespace = $1 AND worked = ''")
                .bind(namespace.as_str());
        let known: Vec<String> = transaction.values(statement).await?;
        let known: BTreeSet<String> = known.into_iter().collect();
        let mut told = 0;
        let new = unanswered.iter().filter(|query| !known.contains(&query.failed));
        for query in new.take(most) {
            told += u64::from(insert_mined(&mut transaction, query).await?);
        }
        transaction.commit().await?;
        Ok(told)
    }

    async fn forget_in(&self, namespace: &str, limit: u32) -> Result<u64> {
        let mut transaction = self.pools.begin_write().await?;
        let statement = Statement::new(
            "SELECT query_retention, max_queries FROM settings WHERE namespace = $1 ORDER BY version DESC LIMIT 1",
        )
        .bind(namespace);
        let kept: Option<(Option<i64>, Option<i64>)> = transaction.optional(statement).await?;
        let (retention, max) = kept.unwrap_or_default();
        let retention = retention.unwrap_or_else(|| micros(DEFAULT_RETENTION));
        let max = max.unwrap_or_else(|| i64::from(DEFAULT_MAX_QUERIES));
        let limit = i64::from(limit);
        // Ratings are locked before queries, as by all.
        let statement = Statement::new(FORGOTTEN_INTERACTIONS)
            .bind(namespace)
            .bind(retention)
            .bind(max)
            .bind(limit);
        let interactions: Vec<(i64, String, i64)> = transaction.rows(statement).await?;
        let clicks = interactions.iter().filter(|(_, _, is_click)| *is_click != 0);
        let clicked = clicks
            .map(|(_, query_id, _)| (namespace, query_id.as_str()))
            .collect();
        let ratings = contexts::lock_of(&mut transaction, &clicked).await?;
        contexts::keep_clicks(&mut transaction, &ratings).await?;
        let interactions: Vec<i64> = interactions.into_iter().map(|(number, ..)| number).collect();
        delete_all(&mut transaction, "query_interactions", &interactions).await?;
        let statement = Statement::new(FORGET_QUERIES)
            .bind(namespace)
            .bind(retention)
            .bind(max)
            .bind(limit);
        let queries: Vec<i64> = transaction.values(statement).await?;
        delete_all(&mut transaction, "query_personal", &queries).await?;
        transaction.commit().await?;
        Ok((queries.len() + interactions.len()) as u64)
    }
}

/// What is too old or too much: namespace, retention, bound, limit. The oldest have the lowest numbers, so no index of times
/// is needed.
const FORGET_QUERIES: &str = "
    DELETE FROM queries WHERE number IN (
        SELECT number FROM (
            SELECT number, recorded_at FROM queries WHERE namespace = $1 ORDER BY number LIMIT $4) AS oldest
        WHERE recorded_at < (SELECT now FROM database_clock) - $2
           OR number <= COALESCE((SELECT number FROM queries WHERE namespace = $1 ORDER BY number DESC LIMIT 1 OFFSET $3), -1))
    RETURNING number";
const FORGOTTEN_INTERACTIONS: &str = "
    SELECT number, query_id, is_click FROM (
        SELECT number, query_id, is_click, recorded_at FROM query_interactions
        WHERE namespace = $1 ORDER BY number LIMIT $4) AS oldest
    WHERE recorded_at < (SELECT now FROM database_clock) - $2
       OR number <= COALESCE((SELECT number FROM query_interactions WHERE namespace = $1
                              ORDER BY number DESC LIMIT 1 OFFSET $3), -1)";

/// The newest queries of sessions in which a query is known to have found nothing, with the time of their first click: namespace, limit.
const FAILED_SESSIONS: &str = "
    SELECT number, session_id, query_text, hit_count, searched_at, clicked_at FROM (
        SELECT q.number, p.session_id, p.query_text, q.hit_count, q.searched_at,
               (SELECT min(i.acted_at) FROM query_interactions AS i
                WHERE i.namespace = q.namespace AND i.query_id = q.query_id AND i.is_click = 1) AS clicked_at
        FROM query_personal AS p JOIN queries AS q ON q.number = p.number
        WHERE p.namespace = $1 AND p.session_id <> '' AND p.session_id IN (
            SELECT o.session_id FROM query_personal AS o JOIN queries AS f ON f.number = o.number
            WHERE o.namespace = $1 AND o.session_id <> '' AND f.hit_count = 0)
        ORDER BY q.number DESC LIMIT $2) AS newest
    ORDER BY session_id, searched_at, number";

/// Of the newest queries those of a session that found something, or of which that is not known, and of which a result was clicked.
const CLICKED_QUERIES: &str = "
    SELECT p.session_id, p.query_text FROM (
        SELECT number, query_id, hit_count FROM queries WHERE namespace = $1 ORDER BY number DESC LIMIT $2) AS q
    JOIN query_personal AS p ON p.number = q.number
    WHERE p.session_id <> '' AND (q.hit_count IS NULL OR q.hit_count > 0)
      AND EXISTS (SELECT 1 FROM query_interactions AS i
                  WHERE i.namespace = $1 AND i.query_id = q.query_id AND i.is_click = 1)";

/// The namespaces of which anything is kept, found by one step in an index for each.
const NAMESPACES: &str = "
    WITH RECURSIVE of_queries (namespace) AS (
        SELECT min(namespace) FROM queries
        UNION ALL SELECT (SELECT min(q.namespace) FROM queries AS q WHERE q.namespace > n.namespace)
        FROM of_queries AS n WHERE n.namespace IS NOT NULL
    ), of_interactions (namespace) AS (
        SELECT min(namespace) FROM query_interactions
        UNION ALL SELECT (SELECT min(i.namespace) FROM query_interactions AS i WHERE i.namespace > n.namespace)
        FROM of_interactions AS n WHERE n.namespace IS NOT NULL
    )
    SELECT namespace FROM of_queries WHERE namespace IS NOT NULL
    UNION SELECT namespace FROM of_interactions WHERE namespace IS NOT NULL";

/// Deletes the rows of a table that have these numbers.
async fn delete_all(connection: &mut Conn, table: &'static str, numbers: &[i64]) -> Result<()> {
    for chunk in chunks(numbers) {
        let mut delete = Statement::new("DELETE FROM ");
        delete.push(table).push(" WHERE number IN ");
        delete.push_list(chunk.iter().copied());
        connection.execute(delete).await?;
    }
    Ok(())
}

/// When something happened, in microseconds: as it says, or when it was received.
pub(super) fn event_time<T>(new: &New<T>, now: i64) -> i64 {
    new.at
        .map_or_else(|| now - micros(new.waited), jiff::Timestamp::as_microsecond)
}

/// A query, and its words.
pub(super) type Counted<'a> = &'a (New<Query>, BTreeSet<String>);

/// Queries of a group.
#[derive(Debug, Default)]
struct Inserted<'a> {
    /// Those that were not there before.
    arrived: Vec<Counted<'a>>,
    /// Those whose id was there.
    known: Vec<Counted<'a>>,
}

/// Stores an event, due at once, unless what it says was told before. Whether it was stored.
async fn insert_mined(transaction: &mut Conn, new: &NewMined) -> Result<bool> {
    let (order, now): (i64, i64) = next_accept_order(transaction).await?;
    let statement = Statement::new(
        "INSERT INTO mined_rewrites (namespace, failed, worked, accept_order, told_at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (namespace, failed, worked) DO NOTHING",
    )
    .bind(new.namespace.as_str())
    .bind(new.failed.as_str())
    .bind(new.worked.as_str())
    .bind(order)
    .bind(now);
    if transaction.execute(statement).await? == 0 {
        return Ok(false);
    }
    let event = erasure::insert_event(&new.event, (order, FeedbackId::none()), &new.namespace, 1, now);
    transaction.execute(event).await?;
    Ok(true)
}

/// Inserts queries whose ids are not there.
async fn insert_queries<'a>(
    connection: &mut Conn,
    queries: &'a [(New<Query>, BTreeSet<String>)],
    now: i64,
) -> Result<Inserted<'a>> {
    let mut all = Inserted::default();
    for chunk in chunks(queries) {
        let mut insert = Statement::new(
            "INSERT INTO queries (namespace, query_id, caller, query_type, embedding_version, index_version, variant,
                                  hit_count, details, searched_at, recorded_at, named_results) ",
        );
        insert.push_values(chunk, |mut row, (new, _)| {
            let query = &new.item;
            row.push_bind(new.namespace.as_str())
                .push_bind(query.id.as_str())
                .push_bind(new.caller.as_str())
                .push_bind(query.query_type.as_str())
                .push_bind(query.embedding_version.as_str())
                .push_bind(query.index_version.as_str())
                .push_bind(query.variant.as_str())
                .push_bind(query.hit_count.map(i64::from))
                .push_bind(rows::details(query))
                .push_bind(event_time(new, now))
                .push_bind(now)
                .push_bind(query.named_results.as_ref().map(NamedResults::bytes));
        });
        insert.push(" ON CONFLICT (namespace, query_id) DO NOTHING RETURNING number, namespace, query_id");
        let inserted: Vec<(i64, String, String)> = connection.rows(insert).await?;
        let mut numbers: HashMap<(String, String), i64> = HashMap::with_capacity(inserted.len());
        numbers.extend(
            inserted
                .into_iter()
                .map(|(number, namespace, id)| ((namespace, id), number)),
        );
        let mut stored = Vec::with_capacity(numbers.len());
        for query in chunk {
            let (new, _) = query;
            // Of two with one id in this chunk, the first is the one that was inserted.
            match numbers.remove(&(new.namespace.to_string(), new.item.id.to_string())) {
                Some(number) => stored.push((number, query)),
                None => all.known.push(query),
            }
        }
        for of_chunk in chunks(&stored) {
            insert_personal(connection, of_chunk).await?;
        }
        all.arrived.extend(stored.into_iter().map(|(_, query)| query));
    }
    Ok(all)
}

async fn insert_personal(connection: &mut Conn, chunk: &[(i64, Counted<'_>)]) -> Result<()> {
    let mut insert = Statement::new(
        "INSERT INTO query_personal (number, namespace, session_id, query_text, answer_text, classification) ",
    );
    insert.push_values(chunk, |mut row, (number, (new, _))| {
        row.push_bind(*number)
            .push_bind(new.namespace.as_str())
            .push_bind(new.item.session_id.as_str())
            .push_bind(new.item.query_text.as_str())
            .push_bind(new.item.answer_text.as_str())
            .push_bind(new.item.classification.as_str());
    });
    connection.execute(insert).await?;
    Ok(())
}

/// Inserts interactions; returns how many were not there before. Of equal ones the earliest counts.
async fn insert_interactions(
    connection: &mut Conn,
    interactions: &[New<Interaction>],
    now: i64,
) -> Result<u64> {
    let mut inserted = 0;
    let earliest = earliest(interactions, now);
    for chunk in chunks(&earliest) {
        let mut insert = Statement::new(
            "INSERT INTO query_interactions (namespace, query_id, action, is_click, object_id, position, acted_at,
                                             recorded_at) ",
        );
        insert.push_values(chunk, |mut row, (new, acted_at)| {
            row.push_bind(new.namespace.as_str())
                .push_bind(new.item.query_id.as_str())
                .push_bind(new.item.action.as_str())
                .push_bind(i64::from(new.item.is_click()))
                .push_bind(new.item.object_id.as_str())
                .push_bind(i64::from(new.item.position))
                .push_bind(*acted_at)
                .push_bind(now);
        });
        insert.push(" ON CONFLICT (namespace, query_id, action, object_id, position) DO NOTHING");
        let new = connection.execute(insert).await?;
        inserted += new;
        if new == chunk.len() as u64 {
            continue;
        }
        let mut update =
            Statement::new("WITH said (namespace, query_id, action, object_id, position, acted_at) AS (");
        update.push_values(chunk, |mut row, (new, acted_at)| {
            row.push_bind(new.namespace.as_str())
                .push_bind(new.item.query_id.as_str())
                .push_bind(new.item.action.as_str())
                .push_bind(new.item.object_id.as_str())
                .push_bind(i64::from(new.item.position))
                .push_bind(*acted_at);
        });
        update.push(
            ") UPDATE query_interactions AS i SET acted_at = said.acted_at FROM said
               WHERE i.namespace = said.namespace AND i.query_id = said.query_id AND i.action = said.action
                 AND i.object_id = said.object_id AND i.position = said.position AND i.acted_at > said.acted_at",
        );
        connection.execute(update).await?;
    }
    Ok(inserted)
}

/// The earliest of equal interactions, with when it was, in the order in which they came.
fn earliest(interactions: &[New<Interaction>], now: i64) -> Vec<(&New<Interaction>, i64)> {
    let mut all: Vec<(&New<Interaction>, i64)> = Vec::with_capacity(interactions.len());
    let mut places = HashMap::with_capacity(interactions.len());
    for new in interactions {
        let acted_at = event_time(new, now);
        match places.entry((&new.namespace, &new.item)) {
            Entry::Vacant(place) => {
                place.insert(all.len());
                all.push((new, acted_at));
            }
            Entry::Occupied(place) => {
                let known = &mut all[*place.get()].1;
                *known = acted_at.min(*known);
            }
        }
    }
    all
}

fn select(namespace: &Namespace) -> Statement {
    let mut select = Statement::new("SELECT ");
    select
        .push(QueryRow::COLUMNS)
        .push(" FROM queries AS q JOIN query_personal AS p ON p.number = q.number WHERE q.namespace = ")
        .push_bind(namespace.as_str().to_owned());
    select
}

/// One query, if it is kept.
pub(super) async fn find_query(
    connection: &mut Conn,
    namespace: &Namespace,
    id: &QueryId,
) -> Result<Option<StoredQuery>> {
    let mut query = select(namespace);
    query.push(" AND q.query_id = ").push_bind(id.as_str());
    let row: Option<QueryRow> = connection.optional(query).await?;
    let found: Vec<StoredQuery> = row
        .into_iter()
        .map(StoredQuery::try_from)
        .collect::<std::result::Result<_, _>>()?;
    Ok(with_interactions(connection, namespace, found).await?.pop())
}

async fn list(connection: &mut Conn, filter: &QueryFilter) -> Result<Vec<StoredQuery>> {
    let mut query = select(&filter.namespace);
    if let Some(query_type) = &filter.query_type {
        query.push(" AND q.query_type = ").push_bind(query_type);
    }
    if filter.only_without_hits {
        query.push(" AND q.hit_count = 0");
    }
    if let Some(from) = filter.from {
        query
            .push(" AND q.searched_at >= ")
            .push_bind(from.as_microsecond());
    }
    if let Some(before) = filter.before {
        query
            .push(" AND q.searched_at < ")
            .push_bind(before.as_microsecond());
    }
    if let Some(after) = filter.after {
        query.push(" AND q.number < ").push_bind(after);
    }
    query
        .push(" ORDER BY q.number DESC LIMIT ")
        .push_bind(i64::from(filter.limit));
    let rows: Vec<QueryRow> = connection.rows(query).await?;
    let found = rows
        .into_iter()
        .map(StoredQuery::try_from)
        .collect::<std::result::Result<_, _>>()?;
    with_interactions(connection, &filter.namespace, found).await
}

/// Adds to queries of a namespace what was done with their results.
async fn with_interactions(
    connection: &mut Conn,
    namespace: &Namespace,
    mut queries: Vec<StoredQuery>,
) -> Result<Vec<StoredQuery>> {
    let mut by_id: HashMap<String, Vec<StoredInteraction>> = HashMap::new();
    for chunk in chunks(&queries) {
        let mut select = Statement::new(
            "SELECT number, query_id, action, object_id, position, acted_at FROM (
                 SELECT number, query_id, action, object_id, position, acted_at,
                        row_number() OVER (PARTITION BY query_id ORDER BY is_click DESC, acted_at, number) AS place
                 FROM query_interactions WHERE namespace = ",
        );
        select.push_bind(namespace.as_str()).push(" AND query_id IN ");
        select.push_list(chunk.iter().map(|query| query.query.id.as_str()));
        select
            .push(") AS placed WHERE place <= ")
            .push_bind(SHOWN_INTERACTIONS)
            .push(" ORDER BY query_id, acted_at, number");
        let rows: Vec<InteractionRow> = connection.rows(select).await?;
        for row in rows {
            let interaction = StoredInteraction::try_from(row)?;
            let id = interaction.interaction.query_id.as_str().to_owned();
            by_id.entry(id).or_default().push(interaction);
        }
    }
    for query in &mut queries {
        query.interactions = by_id.remove(query.query.id.as_str()).unwrap_or_default();
    }
    Ok(queries)
}

#[async_trait]
impl QueryStore for SqlStore {
    async fn record(&self, group: &Group) -> Result<Written> {
        retry_conflicts(&self.entropy, || self.record_once(group)).await
    }

    async fn queries(&self, filter: &QueryFilter) -> Result<Vec<StoredQuery>> {
        let is_wide = filter.query_type.is_some()
            || filter.only_without_hits
            || filter.from.is_some()
            || filter.before.is_some();
        list(&mut self.lister(is_wide).await?, filter).await
    }

    async fn find_query(&self, namespace: &Namespace, id: &QueryId) -> Result<Option<StoredQuery>> {
        find_query(&mut self.pools.reader().await?, namespace, id).await
    }

    async fn namespaces(&self) -> Result<Vec<Namespace>> {
        let names: Vec<String> = self
            .pools
            .reader()
            .await?
            .values(Statement::new(NAMESPACES))
            .await?;
        let parsed = names.iter().map(|name| {
            Namespace::parse(name)
                .map_err(|invalid| CorruptRow::new("queries", "namespace", name, invalid).into())
        });
        parsed.collect()
    }

    async fn failed_sessions(
        &self,
        namespace: &Namespace,
        limit: u32,
        each: &mut (dyn FnMut(SessionQuery) + Send),
    ) -> Result<()> {
        let mut lister = self.lister(true).await?;
        let statement = Statement::new(FAILED_SESSIONS)
            .bind(namespace.as_str())
            .bind(i64::from(limit));
        let mut rows = lister.stream::<SessionRow>(statement);
        while let Some(row) = rows.try_next().await? {
            each(SessionQuery::try_from(row)?);
        }
        Ok(())
    }

    async fn clicked_queries(
        &self,
        namespace: &Namespace,
        limit: u32,
        each: &mut (dyn FnMut(ClickedQuery) + Send),
    ) -> Result<()> {
        let mut lister = self.lister(true).await?;
        let statement = Statement::new(CLICKED_QUERIES)
            .bind(namespace.as_str())
            .bind(i64::from(limit));
        let mut rows = lister.stream::<(String, String)>(statement);
        while let Some((session_id, text)) = rows.try_next().await? {
            each(ClickedQuery { session_id, text });
        }
        Ok(())
    }

    async fn propose(&self, mined: &[NewMined]) -> Result<u64> {
        retry_conflicts(&self.entropy, || self.propose_once(mined)).await
    }

    async fn tell(
        &self,
        namespace: &Namespace,
        unanswered: &[NewMined],
        again: Duration,
        most: usize,
    ) -> Result<u64> {
        retry_conflicts(&self.entropy, || {
            self.tell_once(namespace, unanswered, again, most)
        })
        .await
    }

    async fn shares(&self, filter: &StatsFilter, compared: Option<&Compared>) -> Result<Shares> {
        stats::shares(&mut self.lister(true).await?, filter, compared).await
    }

    async fn worst_queries(&self, filter: &StatsFilter, limit: u32) -> Result<(Vec<WorstQuery>, u64)> {
        stats::worst_queries(&mut self.lister(true).await?, filter, limit).await
    }

    async fn kept_searches(
        &self,
        filter: &StatsFilter,
        each: &mut (dyn FnMut(KeptSearch) + Send),
    ) -> Result<()> {
        stats::kept_searches(&mut self.lister(true).await?, filter, each).await
    }

    async fn negative_texts(
        &self,
        filter: &StatsFilter,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<(i64, String, String)>> {
        stats::negative_texts(&mut self.lister(true).await?, filter, before, limit).await
    }

    async fn term_counts(&self, namespace: &Namespace, terms: &[&str]) -> Result<CountedTerms> {
        stats::term_counts(&mut self.lister(true).await?, namespace, terms).await
    }

    async fn prune_counts(&self, kept: KeptCounts) -> Result<Pruned> {
        let namespaces: Vec<String> = self
            .pools
            .reader()
            .await?
            .values(Statement::new(counts::NAMESPACES))
            .await?;
        let mut all = Pruned::default();
        for namespace in namespaces {
            let pruned = retry_conflicts(&self.entropy, || self.prune_counts_of(&namespace, kept)).await?;
            all.words += pruned.words;
            all.rows += pruned.rows;
        }
        Ok(all)
    }

    async fn forget_erased(&self, known: Duration, limit: u32) -> Result<u64> {
        retry_conflicts(&self.entropy, || self.forget_erased_once(known, limit)).await
    }

    async fn forget(&self, limit: u32) -> Result<u64> {
        let mut forgotten = 0;
        for namespace in QueryStore::namespaces(self).await? {
            forgotten += retry_conflicts(&self.entropy, || self.forget_in(namespace.as_str(), limit)).await?;
        }
        Ok(forgotten)
    }
}
