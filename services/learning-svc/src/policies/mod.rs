//! Policies: what it takes to learn something, per namespace and kind.

pub mod grpc;
pub mod namespaces;
pub mod store;
pub mod update;
