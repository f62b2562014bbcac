//! Resources: what nodes answer with. Reads come from the newest state without the database ([`read`]); people set and
//! delete values ([`mod@write`], several of them in one commit: [`queue`]) and import many at once ([`import`]).

pub mod grpc;
pub mod import;
pub mod queue;
pub mod read;
pub mod store;
pub mod write;
