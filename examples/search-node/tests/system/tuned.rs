//! What a tuning would change is what it changes.

use std::collections::BTreeMap;

use emend_client::proto::{
    common::v1::SearchTuningValue,
    feedback::v1::{ListQueriesRequest, query_service_client::QueryServiceClient},
    search::v1::{SearchRequest, search_service_client::SearchServiceClient},
};
use emend_tests::{
    both_databases,
    harness::{
        NAMESPACE, System, answered, eventually,
        process::{binary, run},
    },
};
use serde_json::Value;
use tokio::process::Command;

use crate::node::{Node, file};

const TUNINGS: [&str; 7] = [
    "min_score=0.6",
    "min_score=0.8 retry=none",
    "min_score=0.95 retry=-0.05 retry=+combined",
    "min_score=0.3",
    "top_k=2",
    "top_k=30 retry=none",
    "namespaces=effects min_score=0.5",
];

/// What `emend search tuning preview` answers.
async fn preview(system: &System, tuning: &str, more: &[&str]) -> Value {
    let mut command = Command::new(binary("emend").await);
    let (feedback, learning) = (
        system.feedback[0].front.address().to_string(),
        system.learning[0].front.address().to_string(),
    );
    command
        .args(["--json", "--namespace", NAMESPACE, "--feedback-addr", &feedback])
        .args([
            "--learning-addr",
            &learning,
            "search",
            "tuning",
            "preview",
            "HYBRID",
        ])
        .args(tuning.split(' '))
        .args(more);
    serde_json::from_str(&run("emend", command).await.unwrap()).unwrap()
}

/// The changed queries of a preview, by text.
fn changed(preview: &Value) -> BTreeMap<&str, &Value> {
    let changed = preview["changed"].as_array().unwrap().iter();
    changed
        .map(|change| (change["query"].as_str().unwrap(), change))
        .collect()
}

both_databases! {
    async fn what_recordings_tell_of_a_tuning_is_what_the_node_finds_with_it(system) {
        let node = Node::start(system, "search-1").await;
        let judged = file("judged.jsonl");
        let texts: Vec<String> = judged
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["query"].as_str().unwrap().to_owned())
            .collect();
        let found: BTreeMap<&str, usize> =
            texts.iter().map(|text| (&**text, node.search(text).titles.len())).collect();
        let queries = QueryServiceClient::new(system.feedback().channel);
        let count = || async {
            let request = ListQueriesRequest { namespace: NAMESPACE.into(), ..ListQueriesRequest::default() };
            let listed = answered(queries.clone().list_queries(request).await).queries.len();
            if listed == texts.len() { Ok(()) } else { Err(format!("{listed} are listed")) }
        };
        eventually("all searches are recorded", count).await;
        let address = node.serve("").await.grpc.to_string();

        let mut told = 0;
        for tuning in TUNINGS {
            let foreseen = preview(system, tuning, &[]).await;
            let searched = preview(system, tuning, &["--node", &address]).await;
            assert_eq!((&foreseen["queries"], &searched["queries"]), (&18.into(), &18.into()));
            let (foreseen, searched) = (changed(&foreseen), changed(&searched));
            for (text, hits) in &found {
                let count = searched.get(text).map_or(*hits, |search| search["foundAfter"].as_array().unwrap().len());
                let Some(forecast) = foreseen.get(text) else {
                    assert_eq!(count, *hits, "{tuning}, {text}: {searched:?}");
                    continue;
                };
                let step = searched.get(text).map(|search| &search["stepAfter"]);
                let bound = |name: &str| usize::try_from(forecast["after"][name].as_u64().unwrap()).unwrap();
                let (least, most) = (bound("least"), bound("most"));
                assert_eq!(forecast["before"]["most"], *hits, "{tuning}, {forecast}");
                if least > 0 || most == 0 {
                    assert!((least..=most).contains(&count), "{tuning}, {forecast}: {count}");
                    assert!(step.is_none_or(|step| *step == forecast["after"]["step"]), "{tuning}, {forecast}: {step:?}");
                    told += 1;
                }
            }
        }
        assert!(told > 20, "{told} changes are told");
        // Nothing was changed and nothing but the searches recorded.
        assert_eq!(count().await, Ok(()));
        assert_eq!(system.learning().head().await, 0);
    }
}

#[tokio::test]
async fn a_tuning_that_is_wrong_is_refused() {
    let node = Node::alone();
    let at = node.serve("").await;
    let mut client = SearchServiceClient::connect(format!("http://{}", at.grpc))
        .await
        .unwrap();
    let request = SearchRequest {
        query: "draw".to_owned(),
        tuning: Some(SearchTuningValue {
            top_k: Some(101),
            ..SearchTuningValue::default()
        }),
        ..SearchRequest::default()
    };
    let refused = client.search(request).await.unwrap_err();
    assert_eq!(
        refused.message(),
        "invalid argument: tuning.top_k: must be 1 to 100, is 101"
    );
}
