//! The state that a question without a session comes back with: whose it is, for what, and for how long.

use std::{ffi::OsStr, fs};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use emend_base::testing::faketime;
use serde_json::{Value, json};

use super::{Client, alone, alone_with, phrase};
use crate::mcp::rights::with_callers;

/// A call of a tool about a candidate. Its arguments are those of both tools that decide.
fn about(tool: &str, candidate: &Value) -> Value {
    json!({"name": tool, "arguments": {"candidate_id": candidate, "reason": "as agreed"}})
}

/// A call, with yes to the question that was asked for it.
fn agreed(mut call: Value, state: &Value) -> Value {
    call["inputResponses"] = json!({"decision": {"action": "accept", "content": {"confirmed": true}}});
    call["requestState"] = state.clone();
    call
}

async fn says(client: &Client, call: Value) -> Value {
    client.ask("tools/call", call).await.message()["result"].clone()
}

#[tokio::test]
async fn a_yes_is_worth_something_for_its_caller_tool_and_key_at_every_replica_for_ten_minutes() {
    let reviewer = r#"roles = ["reviewer"], namespaces = "*""#;
    let (up, directory) = with_callers(&[("rita", reviewer), ("rob", reviewer)]).await;
    let token = |name: &str| fs::read_to_string(directory.path().join(name)).expect("a token");
    let key_file = directory.path().join("key");
    fs::write(&key_file, STANDARD.encode([7; 32])).expect("a file");
    let key_file = key_file.display().to_string();
    let with_key = ["--http", "127.0.0.1:0", "--mcp-state-key-file", &*key_file];
    let (_one, one) = alone(&up, &with_key).await;
    let (_two, two) = alone(&up, &with_key).await;
    let (_other, of_other_key) = alone(&up, &["--http", "127.0.0.1:0"]).await;
    let rita = |replica: &Client| replica.with_token(&token("rita"));

    let said = rita(&one).succeed("intent_feedback", phrase("book")).await;
    let approval = about("intent_approve", &said["candidate_id"]);
    let asked = says(&rita(&one), approval.clone()).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let state = &asked["requestState"];
    for (who, call, what) in [
        (
            one.with_token(&token("rob")),
            approval.clone(),
            "of another caller",
        ),
        (
            rita(&one),
            about("intent_reject", &said["candidate_id"]),
            "of another tool",
        ),
        (rita(&of_other_key), approval.clone(), "of another key"),
    ] {
        let refused = says(&who, agreed(call, state)).await;
        assert!(
            refused["isError"] == true && refused.to_string().contains("not this call's"),
            "{what}: {refused}"
        );
    }
    if let Some(library) = faketime() {
        let ahead = |minutes: &'static str| {
            [
                ("LD_PRELOAD", library.as_os_str()),
                ("FAKETIME", OsStr::new(minutes)),
                ("FAKETIME_DONT_FAKE_MONOTONIC", OsStr::new("1")),
            ]
        };
        let (_later, later) = alone_with(&up, &with_key, &ahead("+11m")).await;
        let refused = says(&rita(&later), agreed(approval.clone(), state)).await;
        assert!(
            refused["isError"] == true && refused.to_string().contains("expired"),
            "{refused}"
        );
    }
    // Nothing was done by any of them.
    let listed = rita(&one).succeed("intent_list", json!({"phrase": "book"})).await;
    assert_eq!(listed["candidates"][0]["status"], "pending", "{listed}");
    let approved = says(&rita(&two), agreed(approval, state)).await;
    assert_eq!(approved["structuredContent"]["status"], "applied", "{approved}");
}
