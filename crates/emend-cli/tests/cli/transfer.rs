//! Import and export, using only the command.

use std::{fmt::Write as _, path::Path};

use crate::harness::{Up, run};

const CSV: &str = "\
type,input,choice,user_id
phrase,Set up a CSA,create_isda,
entity,\"Smith, J.\",jane.smith,
prohibition,wind down the fund,delete_fund,
phrase,my pack,send_nav_pack,mia
";

fn write(directory: &Path, name: &str, text: &str) -> String {
    let file = directory.join(name);
    std::fs::write(&file, text).expect("it can be written");
    file.display().to_string()
}

#[tokio::test]
async fn every_format_that_is_exported_can_be_imported() {
    let up = Up::ephemeral().await;
    let directory = tempfile::tempdir().expect("a directory");
    let file = write(directory.path(), "first.csv", CSV);
    let imported = up
        .run(&[
            "import",
            &file,
            "--reason",
            "migration",
            "--by",
            "dana",
            "-n",
            "origin",
            "--json",
        ])
        .await
        .ok()
        .json();
    assert_eq!(
        (&imported["appliedCount"], &imported["rejectedCount"]),
        (&4.into(), &0.into()),
        "{imported}"
    );
    let operation = imported["operationId"].as_str().expect("an id");
    let trail = up
        .run(&["log", "--operation", operation, "-n", "origin", "--json"])
        .await
        .ok()
        .lines();
    assert!(!trail.is_empty() && trail.iter().all(|revision| revision["cause"] == "CAUSE_IMPORT"));

    // Importing twice changes nothing.
    let twice = up
        .run(&["import", &file, "-n", "origin", "--json"])
        .await
        .ok()
        .json();
    assert_eq!(
        (&twice["appliedCount"], &twice["unchangedCount"]),
        (&0.into(), &4.into()),
        "{twice}"
    );

    let exported = up
        .run(&["export", "--format", "csv", "-n", "origin"])
        .await
        .ok()
        .stdout;
    assert_eq!(exported.lines().count(), 4, "everybody's only: {exported}");
    for format in ["csv", "jsonl", "yaml"] {
        let file = directory
            .path()
            .join(format!("export.{format}"))
            .display()
            .to_string();
        let answer = up
            .run(&["export", &file, "-n", "origin", "--json"])
            .await
            .ok()
            .json();
        assert_eq!(answer["count"], 3);
        up.run(&["import", &file, "-n", format]).await.ok();
        let back = up
            .run(&["export", "--format", "csv", "-n", format])
            .await
            .ok()
            .stdout;
        assert_eq!(back, exported, "{format}");
    }
    // What is everybody's and what is each user's own, in one file.
    let all = up
        .run(&["export", "--format", "csv", "--all-users", "-n", "origin"])
        .await
        .ok()
        .stdout;
    assert_eq!(all.lines().count(), 5, "{all}");
    assert!(
        all.contains("invocation_phrase,my pack,send_nav_pack,,mia"),
        "{all}"
    );
    // Through a pipe, and for one user's own resources.
    let own = up
        .run(&["export", "--format", "yaml", "--user", "mia", "-n", "origin"])
        .await
        .ok()
        .stdout;
    up.run_with(&["import", "-", "--format", "yaml", "-n", "piped"], &own)
        .await
        .ok();
    let hers = up
        .run(&["resolve", "my pack", "--user", "mia", "-n", "piped", "--json"])
        .await
        .ok()
        .json();
    assert_eq!(hers["match"]["value"], "send_nav_pack");
}

#[tokio::test]
async fn a_bad_row_is_reported_with_its_line_and_stops_all_or_nothing() {
    let up = Up::ephemeral().await;
    let directory = tempfile::tempdir().expect("a directory");
    let none = async |namespace: &str| {
        up.run(&["resources", "list", "-n", namespace, "--json"])
            .await
            .ok()
            .lines()
            .is_empty()
    };
    // Unreadable rows and rows that the server refuses are reported together …
    let unreadable = write(
        directory.path(),
        "unreadable.csv",
        "type,input,choice\nphrase,a,b\nphrase,A,c\nverbs,c,d\n",
    );
    let refused = up.run(&["import", &unreadable, "-n", "one"]).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("line 3: correction: says otherwise than line 2")
            && refused.stderr.contains("line 4: type:")
            && refused.stderr.contains("2 bad rows"),
        "{refused:?}"
    );
    assert!(none("one").await);
    // … also if the server alone finds any.
    let long = format!("type,input,choice\nphrase,a,b\nphrase,{},d\n", "x".repeat(513));
    let invalid = write(directory.path(), "invalid.csv", &long);
    let refused = up.run(&["import", &invalid, "-n", "one"]).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused.stderr.contains('3') && refused.stderr.contains("512"),
        "{refused:?}"
    );
    assert!(none("one").await);

    // The good rows are imported if that was asked for.
    let mixed = write(
        directory.path(),
        "mixed.csv",
        &format!(
            "type,input,choice\nphrase,a,b\nverbs,c,d\nphrase,{},d\nentity,e,f\n",
            "x".repeat(513)
        ),
    );
    let taken = up
        .run(&["import", &mixed, "--mode", "skip-invalid", "-n", "two", "--json"])
        .await
        .ok();
    let answer = taken.json();
    assert_eq!(
        (&answer["appliedCount"], &answer["rejectedCount"]),
        (&2.into(), &2.into()),
        "{answer}"
    );
    let lines: Vec<_> = answer["errors"]
        .as_array()
        .expect("errors")
        .iter()
        .map(|error| error["line"].clone())
        .collect();
    assert_eq!(lines, [3, 4]);
    assert!(taken.stderr.contains("line 3") && taken.stderr.contains("line 4"));
    assert!(!none("two").await);

    // A file that nobody can read to its end is no file with bad rows.
    for (name, text) in [
        ("header.csv", "type;input;choice\nphrase;a;b\n"),
        ("no-list.yaml", "a: b\n"),
    ] {
        let file = write(directory.path(), name, text);
        let refused = up.run(&["import", &file, "--mode", "skip-invalid"]).await;
        assert!(
            refused.code == 2 && refused.stderr.contains("can't be read"),
            "{refused:?}"
        );
    }
    let unknown = write(directory.path(), "what.txt", "");
    assert_eq!(up.run(&["import", &unknown]).await.code, 2);
    assert_eq!(up.run(&["import", "nowhere.csv"]).await.code, 2);
}

#[tokio::test]
async fn imported_rows_may_count_as_votes() {
    let up = Up::ephemeral().await;
    let rows = "{\"type\":\"phrase\",\"input\":\"a\",\"choice\":\"b\"}\n";
    up.run_with(&["import", "-", "--format", "jsonl", "--as", "votes"], rows)
        .await
        .ok();
    let waiting = up.run(&["candidates", "list", "--json"]).await.ok();
    assert!(waiting.lines().is_empty(), "it lists what a person has to decide");
    let candidate = up
        .run(&["candidates", "list", "--status", "pending", "--json"])
        .await
        .ok()
        .json();
    assert_eq!(candidate["status"], "CANDIDATE_STATUS_PENDING");
    assert!(
        up.run(&["resources", "list", "--json"])
            .await
            .ok()
            .lines()
            .is_empty()
    );
}

#[tokio::test]
async fn thousands_of_rows_are_imported_and_exported() {
    let up = Up::ephemeral().await;
    let mut rows = String::from("type,input,choice\n");
    for n in 0..2_345 {
        // Writing to a String can't fail.
        let _ = writeln!(rows, "phrase,phrase number {n},verb_{n}");
    }
    let answer = up
        .run_with(&["import", "-", "--format", "csv", "--json"], &rows)
        .await
        .ok()
        .json();
    assert_eq!(answer["appliedCount"], 2_345);
    let exported = up.run(&["export", "--format", "jsonl"]).await.ok().lines();
    assert_eq!(exported.len(), 2_345);
    let limited = up
        .run(&["resources", "list", "--limit", "7", "--json"])
        .await
        .ok();
    assert_eq!(limited.lines().len(), 7);
    assert!(limited.stderr.contains("there are more"));
}

#[tokio::test]
async fn nothing_is_exported_in_a_format_for_import_only() {
    for format in ["solr", "sudachi"] {
        let refused = run(&["export", "--format", format]).await;
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains("csv, jsonl, yaml"), "{refused:?}");
    }
}
