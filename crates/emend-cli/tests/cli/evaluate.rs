//! What `emend evaluate` measures is what `trec_eval` measures.

use std::{collections::BTreeMap, env, fmt::Write as _, fs, path::Path};

use emend_base::{entropy::Entropy, testing::skipped};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::harness::run;

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
    let arguments = ["evaluate", "--json", "--judgements"];
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
    let svg = fs::read_to_string(&svg).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("ndcg@10"), "{svg}");
    let json = run(&[&arguments[..], &["--json", "-k", "1"]].concat())
        .await
        .ok()
        .json();
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
