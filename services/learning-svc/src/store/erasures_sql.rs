//! Erasing users, in SQL. Written once, compiled for each database.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{AcceptOrder, ContestId, Namespace, ResourceKey, UserId, contest::VoterKey};
use emend_store::{CorruptRow, StoreError};
use sqlx::QueryBuilder;

use super::{
    Backend, Db,
    decisions_sql::{Work, push_list},
};
use crate::store::{
    batches::batches,
    erasures::{ErasedLog, Erasures},
    rows::KeyRow,
};

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl Erasures for Work {
    async fn erased_at(&mut self, voters: &[VoterKey]) -> Result<HashMap<VoterKey, AcceptOrder>> {
        let mut erased = HashMap::new();
        let ids: Vec<_> = voters.iter().map(|voter| voter.0).collect();
        for ids in batches(&ids) {
            let mut query = QueryBuilder::new("SELECT voter, accept_order FROM erased_users WHERE voter IN ");
            push_list(&mut query, ids);
            for (voter, order) in self.rows::<(String, i64)>(query).await? {
                let parsed = uuid::Uuid::parse_str(&voter)
                    .map_err(|error| CorruptRow::new("erased_users", "voter", voter, error))?;
                erased.insert(VoterKey(parsed), AcceptOrder(order));
            }
        }
        Ok(erased)
    }

    async fn note(&mut self, voter: VoterKey, order: AcceptOrder) -> Result<()> {
        sqlx::query(
            "INSERT INTO erased_users (voter, accept_order) VALUES ($1, $2)
             ON CONFLICT (voter) DO UPDATE SET accept_order = excluded.accept_order
             WHERE erased_users.accept_order < excluded.accept_order",
        )
        .bind(voter.0.to_string())
        .bind(order.0)
        .execute(&mut *self.transaction)
        .await?;
        Ok(())
    }

    async fn contests_of(
        &mut self,
        namespace: &Namespace,
        user: &UserId,
        limit: u32,
    ) -> Result<Vec<ResourceKey>> {
        let mut query = QueryBuilder::new(
            "SELECT contest_id, namespace, kind, key, qualifier, user_id FROM contests WHERE namespace = ",
        );
        query.push_bind(namespace.as_str());
        query
            .push(" AND user_id <> '' AND user_id = ")
            .push_bind(user.as_str());
        query.push(" LIMIT ").push_bind(i64::from(limit));
        let rows = self.rows::<KeyRow>(query).await?;
        rows.iter().map(|row| row.parse("contests")).collect()
    }

    async fn erase(&mut self, contests: &[ContestId], pseudonym: &UserId) -> Result<()> {
        for contests in batches(contests) {
            let mut query = QueryBuilder::new(
                "INSERT INTO erased_contests (contest_id, pseudonym, revision) SELECT contest_id, ",
            );
            query
                .push_bind(pseudonym.as_str())
                .push(", (SELECT revision FROM head WHERE id = 1) FROM contests WHERE contest_id IN ");
            push_list(&mut query, contests);
            query.push(" ON CONFLICT (contest_id) DO UPDATE SET revision = excluded.revision");
            query.build().execute(&mut *self.transaction).await?;
            for delete in [
                "DELETE FROM transitions WHERE candidate_id IN \
                 (SELECT candidate_id FROM candidates WHERE contest_id IN ",
                "DELETE FROM ballot_details WHERE feedback_id IN \
                 (SELECT feedback_id FROM ballots WHERE contest_id IN ",
                "DELETE FROM ballots WHERE (contest_id IN ",
                "DELETE FROM candidates WHERE (contest_id IN ",
                "DELETE FROM contests WHERE (contest_id IN ",
            ] {
                let mut query = QueryBuilder::<Db>::new(delete);
                push_list(&mut query, contests);
                query.push(")");
                query.build().execute(&mut *self.transaction).await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl ErasedLog for Backend {
    async fn forget_erased(&self, limit: u32) -> Result<u64> {
        let mut transaction = self.begin_write().await?;
        let expired: Vec<(String, String, i64)> = sqlx::query_as(
            "SELECT contest_id, pseudonym, revision FROM erased_contests
             WHERE revision <= (SELECT tombstone_horizon FROM head WHERE id = 1)
             ORDER BY revision LIMIT $1",
        )
        .bind(i64::from(limit))
        .fetch_all(&mut *transaction)
        .await?;
        for (contest, pseudonym, revision) in &expired {
            // Who is erased may come back, so only what is as old as the erasure is forgotten.
            sqlx::query(
                "UPDATE revisions SET on_behalf_of = $3
                 WHERE revision IN (SELECT revision FROM changes WHERE contest_id = $1 AND revision <= $2)
                   AND on_behalf_of IN (SELECT user_id FROM changes WHERE contest_id = $1 AND revision <= $2)",
            )
            .bind(contest)
            .bind(revision)
            .bind(pseudonym)
            .execute(&mut *transaction)
            .await?;
            sqlx::query(
                "UPDATE changes SET user_id = $3, traceparent = '',
                   value = CASE WHEN value IS NULL THEN NULL ELSE $4 END,
                   before_value = CASE WHEN before_value IS NULL THEN NULL ELSE $4 END
                 WHERE contest_id = $1 AND revision <= $2",
            )
            .bind(contest)
            .bind(revision)
            .bind(pseudonym)
            .bind(&[] as &[u8])
            .execute(&mut *transaction)
            .await?;
            sqlx::query("DELETE FROM erased_contests WHERE contest_id = $1 AND revision = $2")
                .bind(contest)
                .bind(revision)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(expired.len() as u64)
    }

    async fn clean_files(&self) -> Result<bool> {
        self.clean().await
    }
}
