//! What reviewers write about candidates for each other, and who approved them as the first of two, in SQL.

use std::collections::HashMap;

use emend_core::{CandidateId, Cause, Status};
use emend_store::{StoreError, sql::Statement};
use sqlx_macros::FromRow;

use super::{FirstApproval, MAX_COMMENTS, ReviewComment, changes_sql::lease_changed};
use crate::{
    SqlStore,
    actor::Actor,
    batches::batches,
    codes,
    contests::UNDO_WITHIN,
    database::{notify, push_candidates},
    integers::micros,
    rows::{At, StoredId, actor},
};

type Result<T> = std::result::Result<T, StoreError>;

#[derive(Debug, FromRow)]
struct CommentRow {
    number: i64,
    candidate_id: Vec<u8>,
    caller: String,
    on_behalf_of: String,
    comment: String,
    asks: i32,
    asked: String,
    is_open: i32,
    written_at: i64,
}

impl CommentRow {
    fn parse(self) -> Result<(CandidateId, ReviewComment)> {
        let at = At {
            table: "review_comments",
            id: &self.number,
        };
        let comment = ReviewComment {
            actor: actor(at, "caller", &self.caller, &self.on_behalf_of)?,
            comment: self.comment,
            asked: (self.asks != 0).then_some(self.asked),
            open: self.is_open != 0,
            written_at: at.time("written_at", self.written_at)?,
        };
        Ok((CandidateId(at.uuid("candidate_id", &self.candidate_id)?), comment))
    }
}

/// What was written about candidates.
pub(crate) fn comments_on(candidates: &[CandidateId]) -> Statement {
    let mut query = Statement::new(
        "SELECT a.number, k.candidate_id, a.caller, a.on_behalf_of, a.comment, a.asks, a.asked, a.is_open, \
         a.written_at FROM candidates AS k CROSS JOIN review_comments AS a WHERE a.candidate = k.candidate AND ",
    );
    push_candidates(&mut query, candidates.iter().copied());
    query
}

/// Ends the questions about a candidate that an actor answers by writing about it.
fn answered(candidate: i64, actor: &Actor) -> Statement {
    let (caller, name) = (actor.caller.as_str(), actor.on_behalf_of.as_str());
    let mut query =
        Statement::new("UPDATE review_comments SET is_open = 0 WHERE is_open = 1 AND candidate = ");
    query.push_bind(candidate);
    query.push(" AND NOT (caller = ").push_bind(caller);
    query.push(" AND on_behalf_of = ").push_bind(name);
    query.push(") AND asked IN ('', ").push_bind(caller);
    query.push(", ").push_bind(name).push(")");
    query
}

pub(super) async fn comment(
    store: &SqlStore,
    id: CandidateId,
    actor: &Actor,
    (comment, asked): (&str, Option<&str>),
) -> Result<Option<ReviewComment>> {
    let mut transaction = store.begin_write().await?;
    let mut query = Statement::new("SELECT k.candidate, k.namespace FROM candidates AS k WHERE ");
    push_candidates(&mut query, [id]);
    let Some((candidate, namespace)) = transaction.optional::<(i64, String)>(query).await? else {
        return Ok(None);
    };
    let mut query = Statement::new("SELECT count(*) FROM review_comments WHERE candidate = ");
    query.push_bind(candidate);
    if transaction.value::<i64>(query).await? >= i64::from(MAX_COMMENTS) {
        return Ok(None);
    }
    transaction.execute(answered(candidate, actor)).await?;
    let mut query = Statement::new(
        "INSERT INTO review_comments (candidate, namespace, caller, on_behalf_of, comment, asks, asked, is_open, \
         written_at) SELECT ",
    );
    query.push_bind(candidate).push(", ").push_bind(namespace);
    query.push(", ").push_bind(actor.caller.as_str());
    query.push(", ").push_bind(actor.on_behalf_of.as_str());
    query.push(", ").push_bind(comment);
    query.push(", ").push_bind(i32::from(asked.is_some()));
    query.push(", ").push_bind(asked.unwrap_or_default());
    query.push(", ").push_bind(i32::from(asked.is_some()));
    query.push(", now FROM database_clock");
    transaction.execute(query).await?;
    let mut query = comments_on(&[id]);
    query.push(" ORDER BY a.number DESC LIMIT 1");
    let written: Option<CommentRow> = transaction.optional(query).await?;
    transaction.execute(lease_changed(id)).await?;
    notify(&mut transaction).await?;
    transaction.commit().await?;
    written.map(|row| Ok(row.parse()?.1)).transpose()
}

pub(super) async fn comments(store: &SqlStore, candidate: CandidateId) -> Result<Vec<ReviewComment>> {
    let mut query = comments_on(&[candidate]);
    query.push(" ORDER BY a.number LIMIT ").push_limit(MAX_COMMENTS);
    let rows: Vec<CommentRow> = store.rows(query).await?;
    rows.into_iter().map(|row| Ok(row.parse()?.1)).collect()
}

pub(super) async fn open_questions(
    store: &SqlStore,
    candidates: &[CandidateId],
) -> Result<HashMap<CandidateId, ReviewComment>> {
    let mut questions = HashMap::new();
    for candidates in batches(candidates) {
        let mut query = comments_on(candidates);
        query.push(" AND a.is_open = 1 ORDER BY a.number");
        for row in store.rows::<CommentRow>(query).await? {
            let (candidate, question) = row.parse()?;
            questions.insert(candidate, question);
        }
    }
    Ok(questions)
}

#[derive(Debug, FromRow)]
struct ApprovalRow {
    candidate_id: Vec<u8>,
    caller: String,
    on_behalf_of: String,
    reason: String,
    made_at: i64,
}

pub(super) async fn first_approvals(
    store: &SqlStore,
    candidates: &[CandidateId],
) -> Result<HashMap<CandidateId, FirstApproval>> {
    let mut approvals = HashMap::new();
    for candidates in batches(candidates) {
        let mut query = Statement::new(format!(
            "SELECT k.candidate_id, t.caller, t.on_behalf_of, t.reason, t.made_at FROM candidates AS k \
             CROSS JOIN transitions AS t WHERE t.candidate = k.candidate AND t.cause = {} AND t.to_status = {} AND ",
            Cause::Review.number(),
            codes::status(Status::AwaitingReview)
        ));
        push_candidates(&mut query, candidates.iter().copied());
        query.push(" ORDER BY t.sequence");
        for row in store.rows::<ApprovalRow>(query).await? {
            let at = At {
                table: "transitions",
                id: &StoredId(&row.candidate_id),
            };
            let approval = FirstApproval {
                actor: actor(at, "caller", &row.caller, &row.on_behalf_of)?,
                at: at.time("made_at", row.made_at)?,
                reason: row.reason,
            };
            approvals.insert(CandidateId(at.uuid("candidate_id", &row.candidate_id)?), approval);
        }
    }
    Ok(approvals)
}

pub(super) async fn close_decided(store: &SqlStore) -> Result<u64> {
    let mut transaction = store.begin_write().await?;
    let mut query = Statement::new(format!(
        "UPDATE review_comments SET is_open = 0 WHERE is_open = 1 AND EXISTS (SELECT 1 FROM candidates AS k \
         WHERE k.candidate = review_comments.candidate AND k.status <> {} \
         AND k.updated_at < (SELECT now FROM database_clock) - ",
        codes::status(Status::AwaitingReview)
    ));
    query.push_bind(micros(UNDO_WITHIN)).push(")");
    let closed = transaction.execute(query).await?;
    transaction.commit().await?;
    Ok(closed)
}
