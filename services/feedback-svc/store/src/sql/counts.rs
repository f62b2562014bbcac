//! SQL of what outlives queries: in how many of them each word was, and how many there were a day.

use std::collections::BTreeMap;

use emend_core::search::terms;
use emend_store::{
    StoreError,
    sql::{Conn, Statement},
};

use super::{SqlStore, documents::Joined, erased};
use crate::{
    chunks::chunks,
    records::queries::{KeptCounts, Pruned, Query, StoredQuery},
    sql::queries::{Counted, event_time},
};

type Result<T> = std::result::Result<T, StoreError>;

/// Adds the words of new queries to the counts of all queries, and those that documents brought in place of others. In order, so that replicas
/// never deadlock; nobody prunes meanwhile.
pub(super) async fn count_terms(
    connection: &mut Conn,
    arrived: &[Counted<'_>],
    joined: &[Joined],
) -> Result<()> {
    let mut counts: BTreeMap<(&str, String), i64> = BTreeMap::new();
    for (new, terms) in arrived {
        for term in terms {
            *counts.entry((new.namespace.as_str(), term.clone())).or_default() += 1;
        }
    }
    // What was counted of a query stays where it is erased.
    for joined in joined.iter().filter(|joined| !joined.after.query.is_erased()) {
        for (query, count) in [(&joined.before.query, -1), (&joined.after.query, 1)] {
            for term in terms(&query.query_text) {
                *counts.entry((joined.namespace.as_str(), term)).or_default() += count;
            }
        }
    }
    let counts: Vec<_> = counts.into_iter().filter(|(_, count)| *count != 0).collect();
    for chunk in chunks(&counts) {
        let mut insert = Statement::new("INSERT INTO query_terms (namespace, term, queries) ");
        insert.push_values(chunk, |mut row, ((namespace, term), count)| {
            row.push_bind(*namespace).push_bind(term).push_bind(*count);
        });
        insert.push(
            " ON CONFLICT (namespace, term) DO UPDATE SET queries = query_terms.queries + excluded.queries",
        );
        connection.execute(insert).await?;
    }
    let fewer: Vec<_> = counts.iter().filter(|(_, count)| *count < 0).collect();
    for chunk in chunks(&fewer) {
        let mut delete =
            Statement::new("DELETE FROM query_terms WHERE queries < 1 AND (namespace, term) IN (");
        delete.push_values(chunk, |mut row, ((namespace, term), _)| {
            row.push_bind(*namespace).push_bind(term);
        });
        delete.push(")");
        connection.execute(delete).await?;
    }
    Ok(())
}

/// Microseconds of a day.
pub(super) const DAY: i64 = 86_400_000_000;

const ADD_TO_DAY: &str =
    " ON CONFLICT (namespace, day, query_type, embedding_version, index_version, variant)
      DO UPDATE SET queries = query_days.queries + excluded.queries,
                    zero_hits = query_days.zero_hits + excluded.zero_hits,
                    unknown_hits = query_days.unknown_hits + excluded.unknown_hits";

/// Queries of a day: all, those that found nothing, and those of which it is not known what they found.
#[derive(Debug, Clone, Copy, Default)]
struct DayCount {
    queries: i64,
    zero_hits: i64,
    unknown_hits: i64,
}

impl DayCount {
    /// Counts a query with so many results.
    fn add(&mut self, hits: Option<u32>) {
        self.queries += 1;
        self.zero_hits += i64::from(hits == Some(0));
        self.unknown_hits += i64::from(hits.is_none());
    }
}

/// The day that a query counts for, and the names by which queries of a day are told apart.
type OfDay<'q> = (i64, [&'q str; 4]);

fn of_day(query: &Query, searched_at: i64) -> OfDay<'_> {
    let names = [
        &query.query_type,
        &query.embedding_version,
        &query.index_version,
        &query.variant,
    ];
    (searched_at.div_euclid(DAY), names.map(String::as_str))
}

/// What is added to the counts of days, by namespace.
type DayCounts<'q> = BTreeMap<(&'q str, OfDay<'q>), DayCount>;

/// Adds new queries to the counts of their days, and counts anew those that documents were added to.
pub(super) async fn count_days(
    connection: &mut Conn,
    arrived: &[Counted<'_>],
    joined: &[Joined],
    now: i64,
) -> Result<()> {
    let mut counts = DayCounts::new();
    for (new, _) in arrived {
        let key = (new.namespace.as_str(), of_day(&new.item, event_time(new, now)));
        counts.entry(key).or_default().add(new.item.hit_count);
    }
    add_to_days(connection, counts).await?;
    // They may be among those that were new.
    let mut counts = DayCounts::new();
    for joined in joined {
        let of = |stored: &StoredQuery| {
            (
                stored.searched_at.as_microsecond().div_euclid(DAY),
                stored.query.hit_count,
            )
        };
        if of(&joined.before) != of(&joined.after) && uncount(connection, joined).await? {
            let after = &joined.after;
            let key = (
                joined.namespace.as_str(),
                of_day(&after.query, after.searched_at.as_microsecond()),
            );
            counts.entry(key).or_default().add(after.query.hit_count);
        }
    }
    add_to_days(connection, counts).await
}

async fn add_to_days(connection: &mut Conn, counts: DayCounts<'_>) -> Result<()> {
    let counts: Vec<_> = counts.into_iter().collect();
    for chunk in chunks(&counts) {
        let mut insert = Statement::new(
            "INSERT INTO query_days (namespace, day, query_type, embedding_version, index_version, variant, queries,
                                     zero_hits, unknown_hits) ",
        );
        insert.push_values(chunk, |mut row, ((namespace, (day, dimensions)), count)| {
            row.push_bind(*namespace).push_bind(*day);
            for column in dimensions {
                row.push_bind(*column);
            }
            row.push_bind(count.queries)
                .push_bind(count.zero_hits)
                .push_bind(count.unknown_hits);
        });
        insert.push(ADD_TO_DAY);
        connection.execute(insert).await?;
    }
    Ok(())
}

/// Takes a query, as it was, out of the counts of its day. False: the day, or its names, are no longer counted.
async fn uncount(connection: &mut Conn, joined: &Joined) -> Result<bool> {
    let before = &joined.before;
    let (day, names) = of_day(&before.query, before.searched_at.as_microsecond());
    let mut counted = DayCount::default();
    counted.add(before.query.hit_count);
    let mut update = Statement::new("UPDATE query_days SET queries = queries - 1, zero_hits = zero_hits - ");
    update
        .push_bind(counted.zero_hits)
        .push(", unknown_hits = unknown_hits - ")
        .push_bind(counted.unknown_hits)
        .push(" WHERE namespace = ")
        .push_bind(&joined.namespace)
        .push(" AND day = ")
        .push_bind(day);
    for (column, name) in ["query_type", "embedding_version", "index_version", "variant"]
        .into_iter()
        .zip(names)
    {
        update.push(" AND ").push(column).push(" = ").push_bind(name);
    }
    let found = connection.execute(update).await? > 0;
    if found {
        let delete =
            Statement::new("DELETE FROM query_days WHERE namespace = $1 AND day = $2 AND queries < 1")
                .bind(&joined.namespace)
                .bind(day);
        connection.execute(delete).await?;
    }
    Ok(found)
}

/// The namespaces of which queries are counted, found by one step in an index for each.
pub(super) const NAMESPACES: &str = "
    WITH RECURSIVE counted (namespace) AS (
        SELECT min(namespace) FROM query_days
        UNION ALL SELECT (SELECT min(d.namespace) FROM query_days AS d WHERE d.namespace > n.namespace)
        FROM counted AS n WHERE n.namespace IS NOT NULL
    )
    SELECT namespace FROM counted WHERE namespace IS NOT NULL";

/// Rows whose names are forgotten at once.
const UNNAMED_AT_ONCE: i64 = 10_000;

/// A row of a day: the day, the type, both versions and the variant.
type DayRow = (i64, String, String, String, String);

impl SqlStore {
    /// Keeps no more of a namespace's counts than that.
    pub(super) async fn prune_counts_of(&self, namespace: &str, kept: KeptCounts) -> Result<Pruned> {
        let mut transaction = self.pools.begin_write().await?;
        // Rows are deleted in no order: nobody may count meanwhile.
        erased::alone(&mut transaction, namespace).await?;
        let words = prune_words(&mut transaction, namespace, i64::from(kept.words)).await?;
        let statement = Statement::new(
            "DELETE FROM query_days
             WHERE namespace = $1 AND day < (SELECT now FROM database_clock) / $3 - $2 RETURNING queries",
        )
        .bind(namespace)
        .bind(i64::from(kept.days))
        .bind(DAY);
        let forgotten: Vec<i64> = transaction.values(statement).await?;
        let unnamed = forget_names(&mut transaction, namespace, i64::from(kept.rows)).await?;
        if !words.is_empty() || !forgotten.is_empty() {
            let statement = Statement::new(
                "INSERT INTO query_counts_pruned (namespace, queries, words, undercount) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (namespace) DO UPDATE SET queries = query_counts_pruned.queries + excluded.queries,
                     words = query_counts_pruned.words + excluded.words,
                     undercount = query_counts_pruned.undercount + excluded.undercount",
            )
            .bind(namespace)
            .bind(forgotten.iter().sum::<i64>())
            .bind(i64::try_from(words.len()).unwrap_or(i64::MAX))
            // A word that comes again begins at nothing.
            .bind(words.iter().max().copied().unwrap_or_default());
            transaction.execute(statement).await?;
        }
        transaction.commit().await?;
        Ok(Pruned {
            words: words.len() as u64,
            rows: forgotten.len() as u64 + unnamed,
        })
    }
}

/// Forgets the rarest words if there are more than so many; returns in how many queries each was.
async fn prune_words(connection: &mut Conn, namespace: &str, kept: i64) -> Result<Vec<i64>> {
    let statement = Statement::new("SELECT count(*) FROM query_terms WHERE namespace = $1").bind(namespace);
    let words: i64 = connection.value(statement).await?;
    if words <= kept {
        return Ok(Vec::new());
    }
    // More than is necessary, so that there is rest for a while.
    let statement = Statement::new(
        "DELETE FROM query_terms WHERE namespace = $1 AND term IN (
             SELECT term FROM query_terms WHERE namespace = $1 ORDER BY queries, term LIMIT $2)
         RETURNING queries",
    )
    .bind(namespace)
    .bind(words - kept / 10 * 9);
    let pruned = connection.values(statement).await?;
    Ok(pruned)
}

/// Counts all but the newest and most frequent rows without their names; returns of how many.
async fn forget_names(connection: &mut Conn, namespace: &str, kept: i64) -> Result<u64> {
    let statement = Statement::new("SELECT count(*) FROM query_days WHERE namespace = $1").bind(namespace);
    let rows: i64 = connection.value(statement).await?;
    if rows <= kept {
        return Ok(0);
    }
    let statement = Statement::new(
        "SELECT day, query_type, embedding_version, index_version, variant FROM query_days
         WHERE namespace = $1 AND (query_type <> '' OR embedding_version <> '' OR index_version <> '' OR variant <> '')
         ORDER BY day DESC, queries DESC LIMIT $2 OFFSET $3",
    )
    .bind(namespace)
    .bind(UNNAMED_AT_ONCE)
    .bind(kept);
    let named: Vec<DayRow> = connection.rows(statement).await?;
    let mut days: BTreeMap<i64, DayCount> = BTreeMap::new();
    for chunk in chunks(&named) {
        let mut delete = Statement::new("DELETE FROM query_days WHERE namespace = ");
        delete
            .push_bind(namespace)
            .push(" AND (day, query_type, embedding_version, index_version, variant) IN (");
        delete.push_values(chunk, |mut row, (day, query_type, embedding, index, variant)| {
            row.push_bind(*day)
                .push_bind(query_type)
                .push_bind(embedding)
                .push_bind(index)
                .push_bind(variant);
        });
        delete.push(") RETURNING day, queries, zero_hits, unknown_hits");
        let deleted: Vec<(i64, i64, i64, i64)> = connection.rows(delete).await?;
        for (day, queries, zero_hits, unknown_hits) in deleted {
            let count = days.entry(day).or_default();
            count.queries += queries;
            count.zero_hits += zero_hits;
            count.unknown_hits += unknown_hits;
        }
    }
    let days: Vec<_> = days.into_iter().collect();
    for chunk in chunks(&days) {
        let mut insert = Statement::new(
            "INSERT INTO query_days (namespace, day, queries, zero_hits, unknown_hits, query_type, embedding_version,
                                     index_version, variant) ",
        );
        insert.push_values(chunk, |mut row, (day, count)| {
            row.push_bind(namespace)
                .push_bind(*day)
                .push_bind(count.queries)
                .push_bind(count.zero_hits)
                .push_bind(count.unknown_hits);
            row.push("'', '', '', ''");
        });
        insert.push(ADD_TO_DAY);
        connection.execute(insert).await?;
    }
    Ok(named.len() as u64)
}
