//! What is refused leaves its connection to the next request, or says that it does not.

use std::{convert::Infallible, sync::atomic::Ordering};

use axum::body::{Body, Bytes};
use emend_base::{Entropy, Lifecycle, telemetry::Metrics};
use futures::stream;
use http::{Method, Request, header};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};
use tower::ServiceExt as _;

use super::{
    super::{HttpConfig, McpMetrics, serve},
    Here, Slow,
};

/// A connection that sends one request after another.
struct Connection {
    stream: BufReader<TcpStream>,
    port: u16,
}

impl Connection {
    /// Sends the head of a request whose body comes once the server asks for it. Returns the status and the head of the answer, and
    /// whether the body was asked for.
    async fn asks(&mut self, request: &str, host: &str) -> (u16, String, bool) {
        let host = host.replace("PORT", &self.port.to_string());
        let head = format!(
            "{request} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        );
        self.stream.write_all(head.as_bytes()).await.expect("it reads");
        let mut answer = self.head().await;
        let is_asked_for = answer.starts_with("HTTP/1.1 100 ");
        if is_asked_for {
            self.stream.write_all(b"{}").await.expect("it reads");
            answer = self.head().await;
        }
        let length = answer
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length = length.and_then(|length| length.parse().ok()).unwrap_or_default();
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await.expect("a body");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        (
            status.unwrap_or_else(|| panic!("no status: {answer:?}")),
            answer,
            is_asked_for,
        )
    }

    /// The head of an answer.
    async fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = self.stream.read_line(&mut head).await.expect("a line");
            assert!(read > 0, "the connection was closed: {head:?}");
        }
        head.to_lowercase().replace("http/1.1", "HTTP/1.1")
    }
}

#[tokio::test]
async fn after_a_refusal_the_next_request_is_answered_on_the_same_connection() {
    let (lifecycle, callers) = (Lifecycle::new(), Slow::default());
    let own = McpMetrics::of(&Metrics::new());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let with = (&lifecycle, &Entropy::system(), &own);
    let server = serve(listener, HttpConfig::default(), callers.clone(), with).expect("it listens");
    let stream = TcpStream::connect(server.address()).await.expect("it listens");
    let mut connection = Connection {
        stream: BufReader::new(stream),
        port: server.address().port(),
    };
    for (request, host, refuses, expected) in [
        ("POST /mcp", "evil.example", false, 403),
        ("POST /mcp", "localhost:PORT", true, 401),
        ("DELETE /mcp", "localhost:PORT", true, 401),
        ("POST /elsewhere", "localhost:PORT", false, 404),
        ("POST /livez", "localhost:PORT", false, 405),
        (
            "POST /.well-known/oauth-protected-resource",
            "localhost:PORT",
            false,
            405,
        ),
        (
            "GET /.well-known/oauth-protected-resource",
            "localhost:PORT",
            false,
            404,
        ),
        ("POST /mcp", "localhost:PORT", false, 400),
        ("GET /livez", "localhost:PORT", false, 200),
    ] {
        callers.refuses.store(refuses, Ordering::Relaxed);
        let (status, answer, is_asked_for) = connection.asks(request, host).await;
        assert_eq!(status, expected, "{request} {host}: {answer}");
        assert!(
            is_asked_for,
            "its body is passed over: {request} {host}: {answer}"
        );
        assert!(
            !answer.contains("connection: close"),
            "{request} {host}: {answer}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_closes_the_connection_of_a_body_that_does_not_end() {
    let endless = || {
        Body::from_stream(stream::repeat_with(|| {
            Ok::<_, Infallible>(Bytes::from(vec![b' '; 65_536]))
        }))
    };
    let silent = || Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
    for (method, path, host, body, expected) in [
        (Method::POST, "/mcp", "evil.example", endless(), 403),
        (Method::POST, "/mcp", "evil.example", silent(), 403),
        (Method::POST, "/mcp", "localhost:7430", endless(), 413),
        (Method::POST, "/mcp", "localhost:7430", silent(), 408),
        (Method::DELETE, "/mcp", "evil.example", silent(), 403),
        (Method::POST, "/elsewhere", "localhost:7430", endless(), 404),
        (Method::POST, "/elsewhere", "localhost:7430", silent(), 404),
    ] {
        let request = Request::builder().method(method).uri(path).header("host", host);
        let request = request.body(body).expect("a request");
        let answer = Here::new().routes.oneshot(request).await.expect("an answer");
        assert_eq!(answer.status(), expected, "{path} {host}");
        assert_eq!(
            answer.headers()[header::CONNECTION],
            "close",
            "{path} {host}: {answer:?}"
        );
    }
}
