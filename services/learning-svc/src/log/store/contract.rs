//! The log's contract on one database: stamped by each, like the portable SQL it tests.

use async_trait::async_trait;
use jiff::SignedDuration;

use emend_core::ContestId;
use sqlx::QueryBuilder;

use super::{
    super::{open_for_test, push_contests},
    Backend, Db, bytes, micros,
};
use crate::log::store::suite::{TestLog, Written, stamp};

stamp!(open_for_test());

#[async_trait]
impl TestLog for Backend {
    async fn append_aged(&self, changes: &[Written], age: SignedDuration) -> i64 {
        let mut transaction = self.begin_write().await.unwrap();
        let revision: i64 =
            sqlx::query_scalar("UPDATE head SET revision = revision + 1 WHERE id = 1 RETURNING revision")
                .fetch_one(&mut *transaction)
                .await
                .unwrap();
        let committed_at: i64 = sqlx::query_scalar(
            "INSERT INTO revisions (revision, operation_id, cause, caller, on_behalf_of, reason, committed_at)
             VALUES ($1, NULL, 1, 'me', '', '', (SELECT now FROM database_clock) - $2) RETURNING committed_at",
        )
        .bind(revision)
        .bind(micros(age))
        .fetch_one(&mut *transaction)
        .await
        .unwrap();
        for (ordinal, change) in changes.iter().enumerate() {
            let id = ContestId(change.contest_id());
            sqlx::query(
                "INSERT INTO contests (contest_id, namespace, kind, key, key_hash, qualifier, user_id, pinned,
                   highest_accept_order, policy_version, pending, target_known, current_version, last_version, created_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 0, 0, 0, 1, 0, 0, 0)
                 ON CONFLICT DO NOTHING",
            )
            .bind(bytes(id.0))
            .bind(&change.namespace)
            .bind(change.kind)
            .bind(&change.key)
            .bind(id.key_hash())
            .bind(&change.qualifier)
            .bind(&change.user_id)
            .execute(&mut *transaction)
            .await
            .unwrap();
            let mut query = QueryBuilder::<Db>::new("SELECT contest FROM contests WHERE ");
            push_contests(&mut query, [id]);
            let contest: i64 = query
                .build_query_scalar()
                .fetch_one(&mut *transaction)
                .await
                .unwrap();
            sqlx::query(
                "INSERT INTO changes (revision, ordinal, contest, value, value_checksum, feedback_received_at,
                   traceparent, policy_version)
                 VALUES ($1, $2, $3, $4, $5, 7, 'trace', 0)",
            )
            .bind(revision)
            .bind(i32::try_from(ordinal).unwrap())
            .bind(contest)
            .bind(&change.value)
            .bind(change.checksum().cast_signed())
            .execute(&mut *transaction)
            .await
            .unwrap();
            sqlx::query("DELETE FROM resources WHERE contest = $1")
                .bind(contest)
                .execute(&mut *transaction)
                .await
                .unwrap();
            let Some(value) = &change.value else { continue };
            sqlx::query(
                "INSERT INTO resources (contest, revision, value, value_checksum, committed_at)
                 VALUES ($1, $2, $3, $4, $5)",
            )
            .bind(contest)
            .bind(revision)
            .bind(value)
            .bind(change.checksum().cast_signed())
            .bind(committed_at)
            .execute(&mut *transaction)
            .await
            .unwrap();
        }
        transaction.commit().await.unwrap();
        revision
    }

    async fn lose_above(&self, revision: i64) {
        let mut transaction = self.begin_write().await.unwrap();
        for statement in [
            "DELETE FROM changes WHERE revision > $1",
            "DELETE FROM revisions WHERE revision > $1",
            "UPDATE head SET revision = $1 WHERE id = 1",
        ] {
            sqlx::query(statement)
                .bind(revision)
                .execute(&mut *transaction)
                .await
                .unwrap();
        }
        transaction.commit().await.unwrap();
    }
}
