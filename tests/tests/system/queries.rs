//! Recorded queries: imported by the command line, listed, and what follows from them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use emend_base::{Clock as _, SystemClock};
use emend_proto::{
    feedback::v1::{ClickThrough, GetFeedbackStatsRequest},
    learning::v1::{CandidateOrigin, CandidateStatus, ListCandidatesRequest},
};
use emend_tests::{
    both_databases,
    harness::{
        Database, NAMESPACE, System, eventually,
        http::{ask, ask_with},
        process::{CommandOutput, emend},
        start::Settings,
        wait::holds,
    },
};
use feedback_svc::RatingHttp;
use jiff::{Span, civil::Date, tz::TimeZone};

/// Another search application.
const PIECES: &str = "pieces";

/// Runs `emend search queries` or another command against the first feedback-svc.
async fn run(system: &System, arguments: &[&str]) -> CommandOutput {
    run_in(system, NAMESPACE, arguments).await
}

/// The same in a namespace.
async fn run_in(system: &System, namespace: &str, arguments: &[&str]) -> CommandOutput {
    let address = system.feedback[0].front.address().to_string();
    let place = ["--feedback-addr", &address, "--namespace", namespace, "--json"];
    emend(&[arguments, &place].concat()).await
}

/// The JSON of recorded queries.
async fn listed(system: &System, arguments: &[&str]) -> Vec<String> {
    listed_in(system, NAMESPACE, arguments).await
}

/// The same in a namespace.
async fn listed_in(system: &System, namespace: &str, arguments: &[&str]) -> Vec<String> {
    let listed = run_in(
        system,
        namespace,
        &[&["search", "queries", "list"], arguments].concat(),
    )
    .await;
    assert_eq!(listed.code, 0, "{listed:?}");
    listed.stdout.lines().map(str::to_owned).collect()
}

/// What `OpenSearch` would have kept of sessions in which somebody found nothing and asked in other words.
fn sessions(count: usize) -> String {
    let mut lines = String::new();
    for session in 0..count {
        let (nothing, something) = (format!("{session}-a"), format!("{session}-b"));
        writeln!(
            lines,
            r#"{{"query_id":"{nothing}","user_query":"cards that bounce","client_id":"{session}","query_response_hit_ids":[],"timestamp":"2026-01-05T09:00:00Z"}}
{{"query_id":"{something}","user_query":"cards that return","client_id":"{session}","query_response_hit_ids":["c1","c2"],"timestamp":"2026-01-05T09:00:30Z"}}
{{"action_name":"item_click","query_id":"{something}","timestamp":"2026-01-05T09:00:40Z","event_attributes":{{"object":{{"object_id":"c1"}},"position":{{"ordinal":1}}}}}}
{{"action_name":"page_exit","timestamp":"2026-01-05T09:01:00Z"}}"#
        )
        .unwrap();
    }
    lines
}

both_databases! {
    async fn files_of_ubi_are_imported_and_a_rewording_that_worked_waits_for_a_person(system) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ubi.jsonl");
        std::fs::write(&file, sessions(3)).unwrap();
        let path = file.display().to_string();
        let imported = run(system, &["search", "queries", "import", "--format", "ubi", &path]).await;
        assert_eq!(imported.code, 0, "{imported:?}");
        let counts = imported.json();
        assert_eq!(
            [&counts["queryCount"], &counts["interactionCount"], &counts["passedOverCount"]],
            [6, 3, 3]
        );

        eventually("all are listed", || async {
            let listed = listed(system, &[]).await;
            if listed.len() == 6 { Ok(()) } else { Err(listed.join("\n")) }
        })
        .await;
        let without_hits = listed(system, &["--without-hits"]).await;
        assert_eq!(without_hits.len(), 3);
        let one: serde_json::Value = serde_json::from_str(&listed(system, &["--query-id", "1-b"]).await[0]).unwrap();
        assert_eq!(one["searchedAt"], "2026-01-05T09:00:30Z");
        for (period, count) in [
            (&["--from", "2026-01-05T09:00:30Z"][..], 3),
            (&["--before", "2026-01-05T09:00:30Z"], 3),
            (&["--from", "2026-01-05", "--before", "2026-01-06"], 6),
            (&["--from", "2026-01-06"], 0),
        ] {
            assert_eq!(listed(system, period).await.len(), count, "{period:?}");
        }
        assert_eq!(one["hitCount"], 2);
        assert_eq!(one["interactions"][0]["objectId"], "c1");

        // The same file again changes nothing, and bad rows are told.
        assert_eq!(run(system, &["search", "queries", "import", "--format", "ubi", &path]).await.code, 0);
        std::fs::write(&file, "{\"query_id\":\"q\"}\n").unwrap();
        let refused = run(system, &["search", "queries", "import", "--format", "ubi", &path]).await;
        assert_ne!(refused.code, 0);
        assert!(refused.stderr.contains("ubi.jsonl, line 1: user_query: is required"), "{refused:?}");

        // A replica looks for rewordings when it starts, and from then on every five minutes.
        system.stop_feedback().await;
        system.start_feedback().await;
        let learning = system.learning();
        let mined = eventually("it is proposed", || async {
            let request = ListCandidatesRequest {
                namespace: NAMESPACE.into(),
                ..ListCandidatesRequest::default()
            };
            let found = learning.list_candidates(request).await;
            if found.is_empty() { Err("no candidate".to_owned()) } else { Ok(found) }
        })
        .await;
        let [mined] = &mined[..] else {
            panic!("{mined:?}");
        };
        assert_eq!(mined.origin(), CandidateOrigin::Mined);
        assert_eq!(mined.status(), CandidateStatus::AwaitingReview);
        assert_eq!(mined.status_reason, "PERSON_DECIDES");
        assert_eq!((mined.threshold, mined.confirmations_needed), (3, 3));
        let key = mined.key.as_ref().unwrap();
        assert_eq!((key.key.as_str(), key.qualifier.as_str()), ("bounce", "return"));
        assert_eq!(listed(system, &[]).await.len(), 6, "what was recorded is kept over a restart");
    }

    async fn what_ubi_does_not_say_is_unknown_and_several_documents_are_one_query(system) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ubi.ndjson");
        let documents = [
            r#"{"index":{"_index":"ubi_queries","_id":"1"}}"#,
            r#"{"query_id":"silent","user_query":"tv","client_id":"c1","timestamp":"{earlier}T00:01:29.378Z"}"#,
            r#"{"index":{"_index":"ubi_queries","_id":"2"}}"#,
            r#"{"query_id":"none","user_query":"soun","query_response_hit_ids":[],"timestamp":"{later}T09:22:18.149+0000"}"#,
            r#"{"index":{"_index":"ubi_queries","_id":"3"}}"#,
            r#"{"query_id":"two","user_query":"sound","query_response_hit_ids":[],"timestamp":"{later}T09:22:18.148+0000"}"#,
            r#"{"index":{"_index":"ubi_queries","_id":"4"}}"#,
            r#"{"query_id":"two","user_query":"sound","query_response_hit_ids":["a","b"],"timestamp":"{later}T09:22:18.2+0000"}"#,
            r#"{"index":{"_index":"ubi_queries","_id":"5"}}"#,
            r#"{"query_id":"two","user_query":"","query_response_hit_ids":[],"timestamp":"{later}T09:22:19+0000"}"#,
            r#"{"index":{"_index":"ubi_events","_id":"6"}}"#,
            r#"{"action_name":"impression","query_id":"two","event_attributes":{"object":{"object_id":"a"},"rank":0}}"#,
            r#"{"index":{"_index":"ubi_events","_id":"7"}}"#,
            r#"{"action_name":"click","query_id":"two","event_attributes":{"object":{"object_id":"b"},"rank":1}}"#,
        ];
        // Lately: days are counted for two years.
        let today = SystemClock.now().to_zoned(TimeZone::UTC).date();
        let [earlier, later] = [10, 4].map(|weeks| today - Span::new().weeks(weeks));
        let dated = documents.join("\n");
        let dated = dated.replace("{earlier}", &earlier.to_string()).replace("{later}", &later.to_string());
        std::fs::write(&file, dated).unwrap();
        let path = file.display().to_string();
        let arguments = ["search", "queries", "import", "--format", "ubi", &path];
        let import = || run(system, &arguments);
        let counts = import().await.json();
        for (name, count) in [
            ("queryCount", 3),
            ("zeroHitCount", 1),
            ("unknownHitCount", 1),
            ("interactionCount", 2),
            ("browsingCount", 1),
            ("badCount", 0),
        ] {
            assert_eq!(counts[name], count, "{name} of {counts}");
        }
        assert_eq!(import().await.json(), counts);
        eventually("all are listed", || async {
            let listed = listed(system, &[]).await;
            if listed.len() == 3 { Ok(()) } else { Err(listed.join("\n")) }
        })
        .await;
        let one = async |id: &str| -> serde_json::Value {
            serde_json::from_str(&listed(system, &["--query-id", id]).await[0]).unwrap()
        };
        assert_eq!(one("silent").await.get("hitCount"), None);
        assert_eq!(one("none").await["hitCount"], 0);
        assert_eq!(one("two").await["hitCount"], 2);
        let places: Vec<_> = one("two").await["interactions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|of| (of["action"].clone(), of["position"].clone()))
            .collect();
        assert_eq!(places, [("impression".into(), 1.into()), ("click".into(), 2.into())]);
        let without_hits = listed(system, &["--without-hits"]).await;
        assert_eq!(without_hits.len(), 1);
        assert!(without_hits[0].contains(r#""queryId":"none""#), "{without_hits:?}");
        let stats = run(system, &["search", "stats"]).await.json();
        assert_eq!(
            (&stats["total"]["zeroHitCount"], &stats["total"]["unknownHitCount"], &stats["total"]["zeroHitShare"]),
            (&1.into(), &1.into(), &0.5.into())
        );
        let weeks = stats["weeks"].as_array().unwrap().iter();
        let weeks: Vec<_> = weeks.map(|week| (week["name"].as_str().unwrap(), week["zeroHitShare"].as_f64())).collect();
        let monday = |day: Date| {
            (day - Span::new().days(i64::from(day.weekday().to_monday_zero_offset()))).to_string()
        };
        assert_eq!(weeks, [(&*monday(earlier), None), (&*monday(later), Some(0.5))]);
        let place = system.feedback[0].front.address().to_string();
        let table = emend(&["search", "queries", "list", "--feedback-addr", &place, "--namespace", NAMESPACE]).await.stdout;
        let silent = table.lines().find(|line| line.contains("silent")).unwrap();
        assert!(silent.contains("unknown"), "{table}");
        let two = table.lines().find(|line| line.contains("two")).unwrap();
        let words: Vec<&str> = two.split_whitespace().collect();
        assert!(words.ends_with(&["2", "1", "sound"]), "an impression is no click: {table}");
    }

    async fn ratings_are_counted_by_what_is_known_of_their_queries(system) {
        for (query, variant) in [("q-1", "A"), ("q-2", "B")] {
            let recorded = run(
                system,
                &["search", "queries", "record", query, "cards that bounce", "--variant", variant, "--type", "HYBRID"],
            )
            .await;
            assert_eq!(recorded.code, 0, "{recorded:?}");
        }
        let interact = ["search", "queries", "interact", "q-2", "card-3"];
        assert_eq!(run(system, &interact).await.code, 0);
        assert_eq!(run(system, &["search", "rate", "q-1", "down", "--reporter", "ana"]).await.code, 0);
        assert_eq!(run(system, &["search", "rate", "q-2", "up", "--reporter", "ana"]).await.code, 0);
        let stats = eventually("both are counted", || async {
            let stats = run(system, &["search", "stats", "--compare", "variant", "--one", "A", "--other", "B"]).await;
            let json = stats.json();
            let names: BTreeSet<&str> =
                json["variants"].as_array().into_iter().flatten().filter_map(|share| share["name"].as_str()).collect();
            if names == BTreeSet::from(["A", "B"]) { Ok(json.clone()) } else { Err(stats.stdout) }
        })
        .await;
        assert_eq!((&stats["total"]["ratingCount"], &stats["total"]["negativeCount"]), (&2.into(), &1.into()));
        assert_eq!(stats["queryTypes"][0]["name"], "HYBRID");
        assert_eq!(stats["compared"]["one"]["negativeShare"], 1.0);
        let terms = run(system, &["search", "queries", "terms"]).await;
        assert!(terms.stdout.contains(r#""term":"bounce""#), "{terms:?}");

        let recent = eventually("the click is counted", || async {
            let request = GetFeedbackStatsRequest {
                namespace: NAMESPACE.into(),
                ..GetFeedbackStatsRequest::default()
            };
            let mut queries = system.feedback_at(0).queries;
            let stats = queries.get_feedback_stats(request).await.unwrap().into_inner();
            let recent = stats.recent.unwrap();
            holds(recent.all.as_ref().is_some_and(|all| all.clicked_count == 1), || format!("{recent:?}"))?;
            Ok(recent)
        })
        .await;
        let [top] = &recent.top_queries[..] else {
            panic!("{recent:?}");
        };
        assert_eq!(top.query_text, "cards that bounce");
        let shares = |counted: &ClickThrough| {
            (counted.variant.clone(), counted.search_count, counted.clicked_count, counted.click_through)
        };
        assert_eq!(top.all.as_ref().map(shares), Some((String::new(), 2, 1, Some(0.5))));
        let by_variant: BTreeMap<String, Option<f64>> =
            top.variants.iter().map(|of| (of.variant.clone(), of.click_through)).collect();
        assert_eq!(by_variant, BTreeMap::from([("A".into(), Some(0.0)), ("B".into(), Some(1.0))]));
    }
}

/// Documents as `OpenSearch` UBI writes them: bulk lines, several of one query, browsing, events about nothing.
const DOCUMENTS: [&str; 19] = [
    r#"{"index":{"_index":"ubi_queries","_id":"1"}}"#,
    r#"{"query_id":"silent","user_query":"tv","client_id":"c1","timestamp":"2024-12-10T00:01:29.378Z"}"#,
    r#"{"query_id":"none","user_query":"soun","query_response_hit_ids":[],"timestamp":"2025-01-24T09:22:18.149+0000"}"#,
    r#"{"query_id":"two","user_query":"sound","query_response_hit_ids":[],"timestamp":"2025-01-24T09:22:18.148+0000"}"#,
    r#"{"query_id":"two","user_query":"sound","query_response_hit_ids":["a",7],"timestamp":"2025-01-24T09:22:18.2+0000"}"#,
    r#"{"query_id":"two","user_query":"","query_response_hit_ids":[],"timestamp":"2025-01-24T09:22:19+0000"}"#,
    "",
    r#"{"index":{"_index":"ubi_events","_id":"6"}}"#,
    r#"{"query_id":"two","action_name":"impression","event_attributes":{"object":{"object_id":"a"},"position":{"ordinal":1}}}"#,
    r#"{"action_name":"click","query_id":"two","event_attributes":{"object":{"object_id":"7"},"rank":1},"timestamp":1737710540000}"#,
    r#"{"action_name":"Click","query_id":"two","event_attributes":{"object":{"object_id":"7"},"rank":1},"timestamp":1737710541000}"#,
    r#"{"action_name":"page_exit","query_id":"two"}"#,
    r#"{"_index":"ubi_queries","_source":{"query_id":"found","user_query":"jaar","query_response_hit_ids":["x"]}}"#,
    r#"{"action_name":"click","query_id":"found","object":{"object_id":"x"},"position":{"ordinal":1}}"#,
    // Two pages of results, more than are kept of a query.
    r#"{"query_id":"paged","user_query":"cable","client_id":"c4","query_response_hit_ids":["1","2","3","4","5","6","7"],"timestamp":"2025-01-24T09:30:00Z"}"#,
    r#"{"query_id":"paged","user_query":"cable","client_id":"c4","query_response_hit_ids":["6","7","8","9","10","11","12"],"timestamp":"2025-01-24T09:30:09Z"}"#,
    r#"{"query_id":"jumped","user_query":"two\nlines","query_response_hit_ids":["x"],"client_id":"c2"}"#,
    // As version 1.3.0 of the schemas has them: no id, no zone, an action of 100 characters.
    r#"{"application":"shop","user_query":"nameless","client_id":"c3","query_response_id":"r","query_response_hit_ids":["x"],"timestamp":"2018-11-13T20:20:39","query_attributes":{}}"#,
    r#"{"action_name":"click_0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123","query_id":"found","session_id":"s","timestamp":"2018-11-13T20:20:39","event_attributes":{"object":{"object_id":"x","object_id_field":"sku"},"position":{"ordinal":1}}}"#,
];

async fn with_raters(database: Database) -> System {
    let settings = Settings {
        rating_http: RatingHttp {
            bindings: [NAMESPACE, PIECES]
                .map(|namespace| format!("127.0.0.1:0={namespace}/web").parse().unwrap())
                .to_vec(),
            origins: vec!["https://shop.example".to_owned()],
            ..RatingHttp::default()
        },
        ..Settings::default()
    };
    System::start(database, 1, 1, settings).await
}

/// What is known of all queries, without when it was recorded.
async fn known(system: &System, namespace: &str, count: usize) -> Vec<serde_json::Value> {
    let listed = eventually("all are listed", || async {
        let listed = listed_in(system, namespace, &[]).await;
        if listed.len() == count {
            Ok(listed)
        } else {
            Err(listed.join("\n"))
        }
    })
    .await;
    let mut known: Vec<serde_json::Value> = listed
        .iter()
        .map(|line| {
            let mut query: serde_json::Value = serde_json::from_str(line).unwrap();
            let fields = query.as_object_mut().unwrap();
            fields.remove("recordedAt");
            // A query that says no time has that of its recording.
            if ["found", "jumped"].contains(&fields["queryId"].as_str().unwrap()) {
                fields.remove("searchedAt");
            }
            for interaction in fields
                .get_mut("interactions")
                .into_iter()
                .flat_map(|all| all.as_array_mut().unwrap())
            {
                let interaction = interaction.as_object_mut().unwrap();
                if interaction["action"] != "click" || interaction["objectId"] != "7" {
                    interaction.remove("actedAt");
                }
            }
            query
        })
        .collect();
    known.sort_by_key(|query| query["queryId"].to_string());
    known
}

async fn documents_posted_live_equal_the_same_imported(databases: [Database; 2]) {
    let [live, imported] = databases;
    let (live, imported) = (with_raters(live).await, with_raters(imported).await);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ubi.ndjson");
    std::fs::write(&file, DOCUMENTS.join("\n")).unwrap();
    let path = file.display().to_string();
    let counts = run(
        &imported,
        &["search", "queries", "import", "--format", "ubi", &path],
    )
    .await;
    assert_eq!(counts.code, 0, "{counts:?}");
    let address = live.feedback[0].rating_address();
    let post = async |path: &str, body: &str| {
        let answer = ask(address, "POST", path, body).await;
        let body: serde_json::Value =
            serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
        (answer.status, body)
    };
    let bulk = DOCUMENTS.join("\n");
    for _ in 0..2 {
        // Sent again, it changes nothing.
        let (status, taken) = post("/v1/ubi", &bulk).await;
        assert_eq!(
            (status, &taken["errors"]),
            (200, &serde_json::json!([])),
            "{taken}"
        );
        let counts = counts.json();
        for (ours, theirs) in [
            ("queries", "queryCount"),
            ("interactions", "interactionCount"),
            ("browsing", "browsingCount"),
            ("passed_over", "passedOverCount"),
        ] {
            assert_eq!(taken[ours], counts[theirs], "{ours} of {taken}");
        }
    }
    let expected = known(&imported, NAMESPACE, 7).await;
    assert_eq!(
        expected[5]["interactions"].as_array().map(Vec::len),
        Some(2),
        "{expected:?}"
    );
    let nameless = &expected[6];
    assert!(
        nameless["queryId"].as_str().unwrap().starts_with("ubi-"),
        "{nameless}"
    );
    assert_eq!(nameless["searchedAt"], "2018-11-13T20:20:39Z", "{nameless}");
    assert_eq!(
        expected[0]["interactions"].as_array().map(Vec::len),
        Some(2),
        "{expected:?}"
    );
    assert_eq!(known(&live, NAMESPACE, 7).await, expected);

    // Each document in a body of its own, the newest first: what comes later of a query joins what came before.
    let pieces = live.feedback[0].rating_addresses()[1];
    let mut index = "";
    let mut posted = Vec::new();
    for line in DOCUMENTS {
        if line.starts_with(r#"{"index""#) {
            index = line;
        } else if !line.is_empty() {
            posted.push(format!("{index}\n{line}"));
            index = "";
        }
    }
    for body in posted.iter().rev() {
        let answer = ask(pieces, "POST", "/v1/ubi", body).await;
        assert_eq!(answer.status, 200, "{body}: {answer:?}");
    }
    eventually("all of them are one query each", || async {
        let found = known(&live, PIECES, 7).await;
        holds(found == expected, || format!("{found:#?}\n{expected:#?}"))
    })
    .await;
    let counted = async |system: &System, namespace: &str| {
        let stats = run_in(system, namespace, &["search", "stats", "--from", "2018-01-01"]).await;
        assert_eq!(stats.code, 0, "{stats:?}");
        stats.json()["total"].clone()
    };
    assert_eq!(counted(&live, PIECES).await, counted(&imported, NAMESPACE).await);

    // One by one, as a list, and under the names of the indexes.
    let one =
        r#"{"query_id":"single","user_query":"lamp","action_name":"search","query_response_hit_ids":["l"]}"#;
    assert_eq!(post("/v1/ubi/queries", one).await.1["queries"], 1);
    for body in ["", "\n", "[]", r#"{"index":{"_index":"ubi_queries"}}"#] {
        let (status, refused) = post("/v1/ubi", body).await;
        let why = refused["errors"][0]["description"].as_str().unwrap_or_default();
        assert_eq!(
            (status, why.contains("a JSON list of documents")),
            (400, true),
            "{body:?}: {refused}"
        );
    }
    let events = r#"[{"query_id":"single","action_name":"click","object_id":"l"}, {"query_id":"single","object_id":"l"}]"#;
    let (status, taken) = post("/v1/ubi/events", events).await;
    assert_eq!((status, &taken["interactions"]), (200, &1.into()), "{taken}");
    assert_eq!(
        taken["errors"],
        serde_json::json!([{"line": 2, "field": "action_name", "description": "is required"}])
    );
    let single = eventually("what was clicked is listed", || async {
        let found = listed(&live, &["--query-id", "single"]).await;
        let found: Option<serde_json::Value> = found.first().and_then(|line| serde_json::from_str(line).ok());
        let found = found.filter(|query| query["interactions"].is_array());
        found.ok_or_else(|| "not yet".to_owned())
    })
    .await;
    assert_eq!(
        (&single["queryText"], &single["hitCount"]),
        (&"lamp".into(), &1.into()),
        "{single}"
    );
    let (status, refused) = post(
        "/v1/ubi",
        "{\"query_id\":\"q\",\"user_query\":\"a\",\"timestamp\":\"2999-01-01T00:00:00Z\"}\n{\n",
    )
    .await;
    assert_eq!(status, 400);
    let fields: Vec<_> = refused["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| (&error["line"], &error["field"]))
        .collect();
    assert_eq!(
        fields,
        [(&1.into(), &"timestamp".into()), (&2.into(), &"document".into())],
        "{refused}"
    );

    // Pages of other sites may as they may rate.
    for (origin, status) in [("https://shop.example", 200), ("https://elsewhere.example", 403)] {
        let answer = ask_with(
            address,
            "POST",
            "/v1/ubi",
            &[("Host", "emend"), ("Origin", origin)],
            one,
        )
        .await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(
            answer
                .head
                .contains("access-control-allow-origin: https://shop.example"),
            status == 200,
            "{answer:?}"
        );
    }
    live.stop().await;
    imported.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_posted_live_equal_the_same_imported_on_sqlite() {
    Box::pin(documents_posted_live_equal_the_same_imported([
        Database::sqlite(),
        Database::sqlite(),
    ]))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_posted_live_equal_the_same_imported_on_postgresql() {
    let (Some(one), Some(other)) = (Database::postgres().await, Database::postgres().await) else {
        return;
    };
    Box::pin(documents_posted_live_equal_the_same_imported([one, other])).await;
}
