//! The edge over HTTP: every look-up alone and in bulk, the revision that answered, and what is refused; from its own description a
//! client in Python.

use std::path::PathBuf;

use emend_base::Lifecycle;
use emend_binding::{ConnectionSettings, NodeSettings};
use emend_edge::{Config, Edge};
use emend_proto::{
    common::v1::SynonymRelation,
    edge::v1::{
        ExpandQuestion, LookUpRequest, Question, ResolveQuestion, SynonymsQuestion, TrustQuestion,
        TuningQuestion, answer, look_up_service_client::LookUpServiceClient, question,
    },
};
use emend_tests::harness::{
    NAMESPACE, System, eventually,
    http::ask_with,
    process::{emend, run},
    says,
    says::synonyms,
    wait::holds,
};
use serde_json::{Value, json};
use tokio::process::Command;
use tonic::Code;

use crate::real_clients::tool;

/// Every look-up, with what it takes.
fn look_ups() -> [(&'static str, Value); 14] {
    [
        (
            "resolve",
            json!({"phrase": "notebook", "candidates": [{"value": "a", "score": 0.5}]}),
        ),
        ("expand", json!({"text": "cheap notebook"})),
        ("synonyms", json!({"term": "notebook"})),
        ("tuning", json!({"query_type": "SEMANTIC"})),
        ("retry-plan", json!({"query_type": "SEMANTIC"})),
        ("trust", json!({"host": "spam.example"})),
        ("blocked", json!({"host": "spam.example"})),
        (
            "rank",
            json!({"results": [{"id": 1, "host": "a.example", "score": 1.0}, {"id": 2, "host": "spam.example", "score": 2.0}]}),
        ),
        ("prompt", json!({"target": "summary"})),
        ("prompt-text", json!({"target": "summary"})),
        ("examples", json!({"target": "summary"})),
        ("profile", json!({"user": "mia"})),
        ("claim", json!({"claim_id": "c1"})),
        ("edge", json!({"edge_id": "e1"})),
    ]
}

struct Asked<'e>(&'e Edge);

impl Asked<'_> {
    async fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let address = self.0.addresses()[0];
        let host = address.to_string();
        let answer = ask_with(address, method, path, &[("Host", &host)], body).await;
        let body = serde_json::from_str(&answer.body).unwrap_or(Value::String(answer.body));
        (answer.status, body)
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.ask("POST", path, &body.to_string()).await
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, "").await
    }
}

async fn edge(system: &System, namespaces: &[&str], lifecycle: &Lifecycle) -> Edge {
    let config = Config {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        listen_grpc: Some(([127, 0, 0, 1], 0).into()),
        node: NodeSettings {
            id: "edge-1".into(),
            zone: "eu-1".into(),
            namespaces: namespaces.iter().map(|&name| name.to_owned()).collect(),
            connection: ConnectionSettings {
                addresses: vec![system.learning[0].address().to_string()],
                ..ConnectionSettings::default()
            },
            ..NodeSettings::default()
        },
        ..Config::default()
    };
    emend_edge::start(config, lifecycle).await.unwrap()
}

/// The same questions over gRPC, answered in one call.
async fn by_grpc(edge: &Edge, head: i64) {
    let address = format!("http://{}", edge.grpc_address().unwrap());
    let mut client = LookUpServiceClient::connect(address).await.unwrap();
    let request = LookUpRequest {
        namespace: NAMESPACE.into(),
        questions: [
            question::Question::Synonyms(SynonymsQuestion {
                term: "notebook".into(),
                user: None,
            }),
            question::Question::Trust(TrustQuestion {
                host: "www.spam.example".into(),
            }),
            question::Question::Tuning(TuningQuestion {
                query_type: "SEMANTIC".into(),
            }),
            question::Question::Expand(ExpandQuestion {
                text: "cheap notebook".into(),
                r#as: Some("solr".into()),
                ..ExpandQuestion::default()
            }),
            question::Question::Resolve(ResolveQuestion::default()),
        ]
        .map(|question| Question {
            question: Some(question),
        })
        .to_vec(),
        min_revision: head,
        ..LookUpRequest::default()
    };
    let answered = client.look_up(request.clone()).await.unwrap().into_inner();
    assert!(answered.revision >= head, "{answered:?}");
    let answers: Vec<_> = answered
        .answers
        .into_iter()
        .filter_map(|answer| answer.answer)
        .collect();
    let [
        answer::Answer::Synonyms(synonyms),
        answer::Answer::Trust(trust),
        answer::Answer::Tuning(tuning),
        answer::Answer::Expand(expanded),
        answer::Answer::Error(refused),
    ] = &answers[..]
    else {
        panic!("{answers:?}");
    };
    assert_eq!(synonyms.synonyms, ["laptop computer"]);
    assert_eq!((trust.blocked, &*trust.pattern), (true, "spam.example"));
    assert!(
        trust.learned_at_revision.is_some_and(|revision| revision <= head),
        "{trust:?}"
    );
    assert!(tuning.top_k > 0 && tuning.retry_plan.len() == 3, "{tuning:?}");
    assert!(expanded.expanded && expanded.query.is_some(), "{expanded:?}");
    assert_eq!(refused.code, i32::from(Code::InvalidArgument));
    assert!(refused.message.contains("phrase"), "{refused:?}");
    let elsewhere = LookUpRequest {
        namespace: "elsewhere".into(),
        ..request
    };
    let refused = client.look_up(elsewhere).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound, "{refused}");
}

/// Three people say what a notebook is, and one that a domain is spam. Returns the newest revision.
async fn taught(system: &System) -> i64 {
    for reporter in ["ana", "ben", "cem"] {
        let correction = synonyms("notebook", &["laptop computer"], SynonymRelation::Equivalent);
        system.feedback().learn(says(reporter, correction)).await;
    }
    system
        .feedback()
        .learn(says::decides("ana", "spam.example", "block"))
        .await;
    system.learning().head().await
}

async fn ended(edge: Edge, lifecycle: Lifecycle) {
    edge.node().close().await.unwrap();
    drop(edge);
    lifecycle.shutdown(std::time::Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_look_up_is_answered_alone_and_in_bulk_by_the_revision_that_is_waited_for() {
    let system = System::sqlite().await;
    let lifecycle = Lifecycle::new();
    let edge = edge(&system, &[NAMESPACE], &lifecycle).await;
    let asked = Asked(&edge);
    let head = taught(&system).await;
    for (name, look_up) in look_ups() {
        let path = format!("/v1/{NAMESPACE}/{name}?min_revision={head}");
        let (status, one) = asked.post(&path, &look_up).await;
        let is_prompt = name.starts_with("prompt");
        assert_eq!(status, if is_prompt { 404 } else { 200 }, "{name}: {one}");
        let (status, list) = asked.post(&path, &json!([look_up, {"nonsense": 1}])).await;
        assert_eq!(status, 200, "{name}: {list}");
        assert!(list["revision"].as_i64() >= Some(head), "{name}: {list}");
        assert_eq!(
            list["answers"][1]["error"]["code"], "INVALID_ARGUMENT",
            "{name}: {list}"
        );
        let mut same = list["answers"][0].clone();
        if !is_prompt {
            assert!(one["revision"].as_i64() >= Some(head), "{name}: {one}");
            same["revision"] = one["revision"].clone();
        }
        assert_eq!(same, one, "{name}");
    }
    let of = async |path: &str| asked.get(&format!("/v1/{NAMESPACE}/{path}")).await.1;
    assert_eq!(
        of("synonyms?term=Notebook").await["synonyms"],
        json!(["laptop computer"])
    );
    assert_eq!(of("blocked?host=www.spam.example").await["blocked"], true);
    let trust = of("trust?host=spam.example").await;
    assert_eq!(
        (&trust["level"], &trust["pattern"]),
        (&json!("blocked"), &json!("spam.example"))
    );
    assert!(
        trust["learned_at_revision"].as_i64() <= trust["revision"].as_i64(),
        "{trust}"
    );
    assert_eq!(of("retry-plan?query_type=x").await["attempts"][2]["expand"], true);
    let query = of("expand?text=cheap+notebook&as=solr&fields=title%5E2,body").await;
    assert_eq!(
        (&query["expanded"], query["query"].is_string()),
        (&json!(true), true),
        "{query}"
    );
    let ranked = asked
        .post(&format!("/v1/{NAMESPACE}/rank"), &look_ups()[7].1)
        .await
        .1;
    assert_eq!(ranked["results"].as_array().map(Vec::len), Some(1), "{ranked}");

    by_grpc(&edge, head).await;

    let (status, late) = asked
        .get(&format!(
            "/v1/{NAMESPACE}/synonyms?term=a&min_revision={}&timeout=0.1",
            head + 1
        ))
        .await;
    assert_eq!(
        (status, &late["error"]["code"]),
        (504, &json!("DEADLINE_EXCEEDED"))
    );

    let nodes = eventually("the edge is listed", || async {
        let listed = emend(&[
            "nodes",
            "--json",
            "--learning-addr",
            &system.learning[0].address().to_string(),
        ])
        .await;
        holds(listed.stdout.contains("edge-1"), || format!("{listed:?}")).map(|()| listed.stdout)
    })
    .await;
    let node: Value = serde_json::from_str(nodes.lines().next().unwrap()).unwrap();
    assert_eq!(node["info"]["zone"], "eu-1", "{node}");
    assert_eq!(node["info"]["version"], env!("CARGO_PKG_VERSION"), "{node}");
    assert_eq!(node["info"]["labels"]["kind"], "edge", "{node}");
    ended(edge, lifecycle).await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_names_the_field_and_a_namespace_that_is_not_followed_is_refused() {
    let system = System::sqlite().await;
    let lifecycle = Lifecycle::new();
    let edge = edge(&system, &[NAMESPACE], &lifecycle).await;
    let asked = Asked(&edge);
    let head = taught(&system).await;
    let (status, _) = asked
        .get(&format!("/v1/{NAMESPACE}/synonyms?term=a&min_revision={head}"))
        .await;
    assert_eq!(status, 200);
    let own = |path: &str| format!("/v1/{NAMESPACE}/{path}");
    for (path, field) in [
        (own("resolve?text=a"), "phrase"),
        (own("resolve?phrase="), "phrase"),
        (own("resolve?phrase=a&kind=nonsense"), "kind"),
        (own("resolve?phrase=a&candidates=a"), "candidates"),
        (own("resolve?phrase=a&user=%00"), "user"),
        (own("expand?text=a&as=sphinx"), "as"),
        (own("expand?text=a&mode=all"), "mode"),
        (own("expand?text=a&as=solr&fields=title,a:b"), "fields[1]"),
        (own("expand?text=a&as=typesense"), "index"),
        (own("trust?host="), "host"),
        (own("prompt?target=a&language=fr"), "language"),
        (own("synonyms?term=a&min_revision=now"), "min_revision"),
        (own("synonyms?term=a&min_revision=1&timeout=61"), "timeout"),
    ] {
        let (status, refused) = asked.get(&path).await;
        assert_eq!(status, 400, "{path}: {refused}");
        let violations = refused["error"]["violations"].as_array().unwrap();
        let fields: Vec<_> = violations.iter().map(|violation| &violation["field"]).collect();
        assert!(fields.contains(&&json!(field)), "{path}: {refused}");
    }
    for (body, field) in [
        ("{", "body"),
        ("[1]", "request"),
        ("5", "request"),
        ("{\"phrase\": 5}", "phrase"),
    ] {
        let (_, refused) = asked.ask("POST", &own("resolve"), body).await;
        let refused = refused["answers"].get(0).unwrap_or(&refused);
        assert_eq!(
            refused["error"]["violations"][0]["field"], field,
            "{body}: {refused}"
        );
    }
    let (status, unfollowed) = asked.get("/v1/elsewhere/synonyms?term=notebook").await;
    assert_eq!((status, &unfollowed["error"]["code"]), (404, &json!("NOT_FOUND")));
    let message = unfollowed["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("\"elsewhere\"") && message.ends_with(NAMESPACE),
        "{message}"
    );
    assert_eq!(asked.get(&own("nonsense")).await.0, 404);
    let address = edge.addresses()[0];
    for (host, origin, status) in [
        ("evil.example", None, 403),
        ("localhost", Some("https://evil.example"), 403),
        ("localhost", None, 200),
    ] {
        let host = if host == "localhost" {
            address.to_string()
        } else {
            host.to_owned()
        };
        let mut headers = vec![("Host", &*host)];
        headers.extend(origin.map(|origin| ("Origin", origin)));
        let answer = ask_with(address, "GET", &own("synonyms?term=a"), &headers, "").await;
        assert_eq!(answer.status, status, "{answer:?}");
        let probe = ask_with(address, "GET", "/livez", &headers, "").await;
        assert_eq!(probe.status, 200, "{probe:?}");
    }
    ended(edge, lifecycle).await;
    system.stop().await;
}

/// Its description is valid by the validator of others, and a client that others' generator makes of it asks and is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_generated_from_its_description_works() {
    let Some(python) = tool("EMEND_TEST_PYTHON") else {
        return;
    };
    let system = System::sqlite().await;
    let lifecycle = Lifecycle::new();
    let edge = edge(&system, &[], &lifecycle).await;
    let head = taught(&system).await;
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/clients/edge.py");
    let scratch = tempfile::tempdir().unwrap();
    let mut command = Command::new(python);
    command
        .arg(script)
        .arg(format!("http://{}", edge.addresses()[0]))
        .arg(head.to_string())
        .arg(scratch.path());
    let printed = run("edge.py", command)
        .await
        .unwrap_or_else(|failure| panic!("{failure}"));
    assert!(printed.contains("all as it should be"), "{printed}");
    ended(edge, lifecycle).await;
    system.stop().await;
}
