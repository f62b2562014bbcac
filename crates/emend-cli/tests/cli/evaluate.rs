//! What `emend search evaluate` measures is what `trec_eval` measures.

use std::{collections::BTreeMap, env, fmt::Write as _, fs, path::Path};

use emend_base::{entropy::Entropy, testing::skipped};
use serde_json::{Value, json};
use tokio::{process::Command, time::timeout};

use crate::harness::{TIMEOUT, Up, run};

const PYTHON: &str = "EMEND_TEST_PYTHON";
/// The measure of ours, and what `trec_eval` calls it.
const MEASURES: [(&str, &str); 4] = [
    ("precision@10", "P_10"),
    ("recall@10", "recall_10"),
    ("mrr", "recip_rank"),
    ("ndcg@10", "ndcg_cut_10"),
];

/// Sixty queries with graded judgements and ranked results, in our form and in TREC's. Each query is a type of its own, so
/// that its measures are printed.
struct Files {
    judged: String,
    qrels: String,
    run: String,
}

fn random() -> Files {
    let entropy = Entropy::seeded(16);
    let below = |bound: u64| {
        let mut bytes = [0; 8];
        entropy.fill(&mut bytes);
        u64::from_le_bytes(bytes) % bound
    };
    let mut files = Files {
        judged: String::new(),
        qrels: String::new(),
        run: String::new(),
    };
    for query in 0..60 {
        let grades: BTreeMap<String, u64> = (0..=below(25))
            .map(|_| (format!("d{}", below(40)), below(4)))
            .chain([(format!("d{}", below(40)), 1 + below(3))])
            .collect();
        let judgements: Vec<_> = grades
            .iter()
            .map(|(id, grade)| json!({"id": id, "grade": grade}))
            .collect();
        let line = json!({"query_id": format!("q{query}"), "query_type": format!("q{query}"), "judgements": judgements});
        let _ = writeln!(files.judged, "{line}");
        for (id, grade) in &grades {
            let _ = writeln!(files.qrels, "q{query} 0 {id} {grade}");
        }
        let mut results: Vec<(u64, u64)> = (0..40).map(|id| (below(1 << 40), id)).collect();
        results.sort_unstable();
        results.truncate(1 + usize::try_from(below(30)).unwrap_or(0));
        for (rank, (_, id)) in results.into_iter().enumerate() {
            let _ = writeln!(files.run, "q{query} Q0 d{id} {} {} random", rank + 1, 100 - rank);
        }
    }
    files
}

async fn trec_eval(python: &str, qrels: &Path, run: &Path) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/trec_eval.py");
    let names = MEASURES.map(|(_, theirs)| theirs).join(",");
    let done = Command::new(python)
        .arg(script)
        .arg(names)
        .args([qrels, run])
        .output()
        .await
        .expect("Python starts");
    assert!(done.status.success(), "{done:?}");
    serde_json::from_slice(&done.stdout).expect("JSON")
}

#[tokio::test]
async fn on_random_rankings_the_measures_are_those_of_trec_eval() {
    let Ok(python) = env::var(PYTHON) else {
        return skipped(format_args!("{PYTHON} is not set"));
    };
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let files = random();
    let (judged, qrels) = (write("judged.jsonl", &files.judged), write("qrels", &files.qrels));
    let ranked = write("random.run", &files.run);
    let theirs = trec_eval(&python, &qrels, &ranked).await;
    let arguments = ["search", "evaluate", "--json", "--judgements"];
    let files = [judged.to_str().unwrap(), "--before", ranked.to_str().unwrap()];
    let ours = run(&[&arguments[..], &files[..]].concat()).await.ok().json();
    let groups: BTreeMap<_, _> = ours["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| (group["queryType"].as_str().unwrap(), group))
        .collect();
    assert_eq!(groups.len(), 61, "all queries together, and each");
    for (query, expected) in theirs.as_object().unwrap() {
        for measure in groups[query.as_str()]["measures"].as_array().unwrap() {
            let name = measure["name"].as_str().unwrap();
            let (_, theirs) = MEASURES.into_iter().find(|(ours, _)| *ours == name).unwrap();
            let (is, should) = (
                measure["before"].as_f64().unwrap(),
                expected[theirs].as_f64().unwrap(),
            );
            assert!(
                (is - should).abs() < 1e-9,
                "{query} {name}: {is}, trec_eval says {should}"
            );
        }
    }
}

#[tokio::test]
async fn a_change_is_a_table_a_document_and_a_picture() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let judged = "query,docid,rating\nward,card:1,3\nward,card:2,1\nstorm,card:3,2\n";
    fs::write(path("judged.csv"), judged).unwrap();
    fs::write(
        path("before"),
        "{\"query_id\":\"ward\",\"results\":[\"card:9\",\"card:1\"]}\n",
    )
    .unwrap();
    let after = "{\"query_id\":\"ward\",\"results\":[\"card:1\",\"card:2\"]}\n{\"query_id\":\"storm\",\"results\":[\"card:3\"]}\n";
    fs::write(path("after"), after).unwrap();
    let (judged, before, after, svg) = (
        path("judged.csv"),
        path("before"),
        path("after"),
        path("change.svg"),
    );
    let arguments = [
        "search",
        "evaluate",
        "--judgements",
        &judged,
        "--format",
        "quepid",
        "--before",
        &before,
        "--after",
        &after,
    ];
    let text = run(&[&arguments[..], &["--svg", &svg]].concat())
        .await
        .ok()
        .stdout;
    // The reciprocal rank was 1/2 and 0, and is 1 and 1.
    let row = text.lines().find(|line| line.contains("mrr")).unwrap();
    assert!(row.contains("0.250") && row.contains("1.000"), "{text}");
    assert!(
        text.ends_with("\n2 queries changed: of so few, p is never below 0.500\n"),
        "{text}"
    );
    let each = run(&[&arguments[..], &["--queries"]].concat()).await.ok().stdout;
    let (_, each) = each.rsplit_once("\n\n").expect("a second table");
    let rows: Vec<Vec<&str>> = each
        .lines()
        .map(|row| {
            row.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .collect()
        })
        .collect();
    assert_eq!(rows[0], ["QUERY", "PRECISION@10", "RECALL@10", "MRR", "NDCG@10"]);
    assert_eq!(
        rows[1],
        [
            "storm",
            "0.000 → 0.100",
            "0.000 → 1.000",
            "0.000 → 1.000",
            "0.000 → 1.000"
        ]
    );
    assert_eq!(
        rows[2][..4],
        ["ward", "0.100 → 0.200", "0.500 → 1.000", "0.500 → 1.000"]
    );
    let svg = fs::read_to_string(&svg).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("ndcg@10"), "{svg}");
    let json = run(&[&arguments[..], &["--json", "--queries", "-k", "1"]].concat())
        .await
        .ok()
        .json();
    assert_eq!(
        json["each"][0]["measures"][0],
        json!({"name": "precision@1", "before": 0.0, "after": 1.0}),
        "{json}"
    );
    let names: Vec<_> = json["groups"][0]["measures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["name"].clone())
        .collect();
    assert_eq!(names, ["precision@1", "recall@1", "mrr", "ndcg@1"]);
    fs::write(path("after"), "ward Q0 card:1 one 2.0 tag\n").unwrap();
    let bad = run(&arguments).await;
    assert_ne!(bad.code, 0);
    assert!(
        bad.stderr.contains("line 1") && bad.stderr.contains("rank"),
        "{bad:?}"
    );
}

/// Records a query of the type HYBRID, whose results have these scores.
#[tokio::test]
async fn a_run_of_other_queries_or_other_ids_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let judged = "{\"query_id\": \"ward\", \"judgements\": [{\"id\": \"card:1\", \"grade\": 2}]}";
    fs::write(path("judged"), judged).unwrap();
    let write = |name: &str, query: &str, results: &[&str]| {
        let line = json!({"query_id": query, "results": results}).to_string();
        fs::write(path(name), line).unwrap();
    };
    write("good", "ward", &["card:7", "card:1"]);
    write("nothing", "ward", &[]);
    write("queries", "W-1", &["card:1"]);
    write("ids", "ward", &["1", "7"]);
    let evaluated = async |before: &str, after: Option<&str>| {
        let (judged, before, after) = (path("judged"), path(before), after.map(path));
        let mut arguments = vec!["search", "evaluate", "--judgements", &judged, "--before", &before];
        arguments.extend(
            after
                .as_deref()
                .map(|after| ["--after", after])
                .into_iter()
                .flatten(),
        );
        run(&arguments).await
    };
    for (before, after, wrong, expected) in [
        (
            "queries",
            None,
            "queries",
            "has none of the judged queries: its query_ids are like \"W-1\", the judged ones like \"ward\"",
        ),
        (
            "ids",
            None,
            "ids",
            "has no result that is judged for any query: its ids are like \"1\", the judged ones like \"card:1\"",
        ),
        ("good", Some("ids"), "ids", "has no result that is judged"),
        (
            "queries",
            Some("good"),
            "queries",
            "has none of the judged queries",
        ),
    ] {
        let refused = evaluated(before, after).await;
        assert_ne!(refused.code, 0, "{refused:?}");
        let names_both = refused.stderr.contains(expected) && refused.stderr.contains(&path(wrong));
        assert!(names_both && refused.stdout.is_empty(), "{refused:?}");
    }
    for (before, after) in [("good", None), ("nothing", Some("good"))] {
        evaluated(before, after).await.ok();
    }
}

#[tokio::test]
async fn a_tuning_keeps_the_settings_that_a_change_does_not_name() {
    let up = Up::start(&["--ephemeral"]).await;
    let set = async |settings: &[&str]| {
        up.run(&[&["search", "tuning", "set", "HYBRID"][..], settings].concat())
            .await
    };
    set(&["top_k=20", "weight.keyword=0.7"]).await.ok();
    set(&["min_score=0.3", "weight.embedding=0.3"]).await.ok();
    let shown = async || up.run(&["search", "tuning", "show", "HYBRID"]).await.ok().stdout;
    let both = shown().await;
    for setting in [
        "top_k=20",
        "min_score=0.3",
        "weight.keyword=0.7",
        "weight.embedding=0.3",
    ] {
        assert!(both.contains(setting), "{setting} in {both}");
    }
    set(&["top_k=", "weight.keyword="]).await.ok();
    let fewer = shown().await;
    assert!(
        fewer.contains("top_k=10") && fewer.contains("min_score=0.3"),
        "{fewer}"
    );
    assert!(!fewer.contains("weight.keyword"), "{fewer}");
    let stale = set(&["top_k=5", "--etag", "1"]).await;
    assert!(
        stale.code != 0 && stale.stderr.contains("changed since"),
        "{stale:?}"
    );
    assert_eq!(shown().await, fewer);
    // Changes that come together all stand.
    let together = [
        "namespaces=faq",
        "suggestion=Ask.",
        "confidence.high=0.8",
        "retry=none",
        "top_k=30",
    ];
    let done = tokio::join!(
        set(&together[0..1]),
        set(&together[1..2]),
        set(&together[2..3]),
        set(&together[3..4]),
        set(&together[4..5]),
    );
    for done in [done.0, done.1, done.2, done.3, done.4] {
        done.ok();
    }
    let all = shown().await;
    for setting in together {
        assert!(all.contains(setting), "{setting} in {all}");
    }
}

async fn record(up: &Up, id: &str, text: &str, scores: &[f64]) {
    let results: Vec<String> = (1..)
        .zip(scores)
        .map(|(place, score)| format!("--result=card-{place}=Card {place}:{score}"))
        .collect();
    let hits = scores.len().to_string();
    let mut words = vec![
        "search", "queries", "record", id, text, "--type", "HYBRID", "--hits", &hits,
    ];
    words.extend(results.iter().map(String::as_str));
    up.run(&words).await.ok();
}

/// Waits until so many queries are listed.
async fn until_recorded(up: &Up, count: usize) {
    let listed = async || {
        up.run(&["search", "queries", "list", "--json"])
            .await
            .ok()
            .lines()
            .len()
    };
    let all = async { while listed().await < count {} };
    timeout(TIMEOUT, all).await.expect("all are listed in time");
}

#[tokio::test]
async fn a_tuning_is_previewed_on_recorded_queries_and_on_judged_ones() {
    let up = Up::ephemeral().await;
    let settings = ["min_score=0.6", "retry=none"];
    let preview = [&["search", "tuning", "preview", "HYBRID"][..], &settings].concat();
    let none = up.run(&preview).await.ok().stdout;
    assert!(
        none.contains("1     from 0.4 top 10") && none.contains("No recorded queries of the type HYBRID in"),
        "{none}"
    );

    record(&up, "q-1", "draw a card", &[0.8, 0.7, 0.5]).await;
    record(&up, "q-2", "storm", &[0.5, 0.45]).await;
    record(&up, "q-3", "ward", &[0.9]).await;
    until_recorded(&up, 3).await;
    let told = up.run(&[&preview[..], &["--json"]].concat()).await.ok().json();
    assert_eq!(told["before"]["steps"].as_array().unwrap().len(), 3, "{told}");
    assert_eq!(told["after"]["steps"].as_array().unwrap().len(), 1, "{told}");
    let changed: Vec<_> = told["changed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| {
            json!([
                of["queryId"],
                of["change"],
                of["before"]["most"],
                of["after"]["most"]
            ])
        })
        .collect();
    assert_eq!(
        changed,
        [json!(["q-2", "nothing", 2, 0]), json!(["q-1", "fewer", 3, 2])]
    );
    let text = up.run(&preview).await.ok().stdout;
    assert!(
        text.contains("3 recorded queries of the type HYBRID, of which\n    1 would find nothing\n    1 would find fewer results"),
        "{text}"
    );

    let heavier = [&preview[..], &["weight.keyword=2.0"]].concat();
    let untold = up.run(&heavier).await.ok().stdout;
    assert!(untold.contains("only a search node tells"), "{untold}");

    // What is in force is compared with.
    let set = [&["search", "tuning", "set", "HYBRID"][..], &settings].concat();
    up.run(&set).await.ok();
    let same = up.run(&preview).await.ok().stdout;
    assert!(same.contains("nothing would change"), "{same}");

    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let judged = "{\"query_id\": \"storm\", \"judgements\": [{\"id\": \"card-2\", \"grade\": 1}]}";
    fs::write(path("judged"), judged).unwrap();
    let run = "{\"query_id\": \"storm\", \"results\": [\"card-1\", \"card-2\"], \"scores\": [0.7, 0.5]}";
    fs::write(path("run"), run).unwrap();
    let (judged, run) = (path("judged"), path("run"));
    let wider = [
        "search",
        "tuning",
        "preview",
        "HYBRID",
        "min_score=0.4",
        "--judgements",
        &judged,
    ];
    let measured = up
        .run(&[&wider[..], &["--run", &run, "--json"]].concat())
        .await
        .ok()
        .json();
    assert_eq!(
        measured["changed"][0]["foundAfter"],
        json!(["card-1", "card-2"]),
        "{measured}"
    );
    let recall = &measured["measures"]["groups"][0]["measures"][1];
    assert_eq!(
        (&recall["before"], &recall["after"]),
        (&json!(0.0), &json!(1.0)),
        "{recall}"
    );
    let nobody = up.run(&wider).await;
    assert_eq!(nobody.code, 2);
    assert!(
        nobody.stderr.contains("--node") && nobody.stderr.contains("--run"),
        "{nobody:?}"
    );
}

#[tokio::test]
async fn ratings_and_clicks_judge_what_is_found() {
    let up = Up::ephemeral().await;
    record(&up, "q-1", "draw a card", &[0.8, 0.7, 0.5]).await;
    record(&up, "q-2", "Draw a  card", &[0.8, 0.7]).await;
    record(&up, "q-3", "storm", &[0.5, 0.4]).await;
    record(&up, "q-4", "ward", &[0.9]).await;
    for (query, card) in [("q-1", "card-2"), ("q-4", "card-1")] {
        up.run(&["search", "queries", "interact", query, card]).await.ok();
    }
    until_recorded(&up, 4).await;
    for (query, value) in [("q-1", "up"), ("q-2", "up"), ("q-3", "down"), ("q-9", "down")] {
        up.run(&["search", "rate", query, value, "--reporter", "ana"])
            .await
            .ok();
    }
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (before, after, rated) = (path("before"), path("after"), path("rated.jsonl"));
    let line =
        |query: &str, results: &[&str]| json!({"query_id": query, "results": results}).to_string() + "\n";
    fs::write(&before, line("Draw a  card", &["card-3", "card-1"])).unwrap();
    let better = line("Draw a  card", &["card-2", "card-1"]) + &line("ward", &["card-1"]);
    fs::write(&after, better).unwrap();
    let runs = ["--before", &before, "--after", &after];

    let evaluate = ["search", "evaluate", "--ratings", "--clicks"];
    let report = up
        .run(&[&evaluate[..], &runs, &["--json"]].concat())
        .await
        .ok()
        .json();
    assert_eq!(
        report["judgedBy"],
        json!({
            "ratings": 3, "ratingsWithClicks": 1, "clickedSearches": 1, "queries": 3, "judgementsOfGrade": [2, 1, 2],
            "unknownQueries": 1, "tooFewRatings": 0,
        })
    );
    let all = &report["groups"][0];
    assert_eq!(
        (&all["queries"], &report["withoutRelevant"]),
        (&json!(2), &json!(1))
    );
    let mrr = &all["measures"][2];
    assert_eq!((&mrr["before"], &mrr["after"]), (&json!(0.25), &json!(1.0)));

    // The same from a file, of queries that were rated twice.
    up.run(&["export", "ratings", &rated, "--format", "jsonl"])
        .await
        .ok();
    let from_file = [
        "search",
        "evaluate",
        "--judgements",
        &rated,
        "--format",
        "ratings",
        "--min-ratings",
        "2",
    ];
    let text = up.run(&[&from_file[..], &runs].concat()).await.ok().stdout;
    assert!(
        text.starts_with(
            "Judged by 3 ratings, 1 of them with clicks.\n1 query with 2 judgements: 1 of grade 2, 1 of grade 1, 0 of \
             grade 0\n1 rating left out: nothing is known of the query\n1 query left out: fewer than 2 ratings\n"
        ),
        "{text}"
    );
    let none = up
        .run(&[
            "search",
            "evaluate",
            "--ratings",
            "--rated-before",
            "2020-01-01",
            "--before",
            &before,
        ])
        .await;
    assert!(
        none.code == 1 && none.stderr.contains("no query is judged"),
        "{none:?}"
    );

    // Where nothing is relevant there is nothing to measure.
    let down = path("down.jsonl");
    up.run(&[
        "export", "ratings", &down, "--format", "jsonl", "--rating", "down",
    ])
    .await
    .ok();
    let storm = path("storm");
    fs::write(&storm, line("storm", &["card-1"])).unwrap();
    let evaluate_down = [
        "search",
        "evaluate",
        "--judgements",
        &down,
        "--format",
        "ratings",
        "--before",
    ];
    let other = up.run(&[&evaluate_down[..], &[&before]].concat()).await;
    assert!(
        other.code == 1 && other.stderr.contains("has none of the judged queries"),
        "{other:?}"
    );
    let nothing = up.run(&[&evaluate_down[..], &[&storm]].concat()).await;
    assert_eq!(nothing.code, 1, "{nothing:?}");
    assert_eq!(
        nothing.stderr,
        "emend: no query is left to measure: 1 query was left out: nothing is relevant to it\nJudged by 1 rating, 0 of them \
         with clicks.\n1 query with 2 judgements: 0 of grade 2, 0 of grade 1, 2 of grade 0\n1 rating left out: nothing is \
         known of the query\n"
    );

    let svg = path("negative.svg");
    let stats = up.run(&["search", "stats", "--svg", &svg]).await.ok().stdout;
    assert!(stats.contains("HYBRID"), "{stats}");
    let svg = fs::read_to_string(&svg).unwrap();
    assert!(
        svg.contains("by type of query") && svg.matches("<circle").count() > 2,
        "{svg}"
    );
}
