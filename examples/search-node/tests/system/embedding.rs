//! Searches by meaning, with an embedding server that answers over HTTP and fails in the ways that servers do.

mod records;

use std::{
    borrow::Cow,
    io::sink,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::post,
};
use emend_base::http_client::model::{Endpoint, Parameters, bearer};
use emend_client::{
    Clock as _, Entropy, Kind, Learned, LearnedView, ManualClock, NormalizedKey, Relation, ResourceValue,
    Revision, Synonym, SystemClock, Timestamp,
    proto::{
        feedback::v1::{ListQueriesRequest, query_service_client::QueryServiceClient},
        search::v1::TermGroup,
    },
    view::{Fact, Publisher},
};
use emend_tests::{
    both_databases,
    harness::{NAMESPACE, answered, eventually},
};
use search_node::{
    backend::{Asked, Found, VectorSearch},
    corpus::Record,
    embedding::{Embedded, Embedder, RecordEmbedder, Vector, http::Model},
    index::SearchIndex,
    update::Counts,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinSet};

use crate::node::Node;

/// Words of one meaning, which is a direction. Queries and records with none of them have directions of their own.
const MEANINGS: [&[&str]; 2] = [&["リーダー", "顔"], &["引く", "ドロー"]];

/// How the server answers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Behaviour {
    /// With vectors, of which each has so many numbers that mean nothing.
    Answers { more: usize },
    /// Only the first so many texts of all calls.
    Tires { after: usize },
    /// 400 where one of the texts has this in it.
    Refuses(&'static str),
    /// 500.
    Broken,
    /// Something that is no answer.
    Talks,
    /// More than is read.
    Floods,
    /// Not at all.
    Hangs,
}

#[derive(Debug)]
struct Shared {
    behaviour: Behaviour,
    asked: Vec<String>,
}

/// An embedding server on a free port.
struct Server {
    url: String,
    shared: Arc<Mutex<Shared>>,
    _task: JoinSet<()>,
}

impl Server {
    async fn start() -> Self {
        let shared = Arc::new(Mutex::new(Shared {
            behaviour: Behaviour::Answers { more: 0 },
            asked: Vec::new(),
        }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let routes = Router::new()
            .route("/v1/embeddings", post(embeddings))
            .with_state(Arc::clone(&shared));
        let mut task = JoinSet::new();
        task.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self {
            url,
            shared,
            _task: task,
        }
    }

    fn behaves(&self, behaviour: Behaviour) {
        self.shared.lock().unwrap().behaviour = behaviour;
    }

    /// What it was asked since the last time.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().unwrap().asked)
    }

    fn model(&self, version: &str) -> Box<dyn Embedder> {
        let endpoint = Endpoint {
            url: self.url.parse().unwrap(),
            model: "meanings".to_owned(),
            key: Some(bearer("key").unwrap()),
            // A server that hangs is waited for so long, and others answer long before.
            timeout: if self.shared.lock().unwrap().behaviour == Behaviour::Hangs {
                Duration::from_millis(1)
            } else {
                Duration::from_mins(1)
            },
            attempts: 1,
            parameters: Parameters::default(),
        };
        let clock = Arc::new(SystemClock::shared());
        Box::new(Model::new(&endpoint, version, clock, Entropy::seeded(1)).unwrap())
    }
}

async fn embeddings(State(shared): State<Arc<Mutex<Shared>>>, Json(request): Json<Value>) -> Response {
    assert_eq!(request["model"], "meanings");
    let texts: Vec<String> = serde_json::from_value(request["input"].clone()).unwrap();
    let (behaviour, before) = {
        let mut shared = shared.lock().unwrap();
        let before = shared.asked.len();
        shared.asked.extend(texts.iter().cloned());
        (shared.behaviour, before)
    };
    let more = match behaviour {
        Behaviour::Answers { more } => more,
        Behaviour::Refuses(some) if texts.iter().any(|text| text.contains(some)) => {
            return StatusCode::BAD_REQUEST.into_response();
        }
        Behaviour::Refuses(_) => 0,
        Behaviour::Tires { after } if before + texts.len() <= after => 0,
        Behaviour::Tires { .. } | Behaviour::Broken => {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
        Behaviour::Talks => return "Sure! Here are your vectors.".into_response(),
        Behaviour::Floods => return " ".repeat(9 << 20).into_response(),
        Behaviour::Hangs => std::future::pending().await,
    };
    let data: Vec<Value> = (0..)
        .zip(&texts)
        .map(|(index, text): (usize, _)| json!({"index": index, "embedding": vector(text, more)}))
        .collect();
    Json(json!({"data": data})).into_response()
}

fn vector(text: &str, more: usize) -> Vec<f32> {
    let has = |words: &&[&str]| words.iter().any(|word| text.contains(word));
    let mut numbers: Vec<f32> = MEANINGS
        .iter()
        .map(|words| f32::from(u8::from(has(words))))
        .collect();
    let is_unknown = !MEANINGS.iter().any(has);
    // A record is embedded with its title, on a line of its own.
    let is_record = text.contains('\n');
    numbers.push(f32::from(u8::from(is_unknown && is_record)));
    numbers.push(f32::from(u8::from(is_unknown && !is_record)));
    numbers.extend(std::iter::repeat_n(0.0, more));
    numbers
}

fn record(id: &str, text: &str) -> Record {
    Record {
        id: format!("{id}:effect_1"),
        title: id.to_owned(),
        text: text.to_owned(),
        namespace: "effects".to_owned(),
        url: String::new(),
    }
}

/// One record about each meaning, and one about none.
fn records() -> Vec<Record> {
    vec![
        record("CARD-A", "相手の顔に3ダメージ。"),
        record("CARD-B", "カードを2枚引く。"),
        record("CARD-C", "相手の墓場のカードを消滅させる。"),
    ]
}

/// An index of these records, with the vectors that the server makes.
async fn indexed(server: &Server, version: &str) -> (TempDir, SearchIndex) {
    let directory = tempfile::tempdir().unwrap();
    let index = SearchIndex::open(directory.path()).unwrap();
    let (counts, failure) = updated(&index, &records(), &*server.model(version)).await;
    assert_eq!((counts.upserted, counts.embedded, failure), (3, 3, None));
    server.asked();
    (directory, index)
}

/// What was counted, and why some records have no vector.
async fn updated(index: &SearchIndex, records: &[Record], model: &dyn Embedder) -> (Counts, Option<String>) {
    let embedded = Embedded::of_changed(index, records, model).await.unwrap();
    let now = ManualClock::new(Timestamp::UNIX_EPOCH).now();
    let summary = index
        .update(records, Some(&embedded), false, now, &mut sink())
        .unwrap();
    (
        summary["effects"],
        embedded.failure.map(|failure| format!("{failure:#}")),
    )
}

/// A node with this embedding server, and what teaches it.
async fn node(server: &Server) -> (Node, Publisher) {
    let (publisher, view) = LearnedView::new(&Entropy::seeded(1), SystemClock::shared());
    let index = indexed(server, "meanings@1").await;
    let node = Node::of(view, index, Some(server.model("meanings@1")), None);
    (node, publisher)
}

fn fact(kind: Kind, key: &str, qualifier: &str, learned: Learned, written: &str) -> Fact<'static> {
    Fact {
        namespace: NAMESPACE,
        kind,
        key: key.to_owned().leak(),
        qualifier: qualifier.to_owned().leak(),
        user_id: "",
        revision: Revision(1),
        value: Some(Cow::Owned(ResourceValue::new(written, learned))),
    }
}

/// That a term stands for another one.
fn stands_for(term: &str, representative: &str) -> Fact<'static> {
    let key = |text: &str| NormalizedKey::parse(text).unwrap().as_str().to_owned();
    let learned = Learned::Synonym(Synonym {
        relation: Relation::Equivalent,
        representative: representative.to_owned(),
    });
    fact(Kind::Synonym, &key(term), &key(representative), learned, term)
}

fn tuned(line: &str) -> Fact<'static> {
    let learned = Learned::of(Kind::SearchTuning, line.to_owned()).unwrap();
    fact(Kind::SearchTuning, "HYBRID", "", learned, "HYBRID")
}

async fn search(node: &Node, query: &str) -> Found {
    let asked = Asked {
        query: query.to_owned(),
        ..Asked::default()
    };
    node.backend.search(&asked).await.unwrap()
}

fn ids(found: &Found) -> Vec<&str> {
    found.titles.iter().map(|title| title.record.of()).collect()
}

#[tokio::test]
async fn the_third_step_finds_what_the_words_and_the_text_alone_do_not() {
    let server = Server::start().await;
    let (node, mut publisher) = node(&server).await;
    let query = "ボスを狙う";
    let nothing = search(&node, query).await;
    assert_eq!((ids(&nothing).len(), nothing.attempts), (0, 3));
    assert_eq!(server.asked(), [query], "there is nothing to expand");

    // The card says 顔, which nobody has taught; the model knows what it means, and not what ボス does.
    publisher.replace(1, [stands_for("ボス", "リーダー")], Revision(1));
    let found = search(&node, query).await;
    assert_eq!((ids(&found), found.attempts), (vec!["CARD-A"], 3));
    assert_eq!(server.asked(), [query, "ボスを狙う リーダー"]);
    assert_eq!(found.expanded, "(リーダー OR ボス) を狙う");
    assert_eq!(found.embedded, "ボスを狙う リーダー");
    assert_eq!(
        (found.vector_search, found.embedding_version.as_str()),
        (VectorSearch::Done, "meanings@1")
    );

    // As if nothing had been learned, and with a synonym that is only tried out.
    let mut asked = Asked {
        query: query.to_owned(),
        without_learning: true,
        ..Asked::default()
    };
    assert_eq!(ids(&node.backend.search(&asked).await.unwrap()).len(), 0);
    asked.without_learning = false;
    publisher.replace(0, [], Revision(2));
    asked.expansion = Some(vec![TermGroup {
        start: 0,
        end: 6,
        alternatives: vec!["リーダー".to_owned(), "ボス".to_owned()],
    }]);
    assert_eq!(ids(&node.backend.search(&asked).await.unwrap()), ["CARD-A"]);
}

#[tokio::test]
async fn hits_by_words_and_by_meaning_are_merged_by_the_weights_of_the_tuning() {
    let server = Server::start().await;
    let (node, mut publisher) = node(&server).await;
    // One of the words is in C; in meaning, it is B.
    let query = "ドロー 墓場";
    let mut scores = async |line: &str| -> Vec<(String, f64)> {
        publisher.replace(1, [tuned(line)], Revision(1));
        let found = search(&node, query).await;
        let titles = found.titles.iter();
        titles
            .map(|title| (title.record.of().to_owned(), title.score))
            .collect()
    };
    let by_words = scores("min_score=0 weight.embedding=0 retry=none").await;
    assert_eq!(server.asked(), [""; 0], "what has no weight is not asked for");
    let [(id, share)] = &by_words[..] else {
        panic!("{by_words:?}")
    };
    assert_eq!(id, "CARD-C");
    for (keyword, embedding, first) in [(1.0, 1.0, "CARD-B"), (0.2, 0.8, "CARD-B"), (20.0, 1.0, "CARD-C")] {
        let line = format!("min_score=0 weight.keyword={keyword} weight.embedding={embedding} retry=none");
        let merged = scores(&line).await;
        assert_eq!((merged.len(), &*merged[0].0), (2, first), "{line}: {merged:?}");
        for (id, score) in &merged {
            let of_both = if id == "CARD-B" {
                embedding
            } else {
                keyword * share
            };
            let expected = of_both / (keyword + embedding);
            assert!(
                (score - expected).abs() < 0.002,
                "{line}: {merged:?}, not {expected}"
            );
        }
    }
    let line = "min_score=0.6 weight.keyword=0.2 weight.embedding=0.8 retry=none";
    let above: Vec<String> = scores(line).await.into_iter().map(|(id, _)| id).collect();
    assert_eq!(above, ["CARD-B"], "what counts is the score by both");
}

#[tokio::test]
async fn a_search_goes_on_by_words_whatever_the_server_does() {
    let server = Server::start().await;
    for behaviour in [
        Behaviour::Broken,
        Behaviour::Talks,
        Behaviour::Floods,
        Behaviour::Hangs,
    ] {
        server.behaves(Behaviour::Answers { more: 0 });
        let index = indexed(&server, "meanings@1").await;
        let (_, view) = LearnedView::new(&Entropy::seeded(1), SystemClock::shared());
        server.behaves(behaviour);
        let node = Node::of(view, index, Some(server.model("meanings@1")), None);
        let found = search(&node, "墓場のカードを消滅させる").await;
        assert_eq!(ids(&found), ["CARD-C"], "{behaviour:?}");
        assert_eq!(found.vector_search, VectorSearch::Unanswered, "{behaviour:?}");
        assert_eq!((&*found.embedding_version, &*found.embedded), ("", ""));
        server.asked();
        assert_eq!(search(&node, "リーダー").await.attempts, 3, "{behaviour:?}");
        // One that hangs may be given up before it has read the question.
        assert!(
            server.asked().len() <= 1,
            "{behaviour:?}: it is asked once for all steps"
        );
    }

    // Vectors of another length, or of which the index has none, are not compared.
    server.behaves(Behaviour::Answers { more: 0 });
    let (node, _publisher) = node(&server).await;
    server.behaves(Behaviour::Answers { more: 1 });
    let found = search(&node, "墓場のカードを消滅させる").await;
    assert_eq!(
        (ids(&found), found.vector_search),
        (vec!["CARD-C"], VectorSearch::NoVectors)
    );
    server.behaves(Behaviour::Answers { more: 0 });
    let found = search(&node, "リーダー").await;
    assert_eq!(
        (ids(&found), found.vector_search),
        (vec!["CARD-A"], VectorSearch::Done)
    );
    let (_, view) = LearnedView::new(&Entropy::seeded(1), SystemClock::shared());
    let index = indexed(&server, "meanings@1").await;
    let node = Node::of(view, index, Some(server.model("meanings@2")), None);
    assert_eq!(
        search(&node, "リーダー").await.vector_search,
        VectorSearch::NoVectors
    );
}

both_databases! {
    async fn a_search_of_vectors_is_recorded_with_their_version(system) {
        let server = Server::start().await;
        let index = indexed(&server, "meanings@1").await;
        let node = Node::start_with(system, "search-1", index, Some(server.model("meanings@1"))).await;
        let found = search(&node, "ボスのリーダー").await;
        assert_eq!(ids(&found), ["CARD-A"]);
        server.behaves(Behaviour::Broken);
        let by_words = search(&node, "墓場のカードを消滅させる").await;
        let queries = QueryServiceClient::new(system.feedback().channel);
        let recorded = eventually("both searches are recorded", async || {
            let request = ListQueriesRequest { namespace: NAMESPACE.into(), ..ListQueriesRequest::default() };
            let listed = answered(queries.clone().list_queries(request).await).queries;
            if listed.len() == 2 { Ok(listed) } else { Err(format!("{listed:?}")) }
        })
        .await;
        for (found, version) in [(&found, "meanings@1"), (&by_words, "")] {
            let recorded = recorded.iter().find(|query| query.query_id == found.query_id).unwrap();
            assert_eq!(recorded.embedding_version, version);
        }
    }
}
