//! TLS for both ends of a connection, from files that may be replaced while the process runs.
//!
//! A server ([`TlsServer`]) reloads its files as [`crate::reload`] does; open connections continue unchanged. A client
//! ([`ClientTls`]) reads its files for every connection that it opens. Sessions are never resumed, so a client that is
//! no longer allowed in is refused at its next handshake. It must know nothing of what is said over a connection, or of
//! who may do what.

mod client;
mod files;
#[cfg(feature = "server")]
mod pinned;
mod remote;
#[cfg(feature = "server")]
mod server;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(all(test, feature = "server"))]
mod tests;
mod untrusted;
#[cfg(feature = "server")]
mod validity;

use std::sync::Arc;

pub use client::ClientTls;
pub use files::TlsError;
pub use remote::{Remote, why};
#[cfg(feature = "server")]
pub use server::{TlsArgs, TlsFiles, TlsServer};
pub use untrusted::Untrusted;
#[cfg(feature = "server")]
pub(crate) use validity::Validity;

/// The names in a client's certificate, verified in the connection's handshake: of the subject alternative names, the
/// URIs, then the DNS names. In the extensions of every request on such a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerNames(pub Arc<[String]>);

/// gRPC requires HTTP/2.
fn alpn() -> Vec<Vec<u8>> {
    vec![b"h2".to_vec()]
}
