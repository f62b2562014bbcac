//! The storage port in portable SQL: what each use case reads and writes, on either database. Written once, compiled
//! for each database.

use std::time::Duration;

use async_trait::async_trait;
use emend_core::{Caller, EventId, FeedbackId, Namespace};
use emend_store::retry_conflicts;

use super::{
    super::{
        Backlog, Claimed, Connections, CorrectionStore, Inserted, OutboxStore, Retracted, Settlement, Store,
        StoreError,
    },
    Backend, CLAIM,
    feedback_sql::{self, Columns},
    outbox_sql,
};
#[cfg(test)]
use super::{EXPLAIN, PLAN};
use crate::{
    corrections::feedback::{Feedback, FeedbackQuery, NewFeedback, NewRetraction, RepeatedRequest},
    erasure::store::ErasureStore,
    fail_points,
    outbox::entry::{DeadLetter, DeadLetterQuery, Lease, LeaseHolder, LeaseToken},
    queries::store::QueryStore,
    ratings::store::RatingStore,
    settings::store::SettingsStore,
};

type Result<T> = std::result::Result<T, StoreError>;

impl Backend {
    async fn retract_once(&self, retraction: &NewRetraction, lease: Option<Lease>) -> Result<Retracted> {
        let mut transaction = self.begin_write().await?;
        let retracted = feedback_sql::retract(&mut transaction, retraction, lease).await?;
        fail_points::RETRACTION_WRITTEN.pass();
        transaction.commit().await?;
        Ok(retracted)
    }

    async fn settle_once(&self, settlements: &[Settlement]) -> Result<()> {
        let mut transaction = self.begin_write().await?;
        outbox_sql::settle(&mut transaction, settlements).await?;
        fail_points::BATCH_WRITTEN.pass();
        Ok(transaction.commit().await?)
    }

    async fn redrive_once(&self, events: &[EventId], of: Option<&Namespace>) -> Result<u64> {
        let mut transaction = self.begin_write().await?;
        let redriven = outbox_sql::redrive(&mut transaction, events, of).await?;
        transaction.commit().await?;
        Ok(redriven)
    }
}

#[cfg(test)]
impl Backend {
    /// The one number that a query gives.
    pub(crate) async fn number(&self, sql: sqlx::AssertSqlSafe<String>) -> i64 {
        sqlx::query_scalar(sql)
            .fetch_one(&mut *self.reader().await.unwrap())
            .await
            .unwrap()
    }

    /// How the database would find a list.
    pub(crate) async fn plan(&self, query: &FeedbackQuery) -> String {
        let mut list = sqlx::QueryBuilder::new("");
        feedback_sql::select_list(&mut list, query);
        self.explain(list).await
    }

    /// How the database would execute a statement, a step a line.
    pub(crate) async fn explain(&self, mut statement: sqlx::QueryBuilder<super::Db>) -> String {
        use sqlx::Execute as _;
        let sql = format!("{EXPLAIN}{}", statement.sql().as_str());
        let arguments = statement.build().take_arguments().unwrap().unwrap_or_default();
        let rows = sqlx::query_with(sqlx::AssertSqlSafe(sql), arguments)
            .fetch_all(&mut *self.reader().await.unwrap())
            .await;
        let lines = rows
            .unwrap()
            .into_iter()
            .map(|row| sqlx::Row::get::<String, _>(&row, PLAN));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Parses rows into domain values.
fn parsed<R, T>(rows: Vec<R>) -> Result<Vec<T>>
where
    T: TryFrom<R>,
    StoreError: From<T::Error>,
{
    rows.into_iter().map(|row| Ok(T::try_from(row)?)).collect()
}

#[async_trait]
impl CorrectionStore for Backend {
    async fn insert(&self, group: &[NewFeedback], lease: Option<Lease>) -> Result<Vec<Result<Inserted>>> {
        let columns: Vec<_> = group.iter().map(Columns::of).collect();
        self.insert_group(&columns, lease).await
    }

    async fn stored_as(&self, caller: &Caller, request: &RepeatedRequest) -> Result<Option<FeedbackId>> {
        let RepeatedRequest {
            namespace,
            request_id,
            hash,
        } = request;
        let mut reader = self.reader().await?;
        let found = feedback_sql::replay(&mut reader, namespace, caller, *hash, request_id.as_str()).await?;
        Ok(match found {
            Some(Inserted::Replayed(id)) => Some(id),
            Some(Inserted::Stored(_) | Inserted::RequestIdReused | Inserted::TooOften(_)) | None => None,
        })
    }

    async fn feedback(&self, namespace: &Namespace, id: FeedbackId) -> Result<Option<Feedback>> {
        let row = feedback_sql::feedback(&mut *self.reader().await?, namespace, id).await?;
        Ok(row.map(Feedback::try_from).transpose()?)
    }

    async fn list(&self, query: &FeedbackQuery) -> Result<Vec<Feedback>> {
        parsed(feedback_sql::list(&mut *self.lister(query.is_wide()).await?, query).await?)
    }

    async fn retract(&self, retraction: &NewRetraction, lease: Option<Lease>) -> Result<Retracted> {
        retry_conflicts(&self.entropy, || self.retract_once(retraction, lease)).await
    }

    async fn prune_request_ids(&self, retention: Duration, limit: u32) -> Result<u64> {
        retry_conflicts(&self.entropy, async || {
            feedback_sql::prune_request_ids(&mut *self.writer().await?, retention, limit).await
        })
        .await
    }
}

#[async_trait]
impl OutboxStore for Backend {
    async fn claim(&self, limit: u32, lease: Lease) -> Result<Vec<Claimed>> {
        let claimed = retry_conflicts(&self.entropy, async || {
            outbox_sql::claim(&mut *self.writer().await?, CLAIM, limit, lease).await
        });
        parsed(claimed.await?)
    }

    async fn release_abandoned(&self, holder: LeaseHolder) -> Result<u64> {
        self.release_of_others(holder).await
    }

    async fn still_leased(&self, leases: &[(EventId, LeaseToken)]) -> Result<Vec<EventId>> {
        outbox_sql::still_leased(&mut *self.reader().await?, leases).await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<()> {
        retry_conflicts(&self.entropy, || self.settle_once(settlements)).await
    }

    async fn dead_letters(&self, query: &DeadLetterQuery) -> Result<Vec<DeadLetter>> {
        let mut lister = self.lister(query.namespace.is_some()).await?;
        parsed(outbox_sql::dead_letters(&mut lister, query).await?)
    }

    async fn redrive(&self, events: &[EventId], of: Option<&Namespace>) -> Result<u64> {
        retry_conflicts(&self.entropy, || self.redrive_once(events, of)).await
    }

    async fn backlog(&self) -> Result<Backlog> {
        outbox_sql::backlog(&mut *self.reader().await?).await
    }
}

#[async_trait]
impl Store for Backend {
    fn erasures(&self) -> Option<&dyn ErasureStore> {
        Some(self)
    }

    fn settings(&self) -> Option<&dyn SettingsStore> {
        Some(self)
    }

    fn queries(&self) -> Option<&dyn QueryStore> {
        Some(self)
    }

    fn ratings(&self) -> Option<&dyn RatingStore> {
        Some(self)
    }

    fn connections(&self) -> Connections {
        self.pool_connections()
    }

    async fn ping(&self) -> Result<()> {
        self.answers().await
    }

    async fn close(&self) {
        self.close_pools().await;
    }
}
