//! What is stored, as the rest of the service knows it.

pub mod clicks;
pub mod documents;
pub mod erased;
pub mod erasure;
pub mod event;
pub mod feedback;
pub mod labels;
pub mod limits;
pub mod mining;
pub mod outbox;
pub mod queries;
pub mod rated_targets;
pub mod ratings;
pub mod settings;
pub mod stats;
