//! The store in memory, for tests only: it fulfils the same contract as the databases, without their threads, so that
//! the deterministic simulation can decide what happens when.
//!
//! Every call is one atomic step. Before and after it, an [`Interference`] may let time pass, fail the call, or lose
//! its answer; a call that is dropped in between has had all of its effect or none.

mod outbox;
mod tables;

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use emend_base::SharedClock;
use emend_core::{AcceptOrder, Caller, EventId, FeedbackId, InstallationId, Namespace};
use emend_store::{
    Connections, StoreError,
    simulation::{Interference, unavailable},
};
use jiff::SignedDuration;

use crate::{
    memory::tables::{Tables, micros},
    ports::{
        Backlog, Claimed, Connected, CorrectionStore, Inserted, InstallationState, InstallationStore,
        OutboxStore, ReadSettings, Retracted, Settlement,
    },
    records::{
        feedback::{Feedback, FeedbackQuery, NewFeedback, NewRetraction, RepeatedRequest},
        outbox::{DeadLetter, DeadLetterQuery, Lease, LeaseHolder, LeaseToken},
        ratings::RatingState,
        settings::Settings,
    },
};

/// A deliberate bug in the store, to check that the simulation notices it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Defect {
    /// Feedback in a group of several is acknowledged but not stored.
    AcknowledgesUnstored,
    /// A repeated request is stored again.
    ForgetsRequestIds,
    /// A failed delivery counts even if its lease has passed to another worker.
    IgnoresTokens,
    /// Events are claimed while they are leased to somebody else.
    IgnoresLeases,
    /// A failed event is never due again.
    NeverRetries,
}

/// One connection to a store in memory. Clones share it.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
    interference: Arc<dyn Interference>,
    closed: Arc<AtomicBool>,
}

struct Shared {
    clock: SharedClock,
    tables: Mutex<Tables>,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// A new, empty store whose time is that of `clock`.
    pub fn new(clock: SharedClock, interference: Arc<dyn Interference>) -> Self {
        Self {
            shared: Arc::new(Shared {
                clock,
                tables: Mutex::default(),
            }),
            interference,
            closed: Arc::default(),
        }
    }

    /// Another connection to the same store.
    #[must_use]
    pub fn connect(&self, interference: Arc<dyn Interference>) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            interference,
            closed: Arc::default(),
        }
    }

    /// Moves the store's clock relative to the one it takes its time from, backwards if `step` is negative.
    pub fn step_clock(&self, step: SignedDuration) {
        self.tables().clock_offset += i64::try_from(step.as_micros()).unwrap_or(0);
    }

    /// The contents, bypassing the interference.
    pub fn tables(&self) -> MutexGuard<'_, Tables> {
        let mut tables = self.shared.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.now = self.shared.clock.now().as_microsecond() + tables.clock_offset;
        tables
    }

    async fn call<T>(
        &self,
        name: &'static str,
        step: impl FnOnce(&mut Tables) -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError> {
        self.interference.before(name).await?;
        if self.closed.load(Ordering::SeqCst) {
            return Err(unavailable());
        }
        let answer = step(&mut self.tables())?;
        self.interference.after(name).await?;
        Ok(answer)
    }
}

#[async_trait]
impl CorrectionStore for MemoryStore {
    async fn insert(
        &self,
        group: &[NewFeedback],
        lease: Option<Lease>,
    ) -> Result<Vec<Result<Inserted, StoreError>>, StoreError> {
        self.call("insert", |tables| tables.insert(group, lease)).await
    }

    async fn stored_as(
        &self,
        caller: &Caller,
        request: &RepeatedRequest,
    ) -> Result<Option<FeedbackId>, StoreError> {
        self.call("stored_as", |tables| Ok(tables.stored_as(caller, request)))
            .await
    }

    async fn feedback(&self, namespace: &Namespace, id: FeedbackId) -> Result<Option<Feedback>, StoreError> {
        self.call("feedback", |tables| Ok(tables.feedback(namespace, id)))
            .await
    }

    async fn list(&self, query: &FeedbackQuery) -> Result<Vec<Feedback>, StoreError> {
        self.call("list", |tables| Ok(tables.list(query))).await
    }

    async fn rating_states(
        &self,
        orders: &[AcceptOrder],
    ) -> Result<HashMap<AcceptOrder, RatingState>, StoreError> {
        self.call("rating_states", |tables| Ok(tables.rating_states(orders)))
            .await
    }

    async fn retract(
        &self,
        retraction: &NewRetraction,
        lease: Option<Lease>,
    ) -> Result<Retracted, StoreError> {
        self.call("retract", |tables| tables.retract(retraction, lease))
            .await
    }

    async fn prune_request_ids(&self, retention: Duration, limit: u32) -> Result<u64, StoreError> {
        self.call("prune_request_ids", |tables| {
            Ok(tables.prune_request_ids(micros(retention), limit))
        })
        .await
    }
}

#[async_trait]
impl OutboxStore for MemoryStore {
    async fn claim(&self, limit: u32, lease: Lease) -> Result<Vec<Claimed>, StoreError> {
        self.call("claim", |tables| Ok(tables.claim(limit, lease))).await
    }

    async fn release_abandoned(&self, _: LeaseHolder) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn still_leased(&self, leases: &[(EventId, LeaseToken)]) -> Result<Vec<EventId>, StoreError> {
        self.call("still_leased", |tables| Ok(tables.still_leased(leases)))
            .await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<(), StoreError> {
        self.call("settle", |tables| {
            tables.settle(settlements);
            Ok(())
        })
        .await
    }

    async fn dead_letters(&self, query: &DeadLetterQuery) -> Result<Vec<DeadLetter>, StoreError> {
        self.call("dead_letters", |tables| Ok(tables.dead_letters(query)))
            .await
    }

    async fn redrive(&self, events: &[EventId], namespace: Option<&Namespace>) -> Result<u64, StoreError> {
        self.call("redrive", |tables| Ok(tables.redrive(events, namespace)))
            .await
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        self.call("backlog", |tables| Ok(tables.backlog())).await
    }
}

#[async_trait]
impl InstallationStore for MemoryStore {
    async fn installation(&self) -> Result<Option<InstallationState>, StoreError> {
        self.call("installation", |tables| Ok(tables.installation)).await
    }

    async fn begin(&self) -> Result<(), StoreError> {
        self.call("begin", |tables| {
            tables
                .installation
                .get_or_insert(InstallationState { delivers_to: None });
            Ok(())
        })
        .await
    }

    async fn deliver_to(&self, installation: InstallationId) -> Result<InstallationId, StoreError> {
        self.call("deliver_to", |tables| {
            let begun = tables
                .installation
                .get_or_insert(InstallationState { delivers_to: None });
            Ok(*begun.delivers_to.get_or_insert(installation))
        })
        .await
    }

    async fn accept(&self, installation: InstallationId) -> Result<(), StoreError> {
        self.call("accept", |tables| {
            let delivers_to = Some(installation);
            tables.installation = Some(InstallationState { delivers_to });
            Ok(())
        })
        .await
    }
}

#[async_trait]
impl ReadSettings for MemoryStore {
    /// Nobody has set any.
    async fn settings(&self, _: &Namespace) -> Result<Option<Settings>, StoreError> {
        self.call("settings", |_| Ok(None)).await
    }
}

#[async_trait]
impl Connected for MemoryStore {
    fn connections(&self) -> Connections {
        Connections::default()
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.call("ping", |_| Ok(())).await
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }
}
