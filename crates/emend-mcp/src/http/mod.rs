//! Streamable HTTP, as each revision of the protocol has it: through 2025-11-25 with sessions, from 2026-07-28 on without.
//!
//! | request | answer |
//! |---|---|
//! | `POST /mcp` | a message's answer, as JSON or as events; 202 for what has none |
//! | `GET /mcp` | the events of a session |
//! | `DELETE /mcp` | the session is ended |
//! | `GET /.well-known/oauth-protected-resource` | where tokens come from (RFC 9728) |
//!
//! A caller's token is its own, and is asked for with every request; a session belongs to the token that opened it. While events are
//! sent it is asked for again, and they end when it is not accepted any more. What is asked under the name of another host, or by a
//! page of another origin, is refused.

mod admission;
mod body;
mod metrics;
mod protected;
mod pseudonym;
mod refused;
mod routes;
mod session;
mod sessions;
#[cfg(test)]
mod tests;

use std::{future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use emend_base::{Entropy, Lifecycle, bearer::Token};
use emend_serve::{
    hosts::Hosts,
    listen::reachable,
    origin::Origin,
    plain_http::{self, Bounds, PATIENCE},
    tls::TlsServer,
};
use rmcp::{ServerHandler, transport::StreamableHttpServerConfig};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use self::{metrics::McpMetrics, pseudonym::pseudonym, refused::Refused};
use self::{protected::Protected, routes::Shared, sessions::Sessions};

/// Where the protocol is spoken.
pub const PATH: &str = "/mcp";

/// A session's stream of events may stay open for long; its client opens it anew.
const BOUNDS: Bounds = Bounds {
    connections: 16_384,
    patience: PATIENCE,
    served: Duration::from_hours(1),
};
/// How long answers in progress have once the process is asked to stop; then streams of events end.
const ENDING: Duration = Duration::from_secs(1);

/// Who may call, and what serves them.
pub trait Callers: Send + Sync + 'static {
    /// One who may call.
    type Caller: Send + Sync + 'static;
    /// What serves a session, or one request without a session.
    type Handler: ServerHandler + Send + 'static;

    /// Who calls with this token; asked with every request.
    fn admitted(&self, token: Option<&Token>) -> impl Future<Output = Result<Self::Caller, Refused>> + Send;

    /// Whose sessions the caller's are counted as: the same for all tokens of one caller.
    fn counted_as(&self, caller: &Self::Caller) -> Arc<str>;

    /// What serves the caller.
    fn handler(&self, caller: &Self::Caller, served: &Served) -> Self::Handler;
}

/// What a caller is served in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Served {
    /// A session of its own.
    Session,
    /// One request without a session, from a client that calls itself so; empty if it does not say.
    Request {
        /// The client's name.
        client: String,
    },
}

/// The most sessions that a process may be told to hold.
pub const MAX_SESSIONS: u16 = 10_000;
/// The most sessions of a process that is not told.
pub const DEFAULT_SESSIONS: u16 = 1_000;

/// How it is served.
#[derive(Debug)]
pub struct HttpConfig {
    /// By which people reach it; the first names it in what says where tokens come from. Loopback names always do where it listens
    /// on loopback.
    pub public_urls: Vec<Origin>,
    /// Who gives out tokens, as URLs; none: nothing says where tokens come from.
    pub issuers: Vec<String>,
    /// TLS, made by [`TlsServer::for_http1`]; none for plain connections.
    pub tls: Option<Arc<TlsServer>>,
    /// The most sessions at once; a silent one takes about 40 kB.
    pub sessions: usize,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            public_urls: Vec::new(),
            issuers: Vec::new(),
            tls: None,
            sessions: DEFAULT_SESSIONS.into(),
        }
    }
}

/// A server that answers.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    is_secure: bool,
}

impl HttpServer {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address to give to assistants on this machine.
    pub fn url(&self) -> String {
        let scheme = if self.is_secure { "https" } else { "http" };
        format!("{scheme}://{}{PATH}", reachable(self.address))
    }
}

/// Serves until `lifecycle` is asked to stop.
pub fn serve<C: Callers>(
    listener: TcpListener,
    config: HttpConfig,
    callers: C,
    (lifecycle, entropy, metrics): (&Lifecycle, &Entropy, &McpMetrics),
) -> io::Result<HttpServer> {
    let address = listener.local_addr()?;
    let server = HttpServer {
        address,
        is_secure: config.tls.is_some(),
    };
    let names = config.public_urls.iter().map(|url| url.authority.clone());
    let ended = ended_after(lifecycle);
    let protected = Protected::new(&config, &server);
    let shared = Arc::new(Shared {
        hosts: Hosts::new(names.collect(), address),
        callers: Arc::new(callers),
        sessions: Arc::new(Sessions::new(config.sessions, entropy.clone(), metrics.clone())),
        metrics: metrics.clone(),
        protected,
        protocol: protocol(ended),
    });
    let routes = routes::routes(shared);
    let scope = lifecycle.clone();
    match config.tls {
        None => lifecycle.spawn(
            "answer assistants",
            plain_http::accept(listener, routes, BOUNDS, scope),
        ),
        Some(tls) => lifecycle.spawn(
            "answer assistants over TLS",
            plain_http::accept_secured(listener, tls, routes, BOUNDS, scope),
        ),
    };
    Ok(server)
}

/// Cancelled once answers in progress have had their time.
fn ended_after(lifecycle: &Lifecycle) -> CancellationToken {
    let ended = lifecycle.hard().child_token();
    let (soft, cancelled) = (lifecycle.soft().clone(), ended.clone());
    lifecycle.spawn("end the streams of assistants", async move {
        soft.cancelled().await;
        tokio::time::sleep(ENDING).await;
        cancelled.cancel();
    });
    ended
}

/// Settings of the protocol's library. Hosts and origins are checked before; older clients can't read the event with nothing in
/// it by which it would tell them when to come again.
fn protocol(ended: CancellationToken) -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_json_response(true)
        .with_sse_retry(None)
        .with_max_request_body_bytes(body::LONGEST)
        .with_cancellation_token(ended)
}
