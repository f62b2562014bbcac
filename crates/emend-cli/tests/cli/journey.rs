//! From a correction to what nodes answer, using only the command.

use std::process::Stdio;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::harness::{Conversation, Up, command_of, run};

async fn submit(up: &Up, reporter: &str, args: &[&str]) -> serde_json::Value {
    let args = [&["submit"], args, &["--reporter", reporter, "--wait", "--json"]].concat();
    up.run(&args).await.ok().json()
}

#[tokio::test]
async fn a_correction_becomes_what_nodes_answer() {
    let up = Up::ephemeral().await;
    let verb = [
        "verb",
        "Set up a CSA",
        "create_isda",
        "--instead-of",
        "create_csa",
        "--context",
        "topic=otc",
    ];

    // The third of three votes applies it.
    let first = submit(&up, "ana", &verb).await;
    assert_eq!(first["outcome"]["state"], "OUTCOME_STATE_PENDING");
    assert_eq!(first["outcome"]["confirmationsNeeded"], 2);
    assert_eq!(first["context"]["topic"], "otc");
    submit(&up, "ben", &verb).await;
    let again = submit(&up, "ben", &verb).await;
    assert_eq!(
        again["outcome"]["reporterCount"], 2,
        "the same person counts once"
    );
    let nothing = up.run(&["resolve", "set up a csa", "--json"]).await.ok().json();
    assert!(nothing.get("match").is_none(), "{nothing}");
    let third = submit(&up, "chloe", &verb).await;
    assert_eq!(third["outcome"]["state"], "OUTCOME_STATE_APPLIED");
    assert_eq!(third["outcome"]["autoApplied"], true);
    let revision = third["outcome"]["revision"].to_string();

    // The server's answer, the resource, the trail and the candidate agree.
    let resolved = up
        .run(&["resolve", " SET UP  A CSA", "--min-revision", &revision, "--json"])
        .await
        .ok()
        .json();
    assert_eq!(resolved["match"]["value"], "create_isda");
    let resource = up
        .run(&["resources", "get", "phrase", "set up a csa", "--json"])
        .await
        .ok()
        .json();
    assert_eq!(resource["value"]["invocationPhrase"]["verb"], "create_isda");
    assert_eq!(resource["value"]["display"], "Set up a CSA");
    let trail = up.run(&["log", "--json"]).await.ok().json();
    assert_eq!(
        (&trail["revision"], &trail["cause"]),
        (&third["outcome"]["revision"], &json!("CAUSE_VOTES"))
    );
    assert_eq!(
        trail["actor"],
        json!({"caller": "anonymous", "onBehalfOf": "chloe"})
    );
    let candidates = up
        .run(&["candidates", "list", "--status", "applied", "--json"])
        .await
        .ok()
        .json();
    let id = candidates["candidateId"].as_str().expect("an id");
    let shown = up.run(&["candidates", "show", id, "--json"]).await.ok().json();
    assert_eq!(shown["votes"].as_array().map(Vec::len), Some(3));
    assert_eq!(shown["candidate"]["occurrenceCount"], 4);

    // After one retraction the votes are too few.
    let retracted = up
        .run(&[
            "retract",
            first["feedbackId"].as_str().expect("an id"),
            "--reason",
            "misread",
            "--wait",
            "--json",
        ])
        .await
        .ok()
        .json();
    assert!(retracted.get("retractedAt").is_some());
    let revision = retracted["outcome"]["revision"].to_string();
    let gone = up
        .run(&[
            "resources",
            "get",
            "phrase",
            "set up a csa",
            "--min-revision",
            &revision,
        ])
        .await;
    assert_eq!(gone.code, 3, "{gone:?}");

    // People read tables.
    for args in [
        &["candidates", "list"][..],
        &["candidates", "show", id],
        &["feedback", "list"],
        &["log"],
        &["nodes"],
        &["policy", "get", "phrase"],
        &["resources", "list"],
        &["outbox", "list"],
    ] {
        let text = up.run(args).await.ok().stdout;
        assert!(!text.trim().is_empty(), "{args:?}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 140),
            "{args:?}: {text}"
        );
    }
}

#[tokio::test]
async fn a_person_approves_reverts_rejects_and_sets_by_hand() {
    let up = Up::ephemeral().await;
    let namespace = ["--namespace", "fund-admin"];
    let run = async |args: &[&str]| up.run(&[args, &namespace, &["--json"]].concat()).await;

    let stored = run(&[
        "submit",
        "phrase",
        "book the trade",
        "book_trade",
        "--reporter",
        "ana",
        "--wait",
    ])
    .await
    .ok()
    .json();
    let id = stored["outcome"]["candidateId"]
        .as_str()
        .expect("an id")
        .to_owned();
    let approved = run(&[
        "candidates",
        "approve",
        &id,
        "--reason",
        "obvious",
        "--by",
        "dana",
    ])
    .await
    .ok()
    .json();
    assert_eq!(approved["candidate"]["status"], "CANDIDATE_STATUS_APPLIED");
    assert_eq!(approved["candidate"]["contestPinned"], true);
    assert_eq!(approved["candidate"]["decidedBy"]["onBehalfOf"], "dana");
    // Approving twice is a conflict.
    let twice = run(&["candidates", "approve", &id]).await;
    assert_eq!(twice.code, 4, "{twice:?}");
    assert!(twice.stderr.contains("FAILED_PRECONDITION"), "{twice:?}");
    // Of several that are refused, each says why, once.
    let unknown = [
        "00000000-0000-5000-8000-000000000001",
        "00000000-0000-5000-8000-000000000002",
        "00000000-0000-5000-8000-000000000003",
    ];
    let several = run(&[&["candidates", "approve"][..], &unknown].concat()).await;
    assert_eq!(several.code, 3, "{several:?}");
    for id in unknown {
        assert_eq!(several.stderr.matches(id).count(), 1, "{id}: {several:?}");
    }

    // Once reverted, it does not come back by votes.
    let revision = approved["revision"].to_string();
    let reverted = run(&["revert", &revision, "--reason", "not so obvious"])
        .await
        .ok()
        .json();
    assert!(reverted["revision"].as_i64() > approved["revision"].as_i64());
    for reporter in ["ben", "chloe", "dev"] {
        run(&[
            "submit",
            "phrase",
            "book the trade",
            "book_trade",
            "--reporter",
            reporter,
            "--wait",
        ])
        .await
        .ok();
    }
    let waiting = run(&["candidates", "list", "--status", "awaiting_review"])
        .await
        .ok()
        .json();
    assert_eq!(waiting["candidateId"].as_str(), Some(&*id));
    // An edited approval is a candidate of its own.
    let edited = run(&["candidates", "approve", &id, "--instead", "book_block_trade"])
        .await
        .ok()
        .json();
    assert_eq!(edited["candidate"]["editedFrom"].as_str(), Some(&*id));
    let rejected = run(&["candidates", "reject", &id, "--reason", "retired"])
        .await
        .ok()
        .json();
    assert_eq!(rejected["candidate"]["status"], "CANDIDATE_STATUS_REJECTED");

    // Set by hand, and changed only with the etag that was seen.
    let put = run(&[
        "resources",
        "set",
        "entity",
        "J. Smith",
        "jane.smith",
        "--by",
        "dana",
    ])
    .await
    .ok()
    .json();
    let etag = put["resource"]["etag"].as_str().expect("an etag").to_owned();
    run(&["resources", "set", "entity", "J. Smith", "john.smith"])
        .await
        .ok();
    let stale = run(&["resources", "delete", "entity", "J. Smith", "--etag", &etag]).await;
    assert_eq!(stale.code, 4, "{stale:?}");
    run(&["resources", "delete", "entity", "J. Smith"]).await.ok();

    // The trail lists everything, newest first.
    let causes: Vec<_> = run(&["log"])
        .await
        .ok()
        .lines()
        .iter()
        .map(|revision| revision["cause"].clone())
        .collect();
    assert_eq!(
        causes,
        [
            "CAUSE_OPERATOR",
            "CAUSE_OPERATOR",
            "CAUSE_OPERATOR",
            "CAUSE_REVIEW",
            "CAUSE_REVERT",
            "CAUSE_REVIEW"
        ]
    );
    // Filtered by key, and without other namespaces.
    assert_eq!(run(&["log", "--key", "j. SMITH"]).await.ok().lines().len(), 3);
    assert_eq!(up.run(&["log", "--json"]).await.ok().lines().len(), 0);
}

#[tokio::test]
async fn a_policy_sets_how_many_votes_apply_a_value() {
    let up = Up::ephemeral().await;
    let set = up
        .run(&[
            "policy",
            "set",
            "phrase",
            "--threshold",
            "1",
            "--half-life",
            "90d",
            "--json",
        ])
        .await
        .ok()
        .json();
    assert_eq!(
        (&set["threshold"], &set["version"], &set["halfLife"]),
        (&json!(1), &json!(1), &json!("7776000s"))
    );
    let stored = submit(&up, "ana", &["phrase", "a", "b"]).await;
    assert_eq!(stored["outcome"]["state"], "OUTCOME_STATE_APPLIED");
    let never = submit(&up, "ana", &["prohibit", "a", "b"]).await;
    assert_eq!(
        never["outcome"]["state"], "OUTCOME_STATE_PENDING",
        "another kind, another policy"
    );
    let wrong = up
        .run(&["policy", "set", "phrase", "--threshold", "5000", "--json"])
        .await;
    assert_eq!(wrong.code, 2);
    let error: serde_json::Value = serde_json::from_str(&wrong.stderr).expect("JSON");
    assert_eq!(error["error"]["code"], "INVALID_ARGUMENT");
    assert!(
        error["error"]["fieldViolations"][0]["field"]
            .as_str()
            .is_some_and(|field| field.ends_with("threshold"))
    );
}

#[tokio::test]
async fn a_users_preference_applies_to_that_user_only() {
    let up = Up::ephemeral().await;
    let stored = submit(&up, "mia", &["phrase", "my pack", "send_nav_pack", "--for-me"]).await;
    assert_eq!(stored["outcome"]["state"], "OUTCOME_STATE_APPLIED");
    let hers = up
        .run(&["resolve", "my pack", "--user", "mia", "--json"])
        .await
        .ok()
        .json();
    assert_eq!(hers["match"]["scope"], "SCOPE_USER");
    let others = up.run(&["resolve", "my pack", "--json"]).await.ok().json();
    assert!(others.get("match").is_none());
    assert_eq!(
        up.run(&["resources", "list", "--user", "mia", "--json"])
            .await
            .ok()
            .lines()
            .len(),
        1
    );
    assert_eq!(
        up.run(&["resources", "list", "--json"]).await.ok().lines().len(),
        0
    );
}

#[tokio::test]
async fn watch_prints_each_change_as_it_is_applied() {
    let up = Up::ephemeral().await;
    let mut watch = Conversation::start(&up.args(&["watch", "--json"]));
    watch.receive_until(|event| event["event"] == "snapshot").await;
    let stored = submit(
        &up,
        "ana",
        &["entity", "J. Smith", "jane.smith", "--instead-of", "john.smith"],
    )
    .await;
    let change = watch.receive_until(|event| event["event"] == "change").await;
    assert_eq!(change["revision"], stored["outcome"]["revision"]);
    assert_eq!(
        (&change["value"], &change["key"]["key"]),
        (&json!("jane.smith"), &json!("j. smith"))
    );
    assert!(
        change["commitToAppliedMs"].as_i64().is_some_and(|ms| ms < 60_000),
        "{change}"
    );
    assert!(change["feedbackToAppliedMs"].is_i64());
    assert_eq!(change["display"], "J. Smith");
    let stored = submit(&up, "ana", &["entity", "big blue", "ibm"]).await;
    let change = watch.receive_until(|event| event["event"] == "change").await;
    assert_eq!(change["display"], "big blue", "also where it is the key");

    // The watcher is listed among the nodes while it runs.
    let nodes = up.run(&["nodes", "--json"]).await.ok().json();
    assert!(
        nodes["info"]["id"]
            .as_str()
            .is_some_and(|id| id.starts_with("watch-"))
    );

    // With `--until`, a watcher ends by itself once it has caught up.
    let revision = stored["outcome"]["revision"].to_string();
    let ended = up.run(&["watch", "--until", &revision]).await.ok();
    let early = up
        .run(&["watch", "--until", "999999", "--timeout", "500ms"])
        .await;
    assert!(early.code == 5 && early.stderr.contains("--timeout"), "{early:?}");
    // What may pass is tried again until then.
    let nobody = [
        "--until",
        "1",
        "--timeout",
        "500ms",
        "--learning-addr",
        "127.0.0.1:1",
    ];
    let away = run(&[&["watch"], &nobody[..]].concat()).await;
    assert!(away.code == 5 && away.stderr.contains("--timeout"), "{away:?}");
    assert!(away.stdout.starts_with("disconnected ("), "{away:?}");
    assert!(ended.stdout.contains("2 resources ("), "{ended:?}");
}

#[tokio::test]
async fn every_violation_is_reported_and_the_exit_code_says_what_failed() {
    let up = Up::ephemeral().await;
    let bad = up
        .run(&[
            "submit",
            "verb",
            " ",
            "same",
            "--instead-of",
            "same",
            "--request-id",
            "no spaces",
        ])
        .await;
    assert_eq!(bad.code, 2, "{bad:?}");
    for field in ["request_id", "original_input", "correct_choice"] {
        assert!(bad.stderr.contains(field), "{field}: {}", bad.stderr);
    }
    assert!(bad.stdout.is_empty());
    let none = up
        .run(&["feedback", "get", "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10"])
        .await;
    assert_eq!(none.code, 3, "{none:?}");
    let reused = ["--request-id", "once", "--reporter", "ana"];
    up.run(&[&["submit", "phrase", "a", "b"], &reused[..]].concat())
        .await
        .ok();
    up.run(&[&["submit", "phrase", "a", "b"], &reused[..]].concat())
        .await
        .ok();
    let conflict = up
        .run(&[&["submit", "phrase", "a", "c"], &reused[..]].concat())
        .await;
    assert_eq!(conflict.code, 4, "{conflict:?}");
    assert!(conflict.stderr.contains("REQUEST_ID_REUSED"));

    let away = run(&["candidates", "list", "--learning-addr", "127.0.0.1:1"]).await;
    assert_eq!(away.code, 5, "{away:?}");
    assert!(away.stderr.contains("127.0.0.1:1") && away.stderr.contains("emend up"));
    assert_eq!(run(&["candidates", "list", "--kind", "verbs"]).await.code, 2);
    let help = run(&["--help"]).await.ok();
    assert!(help.stdout.contains("Exit codes:"));
}

/// `script` runs a command in a terminal, which has no size unless the one that it is run in has.
#[tokio::test]
async fn in_a_terminal_without_a_size_lines_are_as_long_as_columns_says() {
    let emend = env!("CARGO_BIN_EXE_emend");
    let shown = async |columns: &str| {
        let lists = format!("{emend} doctor --list; {emend} doctor --data-dir /nowhere");
        let output = command_of("script")
            .args(["--quiet", "--command", &lists, "/dev/null"])
            .env("COLUMNS", columns)
            .stdin(Stdio::null())
            .output();
        let shown = output.await.expect("script(1) of util-linux");
        let shown = String::from_utf8(shown.stdout).expect("UTF-8");
        assert!(shown.contains("there is no database"), "{shown}");
        shown.lines().map(|line| line.trim_end().chars().count()).max()
    };
    assert!(shown("60").await.is_some_and(|longest| longest <= 60));
    assert!(
        shown("0").await.is_some_and(|longest| longest > 100),
        "it is not known"
    );
    // What is no terminal has no columns.
    let unseen = command_of(emend)
        .args(["doctor", "--data-dir", "/nowhere"])
        .env("COLUMNS", "20")
        .stdin(Stdio::null())
        .output();
    let unseen = unseen.await.expect("emend");
    let unseen = String::from_utf8(unseen.stderr).expect("UTF-8");
    assert!(unseen.contains("there is no database"), "{unseen}");
}

#[tokio::test]
async fn why_a_database_can_not_be_reached_is_said_with_its_address() {
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let nobody = closed.local_addr().expect("an address");
    drop(closed);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let web = listener.local_addr().expect("an address");
    let answering = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            // What closes with something unread takes its answer back.
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    });
    for command in [&["doctor"][..], &["admin", "new-epoch"]] {
        for (address, says) in [
            (nobody, "Connection refused"),
            (web, "what listens there is no PostgreSQL"),
        ] {
            let url = format!("postgres://emend:s3cret@{address}/emend");
            let refused = run(&[command, &["--database-url", &url]].concat()).await;
            assert_ne!(refused.code, 0, "{refused:?}");
            for part in [says, &address.to_string()] {
                assert!(refused.stderr.contains(part), "{part}: {refused:?}");
            }
            assert!(!refused.stderr.contains("s3cret"), "{refused:?}");
        }
    }
    answering.abort();
}

#[tokio::test]
async fn a_list_whose_filter_matches_nothing_says_so() {
    let up = Up::ephemeral().await;
    for (list, none) in [
        (
            &["candidates", "list", "--key", "x"][..],
            "No candidates with the status awaiting_review in the namespace \"default\" match.",
        ),
        (
            &["resources", "list", "--kind", "entity"],
            "No resources for everybody (of one user's own: --user ID) in the namespace \"default\" match.",
        ),
        (
            &["log", "--key", "x"],
            "No revisions in the namespace \"default\" match.",
        ),
        (
            &["feedback", "list", "--reporter", "x"],
            "No feedback in the namespace \"default\" match.",
        ),
        (&["nodes", "--zone", "x"], "No node that has been seen matches."),
        (
            &["outputs", "ratings", "list", "--reporter", "x"],
            "No ratings in the namespace \"default\" match.",
        ),
        (
            &["outputs", "prompts", "list", "--label", "x"],
            "No prompts in the namespace \"default\" match.",
        ),
        (
            &["outputs", "prompts", "list", "--status", "pending"],
            "No proposed prompts in the namespace \"default\" match.",
        ),
        (
            &["outputs", "prompts", "list", "INTERPRET", "--status", "rejected"],
            "No versions of a prompt for \"INTERPRET\" in the namespace \"default\" match.",
        ),
        (
            &[
                "outputs",
                "profile",
                "suggestions",
                "--user",
                "mia",
                "--status",
                "rejected",
            ],
            "No suggestions for the user \"mia\" in the namespace \"default\" match.",
        ),
        (
            &["evidence", "domains", "list", "--pattern", "a.example"],
            "No decisions about domains in the namespace \"default\" match.",
        ),
        (
            &["evidence", "samples", "stats", "--task", "nope"],
            "No reviewed edges in the namespace \"default\" match.",
        ),
        (
            &["evidence", "samples", "stats"],
            "No reviewed edges in the namespace \"default\".",
        ),
        (
            &["search", "queries", "list", "--type", "X"],
            "No queries in the namespace \"default\" match.",
        ),
        (
            &["search", "stats", "--type", "X"],
            "No ratings of search answers in the namespace \"default\" match.",
        ),
    ] {
        let printed = up.run(list).await.ok().stdout;
        assert_eq!(printed.lines().next(), Some(none), "{list:?}");
    }
}

#[tokio::test]
async fn without_dead_letters_nothing_is_redriven() {
    let up = Up::ephemeral().await;
    assert!(
        up.run(&["outbox", "list", "--json"])
            .await
            .ok()
            .lines()
            .is_empty()
    );
    assert_eq!(
        up.run(&["outbox", "redrive", "--json"]).await.ok().json()["redrivenCount"],
        0
    );
}
