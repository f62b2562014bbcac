//! SQL of what ratings say of search.

use emend_core::Namespace;
use emend_store::{
    CorruptRow, StoreError,
    sql::{Conn, Statement},
};
use futures::TryStreamExt as _;
use jiff::civil::Date;
use prost::Message as _;

use super::{counts::DAY, ledger::ceiling_micros};
use crate::{
    chunks::chunks,
    ports::CountedTerms,
    records::stats::{
        Compared, Dimension, KeptSearch, MAX_NAMES, MAX_SEARCHES, Share, Shares, StatsFilter, WorstQuery,
    },
    rows,
};

type Result<T> = std::result::Result<T, StoreError>;

/// The first Monday of 1970.
const FIRST_MONDAY: Date = jiff::civil::date(1970, 1, 5);

/// Ratings that count: neither replaced nor taken back.
const COUNTED: &str = " FROM search_ratings AS r JOIN feedback_status AS s ON s.accept_order = r.accept_order
    WHERE r.replaced_by IS NULL AND s.retracted_at IS NULL AND r.namespace = ";

/// What names ratings and queries in this dimension, of what [`push_counted`] selects; weeks by their number since the first
/// Monday of 1970.
fn name(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Week => "CAST(week AS TEXT)",
        Dimension::QueryType => "query_type",
        Dimension::EmbeddingVersion => "embedding_version",
        Dimension::IndexVersion => "index_version",
        Dimension::Variant => "variant",
    }
}

fn push_filter(query: &mut Statement, filter: &StatsFilter) {
    query
        .push(COUNTED)
        .push_bind(filter.namespace.as_str().to_owned());
    if let Some(from) = filter.from {
        query.push(" AND r.rated_at >= ").push_bind(ceiling_micros(from));
    }
    if let Some(before) = filter.before {
        query.push(" AND r.rated_at < ").push_bind(ceiling_micros(before));
    }
    if let Some(query_type) = &filter.query_type {
        query.push(" AND r.query_type = ").push_bind(query_type.clone());
    }
}

fn push_days(query: &mut Statement, filter: &StatsFilter) {
    query
        .push(" FROM query_days AS d WHERE d.namespace = ")
        .push_bind(filter.namespace.as_str().to_owned());
    if let Some(from) = filter.from {
        query
            .push(" AND d.day >= ")
            .push_bind(from.as_microsecond().div_euclid(DAY));
    }
    if let Some(before) = filter.before {
        // The day of the last microsecond before.
        query
            .push(" AND d.day <= ")
            .push_bind((ceiling_micros(before) - 1).div_euclid(DAY));
    }
    if let Some(query_type) = &filter.query_type {
        query.push(" AND d.query_type = ").push_bind(query_type.clone());
    }
}

/// A name of a dimension, with its place in its list and with what the whole dimension comes to.
#[derive(Debug, sqlx_macros::FromRow)]
struct ShareRow {
    dimension: i64,
    name: String,
    ratings: i64,
    negative: i64,
    positive: i64,
    queries: i64,
    zero_hits: i64,
    unknown_hits: i64,
    place: i64,
    names: i64,
    all_ratings: i64,
    all_negative: i64,
    all_positive: i64,
    all_queries: i64,
    all_zero_hits: i64,
    all_unknown_hits: i64,
}

/// What ratings say, by all dimensions at one moment, with the number of queries of the same days; of each dimension the names
/// that come first, and those that are compared.
pub(super) async fn shares(
    connection: &mut Conn,
    filter: &StatsFilter,
    compared: Option<&Compared>,
) -> Result<Shares> {
    let mut select = Statement::new("WITH counted AS MATERIALIZED (");
    push_counted(&mut select, filter);
    select.push(") ");
    for (number, dimension) in (0_i64..).zip(Dimension::ALL) {
        if number > 0 {
            select.push(" UNION ALL ");
        }
        push_dimension(&mut select, number, dimension);
        select.push(" WHERE place <= ").push_bind(i64::from(MAX_NAMES));
        if let Some(compared) = compared.filter(|compared| compared.by == dimension) {
            select.push(" OR name IN (").push_bind(compared.one.clone());
            select.push(", ").push_bind(compared.other.clone()).push(")");
        }
    }
    let rows: Vec<ShareRow> = connection.rows(select).await?;
    let count = |count: i64| u64::try_from(count).unwrap_or_default();
    let mut shares = Shares::default();
    for row in rows {
        let Some(dimension) = usize::try_from(row.dimension)
            .ok()
            .and_then(|number| Dimension::ALL.get(number).copied())
        else {
            continue;
        };
        shares.total = Share {
            name: String::new(),
            ratings: count(row.all_ratings),
            negative: count(row.all_negative),
            positive: count(row.all_positive),
            queries: count(row.all_queries),
            zero_hits: count(row.all_zero_hits),
            unknown_hits: count(row.all_unknown_hits),
        };
        let share = Share {
            ratings: count(row.ratings),
            negative: count(row.negative),
            positive: count(row.positive),
            queries: count(row.queries),
            zero_hits: count(row.zero_hits),
            unknown_hits: count(row.unknown_hits),
            name: if dimension == Dimension::Week {
                monday(&row.name)?
            } else {
                row.name
            },
        };
        let left_out = count(row.names.saturating_sub(i64::from(MAX_NAMES)));
        let names = shares.by.entry(dimension).or_default();
        names.left_out = left_out;
        if row.place <= i64::from(MAX_NAMES) {
            names.listed.push((row.place, share));
        } else {
            names.beyond.push(share);
        }
    }
    for names in shares.by.values_mut() {
        names.listed.sort_by_key(|(place, _)| *place);
    }
    Ok(shares)
}

/// Selects ratings and queries by all dimensions together: each is read once, and there are few such combinations.
fn push_counted(select: &mut Statement, filter: &StatsFilter) {
    select.push(
        "SELECT (r.rated_at - 345600000000) / 604800000000 AS week, r.query_type, r.embedding_version, r.index_version,
                r.variant, count(*) AS ratings, count(*) FILTER (WHERE r.rating = -1) AS negative,
                count(*) FILTER (WHERE r.rating = 1) AS positive, 0 AS queries, 0 AS zero_hits, 0 AS unknown_hits",
    );
    push_filter(select, filter);
    // Weeks are rounded down also before 1970.
    select.push(
        " GROUP BY 1, 2, 3, 4, 5
          UNION ALL SELECT (d.day - 4 + 7000000) / 7 - 1000000 AS week, d.query_type, d.embedding_version, d.index_version,
                d.variant, 0, 0, 0, sum(d.queries), sum(d.zero_hits), sum(d.unknown_hits)",
    );
    push_days(select, filter);
    select.push(" GROUP BY 1, 2, 3, 4, 5");
}

/// Selects the names of one dimension, as [`ShareRow`].
fn push_dimension(select: &mut Statement, number: i64, dimension: Dimension) {
    // What is cut are the oldest weeks, and the names that matter least.
    let order = if dimension == Dimension::Week {
        "CAST(name AS BIGINT) DESC"
    } else {
        "ratings DESC, queries DESC, name"
    };
    select.push("SELECT * FROM (SELECT CAST(").push(number);
    select
        .push(
            " AS BIGINT) AS dimension, name, ratings, negative, positive, queries, zero_hits, unknown_hits, count(*) OVER () AS names,
              CAST(sum(ratings) OVER () AS BIGINT) AS all_ratings, CAST(sum(negative) OVER () AS BIGINT) AS all_negative,
              CAST(sum(positive) OVER () AS BIGINT) AS all_positive, CAST(sum(queries) OVER () AS BIGINT) AS all_queries,
              CAST(sum(zero_hits) OVER () AS BIGINT) AS all_zero_hits,
              CAST(sum(unknown_hits) OVER () AS BIGINT) AS all_unknown_hits, row_number() OVER (ORDER BY ",
        )
        .push(order)
        .push(") AS place FROM (SELECT ")
        .push(name(dimension))
        .push(
            " AS name, CAST(sum(ratings) AS BIGINT) AS ratings, CAST(sum(negative) AS BIGINT) AS negative,
               CAST(sum(positive) AS BIGINT) AS positive, CAST(sum(queries) AS BIGINT) AS queries,
               CAST(sum(zero_hits) AS BIGINT) AS zero_hits, CAST(sum(unknown_hits) AS BIGINT) AS unknown_hits
              FROM counted GROUP BY 1) AS named) AS placed",
        );
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

/// What was searched for where the results were rated −1, once for each rating, with the rating's order.
pub(super) async fn negative_texts(
    connection: &mut Conn,
    filter: &StatsFilter,
    before: Option<i64>,
    limit: u32,
) -> Result<Vec<(i64, String, String)>> {
    let mut select = Statement::new("SELECT r.accept_order, r.query_id, r.query");
    push_filter(&mut select, filter);
    if let Some(before) = before {
        select.push(" AND r.accept_order < ").push_bind(before);
    }
    select
        .push(" AND r.rating = -1 AND r.context_state = 2 ORDER BY r.accept_order DESC LIMIT ")
        .push_bind(i64::from(limit));
    let mut rows = connection.stream::<(i64, String, Vec<u8>)>(select);
    let mut texts = Vec::new();
    while let Some((order, id, query)) = rows.try_next().await? {
        let query = emend_proto::feedback::v1::Query::decode(query.as_slice())
            .map_err(|error| CorruptRow::new("search_ratings", "query", order, error))?;
        texts.push((order, id, query.query_text));
    }
    Ok(texts)
}

/// A query that people rated −1, as its newest rating has it.
#[derive(Debug, sqlx_macros::FromRow)]
struct WorstRow {
    people: i64,
    queries: i64,
    newest: i64,
    feedback_id: Vec<u8>,
    query_id: String,
    query_type: String,
    query: Vec<u8>,
}

/// The queries that most people rated −1, each by its newest rating, with how many there are in all. What is left open is found by
/// an index of it alone.
pub(super) fn select_worst(filter: &StatsFilter, limit: u32) -> Statement {
    let mut select = Statement::new(
        "SELECT w.people, w.queries, w.newest, f.feedback_id, n.query_id, n.query_type, n.query FROM (
             SELECT count(DISTINCT r.rater) AS people, max(r.accept_order) AS newest, count(*) OVER () AS queries",
    );
    push_filter(&mut select, filter);
    select
        .push(
            " AND r.rating = -1 AND r.processed = 0 AND r.rater IS NOT NULL
              GROUP BY r.query_key, CASE WHEN r.query_key IS NULL THEN r.query_id ELSE '' END
              ORDER BY people DESC, newest DESC LIMIT ",
        )
        .push_bind(i64::from(limit))
        .push(
            ") AS w JOIN search_ratings AS n ON n.accept_order = w.newest JOIN feedback AS f ON f.accept_order = w.newest
              ORDER BY w.people DESC, w.newest DESC",
        );
    select
}

/// Reads them.
pub(super) async fn worst_queries(
    connection: &mut Conn,
    filter: &StatsFilter,
    limit: u32,
) -> Result<(Vec<WorstQuery>, u64)> {
    let found: Vec<WorstRow> = connection.rows(select_worst(filter, limit)).await?;
    let count = |count: i64| u64::try_from(count).unwrap_or_default();
    let all = found.first().map_or(0, |row| count(row.queries));
    let worst = found.into_iter().map(|row| {
        let query = emend_proto::feedback::v1::Query::decode(row.query.as_slice())
            .map_err(|error| CorruptRow::new("search_ratings", "query", row.newest, error))?;
        Ok(WorstQuery {
            people: count(row.people),
            feedback: rows::feedback_id("feedback", row.newest, &row.feedback_id)?,
            query_id: row.query_id,
            text: query.query_text,
            query_type: row.query_type,
        })
    });
    Ok((worst.collect::<Result<_>>()?, all))
}

/// The newest searches whose queries are kept and not erased.
pub(super) fn select_searches(filter: &StatsFilter) -> Statement {
    let mut select = Statement::new(
        "SELECT p.query_text, q.variant, CAST(CASE WHEN q.hit_count = 0 THEN 1 WHEN q.hit_count > 0 THEN 0 END AS BIGINT),
                CAST(CASE WHEN EXISTS (
                    SELECT 1 FROM query_interactions AS i
                    WHERE i.namespace = ",
    );
    select
        .push_bind(filter.namespace.as_str().to_owned())
        .push(
            " AND i.query_id = q.query_id AND i.is_click = 1) THEN 1 ELSE 0 END AS BIGINT)
              FROM (SELECT number, query_id, variant, hit_count FROM queries WHERE namespace = ",
        )
        .push_bind(filter.namespace.as_str().to_owned());
    if let Some(from) = filter.from {
        select
            .push(" AND searched_at >= ")
            .push_bind(ceiling_micros(from));
    }
    if let Some(before) = filter.before {
        select
            .push(" AND searched_at < ")
            .push_bind(ceiling_micros(before));
    }
    if let Some(query_type) = &filter.query_type {
        select.push(" AND query_type = ").push_bind(query_type.clone());
    }
    select
        .push(" ORDER BY number DESC LIMIT ")
        .push_bind(i64::from(MAX_SEARCHES))
        .push(
            ") AS q JOIN query_personal AS p ON p.number = q.number
              WHERE p.query_text <> '' ORDER BY q.number DESC",
        );
    select
}

/// Calls `each` with them.
pub(super) async fn kept_searches(
    connection: &mut Conn,
    filter: &StatsFilter,
    each: &mut (dyn FnMut(KeptSearch) + Send),
) -> Result<()> {
    let mut rows = connection.stream::<(String, String, Option<i64>, i64)>(select_searches(filter));
    while let Some((text, variant, found_nothing, clicked)) = rows.try_next().await? {
        each(KeptSearch {
            text,
            variant,
            found_nothing: found_nothing.map(|nothing| nothing != 0),
            is_clicked: clicked != 0,
        });
    }
    Ok(())
}

/// In how many queries each of these words was.
pub(super) async fn term_counts(
    connection: &mut Conn,
    namespace: &Namespace,
    terms: &[&str],
) -> Result<CountedTerms> {
    let count = |count: i64| u64::try_from(count).unwrap_or_default();
    let mut counted = CountedTerms::default();
    for chunk in chunks(terms) {
        let mut select = Statement::new("SELECT term, queries FROM query_terms WHERE namespace = ");
        select.push_bind(namespace.as_str()).push(" AND term IN ");
        select.push_list(chunk.iter().copied());
        let found: Vec<(String, i64)> = connection.rows(select).await?;
        let found = found.into_iter().map(|(term, queries)| (term, count(queries)));
        counted.by_term.extend(found);
    }
    let statement =
        Statement::new("SELECT CAST(sum(queries) AS BIGINT) FROM query_days WHERE namespace = $1")
            .bind(namespace.as_str());
    let kept: Option<i64> = connection.value(statement).await?;
    let statement =
        Statement::new("SELECT queries, words, undercount FROM query_counts_pruned WHERE namespace = $1")
            .bind(namespace.as_str());
    let pruned: Option<(i64, i64, i64)> = connection.optional(statement).await?;
    let (forgotten, words, undercount) = pruned.unwrap_or_default();
    Ok(CountedTerms {
        queries: count(kept.unwrap_or_default() + forgotten),
        pruned: count(words),
        undercount: count(undercount),
        ..counted
    })
}
