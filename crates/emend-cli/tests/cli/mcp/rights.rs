//! What a token's grants change.

use std::{fmt::Write as _, fs};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::Assistant;
use crate::harness::{Up, run};

/// Services that know these callers, and the directory of their tokens.
pub(in crate::mcp) async fn with_callers(callers: &[(&str, &str)]) -> (Up, TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut known = String::new();
    let relay = ("feedback-svc", r#"roles = ["ingester"], namespaces = "*""#);
    for (name, grant) in callers.iter().chain([&relay]) {
        let made = run(&["admin", "token", "--json"]).await.ok().json();
        let part = |part: &str| made[part].as_str().expect("a text").to_owned();
        fs::write(directory.path().join(name), part("token")).expect("a file");
        let _ = writeln!(
            known,
            "[[principals]]\nname = \"{name}\"\ntoken_sha256 = [\"{}\"]\ngrants = [{{ {grant} }}]",
            part("tokenSha256")
        );
    }
    fs::write(directory.path().join("auth.toml"), known).expect("a file");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let up = Up::start(&[
        "--ephemeral",
        "--auth-config",
        &path("auth.toml"),
        "--learning-token-file",
        &path("feedback-svc"),
    ])
    .await;
    (up, directory)
}

fn phrase(reporter: &str) -> Value {
    json!({
        "feedback_type": "phrase_mapping",
        "original_input": "book a trade",
        "correct_choice": "book_trade",
        "context": {"reporter": reporter},
    })
}

/// The tools that docs/mcp.md says a role may use.
fn documented(role: &str) -> Vec<&'static str> {
    const PAGE: &str = include_str!("../../../../../docs/mcp.md");
    let rows = PAGE.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match &cells[..] {
            ["", tool, _, _, needed, ""] if *needed == role => tool.strip_prefix('`')?.strip_suffix('`'),
            _ => None,
        }
    });
    let mut tools: Vec<&str> = rows.collect();
    tools.sort_unstable();
    tools
}

#[tokio::test]
async fn a_token_sees_its_own_tools_and_acts_as_itself_unless_it_may_act_for_users() {
    let (up, directory) = with_callers(&[
        ("bot", r#"roles = ["reporter"], namespaces = "*""#),
        (
            "team",
            r#"roles = ["reporter"], namespaces = "*", act_for_users = true"#,
        ),
        ("rita", r#"roles = ["reviewer"], namespaces = "*""#),
        ("node", r#"roles = ["subscriber"], namespaces = "*""#),
    ])
    .await;
    let token = |name: &str| directory.path().join(name).display().to_string();

    let mut bot = Assistant::start(&up, &["--token-file", &token("bot")]).await;
    assert_eq!(bot.offered(), documented("reporter"));
    assert_eq!(
        bot.offered(),
        [
            "feedback",
            "intent_feedback",
            "intent_retract",
            "rate_output",
            "search_feedback"
        ]
    );
    let mut last = Value::Null;
    for reporter in ["invented-1", "invented-2", "invented-3"] {
        last = bot.succeed("intent_feedback", phrase(reporter)).await;
    }
    assert_eq!(
        (&last["reporter_count"], &last["state"]),
        (&json!(1), &json!("pending")),
        "{last}"
    );
    assert!(super::message(&last).contains("the vote of bot"), "{last}");
    let mut own = phrase("mia");
    own["scope"] = json!("user");
    let (failed, refused) = bot.call("intent_feedback", own).await;
    assert!(
        failed
            && super::message(&refused).contains("`scope`")
            && super::message(&refused).contains("act_for_users"),
        "{refused}"
    );
    // What it is not offered is refused by the service, which names the role.
    let (failed, refused) = bot.call("intent_resolve", json!({"phrase": "a"})).await;
    assert!(
        failed && super::message(&refused).contains("needs the role subscriber"),
        "{refused}"
    );
    let id = last["feedback_id"].clone();
    let retracted = bot.succeed("intent_retract", json!({"feedback_id": id})).await;
    assert_eq!(retracted["still_applies"], Value::Null, "{retracted}");
    bot.conversation.end().await;

    let mut team = Assistant::start(&up, &["--token-file", &token("team")]).await;
    for (reporter, voters) in [("ana", 2), ("ana", 2)] {
        last = team.succeed("intent_feedback", phrase(reporter)).await;
        assert_eq!(
            last["reporter_count"], voters,
            "beside the bot's other votes: {last}"
        );
    }
    team.conversation.end().await;

    // The command line's reporter is not sent where it would be refused.
    let mut rita = Assistant::start(&up, &["--token-file", &token("rita"), "--reporter", "ana"]).await;
    assert_eq!(rita.offered().len(), 13);
    let candidate = json!({"candidate_id": last["candidate_id"], "by": "dana"});
    let (failed, refused) = rita.call("intent_approve", candidate).await;
    assert!(
        failed
            && super::message(&refused).contains("`by`")
            && super::message(&refused).contains("act_for_users"),
        "{refused}"
    );
    let approved = rita
        .succeed("intent_approve", json!({"candidate_id": last["candidate_id"]}))
        .await;
    assert_eq!(
        (&approved["status"], &approved["decided_by"]),
        (&json!("applied"), &json!("rita")),
        "{approved}"
    );
    rita.conversation.end().await;

    let node = Assistant::start(&up, &["--token-file", &token("node")]).await;
    assert_eq!(node.offered(), ["get_prompt", "get_status", "intent_resolve"]);
    assert_eq!(node.offered(), documented("subscriber"));
    node.conversation.end().await;
}

#[tokio::test]
async fn a_wrong_token_or_namespace_is_said_at_the_start() {
    let (up, directory) = with_callers(&[("bot", r#"roles = ["reporter"], namespaces = ["shop"]"#)]).await;
    fs::write(directory.path().join("stranger"), "guessed").expect("a file");
    let token = |name: &str| directory.path().join(name).display().to_string();
    for (name, namespace, expected) in [
        ("stranger", "shop", "CREDENTIALS_NOT_ACCEPTED"),
        ("bot", "other", "its grants reach shop"),
        ("bot", "Not A Name", "namespace"),
    ] {
        let ended = up
            .run(&["mcp", "--token-file", &token(name), "--namespace", namespace])
            .await;
        assert_ne!(ended.code, 0, "{ended:?}");
        assert!(ended.stderr.contains(expected), "{ended:?}");
    }
    let bot = Assistant::start(&up, &["--token-file", &token("bot"), "--namespace", "shop"]).await;
    bot.conversation.end().await;
}

#[tokio::test]
async fn a_person_is_told_where_yes_is_the_first_of_two_approvals() {
    let (up, directory) = with_callers(&[
        ("rita", r#"roles = ["reviewer"], namespaces = "*""#),
        ("boss", r#"roles = ["admin"], namespaces = "*""#),
    ])
    .await;
    let token = |name: &str| directory.path().join(name).display().to_string();
    let boss = token("boss");
    let two = [
        "policy",
        "set",
        "phrase",
        "--reviewers-needed",
        "2",
        "--token-file",
        &boss,
    ];
    up.run(&two).await.ok();
    let mut rita = Assistant::start(&up, &["--token-file", &token("rita")]).await;
    let said = rita.succeed("intent_feedback", phrase("ana")).await;
    let approved = rita
        .succeed("intent_approve", json!({"candidate_id": said["candidate_id"]}))
        .await;
    assert_eq!(
        approved["status"], "awaiting_review",
        "as the question said: {approved}"
    );
    let question = rita.asked.last().expect("a question");
    assert!(
        question.contains("Yes applies nothing yet: it is the first of two approvals"),
        "{question}"
    );
    rita.conversation.end().await;
}
