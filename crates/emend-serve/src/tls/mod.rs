//! TLS on the server's side of a connection, from files that may be replaced while the process runs.
//!
//! [`TlsServer`] reloads its files as [`emend_base::reload`] does; open connections continue unchanged. Sessions are never
//! resumed, so a client that is no longer allowed in is refused at its next handshake.

mod server;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use server::{TlsArgs, TlsFiles, TlsServer};

/// What a client's certificate says, verified in the connection's handshake. In the extensions of every request on such a
/// connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerNames {
    /// Of the subject alternative names, the URIs, then the DNS names.
    pub names: Arc<[String]>,
    /// The last second in which the certificate is valid, in seconds since 1970, if it can be told.
    pub not_after: Option<i64>,
}
