//! For the fuzz targets: what reads what others wrote and is private otherwise. Each panics where something does not hold
//! that must.

pub use crate::{cache::format::fuzzing::copy, subscriber::engine::fuzzing::stream};
use crate::{ConfigError, ServerAddress};

/// Takes a text for a server's address, or refuses it. Connects nowhere.
pub fn address(text: &str) -> Result<(), ConfigError> {
    ServerAddress::from(text).endpoint().map(drop)
}
