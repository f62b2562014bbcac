//! The SQL that both databases understand, written once and compiled against each: `super::Db` says which.
//!
//! It must know nothing of connections, locks or transactions; callers bring them.

use std::time::Duration;

use emend_core::{EventId, FeedbackId, Namespace};
use prost::Message as _;
use sqlx::{Connection as _, Database, QueryBuilder};

use super::{
    super::{
        Inserted, Retracted, Settlement, StoreError,
        rows::{self, ClaimedRow, DeadLetterRow, FeedbackRow, RequestIdRow, micros},
    },
    Db,
};
use crate::domain::{
    DeadLetterQuery, DeliveryState, EncodedOutcome, FeedbackQuery, Lease, LeaseToken, NewFeedback,
    NewRetraction, Redrive, Refusal,
};

pub(super) type Connection = <Db as Database>::Connection;

const PENDING: i64 = DeliveryState::Pending.number();
const DELIVERED: i64 = DeliveryState::Delivered.number();
const DEAD_LETTER: i64 = DeliveryState::DeadLetter.number();

/// Sizes of statements with many rows: few, so that each is prepared once.
const CHUNKS: [usize; 4] = [64, 16, 4, 1];

/// Cuts a slice into pieces of few different sizes.
pub(super) fn chunks<T>(mut rest: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = CHUNKS.into_iter().find(|size| *size <= rest.len())?;
        let (chunk, behind) = rest.split_at(size);
        rest = behind;
        Some(chunk)
    })
}

/// The columns of one feedback as they are stored; made before the transaction begins.
pub(super) struct Columns<'a> {
    pub(super) new: &'a NewFeedback,
    pub(super) request_id: &'a str,
    pub(super) kind: i64,
    pub(super) scope: i64,
    pub(super) correction: Vec<u8>,
    pub(super) reporter_id: &'a str,
    pub(super) session_id: &'a str,
    pub(super) context: String,
}

impl<'a> Columns<'a> {
    pub(super) fn of(new: &'a NewFeedback) -> Self {
        let submission = &new.submission;
        Self {
            new,
            request_id: submission
                .request_id
                .as_ref()
                .map_or("", emend_core::RequestId::as_str),
            kind: i64::from(submission.correction.form.kind().number()),
            scope: i64::from(emend_wire::render::scope(submission.scope) as i32),
            correction: emend_wire::render::correction(&submission.correction).encode_to_vec(),
            reporter_id: submission
                .reporter
                .id
                .as_ref()
                .map_or("", emend_core::ReporterId::as_str),
            session_id: submission.reporter.session.as_deref().unwrap_or_default(),
            context: if submission.context.is_empty() {
                "{}".to_owned()
            } else {
                serde_json::to_string(&submission.context)
                    .expect("invariant: a map of texts is a JSON object")
            },
        }
    }
}

/// What became of a request whose id is in use; none if it was forgotten meanwhile.
pub(super) async fn replay(
    connection: &mut Connection,
    new: &NewFeedback,
    request_id: &str,
) -> Result<Option<Inserted>, StoreError> {
    let found: Option<RequestIdRow> = sqlx::query_as(
        "SELECT accept_order, request_hash, feedback_id FROM request_ids
         WHERE namespace = $1 AND caller = $2 AND request_id = $3",
    )
    .bind(new.submission.namespace.as_str())
    .bind(new.caller.as_str())
    .bind(request_id)
    .fetch_optional(connection)
    .await?;
    let Some(RequestIdRow {
        accept_order,
        request_hash,
        feedback_id,
    }) = found
    else {
        return Ok(None);
    };
    if request_hash == new.hash.0 {
        Ok(Some(Inserted::Replayed(rows::feedback_id(
            "request_ids",
            accept_order,
            &feedback_id,
        )?)))
    } else {
        Ok(Some(Inserted::RequestIdReused))
    }
}

pub(super) async fn feedback(
    connection: &mut Connection,
    namespace: &Namespace,
    id: FeedbackId,
) -> Result<Option<FeedbackRow>, StoreError> {
    let mut query = select_feedback();
    query
        .push(" WHERE f.feedback_id = ")
        .push_bind(id.0.as_bytes().as_slice());
    query.push(" AND f.namespace = ").push_bind(namespace.as_str());
    Ok(query.build_query_as().fetch_optional(connection).await?)
}

fn select_feedback() -> QueryBuilder<Db> {
    let mut query = QueryBuilder::new("SELECT ");
    query.push(FeedbackRow::COLUMNS).push(
        " FROM feedback AS f JOIN feedback_personal AS p ON p.accept_order = f.accept_order
           JOIN feedback_status AS s ON s.accept_order = f.accept_order",
    );
    query
}

pub(super) async fn list(
    connection: &mut Connection,
    filter: &FeedbackQuery,
) -> Result<Vec<FeedbackRow>, StoreError> {
    // Only the conditions that are asked for: so each combination has a plan of its own. The order is that of the table
    // whose index finds the rows.
    let mut query = select_feedback();
    let namespace = filter.namespace.as_str();
    let leading = if let Some(reporter) = &filter.reporter {
        query.push(" WHERE p.namespace = ").push_bind(namespace);
        query
            .push(" AND p.reporter_id <> '' AND p.reporter_id = ")
            .push_bind(reporter.as_str());
        "p"
    } else if matches!(
        filter.delivery,
        Some(DeliveryState::Pending | DeliveryState::DeadLetter)
    ) {
        query
            .push(" WHERE s.delivery_state <> 2 AND s.namespace = ")
            .push_bind(namespace);
        "s"
    } else {
        query.push(" WHERE f.namespace = ").push_bind(namespace);
        "f"
    };
    if let Some(kind) = filter.kind {
        query.push(" AND f.kind = ").push_bind(i64::from(kind.number()));
    }
    if let Some(delivery) = filter.delivery {
        query
            .push(" AND s.delivery_state = ")
            .push_bind(delivery.number());
    }
    if let Some(from) = filter.from {
        // Stored times have microseconds: a limit between two of them is the later one.
        query
            .push(" AND f.received_at_us >= ")
            .push_bind(ceiling_us(from));
    }
    if let Some(before) = filter.before {
        query
            .push(" AND f.received_at_us < ")
            .push_bind(ceiling_us(before));
    }
    if let Some(after) = filter.after {
        query
            .push(" AND ")
            .push(leading)
            .push(".accept_order < ")
            .push_bind(after.0);
    }
    query
        .push(" ORDER BY ")
        .push(leading)
        .push(".accept_order DESC LIMIT ")
        .push_bind(i64::from(filter.limit));
    Ok(query.build_query_as().fetch_all(connection).await?)
}

fn ceiling_us(at: jiff::Timestamp) -> i64 {
    let micros = at.as_microsecond();
    micros + i64::from(at.as_nanosecond() > i128::from(micros) * 1000)
}

/// Notes the retraction and its event. To be run in a transaction.
pub(super) async fn retract(
    connection: &mut Connection,
    retraction: &NewRetraction,
    lease: Option<Lease>,
) -> Result<Retracted, StoreError> {
    let NewRetraction {
        namespace,
        id,
        caller,
        reason,
        event,
    } = retraction;
    let noted: Option<(i64, i64, i64)> = sqlx::query_as(
        "UPDATE feedback_status SET retracted_at_us = (SELECT now_us FROM database_clock), retracted_by = $3,
                event_count = event_count + 1, delivery_state = $4
         WHERE accept_order = (SELECT accept_order FROM feedback WHERE feedback_id = $1 AND namespace = $2)
           AND retracted_at_us IS NULL
         RETURNING accept_order, event_count, retracted_at_us",
    )
    .bind(id.0.as_bytes().as_slice())
    .bind(namespace.as_str())
    .bind(caller.as_str())
    .bind(PENDING)
    .fetch_optional(&mut *connection)
    .await?;
    let Some((accept_order, event_number, at_us)) = noted else {
        let there: Option<i64> =
            sqlx::query_scalar("SELECT accept_order FROM feedback WHERE feedback_id = $1 AND namespace = $2")
                .bind(id.0.as_bytes().as_slice())
                .bind(namespace.as_str())
                .fetch_optional(connection)
                .await?;
        return Ok(if there.is_some() {
            Retracted::Before
        } else {
            Retracted::NotFound
        });
    };
    if !reason.is_empty() {
        sqlx::query("UPDATE feedback_personal SET retract_reason = $2 WHERE accept_order = $1")
            .bind(accept_order)
            .bind(reason)
            .execute(&mut *connection)
            .await?;
    }
    sqlx::query(
        "INSERT INTO outbox (event_id, accept_order, feedback_id, namespace, event_number, occurred_at_us, payload,
                             state, attempts, due_at_us, lease_token, code, error)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $6 + $9, $10, 0, '')",
    )
    .bind(event.id.0.as_bytes().as_slice())
    .bind(accept_order)
    .bind(id.0.as_bytes().as_slice())
    .bind(namespace.as_str())
    .bind(event_number)
    .bind(at_us)
    .bind(&*event.payload)
    .bind(PENDING)
    .bind(lease.map_or(0, |lease| micros(lease.duration)))
    .bind(lease.map(|lease| lease.token.0.as_bytes().to_vec()))
    .execute(connection)
    .await?;
    Ok(Retracted::Now(rows::accepted("outbox", accept_order, at_us)?))
}

/// Runs a claim; the entries come in accept order.
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
        .fetch_all(connection)
        .await?;
    claimed.sort_unstable_by_key(|row| (row.accept_order, row.event_number));
    Ok(claimed)
}

/// Notes what became of deliveries. To be run in a transaction.
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
        }
    }
    // In one order everywhere, so that two replicas that delivered the same events do not lock each other out.
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
    // Of one feedback's events in the same statement only the newest may be joined: a row is updated once.
    let mut update = QueryBuilder::<Db>::new("WITH d (event_id, outcome) AS (");
    update.push_values(delivered, |mut row, (event_id, outcome)| {
        row.push_bind(event_id.0.as_bytes().as_slice())
            .push_bind(&*outcome.0);
    });
    update.push(
        ") UPDATE feedback_status AS s SET
             outcome = CASE WHEN e.event_number >= s.outcome_of THEN e.outcome ELSE s.outcome END,
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
                due_at_us = $3 + (SELECT now_us FROM database_clock)
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

async fn mark_dead(
    connection: &mut Connection,
    event_id: EventId,
    LeaseToken(token): LeaseToken,
    refusal: &Refusal,
) -> Result<(), StoreError> {
    let dead: Option<(i64, i64)> = sqlx::query_as(
        "UPDATE outbox SET state = 3, attempts = attempts + 1, lease_token = NULL, code = $3, error = $4,
                dead_at_us = (SELECT now_us FROM database_clock)
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

pub(super) async fn dead_letters(
    connection: &mut Connection,
    filter: &DeadLetterQuery,
) -> Result<Vec<DeadLetterRow>, StoreError> {
    let mut query = QueryBuilder::<Db>::new(
        "SELECT event_id, feedback_id, namespace, attempts, code, error, dead_at_us FROM outbox WHERE state = 3",
    );
    if let Some(namespace) = &filter.namespace {
        query.push(" AND namespace = ").push_bind(namespace.as_str());
    }
    if let Some(after) = filter.after {
        query
            .push(" AND (dead_at_us, event_id) > (")
            .push_bind(after.dead_at_us);
        query
            .push(", ")
            .push_bind(after.event_id.0.as_bytes().as_slice())
            .push(")");
    }
    query
        .push(" ORDER BY dead_at_us, event_id LIMIT ")
        .push_bind(i64::from(filter.limit));
    Ok(query.build_query_as().fetch_all(connection).await?)
}

/// Makes dead letters due. To be run in a transaction.
pub(super) async fn redrive(connection: &mut Connection, which: &Redrive) -> Result<u64, StoreError> {
    let mut redriven: Vec<(i64, i64)> = Vec::new();
    match which {
        Redrive::Namespace(namespace) => {
            let mut query = make_due(Some(namespace));
            query.push(RETURNING_EVENT);
            redriven = query.build_query_as().fetch_all(&mut *connection).await?;
        }
        Redrive::Events(events, namespace) => {
            for chunk in chunks(events) {
                let mut query = make_due(namespace.as_ref());
                query.push(" AND event_id IN (");
                let mut ids = query.separated(", ");
                for event_id in chunk {
                    ids.push_bind(event_id.0.as_bytes().as_slice());
                }
                query.push(")").push(RETURNING_EVENT);
                redriven.append(&mut query.build_query_as().fetch_all(&mut *connection).await?);
            }
        }
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

const RETURNING_EVENT: &str = " RETURNING accept_order, event_number";

fn make_due(namespace: Option<&Namespace>) -> QueryBuilder<Db> {
    let mut query = QueryBuilder::new(
        "UPDATE outbox SET state = 1, attempts = 0, lease_token = NULL, dead_at_us = NULL,
                due_at_us = (SELECT now_us FROM database_clock) WHERE state = 3",
    );
    if let Some(namespace) = namespace {
        query.push(" AND namespace = ").push_bind(namespace.as_str());
    }
    query
}

pub(super) async fn prune_request_ids(
    connection: &mut Connection,
    retention: Duration,
    limit: u32,
) -> Result<u64, StoreError> {
    // The oldest are those of the lowest accept orders, so no index of times is needed.
    let pruned = sqlx::query(
        "DELETE FROM request_ids WHERE accept_order IN (
             SELECT accept_order FROM (
                 SELECT accept_order, created_at_us FROM request_ids ORDER BY accept_order LIMIT $2) AS oldest
             WHERE created_at_us < (SELECT now_us FROM database_clock) - $1)",
    )
    .bind(micros(retention))
    .bind(i64::from(limit))
    .execute(connection)
    .await?;
    Ok(pruned.rows_affected())
}

pub(super) async fn ping(connection: &mut Connection) -> Result<(), StoreError> {
    Ok(connection.ping().await?)
}
