//! Prompts, with the data that they come with.

use serde_json::{Value, json};

use super::{Assistant, isda};
use crate::harness::Up;

#[tokio::test]
async fn prompts_come_with_what_an_assistant_needs_to_know() {
    let up = Up::ephemeral().await;
    let mut assistant = Assistant::start(&up, &["--reporter", "ana"]).await;
    let listed = assistant.ask("prompts/list", json!({})).await;
    let prompts = listed["prompts"].as_array().expect("prompts");
    let names: Vec<&Value> = prompts.iter().map(|prompt| &prompt["name"]).collect();
    assert_eq!(names, ["explain_answer", "learning_report", "review_queue"]);
    for prompt in prompts {
        let arguments = prompt["arguments"].as_array().expect("arguments");
        assert!(
            arguments.iter().any(|argument| argument["name"] == "namespace"),
            "{prompt}"
        );
    }

    for reporter in ["ana", "ben", "cleo"] {
        let mut said = isda("chat");
        said["context"]["reporter"] = json!(reporter);
        assistant.succeed("intent_feedback", said).await;
    }
    up.run(&["policy", "set", "entity_alias", "--risk", "high"])
        .await
        .ok();
    let alias = json!({
        "feedback_type": "entity_correction", "original_input": "J. Smith", "correct_choice": "id-7",
        "user_explanation": "the one in London",
    });
    assistant.succeed("intent_feedback", alias).await;
    let block = json!({
        "task_id": "t", "action": "domain_block", "args": {"domain_pattern": "spam.example", "reason": "copies others"},
    });
    assistant.succeed("feedback", block).await;

    let (said, queue) = assistant.prompt("review_queue", json!({})).await;
    assert!(
        said.contains("intent_approve") && said.contains("texts_of_others"),
        "{said}"
    );
    let candidate = &queue["candidates"][0];
    assert_eq!(
        (
            &candidate["phrase"],
            &candidate["votes"][0]["explanation"],
            &queue["has_more"]
        ),
        (&json!("j. smith"), &json!("the one in London"), &json!(false)),
        "{queue}"
    );
    let (_, none) = assistant.prompt("review_queue", json!({"kind": "synonym"})).await;
    assert_eq!(none["candidates"], json!([]), "{none}");

    let (_, explained) = assistant
        .prompt("explain_answer", json!({"phrase": "Set up a CSA"}))
        .await;
    assert_eq!(
        (
            &explained["value"],
            &explained["changes"][0]["after"],
            &explained["policy"]["threshold"]
        ),
        (&json!("create_isda"), &json!("create_isda"), &json!(3)),
        "{explained}"
    );
    let (_, domain) = assistant
        .prompt("explain_answer", json!({"domain": "spam.example"}))
        .await;
    assert_eq!(
        (&domain["blocked"]["reason"], &domain["rules"][0]["decision"]),
        (&json!("copies others"), &json!("block")),
        "{domain}"
    );

    let (_, report) = assistant.prompt("learning_report", json!({"day": ""})).await;
    let figures = report["figures"].as_array().expect("figures");
    let phrases = figures
        .iter()
        .find(|figures| figures["type"] == "invocation_phrase");
    assert_eq!(
        phrases.map(|phrases| (&phrases["received"], &phrases["applied"])),
        Some((&json!(3), &json!(1))),
        "{report}"
    );
    assert_eq!(report["waiting"][0]["count"], 1, "{report}");
    let changes = report["changes"].as_array().expect("changes");
    assert!(
        changes
            .iter()
            .any(|change| change["key"] == "set up a csa" && change["after"] == "create_isda"),
        "{report}"
    );
    for (name, arguments, field) in [
        ("learning_report", json!({"day": "yesterday"}), "day"),
        ("learning_report", json!({"day": "2020-01-01"}), "day"),
        ("review_queue", json!({"kind": "verbs"}), "kind"),
        ("explain_answer", json!({}), "phrase"),
        ("explain_answer", json!({"phrase": "a", "domain": "b"}), "phrase"),
        ("explain_answer", json!({"words": "a"}), "words"),
    ] {
        let refused = assistant
            .request("prompts/get", json!({"name": name, "arguments": arguments}))
            .await;
        assert_eq!(refused["error"]["code"], -32_602, "{refused}");
        let violation = &refused["error"]["data"]["fieldViolations"][0]["field"];
        assert_eq!(violation, field, "{refused}");
    }
    assistant.conversation.end().await;
}
