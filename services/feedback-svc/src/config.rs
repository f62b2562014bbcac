//! How the service is set up: where its database and learning-svc are, and its bounds.
//!
//! It must know nothing of command lines.

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

use emend_runtime::{
    BackoffConfig,
    auth::Authenticator,
    available,
    bearer::TokenFile,
    bounds::{Bounds, KeepAlive},
    database::DatabaseUrl,
    telemetry::Metrics,
    tls::{ClientTls, Remote, TlsError, TlsServer},
};

/// How one feedback-svc is set up.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where feedback is kept. Of a SQLite file the caller holds the directory's lock.
    pub database: DatabaseUrl,
    /// How many connections to PostgreSQL this replica may have at once.
    pub postgres_connections: u32,
    /// How long the start waits for a PostgreSQL that is away.
    pub database_patience: Duration,
    /// Where learning-svc is.
    pub learning: LearningAddress,
    /// The token that learning-svc knows this service by, if it asks for one.
    pub learning_token: Option<TokenFile>,
    /// How submissions are grouped.
    pub commit: CommitConfig,
    /// How events are brought to learning-svc.
    pub relay: RelayConfig,
    /// For how long a request id makes a submission safe to repeat; at least 7 days.
    pub request_id_retention: Duration,
    /// How much it takes on at once, and how long it waits for clients.
    pub bounds: Bounds,
    /// Who knows who calls and who may do what; without one everybody may do everything.
    pub authenticator: Option<Arc<Authenticator>>,
    /// Over what it is served; none: connections are plain.
    pub tls: Option<Arc<TlsServer>>,
    /// Whether it answers server reflection.
    pub reflection: bool,
    /// Where it counts and measures what it does: the process's own, in which there is one feedback-svc.
    pub metrics: Metrics,
}

impl Config {
    /// With the defaults of all bounds.
    pub fn new(database: DatabaseUrl, learning: LearningAddress) -> Self {
        Self {
            database,
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
            metrics: Metrics::new(),
        }
    }
}

/// How concurrent submissions share a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitConfig {
    /// Most submissions of one commit; a larger batch is committed alone.
    pub group_items: usize,
    /// Most bytes of events of one commit.
    pub group_bytes: usize,
    /// Most bytes that wait for their commit; beyond it submissions are refused with `RESOURCE_EXHAUSTED`. A submission
    /// counts as 4 KiB at least.
    pub queue_bytes: usize,
    /// How long a submission may wait until its commit begins; beyond it, too, it is refused with `RESOURCE_EXHAUSTED`. So
    /// who is answered is answered soon, however slow the database is.
    pub queue_time: Duration,
}

impl Default for CommitConfig {
    fn default() -> Self {
        Self {
            group_items: 128,
            group_bytes: 2 * 1024 * 1024,
            queue_bytes: 32 * 1024 * 1024,
            queue_time: Duration::from_secs(2),
        }
    }
}

/// How events are brought to learning-svc.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RelayConfig {
    /// For how long an event belongs to one replica.
    pub lease: Duration,
    /// How often the outbox is looked into for what other replicas left or what is to be tried again, give or take a fifth.
    pub poll: Duration,
    /// How many batches may be under way at once.
    pub workers: usize,
    /// Most events of a batch, at most 256.
    pub batch_events: usize,
    /// Most bytes of a batch; a larger event travels alone.
    pub batch_bytes: usize,
    /// How many events may wait in memory.
    pub queue_events: usize,
    /// How long an event may wait in memory before it is looked for in the outbox again when it is sent; shorter than any
    /// failover of a database takes.
    pub trusted: Duration,
    /// How long learning-svc may take to answer a batch; well below the lease.
    pub answer_timeout: Duration,
    /// How it finds out that learning-svc has gone without a word.
    pub keep_alive: KeepAlive,
    /// How long an event waits after a refusal that is worth another try.
    pub retry: BackoffConfig,
    /// How long a worker waits while learning-svc is away.
    pub reconnect: BackoffConfig,
}

impl Default for RelayConfig {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            poll: Duration::from_secs(1),
            workers: 4,
            batch_events: 256,
            batch_bytes: 1024 * 1024,
            queue_events: 4096,
            trusted: Duration::from_millis(250),
            answer_timeout: Duration::from_secs(10),
            keep_alive: KeepAlive {
                interval: Duration::from_secs(10),
                timeout: Duration::from_secs(5),
            },
            retry: BackoffConfig {
                initial: Duration::from_millis(200),
                max: Duration::from_mins(1),
                multiplier: 2.0,
            },
            reconnect: BackoffConfig {
                initial: Duration::from_millis(50),
                max: Duration::from_secs(2),
                multiplier: 2.0,
            },
        }
    }
}

/// Where learning-svc is: `HOST:PORT`, or a URL with the scheme `http` or `https`; or in this process.
#[derive(Debug, Clone)]
pub struct LearningAddress {
    text: String,
    remote: Remote,
}

/// Why it is no address.
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
        let url = match text.split_once("://") {
            None => format!("http://{text}"),
            Some(("http" | "https", _)) => text.to_owned(),
            Some((scheme, _)) => return Err(error(format!("the scheme {scheme} is not supported"))),
        };
        let remote = Remote::new(&url).map_err(|invalid| error(invalid.to_string()))?;
        if remote.port().is_none() {
            return Err(error("the port is missing".to_owned()));
        }
        Ok(Self {
            text: text.to_owned(),
            remote,
        })
    }
}

impl LearningAddress {
    /// In this process, where [`Remote`] leads.
    pub fn inside(remote: Remote) -> Self {
        Self {
            text: "this process".to_owned(),
            remote,
        }
    }

    /// Verified by these files, which are read again for every connection; refused where the scheme is not `https`.
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
    fn addresses_are_taken_with_and_without_a_scheme() {
        for good in [
            "127.0.0.1:7402",
            "http://learning:7402",
            "https://learning:7402",
            "[::1]:7402",
            "learning.example:7402",
        ] {
            assert!(good.parse::<LearningAddress>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "learning",
            "https://learning",
            "ftp://learning:7402",
            "a b:1",
            "http://",
        ] {
            assert!(bad.parse::<LearningAddress>().is_err(), "{bad}");
        }
    }
}
