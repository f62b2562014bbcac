//! The pair: both services in this process.
//!
//! It must know nothing of what they are used for.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use anyhow::Context as _;
use emend_base::{Environment, Lifecycle, bearer::TokenFile, telemetry::Metrics};
use emend_serve::{
    auth::Authenticator,
    health::Readiness,
    listen::{self, Exposure, reachable},
    tls::TlsServer,
};
use emend_store::{DatabaseUrl, sqlite::DataDir};
use feedback_svc::LearningAddress;
use tempfile::TempDir;

use crate::{
    context::Context,
    failure::{Failure, Result},
};

/// The grace period for work under way when the pair stops.
pub const GRACE: Duration = Duration::from_secs(10);

/// How long the pair may take to become ready.
const START: Duration = Duration::from_mins(1);

/// The databases of the two services, and what keeps them reserved.
#[derive(Debug)]
pub struct Databases {
    /// feedback-svc's.
    pub feedback: DatabaseUrl,
    /// learning-svc's.
    pub learning: DatabaseUrl,
    // Field order matters: the lock is released before its directory is removed.
    _lock: Option<DataDir>,
    _ephemeral: Option<TempDir>,
}

impl Databases {
    /// Opens a data directory, which is locked, and created if missing; or uses one PostgreSQL database for both.
    pub fn open(data_dir: &Path, database_url: Option<DatabaseUrl>) -> Result<Self> {
        match database_url {
            None => Self::in_directory(data_dir, None),
            Some(url @ DatabaseUrl::Postgres(_)) => Ok(Self {
                feedback: url.clone(),
                learning: url,
                _lock: None,
                _ephemeral: None,
            }),
            Some(DatabaseUrl::Sqlite(_)) => Err(Failure::usage(
                "--database-url takes postgres://…; SQLite files live in --data-dir",
            )),
        }
    }

    /// Uses a directory that is removed when this is dropped.
    pub fn ephemeral() -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("emend-").tempdir()?;
        let path = directory.path().to_owned();
        Self::in_directory(&path, Some(directory))
    }

    fn in_directory(path: &Path, ephemeral: Option<TempDir>) -> Result<Self> {
        let lock = DataDir::lock(path).map_err(|error| Failure::Conflict(error.to_string()))?;
        Ok(Self {
            feedback: DatabaseUrl::sqlite(lock.join("feedback.db")),
            learning: DatabaseUrl::sqlite(lock.join("learning.db")),
            _lock: Some(lock),
            _ephemeral: ephemeral,
        })
    }
}

/// How both services authenticate callers, and their TLS.
#[derive(Debug, Default)]
pub struct Known {
    /// Authenticates callers; without it, everybody may do everything.
    pub authenticator: Option<Arc<Authenticator>>,
    /// The token by which learning-svc knows feedback-svc. Calls between the two never leave this process, so they need
    /// neither TLS nor certificates.
    pub token: Option<TokenFile>,
    /// TLS; `None` for plaintext connections.
    pub tls: Option<Arc<TlsServer>>,
}

/// The two services, running and ready.
#[derive(Debug)]
pub struct Pair {
    feedback: feedback_svc::Handle,
    learning: learning_svc::Handle,
    metrics: Metrics,
    // Dropped last: the data directory is released once nothing uses it.
    _databases: Databases,
}

impl Pair {
    /// Starts both, listening on the (feedback, learning) addresses, and waits until both are ready.
    pub async fn start(
        databases: Databases,
        addresses: (&str, &str),
        (exposure, known): (&Exposure, Known),
        lifecycle: &Lifecycle,
        context: &Context,
    ) -> Result<Self> {
        let bind = async |address: &str| {
            listen::bind(address, exposure)
                .await
                .map_err(|error| Failure::usage(error.to_string()))
        };
        let (feedback_listener, learning_listener) = (bind(addresses.0).await?, bind(addresses.1).await?);
        let environment = Environment {
            lifecycle: lifecycle.clone(),
            clock: context.clock.clone(),
            entropy: context.entropy.clone(),
        };
        let metrics = Metrics::new();
        let mut config = learning_svc::Config::new(databases.learning.clone());
        config.metrics = metrics.clone();
        config.authenticator.clone_from(&known.authenticator);
        config.tls.clone_from(&known.tls);
        config.reflection = !exposure.no_reflection;
        let learning = learning_svc::start(config, learning_listener, environment.clone())
            .await
            .context("learning-svc can't start")?;
        let peer = LearningAddress::inside(learning.inside());
        let mut config = feedback_svc::Config::new(databases.feedback.clone(), peer);
        config.metrics = metrics.clone();
        config.authenticator = known.authenticator;
        config.learning_token = known.token;
        config.tls = known.tls;
        config.reflection = !exposure.no_reflection;
        let feedback = feedback_svc::start(config, feedback_listener, environment)
            .await
            .context("feedback-svc can't start")?;
        let ready = async {
            learning.ready().await;
            feedback.ready().await;
        };
        tokio::select! {
            () = ready => {}
            () = lifecycle.soft().cancelled() => {
                return Err(Failure::failed(lifecycle.failure().unwrap_or("ended while starting")));
            }
            () = tokio::time::sleep(START) => {
                return Err(Failure::failed(format!("the services are not ready after {START:?}; see the log")));
            }
        }
        Ok(Self {
            feedback,
            learning,
            metrics,
            _databases: databases,
        })
    }

    /// Starts a pair on free loopback ports, whose data is removed at the end.
    pub async fn ephemeral(lifecycle: &Lifecycle, context: &Context) -> Result<Self> {
        let loopback = ("127.0.0.1:0", "127.0.0.1:0");
        Self::start(
            Databases::ephemeral()?,
            loopback,
            (&Exposure::default(), Known::default()),
            lifecycle,
            context,
        )
        .await
    }

    /// Where feedback-svc listens.
    pub fn feedback(&self) -> SocketAddr {
        self.feedback.address()
    }

    /// Where learning-svc listens.
    pub fn learning(&self) -> SocketAddr {
        self.learning.address()
    }

    /// The metrics of both.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The readiness of both.
    pub fn readiness(&self) -> Vec<Readiness> {
        vec![
            self.feedback.readiness().clone(),
            self.learning.readiness().clone(),
        ]
    }

    /// The same context, but connected to this pair.
    pub fn context(&self, context: &Context) -> Context {
        context.at(reachable(self.feedback()), reachable(self.learning()))
    }

    /// Stops both, feedback-svc first, and closes their databases. With zero grace, for when their tasks have already
    /// had theirs, both stop at once.
    pub async fn close(self, grace: Duration) {
        if grace.is_zero() {
            tokio::join!(self.feedback.shutdown(grace), self.learning.shutdown(grace));
            return;
        }
        self.feedback.shutdown(grace).await;
        self.learning.shutdown(grace).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_is_used_by_one_process_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let first = Databases::open(directory.path(), None).unwrap();
        let refused = Databases::open(directory.path(), None).unwrap_err();
        assert_eq!(refused.exit(), crate::failure::Exit::Conflict);
        drop(first);
        assert!(Databases::open(directory.path(), None).is_ok());
    }

    #[test]
    fn an_ephemeral_directory_is_gone_at_the_end() {
        let databases = Databases::ephemeral().unwrap();
        let DatabaseUrl::Sqlite(path) = databases.learning.clone() else {
            panic!("not a file")
        };
        let directory = path.parent().unwrap().to_owned();
        assert!(directory.is_dir());
        drop(databases);
        assert!(!directory.exists());
    }

    #[test]
    fn sqlite_files_live_in_a_data_directory() {
        let refused = Databases::open(Path::new("."), Some(DatabaseUrl::sqlite("x.db"))).unwrap_err();
        assert_eq!(refused.exit(), crate::failure::Exit::Usage);
    }
}
