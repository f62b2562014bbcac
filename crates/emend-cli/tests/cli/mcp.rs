//! `emend mcp`, called as an assistant calls it.

mod attack;
mod completion;
mod configurations;
mod hostile;
mod http;
mod prompts;
mod protocol;
mod reading;
mod resources;
mod rights;
mod saying;
mod together;

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::harness::{Conversation, Up};

struct Assistant {
    conversation: Conversation,
    id: i64,
    /// What the person beside it answers to a question.
    person: Value,
    /// The questions that the person was asked.
    asked: Vec<String>,
    /// The resources that it was told may be others now, and has not looked at yet.
    told: VecDeque<String>,
    tools: Vec<Value>,
}

impl Assistant {
    /// One whose person says yes.
    async fn start(up: &Up, args: &[&str]) -> Self {
        Self::with(up, args, json!({"elicitation": {}})).await
    }

    async fn with(up: &Up, args: &[&str], capabilities: Value) -> Self {
        let conversation = Conversation::start(&up.args(&[&["mcp"], args].concat()));
        let mut assistant = Self {
            conversation,
            id: 0,
            person: json!({"action": "accept", "content": {"confirmed": true}}),
            asked: Vec::new(),
            told: VecDeque::new(),
            tools: Vec::new(),
        };
        let hello = assistant
            .ask(
                "initialize",
                json!({
                    "protocolVersion": "2025-06-18",
                    "capabilities": capabilities,
                    "clientInfo": {"name": "test", "version": "1"}
                }),
            )
            .await;
        assert_eq!(hello["serverInfo"]["name"], "emend");
        for offered in ["tools", "resources", "prompts", "completions"] {
            assert!(hello["capabilities"][offered].is_object(), "{offered}: {hello}");
        }
        assistant
            .conversation
            .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        let listed = assistant.ask("tools/list", json!({})).await;
        assistant
            .tools
            .clone_from(listed["tools"].as_array().expect("tools"));
        assistant
    }

    /// The names of the tools that it is offered.
    fn offered(&self) -> Vec<&str> {
        let names = self.tools.iter().map(|tool| &tool["name"]);
        names.map(|name| name.as_str().expect("a name")).collect()
    }

    async fn request(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.conversation
            .send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        loop {
            let message = self.conversation.receive().await;
            if let Some(uri) = updated(&message) {
                self.told.push_back(uri);
            } else if message["method"] == "elicitation/create" {
                let question = message["params"]["message"].as_str().expect("a question");
                self.asked.push(question.to_owned());
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": self.person});
                self.conversation.send(&answer).await;
            } else if message["id"] == id {
                return message;
            }
        }
    }

    /// Waits until it is told that a resource may be another now.
    async fn hear(&mut self) -> String {
        loop {
            if let Some(uri) = self.told.pop_front() {
                return uri;
            }
            let message = self.conversation.receive().await;
            self.told.extend(updated(&message));
        }
    }

    async fn subscribe(&mut self, uri: &str) {
        self.ask("resources/subscribe", json!({"uri": uri})).await;
    }

    /// The document at an address.
    async fn read(&mut self, uri: &str) -> Value {
        let read = self.ask("resources/read", json!({"uri": uri})).await;
        let contents = &read["contents"][0];
        assert_eq!(
            (&contents["uri"], &contents["mimeType"]),
            (&json!(uri), &json!("application/json")),
            "{read}"
        );
        serde_json::from_str(contents["text"].as_str().expect("a text")).expect("JSON")
    }

    /// A prompt's instruction, and its data.
    async fn prompt(&mut self, name: &str, arguments: Value) -> (String, Value) {
        let filled = self
            .ask("prompts/get", json!({"name": name, "arguments": arguments}))
            .await;
        let text = |at: usize| {
            let content = &filled["messages"][at]["content"];
            assert_eq!(content["type"], "text", "{filled}");
            content["text"].as_str().expect("a text").to_owned()
        };
        assert_eq!(filled["messages"].as_array().map(Vec::len), Some(2), "{filled}");
        (text(0), serde_json::from_str(&text(1)).expect("JSON"))
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
        let failed = result["isError"] == true;
        if !failed {
            assert_eq!(result["structuredContent"], text);
            let listed = self.tools.iter().find(|listed| listed["name"] == tool);
            conforms(&listed.expect("it is offered")["outputSchema"], &text, tool);
        }
        (failed, text)
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

/// The resource that a message says may be another now.
fn updated(message: &Value) -> Option<String> {
    let is_about_one = message["method"] == "notifications/resources/updated";
    is_about_one.then(|| message["params"]["uri"].as_str().expect("an address").to_owned())
}

/// Whether a value is as a schema says, by the parts of JSON Schema that the tools' schemas use.
fn conforms(schema: &Value, value: &Value, path: &str) {
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        other => panic!("{path}: {other}"),
    };
    let is = |name: &&str| match *name {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{path}: {other}"),
    };
    assert!(types.iter().any(is), "{path} must be {types:?}: {value}");
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().expect("a name");
        assert!(value.get(name).is_some(), "{path} has no {name}: {value}");
        conforms(&schema["properties"][name], &value[name], name);
    }
    for item in value.as_array().into_iter().flatten() {
        conforms(&schema["items"], item, path);
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
async fn every_tool_is_listed_with_schemas_in_one_piece_annotations_and_three_examples() {
    let up = Up::ephemeral().await;
    let assistant = Assistant::start(&up, &[]).await;
    assert_eq!(
        assistant.offered(),
        [
            "explain",
            "feedback",
            "get_materials",
            "get_prompt",
            "get_status",
            "intent_approve",
            "intent_feedback",
            "intent_list",
            "intent_reject",
            "intent_resolve",
            "intent_retract",
            "rate_output",
            "search_feedback",
        ]
    );
    for tool in &assistant.tools {
        let schemas = format!("{}{}", tool["inputSchema"], tool["outputSchema"]);
        assert!(
            !schemas.contains("$ref") && !schemas.contains("$defs"),
            "{schemas}"
        );
        assert_eq!(tool["outputSchema"]["type"], "object", "{tool}");
        let (reads, destroys, may_repeat) = match tool["name"].as_str().expect("a name") {
            "intent_feedback" | "rate_output" | "search_feedback" => (false, false, false),
            "feedback" => (false, true, false),
            "intent_approve" | "intent_reject" | "intent_retract" => (false, true, true),
            _ => (true, false, true),
        };
        let hints = json!({
            "readOnlyHint": reads, "destructiveHint": destroys, "idempotentHint": may_repeat, "openWorldHint": false,
        });
        assert_eq!(tool["annotations"], hints, "{tool}");
        let description = tool["description"].as_str().expect("a description");
        let examples = description.lines().filter(|line| line.starts_with('{'));
        assert_eq!(examples.count(), 3, "{description}");
    }
    let feedback = &assistant.tools[6];
    assert_eq!(
        feedback["inputSchema"]["properties"]["scope"]["enum"],
        json!(["global", "user"])
    );
    let described = feedback["description"].as_str().expect("a description");
    for words in [
        "leave out what you were not told; never invent an id",
        "the part that names the action",
        "for an entity the name alone",
        "ids that a look-up gave",
    ] {
        assert!(described.contains(words), "{words}: {described}");
    }
    assistant.conversation.end().await;
    let some = Assistant::start(&up, &["--tools", "search,outputs"]).await;
    assert_eq!(some.offered(), ["get_prompt", "rate_output", "search_feedback"]);
    some.conversation.end().await;
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
            json!({"input": "Set up a CSA", "maps_to": "create_isda", "type": "verb_correction"}),
        ),
        ("learning_type", json!("invocation_phrase")),
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
    assert_eq!(
        (
            &retracted["retracted"],
            &retracted["still_applies"],
            &retracted["why"]
        ),
        (
            &json!(true),
            &json!(false),
            &json!("2 other voters support it, and 3 are needed")
        ),
        "{retracted}"
    );
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
        (&prohibited["state"], &prohibited["learning_type"]),
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
async fn a_process_that_names_nobody_votes_once_and_three_of_them_teach() {
    let up = Up::ephemeral().await;
    let mut unnamed = isda("");
    unnamed["context"] = json!({});
    let mut last = Value::Null;
    for process in 1..=3 {
        let mut assistant = Assistant::start(&up, &[]).await;
        for _ in 0..2 {
            last = assistant.succeed("intent_feedback", unnamed.clone()).await;
            assert_eq!(last["reporter_count"], process, "{last}");
        }
        assistant.conversation.end().await;
    }
    assert_eq!(last["state"], "applied", "{last}");

    // Nothing can be learned for a session alone.
    let mut assistant = Assistant::start(&up, &[]).await;
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
            "user_explanation": "as we say",
            "context": {"domain": "trading"},
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
    let vote = &candidate["votes"][0];
    assert_eq!(
        (&vote["reporter"], &vote["explanation"], &vote["context"]),
        (&json!("ana"), &json!("as we say"), &json!({"domain": "trading"})),
        "{candidate}"
    );
    for field in ["candidates[].votes[].explanation", "candidates[].votes[].context"] {
        let marked = listed["texts_of_others"].as_array().expect("names");
        assert!(marked.contains(&json!(field)), "{listed}");
    }
    let id = candidate["candidate_id"].clone();
    let outdated = json!({"candidate_id": id, "etag": "0"});
    let refused = assistant.refused("intent_approve", outdated).await;
    assert_eq!(refused["reason"], "ETAG_MISMATCH", "{refused}");
    let without_reason = json!({"candidate_id": id, "reason": " "});
    let refused = assistant.refused("intent_reject", without_reason).await;
    assert_eq!(refused["fieldViolations"][0]["field"], "reason", "{refused}");
    assert_eq!(assistant.asked, [""; 0], "nobody is asked what can't be done");

    // The person is shown what changes; whoever says no, or can't be asked, changes nothing.
    let approval = json!({"candidate_id": id});
    assistant.person = json!({"action": "decline"});
    let refused = assistant.refused("intent_approve", approval.clone()).await;
    assert_eq!(refused["reason"], "PERSON_DECLINED", "{refused}");
    assistant.person = json!({"action": "accept", "content": {"confirmed": false}});
    let (_, refused) = assistant.call("intent_approve", approval.clone()).await;
    let told = message(&refused);
    assert!(told.contains("without the tick that says yes"), "{told}");
    let question = assistant.asked.last().expect("a question");
    for words in [
        "Apply this for everybody",
        "book trade 3 → book_trade",
        "1 voter supports it",
    ] {
        assert!(question.contains(words), "{question}");
    }
    assert!(!question.contains("Yes applies nothing yet"), "{question}");
    assistant.person = json!({"action": "accept", "content": {"confirmed": true}});
    let mut alone = Assistant::with(&up, &[], json!({})).await;
    for tool in ["intent_approve", "intent_reject"] {
        let refused = alone
            .refused(tool, json!({"candidate_id": id, "reason": "retired"}))
            .await;
        assert_eq!(refused["reason"], "PERSON_NOT_ASKED", "{refused}");
    }
    let shared = json!({"task_id": "t", "action": "domain_block", "args": {"domain_pattern": "github.io", "reason": "r"}});
    let (_, refused) = alone.call("feedback", shared).await;
    assert!(
        message(&refused).contains("emend evidence domains block"),
        "how it is done otherwise: {refused}"
    );
    alone.conversation.end().await;
    let listed = assistant
        .succeed("intent_list", json!({"phrase": "book trade 3"}))
        .await;
    assert_eq!(listed["candidates"][0]["status"], "pending", "{listed}");
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
    let asked = assistant.asked.len();
    let refused = assistant
        .refused("intent_approve", json!({"candidate_id": id}))
        .await;
    assert_eq!(refused["reason"], "ALREADY_APPLIED", "{refused}");
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
    let again = json!({"candidate_id": id, "reason": "retired"});
    let refused = assistant.refused("intent_reject", again).await;
    assert_eq!(refused["reason"], "ALREADY_REJECTED", "{refused}");
    assert_eq!(
        assistant.asked.len(),
        asked + 1,
        "of three calls one could be done"
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
    assistant.succeed("intent_resolve", json!({"phrase": "a"})).await;
    assistant.conversation.end().await;
}
