//! The revision log: what changed, when, by whom and why; and how one is reverted.

pub(crate) mod grpc;
pub mod revert;
pub mod store;
