//! Two assistants and a person over HTTP, of different revisions.

use http::Method;
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::{
    asking::{agrees, asks, event},
    client::Client,
    up,
};
use crate::mcp::isda;

const PHRASES: &str = "emend://default/learned/invocation_phrase";
const PROHIBITIONS: &str = "emend://default/learned/prohibition";
const PENDING: &str = "emend://default/pending";

/// What an assistant is told of by itself.
struct Listening {
    events: Incoming,
    text: String,
}

impl Listening {
    async fn of(client: &Client, method: Method, body: &str) -> Self {
        Self {
            events: client.begin(method, "/mcp", body).await.into_body(),
            text: String::new(),
        }
    }

    /// Waits until it is told that a resource may be another now.
    async fn hears(&mut self, uri: &str) {
        loop {
            let message = event(&mut self.events, &mut self.text).await;
            if message["method"] == "notifications/resources/updated" && message["params"]["uri"] == uri {
                return;
            }
        }
    }
}

async fn resolved(client: &Client, phrase: &str) -> Value {
    client.succeed("intent_resolve", json!({"phrase": phrase})).await
}

#[tokio::test]
async fn what_one_assistant_teaches_over_http_others_are_told_and_a_person_has_the_last_word() {
    let (up, teacher) = up(&[]).await;
    let other = teacher.in_session("2025-11-25").await;
    let mut others = Listening::of(&other, Method::GET, "").await;
    for uri in [PHRASES, PROHIBITIONS, PENDING] {
        let answer = other.ask("resources/subscribe", json!({"uri": uri})).await;
        assert_eq!(answer.message()["result"], json!({}), "{answer:?}");
    }

    // Three sessions teach a phrase, and one takes it back.
    let mut second = Value::Null;
    for session in ["chat-1", "chat-2", "chat-3"] {
        let said = teacher.succeed("intent_feedback", isda(session)).await;
        if session == "chat-2" {
            second = said["feedback_id"].clone();
        }
    }
    others.hears(PHRASES).await;
    assert_eq!(resolved(&other, "set up a CSA").await["value"], "create_isda");
    teacher
        .succeed("intent_retract", json!({"feedback_id": second}))
        .await;
    others.hears(PHRASES).await;
    assert_eq!(resolved(&other, "set up a CSA").await["found"], false);

    // Three prohibit, of which two have sessions of the protocol and name none.
    let prohibition = json!({
        "feedback_type": "prohibition", "original_input": "wind down", "system_choice": "delete_fund",
    });
    for who in [
        &teacher,
        &teacher.in_session("2025-06-18").await,
        &teacher.in_session("2025-11-25").await,
    ] {
        who.succeed("intent_feedback", prohibition.clone()).await;
    }
    others.hears(PROHIBITIONS).await;
    assert_eq!(
        resolved(&other, "wind down").await["prohibited"],
        json!(["delete_fund"])
    );

    // What waits for a person is told; a person approves it at the other assistant.
    up.run(&["policy", "set", "invocation_phrase", "--risk", "high"])
        .await
        .ok();
    let said =
        json!({"feedback_type": "phrase_mapping", "original_input": "book", "correct_choice": "book_trade"});
    let waiting = teacher.succeed("intent_feedback", said).await;
    assert_eq!(waiting["state"], "awaiting_review", "{waiting}");
    others.hears(PENDING).await;
    let (mut events, question) = asks(&other, "call", &waiting["candidate_id"]).await;
    assert!(
        question["params"]["message"]
            .as_str()
            .is_some_and(|asked| asked.contains("book → book_trade")),
        "{question}"
    );
    agrees(&other, &question).await;
    let approved = event(&mut events, &mut String::new()).await;
    assert_eq!(
        approved["result"]["structuredContent"]["status"], "applied",
        "{approved}"
    );
    others.hears(PHRASES).await;
    assert_eq!(resolved(&teacher, "book").await["value"], "book_trade");
}

#[tokio::test]
async fn the_newest_revision_listens_over_http_and_says_for_how_long_what_it_read_holds() {
    let (up, client) = up(&[]).await;
    let offered = client.ask("tools/list", json!({})).await.message();
    assert_eq!(
        (&offered["result"]["ttlMs"], &offered["result"]["cacheScope"]),
        (&json!(0), &json!("private")),
        "{offered}"
    );
    let session = client.in_session("2025-11-25").await;
    let older = session.ask("tools/list", json!({})).await.message();
    assert_eq!(older["result"].get("ttlMs"), None, "{older}");

    let listen = json!({"notifications": {"resourceSubscriptions": [PHRASES, "https://elsewhere.example/"]}});
    let listen = client
        .request(&json!("listen"), "subscriptions/listen", listen)
        .to_string();
    let mut listening = Listening::of(&client, Method::POST, &listen).await;
    let accepted = event(&mut listening.events, &mut listening.text).await;
    assert_eq!(
        accepted["params"]["notifications"]["resourceSubscriptions"],
        json!([PHRASES]),
        "{accepted}"
    );
    // The acknowledgment comes before the watch is open: something is learned until it is told.
    let learns = async {
        let mut number = 0;
        loop {
            number += 1;
            let phrase = format!("book {number}");
            up.run(&["resources", "set", "phrase", &phrase, "book_trade"])
                .await
                .ok();
        }
    };
    tokio::select! {
        () = listening.hears(PHRASES) => {}
        () = learns => {}
    }
}
