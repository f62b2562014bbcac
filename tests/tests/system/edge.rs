//! The edge over HTTP and gRPC: every look-up alone and in bulk, what is a user's own, near answers, the revision that answered, and what
//! is refused; at a socket, from its copy while the services are away, and from its own description a client in Python.

use std::{
    os::unix::{fs::PermissionsExt as _, net::UnixListener},
    path::{Path, PathBuf},
};

use emend_base::Lifecycle;
use emend_binding::{
    ConnectionSettings, NodeSettings,
    answers::{NearAnswer, NearPhrase},
};
use emend_edge::{Config, Edge, Listen};
use emend_proto::{
    common::v1::{ResourceKey, SynonymRelation},
    edge::v1::{
        ExpandQuestion, LookUpRequest, ProfileQuestion, PromptQuestion, Question, ResolveQuestion,
        SynonymsQuestion, TrustQuestion, TuningQuestion, answer, look_up_service_client::LookUpServiceClient,
        question,
    },
    learning::v1::{Profile, UpdateProfileRequest},
};
use emend_tests::harness::{
    NAMESPACE, System, answered, eventually,
    http::ask_with,
    process::{emend, run},
    says,
    says::{phrase_key, synonym_key, synonym_value, synonyms, verb_value},
    wait::{PATIENCE, holds},
};
use prost::Message as _;
use prost_types::FieldMask;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    process::Command,
};
use tonic::Code;

use crate::{near, real_clients::tool};

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
    async fn text(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let address = self.0.addresses()[0];
        let host = address.to_string();
        let answer = ask_with(address, method, path, &[("Host", &host)], body).await;
        (answer.status, answer.body)
    }

    async fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let (status, body) = self.text(method, path, body).await;
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.ask("POST", path, &body.to_string()).await
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, "").await
    }
}

fn config(system: &System, namespaces: &[&str]) -> Config {
    Config {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        listen_grpc: Some(([127, 0, 0, 1], 0).into()),
        node: NodeSettings {
            id: "edge-1".into(),
            zone: "eu-1".into(),
            namespaces: namespaces.iter().map(|&name| name.to_owned()).collect(),
            include_user_scoped: true,
            connection: ConnectionSettings {
                addresses: vec![system.learning[0].address().to_string()],
                ..ConnectionSettings::default()
            },
            ..NodeSettings::default()
        },
        ..Config::default()
    }
}

async fn edge(system: &System, namespaces: &[&str], lifecycle: &Lifecycle) -> Edge {
    emend_edge::start(config(system, namespaces), lifecycle)
        .await
        .unwrap()
}

fn request<const N: usize>(questions: [question::Question; N], min_revision: i64) -> LookUpRequest {
    let questions = questions.map(|question| Question {
        question: Some(question),
    });
    LookUpRequest {
        namespace: NAMESPACE.into(),
        questions: questions.to_vec(),
        min_revision,
        ..LookUpRequest::default()
    }
}

/// What is answered over gRPC, from this revision on.
async fn asked_by_grpc<const N: usize>(
    edge: &Edge,
    questions: [question::Question; N],
    min_revision: i64,
) -> Vec<answer::Answer> {
    let address = format!("http://{}", edge.grpc_address().unwrap());
    let mut client = LookUpServiceClient::connect(address).await.unwrap();
    let answered = answered(client.look_up(request(questions, min_revision)).await);
    assert!(answered.revision >= min_revision, "{answered:?}");
    let answers = answered.answers.into_iter();
    answers.filter_map(|answer| answer.answer).collect()
}

/// The same questions over gRPC, answered in one call.
async fn by_grpc(edge: &Edge, head: i64) {
    let answers = asked_by_grpc(
        edge,
        [
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
        ],
        head,
    )
    .await;
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
        ..request([question::Question::Resolve(ResolveQuestion::default())], 0)
    };
    let address = format!("http://{}", edge.grpc_address().unwrap());
    let mut client = LookUpServiceClient::connect(address).await.unwrap();
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

/// Everything that names a user, over HTTP and over gRPC.
fn of_mia() -> [(&'static str, Value, question::Question); 5] {
    let user = Some("mia".to_owned());
    [
        (
            "resolve",
            json!({"phrase": "my list", "user": "mia"}),
            question::Question::Resolve(ResolveQuestion {
                phrase: "my list".into(),
                user: user.clone(),
                ..ResolveQuestion::default()
            }),
        ),
        (
            "synonyms",
            json!({"term": "beater", "user": "mia"}),
            question::Question::Synonyms(SynonymsQuestion {
                term: "beater".into(),
                user: user.clone(),
            }),
        ),
        (
            "expand",
            json!({"text": "cheap beater", "user": "mia"}),
            question::Question::Expand(ExpandQuestion {
                text: "cheap beater".into(),
                user: user.clone(),
                ..ExpandQuestion::default()
            }),
        ),
        (
            "profile",
            json!({"user": "mia"}),
            question::Question::Profile(ProfileQuestion { user: "mia".into() }),
        ),
        (
            "prompt",
            json!({"target": "summary", "user": "mia"}),
            question::Question::Prompt(PromptQuestion {
                target: "summary".into(),
                user,
                ..PromptQuestion::default()
            }),
        ),
    ]
}

/// What mia taught for herself, and her profile. Returns the newest revision.
async fn taught_by_mia(system: &System) -> i64 {
    let learning = system.learning();
    let of_mia = |key: ResourceKey| ResourceKey {
        user_id: "mia".into(),
        ..key
    };
    learning
        .put(of_mia(phrase_key("my list")), verb_value("show_watchlist"))
        .await;
    learning
        .put(of_mia(synonym_key("beater", "old car")), synonym_value("old car"))
        .await;
    let profile = UpdateProfileRequest {
        profile: Some(Profile {
            namespace: NAMESPACE.into(),
            user_id: "mia".into(),
            known_technologies: vec!["Rust".into()],
            ..Profile::default()
        }),
        update_mask: Some(FieldMask {
            paths: vec!["known_technologies".into()],
        }),
        reason: String::new(),
    };
    answered(learning.profiles.clone().update_profile(profile).await);
    learning.head().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_a_users_own_is_answered_where_it_is_held_and_refused_where_it_is_not() {
    let system = System::sqlite().await;
    let lifecycle = Lifecycle::new();
    let holding = edge(&system, &[NAMESPACE], &lifecycle).await;
    let mut without = config(&system, &[NAMESPACE]);
    without.node.id = "edge-2".into();
    without.node.include_user_scoped = false;
    let without = emend_edge::start(without, &lifecycle).await.unwrap();
    let head = taught_by_mia(&system).await;
    let path = |name: &str| format!("/v1/{NAMESPACE}/{name}?min_revision={head}");
    let asked = Asked(&holding);
    let mut own = Vec::new();
    for (name, look_up, _) in of_mia() {
        own.push(asked.post(&path(name), &look_up).await.1);
    }
    let [resolved, synonyms, expanded, profile, prompt] = &own[..] else {
        panic!("{own:?}");
    };
    assert_eq!(
        (&resolved["choice"], &resolved["scope"]),
        (&json!("show_watchlist"), &json!("user")),
        "{resolved}"
    );
    assert_eq!(synonyms["synonyms"], json!(["old car"]));
    assert_eq!(expanded["expanded"], true, "{expanded}");
    assert_eq!(profile["known_technologies"], json!(["Rust"]), "{profile}");
    assert_eq!(prompt["error"]["code"], "NOT_FOUND", "nobody made it current");
    // It is nobody else's.
    let others = asked
        .post(&path("resolve"), &json!({"phrase": "my list", "user": "ben"}))
        .await
        .1;
    assert_eq!(others["choice"], Value::Null, "{others}");
    let answers = asked_by_grpc(&holding, of_mia().map(|(.., question)| question), head).await;
    let [
        answer::Answer::Resolve(resolved),
        answer::Answer::Synonyms(synonyms),
        answer::Answer::Expand(expanded),
        answer::Answer::Profile(profile),
        answer::Answer::Error(prompt),
    ] = &answers[..]
    else {
        panic!("{answers:?}");
    };
    assert_eq!(
        (resolved.choice.as_deref(), resolved.scope.as_deref()),
        (Some("show_watchlist"), Some("user"))
    );
    assert_eq!(
        (&*synonyms.synonyms, expanded.expanded),
        (&["old car".to_owned()][..], true)
    );
    assert_eq!(profile.known_technologies, ["Rust"]);
    assert_eq!(prompt.code, i32::from(Code::NotFound));

    // Revisions of what is users' own don't come to it, so none is waited for.
    without.node().wait_ready(PATIENCE).await.unwrap();
    let asked = Asked(&without);
    let own = |name: &str| format!("/v1/{NAMESPACE}/{name}");
    for (name, look_up, _) in of_mia() {
        let (status, refused) = asked.post(&own(name), &look_up).await;
        let violation = &refused["error"]["violations"][0];
        assert_eq!(
            (status, &violation["field"]),
            (400, &json!("user")),
            "{name}: {refused}"
        );
        let why = violation["description"].as_str().unwrap();
        assert!(why.contains("include_user_scoped = true"), "{name}: {why}");
    }
    for refused in asked_by_grpc(&without, of_mia().map(|(.., question)| question), 0).await {
        let answer::Answer::Error(refused) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(refused.code, i32::from(Code::InvalidArgument));
        assert!(
            refused.message.contains("include_user_scoped = true"),
            "{refused:?}"
        );
    }
    let everybodys = asked.post(&own("resolve"), &json!({"phrase": "my list"})).await;
    assert_eq!((everybodys.0, &everybodys.1["choice"]), (200, &Value::Null));
    for edge in [&holding, &without] {
        edge.node().close().await.unwrap();
    }
    drop((holding, without));
    lifecycle.shutdown(std::time::Duration::from_secs(5)).await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn near_answers_are_those_of_the_service_byte_for_byte() {
    let system = System::sqlite().await;
    let lifecycle = Lifecycle::new();
    let edge = edge(&system, &[NAMESPACE], &lifecycle).await;
    let head = near::teach(&system).await;
    let told = near::resolved(&system, near::ASKED).await;
    let near = told.near.expect("a near answer");
    assert_eq!(near.choice, near::LOST);
    edge.node().wait_for_revision(head, PATIENCE).await.unwrap();
    edge.node().wait_near(PATIENCE).await.unwrap();
    let expected = NearAnswer {
        choice: near.choice.clone(),
        confidence: near.confidence,
        because: near
            .because
            .iter()
            .map(|because| NearPhrase {
                phrase: because.phrase.clone(),
                choice: because.choice.clone(),
                similarity: because.similarity,
            })
            .collect(),
        model: near.model.clone(),
    };
    let expected = format!("\"near\":{}", serde_json::to_string(&expected).unwrap());
    let asked = Asked(&edge);
    let own = |more: &str| {
        let phrase = near::ASKED.replace(' ', "+");
        format!("/v1/{NAMESPACE}/resolve?phrase={phrase}{more}")
    };
    let (_, answer) = asked.text("GET", &own("&near=true"), "").await;
    assert!(
        answer.contains(&expected) && answer.contains("\"near_status\":\"ready\""),
        "{answer}\n{expected}"
    );
    let (_, answer) = asked.text("GET", &own(""), "").await;
    assert!(
        answer.contains("\"near\":null") && answer.contains("\"near_status\":\"not_asked\""),
        "{answer}"
    );
    let question = ResolveQuestion {
        phrase: near::ASKED.into(),
        near: true,
        ..ResolveQuestion::default()
    };
    let answers = asked_by_grpc(&edge, [question::Question::Resolve(question)], head).await;
    let [answer::Answer::Resolve(resolved)] = &answers[..] else {
        panic!("{answers:?}");
    };
    let by_grpc = resolved.near.as_ref().expect("a near answer");
    assert_eq!(by_grpc.encode_to_vec(), near.encode_to_vec());
    ended(edge, lifecycle).await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edge_that_is_started_while_the_services_are_away_answers_from_its_copy() {
    let mut system = System::sqlite().await;
    let directory = tempfile::tempdir().unwrap();
    let mut config = config(&system, &[NAMESPACE]);
    config.node.cache_dir = Some(directory.path().to_owned());
    let head = taught(&system).await.max(taught_by_mia(&system).await);
    let questions = [
        "synonyms?term=notebook",
        "trust?host=www.spam.example",
        "profile?user=mia",
        "expand?text=cheap+notebook&as=solr",
    ];
    let answers = async |edge: &Edge| {
        let mut answers = Vec::new();
        for question in questions {
            let (status, answer) = Asked(edge).get(&format!("/v1/{NAMESPACE}/{question}")).await;
            assert_eq!(status, 200, "{question}: {answer}");
            answers.push(answer);
        }
        answers
    };
    let lifecycle = Lifecycle::new();
    let edge = emend_edge::start(config.clone(), &lifecycle).await.unwrap();
    edge.node().wait_for_revision(head, PATIENCE).await.unwrap();
    let before = answers(&edge).await;
    assert_eq!(before[0]["synonyms"], json!(["laptop computer"]));
    ended(edge, lifecycle).await;
    system.stop_feedback().await;
    system.stop_learning().await;

    let lifecycle = Lifecycle::new();
    let edge = emend_edge::start(config.clone(), &lifecycle).await.unwrap();
    assert_eq!(Asked(&edge).get("/readyz").await.0, 200);
    assert_eq!(answers(&edge).await, before);
    let (_, status) = Asked(&edge).get("/v1/status").await;
    assert_eq!(
        (&status["origin"], &status["connected"]),
        (&json!("disk_copy"), &json!(false)),
        "{status}"
    );
    ended(edge, lifecycle).await;

    // One without a copy has nothing to answer from, and says so.
    let lifecycle = Lifecycle::new();
    let mut empty = config;
    empty.node.cache_dir = None;
    let edge = emend_edge::start(empty, &lifecycle).await.unwrap();
    for path in [
        "/readyz".to_owned(),
        format!("/v1/{NAMESPACE}/synonyms?term=notebook"),
    ] {
        let (status, refused) = Asked(&edge).get(&path).await;
        assert_eq!(
            (status, &refused["error"]["code"]),
            (503, &json!("UNAVAILABLE")),
            "{refused}"
        );
    }
    ended(edge, lifecycle).await;
    system.stop().await;
}

/// What is answered at a socket.
async fn asked_at(socket: &Path, path: &str) -> String {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: whatever\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_is_its_owners_alone_and_replaced_only_where_nobody_answers() {
    let system = System::sqlite().await;
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("edge.sock");
    let config = |id: &str| {
        let mut config = config(&system, &[NAMESPACE]);
        config.node.id = id.into();
        config.listen = vec![Listen::Unix(socket.clone())];
        config
    };
    // A killed process leaves its socket behind.
    drop(UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    let head = taught(&system).await;
    let lifecycle = Lifecycle::new();
    let edge = emend_edge::start(config("edge-1"), &lifecycle).await.unwrap();
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
    let path = format!("/v1/{NAMESPACE}/synonyms?term=notebook&min_revision={head}&timeout=60");
    let answer = asked_at(&socket, &path).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.contains("[\"laptop computer\"]"),
        "{answer}"
    );

    let second = Lifecycle::new();
    let refused = emend_edge::start(config("edge-2"), &second).await.unwrap_err();
    assert!(
        refused.to_string().contains("another process answers there"),
        "{refused}"
    );
    second.shutdown(std::time::Duration::from_secs(5)).await;
    let answer = asked_at(&socket, &path).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    ended(edge, lifecycle).await;
    assert!(!socket.exists(), "whoever ends takes it away");
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
