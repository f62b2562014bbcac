//! What is done with the feedback of one namespace.

use std::{ops::RangeInclusive, time::Duration};

use emend_core::{Caller, Namespace, ratings::OwnTarget};
use jiff::Timestamp;

use crate::records::limits::RatingLimits;

/// The shortest time for which personal parts can be kept.
pub const MIN_RETENTION: Duration = Duration::from_hours(1);

/// The longest.
pub const MAX_RETENTION: Duration = Duration::from_hours(3_650 * 24);

/// The longest time for which queries can be kept; the shortest is that of personal parts.
pub const MAX_QUERY_RETENTION: Duration = Duration::from_hours(90 * 24);

/// How many queries can be kept of a namespace.
pub const QUERY_BOUNDS: RangeInclusive<u32> = 1_000..=1_000_000;

/// The settings of one namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The search application.
    pub namespace: Namespace,
    /// For how long personal parts are kept; none: until they are redacted.
    pub personal_retention: Option<Duration>,
    /// What can be rated beside what can be rated everywhere.
    pub rated_targets: Vec<OwnTarget>,
    /// How long recorded queries are kept; none: the default.
    pub query_retention: Option<Duration>,
    /// How many of them are kept; none: the default.
    pub max_queries: Option<u32>,
    /// How often one reporter may rate search answers; none: as often as by default.
    pub rating_limits: Option<RatingLimits>,
    /// Grows by 1 with each change; 0: never set.
    pub version: i64,
    /// When they were changed last.
    pub updated_at: Option<Timestamp>,
}

impl Settings {
    /// The defaults.
    pub fn default_of(namespace: Namespace) -> Self {
        Self {
            namespace,
            personal_retention: None,
            rated_targets: Vec::new(),
            query_retention: None,
            max_queries: None,
            rating_limits: None,
            version: 0,
            updated_at: None,
        }
    }

    /// Changes with each version.
    pub fn etag(&self) -> String {
        self.version.to_string()
    }
}

/// What an update does to a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<T> {
    /// It stays as it is.
    Keep,
    /// It gets this value.
    Set(T),
}

impl<T: Clone> Change<T> {
    /// Makes the change.
    pub fn apply(&self, field: &mut T) {
        if let Self::Set(value) = self {
            field.clone_from(value);
        }
    }
}

/// A change of settings.
#[derive(Debug, Clone)]
pub struct SettingsUpdate {
    /// The search application.
    pub namespace: Namespace,
    /// Only if they still have this etag.
    pub etag: Option<String>,
    /// What becomes of the retention.
    pub personal_retention: Change<Option<Duration>>,
    /// What becomes of the targets of the application's own.
    pub rated_targets: Change<Vec<OwnTarget>>,
    /// What becomes of the retention of queries.
    pub query_retention: Change<Option<Duration>>,
    /// What becomes of the bound of queries.
    pub max_queries: Change<Option<u32>>,
    /// What becomes of how often one reporter may rate.
    pub rating_limits: Change<Option<RatingLimits>>,
    /// The authenticated client that changes them.
    pub caller: Caller,
    /// On whose behalf, as the caller says; may be empty.
    pub on_behalf_of: String,
    /// Why; may be empty.
    pub reason: String,
}
