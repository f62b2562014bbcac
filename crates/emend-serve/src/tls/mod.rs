//! TLS on the server's side of a connection, from files that may be replaced while the process runs.
//!
//! [`TlsServer`] reloads its files as [`emend_base::reload`] does; open connections continue unchanged. Sessions are never
//! resumed, so a client that is no longer allowed in is refused at its next handshake.

mod server;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use server::{TlsArgs, TlsFiles, TlsServer};

/// The names in a client's certificate, verified in the connection's handshake: of the subject alternative names, the
/// URIs, then the DNS names. In the extensions of every request on such a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerNames(pub Arc<[String]>);
