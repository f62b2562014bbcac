//! The way of a request: where it comes from, who sends it, what it says, and then the protocol.
//!
//! An answer comes once the request's body has ended, or it closes the connection: otherwise the client's next request would be lost
//! with what is left of this one.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    middleware::{Next, from_fn},
    response::{IntoResponse as _, Response},
    routing::{any, get},
};
use emend_base::bearer::Token;
use emend_serve::hosts::Hosts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;

use super::{
    Callers, PATH, Served,
    admission::while_admitted,
    body::{self, LONGEST, Unread},
    metrics::McpMetrics,
    protected::{METADATA, Protected},
    refused::{Refused, json_of},
    sessions::{NoSession, OwnSessions, Owner, Sessions},
};
use crate::message::{self, BYTE_ORDER_MARK, INVALID_REQUEST};

/// The header that names a session.
const SESSION: &str = "mcp-session-id";
/// Where a request without a session says what its client is called.
const CLIENT_NAME: &str = "/params/_meta/io.modelcontextprotocol~1clientInfo/name";
/// The code of an error that says: try again later.
const BUSY: i32 = -32_000;

/// What all requests share.
#[derive(Debug)]
pub(super) struct Shared<C> {
    pub(super) hosts: Hosts,
    pub(super) callers: Arc<C>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) protected: Protected,
    pub(super) metrics: McpMetrics,
    pub(super) protocol: StreamableHttpServerConfig,
}

pub(super) fn routes<C: Callers>(shared: Arc<Shared<C>>) -> Router {
    let metadata = || get(metadata::<C>);
    Router::new()
        .route(METADATA, metadata())
        .route(&format!("{METADATA}{PATH}"), metadata())
        .route("/livez", get(|| async { "live\n" }))
        .fallback((
            StatusCode::NOT_FOUND,
            "not found: the Model Context Protocol is spoken at /mcp\n",
        ))
        .layer(from_fn(without_body))
        .route(PATH, any(speak::<C>))
        .with_state(shared)
}

async fn metadata<C: Callers>(State(shared): State<Arc<Shared<C>>>) -> Response {
    match shared.protected.metadata() {
        Some(metadata) => json_of(StatusCode::OK, &metadata),
        None => (StatusCode::NOT_FOUND, "no issuer of tokens is configured\n").into_response(),
    }
}

/// Answers what needs no body.
async fn without_body(request: Request, next: Next) -> Response {
    let (parts, mut body) = request.into_parts();
    let has_ended = body::passed_over(&mut body).await;
    let response = next.run(Request::from_parts(parts, Body::empty())).await;
    if has_ended { response } else { closing(response) }
}

async fn speak<C: Callers>(State(shared): State<Arc<Shared<C>>>, request: Request) -> Response {
    let (parts, mut body) = request.into_parts();
    let response = match shared.answered(parts, &mut body).await {
        Ok(response) => response,
        Err(refused) => *refused,
    };
    shared.metrics.answered(response.status());
    if closes(&response) || body::passed_over(&mut body).await {
        response
    } else {
        closing(response)
    }
}

/// The answer, after which the connection is closed.
fn closing(mut response: Response) -> Response {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
    response
}

fn closes(response: &Response) -> bool {
    response.headers().contains_key(header::CONNECTION)
}

impl<C: Callers> Shared<C> {
    async fn answered(&self, parts: Parts, body: &mut Body) -> Result<Response, Box<Response>> {
        if !self.hosts.is_asked(&parts.uri, &parts.headers) || !self.hosts.is_own_origin(&parts.headers) {
            let message = "asked under the name of another host, or by a page of another origin\n";
            return Err(Box::new((StatusCode::FORBIDDEN, message).into_response()));
        }
        let refuse = |refused: Refused| Box::new(refused.response(&self.protected.challenge(&refused)));
        let token = token(&parts.headers).map_err(refuse)?;
        let caller = self.callers.admitted(token.as_ref()).await.map_err(refuse)?;
        let owner = Owner::of(token.as_ref());
        let session = parts.headers.get(SESSION).and_then(|id| id.to_str().ok());
        let (mut read, mut place) = (Body::empty(), None);
        let mut served = Served::Session;
        if parts.method == Method::POST {
            let text = body::read(body).await.map_err(|error| Box::new(unread(error)))?;
            let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
            let message = message::read(text)
                .map_err(|refused| Box::new(json_of(StatusCode::BAD_REQUEST, &refused)))?;
            if message["method"] != "initialize" {
                let client = message.pointer(CLIENT_NAME).and_then(Value::as_str);
                let client = client.unwrap_or_default().to_owned();
                served = Served::Request { client };
            } else if session.is_none() {
                let counted_as = self.callers.counted_as(&caller);
                let found = self.sessions.place(owner, &counted_as);
                place = Some(found.map_err(|none| Box::new(full(&message["id"], &none)))?);
            }
            read = Body::from(text.to_vec());
        } else if parts.method == Method::DELETE
            && session.is_some_and(|id| !self.sessions.is_open_for(id, owner))
        {
            let message = "no session of yours has this id\n";
            return Err(Box::new((StatusCode::NOT_FOUND, message).into_response()));
        }
        let sessions = OwnSessions::new(Arc::clone(&self.sessions), owner, place);
        let callers = Arc::clone(&self.callers);
        let service = StreamableHttpService::new(
            move || Ok(callers.handler(&caller, &served)),
            Arc::new(sessions),
            self.protocol.clone(),
        );
        let ends_session = parts.method == Method::DELETE;
        let answered = service.handle(Request::from_parts(parts, read)).await;
        let mut answered = answered.map(Body::new);
        // Some clients take 202 for a failure.
        if ends_session && answered.status() == StatusCode::ACCEPTED {
            *answered.status_mut() = StatusCode::NO_CONTENT;
        }
        if sends_events(&answered) {
            let callers = Arc::clone(&self.callers);
            answered = answered.map(|events| while_admitted(events, callers, token));
        }
        Ok(answered)
    }
}

/// Whether the answer may go on for long.
fn sends_events(answer: &Response) -> bool {
    let content = answer.headers().get(header::CONTENT_TYPE);
    content.is_some_and(|content| content.as_bytes().starts_with(b"text/event-stream"))
}

/// The caller's token.
fn token(headers: &HeaderMap) -> Result<Option<Token>, Refused> {
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Ok(None);
    };
    let token = value.to_str().ok().and_then(Token::of_header);
    token.map(Some).ok_or_else(|| {
        Refused::BadToken(
            "the header authorization must be Bearer and one token, of visible ASCII characters".to_owned(),
        )
    })
}

fn unread(unread: Unread) -> Response {
    match unread {
        Unread::TooLong(id) => {
            let why = format!("the message is longer than {LONGEST} bytes");
            json_of(
                StatusCode::PAYLOAD_TOO_LARGE,
                &message::error(&id, INVALID_REQUEST, &why),
            )
        }
        Unread::Broken => closing(StatusCode::BAD_REQUEST.into_response()),
        Unread::Late => closing(StatusCode::REQUEST_TIMEOUT.into_response()),
    }
}

fn full(id: &Value, none: &NoSession) -> Response {
    let error = message::error(id, BUSY, &none.to_string());
    let mut response = json_of(StatusCode::TOO_MANY_REQUESTS, &error);
    let later = HeaderValue::from_static("60");
    response.headers_mut().insert(header::RETRY_AFTER, later);
    response
}
