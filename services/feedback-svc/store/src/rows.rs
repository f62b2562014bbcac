//! Rows as both databases return them, and how they are parsed. Rows are parsed, not trusted: an error names the bad
//! row.

pub(crate) mod audit;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub(crate) mod queries;

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use emend_core::{
    AcceptOrder, Caller, Correction, EventId, FeedbackId, Namespace, RatedTexts, Reporter, RequestId, Scope,
    search::Rater, voter::VoterKey,
};
use emend_proto::common::v1 as pb;
use emend_store::CorruptRow;
use emend_wire::parse;
use jiff::Timestamp;
use prost::Message as _;
use uuid::Uuid;

use crate::{
    audit::{Entry, ListedRating, OutboxEntry},
    ports::Claimed,
    records::{
        erasure::Redaction,
        feedback::{Accepted, Feedback, Retraction, Submission},
        labels::Tag,
        outbox::{DeadLetter, DeliveryState, EncodedOutcome, Refusal},
        ratings::{ContextState, EncodedQuery, RatingState},
    },
};

/// A duration in microseconds, as databases store it.
pub(super) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Names the row in errors about its columns.
struct Row<I> {
    table: &'static str,
    id: I,
}

impl<I: ToString> Row<I> {
    fn bad(&self, column: &'static str) -> impl FnOnce(String) -> CorruptRow {
        let (table, id) = (self.table, self.id.to_string());
        move |reason| CorruptRow {
            table,
            column,
            id,
            reason,
        }
    }

    fn parse<T, E: ToString>(&self, column: &'static str, parsed: Result<T, E>) -> Result<T, CorruptRow> {
        parsed.map_err(|error| self.bad(column)(error.to_string()))
    }

    fn uuid(&self, column: &'static str, bytes: &[u8]) -> Result<Uuid, CorruptRow> {
        self.parse(column, Uuid::from_slice(bytes))
    }

    fn time(&self, column: &'static str, micros: i64) -> Result<Timestamp, CorruptRow> {
        self.parse(column, Timestamp::from_microsecond(micros))
    }
}

/// Parses what the database assigned to an event.
pub(super) fn accepted(table: &'static str, order: i64, at: i64) -> Result<Accepted, CorruptRow> {
    let at = Row { table, id: order }.time("time", at)?;
    Ok(Accepted {
        order: AcceptOrder(order),
        at,
    })
}

/// The feedback id in a column.
pub(super) fn feedback_id(table: &'static str, order: i64, bytes: &[u8]) -> Result<FeedbackId, CorruptRow> {
    Row { table, id: order }
        .uuid("feedback_id", bytes)
        .map(FeedbackId)
}

/// A feedback: ledger, personal parts and status together.
#[derive(Debug, sqlx_macros::FromRow)]
pub(crate) struct FeedbackRow {
    accept_order: i64,
    feedback_id: Vec<u8>,
    namespace: String,
    caller: String,
    request_id: String,
    scope: i64,
    correction: Vec<u8>,
    received_at: i64,
    reporter_id: String,
    session_id: String,
    client: String,
    client_key: String,
    query_id: String,
    reason: String,
    context: String,
    retract_reason: String,
    rated: Vec<u8>,
    delivery_state: i64,
    outcome: Option<Vec<u8>>,
    retracted_at: Option<i64>,
    redacted_at: Option<i64>,
    voter: Option<Vec<u8>>,
    identified: Option<i64>,
    #[sqlx(flatten)]
    rating: RatingColumns,
}

/// What is known of a rating of a search answer; NULLs of other feedback.
#[derive(Debug, sqlx_macros::FromRow)]
pub(crate) struct RatingColumns {
    context_state: Option<i64>,
    query_type: Option<String>,
    embedding_version: Option<String>,
    index_version: Option<String>,
    variant: Option<String>,
    known_at_once: Option<i64>,
    tags: Option<String>,
    processed: Option<i64>,
    replaced_by: Option<i64>,
    query: Option<Vec<u8>>,
}

impl RatingColumns {
    /// The columns that it needs, of `search_ratings AS r`.
    pub(super) const COLUMNS: &str = "r.context_state, r.query_type, r.embedding_version, r.index_version, r.variant, r.known_at_once, r.tags, \
         r.processed, r.replaced_by, r.query";
}

impl FeedbackRow {
    /// The columns that it needs, of `feedback AS f`, `feedback_personal AS p`, `feedback_status AS s` and, where there is one,
    /// `search_ratings AS r`.
    pub(super) const COLUMNS: &str = "f.accept_order, f.feedback_id, f.namespace, f.caller, f.request_id, f.scope, f.correction, f.received_at, \
         p.reporter_id, p.session_id, p.client, p.client_key, p.query_id, p.reason, p.context, p.retract_reason, p.rated, \
         s.delivery_state, s.outcome, s.retracted_at, s.redacted_at, p.voter, p.identified, \
         r.context_state, r.query_type, r.embedding_version, r.index_version, r.variant, r.known_at_once, r.tags, \
         r.processed, r.replaced_by, r.query";
}

impl TryFrom<FeedbackRow> for Feedback {
    type Error = CorruptRow;

    fn try_from(raw: FeedbackRow) -> Result<Self, CorruptRow> {
        let ledger = Row {
            table: "feedback",
            id: raw.accept_order,
        };
        let personal = Row {
            table: "feedback_personal",
            id: raw.accept_order,
        };
        let status = Row {
            table: "feedback_status",
            id: raw.accept_order,
        };
        let request_id = match raw.request_id.as_str() {
            "" => None,
            request_id => Some(ledger.parse("request_id", RequestId::parse(request_id))?),
        };
        let reporter = Reporter::parse(&raw.reporter_id, &raw.session_id, &raw.client, &raw.client_key);
        let context: BTreeMap<String, String> =
            personal.parse("context", serde_json::from_str(&raw.context))?;
        let submission = Submission {
            request_id,
            namespace: ledger.parse("namespace", Namespace::parse(&raw.namespace))?,
            reporter: personal.parse("reporter", reporter)?,
            query_id: raw.query_id,
            reason: raw.reason,
            context,
            scope: parse_scope(&ledger, raw.scope)?,
            correction: parse_correction(&ledger, &raw.correction)?
                .with_texts(parse_texts(&personal, &raw.rated)?),
        };
        let retraction = match raw.retracted_at {
            None => None,
            Some(at) => Some(Retraction {
                at: status.time("retracted_at", at)?,
                reason: raw.retract_reason,
            }),
        };
        let redaction = match (raw.redacted_at, &raw.voter, raw.identified) {
            (None, None, None) => None,
            (Some(at), Some(voter), Some(identified)) => Some(Redaction {
                at: status.time("redacted_at", at)?,
                voter: VoterKey(personal.uuid("voter", voter)?),
                identified: identified != 0,
            }),
            _ => {
                return Err(personal.bad("voter")(
                    "is there exactly if it is redacted".to_owned(),
                ));
            }
        };
        let search_rating = rating_state(raw.accept_order, raw.rating)?;
        Ok(Self {
            search_rating,
            redaction,
            id: FeedbackId(ledger.uuid("feedback_id", &raw.feedback_id)?),
            submission,
            caller: ledger.parse("caller", Caller::parse(&raw.caller))?,
            accepted: Accepted {
                order: AcceptOrder(raw.accept_order),
                at: ledger.time("received_at", raw.received_at)?,
            },
            retraction,
            outcome: raw.outcome.map(|outcome| EncodedOutcome(outcome.into())),
            delivery: DeliveryState::from_number(raw.delivery_state).ok_or_else(|| {
                status.bad("delivery_state")(format!("is not a state: {}", raw.delivery_state))
            })?,
        })
    }
}

/// What is known of a rating; none of other feedback.
pub(super) fn rating_state(order: i64, raw: RatingColumns) -> Result<Option<RatingState>, CorruptRow> {
    let (Some(state), Some(tags), Some(processed)) = (raw.context_state, raw.tags, raw.processed) else {
        return Ok(None);
    };
    let row = Row {
        table: RATINGS,
        id: order,
    };
    let context = ContextState::from_number(state)
        .ok_or_else(|| row.bad("context_state")(format!("is not a state: {state}")))?;
    Ok(Some(RatingState {
        context,
        query_type: raw.query_type.unwrap_or_default(),
        embedding_version: raw.embedding_version.unwrap_or_default(),
        index_version: raw.index_version.unwrap_or_default(),
        variant: raw.variant.unwrap_or_default(),
        is_known_at_once: raw.known_at_once == Some(1),
        tags: self::tags(order, &tags)?,
        processed: processed != 0,
        replaced: raw.replaced_by.is_some(),
        query: raw
            .query
            .filter(|query| !query.is_empty())
            .map(|query| EncodedQuery(query.into())),
    }))
}

const RATINGS: &str = "search_ratings";

/// The tags of a rating as they are stored.
pub(super) fn tags(order: i64, stored: &str) -> Result<Vec<Tag>, CorruptRow> {
    let row = Row {
        table: RATINGS,
        id: order,
    };
    let tags = stored.split_ascii_whitespace();
    tags.map(|tag| row.parse("tags", Tag::parse(tag))).collect()
}

/// The column that [`tags`] reads.
pub(super) fn tags_column(tags: &[Tag]) -> String {
    let mut column = String::new();
    for tag in tags {
        column.push(' ');
        column.push_str(tag.as_str());
    }
    if !column.is_empty() {
        column.push(' ');
    }
    column
}

/// The rater in a column.
pub(super) fn rater(order: i64, bytes: &[u8]) -> Result<Rater, CorruptRow> {
    let row = Row {
        table: RATINGS,
        id: order,
    };
    row.uuid("rater", bytes).map(Rater)
}

fn parse_scope<I: ToString>(row: &Row<I>, number: i64) -> Result<Scope, CorruptRow> {
    let parsed = i32::try_from(number)
        .map_err(|error| error.to_string())
        .and_then(|number| match number {
            0 => Err("is not a scope: 0".to_owned()),
            number => parse::scope(number).map_err(|invalid| invalid.0),
        });
    row.parse("scope", parsed)
}

fn parse_correction<I: ToString>(row: &Row<I>, bytes: &[u8]) -> Result<Correction, CorruptRow> {
    let message = row.parse("correction", pb::Correction::decode(bytes))?;
    row.parse("correction", parse::correction(Some(&message)))
}

fn parse_texts<I: ToString>(row: &Row<I>, bytes: &[u8]) -> Result<RatedTexts, CorruptRow> {
    let message = row.parse("rated", pb::Rating::decode(bytes))?;
    Ok(parse::rated_texts(message))
}

/// A feedback with one of its outbox entries, as an audit reads it.
#[derive(Debug, sqlx_macros::FromRow)]
pub(crate) struct AuditedRow {
    #[sqlx(flatten)]
    feedback: FeedbackRow,
    kind: i64,
    target: String,
    rating: String,
    traceparent: String,
    personal_namespace: String,
    status_namespace: String,
    event_count: i64,
    outcome_of: i64,
    outbox_event_id: Option<Vec<u8>>,
    outbox_number: Option<i64>,
    outbox_state: Option<i64>,
    outbox_feedback_id: Option<Vec<u8>>,
    outbox_namespace: Option<String>,
    outbox_payload: Option<Vec<u8>>,
    rated_namespace: Option<String>,
    rated_value: Option<i64>,
    rated_query: Option<String>,
    rater: Option<Vec<u8>>,
}

impl AuditedRow {
    pub(super) const COLUMNS: &str = FeedbackRow::COLUMNS;

    /// The accept order of its feedback.
    pub(crate) fn accept_order(&self) -> i64 {
        self.feedback.accept_order
    }

    /// Assembles a feedback from all its rows, of which there is at least one.
    pub(crate) fn entry_of(mut rows: Vec<Self>) -> Result<Entry, CorruptRow> {
        let mut outbox = Vec::new();
        for row in &mut rows {
            outbox.extend(row.take_outbox_entry()?);
        }
        let row = rows.swap_remove(0);
        let rater = row
            .rater
            .map(|rater| self::rater(row.feedback.accept_order, &rater));
        let listed = row.rated_namespace.zip(row.rated_value).zip(row.rated_query);
        Ok(Entry {
            listed_rating: listed
                .map(|((namespace, value), query_id)| {
                    Ok(ListedRating {
                        namespace,
                        value,
                        query_id,
                        rater: rater.transpose()?,
                    })
                })
                .transpose()?,
            kind: row.kind,
            rating: [row.target, row.rating],
            traceparent: row.traceparent,
            namespaces: [row.personal_namespace, row.status_namespace],
            events: row.event_count,
            outcome_of: row.outcome_of,
            outbox,
            feedback: Feedback::try_from(row.feedback)?,
        })
    }

    fn take_outbox_entry(&mut self) -> Result<Option<OutboxEntry>, CorruptRow> {
        let (Some(event_id), Some(number), Some(state), Some(feedback_id), Some(namespace), Some(payload)) = (
            self.outbox_event_id.take(),
            self.outbox_number,
            self.outbox_state,
            self.outbox_feedback_id.take(),
            self.outbox_namespace.take(),
            self.outbox_payload.take(),
        ) else {
            return Ok(None);
        };
        let row = Row {
            table: "outbox",
            id: self.feedback.accept_order,
        };
        Ok(Some(OutboxEntry {
            event: EventId(row.uuid("event_id", &event_id)?),
            number,
            state: DeliveryState::from_number(state)
                .ok_or_else(|| row.bad("state")(format!("is not a state: {state}")))?,
            feedback: FeedbackId(row.uuid("feedback_id", &feedback_id)?),
            namespace,
            payload: Bytes::from(payload),
        }))
    }
}

/// A request id that is in use.
#[derive(Debug, sqlx_macros::FromRow)]
pub(super) struct RequestIdRow {
    pub(super) accept_order: i64,
    pub(super) request_hash: Vec<u8>,
    pub(super) feedback_id: Vec<u8>,
}

/// A claimed outbox entry.
#[derive(Debug, sqlx_macros::FromRow)]
pub(super) struct ClaimedRow {
    pub(super) event_id: Vec<u8>,
    pub(super) accept_order: i64,
    pub(super) event_number: i64,
    occurred_at: i64,
    attempts: i64,
    payload: Vec<u8>,
}

impl TryFrom<ClaimedRow> for Claimed {
    type Error = CorruptRow;

    fn try_from(raw: ClaimedRow) -> Result<Self, CorruptRow> {
        let row = Row {
            table: "outbox",
            id: raw.accept_order,
        };
        Ok(Self {
            event_id: EventId(row.uuid("event_id", &raw.event_id)?),
            accepted: Accepted {
                order: AcceptOrder(raw.accept_order),
                at: row.time("occurred_at", raw.occurred_at)?,
            },
            attempts: u32::try_from(raw.attempts).unwrap_or(u32::MAX),
            payload: Bytes::from(raw.payload),
        })
    }
}

/// A dead letter.
#[derive(Debug, sqlx_macros::FromRow)]
pub(super) struct DeadLetterRow {
    event_id: Vec<u8>,
    feedback_id: Vec<u8>,
    namespace: String,
    attempts: i64,
    code: i64,
    error: String,
    dead_at: i64,
}

impl TryFrom<DeadLetterRow> for DeadLetter {
    type Error = CorruptRow;

    fn try_from(raw: DeadLetterRow) -> Result<Self, CorruptRow> {
        let row = Row {
            table: "outbox",
            id: format!("{:02x?}", raw.event_id),
        };
        Ok(Self {
            event_id: EventId(row.uuid("event_id", &raw.event_id)?),
            feedback_id: FeedbackId(row.uuid("feedback_id", &raw.feedback_id)?),
            namespace: row.parse("namespace", Namespace::parse(&raw.namespace))?,
            attempts: u32::try_from(raw.attempts).unwrap_or(u32::MAX),
            refusal: Refusal {
                code: row.parse("code", i32::try_from(raw.code))?,
                error: raw.error,
            },
            dead_at: row.time("dead_at", raw.dead_at)?.as_microsecond(),
        })
    }
}
