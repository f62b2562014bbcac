//! What the protocol asks of every server.

use serde_json::{Value, json};

use super::Assistant;
use crate::harness::{Conversation, Up};

/// Sends a line, and returns the next message.
async fn answered(conversation: &mut Conversation, line: &str) -> (Value, Value) {
    conversation.send_line(line).await;
    let answer = conversation.receive().await;
    (answer["id"].clone(), answer["error"]["code"].clone())
}

#[tokio::test]
async fn every_request_with_an_id_is_answered() {
    let up = Up::ephemeral().await;
    let mut assistant = Assistant::start(&up, &[]).await;
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":53,"method":"tools/call","params":{{"name":"intent_resolve","arguments":{{"phrase":{}1{}}}}}}}"#,
        "[".repeat(1_000),
        "]".repeat(1_000)
    );
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":54,"method":"tools/call","params":{{"name":"{}"}}}}"#,
        "x".repeat(17 * 1024 * 1024)
    );
    for (line, id, code) in [
        ("{nonsense", Value::Null, -32_700),
        (
            r#"[{"jsonrpc":"2.0","id":50,"method":"ping"}]"#,
            Value::Null,
            -32_600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":51,"method":"tools/call","params":{"name":"intent_resolve","arguments":{"phrase":"\ud800"}}}"#,
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
            r#"{"jsonrpc":"2.0","id":56,"method":"tools/call","params":{"name":"intent_resolve","arguments":"a"}}"#,
            json!(56),
            -32_602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":57,"method":"tools/call","params":{"name":"no_tool"}}"#,
            json!(57),
            -32_602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":58,"method":"tools/call"}"#,
            json!(58),
            -32_602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":59,"method":"resources/read","params":{"uri":"emend://default/nothing"}}"#,
            json!(59),
            -32_002,
        ),
        (
            r#"{"jsonrpc":"2.0","id":60,"method":"prompts/get","params":{"name":"no_prompt"}}"#,
            json!(60),
            -32_602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":61,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"a"},"argument":{"name":"b","value":""}}}"#,
            json!(61),
            -32_602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":63,"method":"resources/subscribe","params":{"uri":7}}"#,
            json!(63),
            -32_602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":64,"method":"logging/setLevel","params":{"level":"info"}}"#,
            json!(64),
            -32_601,
        ),
        (
            r#"{"jsonrpc":"2.0","id":62,"method":"no/method"}"#,
            json!(62),
            -32_601,
        ),
    ] {
        let answer = answered(&mut assistant.conversation, line).await;
        assert_eq!(answer, (id, json!(code)), "{line:.120}");
    }
    assistant.succeed("intent_resolve", json!({"phrase": "a"})).await;
    assistant.conversation.end().await;
}

#[tokio::test]
async fn a_byte_order_mark_is_passed_over_and_the_revision_with_batches_is_not_offered() {
    let up = Up::ephemeral().await;
    for (asked, answered) in [
        ("2025-03-26", None),
        ("2024-11-05", Some("2024-11-05")),
        ("2025-06-18", Some("2025-06-18")),
        ("2025-11-25", Some("2025-11-25")),
    ] {
        let mut conversation = Conversation::start(&up.args(&["mcp"]));
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        }});
        conversation.send_line(&format!("\u{FEFF}{hello}")).await;
        let hello = conversation.receive().await;
        let revision = hello["result"]["protocolVersion"].as_str().expect("a revision");
        match answered {
            Some(answered) => assert_eq!(revision, answered),
            None => assert_ne!(revision, asked),
        }
        conversation.end().await;
    }
}

#[tokio::test]
async fn an_answer_says_which_service_is_away() {
    // Nothing listens on these ports.
    let away = ["--feedback-addr", "127.0.0.1:1", "--learning-addr", "127.0.0.1:1"];
    let mut conversation = Conversation::start(&[&["mcp"], &away[..]].concat());
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        }}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "intent_feedback", "arguments": {
            "feedback_type": "phrase_mapping", "original_input": "a", "correct_choice": "b",
        }}}),
    ] {
        conversation.send(&message).await;
    }
    let answer = conversation.receive_until(|message| message["id"] == 2).await;
    let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(
        text.contains("Nothing was stored") && text.contains("feedback-svc"),
        "{text}"
    );
    conversation.end().await;
}

#[tokio::test]
async fn a_stateless_call_is_answered_by_a_person_before_it_is_done() {
    let up = Up::ephemeral().await;
    let mut assistant = Assistant::start(&up, &[]).await;
    let said =
        json!({"feedback_type": "phrase_mapping", "original_input": "book", "correct_choice": "book_trade"});
    let id = assistant.succeed("intent_feedback", said).await["candidate_id"].clone();
    assistant.conversation.end().await;

    let mut conversation = Conversation::start(&up.args(&["mcp"]));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let mut ask = async |id: i64, mut params: Value| {
        params["_meta"] = meta.clone();
        params["name"] = json!("intent_approve");
        conversation
            .send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
            .await;
        conversation.receive_until(|message| message["id"] == id).await["result"].clone()
    };
    let asked = ask(1, json!({"arguments": {"candidate_id": id}})).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let question = &asked["inputRequests"]["decision"]["params"]["message"];
    assert!(
        question
            .as_str()
            .is_some_and(|text| text.contains("book → book_trade")),
        "{asked}"
    );
    let agreed = json!({"decision": {"action": "accept", "content": {"confirmed": true}}});
    let state = &asked["requestState"];

    // The answer belongs to this call alone.
    let other = json!({"arguments": {"candidate_id": id, "reason": "other"}, "inputResponses": agreed, "requestState": state});
    assert_eq!(ask(2, other).await["isError"], true);
    let forged =
        json!({"arguments": {"candidate_id": id}, "inputResponses": agreed, "requestState": "forged"});
    assert_eq!(ask(3, forged).await["isError"], true);
    let same = json!({"arguments": {"candidate_id": id}, "inputResponses": agreed, "requestState": state});
    let done = ask(4, same).await;
    assert_eq!(done["structuredContent"]["status"], "applied", "{done}");
    conversation.end().await;
}
