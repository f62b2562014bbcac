//! The seams of the deterministic simulation: a store in memory, and replicas on it that reach learning-svc through
//! whatever the simulation provides. Everything else in a replica is production code. For tests only.

use std::{fmt, sync::Arc};

use emend_base::{Entropy, Lifecycle, SharedClock, telemetry::metrics::prometheus::Gauge};
use emend_core::{
    AcceptOrder, Caller, Correction, EventId, FeedbackId, InstallationId, Namespace, Reporter, RequestId,
    Scope,
};
use emend_proto::{
    common::v1::Outcome,
    feedback::v1::{
        RetractFeedbackRequest, RetractFeedbackResponse, SubmitFeedbackRequest, SubmitFeedbackResponse,
    },
    learning::v1::{Event, EventResult, FeedbackStandings, GetStandingsRequest},
};
use emend_serve::auth::Access;
use emend_store::simulation::{Interference, NoInterference};
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use prost::Message as _;
use tokio::time::Instant;
use tonic::Status;

use crate::{
    Parts,
    corrections::{config::CommitConfig, grpc::CorrectionRpcs},
    outbox::{Delivered, Delivery, DeliveryError, config::RelayConfig},
    spawn_delivery,
};
pub use feedback_store::memory::Defect;
use feedback_store::{
    memory::MemoryStore,
    records::{feedback::Feedback, outbox::DeliveryState},
};

/// A feedback database in memory. Clones share it.
#[derive(Debug, Clone)]
pub struct Database(MemoryStore);

/// One stored feedback.
#[derive(Debug, Clone)]
pub struct StoredFeedback {
    /// Its id.
    pub id: FeedbackId,
    /// The id of the request that stored it.
    pub request_id: Option<RequestId>,
    /// The search application.
    pub namespace: Namespace,
    /// Who reported it.
    pub reporter: Reporter,
    /// The client that sent it.
    pub caller: Caller,
    /// What was said.
    pub correction: Correction,
    /// For whom it is to be learned.
    pub scope: Scope,
    /// Its position in the order of all feedback.
    pub accept_order: AcceptOrder,
    /// When it was stored.
    pub received_at: Timestamp,
    /// Whether it was retracted.
    pub retracted: bool,
    /// Whether its newest event was delivered.
    pub delivered: bool,
    /// What learning-svc answered last.
    pub outcome: Option<Outcome>,
}

impl Database {
    /// A new, empty database whose time is that of `clock`.
    pub fn new(clock: SharedClock) -> Self {
        Self(MemoryStore::new(clock, Arc::new(NoInterference)))
    }

    /// Gives it a defect from now on.
    pub fn break_on_purpose(&self, defect: Defect) {
        self.0.tables().defect = Some(defect);
    }

    /// Moves its clock, backwards if `step` is negative.
    pub fn step_clock(&self, step: SignedDuration) {
        self.0.step_clock(step);
    }

    /// All feedback, oldest first.
    pub fn feedback(&self) -> Vec<StoredFeedback> {
        self.0.tables().all_feedback().map(kept).collect()
    }

    /// The undelivered events, and whether each is a dead letter.
    pub fn undelivered(&self) -> Vec<(EventId, bool)> {
        self.0.tables().undelivered()
    }

    /// Violations of its invariants: leases granted to two holders, or changed by one that did not hold them.
    pub fn violations(&self) -> Vec<String> {
        self.0.tables().violations.clone()
    }
}

fn kept(feedback: &Feedback) -> StoredFeedback {
    let submission = &feedback.submission;
    let outcome = feedback.outcome.as_ref();
    StoredFeedback {
        id: feedback.id,
        request_id: submission.request_id.clone(),
        namespace: submission.namespace.clone(),
        reporter: submission.reporter.clone(),
        caller: feedback.caller.clone(),
        correction: submission.correction.clone(),
        scope: submission.scope,
        accept_order: feedback.accepted.order,
        received_at: feedback.accepted.at,
        retracted: feedback.retraction.is_some(),
        delivered: feedback.delivery == DeliveryState::Delivered,
        outcome: outcome.and_then(|outcome| Outcome::decode(&*outcome.0).ok()),
    }
}

/// The transport to learning-svc. After an error it is unknown whether the events were applied.
pub trait Learning: Send + Sync + fmt::Debug + 'static {
    /// Sends a batch of events and waits for its results, one per event and in order.
    fn deliver(&self, events: Vec<Event>) -> BoxFuture<'_, Result<Vec<EventResult>, String>>;
}

#[derive(Debug)]
struct LearningTransport(Arc<dyn Learning>);

#[async_trait::async_trait]
impl Delivery for LearningTransport {
    async fn deliver(
        &self,
        events: Vec<Event>,
        _: Option<InstallationId>,
    ) -> Result<Delivered, DeliveryError> {
        let results = self.0.deliver(events).await.map_err(DeliveryError::Unavailable)?;
        Ok(Delivered { results, by: None })
    }

    async fn standings(
        &self,
        _: GetStandingsRequest,
        _: Instant,
    ) -> Result<Vec<FeedbackStandings>, DeliveryError> {
        Err(DeliveryError::Unavailable(
            "the simulation answers no reads".to_owned(),
        ))
    }
}

/// A replica: its handlers, its committer and its relay.
#[derive(Debug)]
pub struct Replica {
    rpcs: CorrectionRpcs,
    lifecycle: Lifecycle,
}

impl Replica {
    /// Starts a replica.
    pub fn start(
        database: &Database,
        interference: Arc<dyn Interference>,
        learning: Arc<dyn Learning>,
        relay: RelayConfig,
        clock: SharedClock,
        entropy: &Entropy,
    ) -> Self {
        let lifecycle = Lifecycle::new();
        let Parts {
            rpcs,
            commits,
            relay: worker,
            ..
        } = Parts::assemble(
            Arc::new(database.0.connect(interference)),
            Arc::new(LearningTransport(learning)),
            (CommitConfig::default(), relay),
            &lifecycle,
            clock,
            entropy,
            Gauge::default(),
        );
        spawn_delivery(commits, &worker, relay, &lifecycle);
        Self { rpcs, lifecycle }
    }

    /// Calls the handler as gRPC does.
    pub async fn submit(&self, request: SubmitFeedbackRequest) -> Result<SubmitFeedbackResponse, Status> {
        let rpcs = self.rpcs.clone();
        Ok(rpcs
            .submit_feedback(Access::open().request(request))
            .await?
            .into_inner())
    }

    /// Calls the handler as gRPC does.
    pub async fn retract(&self, request: RetractFeedbackRequest) -> Result<RetractFeedbackResponse, Status> {
        let rpcs = self.rpcs.clone();
        Ok(rpcs
            .retract_feedback(Access::open().request(request))
            .await?
            .into_inner())
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
