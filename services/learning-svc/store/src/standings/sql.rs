//! What feedbacks support, in SQL.
//!
//! Everything is found by the feedbacks' ids, and what that leads to by keys: three statements for each batch of feedbacks,
//! and one for each batch of the windows that ratings are in.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{ContestId, FeedbackId, Namespace, ratings::MAX_WINDOW};
use emend_store::StoreError;
use emend_store::sql::{Row, Statement, Transaction};

use crate::SqlStore;
use crate::contests::lists_sql::CANDIDATE_COLUMNS;
use crate::database::bytes;
use crate::{
    batches::batches,
    contests::rows::ResourceRow,
    standings::{
        StandingStore, Supported,
        rows::{BallotNowRow, CandidateNowRow, RatingNowRow},
    },
};

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl StandingStore for SqlStore {
    async fn supported(&self, namespace: &Namespace, feedback: &[FeedbackId]) -> Result<Supported> {
        let mut supported = Supported::default();
        let mut windows: HashMap<i64, ContestId> = HashMap::new();
        let mut transaction = self.begin_read().await?;
        for feedback in batches(feedback) {
            for row in rows::<BallotNowRow>(&mut transaction, ballots(namespace, feedback)).await? {
                supported.ballots.push(row.parse()?);
            }
            for row in rows::<CandidateNowRow>(&mut transaction, candidates(namespace, feedback)).await? {
                let now = row.parse()?;
                supported.candidates.insert(now.candidate.id, now);
            }
            for row in rows::<RatingNowRow>(&mut transaction, ratings(namespace, feedback)).await? {
                let contest = row.known.rating.contest;
                let now = row.parse()?;
                windows.insert(contest, now.known.key.contest_id());
                supported.ratings.push(now);
            }
        }
        let keys: Vec<i64> = windows.keys().copied().collect();
        for keys in batches(&keys) {
            let mut query = Statement::new(
                "SELECT contest, revision, value, committed_at FROM resources WHERE contest IN ",
            );
            query.push_list(keys.iter().copied());
            for row in rows::<ResourceRow>(&mut transaction, query).await? {
                if let Some(contest) = windows.get(&row.contest) {
                    supported.resources.insert(*contest, row.parse()?);
                }
            }
        }
        transaction.rollback().await?;
        Ok(supported)
    }
}

async fn rows<R>(transaction: &mut Transaction, query: Statement) -> Result<Vec<R>>
where
    R: Row,
{
    transaction.rows(query).await
}

/// The ballots of these feedbacks.
pub(crate) fn ballots(namespace: &Namespace, feedback: &[FeedbackId]) -> Statement {
    let mut query = Statement::new(
        "SELECT b.feedback_id, b.candidate_id, c.kind, b.retracted FROM ballots AS b \
         JOIN contests AS c ON c.contest = b.contest WHERE b.feedback_id IN ",
    );
    push_feedback(&mut query, namespace, feedback);
    query.push(" ORDER BY b.feedback_id, c.contest_id");
    query
}

/// The candidates that these ballots name, each once.
pub(crate) fn candidates(namespace: &Namespace, feedback: &[FeedbackId]) -> Statement {
    let mut query = Statement::new(CANDIDATE_COLUMNS);
    query.push(
        ", r.revision AS resource_revision FROM candidates AS k JOIN contests AS c ON c.contest = k.contest \
         LEFT JOIN resources AS r ON r.contest = k.contest \
         WHERE (k.contest, k.candidate_id) IN (SELECT b.contest, b.candidate_id FROM ballots AS b WHERE b.feedback_id IN ",
    );
    query.push_list(feedback.iter().map(|id| id.0).map(bytes));
    query
        .push(") AND c.namespace = ")
        .push_bind(namespace.as_str().to_owned());
    query
}

/// The ratings that these feedbacks are.
pub(crate) fn ratings(namespace: &Namespace, feedback: &[FeedbackId]) -> Statement {
    let mut query = Statement::new(
        "SELECT r.feedback_id, r.contest, r.accept_order, r.voter, r.rated, r.class, r.prompt_version, r.received_at, \
         r.excluded, r.live, \
         NULL AS input, NULL AS output, NULL AS corrected, NULL AS judgement, NULL AS issues, \
         c.contest_id, c.namespace, c.kind, c.key, c.qualifier, c.user_id, \
         CASE WHEN m.feedback_id IS NULL THEN 0 ELSE 1 END AS marked, o.class AS output_class, \
         (SELECT count(*) FROM (SELECT 1 FROM rated_outputs AS n WHERE n.contest = o.contest \
         AND n.class = o.class AND (n.accept_order, n.feedback_id) > (o.accept_order, o.feedback_id) LIMIT ",
    );
    query.push(MAX_WINDOW).push(
        ") AS found) AS newer FROM ratings AS r JOIN contests AS c ON c.contest = r.contest \
         LEFT JOIN rated_outputs AS o ON o.contest = r.contest AND o.rated = r.rated \
         LEFT JOIN retraction_marks AS m ON m.feedback_id = r.feedback_id WHERE r.feedback_id IN ",
    );
    push_feedback(&mut query, namespace, feedback);
    query
}

fn push_feedback(query: &mut Statement, namespace: &Namespace, feedback: &[FeedbackId]) {
    query.push_list(feedback.iter().map(|id| id.0).map(bytes));
    query
        .push(" AND c.namespace = ")
        .push_bind(namespace.as_str().to_owned());
}
