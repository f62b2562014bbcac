//! Two assistants and a person.

use serde_json::json;
use tokio::time::Instant;

use super::{Assistant, isda};
use crate::harness::Up;

const PHRASES: &str = "emend://default/learned/invocation_phrase";
const PROHIBITIONS: &str = "emend://default/learned/prohibition";
const PENDING: &str = "emend://default/pending";

#[tokio::test]
async fn what_one_assistant_teaches_the_other_is_told_and_a_person_has_the_last_word() {
    let up = Up::ephemeral().await;
    let mut teacher = Assistant::start(&up, &[]).await;
    let mut other = Assistant::start(&up, &[]).await;
    for uri in [PHRASES, PROHIBITIONS, PENDING] {
        other.subscribe(uri).await;
    }

    // Three sessions teach a phrase.
    let mut second = json!(null);
    for session in ["chat-1", "chat-2"] {
        second = teacher.succeed("intent_feedback", isda(session)).await;
    }
    let begun = Instant::now();
    let third = teacher.succeed("intent_feedback", isda("chat-3")).await;
    let answered = begun.elapsed();
    assert_eq!(third["state"], "applied", "{third}");
    let mut heard = Vec::new();
    while !heard.contains(&PHRASES.to_owned()) {
        heard.push(other.hear().await);
    }
    println!(
        "a change was told {:?} after it was said, which took {answered:?}",
        begun.elapsed()
    );
    let learned = other.read(PHRASES).await;
    assert_eq!(learned["learned"][0]["value"], "create_isda", "{learned}");
    let resolved = other
        .succeed("intent_resolve", json!({"phrase": "set up a CSA"}))
        .await;
    assert_eq!(resolved["value"], "create_isda", "{resolved}");

    // One takes it back, and three prohibit.
    teacher
        .succeed("intent_retract", json!({"feedback_id": second["feedback_id"]}))
        .await;
    while other.hear().await != PHRASES {}
    let resolved = other
        .succeed("intent_resolve", json!({"phrase": "set up a CSA"}))
        .await;
    assert_eq!(resolved["found"], false, "{resolved}");
    for session in ["chat-1", "chat-2", "chat-3"] {
        let prohibition = json!({
            "feedback_type": "prohibition", "original_input": "wind down", "system_choice": "delete_fund",
            "context": {"session_id": session},
        });
        teacher.succeed("intent_feedback", prohibition).await;
    }
    while other.hear().await != PROHIBITIONS {}
    let resolved = other
        .succeed("intent_resolve", json!({"phrase": "wind down"}))
        .await;
    assert_eq!(resolved["prohibited"], json!(["delete_fund"]), "{resolved}");

    // What waits for a person is told, and only a person decides it.
    up.run(&["policy", "set", "invocation_phrase", "--risk", "high"])
        .await
        .ok();
    let said =
        json!({"feedback_type": "phrase_mapping", "original_input": "book", "correct_choice": "book_trade"});
    let waiting = teacher.succeed("intent_feedback", said).await;
    assert_eq!(waiting["state"], "awaiting_review", "{waiting}");
    while other.hear().await != PENDING {}
    let pending = other.read(PENDING).await;
    let found = pending["candidates"].as_array().expect("candidates");
    assert!(
        found.iter().any(|candidate| candidate["phrase"] == "book"),
        "{pending}"
    );
    let approval = json!({"candidate_id": waiting["candidate_id"]});
    let mut alone = Assistant::with(&up, &[], json!({})).await;
    let refused = alone.refused("intent_approve", approval.clone()).await;
    assert_eq!(refused["reason"], "PERSON_NOT_ASKED", "{refused}");
    alone.conversation.end().await;
    let approved = other.succeed("intent_approve", approval).await;
    assert_eq!(approved["status"], "applied", "{approved}");
    assert!(
        other
            .asked
            .last()
            .is_some_and(|asked| asked.contains("book → book_trade"))
    );
    while other.hear().await != PHRASES {}
    let resolved = teacher.succeed("intent_resolve", json!({"phrase": "book"})).await;
    assert_eq!(resolved["value"], "book_trade", "{resolved}");
    teacher.conversation.end().await;
    other.conversation.end().await;
}
