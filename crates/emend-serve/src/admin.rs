//! The operators' port, over HTTP/1.1: metrics, liveness, readiness, and the log level.
//!
//! | request | answer |
//! |---|---|
//! | `GET /metrics` | all metrics, in OpenMetrics' text format; in Prometheus' older one for those who accept that alone |
//! | `GET /livez` | 200 while the process answers at all |
//! | `GET /readyz` | 200 while every check of every service passes and no stop is requested; else 503 and what fails; then, a line each, what else is wrong |
//! | `GET /log-level` | what is logged; from loopback alone |
//! | `PUT /log-level` | logs what the body says from now on, such as `info,sqlx=warn`; from loopback alone |
//!
//! Nothing here is secret, and only the log level can be changed.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use axum::{
    Extension, Router,
    body::{Body, to_bytes},
    extract::State,
    response::IntoResponse,
    routing::get,
};
use emend_base::{
    lifecycle::Lifecycle,
    telemetry::{
        LogLevel, Metrics, Telemetry,
        metrics::{CONTENT_TYPE, plain_text},
    },
};
use http::{HeaderMap, StatusCode, header};
use tokio::{net::TcpListener, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    health::Readiness,
    listen::formed,
    plain_http::{self, PATIENCE},
};

/// The longest body that is read, in bytes.
const MAX_BODY: usize = 1024;
/// What operators can see. Flattened into the arguments of every server.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Telemetry")]
pub struct TelemetryArgs {
    /// Where metrics, liveness and readiness are served over HTTP; port 0 picks a free one, which is logged; empty
    /// turns this off
    #[arg(
        long,
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:0",
        env = "EMEND_METRICS_ADDR"
    )]
    pub metrics_addr: String,
}

impl TelemetryArgs {
    /// What is wrong with the address, as far as can be told without listening or resolving names.
    pub fn check(&self) -> Option<String> {
        let address = &self.metrics_addr;
        let formed = if address.is_empty() {
            Ok(())
        } else {
            formed(address)
        };
        let unbound = |source| BindError {
            address: address.clone(),
            source,
        };
        formed.map_err(unbound).err().map(|error| error.to_string())
    }

    /// Binds the port, if there is one: before anything else starts, so that a port in use is reported at once.
    pub async fn bind(&self) -> Result<Option<AdminListener>, BindError> {
        match &*self.metrics_addr {
            "" => Ok(None),
            address => AdminListener::bind(address).await.map(Some),
        }
    }
}

/// Serves the operators' port until [`Telemetry::finish`]. It reports not ready from the moment `served` is asked to stop.
pub fn start(
    telemetry: &Telemetry,
    listener: Option<AdminListener>,
    metrics: &Metrics,
    services: Vec<Readiness>,
    served: &Lifecycle,
) {
    if let Some(listener) = listener {
        let admin = Admin::new(
            metrics.clone(),
            services,
            telemetry.level().cloned(),
            served.soft().clone(),
        );
        listener.serve(admin, telemetry.lifecycle());
    }
}

/// Why the port can't be bound.
#[derive(Debug, thiserror::Error)]
#[error(
    "--metrics-addr {address:?}: can't listen there, expected HOST:PORT, for example 127.0.0.1:9464: {source}"
)]
pub struct BindError {
    address: String,
    source: io::Error,
}

/// The port, bound but not served yet.
#[derive(Debug)]
pub struct AdminListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl AdminListener {
    /// Binds the port.
    pub async fn bind(address: &str) -> Result<Self, BindError> {
        let bound = async {
            let listener = TcpListener::bind(address).await?;
            let address = listener.local_addr()?;
            Ok(Self { listener, address })
        };
        bound.await.map_err(|source| BindError {
            address: address.to_owned(),
            source,
        })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves in `lifecycle`.
    pub fn serve(self, admin: Admin, lifecycle: &Lifecycle) {
        tracing::info!(address = %self.address, "metrics and readiness are served over HTTP");
        let accepting = plain_http::accept(
            self.listener,
            admin.routes(),
            plain_http::Bounds::default(),
            lifecycle.clone(),
        );
        lifecycle.spawn("serve operators", accepting);
    }
}

/// What the port serves.
#[derive(Debug)]
pub struct Admin {
    metrics: Metrics,
    services: Vec<Readiness>,
    level: Option<LogLevel>,
    stopping: CancellationToken,
}

/// A status other than 200, and the line that explains it.
type Refusal = (StatusCode, String);

impl Admin {
    /// For the services of a process that is to stop when `stopping` is cancelled.
    pub fn new(
        metrics: Metrics,
        services: Vec<Readiness>,
        level: Option<LogLevel>,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            metrics,
            services,
            level,
            stopping,
        }
    }

    fn routes(self) -> Router {
        Router::new()
            .route("/metrics", get(metrics))
            .route("/livez", get("ok\n"))
            .route("/readyz", get(readiness))
            .route("/log-level", get(log_level).put(set_log_level))
            .fallback((
                StatusCode::NOT_FOUND,
                "not found: there are only /metrics, /livez, /readyz and /log-level\n",
            ))
            .with_state(Arc::new(self))
    }

    /// The log level, for clients on this host only.
    fn level_for(&self, peer: SocketAddr) -> Result<&LogLevel, Refusal> {
        if !is_this_host(peer) {
            return Err(refusal(StatusCode::FORBIDDEN, "allowed only from loopback"));
        }
        let level = self.level.as_ref();
        level.ok_or_else(|| refusal(StatusCode::NOT_FOUND, "logging is not set up"))
    }
}

async fn metrics(State(admin): State<Arc<Admin>>, headers: HeaderMap) -> impl IntoResponse {
    let rendered = admin.metrics.render();
    if is_plain_wanted(&headers) {
        let plain = plain_text::of(&rendered);
        return ([(header::CONTENT_TYPE, plain_text::CONTENT_TYPE)], plain);
    }
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], rendered)
}

/// Whether the client names Prometheus' text format among those that it accepts, and not OpenMetrics.
fn is_plain_wanted(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let accepted: Vec<&str> = accepted.filter_map(|value| value.to_str().ok()).collect();
    let names = |name: &str| accepted.iter().any(|value| value.contains(name));
    names("text/plain") && !names("application/openmetrics-text")
}

async fn readiness(State(admin): State<Arc<Admin>>) -> Result<String, Refusal> {
    if admin.stopping.is_cancelled() {
        return Err(refusal(StatusCode::SERVICE_UNAVAILABLE, "stopping"));
    }
    let failing: Vec<_> = admin.services.iter().flat_map(Readiness::failing).collect();
    let notes = admin.services.iter().flat_map(Readiness::notes);
    let notes: String = notes.flat_map(|note| [note, "\n".to_owned()]).collect();
    if failing.is_empty() {
        return Ok(format!("ok\n{notes}"));
    }
    let failing = format!("not ready: {}\n{notes}", failing.join(", "));
    Err((StatusCode::SERVICE_UNAVAILABLE, failing))
}

async fn log_level(
    State(admin): State<Arc<Admin>>,
    Extension(peer): Extension<SocketAddr>,
) -> Result<String, Refusal> {
    let level = admin.level_for(peer)?;
    Ok(format!("{}\n", level.current()))
}

async fn set_log_level(
    State(admin): State<Arc<Admin>>,
    Extension(peer): Extension<SocketAddr>,
    body: Body,
) -> Result<String, Refusal> {
    let level = admin.level_for(peer)?;
    let body = timeout(PATIENCE, to_bytes(body, MAX_BODY)).await;
    let body = body.ok().and_then(Result::ok);
    let text = body.as_deref().and_then(|body| std::str::from_utf8(body).ok());
    let Some(directives) = text else {
        return Err(refusal(
            StatusCode::BAD_REQUEST,
            "expected a level, or directives such as info,sqlx=warn, in at most 1,024 bytes of UTF-8",
        ));
    };
    match level.set(directives.trim()) {
        Ok(()) => Ok(format!("{}\n", level.current())),
        Err(error) => Err(refusal(StatusCode::BAD_REQUEST, &error.to_string())),
    }
}

fn refusal(status: StatusCode, text: &str) -> Refusal {
    (status, format!("{text}\n"))
}

/// Whether it is from this host or this pod. Of 127.0.0.0/8 only the first address counts: sidecar proxies pass on
/// outside connections from others, as Istio does from 127.0.0.6.
fn is_this_host(peer: SocketAddr) -> bool {
    match peer.ip().to_canonical() {
        IpAddr::V4(address) => address == Ipv4Addr::LOCALHOST,
        IpAddr::V6(address) => address == Ipv6Addr::LOCALHOST,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{Method, Request};
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{TcpSocket, TcpStream},
    };
    use tower::ServiceExt as _;

    use super::*;
    use crate::plain_http::{CONNECTIONS, serve};

    const NEAR: &str = "127.0.0.1:40000";
    const FAR: &str = "192.0.2.7:40000";
    const SIDECAR: &str = "127.0.0.6:40000";

    fn admin(readiness: &Readiness) -> Admin {
        Admin::new(
            Metrics::new(),
            vec![readiness.clone()],
            Some(LogLevel::for_test("info")),
            CancellationToken::new(),
        )
    }

    async fn ask(routes: &Router, method: Method, path: &str, body: &str, peer: &str) -> (u16, String) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .extension(peer.parse::<SocketAddr>().unwrap())
            .body(Body::from(body.to_owned()))
            .unwrap();
        let response = routes.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(body.into()).unwrap())
    }

    #[tokio::test]
    async fn readiness_names_failing_checks_and_ends_at_shutdown() {
        let readiness = Readiness::new();
        readiness.register("library.Test", &["database", "log"]);
        readiness.set("log", true);
        let admin = admin(&readiness);
        let (stopping, routes) = (admin.stopping.clone(), admin.routes());
        assert_eq!(
            ask(&routes, Method::GET, "/readyz", "", FAR).await,
            (503, "not ready: database\n".into())
        );
        readiness.set("database", true);
        assert_eq!(
            ask(&routes, Method::GET, "/readyz", "", FAR).await,
            (200, "ok\n".into())
        );
        readiness.note("a file", Some("is none".to_owned()));
        assert_eq!(
            ask(&routes, Method::GET, "/readyz", "", FAR).await,
            (200, "ok\na file: is none\n".into()),
            "what is wrong is told, and the service is ready"
        );
        readiness.note("a file", None);
        assert_eq!(ask(&routes, Method::GET, "/readyz", "", FAR).await.1, "ok\n");
        stopping.cancel();
        assert_eq!(ask(&routes, Method::GET, "/readyz", "", FAR).await.0, 503);
        assert_eq!(
            ask(&routes, Method::GET, "/livez", "", FAR).await.0,
            200,
            "it still lives"
        );
    }

    #[tokio::test]
    async fn the_log_level_is_changed_from_loopback_only_and_an_invalid_one_changes_nothing() {
        let routes = admin(&Readiness::new()).routes();
        for peer in [FAR, SIDECAR] {
            for method in [Method::GET, Method::PUT] {
                assert_eq!(
                    ask(&routes, method, "/log-level", "trace", peer).await.0,
                    403,
                    "{peer}"
                );
            }
        }
        let put = async |body: &str| ask(&routes, Method::PUT, "/log-level", body, NEAR).await;
        assert_eq!(put("learning=loud").await.0, 400);
        assert_eq!(put("\n").await.0, 400);
        assert_eq!(put(&"x".repeat(MAX_BODY + 1)).await.0, 400);
        assert_eq!(
            ask(&routes, Method::GET, "/log-level", "", NEAR).await,
            (200, "info\n".into())
        );
        assert_eq!(put("debug\n").await, (200, "debug\n".into()));
        for peer in ["[::ffff:127.0.0.1]:40000", "[::1]:40000"] {
            assert_eq!(
                ask(&routes, Method::GET, "/log-level", "", peer).await,
                (200, "debug\n".into())
            );
        }
    }

    #[tokio::test]
    async fn unknown_paths_and_unsupported_methods_are_different_errors() {
        let routes = admin(&Readiness::new()).routes();
        assert_eq!(ask(&routes, Method::GET, "/", "", NEAR).await.0, 404);
        assert_eq!(ask(&routes, Method::POST, "/metrics", "", NEAR).await.0, 405);
        assert_eq!(ask(&routes, Method::DELETE, "/log-level", "", NEAR).await.0, 405);
        let (status, metrics) = ask(&routes, Method::GET, "/metrics", "", NEAR).await;
        assert!(status == 200 && metrics.ends_with("# EOF\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_releases_its_permit() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut greedy = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, peer) = listener.accept().await.unwrap();
        let routes = admin(&Readiness::new()).routes();
        let serving = serve(
            stream,
            peer,
            routes,
            plain_http::Bounds::default(),
            Lifecycle::new(),
        );
        let asking = async {
            // Send as much as the server accepts, until it is gone.
            while greedy
                .write_all(b"GET /metrics HTTP/1.1\r\nhost: library\r\n\r\n")
                .await
                .is_ok()
            {}
        };
        let ended = timeout(Duration::from_secs(31), async { tokio::join!(serving, asking) }).await;
        assert!(ended.is_ok(), "it is served for ever");
    }

    #[tokio::test]
    async fn probes_get_a_permit_although_another_address_holds_all_it_may() {
        let port = AdminListener::bind("127.0.0.1:0").await.unwrap();
        let (address, lifecycle) = (port.address(), Lifecycle::new());
        port.serve(admin(&Readiness::new()), &lifecycle);
        let mut held = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut stream = TcpStream::connect(address).await.unwrap();
            // Fails if the connection was already closed.
            let _ = stream.write_all(b"GET /livez HTTP/1.1\r\n").await;
            held.push(stream);
        }
        let mut answer = String::new();
        let last = held.last_mut().unwrap().read_to_string(&mut answer).await;
        assert!(
            last.is_err() || answer.is_empty(),
            "closed, without an answer: {answer}"
        );

        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let mut probe = socket.connect(address).await.unwrap();
        probe
            .write_all(b"GET /livez HTTP/1.1\r\nhost: library\r\nconnection: close\r\n\r\n")
            .await
            .unwrap();
        probe.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        lifecycle.shutdown(Duration::ZERO).await;
    }

    #[tokio::test]
    async fn a_port_in_use_is_reported_with_the_name_of_its_flag() {
        let taken = AdminListener::bind("127.0.0.1:0").await.unwrap();
        let refused = AdminListener::bind(&taken.address().to_string())
            .await
            .unwrap_err();
        assert!(refused.to_string().contains("--metrics-addr"), "{refused}");
    }
}
