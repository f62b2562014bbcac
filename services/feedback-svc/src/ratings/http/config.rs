//! Which addresses take ratings over HTTP, and for whom.

use std::{path::PathBuf, str::FromStr};

use anyhow::Context as _;
use emend_core::{Caller, Namespace};

use super::Network;

/// The least that a key must hold, in bytes.
const MIN_KEY: usize = 16;

/// How raters in browsers are served.
#[derive(Debug, Clone, Default)]
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
            .and_then(|(address, of)| Some((address, of.split_once('/')?)));
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
