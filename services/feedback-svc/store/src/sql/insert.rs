//! Inserting groups of feedback. SQLite, whose one writer waits for nobody, takes many rows per statement; on PostgreSQL a group is
//! one statement and so one round trip.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};

use emend_store::{
    StoreError,
    postgres::BoundedConnection,
    retry_conflicts,
    sql::{Conn, Dialect, Statement},
};

use super::{
    SqlStore,
    ledger::{self, Columns},
    ratings,
};
use crate::{
    chunks::chunks,
    fail_points,
    ports::Inserted,
    records::outbox::{DeliveryState, Lease},
    rows,
};

type Result<T> = std::result::Result<T, StoreError>;

/// What became of an item of a group.
#[derive(Debug, Clone, Copy)]
enum Placed {
    /// It is stored, with this accept order at this time.
    Stored(i64, i64),
    /// Its request id was taken before.
    RequestIdTaken,
    /// It is a rating by somebody who has rated too often.
    TooOften(Duration),
}

/// One item of a group, with its accept order.
#[derive(Clone, Copy)]
struct Numbered<'a> {
    order: i64,
    columns: &'a Columns<'a>,
}

impl SqlStore {
    pub(super) async fn insert_group(
        &self,
        columns: &[Columns<'_>],
        lease: Option<Lease>,
    ) -> Result<Vec<Result<Inserted>>> {
        let all: Vec<_> = columns.iter().collect();
        let placed = retry_conflicts(&self.entropy, || self.insert_once(&all, lease)).await?;
        let mut results = Vec::with_capacity(columns.len());
        for (placed, item) in placed.into_iter().zip(columns) {
            results.push(match placed {
                Placed::Stored(order, at) => rows::accepted("feedback", order, at)
                    .map(Inserted::Stored)
                    .map_err(StoreError::from),
                Placed::TooOften(wait) => Ok(Inserted::TooOften(wait)),
                // The other items are already stored, whatever comes of this.
                Placed::RequestIdTaken => retry_conflicts(&self.entropy, || self.replay(item, lease)).await,
            });
        }
        Ok(results)
    }

    async fn insert_once(&self, columns: &[&Columns<'_>], lease: Option<Lease>) -> Result<Vec<Placed>> {
        let dialect = self.pools.dialect();
        let has_ratings = columns.iter().any(|columns| columns.search_rating.is_some());
        if dialect == Dialect::Postgres && !has_ratings {
            return insert(&mut self.pools.writer().await?, columns, lease).await;
        }
        let mut transaction = self.pools.begin_write().await?;
        let mut too_often = vec![None; columns.len()];
        if has_ratings {
            lock_raters(&mut transaction, columns).await?;
            too_often = ratings::too_often(&mut transaction, columns).await?;
        }
        let admitted: Vec<_> = columns
            .iter()
            .zip(&too_often)
            .filter_map(|(columns, too_often)| too_often.is_none().then_some(*columns))
            .collect();
        let mut placed = insert(&mut transaction, &admitted, lease).await?;
        let stored: Vec<_> = admitted
            .iter()
            .zip(&placed)
            .filter_map(|(columns, placed)| match placed {
                Placed::Stored(order, at) => Some((*columns, *order, *at)),
                Placed::RequestIdTaken | Placed::TooOften(_) => None,
            })
            .collect();
        if stored.is_empty() {
            transaction.rollback().await?;
        } else {
            ratings::insert(&mut transaction, &stored).await?;
            if dialect == Dialect::Sqlite {
                fail_points::GROUP_WRITTEN.pass();
            }
            transaction.commit().await?;
        }
        let mut placed = placed.drain(..);
        let all = too_often.into_iter().map(|too_often| match too_often {
            Some(wait) => Placed::TooOften(wait),
            None => placed.next().unwrap_or(Placed::RequestIdTaken),
        });
        Ok(all.collect())
    }

    /// The result of an item whose request id was taken when its group was inserted.
    async fn replay(&self, item: &Columns<'_>, lease: Option<Lease>) -> Result<Inserted> {
        loop {
            if let Some(replayed) = ledger::replay_of(&mut self.pools.reader().await?, item).await? {
                return Ok(replayed);
            }
            // The id was deleted in between, so it is free again.
            match self.insert_once(&[item], lease).await?[..] {
                [Placed::Stored(order, at)] => {
                    return Ok(Inserted::Stored(rows::accepted("feedback", order, at)?));
                }
                [Placed::TooOften(wait)] => return Ok(Inserted::TooOften(wait)),
                _ => {}
            }
        }
    }
}

/// Locks those who rate, so that no other transaction counts or stores a rating of theirs meanwhile. On SQLite no other writes.
async fn lock_raters(connection: &mut Conn, columns: &[&Columns<'_>]) -> Result<()> {
    if connection.dialect() == Dialect::Sqlite {
        return Ok(());
    }
    let raters: BTreeSet<i64> = columns
        .iter()
        .filter_map(|columns| Some(columns.rater()?.0.as_u64_pair().0.cast_signed()))
        .collect();
    let statement = Statement::new(LOCK_RATERS).bind(raters.into_iter().collect::<Vec<_>>());
    connection.execute(statement).await?;
    Ok(())
}

/// Inserts items. They get accept orders in their order; those whose request ids are already taken leave gaps.
async fn insert(
    connection: &mut Conn,
    columns: &[&Columns<'_>],
    lease: Option<Lease>,
) -> Result<Vec<Placed>> {
    match connection {
        Conn::Sqlite(_) => insert_in_chunks(connection, columns, lease).await,
        Conn::Postgres(connection) => insert_at_once(connection, columns, lease).await,
    }
}

/// On SQLite, many rows per statement. Must run in a transaction.
async fn insert_in_chunks(
    connection: &mut Conn,
    columns: &[&Columns<'_>],
    lease: Option<Lease>,
) -> Result<Vec<Placed>> {
    let count = i64::try_from(columns.len()).unwrap_or(i64::MAX);
    // The first is at least now, and after all orders given before, even if the clock went back.
    let statement = Statement::new(
        "UPDATE accept_order SET last = max(last, (SELECT now FROM database_clock) - 1) + $1
         RETURNING last, (SELECT now FROM database_clock)",
    )
    .bind(count);
    let (last, now): (i64, i64) = connection.row(statement).await?;
    let numbered: Vec<_> = (last - count + 1..)
        .zip(columns)
        .map(|(order, columns)| Numbered { order, columns })
        .collect();
    let taken = insert_request_ids(connection, &numbered, now).await?;
    let stored = numbered.iter().filter(|item| !taken.contains(&item.order));
    // Apart, so that there are few distinct statements.
    let (delivered, not_delivered): (Vec<_>, Vec<_>) = stored.partition(|item| item.columns.kind != 0);
    for part in [delivered, not_delivered] {
        for chunk in chunks(&part) {
            insert_chunk(connection, chunk, now, lease).await?;
        }
    }
    let placed = numbered.iter().map(|item| {
        if taken.contains(&item.order) {
            Placed::RequestIdTaken
        } else {
            Placed::Stored(item.order, now)
        }
    });
    Ok(placed.collect())
}

/// Takes the request ids that are free; returns the accept orders of the items whose ids were already taken.
async fn insert_request_ids(
    connection: &mut Conn,
    numbered: &[Numbered<'_>],
    now: i64,
) -> Result<HashSet<i64>> {
    let asked: Vec<&Numbered<'_>> = numbered
        .iter()
        .filter(|item| !item.columns.request_id.is_empty())
        .collect();
    let mut taken = HashSet::new();
    for chunk in chunks(&asked) {
        let mut query = Statement::new(
            "INSERT INTO request_ids (accept_order, namespace, caller, request_id, request_hash, feedback_id, created_at) ",
        );
        query.push_values(chunk, |mut row, Numbered { order, columns }| {
            row.push_bind(*order)
                .push_bind(columns.new.submission.namespace.as_str())
                .push_bind(columns.new.caller.as_str())
                .push_bind(columns.request_id)
                .push_bind(columns.new.hash.0.as_slice())
                .push_bind(columns.new.id.0.as_bytes().as_slice())
                .push_bind(now);
        });
        query.push(" ON CONFLICT (namespace, caller, request_id) DO NOTHING");
        let inserted = connection.execute(query).await?;
        // Returning every row costs more than storing it, and one is hardly ever missing.
        if usize::try_from(inserted).is_ok_and(|inserted| inserted < chunk.len()) {
            let statement =
                Statement::new("SELECT accept_order FROM request_ids WHERE accept_order BETWEEN $1 AND $2")
                    .bind(chunk.first().map_or(0, |item| item.order))
                    .bind(chunk.last().map_or(0, |item| item.order));
            let free: HashSet<i64> = connection.values(statement).await?.into_iter().collect();
            let orders = chunk.iter().map(|item| item.order);
            taken.extend(orders.filter(|order| !free.contains(order)));
        }
    }
    Ok(taken)
}

/// Inserts all rows of some feedback in one query: separate statements would each be a round trip to the connection's
/// thread. All of it is delivered, or none.
async fn insert_chunk(
    connection: &mut Conn,
    chunk: &[&Numbered<'_>],
    now: i64,
    lease: Option<Lease>,
) -> Result<()> {
    let pending = DeliveryState::Pending.number();
    let due_at = now.saturating_add(lease.map_or(0, |lease| rows::micros(lease.duration)));
    let mut query = Statement::new(
        "INSERT INTO feedback (accept_order, feedback_id, namespace, caller, request_id, kind, scope, correction,
                               target, rating, traceparent, received_at) ",
    );
    query.push_values(chunk, |mut row, &&Numbered { order, columns }| {
        row.push_bind(order)
            .push_bind(columns.new.id.0.as_bytes().as_slice())
            .push_bind(columns.new.submission.namespace.as_str())
            .push_bind(columns.new.caller.as_str())
            .push_bind(columns.request_id)
            .push_bind(columns.kind)
            .push_bind(columns.scope)
            .push_bind(columns.correction.as_slice())
            .push_bind(columns.target)
            .push_bind(columns.rating)
            .push_bind(columns.new.traceparent.as_str())
            .push_bind(now);
    });
    query.push(
        "; INSERT INTO feedback_personal (accept_order, namespace, reporter_id, session_id, client, client_key, query_id,
                                          reason, context, rated, retract_reason) ",
    );
    query.push_values(chunk, |mut row, &&Numbered { order, columns }| {
        let submission = &columns.new.submission;
        row.push_bind(order)
            .push_bind(submission.namespace.as_str())
            .push_bind(columns.reporter_id)
            .push_bind(columns.session_id)
            .push_bind(submission.reporter.client.as_str())
            .push_bind(submission.reporter.client_key.as_str())
            .push_bind(submission.query_id.as_str())
            .push_bind(submission.reason.as_str())
            .push_bind(columns.context.as_str())
            .push_bind(columns.rated.as_slice());
        row.push("''");
    });
    let is_delivered = chunk.iter().all(|item| item.columns.kind != 0);
    if !is_delivered {
        query.push(
            "; INSERT INTO feedback_status (accept_order, namespace, delivery_state, event_count, outcome_of, retracted_by,
                                           retract_role)
             SELECT accept_order, namespace, ",
        );
        query
            .push_bind(DeliveryState::at_first(false).number())
            .push(", 0, 0, '', 0");
        query.push(" FROM feedback WHERE kind = 0");
        push_between(&mut query, chunk);
        connection.execute(query).await?;
        return Ok(());
    }
    query.push(
        "; INSERT INTO outbox (event_id, accept_order, feedback_id, namespace, occurred_at, payload, state, due_at,
                               lease_token, event_number, attempts, code, error) ",
    );
    query.push_values(chunk, |mut row, &&Numbered { order, columns }| {
        let new = columns.new;
        row.push_bind(new.event.id.0.as_bytes().as_slice())
            .push_bind(order)
            .push_bind(new.id.0.as_bytes().as_slice())
            .push_bind(new.submission.namespace.as_str())
            .push_bind(now)
            .push_bind(&*new.event.payload)
            .push_bind(pending)
            .push_bind(due_at)
            .push_bind(lease.map(|lease| lease.token.0.as_bytes().to_vec()));
        row.push("1, 0, 0, ''");
    });
    query
        .push(
            "; INSERT INTO feedback_status (accept_order, namespace, delivery_state, event_count, outcome_of, retracted_by,
                                           retract_role)
             SELECT accept_order, namespace, ",
        )
        .push_bind(pending)
        .push(", 1, 0, '', 0 FROM feedback WHERE kind <> 0");
    push_between(&mut query, chunk);
    connection.execute(query).await?;
    Ok(())
}

/// The condition that rows belong to a chunk. No other feedback's orders lie between them, but for feedback of which it is
/// different whether it is delivered.
fn push_between(query: &mut Statement, chunk: &[&Numbered<'_>]) {
    query
        .push(" AND accept_order BETWEEN ")
        .push_bind(chunk.first().map_or(0, |item| item.order))
        .push(" AND ")
        .push_bind(chunk.last().map_or(0, |item| item.order));
}

/// The same on PostgreSQL, in one statement and so one round trip.
async fn insert_at_once(
    connection: &mut BoundedConnection,
    columns: &[&Columns<'_>],
    lease: Option<Lease>,
) -> Result<Vec<Placed>> {
    fn all<'a, T>(columns: &[&'a Columns<'a>], column: impl Fn(&'a Columns<'a>) -> T) -> Vec<T> {
        columns.iter().map(|columns| column(columns)).collect()
    }
    let stored: Vec<(i64, i64, i64)> = sqlx::query_as(INSERT)
        .bind(all(columns, |c| c.new.id.0.as_bytes().as_slice()))
        .bind(all(columns, |c| c.new.submission.namespace.as_str()))
        .bind(all(columns, |c| c.new.caller.as_str()))
        .bind(all(columns, |c| c.request_id))
        .bind(all(columns, |c| c.new.hash.0.as_slice()))
        .bind(all(columns, |c| c.kind))
        .bind(all(columns, |c| c.scope))
        .bind(all(columns, |c| c.correction.as_slice()))
        .bind(all(columns, |c| c.new.traceparent.as_str()))
        .bind(all(columns, |c| c.reporter_id))
        .bind(all(columns, |c| c.session_id))
        .bind(all(columns, |c| c.new.submission.reporter.client.as_str()))
        .bind(all(columns, |c| c.new.submission.reporter.client_key.as_str()))
        .bind(all(columns, |c| c.new.submission.query_id.as_str()))
        .bind(all(columns, |c| c.new.submission.reason.as_str()))
        .bind(all(columns, |c| c.context.as_str()))
        .bind(all(columns, |c| c.new.event.id.0.as_bytes().as_slice()))
        .bind(all(columns, |c| &*c.new.event.payload))
        .bind(DeliveryState::Pending.number())
        .bind(lease.map_or(0, |lease| rows::micros(lease.duration)))
        .bind(lease.map(|lease| lease.token.0.as_bytes().to_vec()))
        .bind(all(columns, |c| c.rated.as_slice()))
        .bind(all(columns, |c| c.target))
        .bind(all(columns, |c| c.rating))
        .fetch_all(connection)
        .await?;
    let stored: HashMap<i64, (i64, i64)> = stored
        .into_iter()
        .map(|(place, order, at)| (place, (order, at)))
        .collect();
    let placed = (1..).zip(columns).map(|(place, _)| match stored.get(&place) {
        Some(&(order, at)) => Placed::Stored(order, at),
        None => Placed::RequestIdTaken,
    });
    Ok(placed.collect())
}

/// Locks raters until the transaction ends, in the order given, so that no other transaction counts or stores a rating of
/// theirs meanwhile.
const LOCK_RATERS: &str = "SELECT pg_advisory_xact_lock(rater) FROM unnest($1::BIGINT[]) AS rater";

/// Inserts a whole group. Items get accept orders in the order of the group; those whose request ids are already taken
/// leave gaps. Request ids are taken in key order, so that two replicas never deadlock.
const INSERT: &str = "
WITH drawn AS MATERIALIZED (
    SELECT draw_accept_orders(cardinality($1)) AS first_order, now FROM database_clock
), item AS MATERIALIZED (
    SELECT drawn.first_order + u.place - 1 AS accept_order, drawn.now, u.*
    FROM drawn,
         unnest($1::BYTEA[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::BYTEA[], $6::BIGINT[], $7::BIGINT[], $8::BYTEA[],
                $9::TEXT[], $10::TEXT[], $11::TEXT[], $12::TEXT[], $13::TEXT[], $14::TEXT[], $15::TEXT[], $16::TEXT[],
                $17::BYTEA[], $18::BYTEA[], $22::BYTEA[], $23::TEXT[], $24::TEXT[]) WITH ORDINALITY
         AS u (feedback_id, namespace, caller, request_id, request_hash, kind, scope, correction,
               traceparent, reporter_id, session_id, client, client_key, query_id, reason, context,
               event_id, payload, rated, target, rating, place)
), fresh AS (
    INSERT INTO request_ids (accept_order, namespace, caller, request_id, request_hash, feedback_id, created_at)
    SELECT accept_order, namespace, caller, request_id, request_hash, feedback_id, now
    FROM item WHERE request_id <> '' ORDER BY namespace, caller, request_id, place
    ON CONFLICT (namespace, caller, request_id) DO NOTHING
    RETURNING accept_order
), stored AS MATERIALIZED (
    SELECT * FROM item WHERE request_id = '' OR accept_order IN (SELECT accept_order FROM fresh)
), ledger AS (
    INSERT INTO feedback (accept_order, feedback_id, namespace, caller, request_id, kind, scope, correction,
                          target, rating, traceparent, received_at)
    SELECT accept_order, feedback_id, namespace, caller, request_id, kind, scope, correction, target, rating,
           traceparent, now
    FROM stored
), personal AS (
    INSERT INTO feedback_personal (accept_order, namespace, reporter_id, session_id, client, client_key, query_id,
                                   reason, context, retract_reason, rated)
    SELECT accept_order, namespace, reporter_id, session_id, client, client_key, query_id, reason, context, '', rated
    FROM stored
), status AS (
    INSERT INTO feedback_status (accept_order, namespace, delivery_state, event_count, outcome_of, retracted_by,
                                 retract_role)
    SELECT accept_order, namespace, CASE WHEN kind = 0 THEN 2 ELSE $19 END, CASE WHEN kind = 0 THEN 0 ELSE 1 END,
           0, '', 0
    FROM stored
), events AS (
    INSERT INTO outbox (event_id, accept_order, feedback_id, namespace, event_number, occurred_at, payload, state,
                        attempts, due_at, lease_token, code, error)
    SELECT event_id, accept_order, feedback_id, namespace, 1, now, payload, $19, 0, now + $20, $21, 0, ''
    FROM stored WHERE kind <> 0
)
SELECT place, accept_order, now FROM stored";
