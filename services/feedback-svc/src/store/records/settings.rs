//! What is done with the feedback of one namespace.

use std::{ops::RangeInclusive, time::Duration};

use emend_core::{Caller, Namespace, outputs::OwnTarget};
use jiff::Timestamp;

use crate::store::records::limits::RatingLimits;

/// The shortest time for which personal parts can be kept.
pub(crate) const MIN_RETENTION: Duration = Duration::from_hours(1);

/// The longest.
pub(crate) const MAX_RETENTION: Duration = Duration::from_hours(3_650 * 24);

/// The longest time for which queries can be kept; the shortest is that of personal parts.
pub(crate) const MAX_QUERY_RETENTION: Duration = Duration::from_hours(90 * 24);

/// How many queries can be kept of a namespace.
pub(crate) const QUERY_BOUNDS: RangeInclusive<u32> = 1_000..=1_000_000;

/// The settings of one namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The search application.
    pub(crate) namespace: Namespace,
    /// For how long personal parts are kept; none: until they are redacted.
    pub(crate) personal_retention: Option<Duration>,
    /// What can be rated beside what can be rated everywhere.
    pub(crate) rated_targets: Vec<OwnTarget>,
    /// How long recorded queries are kept; none: the default.
    pub(crate) query_retention: Option<Duration>,
    /// How many of them are kept; none: the default.
    pub(crate) max_queries: Option<u32>,
    /// How often one reporter may rate search answers; none: as often as by default.
    pub(crate) rating_limits: Option<RatingLimits>,
    /// Grows by 1 with each change; 0: never set.
    pub(crate) version: i64,
    /// When they were changed last.
    pub(crate) updated_at: Option<Timestamp>,
}

impl Settings {
    /// The defaults.
    pub(crate) fn default_of(namespace: Namespace) -> Self {
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
    pub(crate) fn etag(&self) -> String {
        self.version.to_string()
    }
}

/// What an update does to a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change<T> {
    /// It stays as it is.
    Keep,
    /// It gets this value.
    Set(T),
}

impl<T: Clone> Change<T> {
    /// Makes the change.
    pub(crate) fn apply(&self, field: &mut T) {
        if let Self::Set(value) = self {
            field.clone_from(value);
        }
    }
}

/// A change of settings.
#[derive(Debug, Clone)]
pub(crate) struct SettingsUpdate {
    /// The search application.
    pub(crate) namespace: Namespace,
    /// Only if they still have this etag.
    pub(crate) etag: Option<String>,
    /// What becomes of the retention.
    pub(crate) personal_retention: Change<Option<Duration>>,
    /// What becomes of the targets of the application's own.
    pub(crate) rated_targets: Change<Vec<OwnTarget>>,
    /// What becomes of the retention of queries.
    pub(crate) query_retention: Change<Option<Duration>>,
    /// What becomes of the bound of queries.
    pub(crate) max_queries: Change<Option<u32>>,
    /// What becomes of how often one reporter may rate.
    pub(crate) rating_limits: Change<Option<RatingLimits>>,
    /// The authenticated client that changes them.
    pub(crate) caller: Caller,
    /// On whose behalf, as the caller says; may be empty.
    pub(crate) on_behalf_of: String,
    /// Why; may be empty.
    pub(crate) reason: String,
}
