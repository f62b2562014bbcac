//! Who may do what, over the wire: every RPC × every role × own and foreign namespace, as docs/security.md says; what a
//! stranger is told; what a changed file does to streams and imports; who is named in the audit trail; tokens from
//! other issuers; certificates that expire or are revoked.

mod certificates;
mod edge;
mod jwt;
mod matrix;
mod messages;
mod people;
mod roles;
mod second;

use std::{fs, path::PathBuf, sync::Arc};

use emend_base::{bearer::TokenFile, reload::Reload as _, telemetry::Metrics};
use emend_serve::auth::{Authenticator, TokenHash};
use emend_tests::harness::{Database, System, system::Settings};
use tempfile::TempDir;
use tonic::{Request, metadata::MetadataMap};

const OWN: &str = "own";
const IN_OWN: &str = "[\"own\"]";
const OWN_FOR_USERS: &str = "[\"own\"], act_for_users = true";
pub(crate) const EVERYWHERE: &str = "\"*\"";
const EVERYWHERE_FOR_USERS: &str = "\"*\", act_for_users = true";
const FOREIGN: &str = "foreign";

/// A caller: its name, roles and namespaces (and the rest of its grant), as written in the file. Its token is its name
/// and `-token`.
pub(crate) type Caller<'a> = (&'a str, &'a str, &'a str);

/// feedback-svc itself.
const SERVICE: Caller<'_> = ("feedback-svc", "ingester", EVERYWHERE);

/// Both services, which know some callers from a file.
pub(crate) struct Guarded {
    pub(crate) system: System,
    /// learning-svc's.
    pub(crate) metrics: Metrics,
    authenticator: Arc<Authenticator>,
    file: PathBuf,
    _directory: TempDir,
}

/// Stamps each test on both databases, with both services knowing these callers. Without a PostgreSQL server, that half
/// is skipped with one line of output. After the test the system must shut down gracefully.
macro_rules! on_both_databases {
    ($( async fn $name:ident($guarded:ident: $callers:expr) $body:block )+) => { $(
        mod $name {
            use super::*;

            async fn check($guarded: &$crate::security::Guarded) $body

            #[tokio::test(flavor = "multi_thread")]
            async fn sqlite() {
                $crate::security::Guarded::check(
                    emend_tests::harness::Database::sqlite(),
                    &$callers,
                    async |guarded| check(guarded).await,
                )
                .await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn postgres() {
                if let Some(database) = emend_tests::harness::Database::postgres().await {
                    $crate::security::Guarded::check(database, &$callers, async |guarded| check(guarded).await)
                        .await;
                }
            }
        }
    )+ };
}
use on_both_databases;

impl Guarded {
    /// Runs the test on both services, then stops them.
    pub(crate) async fn check(database: Database, callers: &[Caller<'_>], test: impl AsyncFnOnce(&Self)) {
        let guarded = Self::start(database, callers).await;
        test(&guarded).await;
        guarded.system.stop().await;
    }

    async fn start(database: Database, callers: &[Caller<'_>]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("auth.toml");
        fs::write(&file, auth_file(callers)).unwrap();
        let token = directory.path().join("token");
        fs::write(&token, format!("{}\n", token_of(SERVICE.0))).unwrap();
        let authenticator = Arc::new(Authenticator::load(&file).unwrap());
        let metrics = Metrics::new();
        let settings = Settings {
            authenticator: Some(Arc::clone(&authenticator)),
            learning_token: Some(TokenFile::new(token)),
            learning_metrics: Some(metrics.clone()),
            ..Settings::default()
        };
        Self {
            system: System::start(database, 1, 1, settings).await,
            metrics,
            authenticator,
            file,
            _directory: directory,
        }
    }

    /// Replaces the callers in the file.
    pub(crate) fn rewrite(&self, callers: &[Caller<'_>]) {
        fs::write(&self.file, auth_file(callers)).unwrap();
        assert!(self.authenticator.reload_if_changed());
    }
}

pub(crate) fn token_of(name: &str) -> String {
    format!("{name}-token")
}

fn auth_file(callers: &[Caller<'_>]) -> String {
    let principal = |(name, roles, namespaces): &Caller<'_>| {
        let hash = TokenHash::of(&token_of(name));
        let roles: Vec<String> = roles.split(' ').map(|role| format!("{role:?}")).collect();
        format!(
            "[[principals]]\nname = \"{name}\"\ntoken_sha256 = [\"{hash}\"]\n\
             grants = [{{ roles = [{}], namespaces = {namespaces} }}]\n",
            roles.join(", ")
        )
    };
    callers.iter().chain([&SERVICE]).map(principal).collect()
}

/// A request with a token, if there is one.
pub(crate) fn with_token<T>(message: T, token: Option<&str>) -> Request<T> {
    let mut request = Request::new(message);
    authorize(request.metadata_mut(), token);
    request
}

fn authorize(metadata: &mut MetadataMap, token: Option<&str>) {
    if let Some(token) = token {
        metadata.insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
}
