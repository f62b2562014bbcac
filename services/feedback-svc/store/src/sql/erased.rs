//! SQL of erased queries: erasing them, and storing nothing of them again.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use emend_core::Namespace;
use emend_store::{
    StoreError,
    sql::{Conn, Dialect, Statement},
};

use super::{SqlStore, contexts, queries::event_time};
use crate::{
    chunks::chunks,
    ports::Group,
    records::erased::{LATE, Pseudonym},
    rows::micros,
};

type Result<T> = std::result::Result<T, StoreError>;

/// Holds up who records queries in these namespaces until the transaction ends: what is recorded at this moment would be seen
/// by nobody who erases. To be called before anything is locked.
pub(super) async fn erase_alone<'a>(
    connection: &mut Conn,
    namespaces: impl Iterator<Item = &'a Namespace>,
) -> Result<()> {
    for namespace in namespaces.collect::<BTreeSet<_>>() {
        alone(connection, namespace.as_str()).await?;
    }
    Ok(())
}

/// Waits until nobody records queries of this namespace, and keeps everybody from it until the transaction ends. On SQLite no
/// other transaction writes.
pub(super) async fn alone(connection: &mut Conn, namespace: &str) -> Result<()> {
    match connection.dialect() {
        Dialect::Sqlite => Ok(()),
        Dialect::Postgres => {
            let lock = "SELECT pg_advisory_xact_lock(hashtextextended('erasing queries of ' || $1, 0))";
            connection.execute(Statement::new(lock).bind(namespace)).await?;
            Ok(())
        }
    }
}

/// Waits until nobody erases queries of a namespace or prunes what is counted of them, and keeps everybody from it until the
/// transaction ends. On SQLite no other transaction writes.
async fn while_nobody_erases(connection: &mut Conn, namespace: &Namespace) -> Result<()> {
    match connection.dialect() {
        Dialect::Sqlite => Ok(()),
        Dialect::Postgres => {
            let lock =
                "SELECT pg_advisory_xact_lock_shared(hashtextextended('erasing queries of ' || $1, 0))";
            connection
                .execute(Statement::new(lock).bind(namespace.as_str()))
                .await?;
            Ok(())
        }
    }
}

/// Erases what queries tell of a person: of the one with this id, and of those of this session, also if they are recorded
/// later. Empty: of none. Must run in a transaction that erases alone.
pub(super) async fn erase(
    connection: &mut Conn,
    namespace: &Namespace,
    query_id: &str,
    session_id: &str,
) -> Result<()> {
    if query_id.is_empty() && session_id.is_empty() {
        return Ok(());
    }
    let statement = Statement::new(
        "SELECT q.query_id FROM query_personal AS p JOIN queries AS q ON q.number = p.number
         WHERE p.session_id <> '' AND p.namespace = $1 AND p.session_id = $2
         UNION SELECT query_id FROM search_ratings
         WHERE session_id <> '' AND query_id <> '' AND namespace = $1 AND session_id = $2",
    )
    .bind(namespace.as_str())
    .bind(session_id);
    let mut queries: Vec<String> = connection.values(statement).await?;
    if !query_id.is_empty() {
        queries.push(query_id.to_owned());
    }
    let pseudonyms = queries.iter().map(|id| Pseudonym::of_query(namespace, id));
    let mut pseudonyms: BTreeSet<Pseudonym> = pseudonyms.collect();
    pseudonyms.extend(Pseudonym::of_session(namespace, session_id));
    note(connection, pseudonyms).await?;
    // Ratings are locked before their queries, as by whoever stores ratings.
    contexts::erase_copies(connection, namespace, query_id, session_id).await?;
    delete_interactions(connection, namespace, &queries).await?;
    let mut erase = Statement::new(
        "UPDATE query_personal SET session_id = '', query_text = '', answer_text = '', classification = ''
         WHERE number IN (
             SELECT number FROM query_personal WHERE number IN (
                 SELECT number FROM queries WHERE query_id <> '' AND namespace = ",
    );
    erase
        .push_bind(namespace.as_str())
        .push(" AND query_id = ")
        .push_bind(query_id)
        .push(" UNION ALL SELECT number FROM query_personal WHERE session_id <> '' AND namespace = ")
        .push_bind(namespace.as_str())
        .push(" AND session_id = ")
        .push_bind(session_id)
        .push(") ORDER BY number")
        .for_update()
        .push(")");
    connection.execute(erase).await?;
    // Whoever read a text before has now written it; whoever reads it from here on finds none.
    contexts::erase_copies(connection, namespace, query_id, session_id).await
}

/// Notes what is erased, now.
async fn note(connection: &mut Conn, erased: BTreeSet<Pseudonym>) -> Result<()> {
    for chunk in chunks(&erased.into_iter().collect::<Vec<_>>()) {
        let mut insert = Statement::new("INSERT INTO erased_queries (pseudonym, erased_at) ");
        insert.push_values(chunk, |mut row, pseudonym| {
            row.push_bind(pseudonym.0.as_bytes().to_vec());
            row.push("(SELECT now FROM database_clock)");
        });
        insert.push(" ON CONFLICT (pseudonym) DO UPDATE SET erased_at = excluded.erased_at");
        connection.execute(insert).await?;
    }
    Ok(())
}

/// Deletes what was done with the results of these queries.
async fn delete_interactions(connection: &mut Conn, namespace: &Namespace, queries: &[String]) -> Result<()> {
    for chunk in chunks(queries) {
        let mut delete = Statement::new("DELETE FROM query_interactions WHERE namespace = ");
        delete.push_bind(namespace.as_str()).push(" AND query_id IN ");
        delete.push_list(chunk.iter().map(String::as_str));
        connection.execute(delete).await?;
    }
    Ok(())
}

impl SqlStore {
    pub(super) async fn forget_erased_once(&self, known: Duration, limit: u32) -> Result<u64> {
        // Locked in the order in which they are noted.
        let mut delete = Statement::new(
            "DELETE FROM erased_queries WHERE pseudonym IN (
                 SELECT pseudonym FROM erased_queries WHERE erased_at < (SELECT now FROM database_clock) - ",
        );
        delete
            .push_bind(micros(known))
            .push(" ORDER BY pseudonym LIMIT ")
            .push_bind(i64::from(limit))
            .for_update()
            .push(")");
        let deleted = self.pools.writer().await?.execute(delete).await?;
        Ok(deleted)
    }
}

/// When these were erased, in microseconds.
async fn erased_at(connection: &mut Conn, asked: BTreeSet<Pseudonym>) -> Result<HashMap<Vec<u8>, i64>> {
    let mut erased = HashMap::new();
    for chunk in chunks(&asked.into_iter().collect::<Vec<_>>()) {
        let mut select =
            Statement::new("SELECT pseudonym, erased_at FROM erased_queries WHERE pseudonym IN ");
        select.push_list(chunk.iter().map(|pseudonym| pseudonym.0.as_bytes().to_vec()));
        let found: Vec<(Vec<u8>, i64)> = connection.rows(select).await?;
        erased.extend(found);
    }
    Ok(erased)
}

/// The group as it may be stored: queries that are erased already keep nothing of a person, and nothing was done with their
/// results. To be called first in the transaction that stores it.
pub(super) async fn without_erased<'a>(
    connection: &mut Conn,
    group: &'a Group,
    now: i64,
) -> Result<Cow<'a, Group>> {
    let of_queries = group.queries.iter().map(|(new, _)| &new.namespace);
    let of_interactions = group.interactions.iter().map(|new| &new.namespace);
    for namespace in of_queries.chain(of_interactions).collect::<BTreeSet<_>>() {
        while_nobody_erases(connection, namespace).await?;
    }
    let mut asked = BTreeSet::new();
    for (new, _) in &group.queries {
        asked.insert(Pseudonym::of_query(&new.namespace, new.item.id.as_str()));
        asked.extend(Pseudonym::of_session(&new.namespace, &new.item.session_id));
    }
    let interactions = group.interactions.iter();
    asked.extend(interactions.map(|new| Pseudonym::of_query(&new.namespace, new.item.query_id.as_str())));
    let mut erased = erased_at(connection, asked).await?;
    if erased.is_empty() {
        return Ok(Cow::Borrowed(group));
    }
    let key = |pseudonym: Pseudonym| pseudonym.0.as_bytes().to_vec();
    let mut kept = group.clone();
    for (new, words) in &mut kept.queries {
        let id = Pseudonym::of_query(&new.namespace, new.item.id.as_str());
        let session = Pseudonym::of_session(&new.namespace, &new.item.session_id);
        let session_erased = session.and_then(|session| erased.get(&key(session)));
        let is_of_session = session_erased.is_some_and(|at| event_time(new, now) <= at + micros(LATE));
        if is_of_session && !erased.contains_key(&key(id)) {
            note(connection, [id].into()).await?;
            let ids = [new.item.id.to_string()];
            delete_interactions(connection, &new.namespace, &ids).await?;
            erased.insert(key(id), now);
        }
        if erased.contains_key(&key(id)) {
            words.clear();
            new.item = new.item.clone().erased();
        }
    }
    kept.interactions.retain(|new| {
        let id = Pseudonym::of_query(&new.namespace, new.item.query_id.as_str());
        !erased.contains_key(&key(id))
    });
    Ok(Cow::Owned(kept))
}
