//! Erasing what is personal, and settings for how long it is kept.

use serde_json::Value;

use crate::harness::{Completed, Up};

/// A correction by `reporter` with everything personal that a submission may have.
async fn submit(up: &Up, reporter: &str, correction: &[&str]) -> Value {
    let personal = [
        "--reporter",
        reporter,
        "--session",
        "chat-1",
        "--query-id",
        "query-1",
        "--reason",
        "as my neighbour said",
        "--context",
        "desk=left",
        "--wait",
        "--json",
    ];
    up.run(&[&["submit"], correction, &personal].concat())
        .await
        .ok()
        .json()
}

async fn get(up: &Up, id: &str) -> Value {
    up.run(&["feedback", "get", id, "--json"]).await.ok().json()
}

fn id(feedback: &Value) -> &str {
    feedback["feedbackId"].as_str().expect("an id")
}

/// Where the personal parts of a correction are.
const PERSONAL: [&str; 5] = [
    "/reporter/id",
    "/reporter/sessionId",
    "/queryId",
    "/reason",
    "/context/desk",
];

/// Those that a correction still has.
fn personal(feedback: &Value) -> Vec<&str> {
    let shown = |part: &&str| feedback.pointer(part).is_some_and(|shown| *shown != "");
    PERSONAL.into_iter().filter(shown).collect()
}

async fn resolved(up: &Up, args: &[&str]) -> Value {
    let answer = up.run(&[&["resolve"], args, &["--json"]].concat()).await;
    answer.ok().json()["match"]["value"].clone()
}

#[tokio::test]
async fn one_correction_is_redacted_and_keeps_its_vote() {
    let up = Up::ephemeral().await;
    let stored = submit(&up, "ana", &["entity", "J. Smith", "jane.smith"]).await;
    assert_eq!(personal(&stored), PERSONAL, "{stored}");

    // Nobody is asked where nobody can answer.
    let refused = up.run(&["redact", id(&stored)]).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("--yes"), "{refused:?}");
    assert_eq!(personal(&get(&up, id(&stored)).await), PERSONAL);

    let redacted = up.run(&["redact", id(&stored), "--yes", "--wait"]).await.ok();
    assert!(
        redacted.stdout.contains("are erased.") && redacted.stdout.contains(id(&stored)),
        "{redacted:?}"
    );
    let again = up
        .run(&["redact", id(&stored), "--yes", "--wait", "--json"])
        .await;
    let again = again.ok().json();
    for shown in [&again, &get(&up, id(&stored)).await] {
        assert_eq!(personal(shown), [""; 0], "{shown}");
        assert!(shown.get("redactedAt").is_some(), "{shown}");
        assert_eq!(shown["outcome"]["state"], "OUTCOME_STATE_APPLIED", "{shown}");
    }
    let candidate = stored["outcome"]["candidateId"].as_str().expect("an id");
    let candidate = up.run(&["candidates", "show", candidate, "--json"]).await.ok();
    let votes = candidate.json()["votes"].as_array().map(Vec::len);
    assert_eq!(votes, Some(1), "{candidate:?}");
    assert!(!candidate.stdout.contains("\"ana\""), "{candidate:?}");
    assert_eq!(
        resolved(&up, &["j. smith", "--kind", "entity"]).await,
        "jane.smith"
    );

    let unknown = ["redact", "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10", "--yes"];
    assert_eq!(up.run(&unknown).await.code, 3);
}

#[tokio::test]
async fn all_of_a_reporters_corrections_are_redacted_in_one_namespace() {
    let up = Up::ephemeral().await;
    submit(&up, "ana", &["entity", "J. Smith", "jane.smith"]).await;
    submit(&up, "ana", &["phrase", "my pack", "monthly_report", "--for-me"]).await;
    let elsewhere = ["entity", "J. Smith", "joe.smith", "--namespace", "custody"];
    submit(&up, "ana", &elsewhere).await;
    let other = submit(&up, "ben", &["entity", "Acme", "acme.plc"]).await;
    let redact = async |more: &[&str]| -> Completed {
        up.run(&[&["redact", "--reporter", "ana"], more].concat()).await
    };
    let refused = redact(&[]).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("--yes"), "{refused:?}");

    let redacted = redact(&["--yes", "--wait", "--json"]).await.ok().json();
    let counts = ["redactedCount", "remainingCount", "undeliveredCount"];
    assert_eq!(
        counts.map(|count| redacted[count].as_i64()),
        [Some(2), Some(0), Some(0)]
    );
    let repeated = redact(&["--yes", "--wait"]).await.ok().stdout;
    assert!(
        repeated.contains("Redacted 0 corrections by \"ana\"; both services have erased everything"),
        "{repeated}"
    );

    let list = async |more: &[&str]| {
        let args = ["feedback", "list", "--reporter", "ana", "--json"];
        up.run(&[&args, more].concat()).await.ok().lines()
    };
    assert!(list(&[]).await.is_empty(), "nothing is hers any more");
    let kept = list(&["--namespace", "custody"]).await;
    assert_eq!(kept.len(), 1, "another namespace is not touched: {kept:?}");
    assert_eq!(
        personal(&get(&up, id(&other)).await),
        PERSONAL,
        "nor is anybody else"
    );
    assert_eq!(
        resolved(&up, &["j. smith", "--kind", "entity"]).await,
        "jane.smith",
        "what everybody has learned stays"
    );
    assert_eq!(
        resolved(&up, &["my pack", "--user", "ana"]).await,
        Value::Null,
        "what was hers alone is gone"
    );
}

#[tokio::test]
async fn the_retention_of_personal_parts_is_set_and_removed() {
    let up = Up::ephemeral().await;
    let get = async || up.run(&["settings", "get", "--json"]).await.ok().json();
    let set = async |args: &[&str]| up.run(&[&["settings", "set"], args, &["--json"]].concat()).await;
    let initial = get().await;
    assert!(initial.get("personalRetention").is_none(), "{initial}");
    let text = up.run(&["settings", "get"]).await.ok().stdout;
    assert!(text.contains("none: personal parts are kept"), "{text}");

    let decided = ["--reason", "our data protection policy", "--by", "dana"];
    let first = set(&[&["--personal-retention", "90d"], &decided[..]].concat()).await;
    let first = first.ok().json();
    assert_eq!(first["personalRetention"], "7776000s", "{first}");
    assert_eq!(first["version"].to_string().trim_matches('"'), "1", "{first}");
    assert_eq!(get().await, first);
    let text = up.run(&["settings", "get"]).await.ok().stdout;
    assert!(text.contains("personal retention 90 d"), "{text}");
    let elsewhere = ["settings", "get", "--namespace", "custody", "--json"];
    let elsewhere = up.run(&elsewhere).await.ok().json();
    assert!(elsewhere.get("personalRetention").is_none(), "{elsewhere}");

    // Whoever has not seen the newest settings changes nothing.
    let etag = |settings: &Value| settings["etag"].as_str().expect("an etag").to_owned();
    let stale = set(&["--personal-retention", "1d", "--etag", &etag(&initial)]).await;
    assert_eq!(stale.code, 4, "{stale:?}");
    let too_short = set(&["--personal-retention", "59m"]).await;
    assert_eq!(too_short.code, 2, "{too_short:?}");
    assert!(too_short.stderr.contains("personal_retention"), "{too_short:?}");
    assert_eq!(get().await, first);

    let removed = set(&["--personal-retention", "none", "--etag", &etag(&first)]).await;
    let removed = removed.ok().json();
    assert!(removed.get("personalRetention").is_none(), "{removed}");
    assert_eq!(get().await, removed);
}
