//! The replay, on a made-up data set and, if available, on the real one.

use std::{fmt::Write as _, path::PathBuf};

use serde_json::Value;

use crate::harness::{Up, run};

/// A data set with three labels, one of which the base matcher recognises by its words.
fn made_up() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let mut train = String::from("text,category\n");
    for n in 0..12 {
        // Writing to a String can't fail.
        let _ = writeln!(train, "\"where is my card, please? ({n})\",card_arrival");
        let _ = writeln!(train, "my statement looks odd {n},unknown_payment");
        let _ = writeln!(train, "it says no at the machine {n},declined_cash");
    }
    std::fs::write(directory.path().join("train.csv"), train).expect("it can be written");
    let test = "text,category\nmy statement looks odd 3,unknown_payment\nthe card again,card_arrival\n";
    std::fs::write(directory.path().join("test.csv"), test).expect("it can be written");
    directory
}

#[tokio::test]
async fn corrected_answers_are_right_the_next_day() {
    let data = made_up();
    let dataset = data.path().display().to_string();
    let output = tempfile::tempdir().expect("a directory");
    let svg = output.path().join("chart.svg").display().to_string();
    let json_file = output.path().join("report.json").display().to_string();
    let args = [
        "replay",
        "--dataset",
        &dataset,
        "--days",
        "3",
        "--queries-per-day",
        "150",
        "--reporters",
        "40",
    ];
    let report = run(&[&args[..], &["--json", "--svg", &svg, "--json-file", &json_file]].concat())
        .await
        .ok()
        .json();

    let days = report["days"].as_array().expect("days");
    let of = |day: usize, figure: &str| days[day][figure].as_f64().expect("a figure");
    assert!(of(2, "hitRate") > of(0, "hitRate"), "{report:#}");
    assert!(of(2, "learnedShare") > of(0, "learnedShare"), "{report:#}");
    assert!(
        of(2, "correctionsNeeded") < of(0, "correctionsNeeded"),
        "{report:#}"
    );
    assert!(of(2, "hitRate") > of(2, "baseHitRate"), "{report:#}");
    assert!(
        report["promotions"]
            .as_u64()
            .is_some_and(|promotions| promotions > 5)
    );
    let audit = &report["audit"];
    assert_eq!(audit["problems"], serde_json::json!([]));
    assert_eq!(audit["submitted"], audit["counted"]);
    assert_eq!(audit["resources"], audit["onTheNode"]);
    assert_eq!(report["test"]["queries"], 2);

    let chart = std::fs::read_to_string(svg).expect("a chart");
    assert!(chart.starts_with("<svg") && chart.trim_end().ends_with("</svg>"));
    let filed: Value =
        serde_json::from_str(&std::fs::read_to_string(json_file).expect("a report")).expect("JSON");
    assert_eq!(filed["days"], report["days"]);

    // Equal seeds give equal figures, and the table shows them.
    let table = run(&args).await.ok().stdout;
    for day in days {
        let row = format!("{:>3} {:>7}", day["day"].to_string(), day["queries"].to_string());
        let row = table.lines().find(|line| line.starts_with(&row)).expect("a row");
        let cells: Vec<_> = row.split_whitespace().collect();
        let wanted = format!("{:.1}", 100.0 * day["hitRate"].as_f64().expect("a rate"));
        assert_eq!(cells[2], wanted, "{table}");
    }
    assert!(table.contains("nothing lost"), "{table}");
}

#[tokio::test]
async fn running_services_can_be_used_with_a_new_namespace() {
    let up = Up::ephemeral().await;
    let data = made_up();
    let dataset = data.path().display().to_string();
    let args = [
        "replay",
        "--dataset",
        &dataset,
        "--days",
        "1",
        "--queries-per-day",
        "60",
        "--json",
    ];
    let report = up.run(&args).await.ok().json();
    let namespace = report["settings"]["namespace"].as_str().expect("a name");
    let log = up
        .run(&["log", "--limit", "0", "--json", "-n", namespace])
        .await
        .ok()
        .lines();
    assert_eq!(
        log.len() as u64,
        report["audit"]["revisions"].as_u64().expect("a count")
    );
    let again = up.run(&[&args[..], &["-n", namespace]].concat()).await;
    assert_eq!(again.code, 4, "a namespace with records of its own: {again:?}");
}

#[tokio::test]
async fn a_missing_data_set_is_refused() {
    let nowhere = run(&["replay", "--dataset", "nowhere"]).await;
    assert_eq!(nowhere.code, 2, "{nowhere:?}");
    assert!(nowhere.stderr.contains("train.csv"));
    let too_many = run(&[
        "replay",
        "--dataset",
        "nowhere",
        "--noise",
        "0.9",
        "--colluders",
        "0.2",
    ])
    .await;
    assert_eq!(too_many.code, 2);
}

/// The real data set, if available.
fn banking77() -> Option<String> {
    // Where the variable says, otherwise next to the checkout.
    let dataset = std::env::var_os("EMEND_BANKING77").map_or_else(
        || {
            PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../../shared/data/banking77"
            ))
        },
        PathBuf::from,
    );
    if !dataset.join("train.csv").exists() {
        emend_base::testing::skipped("EMEND_BANKING77 names no BANKING77 data set");
        return None;
    }
    Some(dataset.display().to_string())
}

/// Learned answers rise day by day, and fewer than 0.5 % of promotions are wrong.
fn assert_learned_well(report: &Value) {
    let days = report["days"].as_array().expect("days");
    for pair in days.windows(2) {
        for figure in ["learnedShare", "trafficCovered", "hitRate"] {
            assert!(
                pair[0][figure].as_f64() < pair[1][figure].as_f64(),
                "{figure}: {report:#}"
            );
        }
    }
    assert!(
        report["promotions"]
            .as_u64()
            .is_some_and(|promotions| promotions > 100),
        "{report:#}"
    );
    assert!(
        report["wrongPromotionShare"]
            .as_f64()
            .is_some_and(|share| share < 0.005),
        "{report:#}"
    );
}

#[tokio::test]
async fn on_real_utterances_learned_answers_rise_and_wrong_promotions_stay_rare() {
    let Some(dataset) = banking77() else { return };
    let report = run(&[
        "replay",
        "--dataset",
        &dataset,
        "--days",
        "4",
        "--queries-per-day",
        "1500",
        "--json",
    ])
    .await
    .ok()
    .json();
    assert_learned_well(&report);
}

#[tokio::test]
async fn an_attack_on_right_answers_fails_if_people_confirm_right_answers() {
    let Some(dataset) = banking77() else { return };
    // Runs for the default length: a short replay has about 150 promotions, and a single wrong one would exceed 0.5 %.
    let args = [
        "replay",
        "--dataset",
        &dataset,
        "--attack-right-answers",
        "--json",
    ];
    let report = run(&args).await.ok().json();
    assert_learned_well(&report);
    let days = report["days"].as_array().expect("days");
    let confirmed: u64 = days
        .iter()
        .filter_map(|day| day["confirmationsSubmitted"].as_u64())
        .sum();
    assert!(confirmed > 100, "{report:#}");
    assert_eq!(report["audit"]["problems"], serde_json::json!([]));
}
