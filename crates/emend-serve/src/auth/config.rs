//! The file that says who may do what (`--auth-config`), in TOML. docs/security.md describes it.
//!
//! Unknown keys are refused, and so is anything that leaves an identity ambiguous: two principals with one name, or one
//! credential for two principals.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use emend_base::clock::SharedClock;
use emend_core::{Caller, Namespace};
use serde::Deserialize;

use super::{
    directory::{Directory, Entry},
    jwt::{
        self, Verifier,
        remote::{KeySource, RemoteKeys},
    },
    principal::{Grant, Principal, Reach},
    role::Role,
    token::TokenHash,
};

/// Why the file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file, or one that it names, can't be read.
    #[error("can't read {}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The content is invalid.
    #[error("{}: {problem}", file.display())]
    Invalid {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    principals: Vec<PrincipalEntry>,
    jwt: Option<JwtEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PrincipalEntry {
    name: String,
    #[serde(default)]
    token_sha256: Vec<String>,
    #[serde(default)]
    certificates: Vec<String>,
    #[serde(default)]
    jwt_subjects: Vec<String>,
    grants: Vec<GrantEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantEntry {
    roles: Vec<Role>,
    namespaces: NamespacesEntry,
    #[serde(default)]
    act_for_users: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum NamespacesEntry {
    All(String),
    Only(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JwtEntry {
    audience: String,
    issuer: Option<String>,
    jwks_file: Option<PathBuf>,
    shared_key_file: Option<PathBuf>,
    jwks_url: Option<String>,
    jwks_ca_file: Option<PathBuf>,
    jwks_token_file: Option<PathBuf>,
    jwks_refresh_seconds: Option<u64>,
}

/// The result, and the files that it was read from or would have been.
pub(super) struct Loaded {
    pub(super) directory: Result<Directory, ConfigError>,
    pub(super) files: Vec<PathBuf>,
    /// Where keys are to be fetched from, if the files say so.
    pub(super) source: Option<KeySource>,
}

/// Reads the file and those it names. JWTs expire by `clock`; keys that are fetched are those in `fetched`.
pub(super) fn load(path: &Path, clock: &SharedClock, fetched: &Arc<RemoteKeys>) -> Loaded {
    let mut loaded = Loaded {
        directory: Err(invalid(path, "was not read")),
        files: vec![path.to_owned()],
        source: None,
    };
    loaded.directory = directory(path, clock, fetched, &mut loaded.files, &mut loaded.source);
    loaded
}

/// Adds to `files` those that the file names, even if they can't be read.
fn directory(
    path: &Path,
    clock: &SharedClock,
    fetched: &Arc<RemoteKeys>,
    files: &mut Vec<PathBuf>,
    source: &mut Option<KeySource>,
) -> Result<Directory, ConfigError> {
    let text = String::from_utf8(read(path)?).map_err(|_| invalid(path, "is not UTF-8"))?;
    let file: File = toml::from_str(&text).map_err(|error| invalid(path, unreadable(&text, &error)))?;
    if file.principals.is_empty() {
        return Err(invalid(path, "has no principals, so every call would be refused"));
    }
    let jwt = match file.jwt {
        Some(entry) => Some(verifier(path, &entry, fetched, files, source)?),
        None => None,
    };
    let entries = principals(path, &file.principals, jwt.is_some())?;
    let keys = source.is_some().then(|| Arc::clone(fetched));
    Ok(Directory::new(entries, jwt, keys, clock.clone()))
}

/// What is wrong, and in which line; never the line's text or a value in it, which may be a secret.
fn unreadable(text: &str, error: &toml::de::Error) -> String {
    let line = error
        .span()
        .and_then(|span| text.get(..span.start))
        .map_or(1, |before| before.matches('\n').count() + 1);
    let message = error.message();
    // `invalid type: string "…", expected a sequence`: the part in between is the value.
    let value = ["invalid type", "invalid value"]
        .iter()
        .find(|prefix| message.starts_with(**prefix));
    match value.zip(message.rsplit_once(", expected ")) {
        Some((prefix, (_, expected))) => format!("line {line}: {prefix}, expected {expected}"),
        None => format!("line {line}: {message}"),
    }
}

/// Reads the keys that verify tokens, or says where they are fetched from.
fn verifier(
    path: &Path,
    entry: &JwtEntry,
    fetched: &RemoteKeys,
    files: &mut Vec<PathBuf>,
    source: &mut Option<KeySource>,
) -> Result<Verifier, ConfigError> {
    if entry.audience.is_empty() {
        return Err(invalid(path, "jwt.audience: must not be empty"));
    }
    if entry.issuer.as_deref() == Some("") {
        return Err(invalid(
            path,
            "jwt.issuer: must not be empty; leave it out to accept any",
        ));
    }
    let for_url = [&entry.jwks_ca_file, &entry.jwks_token_file];
    if entry.jwks_url.is_none()
        && (for_url.iter().any(|file| file.is_some()) || entry.jwks_refresh_seconds.is_some())
    {
        return Err(invalid(
            path,
            "jwt: jwks_ca_file, jwks_token_file and jwks_refresh_seconds need jwks_url",
        ));
    }
    let keys = match (&entry.jwks_file, &entry.shared_key_file, &entry.jwks_url) {
        (Some(named), None, None) => keys_in(&beside(path, named), files, jwt::Keys::jwks)?,
        (None, Some(named), None) => keys_in(&beside(path, named), files, jwt::Keys::shared)?,
        (None, None, Some(url)) => {
            let from = KeySource::parse(
                url,
                entry.jwks_ca_file.as_deref().map(|named| beside(path, named)),
                entry.jwks_token_file.as_deref().map(|named| beside(path, named)),
                entry.jwks_refresh_seconds,
            )
            .map_err(|problem| invalid(path, format!("jwt.{problem}")))?;
            let keys = fetched.keys_of(&from);
            *source = Some(from);
            keys
        }
        _ => {
            return Err(invalid(
                path,
                "jwt: needs one of jwks_file, jwks_url and shared_key_file",
            ));
        }
    };
    Ok(Verifier::new(keys, &entry.audience, entry.issuer.as_deref()))
}

/// The keys in a file, which is added to `files`.
fn keys_in(
    file: &Path,
    files: &mut Vec<PathBuf>,
    parse: fn(&[u8]) -> Result<jwt::Keys, String>,
) -> Result<jwt::Keys, ConfigError> {
    files.push(file.to_owned());
    parse(&read(file)?).map_err(|problem| invalid(file, problem))
}

/// A file that another one names, relative to the directory of that.
fn beside(path: &Path, named: &Path) -> PathBuf {
    path.parent()
        .map_or_else(|| named.to_owned(), |directory| directory.join(named))
}

fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    fs::read(path).map_err(|source| ConfigError::Read {
        file: path.to_owned(),
        source,
    })
}

fn invalid(file: &Path, problem: impl Into<String>) -> ConfigError {
    ConfigError::Invalid {
        file: file.to_owned(),
        problem: problem.into(),
    }
}

fn principals(path: &Path, entries: &[PrincipalEntry], has_jwt: bool) -> Result<Vec<Entry>, ConfigError> {
    let mut names = BTreeSet::new();
    let mut credentials = BTreeSet::new();
    let mut all = Vec::with_capacity(entries.len());
    for entry in entries {
        let problem = |prefix: String| invalid(path, format!("principal {:?}: {prefix}", entry.name));
        let caller = Caller::parse(&entry.name).map_err(|error| problem(format!("its name {}", error.0)))?;
        if caller == Caller::anonymous() || caller == Caller::system() {
            return Err(problem("the name is Emend's own".to_owned()));
        }
        if !names.insert(entry.name.clone()) {
            return Err(problem("appears twice".to_owned()));
        }
        if !has_jwt && !entry.jwt_subjects.is_empty() {
            return Err(problem("has jwt_subjects, but there is no [jwt]".to_owned()));
        }
        let mut tokens = Vec::with_capacity(entry.token_sha256.len());
        for text in &entry.token_sha256 {
            let hash = TokenHash::parse(text).ok_or_else(|| {
                problem(
                    "token_sha256: must be 64 hexadecimal digits, as `emend admin token` prints them"
                        .to_owned(),
                )
            })?;
            tokens.push(hash);
        }
        let own = tokens
            .iter()
            .map(|hash| ("token_sha256", hash.to_string()))
            .chain(
                entry
                    .certificates
                    .iter()
                    .map(|name| ("certificates", name.clone())),
            )
            .chain(
                entry
                    .jwt_subjects
                    .iter()
                    .map(|subject| ("jwt_subjects", subject.clone())),
            );
        let mut has_some = false;
        for (place, credential) in own {
            has_some = true;
            if credential.is_empty() {
                return Err(problem(format!("{place}: must not be empty")));
            }
            if !credentials.insert((place, credential)) {
                return Err(problem(format!("{place}: an entry appears twice")));
            }
        }
        if !has_some {
            return Err(problem(
                "has no credential: token_sha256, certificates or jwt_subjects".to_owned(),
            ));
        }
        if entry.grants.is_empty() {
            return Err(problem("has no grants".to_owned()));
        }
        let grants = entry
            .grants
            .iter()
            .map(grant)
            .collect::<Result<Vec<_>, _>>()
            .map_err(problem)?;
        all.push(Entry {
            principal: Arc::new(Principal::new(caller, &grants)),
            tokens,
            certificates: entry.certificates.clone(),
            subjects: entry.jwt_subjects.clone(),
        });
    }
    Ok(all)
}

fn grant(entry: &GrantEntry) -> Result<Grant, String> {
    const FORM: &str = "grants.namespaces: must be \"*\" or a list of names";
    if entry.roles.is_empty() {
        return Err("grants.roles: must not be empty".to_owned());
    }
    let reach = match &entry.namespaces {
        NamespacesEntry::All(all) if all == "*" => Reach::All,
        NamespacesEntry::All(_) => return Err(FORM.to_owned()),
        NamespacesEntry::Only(names) if names.is_empty() => return Err(FORM.to_owned()),
        NamespacesEntry::Only(names) => {
            let parsed = names.iter().map(|name| {
                Namespace::parse(name).map_err(|error| format!("grants.namespaces: {name:?} {}", error.0))
            });
            Reach::only(parsed.collect::<Result<_, _>>()?)
        }
    };
    Ok(Grant {
        roles: entry.roles.clone(),
        reach,
        act_for_users: entry.act_for_users,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use emend_base::clock::SystemClock;

    fn refusal(text: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("auth.toml");
        fs::write(&path, text).unwrap();
        match load(&path, &SystemClock::shared(), &Arc::default()).directory {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    fn principal(rest: &str) -> String {
        let hash = TokenHash::of("a");
        format!("[[principals]]\nname = \"a\"\ntoken_sha256 = [\"{hash}\"]\n{rest}\n")
    }

    const GRANT: &str = "grants = [{ roles = [\"reporter\"], namespaces = [\"shop\"] }]";

    #[test]
    fn a_valid_file_is_accepted() {
        assert_eq!(refusal(&principal(GRANT)), "");
        let all =
            "grants = [{ roles = [\"admin\", \"ingester\"], namespaces = \"*\", act_for_users = true }]";
        assert_eq!(refusal(&principal(all)), "");
    }

    #[test]
    fn errors_in_the_file_are_named() {
        let twice = format!(
            "{}{}",
            principal(GRANT),
            principal(GRANT).replace("name = \"a\"", "name = \"b\"")
        );
        for (text, expected) in [
            (String::new(), "no principals"),
            (
                principal(&format!("{GRANT}\ntoken = \"x\"")),
                "unknown field `token`",
            ),
            (
                principal("grants = [{ roles = [\"king\"], namespaces = \"*\" }]"),
                "unknown variant `king`",
            ),
            (
                principal("grants = [{ roles = [\"admin\"], namespaces = \"shop\" }]"),
                "must be \"*\" or a list",
            ),
            (
                principal("grants = [{ roles = [\"admin\"], namespaces = [] }]"),
                "must be \"*\" or a list",
            ),
            (
                principal("grants = [{ roles = [], namespaces = \"*\" }]"),
                "grants.roles",
            ),
            (
                principal("grants = [{ roles = [\"admin\"], namespaces = [\"No\"] }]"),
                "\"No\"",
            ),
            (principal("grants = []"), "has no grants"),
            (
                principal(&format!("jwt_subjects = [\"x\"]\n{GRANT}")),
                "there is no [jwt]",
            ),
            (
                format!("{}[jwt]\naudience = \"x\"", principal(GRANT)),
                "needs one of",
            ),
            (
                format!(
                    "{}[jwt]\naudience = \"x\"\njwks_file = \"gone\"",
                    principal(GRANT)
                ),
                "gone",
            ),
            (
                format!(
                    "{}[jwt]\naudience = \"x\"\nissuer = \"\"\njwks_file = \"x\"",
                    principal(GRANT)
                ),
                "jwt.issuer",
            ),
            (
                format!(
                    "{}[jwt]\naudience = \"x\"\njwks_url = \"http://issuer.example/keys\"",
                    principal(GRANT)
                ),
                "jwt.jwks_url: must begin with https://",
            ),
            (
                format!(
                    "{}[jwt]\naudience = \"x\"\njwks_file = \"x\"\njwks_token_file = \"x\"",
                    principal(GRANT)
                ),
                "need jwks_url",
            ),
            (
                format!("{}{}", principal(GRANT), principal(GRANT)),
                "appears twice",
            ),
            (twice, "an entry appears twice"),
            (
                format!("[[principals]]\nname = \"a\"\n{GRANT}"),
                "has no credential",
            ),
            (
                principal(GRANT).replace("name = \"a\"", "name = \"system\""),
                "Emend's own",
            ),
        ] {
            let refusal = refusal(&text);
            assert!(refusal.contains(expected), "{text}\n→ {refusal}");
            assert!(
                refusal.contains("auth.toml") || refusal.contains("gone"),
                "{refusal}"
            );
        }
    }

    #[test]
    fn a_syntax_error_is_named_by_its_line_without_the_content() {
        for (wrong, expected) in [
            ("token = \"s3cret\"", "line 4: unknown field `token`"),
            ("certificates = [\"s3cret]", "line 5: missing comma"),
            (
                "certificates = \"s3cret\"",
                "line 4: invalid type, expected a sequence",
            ),
            ("s3cret", "line 4: "),
        ] {
            let refusal = refusal(&principal(&format!("{wrong}\n{GRANT}")));
            assert!(refusal.contains(expected), "{wrong}\n→ {refusal}");
            assert!(!refusal.contains("s3cret"), "{wrong}\n→ {refusal}");
        }
    }

    #[test]
    fn a_refusal_shows_no_hash() {
        let hash = TokenHash::of("a").to_string();
        let text = principal(GRANT).replace(&hash, &hash[1..]);
        let refusal = refusal(&text);
        assert!(
            refusal.contains("token_sha256") && !refusal.contains(&hash[1..]),
            "{refusal}"
        );
    }
}
