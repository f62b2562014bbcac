//! What Emend's processes share. It must know nothing of what any service is for.
//!
//! Folders:
//! * [`serve`] (feature `server`): a gRPC server as a function of its listener and its lifecycle. Listening and
//!   accepting, admission control with a fair share per client, deadlines, health checks, and how connections end.
//! * [`database`] (feature `database`): opening SQLite and PostgreSQL, waiting for a database at start-up, errors
//!   classified by what to do about them, read-only audits.
//! * [`auth`] (feature `server`): who calls, and who may do what.
//! * [`tls`] (feature `tls`): TLS for servers and clients.
//! * [`config`] (feature `server`): settings from flags, environment and file.
//! * [`telemetry`] (feature `server`): the log, metrics, traces and the operators' port.
//!
//! At the root, with no feature needed, so also in search nodes: [`clock`] and [`entropy`] (injected time and
//! randomness, and the only place where the ambient ones enter), [`backoff`], [`lifecycle`] (everything ends within a
//! bounded time), [`traceparent`] and [`span`] (distributed traces; without the feature `traces`, spans do nothing).
//! Feature `status`: [`error`] (the one taxonomy of errors, and the one place that turns them into gRPC statuses),
//! [`status`] (reading a status on the client's side), [`bearer`] (a token for outgoing calls), [`request_id`]. Feature
//! `server`: [`caller`] (the authenticated client of a request), [`reload`] (files that change).
//!
//! For tests: [`testing`] (feature `testing`: a fresh PostgreSQL database for each test), `simulation` (feature
//! `simulation`: faults injected into in-memory stores), [`fail_point`] (feature `fail-points`: ends the process
//! between two steps).
//!
//! A service's `main` is [`service::run`] (features `server` and `database`).

pub mod backoff;
pub mod clock;
pub mod entropy;
pub mod fail_point;
pub mod lifecycle;
pub mod span;
pub mod traceparent;

#[cfg(feature = "status")]
pub mod bearer;
#[cfg(feature = "status")]
pub mod error;
#[cfg(feature = "status")]
pub mod request_id;
#[cfg(feature = "status")]
pub mod status;

#[cfg(feature = "server")]
pub mod auth;
#[cfg(feature = "server")]
pub mod caller;
#[cfg(feature = "server")]
pub mod config;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
#[cfg(feature = "server")]
pub mod reload;
#[cfg(feature = "server")]
pub mod serve;
#[cfg(feature = "server")]
pub mod telemetry;

#[cfg(feature = "tls")]
pub mod tls;

#[cfg(feature = "database")]
pub mod database;

#[cfg(all(feature = "database", feature = "server"))]
pub mod service;

#[cfg(all(feature = "database", any(test, feature = "testing")))]
pub mod testing;

#[cfg(all(feature = "database", any(test, feature = "simulation")))]
pub mod simulation;

pub use backoff::{Backoff, BackoffConfig};
pub use clock::{Clock, ManualClock, SharedClock, SystemClock};
pub use entropy::Entropy;
pub use lifecycle::Lifecycle;

#[cfg(feature = "status")]
pub use error::Error;
#[cfg(all(feature = "database", feature = "server"))]
pub use service::Environment;

// Short paths to modules of the two large folders.
#[cfg(all(feature = "database", feature = "server"))]
pub use database::storage;
#[cfg(feature = "database")]
pub use database::{audit, available, postgres, sqlite, store};
#[cfg(feature = "server")]
pub use serve::{
    admission, args as serve_args, bounds, deadline, fair_queue, fair_semaphore, health, listen, probe,
    trace_context,
};
