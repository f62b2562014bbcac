//! Resources: what is listed, read and told of.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Assistant, isda, rights::with_callers};
use crate::harness::{Conversation, Up};

const GRAPH: &str = r#"{"page": {"page_id": "page:1", "domain": "blog.example"}}
    {"claim": {"claim_id": "claim:1/a", "task_id": "t-17", "text": "a"}}
    {"edge": {"edge_id": "edge:7", "relation": "supports", "source": "page:1", "target": "claim:1/a", "task_id": "t-17"}}"#;
const PHRASES: &str = "emend://default/learned/invocation_phrase";

async fn with_prompt(up: &Up) {
    let words = [
        "outputs",
        "prompts",
        "set",
        "INTERPRET",
        "-",
        "--variable",
        "day=today",
    ];
    up.run_with(&words, "Say what {{day}} means.").await.ok();
}

fn uris(listed: &Value, list: &str, field: &str) -> Vec<String> {
    let listed = listed[list].as_array().expect("a list").iter();
    listed
        .map(|listed| listed[field].as_str().expect("an address").to_owned())
        .collect()
}

#[tokio::test]
async fn what_was_learned_is_listed_and_read_page_by_page() {
    let up = Up::ephemeral().await;
    up.run_with(&["evidence", "import", "-"], GRAPH).await.ok();
    with_prompt(&up).await;
    let mut rows = String::from("type,input,choice\n");
    for n in 0..150 {
        // Writing to a String can't fail.
        let _ = writeln!(rows, "phrase,phrase {n:03},verb_{n}");
    }
    up.run_with(&["import", "-", "--format", "csv"], &rows).await.ok();
    let mut assistant = Assistant::start(&up, &[]).await;

    let listed = uris(
        &assistant.ask("resources/list", json!({})).await,
        "resources",
        "uri",
    );
    for expected in [
        PHRASES,
        "emend://default/pending",
        "emend://default/learned/domain_rule",
        "emend://default/prompts/INTERPRET",
    ] {
        assert!(listed.iter().any(|uri| uri == expected), "{expected}: {listed:?}");
    }
    assert!(!listed.iter().any(|uri| uri.contains("profile")), "{listed:?}");
    let templates = assistant.ask("resources/templates/list", json!({})).await;
    assert_eq!(
        uris(&templates, "resourceTemplates", "uriTemplate"),
        [
            "emend://{namespace}/learned/{kind}{?page_token}",
            "emend://{namespace}/pending{?page_token}",
            "emend://{namespace}/claims/{id}{?page_token}",
            "emend://{namespace}/prompts/{target}",
        ]
    );

    let mut keys = Vec::new();
    let mut next = json!(PHRASES);
    let mut sizes = Vec::new();
    while let Some(uri) = next.as_str().map(str::to_owned) {
        let page = assistant.read(&uri).await;
        let learned = page["learned"].as_array().expect("a list");
        sizes.push(learned.len());
        keys.extend(learned.iter().map(|learned| learned["key"].clone()));
        assert_eq!(
            learned[0]["value"].as_str().map(|value| &value[..5]),
            Some("verb_")
        );
        next = page["next"].clone();
    }
    assert_eq!(sizes, [100, 50]);
    let expected: Vec<Value> = (0..150).map(|n| json!(format!("phrase {n:03}"))).collect();
    assert_eq!(keys, expected, "each once");

    assistant.succeed("intent_feedback", isda("chat-1")).await;
    let pending = assistant.read("emend://default/pending").await;
    let candidate = &pending["candidates"][0];
    assert_eq!(
        (
            &candidate["phrase"],
            &candidate["votes"][0]["reporter"],
            &pending["next"]
        ),
        (&json!("set up a csa"), &json!("session:chat-1"), &Value::Null),
        "{pending}"
    );
    let claim = assistant.read("emend://default/claims/claim%3A1%2Fa").await;
    assert_eq!(
        (&claim["claim"]["text"], &claim["edges"][0]["edge_id"]),
        (&json!("a"), &json!("edge:7")),
        "{claim}"
    );
    let prompt = assistant.read("emend://default/prompts/INTERPRET").await;
    let current = &prompt["prompts"][0];
    assert_eq!(
        (&current["label"], &current["text"], &current["variables"]),
        (
            &json!("production"),
            &json!("Say what {{day}} means."),
            &json!([{"name": "day", "default": "today"}])
        ),
        "{prompt}"
    );
    // Another namespace has its own, and what is not there is said to be missing.
    let other = assistant.read("emend://other/learned/invocation_phrase").await;
    assert_eq!(
        (&other["learned"], &other["namespace"]),
        (&json!([]), &json!("other"))
    );
    for missing in [
        "emend://default/claims/none",
        "emend://default/prompts/none",
        "emend://default/x",
    ] {
        let answer = assistant.request("resources/read", json!({"uri": missing})).await;
        assert_eq!(answer["error"]["code"], -32_002, "{missing}: {answer}");
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(!message.contains("(NOT_FOUND)"), "said once: {answer}");
    }
    assistant.conversation.end().await;
}

#[tokio::test]
async fn a_refused_read_is_logged_in_words() {
    let up = Up::ephemeral().await;
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a client", "version": "1"},
    }});
    let read = |id: i64, uri: &str| json!({"jsonrpc": "2.0", "id": id, "method": "resources/read", "params": {"uri": uri}});
    let lines = [
        hello,
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        read(2, "emend://default/learned/verb"),
        read(3, "emend://default/claims/none"),
    ];
    let lines = lines.map(|line| format!("{line}\n")).concat();
    let ended = up
        .run_with(&["mcp", "--log-level", "info", "--log-format", "json"], &lines)
        .await
        .ok();
    let refused = ended.lines();
    let refused = refused.iter().filter(|answer| answer["error"]["code"] == -32_002);
    assert_eq!(refused.count(), 2, "{ended:#?}");
    let logged = ended
        .stderr
        .lines()
        .filter(|line| line.contains("an assistant's read was refused"));
    assert_eq!(logged.count(), 2, "{ended:#?}");
    for of_rust in ["ErrorData", "ErrorCode", "clientInfo", "client_info"] {
        assert!(!ended.stderr.contains(of_rust), "{ended:#?}");
    }
}

#[tokio::test]
async fn a_session_is_told_of_what_it_subscribes_to_until_it_no_longer_does() {
    let up = Up::ephemeral().await;
    up.run_with(&["evidence", "import", "-"], GRAPH).await.ok();
    with_prompt(&up).await;
    let mut assistant = Assistant::start(&up, &[]).await;
    let (claim, prompt) = (
        "emend://default/claims/claim:1/a",
        "emend://default/prompts/INTERPRET",
    );
    for uri in [PHRASES, claim, prompt, "emend://default/pending"] {
        assistant.subscribe(uri).await;
    }
    up.run(&["resources", "set", "phrase", "book", "book_trade"])
        .await
        .ok();
    let mut heard = vec![assistant.hear().await, assistant.hear().await];
    heard.sort();
    assert_eq!(
        heard,
        [PHRASES, "emend://default/pending"],
        "what a person set is decided, too"
    );
    let learned = assistant.read(PHRASES).await;
    assert_eq!(
        learned["learned"][0]["key"], "book",
        "what it was told of is there: {learned}"
    );
    let reject = json!({
        "task_id": "t-17", "action": "claim_reject", "args": {"claim_id": "claim:1/a", "reason": "an advertisement"},
    });
    assistant.succeed("feedback", reject).await;
    let mut heard = vec![assistant.hear().await, assistant.hear().await];
    heard.sort();
    assert_eq!(
        heard,
        [claim, "emend://default/pending"],
        "decided, it is in the queue's history"
    );
    assistant
        .ask("resources/unsubscribe", json!({"uri": claim}))
        .await;
    assistant
        .ask("resources/unsubscribe", json!({"uri": "emend://default/pending"}))
        .await;
    let restore = json!({
        "task_id": "t-17", "action": "claim_restore", "args": {"claim_id": "claim:1/a", "reason": "it was none"},
    });
    assistant.succeed("feedback", restore).await;
    with_prompt(&up).await;
    up.run_with(&["outputs", "prompts", "set", "INTERPRET", "-"], "Another text.")
        .await
        .ok();
    assert_eq!(
        assistant.hear().await,
        prompt,
        "and nothing of the claim before it"
    );
    assistant.conversation.end().await;
}

#[tokio::test]
async fn one_request_listens_to_several_resources_in_the_newest_revision() {
    let up = Up::ephemeral().await;
    let mut conversation = Conversation::start(&up.args(&["mcp"]));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let listen = json!({
        "_meta": meta,
        "notifications": {"resourceSubscriptions": [PHRASES, "https://elsewhere.example/", "emend://default/learned/prohibition"]},
    });
    conversation
        .send(&json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": listen}))
        .await;
    let accepted = conversation
        .receive_until(|message| message["method"] == "notifications/subscriptions/acknowledged")
        .await;
    let ours = &accepted["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(ours.as_array().map(Vec::len), Some(2), "{accepted}");
    // The acknowledgment comes before the watch is open: what is learned until the first notification is told.
    let mut number = 0;
    let told = loop {
        number += 1;
        up.run(&[
            "resources",
            "set",
            "phrase",
            &format!("book {number}"),
            "book_trade",
        ])
        .await
        .ok();
        let read = json!({"_meta": meta, "uri": PHRASES});
        conversation
            .send(
                &json!({"jsonrpc": "2.0", "id": 1_000 + number, "method": "resources/read", "params": read}),
            )
            .await;
        let message = conversation
            .receive_until(|message| {
                message["id"] == 1_000 + number || message["method"] == "notifications/resources/updated"
            })
            .await;
        if message["method"] == "notifications/resources/updated" {
            break message;
        }
    };
    assert_eq!(told["params"]["uri"], PHRASES, "{told}");
    conversation
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
        .await;
    conversation.end().await;
}

#[tokio::test]
async fn resources_and_prompts_are_those_that_the_caller_may_read() {
    let (up, directory) = with_callers(&[
        ("bot", r#"roles = ["reporter"], namespaces = "*""#),
        ("node", r#"roles = ["subscriber"], namespaces = ["shop"]"#),
    ])
    .await;
    let token = |name: &str| directory.path().join(name).display().to_string();
    let mut bot = Assistant::start(&up, &["--token-file", &token("bot"), "--namespace", "shop"]).await;
    for (list, field) in [
        ("resources", "resources"),
        ("resources/templates", "resourceTemplates"),
        ("prompts", "prompts"),
    ] {
        let listed = bot.ask(&format!("{list}/list"), json!({})).await;
        assert_eq!(listed[field], json!([]), "{listed}");
    }
    for uri in ["emend://shop/pending", "emend://shop/learned/prompt"] {
        for method in ["resources/read", "resources/subscribe"] {
            let answer = bot.request(method, json!({"uri": uri})).await;
            assert!(answer["error"]["code"].is_i64(), "{method} {uri}: {answer}");
        }
    }
    bot.conversation.end().await;

    let mut node = Assistant::start(&up, &["--token-file", &token("node"), "--namespace", "shop"]).await;
    let listed = uris(&node.ask("resources/list", json!({})).await, "resources", "uri");
    assert!(
        listed.iter().all(|uri| uri.starts_with("emend://shop/learned/")) && !listed.is_empty(),
        "{listed:?}"
    );
    node.subscribe("emend://shop/learned/synonym").await;
    for uri in ["emend://shop/pending", "emend://default/learned/synonym"] {
        for method in ["resources/read", "resources/subscribe"] {
            let answer = node.request(method, json!({"uri": uri})).await;
            assert!(answer["error"]["code"].is_i64(), "{method} {uri}: {answer}");
        }
    }
    node.conversation.end().await;
}
