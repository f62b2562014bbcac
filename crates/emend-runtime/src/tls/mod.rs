//! Connections over TLS, on both sides, made of files that may be replaced while the process runs.
//!
//! A server ([`TlsServer`]) looks at its files as [`crate::reload`] does; connections that are open go on as they began. A
//! client ([`ClientTls`]) reads its files for every connection that it opens. Sessions are never resumed: who is no longer
//! let in is refused at the next handshake. It must know nothing of what is said over a connection, and of who may do what.

mod client;
#[cfg(feature = "server")]
mod exactly;
mod files;
mod remote;
#[cfg(feature = "server")]
mod server;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(all(test, feature = "server"))]
mod tests;
mod untrusted;

use std::sync::Arc;

pub use client::ClientTls;
pub use files::TlsError;
pub use remote::{Remote, why};
#[cfg(feature = "server")]
pub use server::{TlsArgs, TlsFiles, TlsServer};
pub use untrusted::Untrusted;

/// The names in a client's certificate, which the connection's handshake has verified: of its subject alternative names the
/// URIs, then the DNS names. Among the extensions of every request on such a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerNames(pub Arc<[String]>);

/// gRPC needs HTTP/2.
fn alpn() -> Vec<Vec<u8>> {
    vec![b"h2".to_vec()]
}
