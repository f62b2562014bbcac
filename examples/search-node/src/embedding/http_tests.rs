//! A model as served by a local server, which also fails in every way that servers do.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use emend_base::http_client::{
    model::bearer,
    testing::{Fake, Reply, Server},
};
use serde_json::Value;

use super::*;

const TIMEOUT: Duration = Duration::from_secs(19);

fn endpoint(url: &str) -> Endpoint {
    Endpoint {
        url: format!("{url}/v1").parse().unwrap(),
        model: "small-1".into(),
        key: Some(bearer(" secret-key\n").unwrap()),
        timeout: TIMEOUT,
        attempts: 2,
        parameters: emend_base::http_client::model::Parameters::default(),
    }
}

fn model(server: &Server, is_slow: bool) -> Model {
    Model::new(
        &endpoint(&server.url),
        "small-1@2",
        Arc::new(Fake::new(TIMEOUT, is_slow)),
        Entropy::seeded(7),
    )
    .unwrap()
}

fn vectors(of: &[(usize, &[f64])]) -> Reply {
    let data: Vec<Value> = of
        .iter()
        .map(|(index, embedding)| json!({"object": "embedding", "index": index, "embedding": embedding}))
        .collect();
    Reply::Json(json!({"object": "list", "data": data, "model": "small-1", "usage": {"total_tokens": 7}}))
}

#[tokio::test]
async fn texts_get_their_vectors_whatever_their_order_in_the_answer() {
    let server = Server::start(|_| vectors(&[(1, &[0.0, 2.0]), (0, &[3.0, 4.0])])).await;
    let made = model(&server, false).embed(&["one", "場"]).await.unwrap();
    let numbers: Vec<&[f32]> = made.iter().map(Vector::numbers).collect();
    assert_eq!(numbers, [&[0.6, 0.8][..], &[0.0, 1.0][..]]);
    let asked = server.asked();
    let (head, body) = asked[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/embeddings "), "{head}");
    assert!(head.contains("authorization: Bearer secret-key"), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body, json!({"model": "small-1", "input": ["one", "場"]}));
}

#[tokio::test]
async fn whatever_a_server_does_is_said() {
    let status = |status| Reply::Status(status, String::new(), "");
    // What is answered first, how often, and what comes of it.
    let cases: [(Reply, usize, Result<(), &str>); 15] = [
        (status(503), 1, Ok(())),
        (Reply::Close, 1, Ok(())),
        (Reply::CloseWithin, 1, Ok(())),
        (status(500), 2, Err("the embedding server: answered 500")),
        (status(401), 1, Err("answered 401")),
        (status(404), 1, Err("answered 404")),
        (Reply::Huge, 1, Err("answered more than 8 MiB")),
        (
            Reply::Status(200, String::new(), "<html>"),
            1,
            Err("answered a page for browsers, not JSON"),
        ),
        (
            Reply::Json(json!({"data": [{"embedding": [1.0]}]})),
            1,
            Err("missing field `index`"),
        ),
        (
            vectors(&[(0, &[1.0])]),
            1,
            Err("can't be used: it has 1 vectors for 2 texts"),
        ),
        (
            vectors(&[(0, &[1.0]), (2, &[1.0])]),
            1,
            Err("data[].index must be 0 to 1, is 2"),
        ),
        (
            vectors(&[(1, &[1.0]), (1, &[1.0])]),
            1,
            Err("data[].index 1 is there twice"),
        ),
        (
            vectors(&[(0, &[1.0]), (1, &[1.0, 2.0])]),
            1,
            Err("its vectors have 1 and 2 numbers"),
        ),
        (
            vectors(&[(0, &[1.0]), (1, &[])]),
            1,
            Err("the vector with the index 1: must have 1 to 8192 numbers, has 0"),
        ),
        (
            vectors(&[(0, &[1e300]), (1, &[1.0])]),
            1,
            Err("the vector with the index 0: must have finite numbers only"),
        ),
    ];
    for (first, times, expected) in cases {
        let answers = AtomicUsize::new(0);
        let reply = first.clone();
        let server = Server::start(move |_| {
            if answers.fetch_add(1, Ordering::Relaxed) < times {
                reply.clone()
            } else {
                vectors(&[(0, &[1.0]), (1, &[1.0])])
            }
        })
        .await;
        match (model(&server, false).embed(&["one", "other"]).await, expected) {
            (Ok(made), Ok(())) => assert_eq!(made.len(), 2, "{first:?}"),
            (Err(error), Err(message)) => {
                let said = format!("{error:#}");
                assert!(said.contains(message), "{first:?}: {said}");
                assert!(!said.contains("secret"), "{said}");
            }
            (answer, _) => panic!("{first:?}: {answer:?}"),
        }
    }
}

#[tokio::test]
async fn a_slow_server_is_given_up_after_its_attempts() {
    let server = Server::start(|_| Reply::Hang).await;
    let error = model(&server, true).embed(&["one"]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the embedding server: no answer within 19s (attempt 2 of 2)"
    );
}

#[tokio::test]
async fn questions_go_over_one_connection() {
    let server = Server::start(|_| vectors(&[(0, &[3.0, 4.0])])).await;
    let model = model(&server, false);
    for text in ["one", "another", "a third"] {
        model.embed(&[text]).await.unwrap();
    }
    assert_eq!((server.asked().len(), server.connections()), (3, 1));
}

#[test]
fn an_endpoint_is_an_address_and_two_names() {
    let with = |change: fn(&mut Endpoint, &mut String)| {
        let (mut endpoint, mut version) = (endpoint("http://127.0.0.1:1"), "small-1@2".to_owned());
        change(&mut endpoint, &mut version);
        check(&endpoint, &version).map_err(|error| error.to_string())
    };
    assert_eq!(with(|_, _| {}), Ok(()));
    for (change, why) in [
        (
            (|endpoint, _| endpoint.url = "127.0.0.1:1".parse().unwrap()) as fn(&mut Endpoint, &mut String),
            "must be http://HOST:PORT/PATH or https://…, is 127.0.0.1:1",
        ),
        (
            |endpoint, _| endpoint.model = "m".repeat(65),
            "the embedding model's name must be 1 to 64 characters, none of them control characters; has 65",
        ),
        (
            |_, version| version.clear(),
            "the embedding version must be 1 to 64 characters",
        ),
    ] {
        let said = with(change).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
}
