//! Completion of what prompts and addresses take.

use serde_json::{Value, json};

use super::Assistant;
use crate::harness::Up;

#[tokio::test]
async fn arguments_are_completed_with_what_there_is() {
    let up = Up::ephemeral().await;
    up.run(&["resources", "set", "phrase", "book a trade", "book_trade"])
        .await
        .ok();
    up.run(&["resources", "set", "domain", "spam.example", "block"])
        .await
        .ok();
    up.run_with(&["outputs", "prompts", "set", "INTERPRET", "-"], "Say it.")
        .await
        .ok();
    let mut assistant = Assistant::start(&up, &["--namespace", "default"]).await;
    let learned = json!({"type": "ref/resource", "uri": "emend://{namespace}/learned/{kind}{?page_token}"});
    let prompts = json!({"type": "ref/resource", "uri": "emend://{namespace}/prompts/{target}"});
    let explain = json!({"type": "ref/prompt", "name": "explain_answer"});
    for (reference, argument, typed, expected) in [
        (&learned, "namespace", "def", json!(["default"])),
        (&learned, "namespace", "x", json!([])),
        (&learned, "kind", "p", json!(["prohibition", "prompt", "profile"])),
        (&prompts, "target", "INT", json!(["INTERPRET"])),
        (&explain, "domain", "sp", json!(["spam.example"])),
        (&explain, "phrase", "Book", json!(["book a trade"])),
        (&explain, "resolve_type", "", json!(["entity", "verb"])),
    ] {
        let params = json!({"ref": reference, "argument": {"name": argument, "value": typed}});
        let completed = assistant.ask("completion/complete", params).await;
        let mut values = completed["completion"]["values"]
            .as_array()
            .expect("values")
            .clone();
        values.sort_by_key(Value::to_string);
        let mut expected = expected.as_array().expect("values").clone();
        expected.sort_by_key(Value::to_string);
        assert_eq!(values, expected, "{argument}: {completed}");
        assert_eq!(completed["completion"]["hasMore"], false, "{completed}");
    }
    // Of another namespace, which the address names.
    let params = json!({
        "ref": prompts, "argument": {"name": "target", "value": ""}, "context": {"arguments": {"namespace": "other"}},
    });
    let other = assistant.ask("completion/complete", params).await;
    assert_eq!(other["completion"]["values"], json!([]), "{other}");
    assistant.conversation.end().await;
}
