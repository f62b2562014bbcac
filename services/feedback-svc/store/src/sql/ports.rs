//! The ports of corrections and of the outbox.

use std::{collections::HashMap, time::Duration};

use async_trait::async_trait;
use emend_core::{AcceptOrder, Caller, EventId, FeedbackId, Namespace};
use emend_store::{Connections, StoreError, retry_conflicts};

use super::{
    SqlStore,
    ledger::{self, Columns},
    outbox, ratings,
};
use crate::{
    fail_points,
    ports::{Backlog, Claimed, Connected, CorrectionStore, Inserted, OutboxStore, Retracted, Settlement},
    records::{
        feedback::{Feedback, FeedbackQuery, NewFeedback, NewRetraction, RepeatedRequest},
        outbox::{DeadLetter, DeadLetterQuery, Lease, LeaseHolder, LeaseToken},
        ratings::RatingState,
    },
};

type Result<T> = std::result::Result<T, StoreError>;

impl SqlStore {
    /// Releases all leases; returns how many. To be called by whoever has a file to itself, before it serves: they belong to
    /// processes that have ended, so a start after a kill need not wait for them to expire.
    pub async fn release_leases(&self) -> Result<u64> {
        outbox::release_all(&mut self.pools.writer().await?).await
    }

    async fn retract_once(&self, retraction: &NewRetraction, lease: Option<Lease>) -> Result<Retracted> {
        let mut transaction = self.pools.begin_write().await?;
        let retracted = ledger::retract(&mut transaction, retraction, lease).await?;
        fail_points::RETRACTION_WRITTEN.pass();
        transaction.commit().await?;
        Ok(retracted)
    }

    async fn settle_once(&self, settlements: &[Settlement]) -> Result<()> {
        let mut transaction = self.pools.begin_write().await?;
        outbox::settle(&mut transaction, settlements).await?;
        fail_points::BATCH_WRITTEN.pass();
        transaction.commit().await
    }

    async fn redrive_once(&self, events: &[EventId], namespace: Option<&Namespace>) -> Result<u64> {
        let mut transaction = self.pools.begin_write().await?;
        let redriven = outbox::redrive(&mut transaction, events, namespace).await?;
        transaction.commit().await?;
        Ok(redriven)
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
impl CorrectionStore for SqlStore {
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
        let mut reader = self.pools.reader().await?;
        let found = ledger::replay(&mut reader, namespace, caller, *hash, request_id.as_str()).await?;
        Ok(match found {
            Some(Inserted::Replayed(id)) => Some(id),
            Some(Inserted::Stored(_) | Inserted::RequestIdReused | Inserted::TooOften(_)) | None => None,
        })
    }

    async fn feedback(&self, namespace: &Namespace, id: FeedbackId) -> Result<Option<Feedback>> {
        let row = ledger::feedback(&mut self.pools.reader().await?, namespace, id).await?;
        Ok(row.map(Feedback::try_from).transpose()?)
    }

    async fn list(&self, query: &FeedbackQuery) -> Result<Vec<Feedback>> {
        parsed(ledger::list(&mut self.lister(query.is_wide()).await?, query).await?)
    }

    async fn rating_states(&self, orders: &[AcceptOrder]) -> Result<HashMap<AcceptOrder, RatingState>> {
        ratings::states(&mut self.pools.reader().await?, orders).await
    }

    async fn retract(&self, retraction: &NewRetraction, lease: Option<Lease>) -> Result<Retracted> {
        retry_conflicts(&self.entropy, || self.retract_once(retraction, lease)).await
    }

    async fn prune_request_ids(&self, retention: Duration, limit: u32) -> Result<u64> {
        retry_conflicts(&self.entropy, async || {
            ledger::prune_request_ids(&mut self.pools.writer().await?, retention, limit).await
        })
        .await
    }
}

#[async_trait]
impl OutboxStore for SqlStore {
    async fn claim(&self, limit: u32, lease: Lease) -> Result<Vec<Claimed>> {
        let claimed = retry_conflicts(&self.entropy, async || {
            outbox::claim(&mut self.pools.writer().await?, limit, lease).await
        });
        parsed(claimed.await?)
    }

    async fn release_abandoned(&self, holder: LeaseHolder) -> Result<u64> {
        let Some(replicas) = &self.replicas else {
            return Ok(0);
        };
        let mut replicas = replicas.lock().await;
        let Some(living) = replicas.look(holder).await? else {
            return Ok(0);
        };
        let released = async { outbox::release_others(&mut self.pools.writer().await?, living).await };
        let released = released.await;
        if released.is_err() {
            replicas.start_over();
        }
        released
    }

    async fn still_leased(&self, leases: &[(EventId, LeaseToken)]) -> Result<Vec<EventId>> {
        outbox::still_leased(&mut self.pools.reader().await?, leases).await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<()> {
        retry_conflicts(&self.entropy, || self.settle_once(settlements)).await
    }

    async fn dead_letters(&self, query: &DeadLetterQuery) -> Result<Vec<DeadLetter>> {
        let mut lister = self.lister(query.namespace.is_some()).await?;
        parsed(outbox::dead_letters(&mut lister, query).await?)
    }

    async fn redrive(&self, events: &[EventId], namespace: Option<&Namespace>) -> Result<u64> {
        retry_conflicts(&self.entropy, || self.redrive_once(events, namespace)).await
    }

    async fn backlog(&self) -> Result<Backlog> {
        outbox::backlog(&mut self.pools.reader().await?).await
    }
}

#[async_trait]
impl Connected for SqlStore {
    fn connections(&self) -> Connections {
        self.pools.connections()
    }

    async fn ping(&self) -> Result<()> {
        self.pools.ping().await
    }

    async fn close(&self) {
        if let Some(replicas) = &self.replicas {
            replicas.lock().await.leave();
        }
        self.pools.close().await;
    }
}
