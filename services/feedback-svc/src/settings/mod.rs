//! Settings: what feedback-svc does with the feedback of one namespace. Each change is a version of its own.

pub(crate) mod grpc;
pub(crate) mod rated_targets;
pub(crate) mod store;
#[cfg(test)]
mod tests;

use std::{ops::RangeInclusive, time::Duration};

use emend_base::Error;
use emend_core::{Caller, Namespace, ratings::OwnTarget};
use emend_store::StoreError;
use jiff::Timestamp;

use self::store::SettingsStore;
use crate::{ratings::limits::RatingLimits, use_cases::UseCases};

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
    fn apply(&self, field: &mut T) {
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

impl UseCases {
    fn settings_store(&self) -> Result<&dyn SettingsStore, Error> {
        self.store.settings().ok_or(Error::Unimplemented("settings"))
    }

    /// The settings in force.
    pub(crate) async fn settings(&self, namespace: Namespace) -> Result<Settings, Error> {
        let stored = self.settings_store()?.settings(&namespace).await?;
        Ok(stored.unwrap_or_else(|| Settings::default_of(namespace)))
    }

    /// What can be rated in a namespace beside what can be rated everywhere; nothing in a store that keeps no settings.
    pub(crate) async fn own_targets(&self, namespace: &Namespace) -> Result<Vec<OwnTarget>, Error> {
        let Some(store) = self.store.settings() else {
            return Ok(Vec::new());
        };
        let stored = store.settings(namespace).await?;
        Ok(stored.map(|settings| settings.rated_targets).unwrap_or_default())
    }

    /// Changes settings; an update that changes nothing makes no version.
    pub(crate) async fn update_settings(&self, update: &SettingsUpdate) -> Result<Settings, Error> {
        let before = self.settings(update.namespace.clone()).await?;
        if update.etag.as_ref().is_some_and(|etag| *etag != before.etag()) {
            return Err(changed());
        }
        let mut after = before.clone();
        update.personal_retention.apply(&mut after.personal_retention);
        update.rated_targets.apply(&mut after.rated_targets);
        update.query_retention.apply(&mut after.query_retention);
        update.max_queries.apply(&mut after.max_queries);
        update.rating_limits.apply(&mut after.rating_limits);
        if after == before {
            return Ok(before);
        }
        after.version += 1;
        match self.settings_store()?.save(&after, update).await {
            // Somebody else stored this version first.
            Err(StoreError::Conflict(_)) => return Err(changed()),
            other => other?,
        }
        // What is too old now is redacted at once.
        self.erased.notify_one();
        self.settings(update.namespace.clone()).await
    }
}

fn changed() -> Error {
    Error::Aborted {
        reason: "ETAG_MISMATCH",
        message: "the settings have changed since they were read; read them again".to_owned(),
    }
}
