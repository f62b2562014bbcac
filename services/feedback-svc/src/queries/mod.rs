//! What was searched: queries and what users did with their results, recorded by backends, kept for a short time.
//!
//! Recording never waits for a disk: [`record`] holds a bounded queue in memory, whose worker stores groups. What outlives
//! the queries are counts: in how many queries a word was, and how many queries there were a day. [`retention`] forgets the
//! rest, and prunes the counts. [`mining`] proposes rewordings that worked as synonyms, [`stats`] says what ratings say of
//! search, and [`recent`] what was searched most. [`ubi`] takes queries and interactions over HTTP, as documents of OpenSearch UBI.

pub(crate) mod grpc;
mod list;
pub(crate) mod mining;
pub(crate) mod recent;
pub(crate) mod record;
pub(crate) mod retention;
pub(crate) mod stats;
#[cfg(test)]
mod tests;
pub(crate) mod ubi;

use std::sync::Arc;

use feedback_store::ports::QueryStore;

/// Lists queries and says what they and ratings tell of search.
#[derive(Debug)]
pub(crate) struct Queries {
    pub(crate) store: Arc<dyn QueryStore>,
}
