//! Requests in, one use case, responses out: parse, call, map. All violations of a request come back at once, and then
//! nothing was written.

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
