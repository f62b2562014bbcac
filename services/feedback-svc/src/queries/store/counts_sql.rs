//! The portable SQL of what outlives queries: in how many of them each word was, and how many there were a day. Written once,
//! compiled for each database: `super::Db` says which.

use std::collections::BTreeMap;

use sqlx::QueryBuilder;

use super::{
    super::{StoreError, chunks::chunks},
    Connection, Db,
    query_sql::{Arrived, happened},
};

type Result<T> = std::result::Result<T, StoreError>;

/// Adds the words of new queries to the counts of all queries. In order, so that replicas never deadlock.
pub(super) async fn count_terms(connection: &mut Connection, arrived: &[Arrived<'_>]) -> Result<()> {
    let mut counts: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for (new, terms) in arrived {
        for term in terms {
            *counts.entry((new.namespace.as_str(), term.as_str())).or_default() += 1;
        }
    }
    let counts: Vec<_> = counts.into_iter().collect();
    for chunk in chunks(&counts) {
        let mut insert = QueryBuilder::<Db>::new("INSERT INTO query_terms (namespace, term, queries) ");
        insert.push_values(chunk, |mut row, ((namespace, term), count)| {
            row.push_bind(*namespace).push_bind(*term).push_bind(*count);
        });
        insert.push(
            " ON CONFLICT (namespace, term) DO UPDATE SET queries = query_terms.queries + excluded.queries",
        );
        insert.build().execute(&mut *connection).await?;
    }
    Ok(())
}

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// Adds new queries to the counts of their days.
pub(super) async fn count_days(connection: &mut Connection, arrived: &[Arrived<'_>], now: i64) -> Result<()> {
    let mut counts: BTreeMap<(&str, i64, [&str; 4]), i64> = BTreeMap::new();
    for (new, _) in arrived {
        let query = &new.what;
        let of = [
            &query.query_type,
            &query.embedding_version,
            &query.index_version,
            &query.variant,
        ];
        let day = happened(new, now).div_euclid(DAY);
        *counts
            .entry((new.namespace.as_str(), day, of.map(String::as_str)))
            .or_default() += 1;
    }
    let counts: Vec<_> = counts.into_iter().collect();
    for chunk in chunks(&counts) {
        let mut insert = QueryBuilder::<Db>::new(
            "INSERT INTO query_days (namespace, day, query_type, embedding_version, index_version, variant, queries) ",
        );
        insert.push_values(chunk, |mut row, ((namespace, day, of), count)| {
            row.push_bind(*namespace).push_bind(*day);
            for column in of {
                row.push_bind(*column);
            }
            row.push_bind(*count);
        });
        insert.push(
            " ON CONFLICT (namespace, day, query_type, embedding_version, index_version, variant)
              DO UPDATE SET queries = query_days.queries + excluded.queries",
        );
        insert.build().execute(&mut *connection).await?;
    }
    Ok(())
}
