//! `emend mcp`, called as an assistant calls it.

use serde_json::{Value, json};

use crate::harness::{Talk, Up};

struct Assistant {
    talk: Talk,
    id: i64,
}

impl Assistant {
    async fn greet(up: &Up) -> Self {
        let talk = Talk::start(&up.args(&["mcp", "--reporter", "ana", "--namespace", "fund-admin"]));
        let mut assistant = Self { talk, id: 0 };
        let hello = assistant
            .ask(
                "initialize",
                json!({
                    "protocolVersion": "2025-06-18",
                    "capabilities": {},
                    "clientInfo": {"name": "test", "version": "1"}
                }),
            )
            .await;
        assert_eq!(hello["serverInfo"]["name"], "emend");
        assert!(hello["capabilities"]["tools"].is_object());
        assistant
            .talk
            .say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        assistant
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.talk
            .say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        let answer = self.talk.hear_until(|message| message["id"] == id).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool. Returns whether it failed and what it answered.
    async fn call(&mut self, tool: &str, arguments: Value) -> (bool, Value) {
        let result = self
            .ask("tools/call", json!({"name": tool, "arguments": arguments}))
            .await;
        let text: Value =
            serde_json::from_str(result["content"][0]["text"].as_str().expect("text")).expect("JSON");
        assert_eq!(text, result["structuredContent"]);
        (result["isError"] == true, text)
    }
}

#[tokio::test]
async fn an_assistant_records_what_was_meant_and_a_person_decides_through_it() {
    let up = Up::ephemeral().await;
    let mut assistant = Assistant::greet(&up).await;
    let tools = assistant.ask("tools/list", json!({})).await;
    let names: Vec<_> = tools["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    for name in [
        "intent_feedback",
        "intent_list",
        "intent_approve",
        "intent_reject",
    ] {
        assert!(names.contains(&json!(name)), "{names:?}");
    }
    let feedback = tools["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .find(|tool| tool["name"] == "intent_feedback");
    let schema = feedback.expect("the tool")["inputSchema"].to_string();
    for part in [
        "verb_correction",
        "entity_correction",
        "phrase_mapping",
        "user_explanation",
        "context",
    ] {
        assert!(schema.contains(part), "{part}: {schema}");
    }

    let (failed, said) = assistant
        .call(
            "intent_feedback",
            json!({
                "feedback_type": "verb_correction",
                "original_input": "Set up a CSA",
                "system_choice": "create_csa",
                "correct_choice": "create_isda",
                "user_explanation": "no CSA without an ISDA",
                "context": {"topic": "derivatives"},
            }),
        )
        .await;
    assert!(!failed, "{said}");
    assert_eq!(said["feedback"]["reporter"]["id"], "ana");
    assert_eq!(said["feedback"]["reason"], "no CSA without an ISDA");
    assert!(
        said["message"]
            .as_str()
            .is_some_and(|message| message.contains("2 more")),
        "{said}"
    );

    let (_, listed) = assistant.call("intent_list", json!({})).await;
    let id = listed["candidates"][0]["candidateId"].clone();
    let (failed, approved) = assistant
        .call(
            "intent_approve",
            json!({"candidate_id": id, "reason": "asked ana"}),
        )
        .await;
    assert!(!failed, "{approved}");
    assert_eq!(approved["candidate"]["decidedBy"]["onBehalfOf"], "ana");
    let resolved = up
        .run(&["resolve", "set up a csa", "-n", "fund-admin", "--json"])
        .await
        .ok()
        .json();
    assert_eq!(resolved["match"]["value"], "create_isda");

    // A refusal lists everything that is wrong, so that the call can be fixed.
    let (failed, refused) = assistant
        .call(
            "intent_feedback",
            json!({"feedback_type": "phrase_mapping", "original_input": " ", "correct_choice": ""}),
        )
        .await;
    assert!(failed);
    assert_eq!(refused["error"]["code"], "INVALID_ARGUMENT");
    assert_eq!(
        refused["error"]["fieldViolations"].as_array().map(Vec::len),
        Some(2)
    );
    let (failed, rejected) = assistant
        .call("intent_reject", json!({"candidate_id": id, "reason": "retired"}))
        .await;
    assert!(!failed, "{rejected}");
    assert_eq!(rejected["candidate"]["status"], "CANDIDATE_STATUS_REJECTED");
    let (_, none) = assistant
        .call("intent_list", json!({"statuses": ["pending"]}))
        .await;
    assert_eq!(none["candidates"], json!([]));
    let (_, entity) = assistant
        .call(
            "intent_feedback",
            json!({"feedback_type": "entity_correction", "original_input": "J. Smith", "correct_choice": "jane"}),
        )
        .await;
    assert_eq!(entity["feedback"]["outcome"]["state"], "OUTCOME_STATE_APPLIED");
    assistant.talk.end().await;
}
