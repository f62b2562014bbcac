//! The service's configuration: where its database and learning-svc are, and its limits.

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

use emend_base::{
    bearer::TokenFile,
    telemetry::Metrics,
    tls::{ClientTls, Remote, TlsError},
};
use emend_core::InstallationId;
use emend_serve::{auth::Authenticator, server::bounds::Bounds, tls::TlsServer};
use emend_store::{DatabaseUrl, available};

use crate::{corrections::config::CommitConfig, outbox::config::RelayConfig, ratings::http::RatingHttp};

/// The configuration of one feedback-svc.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where feedback is stored. For a SQLite file, the caller holds the lock on its directory.
    pub database: DatabaseUrl,
    /// Whether a PostgreSQL database may be empty, as at the very first start; otherwise, the service does not start on
    /// one. A SQLite file may always be new.
    pub init: bool,
    /// Deliver to this installation of learning-svc from now on, whichever the database names; none: to the one it names.
    pub accept_installation: Option<InstallationId>,
    /// How many connections to PostgreSQL this replica may have at once.
    pub postgres_connections: u32,
    /// How long startup waits for an unavailable PostgreSQL.
    pub database_patience: Duration,
    /// Where learning-svc is.
    pub learning: LearningAddress,
    /// The token by which learning-svc recognises this service, if it requires one.
    pub learning_token: Option<TokenFile>,
    /// How submissions are grouped.
    pub commit: CommitConfig,
    /// How events are delivered to learning-svc.
    pub relay: RelayConfig,
    /// How long a submission can be repeated safely under its request id; at least 7 days.
    pub request_id_retention: Duration,
    /// How much it serves at once, and how long it waits for clients.
    pub bounds: Bounds,
    /// Identifies callers and decides what they may do; without one, everybody may do everything.
    pub authenticator: Option<Arc<Authenticator>>,
    /// How it serves TLS; without it, connections are plaintext.
    pub tls: Option<Arc<TlsServer>>,
    /// Whether it answers server reflection.
    pub reflection: bool,
    /// Where raters in browsers are served.
    pub rating_http: RatingHttp,
    /// Whether the titles of the results that a rating is about are logged.
    pub log_result_titles: bool,
    /// The process's metrics, where it registers its own; a process runs one feedback-svc.
    pub metrics: Metrics,
}

impl Config {
    /// A configuration with all limits at their defaults.
    pub fn new(database: DatabaseUrl, learning: LearningAddress) -> Self {
        Self {
            database,
            init: false,
            accept_installation: None,
            postgres_connections: 16,
            database_patience: available::PATIENCE,
            learning,
            learning_token: None,
            commit: CommitConfig::default(),
            relay: RelayConfig::default(),
            request_id_retention: Duration::from_hours(8 * 24),
            bounds: Bounds::default(),
            authenticator: None,
            tls: None,
            reflection: true,
            rating_http: RatingHttp::default(),
            log_result_titles: false,
            metrics: Metrics::new(),
        }
    }
}

/// Where learning-svc is: `HOST:PORT`, or a URL with the scheme `http` or `https`, or several such of its replicas, separated by
/// commas; or in this process.
#[derive(Debug, Clone)]
pub struct LearningAddress {
    text: String,
    remote: Remote,
}

/// Why a text is not an address of learning-svc.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{address:?} is not an address of learning-svc, expected HOST:PORT, for example 127.0.0.1:7402: {reason}"
)]
pub struct LearningAddressError {
    address: String,
    reason: String,
}

impl FromStr for LearningAddress {
    type Err = LearningAddressError;

    fn from_str(text: &str) -> Result<Self, LearningAddressError> {
        let error = |reason: String| LearningAddressError {
            address: text.to_owned(),
            reason,
        };
        let remote = Remote::at(text, "http").map_err(|invalid| error(invalid.to_string()))?;
        if !remote.names_ports() {
            return Err(error("the port is missing".to_owned()));
        }
        Ok(Self {
            text: text.to_owned(),
            remote,
        })
    }
}

impl LearningAddress {
    /// learning-svc in this process, reached through [`Remote`].
    pub fn inside(remote: Remote) -> Self {
        Self {
            text: "this process".to_owned(),
            remote,
        }
    }

    /// The same over TLS with these files, which are read again for every connection; refused unless the scheme is
    /// `https`.
    pub fn tls(self, tls: ClientTls) -> Result<Self, TlsError> {
        Ok(Self {
            remote: self.remote.tls(tls)?,
            ..self
        })
    }

    pub(crate) fn remote(&self) -> Remote {
        self.remote.clone()
    }
}

impl fmt::Display for LearningAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_accepted_with_and_without_a_scheme() {
        for good in [
            "127.0.0.1:7402",
            "http://learning:7402",
            "https://learning:7402",
            "[::1]:7402",
            "learning.example:7402",
            "learning-a:7402,learning-b:7402",
        ] {
            assert!(good.parse::<LearningAddress>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "learning",
            "https://learning",
            "ftp://learning:7402",
            "a b:1",
            "7402",
            "a:1,b",
            "http://",
        ] {
            assert!(bad.parse::<LearningAddress>().is_err(), "{bad}");
        }
    }
}
