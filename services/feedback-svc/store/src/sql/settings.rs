//! SQL of settings.

use std::time::Duration;

use async_trait::async_trait;
use emend_core::Namespace;
use emend_store::{CorruptRow, StoreError, sql::Statement};
use jiff::Timestamp;

use super::{SqlStore, ratings};
use crate::{
    ports::{ReadSettings, SettingsStore},
    records::{
        rated_targets,
        settings::{Settings, SettingsUpdate},
    },
    rows::micros,
};

type Result<T> = std::result::Result<T, StoreError>;

/// Version, retention of personal parts, rated targets, retention and bound of queries, time.
type SettingsRow = (
    i64,
    Option<i64>,
    Vec<u8>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    i64,
);

#[async_trait]
impl ReadSettings for SqlStore {
    async fn settings(&self, namespace: &Namespace) -> Result<Option<Settings>> {
        let statement = Statement::new(
            "SELECT version, personal_retention, rated_targets, query_retention, max_queries, ratings_per_minute,
                    ratings_per_hour, updated_at FROM settings
             WHERE namespace = $1 ORDER BY version DESC LIMIT 1",
        )
        .bind(namespace.as_str());
        let found: Option<SettingsRow> = self.pools.reader().await?.optional(statement).await?;
        let Some((
            version,
            retention,
            targets,
            query_retention,
            max_queries,
            per_minute,
            per_hour,
            updated_at,
        )) = found
        else {
            return Ok(None);
        };
        let updated_at = Timestamp::from_microsecond(updated_at)
            .map_err(|error| CorruptRow::new("settings", "updated_at", namespace, error))?;
        let max_queries = max_queries
            .map(u32::try_from)
            .transpose()
            .map_err(|error| CorruptRow::new("settings", "max_queries", namespace, error))?;
        let targets = rated_targets::decode(&targets)
            .map_err(|error| CorruptRow::new("settings", "rated_targets", namespace, error))?;
        Ok(Some(Settings {
            rated_targets: targets,
            rating_limits: ratings::stored_limits(namespace, per_minute, per_hour)?,
            namespace: namespace.clone(),
            personal_retention: retention.map(|micros| Duration::from_micros(micros.unsigned_abs())),
            query_retention: query_retention.map(|micros| Duration::from_micros(micros.unsigned_abs())),
            max_queries,
            version,
            updated_at: Some(updated_at),
        }))
    }
}

#[async_trait]
impl SettingsStore for SqlStore {
    async fn save(&self, settings: &Settings, update: &SettingsUpdate) -> Result<()> {
        let statement = Statement::new(
            "INSERT INTO settings (namespace, version, personal_retention, rated_targets, caller, on_behalf_of, reason,
                                   query_retention, max_queries, ratings_per_minute, ratings_per_hour, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, (SELECT now FROM database_clock))
             ON CONFLICT (namespace, version) DO NOTHING",
        )
        .bind(settings.namespace.as_str())
        .bind(settings.version)
        .bind(settings.personal_retention.map(micros))
        .bind(rated_targets::encode(&settings.rated_targets))
        .bind(update.caller.as_str())
        .bind(update.on_behalf_of.as_str())
        .bind(update.reason.as_str())
        .bind(settings.query_retention.map(micros))
        .bind(settings.max_queries.map(i64::from))
        .bind(settings.rating_limits.map(|limits| i64::from(limits.per_minute)))
        .bind(settings.rating_limits.map(|limits| i64::from(limits.per_hour)));
        let saved = self.pools.writer().await?.execute(statement).await?;
        if saved == 1 {
            Ok(())
        } else {
            let conflict = "another update stored this version of the settings";
            Err(StoreError::Conflict(sqlx::Error::Protocol(conflict.to_owned())))
        }
    }
}
