//! A client of Streamable HTTP, as plain as the protocol allows: a connection for each request.

use std::path::Path;

use bytes::Bytes;
use emend_base::tls::{ClientTls, connect_http1};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, client::conn::http1};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::harness::TIMEOUT;

/// The newest revision.
pub(super) const STATELESS: &str = "2026-07-28";

/// Somebody who asks.
#[derive(Debug, Clone)]
pub(super) struct Client {
    /// Scheme, host and port.
    origin: String,
    /// Whom it trusts over TLS.
    tls: ClientTls,
    /// What it calls itself.
    name: &'static str,
    /// What it sends besides what the protocol asks for.
    headers: Vec<(&'static str, String)>,
    session: Option<String>,
    revision: &'static str,
    capabilities: Value,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Answer {
    /// The last message in it, whether it stands alone or in events.
    pub(super) fn message(&self) -> Value {
        let event = self
            .text
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("data: "));
        let text = event.unwrap_or(&self.text);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(super) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }
}

impl Client {
    /// A client of the server at this URL.
    pub(super) fn at(url: &str) -> Self {
        Self {
            origin: url.trim_end_matches("/mcp").to_owned(),
            tls: ClientTls::default(),
            name: "test",
            headers: Vec::new(),
            session: None,
            revision: STATELESS,
            capabilities: json!({"elicitation": {}}),
        }
    }

    /// The same, with this value of a header.
    pub(super) fn with(&self, name: &'static str, value: impl Into<String>) -> Self {
        let mut client = self.clone();
        client.headers.retain(|(known, _)| *known != name);
        client.headers.push((name, value.into()));
        client
    }

    /// The same, which trusts the authority in this file.
    pub(super) fn trusting(&self, authority: &Path) -> Self {
        let mut client = self.clone();
        client.tls = ClientTls::default().ca(authority);
        client
    }

    /// The same, which calls itself so.
    pub(super) fn named(&self, name: &'static str) -> Self {
        let mut client = self.clone();
        client.name = name;
        client
    }

    /// The same, with a token.
    pub(super) fn with_token(&self, token: &str) -> Self {
        self.with("authorization", format!("Bearer {token}"))
    }

    /// The same, whose front end can't ask a person.
    pub(super) fn without_elicitation(&self) -> Self {
        let mut client = self.clone();
        client.capabilities = json!({});
        client
    }

    /// The same, in a session of its own.
    pub(super) async fn in_session(&self, revision: &'static str) -> Self {
        let answer = self.opens(revision).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(
            answer.message()["result"]["protocolVersion"],
            revision,
            "{answer:?}"
        );
        let mut client = self.clone();
        client.session = Some(answer.header("mcp-session-id").to_owned());
        client.revision = revision;
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(client.post(&initialized.to_string()).await.status, 202);
        client
    }

    /// Asks for a session.
    pub(super) async fn opens(&self, revision: &str) -> Answer {
        let hello = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": revision,
                "capabilities": self.capabilities,
                "clientInfo": {"name": "test", "version": "1"},
            },
        });
        let mut client = self.clone();
        client.revision = "";
        client.post(&hello.to_string()).await
    }

    fn is_stateless(&self) -> bool {
        self.revision == STATELESS
    }

    /// The request of a method, as its revision has it.
    pub(super) fn request(&self, id: &Value, method: &str, mut params: Value) -> Value {
        if self.is_stateless() {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": self.revision,
                "io.modelcontextprotocol/clientInfo": {"name": self.name, "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            });
        }
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }

    /// What a method answers.
    pub(super) async fn ask(&self, method: &str, params: Value) -> Answer {
        self.post(&self.request(&json!(7), method, params).to_string())
            .await
    }

    /// The names of the tools that it is offered.
    pub(super) async fn offered(&self) -> Vec<String> {
        let answer = self.ask("tools/list", json!({})).await;
        let message = answer.message();
        let tools = message["result"]["tools"].as_array();
        let tools = tools.unwrap_or_else(|| panic!("{answer:?}"));
        let names = tools
            .iter()
            .map(|tool| tool["name"].as_str().expect("a name").to_owned());
        names.collect()
    }

    /// The result of a tool's call.
    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let answer = self
            .ask("tools/call", json!({"name": tool, "arguments": arguments}))
            .await;
        answer.message()["result"].clone()
    }

    /// What a tool answers to a call that succeeds.
    pub(super) async fn succeed(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_ne!(result["isError"], true, "{result}");
        result["structuredContent"].clone()
    }

    /// Sends a message.
    pub(super) async fn post(&self, body: &str) -> Answer {
        self.send(Method::POST, "/mcp", body).await
    }

    /// Sends a request, and reads the whole answer.
    pub(super) async fn send(&self, method: Method, path: &str, body: &str) -> Answer {
        let (head, text) = self.begin(method, path, body).await.into_parts();
        let text = timeout(TIMEOUT, text.collect()).await.expect("an answer in time");
        let text = text.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        Answer {
            status: head.status,
            headers: head.headers,
            text: String::from_utf8(text.to_vec()).expect("UTF-8"),
        }
    }

    /// Sends a request, and reads the head of the answer.
    pub(super) async fn begin(&self, method: Method, path: &str, body: &str) -> Response<Incoming> {
        let at = self.origin.parse().expect("a URL");
        let stream = connect_http1(&at, self.tls.clone()).await.expect("it listens");
        let (mut sender, connection) = http1::handshake(stream).await.expect("HTTP");
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if !self.revision.is_empty() {
            request = request.header("mcp-protocol-version", self.revision);
        }
        if self.is_stateless()
            && let Ok(message) = serde_json::from_str::<Value>(body)
        {
            for (header, value) in [
                ("mcp-method", &message["method"]),
                ("mcp-name", &message["params"]["name"]),
            ] {
                if let Some(value) = value.as_str() {
                    request = request.header(header, value);
                }
            }
        }
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if !self.headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", self.origin.split("//").nth(1).expect("a host"));
        }
        let request = request
            .body(Full::new(Bytes::from(body.to_owned())))
            .expect("a request");
        let answered = timeout(TIMEOUT, sender.send_request(request)).await;
        answered.expect("an answer in time").expect("an answer")
    }
}
