//! Each token sees its tools, and gets its errors.

use std::{fmt::Write as _, fs, time::Duration};

use emend_base::{Clock as _, SystemClock};
use emend_serve::auth::testing::by_shared_key;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{Client, phrase, up};
use crate::{
    harness::{TIMEOUT, run},
    mcp::message,
};

const KEY: &[u8] = b"a key of more than thirty-two bytes";
const ISSUER: &str = "https://login.example";

/// A token of the issuer for somebody, for an audience, that expires in so many seconds.
fn issued(subject: &str, audience: &str, expires_in: i64) -> String {
    let now = SystemClock.now().as_second();
    let claims = json!({"sub": subject, "aud": audience, "iss": ISSUER, "exp": now + expires_in});
    by_shared_key(KEY, &json!({"alg": "HS256", "typ": "JWT"}), &claims)
}

#[tokio::test]
async fn each_token_sees_its_tools_and_gets_its_errors() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::write(path("key"), KEY).expect("a file");
    let made = run(&["admin", "token", "--json"]).await.ok().json();
    let part = |part: &str| made[part].as_str().expect("a text").to_owned();
    fs::write(path("relay"), part("token")).expect("a file");
    let mut known = format!(
        "[jwt]\naudience = \"emend\"\nissuer = \"{ISSUER}\"\nshared_key_file = \"key\"\n[[principals]]\nname = \"feedback-svc\"\n\
         token_sha256 = [\"{}\"]\ngrants = [{{ roles = [\"ingester\"], namespaces = \"*\" }}]\n",
        part("tokenSha256")
    );
    for (name, grant) in [
        ("bot", r#"roles = ["reporter"], namespaces = ["default"]"#),
        ("rita", r#"roles = ["reviewer"], namespaces = ["default"]"#),
        ("shopper", r#"roles = ["reporter"], namespaces = ["shop"]"#),
    ] {
        let _ = writeln!(
            known,
            "[[principals]]\nname = \"{name}\"\njwt_subjects = [\"{name}\"]\ngrants = [{{ {grant} }}]"
        );
    }
    fs::write(path("auth.toml"), known).expect("a file");
    let (up, client) = up(&[
        "--auth-config",
        &path("auth.toml"),
        "--learning-token-file",
        &path("relay"),
    ])
    .await;
    let metadata_is_named = |answer: &super::client::Answer| {
        let challenge = answer.header("www-authenticate");
        let metadata = challenge.split("resource_metadata=\"").nth(1);
        let metadata = metadata.and_then(|rest| rest.split('"').next());
        metadata.map(ToOwned::to_owned)
    };

    // Nobody, one whose token expired, one whose token is for another service, and one who guesses.
    let expired = issued("bot", "emend", -3_600);
    let elsewhere = issued("bot", "another", 3_600);
    for (token, error) in [
        (None, None),
        (Some(expired), Some("invalid_token")),
        (Some(elsewhere), Some("invalid_token")),
        (Some("guessed".to_owned()), Some("invalid_token")),
    ] {
        let client = token
            .as_ref()
            .map_or_else(|| client.clone(), |token| client.with_token(token));
        for refused in [
            client.ask("tools/list", json!({})).await,
            client.opens("2025-11-25").await,
        ] {
            assert_eq!(refused.status, 401, "{token:?}: {refused:?}");
            assert!(
                !refused.text.contains("--"),
                "an assistant has no options: {refused:?}"
            );
            let challenge = refused.header("www-authenticate");
            assert!(challenge.starts_with("Bearer "), "{refused:?}");
            assert_eq!(
                challenge.contains("error=\"invalid_token\""),
                error.is_some(),
                "{refused:?}"
            );
            let named = metadata_is_named(&refused).expect("where tokens come from");
            let place = named
                .split_once("/.well-known")
                .map(|(_, rest)| format!("/.well-known{rest}"));
            let metadata = client
                .send(Method::GET, &place.expect("a place"), "")
                .await
                .message();
            assert_eq!(metadata["authorization_servers"], json!([ISSUER]), "{metadata}");
            assert_eq!(
                metadata["resource"],
                up.mcp.as_deref().expect("a URL"),
                "{metadata}"
            );
        }
    }

    // One who may do nothing in this namespace.
    let shopper = client.with_token(&issued("shopper", "emend", 3_600));
    let refused = shopper.opens("2025-11-25").await;
    assert_eq!(refused.status, 403, "{refused:?}");
    let expected =
        r#"the caller \"shopper\" has no grant in the namespace \"default\": its grants reach shop""#;
    assert!(refused.text.contains(expected), "{refused:?}");

    let bot = client.with_token(&issued("bot", "emend", 3_600));
    let rita = client.with_token(&issued("rita", "emend", 3_600));
    for revision in [None, Some("2025-06-18"), Some("2025-11-25")] {
        let (bot, rita) = match revision {
            None => (bot.clone(), rita.clone()),
            Some(revision) => (bot.in_session(revision).await, rita.in_session(revision).await),
        };
        sees_its_tools(&bot, &rita).await;
    }
}

#[tokio::test]
async fn what_a_caller_may_do_is_asked_again_while_its_session_lives() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let made = |made: crate::harness::Completed| {
        let made = made.ok().json();
        ["token", "tokenSha256"].map(|part| made[part].as_str().expect("a text").to_owned())
    };
    let [relay, relay_hash] = made(run(&["admin", "token", "--json"]).await);
    let [token, hash] = made(run(&["admin", "token", "--json"]).await);
    fs::write(path("relay"), relay).expect("a file");
    let knows = |mia: &str| {
        let known = format!(
            "[[principals]]\nname = \"feedback-svc\"\ntoken_sha256 = [\"{relay_hash}\"]\n\
             grants = [{{ roles = [\"ingester\"], namespaces = \"*\" }}]\n{mia}"
        );
        fs::write(path("auth.toml"), known).expect("a file");
    };
    let may = |role: &str| {
        format!(
            "[[principals]]\nname = \"mia\"\ntoken_sha256 = [\"{hash}\"]\n\
             grants = [{{ roles = [\"{role}\"], namespaces = [\"default\"] }}]\n"
        )
    };
    knows(&may("reviewer"));
    let auth = path("auth.toml");
    let relay = path("relay");
    let (_up, client) = up(&["--auth-config", &auth, "--learning-token-file", &relay]).await;
    let session = client.with_token(&token).in_session("2025-11-25").await;
    let events = session.begin(Method::GET, "/mcp", "").await.into_body();
    assert_eq!(session.offered().await.len(), 13);

    // Its role changes, and then nobody knows it any more.
    knows(&may("subscriber"));
    until(async || session.offered().await.len() == 3).await;
    knows("");
    until(async || session.ask("ping", json!({})).await.status == 401).await;
    let ended = timeout(TIMEOUT, events.collect()).await;
    assert!(ended.is_ok(), "what it listens to ends");
}

/// Waits until it is so.
async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(TIMEOUT, waiting).await.expect("it becomes so in time");
}

async fn sees_its_tools(bot: &Client, rita: &Client) {
    let reporters = [
        "feedback",
        "intent_feedback",
        "intent_retract",
        "rate_output",
        "search_feedback",
    ];
    assert_eq!(bot.offered().await, reporters);
    assert_eq!(rita.offered().await.len(), 13);
    // A caller that may not act for users votes once, as itself, whatever ids it names, in however many sessions.
    let mut last = Value::Null;
    for invented in ["one", "two", "three"] {
        let mut said = phrase("book a trade");
        said["context"] = json!({"reporter": invented, "session_id": invented});
        last = bot.succeed("intent_feedback", said).await;
    }
    assert_eq!(last["reporter_count"], 1, "{last}");
    assert!(message(&last).contains("the vote of bot"), "{last}");
    let refused = bot.call("intent_resolve", json!({"phrase": "a"})).await;
    assert!(
        refused["isError"] == true && refused.to_string().contains("needs the role subscriber"),
        "{refused}"
    );
    let listed = rita
        .succeed("intent_list", json!({"phrase": "book a trade"}))
        .await;
    assert_eq!(listed["candidates"][0]["reporter_count"], 1, "{listed}");
}
