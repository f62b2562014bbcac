//! A hardened gRPC server, whatever it serves: it knows no RPC, no message and no service by name. Services bring their
//! descriptors, their rows of roles ([`auth::Rule`]) and what their messages name ([`auth::Addresses`]).
//!
//! Each module builds only on those before it:
//! * [`network`], [`origin`], [`methods`], [`caller`], [`health`], [`fair_queue`] and [`fair_semaphore`] (bounds that no single client can exhaust),
//!   [`graceful_close`], [`refused`].
//! * [`tls`]: the server's side of connections over TLS.
//! * [`auth`]: who calls, and who may do what.
//! * [`access_service`]: tells callers what they may do.
//! * [`metrics`]: what a server counts.
//! * [`listen`] and [`server`]: a gRPC server as a function of its listener and its lifecycle. Accepting, admission,
//!   deadlines, and how connections end.
//! * [`admin`]: the operators' port.
//! * [`probe`]: asks the services of this machine whether they are ready.
//! * [`service`]: from a service's command line to its exit code.
//!
//! The hardening is frozen: it changes for a defect, or for a gain that was measured. Its pieces were tried one by one in
//! November 2026. Without the byte budget of calls (`server::call_bytes`), one client's large requests or unread answers
//! keep others out and their memory has no bound. Without the time to acknowledge GOAWAY (`server::timed_connection`), one
//! silent client delays every stop until the hard deadline; without the graceful close, a client that is still sending
//! loses the end of an answer. Fair shares stay because a cap for each caller lets a few callers together take everything.

mod access_service;
pub mod admin;
pub mod auth;
pub mod caller;
pub mod fair_queue;
pub mod fair_semaphore;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod graceful_close;
pub mod group_queue;
pub mod health;
pub mod hosts;
pub mod listen;
mod methods;
pub mod metrics;
pub mod network;
pub mod origin;
pub mod plain_http;
pub mod probe;
mod refused;
pub mod server;
pub mod service;
pub mod tls;

pub use server::Server;

/// For tests, those of the folder `tests` among them.
#[cfg(test)]
#[path = "../tests/serve/library.rs"]
mod library;
