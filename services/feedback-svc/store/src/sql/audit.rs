//! The reads of an audit: everything, in one consistent state, row by row.

use emend_core::FeedbackId;
use emend_store::{
    DatabaseUrl, StoreError,
    audit::OpenError,
    postgres,
    sql::{Dialect, Statement, Transaction},
    sqlite,
};
use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};

use super::{POSTGRES_MIGRATIONS, SQLITE_MIGRATIONS, postgres_config};
use crate::{
    records::queries::{StoredInteraction, StoredQuery},
    rows::{
        AuditedRow,
        audit::{InconsistentRow, MinedRow, RatedRow, RepeatedRequestId, Wrong},
        queries::{InteractionRow, QueryRow},
    },
};

/// One read of everything.
#[derive(Debug)]
pub(crate) struct Reading {
    transaction: Transaction,
}

impl Reading {
    /// Opens a database and begins to read its state as of this moment.
    pub(crate) async fn begin(database: &DatabaseUrl) -> Result<Self, OpenError> {
        let mut transaction = match database {
            DatabaseUrl::Sqlite(path) => sqlite::begin_to_read(path, &SQLITE_MIGRATIONS).await?,
            DatabaseUrl::Postgres(url) => {
                let config = postgres_config(url, "emend audit of feedback-svc", 1);
                postgres::begin_to_read(&config, &POSTGRES_MIGRATIONS).await?
            }
        };
        // The snapshot is taken by the first read.
        let first = Statement::new("SELECT accept_order FROM feedback LIMIT 1");
        transaction.optional_value::<i64>(first).await?;
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
           r.known_at_once, r.query_type, r.embedding_version, r.index_version, r.variant, r.query, r.query_key, r.session_id, r.tags
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

/// All it returns is as of the moment it began.
impl Reading {
    /// How many feedbacks there are.
    pub(crate) async fn count(&mut self) -> Result<u64, StoreError> {
        let count: i64 = self
            .transaction
            .value(Statement::new("SELECT count(*) FROM feedback"))
            .await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// How many events await delivery, dead letters excluded.
    pub(crate) async fn waiting(&mut self) -> Result<u64, StoreError> {
        let count: i64 = self
            .transaction
            .value(Statement::new("SELECT count(*) FROM outbox WHERE state = 1"))
            .await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// All feedback that has all its parts, by id: one row for each of its outbox entries, or one row if it has none.
    pub(crate) fn rows(&mut self) -> BoxStream<'_, Result<AuditedRow, StoreError>> {
        self.transaction.stream(Statement::new(select() + ORDER))
    }

    /// The same for these ids.
    pub(crate) fn rows_of(&mut self, ids: &[FeedbackId]) -> BoxStream<'_, Result<AuditedRow, StoreError>> {
        let ids: Vec<Vec<u8>> = ids.iter().map(|id| id.0.as_bytes().to_vec()).collect();
        let reading = async move {
            let mut query = Statement::new(select());
            query.push(" WHERE f.feedback_id IN ").push_list(ids).push(ORDER);
            let rows = self.transaction.rows(query).await;
            stream::iter(match rows {
                Ok(rows) => rows.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            })
        };
        stream::once(reading).flatten().boxed()
    }

    /// Rows that do not belong together; at most 1,000.
    pub(crate) async fn adrift(&mut self) -> Result<Vec<InconsistentRow>, StoreError> {
        let statement = Statement::new(format!("{PARTS} ORDER BY 2, 1 LIMIT 1000"));
        let rows: Vec<(String, i64, i32)> = self.transaction.rows(statement).await?;
        let adrift = rows
            .into_iter()
            .map(|(part, accept_order, missing)| InconsistentRow {
                part,
                accept_order,
                missing: missing != 0,
            });
        Ok(adrift.collect())
    }

    /// The accept orders of ratings of which it is wrong whether a newer one replaces them; at most 1,000.
    pub(crate) async fn wrongly_replaced(&mut self) -> Result<Vec<i64>, StoreError> {
        let statement = Statement::new(format!("{REPLACED} ORDER BY 1 LIMIT 1000"));
        let found = self.transaction.values(statement).await?;
        Ok(found)
    }

    /// Ratings of search answers, by accept order.
    pub(crate) fn ratings(&mut self) -> BoxStream<'_, Result<RatedRow, StoreError>> {
        self.transaction.stream(Statement::new(RATINGS))
    }

    /// Rewordings that were proposed, by accept order.
    pub(crate) fn mined(&mut self) -> BoxStream<'_, Result<MinedRow, StoreError>> {
        self.transaction.stream(Statement::new(MINED))
    }

    /// Whether this rewording was proposed in that namespace.
    pub(crate) async fn was_mined(
        &mut self,
        namespace: &str,
        failed: &str,
        worked: &str,
    ) -> Result<bool, StoreError> {
        let statement = Statement::new(
            "SELECT accept_order FROM mined_rewrites WHERE namespace = $1 AND failed = $2 AND worked = $3",
        )
        .bind(namespace)
        .bind(failed)
        .bind(worked);
        let found: Option<i64> = self.transaction.optional_value(statement).await?;
        Ok(found.is_some())
    }

    /// Recorded queries, by number.
    pub(crate) fn queries(&mut self) -> BoxStream<'_, Result<StoredQuery, StoreError>> {
        let select = format!(
            "SELECT {} FROM queries AS q JOIN query_personal AS p ON p.number = q.number ORDER BY q.number",
            QueryRow::COLUMNS
        );
        self.transaction
            .stream::<QueryRow>(Statement::new(select))
            .map(|row| Ok(StoredQuery::try_from(row?)?))
            .boxed()
    }

    /// Interactions, by number.
    pub(crate) fn interactions(&mut self) -> BoxStream<'_, Result<StoredInteraction, StoreError>> {
        self.transaction
            .stream::<InteractionRow>(Statement::new(INTERACTIONS))
            .map(|row| Ok(StoredInteraction::try_from(row?)?))
            .boxed()
    }

    /// What is wrong with rows of queries and of what is counted of them, and which; at most 1,000. Dated ahead is what is
    /// more than so many microseconds after now.
    pub(crate) async fn wrong_queries(
        &mut self,
        ahead_micros: i64,
    ) -> Result<Vec<(Wrong, String)>, StoreError> {
        let statement =
            Statement::new(format!("{WRONG_QUERIES} ORDER BY 1, 2 LIMIT 1000")).bind(ahead_micros);
        let rows: Vec<(i32, String)> = self.transaction.rows(statement).await?;
        let wrong = rows
            .into_iter()
            .filter_map(|(number, evidence)| Some((Wrong::from_number(number)?, evidence)));
        Ok(wrong.collect())
    }

    /// Request ids that were taken twice within this many microseconds; at most 1,000.
    pub(crate) async fn repeated_request_ids(
        &mut self,
        within_micros: i64,
    ) -> Result<Vec<RepeatedRequestId>, StoreError> {
        let statement = Statement::new(format!("{REPEATED} ORDER BY 1 LIMIT 1000")).bind(within_micros);
        let rows: Vec<(i64, i64)> = self.transaction.rows(statement).await?;
        let repeated = rows.into_iter().map(|(accept_order, earlier)| RepeatedRequestId {
            accept_order,
            earlier,
        });
        Ok(repeated.collect())
    }

    /// The highest accept order of any feedback, and the last one given.
    pub(crate) async fn accept_orders(&mut self) -> Result<(i64, i64), StoreError> {
        let newest: Option<i64> = self
            .transaction
            .value(Statement::new("SELECT max(accept_order) FROM feedback"))
            .await?;
        let last = match self.transaction.dialect() {
            Dialect::Sqlite => "SELECT last FROM accept_order WHERE one = 1",
            Dialect::Postgres => "SELECT last_value FROM accept_order",
        };
        let last: i64 = self.transaction.value(Statement::new(last)).await?;
        Ok((newest.unwrap_or(0), last))
    }
}
