//! What assistants read: evidence, and why a phrase is answered as it is.

use serde_json::{Value, json};

use super::{Assistant, isda};
use crate::harness::Up;

#[tokio::test]
async fn the_materials_of_a_task_are_paged_and_blocked_domains_have_reasons() {
    const GRAPH: &str = r#"{"page": {"page_id": "page:1", "domain": "blog.example"}}
        {"claim": {"claim_id": "claim:1", "task_id": "t-17", "text": "a"}}
        {"claim": {"claim_id": "claim:2", "task_id": "t-17", "text": "b"}}
        {"edge": {"edge_id": "edge:7", "relation": "supports", "source": "page:1", "target": "claim:1", "task_id": "t-17"}}"#;
    let up = Up::ephemeral().await;
    up.run_with(&["evidence", "import", "-"], GRAPH).await.ok();
    let mut assistant = Assistant::start(&up, &[]).await;
    let block = json!({
        "task_id": "t-17", "action": "domain_block",
        "args": {"domain_pattern": "spam.example", "reason": "copies others"},
    });
    assistant.succeed("feedback", block).await;
    let status = assistant.succeed("get_status", json!({"task_id": "t-17"})).await;
    let blocked = &status["blocked_domains"][0];
    assert_eq!(
        (&blocked["domain"], &blocked["reason"], &blocked["can_restore"]),
        (&json!("spam.example"), &json!("copies others"), &json!(true)),
        "{status}"
    );
    for field in [
        "blocked_at",
        "contradicting_claims",
        "original_trust_level",
        "restore_via",
        "cause_id",
    ] {
        assert!(blocked.get(field).is_some(), "{field}: {blocked}");
    }
    assert_eq!(status["review"]["reviewed"], 0, "{status}");

    let whole = assistant
        .succeed("get_materials", json!({"task_id": "t-17"}))
        .await;
    assert_eq!(whole["claims"].as_array().map(Vec::len), Some(2), "{whole}");
    assert_eq!(whole["edges"].as_array().map(Vec::len), Some(1), "{whole}");
    assert!(whole["claims"][0]["confidence"].is_number(), "{whole}");
    let mut paged = json!({"pages": [], "fragments": [], "claims": [], "edges": []});
    let mut token = json!("");
    loop {
        let page = json!({"task_id": "t-17", "page_size": 1, "page_token": token});
        let page = assistant.succeed("get_materials", page).await;
        for sort in ["pages", "fragments", "claims", "edges"] {
            let more = page[sort].as_array().expect("a list").clone();
            paged[sort].as_array_mut().expect("a list").extend(more);
        }
        token = page["next_page_token"].clone();
        if token == "" {
            break;
        }
    }
    for sort in ["pages", "fragments", "claims", "edges"] {
        assert_eq!(paged[sort], whole[sort], "{sort}");
    }
    let refused = assistant
        .refused("get_materials", json!({"task_id": "t-17", "page_token": "?"}))
        .await;
    assert_eq!(refused["fieldViolations"][0]["field"], "page_token", "{refused}");
    assistant.conversation.end().await;
}

#[tokio::test]
async fn an_answer_is_explained_by_its_votes_and_decisions() {
    let up = Up::ephemeral().await;
    let mut assistant = Assistant::start(&up, &[]).await;
    for session in ["a", "b", "c"] {
        assistant.succeed("intent_feedback", isda(session)).await;
    }
    let explained = assistant
        .succeed("explain", json!({"phrase": "Set up a CSA"}))
        .await;
    assert_eq!(
        (&explained["found"], &explained["value"], &explained["nodes"]),
        (&json!(true), &json!("create_isda"), &json!([])),
        "{explained}"
    );
    let candidate = &explained["candidates"][0];
    assert_eq!(candidate["status"], "applied", "{explained}");
    assert_eq!(
        candidate["votes"].as_array().map(Vec::len),
        Some(3),
        "{explained}"
    );
    assert_eq!(
        candidate["votes"][0]["explanation"], "no CSA without an ISDA",
        "{explained}"
    );
    let history = candidate["history"].as_array().expect("a history");
    assert!(
        history
            .iter()
            .any(|step| step["to"] == "applied" && step["at"] != Value::Null),
        "{explained}"
    );
    let change = &explained["changes"][0];
    assert_eq!(
        (
            &change["after"],
            &change["before"],
            &change["cause"],
            &explained["changes_not_shown"]
        ),
        (
            &json!("create_isda"),
            &Value::Null,
            &json!("votes"),
            &json!(false)
        ),
        "{explained}"
    );
    assert!(
        change["at"].is_string() && change["revision"].is_i64(),
        "{explained}"
    );
    assert_eq!(
        (
            &explained["policy"]["risk_level"],
            &explained["policy"]["threshold"]
        ),
        (&json!("medium"), &json!(3)),
        "{explained}"
    );
    // What a person decided since is told with who it was, and why.
    let set = [
        "resources",
        "set",
        "phrase",
        "set up a csa",
        "create_csa",
        "--by",
        "dana",
        "--reason",
        "as agreed",
    ];
    up.run(&set).await.ok();
    let explained = assistant
        .succeed("explain", json!({"phrase": "Set up a CSA"}))
        .await;
    let change = &explained["changes"][0];
    assert_eq!(
        (&change["before"], &change["after"], &change["reason"]),
        (&json!("create_isda"), &json!("create_csa"), &json!("as agreed")),
        "{explained}"
    );
    assert!(
        change["by"].as_str().is_some_and(|by| by.contains("dana")),
        "{explained}"
    );
    let nothing = assistant
        .succeed("explain", json!({"phrase": "never said"}))
        .await;
    assert_eq!(
        (&nothing["found"], &nothing["candidates"]),
        (&json!(false), &json!([])),
        "{nothing}"
    );
    assistant.conversation.end().await;
}
