//! The update stream and the read model: what subscribers and readers see of the log.
//!
//! States and sessions are [`emend_stream`]'s; here is the source of the states, which is the database.
//!
//! [`tailer`] follows the log and publishes one state after another. [`retention`] drops what is too old. [`grpc`] is the
//! service; [`crate::nodes`] tracks the fleet.

pub mod grpc;
pub mod retention;
pub mod settings;
pub mod tailer;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod workers;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use emend_base::{Entropy, Error, Lifecycle, SharedClock};
use emend_core::{Caller, NodeId};
use emend_proto::learning::v1 as pb;
use emend_serve::health::Readiness;
use emend_store::{CorruptRow, StoreError, postgres::PgWake};
use emend_stream::{
    Source, Streams,
    log::Head,
    session,
    state::{Entry, ReplicaState},
};
use jiff::SignedDuration;
use learning_store::Store;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

pub use self::{retention::Retention, settings::Settings, tailer::Tailer};
use crate::nodes::{Nodes, OpenStream};

/// A node's stream of messages.
pub type Session = session::Session<OpenStream>;

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

    /// Waits for the next commit of another replica; for ever where there is none.
    pub(crate) async fn woken(&mut self) {
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
    /// What the node says about itself.
    pub info: pb::NodeInfo,
    /// The stream that it asks for.
    pub stream: emend_stream::Subscription,
}

/// The database as the source of states.
struct Database {
    store: Arc<dyn Store>,
    /// Wakes the worker that follows the log.
    woken: Notify,
}

#[async_trait]
impl Source for Database {
    async fn head(&self) -> Result<Head, Error> {
        Ok(self.store.head().await?)
    }

    fn wake(&self) {
        self.woken.notify_one();
    }
}

/// The update stream and the read model of one replica. Clones share it.
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

struct Inner {
    streams: Streams<Database>,
    nodes: Nodes,
    settings: Settings,
    entropy: Entropy,
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
        let source = Database {
            store,
            woken: Notify::new(),
        };
        Self(Arc::new(Inner {
            streams: Streams::new(source, settings.of_streams(), clock, entropy.clone()),
            nodes,
            settings,
            entropy,
            ready: watch::Sender::new(false),
        }))
    }

    /// The worker that follows the log.
    pub fn tailer(&self) -> Tailer {
        Tailer::new(
            Arc::clone(self.store()),
            Arc::clone(self.0.streams.audiences()),
            self.0.entropy.clone(),
            self.0.settings.page_size,
        )
    }

    /// The worker that drops old tombstones and nodes.
    pub fn retention(&self) -> Retention {
        Retention::new(Arc::clone(self.store()), self.0.settings.clone())
    }

    /// The fleet.
    pub fn nodes(&self) -> &Nodes {
        &self.0.nodes
    }

    /// The number of streams open on this replica.
    pub fn subscribers(&self) -> usize {
        self.0.streams.subscribers()
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Signals a commit. Cheap, never waits.
    pub fn wake(&self) {
        self.0.streams.source().wake();
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
        self.0.streams.state()
    }

    /// How long ago the log was last read to its end, so how old [`Stream::state`] may be.
    pub fn age(&self) -> Duration {
        self.0.streams.audiences().confirmed().elapsed()
    }

    /// A state at least as new as `revision`. Waits until `deadline`, at most [`Settings::max_wait`], then UNAVAILABLE
    /// with `RetryInfo`.
    pub async fn wait_for(
        &self,
        revision: i64,
        deadline: Option<Instant>,
    ) -> Result<Arc<ReplicaState>, Error> {
        let is_enough = move |state: &ReplicaState| state.revision() >= revision;
        self.0.streams.wait_until(is_enough, deadline).await
    }

    /// Opens a stream. UNAVAILABLE if the replica has not loaded the log, stays behind the cursor, or is at its limit
    /// of streams.
    pub async fn subscribe(&self, subscription: Subscription) -> Result<Session, Error> {
        let Subscription {
            node_id,
            caller,
            info,
            stream,
        } = subscription;
        let open = || self.0.nodes.open(caller, node_id, &info);
        self.0.streams.subscribe(stream, open).await
    }

    fn store(&self) -> &Arc<dyn Store> {
        &self.0.streams.source().store
    }
}

/// The error that a stored value can't be read.
pub(crate) fn corrupt(entry: &Entry, reason: &str) -> Error {
    let id = format!("{}/{}/{}", entry.group.namespace, entry.group.kind, entry.key);
    StoreError::from(CorruptRow::new("resources", "value", id, reason)).into()
}
