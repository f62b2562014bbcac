//! The evidence graph, using only the command.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Up, run};

/// A claim that two pages of one blog and a paper support, as a model says. It missed the word “no”.
const GRAPH: &str = r#"
{"edge": {"edge_id": "edge:paper", "relation": "supports", "source": {"fragment": "abc123"}, "target": "claim:12", "task_id": "t-17", "nli_confidence": 0.9}}
{"claim": {"claim_id": "claim:12", "task_id": "t-17", "text": "Coffee dehydrates the body", "page_id": "page:post-1", "adoption": "adopted"}}
{"claim": {"claim_id": "claim:13", "task_id": "t-17", "text": "Tea does not"}}
{"page": {"page_id": "page:post-1", "domain": "blog.example", "title": "On coffee"}}
{"page": {"page_id": "page:post-2", "url": "https://blog.example/2"}}
{"page": {"page_id": "page:paper", "domain": "journal.example", "doi": "10.1000/Coffee"}}
{"fragment": {"fragment_id": "fragment:1", "page_id": "page:post-1", "text": "Coffee dehydrates."}}
{"fragment": {"fragment_id": "abc123", "page_id": "page:paper", "text": "Coffee was no more dehydrating than water."}}
{"edge": {"edge_id": "edge:1", "relation": "supports", "source": "fragment:1", "target": "claim:12", "task_id": "t-17", "nli_confidence": 0.9}}
{"edge": {"edge_id": "edge:2", "relation": "supports", "source": "page:post-2", "target": "claim:12", "task_id": "t-17", "nli_confidence": 0.9}}
"#;

#[tokio::test]
async fn a_graph_is_imported_corrected_and_read_as_corrected() {
    let up = Up::ephemeral().await;
    // What people decided the system leaves alone, so that the levels stay as they are.
    for (domain, level) in [("blog.example", "low"), ("journal.example", "academic")] {
        up.run(&["evidence", "domains", "trust", domain, level, "--reason", "known"])
            .await
            .ok();
    }
    for added in [10, 0] {
        let imported = up
            .run_with(&["evidence", "import", "-", "--json"], GRAPH)
            .await
            .ok();
        let expected = json!({
            "lines": 10, "added": added, "corrections_arrived": 0, "corrections_applied": 0, "rejected": 0,
        });
        assert_eq!(imported.json(), expected);
    }

    let listed = up
        .run(&["evidence", "claims", "list", "--task", "t-17"])
        .await
        .ok()
        .stdout;
    let rows: Vec<Vec<&str>> = listed
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0][..4], ["CLAIM", "STATUS", "VERDICT", "CONFIDENCE"]);
    // The status follows in the background.
    assert_eq!(rows[1][0], "claim:12");
    assert_eq!(rows[1][2..9], ["supported", "0.787", "±", "0.171", "3", "0", "2"]);
    assert_eq!(
        rows[2][2..9],
        ["inconclusive", "0.500", "±", "0.289", "0", "0", "0"]
    );
    let corrected = up
        .run(&[
            "evidence",
            "edges",
            "correct",
            "edge:paper",
            "refutes",
            "--reason",
            "it says no",
            "--task",
            "t-17",
        ])
        .await
        .ok();
    assert!(corrected.stdout.contains("It applies."), "{corrected:?}");

    let shown = up
        .run(&["evidence", "claims", "show", "claim:12", "--json"])
        .await
        .ok()
        .json();
    let expected = json!({
        "confidence": 0.583, "alpha": 2.8, "beta": 2.0, "supporting_count": 2, "refuting_count": 1,
        "independent_sources": 1, "verdict": "inconclusive", "adoption": "adopted",
        "level": "low", "decision": null,
    });
    for (field, value) in expected.as_object().expect("an object") {
        assert_eq!(&shown[field], value, "{field}: {shown}");
    }
    let shown = up
        .run(&["evidence", "claims", "show", "claim:12"])
        .await
        .ok()
        .stdout;
    for part in ["2 for, 1 against, 0 neutral", "page:post-1, blog.example (low)"] {
        assert!(shown.contains(part), "{shown}");
    }

    // Of the blog only one edge weighs where copies of one source are apart.
    let both = ["evidence", "claims", "show", "claim:12", "--both-readings"];
    let shown = up.run(&both).await.ok().stdout;
    for (way, weights) in [
        ("count_all", "(alpha 2.80, beta 2.00)"),
        ("one_per_source", "(alpha 1.90, beta 2.00)"),
    ] {
        let line = shown.lines().find(|line| line.starts_with(way));
        assert!(line.is_some_and(|line| line.ends_with(weights)), "{way}: {shown}");
    }
    let shown = up.run(&[&both[..], &["--json"]].concat()).await.ok().json();
    assert_eq!(
        (&shown["count_all"]["alpha"], &shown["one_per_source"]["alpha"]),
        (&2.8.into(), &1.9.into()),
        "{shown}"
    );

    let reviewed = up
        .run(&["evidence", "edges", "list", "--claim", "claim:12", "--corrected"])
        .await
        .ok()
        .stdout;
    assert_eq!(
        reviewed,
        "\
EDGE        SOURCE           DOMAIN           TRUST     RELATION  TARGET    THE MODEL SAID  REVIEW
edge:paper  fragment abc123  journal.example  academic  refutes   claim:12  supports 0.900  corrected
"
    );
    let edges = up
        .run(&[
            "evidence",
            "edges",
            "list",
            "--task",
            "t-17",
            "--relation",
            "supports",
            "--json",
        ])
        .await;
    let sources: Vec<_> = edges
        .ok()
        .lines()
        .into_iter()
        .map(|edge| edge["source"].clone())
        .collect();
    assert_eq!(sources, ["fragment:1", "page:post-2"]);
    // What a person corrected stays corrected.
    up.run_with(&["evidence", "import", "-"], GRAPH).await.ok();
    let edges = up
        .run(&["evidence", "edges", "list", "--reviewed", "true", "--json"])
        .await
        .ok()
        .json();
    assert_eq!(
        (&edges["relation"], &edges["nli_label"]),
        (&"refutes".into(), &"supports".into())
    );
    assert_eq!(edges["source"], json!({"fragment": "abc123"}));
    let show = ["evidence", "edges", "show", "edge:paper", "--json"];
    assert_eq!(up.run(&show).await.ok().json(), edges);
    let shown = up
        .run(&["evidence", "edges", "show", "edge:paper"])
        .await
        .ok()
        .stdout;
    for part in [
        "the model said      supports 0.900",
        "reason              it says no",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    let unknown = up.run(&["evidence", "edges", "show", "edge:none"]).await;
    assert_eq!(unknown.code, 3, "{unknown:?}");

    let reject = [
        "evidence",
        "claims",
        "reject",
        "claim:12",
        "--reason",
        "an advertisement",
        "--reason-code",
        "SPAM",
        "--reporter",
        "ana",
    ];
    up.run(&reject).await.ok();
    let shown = up
        .run(&["evidence", "claims", "show", "claim:12"])
        .await
        .ok()
        .stdout;
    assert!(shown.contains("decided             rejected (SPAM)"), "{shown}");
    let events = ["evidence", "events", "--claim", "claim:12", "--json"];
    let event = up.run(&events).await.ok().json();
    assert_eq!(
        (&event["action"], &event["reporter"]),
        (&"corrected".into(), &"ana".into())
    );

    for (arguments, says) in [
        (
            &["evidence", "claims", "list", "--task", "t-0"][..],
            "No claims in the namespace \"default\" match.",
        ),
        (
            &["evidence", "edges", "list", "--task", "t-0"],
            "No edges in the namespace \"default\" match.",
        ),
        (
            &["evidence", "events", "--task", "t-0"],
            "No events in the namespace \"default\" match.",
        ),
        (
            &["evidence", "claims", "list", "--namespace", "empty"],
            "No claims in the namespace \"empty\".",
        ),
    ] {
        let none = up.run(arguments).await.ok().stdout;
        assert_eq!(none.trim_end(), says);
    }
}

#[tokio::test]
async fn what_is_wrong_in_a_file_is_named_by_line_and_field() {
    let bad = "{\"page\": {\"page_id\": \"page:1\", \"domian\": \"a.example\"}}\n\n{\"edge\": {\"relation\": \"proves\"}}\n";
    let up = Up::ephemeral().await;
    let refused = up.run_with(&["evidence", "import", "-"], bad).await;
    assert_eq!(refused.code, 2);
    for part in [
        "line 1: page.domian: is not",
        "line 3: edge.relation: must be one of",
        "nothing was imported",
    ] {
        assert!(refused.stderr.contains(part), "{refused:?}");
    }
    // What only the service can know, too; what came before is kept, and said.
    let unknown =
        "{\"edge\": {\"edge_id\": \"edge:1\", \"relation\": \"supports\", \"nli_confidence\": 1.5,\n"
            .replace('\n', "")
            + "\"source\": \"page:1\", \"target\": \"claim:1\"}}\n{\"page\": {\"page_id\": \"page:1\", \"domain\": \"a.example\"}}\n";
    let refused = up.run_with(&["evidence", "import", "-"], &unknown).await;
    assert_eq!(refused.code, 2);
    for part in [
        "line 1: edge.nli_confidence: ",
        "1 bad line;",
        "1 line was imported before",
    ] {
        assert!(refused.stderr.contains(part), "{refused:?}");
    }
    // Both are skipped where that is asked for, and everything else is stored.
    let mixed =
        format!("{unknown}{bad}{{\"page\": {{\"page_id\": \"page:2\", \"domain\": \"b.example\"}}}}\n");
    let skipping = ["evidence", "import", "-", "--mode", "skip-invalid", "--json"];
    let taken = up.run_with(&skipping, &mixed).await.ok();
    let expected =
        json!({"lines": 2, "added": 1, "corrections_arrived": 0, "corrections_applied": 0, "rejected": 3});
    assert_eq!(taken.json(), expected, "{taken:?}");
    for part in [
        "standard input, line 1: edge.nli_confidence: ",
        "standard input, line 3: page.domian: ",
        "standard input, line 5: edge.relation: ",
    ] {
        assert!(taken.stderr.contains(part), "{taken:?}");
    }
    let missing = up.run(&["evidence", "claims", "show", "claim:1"]).await;
    assert_eq!(missing.code, 3, "{missing:?}");
    let both = run(&["evidence", "events", "--claim", "a", "--edge", "b"]).await;
    assert_eq!(both.code, 2, "{both:?}");
}

#[tokio::test]
async fn the_documented_lines_are_imported_and_exported() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/evidence.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let blocks = |language: &str| -> Vec<String> {
        let begin = format!("```{language}\n");
        let rest = page.split(&begin).skip(1);
        rest.filter_map(|rest| rest.split("```").next())
            .map(str::to_owned)
            .collect()
    };
    let (files, lines) = (blocks("yaml"), blocks("json"));
    let [trust_file] = &files[..] else {
        panic!("the page shows a trust file")
    };
    let [written, exported, sample] = &lines[..] else {
        panic!("the page shows a file, its export and a sample")
    };
    let up = Up::ephemeral().await;
    let run = async |args: &[&str], stdin: &str| {
        up.run_with(&[args, &["-n", "research"]].concat(), stdin)
            .await
            .ok()
    };
    run(
        &["evidence", "trust", "apply", "-", "--format", "yaml"],
        trust_file,
    )
    .await;
    run(&["evidence", "import", "-"], written).await;
    let correction = [
        "evidence",
        "edges",
        "correct",
        "edge:7",
        "refutes",
        "--reason",
        "it says no",
        "--reporter",
        "ana",
    ];
    run(&correction, "").await;
    let lines = run(&["evidence", "export", "t-17"], "").await.lines();
    let documented: Vec<Value> = exported
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    assert_eq!(
        lines.iter().map(told).collect::<Vec<_>>(),
        documented.iter().map(told).collect::<Vec<_>>()
    );
    let samples = run(&["evidence", "samples", "export"], "").await.json();
    let documented: Value = serde_json::from_str(sample).expect(sample);
    assert_eq!(told(&samples), told(&documented));
    let events = run(&["evidence", "events", "--edge", "edge:7"], "").await.stdout;
    for part in ["corrected", "edge", "– → refutes", "it says no"] {
        assert!(events.contains(part), "{part}: {events}");
    }
    let stats = run(&["evidence", "samples", "stats"], "").await.stdout;
    assert!(
        stats.starts_with("1 of 1 reviewed edges were corrected: an error rate of 100.0 %"),
        "{stats}"
    );
    // What was exported can be imported.
    run(&["evidence", "import", "-"], exported).await;
}

/// A line without what differs from one run to the next.
fn told(line: &Value) -> Value {
    let mut line = line.clone();
    let of_sort = line.as_object_mut().expect("an object");
    let fields = match of_sort.values_mut().next() {
        Some(Value::Object(fields)) => fields,
        _ => of_sort,
    };
    for (name, value) in fields {
        if name.ends_with("_at") || ["feedback_id", "sample_id"].contains(&name.as_str()) {
            *value = json!(value.is_null());
        }
    }
    line
}
