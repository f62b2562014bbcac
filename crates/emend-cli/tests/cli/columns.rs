//! Tables in a terminal of 80 columns.

use std::process::Stdio;

use tokio::{process::Command, time::timeout};
use unicode_width::UnicodeWidthChar as _;

use crate::harness::{TIMEOUT, Up, command_of};

/// How many columns the terminal has.
const COLUMNS: usize = 80;

/// A key that no column of such a terminal has room for.
const LONG: &str = "set up a credit support annex for a new counterparty of the second fund";
/// The same in characters that take two columns each.
const WIDE: &str = "相手のリーダーにダメージを与えてから手札を二枚引くカード";
/// A reason of which every word fits into a column.
const REASON: &str = "the wrong one of two verbs was chosen by all who had not read the memo of May";

/// Runs a command against the pair in a terminal. Its lines are checked to fit.
async fn in_a_terminal(up: &Up, words: &[&str]) -> String {
    let quoted = |word: &&str| format!("'{word}'");
    let line: Vec<String> = [env!("CARGO_BIN_EXE_emend")]
        .iter()
        .chain(&up.args(words))
        .map(quoted)
        .collect();
    let line = format!("stty cols {COLUMNS} rows 24 && {}", line.join(" "));
    let mut script: Command = command_of("script");
    script
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .env_remove("COLUMNS")
        .stdin(Stdio::null());
    let output = timeout(TIMEOUT, script.output()).await;
    let output = output.expect("in time").expect("script(1) of util-linux");
    let shown = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{words:?}: {shown}");
    let shown = shown.replace('\r', "");
    for line in shown.lines() {
        assert!(width(line) <= COLUMNS, "{words:?}: {line:?} is too wide: {shown}");
    }
    shown
}

fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// What a table has below a heading, of all its rows, from line to line as it stands there.
fn column(table: &str, heading: &str) -> Vec<String> {
    let headings = table.lines().next().expect("headings");
    let at = headings
        .find(heading)
        .unwrap_or_else(|| panic!("no {heading}: {table}"));
    let begin = width(&headings[..at]);
    let rest = &headings[at..];
    // The next heading begins behind two spaces.
    let end = rest.find("  ").map(|gap| {
        let behind = rest[gap..].find(|c| c != ' ').unwrap_or(rest.len() - gap);
        begin + gap + behind
    });
    let cell = |line: &str| {
        let (mut at, mut cell) = (0, String::new());
        for c in line.chars() {
            if at >= begin && end.is_none_or(|end| at < end) {
                cell.push(c);
            }
            at += c.width().unwrap_or(0);
        }
        cell.trim_end().to_owned()
    };
    table.lines().skip(1).map(cell).collect()
}

/// Whether the lines of a column say a text: what is broken where there is no space goes on at once.
fn says(lines: &[String], text: &str) -> bool {
    let dense = |text: &str| text.replace(' ', "");
    dense(&lines.concat()).contains(&dense(text))
}

#[tokio::test]
async fn keys_choices_and_the_log_are_whole_in_80_columns() {
    let up = Up::ephemeral().await;
    let choice = "create_isda_credit_support_annex_2016";
    for key in [LONG, WIDE] {
        let set = [
            "resources",
            "set",
            "invocation_phrase",
            key,
            choice,
            "--by",
            "dana.of.the.second.fund",
            "--reason",
            REASON,
        ];
        up.run(&set).await.ok();
    }

    let listed = in_a_terminal(&up, &["resources", "list"]).await;
    let (keys, choices) = (column(&listed, "KEY"), column(&listed, "CHOICE"));
    for (lines, text) in [(&keys, LONG), (&keys, WIDE), (&choices, choice)] {
        assert!(says(lines, text), "{text}: {listed}");
    }

    let log = in_a_terminal(&up, &["log"]).await;
    for (heading, text) in [
        ("BY", "dana.of.the.second.fund"),
        ("WHAT", LONG),
        ("WHAT", WIDE),
        ("WHAT", choice),
        ("REASON", REASON),
    ] {
        assert!(says(&column(&log, heading), text), "{heading} {text}: {log}");
    }
    assert!(!log.contains('…'), "{log}");
}

#[tokio::test]
async fn edges_and_events_have_whole_ids_headings_and_changes_in_80_columns() {
    let up = Up::ephemeral().await;
    let (edge, fragment) = (
        "edge:0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10",
        "fragment:1b2f3c4d5e6f",
    );
    let graph = format!(
        r#"{{"page": {{"page_id": "page:1", "domain": "preprints.journal.example"}}}}
{{"fragment": {{"fragment_id": "{fragment}", "page_id": "page:1", "text": "It refutes that."}}}}
{{"claim": {{"claim_id": "claim:12", "text": "Coffee dehydrates."}}}}
{{"edge": {{"edge_id": "{edge}", "relation": "supports", "source": "{fragment}", "target": "claim:12", "nli_confidence": 0.9}}}}
"#
    );
    up.run_with(&["evidence", "import", "-"], &graph).await.ok();
    let correct = [
        "evidence",
        "edges",
        "correct",
        edge,
        "refutes",
        "--reason",
        REASON,
        "--reporter",
        "kim",
    ];
    up.run(&correct).await.ok();

    let edges = in_a_terminal(&up, &["evidence", "edges", "list"]).await;
    for (heading, text) in [("EDGE", edge), ("SOURCE", fragment), ("TARGET", "claim:12")] {
        assert!(says(&column(&edges, heading), text), "{heading}: {edges}");
    }

    let events = in_a_terminal(&up, &["evidence", "events", "--edge", edge]).await;
    let headings = events.lines().next().unwrap_or_default();
    for heading in ["TARGET", "CHANGE", "BY", "REPORTER", "REASON"] {
        assert!(
            headings.split("  ").any(|word| word.trim() == heading),
            "{heading}: {events}"
        );
    }
    for (heading, text) in [("TARGET", edge), ("CHANGE", "→ refutes")] {
        assert!(says(&column(&events, heading), text), "{heading}: {events}");
    }
}
