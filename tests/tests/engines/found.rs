//! What the engines find.

use emend_base::Lifecycle;
use emend_edge::Edge;
use emend_proto::{common::v1::SynonymRelation, learning::v1::PutResourceRequest};
use emend_tests::harness::{
    Database, NAMESPACE, System,
    http::ask_with,
    says,
    says::{synonym_key, synonym_value, synonyms},
    start::Settings,
    system::Service,
    wait::{PATIENCE, eventually, holds},
};
use serde_json::{Value, json};
use sqlx::Connection as _;

use crate::{
    edge,
    engine::{Engine, FIELD, Kind},
    table::Meanwhile,
};

/// What is indexed; ids are places.
pub(crate) const TITLES: [&str; 3] = [
    "a cheap laptop computer for students",
    "an expensive laptop computer",
    "secret plans",
];

/// What somebody might send to leave the place that a text has in a query.
const HOSTILE: [&str; 16] = [
    "\" OR *:* OR \"",
    "zzz\\",
    "\\\" OR title:\"secret",
    "{!term f=title}secret",
    "zzz _query_:\"{!term f=title}secret\"",
    "zzz) OR (*:*",
    "zzz && secret || !plans",
    "/sec.*/ zzz",
    "title:[a TO *] zzz",
    "secre? zzz~2",
    "zzz\u{0}\u{7f}\u{202e}",
    "-zzz +yyy",
    "\"}}}, \"match_all\": {}, {\"zzz",
    "AND zzz",
    "OR NOT zzz",
    "😀 zzz",
];

/// The query of a text as an engine takes it, and the revision that it was expanded by.
pub(crate) async fn expanded(edge: &Edge, engine: &str, text: &str) -> (Value, i64) {
    let address = edge.addresses()[0];
    let host = address.to_string();
    let body = json!({"text": text, "as": engine, "fields": [FIELD]}).to_string();
    let path = format!("/v1/{NAMESPACE}/expand");
    let answer = ask_with(address, "POST", &path, &[("Host", &host)], &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let mut answer: Value = serde_json::from_str(&answer.body).expect("JSON");
    let revision = answer["revision"].as_i64().expect("a revision");
    (answer["query"].take(), revision)
}

/// Three people say that a notebook is a laptop computer.
pub(crate) async fn three_corrections(system: &System, term: &str) {
    for reporter in ["ana", "ben", "cem"] {
        let correction = synonyms(term, &["laptop computer"], SynonymRelation::Equivalent);
        system.feedback().learn(says(reporter, correction)).await;
    }
}

/// Learns each of the hostile texts that can be learned as what a term stands for; the terms.
async fn hostile_alternatives(system: &System, edge: &Edge) -> Vec<String> {
    let learning = system.learning();
    let (mut terms, mut revision) = (Vec::new(), 0);
    for (place, hostile) in HOSTILE.iter().enumerate() {
        let term = format!("kettle{place}");
        let request = PutResourceRequest {
            key: Some(synonym_key(&term, hostile)),
            value: Some(synonym_value(hostile)),
            reason: "somebody means harm".into(),
            ..PutResourceRequest::default()
        };
        // What has control characters is refused.
        if let Ok(learned) = learning.resources.clone().put_resource(request).await {
            revision = learned.into_inner().revision;
            terms.push(term);
        }
    }
    assert!(terms.len() + 1 >= HOSTILE.len(), "{terms:?}");
    let applied = edge.node().wait_for_revision(revision, PATIENCE);
    applied.await.expect("all are learned");
    for term in &terms {
        let alternatives = edge.node().synonyms(NAMESPACE, term, None);
        assert_ne!(alternatives.expect("a term"), [""; 0], "{term}");
    }
    terms
}

async fn until_ready(edge: &Edge) {
    eventually("the edge has a state", async || {
        let address = edge.addresses()[0];
        let host = address.to_string();
        let ready = ask_with(address, "GET", "/readyz", &[("Host", &host)], "").await;
        holds(ready.status == 200, || format!("{ready:?}"))
    })
    .await;
}

async fn what_is_corrected_is_found(kind: Kind) {
    let Some(engine) = Engine::start(kind).await else {
        return;
    };
    engine.index(&TITLES).await;
    let system = System::start(Database::sqlite(), 1, 1, Settings::default()).await;
    let lifecycle = Lifecycle::new();
    let edge = edge(&system, &lifecycle).await;
    let searched = async || {
        let (query, _) = expanded(&edge, kind.name(), "cheap notebook").await;
        engine.search(&query).await.expect("the engine takes the query")
    };
    until_ready(&edge).await;
    assert_eq!(searched().await, [""; 0], "before anybody corrected it");
    let meanwhile = Meanwhile::default();
    let corrected = async {
        three_corrections(&system, "notebook").await;
        eventually("the correction counts", async || {
            let found = searched().await;
            holds(found == ["0"], || format!("{found:?}"))
        })
        .await;
        meanwhile.end();
    };
    tokio::join!(corrected, meanwhile.search(&engine, Some(&edge)));
    let (count, failed) = meanwhile.counts();
    assert!(count > 0 && failed == 0, "{failed} of {count} searches failed");
    for hostile in HOSTILE {
        let (query, _) = expanded(&edge, kind.name(), &format!("{hostile} notebook")).await;
        let found = engine.search(&query).await;
        assert_eq!(found, Ok(Vec::new()), "{hostile:?}: {query}");
    }
    for term in hostile_alternatives(&system, &edge).await {
        let (query, _) = expanded(&edge, kind.name(), &term).await;
        let found = engine.search(&query).await;
        assert_eq!(found, Ok(Vec::new()), "{term}: {query}");
    }
    edge.node().close().await.expect("the node ends");
    lifecycle.shutdown(std::time::Duration::from_secs(5)).await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_corrected_is_found_by_opensearch_and_no_text_leaves_its_place() {
    what_is_corrected_is_found(Kind::OpenSearch).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_corrected_is_found_by_solr_and_no_text_leaves_its_place() {
    what_is_corrected_is_found(Kind::Solr).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_corrected_is_found_by_postgresql_and_no_text_leaves_its_place() {
    let Some(database) = Database::postgres().await else {
        return;
    };
    let mut connection = sqlx::PgConnection::connect(&database.url(Service::Learning, None))
        .await
        .expect("the database answers");
    let system = System::start(database, 1, 1, Settings::default()).await;
    let lifecycle = Lifecycle::new();
    let edge = edge(&system, &lifecycle).await;
    until_ready(&edge).await;
    let mut searched = async |text: &str| {
        let (query, _) = expanded(&edge, "postgres", text).await;
        let mut found = Vec::new();
        for (id, title) in TITLES.iter().enumerate() {
            let is_found =
                sqlx::query_scalar("SELECT to_tsvector('english', $1) @@ to_tsquery('english', $2)")
                    .bind(*title)
                    .bind(query.as_str().expect("a text"))
                    .fetch_one(&mut connection)
                    .await;
            if is_found.unwrap_or_else(|error| panic!("{query}: {error}")) {
                found.push(id);
            }
        }
        found
    };
    assert_eq!(searched("cheap notebook").await, [0; 0]);
    three_corrections(&system, "notebook").await;
    let corrected = edge.node().wait_for_revision(1, PATIENCE);
    corrected.await.expect("the correction counts");
    assert_eq!(searched("cheap notebook").await, [0]);
    for hostile in HOSTILE {
        // Words like "or" are none in PostgreSQL's English.
        let found = searched(&format!("{hostile} notebook")).await;
        assert!(!found.contains(&2), "{hostile:?} finds {found:?}");
    }
    for term in hostile_alternatives(&system, &edge).await {
        let found = searched(&term).await;
        assert!(!found.contains(&2), "{term} finds {found:?}");
    }
    edge.node().close().await.expect("the node ends");
    lifecycle.shutdown(std::time::Duration::from_secs(5)).await;
    system.stop().await;
}
