//! Where the capabilities of a replica are put together, each with the lower ones that it uses.

use std::{fmt, sync::Arc};

use emend_base::{Entropy, Lifecycle, SharedClock};
use learning_store::{Database, Store};
use tokio::sync::Notify;

use crate::{
    contests::{Contests, queue::ReviewQueue},
    decisions::{Decisions, Follower},
    erasure::Erasure,
    evidence::Evidence,
    generator::{Generator, embedded::Embedded},
    ingest::Ingest,
    log::Log,
    metrics::LearningMetrics,
    outputs::Outputs,
    policies::{Policies, namespaces::Namespaces},
    profiles::Profiles,
    resources::{Resources, import::Imports},
    standings::Standings,
};

/// What the capabilities of a replica are made of; `S` is what stores for them.
pub struct Parts<S: ?Sized = dyn Database> {
    /// The database.
    pub store: Arc<S>,
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

impl<S: ?Sized> fmt::Debug for Parts<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

impl<S: ?Sized> Clone for Parts<S> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            follower: Arc::clone(&self.follower),
            clock: Arc::clone(&self.clock),
            entropy: self.entropy.clone(),
            lifecycle: self.lifecycle.clone(),
            generator: Arc::clone(&self.generator),
            metrics: self.metrics.clone(),
        }
    }
}

impl<S: ?Sized> Parts<S> {
    /// Parts with a lifecycle of their own, which nobody ends, the embedded generator, and metrics that nobody reads.
    pub fn new(store: Arc<S>, follower: Arc<dyn Follower>, clock: SharedClock, entropy: Entropy) -> Self {
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

/// The capabilities that need no more than a [`Store`]: what ingests corrections and decides.
#[derive(Debug, Clone)]
pub struct CoreCapabilities {
    /// What decides, for all others.
    pub decisions: Arc<Decisions>,
    /// The review queue.
    pub contests: Contests,
    /// Erasing users.
    pub erasure: Erasure,
    /// Events from feedback-svc.
    pub ingest: Ingest,
    /// The revisions.
    pub log: Log,
    /// What it takes to learn something.
    pub policies: Policies,
    /// What nodes answer with.
    pub resources: Resources,
    /// What has become of feedbacks.
    pub standings: Standings,
}

impl CoreCapabilities {
    /// Puts them together.
    pub fn new(parts: Parts<dyn Store>) -> Self {
        let store = || Arc::clone(&parts.store);
        let mut decisions = Decisions::new(store(), parts.follower, parts.clock, parts.entropy);
        decisions.promotions = parts.metrics.promotions;
        let decisions = Arc::new(decisions);
        let policy_changed = Arc::<Notify>::default();
        let erasure = Erasure::new(store(), Arc::clone(&decisions));
        Self {
            contests: Contests::new(store(), Arc::clone(&decisions), Arc::clone(&policy_changed)),
            ingest: Ingest::new(store(), Arc::clone(&decisions), erasure.clone()),
            log: Log::new(store(), Arc::clone(&decisions)),
            policies: Policies::new(store(), Arc::clone(&decisions), policy_changed),
            resources: Resources::new(store(), Arc::clone(&decisions), parts.lifecycle),
            standings: Standings::new(store()),
            erasure,
            decisions,
        }
    }
}

/// The capabilities of one replica. Clones share everything.
#[derive(Debug, Clone)]
pub struct Capabilities {
    /// The database.
    pub store: Arc<dyn Database>,
    /// What decides, for all others.
    pub decisions: Arc<Decisions>,
    /// The review queue.
    pub contests: Contests,
    /// Erasing users.
    pub erasure: Erasure,
    /// The evidence graph.
    pub evidence: Evidence,
    /// Many resources at once.
    pub imports: Imports,
    /// Events from feedback-svc.
    pub ingest: Ingest,
    /// The revisions.
    pub log: Log,
    /// What holds for namespaces as a whole.
    pub namespaces: Namespaces,
    /// Prompts, and what is said of their outputs.
    pub outputs: Outputs,
    /// What it takes to learn something.
    pub policies: Policies,
    /// What users know and want to learn.
    pub profiles: Profiles,
    /// The review queue, as its reviewers see it.
    pub queue: ReviewQueue,
    /// What nodes answer with.
    pub resources: Resources,
    /// What has become of feedbacks.
    pub standings: Standings,
}

impl Capabilities {
    /// Puts them together.
    pub fn new(parts: Parts) -> Self {
        let Parts {
            store: database,
            follower,
            clock,
            entropy,
            lifecycle,
            generator,
            metrics,
        } = parts;
        let CoreCapabilities {
            decisions,
            contests,
            erasure,
            ingest,
            log,
            policies,
            resources,
            standings,
        } = CoreCapabilities::new(Parts {
            store: Arc::<dyn Database>::clone(&database),
            follower,
            clock,
            entropy,
            lifecycle: lifecycle.clone(),
            generator: Arc::clone(&generator),
            metrics: metrics.clone(),
        });
        let store = || Arc::clone(&database);
        Self {
            queue: ReviewQueue::new(store(), Arc::clone(&decisions), lifecycle.soft().clone()),
            evidence: Evidence::new(store(), Arc::clone(&decisions)),
            imports: Imports::new(store(), Arc::clone(&decisions)),
            namespaces: Namespaces::new(store(), Arc::clone(&decisions)),
            outputs: Outputs::new(
                store(),
                Arc::clone(&decisions),
                lifecycle,
                Arc::clone(&generator),
                metrics.generations,
                ingest.rated(),
            ),
            profiles: Profiles::new(store(), Arc::clone(&decisions), generator, metrics.profiles),
            contests,
            decisions,
            erasure,
            ingest,
            log,
            policies,
            resources,
            standings,
            store: database,
        }
    }
}
