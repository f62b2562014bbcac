//! Who may do what, over the wire: every RPC × every role × own and foreign namespace, as docs/security.md says; what a
//! stranger is told; what a changed file does to streams; whom the audit trail names.

mod matrix;
mod messages;
mod people;

use std::{fs, path::PathBuf, sync::Arc};

use emend_runtime::{
    auth::{Authenticator, TokenHash},
    bearer::TokenFile,
    reload::Reload as _,
};
use emend_tests::harness::{Database, System, system::Settings};
use tempfile::TempDir;
use tonic::{Request, metadata::MetadataMap};

const OWN: &str = "own";
const FOREIGN: &str = "foreign";

/// A caller, by its name, roles and namespaces as the file has them. Its token is its name and `-token`.
type Caller<'a> = (&'a str, &'a str, &'a str);

/// feedback-svc itself.
const SERVICE: Caller<'_> = ("feedback-svc", "ingester", "\"*\"");

/// Both services, which know some callers by a file.
struct Guarded {
    system: System,
    authenticator: Arc<Authenticator>,
    file: PathBuf,
    _directory: TempDir,
}

impl Guarded {
    async fn start(callers: &[Caller<'_>]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("auth.toml");
        fs::write(&file, auth_file(callers)).unwrap();
        let token = directory.path().join("token");
        fs::write(&token, format!("{}\n", token_of(SERVICE.0))).unwrap();
        let authenticator = Arc::new(Authenticator::load(&file).unwrap());
        let settings = Settings {
            authenticator: Some(Arc::clone(&authenticator)),
            learning_token: Some(TokenFile::new(token)),
            ..Settings::default()
        };
        Self {
            system: System::start(Database::sqlite(), 1, 1, settings).await,
            authenticator,
            file,
            _directory: directory,
        }
    }

    /// The file says this from now on.
    fn rewrite(&self, callers: &[Caller<'_>]) {
        fs::write(&self.file, auth_file(callers)).unwrap();
        assert!(self.authenticator.reload_if_changed());
    }
}

fn token_of(name: &str) -> String {
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

/// A request with that token, if there is one.
fn with_token<T>(message: T, token: Option<&str>) -> Request<T> {
    let mut request = Request::new(message);
    authorize(request.metadata_mut(), token);
    request
}

fn authorize(metadata: &mut MetadataMap, token: Option<&str>) {
    if let Some(token) = token {
        metadata.insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
}
