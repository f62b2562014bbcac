//! The console's settings.

use std::{fmt, fs, net::SocketAddr, path::PathBuf};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use emend_base::Entropy;
use emend_serve::{network::Network, origin::Origin};
use http::HeaderName;

use crate::seal::KEY_BYTES;

/// Where the console listens unless it is told otherwise.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:7400";

/// The settings as arguments of a command.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Console")]
pub struct ConsoleArgs {
    /// Where the console listens, for browsers; off: nowhere [default: 127.0.0.1:7400, if it is free]
    #[arg(long, value_name = "HOST:PORT", env = "EMEND_CONSOLE_ADDR")]
    pub console_addr: Option<String>,
    /// The address that people type, for example <https://emend.example>; requests for another host are refused, and with https
    /// cookies are sent over TLS only. May be repeated. Default: the address where it listens, and localhost
    #[arg(
        long,
        value_name = "URL",
        env = "EMEND_CONSOLE_PUBLIC_URL",
        value_delimiter = ','
    )]
    pub console_public_url: Vec<Origin>,
    /// File with 32 bytes as base64, by which sessions are sealed, the same for all replicas. Default: a new key at each
    /// start, so that everybody signs in again
    #[arg(long, value_name = "FILE", env = "EMEND_CONSOLE_COOKIE_KEY_FILE")]
    pub console_cookie_key_file: Option<PathBuf>,
    /// The header in which a proxy that signs people in hands on their token, for example authorization
    #[arg(
        long,
        value_name = "HEADER",
        env = "EMEND_CONSOLE_TOKEN_HEADER",
        requires = "console_trusted_proxies"
    )]
    pub console_token_header: Option<HeaderName>,
    /// The addresses or networks of the proxies whose header is believed
    #[arg(
        long,
        value_name = "NETWORK",
        env = "EMEND_CONSOLE_TRUSTED_PROXIES",
        value_delimiter = ','
    )]
    pub console_trusted_proxies: Vec<Network>,
    /// Which pages may show the rating dialogs in a frame, for example <https://app.example>. Default: none but the console's own
    #[arg(
        long,
        value_name = "ORIGIN",
        env = "EMEND_CONSOLE_FRAME_ANCESTORS",
        value_delimiter = ','
    )]
    pub console_frame_ancestors: Vec<Origin>,
}

/// The settings as they are used.
#[derive(Clone)]
pub struct ConsoleConfig {
    /// The namespace that is shown first.
    pub namespace: String,
    /// The hosts that requests may name, in lower case; loopback names always may where it listens on loopback.
    pub public_urls: Vec<Origin>,
    /// By which sessions are sealed.
    pub key: [u8; KEY_BYTES],
    /// In which header a proxy hands on tokens, and which proxies are believed.
    pub token_header: Option<(HeaderName, Vec<Network>)>,
    /// Who may frame the rating dialogs.
    pub frame_ancestors: Vec<Origin>,
}

impl fmt::Debug for ConsoleConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsoleConfig")
            .field("namespace", &self.namespace)
            .field("public_urls", &self.public_urls)
            .finish_non_exhaustive()
    }
}

/// Why the settings can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The key can't be read.
    #[error("--console-cookie-key-file {path}: {why}")]
    Key {
        /// Where it should be.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// It would be open to everybody under any name.
    #[error(
        "--console-addr {0} is not a loopback address: --console-public-url must say by which address people reach it, or a page of somebody else could reach it by another name"
    )]
    NoPublicUrl(SocketAddr),
}

impl ConsoleArgs {
    /// The settings as they are used, beginning with this namespace.
    pub fn configuration(&self, namespace: String, entropy: &Entropy) -> Result<ConsoleConfig, ConfigError> {
        let mut key = [0; KEY_BYTES];
        match &self.console_cookie_key_file {
            None => entropy.fill(&mut key),
            Some(path) => {
                let fault = |why: String| ConfigError::Key {
                    path: path.clone(),
                    why,
                };
                let text = fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
                let bytes = STANDARD.decode(text.trim()).unwrap_or_default();
                key = bytes
                    .try_into()
                    .map_err(|_| fault(format!("it must be {KEY_BYTES} bytes as base64")))?;
            }
        }
        Ok(ConsoleConfig {
            namespace,
            public_urls: self.console_public_url.clone(),
            key,
            token_header: self
                .console_token_header
                .clone()
                .map(|header| (header, self.console_trusted_proxies.clone())),
            frame_ancestors: self.console_frame_ancestors.clone(),
        })
    }

    /// What is wrong with the settings, as far as can be told without listening.
    pub fn check(&self) -> Option<String> {
        let config = self.configuration(String::new(), &Entropy::system());
        let config = match config {
            Ok(config) => config,
            Err(error) => return Some(error.to_string()),
        };
        let address: Vec<SocketAddr> = self.address().parse().into_iter().collect();
        config.refusal(&address).map(|error| error.to_string())
    }

    /// The address where it listens.
    pub fn address(&self) -> &str {
        self.console_addr.as_deref().unwrap_or(DEFAULT_ADDRESS)
    }
}

impl ConsoleConfig {
    /// Why it may not listen there: beyond loopback it must know its own names.
    pub fn refusal(&self, addresses: &[SocketAddr]) -> Option<ConfigError> {
        let is_beyond = |address: &&SocketAddr| !address.ip().to_canonical().is_loopback();
        let beyond = addresses.iter().find(is_beyond)?;
        self.public_urls
            .is_empty()
            .then_some(ConfigError::NoPublicUrl(*beyond))
    }
}
