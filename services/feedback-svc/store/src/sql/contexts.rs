//! SQL of what ratings take over from their queries: when it is taken, what is added by clicks, and how it is
//! erased.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use emend_core::{Namespace, search::SearchRating};
use emend_proto::feedback::v1 as pb;
use emend_store::{
    CorruptRow, StoreError,
    sql::{Conn, Dialect, Statement},
};
use futures::TryStreamExt as _;
use prost::Message as _;

use super::{SqlStore, documents::Joined};
use crate::{
    chunks::chunks,
    ports::{Settled, SettledRating},
    records::{
        clicks,
        queries::{StoredInteraction, StoredQuery, interaction_message, query_key, query_message},
        ratings::ContextState,
    },
    rows::{
        self,
        queries::{InteractionRow, QueryRow},
    },
};

type Result<T> = std::result::Result<T, StoreError>;

/// What a rating that is settled is known by.
#[derive(Debug, sqlx_macros::FromRow)]
struct IdRow {
    accept_order: i64,
    namespace: String,
    feedback_id: Vec<u8>,
    rating: i64,
}

impl IdRow {
    const COLUMNS: &str = "r.accept_order, r.namespace, f.feedback_id, r.rating";

    fn settled(&self, query: &pb::Query) -> std::result::Result<SettledRating, CorruptRow> {
        let order = self.accept_order;
        let bad = |column, reason: &dyn std::fmt::Display| {
            CorruptRow::new("search_ratings", column, order, reason.to_string())
        };
        let rating = SearchRating::from_number(self.rating)
            .ok_or_else(|| bad("rating", &format_args!("is no rating: {}", self.rating)))?;
        let titles = query.top_results.iter().map(|result| result.title.clone());
        Ok(SettledRating {
            namespace: Namespace::parse(&self.namespace).map_err(|invalid| bad("namespace", &invalid))?,
            id: rows::feedback_id("feedback", order, &self.feedback_id)?,
            rating,
            query_type: query.query_type.clone(),
            titles: titles.collect(),
        })
    }
}

/// A rating that waits for its query, with the query.
#[derive(Debug, sqlx_macros::FromRow)]
struct FoundRow {
    #[sqlx(flatten)]
    rating: IdRow,
    #[sqlx(flatten)]
    query: QueryRow,
}

/// Locks the ratings of these queries, by namespace and id, until the transaction ends; returns their accept orders. Ratings
/// are locked before queries, and all that a transaction needs at once, in accept order: so no two wait for each other.
pub(super) async fn lock_of(connection: &mut Conn, queries: &BTreeSet<(&str, &str)>) -> Result<Vec<i64>> {
    let mut orders: Vec<i64> = Vec::new();
    for chunk in chunks(&queries.iter().collect::<Vec<_>>()) {
        let mut select = Statement::new(
            "SELECT accept_order FROM search_ratings WHERE query_id <> '' AND (namespace, query_id) IN (",
        );
        select.push_values(chunk, |mut row, (namespace, query_id)| {
            row.push_bind(*namespace).push_bind(*query_id);
        });
        select.push(")");
        let found: Vec<i64> = connection.values(select).await?;
        orders.extend(found);
    }
    lock(connection, &mut orders).await?;
    Ok(orders)
}

/// Puts these ratings in accept order, and locks them in it until the transaction ends.
pub(super) async fn lock(connection: &mut Conn, orders: &mut Vec<i64>) -> Result<()> {
    orders.sort_unstable();
    orders.dedup();
    for chunk in chunks(orders) {
        let mut select = Statement::new("SELECT accept_order FROM search_ratings WHERE accept_order IN ");
        select.push_list(chunk.iter().copied());
        select.push(" ORDER BY accept_order").for_update();
        let _: Vec<i64> = connection.values(select).await?;
    }
    Ok(())
}

/// Gives those of these ratings that wait for queries which are known what is known of them; `at_once` if the ratings are stored
/// only now. What the rater sent of the query is dropped. To be called by whoever stores ratings or queries, in the same
/// transaction, of ratings that it has stored or locked. Returns the ratings that wait no longer.
pub(super) async fn complete(
    connection: &mut Conn,
    orders: &[i64],
    at_once: bool,
) -> Result<Vec<SettledRating>> {
    let mut completed = Vec::new();
    for chunk in chunks(orders) {
        let mut select = Statement::new("SELECT ");
        select
            .push(IdRow::COLUMNS)
            .push(", ")
            .push(QueryRow::COLUMNS)
            .push(
                " FROM search_ratings AS r JOIN feedback AS f ON f.accept_order = r.accept_order
                JOIN queries AS q ON q.namespace = r.namespace AND q.query_id = r.query_id
                JOIN query_personal AS p ON p.number = q.number
              WHERE r.context_state = 1 AND r.query_id <> '' AND r.accept_order IN ",
            );
        select.push_list(chunk.iter().copied());
        // Locked, so that a text that was read is not erased before it is written.
        select
            .push(" ORDER BY p.number, r.accept_order")
            .push(match connection.dialect() {
                Dialect::Sqlite => "",
                Dialect::Postgres => " FOR SHARE OF p",
            });
        let found: Vec<FoundRow> = connection.rows(select).await?;
        completed.append(&mut write_found(connection, found, at_once).await?);
    }
    Ok(completed)
}

async fn write_found(
    connection: &mut Conn,
    mut found: Vec<FoundRow>,
    at_once: bool,
) -> Result<Vec<SettledRating>> {
    found.sort_unstable_by_key(|row| row.rating.accept_order);
    let mut settled = Vec::with_capacity(found.len());
    let mut copies = Vec::with_capacity(found.len());
    for FoundRow { rating, query } in found {
        let query = query_message(StoredQuery::try_from(query)?);
        settled.push(rating.settled(&query)?);
        copies.push(Copied {
            accept_order: rating.accept_order,
            namespace: rating.namespace,
            query,
            has_more: false,
        });
    }
    add_clicks(connection, &mut copies).await?;
    let mut completed = Vec::with_capacity(settled.len());
    for (copy, settled) in copies.into_iter().zip(settled) {
        let Copied {
            accept_order, query, ..
        } = copy;
        let statement = Statement::new(
            "UPDATE search_ratings SET context_state = $2, query_type = $3, embedding_version = $4, index_version = $5,
                    variant = $6, query = $7, session_id = $8, known_at_once = $9, query_key = $10
             WHERE accept_order = $1 AND query_id <> '' AND context_state = 1",
        )
        .bind(accept_order)
        .bind(ContextState::Complete.number())
        .bind(&query.query_type)
        .bind(&query.embedding_version)
        .bind(&query.index_version)
        .bind(&query.variant)
        .bind(query.encode_to_vec())
        .bind(&query.session_id)
        .bind(i64::from(at_once))
        .bind(query_key(&query.query_text).map(|key| key.to_vec()));
        let written = connection.execute(statement).await?;
        if written == 0 {
            // Counted by whoever changed it.
            continue;
        }
        let statement = Statement::new("UPDATE feedback_personal SET context = '{}' WHERE accept_order = $1")
            .bind(accept_order);
        connection.execute(statement).await?;
        completed.push(settled);
    }
    Ok(completed)
}

/// A rating's copy of its query.
#[derive(Debug)]
struct Copied {
    accept_order: i64,
    namespace: String,
    query: pb::Query,
    /// Whether a click was added.
    has_more: bool,
}

/// A click, and where it was done.
#[derive(Debug, sqlx_macros::FromRow)]
struct ClickRow {
    namespace: String,
    #[sqlx(flatten)]
    interaction: InteractionRow,
}

/// Adds to copies what was clicked of their queries and is still kept there.
async fn add_clicks(connection: &mut Conn, copies: &mut [Copied]) -> Result<()> {
    let mut places: HashMap<(String, String), Vec<usize>> = HashMap::new();
    for (place, copy) in copies.iter().enumerate() {
        let key = (copy.namespace.clone(), copy.query.query_id.clone());
        places.entry(key).or_default().push(place);
    }
    let queries: Vec<&(String, String)> = places.keys().collect();
    for chunk in chunks(&queries) {
        let mut select = Statement::new(
            "SELECT namespace, number, query_id, action, object_id, position, acted_at FROM (
                 SELECT namespace, number, query_id, action, object_id, position, acted_at,
                        row_number() OVER (PARTITION BY namespace, query_id, object_id ORDER BY acted_at, number) AS place
                 FROM query_interactions WHERE is_click = 1 AND (namespace, query_id) IN (",
        );
        select.push_values(chunk, |mut row, (namespace, query_id)| {
            row.push_bind(namespace).push_bind(query_id);
        });
        select.push(")) AS clicks WHERE place = 1 ORDER BY acted_at, number");
        // There may be more than are kept: read one by one.
        let mut rows = connection.stream(select);
        while let Some(ClickRow {
            namespace,
            interaction,
        }) = rows.try_next().await?
        {
            let click = interaction_message(StoredInteraction::try_from(interaction)?);
            let key = (namespace, click.query_id.clone());
            for place in places.get(&key).into_iter().flatten() {
                let copy = &mut copies[*place];
                copy.has_more |= clicks::add(&mut copy.query, click.clone());
            }
        }
    }
    Ok(())
}

/// Gives the copies that ratings have of these queries what documents added to them. To be called in the transaction that holds the
/// queries: whoever copied one before has now written it.
pub(super) async fn renew(connection: &mut Conn, joined: &[Joined]) -> Result<()> {
    for joined in joined {
        let after = &joined.after.query;
        if after.is_erased() {
            let namespace = Namespace::parse(&joined.namespace)
                .map_err(|invalid| CorruptRow::new("queries", "namespace", joined.after.number, invalid))?;
            erase_copies(connection, &namespace, after.id.as_str(), "").await?;
            continue;
        }
        let statement = Statement::new(
            "SELECT accept_order, query FROM search_ratings
             WHERE namespace = $1 AND query_id <> '' AND query_id = $2 AND length(query) > 0 ORDER BY accept_order",
        )
        .bind(&joined.namespace)
        .bind(after.id.as_str());
        let copies: Vec<(i64, Vec<u8>)> = connection.rows(statement).await?;
        for (accept_order, copy) in copies {
            let copy = pb::Query::decode(copy.as_slice())
                .map_err(|error| CorruptRow::new("search_ratings", "query", accept_order, error))?;
            let query = pb::Query {
                interactions: copy.interactions,
                ..joined.message()
            };
            let statement = Statement::new(
                "UPDATE search_ratings SET query = $2, session_id = $3, query_key = $4 WHERE accept_order = $1",
            )
            .bind(accept_order)
            .bind(query.encode_to_vec())
            .bind(&query.session_id)
            .bind(query_key(&query.query_text).map(|key| key.to_vec()));
            connection.execute(statement).await?;
        }
    }
    Ok(())
}

/// Gives these ratings, if they took over what is known of their queries, the clicks that came after that. To be called by
/// whoever stores clicks, in the same transaction, and by whoever forgets them: two transactions at one moment, that of a rating
/// and that of a click, may not have seen each other. The ratings must be locked.
pub(super) async fn keep_clicks(connection: &mut Conn, orders: &[i64]) -> Result<()> {
    for chunk in chunks(orders) {
        // A copy that is erased stays so.
        let mut select = Statement::new(
            "SELECT accept_order, namespace, query FROM search_ratings
             WHERE query_id <> '' AND length(query) > 0 AND accept_order IN ",
        );
        select.push_list(chunk.iter().copied());
        let rows: Vec<(i64, String, Vec<u8>)> = connection.rows(select).await?;
        let mut copies = Vec::with_capacity(rows.len());
        for (accept_order, namespace, query) in rows {
            let query = pb::Query::decode(query.as_slice())
                .map_err(|error| CorruptRow::new("search_ratings", "query", accept_order, error))?;
            copies.push(Copied {
                accept_order,
                namespace,
                query,
                has_more: false,
            });
        }
        add_clicks(connection, &mut copies).await?;
        for copy in copies.iter().filter(|copy| copy.has_more) {
            let statement = Statement::new("UPDATE search_ratings SET query = $2 WHERE accept_order = $1")
                .bind(copy.accept_order)
                .bind(copy.query.encode_to_vec());
            connection.execute(statement).await?;
        }
    }
    Ok(())
}

/// Erases what is personal of a rating.
pub(super) async fn redact(connection: &mut Conn, accept_order: i64) -> Result<()> {
    let statement = Statement::new(
        "UPDATE search_ratings SET rater = NULL, query_id = '', query = $2, query_key = NULL, session_id = ''
         WHERE accept_order = $1",
    )
    .bind(accept_order)
    .bind(&[] as &[u8]);
    connection.execute(statement).await?;
    Ok(())
}

/// Erases the copies that ratings have of the query with this id and of the queries of this session. Empty: of none.
pub(super) async fn erase_copies(
    connection: &mut Conn,
    namespace: &Namespace,
    query_id: &str,
    session_id: &str,
) -> Result<()> {
    let mut erase = Statement::new("UPDATE search_ratings SET session_id = '', query_key = NULL, query = ");
    erase.push_bind(&[] as &[u8]);
    // Each half is found by an index of its own.
    erase
        .push(
            " WHERE accept_order IN (
                 SELECT accept_order FROM search_ratings
                 WHERE length(query) > 0 AND accept_order IN (
                     SELECT accept_order FROM search_ratings WHERE query_id <> '' AND namespace = ",
        )
        .push_bind(namespace.as_str())
        .push(" AND query_id = ")
        .push_bind(query_id)
        .push(" UNION ALL SELECT accept_order FROM search_ratings WHERE session_id <> '' AND namespace = ")
        .push_bind(namespace.as_str())
        .push(" AND session_id = ")
        .push_bind(session_id)
        .push(") ORDER BY accept_order")
        .for_update()
        .push(")");
    connection.execute(erase).await?;
    Ok(())
}

impl SqlStore {
    pub(super) async fn settle_contexts_once(&self, waited: Duration, limit: u32) -> Result<Settled> {
        let mut transaction = self.pools.begin_write().await?;
        let statement = Statement::new(
            "SELECT accept_order FROM search_ratings
             WHERE context_state = 1 AND rated_at <= (SELECT now FROM database_clock) - $1
             ORDER BY rated_at, accept_order LIMIT $2",
        )
        .bind(rows::micros(waited))
        .bind(i64::from(limit));
        let mut waiting: Vec<i64> = transaction.values(statement).await?;
        lock(&mut transaction, &mut waiting).await?;
        // Those that became complete before they were locked are passed over from here on.
        let mut settled = Settled {
            complete: complete(&mut transaction, &waiting, false).await?,
            missing: Vec::new(),
        };
        for chunk in chunks(&waiting) {
            let mut select = Statement::new("SELECT ");
            select.push(IdRow::COLUMNS).push(
                " FROM search_ratings AS r JOIN feedback AS f ON f.accept_order = r.accept_order
                  WHERE r.context_state = 1 AND r.accept_order IN ",
            );
            select.push_list(chunk.iter().copied());
            let missing: Vec<IdRow> = transaction.rows(select).await?;
            for rating in &missing {
                settled.missing.push(rating.settled(&pb::Query::default())?);
            }
            let mut update = Statement::new("UPDATE search_ratings SET context_state = ");
            update
                .push_bind(ContextState::Missing.number())
                .push(" WHERE context_state = 1 AND accept_order IN ");
            update.push_list(chunk.iter().copied());
            transaction.execute(update).await?;
        }
        transaction.commit().await?;
        Ok(settled)
    }
}
