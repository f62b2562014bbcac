//! What every program of Emend needs, whatever it does.
//!
//! With no feature, so also in search nodes: [`clock`] and [`entropy`] (injected time and randomness, and the only place
//! where the ambient ones enter), [`backoff`], [`lifecycle`] (everything ends within a bounded time), [`traceparent`],
//! [`fail_point`] (feature `fail-points`: ends the process between two steps).
//!
//! Feature `traces`: [`span`] (distributed traces, made with `tracing`).
//!
//! Feature `status`: [`error`] (the one taxonomy of errors, and the one place that turns them into gRPC statuses),
//! [`status`] (reading a status on the client's side), [`bearer`] (a token for outgoing calls), [`request_id`].
//!
//! Feature `tls`: [`tls`], the client's side of a connection over TLS, and what both sides share.
//!
//! Feature `http-client`: [`http_client`] (asking another service for JSON, with retries and bounds).
//!
//! Feature `program`, which search nodes do not build: [`config`] (settings from flags, environment and file),
//! [`telemetry`] (the log, metrics and exported traces), [`reload`] (files that change), [`lines`] (texts in a terminal).

pub mod backoff;
pub mod clock;
pub mod entropy;
mod environment;
pub mod fail_point;
pub mod lifecycle;
pub mod testing;
pub mod traceparent;

#[cfg(feature = "traces")]
pub mod span;

#[cfg(feature = "status")]
pub mod bearer;
#[cfg(feature = "status")]
pub mod error;
#[cfg(feature = "status")]
pub mod request_id;
#[cfg(feature = "status")]
pub mod status;

#[cfg(feature = "http-client")]
pub mod http_client;
#[cfg(feature = "tls")]
pub mod tls;

#[cfg(feature = "program")]
pub mod config;
#[cfg(feature = "program")]
pub mod lines;
#[cfg(feature = "program")]
pub mod reload;
#[cfg(feature = "program")]
pub mod telemetry;

pub use backoff::{Backoff, BackoffConfig};
pub use clock::{Clock, ManualClock, SharedClock, SystemClock};
pub use entropy::Entropy;
pub use environment::Environment;
pub use lifecycle::Lifecycle;

#[cfg(feature = "status")]
pub use error::Error;
