//! Tokens of workloads, whose issuer's keys are fetched: from the first fetch through a failure to a change of keys.

use std::{
    fs,
    sync::{Arc, Mutex},
};

use emend_base::{
    ManualClock,
    clock::Clock as _,
    http_client::testing::{Reply, Server},
    reload::Reload as _,
};
use futures::FutureExt as _;
use http::Request;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::*;
use crate::auth::{Authenticator, Role, authorization::Credentials, testing::Issuer};

/// A workload's token, as Kubernetes makes them.
fn token(issuer: &Issuer, clock: &ManualClock) -> String {
    let now = clock.now().as_second();
    issuer.token(&json!({
        "aud": ["emend", "other"],
        "exp": now + 3_600,
        "iat": now,
        "iss": "https://kubernetes.default.svc.cluster.local",
        "kubernetes.io": {"namespace": "search", "serviceaccount": {"name": "backend"}},
        "nbf": now,
        "sub": "system:serviceaccount:search:backend",
    }))
}

fn caller(authenticator: &Authenticator, token: &str) -> Result<String, String> {
    let request = Request::builder().header(AUTHORIZATION, format!("Bearer {token}"));
    let credentials = Credentials::of(&request.body(()).unwrap());
    match authenticator.permit(credentials, Role::Reporter) {
        Ok(authorization) => Ok(authorization.caller().to_string()),
        Err(error) => Err(error.reason().to_owned()),
    }
}

#[tokio::test]
async fn fetched_keys_stay_in_force_until_others_are_fetched() {
    let (first, second) = (Issuer::new("first"), Issuer::new("second"));
    let offered = Arc::new(Mutex::new(Reply::Json(json!({"keys": [first.jwk()]}))));
    let replies = Arc::clone(&offered);
    let server = Server::start(move |_| replies.lock().unwrap().clone()).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("auth.toml");
    let text = format!(
        "[jwt]\naudience = \"emend\"\nissuer = \"https://kubernetes.default.svc.cluster.local\"\n\
         jwks_url = \"{}/openid/v1/jwks\"\njwks_token_file = \"token\"\n\
         [[principals]]\nname = \"search-backend\"\njwt_subjects = [\"system:serviceaccount:search:backend\"]\n\
         grants = [{{ roles = [\"reporter\"], namespaces = [\"shop\"] }}]\n",
        server.url
    );
    fs::write(&file, text).unwrap();
    let clock = ManualClock::new(Timestamp::from_second(1_800_000_000).unwrap());
    let authenticator = Arc::new(Authenticator::load_by(&file, clock.shared()).unwrap());
    let (by_first, by_second) = (token(&first, &clock), token(&second, &clock));
    let known = Ok("search-backend".to_owned());
    let refused = |reason: &str| Err(reason.to_owned());

    assert_eq!(caller(&authenticator, &by_first), refused("TOKEN_KEY_AWAITED"));
    assert!(
        authenticator.check().unwrap_err().contains("token"),
        "there is none"
    );
    assert_eq!(authenticator.fetch_keys().await, Some(RETRY), "nor here");
    assert!(authenticator.is_failing());

    fs::write(directory.path().join("token"), "of-the-service\n").unwrap();
    assert_eq!(authenticator.check(), Ok(()));
    assert_eq!(
        authenticator.fetch_keys().await,
        Some(Duration::from_secs(INTERVAL))
    );
    assert!(!authenticator.is_failing());
    let asked = server.asked().concat().to_lowercase();
    assert!(
        asked.starts_with("get /openid/v1/jwks ")
            && asked.contains("authorization: bearer of-the-service\r\n"),
        "{asked}"
    );
    assert_eq!(caller(&authenticator, &by_first), known);
    assert_eq!(
        caller(&authenticator, &by_second),
        refused("CREDENTIALS_NOT_ACCEPTED"),
        "the keys are new, and it is of none of them"
    );

    *offered.lock().unwrap() = Reply::Status(503, String::new(), "");
    clock.advance(SignedDuration::from_secs(NEWEST));
    assert!(
        authenticator.keys.wanted.notified().now_or_never().is_some(),
        "the file named an address"
    );
    assert_eq!(caller(&authenticator, &by_second), refused("TOKEN_KEY_AWAITED"));
    assert!(
        authenticator.keys.wanted.notified().now_or_never().is_some(),
        "at once"
    );
    assert_eq!(authenticator.fetch_keys().await, Some(RETRY));
    assert!(authenticator.is_failing());
    assert_eq!(caller(&authenticator, &by_first), known, "what was fetched stays");
    assert_eq!(caller(&authenticator, &by_second), refused("TOKEN_KEY_AWAITED"));
    assert!(
        authenticator.keys.wanted.notified().now_or_never().is_none(),
        "not for every token"
    );

    *offered.lock().unwrap() = Reply::Json(json!({"keys": [second.jwk()]}));
    authenticator.fetch_keys().await;
    assert!(!authenticator.is_failing());
    assert_eq!(caller(&authenticator, &by_second), known);
    assert_eq!(
        caller(&authenticator, &by_first),
        refused("CREDENTIALS_NOT_ACCEPTED")
    );

    *offered.lock().unwrap() = Reply::Json(json!({"keys": []}));
    authenticator.fetch_keys().await;
    assert!(authenticator.is_failing());
    assert_eq!(
        caller(&authenticator, &by_second),
        known,
        "no keys are no keys to use"
    );
}
