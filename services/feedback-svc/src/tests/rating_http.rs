//! Ratings over HTTP: what is answered, what is stored, and who may send them.

use std::net::SocketAddr;

use emend_base::telemetry::Metrics;
use emend_proto::{common::v1::SearchRatingValue, feedback::v1 as pb};
use feedback_store::testing::Backend;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    Config, RatingHttp,
    tests::{Database, Service},
};

on_both! {
    a_rating_is_stored_for_the_namespace_and_caller_of_its_address
    what_is_wrong_is_named_and_what_is_too_much_is_told_when_to_come_back
    pages_of_other_origins_need_to_be_allowed
    an_end_user_is_one_over_replicas_and_restarts
    users_of_a_proxy_that_is_not_trusted_have_no_address
}

async fn start(database: &Database) -> (Service, SocketAddr) {
    start_behind(database, &["127.0.0.1"]).await
}

async fn start_behind(database: &Database, proxies: &[&str]) -> (Service, SocketAddr) {
    let config = Config {
        metrics: Metrics::new(),
        rating_http: RatingHttp {
            bindings: vec!["127.0.0.1:0=fund-admin/web".parse().unwrap()],
            origins: vec!["https://search.example".into()],
            trusted_proxies: proxies.iter().map(|proxy| proxy.parse().unwrap()).collect(),
            ..RatingHttp::default()
        },
        ..Config::new(database.url(), "127.0.0.1:1".parse().unwrap())
    };
    let service = Service::start_as(config).await;
    let address = service.handle.rating_addresses()[0];
    (service, address)
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .find_map(|line| line.split_once(": ").filter(|(known, _)| *known == name))
            .map(|(_, value)| value)
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

async fn ask(address: SocketAddr, request: &str, headers: &str, body: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    Answer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

async fn post(address: SocketAddr, headers: &str, body: &str) -> Answer {
    ask(address, "POST /v1/feedback", headers, body).await
}

async fn a_rating_is_stored_for_the_namespace_and_caller_of_its_address(database: Database) {
    let (service, address) = start(&database).await;
    let body = r#"{"query_id": "q1", "rating": -1, "user_reason": "<b>no</b> hits", "namespace": "other"}"#;
    let answer = post(address, "x-forwarded-for: 203.0.113.9\r\n", body).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let id = answer.json()["feedback_id"].as_str().unwrap().to_owned();
    let stored = service.get(&id).await;
    assert_eq!(
        (&*stored.caller, &*stored.query_id, &*stored.reason),
        ("web", "q1", "no hits")
    );
    let reporter = stored.reporter.clone().unwrap();
    assert!(reporter.id.is_empty() && reporter.session_id.is_empty());
    assert_eq!(
        reporter.client_key.len(),
        32,
        "a hash of the address, not the address"
    );
    let Some(emend_proto::common::v1::correction::Correction::SearchRating(rating)) =
        stored.correction.and_then(|it| it.correction)
    else {
        panic!("no rating")
    };
    assert_eq!(rating.value(), SearchRatingValue::Down);
    assert!(
        stored
            .search_rating
            .is_some_and(|state| state.context_state() == pb::ContextState::Pending)
    );

    let widget = ask(address, "GET /widget.js", "", "").await;
    assert_eq!(widget.status, 200);
    assert_eq!(
        widget.header("content-type"),
        Some("text/javascript; charset=utf-8")
    );
    assert!(widget.body.contains("customElements.define(\"emend-rating\""));
    assert_eq!(ask(address, "GET /livez", "", "").await.status, 200);
    assert_eq!(ask(address, "GET /metrics", "", "").await.status, 404);
    assert_eq!(ask(address, "DELETE /v1/feedback", "", "").await.status, 405);
    service.stop().await;
}

async fn what_is_wrong_is_named_and_what_is_too_much_is_told_when_to_come_back(database: Database) {
    let (service, address) = start(&database).await;
    let wrong = post(address, "", r#"{"rating": 5}"#).await;
    assert_eq!(wrong.status, 400);
    let fields = wrong.json()["error"]["fields"].clone();
    let named: Vec<_> = fields
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["field"].as_str().unwrap())
        .collect();
    assert_eq!(named, ["query_id", "rating"]);
    let large = format!(
        r#"{{"query_id": "q", "rating": 1, "more": "{}"}}"#,
        "x".repeat(16 * 1024)
    );
    assert_eq!(post(address, "", &large).await.status, 413);

    let rate = async |number: usize, client: &str| {
        let body = format!(r#"{{"query_id": "q{number}", "rating": 1}}"#);
        post(address, &format!("x-forwarded-for: {client}\r\n"), &body).await
    };
    for number in 0..10 {
        assert_eq!(rate(number, "203.0.113.9").await.status, 201);
    }
    let refused = rate(10, "203.0.113.9").await;
    assert_eq!(refused.status, 429);
    assert_eq!(refused.json()["error"]["reason"], "RATING_LIMIT");
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(rate(10, "203.0.113.10").await.status, 201, "another end user");
    service.stop().await;
}

/// Rates `count` queries for an end user behind the proxy; returns the statuses.
async fn rate(address: SocketAddr, client: &str, queries: std::ops::Range<usize>) -> Vec<u16> {
    let mut answers = Vec::new();
    for number in queries {
        let body = format!(r#"{{"query_id": "q{number}", "rating": 1}}"#);
        let answer = post(address, &format!("x-forwarded-for: {client}\r\n"), &body).await;
        answers.push(answer.status);
    }
    answers
}

async fn an_end_user_is_one_over_replicas_and_restarts(database: Database) {
    let (mut first, address) = start(&database).await;
    assert_eq!(rate(address, "203.0.113.9", 0..6).await, [201; 6]);
    if let Database::Sqlite(_) = &database {
        // A file belongs to one process.
        first.stop().await;
        first = start(&database).await.0;
        let address = first.handle.rating_addresses()[0];
        assert_eq!(
            rate(address, "203.0.113.9", 6..11).await,
            [201, 201, 201, 201, 429]
        );
    } else {
        let (second, other) = start(&database).await;
        assert_eq!(rate(other, "203.0.113.9", 6..11).await, [201, 201, 201, 201, 429]);
        assert_eq!(rate(address, "203.0.113.9", 11..12).await, [429]);
        assert_eq!(rate(other, "203.0.113.10", 0..1).await, [201]);
        second.stop().await;
    }
    first.stop().await;
}

async fn users_of_a_proxy_that_is_not_trusted_have_no_address(database: Database) {
    let (service, address) = start_behind(&database, &[]).await;
    let key = async |headers: &str, query: &str| {
        let body = format!(r#"{{"query_id": "{query}", "rating": 1}}"#);
        let answer = post(address, headers, &body).await;
        let id = answer.json()["feedback_id"].as_str().unwrap().to_owned();
        service.get(&id).await.reporter.unwrap_or_default().client_key
    };
    assert_eq!(key("", "direct").await.len(), 32);
    assert_eq!(key("x-forwarded-for: 203.0.113.9\r\n", "q0").await, "");
    // All such users together may rate as often as one.
    for number in 1..10 {
        let user = format!("198.51.100.{number}");
        assert_eq!(rate(address, &user, number..number + 1).await, [201]);
    }
    assert_eq!(rate(address, "198.51.100.77", 10..11).await, [429]);
    assert_eq!(key("", "direct again").await.len(), 32);
    service.stop().await;
}

async fn pages_of_other_origins_need_to_be_allowed(database: Database) {
    let (service, address) = start(&database).await;
    let body = r#"{"query_id": "q1", "rating": 0}"#;
    let allowed = "origin: https://search.example\r\n";
    let answer = post(address, allowed, body).await;
    assert_eq!(answer.status, 201);
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("https://search.example")
    );
    assert_eq!(answer.header("vary"), Some("origin"));
    let own = post(address, &format!("origin: http://{address}\r\n"), body).await;
    assert_eq!(own.status, 201);
    for origin in [
        "https://evil.example",
        "https://search.example.evil.example",
        "null",
    ] {
        let origin = format!("origin: {origin}\r\n");
        let refused = post(address, &origin, body).await;
        assert_eq!(refused.status, 403);
        assert_eq!(refused.header("access-control-allow-origin"), None);
        assert_eq!(
            ask(address, "OPTIONS /v1/feedback", &origin, "").await.status,
            403
        );
    }
    let asked = ask(address, "OPTIONS /v1/feedback", allowed, "").await;
    assert_eq!(asked.status, 204);
    assert_eq!(asked.header("access-control-allow-methods"), Some("POST"));
    assert_eq!(asked.header("access-control-allow-headers"), Some("content-type"));
    service.stop().await;
}
