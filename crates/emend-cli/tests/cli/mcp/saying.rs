//! Corrections, decisions and ratings, with the payloads that assistants send.

use serde_json::{Value, json};

use super::{Assistant, message};
use crate::harness::Up;

#[tokio::test]
async fn corrections_have_the_ten_fields_of_their_answer() {
    let up = Up::ephemeral().await;
    let mut assistant = Assistant::start(&up, &[]).await;
    for (arguments, learning_type, risk, applied) in [
        (
            json!({
                "feedback_type": "verb_correction",
                "original_input": "set up custody",
                "system_choice": "cbu.add-product",
                "correct_choice": "custody.configure-account",
                "user_explanation": "User wanted account configuration, not product addition",
                "context": {
                    "session_id": "5f1d7b84-3f7c-4f1e-8d5e-2f6f5d3f9a01",
                    "cbu_id": "0b7e0c2e-7a57-4b0e-9a55-9d1f0f6b7a02",
                    "domain": "custody"
                }
            }),
            "invocation_phrase",
            "medium",
            false,
        ),
        (
            json!({
                "feedback_type": "entity_correction",
                "original_input": "Sarah Chen",
                "system_choice": "uuid-singapore-sarah",
                "correct_choice": "uuid-london-sarah"
            }),
            "entity_alias",
            "low",
            true,
        ),
        (
            json!({
                "feedback_type": "phrase_mapping",
                "original_input": "spin up a fund",
                "correct_choice": "cbu.create",
                "user_explanation": "User's preferred terminology"
            }),
            "invocation_phrase",
            "medium",
            false,
        ),
    ] {
        let answer = assistant.succeed("intent_feedback", arguments.clone()).await;
        for (field, expected) in [
            ("recorded", json!(true)),
            ("occurrence_count", json!(1)),
            ("was_new", json!(true)),
            ("learning_type", json!(learning_type)),
            ("risk_level", json!(risk)),
            ("auto_applied", json!(applied)),
            ("threshold_applied", json!(false)),
            (
                "what_was_learned",
                json!({
                    "input": arguments["original_input"],
                    "maps_to": arguments["correct_choice"],
                    "type": arguments["feedback_type"],
                }),
            ),
        ] {
            assert_eq!(answer[field], expected, "{field}: {answer}");
        }
        assert!(
            !message(&answer).is_empty() && answer["candidate_id"] != "",
            "{answer}"
        );
        // The same call again, by its request id, stores nothing more.
        let mut again = arguments;
        again["request_id"] = answer["request_id"].clone();
        let again = assistant.succeed("intent_feedback", again).await;
        assert_eq!(again["feedback_id"], answer["feedback_id"], "{again}");
        let id = answer["feedback_id"].as_str().expect("an id");
        let stored = up.run(&["feedback", "get", id, "--json"]).await.ok().json();
        if answer["what_was_learned"]["type"] == "verb_correction" {
            assert_eq!(
                stored["context"],
                json!({"cbu_id": "0b7e0c2e-7a57-4b0e-9a55-9d1f0f6b7a02", "domain": "custody"})
            );
        }
    }
    assistant.conversation.end().await;
}

#[tokio::test]
async fn decisions_about_evidence_are_taken_as_they_are_written_elsewhere() {
    let up = Up::ephemeral().await;
    let mut assistant = Assistant::start(&up, &[]).await;
    for (action, args) in [
        (
            "domain_block",
            json!({"domain_pattern": "spam-site.com", "reason": "Low quality content, mostly advertisements"}),
        ),
        (
            "domain_unblock",
            json!({"domain_pattern": "legitimate-site.com", "reason": "Previously blocked by mistake"}),
        ),
        (
            "domain_block",
            json!({"pattern": "other-site.com", "reason": "the same under the other name"}),
        ),
        (
            "domain_clear_override",
            json!({"domain_pattern": "legitimate-site.com", "reason": "no longer needed"}),
        ),
    ] {
        let call = json!({"task_id": "t-17", "action": action, "args": args});
        let answer = assistant.succeed("feedback", call).await;
        assert_eq!(answer["known"], true, "{answer}");
        assert_ne!(answer["event_id"], "", "{answer}");
    }
    for (action, args, target) in [
        (
            "claim_reject",
            json!({"claim_id": "claim_abc123", "reason": "Claim is too vague to verify"}),
            "The claim “claim_abc123” is not known",
        ),
        (
            "edge_correct",
            json!({
                "edge_id": "edge_xyz789",
                "correct_relation": "supports",
                "reason": "The conclusion section clearly supports the hypothesis"
            }),
            "The edge “edge_xyz789” is not known",
        ),
        (
            "edge_correct",
            json!({"edge_id": "edge_xyz789", "correct_relation": "refutes"}),
            "The edge “edge_xyz789” is not known",
        ),
    ] {
        let call = json!({"task_id": "t-17", "action": action, "args": args});
        let answer = assistant.succeed("feedback", call).await;
        assert_eq!(answer["known"], false, "{answer}");
        assert!(message(&answer).starts_with(target), "{answer}");
    }
    for (call, field) in [
        (
            json!({"action": "claim_restore", "args": {"claim_id": "c", "reason": "r"}}),
            "task_id",
        ),
        (
            json!({"task_id": "t", "action": "claim_reject", "args": {"claim_id": "c"}}),
            "args.reason",
        ),
        (
            json!({"task_id": "t", "action": "claim_restore", "args": {"claim_id": "c"}}),
            "args.reason",
        ),
        (
            json!({"task_id": "t", "action": "domain_block", "args": {"domain_pattern": "com", "reason": "r"}}),
            "args.domain_pattern",
        ),
        (
            json!({"task_id": "t", "action": "edge_correct", "args": {"edge_id": "e", "correct_relation": "cites"}}),
            "args.correct_relation",
        ),
    ] {
        let refused = assistant.refused("feedback", call).await;
        assert_eq!(refused["fieldViolations"][0]["field"], field, "{refused}");
    }

    // A shared suffix is blocked only once the person has agreed.
    let shared = json!({"task_id": "t", "action": "domain_block", "args": {"domain_pattern": "github.io", "reason": "r"}});
    let mut without_reason = shared.clone();
    without_reason["args"]["reason"] = Value::Null;
    without_reason["args"]["level"] = json!("none");
    let refused = assistant.refused("feedback", without_reason).await;
    let fields = refused["fieldViolations"].as_array().expect("violations").iter();
    let mut fields: Vec<_> = fields
        .map(|violation| violation["field"].as_str().expect("a field"))
        .collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        ["args.level", "args.reason"],
        "everything at once: {refused}"
    );
    assert_eq!(assistant.asked, [""; 0], "nobody is asked what can't be stored");
    assistant.person = json!({"action": "cancel"});
    let refused = assistant.refused("feedback", shared.clone()).await;
    assert_eq!(refused["reason"], "PERSON_DECLINED", "{refused}");
    let question = assistant.asked.last().expect("a question");
    for words in [
        "github.io",
        "Yes blocks nothing yet",
        "once a reviewer has approved it",
    ] {
        assert!(question.contains(words), "{question}");
    }
    assistant.person = json!({"action": "accept", "content": {"confirmed": true}});
    let blocked = assistant.succeed("feedback", shared).await;
    assert_eq!(
        (&blocked["recorded"], &blocked["state"]),
        (&json!(true), &json!("awaiting_review")),
        "as the question said: {blocked}"
    );
    assistant.conversation.end().await;
}

#[tokio::test]
async fn a_value_that_others_still_support_applies_after_a_retraction() {
    let up = Up::ephemeral().await;
    let mut assistant = Assistant::start(&up, &[]).await;
    let mut last = Value::Null;
    for session in ["a", "b", "c", "d"] {
        last = assistant.succeed("intent_feedback", super::isda(session)).await;
    }
    let retracted = assistant
        .succeed("intent_retract", json!({"feedback_id": last["feedback_id"]}))
        .await;
    assert_eq!(
        (&retracted["still_applies"], &retracted["why"]),
        (&json!(true), &json!("3 other voters support it")),
        "{retracted}"
    );
    assistant.conversation.end().await;
}

#[tokio::test]
async fn outputs_and_searches_are_rated() {
    let up = Up::ephemeral().await;
    let mut assistant = Assistant::start(&up, &[]).await;
    let output = json!({
        "target": "INTERPRET", "value": "GOOD", "target_id": "out-17",
        "input_text": "3 red", "output_text": "three red cards",
    });
    let rated = assistant.succeed("rate_output", output).await;
    assert_eq!(
        (&rated["recorded"], &rated["evaluated"]),
        (&json!(true), &json!(true)),
        "{rated}"
    );
    let wrong = json!({
        "target": "INTERPRET", "value": "MISSED", "target_id": "out-17",
        "input_text": "3 red", "output_text": "three red cards",
    });
    let refused = assistant.refused("rate_output", wrong).await;
    assert_eq!(refused["fieldViolations"][0]["field"], "value", "{refused}");
    let search = json!({"query_id": "query-17", "rating": "down", "reason": "no card that returns"});
    let rated = assistant.succeed("search_feedback", search).await;
    assert_eq!(rated["recorded"], true, "{rated}");
    let id = rated["feedback_id"].as_str().expect("an id");
    let stored = up.run(&["feedback", "get", id, "--json"]).await.ok().json();
    assert_eq!(stored["queryId"], "query-17", "{stored}");
    assistant.conversation.end().await;
}
