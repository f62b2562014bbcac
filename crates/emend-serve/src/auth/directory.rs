//! The known principals, as one state of the files: finds the principal for a request's credentials.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use emend_base::{clock::SharedClock, error::Error};

use super::{
    jwt::{TokenError, Verifier, remote::RemoteKeys},
    principal::Principal,
    token::TokenHash,
};
use crate::tls::PeerNames;

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
    /// Where the verifier's keys come from, if they are fetched.
    keys: Option<Arc<RemoteKeys>>,
    verified: Mutex<HashMap<[u8; 32], Identity>>,
    clock: SharedClock,
    /// Each principal by its name, with its credentials: tokens by their hashes.
    principals: BTreeMap<String, (Arc<Principal>, BTreeSet<String>)>,
}

/// What differs between two states of the known principals: their names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    /// Who is new.
    pub(super) added: Vec<String>,
    /// Whose grants or credentials are others.
    pub(super) changed: Vec<String>,
    /// Who is no longer known.
    pub(super) removed: Vec<String>,
}

impl Directory {
    /// The only issuer whose JWTs are accepted, if there is one.
    pub(super) fn issuer(&self) -> Option<&str> {
        self.jwt.as_ref()?.issuer()
    }

    pub(super) fn new(
        entries: Vec<Entry>,
        jwt: Option<Verifier>,
        keys: Option<Arc<RemoteKeys>>,
        clock: SharedClock,
    ) -> Self {
        let mut directory = Self {
            tokens: HashMap::new(),
            certificates: HashMap::new(),
            subjects: HashMap::new(),
            jwt,
            keys,
            verified: Mutex::default(),
            clock,
            principals: BTreeMap::new(),
        };
        for entry in entries {
            let tokens = entry.tokens.iter().map(|hash| format!("token {hash}"));
            let certificates = entry
                .certificates
                .iter()
                .map(|name| format!("certificate {name}"));
            let subjects = entry.subjects.iter().map(|subject| format!("subject {subject}"));
            let credentials = tokens.chain(certificates).chain(subjects).collect();
            let principal = entry.principal;
            let name = principal.caller().as_str().to_owned();
            directory
                .principals
                .insert(name, (Arc::clone(&principal), credentials));
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

    /// What is different here from the state before.
    pub(super) fn since(&self, before: &Self) -> Difference {
        let mut difference = Difference::default();
        for (name, known) in &self.principals {
            match before.principals.get(name) {
                None => difference.added.push(name.clone()),
                Some(other) if other != known => difference.changed.push(name.clone()),
                Some(_) => {}
            }
        }
        let gone = before.principals.keys();
        let gone = gone.filter(|name| !self.principals.contains_key(*name));
        difference.removed.extend(gone.cloned());
        difference
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

    /// The identity behind a certificate, by the names in it, until the certificate expires. The first known name counts.
    pub(super) fn by_certificate(&self, peer: &PeerNames) -> Result<Identity, Error> {
        let known = peer.names.iter().find_map(|name| self.certificates.get(name));
        let identity = known.map(|principal| Identity {
            principal: Arc::clone(principal),
            // The certificate is still valid in its last second.
            expires_at: peer.validity.map(|validity| validity.not_after.saturating_add(1)),
        });
        let identity = identity.ok_or_else(unknown)?;
        let now = self.clock.now().as_second();
        if identity.expires_at.is_some_and(|end| end <= now) {
            return Err(certificate_expired());
        }
        if peer.withdrawn.is_cancelled() {
            return Err(certificate_withdrawn());
        }
        Ok(identity)
    }

    /// The name of the principal that a certificate with these names identifies.
    pub(super) fn name_by_certificate(&self, names: &[String]) -> Option<&str> {
        let known = names.iter().find_map(|name| self.certificates.get(name));
        known.map(|principal| principal.caller().as_str())
    }

    fn by_jwt(&self, verifier: &Verifier, token: &str, hash: &TokenHash) -> Result<Identity, Error> {
        let now = self.clock.now().as_second();
        let remembered = self.verified().get(&hash.bytes()).cloned();
        let identity = if let Some(identity) = remembered {
            identity
        } else {
            let claims = verifier.verify(token, now).map_err(|refused| match refused {
                TokenError::Expired => expired(),
                TokenError::UnknownKey if self.keys.as_ref().is_some_and(|keys| keys.ask(now)) => {
                    key_awaited()
                }
                TokenError::UnknownKey | TokenError::Invalid => unknown(),
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

/// Returned while it can't be told whether the token's issuer has the key that the token names.
fn key_awaited() -> Error {
    Error::unavailable(
        "TOKEN_KEY_AWAITED",
        "the token's key is not known yet: the issuer's keys are being fetched",
    )
}

/// Returned on connections that were opened while the certificate was valid.
pub(super) fn certificate_expired() -> Error {
    Error::Unauthenticated {
        reason: "CERTIFICATE_EXPIRED",
        message: "the client certificate of this connection has expired: connect again with a valid one"
            .to_owned(),
    }
}

/// Returned on connections that were opened while the certificate was accepted.
pub(super) fn certificate_withdrawn() -> Error {
    Error::Unauthenticated {
        reason: "CERTIFICATE_REVOKED",
        message:
            "the client certificate of this connection is no longer accepted: it was revoked, or its CA is \
                  trusted no more"
                .to_owned(),
    }
}

/// Returned only for a token whose signature is valid.
pub(super) fn expired() -> Error {
    Error::Unauthenticated {
        reason: "TOKEN_EXPIRED",
        message: "the token has expired".to_owned(),
    }
}
