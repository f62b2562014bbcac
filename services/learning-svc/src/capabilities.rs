//! Where the capabilities of a replica are put together, each with the lower ones that it uses.

use std::{fmt, sync::Arc};

use emend_base::{Entropy, Lifecycle, SharedClock};
use learning_store::Store;
use tokio::sync::Notify;

use crate::{
    contests::Contests,
    decisions::{Decisions, Follower},
    erasure::Erasure,
    evidence::Evidence,
    generator::{Generator, embedded::Embedded},
    ingest::Ingest,
    log::Log,
    metrics::LearningMetrics,
    outputs::Outputs,
    policies::Policies,
    profiles::Profiles,
    resources::Resources,
    standings::Standings,
};

/// What the capabilities of a replica are made of.
#[derive(Clone)]
pub struct Parts {
    /// The database.
    pub store: Arc<dyn Store>,
    /// The log follower of this process.
    pub follower: Arc<dyn Follower>,
    /// The time used for deciding.
    pub clock: SharedClock,
    /// Source of ids and jitter.
    pub entropy: Entropy,
    /// Owns what goes on when its caller has gone.
    pub lifecycle: Lifecycle,
    /// What generates texts.
    pub generator: Arc<dyn Generator>,
    /// What they count.
    pub metrics: LearningMetrics,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

impl Parts {
    /// Parts with a lifecycle of their own, which nobody ends, the embedded generator, and metrics that nobody reads.
    pub fn new(
        store: Arc<dyn Store>,
        follower: Arc<dyn Follower>,
        clock: SharedClock,
        entropy: Entropy,
    ) -> Self {
        Self {
            store,
            follower,
            clock,
            entropy,
            lifecycle: Lifecycle::new(),
            generator: Arc::new(Embedded),
            metrics: LearningMetrics::default(),
        }
    }
}

/// The capabilities of one replica. Clones share everything.
#[derive(Debug, Clone)]
pub struct Capabilities {
    /// The database.
    pub store: Arc<dyn Store>,
    /// What decides, for all others.
    pub decisions: Arc<Decisions>,
    /// The review queue.
    pub contests: Contests,
    /// Erasing users.
    pub erasure: Erasure,
    /// The evidence graph.
    pub evidence: Evidence,
    /// Events from feedback-svc.
    pub ingest: Ingest,
    /// The revisions.
    pub log: Log,
    /// Prompts, and what is said of their outputs.
    pub outputs: Outputs,
    /// What it takes to learn something.
    pub policies: Policies,
    /// What users know and want to learn.
    pub profiles: Profiles,
    /// What nodes answer with.
    pub resources: Resources,
    /// What has become of feedbacks.
    pub standings: Standings,
}

impl Capabilities {
    /// Puts them together.
    pub fn new(parts: Parts) -> Self {
        let Parts {
            store,
            follower,
            clock,
            entropy,
            lifecycle,
            generator,
            metrics,
        } = parts;
        let database = || Arc::clone(&store);
        let (policy_changed, rated) = (Arc::<Notify>::default(), Arc::<Notify>::default());
        let mut decisions = Decisions::new(database(), follower, clock, entropy);
        decisions.promotions = metrics.promotions;
        let decisions = Arc::new(decisions);
        let erasure = Erasure::new(database(), Arc::clone(&decisions));
        Self {
            contests: Contests::new(database(), Arc::clone(&decisions), Arc::clone(&policy_changed)),
            evidence: Evidence::new(database(), Arc::clone(&decisions)),
            ingest: Ingest::new(
                database(),
                Arc::clone(&decisions),
                erasure.clone(),
                Arc::clone(&rated),
            ),
            log: Log::new(database(), Arc::clone(&decisions)),
            outputs: Outputs::new(
                database(),
                Arc::clone(&decisions),
                lifecycle.clone(),
                Arc::clone(&generator),
                metrics.generations,
                rated,
            ),
            policies: Policies::new(database(), Arc::clone(&decisions), policy_changed),
            profiles: Profiles::new(database(), Arc::clone(&decisions), generator, metrics.profiles),
            resources: Resources::new(database(), Arc::clone(&decisions), lifecycle),
            standings: Standings::new(database()),
            erasure,
            decisions,
            store,
        }
    }
}
