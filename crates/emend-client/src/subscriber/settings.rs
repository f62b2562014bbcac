//! A node's settings: what it subscribes to and how it behaves.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use emend_base::{BackoffConfig, Entropy, SharedClock, SystemClock, bearer::TokenFile, tls::Remote};
use emend_core::{InstallationId, Kind, Namespace, NodeId, Violations, generalise::Vectors, kinds::Form};
use emend_proto::learning::v1::{Cursor, NodeInfo, SubscribeRequest};
use tokio::sync::watch;
use tonic::metadata::MetadataMap;
use xxhash_rust::xxh3::Xxh3Default;

use super::{
    confirmed::Confirmed,
    mirror::Followed,
    transport::{Grpc, Transport},
};
use crate::ServerAddress;

/// A stream may wait this long for its turn to receive a snapshot. A dead connection is detected by keep-alive instead.
const LEAST_FIRST_TIMEOUT: Duration = Duration::from_mins(1);
/// Once it has begun, it may wait this long for its turn to receive a long update.
const LEAST_IDLE_TIMEOUT: Duration = Duration::from_secs(25);

/// Why a subscriber or feedback client cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The address is not valid.
    #[error("the address is not valid: {0}")]
    Address(String),
    /// Some settings are not valid; lists all of them.
    #[error("{0}")]
    Invalid(Violations),
}

/// The validated settings.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) remote: Remote,
    pub(super) node: NodeInfo,
    pub(super) namespaces: Vec<Namespace>,
    pub(super) kinds: Vec<Kind>,
    pub(super) include_user_scoped: bool,
    pub(super) bookmark_interval: Duration,
    /// How long a stream may say nothing before its first message.
    pub(super) first_timeout: Duration,
    /// The same after it.
    pub(super) idle_timeout: Duration,
    pub(super) max_batch_bytes: u32,
    pub(super) connect_timeout: Duration,
    pub(super) headers: MetadataMap,
    /// What is mirrored, before anything is.
    pub(super) mirrored: Option<Followed>,
}

/// Where prompts are mirrored, and which.
#[derive(Debug)]
pub(super) struct MirrorSettings {
    pub(super) directory: PathBuf,
    namespace: String,
    label: String,
}

impl Settings {
    /// The request to open a stream from `cursor`.
    pub(super) fn request(&self, cursor: Option<Cursor>) -> SubscribeRequest {
        SubscribeRequest {
            node: Some(self.node.clone()),
            namespaces: self.namespaces.iter().map(Namespace::to_string).collect(),
            kinds: self.kinds.iter().map(|kind| kind.number()).collect(),
            include_user_scoped: self.include_user_scoped,
            cursor,
            bookmark_interval: prost_types::Duration::try_from(self.bookmark_interval).ok(),
            max_batch_bytes: i32::try_from(self.max_batch_bytes).unwrap_or(i32::MAX),
        }
    }

    /// A fingerprint of the subscription, so that a copy on disk is not used for another one.
    pub(super) fn subscription(&self) -> u64 {
        let mut namespaces: Vec<_> = self.namespaces.iter().map(Namespace::as_str).collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        let mut kinds: Vec<_> = self.kinds.iter().map(|kind| kind.number()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut hash = Xxh3Default::new();
        for namespace in namespaces {
            hash.update(namespace.as_bytes());
            // No namespace contains a newline.
            hash.update(b"\n");
        }
        hash.update(b"\n");
        for kind in kinds {
            hash.update(&kind.to_le_bytes());
        }
        hash.update(&[u8::from(self.include_user_scoped)]);
        hash.digest()
    }
}

/// Sets up a subscriber. Everything but the address and the node's id has a default.
#[derive(Debug)]
#[must_use]
pub struct SubscriberBuilder {
    pub(super) address: ServerAddress,
    pub(super) node: NodeInfo,
    pub(super) namespaces: Vec<String>,
    pub(super) kinds: Vec<Kind>,
    pub(super) include_user_scoped: bool,
    pub(super) bookmark_interval: Duration,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) max_batch_bytes: u32,
    pub(super) connect_timeout: Duration,
    pub(super) keep_alive: (Duration, Duration),
    pub(super) report_interval: Duration,
    pub(super) headers: MetadataMap,
    pub(super) token: Option<TokenFile>,
    pub(super) copy: Option<PathBuf>,
    pub(super) copy_interval: Duration,
    pub(super) mirror: Option<MirrorSettings>,
    pub(super) vectors: Option<Arc<dyn Vectors>>,
    pub(super) accepted_installation: Option<InstallationId>,
    pub(super) confirmed: Option<watch::Receiver<Confirmed>>,
    pub(super) backoff: BackoffConfig,
    pub(super) clock: SharedClock,
    pub(super) entropy: Entropy,
    #[cfg(any(test, feature = "simulation"))]
    server: Option<Arc<dyn crate::simulation::Server>>,
}

impl SubscriberBuilder {
    pub(crate) fn new(address: ServerAddress, node_id: String) -> Self {
        Self {
            address,
            node: NodeInfo {
                id: node_id,
                version: String::new(),
                zone: String::new(),
                labels: HashMap::new(),
                transient: false,
            },
            namespaces: Vec::new(),
            kinds: Vec::new(),
            include_user_scoped: false,
            bookmark_interval: Duration::from_secs(30),
            idle_timeout: None,
            max_batch_bytes: 0,
            connect_timeout: Duration::from_secs(10),
            keep_alive: (Duration::from_secs(20), Duration::from_secs(10)),
            report_interval: Duration::from_secs(10),
            headers: MetadataMap::new(),
            token: None,
            copy: None,
            copy_interval: Duration::from_secs(30),
            mirror: None,
            vectors: None,
            accepted_installation: None,
            confirmed: None,
            backoff: BackoffConfig::default(),
            clock: SystemClock::shared(),
            entropy: Entropy::system(),
            #[cfg(any(test, feature = "simulation"))]
            server: None,
        }
    }

    /// Talks to this server instead of the one at the address.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn server(mut self, server: Arc<dyn crate::simulation::Server>) -> Self {
        self.server = Some(server);
        self
    }

    /// The transport to the server.
    pub(super) fn transport(&self, settings: &Settings) -> Box<dyn Transport> {
        #[cfg(any(test, feature = "simulation"))]
        if let Some(server) = &self.server {
            return Box::new(Arc::clone(server));
        }
        Box::new(Grpc {
            remote: settings.remote.clone(),
            headers: settings.headers.clone(),
            token: self.token.clone(),
        })
    }

    /// The node's software version. At most 64 characters.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.node.version = version.into();
        self
    }

    /// Where the node runs. At most 64 characters.
    pub fn zone(mut self, zone: impl Into<String>) -> Self {
        self.node.zone = zone.into();
        self
    }

    /// Is no longer listed among the nodes once its stream has ended, as a person's session rather than a search node.
    pub fn transient(mut self) -> Self {
        self.node.transient = true;
        self
    }

    /// Adds a label that describes the node. At most 16 labels; names of 1 to 63 characters, values of at most 128.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.node.labels.insert(name.into(), value.into());
        self
    }

    /// Subscribes to this search application only; may be called repeatedly. Default: all that the caller may read.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespaces.push(namespace.into());
        self
    }

    /// Subscribes to this kind only; may be called repeatedly. Default: all.
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Includes user-scoped resources. Default: false.
    pub fn include_user_scoped(mut self, include: bool) -> Self {
        self.include_user_scoped = include;
        self
    }

    /// How often the server sends a bookmark, which confirms that nothing is missing, 1 s to 1 h. Default: 30 s.
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.bookmark_interval = interval;
        self
    }

    /// How long a stream may be silent before it is closed. Default: three times the bookmark interval, at least 25 s, and at
    /// least a minute before its first message.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(timeout);
        self
    }

    /// Upper bound in bytes of the resources in one message, 64 KiB to 3 MiB. Default (0): the server's, 1 MiB.
    pub fn max_batch_bytes(mut self, bytes: u32) -> Self {
        self.max_batch_bytes = bytes;
        self
    }

    /// How long opening a stream may take. Default: 10 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Interval and timeout of keep-alive pings on a silent connection. After the timeout the connection is closed and
    /// another is opened. Default: 20 s, 10 s.
    pub fn keep_alive(mut self, interval: Duration, timeout: Duration) -> Self {
        self.keep_alive = (interval, timeout);
        self
    }

    /// The least interval between reports of what the node has applied. Rejections are reported at once. Default: 10 s.
    pub fn report_interval(mut self, interval: Duration) -> Self {
        self.report_interval = interval;
        self
    }

    /// Headers sent with every call, for example `authorization`.
    pub fn headers(mut self, headers: MetadataMap) -> Self {
        self.headers = headers;
        self
    }

    /// Sends the bearer token in this file with every call; the file is read each time. Default: none.
    pub fn token_file(mut self, path: impl AsRef<Path>) -> Self {
        self.token = Some(TokenFile::new(path));
        self
    }

    /// Keeps a last-known-good copy in this file and starts from it. Its directory must exist, and no two nodes may
    /// share a file. Default: no copy.
    pub fn copy(mut self, path: impl Into<PathBuf>) -> Self {
        self.copy = Some(path.into());
        self
    }

    /// The least interval between writes of the copy. Default: 30 s.
    pub fn copy_interval(mut self, interval: Duration) -> Self {
        self.copy_interval = interval;
        self
    }

    /// Mirrors the prompts that are current under a label into a directory, one file for each target
    /// ([`prompt_files`](crate::prompt_files)), for programs that read files. Each is replaced as a whole; the file of a prompt
    /// that is gone is removed; files that the mirror did not write are not touched. No two nodes may share a directory.
    /// Default: no mirror.
    pub fn mirror_prompts(
        mut self,
        directory: impl Into<PathBuf>,
        namespace: impl Into<String>,
        label: impl Into<String>,
    ) -> Self {
        self.mirror = Some(MirrorSettings {
            directory: directory.into(),
            namespace: namespace.into(),
            label: label.into(),
        });
        self
    }

    /// Gives near answers by these vectors, too, where it is set that nodes add just these; all nodes need the same files. Default:
    /// by words alone.
    pub fn near_vectors(mut self, vectors: Arc<dyn Vectors>) -> Self {
        self.vectors = Some(vectors);
        self
    }

    /// Accepts this installation even if the copy on disk is of another one. Default: a node that holds something accepts
    /// no other installation, keeps what it holds and reports `INSTALLATION_MISMATCH`.
    pub fn accept_installation(mut self, installation: InstallationId) -> Self {
        self.accepted_installation = Some(installation);
        self
    }

    /// Hands on what it holds: reports what is confirmed there in place of what it has applied itself. Default: the node
    /// answers by what it holds.
    pub fn confirmed(mut self, confirmed: watch::Receiver<Confirmed>) -> Self {
        self.confirmed = Some(confirmed);
        self
    }

    /// How long to wait between attempts to connect. Default: 100 ms, doubling up to 30 s, with jitter.
    pub fn backoff(mut self, backoff: BackoffConfig) -> Self {
        self.backoff = backoff;
        self
    }

    /// The clock for delays and staleness. Default: this computer's clock.
    pub fn clock(mut self, clock: SharedClock) -> Self {
        self.clock = clock;
        self
    }

    /// The source of jitter and secrets. Default: the operating system.
    pub fn entropy(mut self, entropy: Entropy) -> Self {
        self.entropy = entropy;
        self
    }

    pub(super) fn settings(&self) -> Result<Settings, ConfigError> {
        let remote = self.address.remote()?;
        let mut violations = Violations::new();
        violations.check("node.id", NodeId::parse(&self.node.id));
        let namespaces = self.namespaces.iter().enumerate();
        let namespaces = namespaces
            .filter_map(|(index, raw)| {
                violations.check(&format!("namespaces[{index}]"), Namespace::parse(raw))
            })
            .collect();
        if !(Duration::from_secs(1)..=Duration::from_hours(1)).contains(&self.bookmark_interval) {
            violations.add("bookmark_interval", "must be 1 s to 1 h");
        }
        if self.max_batch_bytes != 0 && !(64 << 10..=3 << 20).contains(&self.max_batch_bytes) {
            violations.add("max_batch_bytes", "must be 0 or 64 KiB to 3 MiB");
        }
        if let Some(path) = &self.copy
            && path.file_name().is_none()
        {
            violations.add("copy", "must name a file");
        }
        let mirrored = self
            .mirror
            .as_ref()
            .and_then(|mirror| self.mirrored(mirror, &mut violations));
        if !violations.is_empty() {
            return Err(ConfigError::Invalid(violations));
        }
        let bookmarks = self.bookmark_interval * 3;
        Ok(Settings {
            remote: remote
                .map(|endpoint| {
                    endpoint
                        .connect_timeout(self.connect_timeout)
                        .tcp_nodelay(true)
                        .keep_alive_while_idle(true)
                })
                .keep_alive(self.keep_alive.0, self.keep_alive.1),
            node: self.node.clone(),
            namespaces,
            kinds: self.kinds.clone(),
            include_user_scoped: self.include_user_scoped,
            bookmark_interval: self.bookmark_interval,
            first_timeout: self.idle_timeout.unwrap_or(bookmarks.max(LEAST_FIRST_TIMEOUT)),
            idle_timeout: self.idle_timeout.unwrap_or(bookmarks.max(LEAST_IDLE_TIMEOUT)),
            max_batch_bytes: self.max_batch_bytes,
            connect_timeout: self.connect_timeout,
            headers: self.headers.clone(),
            mirrored,
        })
    }

    /// What is to be mirrored, if the node subscribes to it.
    fn mirrored(&self, mirror: &MirrorSettings, violations: &mut Violations) -> Option<Followed> {
        let label = violations.check("mirror.label", Form::Exact.parse(&mirror.label));
        let namespace = violations.check("mirror.namespace", Namespace::parse(&mirror.namespace));
        if !self.namespaces.is_empty() && !self.namespaces.contains(&mirror.namespace) {
            violations.add("mirror.namespace", "must be one that the node subscribes to");
        }
        if !self.kinds.is_empty() && !self.kinds.contains(&Kind::Prompt) {
            violations.add("kinds", "must have PROMPT: prompts are mirrored");
        }
        Some(Followed::new(namespace?, label?))
    }
}
