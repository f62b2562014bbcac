//! The portable SQL of what ratings say of search. Written once, compiled for each database: `super::Db` says which.

use std::collections::HashMap;

use emend_core::Namespace;
use emend_store::CorruptRow;
use jiff::civil::Date;
use prost::Message as _;
use sqlx::QueryBuilder;

use super::{
    super::{StoreError, chunks::chunks},
    Connection, Db,
};
use crate::queries::stats::{Dimension, MAX_NAMES, Share, StatsFilter};

type Result<T> = std::result::Result<T, StoreError>;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// The first Monday of 1970.
const FIRST_MONDAY: Date = jiff::civil::date(1970, 1, 5);

/// Ratings that count: neither replaced nor taken back.
const COUNTED: &str = " FROM search_ratings AS r JOIN feedback_status AS s ON s.accept_order = r.accept_order
    WHERE r.replaced_by IS NULL AND s.retracted_at IS NULL AND r.namespace = ";

/// What names a rating in this dimension, in SQL; weeks by their number since the first Monday of 1970.
fn name_of_rating(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Week => "CAST((r.rated_at - 345600000000) / 604800000000 AS TEXT)",
        Dimension::QueryType => "r.query_type",
        Dimension::EmbeddingVersion => "r.embedding_version",
        Dimension::IndexVersion => "r.index_version",
        Dimension::Variant => "r.variant",
    }
}

/// The same for counted queries.
fn name_of_queries(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Week => "CAST((d.day - 4) / 7 AS TEXT)",
        Dimension::QueryType => "d.query_type",
        Dimension::EmbeddingVersion => "d.embedding_version",
        Dimension::IndexVersion => "d.index_version",
        Dimension::Variant => "d.variant",
    }
}

fn push_filter(query: &mut QueryBuilder<Db>, filter: &StatsFilter) {
    query
        .push(COUNTED)
        .push_bind(filter.namespace.as_str().to_owned());
    if let Some(from) = filter.from {
        query.push(" AND r.rated_at >= ").push_bind(from.as_microsecond());
    }
    if let Some(before) = filter.before {
        query
            .push(" AND r.rated_at < ")
            .push_bind(before.as_microsecond());
    }
    if let Some(query_type) = &filter.query_type {
        query.push(" AND r.query_type = ").push_bind(query_type.clone());
    }
}

/// Ratings by one dimension, the names with the most first, with the number of queries of the same days.
pub(super) async fn shares(
    connection: &mut Connection,
    filter: &StatsFilter,
    dimension: Dimension,
) -> Result<Vec<Share>> {
    let mut select = QueryBuilder::<Db>::new("SELECT ");
    select.push(name_of_rating(dimension)).push(
        " AS name, count(*), count(*) FILTER (WHERE r.rating = -1), count(*) FILTER (WHERE r.rating = 1)",
    );
    push_filter(&mut select, filter);
    select
        .push(" GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ")
        .push_bind(i64::from(MAX_NAMES));
    let rated: Vec<(String, i64, i64, i64)> = select.build_query_as().fetch_all(&mut *connection).await?;
    let queries = queries_by(connection, filter, dimension).await?;
    let count = |count: i64| u64::try_from(count).unwrap_or_default();
    let mut shares = Vec::with_capacity(rated.len());
    for (name, ratings, negative, positive) in rated {
        shares.push(Share {
            ratings: count(ratings),
            negative: count(negative),
            positive: count(positive),
            queries: queries.get(&name).copied().map(count).unwrap_or_default(),
            name: if dimension == Dimension::Week {
                monday(&name)?
            } else {
                name
            },
        });
    }
    Ok(shares)
}

/// The date of the Monday of a week with this number.
fn monday(number: &str) -> Result<String> {
    let corrupt =
        |error: &dyn std::fmt::Display| CorruptRow::new("search_ratings", "rated_at", number, error);
    let weeks: i64 = number.parse().map_err(|error| corrupt(&error))?;
    let span = jiff::Span::new()
        .try_weeks(weeks)
        .map_err(|error| corrupt(&error))?;
    let monday = FIRST_MONDAY.checked_add(span).map_err(|error| corrupt(&error))?;
    Ok(monday.to_string())
}

async fn queries_by(
    connection: &mut Connection,
    filter: &StatsFilter,
    dimension: Dimension,
) -> Result<HashMap<String, i64>> {
    let mut select = QueryBuilder::<Db>::new("SELECT ");
    select
        .push(name_of_queries(dimension))
        .push(" AS name, CAST(sum(d.queries) AS BIGINT) FROM query_days AS d WHERE d.namespace = ")
        .push_bind(filter.namespace.as_str());
    if let Some(from) = filter.from {
        select
            .push(" AND d.day >= ")
            .push_bind(from.as_microsecond().div_euclid(DAY));
    }
    if let Some(before) = filter.before {
        // The day of the last microsecond before.
        select
            .push(" AND d.day <= ")
            .push_bind((before.as_microsecond() - 1).div_euclid(DAY));
    }
    if let Some(query_type) = &filter.query_type {
        select.push(" AND d.query_type = ").push_bind(query_type);
    }
    select
        .push(" GROUP BY 1 ORDER BY 2 DESC LIMIT ")
        .push_bind(i64::from(MAX_NAMES));
    let counts: Vec<(String, i64)> = select.build_query_as().fetch_all(connection).await?;
    Ok(counts.into_iter().collect())
}

/// What was searched for where the results were rated −1, once for each rating: the newest, at most `limit`.
pub(super) async fn negative_texts(
    connection: &mut Connection,
    filter: &StatsFilter,
    limit: u32,
) -> Result<Vec<String>> {
    let mut select = QueryBuilder::<Db>::new("SELECT r.accept_order, r.query");
    push_filter(&mut select, filter);
    select
        .push(" AND r.rating = -1 AND r.context_state = 2 ORDER BY r.accept_order DESC LIMIT ")
        .push_bind(i64::from(limit));
    let rows: Vec<(i64, Vec<u8>)> = select.build_query_as().fetch_all(connection).await?;
    let mut texts = Vec::with_capacity(rows.len());
    for (order, query) in rows {
        let query = emend_proto::feedback::v1::Query::decode(query.as_slice())
            .map_err(|error| CorruptRow::new("search_ratings", "query", order, error))?;
        // Without its texts it is erased.
        if !query.query_text.is_empty() {
            texts.push(query.query_text);
        }
    }
    Ok(texts)
}

/// In how many queries each of these words was, and how many queries there were.
pub(super) async fn term_counts(
    connection: &mut Connection,
    namespace: &Namespace,
    terms: &[&str],
) -> Result<(HashMap<String, u64>, u64)> {
    let mut counts = HashMap::with_capacity(terms.len());
    for chunk in chunks(terms) {
        let mut select = QueryBuilder::<Db>::new("SELECT term, queries FROM query_terms WHERE namespace = ");
        select.push_bind(namespace.as_str()).push(" AND term IN (");
        let mut list = select.separated(", ");
        for term in chunk {
            list.push_bind(*term);
        }
        select.push(")");
        let found: Vec<(String, i64)> = select.build_query_as().fetch_all(&mut *connection).await?;
        counts.extend(
            found
                .into_iter()
                .map(|(term, queries)| (term, u64::try_from(queries).unwrap_or_default())),
        );
    }
    let all: Option<i64> =
        sqlx::query_scalar("SELECT CAST(sum(queries) AS BIGINT) FROM query_days WHERE namespace = $1")
            .bind(namespace.as_str())
            .fetch_one(connection)
            .await?;
    Ok((counts, u64::try_from(all.unwrap_or_default()).unwrap_or_default()))
}
