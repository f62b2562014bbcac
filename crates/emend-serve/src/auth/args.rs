//! The file of `--auth-config`: loading, reloading and checking it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use emend_base::{
    lifecycle::Lifecycle,
    reload::{self, Reload},
};

use super::{Authenticator, ConfigError};

/// Reads the file at `path`, if given, and reloads it when it changes for as long as `lifecycle` runs.
pub fn load(path: Option<&Path>, lifecycle: &Lifecycle) -> Result<Option<Arc<Authenticator>>, ConfigError> {
    let Some(path) = path else { return Ok(None) };
    let authenticator = Arc::new(Authenticator::load(path)?);
    let watched: Arc<dyn Reload> = Arc::<Authenticator>::clone(&authenticator);
    reload::spawn(vec![watched], reload::INTERVAL, lifecycle);
    Ok(Some(authenticator))
}

/// What is wrong with the file.
pub fn check(path: Option<&PathBuf>) -> Option<String> {
    Authenticator::load(path?).err().map(|error| error.to_string())
}
