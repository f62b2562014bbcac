//! Near answers and previews: what the commands about them print.

use std::fs;

use serde_json::json;
use tokio::time::timeout;

use crate::harness::{TIMEOUT, Up, run};

const LOST: &str = "report_lost_card";
const BALANCE: &str = "show_balance";
const ASKED: &str = "i think i lost my card";

/// Teaches two verbs, enough for a model.
async fn teach(up: &Up) {
    let things = [
        "card",
        "bank card",
        "credit card",
        "debit card",
        "red card",
        "blue card",
    ];
    let lost = things.iter().flat_map(|thing| {
        [
            format!("i lost my {thing},{LOST}\n"),
            format!("my {thing} was stolen,{LOST}\n"),
            format!("block the {thing},{LOST}\n"),
        ]
    });
    let accounts = [
        "account",
        "bank account",
        "savings",
        "current account",
        "old account",
        "deposit",
    ];
    let balance = accounts.iter().flat_map(|account| {
        [
            format!("what is the balance of my {account},{BALANCE}\n"),
            format!("how much money is in my {account},{BALANCE}\n"),
            format!("show me my {account} balance,{BALANCE}\n"),
        ]
    });
    let rows: String = lost.chain(balance).collect();
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("taught.csv");
    fs::write(&file, format!("phrase,verb\n{rows}")).expect("it can be written");
    let file = file.display().to_string();
    up.run(&["import", &file, "--reason", "what users say"])
        .await
        .ok();
}

/// Records queries, each with an id of its own, and waits until they are listed.
async fn search(up: &Up, texts: &[&str]) {
    for (number, text) in texts.iter().enumerate() {
        let id = format!("q-{number}");
        up.run(&["search", "queries", "record", &id, text]).await.ok();
    }
    let listed = async {
        while up
            .run(&["search", "queries", "list", "--json"])
            .await
            .ok()
            .lines()
            .len()
            < texts.len()
        {}
    };
    timeout(TIMEOUT, listed).await.expect("they are listed");
}

#[tokio::test]
async fn a_phrase_that_nobody_corrected_is_answered_with_its_reasons() {
    let up = Up::ephemeral().await;
    teach(&up).await;
    let told = up.run(&["resolve", ASKED, "--near"]).await.ok().stdout;
    assert!(
        told.contains("nothing was learned as invocation_phrase"),
        "{told}"
    );
    assert!(told.contains(&format!("\nnear: {LOST} (confidence 0.")), "{told}");
    let reason = format!("\n  because \"i lost my card\" → {LOST} (similarity 0.");
    assert!(told.contains(&reason), "{told}");

    let told = up.run(&["resolve", ASKED, "--near", "--json"]).await.ok().json();
    assert!(told.get("match").is_none(), "{told:#}");
    assert_eq!(told["nearStatus"], "NEAR_STATUS_READY");
    let near = &told["near"];
    assert_eq!(near["choice"], LOST);
    let confidence = near["confidence"].as_f64().expect("a number");
    assert!((0.8..1.0).contains(&confidence), "{told:#}");
    assert_eq!(near["because"][0]["phrase"], "i lost my card");
    assert_eq!(near["because"][0]["choice"], LOST);
    assert_eq!(near["model"].as_str().map(str::len), Some(32));

    let told = up.run(&["resolve", ASKED, "--json"]).await.ok().json();
    assert!(told.get("near").is_none(), "nobody asked: {told:#}");
    let told = up
        .run(&["resolve", "will it rain tomorrow", "--near"])
        .await
        .ok()
        .stdout;
    assert!(
        told.contains("near: nothing that was learned is similar enough"),
        "{told}"
    );

    let set = [
        "policy",
        "set",
        "invocation_phrase",
        "--near-method",
        "off",
        "--reason",
        "a test",
    ];
    up.run(&set).await.ok();
    let told = up.run(&["resolve", ASKED, "--near"]).await.ok().stdout;
    assert!(told.contains("near: switched off for this kind"), "{told}");
}

#[tokio::test]
async fn a_preview_lists_the_answers_that_would_change() {
    let up = Up::ephemeral().await;
    teach(&up).await;
    search(
        &up,
        &[
            "Freeze the plastic",
            "freeze THE plastic",
            ASKED,
            "my card was stolen",
        ],
    )
    .await;
    let correction = [
        "submit",
        "verb",
        "Freeze the plastic",
        LOST,
        "--reporter",
        "ann",
        "--wait",
    ];
    up.run(&correction).await.ok();
    let listed = up
        .run(&["candidates", "list", "--status", "pending", "--json"])
        .await
        .ok()
        .json();
    let id = listed["candidateId"].as_str().expect("an id");

    let told = up.run(&["candidates", "preview", id, "--json"]).await.ok().json();
    let changes = &told["changes"];
    assert_eq!(changes["queryCount"], 3, "{told:#}");
    assert_eq!(changes["changedQueryCount"], 1);
    assert_eq!(changes["correctedForCount"], 1);
    let answer = &changes["answers"][0];
    assert_eq!(
        (&answer["after"], &answer["searchCount"]),
        (&json!(LOST), &json!(2)),
        "{told:#}"
    );
    let directory = tempfile::tempdir().expect("a directory");
    let judged = directory.path().join("judged.csv");
    fs::write(
        &judged,
        format!("phrase,verb\nfreeze the plastic,{LOST}\nmy card was stolen,{LOST}\n"),
    )
    .expect("it can be written");
    let judged = judged.display().to_string();
    let told = up
        .run(&["candidates", "preview", id, "--judged", &judged])
        .await
        .ok()
        .stdout;
    assert!(told.contains("\njudged: 1 for the change, 0 against\n"), "{told}");
    let told = up.run(&["candidates", "preview", id]).await.ok().stdout;
    assert!(
        told.starts_with("1 of 3 queries would be answered differently, searched 2 times\n"),
        "{told}"
    );
    assert!(told.contains("corrections: 1 for, 0 against"), "{told}");
    let row = told.lines().last().unwrap_or_default();
    let cells: Vec<&str> = row
        .split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect();
    assert_eq!(cells[1..], ["2", "–", LOST, "1", "0"], "{told}");

    // One vote is enough.
    let preview = ["policy", "preview", "invocation_phrase", "--threshold", "1"];
    let told = up.run(&preview).await.ok().stdout;
    assert!(
        told.starts_with("1 of 1 contest that wait would apply another value at once\n"),
        "{told}"
    );
    assert!(
        told.contains("\n1 of 3 queries would be answered differently"),
        "{told}"
    );

    // From certainty on, nothing is answered near any more.
    let preview = [
        "policy",
        "preview",
        "invocation_phrase",
        "--near-min-confidence",
        "1",
    ];
    let told = up.run(&preview).await.ok().stdout;
    let row = told
        .lines()
        .find(|line| line.starts_with(ASKED))
        .unwrap_or_else(|| panic!("{told}"));
    assert!(row.contains(&format!("~{LOST}")), "{told}");
    let told = up.run(&[&preview[..], &["--json"]].concat()).await.ok().json();
    let answer = &told["changes"]["answers"][0];
    assert_eq!(
        (&answer["text"], &answer["before"], &answer["beforeIsNear"]),
        (&json!(ASKED), &json!(LOST), &json!(true)),
        "{told:#}"
    );
    let kept = up
        .run(&["policy", "get", "invocation_phrase", "--json"])
        .await
        .ok()
        .json();
    assert_eq!(
        kept["near"]["minConfidence"], 0.8,
        "nothing was changed: {kept:#}"
    );
}

#[tokio::test]
async fn a_replay_counts_near_answers_day_by_day() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut train, mut test) = ("text,category\n".to_owned(), "text,category\n".to_owned());
    for number in 0..40 {
        let rows = format!(
            "my statement looks odd {number},unknown_payment\nit says no at the machine {number},declined_cash\n"
        );
        train.push_str(&rows);
        test.push_str(
            &rows
                .replace("odd", "odd again")
                .replace("says no", "always says no"),
        );
    }
    for (name, rows) in [("train.csv", train), ("test.csv", test)] {
        fs::write(directory.path().join(name), rows).expect("it can be written");
    }
    let dataset = directory.path().display().to_string();
    let args = [
        "replay",
        "--dataset",
        &dataset,
        "--days",
        "3",
        "--queries-per-day",
        "400",
        "--json",
    ];
    let report = run(&args).await.ok().json();
    assert_eq!(report["settings"]["nearAnswered"], false);
    let days = report["days"].as_array().expect("days");
    assert_eq!(days.len(), 3);
    for day in days {
        let of = |figure: &str| {
            day[figure]
                .as_f64()
                .unwrap_or_else(|| panic!("{figure}: {day:#}"))
        };
        let share = |part: &str, whole: &str| {
            if of(whole) > 0.0 {
                of(part) / of(whole)
            } else {
                0.0
            }
        };
        for (name, part, whole) in [
            ("nearShare", "near", "queries"),
            ("hitRateWithNear", "hitsWithNear", "queries"),
        ] {
            assert!((of(name) - share(part, whole)).abs() < 1e-6, "{name}: {day:#}");
        }
        assert!(of("nearHits") <= of("near"), "{day:#}");
        assert_eq!(day["test"]["queries"], 80, "{day:#}");
        assert!(
            day["test"]["nearHits"].as_u64() <= day["test"]["near"].as_u64(),
            "{day:#}"
        );
    }
    // Of the last day what was learned before answers near, and of test.csv, of which nothing is ever learned.
    let (first, last) = (&days[0], &days[2]);
    assert!(
        last["hitRateWithNear"].as_f64() > last["hitRate"].as_f64(),
        "{report:#}"
    );
    assert_eq!(first["near"], 0, "nothing is fitted yet: {first:#}");
    assert!(last["near"].as_u64() > Some(0), "{last:#}");
    let of_test = |figure: &str| last["test"][figure].as_f64().expect("a rate");
    assert!(
        of_test("hitRateAtAnyConfidence") > of_test("hitRate"),
        "{report:#}"
    );
}
