//! Feedback on what an AI made: ratings, of which the newest are the examples of a target.
//!
//! [`learning_store::outputs`] keeps ratings; [`crate::ingest`] takes them in, and [`crate::decisions::open`] decides what is shown. [`improve`]
//! generates a better prompt from them, by a [generator](crate::generator), and [`worker`] does so without a request; [`versions`] is what
//! there is of a prompt, [`stats`] what is said of what it makes. [`grpc`] is the service.

pub(crate) mod examples;
pub(crate) mod grpc;
pub mod improve;
pub mod metrics;
pub(crate) mod preview;
pub(crate) mod rendered;
pub mod stats;
pub mod versions;
pub mod worker;

use std::{fmt, sync::Arc};

use emend_base::Lifecycle;
use learning_store::{Database, outputs::improvements::OutputStore};
use tokio::sync::Notify;

use crate::{decisions::Decisions, generator::Generator, outputs::metrics::Generations};

/// The use cases of prompts and of what is said of their outputs.
#[derive(Clone)]
pub struct Outputs {
    database: Arc<dyn Database>,
    decisions: Arc<Decisions>,
    /// Owns what goes on when its caller has gone.
    pub(crate) lifecycle: Lifecycle,
    pub(crate) generator: Arc<dyn Generator>,
    pub(crate) generations: Generations,
    /// Wakes the worker that generates improvements without a request.
    rated: Arc<Notify>,
}

impl fmt::Debug for Outputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outputs").finish_non_exhaustive()
    }
}

impl Outputs {
    /// Generates with `generator`, in `lifecycle`, and counts that in `generations`.
    pub(crate) fn new(
        database: Arc<dyn Database>,
        decisions: Arc<Decisions>,
        lifecycle: Lifecycle,
        generator: Arc<dyn Generator>,
        generations: Generations,
        rated: Arc<Notify>,
    ) -> Self {
        Self {
            database,
            decisions,
            lifecycle,
            generator,
            generations,
            rated,
        }
    }

    /// Prompts and what is said of their outputs, as stored.
    pub(crate) fn stored(&self) -> &dyn OutputStore {
        &*self.database
    }
}
