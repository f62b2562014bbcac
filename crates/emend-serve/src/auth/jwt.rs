//! JSON Web Tokens: verified with the keys of a JWKS, from a file or fetched ([`remote`]), or with one shared key, for one audience, with an expiry.
//!
//! A key is tied to its algorithms when it is read, and the token's header only chooses among keys, so neither `none`
//! nor a public key used as a shared one is ever accepted. The cryptography is ring's.

mod crypto;
pub(super) mod remote;
#[cfg(test)]
mod tests;

use jsonwebtoken::{
    Algorithm, DecodingKey, DecodingKeyKind, Validation, decode, decode_header,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyOperations, PublicKeyUse},
};
use serde::Deserialize;
use serde_json::Number;

/// The minimum length of a shared key, in bytes.
const LEAST_SHARED: usize = 32;
/// How far an issuer's clock may be ahead of ours, in seconds.
const LEEWAY: i64 = 60;
/// The bound beyond which a float can't hold every whole second (2⁵³).
const EXACT: f64 = 9_007_199_254_740_992.0;

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

/// The keys that verify signatures.
pub(super) struct Keys(Vec<Key>);

impl Keys {
    /// The public signing keys of a JSON Web Key Set.
    pub(super) fn jwks(file: &[u8]) -> Result<Self, String> {
        let set: JwkSet =
            serde_json::from_slice(file).map_err(|error| format!("is not a JSON Web Key Set: {error}"))?;
        let mut keys = Vec::new();
        for jwk in set.keys.iter().filter(|jwk| is_for_signatures(jwk)) {
            let algorithms = algorithms(jwk)?;
            if let Some(first) = algorithms.first() {
                let verifies = DecodingKey::from_jwk(jwk)
                    .map_err(|error| format!("has a key that can't be used: {error}"))?;
                if !has_right_length(&verifies, *first) {
                    return Err(
                        "has a key of invalid length: RSA keys have 2048 to 8192 bits, others the length of their curve"
                            .to_owned(),
                    );
                }
                keys.push(Key {
                    id: jwk.common.key_id.clone(),
                    algorithms,
                    verifies,
                });
            }
        }
        if keys.is_empty() {
            return Err("has no key to verify signatures with (RSA, P-256, P-384 or Ed25519)".to_owned());
        }
        Ok(Self(keys))
    }

    /// Those of an issuer that have not been fetched yet.
    pub(super) fn awaited() -> Self {
        Self(Vec::new())
    }

    /// Whether a token that names this key, if any, can't be verified for want of the key.
    fn lack(&self, id: Option<&String>) -> bool {
        self.0.is_empty()
            || id.is_some_and(|id| {
                self.0
                    .iter()
                    .all(|key| key.id.as_ref().is_some_and(|known| known != id))
            })
    }

    /// One key shared with the issuer. White space around it does not count.
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

/// Whether a key is meant for verifying signatures; one that does not say is.
fn is_for_signatures(jwk: &Jwk) -> bool {
    let by_use = matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature));
    let operations = jwk.common.key_operations.as_ref();
    by_use && operations.is_none_or(|operations| operations.contains(&KeyOperations::Verify))
}

/// Whether a signature can verify with this key at all; a key with which none can is better reported when it is read.
fn has_right_length(key: &DecodingKey, algorithm: Algorithm) -> bool {
    match key.kind() {
        DecodingKeyKind::RsaModulusExponent { n, .. } => (2048 / 8..=8192 / 8).contains(&n.len()),
        DecodingKeyKind::SecretOrDer(bytes) => match algorithm {
            // One byte that says that both coordinates follow, then the coordinates.
            Algorithm::ES256 => bytes.len() == 1 + 2 * 32,
            Algorithm::ES384 => bytes.len() == 1 + 2 * 48,
            _ => bytes.len() == 32,
        },
    }
}

/// What a key may verify; nothing if its type is unknown.
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

/// The claims of a valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claims {
    /// The subject.
    pub(super) subject: String,
    /// When it expires, in seconds since 1970.
    pub(super) expires_at: i64,
}

/// Why a token is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenError {
    /// It has expired; everything else is right.
    Expired,
    /// Its key is not among those that are known.
    UnknownKey,
    /// Anything else.
    Invalid,
}

/// Typed, so that a claim of the wrong type counts as missing or invalid.
#[derive(Deserialize)]
struct Wire {
    sub: String,
    exp: Number,
    nbf: Option<Number>,
    iss: Option<String>,
}

/// A time in seconds since 1970, rounded to a whole second; `None` if it is out of range.
fn seconds(time: &Number, round: fn(f64) -> f64) -> Option<i64> {
    time.as_i64().or_else(|| {
        let whole = round(time.as_f64()?);
        #[expect(clippy::cast_possible_truncation, reason = "whole and within bounds")]
        (whole.abs() < EXACT).then_some(whole as i64)
    })
}

/// Verifies tokens.
pub(super) struct Verifier {
    keys: Keys,
    issuer: Option<String>,
    validation: Validation,
}

impl Verifier {
    /// The only issuer whose tokens are accepted, if there is one.
    pub(super) fn issuer(&self) -> Option<&str> {
        self.issuer.as_deref()
    }

    /// For one audience, and one issuer if given.
    pub(super) fn new(keys: Keys, audience: &str, issuer: Option<&str>) -> Self {
        crypto::install();
        let mut validation = Validation::new(Algorithm::default());
        validation.set_audience(&[audience]);
        validation.set_required_spec_claims(&["exp", "aud", "sub"]);
        // Checked below, with the injected clock.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        Self {
            keys,
            // Also checked below: the library would accept a token that lists several issuers, this one among them.
            issuer: issuer.map(ToOwned::to_owned),
            validation,
        }
    }

    /// The claims of a valid token. `now` is in seconds since 1970.
    pub(super) fn verify(&self, token: &str, now: i64) -> Result<Claims, TokenError> {
        let header = decode_header(token).map_err(|_| TokenError::Invalid)?;
        // Critical headers must be understood (RFC 7515, 4.1.11), and none is understood here.
        if header.crit.is_some() {
            return Err(TokenError::Invalid);
        }
        if self.keys.lack(header.kid.as_ref()) {
            return Err(TokenError::UnknownKey);
        }
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
            .ok_or(TokenError::Invalid)?
            .claims;
        if self.issuer.is_some() && claims.iss != self.issuer {
            return Err(TokenError::Invalid);
        }
        let expires_at = seconds(&claims.exp, f64::floor).ok_or(TokenError::Invalid)?;
        if let Some(from) = &claims.nbf {
            let from = seconds(from, f64::ceil).ok_or(TokenError::Invalid)?;
            if from > now.saturating_add(LEEWAY) {
                return Err(TokenError::Invalid);
            }
        }
        if expires_at <= now {
            return Err(TokenError::Expired);
        }
        Ok(Claims {
            subject: claims.sub,
            expires_at,
        })
    }
}
