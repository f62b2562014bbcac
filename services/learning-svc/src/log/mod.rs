//! The revision log: what changed, when, by whom and why; how revisions are numbered; and how one is reverted.

pub(crate) mod grpc;
pub mod numbering;
pub mod revert;
pub mod store;
