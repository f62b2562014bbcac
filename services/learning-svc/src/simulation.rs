//! The seams of the deterministic simulation: replicas on a [store in memory](learning_store::memory), called as gRPC
//! calls them, without sockets. Everything else in a replica is what runs in production. For tests only.

use std::sync::Arc;

use emend_base::{Entropy, Lifecycle, SharedClock};
use emend_proto::{
    frame::Frame,
    learning::{
        encoded::subscription_service_server::SubscriptionService as _,
        v1::{IngestRequest, IngestResponse, ReportStatusRequest, SubscribeRequest},
    },
};
use emend_serve::auth::Access;
use futures::stream::BoxStream;
use learning_store::memory::MemoryStore;
use tonic::Status;

use crate::{
    capabilities::{CoreCapabilities, Parts},
    ingest::{grpc::IngestHandler, queue::IngestQueue},
    stream::{Settings, Stream, Wake, grpc::Subscriptions},
};

/// A replica: its ingest queue, its use cases and its stream, with all their workers.
#[derive(Clone)]
pub struct Replica {
    capabilities: CoreCapabilities,
    stream: Stream,
    ingest: IngestHandler,
    subscriptions: Subscriptions,
    lifecycle: Lifecycle,
}

impl std::fmt::Debug for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replica").finish_non_exhaustive()
    }
}

impl Replica {
    /// Starts a replica on a connection to a store that has a head; `workers` groups of events are applied concurrently.
    pub fn start(
        store: MemoryStore,
        workers: usize,
        settings: Settings,
        clock: &SharedClock,
        entropy: &Entropy,
    ) -> Self {
        let lifecycle = Lifecycle::new();
        let installation = store.installation();
        let store = Arc::new(store);
        let stream = Stream::start(
            Arc::clone(&store) as _,
            Wake::local(),
            settings,
            Arc::clone(clock),
            entropy.clone(),
            &lifecycle,
        );
        let mut parts = Parts::new(
            Arc::clone(&store) as _,
            Arc::new(stream.clone()),
            Arc::clone(clock),
            entropy.clone(),
        );
        parts.lifecycle = lifecycle.clone();
        let capabilities = CoreCapabilities::new(parts);
        let queue = IngestQueue::start(&capabilities.ingest, workers, &lifecycle);
        lifecycle.spawn(
            "evaluate anew",
            capabilities
                .contests
                .clone()
                .reevaluate_until_stopped(lifecycle.clone(), |_| ()),
        );
        Self {
            ingest: IngestHandler::new(
                queue,
                capabilities.standings.clone(),
                installation,
                lifecycle.soft().clone(),
            ),
            subscriptions: Subscriptions::new(stream.clone()),
            capabilities,
            stream,
            lifecycle,
        }
    }

    /// Ingests one batch of a stream.
    pub async fn ingest(&self, request: IngestRequest) -> Result<IngestResponse, Status> {
        self.ingest.clone().batch(Access::open(), Ok(request)).await
    }

    /// Opens a stream of messages as they go on the wire.
    pub async fn subscribe(
        &self,
        request: SubscribeRequest,
    ) -> Result<BoxStream<'static, Result<Frame, Status>>, Status> {
        Ok(self
            .subscriptions
            .subscribe(Access::open().request(request))
            .await?
            .into_inner())
    }

    /// Takes a node's status report.
    pub async fn report(&self, request: ReportStatusRequest) -> Result<(), Status> {
        self.subscriptions
            .report_status(Access::open().request(request))
            .await
            .map(|_| ())
    }

    /// Signals that another replica has committed revisions.
    pub fn notify(&self) {
        self.stream.wake();
    }

    /// Its use cases.
    pub fn capabilities(&self) -> &CoreCapabilities {
        &self.capabilities
    }

    /// Its update stream.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Asks it to stop gracefully, like a process that got SIGTERM. [Kill](Replica::kill) it some time later.
    pub fn stop(&self) {
        self.lifecycle.soft().cancel();
    }

    /// Ends it wherever it is, like a killed process.
    pub fn kill(&self) {
        self.lifecycle.hard().cancel();
    }

    /// Why it gave up by itself, if it did.
    pub fn failure(&self) -> Option<String> {
        self.lifecycle.failure().map(ToOwned::to_owned)
    }
}
