//! What Emend's processes share, and nothing of what they are for.
//!
//! Always there, also in search nodes: [`clock`] and [`entropy`] (time and randomness, injected; the only place where the
//! ambient ones enter), [`backoff`], [`lifecycle`] (how everything ends within a bounded time), [`traceparent`] and [`span`]
//! (distributed traces, with the feature `traces`; else spans are nothing).
//!
//! With the feature `status`: [`error`] (the one taxonomy of errors and the one place that makes a gRPC status of them),
//! [`status`] (reading one on the client's side), [`bearer`] (a token for calls), [`request_id`].
//!
//! With `tls`: [`tls`], connections that others can neither read nor forge.
//!
//! With `server`: [`serve`] (a server as a function of its listener and its lifecycle), its [`bounds`] and its layers [`auth`],
//! [`trace_context`], [`admission`] and [`deadline`], [`health`], [`listen`] and [`telemetry`]; [`config`] (settings from flags,
//! environment and file), [`serve_args`], [`probe`]; [`auth`] (who may do what), [`reload`] (files that change).
//!
//! With `database`: [`database`] (which one), [`sqlite`], [`postgres`], [`arrival`] (waiting for it at a start), [`store`] (what
//! can go wrong with them, and what is worth repeating), [`audit`] (looking at what is stored). With `testing`: [`testing`], a fresh PostgreSQL database
//! for each test. With `simulation`: `simulation`, what in-memory stores do to whoever calls them. With both
//! `server` and `database`: [`storage`] (which database a process uses).
//!
//! With `fail-points`, in builds for tests: [`fail_point`] can end the process between two steps.
//!
//! A service's `main` is: [`config::begin`], [`telemetry::init`], [`listen::bind`], start the service, which opens its
//! database, in a [`lifecycle::Lifecycle`] during [`lifecycle::Signals`], [`lifecycle::run_until_signal`].

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
pub mod admission;
#[cfg(feature = "server")]
pub mod auth;
#[cfg(feature = "server")]
mod awaited;
#[cfg(feature = "server")]
pub mod bounds;
#[cfg(feature = "server")]
pub mod caller;
#[cfg(feature = "server")]
pub mod config;
#[cfg(feature = "server")]
mod connection;
#[cfg(feature = "server")]
pub mod deadline;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
#[cfg(feature = "server")]
pub mod health;
#[cfg(feature = "server")]
mod holding;
#[cfg(feature = "server")]
mod linger;
#[cfg(feature = "server")]
pub mod listen;
#[cfg(feature = "server")]
mod methods;
#[cfg(feature = "server")]
mod open_files;
#[cfg(feature = "server")]
mod prefaced;
#[cfg(feature = "server")]
pub mod probe;
#[cfg(feature = "server")]
pub mod reload;
#[cfg(feature = "server")]
mod room;
#[cfg(feature = "server")]
pub mod serve;
#[cfg(feature = "server")]
pub mod serve_args;
#[cfg(feature = "server")]
pub mod telemetry;
#[cfg(feature = "server")]
pub mod trace_context;
#[cfg(feature = "server")]
mod unread;

#[cfg(feature = "tls")]
pub mod tls;

#[cfg(feature = "database")]
pub mod arrival;
#[cfg(feature = "database")]
pub mod audit;
#[cfg(feature = "database")]
pub mod database;
#[cfg(feature = "database")]
pub mod postgres;
#[cfg(feature = "database")]
pub mod sqlite;
#[cfg(all(feature = "database", feature = "server"))]
pub mod storage;
#[cfg(feature = "database")]
pub mod store;

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
