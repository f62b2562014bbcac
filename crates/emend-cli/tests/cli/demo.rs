//! The demo.

use unicode_width::UnicodeWidthStr as _;

use crate::harness::run;

/// How wide the demo is at most.
const COLUMNS: usize = 80;

#[tokio::test]
async fn the_demo_prints_its_table_and_succeeds() {
    let demo = run(&["demo"]).await.ok();
    for part in [
        "london",
        "tokyo",
        "create_isda ●",
        "liquidate_fund ○",
        "their digests agree",
    ] {
        assert!(demo.stdout.contains(part), "{part}: {}", demo.stdout);
    }
    assert!(!demo.stdout.contains("NOT AS EXPECTED"));
    assert!(
        demo.stdout.lines().all(|line| line.width() <= COLUMNS),
        "{}",
        demo.stdout
    );
    // Of the difference, what continues a line is indented further than any sign.
    let lines: Vec<&str> = demo.stdout.lines().collect();
    let continued = lines.windows(2).filter_map(|pair| {
        let (story, text) = pair[1].split_at_checked(9)?;
        let word = text.split(' ').next().filter(|word| !word.is_empty())?;
        story.trim().is_empty().then_some((pair[0], word))
    });
    let continued: Vec<_> = continued.collect();
    assert!(!continued.is_empty(), "{}", demo.stdout);
    for (line, word) in continued {
        assert!(
            line.width() + 1 + word.width() > COLUMNS,
            "{word:?} fits behind {line:?}"
        );
    }
}

#[tokio::test]
async fn the_demo_as_json_has_the_times_of_both_nodes() {
    let lines = run(&["demo", "--json"]).await.ok().lines();
    let (end, steps) = lines.split_last().expect("lines");
    assert_eq!(end["end"]["asExpected"], true);
    assert!(steps.len() >= 10 && steps.iter().all(|step| step["asExpected"] == true));
    let learned = steps.iter().filter(|step| step["revision"].is_i64());
    for step in learned {
        for node in step["nodes"].as_array().expect("nodes") {
            assert!(
                node["commitToAppliedMs"].as_f64().is_some_and(|ms| ms < 60_000.0),
                "{step}"
            );
        }
    }
}
