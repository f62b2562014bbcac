//! The log's contract on both databases.

use async_trait::async_trait;
use emend_store::sql::Statement;
use jiff::SignedDuration;

use emend_core::ContestId;

use crate::database::bytes;
use crate::database::push_contests;
use crate::integers::micros;
use crate::log::{
    suite::stamp,
    testing::{TestLog, Written},
};
use crate::{SqlStore, testing::TestDatabase};

mod sqlite {
    use super::*;
    stamp!(TestDatabase::Sqlite.open());
}
mod postgres {
    use super::*;
    stamp!(TestDatabase::Postgres.open());
}

#[async_trait]
impl TestLog for SqlStore {
    async fn append_aged(&self, changes: &[Written], age: SignedDuration) -> i64 {
        let mut transaction = self.begin_write().await.unwrap();
        let revision: i64 = transaction
            .value(Statement::new(
                "UPDATE head SET revision = revision + 1 WHERE id = 1 RETURNING revision",
            ))
            .await
            .unwrap();
        let committed_at: i64 = transaction.value(Statement::new("INSERT INTO revisions (revision, operation_id, cause, caller, on_behalf_of, reason, committed_at)
             VALUES ($1, NULL, 1, 'me', '', '', (SELECT now FROM database_clock) - $2) RETURNING committed_at")
        .bind(revision)
        .bind(micros(age)))
        .await
        .unwrap();
        for (ordinal, change) in changes.iter().enumerate() {
            let id = ContestId(change.contest_id());
            transaction.execute(Statement::new("INSERT INTO contests (contest_id, namespace, kind, key, key_hash, qualifier, user_id, pinned,
                   highest_accept_order, policy_version, pending, target_known, current_version, last_version, created_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 0, 0, 0, 1, 0, 0, 0)
                 ON CONFLICT DO NOTHING")
            .bind(bytes(id.0))
            .bind(&change.namespace)
            .bind(change.kind)
            .bind(&change.key)
            .bind(id.key_hash())
            .bind(&change.qualifier)
            .bind(&change.user_id))
            .await
            .unwrap();
            let mut query = Statement::new("SELECT contest FROM contests WHERE ");
            push_contests(&mut query, [id]);
            let contest: i64 = transaction.value(query).await.unwrap();
            transaction.execute(Statement::new("INSERT INTO changes (revision, ordinal, contest, value, value_checksum, feedback_received_at,
                   traceparent, policy_version)
                 VALUES ($1, $2, $3, $4, $5, 7, 'trace', 0)")
            .bind(revision)
            .bind(i32::try_from(ordinal).unwrap())
            .bind(contest)
            .bind(change.value.as_deref())
            .bind(change.checksum().cast_signed()))
            .await
            .unwrap();
            transaction
                .execute(Statement::new("DELETE FROM resources WHERE contest = $1").bind(contest))
                .await
                .unwrap();
            let Some(value) = &change.value else { continue };
            transaction
                .execute(
                    Statement::new(
                        "INSERT INTO resources (contest, revision, value, value_checksum, committed_at)
                 VALUES ($1, $2, $3, $4, $5)",
                    )
                    .bind(contest)
                    .bind(revision)
                    .bind(value)
                    .bind(change.checksum().cast_signed())
                    .bind(committed_at),
                )
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
            transaction
                .execute(Statement::new(statement).bind(revision))
                .await
                .unwrap();
        }
        transaction.commit().await.unwrap();
    }
}
