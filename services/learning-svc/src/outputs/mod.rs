//! Feedback on what an AI made: ratings, of which the newest are the examples of a target.
//!
//! [`store`] keeps ratings; [`crate::ingest`] takes them in, and [`crate::contests::open`] decides what is shown.

pub mod generator;
pub mod store;
