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
            .contains("unreadable.csv, line 3: correction: disagrees with line 2: \"b\" there, \"c\" here")
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
    for format in ["solr", "sudachi", "synonyms-json", "domains"] {
        let refused = run(&["export", "--format", format]).await;
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains("csv, jsonl, yaml"), "{refused:?}");
    }
}

/// What Excel and Notepad save, and what people mistake for a file that can be imported.
#[tokio::test]
async fn what_is_wrong_with_a_file_is_named_with_its_true_line() {
    const SHIFT_JIS: &[u8] =
        b"phrase,verb\r\nset up a CSA,create_isda\r\n\x83t\x83@\x83\x93\x83h\x82\xf0\x89\xf0\x96\xf1\x82\xb7\x82\xe9,redeem_fund\r\n";
    let utf_16: Vec<u8> = "\u{FEFF}phrase,verb\r\na,b\r\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let up = Up::ephemeral().await;
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, bytes: &[u8]| {
        let file = directory.path().join(name);
        std::fs::write(&file, bytes).expect("it can be written");
        file.display().to_string()
    };
    for (name, bytes, format, says) in [
        (
            "crlf.csv",
            &b"phrase,verb\r\na,b\r\nc,\r\nd,e\r\n"[..],
            "csv",
            "crlf.csv, line 3: choice: is required",
        ),
        (
            "blank.csv",
            b"phrase,verb\n\n\na,b\n\nc,\n",
            "csv",
            "line 6: choice: is required",
        ),
        (
            "semicolon.csv",
            b"phrase;verb\r\na;b\r\n",
            "csv",
            "line 1: columns are separated by ;",
        ),
        (
            "utf16.csv",
            &utf_16,
            "csv",
            "line 1: the file is UTF-16; save it as UTF-8",
        ),
        (
            "utf16.jsonl",
            &utf_16,
            "jsonl",
            "line 1: the file is UTF-16; save it as UTF-8",
        ),
        (
            "utf16.yaml",
            &utf_16,
            "yaml",
            "line 1: the file is UTF-16; save it as UTF-8",
        ),
        (
            "cp932.csv",
            SHIFT_JIS,
            "csv",
            "line 3: is not UTF-8, it looks like Shift_JIS; save the file as UTF-8",
        ),
        (
            "latin1.yaml",
            b"- phrase: a\n  verb: b\n- phrase: caf\xE9\n  verb: c\n",
            "yaml",
            "line 3: is not UTF-8, it looks like windows-1252",
        ),
        (
            "word.pl",
            b"s(100000001,1,'alpha',n,1,11).\n",
            "solr",
            "line 1: is a line of WordNet's wn_s.pl",
        ),
    ] {
        let refused = up.run(&["import", &file(name, bytes), "--format", format]).await;
        assert!(refused.code == 2 && refused.stderr.contains(says), "{refused:?}");
    }
    // Rows behind an open quote are not lost unseen.
    let open = "phrase,verb\na,b\n\"open fund,create_fund\nclose fund,close_fund\nlast,ok\n";
    let open = file("open.csv", open.as_bytes());
    let refused = up.run(&["import", &open, "--mode", "skip-invalid"]).await;
    assert!(
        refused.code == 2
            && refused
                .stderr
                .contains("open.csv, line 3: has a quote that is not closed"),
        "{refused:?}"
    );
    let listed = up.run(&["resources", "list", "--json"]).await.ok();
    assert!(listed.lines().is_empty(), "{listed:?}");
}

#[tokio::test]
async fn what_can_be_read_of_a_file_is_imported_whatever_its_editor_left() {
    let up = Up::ephemeral().await;
    let directory = tempfile::tempdir().expect("a directory");
    for (name, bytes, format, counts) in [
        ("bom.jsonl", &b"\xEF\xBB\xBF{\"type\":\"phrase\",\"input\":\"a\",\"choice\":\"b\"}\n{\"phrase\":\"c\",\"verb\":\"d\"}\n"[..], "jsonl", [2, 0, 0]),
        ("empty-column.csv", b"\xEF\xBB\xBFphrase,verb,\r\nset up a CSA,create_isda,\r\n  lead  , close_fund ,\r\n", "csv", [2, 0, 0]),
        ("latin1.csv", b"phrase,verb\nx,y\ncaf\xE9,z\nlast,ok\n", "csv", [2, 1, 0]),
        ("latin1.jsonl", b"{\"phrase\":\"x\",\"verb\":\"y\"}\n{\"phrase\":\"caf\xE9\",\"verb\":\"z\"}\n{\"phrase\":\"v\",\"verb\":\"w\"}\n", "jsonl", [2, 1, 0]),
        ("latin1.txt", b"caf\xE9, coffee\nok, fine\n", "solr", [1, 1, 0]),
        ("sudachi.txt", b"1,,0,,,,,,foo\n1,,0,,,,,,caf\xE9\n\n2,,0,,,,,,aa\n2,,0,,,,,,bb\n", "sudachi", [1, 1, 0]),
        ("empty-terms.txt", b"foo,bar,\nc,,d\n,:(=>sad face\nalone\n", "solr", [3, 0, 4]),
        ("both-relations.txt", b"cut in,cut-in\ncut-in=>cut in,CI\n", "solr", [2, 0, 0]),
    ] {
        let file = directory.path().join(name);
        std::fs::write(&file, bytes).expect("it can be written");
        let file = file.display().to_string();
        let namespace = name.replace('.', "-");
        let words = ["import", &file, "--format", format, "--mode", "skip-invalid", "-n", &namespace, "--json"];
        let taken = up.run(&words).await.ok();
        let answer = taken.json();
        let found = ["appliedCount", "rejectedCount", "passedOverCount"].map(|name| answer[name].as_i64());
        assert_eq!(found, counts.map(Some), "{name}: {taken:?}");
        let again = up.run(&words).await.ok().json();
        assert_eq!((&again["appliedCount"], &again["lastRevision"]), (&0.into(), &0.into()), "{again}");
    }
}

#[tokio::test]
async fn lines_of_a_synonym_file_that_share_a_term_find_their_own_words_only() {
    let up = Up::ephemeral().await;
    let lines = "bag, handbag, purse\nbag, grip, suitcase\n";
    up.run_with(&["import", "-", "--format", "solr"], lines)
        .await
        .ok();
    let exported = up.run(&["export", "--format", "csv"]).await.ok().stdout;
    let mut pairs: Vec<&str> = exported.lines().skip(1).collect();
    pairs.sort_unstable();
    let expected = [
        "synonym,bag,grip,equivalent,",
        "synonym,handbag,bag,equivalent,",
        "synonym,purse,bag,equivalent,",
        "synonym,suitcase,grip,equivalent,",
    ];
    assert_eq!(pairs, expected);
}

#[tokio::test]
async fn of_recorded_queries_a_row_that_the_service_refuses_is_named_and_the_others_are_stored() {
    let up = Up::ephemeral().await;
    let rows = concat!(
        "{\"query_id\":\"m1\",\"user_query\":\"ok\"}\r\n\r\n",
        r#"{"action_name":"item_click","query_id":"m1","event_attributes":{"object":{"object_id":"a"},"position":{"ordinal":-1}}}"#,
        "\r\n",
        r#"{"action_name":"item_click","query_id":"m1","event_attributes":{"object":{"object_id":"b"},"position":{"ordinal":2}}}"#,
        "\r\n",
        // What the command can't know to be bad.
        r#"{"action_name":"item_click","query_id":"m1","event_attributes":{"object":{"object_id":"c\u202e"}}}"#,
        "\r\n",
    );
    let import = ["search", "queries", "import", "-", "--format", "ubi", "--json"];
    let refused = up.run_with(&import, rows).await;
    let line = "standard input, line 3: position.ordinal: must be 0 to 100000";
    assert!(refused.code == 2 && refused.stderr.contains(line), "{refused:?}");
    let taken = up
        .run_with(&[&import[..], &["--skip-invalid"]].concat(), rows)
        .await
        .ok();
    for line in [
        line,
        "standard input, line 5: object_id: must not contain invisible",
    ] {
        assert!(taken.stderr.contains(line), "{taken:?}");
    }
    let answer = taken.json();
    let counts = ["queryCount", "interactionCount", "badCount"].map(|name| answer[name].as_i64());
    assert_eq!(counts, [Some(1), Some(1), Some(2)]);
}

/// What others keep, as commands read it: synonyms, domains, levels and examples.
#[tokio::test]
async fn what_others_keep_is_imported_or_converted() {
    let up = Up::ephemeral().await;
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let file = directory.path().join(name);
        std::fs::write(&file, text).expect("it can be written");
        file.display().to_string()
    };

    // Two synonyms that go both ways without being a set are two rows.
    let synonyms = file(
        "synonyms.json",
        r#"{"a": ["b"], "b": ["a", "c"], "c": ["b"], "tv": ["television"], "television": ["tv"]}"#,
    );
    for expected in [(5, 0), (0, 5)] {
        let imported = up.run(&["import", &synonyms, "--json"]).await.ok().json();
        assert_eq!(
            (&imported["appliedCount"], &imported["unchangedCount"]),
            (&expected.0.into(), &expected.1.into())
        );
    }
    for (name, text, pairs) in [
        (
            "typesense",
            r#"{"synonyms": [{"id": "coat", "synonyms": ["blazer", "jacket"]}, {"id": "smart", "root": "smart phone", "synonyms": ["iphone"]}]}"#,
            [
                "synonym,jacket,blazer,equivalent,",
                "synonym,smart phone,iphone,one_way,",
            ],
        ),
        (
            "algolia",
            r#"{"hits": [{"objectID": "1", "type": "synonym", "synonyms": ["car", "auto"]}, {"objectID": "2", "type": "oneWaySynonym", "input": "tablet", "synonyms": ["ipad"]}]}"#,
            ["synonym,auto,car,equivalent,", "synonym,tablet,ipad,one_way,"],
        ),
        (
            "elasticsearch",
            r#"{"count": 2, "synonyms_set": [{"id": "1", "synonyms": "hello, hi"}, {"id": "2", "synonyms": "bye => goodbye"}]}"#,
            ["synonym,hi,hello,equivalent,", "synonym,bye,goodbye,one_way,"],
        ),
    ] {
        let exported = file(&format!("{name}.json"), text);
        let import = ["import", &exported, "--namespace", name, "--json"];
        let imported = up.run(&import).await.ok().json();
        assert_eq!(imported["appliedCount"], 2, "{name}: {imported}");
        let export = ["export", "--format", "csv", "--namespace", name];
        let rows = up.run(&export).await.ok().stdout;
        for pair in pairs {
            assert!(rows.lines().any(|row| row == pair), "{name}: {pair}: {rows}");
        }
    }
    let as_solr = up.run(&["import", &synonyms, "--format", "elasticsearch"]).await;
    assert_eq!(as_solr.code, 2, "{as_solr:?}");
    assert!(as_solr.stderr.contains("line 1: begins as JSON"), "{as_solr:?}");

    let list = file(
        "list.txt",
        "# a list\n0.0.0.0 spam.example\n||ads.example^\n@@||docs.ads.example^\nspam.example/path\n",
    );
    let imported = up
        .run(&["import", &list, "--format", "domains", "--json"])
        .await
        .ok();
    assert!(
        imported
            .stderr
            .contains("line 5: is a filter that is not about a whole domain; passed over"),
        "{imported:?}"
    );
    let imported = imported.json();
    assert_eq!(
        (&imported["appliedCount"], &imported["passedOverCount"]),
        (&3.into(), &1.into())
    );
    assert_eq!(imported["passedOver"][0]["line"], 5, "{imported}");
    for (host, says) in [
        ("www.ads.example", "is blocked"),
        ("docs.ads.example", "the trust of docs.ads.example is"),
    ] {
        let checked = up.run(&["evidence", "domains", "check", host]).await.ok().stdout;
        assert!(checked.contains(says), "{checked}");
    }

    let levels = file(
        "domains.yaml",
        "default_policy: {qps: 1}\ndomains:\n  - {domain: wiki.example, trust_level: low, qps: 2}\nuser_overrides:\n  - {domain: blog.example, trust_level: trusted, reason: read by hand, added_at: 2024-01-15}\n  - {domain: bad.example, trust_level: blocked}\n",
    );
    let refused = up.run(&["evidence", "trust", "apply", &levels]).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    for part in ["default_policy", "`emend evidence trust convert`"] {
        assert!(refused.stderr.contains(part), "{part}: {refused:?}");
    }
    let converted = up
        .run(&["evidence", "trust", "convert", &levels, "--file-version", "7"])
        .await
        .ok();
    for ignored in [
        "the key default_policy is ignored",
        "the key domains[].qps is ignored",
    ] {
        assert!(converted.stderr.contains(ignored), "{converted:?}");
    }
    assert!(
        converted.stdout.contains("# read by hand; since 2024-01-15"),
        "{converted:?}"
    );
    let trust = file("trust.yaml", &converted.stdout);
    let applied = up
        .run(&["evidence", "trust", "apply", &trust, "--json"])
        .await
        .ok()
        .json();
    assert_eq!(applied["namespaces"][0]["set"], 3, "{applied}");
    let converted = up
        .run(&["evidence", "trust", "convert", &list, "--file-version", "8"])
        .await
        .ok();
    assert!(
        converted
            .stderr
            .contains("line 4: docs.ads.example is an exception"),
        "{converted:?}"
    );
    assert!(
        converted
            .stdout
            .contains("blocked:\n  - \"spam.example\"\n  - \"ads.example\"\n"),
        "{converted:?}"
    );

    let examples = file(
        "examples.jsonl",
        "{\"input\": \"how was Monday?\", \"output\": \"NAV 101.2.\"}\n\n{\"prompt\": \"and Tuesday?\", \"chosen\": \"NAV 100.9.\", \"rejected\": \"Quiet.\"}\n",
    );
    let import = [
        "outputs",
        "ratings",
        "import",
        &examples,
        "--target",
        "INTERPRET",
        "--reporter",
        "ana",
        "--json",
    ];
    for added in [2, 0] {
        let imported = up.run(&import).await.ok().json();
        assert_eq!(
            imported,
            serde_json::json!({"imported": 2, "added": added, "rejected": 0})
        );
    }
    let again = up.run(&import[..import.len() - 1]).await.ok().stdout;
    assert_eq!(again, "2 ratings imported, 0 of them new\n");
    let listed = up.run(&["outputs", "ratings", "list", "--json"]).await.ok();
    assert_eq!(listed.lines().len(), 2, "{listed:?}");
    let rendered = up
        .run(&["outputs", "examples", "--render", "INTERPRET"])
        .await
        .ok()
        .stdout;
    for text in ["NAV 101.2.", "Quiet.", "NAV 100.9."] {
        assert!(rendered.contains(text), "{rendered}");
    }
    let refused = file(
        "refused.jsonl",
        "{\"input\": \"a\", \"output\": \"b\"}\n{\"input\": \"a\"}\n",
    );
    let refused = up
        .run(&["outputs", "ratings", "import", &refused, "--target", "INTERPRET"])
        .await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused.stderr.contains("line 2: output: is required"),
        "{refused:?}"
    );
}
