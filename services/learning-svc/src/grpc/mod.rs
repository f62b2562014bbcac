//! Handlers: each parses a request, calls one use case and maps the result. All violations of a request are reported at
//! once, and then nothing is written.

pub mod candidates;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
pub mod ingest;
mod parse;
pub mod policies;
mod render;
pub mod resources;
pub mod subscriptions;

#[cfg(test)]
mod tests;
