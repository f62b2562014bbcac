//! JSON Web Tokens: verified by the keys of a JWKS file or by one shared key, for one audience, with an end.
//!
//! A key is tied to its algorithms when it is read, and the token's header only chooses among keys: so neither `none` nor a
//! public key used as a shared one gets anywhere. The cryptography is ring's. It must know nothing of principals.

mod crypto;
#[cfg(test)]
mod tests;

use jsonwebtoken::{
    Algorithm, DecodingKey, Validation, decode, decode_header,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse},
};
use serde::Deserialize;

/// The least length of a shared key, in bytes.
const LEAST_SHARED: usize = 32;
/// By how much the clock of whoever issues tokens may be ahead of ours, in seconds.
const LEEWAY: i64 = 60;

const RSA: [Algorithm; 6] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];
const SHARED: [Algorithm; 3] = [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512];

struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    verifies: DecodingKey,
}

/// What signatures are verified with.
pub(super) struct Keys(Vec<Key>);

impl Keys {
    /// The public signing keys of a JSON Web Key Set.
    pub(super) fn jwks(file: &[u8]) -> Result<Self, String> {
        let set: JwkSet =
            serde_json::from_slice(file).map_err(|error| format!("is not a JSON Web Key Set: {error}"))?;
        let for_signing = set
            .keys
            .iter()
            .filter(|jwk| matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature)));
        let mut keys = Vec::new();
        for jwk in for_signing {
            let algorithms = algorithms(jwk)?;
            if !algorithms.is_empty() {
                keys.push(Key {
                    id: jwk.common.key_id.clone(),
                    algorithms,
                    verifies: DecodingKey::from_jwk(jwk)
                        .map_err(|error| format!("has a key that can't be used: {error}"))?,
                });
            }
        }
        if keys.is_empty() {
            return Err("has no key to verify signatures with (RSA, P-256, P-384 or Ed25519)".to_owned());
        }
        Ok(Self(keys))
    }

    /// One key that whoever issues tokens has too. White space around it does not count.
    pub(super) fn shared(file: &[u8]) -> Result<Self, String> {
        let key = file.trim_ascii();
        if key.len() < LEAST_SHARED {
            return Err(format!(
                "a shared key must have {LEAST_SHARED} bytes or more, has {}",
                key.len()
            ));
        }
        Ok(Self(vec![Key {
            id: None,
            algorithms: SHARED.to_vec(),
            verifies: DecodingKey::from_secret(key),
        }]))
    }
}

/// What a key may verify; nothing if it is of a kind that we do not know.
fn algorithms(jwk: &Jwk) -> Result<Vec<Algorithm>, String> {
    let by_kind = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => RSA.to_vec(),
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => vec![Algorithm::ES256],
            EllipticCurve::P384 => vec![Algorithm::ES384],
            _ => Vec::new(),
        },
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            vec![Algorithm::EdDSA]
        }
        AlgorithmParameters::OctetKey(_) => {
            return Err("holds a shared key: those go into a shared_key_file".to_owned());
        }
        _ => Vec::new(),
    };
    Ok(match &jwk.common.key_algorithm {
        None => by_kind,
        Some(one) => by_kind
            .into_iter()
            .filter(|algorithm| jsonwebtoken::jwk::KeyAlgorithm::from(*algorithm) == *one)
            .collect(),
    })
}

/// What a good token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claims {
    /// Who.
    pub(super) subject: String,
    /// Until when, in seconds since 1970.
    pub(super) expires_at: i64,
}

/// Why a token is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unaccepted {
    /// Its time is over; all else is right.
    Expired,
    /// Anything else.
    NotValid,
}

/// Typed, so that a claim of another type than it should have is no claim.
#[derive(Deserialize)]
struct Wire {
    sub: String,
    exp: i64,
    nbf: Option<i64>,
}

/// Verifies tokens.
pub(super) struct Verifier {
    keys: Keys,
    validation: Validation,
}

impl Verifier {
    /// For one audience, and one issuer if it is given.
    pub(super) fn new(keys: Keys, audience: &str, issuer: Option<&str>) -> Self {
        crypto::install();
        let mut validation = Validation::new(Algorithm::default());
        validation.set_audience(&[audience]);
        validation.set_required_spec_claims(&["exp", "aud", "sub"]);
        if let Some(issuer) = issuer {
            validation.set_issuer(&[issuer]);
            validation.set_required_spec_claims(&["exp", "aud", "sub", "iss"]);
        }
        // Compared below, with the clock that is injected.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        Self { keys, validation }
    }

    /// What a token says, at that time in seconds since 1970.
    pub(super) fn verify(&self, token: &str, now: i64) -> Result<Claims, Unaccepted> {
        let header = decode_header(token).map_err(|_| Unaccepted::NotValid)?;
        let fits = |key: &&Key| {
            key.algorithms.contains(&header.alg)
                && (header.kid.is_none() || key.id.is_none() || header.kid == key.id)
        };
        let mut validation = self.validation.clone();
        validation.algorithms = vec![header.alg];
        let claims = self
            .keys
            .0
            .iter()
            .filter(fits)
            .find_map(|key| decode::<Wire>(token, &key.verifies, &validation).ok())
            .ok_or(Unaccepted::NotValid)?
            .claims;
        if claims.nbf.is_some_and(|from| from > now.saturating_add(LEEWAY)) {
            return Err(Unaccepted::NotValid);
        }
        if claims.exp <= now {
            return Err(Unaccepted::Expired);
        }
        Ok(Claims {
            subject: claims.sub,
            expires_at: claims.exp,
        })
    }
}
