//! By what a client verifies a server, and shows who it is itself.
//!
//! It must know nothing of addresses.

use std::path::{Path, PathBuf};

use tokio_rustls::rustls::{ClientConfig, RootCertStore, client::Resumption};

use super::{
    alpn,
    files::{TlsError, identity, provider, roots},
};

/// The files of a client, read anew for every connection. Without any, servers are verified by the system's CAs, and no
/// certificate is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientTls {
    ca: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
}

impl ClientTls {
    /// Servers are verified by the CAs in this PEM file, and no others.
    #[must_use]
    pub fn ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.ca = Some(file.into());
        self
    }

    /// Servers are shown this certificate (PEM, with those that lead to its CA), whose key is in a file of its own.
    #[must_use]
    pub fn identity(mut self, cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.identity = Some((cert.into(), key.into()));
        self
    }

    /// Of files that may be given; none if none is. A certificate counts only with its key.
    pub fn from_files(ca: Option<&Path>, cert: Option<&Path>, key: Option<&Path>) -> Option<Self> {
        let tls = Self {
            ca: ca.map(Path::to_owned),
            identity: cert.zip(key).map(|(cert, key)| (cert.to_owned(), key.to_owned())),
        };
        (tls != Self::default()).then_some(tls)
    }

    /// Whether the files are fit as they are now.
    pub fn check(&self) -> Result<(), TlsError> {
        self.config().map(drop)
    }

    /// Made of the files as they are now. Waits for the disk.
    pub(super) fn config(&self) -> Result<ClientConfig, TlsError> {
        let roots = match &self.ca {
            Some(file) => roots(file)?,
            None => system_roots()?,
        };
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::new("TLS", &error))?
            .with_root_certificates(roots);
        let mut config = match &self.identity {
            Some((cert, key)) => {
                let (chain, secret) = identity(cert, key)?;
                builder
                    .with_client_auth_cert(chain, secret)
                    .map_err(|error| TlsError::of(cert, &error))?
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = alpn();
        config.resumption = Resumption::disabled();
        Ok(config)
    }
}

fn system_roots() -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        return Err(TlsError::new(
            "the system's CAs",
            "there are none; name a CA file",
        ));
    }
    Ok(roots)
}
