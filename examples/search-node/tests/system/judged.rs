//! The judged queries, before and after people have taught the sets of synonyms.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use emend_client::proto::common::v1::{OutcomeState, SynonymRelation};
use emend_tests::{
    both_databases,
    harness::{
        NAMESPACE,
        process::{binary, run},
        says,
        says::synonyms,
    },
};
use futures::FutureExt as _;
use search_node::backend::Asked;
use serde_json::Value;
use tokio::process::Command;

use crate::node::{Node, file};

/// The queries that find nothing as people write them.
pub(crate) const NOTHING_YET: [&str; 3] = [
    "フィールドのカードを手札に戻すカード",
    "相手のリーダーにダメージを与えるカード",
    "ランダムな相手のフォロワーにダメージを与えるカード",
];

/// The sets that ship with the example, the representative first.
pub(crate) fn sets() -> Vec<Vec<String>> {
    let file = file("synonyms.txt");
    let lines = file.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.split(", ").map(str::to_owned).collect())
        .collect()
}

/// Judged queries: of each the relevant cards.
fn judged() -> BTreeMap<String, Vec<String>> {
    let query = |line: &str| {
        let query: Value = serde_json::from_str(line).unwrap();
        let cards = query["judgements"].as_array().unwrap().iter();
        let cards = cards
            .map(|card| card["id"].as_str().unwrap().to_owned())
            .collect();
        (query["query"].as_str().unwrap().to_owned(), cards)
    };
    file("judged.jsonl").lines().map(query).collect()
}

/// How many of the relevant cards are among the first ten.
fn relevant(node: &Node, query: &str, cards: &[String]) -> usize {
    let found = node.ids(query);
    assert!(found.len() <= 20, "{query}: {found:?}");
    found.iter().take(10).filter(|id| cards.contains(id)).count()
}

fn assert_found(node: &Node, query: &str, cards: &[String]) {
    let found = relevant(node, query, cards);
    assert!(
        found >= 3,
        "{query}: {found} of {cards:?} in {:?}",
        node.search(query)
    );
}

/// What `emend` answers about judged queries and a node.
async fn emend(words: &[&str], node: &Node) -> Value {
    serde_json::from_str(&asked(words, node).await.unwrap()).unwrap()
}

/// The same, as it is printed, or why there is no answer.
async fn asked(words: &[&str], node: &Node) -> Result<String, String> {
    let mut command = Command::new(binary("emend").await);
    let judged = Path::new(env!("CARGO_MANIFEST_DIR")).join("judged.jsonl");
    let address = node.serve("").await.grpc.to_string();
    command
        .arg("--json")
        .args(words)
        .args(["--node", &address, "--judgements"])
        .arg(judged);
    run("emend", command).await
}

#[test]
fn most_queries_find_what_is_right_before_anything_is_taught() {
    let node = Node::alone();
    assert_eq!(judged().len(), 18);
    for (query, cards) in judged() {
        if NOTHING_YET.contains(&&*query) {
            let found = node.search(&query);
            assert!(found.titles.is_empty(), "{query}: {found:?}");
            assert_eq!(found.attempts, 3, "every step was tried");
            assert!(found.namespaces.contains("combined") && !found.suggestion.is_empty());
        } else {
            assert_found(&node, &query, &cards);
        }
    }
}

both_databases! {
    async fn searches_that_go_on_see_what_is_taught_and_none_fails(system) {
        let node = Node::start(system, "search-1").await;
        let backend = Arc::clone(&node.backend);
        let ends = Arc::new(AtomicBool::new(false));
        let searching = tokio::task::spawn_blocking({
            let ends = Arc::clone(&ends);
            move || {
                let asked = Asked { query: NOTHING_YET[1].to_owned(), ..Asked::default() };
                let mut found = vec![0];
                // Once more after the end: what was taught before it is found.
                let mut is_last = false;
                while !is_last {
                    is_last = ends.load(Ordering::Relaxed);
                    let now = backend.search(&asked).now_or_never().unwrap().unwrap();
                    let count = now.titles.len();
                    if found.last() != Some(&count) {
                        found.push(count);
                    }
                }
                found
            }
        });
        let said = || synonyms("リーダー", &["顔", "フェイス"], SynonymRelation::Equivalent);
        system.feedback().learn_all(["ana", "ben", "cai"].map(|who| says(who, said()))).await;
        node.is_current(system).await;
        ends.store(true, Ordering::Relaxed);
        let found = searching.await.unwrap();
        assert!(matches!(found[..], [0, 10]), "all of a revision is seen at once: {found:?}");
    }

    async fn three_people_teach_the_sets_and_a_running_node_finds_what_is_right(system) {
        let node = Node::start(system, "search-1").await;
        let feedback = system.feedback();
        for query in NOTHING_YET {
            assert!(node.ids(query).is_empty(), "{query}");
        }
        // What would be found is seen before it is taught, and nothing is changed.
        let learning = system.learning[0].front.address().to_string();
        let of_this = ["--learning-addr", &learning, "--namespace", NAMESPACE];
        let preview = ["search", "synonyms", "preview", "リーダー", "顔", "フェイス"];
        let preview = emend(&[&of_this[..], &preview].concat(), &node).await;
        let changed = preview["changed"].as_array().unwrap();
        assert_eq!((&preview["queries"], changed.len()), (&18.into(), 1), "{preview}");
        assert_eq!(changed[0]["query"], NOTHING_YET[1]);
        assert_eq!(changed[0]["foundBefore"], Value::Array(Vec::new()));
        let found = changed[0]["foundAfter"].as_array().unwrap();
        assert!(found.len() >= 3, "{preview}");
        assert!(node.ids(NOTHING_YET[1]).is_empty(), "nothing is taught yet");
        // Another namespace has other synonyms and tunings: what it would change tells nothing of this node.
        let of_another = ["--learning-addr", &learning, "--namespace", "another"];
        for preview in [
            &["search", "synonyms", "preview", "リーダー", "顔"][..],
            &["search", "tuning", "preview", "HYBRID", "top_k=5"],
        ] {
            let refused = asked(&[&of_another[..], preview].concat(), &node).await.unwrap_err();
            let why = format!("serves the namespace \\\"{NAMESPACE}\\\", not \\\"another\\\": pass --namespace {NAMESPACE}");
            assert!(refused.contains(&why), "{refused}");
        }

        for set in sets() {
            let others: Vec<&str> = set[1..].iter().map(String::as_str).collect();
            let said = || synonyms(&set[0], &others, SynonymRelation::Equivalent);
            for (reporter, expected) in [
                ("ana", OutcomeState::Pending),
                ("ben", OutcomeState::Pending),
                ("cai", OutcomeState::Applied),
            ] {
                let learned = feedback.learn(says(reporter, said())).await;
                assert_eq!(learned.outcome.unwrap().state(), expected, "{set:?} by {reporter}");
            }
        }
        node.is_current(system).await;
        for (query, cards) in judged() {
            assert_found(&node, &query, &cards);
        }
        let report = emend(&["search", "evaluate"], &node).await;
        let all = &report["groups"][0];
        assert_eq!((&report["k"], &all["queries"]), (&10.into(), &18.into()));
        assert_eq!(report["namespace"], NAMESPACE);
        for measure in all["measures"].as_array().unwrap() {
            let value = |when: &str| measure[when].as_f64().unwrap();
            assert!(value("after") > value("before") + 0.1 && value("p") < 0.5, "{measure}");
        }
        for line in file("expansions.jsonl").lines() {
            let vector: Value = serde_json::from_str(line).unwrap();
            let found = node.search(vector["text"].as_str().unwrap());
            assert_eq!(found.expanded, vector["keyword"].as_str().unwrap());
        }
    }
}
