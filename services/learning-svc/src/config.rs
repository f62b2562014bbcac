//! How the service is set up: where its database is, and its bounds.
//!
//! It must know nothing of command lines.

use std::{sync::Arc, time::Duration};

use emend_runtime::{
    arrival,
    auth::Authenticator,
    bounds::Bounds,
    database::{DatabaseUrl, PostgresUrl},
    telemetry::Metrics,
    tls::TlsServer,
};

use crate::stream::Settings;

/// How one learning-svc is set up.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where everything is kept. Of a SQLite file the caller holds the directory's lock.
    pub database: DatabaseUrl,
    /// Where to listen for other replicas' commits, if not where the database is: a direct connection, for set-ups whose
    /// database is behind a pooler that passes no notifications on. With PostgreSQL only.
    pub listen_database: Option<PostgresUrl>,
    /// How many connections to PostgreSQL this replica may have at once, or how many readers a SQLite file has.
    pub connections: u32,
    /// How long the start waits for a PostgreSQL that is away.
    pub database_patience: Duration,
    /// How many groups of events are applied at once. SQLite has one writer, so more than one only waits.
    pub ingest_workers: usize,
    /// How many bytes the rows of one import may take, of two at once; beyond it the import is refused with
    /// `RESOURCE_EXHAUSTED`.
    pub import_bytes: usize,
    /// How the update stream behaves.
    pub stream: Settings,
    /// How much it takes on at once, and how long it waits for clients.
    pub bounds: Bounds,
    /// Who knows who calls and who may do what; without one everybody may do everything.
    pub authenticator: Option<Arc<Authenticator>>,
    /// Over what it is served; none: connections are plain.
    pub tls: Option<Arc<TlsServer>>,
    /// Where it counts and measures what it does: the process's own, in which there is one learning-svc.
    pub metrics: Metrics,
}

impl Config {
    /// With the defaults of all bounds.
    pub fn new(database: DatabaseUrl) -> Self {
        let (connections, ingest_workers) = match &database {
            DatabaseUrl::Sqlite(_) => (4, 1),
            DatabaseUrl::Postgres(_) => (16, 4),
        };
        Self {
            database,
            listen_database: None,
            connections,
            database_patience: arrival::PATIENCE,
            ingest_workers,
            import_bytes: 128 << 20,
            stream: Settings::default(),
            bounds: Bounds::default(),
            authenticator: None,
            tls: None,
            metrics: Metrics::new(),
        }
    }
}
