//! Where a service is.
//!
//! It must know nothing of which service that is.

use std::fmt::Write as _;

use tonic::transport::Endpoint;

use crate::ConfigError;

/// Where a service is: made of a URI such as `http://127.0.0.1:7402`, or of an [`Endpoint`] with TLS and the like.
#[derive(Debug, Clone)]
pub struct ServerAddress(Result<Endpoint, String>);

impl ServerAddress {
    /// Whether it is one turns out when it is used.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, ConfigError> {
        self.0.clone().map_err(ConfigError::Address)
    }
}

impl From<Endpoint> for ServerAddress {
    fn from(endpoint: Endpoint) -> Self {
        Self(Ok(endpoint))
    }
}

impl From<String> for ServerAddress {
    fn from(uri: String) -> Self {
        let endpoint = Endpoint::from_shared(uri.clone()).map_err(|error| with_sources(&error));
        Self(endpoint.and_then(|endpoint| match endpoint.uri().scheme_str() {
            Some("http" | "https") => Ok(endpoint),
            _ => Err(format!("{uri:?} must begin with http:// or https://")),
        }))
    }
}

impl From<&str> for ServerAddress {
    fn from(uri: &str) -> Self {
        Self::from(uri.to_owned())
    }
}

impl From<&String> for ServerAddress {
    fn from(uri: &String) -> Self {
        Self::from(uri.clone())
    }
}

/// An error and what caused it, in one line: tonic's own says only "transport error".
pub(crate) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        // Writing to a string does not fail.
        let _ = write!(text, ": {error}");
        source = error.source();
    }
    text
}
