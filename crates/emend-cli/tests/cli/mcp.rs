//! `emend mcp`, called as an assistant calls it.

use serde_json::{Value, json};

use crate::harness::{Conversation, Up};

struct Assistant {
    conversation: Conversation,
    id: i64,
}

impl Assistant {
    async fn start(up: &Up, args: &[&str]) -> Self {
        let conversation = Conversation::start(&up.args(&[&["mcp"], args].concat()));
        let mut assistant = Self { conversation, id: 0 };
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
            .conversation
            .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        assistant
    }

    async fn request(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.conversation
            .send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        self.conversation
            .receive_until(|message| message["id"] == id)
            .await
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.request(method, params).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool. Returns whether it failed and what it answered.
    async fn call(&mut self, tool: &str, arguments: Value) -> (bool, Value) {
        let result = self
            .ask("tools/call", json!({"name": tool, "arguments": arguments}))
            .await;
        let text = result["content"][0]["text"].as_str().expect("text");
        assert!(text.starts_with(r#"{"message":""#), "{text}");
        let text: Value = serde_json::from_str(text).expect("JSON");
        (result["isError"] == true, text)
    }

    /// What a tool answers to a call that succeeds.
    async fn succeed(&mut self, tool: &str, arguments: Value) -> Value {
        let (failed, answer) = self.call(tool, arguments).await;
        assert!(!failed, "{answer}");
        answer
    }

    /// What a tool answers to a call that is refused.
    async fn refused(&mut self, tool: &str, arguments: Value) -> Value {
        let (failed, answer) = self.call(tool, arguments).await;
        assert!(failed, "{answer}");
        answer["error"].clone()
    }
}

fn message(answer: &Value) -> &str {
    answer["message"].as_str().expect("a message")
}

/// What one session says about "set up a CSA".
fn isda(session: &str) -> Value {
    json!({
        "feedback_type": "verb_correction",
        "original_input": "Set up a CSA",
        "system_choice": "create_csa",
        "correct_choice": "create_isda",
        "user_explanation": "no CSA without an ISDA",
        "context": {"session_id": session, "topic": "derivatives"},
    })
}

#[tokio::test]
async fn every_tool_is_listed_with_its_arguments_and_three_examples() {
    let up = Up::ephemeral().await;
    let mut assistant = Assistant::start(&up, &[]).await;
    let listed = assistant.ask("tools/list", json!({})).await;
    let tools = listed["tools"].as_array().expect("tools");
    for (name, arguments) in [
        (
            "intent_feedback",
            &[
                "feedback_type",
                "verb_correction",
                "entity_correction",
                "phrase_mapping",
                "prohibition",
                "original_input",
                "system_choice",
                "correct_choice",
                "user_explanation",
                "scope",
                "context",
                "session_id",
                "reporter",
            ][..],
        ),
        (
            "feedback",
            &[
                "task_id",
                "action",
                "args",
                "domain_block",
                "domain_unblock",
                "domain_clear_override",
                "claim_reject",
                "claim_restore",
                "edge_correct",
            ],
        ),
        ("intent_retract", &["feedback_id"]),
        ("intent_resolve", &["phrase", "reporter"]),
        ("intent_list", &["statuses", "phrase", "page_size", "page_token"]),
        (
            "intent_approve",
            &["candidate_id", "reason", "by", "accept_redacted"],
        ),
        ("intent_reject", &["candidate_id", "reason", "by"]),
    ] {
        let tool = tools.iter().find(|tool| tool["name"] == name);
        let tool = tool.unwrap_or_else(|| panic!("no {name}: {listed}"));
        let schema = tool["inputSchema"].to_string();
        for argument in arguments {
            assert!(schema.contains(argument), "{name} takes {argument}: {schema}");
        }
        let description = tool["description"].as_str().expect("a description");
        let examples = description.lines().filter(|line| line.starts_with('{'));
        assert_eq!(examples.count(), 3, "{description}");
    }
    assert_eq!(tools.len(), 7, "{listed}");
    assistant.conversation.end().await;
}

#[tokio::test]
async fn the_documented_configuration_starts_the_tools() {
    const PAGE: &str = include_str!("../../../../docs/mcp.md");
    let block = PAGE
        .split("```json\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let configuration: Value = serde_json::from_str(block.expect("a block of JSON")).expect("JSON");
    let server = &configuration["mcpServers"]["emend"];
    assert_eq!(server["command"], "emend");
    let args: Vec<&str> = server["args"]
        .as_array()
        .expect("arguments")
        .iter()
        .map(|arg| arg.as_str().expect("a text"))
        .collect();
    let (command, args) = args.split_first().expect("a command");
    assert_eq!(*command, "mcp");
    let up = Up::ephemeral().await;
    let mut assistant = Assistant::start(&up, args).await;
    let tools = assistant.ask("tools/list", json!({})).await;
    for tool in tools["tools"].as_array().expect("tools") {
        let name = tool["name"].as_str().expect("a name");
        assert!(PAGE.contains(&format!("`{name}`")), "the page describes {name}");
    }
    assistant.conversation.end().await;
}

#[tokio::test]
async fn an_assistant_without_arguments_corrects_retracts_and_prohibits() {
    let up = Up::ephemeral().await;
    let mut assistant = Assistant::start(&up, &[]).await;

    // The votes of three sessions teach a phrase.
    let first = assistant.succeed("intent_feedback", isda("chat-1")).await;
    for (field, expected) in [
        ("recorded", json!(true)),
        ("was_new", json!(true)),
        ("occurrence_count", json!(1)),
        ("risk_level", json!("medium")),
        ("threshold_applied", json!(false)),
        ("auto_applied", json!(false)),
        ("state", json!("pending")),
        (
            "what_was_learned",
            json!({"input": "Set up a CSA", "maps_to": "create_isda", "type": "invocation_phrase"}),
        ),
    ] {
        assert_eq!(first[field], expected, "{field}: {first}");
    }
    assert!(message(&first).contains("2 more"), "{first}");
    for id in ["feedback_id", "request_id", "candidate_id"] {
        assert!(first[id].as_str().is_some_and(|id| !id.is_empty()), "{first}");
    }
    let again = assistant.succeed("intent_feedback", isda("chat-1")).await;
    assert_eq!(
        (&again["occurrence_count"], &again["reporter_count"]),
        (&json!(2), &json!(1)),
        "a session counts once: {again}"
    );
    let second = assistant.succeed("intent_feedback", isda("chat-2")).await;
    assert_eq!(second["reporter_count"], 2, "{second}");
    let third = assistant.succeed("intent_feedback", isda("chat-3")).await;
    assert_eq!(
        (
            &third["state"],
            &third["threshold_applied"],
            &third["auto_applied"]
        ),
        (&json!("applied"), &json!(true), &json!(false)),
        "{third}"
    );
    let resolved = assistant
        .succeed("intent_resolve", json!({"phrase": " set up a csa"}))
        .await;
    assert_eq!(
        (&resolved["found"], &resolved["value"], &resolved["scope"]),
        (&json!(true), &json!("create_isda"), &json!("global")),
        "{resolved}"
    );

    // One session takes its vote back: two are too few.
    let retracted = assistant
        .succeed(
            "intent_retract",
            json!({"feedback_id": second["feedback_id"], "reason": "misread"}),
        )
        .await;
    assert_eq!(retracted["retracted"], true, "{retracted}");
    let resolved = assistant
        .succeed("intent_resolve", json!({"phrase": "set up a CSA"}))
        .await;
    assert_eq!(
        (&resolved["found"], &resolved["value"]),
        (&json!(false), &Value::Null)
    );

    // A choice is prohibited by three sessions.
    let mut prohibited = Value::Null;
    for session in ["chat-1", "chat-2", "chat-3"] {
        let arguments = json!({
            "feedback_type": "prohibition",
            "original_input": "wind down the fund",
            "system_choice": "delete_fund",
            "context": {"session_id": session},
        });
        prohibited = assistant.succeed("intent_feedback", arguments).await;
    }
    assert_eq!(
        (&prohibited["state"], &prohibited["what_was_learned"]["type"]),
        (&json!("applied"), &json!("prohibition")),
        "{prohibited}"
    );
    let resolved = assistant
        .succeed(
            "intent_resolve",
            json!({
                "phrase": "wind down the fund",
                "own_choices": [
                    {"value": "delete_fund", "score": 0.7},
                    {"value": "liquidate_fund", "score": 0.6},
                    {"value": "close_fund", "score": 0.5},
                ],
            }),
        )
        .await;
    assert_eq!(resolved["prohibited"], json!(["delete_fund"]), "{resolved}");
    assert!(
        resolved["feedback_hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("isn't what you meant")),
        "{resolved}"
    );
    assistant.conversation.end().await;
}

#[tokio::test]
async fn an_assistant_decides_about_evidence_and_reads_the_effect() {
    const GRAPH: &str = r#"{"page": {"page_id": "page:1", "domain": "blog.example"}}
        {"claim": {"claim_id": "claim:12"}}
        {"edge": {"edge_id": "edge:7", "relation": "supports", "source": "page:1", "target": "claim:12"}}"#;
    let up = Up::ephemeral().await;
    up.run_with(&["evidence", "import", "-"], GRAPH).await.ok();
    let mut assistant = Assistant::start(&up, &["--reporter", "ana"]).await;
    let rejected = json!({
        "task_id": "t-17",
        "action": "claim_reject",
        "args": {"claim_id": "claim:12", "reason": "an advertisement", "reason_code": "SPAM"},
    });
    let rejected = assistant.succeed("feedback", rejected).await;
    for (field, expected) in [
        ("recorded", json!(true)),
        ("was_new", json!(true)),
        ("state", json!("applied")),
        ("reason", json!("")),
        ("revision", json!(1)),
        (
            "message",
            json!("Learned: claim “claim:12” is rejected (SPAM). It applies."),
        ),
    ] {
        assert_eq!(rejected[field], expected, "{field}: {rejected}");
    }
    let id = rejected["event_id"].as_str().expect("an id");
    let stored = up.run(&["feedback", "get", id, "--json"]).await.ok().json();
    assert_eq!(
        stored["correction"]["claimReject"],
        json!({"claimId": "claim:12", "reasonCode": "SPAM", "taskId": "t-17"})
    );
    let corrected = json!({
        "task_id": "t-17",
        "action": "edge_correct",
        "args": {"edge_id": "edge:7", "correct_relation": "refutes"},
    });
    let corrected = assistant.succeed("feedback", corrected).await;
    assert_eq!(corrected["state"], "applied", "{corrected}");
    let retracted = assistant
        .succeed("intent_retract", json!({"feedback_id": id}))
        .await;
    assert_eq!(
        (&retracted["retracted"], &retracted["state"]),
        (&json!(true), &json!("withdrawn")),
        "{retracted}"
    );
    let without_reason = json!({"task_id": "t-17", "action": "claim_restore", "args": {"claim_id": "c"}});
    let refused = assistant.refused("feedback", without_reason).await;
    assert_eq!(refused["fieldViolations"][0]["field"], "args.reason", "{refused}");
    assistant.conversation.end().await;
}

#[tokio::test]
async fn the_reporter_of_a_call_comes_before_the_one_of_the_command_line() {
    let up = Up::ephemeral().await;
    let mut assistant = Assistant::start(&up, &["--reporter", "ana", "--namespace", "fund-admin"]).await;
    let reporter = async |answer: &Value| {
        let id = answer["feedback_id"].as_str().expect("an id");
        let args = ["feedback", "get", id, "--namespace", "fund-admin", "--json"];
        up.run(&args).await.ok().json()
    };

    let by_default = assistant.succeed("intent_feedback", isda("chat-1")).await;
    let stored = reporter(&by_default).await;
    assert_eq!(
        (&stored["reporter"]["id"], &stored["reporter"]["sessionId"]),
        (&json!("ana"), &json!("chat-1"))
    );
    assert_eq!(stored["context"], json!({"topic": "derivatives"}));
    assert_eq!(stored["reason"], "no CSA without an ISDA");

    let mut by_mia = isda("chat-1");
    by_mia["context"] = json!({"reporter": "mia"});
    by_mia["scope"] = json!("user");
    let own = assistant.succeed("intent_feedback", by_mia).await;
    assert_eq!(reporter(&own).await["reporter"]["id"], "mia");
    assert_eq!(
        (&own["state"], &own["auto_applied"], &own["threshold_applied"]),
        (&json!("applied"), &json!(true), &json!(false)),
        "a preference of one's own applies at once: {own}"
    );
    let hers = json!({"phrase": "set up a csa", "reporter": "mia"});
    let hers = assistant.succeed("intent_resolve", hers).await;
    assert_eq!(
        (&hers["value"], &hers["scope"]),
        (&json!("create_isda"), &json!("user"))
    );
    let others = assistant
        .succeed("intent_resolve", json!({"phrase": "set up a csa"}))
        .await;
    assert_eq!(others["found"], false, "{others}");
    assistant.conversation.end().await;
}

#[tokio::test]
async fn votes_of_unnamed_reporters_count_once_and_the_answer_says_so() {
    let up = Up::ephemeral().await;
    let mut assistant = Assistant::start(&up, &[]).await;
    let mut unnamed = isda("");
    unnamed["context"] = json!({});
    let mut last = Value::Null;
    for _ in 0..3 {
        last = assistant.succeed("intent_feedback", unnamed.clone()).await;
        assert!(message(&last).contains("count once"), "{last}");
    }
    assert_eq!(
        (&last["reporter_count"], &last["state"]),
        (&json!(1), &json!("pending")),
        "{last}"
    );
    let named = assistant.succeed("intent_feedback", isda("chat-1")).await;
    assert!(!message(&named).contains("count once"), "{named}");

    // Nothing can be learned for a session alone.
    let mut own = isda("chat-1");
    own["scope"] = json!("user");
    let refused = assistant.refused("intent_feedback", own).await;
    assert_eq!(refused["code"], "INVALID_ARGUMENT", "{refused}");
    assistant.conversation.end().await;
}

#[tokio::test]
async fn the_queue_is_paged_and_a_person_decides_through_the_assistant() {
    let up = Up::ephemeral().await;
    let mut assistant = Assistant::start(&up, &["--reporter", "ana"]).await;
    for n in 0..5 {
        let arguments = json!({
            "feedback_type": "phrase_mapping",
            "original_input": format!("book trade {n}"),
            "correct_choice": "book_trade",
        });
        assistant.succeed("intent_feedback", arguments).await;
    }
    let mut phrases = Vec::new();
    let mut token = json!("");
    let mut sizes = Vec::new();
    loop {
        let page = assistant
            .succeed("intent_list", json!({"page_size": 2, "page_token": token}))
            .await;
        let candidates = page["candidates"].as_array().expect("candidates");
        sizes.push(candidates.len());
        phrases.extend(candidates.iter().map(|candidate| candidate["phrase"].clone()));
        token = page["next_page_token"].clone();
        if token == "" {
            break;
        }
    }
    assert_eq!(sizes, [2, 2, 1]);
    phrases.sort_by_key(Value::to_string);
    let expected: Vec<_> = (0..5).map(|n| json!(format!("book trade {n}"))).collect();
    assert_eq!(phrases, expected, "each once");

    let listed = assistant
        .succeed("intent_list", json!({"phrase": "book trade 3", "statuses": []}))
        .await;
    let candidate = &listed["candidates"][0];
    assert_eq!(
        (
            &candidate["status"],
            &candidate["maps_to"],
            &candidate["confirmations_needed"]
        ),
        (&json!("pending"), &json!("book_trade"), &json!(2)),
        "{candidate}"
    );
    assert_eq!(candidate["written_as"], candidate["phrase"], "{candidate}");
    let id = candidate["candidate_id"].clone();
    let outdated = json!({"candidate_id": id, "etag": "0"});
    let refused = assistant.refused("intent_approve", outdated).await;
    assert_eq!(refused["reason"], "ETAG_MISMATCH", "{refused}");
    let approved = assistant
        .succeed(
            "intent_approve",
            json!({"candidate_id": id, "reason": "asked ana", "etag": candidate["etag"]}),
        )
        .await;
    assert_eq!(
        (&approved["status"], &approved["decided_by"], &approved["pinned"]),
        (&json!("applied"), &json!("ana"), &json!(true)),
        "{approved}"
    );
    let resolved = assistant
        .succeed("intent_resolve", json!({"phrase": "book trade 3"}))
        .await;
    assert_eq!(resolved["value"], "book_trade");
    let rejected = assistant
        .succeed(
            "intent_reject",
            json!({"candidate_id": id, "reason": "retired", "by": "dana"}),
        )
        .await;
    assert_eq!(
        (&rejected["status"], &rejected["decided_by"]),
        (&json!("rejected"), &json!("dana")),
        "{rejected}"
    );
    let none = assistant
        .succeed(
            "intent_list",
            json!({"phrase": "book trade 3", "statuses": ["pending"]}),
        )
        .await;
    assert_eq!(none["candidates"], json!([]));
    assistant.conversation.end().await;
}

#[tokio::test]
async fn a_refusal_names_everything_that_is_wrong_with_the_call() {
    let up = Up::ephemeral().await;
    let mut assistant = Assistant::start(&up, &[]).await;
    for arguments in [
        json!({"feedback_type": "phrase_mapping", "original_input": " ", "correct_choice": ""}),
        json!({"feedback_type": "prohibition", "original_input": "a", "correct_choice": "b"}),
    ] {
        let refused = assistant.refused("intent_feedback", arguments).await;
        assert_eq!(refused["code"], "INVALID_ARGUMENT");
        assert_eq!(refused["fieldViolations"].as_array().map(Vec::len), Some(2));
    }
    let unknown = json!({"phrases": "a", "own_choices": 7});
    let refused = assistant.refused("intent_resolve", unknown).await;
    assert_eq!(
        refused["fieldViolations"].as_array().map(Vec::len),
        Some(3),
        "{refused}"
    );
    // What a service finds is named as the tool names it.
    let long = json!({
        "feedback_type": "phrase_mapping", "original_input": "a", "correct_choice": "x".repeat(257),
    });
    let refused = assistant.refused("intent_feedback", long).await;
    assert_eq!(
        refused["fieldViolations"][0]["field"], "correct_choice",
        "{refused}"
    );
    // A line that is no JSON is answered, and the next one is read.
    assistant.conversation.send_line("{nonsense").await;
    let answer = assistant
        .conversation
        .receive_until(|message| !message["error"].is_null())
        .await;
    assert_eq!(answer["error"]["code"], -32700, "{answer}");
    assistant.succeed("intent_resolve", json!({"phrase": "a"})).await;
    assistant.conversation.end().await;
}
