//! TLS on the server's side of a connection, from files that may be replaced while the process runs.
//!
//! [`TlsServer`] reloads its files as [`emend_base::reload`] does; open connections continue unchanged, except those of
//! clients whose certificates are no longer accepted: these end. Sessions are never resumed, so such a client is refused
//! at its next handshake too.

mod clients;
mod server;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use emend_base::tls::Validity;
use tokio_util::sync::CancellationToken;

pub use server::{TlsArgs, TlsFiles, TlsServer};

/// What a client's certificate says, verified in the connection's handshake. In the extensions of every request on such a
/// connection.
#[derive(Debug, Clone)]
pub struct PeerNames {
    /// Of the subject alternative names, the URIs, then the DNS names.
    pub names: Arc<[String]>,
    /// When the certificate is valid, if it can be told.
    pub validity: Option<Validity>,
    /// Cancelled once the certificate is no longer accepted: it was revoked, or its CA is trusted no more.
    pub withdrawn: CancellationToken,
}
