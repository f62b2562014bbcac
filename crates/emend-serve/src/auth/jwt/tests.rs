//! Valid tokens, and each way to make an invalid one.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::*;
use crate::auth::testing::{Issuer, base64, by_shared_key, unsigned};

const SHARED_KEY: &[u8] = b"0123456789abcdef0123456789abcdef\n";

/// The modulus of an RSA key that signed two tokens; the private key is gone.
const MODULUS: &str = "rcvsexXDqrP5Vy2sSujgfy4KlxSBNjomyp7PdjV7oDzB9Iljv4fA7XcMBcDF2WmeWjon-r-yPNltmmv_p7V3t3yhhaScJC4bDRknWyNpmbIkffDgNbabItjQVMQRu2Bg9W-vaipTbe2R9FOiQWnQC5FY84wF0KmfrXrwbfNqyC5dZPByMRbU3GEx_bzaWRbvFAPrlkYHlzeTbwEV455Ow8ZIcHkEP9HOtkACJmd5tYJozZ0QF_VkVjaw-QRsrRaNPtsIsEKBiBUAX9YtRCWujyyFJFx-kQ1NqznljLLxggzv0hNdcvGokvnUQsylxPLJ-q2kZkzHBVXNQFQ7S67oaw";
/// `{"alg":"RS256","typ":"JWT","kid":"rsa-1"}`, `{"sub":"shop","aud":"emend","exp":2000}`, signed by OpenSSL.
const BY_RSA: &str = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6InJzYS0xIn0.eyJzdWIiOiJzaG9wIiwiYXVkIjoiZW1lbmQiLCJleHAiOjIwMDB9.LOi3xexwdmHXuZqNl7t2BJ1VZHoG4w8KTwspBp5HlNpn7qt7IVKQWFGR8pXWj-Vi8Czye2OX3tOpLd2Pt_8eNGkSoOXTogvkRpWFUS_Iqk0F39GL7NtXKLpXjyyKGplgT5DpOi4wtUVa5QT7sLPnFa4n2QANY261lWf-tO_Lwxa5RbJbR6KMYq6K-HLQnb_QZ-Pw2-L1rDgUAMcpWjwo1Ea0symgLhmOQb8QzJEGVCnr2cq3XRsIN96IDmAm-W2mWqluP1zHPmAJWIT_-NoZ6_2EfOoBR82N4tU_D2bW3ef2XFPSvpHwk0DkL-fzHhYqss621yjIEGihkubczJUugA";
/// The same with RS384, which the set's key does not allow.
const BY_RSA_384: &str = "eyJhbGciOiJSUzM4NCIsInR5cCI6IkpXVCIsImtpZCI6InJzYS0xIn0.eyJzdWIiOiJzaG9wIiwiYXVkIjoiZW1lbmQiLCJleHAiOjIwMDB9.WPV0UrfxNSqyik5HSwzFqQA15EgaZGpH8HHN5-Vp9V46n-_42e-s01dwFoSFll4KPilnckmClvF7stAOixa-okoGKQ5Ve2qqMAbGwPU4cqpTN1nE81ElghoG6o5elR9NBSdM6dJlW4_NQDmHztas8Po0nylNyJcIMRmDYCu9Cq9gXNct4ula6GY6ZEs7Xs2-CQNKvxg6jUS-Dg6ycf0xKOUjNnfxeJcW5Qzn-sANUc2cp6V7MrCjNltKLiVJzvOyGgIqZCgP1FkMRqSQ-3YVqv3aOkYfQDYCbhJ42Unb9Iyq7BKNXhZC9DdPHGiQxVqyv3pqESS__rvkq-HjD7P8Fw";

fn shared(claims: &Value) -> String {
    by_shared_key(SHARED_KEY.trim_ascii(), &json!({"alg": "HS256"}), claims)
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

/// The keys of [`BY_RSA`] and of an issuer.
fn public_keys(issuer: &Issuer) -> Vec<u8> {
    set(&[
        json!({"kty": "RSA", "kid": "rsa-1", "use": "sig", "alg": "RS256", "n": MODULUS, "e": "AQAB"}),
        issuer.jwk(),
        json!({"kty": "RSA", "kid": "encrypts", "use": "enc", "n": MODULUS, "e": "AQAB"}),
    ])
}

fn set(keys: &[Value]) -> Vec<u8> {
    json!({"keys": keys}).to_string().into_bytes()
}

fn by_set(keys: &[Value]) -> Verifier {
    Verifier::new(Keys::jwks(&set(keys)).unwrap(), "emend", None)
}

#[test]
fn a_valid_token_gives_the_caller_and_the_expiry() {
    let claims = shared_verifier().verify(&shared(&good()), 1_000).unwrap();
    assert_eq!((claims.subject.as_str(), claims.expires_at), ("shop", 2_000));
}

#[test]
fn a_token_expires_to_the_second() {
    let (verifier, token) = (shared_verifier(), shared(&good()));
    assert!(verifier.verify(&token, 1_999).is_ok());
    assert_eq!(verifier.verify(&token, 2_000), Err(TokenError::Expired));
    assert_eq!(verifier.verify(&token, 800), Err(TokenError::Invalid), "not yet");
}

#[test]
fn each_claim_must_be_present_and_valid() {
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
            Err(TokenError::Invalid),
            "{claims}"
        );
    }
}

#[test]
fn every_bit_of_a_signature_counts_and_only_a_signed_token_is_called_expired() {
    let verifier = shared_verifier();
    let other = by_shared_key(&[7; 32], &json!({"alg": "HS256"}), &good());
    assert_eq!(verifier.verify(&other, 3_000), Err(TokenError::Invalid));
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
        assert_eq!(verifier.verify(bad, 1_000), Err(TokenError::Invalid), "{bad}");
    }
    let (_, signature) = token.rsplit_once('.').unwrap();
    assert_eq!(
        verifier.verify(&format!("{none}.{signature}"), 1_000),
        Err(TokenError::Invalid)
    );
}

#[test]
fn the_keys_of_a_set_verify_what_they_signed() {
    let issuer = Issuer::new("ec-1");
    let verifier = Verifier::new(Keys::jwks(&public_keys(&issuer)).unwrap(), "emend", None);
    assert_eq!(verifier.verify(BY_RSA, 1_000).unwrap().subject, "shop");
    for header in [json!({"alg": "ES256", "kid": "ec-1"}), json!({"alg": "ES256"})] {
        let token = issuer.token_by(&header, &good());
        assert!(verifier.verify(&token, 1_000).is_ok(), "{header}");
    }
    for (kid, expected) in [
        (json!("rsa-1"), TokenError::Invalid),
        (json!("ec-2"), TokenError::UnknownKey),
        (json!("EC-1"), TokenError::UnknownKey),
        (json!(""), TokenError::UnknownKey),
        (json!(1), TokenError::Invalid),
        (json!(["ec-1"]), TokenError::Invalid),
    ] {
        let elsewhere = issuer.token_by(&json!({"alg": "ES256", "kid": kid}), &good());
        assert_eq!(verifier.verify(&elsewhere, 1_000), Err(expected), "{kid}");
    }
    let others = Issuer::new("ec-1").token(&good());
    assert_eq!(verifier.verify(&others, 1_000), Err(TokenError::Invalid));
}

#[test]
fn a_public_key_is_no_shared_key() {
    let issuer = Issuer::new("ec-1");
    let set = public_keys(&issuer);
    let verifier = Verifier::new(Keys::jwks(&set).unwrap(), "emend", None);
    let modulus = URL_SAFE_NO_PAD.decode(MODULUS).unwrap();
    for (kid, secret) in [
        ("rsa-1", modulus.as_slice()),
        ("rsa-1", MODULUS.as_bytes()),
        ("ec-1", issuer.public_key()),
        ("ec-1", set.as_slice()),
    ] {
        let forged = by_shared_key(secret, &json!({"alg": "HS256", "kid": kid}), &good());
        assert_eq!(verifier.verify(&forged, 1_000), Err(TokenError::Invalid), "{kid}");
    }
    assert_eq!(
        verifier.verify(BY_RSA_384, 1_000),
        Err(TokenError::Invalid),
        "the key is for RS256"
    );
}

#[test]
fn unusable_keys_are_refused_when_read() {
    let refused = |keys: Result<Keys, String>| keys.err().unwrap();
    assert!(refused(Keys::shared(b"short")).contains("32 bytes"));
    assert!(refused(Keys::jwks(b"{}")).contains("JSON Web Key Set"));
    assert!(refused(Keys::jwks(b"{\"keys\": []}")).contains("no key"));
    let octets = br#"{"keys": [{"kty": "oct", "k": "AAAA"}]}"#;
    assert!(refused(Keys::jwks(octets)).contains("shared_key_file"));
    let mut short_point = Issuer::new("ec-1").jwk();
    short_point["x"] = json!(base64([7; 31]));
    for of_wrong_length in [
        json!({"kty": "RSA", "n": base64([0xff; 255]), "e": "AQAB"}),
        json!({"kty": "RSA", "n": base64([0xff; 1_025]), "e": "AQAB"}),
        json!({"kty": "OKP", "crv": "Ed25519", "x": base64([7; 31])}),
        short_point,
    ] {
        let problem = refused(Keys::jwks(&self::set(std::slice::from_ref(&of_wrong_length))));
        assert!(problem.contains("length"), "{of_wrong_length}: {problem}");
    }
}

#[test]
fn keys_of_another_type_or_use_in_a_set_are_ignored() {
    let issuer = Issuer::new("ec-1");
    let mut for_encryption = Issuer::new("ec-2").jwk();
    for_encryption["key_ops"] = json!(["deriveKey"]);
    let others = [
        json!({"kty": "AKP", "kid": "new", "alg": "ML-DSA-44", "pub": "AAAA"}),
        json!({"kty": "EC", "kid": "koblitz", "crv": "secp256k1", "x": "AAAA", "y": "AAAA"}),
        json!({"kty": "OKP", "kid": "agreement", "crv": "X25519", "x": "AAAA"}),
        for_encryption.clone(),
    ];
    assert!(Keys::jwks(&set(&others)).err().unwrap().contains("no key"));
    let verifier = by_set(&[&others[..], &[issuer.jwk()]].concat());
    assert!(verifier.verify(&issuer.token(&good()), 1_000).is_ok());

    let other = Issuer::new("ec-2");
    let with_operations = |operations: &[&str]| {
        let mut key = other.jwk();
        key["key_ops"] = json!(operations);
        by_set(&[issuer.jwk(), key]).verify(&other.token(&good()), 1_000)
    };
    assert!(with_operations(&["sign", "verify"]).is_ok());
    for operations in [&["sign"][..], &["encrypt", "wrapKey"], &[]] {
        assert_eq!(
            with_operations(operations),
            Err(TokenError::UnknownKey),
            "{operations:?}"
        );
    }
}

#[test]
fn two_keys_with_the_same_id_are_both_valid() {
    let (old, new) = (Issuer::new("current"), Issuer::new("current"));
    let both = by_set(&[old.jwk(), new.jwk()]);
    for issuer in [&old, &new] {
        assert!(both.verify(&issuer.token(&good()), 1_000).is_ok());
    }
    let after = by_set(&[new.jwk()]);
    assert_eq!(after.verify(&old.token(&good()), 1_000), Err(TokenError::Invalid));
}

#[test]
fn a_header_only_selects_a_key_of_the_set() {
    let (issuer, stranger) = (Issuer::new("ec-1"), Issuer::new("ec-1"));
    let verifier = by_set(&[issuer.jwk()]);
    // Keys that a token carries, or points to, do not count.
    for (name, value) in [
        ("jwk", stranger.jwk()),
        ("jku", json!("https://stranger.example/jwks.json")),
        ("x5u", json!("https://stranger.example/x.pem")),
        ("typ", json!("at+jwt")),
    ] {
        let mut header = json!({"alg": "ES256", "kid": "ec-1"});
        header[name] = value;
        let forged = stranger.token_by(&header, &good());
        assert_eq!(
            verifier.verify(&forged, 1_000),
            Err(TokenError::Invalid),
            "{header}"
        );
        let token = issuer.token_by(&header, &good());
        assert!(verifier.verify(&token, 1_000).is_ok(), "{header}");
    }
    // Critical headers are not understood: a signature over unencoded content, for example (RFC 7797).
    for crit in [json!(["b64"]), json!(["exp"]), json!([]), json!("b64")] {
        let token = issuer.token_by(&json!({"alg": "ES256", "b64": false, "crit": crit}), &good());
        assert_eq!(verifier.verify(&token, 1_000), Err(TokenError::Invalid), "{crit}");
    }
    for alg in [
        json!("none"),
        json!("None"),
        json!("es256"),
        json!(""),
        json!(null),
        json!(["ES256"]),
    ] {
        let token = issuer.token_by(&json!({"alg": alg}), &good());
        assert_eq!(verifier.verify(&token, 1_000), Err(TokenError::Invalid), "{alg}");
    }
}

#[test]
fn duplicate_and_malformed_claims_are_refused() {
    let issuer = Issuer::new("ec-1");
    let verifier = by_set(&[issuer.jwk()]);
    let header = r#"{"alg":"ES256"}"#;
    let claims = r#"{"sub":"shop","aud":"emend","exp":2000}"#;
    let verify = |header: &str, claims: &str| {
        let token = issuer.sign(&format!("{}.{}", base64(header), base64(claims)));
        verifier.verify(&token, 1_000)
    };
    assert!(verify(header, claims).is_ok());
    for (header, claims) in [
        (r#"{"alg":"ES256","alg":"ES256"}"#, claims),
        (r#"{"alg":"none","alg":"ES256"}"#, claims),
        (header, r#"{"sub":"guest","sub":"shop","aud":"emend","exp":2000}"#),
        (header, r#"{"sub":"shop","aud":"other","aud":"emend","exp":2000}"#),
        (header, r#"{"sub":"shop","aud":"emend","exp":1,"exp":2000}"#),
        (header, r#"{"sub":["shop"],"aud":"emend","exp":2000}"#),
        (header, r#"{"sub":null,"aud":"emend","exp":2000}"#),
        (header, r#"{"sub":"shop","aud":["emend",7],"exp":2000}"#),
        (header, r#"{"sub":"shop","aud":{"emend":true},"exp":2000}"#),
        (header, r#"{"sub":"shop","aud":[],"exp":2000}"#),
        (header, r#"{"sub":"shop","aud":" emend","exp":2000}"#),
        (header, r#"{"sub":"shop","aud":"emend","exp":"2000"}"#),
        (header, r#"{"sub":"shop","aud":"emend","exp":1e300}"#),
        (header, r#"{"sub":"shop","aud":"emend","exp":-1}"#),
        (header, r#"["shop",2000,null]"#),
        (header, r#"[2000,null,"shop",null,"emend"]"#),
        (header, "null"),
        (header, ""),
    ] {
        assert_eq!(
            verify(header, claims),
            Err(TokenError::Invalid),
            "{header} {claims}"
        );
    }
    let token = issuer.sign(&format!("{}.{}", base64(header), base64(claims)));
    let (message, signature) = token.rsplit_once('.').unwrap();
    let (first, second) = message.split_once('.').unwrap();
    for bent in [
        format!("{token}="),
        format!("{token}."),
        format!(".{token}"),
        format!("{token}\n"),
        format!("{first}=.{second}.{signature}"),
        format!("{first}.{second}=.{signature}"),
        format!("{first}. {second}.{signature}"),
        format!("{message}.{signature}.{signature}"),
    ] {
        assert_eq!(verifier.verify(&bent, 1_000), Err(TokenError::Invalid), "{bent}");
    }
    // The spaces are part of the name.
    let spaced = verify(header, r#"{"sub":"shop ","aud":"emend","exp":2000}"#);
    assert_eq!(spaced.unwrap().subject, "shop ");
}

#[test]
fn an_issuer_must_be_a_single_string() {
    let verifier = shared_verifier();
    for issuer in [
        json!(["https://issuer"]),
        json!(["https://issuer", "https://other"]),
        json!(null),
    ] {
        let token = shared(&with("iss", issuer.clone()));
        assert_eq!(
            verifier.verify(&token, 1_000),
            Err(TokenError::Invalid),
            "{issuer}"
        );
    }
}

#[test]
fn fractional_times_are_rounded_to_the_safe_side() {
    let verifier = shared_verifier();
    let at = |name: &str, time: Value, now| verifier.verify(&shared(&with(name, time)), now);
    assert_eq!(at("exp", json!(2_000.9), 1_999).unwrap().expires_at, 2_000);
    assert_eq!(at("exp", json!(2_000.9), 2_000), Err(TokenError::Expired));
    assert!(at("exp", json!(i64::MAX), 1_999).is_ok());
    assert_eq!(at("exp", json!(u64::MAX), 1_999), Err(TokenError::Invalid));
    // An issuer's clock may be a minute ahead.
    assert!(at("nbf", json!(1_060), 1_000).is_ok());
    assert_eq!(at("nbf", json!(1_060.1), 1_000), Err(TokenError::Invalid));
    assert_eq!(at("nbf", json!(1_061), 1_000), Err(TokenError::Invalid));
    assert!(at("nbf", json!(-1), 1_000).is_ok());
    assert_eq!(at("nbf", json!(u64::MAX), 1_000), Err(TokenError::Invalid));
}
