//! The address of a service.

use emend_base::tls::{ClientTls, Remote};
use tonic::transport::Endpoint;

use crate::ConfigError;

/// The address of a service: a URI such as `http://127.0.0.1:7402` or `https://learning.example:7402`, or an
/// [`Endpoint`] with its own TLS and other settings. Several URIs, separated by commas, are those of replicas: connections go to the
/// first that answers, and stay with it while it does.
///
/// Over `https` the server is verified against the system's CAs, unless [`ServerAddress::tls`] names others.
#[derive(Debug, Clone)]
pub struct ServerAddress(Result<Remote, String>);

impl ServerAddress {
    /// Uses these files for TLS; they are read again for every connection. The URI must begin with `https://`.
    #[must_use]
    pub fn tls(self, tls: ClientTls) -> Self {
        let secured = |remote: Remote| remote.tls(tls).map_err(|error| error.to_string());
        Self(self.0.and_then(secured))
    }

    /// An invalid address is reported here, when it is first used.
    pub(crate) fn remote(&self) -> Result<Remote, ConfigError> {
        self.0.clone().map_err(ConfigError::Address)
    }
}

impl From<Endpoint> for ServerAddress {
    fn from(endpoint: Endpoint) -> Self {
        Self(Ok(endpoint.into()))
    }
}

impl From<Remote> for ServerAddress {
    fn from(remote: Remote) -> Self {
        Self(Ok(remote))
    }
}

impl From<String> for ServerAddress {
    fn from(uri: String) -> Self {
        Self::from(uri.as_str())
    }
}

impl From<&str> for ServerAddress {
    fn from(uri: &str) -> Self {
        Self(Remote::new(uri).map_err(|error| error.to_string()))
    }
}

impl From<&String> for ServerAddress {
    fn from(uri: &String) -> Self {
        Self::from(uri.as_str())
    }
}
