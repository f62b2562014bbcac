//! Which addresses take ratings over HTTP, and for whom.

use std::{path::PathBuf, str::FromStr};

use anyhow::Context as _;
use emend_core::{Caller, Namespace};
use emend_serve::{
    listen::{self, ALLOW_FLAG, Exposure, ListenError},
    network::Network,
    plain_http::Bounds,
};
use tokio::net::TcpListener;

/// The least that a key must hold, in bytes.
const MIN_KEY: usize = 16;

/// How raters in browsers are served.
#[derive(Debug, Clone)]
pub struct RatingHttp {
    /// The addresses; none: they are not served.
    pub bindings: Vec<Binding>,
    /// The origins of pages that may send ratings, such as `https://search.example`; `*`: all. Pages of the listener's own
    /// origin always may.
    pub origins: Vec<String>,
    /// The proxies that are believed where a request comes from (`X-Forwarded-For`).
    pub trusted_proxies: Vec<Network>,
    /// What end users' addresses are hashed with.
    pub key: KeyFile,
    /// Whether they may be beyond loopback.
    pub exposure: Exposure,
    /// How much is served at once at each address, and how long clients are waited for.
    pub bounds: Bounds,
    /// The longest body that is read, in bytes.
    pub max_body: usize,
}

impl Default for RatingHttp {
    fn default() -> Self {
        Self {
            bindings: Vec::new(),
            origins: Vec::new(),
            trusted_proxies: Vec::new(),
            key: KeyFile::default(),
            exposure: Exposure::default(),
            bounds: Bounds::default(),
            max_body: 16 * 1024,
        }
    }
}

impl RatingHttp {
    /// What is wrong with the addresses, as far as can be told without listening or resolving names.
    pub fn check(&self) -> impl Iterator<Item = String> {
        let bindings = self.bindings.iter();
        let refused = bindings.filter_map(|binding| listen::check(&binding.address, &self.exposure));
        refused.map(why_not)
    }

    /// Listens at that address.
    pub(super) async fn bind(&self, address: &str) -> anyhow::Result<TcpListener> {
        let bound = listen::bind(address, &self.exposure).await;
        bound.map_err(|error| anyhow::Error::msg(why_not(error)))
    }
}

/// Why there is no listening, in terms of ratings.
fn why_not(error: ListenError) -> String {
    match error {
        ListenError::Exposed { address } => format!(
            "--rating-http: refusing to listen on {address}: it is not a loopback address, so anyone who can connect could \
             rate; listen on 127.0.0.1, or allow this, as for all callers, with --auth-config or {ALLOW_FLAG}"
        ),
        error @ (ListenError::Address { .. } | ListenError::Bind { .. }) => format!("--rating-http: {error}"),
    }
}

/// The file with the key of the hash of end users' addresses. Without one all replicas share a key that is kept in their
/// database.
#[derive(Debug, Clone, Default)]
pub struct KeyFile(pub Option<PathBuf>);

impl KeyFile {
    /// The key; none without a file.
    pub(super) fn read(&self) -> anyhow::Result<Option<Vec<u8>>> {
        let Some(path) = &self.0 else {
            return Ok(None);
        };
        let key = std::fs::read(path).with_context(|| format!("--rating-key-file {}", path.display()))?;
        anyhow::ensure!(
            key.trim_ascii().len() >= MIN_KEY,
            "--rating-key-file {}: must hold at least {MIN_KEY} bytes",
            path.display()
        );
        Ok(Some(key.trim_ascii().to_vec()))
    }
}

/// An address that takes ratings, written `HOST:PORT=NAMESPACE/CALLER`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Where it listens.
    pub address: String,
    /// The search application whose queries are rated there.
    pub namespace: Namespace,
    /// The caller as which ratings from there are stored.
    pub caller: Caller,
}

/// Why a text is no binding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not HOST:PORT=NAMESPACE/CALLER, for example 127.0.0.1:7403=cards/web: {reason}")]
pub struct BindingError {
    text: String,
    reason: String,
}

impl FromStr for Binding {
    type Err = BindingError;

    fn from_str(text: &str) -> Result<Self, BindingError> {
        let wrong = |reason: String| BindingError {
            text: text.to_owned(),
            reason,
        };
        let parts = text
            .split_once('=')
            .and_then(|(address, rest)| Some((address, rest.split_once('/')?)));
        let Some((address, (namespace, caller))) = parts else {
            return Err(wrong("a part is missing".to_owned()));
        };
        if !address.contains(':') {
            return Err(wrong("the address has no port".to_owned()));
        }
        Ok(Self {
            address: address.to_owned(),
            namespace: Namespace::parse(namespace)
                .map_err(|invalid| wrong(format!("the namespace {invalid}")))?,
            caller: Caller::parse(caller).map_err(|invalid| wrong(format!("the caller {invalid}")))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_beyond_loopback_needs_permission() {
        let closed = RatingHttp {
            bindings: vec![
                "127.0.0.1:0=cards/web".parse().unwrap(),
                "0.0.0.0:0=cards/web".parse().unwrap(),
            ],
            ..RatingHttp::default()
        };
        let warnings: Vec<String> = closed.check().collect();
        assert_eq!(warnings.len(), 1);
        assert!(
            warnings[0].starts_with("--rating-http: refusing to listen on 0.0.0.0:0"),
            "{warnings:?}"
        );
        assert!(warnings[0].contains("--allow-unauthenticated"), "{warnings:?}");
        assert!(closed.bind("127.0.0.1:0").await.is_ok());
        let refused = closed.bind("0.0.0.0:0").await.unwrap_err().to_string();
        assert_eq!(refused, warnings[0]);
        let mut open = closed;
        open.exposure.allow_unauthenticated = true;
        assert_eq!(open.check().count(), 0);
        assert!(open.bind("0.0.0.0:0").await.is_ok());
    }

    #[test]
    fn a_binding_names_address_namespace_and_caller() {
        let binding: Binding = "[::1]:7403=cards/web".parse().unwrap();
        assert_eq!(binding.address, "[::1]:7403");
        assert_eq!(
            (binding.namespace.as_str(), binding.caller.as_str()),
            ("cards", "web")
        );
        for wrong in [
            "",
            "127.0.0.1:1",
            "127.0.0.1:1=cards",
            "localhost=cards/web",
            "a:1=No/web",
            "a:1=cards/",
        ] {
            assert!(wrong.parse::<Binding>().is_err(), "{wrong}");
        }
    }
}
