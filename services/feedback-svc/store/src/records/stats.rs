//! What is counted of ratings and queries.

use std::collections::BTreeMap;

use emend_core::{
    FeedbackId, Namespace,
    search::{Interval, wilson},
};
use jiff::Timestamp;

/// Names of one dimension that are told apart: the newest weeks; of others those with the most ratings, then queries.
pub const MAX_NAMES: u32 = 1_000;

/// By what ratings are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// The week in which it was rated; its name is its Monday's date, in UTC.
    Week,
    /// The type of the query.
    QueryType,
    /// Which model made the embeddings.
    EmbeddingVersion,
    /// Which index was searched.
    IndexVersion,
    /// Which variant of an experiment the user saw.
    Variant,
}

impl Dimension {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Week,
        Self::QueryType,
        Self::EmbeddingVersion,
        Self::IndexVersion,
        Self::Variant,
    ];
}

/// Which ratings count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatsFilter {
    /// The search application.
    pub namespace: Namespace,
    /// Rated at this time or later.
    pub from: Option<Timestamp>,
    /// Rated before this time.
    pub before: Option<Timestamp>,
    /// Of queries of this type.
    pub query_type: Option<String>,
}

/// A query whose results people rated −1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorstQuery {
    /// How many people did, each counted once.
    pub people: u64,
    /// The rating that was stored last.
    pub feedback: FeedbackId,
    /// The id of the query that it is about.
    pub query_id: String,
    /// Its text; empty: not known, or erased.
    pub text: String,
    /// Its type; empty: not known.
    pub query_type: String,
}

/// Two names of one dimension to compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// The dimension.
    pub by: Dimension,
    /// One of its names.
    pub one: String,
    /// The other.
    pub other: String,
}

/// Ratings of one name, and queries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Share {
    /// The week, type, version or variant; empty: not known.
    pub name: String,
    /// All ratings.
    pub ratings: u64,
    /// Those of −1.
    pub negative: u64,
    /// Those of 1.
    pub positive: u64,
    /// Recorded queries.
    pub queries: u64,
    /// Those of them that found nothing.
    pub zero_hits: u64,
    /// Those of them of which it is not known how many results they found.
    pub unknown_hits: u64,
}

impl Share {
    /// The share of negative ratings and where it lies with 95 % confidence; none without ratings.
    pub fn interval(&self) -> Option<(f64, Interval)> {
        share_of(self.negative, self.ratings)
    }

    /// The queries of which it is known how many results they found.
    pub fn known_hits(&self) -> u64 {
        self.queries.saturating_sub(self.unknown_hits)
    }

    /// The share of queries that found nothing among those of which that is known, and where it lies with 95 % confidence; none
    /// without such queries.
    pub fn zero_hit_interval(&self) -> Option<(f64, Interval)> {
        share_of(self.zero_hits, self.known_hits())
    }
}

/// A share and where it lies with 95 % confidence; none of nothing.
fn share_of(part: u64, whole: u64) -> Option<(f64, Interval)> {
    let interval = wilson(part, whole)?;
    #[expect(clippy::cast_precision_loss, reason = "counts below 2^52")]
    let share = part as f64 / whole as f64;
    Some((share, interval))
}

/// What a store counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shares {
    /// Everything.
    pub total: Share,
    /// The names of each dimension; of one that has none there is nothing.
    pub by: BTreeMap<Dimension, Names>,
}

/// Names of a dimension.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Names {
    /// Those that come first, each with its place, in order.
    pub listed: Vec<(i64, Share)>,
    /// Further ones that were asked for.
    pub beyond: Vec<Share>,
    /// How many come after those that come first.
    pub left_out: u64,
}

/// Searches that are looked at for what was searched most: the newest.
pub const MAX_SEARCHES: u32 = 100_000;

/// One search whose query is still kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptSearch {
    /// What was searched for.
    pub text: String,
    /// The variant that the user saw; empty: not known.
    pub variant: String,
    /// Whether it found nothing; none: not known.
    pub found_nothing: Option<bool>,
    /// Whether a result was clicked.
    pub is_clicked: bool,
}

/// Searches, and what came of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Searches.
    pub searches: u64,
    /// Those with a click.
    pub clicked: u64,
    /// Those that found nothing.
    pub zero_hits: u64,
    /// Those of which it is not known how many results they found.
    pub unknown_hits: u64,
}

impl Traffic {
    /// Counts one more.
    pub fn add(&mut self, search: &KeptSearch) {
        self.searches += 1;
        self.clicked += u64::from(search.is_clicked);
        self.zero_hits += u64::from(search.found_nothing == Some(true));
        self.unknown_hits += u64::from(search.found_nothing.is_none());
    }

    /// The share of searches with a click and where it lies with 95 % confidence; none without searches.
    pub fn click_through(&self) -> Option<(f64, Interval)> {
        share_of(self.clicked, self.searches)
    }

    /// The share of searches that found nothing among those of which that is known; none without such.
    pub fn zero_hit_share(&self) -> Option<f64> {
        share_of(self.zero_hits, self.searches.saturating_sub(self.unknown_hits)).map(|(share, _)| share)
    }
}
