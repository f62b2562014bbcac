//! What each user knows and wants to learn: read and changed by the user, and suggested from what the user did.
//!
//! An entry is a resource of its own, decided by review. [`entries`] reads and changes them, [`suggestions`] records activities and makes suggestions, which wait as candidates.

pub mod entries;
pub mod grpc;
pub mod metrics;
pub mod suggestions;

use std::{fmt, sync::Arc};

use emend_base::Error;
use learning_store::{Store, profiles::ProfileStore};

use crate::{decisions::Decisions, generator::Generator, profiles::metrics::ProfileMetrics};

/// The use cases of profiles.
#[derive(Clone)]
pub struct Profiles {
    store: Arc<dyn Store>,
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
        store: Arc<dyn Store>,
        decisions: Arc<Decisions>,
        generator: Arc<dyn Generator>,
        metrics: ProfileMetrics,
    ) -> Self {
        Self {
            store,
            decisions,
            generator,
            metrics,
        }
    }

    /// The profiles as stored.
    fn stored(&self) -> Result<&dyn ProfileStore, Error> {
        self.store
            .profiles()
            .ok_or(Error::Unimplemented("the profile service"))
    }
}
