//! Emend's learning service: ingests corrections, decides what to learn from them, and streams what was learned.
//!
//! It is cut by capability; each folder holds its use cases and its `grpc`:
//! * [`ingest`]: events from feedback-svc, each with exactly-once effect.
//! * [`contests`]: everything proposed for a key, decided by votes and by people; the review queue.
//! * [`evidence`]: the graph of pages, claims and edges, as people corrected it.
//! * [`outputs`]: ratings of what an AI made, and the prompts that it is asked with.
//! * [`profiles`]: what users know and want to learn.
//! * [`standings`]: what has become of feedbacks.
//! * [`policies`]: what it takes to learn something.
//! * [`resources`]: what nodes answer with: read, set, imported.
//! * [`log`]: the revisions, and reverting one.
//! * [`erasure`]: erasing what one user alone had.
//! * [`stream`]: what subscribers see of the log. [`nodes`]: who they are, and how far they got.
//!
//! Each capability is one struct with the ports that it needs, whose methods are its use cases. What decides is beneath them
//! all, in [`decisions`]; [`learning_store`] is persistence on SQLite or PostgreSQL. A module may use those beneath it alone:
//! ARCHITECTURE.md shows the order. [`capabilities`] puts them together.
//!
//! [`start`] runs one replica; `main` does so from its command line, [`Arguments`]. Any number of replicas share one
//! PostgreSQL database; a SQLite file belongs to one process.

pub mod arguments;
pub mod capabilities;
pub mod config;
#[cfg(any(test, feature = "simulation"))]
pub mod consistency;
pub mod contests;
pub mod decisions;
pub mod erasure;
mod etag;
pub mod evidence;
pub mod export_slots;
pub mod fail_points;
mod failure;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod generator;
mod grpc;
pub mod ingest;
pub mod log;
pub mod lookups;
pub mod metrics;
pub mod nodes;
pub mod outputs;
pub mod policies;
pub mod profiles;
pub mod resources;
pub mod roles;
mod service;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
pub mod standings;
pub mod stream;
#[cfg(test)]
mod tests;
mod watch;

pub use arguments::Arguments;
pub use config::Config;
pub use service::{Handle, start};
