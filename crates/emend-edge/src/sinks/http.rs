//! How a sink calls an engine over HTTP.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use emend_base::{
    Entropy, SharedClock, SystemClock,
    bearer::TokenFile,
    http_client::{Client, Key, Limits},
    tls::ClientTls,
};
use http::{HeaderValue, Uri, header::AUTHORIZATION};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::error::SinkError;

/// How long an engine may take to answer. Loading a large set takes seconds.
pub(super) const PATIENCE: Duration = Duration::from_mins(2);
/// The most that is read of an answer, in bytes: a large set.
const MAX_ANSWER: usize = 256 << 20;
const AGENT: &str = concat!("emend-edge/", env!("CARGO_PKG_VERSION"));
/// What a part of an address has as it is.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Where an engine is, and how it knows its caller.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Access {
    /// Its address.
    #[serde(with = "address")]
    pub(super) address: Uri,
    /// The user, whose password is in a file.
    user: Option<String>,
    password_file: Option<PathBuf>,
    /// A file with a bearer token.
    token_file: Option<PathBuf>,
    /// A PEM file with the CAs that may have signed its certificate. Default: the system's.
    ca: Option<PathBuf>,
}

impl Access {
    /// What is wrong with it.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.user.is_some() != self.password_file.is_some() {
            return Err("user and password_file: must be given together".into());
        }
        if self.user.is_some() && self.token_file.is_some() {
            return Err("token_file: must not be given beside user".into());
        }
        Ok(())
    }

    /// A client with the credentials that are in the files now. It tries once: whoever uses it tries again.
    pub(super) fn client(
        &self,
        service: &'static str,
        timeout: Duration,
    ) -> Result<Client<'static>, SinkError> {
        let limits = Limits {
            timeout,
            attempts: 1,
            interval: Duration::ZERO,
            max_answer: MAX_ANSWER,
        };
        let clock: SharedClock = SystemClock::shared();
        let client = Client::new(
            service,
            self.address.clone(),
            self.key()?,
            limits,
            Arc::new(clock),
            Entropy::system(),
            AGENT,
        );
        Ok(match ClientTls::from_files(self.ca.as_deref(), None, None) {
            Some(tls) => client.tls(tls),
            None => client,
        })
    }

    fn key(&self) -> Result<Key, SinkError> {
        if let Some(file) = &self.token_file {
            let token = TokenFile::new(file).authorization();
            let token = token.map_err(|error| SinkError::refused(error.to_string()))?;
            let value = HeaderValue::from_bytes(token.as_bytes());
            return Ok(Key::Header(AUTHORIZATION, secret(value)?));
        }
        let Some((user, file)) = self.user.as_ref().zip(self.password_file.as_ref()) else {
            return Ok(Key::None);
        };
        let password = fs::read_to_string(file).map_err(|error| {
            SinkError::refused(format!("can't read the password in {}: {error}", file.display()))
        })?;
        let password = password.trim_end_matches(['\r', '\n']);
        let value = format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")));
        Ok(Key::Header(AUTHORIZATION, secret(value.parse())?))
    }
}

fn secret<E>(value: Result<HeaderValue, E>) -> Result<HeaderValue, SinkError> {
    let mut value = value.map_err(|_| SinkError::refused("the credentials are no header's value"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// A text as a part of an address.
pub(super) fn part(text: &str) -> String {
    utf8_percent_encode(text, KEPT).to_string()
}

mod address {
    use http::Uri;
    use serde::{Deserialize as _, Deserializer, de::Error as _};

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uri, D::Error> {
        let text = String::deserialize(deserializer)?;
        let uri = text.parse::<Uri>().ok();
        let uri = uri.filter(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https"))
                && uri.authority().is_some_and(|host| !host.as_str().contains('@'))
        });
        uri.ok_or_else(|| {
            D::Error::custom(format!(
                "must be an address as http://HOST:PORT without a user in it, is {text:?}"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use emend_base::{
        http_client::testing::{Reply, Server},
        tls::testing::Authority,
    };
    use serde_json::{Value, json};

    use super::*;
    use crate::sinks::{config::TargetConfig, error::Problem, testing::sink};

    fn access(address: &str, more: &str) -> Access {
        let settings =
            format!("kind = \"solr\"\naddress = \"{address}\"\ncore = \"c\"\nfield = \"t\"\n{more}");
        match sink(&settings).1 {
            TargetConfig::Solr(config) => config.access,
            other => panic!("{other:?}"),
        }
    }

    async fn ask(access: &Access) -> Result<Value, SinkError> {
        let client = access.client("Solr", Duration::from_secs(30))?;
        Ok(client.get("/x").await?)
    }

    /// What a request has in a header.
    fn authorization(request: &str) -> Option<&str> {
        let line = request.lines().find(|line| line.starts_with("authorization: "));
        line.map(|line| line.trim_start_matches("authorization: "))
    }

    /// Answers who shows this, as an engine does.
    fn knows(expected: &'static str) -> impl Fn(&str) -> Reply {
        move |request| {
            if authorization(request) == Some(expected) {
                return Reply::Json(json!("welcome"));
            }
            Reply::Status(401, String::new(), "")
        }
    }

    fn shown(path: &Path) -> String {
        path.display().to_string()
    }

    #[tokio::test]
    async fn credentials_are_those_that_are_in_the_file_now() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("secret");
        // "emend:second" in base64.
        for (setting, expected) in [
            (format!("token_file = \"{}\"", shown(&file)), "Bearer second"),
            (
                format!("user = \"emend\"\npassword_file = \"{}\"", shown(&file)),
                "Basic ZW1lbmQ6c2Vjb25k",
            ),
        ] {
            let server = Server::answering(knows(expected)).await;
            let access = access(&server.url, &setting);
            let missing = ask(&access).await.unwrap_err();
            assert_eq!(missing.problem, Problem::Refused);
            assert!(missing.words.contains(&shown(&file)), "{missing}");
            assert_eq!(server.asked(), [""; 0], "nothing is asked without them");
            fs::write(&file, "first\n").unwrap();
            let unknown = ask(&access).await.unwrap_err();
            assert_eq!(unknown.problem, Problem::Refused);
            assert!(
                unknown.words.contains("401") && unknown.words.contains("token_file"),
                "{unknown}"
            );
            assert!(!unknown.words.contains("first"), "{unknown}");
            fs::write(&file, "second\n").unwrap();
            assert_eq!(ask(&access).await, Ok(json!("welcome")));
            fs::remove_file(&file).unwrap();
        }
    }

    #[tokio::test]
    async fn an_engine_is_trusted_by_the_ca_that_is_in_the_file_now() {
        let directory = tempfile::tempdir().unwrap();
        let ca = directory.path().join("ca.pem");
        let (own, other) = (Authority::new("own"), Authority::new("other"));
        let server = Server::secured(&own.issue(1, &["localhost"]), |_| Reply::Json(json!("welcome"))).await;
        let trusting = access(&server.url, &format!("ca = \"{}\"", shown(&ca)));
        for pem in [None, Some(other.pem())] {
            if let Some(pem) = &pem {
                fs::write(&ca, pem).unwrap();
            }
            let refused = ask(&trusting).await.unwrap_err();
            let named = match pem {
                None => shown(&ca),
                Some(_) => "certificate".to_owned(),
            };
            assert_eq!(refused.problem, Problem::Away);
            assert!(refused.words.contains(&named), "{refused}");
        }
        let by_system = ask(&access(&server.url, "")).await.unwrap_err();
        assert!(by_system.words.contains("certificate"), "{by_system}");
        assert_eq!(server.asked(), [""; 0], "nothing was sent to who is not trusted");
        fs::write(&ca, own.pem()).unwrap();
        assert_eq!(ask(&trusting).await, Ok(json!("welcome")));
    }
}
