//! What `edge.toml` says.

use std::{collections::BTreeSet, fs, net::SocketAddr, path::PathBuf, str::FromStr};

use emend_binding::NodeSettings;
use emend_serve::{auth, tls::TlsFiles};
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::sinks::SinkConfig;

/// Where it listens unless something else is said.
const DEFAULT: &str = "127.0.0.1:7420";
const UNIX: &str = "unix:";

/// What `edge.toml` says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where it answers. Default: `127.0.0.1:7420`.
    #[serde(default = "Config::default_listen")]
    pub listen: Vec<Listen>,
    /// Where it answers over gRPC; none: nowhere.
    pub listen_grpc: Option<SocketAddr>,
    /// The names, with or without a port, by which others reach it: what is asked under another one is refused. Loopback has its
    /// own without being told; needed beyond it.
    #[serde(default)]
    pub names: Vec<String>,
    /// The certificate that it shows at its addresses; none: connections are plain.
    pub tls: Option<Tls>,
    /// The file that says which callers may read what, as the services have it. It counts at every address; who may use a Unix
    /// socket its owner alone decides.
    pub auth_config: Option<PathBuf>,
    /// It listens beyond loopback although callers are not authenticated: whoever can connect can read what was learned.
    #[serde(default)]
    pub allow_unauthenticated: bool,
    /// The node that it is: the id, the services, and what it answers for.
    pub node: NodeSettings,
    /// Where what was learned is kept, too.
    #[serde(default, rename = "sink")]
    pub sinks: Vec<SinkConfig>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Self::default_listen(),
            listen_grpc: None,
            names: Vec::new(),
            tls: None,
            auth_config: None,
            allow_unauthenticated: false,
            node: NodeSettings::default(),
            sinks: Vec::new(),
        }
    }
}

/// The files of TLS, all PEM; they are read again when they change.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Its certificate and the intermediates up to its CA.
    pub certificate: PathBuf,
    /// The certificate's key.
    pub key: PathBuf,
    /// The CAs, one of which must have issued each client's certificate; none: clients are not asked for one.
    pub client_ca: Option<PathBuf>,
    /// The revocation lists of those CAs, one of each.
    pub client_crl: Option<PathBuf>,
}

impl Tls {
    /// As a server takes them.
    pub(crate) fn files(&self) -> TlsFiles {
        TlsFiles {
            cert: self.certificate.clone(),
            key: self.key.clone(),
            client_ca: self.client_ca.clone(),
            client_crl: self.client_crl.clone(),
        }
    }
}

/// Why a configuration can't be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl Config {
    /// From TOML; what is unknown or wrong is an error that names it and its line.
    pub fn parse(toml: &str) -> Result<Self, ConfigError> {
        toml::from_str(toml).map_err(|error| ConfigError(error.to_string()))
    }

    /// Where it answers unless something else is said.
    pub fn default_listen() -> Vec<Listen> {
        vec![DEFAULT.parse().expect("invariant: it is an address")]
    }

    /// What is wrong with it, as far as can be told without starting anything.
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |what: String| Err(ConfigError(what));
        if self.listen.is_empty() {
            return wrong("listen: must have at least one address".into());
        }
        let mut ids = BTreeSet::from([self.node.id.clone()]);
        if let Some(twice) = self
            .sinks
            .iter()
            .map(SinkConfig::id)
            .find(|id| !ids.insert(id.clone()))
        {
            return wrong(format!("sink: {twice} is there twice"));
        }
        let is_beyond = |address: &&SocketAddr| !address.ip().to_canonical().is_loopback();
        let addresses = self.listen.iter().filter_map(|listen| match listen {
            Listen::Address(address) => Some(address),
            Listen::Unix(_) => None,
        });
        let beyond: Vec<&SocketAddr> = addresses.filter(is_beyond).collect();
        let of_grpc = self.listen_grpc.as_ref().filter(is_beyond);
        let is_open = self.auth_config.is_none() && !self.allow_unauthenticated;
        if let Some(address) = beyond.iter().copied().chain(of_grpc).next().filter(|_| is_open) {
            return wrong(format!(
                "listen: {address} is beyond loopback, where whoever can connect could read what was learned: auth_config must \
                 name the file of callers, or allow_unauthenticated must be true"
            ));
        }
        if let Some(address) = beyond.first().filter(|_| self.names.is_empty()) {
            return wrong(format!(
                "names: must say by which names others reach {address}, for example [\"edge.example\"], or a page of somebody \
                 else could reach it by another"
            ));
        }
        if let Some(tls) = &self.tls {
            tls.files()
                .check()
                .map_err(|error| ConfigError(format!("tls: {error}")))?;
        }
        if let Some(problem) = auth::args::check(self.auth_config.as_ref()) {
            return wrong(format!("auth_config: {problem}"));
        }
        if let Some(file) = &self.node.connection.token_file
            && let Err(error) = fs::read(file)
        {
            return wrong(format!("node.connection.token_file: {}: {error}", file.display()));
        }
        self.node
            .check()
            .map_err(|error| ConfigError(format!("node: {error}")))
    }
}

/// Where it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// An address.
    Address(SocketAddr),
    /// A Unix socket, which its owner alone can use.
    Unix(PathBuf),
}

/// Why a text says no place to listen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be an IP address with a port, for example {DEFAULT}, or unix:PATH, is {0:?}")]
pub struct ListenError(String);

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        if let Some(path) = text.strip_prefix(UNIX)
            && !path.is_empty()
        {
            return Ok(Self::Unix(path.into()));
        }
        text.parse()
            .map(Self::Address)
            .map_err(|_| ListenError(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "[node]\nid = \"edge-1\"\n[node.connection]\naddresses = [\"127.0.0.1:7402\"]\n";

    #[test]
    fn a_configuration_names_the_node_and_where_it_answers() {
        let listen = "listen = [\"127.0.0.1:0\", \"unix:/run/emend/edge.sock\"]\n";
        let config = Config::parse(&format!("{listen}{NODE}")).unwrap();
        assert_eq!(
            config.listen,
            [
                Listen::Address("127.0.0.1:0".parse().unwrap()),
                Listen::Unix("/run/emend/edge.sock".into()),
            ]
        );
        assert_eq!(config.node.connection.addresses, ["127.0.0.1:7402"]);
        config.check().unwrap();
        let least = Config::parse(NODE).unwrap();
        assert_eq!(least.listen, [Listen::Address(DEFAULT.parse().unwrap())]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (wrong, named) in [
            ("listen = [\"localhost:7420\"]\n[node]\n", "is \"localhost:7420\""),
            ("listen = [\"unix:\"]\n[node]\n", "is \"unix:\""),
            ("[node]\nidentity = \"a\"\n", "identity"),
            ("lissen = []\n[node]\n", "lissen"),
            ("[node]\n[[sink]]\nkind = \"ftp\"\n", "ftp"),
            ("", "node"),
        ] {
            let error = Config::parse(wrong).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
        for (wrong, named) in [
            ("listen = []\n", "listen: must have at least one"),
            (
                "listen = [\"0.0.0.0:7420\"]\n",
                "listen: 0.0.0.0:7420 is beyond loopback",
            ),
            (
                "listen = [\"[::]:7420\"]\nallow_unauthenticated = true\n",
                "names: must say by which names others reach [::]:7420",
            ),
            (
                "auth_config = \"/nowhere/auth.toml\"\n",
                "auth_config: can't read /nowhere/auth.toml",
            ),
            (
                "tls = { certificate = \"/nowhere/tls.crt\", key = \"/nowhere/tls.key\" }\n",
                "tls: /nowhere/tls.crt",
            ),
        ] {
            let error = Config::parse(&format!("{wrong}{NODE}"))
                .unwrap()
                .check()
                .unwrap_err();
            assert!(error.to_string().starts_with(named), "{error}");
        }
        let sink = |what: &str| {
            format!(
                "[[sink]]\nkind = \"file\"\nname = \"a\"\nnamespaces = [\"n\"]\nwhat = \"{what}\"\npath = \"{what}\"\n"
            )
        };
        let twice = [NODE, &sink("synonyms"), &sink("domains")].concat();
        let error = Config::parse(&twice).unwrap().check().unwrap_err().to_string();
        assert_eq!(error, "sink: file:a is there twice");
        let token = NODE.replace("addresses", "token_file = \"/nowhere/token\"\naddresses");
        let error = Config::parse(&token).unwrap().check().unwrap_err().to_string();
        assert!(
            error.starts_with("node.connection.token_file: /nowhere/token"),
            "{error}"
        );
    }
}
