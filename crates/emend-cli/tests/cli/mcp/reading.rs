//! What assistants read: evidence, and why a phrase is answered as it is.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{Assistant, isda, message, rights::with_callers};
use crate::harness::{TIMEOUT, Up};

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
    let ruled = assistant
        .succeed("intent_list", json!({"statuses": ["applied"]}))
        .await;
    let ruled = &ruled["candidates"][0];
    assert_eq!(
        (
            &ruled["type"],
            &ruled["ruling"]["effective"],
            &ruled["first_approval"]
        ),
        (&json!("domain_rule"), &json!(true), &Value::Null),
        "{ruled}"
    );

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
    let up = Up::start(&["--ephemeral", "--edge-http", "127.0.0.1:0"]).await;
    let mut assistant = Assistant::start(&up, &[]).await;
    for session in ["a", "b", "c"] {
        assistant.succeed("intent_feedback", isda(session)).await;
    }
    let explained = assistant
        .succeed("explain", json!({"phrase": "Set up a CSA"}))
        .await;
    assert_eq!(
        (&explained["found"], &explained["value"]),
        (&json!(true), &json!("create_isda")),
        "{explained}"
    );
    // The edge is a node, which says within some seconds that it has the change.
    let has_it = async {
        loop {
            let explained = assistant
                .succeed("explain", json!({"phrase": "set up a csa"}))
                .await;
            if explained["nodes"][0]["has_it"] == true {
                return explained;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    let told = timeout(TIMEOUT, has_it).await.expect("a node has it in time");
    let node = &told["nodes"][0];
    assert_eq!(
        (&node["connected"], &node["revision"], &told["nodes_not_shown"]),
        (&json!(true), &told["changes"][0]["revision"], &json!(0)),
        "{told}"
    );
    assert_ne!(node["node"], "", "{told}");
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

#[tokio::test]
async fn the_first_of_two_approvals_is_told_before_it_and_after_it() {
    let (up, directory) = with_callers(&[
        ("olga", r#"roles = ["admin"], namespaces = "*""#),
        ("rita", r#"roles = ["reviewer"], namespaces = "*""#),
    ])
    .await;
    let token = |name: &str| directory.path().join(name).display().to_string();
    let two = ["policy", "set", "invocation_phrase", "--reviewers-needed", "2"];
    up.run(&[&two[..], &["--token-file", &token("olga")]].concat())
        .await
        .ok();
    let mut rita = Assistant::start(&up, &["--token-file", &token("rita")]).await;
    let said =
        json!({"feedback_type": "phrase_mapping", "original_input": "book", "correct_choice": "book_trade"});
    let said = rita.succeed("intent_feedback", said).await;
    let approval = json!({"candidate_id": said["candidate_id"], "reason": "as we say"});
    let approved = rita.succeed("intent_approve", approval).await;
    assert!(
        message(&approved).contains("another reviewer has to approve it, too"),
        "{approved}"
    );
    let asked = rita.asked.last().expect("a question");
    assert!(asked.contains("it is the first of two approvals"), "{asked}");
    let explained = rita.succeed("explain", json!({"phrase": "book"})).await;
    let first = &explained["candidates"][0]["first_approval"];
    assert_eq!(
        (&first["by"], &first["reason"], first["at"].is_string()),
        (&json!("rita"), &json!("as we say"), true),
        "{explained}"
    );
    rita.conversation.end().await;
}

#[tokio::test]
async fn a_target_s_prompt_is_read_with_its_variables_settings_and_examples() {
    let up = Up::ephemeral().await;
    let set = [
        "outputs",
        "prompts",
        "set",
        "INTERPRET",
        "-",
        "--variable",
        "day=today",
    ];
    let text = "---\nsettings:\n  temperature: \"0.2\"\n---\nSay what {{day}} means.";
    up.run_with(&set, text).await.ok();
    let mut assistant = Assistant::start(&up, &["--reporter", "ana"]).await;
    let good = json!({
        "target": "INTERPRET", "value": "GOOD", "target_id": "out-1", "input_text": "3 red",
        "output_text": "three red cards",
    });
    let rated = assistant.succeed("rate_output", good).await;
    assert_eq!(rated["evaluated"], true, "{rated}");
    let by_default = assistant
        .succeed("get_prompt", json!({"target": "INTERPRET"}))
        .await;
    let said = by_default["text"].as_str().expect("a text");
    assert!(
        said.contains("Say what today means.") && said.contains("three red cards"),
        "{by_default}"
    );
    assert_eq!(
        (
            &by_default["version"],
            &by_default["good_examples"],
            &by_default["bad_examples"],
            &by_default["settings"]["temperature"],
        ),
        (&json!(1), &json!(1), &json!(0), &json!("0.2")),
        "{by_default}"
    );
    let filled = json!({"target": "INTERPRET", "variables": {"day": "Monday"}});
    let filled = assistant.succeed("get_prompt", filled).await;
    assert!(
        filled["text"]
            .as_str()
            .is_some_and(|text| text.contains("Say what Monday means.")),
        "{filled}"
    );
    for (arguments, reason) in [
        (json!({"target": "NOTHING"}), "NOT_FOUND"),
        (json!({"target": "INTERPRET", "label": "staging"}), "NOT_FOUND"),
    ] {
        let refused = assistant.refused("get_prompt", arguments).await;
        assert_eq!(refused["code"], reason, "{refused}");
    }
    assistant.conversation.end().await;
}
