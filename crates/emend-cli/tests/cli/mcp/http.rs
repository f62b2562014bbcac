//! The tools over Streamable HTTP.

mod asking;
mod client;
mod sealed;
mod sessions;
mod together;
mod tokens;

use std::ffi::OsStr;

use emend_base::tls::testing::Authority;
use http::Method;
use serde_json::{Value, json};

use self::client::{Client, STATELESS};
use super::configurations::servers;
use crate::harness::{Up, command, run};

/// The revisions with sessions.
const WITH_SESSIONS: [&str; 2] = ["2025-06-18", "2025-11-25"];

async fn up(args: &[&str]) -> (Up, Client) {
    let up = Up::start(&[&["--ephemeral", "--mcp-http", "127.0.0.1:0"], args].concat()).await;
    let client = Client::at(up.mcp.as_deref().expect("it serves assistants"));
    (up, client)
}

fn phrase(phrase: &str) -> Value {
    json!({"feedback_type": "phrase_mapping", "original_input": phrase, "correct_choice": "book_trade"})
}

#[tokio::test]
async fn each_revision_is_spoken_and_a_voter_that_nobody_names_is_the_session() {
    let (_up, client) = up(&[]).await;
    for revision in WITH_SESSIONS {
        let mut last = Value::Null;
        for _ in 0..2 {
            let session = client.in_session(revision).await;
            assert_eq!(session.offered().await.len(), 13);
            // The same session twice is one voter.
            session.succeed("intent_feedback", phrase(revision)).await;
            last = session.succeed("intent_feedback", phrase(revision)).await;
        }
        assert_eq!(last["reporter_count"], 2, "{last}");
    }
    // Without sessions, who sends no token is one voter, however often.
    let mut last = Value::Null;
    for _ in 0..3 {
        last = client.succeed("intent_feedback", phrase("stateless")).await;
    }
    assert_eq!(
        (&last["reporter_count"], &last["state"]),
        (&json!(1), &json!("pending")),
        "{last}"
    );
    let said = client.ask("server/discover", json!({})).await.message();
    assert_eq!(
        said["result"]["supportedVersions"],
        json!(["2025-06-18", "2025-11-25", STATELESS]),
        "{said}"
    );
    // The revision with batches is not offered: its client is told another.
    let other = client.opens("2025-03-26").await.message();
    assert_eq!(other["result"]["protocolVersion"], "2025-11-25", "{other}");
}

#[tokio::test]
async fn what_was_just_learned_is_there_when_it_is_looked_up() {
    let (_up, client) = up(&[]).await;
    for reporter in ["ana", "ben", "mia"] {
        let mut said = phrase("book a trade");
        said["context"] = json!({"reporter": reporter});
        client.succeed("intent_feedback", said).await;
    }
    let found = client
        .succeed("intent_resolve", json!({"phrase": "book a trade"}))
        .await;
    assert_eq!(found["value"], "book_trade", "{found}");
}

#[tokio::test]
async fn without_a_session_a_client_is_one_voter_on_every_replica_and_after_each_start() {
    let (up, client) = up(&[]).await;
    let mut last = client.succeed("intent_feedback", phrase("replicas")).await;
    // Two replicas, of which each is started when the other has ended.
    for _ in 0..2 {
        let (_served, replica) = alone(&up, &["--http", "127.0.0.1:0"]).await;
        last = replica.succeed("intent_feedback", phrase("replicas")).await;
    }
    assert_eq!(
        (&last["reporter_count"], &last["state"]),
        (&json!(1), &json!("pending")),
        "{last}"
    );
    // Another program of the same caller says it, too.
    let last = client
        .named("another")
        .succeed("intent_feedback", phrase("replicas"))
        .await;
    assert_eq!(last["reporter_count"], 2, "{last}");
}

#[tokio::test]
async fn what_services_that_stopped_did_not_get_is_said_not_to_be_stored() {
    let up = Up::ephemeral().await;
    let feedback = up.feedback.clone();
    let (_served, client) = alone(&up, &["--http", "127.0.0.1:0"]).await;
    client.succeed("intent_feedback", phrase("before")).await;
    up.signal("-TERM").await;
    up.ended().await;
    let refused = client.call("intent_feedback", phrase("after")).await;
    let told = refused["content"][0]["text"].as_str().expect("a text");
    assert!(
        told.contains("Nothing was stored") && told.contains(&format!("feedback-svc at {feedback}")),
        "{refused}"
    );
    let unread = client.call("intent_resolve", json!({"phrase": "before"})).await;
    let told = unread["content"][0]["text"].as_str().expect("a text");
    assert!(told.contains("can't reach learning-svc at"), "{unread}");
}

#[tokio::test]
async fn what_may_be_stored_is_said_to_be_with_the_id_by_which_it_is_stored_once() {
    let up = Up::ephemeral().await;
    let (_served, client) = alone(&up, &["--http", "127.0.0.1:0", "--timeout", "2s"]).await;
    client.succeed("intent_feedback", phrase("before")).await;
    up.signal("-STOP").await;
    let refused = client.call("intent_feedback", phrase("meanwhile")).await;
    let told = refused["content"][0]["text"].as_str().expect("a text");
    assert!(told.contains("it may be stored"), "{refused}");
    let told: Value = serde_json::from_str(told).expect("JSON");
    let told = told["message"].as_str().expect("a message");
    let id = told.split("\"request_id\": \"").nth(1);
    let id = id.and_then(|rest| rest.split('"').next()).expect("an id");
    up.signal("-CONT").await;
    let mut again = phrase("meanwhile");
    again["request_id"] = json!(id);
    for _ in 0..2 {
        let stored = client.succeed("intent_feedback", again.clone()).await;
        assert_eq!(stored["occurrence_count"], 1, "{stored}");
    }
}

#[tokio::test]
async fn assistants_are_served_over_tls() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    let authority = Authority::new("ca");
    std::fs::write(path("ca.pem"), authority.pem()).expect("a file");
    authority
        .issue(1, &["127.0.0.1"])
        .write(directory.path(), "server");
    let up = Up::ephemeral().await;
    let [certificate, key] = ["server.pem", "server.key"].map(|name| path(name).display().to_string());
    let secured = [
        "--http",
        "127.0.0.1:0",
        "--tls-cert",
        &*certificate,
        "--tls-key",
        &*key,
    ];
    let (_served, client) = alone(&up, &secured).await;
    let client = client.trusting(&path("ca.pem"));
    client.succeed("intent_feedback", phrase("over TLS")).await;
    let session = client.in_session("2025-11-25").await;
    assert_eq!(session.offered().await.len(), 13);
    // What it sends by itself comes over TLS, too.
    let mut events = session.begin(Method::GET, "/mcp", "").await.into_body();
    session
        .ask("resources/subscribe", json!({"uri": "emend://default/pending"}))
        .await;
    client.succeed("intent_feedback", phrase("another")).await;
    let candidate = client.succeed("intent_list", json!({"phrase": "another"})).await;
    let id = candidate["candidates"][0]["candidate_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    up.run(&["candidates", "approve", &id]).await.ok();
    let told = asking::event(&mut events, &mut String::new()).await;
    assert_eq!(told["method"], "notifications/resources/updated", "{told}");
}

#[tokio::test]
async fn every_request_with_an_id_is_answered() {
    let (_up, client) = up(&[]).await;
    let session = client.in_session("2025-11-25").await;
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":53,"method":"tools/call","params":{}1{}}}"#,
        "[".repeat(1_000),
        "]".repeat(1_000)
    );
    let long = format!(
        r#"{{"jsonrpc":"2.0","method":"ping","params":{{"x":"{}"}},"id":54}}"#,
        "x".repeat(5 * 1024 * 1024)
    );
    for (body, id, code) in [
        ("{nonsense", Value::Null, -32_700),
        (
            r#"[{"jsonrpc":"2.0","id":50,"method":"ping"}]"#,
            Value::Null,
            -32_600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":51,"method":"tools/call","params":{"name":"\ud800"}}"#,
            json!(51),
            -32_700,
        ),
        (r#"{"jsonrpc":"2.0","id":52}"#, json!(52), -32_600),
        (&deep, json!(53), -32_700),
        (&long, json!(54), -32_600),
        (
            r#"{"jsonrpc":"2.0","id":55,"method":"tools/call","params":{"name":5}}"#,
            json!(55),
            -32_602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":56,"method":"no/method"}"#,
            json!(56),
            -32_601,
        ),
    ] {
        for asking in [&client, &session] {
            let answer = asking.post(body).await.message();
            assert_eq!(answer["id"], id, "{body:.100}: {answer}");
            // Without a session, what revision a message is of is asked for first.
            if std::ptr::eq(asking, &raw const session) || code != -32_601 {
                assert_eq!(answer["error"]["code"], code, "{body:.100}: {answer}");
            }
        }
    }
    let marked = format!("\u{FEFF}{}", session.request(&json!(1), "ping", json!({})));
    assert_eq!(session.post(&marked).await.message()["result"], json!({}));
    let unknown = client.ask("no/method", json!({})).await;
    assert_eq!(
        (unknown.status.as_u16(), &unknown.message()["error"]["code"]),
        (404, &json!(-32_601))
    );
}

#[tokio::test]
async fn pages_of_others_and_foreign_names_are_refused() {
    let (up, client) = up(&["--mcp-public-url", "https://Emend.example"]).await;
    let port = up.mcp.as_deref().and_then(|url| url.rsplit_once(':'));
    let port = port.expect("a port").1.trim_end_matches("/mcp");
    let here = format!("http://localhost:{port}");
    for (headers, status) in [
        (&[("host", "evil.example")][..], 403),
        (&[("host", "emend.example")], 200),
        (&[("host", &*format!("localhost:{port}"))], 200),
        (&[("host", "localhost:1")], 403),
        (&[("origin", "https://evil.example")], 403),
        (&[("origin", "null")], 403),
        (&[("origin", &*here)], 200),
        (&[("origin", "https://emend.example")], 200),
    ] {
        let mut client = client.clone();
        for (name, value) in headers {
            client = client.with(name, *value);
        }
        let answer = client.ask("tools/list", json!({})).await;
        assert_eq!(answer.status, status, "{headers:?}: {answer:?}");
    }
}

#[tokio::test]
async fn it_listens_beyond_loopback_only_if_callers_are_known_and_it_knows_its_name() {
    for (args, expected) in [
        (&["--mcp-http", "0.0.0.0:0"][..], "refusing to listen"),
        (
            &["--mcp-http", "0.0.0.0:0", "--allow-unauthenticated"],
            "--mcp-public-url",
        ),
    ] {
        let ended = run(&[&["up", "--ephemeral"], args].concat()).await;
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(ended.stderr.contains(expected), "{ended:?}");
    }
    let ended = run(&["mcp", "--http", "0.0.0.0:0"]).await;
    assert!(
        ended.code == 2 && ended.stderr.contains("--mcp-public-url"),
        "{ended:?}"
    );
    let ended = run(&["mcp", "--http", "127.0.0.1:0", "--token-file", "x"]).await;
    assert!(
        ended.code == 2 && ended.stderr.contains("a token of its own"),
        "{ended:?}"
    );

    // Alone before services that know nobody: it refuses, since anybody could call.
    let up = Up::ephemeral().await;
    let url = ["--mcp-public-url", "http://emend.example"];
    let (_served, client) = alone(&up, &[&["--http", "0.0.0.0:0"], &url[..]].concat()).await;
    let client = client.with("host", "emend.example");
    assert_eq!(client.ask("tools/list", json!({})).await.status, 401);
    let refused = client.with_token("anything").ask("tools/list", json!({})).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(refused.text.contains("do not authenticate"), "{refused:?}");
}

/// `emend mcp --http` in a process of its own.
async fn alone(up: &Up, args: &[&str]) -> (tokio::process::Child, Client) {
    alone_with(up, args, &[]).await
}

/// The same, with variables.
async fn alone_with(up: &Up, args: &[&str], variables: &[(&str, &OsStr)]) -> (tokio::process::Child, Client) {
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    let mut served = command()
        .envs(variables.iter().copied())
        .args(up.args(&[&["mcp"], args].concat()))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("emend can be started");
    let mut lines = BufReader::new(served.stdout.take().expect("it is piped")).lines();
    let ready = tokio::time::timeout(crate::harness::TIMEOUT, lines.next_line()).await;
    let ready = ready
        .expect("it is ready in time")
        .expect("a line")
        .expect("a line");
    let url = ready.strip_prefix("emend: ready mcp=").expect("it is ready");
    (served, Client::at(url))
}

#[tokio::test]
async fn what_is_documented_over_http_reaches_the_tools() {
    let (_up, client) = up(&[]).await;
    let mut tried = 0;
    for server in servers() {
        let Some(url) = server["url"].as_str() else {
            continue;
        };
        let path = url.rsplit_once(':').expect("a URL").1;
        let path = path.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let header = server["headers"]["Authorization"].as_str();
        let scheme = header.map_or("Bearer ", |header| {
            header.split_once("${").expect("the token is in a variable").0
        });
        let names_variable = header.is_some() || server["bearer_token_env_var"] == "EMEND_TOKEN";
        assert!(names_variable, "{server}");
        let client = client.with("authorization", format!("{scheme}a-token"));
        let said = client.request(&json!(1), "tools/list", json!({})).to_string();
        let answer = client.send(Method::POST, path, &said).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        tried += 1;
    }
    assert_eq!(tried, 4, "for four assistants");
}
