//! Ratings of what searches returned: stored with the group commit like all feedback, and never sent to learning-svc, because
//! nothing is learned from one alone.
//!
//! [`labels`] says how operators sort ratings, [`export`] what is given away, [`worker`] gives up on queries that were not
//! recorded, [`grpc`] parses and renders, and [`http`] serves raters in browsers.

pub(crate) mod export;
pub(crate) mod grpc;
pub(crate) mod http;
pub(crate) mod labels;
pub(crate) mod worker;

use std::{sync::Arc, time::Duration};

use feedback_store::ports::RatingStore;

use crate::corrections::Corrections;

/// How long a rating waits for its query to be recorded.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Sorts, exports and takes ratings.
#[derive(Debug)]
pub(crate) struct Ratings {
    pub(crate) store: Arc<dyn RatingStore>,
    pub(crate) corrections: Arc<Corrections>,
}
