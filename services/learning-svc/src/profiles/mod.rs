//! What each user knows and wants to learn: read and changed by the user, and suggested from what the user did.
//!
//! An entry is a resource of its own, decided by review. [`entries`] reads and changes them, [`suggestions`] records activities and makes suggestions, which wait as candidates.

pub mod entries;
pub mod grpc;
pub mod metrics;
pub mod suggestions;

use std::{fmt, sync::Arc};

use learning_store::{Database, profiles::ProfileStore};

use crate::{decisions::Decisions, generator::Generator, profiles::metrics::ProfileMetrics};

/// The use cases of profiles.
#[derive(Clone)]
pub struct Profiles {
    database: Arc<dyn Database>,
    decisions: Arc<Decisions>,
    pub(crate) generator: Arc<dyn Generator>,
    metrics: ProfileMetrics,
}

impl fmt::Debug for Profiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profiles").finish_non_exhaustive()
    }
}

impl Profiles {
    /// Suggests with `generator`.
    pub(crate) fn new(
        database: Arc<dyn Database>,
        decisions: Arc<Decisions>,
        generator: Arc<dyn Generator>,
        metrics: ProfileMetrics,
    ) -> Self {
        Self {
            database,
            decisions,
            generator,
            metrics,
        }
    }

    /// The profiles as stored.
    fn stored(&self) -> &dyn ProfileStore {
        &*self.database
    }
}
