//! The keys of an issuer that offers them at an address, as a Kubernetes API server and most identity providers do.
//!
//! They are fetched at an interval, and at once when a token names a key that is not among them. What was fetched last
//! stays in force for as long as nothing newer can be had.

#[cfg(test)]
mod tests;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use emend_base::{
    Entropy,
    bearer::TokenFile,
    clock::SharedClock,
    http_client::{Client, Key, Limits},
    tls::ClientTls,
};
use http::{HeaderValue, Uri, header::AUTHORIZATION};
use serde_json::Value;
use tokio::sync::Notify;

use super::Keys;

/// How often keys are fetched unless the file says otherwise, in seconds.
const INTERVAL: u64 = 300;
/// The bounds of what the file may say, in seconds.
const INTERVALS: std::ops::RangeInclusive<u64> = 10..=86_400;
/// How soon after a failure they are fetched again.
const RETRY: Duration = Duration::from_secs(10);
/// How long keys count as the newest there are, and the least time between two fetches that tokens ask for, in seconds.
const NEWEST: i64 = 10;

const LIMITS: Limits = Limits {
    timeout: Duration::from_secs(10),
    attempts: 1,
    interval: Duration::ZERO,
    max_answer: 1 << 20,
};

/// Where keys are fetched from, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::auth) struct KeySource {
    url: Uri,
    /// The CAs that verify the server there; without it, the system's.
    ca: Option<PathBuf>,
    /// The bearer token that is shown there; read for each fetch.
    token: Option<PathBuf>,
    interval: Duration,
}

impl KeySource {
    /// From what the file says; the error begins with the name of the setting.
    pub(in crate::auth) fn parse(
        url: &str,
        ca: Option<PathBuf>,
        token: Option<PathBuf>,
        seconds: Option<u64>,
    ) -> Result<Self, String> {
        let url: Uri = url
            .parse()
            .map_err(|error| format!("jwks_url: is not a URL: {error}"))?;
        // Whoever can change what is fetched can make tokens for everybody.
        let is_here = matches!(url.host(), Some("127.0.0.1" | "[::1]" | "localhost"));
        match url.scheme_str() {
            Some("https") => {}
            Some("http") if is_here => {}
            _ => return Err("jwks_url: must begin with https://, or http:// for this machine".to_owned()),
        }
        let seconds = seconds.unwrap_or(INTERVAL);
        if !INTERVALS.contains(&seconds) {
            let (least, most) = (INTERVALS.start(), INTERVALS.end());
            return Err(format!("jwks_refresh_seconds: must be from {least} to {most}"));
        }
        Ok(Self {
            url,
            ca,
            token,
            interval: Duration::from_secs(seconds),
        })
    }

    /// What is wrong with the files that a fetch needs.
    pub(in crate::auth) fn check(&self) -> Result<(), String> {
        self.tls().check().map_err(|error| error.to_string())?;
        self.key().map(drop)
    }

    fn tls(&self) -> ClientTls {
        let tls = ClientTls::default();
        match &self.ca {
            Some(file) => tls.ca(file),
            None => tls,
        }
    }

    fn key(&self) -> Result<Key, String> {
        let Some(file) = &self.token else {
            return Ok(Key::None);
        };
        let token = TokenFile::new(file)
            .authorization()
            .map_err(|error| error.to_string())?;
        let mut value =
            HeaderValue::from_bytes(token.as_encoded_bytes()).map_err(|error| error.to_string())?;
        value.set_sensitive(true);
        Ok(Key::Header(AUTHORIZATION, value))
    }

    /// What the address answers now, if these are keys.
    async fn fetch(&self, clock: &SharedClock) -> Result<Vec<u8>, String> {
        let client = Client::new(
            "the issuer of tokens",
            self.url.clone(),
            self.key()?,
            LIMITS,
            Arc::new(clock.clone()),
            Entropy::system(),
            concat!("emend/", env!("CARGO_PKG_VERSION")),
        );
        let answer: Value = client
            .tls(self.tls())
            .get("")
            .await
            .map_err(|error| error.to_string())?;
        let keys = answer.to_string().into_bytes();
        Keys::jwks(&keys)?;
        Ok(keys)
    }
}

/// What was fetched, by whom it was asked for, and whether it could be had.
#[derive(Debug, Default)]
pub(in crate::auth) struct RemoteKeys {
    state: Mutex<State>,
    /// Told when keys are to be fetched at once.
    pub(in crate::auth) wanted: Notify,
}

#[derive(Debug, Default)]
struct State {
    source: Option<KeySource>,
    /// The address, and what it answered.
    fetched: Option<(Uri, Vec<u8>)>,
    /// When that was, and when the last fetch began, in seconds since 1970.
    fetched_at: Option<i64>,
    tried_at: Option<i64>,
    /// Why the last fetch failed, if it did.
    failure: Option<String>,
}

/// What became of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::auth) struct Fetch {
    /// Whether the keys are others than before.
    pub(in crate::auth) brought_others: bool,
    /// When to fetch again.
    pub(in crate::auth) again_in: Duration,
}

impl RemoteKeys {
    /// The keys fetched last from this address; none if nothing was.
    pub(in crate::auth) fn keys_of(&self, source: &KeySource) -> Keys {
        let state = self.state();
        let held = state.fetched.as_ref().filter(|(url, _)| *url == source.url);
        // They were valid when they were fetched.
        held.and_then(|(_, keys)| Keys::jwks(keys).ok())
            .unwrap_or_else(Keys::awaited)
    }

    /// From where keys are fetched from now on; at once, if it is another address or another way.
    pub(in crate::auth) fn follow(&self, source: Option<KeySource>) {
        let mut state = self.state();
        if state.source != source {
            state.source = source;
            state.failure = None;
            self.wanted.notify_one();
        }
    }

    /// Asks for keys because a token names an unknown one. False if those that are held are the newest there are.
    pub(in crate::auth) fn ask(&self, now: i64) -> bool {
        let state = self.state();
        let is_new = |at: Option<i64>| at.is_some_and(|at| (0..NEWEST).contains(&now.saturating_sub(at)));
        if is_new(state.fetched_at) {
            return false;
        }
        if !is_new(state.tried_at) {
            self.wanted.notify_one();
        }
        true
    }

    /// Whether the last fetch failed.
    pub(in crate::auth) fn is_failing(&self) -> bool {
        self.state().failure.is_some()
    }

    /// What is wrong with the files that a fetch needs, if anything is to be fetched.
    pub(in crate::auth) fn check(&self) -> Result<(), String> {
        let source = self.state().source.clone();
        source.map_or(Ok(()), |source| source.check())
    }

    /// Fetches the keys once; none if the files name no address.
    pub(in crate::auth) async fn fetch(&self, clock: &SharedClock) -> Option<Fetch> {
        let source = {
            let mut state = self.state();
            state.tried_at = Some(clock.now().as_second());
            state.source.clone()?
        };
        let answer = source.fetch(clock).await;
        let mut state = self.state();
        if state.source.as_ref() != Some(&source) {
            // Another address was named in the meantime.
            return Some(Fetch {
                brought_others: false,
                again_in: Duration::ZERO,
            });
        }
        Some(match answer {
            Ok(keys) => {
                let fetched = Some((source.url, keys));
                let brought_others = state.fetched != fetched;
                if state.failure.take().is_some() || brought_others {
                    tracing::info!("the keys that verify tokens were fetched");
                }
                state.fetched = fetched;
                state.fetched_at = Some(clock.now().as_second());
                Fetch {
                    brought_others,
                    again_in: source.interval,
                }
            }
            Err(error) => {
                if state.failure.as_ref() != Some(&error) {
                    let held = state.fetched.as_ref().is_some_and(|(url, _)| *url == source.url);
                    let until_then = if held {
                        "those fetched before stay in force"
                    } else {
                        "until then no token of this issuer is accepted"
                    };
                    tracing::error!(%error, url = %source.url, "can't fetch the keys that verify tokens; {until_then}");
                    state.failure = Some(error);
                }
                Fetch {
                    brought_others: false,
                    again_in: source.interval.min(RETRY),
                }
            }
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
