//! A search backend on a full-text index that uses the whole loop: synonyms, tuning, learned answers, prohibitions, blocked
//! domains, and the steps to take when nothing is found.
//!
//! `emend-client` holds what was learned and says what to do with it; here is only what a backend has of its own.

mod any;
mod asked;
pub mod backend;
pub mod click;
pub mod corpus;
pub mod embedding;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod grpc;
pub mod index;
mod meaning;
pub mod page;
mod query;
mod ranking;
pub mod serve;
pub mod update;
mod vectors;
pub mod words;
