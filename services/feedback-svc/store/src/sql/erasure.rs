//! SQL of erasure.

use async_trait::async_trait;
use emend_core::{AcceptOrder, Caller, FeedbackId, Namespace, ReporterId, voter::VoterKey};
use emend_store::{
    CorruptRow, StoreError, retry_conflicts,
    sql::{Conn, Statement},
};
use prost::Message as _;

use super::{SqlStore, contexts, erased, ledger, next_accept_order};
use crate::{
    ports::{ErasureStore, Outdated, Redacted},
    records::{
        erasure::{Erasure, NewErasure, NewRedaction, Progress},
        event::{self, NewEvent},
        feedback::Feedback,
        outbox::DeliveryState,
    },
    rows,
};

type Result<T> = std::result::Result<T, StoreError>;

/// The statement that stores an event that is due at once.
pub(super) fn insert_event(
    event: &NewEvent,
    (order, feedback_id): (i64, FeedbackId),
    namespace: &Namespace,
    number: i64,
    at: i64,
) -> Statement {
    Statement::new(
        "INSERT INTO outbox (event_id, accept_order, feedback_id, namespace, event_number, occurred_at, payload, state,
                             attempts, due_at, lease_token, code, error)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $6, NULL, 0, '')",
    )
    .bind(event.id.0.as_bytes().as_slice())
    .bind(order)
    .bind(feedback_id.0.as_bytes().as_slice())
    .bind(namespace.as_str())
    .bind(number)
    .bind(at)
    .bind(&*event.payload)
    .bind(DeliveryState::Pending.number())
}

/// Redactions have this number, which no other event of a feedback has: they change nothing that the feedback shows of
/// its evaluation.
pub(super) const REDACTION: i64 = 0;

/// Redacts one feedback. Must run in a transaction.
async fn redact(connection: &mut Conn, redaction: &NewRedaction) -> Result<Redacted> {
    let NewRedaction {
        namespace,
        id,
        caller,
        event,
    } = redaction;
    let Some(row) = ledger::feedback(connection, namespace, *id).await? else {
        return Ok(Redacted::NotFound);
    };
    let feedback = Feedback::try_from(row)?;
    let statement = Statement::new(
        "UPDATE feedback_status SET redacted_at = (SELECT now FROM database_clock), redacted_by = $2
         WHERE accept_order = $1 AND redacted_at IS NULL
         RETURNING accept_order, redacted_at",
    )
    .bind(feedback.accepted.order.0)
    .bind(caller.as_str());
    let noted: Option<(i64, i64)> = connection.optional(statement).await?;
    let Some((order, at)) = noted else {
        return Ok(Redacted::Before);
    };
    let voter = feedback.submission.reporter.voter(&feedback.caller);
    let key = voter.key(namespace);
    let session = feedback.submission.reporter.session.as_deref();
    // Locked in this order by all: ratings, their queries, the personal parts of feedback.
    if !feedback.submission.is_delivered() {
        contexts::redact(connection, order).await?;
    }
    erased::erase(
        connection,
        namespace,
        &feedback.submission.query_id,
        session.unwrap_or_default(),
    )
    .await?;
    let statement = Statement::new(
        "UPDATE feedback_personal SET reporter_id = '', session_id = '', client = '', client_key = '', query_id = '',
                reason = '', context = '{}', retract_reason = '', rated = $4, voter = $2, identified = $3
         WHERE accept_order = $1",
    )
    .bind(order)
    .bind(key.0.as_bytes().as_slice())
    .bind(i64::from(voter.is_identified()))
    .bind(&[] as &[u8]);
    connection.execute(statement).await?;
    // The hash would confirm a guess of what it was made of. A repetition of the request is refused from here on.
    let statement = Statement::new("UPDATE request_ids SET request_hash = $2 WHERE accept_order = $1")
        .bind(order)
        .bind([0_u8; 16].as_slice());
    connection.execute(statement).await?;
    if !feedback.submission.is_delivered() {
        return Ok(Redacted::Undelivered);
    }
    strip_events(connection, order, key, voter.is_identified()).await?;
    let statement = insert_event(event, (order, *id), namespace, REDACTION, at);
    connection.execute(statement).await?;
    Ok(Redacted::Now)
}

/// Takes the personal parts out of the events of a feedback that are not delivered, and their leases back.
async fn strip_events(connection: &mut Conn, order: i64, voter: VoterKey, identified: bool) -> Result<()> {
    // Each half is found by an index of its own.
    let statement = Statement::new(
        "SELECT event_id, payload FROM outbox WHERE state = 1 AND accept_order = $1
         UNION ALL SELECT event_id, payload FROM outbox WHERE state = 3 AND accept_order = $1",
    )
    .bind(order);
    let waiting: Vec<(Vec<u8>, Vec<u8>)> = connection.rows(statement).await?;
    for (event_id, payload) in waiting {
        let message = emend_proto::learning::v1::Event::decode(payload.as_slice())
            .map_err(|error| CorruptRow::new("outbox", "payload", order, error))?;
        let stripped = event::without_personal_parts(message, voter, identified);
        // Replicas hold what they lease in memory, as it was: without its lease it is not sent, but claimed again. A refusal
        // may quote what was said.
        let statement = Statement::new(
            "UPDATE outbox SET payload = $2, lease_token = NULL, due_at = (SELECT now FROM database_clock), error = ''
             WHERE event_id = $1",
        )
        .bind(event_id)
        .bind(stripped.encode_to_vec());
        connection.execute(statement).await?;
    }
    Ok(())
}

impl SqlStore {
    async fn redact_once(&self, redactions: &[NewRedaction]) -> Result<Vec<Redacted>> {
        let mut transaction = self.pools.begin_write().await?;
        let namespaces = redactions.iter().map(|redaction| &redaction.namespace);
        erased::erase_alone(&mut transaction, namespaces).await?;
        let mut redacted = Vec::with_capacity(redactions.len());
        for redaction in redactions {
            redacted.push(redact(&mut transaction, redaction).await?);
        }
        transaction.commit().await?;
        Ok(redacted)
    }

    async fn begin_once(&self, erasure: &NewErasure) -> Result<()> {
        let mut transaction = self.pools.begin_write().await?;
        let voter = erasure.voter.0.as_bytes().as_slice();
        let statement = Statement::new(
            "SELECT e.accept_order FROM reporter_erasures AS e JOIN outbox AS o ON o.event_id = e.event_id
             WHERE e.voter = $1 LIMIT 1",
        )
        .bind(voter);
        let waits: Option<i64> = transaction.optional_value(statement).await?;
        if waits.is_some() {
            return Ok(());
        }
        let (order, now): (i64, i64) = next_accept_order(&mut transaction).await?;
        let event = &erasure.event;
        let statement = Statement::new(
            "INSERT INTO reporter_erasures (accept_order, event_id, namespace, reporter_id, voter, caller, begun_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(order)
        .bind(event.id.0.as_bytes().as_slice())
        .bind(erasure.namespace.as_str())
        .bind(erasure.reporter.as_str())
        .bind(voter)
        .bind(erasure.caller.as_str())
        .bind(now);
        transaction.execute(statement).await?;
        let statement = insert_event(event, (order, FeedbackId::none()), &erasure.namespace, 1, now);
        transaction.execute(statement).await?;
        transaction.commit().await?;
        Ok(())
    }
}

#[async_trait]
impl ErasureStore for SqlStore {
    async fn redact(&self, redactions: &[NewRedaction]) -> Result<Vec<Redacted>> {
        if redactions.is_empty() {
            return Ok(Vec::new());
        }
        retry_conflicts(&self.entropy, || self.redact_once(redactions)).await
    }

    async fn begin_erasure(&self, erasure: &NewErasure) -> Result<()> {
        retry_conflicts(&self.entropy, || self.begin_once(erasure)).await
    }

    async fn unfinished(&self, limit: u32) -> Result<Vec<Erasure>> {
        let statement = Statement::new(
            "SELECT accept_order, namespace, reporter_id, caller FROM reporter_erasures
             WHERE reporter_id <> '' ORDER BY accept_order LIMIT $1",
        )
        .bind(i64::from(limit));
        let found: Vec<(i64, String, String, String)> = self.pools.reader().await?.rows(statement).await?;
        let parsed = found.into_iter().map(|(order, namespace, reporter, caller)| {
            let bad = |column| {
                move |invalid: emend_core::Invalid| {
                    CorruptRow::new("reporter_erasures", column, order, invalid.0)
                }
            };
            Ok(Erasure {
                order: AcceptOrder(order),
                namespace: Namespace::parse(&namespace).map_err(bad("namespace"))?,
                reporter: ReporterId::parse(&reporter).map_err(bad("reporter_id"))?,
                caller: Caller::parse(&caller).map_err(bad("caller"))?,
            })
        });
        parsed.collect()
    }

    async fn finish_erasure(&self, order: AcceptOrder) -> Result<()> {
        let statement =
            Statement::new("UPDATE reporter_erasures SET reporter_id = '' WHERE accept_order = $1")
                .bind(order.0);
        self.pools.writer().await?.execute(statement).await?;
        Ok(())
    }

    async fn feedback_of(
        &self,
        namespace: &Namespace,
        reporter: &ReporterId,
        limit: u32,
    ) -> Result<Vec<FeedbackId>> {
        let statement = Statement::new(
            "SELECT f.accept_order, f.feedback_id FROM feedback_personal AS p
               JOIN feedback AS f ON f.accept_order = p.accept_order
             WHERE p.namespace = $1 AND p.reporter_id <> '' AND p.reporter_id = $2 ORDER BY p.accept_order LIMIT $3",
        )
        .bind(namespace.as_str())
        .bind(reporter.as_str())
        .bind(i64::from(limit));
        let found: Vec<(i64, Vec<u8>)> = self.pools.reader().await?.rows(statement).await?;
        let ids = found
            .into_iter()
            .map(|(order, id)| rows::feedback_id("feedback", order, &id));
        Ok(ids.collect::<std::result::Result<_, _>>()?)
    }

    async fn progress(
        &self,
        namespace: &Namespace,
        reporter: &ReporterId,
        voter: VoterKey,
    ) -> Result<Progress> {
        let statement = Statement::new(
            "SELECT (SELECT count(*) FROM feedback_personal
                     WHERE namespace = $1 AND reporter_id <> '' AND reporter_id = $2),
                    (SELECT count(*) FROM feedback_personal AS p JOIN outbox AS o ON o.accept_order = p.accept_order
                     WHERE p.voter IS NOT NULL AND p.voter = $3 AND o.event_number = $4)
                    + (SELECT count(*) FROM reporter_erasures AS e JOIN outbox AS o ON o.event_id = e.event_id
                       WHERE e.voter = $3)",
        )
        .bind(namespace.as_str())
        .bind(reporter.as_str())
        .bind(voter.0.as_bytes().as_slice())
        .bind(REDACTION);
        let (remaining, undelivered): (i64, i64) = self.lister(true).await?.row(statement).await?;
        Ok(Progress {
            remaining: remaining.unsigned_abs(),
            undelivered: undelivered.unsigned_abs(),
        })
    }

    async fn outdated(&self, limit: u32) -> Result<Vec<Outdated>> {
        // Accept orders are microseconds by the database's clock or later.
        let statement = Statement::new(
            "SELECT s.namespace, COALESCE(p.accept_order, 0), (SELECT now FROM database_clock) - s.personal_retention
             FROM settings AS s LEFT JOIN retention_progress AS p ON p.namespace = s.namespace
             WHERE s.personal_retention IS NOT NULL
               AND s.version = (SELECT max(n.version) FROM settings AS n WHERE n.namespace = s.namespace)",
        );
        let bounds: Vec<(String, i64, i64)> = self.pools.reader().await?.rows(statement).await?;
        let mut outdated = Vec::new();
        for (namespace, after, before) in bounds {
            let name = Namespace::parse(&namespace)
                .map_err(|invalid| CorruptRow::new("settings", "namespace", &namespace, invalid.0))?;
            let statement = Statement::new(
                "SELECT accept_order, feedback_id FROM feedback
                 WHERE namespace = $1 AND accept_order > $2 AND accept_order < $3 ORDER BY accept_order LIMIT $4",
            )
            .bind(namespace.as_str())
            .bind(after)
            .bind(before)
            .bind(i64::from(limit));
            let found: Vec<(i64, Vec<u8>)> = self.pools.reader().await?.rows(statement).await?;
            for (order, id) in found {
                outdated.push(Outdated {
                    namespace: name.clone(),
                    id: rows::feedback_id("feedback", order, &id)?,
                    order: AcceptOrder(order),
                });
            }
        }
        Ok(outdated)
    }

    async fn redacted_until(&self, namespace: &Namespace, order: AcceptOrder) -> Result<()> {
        let statement = Statement::new(
            "INSERT INTO retention_progress (namespace, accept_order) VALUES ($1, $2)
             ON CONFLICT (namespace) DO UPDATE SET accept_order = excluded.accept_order
             WHERE retention_progress.accept_order < excluded.accept_order",
        )
        .bind(namespace.as_str())
        .bind(order.0);
        self.pools.writer().await?.execute(statement).await?;
        Ok(())
    }

    async fn events_wait(&self) -> Result<bool> {
        let statement = Statement::new(
            "SELECT e.accept_order FROM reporter_erasures AS e JOIN outbox AS o ON o.event_id = e.event_id LIMIT 1",
        );
        let found: Option<i64> = self.pools.reader().await?.optional_value(statement).await?;
        Ok(found.is_some())
    }

    async fn clean_files(&self) -> Result<bool> {
        self.pools.clean().await
    }
}
