//! The known principals, as one state of the files: finds the principal for a request's credentials.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use emend_base::{clock::SharedClock, error::Error};

use super::{
    jwt::{TokenError, Verifier},
    principal::Principal,
    token::TokenHash,
};

/// How many verified JWTs are cached: verifying one costs about ten microseconds.
const REMEMBERED: usize = 4_096;
/// The longest bearer token that is accepted, in bytes.
const MAX_TOKEN: usize = 8_192;

/// A principal and its credentials.
pub(super) struct Entry {
    pub(super) principal: Arc<Principal>,
    pub(super) tokens: Vec<TokenHash>,
    pub(super) certificates: Vec<String>,
    pub(super) subjects: Vec<String>,
}

/// The result of identifying a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    /// The principal.
    pub(super) principal: Arc<Principal>,
    /// When the credentials expire, in seconds since 1970, if they do.
    pub(super) expires_at: Option<i64>,
}

/// One state of the known principals.
pub(super) struct Directory {
    /// By the first bytes of the hash, so that a look-up costs the same however many there are. By timing, an attacker
    /// learns part of the hash of their own guess; the rest is compared in constant time.
    tokens: HashMap<[u8; 4], Vec<(TokenHash, Arc<Principal>)>>,
    certificates: HashMap<String, Arc<Principal>>,
    subjects: HashMap<String, Arc<Principal>>,
    jwt: Option<Verifier>,
    verified: Mutex<HashMap<[u8; 32], Identity>>,
    clock: SharedClock,
}

impl Directory {
    pub(super) fn new(entries: Vec<Entry>, jwt: Option<Verifier>, clock: SharedClock) -> Self {
        let mut directory = Self {
            tokens: HashMap::new(),
            certificates: HashMap::new(),
            subjects: HashMap::new(),
            jwt,
            verified: Mutex::default(),
            clock,
        };
        for entry in entries {
            let principal = entry.principal;
            for hash in entry.tokens {
                directory
                    .tokens
                    .entry(first_bytes(&hash))
                    .or_default()
                    .push((hash, Arc::clone(&principal)));
            }
            for name in entry.certificates {
                directory.certificates.insert(name, Arc::clone(&principal));
            }
            for subject in entry.subjects {
                directory.subjects.insert(subject, Arc::clone(&principal));
            }
        }
        directory
    }

    /// The identity behind a bearer token.
    pub(super) fn by_token(&self, token: &str) -> Result<Identity, Error> {
        if token.is_empty() || token.len() > MAX_TOKEN {
            return Err(unknown());
        }
        let hash = TokenHash::of(token);
        let found = self
            .tokens
            .get(&first_bytes(&hash))
            .and_then(|candidates| candidates.iter().find(|(known, _)| known.matches(&hash)));
        if let Some((_, principal)) = found {
            return Ok(Identity {
                principal: Arc::clone(principal),
                expires_at: None,
            });
        }
        match &self.jwt {
            Some(verifier) => self.by_jwt(verifier, token, &hash),
            None => Err(unknown()),
        }
    }

    /// The identity behind a certificate, by the names in it. The first known name counts.
    pub(super) fn by_names(&self, names: &[String]) -> Result<Identity, Error> {
        names
            .iter()
            .find_map(|name| self.certificates.get(name))
            .map(|principal| Identity {
                principal: Arc::clone(principal),
                expires_at: None,
            })
            .ok_or_else(unknown)
    }

    fn by_jwt(&self, verifier: &Verifier, token: &str, hash: &TokenHash) -> Result<Identity, Error> {
        let now = self.clock.now().as_second();
        let remembered = self.verified().get(&hash.bytes()).cloned();
        let identity = if let Some(identity) = remembered {
            identity
        } else {
            let claims = verifier.verify(token, now).map_err(|refused| match refused {
                TokenError::Expired => expired(),
                TokenError::Invalid => unknown(),
            })?;
            let principal = self.subjects.get(&claims.subject).ok_or_else(unknown)?;
            let identity = Identity {
                principal: Arc::clone(principal),
                expires_at: Some(claims.expires_at),
            };
            let mut kept = self.verified();
            if kept.len() >= REMEMBERED {
                kept.clear();
            }
            kept.insert(hash.bytes(), identity.clone());
            identity
        };
        if identity.expires_at.is_some_and(|end| end <= now) {
            return Err(expired());
        }
        Ok(identity)
    }

    fn verified(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], Identity>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory").finish_non_exhaustive()
    }
}

fn first_bytes(hash: &TokenHash) -> [u8; 4] {
    let [a, b, c, d, ..] = hash.bytes();
    [a, b, c, d]
}

/// The same whatever is wrong, so that guessing reveals nothing.
pub(super) fn unknown() -> Error {
    Error::Unauthenticated {
        reason: "CREDENTIALS_NOT_ACCEPTED",
        message: "the credentials are not accepted".to_owned(),
    }
}

/// Returned only for a token whose signature is valid.
pub(super) fn expired() -> Error {
    Error::Unauthenticated {
        reason: "TOKEN_EXPIRED",
        message: "the token has expired".to_owned(),
    }
}
