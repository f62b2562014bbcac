//! Where the sources are, how they are asked, and with which keys.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::value_parser;
use emend_base::http_client::Key;
use http::{HeaderName, HeaderValue, Uri};

use crate::{
    failure::{Failure, Result},
    transfer::source,
    words,
};

/// Where the sources are, and how they are asked.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sources")]
pub(super) struct SourceArgs {
    /// Semantic Scholar's address
    #[arg(long, value_name = "URL", default_value = "https://api.semanticscholar.org", value_parser = base)]
    pub(super) semantic_scholar_url: Uri,
    /// File with the key for Semantic Scholar
    #[arg(long, value_name = "FILE")]
    pub(super) semantic_scholar_key_file: Option<PathBuf>,
    /// `OpenAlex`'s address
    #[arg(long, value_name = "URL", default_value = "https://api.openalex.org", value_parser = base)]
    pub(super) openalex_url: Uri,
    /// File with the key for `OpenAlex`
    #[arg(long, value_name = "FILE")]
    pub(super) openalex_key_file: Option<PathBuf>,
    /// Requests in a second at most, to each source
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = interval)]
    pub(super) rate: Interval,
    /// How long an attempt to get an answer may take
    #[arg(long, value_name = "SPAN", default_value = "20s", value_parser = words::duration)]
    pub(super) source_timeout: Duration,
    /// How often a request is tried at most
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = value_parser!(u32).range(1..=10))]
    pub(super) attempts: u32,
}

/// The least time from one request to the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval(pub(super) Duration);

/// The keys for the sources.
#[derive(Default)]
pub(super) struct Keys {
    pub(super) semantic_scholar: Option<String>,
    pub(super) openalex: Option<String>,
}

/// The bytes of a key's file at most.
const MAX_KEY_BYTES: u64 = 1 << 16;

/// The key in the file, else in the environment variable.
pub(super) fn key(file: Option<&Path>, variable: &str) -> Result<Option<String>> {
    let (from, text) = match file {
        Some(file) => {
            let from = file.display().to_string();
            (from, source::text(file, MAX_KEY_BYTES)?)
        }
        None => match std::env::var(variable) {
            Ok(text) => (variable.to_owned(), text),
            Err(_) => return Ok(None),
        },
    };
    let key = text.trim();
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Failure::usage(format!(
            "{from} must hold one key, of visible ASCII characters"
        )));
    }
    Ok(Some(key.to_owned()))
}

/// Semantic Scholar's key in its header, which is never shown.
pub(super) fn in_header(key: Option<String>) -> Result<Key> {
    let Some(key) = key else { return Ok(Key::None) };
    let mut value = HeaderValue::try_from(key).map_err(|error| Failure::usage(error.to_string()))?;
    value.set_sensitive(true);
    Ok(Key::Header(HeaderName::from_static("x-api-key"), value))
}

/// The address of a service.
pub(super) fn base(text: &str) -> Result<Uri, String> {
    let uri: Uri = text.parse().map_err(|_| "is no address")?;
    let is_served = matches!(uri.scheme_str(), Some("http" | "https"));
    let has_host = uri.host().is_some_and(|host| !host.is_empty());
    if is_served && has_host && uri.query().is_none() && !text.contains('@') {
        Ok(uri)
    } else {
        Err("must be http://HOST or https://HOST, with a path or none, without a user or a query".into())
    }
}

/// The interval of so many requests in a second.
fn interval(text: &str) -> Result<Interval, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.01..=100.0).contains(&rate) => Ok(Interval(Duration::from_secs_f64(1.0 / rate))),
        _ => Err("must be a number from 0.01 to 100".into()),
    }
}
