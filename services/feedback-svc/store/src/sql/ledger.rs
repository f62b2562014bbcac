//! SQL of feedback itself: the ledger, its personal parts, its status and request ids.
//!
//! Connections, locks and transactions are the callers'.

use std::time::Duration;

use emend_core::{Caller, FeedbackId, Kind, Namespace, search::Rater};
use emend_store::{
    StoreError,
    sql::{Conn, Dialect, Statement},
};
use prost::Message as _;

use crate::{
    ports::{Inserted, Retracted},
    records::{
        event,
        feedback::{FeedbackQuery, NewFeedback, NewRetraction, RequestHash, is_by_ruling},
        outbox::{DeliveryState, Lease},
        queries::query_key,
        ratings::RatingFilter,
    },
    rows::{self, FeedbackRow, RequestIdRow, micros},
};

/// The columns of one feedback as they are stored; made before the transaction begins.
pub(super) struct Columns<'a> {
    pub(super) new: &'a NewFeedback,
    pub(super) request_id: &'a str,
    pub(super) kind: i64,
    pub(super) scope: i64,
    pub(super) correction: Vec<u8>,
    pub(super) target: &'a str,
    pub(super) rating: &'a str,
    pub(super) rated: Vec<u8>,
    pub(super) search_rating: Option<i64>,
    pub(super) reporter_id: &'a str,
    pub(super) session_id: &'a str,
    pub(super) context: String,
}

impl<'a> Columns<'a> {
    pub(super) fn of(new: &'a NewFeedback) -> Self {
        let submission = &new.submission;
        let rating = submission.correction.rating();
        Self {
            new,
            request_id: submission
                .request_id
                .as_ref()
                .map_or("", emend_core::RequestId::as_str),
            kind: number(submission.correction.form().kind()),
            scope: i64::from(emend_wire::render::scope(submission.scope) as i32),
            correction: emend_wire::render::correction(
                &submission.correction.clone().without_personal_parts(),
            )
            .encode_to_vec(),
            target: rating.map_or("", |rating| &rating.target),
            rating: rating.map_or("", |rating| &rating.value),
            rated: rating.map_or_else(Vec::new, |rating| {
                emend_wire::render::rated_texts(&rating.texts).encode_to_vec()
            }),
            search_rating: submission
                .correction
                .search_rating()
                .map(|rating| rating.number().into()),
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

/// The number of a kind; 0 of what teaches none.
pub(super) fn number(kind: Option<Kind>) -> i64 {
    kind.map_or(0, |kind| kind.number().into())
}

impl Columns<'_> {
    /// Who rates, if it is a rating of a search answer.
    pub(super) fn rater(&self) -> Option<Rater> {
        let NewFeedback {
            caller, submission, ..
        } = self.new;
        self.search_rating?;
        Some(Rater::of(&submission.namespace, caller, &submission.reporter))
    }
}

/// The result of a request whose id is in use; none if the id was deleted meanwhile.
pub(super) async fn replay_of(
    connection: &mut Conn,
    columns: &Columns<'_>,
) -> Result<Option<Inserted>, StoreError> {
    let NewFeedback {
        submission,
        caller,
        hash,
        ..
    } = columns.new;
    replay(
        connection,
        &submission.namespace,
        caller,
        *hash,
        columns.request_id,
    )
    .await
}

/// The result of a caller's request with this id and hash; none if the id is free.
pub(super) async fn replay(
    connection: &mut Conn,
    namespace: &Namespace,
    caller: &Caller,
    hash: RequestHash,
    request_id: &str,
) -> Result<Option<Inserted>, StoreError> {
    let statement = Statement::new(
        "SELECT accept_order, request_hash, feedback_id FROM request_ids
         WHERE namespace = $1 AND caller = $2 AND request_id = $3",
    )
    .bind(namespace.as_str())
    .bind(caller.as_str())
    .bind(request_id);
    let found: Option<RequestIdRow> = connection.optional(statement).await?;
    let Some(RequestIdRow {
        accept_order,
        request_hash,
        feedback_id,
    }) = found
    else {
        return Ok(None);
    };
    if request_hash == hash.0 {
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
    connection: &mut Conn,
    namespace: &Namespace,
    id: FeedbackId,
) -> Result<Option<FeedbackRow>, StoreError> {
    let mut query = Statement::new("");
    select_feedback(&mut query);
    query
        .push(" WHERE f.feedback_id = ")
        .push_bind(id.0.as_bytes().as_slice());
    query.push(" AND f.namespace = ").push_bind(namespace.as_str());
    connection.optional(query).await
}

fn select_feedback(query: &mut Statement) {
    query.push("SELECT ").push(FeedbackRow::COLUMNS).push(
        " FROM feedback AS f JOIN feedback_personal AS p ON p.accept_order = f.accept_order
           JOIN feedback_status AS s ON s.accept_order = f.accept_order
           LEFT JOIN search_ratings AS r ON r.accept_order = f.accept_order",
    );
}

pub(super) async fn list(
    connection: &mut Conn,
    filter: &FeedbackQuery,
) -> Result<Vec<FeedbackRow>, StoreError> {
    let query = select_list(connection.dialect(), filter);
    connection.rows(query).await
}

/// The statement of a list.
pub(super) fn select_list(dialect: Dialect, filter: &FeedbackQuery) -> Statement {
    let mut statement = Statement::new("");
    let query = &mut statement;
    // Only the requested conditions, so that each combination gets a query plan of its own. The order is that of the
    // table whose index finds the rows.
    select_feedback(query);
    let namespace = filter.namespace.as_str();
    // Those of one query's text are fewer than those of a value, a type or a period.
    let ratings = filter.search_ratings.as_ref();
    let by_text = ratings.is_some_and(|ratings| ratings.query_text.is_some());
    let unindexed = if by_text { without_index(dialect) } else { "" };
    let leading = if let Some(ratings) = &filter.search_ratings {
        query.push(" WHERE r.namespace = ").push_bind(namespace);
        select_ratings(query, ratings, unindexed);
        if let Some(reporter) = &filter.reporter {
            query.push(" AND p.reporter_id = ").push_bind(reporter.as_str());
        }
        "r"
    } else if let Some(reporter) = &filter.reporter {
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
    // The ratings of a period are found by its index and put in order afterwards: by that of their target, all newer ones
    // would be passed over.
    let by_time = leading == "r" && filter.has_period() && !by_text
        || leading == "f" && filter.is_of_ratings() && filter.has_period();
    let (column, order) = if by_time {
        (without_index(dialect), " + 0")
    } else {
        ("", "")
    };
    if leading != "r" && by_time || filter.target.is_some() {
        // Says in as many words that the indexes of ratings hold what is asked for.
        query.push(" AND f.target <> ''");
    }
    let is_said_by_target = filter.is_of_ratings() && (by_time || filter.target.is_some());
    if let Some(kind) = filter.kind.filter(|_| !is_said_by_target) {
        query.push(" AND f.kind = ").push_bind(i64::from(kind.number()));
    }
    if let Some(asked) = &filter.target {
        query
            .push(" AND ")
            .push(column)
            .push("f.target = ")
            .push_bind(asked);
    }
    if let Some(asked) = &filter.rating {
        query
            .push(" AND ")
            .push(column)
            .push("f.rating = ")
            .push_bind(asked);
    }
    if let Some(delivery) = filter.delivery {
        query
            .push(" AND s.delivery_state = ")
            .push_bind(delivery.number());
    }
    let at = if leading == "r" {
        "r.rated_at"
    } else {
        "f.received_at"
    };
    if let Some(from) = filter.from {
        // Stored times have microsecond precision: a bound between two microseconds is rounded up.
        query
            .push(" AND ")
            .push(unindexed)
            .push(at)
            .push(" >= ")
            .push_bind(ceiling_micros(from));
    }
    if let Some(before) = filter.before {
        query
            .push(" AND ")
            .push(unindexed)
            .push(at)
            .push(" < ")
            .push_bind(ceiling_micros(before));
    }
    if let Some(after) = filter.after {
        query
            .push(" AND ")
            .push(leading)
            .push(".accept_order")
            .push(order)
            .push(" < ")
            .push_bind(after.0);
    }
    query
        .push(" ORDER BY ")
        .push(leading)
        .push(".accept_order")
        .push(order)
        .push(" DESC LIMIT ")
        .push_bind(i64::from(filter.limit));
    statement
}

/// Before a column: no index of it is to be used. PostgreSQL's planner needs no word for that.
fn without_index(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "+",
        Dialect::Postgres => "",
    }
}

/// The conditions of ratings of search answers; before a column whose index is not to be used stands `unindexed`.
fn select_ratings(query: &mut Statement, filter: &RatingFilter, unindexed: &str) {
    if let Some(value) = filter.value {
        query
            .push(" AND ")
            .push(unindexed)
            .push("r.rating = ")
            .push_bind(i64::from(value.number()));
    }
    if let Some(query_type) = &filter.query_type {
        query
            .push(" AND ")
            .push(unindexed)
            .push("r.query_type = ")
            .push_bind(query_type.clone());
    }
    if let Some(tag) = &filter.tag {
        // A tag holds no character of patterns but the underscore.
        let pattern = format!("% {} %", tag.as_str().replace('_', "\\_"));
        query
            .push(" AND r.tags LIKE ")
            .push_bind(pattern)
            .push(" ESCAPE '\\'");
    }
    if let Some(text) = &filter.query_text {
        // A text that is nothing in normal form is that of no query.
        let key = query_key(text).map(|key| key.to_vec()).unwrap_or_default();
        query
            .push(" AND r.query_key IS NOT NULL AND r.query_key = ")
            .push_bind(key);
    }
    if filter.only_counting {
        query.push(" AND r.replaced_by IS NULL AND s.retracted_at IS NULL");
    }
    if let Some(processed) = filter.processed {
        query.push(" AND r.processed = ").push_bind(i64::from(processed));
    }
}

/// The first microsecond that is not before this time.
pub(super) fn ceiling_micros(at: jiff::Timestamp) -> i64 {
    let micros = at.as_microsecond();
    micros + i64::from(at.as_nanosecond() > i128::from(micros) * 1000)
}

/// The number of a feedback's second event.
const FIRST_RETRACTION: i64 = 2;

/// Stores the retraction and its event. Must run in a transaction.
pub(super) async fn retract(
    connection: &mut Conn,
    retraction: &NewRetraction,
    lease: Option<Lease>,
) -> Result<Retracted, StoreError> {
    let NewRetraction {
        namespace,
        id,
        caller,
        role: _,
        reason,
        event,
    } = retraction;
    let mut note = Statement::new(
        "UPDATE feedback_status SET retracted_at = (SELECT now FROM database_clock),
                event_count = event_count + (CASE WHEN event_count = 0 THEN 0 ELSE 1 END), retracted_by = ",
    );
    note.push_bind(caller.as_str());
    note.push(", retract_role = ").push_bind(retraction.role_number());
    // What has no event gets none.
    note.push(", delivery_state = CASE WHEN event_count = 0 THEN delivery_state ELSE ")
        .push_bind(DeliveryState::Pending.number())
        .push(" END");
    note.push(" WHERE accept_order = (SELECT accept_order FROM feedback WHERE feedback_id = ")
        .push_bind(id.0.as_bytes().as_slice());
    note.push(" AND namespace = ").push_bind(namespace.as_str());
    note.push(") AND (retracted_at IS NULL OR retract_role < ")
        .push_bind(retraction.role_number());
    note.push(
        " AND (SELECT kind FROM feedback AS f WHERE f.accept_order = feedback_status.accept_order) IN ",
    );
    note.push_list(
        Kind::ALL
            .into_iter()
            .filter(|kind| is_by_ruling(Some(*kind)))
            .map(|kind| i64::from(kind.number())),
    );
    note.push(") RETURNING accept_order, event_count, retracted_at");
    let noted: Option<(i64, i64, i64)> = connection.optional(note).await?;
    let Some((accept_order, event_number, at)) = noted else {
        let statement =
            Statement::new("SELECT accept_order FROM feedback WHERE feedback_id = $1 AND namespace = $2")
                .bind(id.0.as_bytes().as_slice())
                .bind(namespace.as_str());
        let there: Option<i64> = connection.optional_value(statement).await?;
        return Ok(if there.is_some() {
            Retracted::Before
        } else {
            Retracted::NotFound
        });
    };
    let is_delivered = event_number > 0;
    // A stronger retraction's reason takes the place of the one before, even if it gives none.
    let statement = Statement::new(
        "UPDATE feedback_personal SET retract_reason = $2 WHERE accept_order = $1 AND voter IS NULL",
    )
    .bind(accept_order)
    .bind(reason);
    let has_reason =
        reason.is_empty() && event_number <= FIRST_RETRACTION || connection.execute(statement).await? == 1;
    let accepted = rows::accepted("outbox", accept_order, at)?;
    let retracted = Retracted::Now {
        accepted,
        has_reason,
        is_delivered,
    };
    if !is_delivered {
        return Ok(retracted);
    }
    let payload = if has_reason {
        event.payload.clone()
    } else {
        event::without_reason(event).payload
    };
    let statement = Statement::new(
        "INSERT INTO outbox (event_id, accept_order, feedback_id, namespace, event_number, occurred_at, payload,
                             state, attempts, due_at, lease_token, code, error)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $6 + $9, $10, 0, '')",
    )
    .bind(event.id.0.as_bytes().as_slice())
    .bind(accept_order)
    .bind(id.0.as_bytes().as_slice())
    .bind(namespace.as_str())
    .bind(event_number)
    .bind(at)
    .bind(&*payload)
    .bind(DeliveryState::Pending.number())
    .bind(lease.map_or(0, |lease| micros(lease.duration)))
    .bind(lease.map(|lease| lease.token.0.as_bytes().to_vec()));
    connection.execute(statement).await?;
    Ok(retracted)
}

pub(super) async fn prune_request_ids(
    connection: &mut Conn,
    retention: Duration,
    limit: u32,
) -> Result<u64, StoreError> {
    // The oldest have the lowest accept orders, so no index of times is needed.
    let statement = Statement::new(
        "DELETE FROM request_ids WHERE accept_order IN (
             SELECT accept_order FROM (
                 SELECT accept_order, created_at FROM request_ids ORDER BY accept_order LIMIT $2) AS oldest
             WHERE created_at < (SELECT now FROM database_clock) - $1)",
    )
    .bind(micros(retention))
    .bind(i64::from(limit));
    let pruned = connection.execute(statement).await?;
    Ok(pruned)
}
