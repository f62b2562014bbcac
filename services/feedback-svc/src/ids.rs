//! Ids of what is stored. They sort by time, so new ones go to the end of an index.

use emend_base::{Entropy, SharedClock};
use emend_core::{EventId, FeedbackId};

/// Makes ids.
#[derive(Debug, Clone)]
pub(crate) struct Ids {
    clock: SharedClock,
    entropy: Entropy,
}

impl Ids {
    pub(crate) fn new(clock: SharedClock, entropy: Entropy) -> Self {
        Self { clock, entropy }
    }

    /// One for an event.
    pub(crate) fn event(&self) -> EventId {
        EventId(self.entropy.uuid_v7(self.clock.now()))
    }

    /// One for feedback.
    pub(crate) fn feedback(&self) -> FeedbackId {
        FeedbackId(self.entropy.uuid_v7(self.clock.now()))
    }
}
