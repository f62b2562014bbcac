//! The update stream and the read model: what subscribers and readers see of the log.
//!
//! One mechanism serves live, catching-up, slow and resumed subscribers: "what changed since" over immutable states.
//!
//! * [`tailer`] follows the log and publishes one [`state`] after another to the [`audience`]s. It waits for no
//!   subscriber.
//! * [`session`] is one subscriber: when woken, it reads from its own cursor. [`opening`] decides where it begins,
//!   [`batches`] and [`transfer`] cut what it sends, [`budget`] bounds the encoded bytes held, [`encode`] writes the
//!   wire format, and [`filter`] selects what it sees.
//! * [`retention`] drops what is too old. [`grpc`] is the service; [`crate::nodes`] tracks the fleet.
//!
//! # Invariants
//! 1. A state is complete at one revision and never changes.
//! 2. A notification carries no data. A stream reads from its own cursor, which moves only with what it hands out.
//! 3. Publishing never waits for a subscriber, and a subscriber has no queue.
//! 4. A subscriber that changes alone can't bring up to date (another epoch, forgotten deletions, another filter) gets
//!    a snapshot that says why.

pub mod audience;
pub mod batches;
pub mod budget;
pub mod encode;
pub mod filter;
pub mod grpc;
pub mod listeners;
pub mod metrics;
pub mod opening;
pub mod retention;
pub mod session;
pub mod settings;
pub mod state;
pub mod tailer;
#[cfg(test)]
pub(crate) mod testing;
pub mod transfer;
mod workers;

use std::{sync::Arc, time::Duration};

use emend_base::{Entropy, Error, Lifecycle, SharedClock};
use emend_core::{Caller, NodeId};
use emend_proto::learning::v1 as pb;
use emend_serve::{auth::Access, fair_semaphore::ClientKey, health::Readiness};
use emend_store::postgres::PgWake;
use emend_store::{CorruptRow, StoreError};
use jiff::SignedDuration;
use tokio::{
    sync::{Notify, Semaphore, watch},
    time::{Instant, timeout_at},
};

use self::{
    audience::Audiences,
    budget::Budget,
    filter::Filter,
    session::{Client, Common},
    transfer::TransferPermits,
};
use crate::store::Store;
pub use crate::{
    nodes::Nodes,
    stream::{
        opening::Cursor, retention::Retention, session::Session, settings::Settings, state::ReplicaState,
        tailer::Tailer,
    },
};

/// Nodes not heard from within this time are not counted as part of the fleet.
pub const NODES_SEEN_WITHIN: SignedDuration = SignedDuration::from_hours(24);

/// What wakes the tailer, besides commits in this process and a timer.
#[derive(Debug, Clone, Default)]
pub struct Wake(Option<PgWake>);

impl Wake {
    /// For a database that only this process writes to.
    pub fn local() -> Self {
        Self(None)
    }

    /// For a database shared with other replicas, whose commits notify.
    pub fn notified(wake: PgWake) -> Self {
        Self(Some(wake))
    }

    async fn woken(&mut self) {
        match &mut self.0 {
            Some(wake) => wake.woken().await,
            None => std::future::pending().await,
        }
    }
}

/// A parsed `SubscribeRequest` and its sender.
#[derive(Debug, Clone)]
pub struct Subscription {
    /// The subscribing node.
    pub node_id: NodeId,
    /// The authenticated client.
    pub caller: Caller,
    /// The client that the permits for its snapshots and long updates count towards.
    pub client: ClientKey,
    /// What the client may do, and whether that still holds.
    pub access: Access,
    /// What the node says about itself.
    pub info: pb::NodeInfo,
    /// What it sees, after authorization.
    pub filter: Filter,
    /// How far the node has applied; none if it starts from nothing.
    pub cursor: Option<Cursor>,
    /// The time between bookmarks while nothing changes.
    pub bookmark_interval: Duration,
    /// At most this many bytes of encoded resources in one message; a larger resource is sent alone.
    pub max_batch_bytes: usize,
}

/// The update stream and the read model of one replica. Clones share it.
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    common: Arc<Common>,
    nodes: Nodes,
    /// Bounds the number of streams.
    room: Arc<Semaphore>,
    settings: Settings,
    woken: Notify,
    ready: watch::Sender<bool>,
}

impl Stream {
    /// Starts following the log in `lifecycle`. Returns at once; ready when state and log are loaded.
    pub fn start(
        store: Arc<dyn Store>,
        wake: Wake,
        settings: Settings,
        clock: SharedClock,
        entropy: Entropy,
        lifecycle: &Lifecycle,
    ) -> Self {
        let stream = Self::new(store, settings, clock, entropy);
        workers::spawn(&stream, wake, lifecycle);
        stream
    }

    /// A stream whose workers are stepped by hand.
    pub fn new(store: Arc<dyn Store>, settings: Settings, clock: SharedClock, entropy: Entropy) -> Self {
        let replica = entropy.uuid_v4().to_string();
        let nodes = Nodes::new(
            Arc::clone(&store),
            &replica,
            settings.node_connected_within,
            settings.max_wait,
            settings.node_metrics.clone(),
        );
        let common = Common {
            metrics: settings.metrics.clone(),
            audiences: Arc::new(Audiences::new(Budget::of(settings.encoded_bytes))),
            permits: TransferPermits::new(settings.transfers, settings.transfer_pace),
            clock,
            entropy,
            max_stream_age: settings.max_stream_age,
            max_reconnect_delay: settings.max_reconnect_delay,
        };
        Self(Arc::new(Inner {
            store,
            common: Arc::new(common),
            nodes,
            room: Arc::new(Semaphore::new(
                settings.max_streams.clamp(1, Semaphore::MAX_PERMITS),
            )),
            settings,
            woken: Notify::new(),
            ready: watch::Sender::new(false),
        }))
    }

    /// The worker that follows the log.
    pub fn tailer(&self) -> Tailer {
        Tailer::new(
            Arc::clone(&self.0.store),
            Arc::clone(&self.0.common.audiences),
            self.0.common.entropy.clone(),
            self.0.settings.page_size,
        )
    }

    /// The worker that drops old tombstones and nodes.
    pub fn retention(&self) -> Retention {
        Retention::new(Arc::clone(&self.0.store), self.0.settings.clone())
    }

    /// The fleet.
    pub fn nodes(&self) -> &Nodes {
        &self.0.nodes
    }

    /// The number of streams open on this replica.
    pub fn subscribers(&self) -> usize {
        let Inner { settings, room, .. } = &*self.0;
        let all = settings.max_streams.clamp(1, Semaphore::MAX_PERMITS);
        all.saturating_sub(room.available_permits())
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Signals a commit. Cheap, never waits.
    pub fn wake(&self) {
        self.0.woken.notify_one();
    }

    /// Whether state and log are loaded and being followed.
    pub fn is_ready(&self) -> bool {
        *self.0.ready.borrow()
    }

    /// Watches [`Stream::is_ready`].
    pub fn readiness(&self) -> watch::Receiver<bool> {
        self.0.ready.subscribe()
    }

    /// Reports [`Stream::is_ready`] as a check, for as long as `lifecycle` runs, and as another whether it ever was: from then on
    /// there is something to serve.
    pub fn report_readiness(
        &self,
        readiness: Readiness,
        check: &'static str,
        loaded: &'static str,
        lifecycle: &Lifecycle,
    ) {
        let (mut ready, soft) = (self.readiness(), lifecycle.soft().clone());
        lifecycle.spawn("report the stream's readiness", async move {
            loop {
                let is_ready = *ready.borrow_and_update();
                readiness.set(check, is_ready);
                if is_ready {
                    readiness.set(loaded, true);
                }
                tokio::select! {
                    () = soft.cancelled() => return,
                    changed = ready.changed() => if changed.is_err() { return },
                }
            }
        });
    }

    /// The newest state. UNAVAILABLE before the first is loaded.
    pub fn state(&self) -> Result<Arc<ReplicaState>, Error> {
        self.0.common.audiences.state().ok_or_else(not_loaded)
    }

    /// How long ago the log was last read to its end, so how old [`Stream::state`] may be.
    pub fn age(&self) -> Duration {
        self.0.common.audiences.confirmed().elapsed()
    }

    /// A state at least as new as `revision`. Waits until `deadline`, at most [`Settings::max_wait`], then UNAVAILABLE
    /// with `RetryInfo`.
    pub async fn wait_for(
        &self,
        revision: i64,
        deadline: Option<Instant>,
    ) -> Result<Arc<ReplicaState>, Error> {
        self.wait_until(move |state| state.revision() >= revision, deadline)
            .await
    }

    /// A state for which `is_enough` holds; otherwise like [`Stream::wait_for`].
    pub(crate) async fn wait_until(
        &self,
        is_enough: impl Fn(&ReplicaState) -> bool,
        deadline: Option<Instant>,
    ) -> Result<Arc<ReplicaState>, Error> {
        let latest = Instant::now() + self.0.settings.max_wait;
        let deadline = deadline.map_or(latest, |deadline| deadline.min(latest));
        let mut states = self.0.common.audiences.follow();
        let found = timeout_at(
            deadline,
            states.wait_for(|state| state.as_ref().is_some_and(|state| is_enough(state))),
        )
        .await;
        match found {
            Ok(Ok(state)) => state.clone().ok_or_else(not_loaded),
            // Only the timeout is real: the sender lives as long as `self`.
            Ok(Err(_)) | Err(_) => Err(match self.0.common.audiences.state() {
                Some(_) => Error::unavailable(
                    "REPLICA_BEHIND",
                    "this replica has not seen that revision yet; try again",
                ),
                None => not_loaded(),
            }),
        }
    }

    /// Opens a stream. UNAVAILABLE if the replica has not loaded the log, stays behind the cursor, or is at its limit
    /// of streams.
    pub async fn subscribe(&self, subscription: Subscription) -> Result<Session, Error> {
        let Inner {
            common, nodes, room, ..
        } = &*self.0;
        let place = Arc::clone(room).try_acquire_owned().map_err(|_| {
            Error::unavailable(
                "TOO_MANY_STREAMS",
                "this replica has its maximum number of streams; try another",
            )
        })?;
        let filter_hash = subscription.filter.hash();
        let start = opening::start(self, subscription.cursor, filter_hash).await?;
        let audience = common
            .audiences
            .join(subscription.filter, subscription.max_batch_bytes);
        let open = nodes.open(subscription.caller, subscription.node_id, &subscription.info);
        Ok(Session::new(
            Arc::clone(common),
            audience,
            start,
            subscription.bookmark_interval,
            open,
            Client {
                client: subscription.client,
                access: subscription.access,
            },
            place,
        ))
    }

    fn store(&self) -> &dyn Store {
        &*self.0.store
    }
}

fn not_loaded() -> Error {
    Error::unavailable("NOT_LOADED", "this replica is still loading its state; try again")
}

/// The error that a stored value can't be read.
pub(crate) fn corrupt(entry: &state::Entry, reason: &str) -> Error {
    let id = format!("{}/{}/{}", entry.group.namespace, entry.group.kind, entry.key);
    StoreError::from(CorruptRow::new("resources", "value", id, reason)).into()
}
