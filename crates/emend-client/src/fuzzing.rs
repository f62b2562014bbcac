//! For the fuzz targets: what reads what others wrote and is private otherwise. Each panics where something does not hold
//! that must.

use crate::{ConfigError, ServerAddress};
pub use crate::{cache::format::fuzzing::copy, subscriber::engine::fuzzing::stream};

/// Takes a text for a server's address, or refuses it. Connects nowhere.
pub fn address(text: &str) -> Result<(), ConfigError> {
    ServerAddress::from(text).remote().map(drop)
}
