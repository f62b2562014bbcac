//! Reading PEM files.

use std::{path::Path, sync::Arc};

use tokio_rustls::rustls::{
    self, RootCertStore,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject},
};

/// Why files can't be used. Never shows their content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{subject}: {reason}")]
pub struct TlsError {
    subject: String,
    reason: String,
}

impl TlsError {
    /// About a file.
    pub fn of(file: &Path, reason: &(impl ToString + ?Sized)) -> Self {
        Self::new(&file.display(), reason)
    }

    /// About anything else.
    pub fn new(subject: &(impl ToString + ?Sized), reason: &(impl ToString + ?Sized)) -> Self {
        Self {
            subject: subject.to_string(),
            reason: reason.to_string(),
        }
    }
}

/// All items of one type in `file`, at least one.
pub fn all<T: PemObject>(file: &Path, subject: &str) -> Result<Vec<T>, TlsError> {
    let unfit = |error: pem::Error| match error {
        pem::Error::Io(error) => TlsError::of(file, &error),
        error => TlsError::of(file, &format!("not PEM: {error}")),
    };
    let found: Result<Vec<T>, _> = T::pem_file_iter(file).map_err(unfit)?.collect();
    let found = found.map_err(unfit)?;
    if found.is_empty() {
        return Err(TlsError::of(file, &format!("holds no {subject}")));
    }
    Ok(found)
}

/// A certificate with its intermediates, and its key.
pub fn identity(
    cert: &Path,
    key: &Path,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let chain = all(cert, "certificate")?;
    let key = all(key, "private key")?.swap_remove(0);
    Ok((chain, key))
}

/// The CAs to trust.
pub fn roots(file: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in all(file, "certificate")? {
        roots
            .add(certificate)
            .map_err(|error: rustls::Error| TlsError::of(file, &error))?;
    }
    Ok(roots)
}

/// The provider is always ring's.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
