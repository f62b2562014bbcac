//! Who is known now: the state read last, and the streams whose rights depend on it.
//!
//! When the files change, or the keys of an issuer that are fetched, all are read again, and the caller of each stream is
//! checked again. Invalid files leave everything as it was.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use emend_base::{
    clock::{SharedClock, SystemClock},
    error::Error,
    reload::{Reload, Watched, When},
};
use http::{Extensions, HeaderMap};
use tokio_util::sync::CancellationToken;

use super::{
    access::Access,
    authorization::{Authorization, Credentials, SupervisedStreams, Supervision},
    config::{self, ConfigError},
    directory::{Difference, Directory, Identity},
    jwt::remote::RemoteKeys,
    role::Role,
};

/// Identifies callers and knows their rights.
pub struct Authenticator {
    path: PathBuf,
    clock: SharedClock,
    directory: ArcSwap<Directory>,
    watched: Mutex<Watched>,
    /// That of `watched`, which is locked while files are read.
    failing: Arc<AtomicBool>,
    pub(super) keys: Arc<RemoteKeys>,
    streams: SupervisedStreams,
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Authenticator {
    /// Reads the file at `path` and the files that it names.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::load_by(path, SystemClock::shared())
    }

    /// The same; JWTs expire by `clock`.
    pub fn load_by(path: &Path, clock: SharedClock) -> Result<Self, ConfigError> {
        let mut watched = Watched::new(vec![path.to_owned()]);
        let keys = Arc::default();
        let directory = read(path, &clock, &keys, &mut watched)?;
        Ok(Self {
            path: path.to_owned(),
            clock,
            directory: ArcSwap::from_pointee(directory),
            failing: watched.failing(),
            watched: Mutex::new(watched),
            keys,
            streams: SupervisedStreams::default(),
        })
    }

    /// The only issuer whose JWTs are accepted, if there is one.
    pub fn issuer(&self) -> Option<String> {
        self.directory.load().issuer().map(ToOwned::to_owned)
    }

    pub(super) fn identify(&self, credentials: &Credentials) -> Result<Identity, Error> {
        credentials.identify(&self.directory.load())
    }

    pub(super) fn permit(&self, credentials: Credentials, role: Role) -> Result<Authorization, Error> {
        credentials.permit(&self.directory.load(), role)
    }

    /// What the caller of an HTTP request may do through what requires `role`: by the token in its headers, or by the names in
    /// its client's certificate ([`PeerNames`](crate::tls::PeerNames)), which are among its extensions.
    pub fn access(
        self: &Arc<Self>,
        headers: &HeaderMap,
        extensions: &Extensions,
        role: Role,
    ) -> Result<Access, Error> {
        let authorization = self.permit(Credentials::found(headers, extensions), role)?;
        Ok(authorization.access(self))
    }

    pub(super) fn renew(&self, authorization: &Authorization) -> Result<Authorization, Error> {
        authorization.renewed(&self.directory.load())
    }

    /// The name of the principal that a certificate with these names identifies.
    pub(crate) fn name_by_certificate(&self, names: &[String]) -> Option<String> {
        let directory = self.directory.load();
        directory.name_by_certificate(names).map(ToOwned::to_owned)
    }

    /// What is wrong with the files that are needed only to fetch keys.
    pub(super) fn check(&self) -> Result<(), String> {
        self.keys.check()
    }

    /// Fetches the keys of an issuer once, if the files name an address, and puts them in force. Returns how long to
    /// wait before the next time.
    pub(super) async fn fetch_keys(self: &Arc<Self>) -> Option<Duration> {
        let fetch = self.keys.fetch(&self.clock).await?;
        if fetch.brought_others {
            let this = Arc::clone(self);
            let read = tokio::task::spawn_blocking(move || {
                let mut watched = this.watched.lock().unwrap_or_else(PoisonError::into_inner);
                this.read_again(&mut watched, When::Requested)
            });
            if let Err(error) = read.await {
                tracing::error!(%error, "can't put fetched keys in force");
            }
        }
        Some(fetch.again_in)
    }

    /// Keeps the fetched keys current until `stop` is cancelled.
    pub(super) async fn keep_keys(self: Arc<Self>, stop: CancellationToken) {
        let mut wait = None;
        loop {
            let due = async {
                match wait {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = due => {}
                // Also the first time, if there is an address.
                () = self.keys.wanted.notified() => {}
            }
            wait = tokio::select! {
                () = stop.cancelled() => return,
                wait = self.fetch_keys() => wait,
            };
        }
    }

    /// Reads the files and puts them in force; returns whether they can be used.
    fn read_again(&self, watched: &mut Watched, when: When) -> bool {
        match read(&self.path, &self.clock, &self.keys, watched) {
            Ok(directory) => {
                watched.succeeded();
                let directory = Arc::new(directory);
                let before = self.directory.swap(Arc::clone(&directory));
                self.streams.check(&directory);
                let Difference {
                    added,
                    changed,
                    removed,
                } = directory.since(&before);
                tracing::info!(
                    file = %self.path.display(),
                    added = added.join(", "),
                    changed = changed.join(", "),
                    removed = removed.join(", "),
                    "the authentication file was read again"
                );
                true
            }
            Err(error) => {
                if watched.failed(error.to_string(), when) {
                    tracing::error!(%error, "the changed authentication file can't be used; the previous one stays in force");
                }
                false
            }
        }
    }

    pub(super) fn supervise(&self, authorization: Authorization) -> Supervision {
        self.streams
            .take(authorization, &self.clock, || self.directory.load_full())
    }
}

/// Reads the file and those it names, all of which are watched from then on.
fn read(
    path: &Path,
    clock: &SharedClock,
    keys: &Arc<RemoteKeys>,
    watched: &mut Watched,
) -> Result<Directory, ConfigError> {
    let mut loaded = config::load(path, clock, keys);
    if watched.follow(loaded.files) {
        // The files it names were not watched yet when they were read: read them again.
        loaded = config::load(path, clock, keys);
    }
    if loaded.directory.is_ok() {
        keys.follow(loaded.source);
    }
    loaded.directory
}

impl Reload for Authenticator {
    fn reload(&self, when: When) -> bool {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if !watched.is_due(when) {
            return false;
        }
        self.read_again(&mut watched, when)
    }

    fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed) || self.keys.is_failing()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use http::{Request, header::AUTHORIZATION};
    use tempfile::TempDir;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{auth::token::TokenHash, tls::PeerNames};

    fn file_of(name: &str) -> String {
        let hash = TokenHash::of("secret");
        format!(
            "[[principals]]\nname = \"{name}\"\ntoken_sha256 = [\"{hash}\"]\ncertificates = [\"node.example\"]\n\
             grants = [{{ roles = [\"subscriber\"], namespaces = [\"shop\"] }}]\n"
        )
    }

    fn authenticator(text: &str) -> (TempDir, PathBuf, Authenticator) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("auth.toml");
        fs::write(&path, text).unwrap();
        let authenticator = Authenticator::load(&path).unwrap();
        (directory, path, authenticator)
    }

    fn credentials(authorization: Option<&str>, names: &[&str]) -> Credentials {
        let mut request = Request::new(());
        if let Some(value) = authorization {
            request
                .headers_mut()
                .insert(AUTHORIZATION, value.parse().unwrap());
        }
        if !names.is_empty() {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            request.extensions_mut().insert(PeerNames {
                names: names.into(),
                validity: None,
                withdrawn: CancellationToken::new(),
            });
        }
        Credentials::of(&request)
    }

    fn found(authenticator: &Authenticator, authorization: Option<&str>, names: &[&str]) -> String {
        match authenticator.permit(credentials(authorization, names), Role::Subscriber) {
            Ok(authorization) => authorization.caller().to_string(),
            Err(error) => error.reason().to_owned(),
        }
    }

    #[test]
    fn a_caller_is_known_by_its_token_or_else_by_a_name_in_its_certificate() {
        let (_directory, _, authenticator) = authenticator(&file_of("node"));
        for (authorization, names, expected) in [
            (Some("Bearer secret"), &[][..], "node"),
            (Some("bearer  secret "), &[], "node"),
            (None, &["other.example", "node.example"], "node"),
            (None, &[], "CREDENTIALS_MISSING"),
            (None, &["other.example"], "CREDENTIALS_NOT_ACCEPTED"),
            (Some("Bearer guess"), &[], "CREDENTIALS_NOT_ACCEPTED"),
            (Some("Basic secret"), &[], "CREDENTIALS_NOT_ACCEPTED"),
            (Some("secret"), &[], "CREDENTIALS_NOT_ACCEPTED"),
            (Some("Bearer "), &[], "CREDENTIALS_NOT_ACCEPTED"),
            // A good certificate does not make up for a bad token.
            (
                Some("Bearer guess"),
                &["node.example"],
                "CREDENTIALS_NOT_ACCEPTED",
            ),
        ] {
            assert_eq!(
                found(&authenticator, authorization, names),
                expected,
                "{authorization:?} {names:?}"
            );
        }
        let other = authenticator.permit(credentials(Some("Bearer secret"), &[]), Role::Operator);
        assert_eq!(other.unwrap_err().reason(), "ROLE_MISSING");
    }

    #[test]
    fn a_token_takes_precedence_over_the_certificate_of_another_caller() {
        let hash = TokenHash::of("other");
        let text = format!(
            "{}[[principals]]\nname = \"other\"\ntoken_sha256 = [\"{hash}\"]\n\
             grants = [{{ roles = [\"reporter\"], namespaces = [\"shop\"] }}]\n",
            file_of("node")
        );
        let (_directory, _, authenticator) = authenticator(&text);
        let names = &["node.example"];
        assert_eq!(found(&authenticator, None, names), "node");
        // The token's rights count too, not those of the certificate presented with it.
        assert_eq!(found(&authenticator, Some("Bearer other"), names), "ROLE_MISSING");
        let other = authenticator.permit(credentials(Some("Bearer other"), names), Role::Reporter);
        assert_eq!(other.unwrap().caller().to_string(), "other");
    }

    #[test]
    fn two_authorization_headers_are_refused() {
        let (_directory, _, authenticator) = authenticator(&file_of("node"));
        for (first, second) in [
            ("Bearer secret", "Bearer guess"),
            ("Bearer secret", "Bearer secret"),
        ] {
            let request = Request::builder()
                .header(AUTHORIZATION, first)
                .header(AUTHORIZATION, second)
                .body(())
                .unwrap();
            let refused = authenticator.permit(Credentials::of(&request), Role::Subscriber);
            assert_eq!(refused.unwrap_err().reason(), "CREDENTIALS_NOT_ACCEPTED");
        }
    }

    #[test]
    fn an_overlong_token_is_refused_unread() {
        let text = file_of("node").replace(
            &TokenHash::of("secret").to_string(),
            &TokenHash::of(&"x".repeat(9_000)).to_string(),
        );
        let (_directory, _, authenticator) = authenticator(&text);
        let long = format!("Bearer {}", "x".repeat(9_000));
        assert_eq!(
            found(&authenticator, Some(&long), &[]),
            "CREDENTIALS_NOT_ACCEPTED"
        );
    }

    #[test]
    fn a_changed_file_takes_effect_and_an_invalid_one_changes_nothing() {
        let (_directory, path, authenticator) = authenticator(&file_of("node"));
        assert!(!authenticator.reload_if_changed(), "nothing changed");
        fs::write(&path, "principals = 1").unwrap();
        assert!(!authenticator.reload_if_changed());
        assert_eq!(found(&authenticator, Some("Bearer secret"), &[]), "node");
        fs::write(&path, file_of("other")).unwrap();
        assert!(authenticator.reload_if_changed());
        assert_eq!(found(&authenticator, Some("Bearer secret"), &[]), "other");
    }

    #[test]
    fn what_differs_between_two_files_is_told_by_the_names_of_principals() {
        let (_directory, _, before) = authenticator(
            &(file_of("node")
                + &file_of("gone")
                    .replace("node.example", "b")
                    .replace("token_sha256", "#")),
        );
        let later = file_of("node").replace("subscriber", "reporter")
            + &file_of("new")
                .replace("node.example", "b")
                .replace("token_sha256", "#");
        let (_directory, _, after) = authenticator(&later);
        let [before, after] = [before, after].map(|known| known.directory.load_full());
        let [node, gone, new] = ["node", "gone", "new"].map(|name| vec![name.to_owned()]);
        let expected = Difference {
            added: new,
            changed: node,
            removed: gone,
        };
        assert_eq!(after.since(&before), expected);
        assert_eq!(after.since(&after), Difference::default());
    }

    #[test]
    fn a_named_file_that_appears_later_takes_effect_then() {
        let (directory, path, authenticator) = authenticator(&file_of("node"));
        let key = directory.path().join("key");
        let jwt = "[jwt]\naudience = \"emend\"\nshared_key_file = \"key\"\n";
        fs::write(&path, file_of("other") + jwt).unwrap();
        assert!(!authenticator.reload_if_changed(), "there is no key yet");
        assert_eq!(found(&authenticator, Some("Bearer secret"), &[]), "node");
        fs::write(&key, "x".repeat(32)).unwrap();
        assert!(authenticator.reload_if_changed());
        assert_eq!(found(&authenticator, Some("Bearer secret"), &[]), "other");
        assert!(!authenticator.reload_if_changed(), "nothing is left to be read");
        fs::write(&key, "y".repeat(32)).unwrap();
        assert!(authenticator.reload_if_changed(), "it is watched");
    }

    #[test]
    fn a_requested_reload_reads_the_files_whether_they_have_changed_or_not() {
        let (_directory, _, authenticator) = authenticator(&file_of("node"));
        assert!(!authenticator.reload(When::Changed));
        assert!(authenticator.reload(When::Requested));
    }

    #[test]
    fn a_token_is_never_shown() {
        let credentials = credentials(Some("Bearer secret"), &[]);
        assert!(!format!("{credentials:?}").contains("secret"));
    }
}
