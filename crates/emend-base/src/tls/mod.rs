//! TLS on the client's side of a connection, and what both sides share: reading the files, how long a certificate is valid.
//!
//! A client ([`ClientTls`]) reads its files for every connection that it opens. Sessions are never resumed, so a client
//! that is no longer allowed in is refused at its next handshake.

mod client;
mod dialer;
pub mod files;
mod pinned;
mod plain;
mod remote;
mod secured;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod trust_error;
#[cfg(feature = "program")]
mod validity;

pub use client::ClientTls;
pub use dialer::{HttpConnection, connect_http1};
pub use files::TlsError;
pub(crate) use plain::is_of_other_protocol;
pub use remote::{KEEP_ALIVE, Remote, why};
pub use trust_error::TrustError;
#[cfg(feature = "program")]
pub use validity::Validity;

/// What both sides offer in the handshake: gRPC requires HTTP/2.
pub fn alpn() -> Vec<Vec<u8>> {
    vec![b"h2".to_vec()]
}
