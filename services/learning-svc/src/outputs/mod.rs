//! Feedback on what an AI made: ratings, of which the newest are the examples of a target.
//!
//! [`store`] keeps ratings; [`crate::ingest`] takes them in, and [`crate::decisions::open`] decides what is shown. [`improve`]
//! generates a better prompt from them, by a [generator](crate::generator), and [`worker`] does so without a request; [`versions`] is what
//! there is of a prompt, [`stats`] what is said of what it makes. [`grpc`] is the service.

pub(crate) mod examples;
pub(crate) mod grpc;
pub mod improve;
pub mod metrics;
pub(crate) mod preview;
pub(crate) mod rendered;
pub mod stats;
pub mod store;
pub mod versions;
pub mod worker;
