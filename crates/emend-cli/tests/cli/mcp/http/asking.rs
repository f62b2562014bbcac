//! A person is asked over HTTP, and what is done is what the person was shown.

use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{client::Client, phrase, up};
use crate::harness::TIMEOUT;

/// The next message of a stream of events; `text` is what was read of it.
pub(super) async fn event(events: &mut Incoming, text: &mut String) -> Value {
    loop {
        // Each event ends with an empty line.
        if let Some(end) = text.find("\n\n") {
            let event: String = text.drain(..end + 2).collect();
            let message = event.lines().find_map(|line| line.strip_prefix("data: "));
            if let Some(message) = message.and_then(|message| serde_json::from_str(message).ok()) {
                return message;
            }
            continue;
        }
        let frame = timeout(TIMEOUT, events.frame()).await.expect("an event in time");
        let frame = frame.expect("an event").expect("an event");
        text.push_str(&String::from_utf8_lossy(frame.data_ref().expect("data")));
    }
}

/// Begins a call that asks a person. Returns its stream and the question.
pub(super) async fn asks(session: &Client, id: &str, candidate: &Value) -> (Incoming, Value) {
    let call = json!({"name": "intent_approve", "arguments": {"candidate_id": candidate}});
    let call = session.request(&json!(id), "tools/call", call).to_string();
    let mut events = session.begin(Method::POST, "/mcp", &call).await.into_body();
    let question = event(&mut events, &mut String::new()).await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    (events, question)
}

/// Says yes to a question.
pub(super) async fn agrees(session: &Client, question: &Value) {
    let agreed = json!({
        "jsonrpc": "2.0", "id": question["id"],
        "result": {"action": "accept", "content": {"confirmed": true}},
    });
    assert_eq!(session.post(&agreed.to_string()).await.status, 202);
}

async fn status(client: &Client, phrase: &str) -> Value {
    let listed = client
        .succeed(
            "intent_list",
            json!({"phrase": phrase, "statuses": ["pending", "applied"]}),
        )
        .await;
    listed["candidates"][0]["status"].clone()
}

#[tokio::test]
async fn a_person_is_asked_over_both_kinds_of_http() {
    let (_up, client) = up(&[]).await;
    let said = client.succeed("intent_feedback", phrase("one")).await;
    let approval = json!({"name": "intent_approve", "arguments": {"candidate_id": said["candidate_id"]}});

    let refused = client
        .without_elicitation()
        .ask("tools/call", approval.clone())
        .await
        .message();
    assert!(refused.to_string().contains("PERSON_NOT_ASKED"), "{refused}");
    // Without sessions: the question is the answer, and comes back with what the person said.
    let asked = client.ask("tools/call", approval.clone()).await.message()["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let agreed = json!({"decision": {"action": "accept", "content": {"confirmed": true}}});
    let mut answered = approval;
    answered["inputResponses"] = agreed;
    answered["requestState"] = asked["requestState"].clone();
    let mut of_another_call = answered.clone();
    of_another_call["arguments"]["reason"] = json!("because");
    let refused = client.ask("tools/call", of_another_call).await.message();
    assert!(refused.to_string().contains("not this call's"), "{refused}");
    let approved = client.ask("tools/call", answered).await.message();
    assert_eq!(
        approved["result"]["structuredContent"]["status"], "applied",
        "{approved}"
    );

    // With a session: the question is an event of the call that it belongs to.
    let session = client.in_session("2025-11-25").await;
    let said = session.succeed("intent_feedback", phrase("two")).await;
    let call =
        json!({"name": "intent_reject", "arguments": {"candidate_id": said["candidate_id"], "reason": "no"}});
    let call = session.request(&json!("call"), "tools/call", call).to_string();
    let mut events = session.begin(Method::POST, "/mcp", &call).await.into_body();
    let mut text = String::new();
    let question = event(&mut events, &mut text).await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let agreed = json!({
        "jsonrpc": "2.0", "id": question["id"],
        "result": {"action": "accept", "content": {"confirmed": true}},
    });
    assert_eq!(session.post(&agreed.to_string()).await.status, 202);
    let rest = events.collect().await.expect("the answer").to_bytes();
    let rest = String::from_utf8_lossy(&rest);
    assert!(
        rest.contains(r#""id":"call""#) && rest.contains(r#""status":"rejected""#),
        "{rest}"
    );
}

#[tokio::test]
async fn what_was_changed_since_a_person_was_shown_it_is_not_applied() {
    let (_up, client) = up(&[]).await;
    let said = client.succeed("intent_feedback", phrase("changing")).await;
    let id = &said["candidate_id"];
    let vote = async |reporter: &str| {
        let mut vote = phrase("changing");
        vote["context"] = json!({"reporter": reporter});
        client.succeed("intent_feedback", vote).await
    };

    // Without a session, also if the call names no etag on purpose.
    for arguments in [
        json!({"candidate_id": id}),
        json!({"candidate_id": id, "etag": ""}),
    ] {
        let approval = json!({"name": "intent_approve", "arguments": arguments});
        let asked = client.ask("tools/call", approval.clone()).await.message()["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let voted = vote("ana").await;
        let mut answered = approval;
        answered["inputResponses"] =
            json!({"decision": {"action": "accept", "content": {"confirmed": true}}});
        answered["requestState"] = asked["requestState"].clone();
        let refused = client.ask("tools/call", answered).await.message();
        assert!(refused.to_string().contains("ETAG_MISMATCH"), "{refused}");
        client
            .succeed("intent_retract", json!({"feedback_id": voted["feedback_id"]}))
            .await;
    }

    // With a session.
    let session = client.in_session("2025-11-25").await;
    let (events, question) = asks(&session, "call", id).await;
    vote("ben").await;
    agrees(&session, &question).await;
    let rest = events.collect().await.expect("the answer").to_bytes();
    let rest = String::from_utf8_lossy(&rest);
    assert!(rest.contains("ETAG_MISMATCH"), "{rest}");

    // An older etag than what a person would be shown is refused before anybody is asked.
    let stale = client
        .call("intent_approve", json!({"candidate_id": id, "etag": "1"}))
        .await;
    assert!(stale.to_string().contains("ETAG_MISMATCH"), "{stale}");
    assert_eq!(status(&client, "changing").await, "pending");
}

#[tokio::test]
async fn a_question_is_taken_back_once_its_call_is_cancelled_or_its_client_goes() {
    let (_up, client) = up(&[]).await;
    let said = client.succeed("intent_feedback", phrase("cancelled")).await;
    let session = client.in_session("2025-11-25").await;
    let mut listens = session.begin(Method::GET, "/mcp", "").await.into_body();
    let mut heard = String::new();
    for goes in [false, true] {
        let (events, question) = asks(&session, "call", &said["candidate_id"]).await;
        if goes {
            drop(events);
        } else {
            let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "call"}});
            assert_eq!(session.post(&cancel.to_string()).await.status, 202);
            let rest = timeout(TIMEOUT, events.collect()).await.expect("it ends");
            assert!(
                !rest.is_ok_and(|rest| rest.to_bytes().starts_with(b"data: {")),
                "it has no answer"
            );
        }
        let taken_back = event(&mut listens, &mut heard).await;
        assert_eq!(
            (&taken_back["method"], &taken_back["params"]["requestId"]),
            (&json!("notifications/cancelled"), &question["id"]),
            "{taken_back}"
        );
        // A late answer is nobody's.
        agrees(&session, &question).await;
        assert_eq!(session.ask("ping", json!({})).await.status, 200);
    }
    assert_eq!(status(&client, "cancelled").await, "pending");
}
