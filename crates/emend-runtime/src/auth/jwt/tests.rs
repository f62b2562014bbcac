//! Tokens that are good, and each way to make one that is not.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::{Value, json};

use super::*;

const SHARED_KEY: &[u8] = b"0123456789abcdef0123456789abcdef\n";

/// The modulus of an RSA key that signed two tokens; the key itself is gone.
const MODULUS: &str = "rcvsexXDqrP5Vy2sSujgfy4KlxSBNjomyp7PdjV7oDzB9Iljv4fA7XcMBcDF2WmeWjon-r-yPNltmmv_p7V3t3yhhaScJC4bDRknWyNpmbIkffDgNbabItjQVMQRu2Bg9W-vaipTbe2R9FOiQWnQC5FY84wF0KmfrXrwbfNqyC5dZPByMRbU3GEx_bzaWRbvFAPrlkYHlzeTbwEV455Ow8ZIcHkEP9HOtkACJmd5tYJozZ0QF_VkVjaw-QRsrRaNPtsIsEKBiBUAX9YtRCWujyyFJFx-kQ1NqznljLLxggzv0hNdcvGokvnUQsylxPLJ-q2kZkzHBVXNQFQ7S67oaw";
/// `{"alg":"RS256","typ":"JWT","kid":"rsa-1"}`, `{"sub":"shop","aud":"emend","exp":2000}`, signed by OpenSSL.
const BY_RSA: &str = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6InJzYS0xIn0.eyJzdWIiOiJzaG9wIiwiYXVkIjoiZW1lbmQiLCJleHAiOjIwMDB9.LOi3xexwdmHXuZqNl7t2BJ1VZHoG4w8KTwspBp5HlNpn7qt7IVKQWFGR8pXWj-Vi8Czye2OX3tOpLd2Pt_8eNGkSoOXTogvkRpWFUS_Iqk0F39GL7NtXKLpXjyyKGplgT5DpOi4wtUVa5QT7sLPnFa4n2QANY261lWf-tO_Lwxa5RbJbR6KMYq6K-HLQnb_QZ-Pw2-L1rDgUAMcpWjwo1Ea0symgLhmOQb8QzJEGVCnr2cq3XRsIN96IDmAm-W2mWqluP1zHPmAJWIT_-NoZ6_2EfOoBR82N4tU_D2bW3ef2XFPSvpHwk0DkL-fzHhYqss621yjIEGihkubczJUugA";
/// The same by RS384, for which the set does not have the key.
const BY_RSA_384: &str = "eyJhbGciOiJSUzM4NCIsInR5cCI6IkpXVCIsImtpZCI6InJzYS0xIn0.eyJzdWIiOiJzaG9wIiwiYXVkIjoiZW1lbmQiLCJleHAiOjIwMDB9.WPV0UrfxNSqyik5HSwzFqQA15EgaZGpH8HHN5-Vp9V46n-_42e-s01dwFoSFll4KPilnckmClvF7stAOixa-okoGKQ5Ve2qqMAbGwPU4cqpTN1nE81ElghoG6o5elR9NBSdM6dJlW4_NQDmHztas8Po0nylNyJcIMRmDYCu9Cq9gXNct4ula6GY6ZEs7Xs2-CQNKvxg6jUS-Dg6ycf0xKOUjNnfxeJcW5Qzn-sANUc2cp6V7MrCjNltKLiVJzvOyGgIqZCgP1FkMRqSQ-3YVqv3aOkYfQDYCbhJ42Unb9Iyq7BKNXhZC9DdPHGiQxVqyv3pqESS__rvkq-HjD7P8Fw";

fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn unsigned(header: &Value, claims: &Value) -> String {
    format!("{}.{}", base64(header.to_string()), base64(claims.to_string()))
}

/// Signed by HMAC with SHA-256.
fn by_hmac(key: &[u8], header: &Value, claims: &Value) -> String {
    let message = unsigned(header, claims);
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key);
    let tag = ring::hmac::sign(&key, message.as_bytes());
    format!("{message}.{}", base64(tag))
}

fn shared(claims: &Value) -> String {
    by_hmac(SHARED_KEY.trim_ascii(), &json!({"alg": "HS256"}), claims)
}

fn shared_verifier() -> Verifier {
    Verifier::new(Keys::shared(SHARED_KEY).unwrap(), "emend", Some("https://issuer"))
}

fn good() -> Value {
    json!({"sub": "shop", "aud": ["other", "emend"], "iss": "https://issuer", "exp": 2_000, "nbf": 900})
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = good();
    claims[name] = value;
    claims
}

fn without(name: &str) -> Value {
    let mut claims = good();
    claims.as_object_mut().unwrap().remove(name);
    claims
}

/// The keys of [`BY_RSA`] and of a new P-256 key.
fn public_keys(key: &EcdsaKeyPair) -> Vec<u8> {
    let point = &key.public_key().as_ref()[1..];
    let (x, y) = point.split_at(32);
    let set = json!({"keys": [
        {"kty": "RSA", "kid": "rsa-1", "use": "sig", "alg": "RS256", "n": MODULUS, "e": "AQAB"},
        {"kty": "EC", "kid": "ec-1", "crv": "P-256", "x": base64(x), "y": base64(y)},
        {"kty": "RSA", "kid": "encrypts", "use": "enc", "n": MODULUS, "e": "AQAB"},
    ]});
    set.to_string().into_bytes()
}

fn ec_key() -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap()
}

fn by_ec(key: &EcdsaKeyPair, header: &Value, claims: &Value) -> String {
    let message = unsigned(header, claims);
    let signature = key.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
    format!("{message}.{}", base64(signature))
}

#[test]
fn a_good_token_says_who_and_until_when() {
    let claims = shared_verifier().verify(&shared(&good()), 1_000).unwrap();
    assert_eq!((claims.subject.as_str(), claims.expires_at), ("shop", 2_000));
}

#[test]
fn its_time_is_over_at_its_end_to_the_second() {
    let (verifier, token) = (shared_verifier(), shared(&good()));
    assert!(verifier.verify(&token, 1_999).is_ok());
    assert_eq!(verifier.verify(&token, 2_000), Err(Unaccepted::Expired));
    assert_eq!(verifier.verify(&token, 800), Err(Unaccepted::NotValid), "not yet");
}

#[test]
fn each_claim_has_to_be_there_and_right() {
    let verifier = shared_verifier();
    for claims in [
        with("aud", json!("other")),
        with("aud", json!(["other"])),
        with("aud", json!(7)),
        with("iss", json!("https://other")),
        with("exp", json!("2000")),
        with("nbf", json!("soon")),
        with("sub", json!(7)),
        without("aud"),
        without("iss"),
        without("exp"),
        without("sub"),
    ] {
        assert_eq!(
            verifier.verify(&shared(&claims), 1_000),
            Err(Unaccepted::NotValid),
            "{claims}"
        );
    }
}

#[test]
fn a_signature_counts_to_the_last_bit_and_an_expired_token_without_a_good_one_is_not_called_expired() {
    let verifier = shared_verifier();
    let other = by_hmac(&[7; 32], &json!({"alg": "HS256"}), &good());
    assert_eq!(verifier.verify(&other, 3_000), Err(Unaccepted::NotValid));
    let token = shared(&good());
    let (message, _) = token.rsplit_once('.').unwrap();
    let none = unsigned(&json!({"alg": "none"}), &good());
    for bad in [
        message,
        &format!("{message}."),
        &none,
        &format!("{none}."),
        "",
        "..",
        "a.b.c",
    ] {
        assert_eq!(verifier.verify(bad, 1_000), Err(Unaccepted::NotValid), "{bad}");
    }
    let (_, signature) = token.rsplit_once('.').unwrap();
    assert_eq!(
        verifier.verify(&format!("{none}.{signature}"), 1_000),
        Err(Unaccepted::NotValid)
    );
}

#[test]
fn the_keys_of_a_set_verify_what_they_signed() {
    let key = ec_key();
    let verifier = Verifier::new(Keys::jwks(&public_keys(&key)).unwrap(), "emend", None);
    assert_eq!(verifier.verify(BY_RSA, 1_000).unwrap().subject, "shop");
    for header in [json!({"alg": "ES256", "kid": "ec-1"}), json!({"alg": "ES256"})] {
        assert!(
            verifier.verify(&by_ec(&key, &header, &good()), 1_000).is_ok(),
            "{header}"
        );
    }
    let elsewhere = by_ec(&key, &json!({"alg": "ES256", "kid": "rsa-1"}), &good());
    assert_eq!(verifier.verify(&elsewhere, 1_000), Err(Unaccepted::NotValid));
    let others = by_ec(&ec_key(), &json!({"alg": "ES256", "kid": "ec-1"}), &good());
    assert_eq!(verifier.verify(&others, 1_000), Err(Unaccepted::NotValid));
}

#[test]
fn a_public_key_is_no_shared_key() {
    let key = ec_key();
    let set = public_keys(&key);
    let verifier = Verifier::new(Keys::jwks(&set).unwrap(), "emend", None);
    let modulus = URL_SAFE_NO_PAD.decode(MODULUS).unwrap();
    for (kid, secret) in [
        ("rsa-1", modulus.as_slice()),
        ("rsa-1", MODULUS.as_bytes()),
        ("ec-1", key.public_key().as_ref()),
        ("ec-1", set.as_slice()),
    ] {
        let forged = by_hmac(secret, &json!({"alg": "HS256", "kid": kid}), &good());
        assert_eq!(
            verifier.verify(&forged, 1_000),
            Err(Unaccepted::NotValid),
            "{kid}"
        );
    }
    assert_eq!(
        verifier.verify(BY_RSA_384, 1_000),
        Err(Unaccepted::NotValid),
        "the key is for RS256"
    );
}

#[test]
fn keys_that_can_not_be_used_are_refused_when_they_are_read() {
    let refused = |keys: Result<Keys, String>| keys.err().unwrap();
    assert!(refused(Keys::shared(b"short")).contains("32 bytes"));
    assert!(refused(Keys::jwks(b"{}")).contains("JSON Web Key Set"));
    assert!(refused(Keys::jwks(b"{\"keys\": []}")).contains("no key"));
    let octets = br#"{"keys": [{"kty": "oct", "k": "AAAA"}]}"#;
    assert!(refused(Keys::jwks(octets)).contains("shared_key_file"));
}
