//! Sessions end, are bounded and belong to somebody, and calls are cancelled: by an injected clock and without a network.

mod connections;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body};
use emend_base::{Entropy, bearer::Token, telemetry::Metrics};
use emend_serve::hosts::Hosts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{CallToolRequestParams, CallToolResponse, CallToolResult},
    service::RequestContext,
};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::{
    Callers, DEFAULT_SESSIONS, HttpConfig, HttpServer, McpMetrics, Refused, Served,
    admission::ASKED,
    protected::Protected,
    protocol,
    routes::{Shared, routes},
    session::IDLE,
    sessions::{Owner, Sessions},
};

/// One tool, which takes as long as it is let, and callers that are their tokens.
#[derive(Clone, Default)]
struct Slow {
    refuses: Arc<AtomicBool>,
    /// How many calls are under way.
    calls: watch::Sender<usize>,
}

impl ServerHandler for Slow {
    async fn call_tool(
        &self,
        _call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.calls.send_modify(|calls| *calls += 1);
        context.ct.cancelled().await;
        self.calls.send_modify(|calls| *calls -= 1);
        Ok(CallToolResult::success(Vec::new()).into())
    }
}

impl Callers for Slow {
    type Caller = Arc<str>;
    type Handler = Self;

    async fn admitted(&self, token: Option<&Token>) -> Result<Arc<str>, Refused> {
        if self.refuses.load(Ordering::Relaxed) {
            return Err(Refused::BadToken("it expired".to_owned()));
        }
        let token = token.map_or(&b""[..], Token::as_bytes);
        Ok(String::from_utf8_lossy(token).into())
    }

    fn counted_as(&self, caller: &Arc<str>) -> Arc<str> {
        Arc::clone(caller)
    }

    fn handler(&self, _caller: &Arc<str>, _served: &Served) -> Self {
        self.clone()
    }
}

/// A server without a network.
struct Here {
    routes: Router,
    sessions: Arc<Sessions>,
    callers: Slow,
    metrics: Metrics,
}

impl Here {
    fn new() -> Self {
        let address = "127.0.0.1:7430".parse().expect("an address");
        let server = HttpServer {
            address,
            is_secure: false,
        };
        let (metrics, callers) = (Metrics::new(), Slow::default());
        let own = McpMetrics::of(&metrics);
        let sessions = Arc::new(Sessions::new(
            DEFAULT_SESSIONS.into(),
            Entropy::system(),
            own.clone(),
        ));
        let shared = Shared {
            hosts: Hosts::new(Vec::new(), address),
            callers: Arc::new(callers.clone()),
            sessions: Arc::clone(&sessions),
            protected: Protected::new(&HttpConfig::default(), &server),
            metrics: own,
            // Its keep-alives go by another clock.
            protocol: protocol(CancellationToken::new()).with_sse_keep_alive(None),
        };
        Self {
            routes: routes(Arc::new(shared)),
            sessions,
            callers,
            metrics,
        }
    }

    /// The head of what a request of a token's caller is answered.
    async fn begins(&self, method: Method, (token, session): (&str, &str), body: &str) -> Response<Body> {
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "localhost:7430")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if !session.is_empty() {
            request = request.header("mcp-session-id", session);
        }
        let request = request.body(Body::from(body.to_owned())).expect("a request");
        self.routes.clone().oneshot(request).await.expect("an answer")
    }

    /// What a message is answered.
    async fn sends(&self, whose: (&str, &str), message: &Value) -> (StatusCode, String) {
        let answer = self.begins(Method::POST, whose, &message.to_string()).await;
        let status = answer.status();
        let text = answer.into_body().collect().await.expect("a body").to_bytes();
        (status, String::from_utf8_lossy(&text).into_owned())
    }

    /// A new session of a token's caller; otherwise the answer.
    async fn opens(&self, token: &str) -> Result<String, Response<Body>> {
        let answer = self.begins(Method::POST, (token, ""), &hello().to_string()).await;
        if answer.status() != StatusCode::OK {
            return Err(answer);
        }
        let session = answer.headers()["mcp-session-id"]
            .to_str()
            .expect("a text")
            .to_owned();
        let _ = answer.into_body().collect().await.expect("a body");
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.sends((token, &session), &initialized).await.0, 202);
        Ok(session)
    }

    async fn opened(&self, token: &str) -> String {
        let opened = self.opens(token).await;
        opened.unwrap_or_else(|refused| panic!("{refused:?}"))
    }

    async fn pings(&self, whose: (&str, &str)) -> StatusCode {
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        self.sends(whose, &ping).await.0
    }

    /// Begins a call that does not end by itself.
    async fn calls(&self, whose: (&str, &str), id: i64) -> Response<Body> {
        let under_way = *self.callers.calls.borrow();
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "slow"}});
        let events = self.begins(Method::POST, whose, &call.to_string()).await;
        assert_eq!(events.status(), 200);
        self.until_calls(under_way + 1).await;
        events
    }

    async fn until_calls(&self, expected: usize) {
        let mut calls = self.callers.calls.subscribe();
        let changed = calls.wait_for(|calls| *calls == expected);
        let in_time = timeout(Duration::from_mins(1), changed).await;
        assert!(in_time.is_ok(), "{expected} calls are not under way");
    }
}

fn hello() -> Value {
    json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }})
}

#[tokio::test(start_paused = true)]
async fn a_session_ends_whose_client_said_nothing_for_half_an_hour() {
    let here = Here::new();
    let session = here.opened("").await;
    let almost = IDLE.saturating_sub(Duration::from_mins(1));
    for _ in 0..2 {
        sleep(almost).await;
        assert_eq!(here.pings(("", &session)).await, 200, "it said something");
    }
    sleep(IDLE + Duration::from_mins(1)).await;
    assert_eq!(here.pings(("", &session)).await, 404);
    assert!(!here.sessions.is_open_for(&session, Owner::of(None)));
}

#[tokio::test(start_paused = true)]
async fn what_a_session_is_told_does_not_keep_it() {
    let here = Here::new();
    let session = here.opened("").await;
    // It listens for some time, and goes.
    let listens = here.begins(Method::GET, ("", &session), "").await;
    sleep(Duration::from_mins(1)).await;
    drop(listens);
    let told = here.sessions.session(&session).expect("it is open");
    for _ in 0..7 {
        sleep(Duration::from_mins(5)).await;
        told.tell_of_a_change().await;
    }
    assert!(!here.sessions.is_open_for(&session, Owner::of(None)));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_only_listens_is_pinged_and_keeps_its_session_by_answering() {
    for answers in [true, false] {
        let here = Here::new();
        let session = here.opened("").await;
        let listens = here.begins(Method::GET, ("", &session), "").await;
        let mut events = listens.into_body();
        let listening = async {
            let mut pings = 0;
            while let Some(Ok(frame)) = events.frame().await {
                let text = String::from_utf8_lossy(frame.data_ref().expect("data")).into_owned();
                if text.contains(r#""method":"ping""#) {
                    pings += 1;
                    let pong = json!({"jsonrpc": "2.0", "id": "ping", "result": {}});
                    if answers {
                        assert_eq!(here.sends(("", &session), &pong).await.0, 202);
                    }
                }
                if pings == 6 {
                    break;
                }
            }
            pings
        };
        let pings = listening.await;
        // What serves it has ended by then.
        sleep(Duration::from_secs(10)).await;
        let is_open = here.sessions.is_open_for(&session, Owner::of(None));
        assert_eq!(is_open, answers);
        assert_eq!(pings, if answers { 6 } else { 2 }, "one every ten minutes");
    }
}

#[tokio::test(start_paused = true)]
async fn events_end_once_the_token_is_not_accepted_any_more() {
    let here = Here::new();
    let session = here.opened("mine").await;
    let whose = ("mine", &*session);
    let listens = here.begins(Method::GET, whose, "").await;
    let call = here.calls(whose, 7).await;
    sleep(ASKED * 3).await;
    here.callers.refuses.store(true, Ordering::Relaxed);
    let both = async {
        let _ = listens.into_body().collect().await;
        let _ = call.into_body().collect().await;
    };
    assert!(timeout(ASKED * 2, both).await.is_ok(), "both ended");
    here.until_calls(0).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_is_dropped_once_its_client_cancels_it_or_goes() {
    let here = Here::new();
    let session = here.opened("").await;
    let whose = ("", &*session);
    let cancelled = here.calls(whose, 7).await;
    let other = here.calls(whose, 8).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    assert_eq!(here.sends(whose, &cancel).await.0, 202);
    here.until_calls(1).await;
    let rest = timeout(Duration::from_secs(1), cancelled.into_body().collect()).await;
    assert!(rest.is_ok(), "its stream ends");
    drop(other);
    here.until_calls(0).await;
    assert!(
        !here
            .sessions
            .session(&session)
            .expect("it is open")
            .activity()
            .has_calls
    );
    assert_eq!(here.pings(whose).await, 200);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_session_is_dropped_once_its_client_goes() {
    let here = Here::new();
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "slow", "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    let request = Request::post("/mcp")
        .header("host", "localhost:7430")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "slow")
        .body(Body::from(call.to_string()))
        .expect("a request");
    let answer = tokio::spawn(here.routes.clone().oneshot(request));
    here.until_calls(1).await;
    answer.abort();
    here.until_calls(0).await;
}

#[tokio::test]
async fn nobody_fills_the_table_for_others_and_who_has_its_share_gives_up_a_session_of_its_own() {
    let here = Here::new();
    let first = here.opened("many").await;
    let second = here.opened("many").await;
    let busy = here.calls(("many", &first), 7).await;
    for _ in 2..DEFAULT_SESSIONS {
        here.opened("many").await;
    }
    // Another finds room all the same: that of the oldest idle session of whoever has most.
    let other = here.opened("other").await;
    assert_eq!(here.pings(("many", &second)).await, 404);
    assert_eq!(
        here.pings(("many", &first)).await,
        200,
        "a call is under way in it"
    );
    // Who has most makes room itself.
    here.opened("many").await;
    assert_eq!(here.pings(("other", &other)).await, 200);
    drop(busy);
    let shown = here.metrics.render();
    for line in ["emend_mcp_sessions 1000", "emend_mcp_sessions_displaced_total 2"] {
        assert!(shown.contains(line), "{shown}");
    }
}

#[tokio::test]
async fn who_has_its_share_and_calls_under_way_in_all_of_it_comes_later() {
    let here = Here::new();
    let mut calls = Vec::new();
    for _ in 0..DEFAULT_SESSIONS {
        let session = here.opened("many").await;
        calls.push(here.calls(("many", &session), 7).await);
    }
    let refused = here.opens("many").await.expect_err("no room");
    assert_eq!(
        (refused.status(), &refused.headers()["retry-after"]),
        (
            StatusCode::TOO_MANY_REQUESTS,
            &http::HeaderValue::from_static("60")
        )
    );
    let text = refused.into_body().collect().await.expect("a body").to_bytes();
    let answer: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(answer["id"], "hello", "{answer}");
    assert!(
        answer.to_string().contains(&DEFAULT_SESSIONS.to_string()),
        "{answer}"
    );
    // Another has a right to its share.
    here.opened("other").await;
    let shown = here.metrics.render();
    let line = r#"emend_mcp_turned_away_total{table="sessions"} 1"#;
    assert!(shown.contains(line), "{shown}");
}
