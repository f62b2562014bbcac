use serde_json::json;

use super::{
    testing::{Fake, Reply, Server},
    *,
};

/// A client that tries once.
fn client(server: &Server) -> Client<'static> {
    let limits = Limits {
        timeout: Duration::from_secs(7),
        attempts: 1,
        interval: Duration::ZERO,
        max_answer: 1 << 20,
    };
    Client::new(
        "the server",
        server.url.parse().unwrap(),
        Key::None,
        limits,
        Arc::new(Fake::new(limits.timeout, false)),
        Entropy::seeded(1),
        "test",
    )
}

async fn asked(replies: Vec<Reply>) -> usize {
    let count = replies.len();
    let replies = Mutex::new(replies.into_iter());
    let server = Server::start(move |_| replies.lock().unwrap().next().unwrap()).await;
    let client = client(&server);
    for _ in 0..count {
        let answer: Value = client.post("/", &json!({})).await.unwrap();
        assert_eq!(answer, json!("answer"));
    }
    server.connections()
}

#[tokio::test]
async fn a_connection_is_kept_for_the_next_request() {
    let answer = || Reply::Json(json!("answer"));
    assert_eq!(asked(vec![answer(), answer(), answer()]).await, 1);
}

#[tokio::test]
async fn a_connection_that_the_service_closed_meanwhile_is_replaced() {
    let closing = || Reply::JsonThenClose(json!("answer"));
    assert_eq!(asked(vec![closing(), closing(), closing()]).await, 3);
}

#[tokio::test]
async fn who_tries_once_learns_how_long_to_wait_and_what_was_refused_in_which_words() {
    let replies = Mutex::new(
        [
            Reply::Status(429, "retry-after: 40\r\n".into(), "not now"),
            Reply::Status(503, String::new(), ""),
            Reply::Status(
                400,
                String::new(),
                r#"{"error": {"type": "parse", "reason": "line 3"}}"#,
            ),
            Reply::Status(404, String::new(), "<html>"),
        ]
        .into_iter(),
    );
    let server = Server::start(move |_| replies.lock().unwrap().next().unwrap()).await;
    let client = client(&server);
    let mut failures = Vec::new();
    for _ in 0..4 {
        let failure = client.post::<Value>("/", &json!({})).await.unwrap_err();
        let kind = failure
            .answer
            .as_ref()
            .and_then(|answer| answer.pointer("/error/type")?.as_str());
        failures.push((failure.kind, failure.after, kind.map(str::to_owned)));
    }
    assert_eq!(
        failures,
        [
            (ErrorKind::Later, Some(Duration::from_secs(40)), None),
            (ErrorKind::Later, None, None),
            (ErrorKind::Refused(400), None, Some("parse".to_owned())),
            (ErrorKind::NotFound, None, None),
        ]
    );
}

#[tokio::test]
async fn a_services_own_words_are_cut_after_300_characters() {
    for (words, told) in [
        ("言".repeat(300), "言".repeat(300)),
        ("言".repeat(301), format!("{}…", "言".repeat(300))),
    ] {
        let answers = [words.clone(), json!({"error": {"message": words}}).to_string()];
        for answer in answers.map(|answer| &*answer.leak()) {
            let server = Server::start(move |_| Reply::Status(400, String::new(), answer)).await;
            let failure = client(&server).post::<Value>("/", &json!({})).await.unwrap_err();
            assert_eq!(failure.message, format!("answered 400 Bad Request: {told}"));
        }
    }
}

#[test]
fn retry_after_is_a_number_of_seconds_or_a_date() {
    let now: Timestamp = "1994-11-06T08:49:30Z".parse().unwrap();
    for (value, seconds) in [
        ("120", Some(120)),
        (" 0 ", Some(0)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(7)),
        ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
        ("soon", None),
        ("-1", None),
    ] {
        assert_eq!(
            retry_after(value, now),
            seconds.map(Duration::from_secs),
            "{value}"
        );
    }
}
