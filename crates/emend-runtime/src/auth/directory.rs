//! Who is known, as one state of the files: finds the principal of a request's credentials.
//!
//! It must know nothing of files or of what principals may do.

use std::{collections::HashMap, fmt, sync::Arc};

use super::{principal::Principal, token::TokenHash};
use crate::error::Error;

/// The longest bearer token that is looked at, in bytes.
const MAX_TOKEN: usize = 8_192;

/// A principal and what it is known by.
pub(super) struct Entry {
    pub(super) principal: Arc<Principal>,
    pub(super) tokens: Vec<TokenHash>,
    pub(super) certificates: Vec<String>,
}

/// One state of who is known.
pub(super) struct Directory {
    /// By the first bytes of the hash, so that one look-up costs the same however many there are. What an attacker learns by
    /// timing is a part of a hash of his own guess; the rest is compared in constant time.
    tokens: HashMap<[u8; 4], Vec<(TokenHash, Arc<Principal>)>>,
    certificates: HashMap<String, Arc<Principal>>,
}

impl Directory {
    pub(super) fn new(entries: Vec<Entry>) -> Self {
        let mut directory = Self {
            tokens: HashMap::new(),
            certificates: HashMap::new(),
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
        }
        directory
    }

    /// Whose bearer token that is.
    pub(super) fn by_token(&self, token: &str) -> Result<Arc<Principal>, Error> {
        if token.is_empty() || token.len() > MAX_TOKEN {
            return Err(unknown());
        }
        let hash = TokenHash::of(token);
        self.tokens
            .get(&first_bytes(&hash))
            .and_then(|candidates| candidates.iter().find(|(known, _)| known.matches(&hash)))
            .map(|(_, principal)| Arc::clone(principal))
            .ok_or_else(unknown)
    }

    /// Whose certificate that is, by the names in it. The first that is known counts.
    pub(super) fn by_names(&self, names: &[String]) -> Result<Arc<Principal>, Error> {
        names
            .iter()
            .find_map(|name| self.certificates.get(name))
            .map(Arc::clone)
            .ok_or_else(unknown)
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

/// The same whatever is wrong: who guesses learns nothing.
pub(super) fn unknown() -> Error {
    Error::Unauthenticated {
        reason: "CREDENTIALS_NOT_ACCEPTED",
        message: "the credentials are not accepted".to_owned(),
    }
}
