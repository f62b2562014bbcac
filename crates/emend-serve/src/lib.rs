//! A hardened gRPC server, whatever it serves.
//!
//! Each module builds on those before it:
//! * [`methods`], [`caller`], [`health`], [`fair_queue`] and [`fair_semaphore`] build on nothing here.
//! * [`tls`]: the server's side of connections over TLS.
//! * [`auth`]: who calls, and who may do what.
//! * [`metrics`]: what a server counts.
//! * [`listen`] and [`server`]: a gRPC server as a function of its listener and its lifecycle. Accepting, admission control
//!   with a fair share per client, deadlines, and how connections end.
//! * [`admin`]: the operators' port.
//! * [`probe`]: asks the services of this machine whether they are ready.
//! * [`service`]: from a service's command line to its exit code.

pub mod admin;
pub mod auth;
pub mod caller;
pub mod fair_queue;
pub mod fair_semaphore;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod graceful_close;
pub mod health;
pub mod listen;
pub mod methods;
pub mod metrics;
pub mod probe;
pub mod server;
pub mod service;
pub mod tls;

pub use server::Server;

/// For tests, those of the folder `tests` among them.
#[cfg(test)]
#[path = "../tests/serve/library.rs"]
mod library;
