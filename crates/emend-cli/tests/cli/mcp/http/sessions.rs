//! Sessions: whose they are, how they end, what they cost.

use std::fs;

use http::Method;
use serde_json::json;

use super::up;

#[tokio::test]
async fn a_session_belongs_to_the_token_that_opened_it_and_ends_when_it_says_so() {
    let (_up, client) = up(&[]).await;
    // Services that know nobody take any token.
    let [mine, yours] = ["mine", "yours"].map(|token| client.with_token(token));
    let session = mine.in_session("2025-11-25").await;
    let stolen = session.with_token("yours");
    for (method, body) in [
        (
            Method::POST,
            session.request(&json!(1), "ping", json!({})).to_string(),
        ),
        (Method::GET, String::new()),
        (Method::DELETE, String::new()),
    ] {
        let answer = stolen.send(method.clone(), "/mcp", &body).await;
        assert_eq!(answer.status, 404, "{method}: {answer:?}");
    }
    assert_eq!(session.ask("ping", json!({})).await.status, 200);
    assert_eq!(session.send(Method::DELETE, "/mcp", "").await.status, 204);
    assert_eq!(session.ask("ping", json!({})).await.status, 404);
    assert_eq!(session.send(Method::DELETE, "/mcp", "").await.status, 404);
    assert_eq!(
        yours
            .in_session("2025-11-25")
            .await
            .ask("ping", json!({}))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_thousand_silent_sessions_cost_less_than_40_mib() {
    let (up, client) = up(&[]).await;
    let open = async |count: usize| {
        for _ in 0..count {
            client.in_session("2025-11-25").await;
        }
    };
    // What the first calls need for good is no session's.
    for _ in 0..50 {
        let session = client.in_session("2025-11-25").await;
        assert_eq!(session.send(Method::DELETE, "/mcp", "").await.status, 204);
    }
    let before = resident(up.id());
    open(1_000).await;
    let cost = resident(up.id()).saturating_sub(before);
    eprintln!("1,000 sessions: {cost} bytes");
    assert!(cost < 40 << 20, "{cost} bytes");
}

/// The bytes of memory that a process holds.
fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse::<u64>().ok())
        .expect("a number")
        * 1024
}
