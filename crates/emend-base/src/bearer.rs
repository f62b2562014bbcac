//! Bearer tokens for calling a service: in a file, which is read again for each call, so that a new token needs no restart; or
//! as somebody else sent it, to be handed on.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tonic::{
    Request,
    metadata::{Ascii, MetadataMap, MetadataValue},
};

const AUTHORIZATION: &str = "authorization";
/// The name of the scheme, with the space behind it.
const SCHEME: &str = "Bearer ";

/// A token as a caller sent it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Token(MetadataValue<Ascii>);

impl Token {
    /// Of the value of an `authorization` header; `None` if that is of another scheme, or no token.
    pub fn of_header(value: &str) -> Option<Self> {
        let (scheme, token) = value.split_at_checked(SCHEME.len())?;
        if !scheme.eq_ignore_ascii_case(SCHEME) {
            return None;
        }
        authorization(token.trim()).map(Self)
    }

    /// Its bytes, which are a secret.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0.as_encoded_bytes()[SCHEME.len()..]
    }

    /// Attaches it to a call.
    pub fn authorize<T>(&self, request: &mut Request<T>) {
        self.authorize_headers(request.metadata_mut());
    }

    /// The same, for the headers of a call.
    pub fn authorize_headers(&self, headers: &mut MetadataMap) {
        headers.insert(AUTHORIZATION, self.0.clone());
    }
}

/// The value of the header with this token, which is not shown; `None` if it is no token.
fn authorization(token: &str) -> Option<MetadataValue<Ascii>> {
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let mut value = format!("{SCHEME}{token}").parse::<MetadataValue<Ascii>>().ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A file that holds one bearer token, surrounded by nothing but white space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFile(PathBuf);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The file can't be read.
    #[error("can't read the token in {}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Its content is not a token.
    #[error("{} must hold one token, of visible ASCII characters", file.display())]
    Invalid {
        /// The file.
        file: PathBuf,
    },
}

impl TokenFile {
    /// This file, which need not exist yet.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self(path.as_ref().to_owned())
    }

    /// The value of the `authorization` header, with the token that is in the file now.
    pub fn authorization(&self) -> Result<MetadataValue<Ascii>, TokenFileError> {
        let text = fs::read_to_string(&self.0).map_err(|source| TokenFileError::Read {
            file: self.0.clone(),
            source,
        })?;
        authorization(text.trim()).ok_or_else(|| TokenFileError::Invalid { file: self.0.clone() })
    }

    /// Attaches the token to a call. Without one the call goes out as it is, for its server to refuse; the reason is
    /// logged.
    pub fn authorize<T>(&self, request: &mut Request<T>) {
        self.authorize_headers(request.metadata_mut());
    }

    /// The same, for the headers of a call.
    pub fn authorize_headers(&self, headers: &mut MetadataMap) {
        match self.authorization() {
            Ok(value) => {
                headers.insert(AUTHORIZATION, value);
            }
            Err(error) => tracing::error!(%error, "calling without a token"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_token_is_used_from_then_on_and_never_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let file = TokenFile::new(&path);
        assert!(matches!(file.authorization(), Err(TokenFileError::Read { .. })));
        for token in ["one", "another"] {
            fs::write(&path, format!("{token}\n")).unwrap();
            let mut request = Request::new(());
            file.authorize(&mut request);
            let sent = request.metadata().get(AUTHORIZATION).unwrap();
            assert_eq!(sent.to_str().unwrap(), format!("Bearer {token}"));
            assert!(!format!("{sent:?}").contains(token));
        }
    }

    #[test]
    fn a_token_is_handed_on_as_it_came_and_never_shown() {
        let token = Token::of_header("bearer one.two-3").unwrap();
        assert_eq!(token.as_bytes(), b"one.two-3");
        let mut request = Request::new(());
        token.authorize(&mut request);
        let sent = request.metadata().get(AUTHORIZATION).unwrap();
        assert_eq!(sent.to_str().unwrap(), "Bearer one.two-3");
        assert!(!format!("{token:?}").contains("one"));
        for none in [
            "",
            "Bearer",
            "Bearer ",
            "Basic YTpi",
            "Bearer a b",
            "Bearer zwölf",
        ] {
            assert_eq!(Token::of_header(none), None, "{none}");
        }
    }

    #[test]
    fn an_invalid_token_is_refused_without_showing_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        for bad in ["", " \n", "two words", "zwölf", "a\nb"] {
            fs::write(&path, bad).unwrap();
            let error = TokenFile::new(&path).authorization().unwrap_err().to_string();
            assert!(
                error.contains("must hold one token") && !error.contains("words"),
                "{error}"
            );
        }
    }
}
