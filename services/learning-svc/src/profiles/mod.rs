//! What each user knows and wants to learn: read and changed by the user, and suggested from what the user did.
//!
//! An entry is a resource of its own, decided by review. [`entries`] reads and changes them, [`suggestions`] records activities and makes suggestions, which wait as candidates.

pub mod entries;
pub mod grpc;
pub mod metrics;
pub mod store;
pub mod suggestions;
