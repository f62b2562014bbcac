//! Entry points for the fuzz targets into otherwise private code that parses untrusted input. Each panics if an
//! invariant is violated.

use crate::{ConfigError, ServerAddress};
pub use crate::{cache::format::fuzzing::copy, subscriber::engine::fuzzing::stream};

/// Parses a text as a server's address. Does not connect.
pub fn address(text: &str) -> Result<(), ConfigError> {
    ServerAddress::from(text).remote().map(drop)
}
