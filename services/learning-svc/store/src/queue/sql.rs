//! The review queue in SQL, as its reviewers see it.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{CandidateId, Namespace};
use emend_store::{
    StoreError,
    sql::{Statement, Transaction},
};
use sqlx_macros::FromRow;

use super::{
    FirstApproval, LEASED_FOR, Lease, MAX_LEASES, QueueCount, QueuePosition, QueueStore, ReadChange,
    ReviewComment,
    changes_sql::{self, lease_changed},
    comments_sql, days_sql,
};
use crate::{
    SqlStore,
    actor::Actor,
    batches::batches,
    database::{bytes, notify},
    integers::micros,
    rows::{At, StoredId, actor},
    work::Work,
};

type Result<T> = std::result::Result<T, StoreError>;

#[derive(Debug, FromRow)]
struct LeaseRow {
    candidate_id: Vec<u8>,
    caller: String,
    on_behalf_of: String,
    expires_at: i64,
}

impl LeaseRow {
    fn parse(&self) -> Result<(CandidateId, Lease)> {
        let at = At {
            table: "review_leases",
            id: &StoredId(&self.candidate_id),
        };
        let lease = Lease {
            actor: actor(at, "caller", &self.caller, &self.on_behalf_of)?,
            expires_at: at.time("expires_at", self.expires_at)?,
        };
        Ok((CandidateId(at.uuid("candidate_id", &self.candidate_id)?), lease))
    }
}

const COLUMNS: &str =
    "SELECT candidate_id, caller, on_behalf_of, expires_at FROM review_leases WHERE candidate_id IN ";

/// The leases in force on candidates.
pub(crate) fn leases_on(candidates: &[CandidateId]) -> Statement {
    let mut query = Statement::new(COLUMNS);
    query.push_list(candidates.iter().map(|id| bytes(id.0)));
    query.push(" AND expires_at > (SELECT now FROM database_clock)");
    query
}

/// Makes the candidate somebody's, unless somebody else has it open.
fn acquisition(candidate: CandidateId, actor: &Actor) -> Statement {
    let mut query =
        Statement::new("INSERT INTO review_leases (candidate_id, caller, on_behalf_of, expires_at) SELECT ");
    query
        .push_bind(bytes(candidate.0))
        .push(", ")
        .push_bind(actor.caller.as_str())
        .push(", ")
        .push_bind(actor.on_behalf_of.as_str())
        .push(", now + ")
        .push_bind(micros(LEASED_FOR));
    query.push(
        " FROM database_clock WHERE TRUE ON CONFLICT (candidate_id) DO UPDATE SET caller = excluded.caller, \
         on_behalf_of = excluded.on_behalf_of, expires_at = excluded.expires_at \
         WHERE review_leases.expires_at <= (SELECT now FROM database_clock) \
         OR (review_leases.caller = excluded.caller AND review_leases.on_behalf_of = excluded.on_behalf_of)",
    );
    query
}

/// Drops what has expired. Returns how many leases are left.
async fn prune(transaction: &mut Transaction) -> Result<i64> {
    let expired =
        Statement::new("DELETE FROM review_leases WHERE expires_at <= (SELECT now FROM database_clock)");
    transaction.execute(expired).await?;
    transaction
        .value(Statement::new("SELECT count(*) FROM review_leases"))
        .await
}

async fn lease(transaction: &mut Transaction, candidate: CandidateId) -> Result<Option<Lease>> {
    let row: Option<LeaseRow> = transaction.optional(leases_on(&[candidate])).await?;
    Ok(row.map(|row| row.parse()).transpose()?.map(|(_, lease)| lease))
}

#[async_trait]
impl QueueStore for SqlStore {
    async fn acquire_lease(&self, candidate: CandidateId, actor: &Actor) -> Result<Option<Lease>> {
        let mut transaction = self.begin_write().await?;
        let found = lease(&mut transaction, candidate).await?;
        if found.is_none() && prune(&mut transaction).await? >= i64::from(MAX_LEASES) {
            transaction.commit().await?;
            return Ok(None);
        }
        if transaction.execute(acquisition(candidate, actor)).await? > 0 {
            transaction.execute(lease_changed(candidate)).await?;
            notify(&mut transaction).await?;
        }
        let lease = lease(&mut transaction, candidate).await?;
        transaction.commit().await?;
        // Whoever had it may have closed it just now.
        Ok(lease.or(found))
    }

    async fn release_lease(&self, candidate: CandidateId, actor: &Actor) -> Result<()> {
        let mut transaction = self.begin_write().await?;
        let release = Statement::new(
            "DELETE FROM review_leases WHERE candidate_id = $1 AND caller = $2 AND on_behalf_of = $3",
        )
        .bind(bytes(candidate.0))
        .bind(actor.caller.as_str())
        .bind(actor.on_behalf_of.as_str());
        if transaction.execute(release).await? > 0 {
            transaction.execute(lease_changed(candidate)).await?;
            notify(&mut transaction).await?;
        }
        transaction.commit().await
    }

    async fn leases(&self, candidates: &[CandidateId]) -> Result<HashMap<CandidateId, Lease>> {
        let mut leases = HashMap::new();
        for candidates in batches(candidates) {
            for row in self.rows::<LeaseRow>(leases_on(candidates)).await? {
                let (id, lease) = row.parse()?;
                leases.insert(id, lease);
            }
        }
        Ok(leases)
    }

    async fn comment(
        &self,
        candidate: CandidateId,
        actor: &Actor,
        comment: &str,
        asked: Option<&str>,
    ) -> Result<Option<ReviewComment>> {
        comments_sql::comment(self, candidate, actor, (comment, asked)).await
    }

    async fn comments(&self, candidate: CandidateId) -> Result<Vec<ReviewComment>> {
        comments_sql::comments(self, candidate).await
    }

    async fn open_questions(
        &self,
        candidates: &[CandidateId],
    ) -> Result<HashMap<CandidateId, ReviewComment>> {
        comments_sql::open_questions(self, candidates).await
    }

    async fn first_approvals(
        &self,
        candidates: &[CandidateId],
    ) -> Result<HashMap<CandidateId, FirstApproval>> {
        comments_sql::first_approvals(self, candidates).await
    }

    async fn close_questions(&self) -> Result<u64> {
        comments_sql::close_decided(self).await
    }

    async fn queue_position(&self) -> Result<QueuePosition> {
        changes_sql::position(self).await
    }

    async fn queue_changes(&self, after: QueuePosition, limit: u32) -> Result<Vec<ReadChange>> {
        changes_sql::changes(self, after, limit).await
    }

    async fn queue_days(&self, namespace: &Namespace, day: i64) -> Result<Vec<QueueCount>> {
        days_sql::days(self, namespace, day).await
    }

    async fn fold_queue_counts(&self) -> Result<u64> {
        days_sql::fold(self).await
    }

    async fn forget_queue_changes(&self, before: QueuePosition) -> Result<u64> {
        changes_sql::forget(self, before).await
    }
}

/// Closes candidates that were decided, whoever has them open.
pub(super) async fn close(work: &mut Work, candidates: &[CandidateId]) -> Result<()> {
    for candidates in batches(candidates) {
        let query = work.write("DELETE FROM review_leases WHERE candidate_id IN ");
        query.push_list(candidates.iter().map(|id| bytes(id.0)));
        work.written().await?;
    }
    Ok(())
}
