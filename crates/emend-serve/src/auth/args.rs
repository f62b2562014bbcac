//! The file of `--auth-config`: loading, reloading and checking it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use emend_base::{
    Error,
    bearer::TokenFile,
    lifecycle::Lifecycle,
    reload::{self, Reload},
};

use super::{Authenticator, ConfigError, Role, authorization::Credentials};

/// Reads the file at `path`, if given, and reloads it when it changes for as long as `lifecycle` runs.
pub fn load(path: Option<&Path>, lifecycle: &Lifecycle) -> Result<Option<Arc<Authenticator>>, ConfigError> {
    let Some(path) = path else { return Ok(None) };
    let authenticator = Arc::new(Authenticator::load(path)?);
    let watched: Arc<dyn Reload> = Arc::<Authenticator>::clone(&authenticator);
    reload::spawn(vec![watched], reload::INTERVAL, lifecycle);
    lifecycle.spawn(
        "fetch the keys that verify tokens",
        Arc::clone(&authenticator).keep_keys(lifecycle.soft().clone()),
    );
    Ok(Some(authenticator))
}

/// Why the file at `path` would not let in whoever presents this token as one with `role`. Keys that are fetched are not asked.
pub fn check_token(path: &Path, token: &TokenFile, role: Role) -> Option<String> {
    let (authenticator, token) = (Authenticator::load(path).ok()?, token.authorization().ok()?);
    let mut request = http::Request::new(());
    let value = http::HeaderValue::from_bytes(token.as_encoded_bytes()).ok()?;
    request.headers_mut().insert(http::header::AUTHORIZATION, value);
    match authenticator.permit(Credentials::of(&request), role) {
        // That of a key that is fetched: only its issuer can tell.
        Ok(_) | Err(Error::Unavailable { .. }) => None,
        Err(refused) => Some(refused.to_string()),
    }
}

/// What is wrong with the file, or with those that it names.
pub fn check(path: Option<&PathBuf>) -> Option<String> {
    let path = path?;
    let checked = Authenticator::load(path).map_err(|error| error.to_string());
    let problem = checked.and_then(|authenticator| authenticator.check()).err()?;
    let names_the_file = problem.contains(&*path.to_string_lossy());
    Some(if names_the_file {
        problem
    } else {
        format!("{}: {problem}", path.display())
    })
}
