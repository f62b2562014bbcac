//! The edge: what was learned, for every language and for the engines that people have.
//!
//! It is a node like any other, in a process of its own: it follows the stream, keeps a copy on disk, and answers from memory. Over
//! HTTP and JSON, and over gRPC, it answers what a node in Rust, Python or JavaScript is asked in its own process ([`lookups`]), and it writes an
//! expanded text as the query of an engine ([`fragment`]), so that a correction changes what OpenSearch or Solr find with
//! the next search, without a look at their indexes. [`openapi`] describes it to programs. Where an engine is to answer by itself, or
//! a program reads files, it keeps what was learned there ([`sinks`]).
//!
//! It has no database and changes nothing. While the services are away it answers with what it holds.

mod answer;
mod caller;
mod config;
mod fields;
mod followed;
pub mod fragment;
mod grpc;
pub mod lookups;
mod metrics;
pub mod openapi;
mod routes;
mod server;
pub mod sinks;
mod violations;

pub use config::{Config, ConfigError, Listen, Tls};
pub use metrics::EdgeMetrics;
pub use server::{Edge, EdgeError, start, start_measured};
