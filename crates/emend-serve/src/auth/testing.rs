//! For tests: an issuer of valid and invalid JSON Web Tokens, and the access that handlers are given.

#![expect(clippy::unwrap_used, reason = "a test's helper fails like the test")]

use std::{
    convert::Infallible,
    fmt,
    sync::{Arc, Mutex},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{Request, Response, header::AUTHORIZATION};
use ring::{
    hmac,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::{Value, json};
use tonic::body::Body;
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::{Access, AuthLayer, Authenticator, Rule, Rules};
use crate::methods::Methods;

/// The access that a call to `path` with this bearer token is given when it begins.
///
/// # Panics
/// If the call is refused.
pub async fn access_of(
    authenticator: &Arc<Authenticator>,
    rules: &[Rule],
    path: &'static str,
    token: &str,
) -> Access {
    let seen = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&seen);
    let handler = service_fn(move |request: Request<Body>| {
        *keep.lock().unwrap() = request.extensions().get::<Access>().cloned();
        async { Ok::<_, Infallible>(Response::new(Body::empty())) }
    });
    let request = Request::builder()
        .uri(path)
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .body(Body::empty())
        .unwrap();
    let authentication = (Arc::clone(authenticator), Rules::of(rules));
    let layer = AuthLayer::new(Some(authentication), Methods::of(&[]));
    layer.layer(handler).oneshot(request).await.unwrap();
    let access = seen.lock().unwrap().take();
    access.unwrap()
}

/// Signs with ES256 and a key of its own.
pub struct Issuer {
    key_id: String,
    key: EcdsaKeyPair,
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Issuer").field(&self.key_id).finish()
    }
}

impl Issuer {
    /// An issuer with a new key of that id.
    pub fn new(key_id: &str) -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random);
        Self {
            key_id: key_id.to_owned(),
            key: key.unwrap(),
        }
    }

    /// Its public key as a point: 0x04, x and y.
    pub fn public_key(&self) -> &[u8] {
        self.key.public_key().as_ref()
    }

    /// Its public key as a JSON Web Key, with neither `use` nor `alg`.
    pub fn jwk(&self) -> Value {
        let (x, y) = self.public_key()[1..].split_at(32);
        json!({"kty": "EC", "kid": self.key_id, "crv": "P-256", "x": base64(x), "y": base64(y)})
    }

    /// A token with these claims; its header names the key.
    pub fn token(&self, claims: &Value) -> String {
        self.token_by(&json!({"alg": "ES256", "typ": "JWT", "kid": self.key_id}), claims)
    }

    /// A token with that header, whatever it says.
    pub fn token_by(&self, header: &Value, claims: &Value) -> String {
        self.sign(&unsigned(header, claims))
    }

    /// Signs the message as it is and appends the signature.
    pub fn sign(&self, message: &str) -> String {
        let signature = self.key.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("{message}.{}", base64(signature))
    }
}

/// A token signed by HMAC with SHA-256.
pub fn by_shared_key(key: &[u8], header: &Value, claims: &Value) -> String {
    let message = unsigned(header, claims);
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message.as_bytes());
    format!("{message}.{}", base64(tag))
}

/// The part of a token that is signed.
pub fn unsigned(header: &Value, claims: &Value) -> String {
    format!("{}.{}", base64(header.to_string()), base64(claims.to_string()))
}

/// The encoding of a token's parts.
pub fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
