//! What each user knows and wants to learn: read and changed by the user, and suggested from what the user did.
//!
//! An entry is a resource of its own, decided by review. [`entries`] reads and changes them, [`room`] says how many there may be, [`suggestions`] records activities
//! and makes suggestions, which wait as candidates.

pub mod entries;
pub mod grpc;
pub mod metrics;
pub(crate) mod room;
pub mod store;
pub mod suggestions;
