//! Erasing users, in SQL.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{AcceptOrder, ContestId, Namespace, ResourceKey, UserId, kinds::Users, voter::VoterKey};
use emend_store::sql::{Statement, Transaction};
use emend_store::{CorruptRow, StoreError};
use jiff::{SignedDuration, Timestamp};
use sqlx_macros::FromRow;

use crate::SqlStore;
use crate::contests::sql::insertion;
use crate::database::bytes;
use crate::database::push_contests;
use crate::work::Work;
use crate::{
    batches::batches,
    contests::ContestWrite,
    erasure::{ErasedLog, Erasures},
    rows::{KeyRow, StoredId},
};

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl Erasures for Work {
    async fn erased_at(&mut self, voters: &[VoterKey]) -> Result<HashMap<VoterKey, AcceptOrder>> {
        let mut erased = HashMap::new();
        for voters in batches(voters) {
            let mut query = Statement::new("SELECT voter, accept_order FROM erased_users WHERE voter IN ");
            query.push_list(voters.iter().map(|voter| voter.0).map(bytes));
            for (voter, order) in self.rows::<(Vec<u8>, i64)>(query).await? {
                let parsed = uuid::Uuid::from_slice(&voter)
                    .map_err(|error| CorruptRow::new("erased_users", "voter", StoredId(&voter), error))?;
                erased.insert(VoterKey(parsed), AcceptOrder(order));
            }
        }
        Ok(erased)
    }

    async fn note(&mut self, voter: VoterKey, order: AcceptOrder) -> Result<()> {
        self.transaction()
            .await?
            .execute(
                Statement::new(
                    "INSERT INTO erased_users (voter, accept_order) VALUES ($1, $2)
             ON CONFLICT (voter) DO UPDATE SET accept_order = excluded.accept_order
             WHERE erased_users.accept_order < excluded.accept_order",
                )
                .bind(bytes(voter.0))
                .bind(order.0),
            )
            .await?;
        Ok(())
    }

    async fn contests_of(
        &mut self,
        namespace: &Namespace,
        user: &UserId,
        limit: u32,
    ) -> Result<Vec<ResourceKey>> {
        let mut query = Statement::new(
            "SELECT contest_id, namespace, kind, key, qualifier, user_id FROM contests WHERE namespace = ",
        );
        query.push_bind(namespace.as_str());
        query
            .push(" AND user_id <> '' AND user_id = ")
            .push_bind(user.as_str());
        // What was erased before and not used since is there for the log alone.
        query.push(
            " AND (contest NOT IN (SELECT e.contest FROM erased_contests AS e) \
             OR EXISTS (SELECT 1 FROM candidates AS k WHERE k.contest = contests.contest) \
             OR EXISTS (SELECT 1 FROM ballots AS b WHERE b.contest = contests.contest))",
        );
        query.push(" LIMIT ").push_bind(i64::from(limit));
        let rows = self.rows::<KeyRow>(query).await?;
        rows.iter().map(|row| row.parse("contests")).collect()
    }

    async fn forget_activities(&mut self, namespace: &Namespace, user: &UserId) -> Result<()> {
        let mut query = Statement::new("DELETE FROM activities WHERE namespace = ");
        query.push_bind(namespace.as_str());
        query.push(" AND user_id = ").push_bind(user.as_str());
        self.run(query).await?;
        Ok(())
    }

    async fn erase(&mut self, contests: &[ContestId], pseudonym: &UserId) -> Result<()> {
        for contests in batches(contests) {
            let keys = contests.iter().map(|id| self.keys.contest(*id));
            let keys: Vec<i64> = keys.collect::<Result<_>>()?;
            let mut query =
                Statement::new("INSERT INTO erased_contests (contest, pseudonym, revision) SELECT contest, ");
            query
                .push_bind(pseudonym.as_str())
                .push(", (SELECT revision FROM head WHERE id = 1) FROM contests WHERE contest IN ");
            query.push_list(keys.iter().copied());
            query.push(" ON CONFLICT (contest) DO UPDATE SET revision = excluded.revision");
            self.transaction().await?.execute(query).await?;
            for erase in [
                "DELETE FROM waiting_candidates WHERE candidate IN (SELECT candidate FROM candidates WHERE contest IN ",
                "DELETE FROM review_comments WHERE candidate IN (SELECT candidate FROM candidates WHERE contest IN ",
                "DELETE FROM suggestions WHERE candidate IN (SELECT candidate FROM candidates WHERE contest IN ",
                "DELETE FROM transitions WHERE candidate IN (SELECT candidate FROM candidates WHERE contest IN ",
                "DELETE FROM ballot_details WHERE feedback_id IN (SELECT feedback_id FROM ballots WHERE contest IN ",
                "DELETE FROM ballots WHERE (contest IN ",
                "DELETE FROM undoable_changes WHERE (contest IN ",
                "DELETE FROM undoable_decisions WHERE (contest IN ",
                "DELETE FROM candidates WHERE (contest IN ",
                // The row itself stays for the log, and for the user, who may come back.
                "UPDATE contests SET pinned = 0, pending = 0, policy_version = 0 WHERE (contest IN ",
            ] {
                let mut query = Statement::new(erase);
                query.push_list(keys.iter().copied());
                query.push(")");
                self.transaction().await?.execute(query).await?;
            }
        }
        Ok(())
    }
}

/// A contest of which the log need no longer name the user.
#[derive(Debug, FromRow)]
struct ExpiredRow {
    contest: i64,
    #[sqlx(flatten)]
    key: KeyRow,
    pseudonym: String,
    /// The log names the user up to this revision.
    revision: i64,
}

impl SqlStore {
    /// Moves what the log says of an erased contest to one whose user is the pseudonym.
    async fn forget(transaction: &mut Transaction, expired: &ExpiredRow) -> Result<()> {
        let ExpiredRow {
            contest, revision, ..
        } = *expired;
        let mut key = expired.key.parse("contests")?;
        let user = std::mem::replace(&mut key.user, UserId::parse(&expired.pseudonym).ok());
        if matches!(key.kind.rules().rule.users(), Users::Only) && !key.qualifier.is_empty() {
            // Where there is nothing but users' own, the key tells of the user as the value does.
            key.qualifier = format!("erased {contest}");
        }
        let pseudonymous = contest_of(transaction, &key).await?;
        transaction
            .execute(
                Statement::new(
                    "UPDATE revisions SET on_behalf_of = $3, reason = '' WHERE on_behalf_of = $4
             AND revision IN (SELECT revision FROM changes WHERE contest = $1 AND revision <= $2)",
                )
                .bind(contest)
                .bind(revision)
                .bind(expired.pseudonym.as_str())
                .bind(user.as_ref().map_or("", UserId::as_str)),
            )
            .await?;
        // What pages were told of it is read for some minutes only, and by nobody who needs this.
        transaction
            .execute(Statement::new("DELETE FROM queue_changes WHERE contest = $1").bind(contest))
            .await?;
        // Who is erased may come back, so only what is as old as the erasure is forgotten.
        transaction
            .execute(
                Statement::new(
                    "UPDATE changes SET contest = $3, candidate = NULL, traceparent = '',
               value = CASE WHEN value IS NULL THEN NULL ELSE $4 END,
               before_value = CASE WHEN before_value IS NULL THEN NULL ELSE $4 END
             WHERE contest = $1 AND revision <= $2",
                )
                .bind(contest)
                .bind(revision)
                .bind(pseudonymous)
                .bind(&[] as &[u8]),
            )
            .await?;
        transaction
            .execute(
                Statement::new("DELETE FROM erased_contests WHERE contest = $1 AND revision = $2")
                    .bind(contest)
                    .bind(revision),
            )
            .await?;
        transaction
            .execute(
                Statement::new(
                    "DELETE FROM contests WHERE contest = $1
               AND NOT EXISTS (SELECT 1 FROM candidates AS k WHERE k.contest = contests.contest)
               AND NOT EXISTS (SELECT 1 FROM ballots AS b WHERE b.contest = contests.contest)
               AND NOT EXISTS (SELECT 1 FROM changes AS h WHERE h.contest = contests.contest)
               AND NOT EXISTS (SELECT 1 FROM erased_contests AS e WHERE e.contest = contests.contest)",
                )
                .bind(contest),
            )
            .await?;
        Ok(())
    }
}

/// The contest of a key, created if there is none.
async fn contest_of(transaction: &mut Transaction, key: &ResourceKey) -> Result<i64> {
    let query = insertion(&[(&ContestWrite::first(key.clone()), Timestamp::UNIX_EPOCH)]);
    transaction.execute(query).await?;
    let mut query = Statement::new("SELECT contest FROM contests WHERE ");
    push_contests(&mut query, [key.contest_id()]);
    transaction.value(query).await
}

#[async_trait]
impl ErasedLog for SqlStore {
    async fn forget_erased(&self, limit: u32) -> Result<u64> {
        let mut transaction = self.begin_write().await?;
        let expired: Vec<ExpiredRow> = transaction.rows(expired(limit)).await?;
        for expired in &expired {
            Self::forget(&mut transaction, expired).await?;
        }
        transaction.commit().await?;
        Ok(expired.len() as u64)
    }

    async fn forget_activities(&self, age: SignedDuration, limit: u32) -> Result<u64> {
        let mut transaction = self.begin_write().await?;
        let forgotten = transaction.execute(recorded_before(age, limit)).await?;
        transaction.commit().await?;
        Ok(forgotten)
    }

    async fn clean_files(&self) -> Result<bool> {
        self.pools().clean().await
    }
}

/// The contests of erased users that the log need no longer name, locked. They are chosen first: SQLite would pass over all contests,
/// which are many, to find the few.
pub(crate) fn expired(limit: u32) -> Statement {
    let mut query = Statement::new(
        "SELECT c.contest, c.contest_id, c.namespace, c.kind, c.key, c.qualifier, c.user_id, e.pseudonym, \
         e.revision FROM (SELECT contest, pseudonym, revision FROM erased_contests \
         WHERE revision <= (SELECT tombstone_horizon FROM head WHERE id = 1) ORDER BY contest LIMIT ",
    );
    query.push_bind(i64::from(limit));
    query
        .push(") AS e CROSS JOIN contests AS c WHERE c.contest = e.contest ORDER BY c.contest_id")
        .for_update();
    query
}

/// The statement that deletes the activities that were recorded longest ago.
pub(crate) fn recorded_before(age: SignedDuration, limit: u32) -> Statement {
    let mut query = Statement::new(
        "DELETE FROM activities WHERE (namespace, user_id, source_type, source_id) IN (SELECT a.namespace, a.user_id, \
         a.source_type, a.source_id FROM activities AS a WHERE a.recorded_at < (SELECT now FROM database_clock) - ",
    );
    query.push_bind(i64::try_from(age.as_micros()).unwrap_or(i64::MAX));
    query.push(" ORDER BY a.recorded_at LIMIT ");
    query.push_limit(limit);
    query.push(")");
    query
}
