//! Settings as a language's own objects say them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use emend_base::tls::{ClientTls, Remote};
use emend_client::{
    FeedbackClient, InstallationId, Invalid, Kind, MetadataMap, MetadataValue, ServerAddress, Subscriber,
    SubscriberBuilder, Violations,
};
use serde::Deserialize;

use crate::Error;

/// Interval and timeout of a node's keep-alive pings: a server that falls silent is noticed within 25 s.
const NODE_KEEP_ALIVE: (f64, f64) = (15.0, 10.0);
/// The same of a client, while calls are under way.
const CLIENT_KEEP_ALIVE: (f64, f64) = (3.0, 2.0);
/// Seconds between a server's bookmarks: one that answers pings and sends nothing else is noticed after three of them, 27 s.
const BOOKMARK_INTERVAL: f64 = 9.0;
/// The longest time that a setting may name, in seconds: a day.
const LONGEST: f64 = 86_400.0;

/// How a service is reached.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConnectionSettings {
    /// `HOST:PORT` or a URI; several are those of replicas, of which the first that answers is used.
    pub addresses: Vec<String>,
    /// Addresses without a scheme are of TLS. They are also if there is a CA or a certificate.
    pub tls: bool,
    /// A PEM file with the CAs that may have signed the server's certificate. Default: the system's.
    pub ca: Option<PathBuf>,
    /// A PEM file with the certificate that the client presents.
    pub certificate: Option<PathBuf>,
    /// A PEM file with its key.
    pub key: Option<PathBuf>,
    /// A bearer token.
    pub token: Option<String>,
    /// A file with a bearer token, which is read again for every call.
    pub token_file: Option<PathBuf>,
    /// Other headers of every call.
    pub headers: BTreeMap<String, String>,
    /// How long a call may take with all its attempts, in seconds. Default: 10.
    pub deadline: Option<f64>,
    /// How long opening a node's stream may take, in seconds. Default: 10.
    pub connect_timeout: Option<f64>,
    /// Seconds between keep-alive pings. Default: 15 for a node, 3 for other calls.
    pub keep_alive_interval: Option<f64>,
    /// Seconds after which an unanswered ping ends the connection. Default: 10 for a node, 2 for other calls.
    pub keep_alive_timeout: Option<f64>,
}

/// Prompts that are mirrored into files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MirrorSettings {
    /// The directory.
    pub directory: PathBuf,
    /// The search application.
    pub namespace: String,
    /// The label under which prompts are current.
    pub label: String,
}

/// A node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeSettings {
    /// How learning-svc is reached.
    pub connection: ConnectionSettings,
    /// The node's id: 1 to 128 characters of `[A-Za-z0-9._:-]`.
    pub id: String,
    /// Its software's version, at most 64 characters.
    pub version: String,
    /// Where it runs, at most 64 characters.
    pub zone: String,
    /// What describes it: at most 16 labels.
    pub labels: BTreeMap<String, String>,
    /// It is no longer listed once its stream has ended.
    pub transient: bool,
    /// The search applications that it answers for; none: all that the caller may read.
    pub namespaces: Vec<String>,
    /// The kinds that it answers for; none: all.
    pub kinds: Vec<String>,
    /// It answers with what users taught for themselves, too.
    pub include_user_scoped: bool,
    /// The directory of its copy on disk, which is made if it is not there; none: no copy.
    pub cache_dir: Option<PathBuf>,
    /// The least number of seconds between writes of the copy. Default: 30.
    pub cache_interval: Option<f64>,
    /// Seconds between the server's bookmarks, 1 to 3,600: after three of them, but at least 25 s, a server that sends nothing is
    /// left. Default: 9.
    pub bookmark_interval: Option<f64>,
    /// The installation that is accepted although the copy is of another: a UUID.
    pub accept_installation: Option<String>,
    /// Prompts that are mirrored into files.
    pub mirror_prompts: Option<MirrorSettings>,
    /// The directory of the vectors that near answers are given by, too; none: by words alone.
    pub near_vectors: Option<PathBuf>,
}

impl ConnectionSettings {
    /// From JSON; an unknown setting is an error that names it.
    pub fn from_json(json: &str) -> Result<Self, Error> {
        serde_json::from_str(json).map_err(|error| unreadable(&error))
    }

    fn address(&self, violations: &mut Violations) -> Option<ServerAddress> {
        if self.addresses.is_empty() {
            violations.add(
                "addresses",
                "must have at least one address, for example 127.0.0.1:7402",
            );
            return None;
        }
        if self.certificate.is_some() != self.key.is_some() {
            let missing = if self.key.is_none() { "key" } else { "certificate" };
            violations.add(
                missing,
                "must be given, too: a certificate and its key belong together",
            );
        }
        let files = ClientTls::from_files(
            self.ca.as_deref(),
            self.certificate.as_deref(),
            self.key.as_deref(),
        );
        let scheme = if self.tls || files.is_some() {
            "https"
        } else {
            "http"
        };
        let remote = Remote::at(&self.addresses.join(","), scheme)
            .and_then(|remote| files.map_or(Ok(remote.clone()), |files| remote.tls(files)));
        match remote {
            Ok(remote) => Some(remote.into()),
            Err(error) => {
                violations.add("addresses", error.to_string());
                None
            }
        }
    }

    fn headers(&self, violations: &mut Violations) -> MetadataMap {
        let mut headers = MetadataMap::new();
        for (name, value) in &self.headers {
            let parsed = name
                .parse::<tonic::metadata::MetadataKey<_>>()
                .ok()
                .zip(value.parse::<MetadataValue<_>>().ok());
            match parsed {
                Some((name, value)) => drop(headers.insert(name, value)),
                None => violations.add(
                    format!("headers.{name}"),
                    "must be a header's name and value, of ASCII",
                ),
            }
        }
        if let Some(token) = &self.token {
            let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
            match format!("Bearer {token}").parse::<MetadataValue<_>>() {
                Ok(mut value) if is_token => {
                    value.set_sensitive(true);
                    headers.insert("authorization", value);
                }
                _ => violations.add("token", "must be one token, of visible ASCII characters"),
            }
            if self.token_file.is_some() {
                violations.add("token_file", "must not be given beside token");
            }
        }
        headers
    }

    fn keep_alive(
        &self,
        (interval, timeout): (f64, f64),
        violations: &mut Violations,
    ) -> (Duration, Duration) {
        let interval = self.keep_alive_interval.unwrap_or(interval);
        let timeout = self.keep_alive_timeout.unwrap_or(timeout);
        (
            seconds(violations, "keep_alive_interval", interval),
            seconds(violations, "keep_alive_timeout", timeout),
        )
    }

    /// A client with these settings. Called within the runtime of the background.
    pub(crate) fn client(&self) -> Result<FeedbackClient, Error> {
        let mut violations = Violations::new();
        let address = self.address(&mut violations);
        let headers = self.headers(&mut violations);
        let (interval, timeout) = self.keep_alive(CLIENT_KEEP_ALIVE, &mut violations);
        let deadline = seconds(&mut violations, "deadline", self.deadline.unwrap_or(10.0));
        let address = violations.finish(address)?;
        let mut client = FeedbackClient::new(address)?
            .headers(headers)
            .deadline(deadline)
            .keep_alive(interval, timeout);
        if let Some(file) = &self.token_file {
            client = client.token_file(file);
        }
        Ok(client)
    }
}

impl NodeSettings {
    /// From JSON; an unknown setting is an error that names it.
    pub fn from_json(json: &str) -> Result<Self, Error> {
        serde_json::from_str(json).map_err(|error| unreadable(&error))
    }

    /// What is wrong with it, as far as can be told without starting or making anything.
    pub fn check(&self) -> Result<(), Error> {
        let without_copy = Self {
            cache_dir: None,
            ..self.clone()
        };
        without_copy.builder().map(drop)
    }

    /// A node with these settings, which makes the directory of its copy if that is missing.
    pub fn builder(self) -> Result<SubscriberBuilder, Error> {
        let mut violations = Violations::new();
        let connection = self.connection;
        let address = connection.address(&mut violations);
        let headers = connection.headers(&mut violations);
        let (interval, timeout) = connection.keep_alive(NODE_KEEP_ALIVE, &mut violations);
        let mut time =
            |field, value: Option<f64>, default| seconds(&mut violations, field, value.unwrap_or(default));
        let connect = time("connect_timeout", connection.connect_timeout, 10.0);
        let cache_interval = time("cache_interval", self.cache_interval, 30.0);
        let bookmarks = time("bookmark_interval", self.bookmark_interval, BOOKMARK_INTERVAL);
        let installation = self.accept_installation.as_deref().map(InstallationId::parse);
        let installation = installation.and_then(|parsed| violations.check("accept_installation", parsed));
        let kinds = self.kinds.iter().enumerate();
        let kinds: Vec<Kind> = kinds
            .filter_map(|(place, name)| violations.check(&format!("kinds[{place}]"), Kind::parse_any(name)))
            .collect();
        let copy = self
            .cache_dir
            .and_then(|directory| copy_in(&directory, &self.id, &mut violations));
        let vectors = self
            .near_vectors
            .as_deref()
            .map(|directory| emend_vectors::read(directory).map_err(|error| Invalid::new(error.to_string())));
        let vectors = vectors.and_then(|read| violations.check("near_vectors", read));
        let address = violations.finish(address)?;
        let mut builder = Subscriber::builder(address, self.id)
            .version(self.version)
            .zone(self.zone)
            .headers(headers)
            .keep_alive(interval, timeout)
            .connect_timeout(connect)
            .copy_interval(cache_interval)
            .bookmark_interval(bookmarks)
            .include_user_scoped(self.include_user_scoped);
        if self.transient {
            builder = builder.transient();
        }
        for (name, value) in self.labels {
            builder = builder.label(name, value);
        }
        builder = self
            .namespaces
            .into_iter()
            .fold(builder, SubscriberBuilder::namespace);
        builder = kinds.into_iter().fold(builder, SubscriberBuilder::kind);
        if let Some(file) = connection.token_file {
            builder = builder.token_file(file);
        }
        if let Some(copy) = copy {
            builder = builder.copy(copy);
        }
        if let Some(installation) = installation {
            builder = builder.accept_installation(installation);
        }
        if let Some(mirror) = self.mirror_prompts {
            builder = builder.mirror_prompts(mirror.directory, mirror.namespace, mirror.label);
        }
        if let Some(vectors) = vectors {
            builder = builder.near_vectors(vectors);
        }
        Ok(builder)
    }
}

/// The file of a node's copy: nodes of one directory differ by their ids.
fn copy_in(directory: &Path, id: &str, violations: &mut Violations) -> Option<PathBuf> {
    match fs::create_dir_all(directory) {
        Ok(()) => Some(directory.join(format!("{id}.emend"))),
        Err(error) => {
            let why = format!(
                "must be a directory that can be made: {}: {error}",
                directory.display()
            );
            violations.add("cache_dir", why);
            None
        }
    }
}

fn seconds(violations: &mut Violations, field: &str, value: f64) -> Duration {
    if value > 0.0 && value <= LONGEST {
        return Duration::from_secs_f64(value);
    }
    violations.add(
        field,
        format!("must be more than 0 s and at most {LONGEST} s, is {value}"),
    );
    Duration::from_secs(1)
}

fn unreadable(error: &serde_json::Error) -> Error {
    Error::of_field("settings", error.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use emend_client::{
        Lifecycle, Observed, SubscriberEvent,
        simulation::{Silent, served_by},
    };
    use tokio::time::Instant;

    use super::*;

    /// The default of every language: the specification wants silence noticed within 30 s.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_sends_nothing_is_noticed_within_thirty_seconds() {
        let settings = r#"{"id": "a", "connection": {"addresses": ["127.0.0.1:1"]}}"#;
        let builder = NodeSettings::from_json(settings).and_then(NodeSettings::builder);
        let builder = served_by(builder.unwrap(), Arc::new(Silent::AfterSnapshot));
        let (lifecycle, begun) = (Lifecycle::new(), Instant::now());
        let (node, mut events) = builder.spawn_observed(&lifecycle).await.unwrap();
        while let Some(observed) = events.next().await {
            let Observed::Event(event) = observed else {
                panic!("{observed:?}")
            };
            if let SubscriberEvent::Disconnected { reason, .. } = &*event {
                assert!(reason.contains("no message for"), "{reason}");
                break;
            }
        }
        assert!(
            begun.elapsed() <= Duration::from_secs(30),
            "{:?}",
            begun.elapsed()
        );
        assert!(!node.view().staleness().connected);
        lifecycle.shutdown(Duration::ZERO).await;
    }

    #[test]
    fn every_setting_that_is_wrong_is_named_with_its_bound() {
        let settings = NodeSettings::from_json(
            r#"{"id": "a", "bookmark_interval": -1, "kinds": ["verb", "nonsense"], "accept_installation": "x",
                "connection": {"certificate": "c.pem", "token": "two words", "keep_alive_timeout": 1e9}}"#,
        );
        let refused = settings.and_then(NodeSettings::builder).unwrap_err();
        let fields: Vec<_> = refused.violations.iter().map(|found| &*found.field).collect();
        assert_eq!(
            fields,
            [
                "addresses",
                "token",
                "keep_alive_timeout",
                "bookmark_interval",
                "accept_installation",
                "kinds[1]",
            ]
        );
        assert!(
            refused.text.contains("at most 86400 s, is 1000000000"),
            "{refused}"
        );
        assert_eq!(refused.code, "INVALID_ARGUMENT");
        let unknown = NodeSettings::from_json(r#"{"cache_directory": "/tmp"}"#).unwrap_err();
        assert!(unknown.text.contains("cache_directory"), "{unknown}");
    }
}
