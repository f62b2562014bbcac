//! The service's configuration: where its database is, and its bounds.
//!
//! It must know nothing of command lines.

use std::{path::PathBuf, sync::Arc, time::Duration};

use emend_base::{http_client::model::Endpoint, telemetry::Metrics};
use emend_core::generalise::Vectors;
use emend_serve::{auth::Authenticator, server::bounds::Bounds, tls::TlsServer};
use emend_store::{DatabaseUrl, PostgresUrl, available};
use jiff::SignedDuration;

use crate::stream::Settings;

/// The configuration of one learning-svc.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where everything is stored. For a SQLite file the caller holds the directory's lock.
    pub database: DatabaseUrl,
    /// Where to listen for other replicas' commits, if not on the database itself: a direct connection, for set-ups
    /// whose database is behind a pooler that does not pass notifications on. PostgreSQL only.
    pub listen_database: Option<PostgresUrl>,
    /// Whether to begin a new installation if the PostgreSQL database is empty; otherwise, the service does not start on
    /// one. A SQLite file that is new always begins one.
    pub init: bool,
    /// Maximum PostgreSQL connections of this replica, or the number of readers of a SQLite file.
    pub connections: u32,
    /// How long startup waits for a PostgreSQL that is unavailable.
    pub database_patience: Duration,
    /// How many groups of events are applied concurrently. SQLite has one writer, so further workers only wait.
    pub ingest_workers: usize,
    /// How many bytes the rows of one import may take; two imports run at once. A larger import is refused with
    /// `RESOURCE_EXHAUSTED`.
    pub import_bytes: usize,
    /// The trust file that is applied whenever it changes; none: trust files are applied by request only.
    pub trust_file: Option<PathBuf>,
    /// The language model that generates prompts and suggestions; none: they are made without one, from what was rated and
    /// recorded alone.
    pub generator: Option<Endpoint>,
    /// How long what users did is kept, from when it was recorded.
    pub activity_retention: SignedDuration,
    /// The vectors that near answers of `Resolve` and previews are given by, too, where a policy names just these.
    pub near_vectors: Option<Arc<dyn Vectors>>,
    /// How the update stream behaves.
    pub stream: Settings,
    /// How much it takes on at once, and how long it waits for clients.
    pub bounds: Bounds,
    /// Authenticates and authorizes callers; without one, everybody may do everything.
    pub authenticator: Option<Arc<Authenticator>>,
    /// TLS for its listener; none: connections are plain.
    pub tls: Option<Arc<TlsServer>>,
    /// Whether it serves gRPC reflection.
    pub reflection: bool,
    /// The process's metrics, in which it registers its own; a process has one learning-svc.
    pub metrics: Metrics,
}

impl Config {
    /// The configuration with default bounds.
    pub fn new(database: DatabaseUrl) -> Self {
        let (connections, ingest_workers) = match &database {
            DatabaseUrl::Sqlite(_) => (4, 1),
            DatabaseUrl::Postgres(_) => (16, 4),
        };
        Self {
            database,
            listen_database: None,
            init: false,
            connections,
            database_patience: available::PATIENCE,
            ingest_workers,
            import_bytes: 128 << 20,
            trust_file: None,
            generator: None,
            activity_retention: SignedDuration::from_hours(90 * 24),
            near_vectors: None,
            stream: Settings::default(),
            bounds: Bounds::default(),
            authenticator: None,
            tls: None,
            reflection: true,
            metrics: Metrics::new(),
        }
    }
}
