//! The reads of an audit in portable SQL: everything, in one consistent state, row by row. Written once, compiled for
//! each database: `super::Db` says which.

use async_trait::async_trait;
use emend_core::FeedbackId;
use futures::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};
use sqlx::{AssertSqlSafe, QueryBuilder, Transaction};

use super::super::StoreError;
use super::super::rows::AuditedRow;
use super::BEGIN_AUDIT;
use super::Db;
use super::LAST_ACCEPT_ORDER;
use crate::store::{
    ports::audit::{AuditRead, InconsistentRow, MinedRow, RatedRow, RepeatedRequestId, Wrong},
    records::queries::{StoredInteraction, StoredQuery},
    rows::queries::{InteractionRow, QueryRow},
};

/// One read of everything.
#[derive(Debug)]
pub(super) struct Reading {
    transaction: Transaction<'static, Db>,
}

impl Reading {
    /// Begins to read the state as of this moment.
    pub(super) async fn begin(pool: sqlx::Pool<Db>) -> Result<Self, StoreError> {
        let mut transaction = pool.begin_with(BEGIN_AUDIT).await?;
        // The snapshot is taken by the first read.
        sqlx::query("SELECT accept_order FROM feedback LIMIT 1")
            .fetch_optional(&mut *transaction)
            .await?;
        Ok(Self { transaction })
    }
}

/// Feedback with its outbox entries, one row for each entry.
fn select() -> String {
    format!(
        "SELECT {}, f.kind, f.target, f.rating, f.traceparent, p.namespace AS personal_namespace, s.namespace AS status_namespace,
                s.event_count, s.outcome_of, o.event_id AS outbox_event_id, o.event_number AS outbox_number,
                o.state AS outbox_state, o.feedback_id AS outbox_feedback_id, o.namespace AS outbox_namespace,
                o.payload AS outbox_payload, r.namespace AS rated_namespace, r.rating AS rated_value,
                r.query_id AS rated_query, r.rater
         FROM feedback AS f JOIN feedback_personal AS p ON p.accept_order = f.accept_order
           JOIN feedback_status AS s ON s.accept_order = f.accept_order
           LEFT JOIN search_ratings AS r ON r.accept_order = f.accept_order
           LEFT JOIN outbox AS o ON o.accept_order = f.accept_order",
        AuditedRow::COLUMNS
    )
}

const ORDER: &str = " ORDER BY f.feedback_id, o.event_number, o.event_id";

/// Feedback without one of its parts, and parts without their feedback.
const PARTS: &str = "
    SELECT 'feedback_personal' AS part, f.accept_order, 1 AS missing FROM feedback AS f
    WHERE NOT EXISTS (SELECT 1 FROM feedback_personal AS x WHERE x.accept_order = f.accept_order)
    UNION ALL SELECT 'feedback_status', f.accept_order, 1 FROM feedback AS f
    WHERE NOT EXISTS (SELECT 1 FROM feedback_status AS x WHERE x.accept_order = f.accept_order)
    UNION ALL SELECT 'feedback_personal', x.accept_order, 0 FROM feedback_personal AS x
    WHERE NOT EXISTS (SELECT 1 FROM feedback AS f WHERE f.accept_order = x.accept_order)
    UNION ALL SELECT 'feedback_status', x.accept_order, 0 FROM feedback_status AS x
    WHERE NOT EXISTS (SELECT 1 FROM feedback AS f WHERE f.accept_order = x.accept_order)
    UNION ALL SELECT 'search_ratings', x.accept_order, 0 FROM search_ratings AS x
    WHERE NOT EXISTS (SELECT 1 FROM feedback AS f WHERE f.accept_order = x.accept_order)
    UNION ALL SELECT 'outbox', x.accept_order, 0 FROM outbox AS x
    WHERE NOT EXISTS (SELECT 1 FROM feedback AS f WHERE f.accept_order = x.accept_order)
      AND NOT EXISTS (SELECT 1 FROM reporter_erasures AS e WHERE e.accept_order = x.accept_order)
      AND NOT EXISTS (SELECT 1 FROM mined_rewrites AS m WHERE m.accept_order = x.accept_order)
    UNION ALL SELECT 'request_ids', x.accept_order, 0 FROM request_ids AS x
    WHERE NOT EXISTS (SELECT 1 FROM feedback AS f WHERE f.accept_order = x.accept_order
        AND f.feedback_id = x.feedback_id AND f.namespace = x.namespace AND f.caller = x.caller
        AND f.request_id = x.request_id)";

/// Request ids that were taken twice within the time for which they are kept.
const REPEATED: &str = "
    SELECT accept_order, earlier FROM (
        SELECT accept_order, received_at,
               lag(accept_order) OVER w AS earlier, lag(received_at) OVER w AS earlier_at
        FROM feedback WHERE request_id <> ''
        WINDOW w AS (PARTITION BY namespace, caller, request_id ORDER BY accept_order)) AS taken
    WHERE earlier IS NOT NULL AND received_at - earlier_at < $1";

/// Ratings that are replaced by none that could replace them, and of two ratings of one query by one rater that both count
/// the older one.
const REPLACED: &str = "
    SELECT r.accept_order FROM search_ratings AS r
    LEFT JOIN search_ratings AS newer ON newer.accept_order = r.replaced_by
    WHERE r.replaced_by IS NOT NULL
      AND (newer.accept_order IS NULL OR newer.accept_order <= r.accept_order OR newer.namespace <> r.namespace
           OR newer.rater <> r.rater OR newer.query_id <> '' AND r.query_id <> '' AND newer.query_id <> r.query_id)
    UNION ALL SELECT r.accept_order FROM search_ratings AS r
    WHERE r.replaced_by IS NULL AND r.query_id <> '' AND EXISTS (
        SELECT 1 FROM search_ratings AS newer
        WHERE newer.namespace = r.namespace AND newer.query_id = r.query_id AND newer.query_id <> ''
          AND newer.rater = r.rater AND newer.accept_order > r.accept_order)";

const RATINGS: &str = "
    SELECT r.accept_order, f.received_at, s.redacted_at, p.context AS sent, r.rated_at, r.query_id, r.context_state,
           r.known_at_once, r.query_type, r.embedding_version, r.index_version, r.variant, r.query, r.session_id, r.tags
    FROM search_ratings AS r JOIN feedback AS f ON f.accept_order = r.accept_order
      JOIN feedback_personal AS p ON p.accept_order = r.accept_order
      JOIN feedback_status AS s ON s.accept_order = r.accept_order
    ORDER BY r.accept_order";

const MINED: &str = "
    SELECT m.namespace, m.failed, m.worked, m.accept_order, o.payload
    FROM mined_rewrites AS m LEFT JOIN outbox AS o ON o.accept_order = m.accept_order
    ORDER BY m.accept_order";

const INTERACTIONS: &str =
    "SELECT number, query_id, action, object_id, position, acted_at FROM query_interactions ORDER BY number";

/// Rows of queries, and of what is counted of them, with what is wrong by the numbers of `Wrong`: parts that are not together;
/// days on which fewer queries are counted than are still kept, or more of a kind than all; terms that were in more queries than there were;
/// interactions that are marked as clicks and are none, as `emend_core::search::is_click` says, or the other way round; what is
/// dated ahead.
const WRONG_QUERIES: &str = "
    WITH counted AS (
        SELECT namespace, sum(queries) AS queries
        FROM (SELECT namespace, queries FROM query_days UNION ALL SELECT namespace, queries FROM query_counts_pruned) AS c
        GROUP BY namespace)
    SELECT 1 AS wrong, 'query ' || q.number AS evidence FROM queries AS q
    WHERE NOT EXISTS (SELECT 1 FROM query_personal AS p WHERE p.number = q.number AND p.namespace = q.namespace)
    UNION ALL SELECT 1, 'query ' || p.number FROM query_personal AS p
    WHERE NOT EXISTS (SELECT 1 FROM queries AS q WHERE q.number = p.number)
    UNION ALL SELECT 2, 'namespace ' || d.namespace || ', day ' || d.day FROM query_days AS d
    WHERE d.queries < 1 OR d.zero_hits < 0 OR d.unknown_hits < 0 OR d.zero_hits + d.unknown_hits > d.queries
    UNION ALL SELECT 2, 'namespace ' || k.namespace FROM (
        SELECT namespace, count(*) AS queries FROM queries GROUP BY namespace) AS k
    LEFT JOIN counted AS d ON d.namespace = k.namespace WHERE k.queries > COALESCE(d.queries, 0)
    UNION ALL SELECT 2, 'namespace ' || namespace FROM query_counts_pruned
    WHERE queries < 0 OR words < 0 OR undercount < 0
    UNION ALL SELECT 3, 'namespace ' || t.namespace FROM query_terms AS t
    LEFT JOIN counted AS d ON d.namespace = t.namespace WHERE t.queries < 1 OR t.queries > COALESCE(d.queries, 0) GROUP BY t.namespace
    UNION ALL SELECT 5, 'interaction ' || number FROM query_interactions
    WHERE is_click <> CASE WHEN replace(action, 'click', '') <> action THEN 1 ELSE 0 END
    UNION ALL SELECT 4, 'rating with accept order ' || accept_order FROM search_ratings
    WHERE rated_at > (SELECT now FROM database_clock) + $1
    UNION ALL SELECT 4, 'query ' || number FROM queries WHERE recorded_at > (SELECT now FROM database_clock) + $1
    UNION ALL SELECT 4, 'interaction ' || number FROM query_interactions
    WHERE recorded_at > (SELECT now FROM database_clock) + $1";

#[async_trait]
impl AuditRead for Reading {
    async fn count(&mut self) -> Result<u64, StoreError> {
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM feedback")
            .fetch_one(&mut *self.transaction)
            .await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    async fn waiting(&mut self) -> Result<u64, StoreError> {
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM outbox WHERE state = 1")
            .fetch_one(&mut *self.transaction)
            .await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    fn rows(&mut self) -> BoxStream<'_, Result<AuditedRow, StoreError>> {
        sqlx::query_as(AssertSqlSafe(select() + ORDER))
            .fetch(&mut *self.transaction)
            .map_err(StoreError::from)
            .boxed()
    }

    fn rows_of(&mut self, ids: &[FeedbackId]) -> BoxStream<'_, Result<AuditedRow, StoreError>> {
        let ids: Vec<Vec<u8>> = ids.iter().map(|id| id.0.as_bytes().to_vec()).collect();
        let reading = async move {
            let mut query = QueryBuilder::<Db>::new(select());
            query.push(" WHERE f.feedback_id IN (");
            let mut list = query.separated(", ");
            for id in ids {
                list.push_bind(id);
            }
            query.push(")").push(ORDER);
            let rows = query.build_query_as().fetch_all(&mut *self.transaction).await;
            stream::iter(match rows {
                Ok(rows) => rows.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(StoreError::from(error))],
            })
        };
        stream::once(reading).flatten().boxed()
    }

    async fn adrift(&mut self) -> Result<Vec<InconsistentRow>, StoreError> {
        let rows: Vec<(String, i64, i32)> =
            sqlx::query_as(AssertSqlSafe(format!("{PARTS} ORDER BY 2, 1 LIMIT 1000")))
                .fetch_all(&mut *self.transaction)
                .await?;
        let adrift = rows
            .into_iter()
            .map(|(part, accept_order, missing)| InconsistentRow {
                part,
                accept_order,
                missing: missing != 0,
            });
        Ok(adrift.collect())
    }

    async fn wrongly_replaced(&mut self) -> Result<Vec<i64>, StoreError> {
        let found = sqlx::query_scalar(AssertSqlSafe(format!("{REPLACED} ORDER BY 1 LIMIT 1000")))
            .fetch_all(&mut *self.transaction)
            .await?;
        Ok(found)
    }

    fn ratings(&mut self) -> BoxStream<'_, Result<RatedRow, StoreError>> {
        sqlx::query_as(RATINGS)
            .fetch(&mut *self.transaction)
            .map_err(StoreError::from)
            .boxed()
    }

    fn mined(&mut self) -> BoxStream<'_, Result<MinedRow, StoreError>> {
        sqlx::query_as(MINED)
            .fetch(&mut *self.transaction)
            .map_err(StoreError::from)
            .boxed()
    }

    async fn was_mined(&mut self, namespace: &str, failed: &str, worked: &str) -> Result<bool, StoreError> {
        let found: Option<i64> = sqlx::query_scalar(
            "SELECT accept_order FROM mined_rewrites WHERE namespace = $1 AND failed = $2 AND worked = $3",
        )
        .bind(namespace)
        .bind(failed)
        .bind(worked)
        .fetch_optional(&mut *self.transaction)
        .await?;
        Ok(found.is_some())
    }

    fn queries(&mut self) -> BoxStream<'_, Result<StoredQuery, StoreError>> {
        let select = format!(
            "SELECT {} FROM queries AS q JOIN query_personal AS p ON p.number = q.number ORDER BY q.number",
            QueryRow::COLUMNS
        );
        sqlx::query_as::<Db, QueryRow>(AssertSqlSafe(select))
            .fetch(&mut *self.transaction)
            .map(|row| Ok(StoredQuery::try_from(row?)?))
            .boxed()
    }

    fn interactions(&mut self) -> BoxStream<'_, Result<StoredInteraction, StoreError>> {
        sqlx::query_as::<Db, InteractionRow>(INTERACTIONS)
            .fetch(&mut *self.transaction)
            .map(|row| Ok(StoredInteraction::try_from(row?)?))
            .boxed()
    }

    async fn wrong_queries(&mut self, ahead_micros: i64) -> Result<Vec<(Wrong, String)>, StoreError> {
        let rows: Vec<(i32, String)> =
            sqlx::query_as(AssertSqlSafe(format!("{WRONG_QUERIES} ORDER BY 1, 2 LIMIT 1000")))
                .bind(ahead_micros)
                .fetch_all(&mut *self.transaction)
                .await?;
        let wrong = rows
            .into_iter()
            .filter_map(|(number, evidence)| Some((Wrong::from_number(number)?, evidence)));
        Ok(wrong.collect())
    }

    async fn repeated_request_ids(
        &mut self,
        within_micros: i64,
    ) -> Result<Vec<RepeatedRequestId>, StoreError> {
        let rows: Vec<(i64, i64)> =
            sqlx::query_as(AssertSqlSafe(format!("{REPEATED} ORDER BY 1 LIMIT 1000")))
                .bind(within_micros)
                .fetch_all(&mut *self.transaction)
                .await?;
        let repeated = rows.into_iter().map(|(accept_order, earlier)| RepeatedRequestId {
            accept_order,
            earlier,
        });
        Ok(repeated.collect())
    }

    async fn accept_orders(&mut self) -> Result<(i64, i64), StoreError> {
        let newest: Option<i64> = sqlx::query_scalar("SELECT max(accept_order) FROM feedback")
            .fetch_one(&mut *self.transaction)
            .await?;
        let last: i64 = sqlx::query_scalar(LAST_ACCEPT_ORDER)
            .fetch_one(&mut *self.transaction)
            .await?;
        Ok((newest.unwrap_or(0), last))
    }
}
