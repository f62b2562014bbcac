//! The reads of an audit in SQL: whole tables in one consistent state, by ranges of contests or row by row.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{
    ContestId, FeedbackId, Kind, Origin, OutputTally, Policy, Rated, RatingClass, WindowPolicy,
    kinds::PRODUCTION, outputs::SuggestionType, ratings::voices,
};
use emend_store::StoreError;
use emend_store::sql::{Row, Statement, Transaction};
use emend_stream::log::Head;
use futures::{StreamExt as _, TryStreamExt as _, stream::BoxStream};

use crate::{
    audit::stored::{
        AuditRead, AuditedCandidate, AuditedChange, AuditedContest, AuditedResource, AuditedTransition,
        BallotRow, EntryRow, Extent, MinedRow, Range, SentRulingRow, Span, WrongDay, WrongProposal,
        WrongRating, WrongWaiting, queue_sql,
    },
    codes,
    database::bytes,
    log::rows::HeadRow,
    outputs::{
        OfClass, OfOutput,
        rows::{OutputRow, RatingRow},
        sql as ratings_sql,
    },
    policies::{PolicyKey, rows::PolicyRow},
};

type Result<T> = std::result::Result<T, StoreError>;

/// One read of everything.
pub(crate) struct Reading {
    pub(crate) transaction: Transaction,
}

/// Everything that came from feedback-svc. The inbox has no index by feedback: the database sorts it once.
const ENTRIES: &str = "
    SELECT k.feedback_id, i.event_id, i.outcome, b.contest, c.contest_id, b.candidate_id, b.accept_order, b.voter, b.identified,
           b.caller, b.received_at, b.retracted, b.system_choice, b.traceparent, m.event_id AS retraction,
           r.event_id AS redaction, CASE WHEN d.feedback_id IS NULL THEN 0 ELSE 1 END AS details,
           g.contest_id AS rating_contest, q.accept_order AS rating_order, q.voter AS rating_voter, q.class AS rating_class,
           q.excluded AS rating_excluded
    FROM (SELECT feedback_id FROM inbox WHERE feedback_id <> $1 UNION SELECT feedback_id FROM ballots
          UNION SELECT feedback_id FROM retraction_marks UNION SELECT feedback_id FROM redaction_marks
          UNION SELECT feedback_id FROM ballot_details UNION SELECT feedback_id FROM ratings) AS k
      LEFT JOIN inbox AS i ON i.feedback_id = k.feedback_id
      LEFT JOIN ballots AS b ON b.feedback_id = k.feedback_id
      LEFT JOIN contests AS c ON c.contest = b.contest
      LEFT JOIN retraction_marks AS m ON m.feedback_id = k.feedback_id
      LEFT JOIN redaction_marks AS r ON r.feedback_id = k.feedback_id
      LEFT JOIN ballot_details AS d ON d.feedback_id = k.feedback_id
      LEFT JOIN ratings AS q ON q.feedback_id = k.feedback_id
      LEFT JOIN contests AS g ON g.contest = q.contest
    ORDER BY k.feedback_id, i.event_id";

/// Ratings of which is wrong: whether they are live (1), whether there are texts (2), their contest (3); and outputs of which is
/// wrong: what they come to (4), their contest (5).
const WRONG_RATINGS: &str = "
    SELECT feedback_id AS id, 1 AS what FROM ratings AS r
    WHERE live <> CASE WHEN excluded = 0 AND NOT EXISTS (
        SELECT 1 FROM ratings AS n WHERE n.contest = r.contest AND n.voter = r.voter AND n.rated = r.rated
          AND n.excluded = 0 AND (n.accept_order, n.feedback_id) > (r.accept_order, r.feedback_id)) THEN 1 ELSE 0 END
    UNION ALL SELECT r.feedback_id, 2 FROM ratings AS r LEFT JOIN rating_texts AS t ON t.feedback_id = r.feedback_id
    WHERE r.excluded <> CASE WHEN t.feedback_id IS NULL THEN 1 ELSE 0 END
    UNION ALL SELECT t.feedback_id, 2 FROM rating_texts AS t
    WHERE NOT EXISTS (SELECT 1 FROM ratings AS r WHERE r.feedback_id = t.feedback_id)
    UNION ALL SELECT r.feedback_id, 3 FROM ratings AS r
    WHERE NOT EXISTS (SELECT 1 FROM contests AS c WHERE c.contest = r.contest)
    UNION ALL SELECT coalesce(o.rated, a.rated), 4 FROM rated_outputs AS o
    FULL JOIN (
        SELECT contest, rated, sum(CASE WHEN class = 1 THEN 1 ELSE 0 END) AS good,
               sum(CASE WHEN class = 3 THEN 1 ELSE 0 END) AS bad
        FROM ratings WHERE live = 1 AND class <> 2 GROUP BY contest, rated
    ) AS a ON a.contest = o.contest AND a.rated = o.rated
    WHERE coalesce(o.good, 0) <> coalesce(a.good, 0) OR coalesce(o.bad, 0) <> coalesce(a.bad, 0)
    UNION ALL SELECT o.rated, 4 FROM rated_outputs AS o
    LEFT JOIN ratings AS r ON r.feedback_id = o.feedback_id AND r.accept_order = o.accept_order
      AND r.contest = o.contest AND r.rated = o.rated AND r.class = o.class AND r.live = 1
    WHERE o.class <> CASE WHEN o.good > o.bad THEN 1 WHEN o.bad > o.good THEN 3 ELSE 0 END
      OR (o.class = 0 AND (o.accept_order IS NOT NULL OR o.feedback_id IS NOT NULL))
      OR (o.class <> 0 AND r.feedback_id IS NULL)
      OR EXISTS (SELECT 1 FROM ratings AS n WHERE n.live = 1 AND n.contest = o.contest AND n.rated = o.rated
                   AND n.class = o.class AND (n.accept_order, n.feedback_id) > (o.accept_order, o.feedback_id))
    UNION ALL SELECT o.rated, 5 FROM rated_outputs AS o
    WHERE NOT EXISTS (SELECT 1 FROM contests AS c WHERE c.contest = o.contest)
    LIMIT 1000";

/// Proposals with a number above the last one given by the contest that counts it (1), and versions of a prompt that say
/// something else under another label (2).
const WRONG_NUMBERS: &str = "
    SELECT k.candidate_id AS id, 1 AS what FROM candidates AS k JOIN contests AS c ON c.contest = k.contest
    LEFT JOIN contests AS n ON n.key_hash = c.key_hash AND n.key = c.key AND n.namespace = c.namespace AND n.kind = c.kind
      AND n.user_id = c.user_id AND n.qualifier = CASE WHEN c.kind = $1 THEN $2 ELSE c.qualifier END
    WHERE k.proposal_version > 0 AND (n.last_version IS NULL OR k.proposal_version > n.last_version)
    UNION ALL SELECT k.candidate_id, 2 FROM candidates AS k JOIN contests AS c ON c.contest = k.contest
    JOIN contests AS n ON n.key_hash = c.key_hash AND n.key = c.key AND n.namespace = c.namespace AND n.kind = c.kind
      AND n.contest < c.contest
    JOIN candidates AS o ON o.contest = n.contest AND o.proposal_version = k.proposal_version
    WHERE k.kind = $1 AND o.value <> k.value";

/// Improvements that are not the candidate that they name (3), were made of another number of ratings than they say (4), or
/// are missing: of a candidate (5), or of ratings (6).
const WRONG_IMPROVEMENTS: &str = "
    SELECT i.improvement_id, 3 FROM improvements AS i WHERE i.candidate_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM candidates AS k WHERE k.candidate_id = i.candidate_id AND k.contest = i.contest
          AND k.proposal_base = i.base_version AND k.origin = $3)
    UNION ALL SELECT i.improvement_id, 4 FROM improvements AS i
    WHERE i.good_count + i.neutral_count + i.bad_count <>
        (SELECT count(*) FROM improvement_ratings AS r WHERE r.improvement = i.improvement)
    UNION ALL SELECT k.candidate_id, 5 FROM candidates AS k WHERE k.kind = $1 AND k.origin = $3
      AND NOT EXISTS (SELECT 1 FROM improvements AS i WHERE i.candidate_id = k.candidate_id)
    UNION ALL SELECT r.feedback_id, 6 FROM improvement_ratings AS r
    WHERE NOT EXISTS (SELECT 1 FROM improvements AS i WHERE i.improvement = r.improvement)";

/// The keys of candidates that are suggestions and should not be, or should be and are not, or are of another type than their
/// field has.
const WRONG_SUGGESTIONS: &str = "
    SELECT s.candidate FROM suggestions AS s WHERE NOT EXISTS (
        SELECT 1 FROM candidates AS k JOIN contests AS c ON c.contest = k.contest
        WHERE k.candidate = s.candidate AND c.kind = $1 AND k.origin = $2
          AND c.key = CASE s.type {FIELD} ELSE '' END)
    UNION ALL SELECT k.candidate FROM candidates AS k WHERE k.kind = $1 AND k.origin = $2
      AND NOT EXISTS (SELECT 1 FROM suggestions AS s WHERE s.candidate = k.candidate)
    LIMIT 1000";

impl Reading {
    /// Begins to read the state as of this moment.
    pub(crate) async fn begin(mut transaction: Transaction) -> Result<Self> {
        // The snapshot is taken by the first read.
        let first = Statement::new("SELECT revision FROM head");
        transaction.optional_value::<i64>(first).await?;
        Ok(Self { transaction })
    }

    pub(crate) async fn count(&mut self, table: &'static str) -> Result<u64> {
        let count: i64 = self
            .transaction
            .value(Statement::new(format!("SELECT count(*) FROM {table}")))
            .await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    async fn counts(&mut self, sql: &'static str) -> Result<HashMap<(String, i32), i64>> {
        let rows: Vec<(String, i32, i64)> = self.transaction.rows(Statement::new(sql)).await?;
        let counts = rows.into_iter();
        Ok(counts
            .map(|(namespace, kind, count)| ((namespace, kind), count))
            .collect())
    }

    pub(crate) async fn all<R>(&mut self, query: Statement) -> Result<Vec<R>>
    where
        R: Row,
    {
        self.transaction.rows(query).await
    }

    /// Streams the rows of a range. `sql` has `{}COLUMN;` where the condition that the column is in the range belongs.
    fn streamed<'a, R>(&'a mut self, sql: &'static str, range: &Range) -> BoxStream<'a, Result<R>>
    where
        R: Row + 'a,
    {
        let (head, tail) = sql.split_once("{}").unwrap_or((sql, ""));
        let (column, order) = tail.split_once(';').unwrap_or((tail, ""));
        let through = if range.through.is_some() {
            format!(" AND {column} <= $2")
        } else {
            String::new()
        };
        let sql = format!("{head} {column} > $1{through} {order}");
        let mut query = Statement::new(sql).bind(range.after);
        if let Some(through) = &range.through {
            query = query.bind(*through);
        }
        self.transaction.stream(query)
    }
}

/// Appends the condition that a row's contest is in the range.
fn within(sql: &'static str, column: &'static str, range: &Range) -> Statement {
    let mut query = Statement::new(sql);
    query.push(column).push(" > ").push_bind(range.after);
    if let Some(through) = &range.through {
        query.push(" AND ").push(column).push(" <= ").push_bind(*through);
    }
    query
}

#[async_trait]
impl AuditRead for Reading {
    async fn extent(&mut self) -> Result<Extent> {
        Ok(Extent {
            contests: self.count("contests").await?,
            events: self.count("inbox").await?,
        })
    }

    async fn to_reevaluate(&mut self) -> Result<u64> {
        let count: i64 = self.transaction.value(Statement::new("SELECT count(*) FROM contests AS c WHERE c.pending = 1 AND c.policy_version < (
                 SELECT max(p.version) FROM policies AS p WHERE p.namespace = c.namespace AND p.kind = c.kind)"))
        .await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    async fn heads(&mut self) -> Result<Vec<Result<Head>>> {
        let heads = "SELECT installation_id, epoch, revision AS head, tombstone_horizon FROM head";
        let rows: Vec<HeadRow> = self.transaction.rows(Statement::new(heads)).await?;
        Ok(rows.iter().map(HeadRow::parse).collect())
    }

    async fn policies(&mut self) -> Result<Vec<Result<(PolicyKey, Policy)>>> {
        let rows: Vec<PolicyRow> = self.transaction.rows(Statement::new("SELECT namespace, kind, version, risk, threshold, counting, half_life, max_derived_voters, \
             max_resources, max_value_bytes, max_counted_feedback, entitled, window_good, window_bad, \
             window_max_text_chars, window_language, review_min_bad, review_automatic, reviewers_needed, frozen, updated_at FROM policies"))
        .await?;
        let policies = rows.iter().map(|row| {
            let (key, stored) = row.parse()?;
            Ok((key, stored.policy))
        });
        Ok(policies.collect())
    }

    async fn resource_counts(&mut self) -> Result<[HashMap<(String, i32), i64>; 2]> {
        let counted = self
            .counts("SELECT namespace, kind, count FROM resource_counts WHERE count <> 0")
            .await?;
        let present = self
            .counts(
                "SELECT c.namespace, c.kind, count(*) FROM resources AS r \
                 JOIN contests AS c ON c.contest = r.contest GROUP BY c.namespace, c.kind",
            )
            .await?;
        Ok([counted, present])
    }

    async fn page_end(&mut self, after: i64, size: u32) -> Result<Option<i64>> {
        let end = self
            .transaction
            .optional_value(
                Statement::new(
                    "SELECT contest FROM contests WHERE contest > $1 ORDER BY contest LIMIT 1 OFFSET $2",
                )
                .bind(after)
                .bind(i64::from(size.saturating_sub(1))),
            )
            .await?;
        Ok(end)
    }

    async fn contests(&mut self, range: &Range) -> Result<Vec<AuditedContest>> {
        self.all(within(
            "SELECT contest, contest_id, namespace, kind, key, key_hash, qualifier, user_id, pinned, highest_accept_order, \
             policy_version, pending, target_known, current_version, last_version FROM contests WHERE ",
            "contest",
            range,
        ))
        .await
    }

    async fn candidates(&mut self, range: &Range) -> Result<Vec<AuditedCandidate>> {
        self.all(within(
            "SELECT contest, candidate, candidate_id, coalesce(value, (SELECT h.value FROM changes AS h \
             WHERE h.contest = candidates.contest AND +h.revision = candidates.applied_revision)) AS value, status, status_reason, origin, edited_from, hold, \
             decision_reason, decided_caller, decided_for, occurrences, reporters, net, risk, threshold, \
             policy_version, applied_threshold, applied_revision, ruling_order, ruling_roles, ruling_approved, ruling_taken_back, \
             proposal_version, proposal_base, proposal_verdict, proposal_decided_at, created_at, updated_at, transitions, version, \
             namespace, kind FROM candidates WHERE ",
            "contest",
            range,
        ))
        .await
    }

    async fn resources(&mut self, range: &Range) -> Result<Vec<AuditedResource>> {
        self.all(within(
            "SELECT r.contest, r.revision, coalesce(r.value, (SELECT h.value FROM changes AS h \
             WHERE h.contest = r.contest AND +h.revision = r.revision)) AS value, r.value_checksum, r.committed_at, v.committed_at AS logged_at \
             FROM resources AS r LEFT JOIN revisions AS v ON v.revision = r.revision WHERE ",
            "r.contest",
            range,
        ))
        .await
    }

    fn transitions(&mut self, range: &Range) -> BoxStream<'_, Result<AuditedTransition>> {
        self.streamed(
            "SELECT k.contest, t.candidate, t.sequence, t.from_status, t.to_status, t.caller, t.on_behalf_of, t.revision
             FROM candidates AS k JOIN transitions AS t ON t.candidate = k.candidate
             WHERE {}k.contest; ORDER BY k.contest, t.candidate, t.sequence",
            range,
        )
    }

    fn ballots(&mut self, range: &Range) -> BoxStream<'_, Result<BallotRow>> {
        self.streamed(
            "SELECT feedback_id, contest, candidate_id, accept_order, voter, identified, caller, received_at
             FROM ballots WHERE retracted = 0 AND {}contest; ORDER BY contest, accept_order DESC, feedback_id",
            range,
        )
    }

    fn sent_rulings(&mut self, range: &Range) -> BoxStream<'_, Result<SentRulingRow>> {
        self.streamed(
            "SELECT k.contest, k.candidate_id, b.accept_order, m.sender_roles
             FROM candidates AS k JOIN ballots AS b ON b.contest = k.contest AND b.candidate_id = k.candidate_id
             LEFT JOIN retraction_marks AS m ON m.feedback_id = b.feedback_id
             WHERE k.ruling_order > 0 AND {}k.contest; ORDER BY k.contest, k.candidate",
            range,
        )
    }

    fn changes(&mut self, range: &Range) -> BoxStream<'_, Result<AuditedChange>> {
        self.streamed(
            "SELECT contest, revision, value, value_checksum, before_value, candidate,
                    (SELECT v.cause FROM revisions AS v WHERE v.revision = changes.revision) AS cause
             FROM changes WHERE {}contest; ORDER BY contest, revision DESC, ordinal DESC",
            range,
        )
    }

    async fn revisions(&mut self, after: i64, through: i64) -> Result<(Vec<i64>, Vec<Span>)> {
        let revisions = self
            .transaction
            .values(
                Statement::new(
                    "SELECT revision FROM revisions WHERE revision > $1 AND revision <= $2 ORDER BY revision",
                )
                .bind(after)
                .bind(through),
            )
            .await?;
        let spans = self
            .transaction
            .rows(
                Statement::new(
                    "SELECT revision, count(*) AS changes, CAST(min(ordinal) AS BIGINT) AS first,
                    CAST(max(ordinal) AS BIGINT) AS last, count(DISTINCT contest) AS keys
             FROM changes WHERE revision > $1 AND revision <= $2 GROUP BY revision ORDER BY revision",
                )
                .bind(after)
                .bind(through),
            )
            .await?;
        Ok((revisions, spans))
    }

    async fn shown_outputs(
        &mut self,
        contest: i64,
        id: ContestId,
        window: &WindowPolicy,
    ) -> Result<(Vec<Result<OutputTally>>, Vec<Result<Rated>>)> {
        let newest = [RatingClass::Good, RatingClass::Bad].map(|class| OfClass {
            contest: id,
            class,
            limit: window.room(class),
        });
        let contests = HashMap::from([(id, contest)]);
        let rows: Vec<OutputRow> = self.all(ratings_sql::newest_outputs(&newest, &contests)).await?;
        let outputs: Vec<Result<OutputTally>> = rows.iter().map(OutputRow::parse).collect();
        let examples: Vec<OfOutput> = outputs
            .iter()
            .flatten()
            .filter_map(|output| Some((output.rated, output.class()?)))
            .map(|(rated, class)| OfOutput {
                contest: id,
                rated,
                class,
                limit: voices(class),
            })
            .collect();
        let mut ratings = Vec::new();
        if !examples.is_empty() {
            let query = ratings_sql::of_outputs(&examples, &contests, window.max_text_chars);
            let rows: Vec<RatingRow> = self.all(query).await?;
            ratings.extend(rows.into_iter().map(RatingRow::parse));
        }
        Ok((outputs, ratings))
    }

    async fn wrong_ratings(&mut self) -> Result<Vec<WrongRating>> {
        Ok(self.transaction.rows(Statement::new(WRONG_RATINGS)).await?)
    }

    async fn wrong_proposals(&mut self) -> Result<Vec<WrongProposal>> {
        let kept = format!("{WRONG_NUMBERS} UNION ALL {WRONG_IMPROVEMENTS} LIMIT 1000");
        Ok(self
            .transaction
            .rows(
                Statement::new(kept)
                    .bind(Kind::Prompt.number())
                    .bind(PRODUCTION)
                    .bind(codes::origin(Origin::Generator)),
            )
            .await?)
    }

    async fn wrong_suggestions(&mut self) -> Result<Vec<i64>> {
        let field = SuggestionType::ALL
            .map(|suggestion| format!("WHEN {} THEN '{}'", suggestion.number(), suggestion.field()));
        let sql = WRONG_SUGGESTIONS.replace("{FIELD}", &field.join(" "));
        let wrong = self
            .transaction
            .values(
                Statement::new(sql)
                    .bind(Kind::Profile.number())
                    .bind(codes::origin(Origin::Generator)),
            )
            .await?;
        Ok(wrong)
    }

    async fn stray_transitions(&mut self) -> Result<Vec<i64>> {
        let strays = self
            .transaction
            .values(Statement::new(
                "SELECT DISTINCT t.candidate FROM transitions AS t
             WHERE NOT EXISTS (SELECT 1 FROM candidates AS k WHERE k.candidate = t.candidate) LIMIT 1000",
            ))
            .await?;
        Ok(strays)
    }

    async fn wrong_waiting(&mut self) -> Result<Vec<WrongWaiting>> {
        queue_sql::waiting(&mut self.transaction).await
    }

    async fn wrong_days(&mut self) -> Result<Vec<WrongDay>> {
        queue_sql::days(&mut self.transaction).await
    }

    async fn wrong_queue_changes(&mut self) -> Result<Vec<i64>> {
        queue_sql::changes(&mut self.transaction).await
    }

    fn mined(&mut self) -> BoxStream<'_, Result<MinedRow>> {
        self.transaction
            .stream(
                Statement::new(
                    "SELECT k.candidate_id, c.namespace, c.key, c.qualifier FROM candidates AS k
             JOIN contests AS c ON c.contest = k.contest WHERE k.origin = $1 ORDER BY k.candidate",
                )
                .bind(codes::origin(Origin::Mined)),
            )
            .map_err(StoreError::from)
            .boxed()
    }

    fn entries(&mut self) -> BoxStream<'_, Result<EntryRow>> {
        self.transaction
            .stream(Statement::new(ENTRIES).bind(bytes(FeedbackId::none().0)))
            .map_err(StoreError::from)
            .boxed()
    }
}
