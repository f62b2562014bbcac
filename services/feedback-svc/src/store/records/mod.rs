//! What is stored, as the rest of the service knows it.

pub(crate) mod clicks;
pub(crate) mod erased;
pub(crate) mod erasure;
pub(crate) mod event;
pub(crate) mod feedback;
pub(crate) mod labels;
pub(crate) mod limits;
pub(crate) mod mining;
pub(crate) mod outbox;
pub(crate) mod queries;
pub(crate) mod rated_targets;
pub(crate) mod ratings;
pub(crate) mod settings;
pub(crate) mod stats;
