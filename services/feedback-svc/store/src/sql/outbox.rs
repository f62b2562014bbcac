//! SQL of the outbox: claims, results of deliveries, dead letters.
//!
//! Connections, locks and transactions are the callers'.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use emend_core::{EventId, Namespace};
use emend_store::{
    StoreError,
    sql::{Conn, Dialect, Statement},
};

use crate::{
    chunks::chunks,
    ports::{Backlog, LONGEST_WAIT, Settlement},
    records::outbox::{
        DeadLetterQuery, DeliveryState, EncodedOutcome, Lease, LeaseHolder, LeaseToken, Refusal,
    },
    rows::{ClaimedRow, DeadLetterRow, micros},
};

const PENDING: i64 = DeliveryState::Pending.number();
const DELIVERED: i64 = DeliveryState::Delivered.number();
const DEAD_LETTER: i64 = DeliveryState::DeadLetter.number();

/// Claims entries that are due: at most `$1`, each leased for `$2` under the token `$3`. No lease ends further ahead than `$4`.
///
/// On SQLite only one transaction writes at a time. A LIMIT that is a parameter alone would have it planned anew each time.
const CLAIM_ON_SQLITE: &str =
    "UPDATE outbox SET lease_token = $3, due_at = $2 + (SELECT now FROM database_clock)
     WHERE event_id IN (SELECT event_id FROM outbox
                        WHERE state = 1 AND (due_at <= (SELECT now FROM database_clock)
                                             OR due_at > $4 + (SELECT now FROM database_clock))
                        ORDER BY accept_order, event_number LIMIT CAST($1 AS INTEGER))
     RETURNING event_id, accept_order, event_number, occurred_at, attempts, payload";

/// On PostgreSQL replicas claim at once: each skips what another one has locked.
const CLAIM_ON_POSTGRES: &str = "
WITH due AS MATERIALIZED (
    SELECT event_id FROM outbox
    WHERE state = 1 AND (due_at <= (SELECT now FROM database_clock)
                         OR due_at > $4 + (SELECT now FROM database_clock))
    ORDER BY accept_order, event_number LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE outbox AS o SET lease_token = $3, due_at = $2 + (SELECT now FROM database_clock)
FROM due WHERE o.event_id = due.event_id
RETURNING o.event_id, o.accept_order, o.event_number, o.occurred_at, o.attempts, o.payload";

/// Releases the leases of everybody but some holders, whose ids are the parameter; skips what somebody is settling.
const RELEASE_OTHERS: &str = "
WITH abandoned AS MATERIALIZED (
    SELECT event_id FROM outbox
    WHERE state = 1 AND lease_token IS NOT NULL AND substring(lease_token FROM 1 FOR 4) <> ALL($1)
    FOR UPDATE SKIP LOCKED
)
UPDATE outbox AS o SET lease_token = NULL, due_at = (SELECT now FROM database_clock)
FROM abandoned WHERE o.event_id = abandoned.event_id";

/// Claims events; returns them in accept order.
pub(super) async fn claim(
    connection: &mut Conn,
    limit: u32,
    lease: Lease,
) -> Result<Vec<ClaimedRow>, StoreError> {
    let statement = Statement::new(match connection.dialect() {
        Dialect::Sqlite => CLAIM_ON_SQLITE,
        Dialect::Postgres => CLAIM_ON_POSTGRES,
    })
    .bind(i64::from(limit))
    .bind(micros(lease.duration))
    .bind(lease.token.0.as_bytes().as_slice())
    .bind(micros(LONGEST_WAIT));
    let mut claimed: Vec<ClaimedRow> = connection.rows(statement).await?;
    claimed.sort_unstable_by_key(|row| (row.accept_order, row.event_number));
    Ok(claimed)
}

/// Releases all leases; returns how many.
pub(super) async fn release_all(connection: &mut Conn) -> Result<u64, StoreError> {
    let statement = "UPDATE outbox SET lease_token = NULL, due_at = (SELECT now FROM database_clock)
                     WHERE state = 1 AND lease_token IS NOT NULL";
    connection.execute(Statement::new(statement)).await
}

/// Releases the leases of all but these holders; returns how many. On PostgreSQL only: a file has nobody else.
pub(super) async fn release_others(
    connection: &mut Conn,
    living: BTreeSet<LeaseHolder>,
) -> Result<u64, StoreError> {
    let living: Vec<_> = living.into_iter().map(LeaseHolder::to_bytes).collect();
    let living: Vec<&[u8]> = living.iter().map(<[u8; 4]>::as_slice).collect();
    connection
        .execute(Statement::new(RELEASE_OTHERS).bind(living))
        .await
}

/// Those of these events that are leased under these tokens.
pub(super) async fn still_leased(
    connection: &mut Conn,
    leases: &[(EventId, LeaseToken)],
) -> Result<Vec<EventId>, StoreError> {
    let mut found = Vec::with_capacity(leases.len());
    for chunk in chunks(leases) {
        let query = leased(chunk.iter().map(|(event_id, _)| *event_id));
        let held: Vec<(Vec<u8>, Option<Vec<u8>>)> = connection.rows(query).await?;
        let held: HashMap<_, _> = held.into_iter().collect();
        let is_held = |event_id: EventId, token: LeaseToken| {
            let token_of = held
                .get(event_id.0.as_bytes().as_slice())
                .and_then(Option::as_ref);
            token_of.is_some_and(|held| held == token.0.as_bytes())
        };
        let still = chunk
            .iter()
            .filter(|(event_id, token)| is_held(*event_id, *token));
        found.extend(still.map(|(event_id, _)| *event_id));
    }
    Ok(found)
}

/// Records the results of deliveries. Must run in a transaction.
pub(super) async fn settle(connection: &mut Conn, settlements: &[Settlement]) -> Result<(), StoreError> {
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
    connection: &mut Conn,
    delivered: &[(EventId, &EncodedOutcome)],
) -> Result<(), StoreError> {
    let ids = delivered.iter().map(|(event_id, _)| *event_id);
    let rows: Vec<(Vec<u8>, i64, i64)> = connection.rows(places(ids)).await?;
    let mut outcomes: HashMap<&[u8], &EncodedOutcome> = HashMap::with_capacity(delivered.len());
    outcomes.extend(
        delivered
            .iter()
            .map(|(event_id, outcome)| (event_id.0.as_bytes().as_slice(), *outcome)),
    );
    // Of a feedback's events the newest alone counts, and a row is updated only once.
    let mut newest: BTreeMap<i64, (i64, &EncodedOutcome)> = BTreeMap::new();
    for (event_id, accept_order, event_number) in &rows {
        if let Some(outcome) = outcomes.get(event_id.as_slice()) {
            let kept = newest.entry(*accept_order).or_insert((*event_number, *outcome));
            if *event_number > kept.0 {
                *kept = (*event_number, *outcome);
            }
        }
    }
    let newest: Vec<Answered<'_>> = newest
        .into_iter()
        .map(|(accept_order, (event_number, outcome))| Answered {
            accept_order,
            event_number,
            outcome,
        })
        .collect();
    for answered in chunks(&newest) {
        connection.execute(note_outcomes(answered)).await?;
    }
    let mut delete = Statement::new("DELETE FROM outbox WHERE event_id IN ");
    push_ids(&mut delete, delivered.iter().map(|(event_id, _)| *event_id));
    connection.execute(delete).await?;
    Ok(())
}

/// The newest event of a feedback among those that are settled together.
pub(super) struct Answered<'a> {
    pub(super) accept_order: i64,
    pub(super) event_number: i64,
    pub(super) outcome: &'a EncodedOutcome,
}

/// The statement that finds the accept orders and numbers of events.
///
/// A list rather than a join with VALUES: with 256 rows SQLite passes over the outbox and looks each of its rows up in VALUES.
pub(super) fn places(events: impl Iterator<Item = EventId>) -> Statement {
    let mut query =
        Statement::new("SELECT event_id, accept_order, event_number FROM outbox WHERE event_id IN ");
    push_ids(&mut query, events);
    query
}

/// The statement that finds under which tokens pending events are leased.
pub(super) fn leased(events: impl Iterator<Item = EventId>) -> Statement {
    let mut query =
        Statement::new("SELECT event_id, lease_token FROM outbox WHERE state = 1 AND event_id IN ");
    push_ids(&mut query, events);
    query
}

/// The statement that notes what learning-svc answered. VALUES are joined with the table's key alone: so SQLite looks them up,
/// however many there are.
pub(super) fn note_outcomes(answered: &[Answered<'_>]) -> Statement {
    let mut update = Statement::new("WITH e (accept_order, event_number, outcome) AS (");
    update.push_values(answered, |mut row, event| {
        row.push_bind(event.accept_order)
            .push_bind(event.event_number)
            .push_bind(&*event.outcome.0);
    });
    update.push(
        ") UPDATE feedback_status AS s SET
             outcome = CASE WHEN e.event_number > 0 AND e.event_number >= s.outcome_of THEN e.outcome ELSE s.outcome END,
             outcome_of = CASE WHEN e.event_number > s.outcome_of THEN e.event_number ELSE s.outcome_of END,
             delivery_state = CASE WHEN e.event_number = s.event_count THEN ",
    );
    update.push(DELIVERED);
    update.push(" ELSE s.delivery_state END FROM e WHERE s.accept_order = e.accept_order");
    update
}

/// The statement that notes that events wait again, by their feedback's accept orders and their numbers.
pub(super) fn made_pending(events: &[(i64, i64)]) -> Statement {
    let mut query = Statement::new("WITH e (accept_order, event_number) AS (");
    query.push_values(events, |mut row, (accept_order, event_number)| {
        row.push_bind(*accept_order).push_bind(*event_number);
    });
    query
        .push(") UPDATE feedback_status AS s SET delivery_state = ")
        .push(PENDING);
    query.push(" FROM e WHERE s.accept_order = e.accept_order AND s.event_count = e.event_number");
    query
}

/// Appends a list of events.
fn push_ids(query: &mut Statement, events: impl Iterator<Item = EventId>) {
    query.push_list(events.map(|event_id| event_id.0.as_bytes().to_vec()));
}

async fn mark_failed(
    connection: &mut Conn,
    event_id: EventId,
    LeaseToken(token): LeaseToken,
    retry_in: Duration,
    refusal: &Refusal,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        "UPDATE outbox SET attempts = attempts + 1, lease_token = NULL, code = $4, error = $5,
                due_at = $3 + (SELECT now FROM database_clock)
         WHERE event_id = $1 AND lease_token = $2 AND state = 1",
    )
    .bind(event_id.0.as_bytes().as_slice())
    .bind(token.as_bytes().as_slice())
    .bind(micros(retry_in))
    .bind(i64::from(refusal.code))
    .bind(refusal.error.as_str());
    connection.execute(statement).await?;
    Ok(())
}

async fn release(
    connection: &mut Conn,
    event_id: EventId,
    LeaseToken(token): LeaseToken,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        "UPDATE outbox SET lease_token = NULL, due_at = (SELECT now FROM database_clock)
         WHERE event_id = $1 AND lease_token = $2 AND state = 1",
    )
    .bind(event_id.0.as_bytes().as_slice())
    .bind(token.as_bytes().as_slice());
    connection.execute(statement).await?;
    Ok(())
}

async fn mark_dead(
    connection: &mut Conn,
    event_id: EventId,
    LeaseToken(token): LeaseToken,
    refusal: &Refusal,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        "UPDATE outbox SET state = 3, attempts = attempts + 1, lease_token = NULL, code = $3, error = $4,
                dead_at = (SELECT now FROM database_clock)
         WHERE event_id = $1 AND lease_token = $2 AND state = 1
         RETURNING accept_order, event_number",
    )
    .bind(event_id.0.as_bytes().as_slice())
    .bind(token.as_bytes().as_slice())
    .bind(i64::from(refusal.code))
    .bind(refusal.error.as_str());
    let dead: Option<(i64, i64)> = connection.optional(statement).await?;
    if let Some((accept_order, event_number)) = dead {
        let statement = Statement::new(
            "UPDATE feedback_status SET delivery_state = $3 WHERE accept_order = $1 AND event_count = $2",
        )
        .bind(accept_order)
        .bind(event_number)
        .bind(DEAD_LETTER);
        connection.execute(statement).await?;
    }
    Ok(())
}

/// How many of the first events in accept order are examined for the oldest. They are in the order in which feedback
/// was accepted, so only retractions of still older feedback come before the event that has waited longest.
const OLDEST_AMONG: i64 = 10_000;

/// The backlog, counted on the indexes of pending and dead events.
pub(super) async fn backlog(connection: &mut Conn) -> Result<Backlog, StoreError> {
    let statement = Statement::new(
        "SELECT (SELECT count(*) FROM outbox WHERE state = 1),
                (SELECT now FROM database_clock) - (SELECT min(first.occurred_at) FROM (
                     SELECT occurred_at FROM outbox WHERE state = 1 ORDER BY accept_order, event_number LIMIT $1
                 ) AS first),
                (SELECT count(*) FROM outbox WHERE state = 3)",
    )
    .bind(OLDEST_AMONG);
    let (pending, oldest_age, dead_letters): (i64, Option<i64>, i64) = connection.row(statement).await?;
    let age = u64::try_from(oldest_age.unwrap_or(0)).unwrap_or(0);
    Ok(Backlog {
        pending: pending.unsigned_abs(),
        oldest_age: Duration::from_micros(age),
        dead_letters: dead_letters.unsigned_abs(),
    })
}

pub(super) async fn dead_letters(
    connection: &mut Conn,
    filter: &DeadLetterQuery,
) -> Result<Vec<DeadLetterRow>, StoreError> {
    let mut query = Statement::new(
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
    connection.rows(query).await
}

/// Makes dead letters due. Must run in a transaction.
pub(super) async fn redrive(
    connection: &mut Conn,
    events: &[EventId],
    namespace: Option<&Namespace>,
) -> Result<u64, StoreError> {
    let mut redriven: Vec<(i64, i64)> = Vec::new();
    for chunk in chunks(events) {
        let mut query = Statement::new(
            "UPDATE outbox SET state = 1, attempts = 0, lease_token = NULL, dead_at = NULL,
                    due_at = (SELECT now FROM database_clock) WHERE state = 3 AND event_id IN ",
        );
        push_ids(&mut query, chunk.iter().copied());
        if let Some(namespace) = namespace {
            query.push(" AND namespace = ").push_bind(namespace.as_str());
        }
        query.push(" RETURNING accept_order, event_number");
        redriven.append(&mut connection.rows(query).await?);
    }
    for chunk in chunks(&redriven) {
        connection.execute(made_pending(chunk)).await?;
    }
    Ok(redriven.len() as u64)
}
