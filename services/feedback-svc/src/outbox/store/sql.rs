//! The portable SQL of the outbox: claims, results of deliveries, dead letters. Written once, compiled for each
//! database: `super::Db` says which.
//!
//! Connections, locks and transactions are the callers'.

use std::time::Duration;

use emend_core::{EventId, Namespace};
use sqlx::QueryBuilder;

use super::{
    super::{
        Backlog, LONGEST_WAIT, Settlement, StoreError,
        chunks::chunks,
        rows::{ClaimedRow, DeadLetterRow, micros},
    },
    Connection, Db,
};
use crate::outbox::entry::{DeadLetterQuery, DeliveryState, EncodedOutcome, Lease, LeaseToken, Refusal};

const PENDING: i64 = DeliveryState::Pending.number();
const DELIVERED: i64 = DeliveryState::Delivered.number();
const DEAD_LETTER: i64 = DeliveryState::DeadLetter.number();

/// Runs a claim; returns the entries in accept order.
pub(super) async fn claim(
    connection: &mut Connection,
    sql: &'static str,
    limit: u32,
    lease: Lease,
) -> Result<Vec<ClaimedRow>, StoreError> {
    let mut claimed: Vec<ClaimedRow> = sqlx::query_as(sql)
        .bind(i64::from(limit))
        .bind(micros(lease.duration))
        .bind(lease.token.0.as_bytes().as_slice())
        .bind(micros(LONGEST_WAIT))
        .fetch_all(connection)
        .await?;
    claimed.sort_unstable_by_key(|row| (row.accept_order, row.event_number));
    Ok(claimed)
}

/// Those of these events that are leased under these tokens.
pub(super) async fn still_leased(
    connection: &mut Connection,
    leases: &[(EventId, LeaseToken)],
) -> Result<Vec<EventId>, StoreError> {
    let mut found = Vec::with_capacity(leases.len());
    for chunk in chunks(leases) {
        let mut query = QueryBuilder::<Db>::new("WITH l (event_id, lease_token) AS (");
        query.push_values(chunk, |mut row, (event_id, token)| {
            row.push_bind(event_id.0.as_bytes().as_slice())
                .push_bind(token.0.as_bytes().as_slice());
        });
        query.push(
            ") SELECT o.event_id FROM l JOIN outbox AS o ON o.event_id = l.event_id AND o.lease_token = l.lease_token
             WHERE o.state = 1",
        );
        let ids: Vec<Vec<u8>> = query.build_query_scalar().fetch_all(&mut *connection).await?;
        let is_found = |event_id: &EventId| ids.iter().any(|id| id == event_id.0.as_bytes());
        found.extend(chunk.iter().map(|(event_id, _)| *event_id).filter(is_found));
    }
    Ok(found)
}

/// Records the results of deliveries. Must run in a transaction.
pub(super) async fn settle(
    connection: &mut Connection,
    settlements: &[Settlement],
) -> Result<(), StoreError> {
    let mut delivered = Vec::with_capacity(settlements.len());
    for settlement in settlements {
        match settlement {
            Settlement::Delivered { event_id, outcome } => delivered.push((*event_id, outcome)),
            Settlement::Failed {
                event_id,
                token,
                retry_in,
                refusal,
            } => {
                mark_failed(connection, *event_id, *token, *retry_in, refusal).await?;
            }
            Settlement::Dead {
                event_id,
                token,
                refusal,
            } => {
                mark_dead(connection, *event_id, *token, refusal).await?;
            }
            Settlement::Released { event_id, token } => {
                release(connection, *event_id, *token).await?;
            }
        }
    }
    // In the same order everywhere, so that two replicas that delivered the same events do not deadlock.
    delivered.sort_unstable_by_key(|(event_id, _)| *event_id);
    for chunk in chunks(&delivered) {
        mark_delivered(connection, chunk).await?;
    }
    Ok(())
}

async fn mark_delivered(
    connection: &mut Connection,
    delivered: &[(EventId, &EncodedOutcome)],
) -> Result<(), StoreError> {
    // Of a feedback's events in this statement only the newest may be joined, because a row is updated only once.
    let mut update = QueryBuilder::<Db>::new("WITH d (event_id, outcome) AS (");
    update.push_values(delivered, |mut row, (event_id, outcome)| {
        row.push_bind(event_id.0.as_bytes().as_slice())
            .push_bind(&*outcome.0);
    });
    update.push(
        ") UPDATE feedback_status AS s SET
             outcome = CASE WHEN e.event_number > 0 AND e.event_number >= s.outcome_of THEN e.outcome ELSE s.outcome END,
             outcome_of = CASE WHEN e.event_number > s.outcome_of THEN e.event_number ELSE s.outcome_of END,
             delivery_state = CASE WHEN e.event_number = s.event_count THEN ",
    );
    update.push(DELIVERED);
    update.push(
        " ELSE s.delivery_state END
           FROM (SELECT o.accept_order, o.event_number, d.outcome,
                        row_number() OVER (PARTITION BY o.accept_order ORDER BY o.event_number DESC) AS place
                 FROM d JOIN outbox AS o ON o.event_id = d.event_id) AS e
           WHERE s.accept_order = e.accept_order AND e.place = 1",
    );
    update.build().execute(&mut *connection).await?;
    let mut delete = QueryBuilder::<Db>::new("DELETE FROM outbox WHERE event_id IN (");
    let mut ids = delete.separated(", ");
    for (event_id, _) in delivered {
        ids.push_bind(event_id.0.as_bytes().as_slice());
    }
    delete.push(")");
    delete.build().execute(connection).await?;
    Ok(())
}

async fn mark_failed(
    connection: &mut Connection,
    event_id: EventId,
    LeaseToken(token): LeaseToken,
    retry_in: Duration,
    refusal: &Refusal,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE outbox SET attempts = attempts + 1, lease_token = NULL, code = $4, error = $5,
                due_at = $3 + (SELECT now FROM database_clock)
         WHERE event_id = $1 AND lease_token = $2 AND state = 1",
    )
    .bind(event_id.0.as_bytes().as_slice())
    .bind(token.as_bytes().as_slice())
    .bind(micros(retry_in))
    .bind(i64::from(refusal.code))
    .bind(refusal.error.as_str())
    .execute(connection)
    .await?;
    Ok(())
}

async fn release(
    connection: &mut Connection,
    event_id: EventId,
    LeaseToken(token): LeaseToken,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE outbox SET lease_token = NULL, due_at = (SELECT now FROM database_clock)
         WHERE event_id = $1 AND lease_token = $2 AND state = 1",
    )
    .bind(event_id.0.as_bytes().as_slice())
    .bind(token.as_bytes().as_slice())
    .execute(connection)
    .await?;
    Ok(())
}

async fn mark_dead(
    connection: &mut Connection,
    event_id: EventId,
    LeaseToken(token): LeaseToken,
    refusal: &Refusal,
) -> Result<(), StoreError> {
    let dead: Option<(i64, i64)> = sqlx::query_as(
        "UPDATE outbox SET state = 3, attempts = attempts + 1, lease_token = NULL, code = $3, error = $4,
                dead_at = (SELECT now FROM database_clock)
         WHERE event_id = $1 AND lease_token = $2 AND state = 1
         RETURNING accept_order, event_number",
    )
    .bind(event_id.0.as_bytes().as_slice())
    .bind(token.as_bytes().as_slice())
    .bind(i64::from(refusal.code))
    .bind(refusal.error.as_str())
    .fetch_optional(&mut *connection)
    .await?;
    if let Some((accept_order, event_number)) = dead {
        sqlx::query(
            "UPDATE feedback_status SET delivery_state = $3 WHERE accept_order = $1 AND event_count = $2",
        )
        .bind(accept_order)
        .bind(event_number)
        .bind(DEAD_LETTER)
        .execute(connection)
        .await?;
    }
    Ok(())
}

/// How many of the first events in accept order are examined for the oldest. They are in the order in which feedback
/// was accepted, so only retractions of still older feedback come before the event that has waited longest.
const OLDEST_AMONG: i64 = 10_000;

/// The backlog, counted on the indexes of pending and dead events.
pub(super) async fn backlog(connection: &mut Connection) -> Result<Backlog, StoreError> {
    let (pending, oldest_age, dead_letters): (i64, Option<i64>, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM outbox WHERE state = 1),
                (SELECT now FROM database_clock) - (SELECT min(first.occurred_at) FROM (
                     SELECT occurred_at FROM outbox WHERE state = 1 ORDER BY accept_order, event_number LIMIT $1
                 ) AS first),
                (SELECT count(*) FROM outbox WHERE state = 3)",
    )
    .bind(OLDEST_AMONG)
    .fetch_one(connection)
    .await?;
    let age = u64::try_from(oldest_age.unwrap_or(0)).unwrap_or(0);
    Ok(Backlog {
        pending: pending.unsigned_abs(),
        oldest_age: Duration::from_micros(age),
        dead_letters: dead_letters.unsigned_abs(),
    })
}

pub(super) async fn dead_letters(
    connection: &mut Connection,
    filter: &DeadLetterQuery,
) -> Result<Vec<DeadLetterRow>, StoreError> {
    let mut query = QueryBuilder::<Db>::new(
        "SELECT event_id, feedback_id, namespace, attempts, code, error, dead_at FROM outbox WHERE state = 3",
    );
    if let Some(namespace) = &filter.namespace {
        query.push(" AND namespace = ").push_bind(namespace.as_str());
    }
    if let Some(after) = filter.after {
        query
            .push(" AND (dead_at, event_id) > (")
            .push_bind(after.dead_at);
        query
            .push(", ")
            .push_bind(after.event_id.0.as_bytes().as_slice())
            .push(")");
    }
    query
        .push(" ORDER BY dead_at, event_id LIMIT ")
        .push_bind(i64::from(filter.limit));
    Ok(query.build_query_as().fetch_all(connection).await?)
}

/// Makes dead letters due. Must run in a transaction.
pub(super) async fn redrive(
    connection: &mut Connection,
    events: &[EventId],
    of: Option<&Namespace>,
) -> Result<u64, StoreError> {
    let mut redriven: Vec<(i64, i64)> = Vec::new();
    for chunk in chunks(events) {
        let mut query = QueryBuilder::<Db>::new(
            "UPDATE outbox SET state = 1, attempts = 0, lease_token = NULL, dead_at = NULL,
                    due_at = (SELECT now FROM database_clock) WHERE state = 3 AND event_id IN (",
        );
        let mut ids = query.separated(", ");
        for event_id in chunk {
            ids.push_bind(event_id.0.as_bytes().as_slice());
        }
        query.push(")");
        if let Some(namespace) = of {
            query.push(" AND namespace = ").push_bind(namespace.as_str());
        }
        query.push(" RETURNING accept_order, event_number");
        redriven.append(&mut query.build_query_as().fetch_all(&mut *connection).await?);
    }
    for chunk in chunks(&redriven) {
        let mut query = QueryBuilder::<Db>::new("WITH e (accept_order, event_number) AS (");
        query.push_values(chunk, |mut row, (accept_order, event_number)| {
            row.push_bind(*accept_order).push_bind(*event_number);
        });
        query
            .push(") UPDATE feedback_status AS s SET delivery_state = ")
            .push(PENDING);
        query.push(" FROM e WHERE s.accept_order = e.accept_order AND s.event_count = e.event_number");
        query.build().execute(&mut *connection).await?;
    }
    Ok(redriven.len() as u64)
}
