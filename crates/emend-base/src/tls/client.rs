//! How a client verifies servers, and the certificate that it presents.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::{ClientConfig, RootCertStore, client::Resumption};

use super::files::{TlsError, identity, provider, roots};
use super::pinned::PinnedCertificate;

/// A client's files, read again for every connection. Without any, servers are verified with the system's CAs and no
/// certificate is presented.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientTls {
    trusted: TrustedServers,
    identity: Option<(PathBuf, PathBuf)>,
}

/// Which servers are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum TrustedServers {
    /// Those with a certificate from the system's CAs.
    #[default]
    System,
    /// Those with a certificate from the CAs in this file.
    Authorities(PathBuf),
    /// Only the one whose certificate is in this file.
    Pinned(PathBuf),
}

impl ClientTls {
    /// Verifies servers with the CAs in this PEM file, and no others.
    #[must_use]
    pub fn ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.trusted = TrustedServers::Authorities(file.into());
        self
    }

    /// Accepts only a server with exactly the certificate in this PEM file, and its key; names, dates and CAs do not
    /// count.
    #[must_use]
    pub fn exactly(mut self, file: impl Into<PathBuf>) -> Self {
        self.trusted = TrustedServers::Pinned(file.into());
        self
    }

    /// Presents this certificate (PEM, with its intermediates), whose key is in a separate file.
    #[must_use]
    pub fn identity(mut self, cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.identity = Some((cert.into(), key.into()));
        self
    }

    /// From optional files; `None` if none is given. A certificate counts only with its key.
    pub fn from_files(ca: Option<&Path>, cert: Option<&Path>, key: Option<&Path>) -> Option<Self> {
        let tls = Self {
            trusted: ca.map_or(TrustedServers::System, |file| {
                TrustedServers::Authorities(file.to_owned())
            }),
            identity: cert.zip(key).map(|(cert, key)| (cert.to_owned(), key.to_owned())),
        };
        (tls != Self::default()).then_some(tls)
    }

    /// The file with the certificate that it presents, if it presents one.
    pub fn certificate(&self) -> Option<&Path> {
        self.identity.as_ref().map(|(cert, _)| cert.as_path())
    }

    /// Whether the files are valid now.
    pub fn check(&self) -> Result<(), TlsError> {
        self.config().map(drop)
    }

    /// The configuration from the files as they are now; it offers no protocol. Blocks on the disk.
    pub(super) fn config(&self) -> Result<ClientConfig, TlsError> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::new("TLS", &error))?;
        let builder = match &self.trusted {
            TrustedServers::System => builder.with_root_certificates(system_roots()?),
            TrustedServers::Authorities(file) => builder.with_root_certificates(roots(file)?),
            TrustedServers::Pinned(file) => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(PinnedCertificate::read(file)?)),
        };
        let mut config = match &self.identity {
            Some((cert, key)) => {
                let (chain, secret) = identity(cert, key)?;
                builder
                    .with_client_auth_cert(chain, secret)
                    .map_err(|error| TlsError::of(cert, &error))?
            }
            None => builder.with_no_client_auth(),
        };
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
