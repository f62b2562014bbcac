//! How the services are started within this process. No other module knows this.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use emend_base::{Environment, Lifecycle, bearer::TokenFile, lifecycle::Shutdown, telemetry::Metrics};
use emend_serve::{
    auth::Authenticator,
    server::bounds::{Bounds, KeepAlive},
};
use tokio::net::TcpListener;

use super::wait::within;

/// Low, because many replicas of many tests share one PostgreSQL server.
const CONNECTIONS: u32 = 5;
/// How long a replica owns events whose delivery was cut off: less than the default, so that tests need not wait.
const LEASE: Duration = Duration::from_secs(5);
/// How long learning-svc may take to answer a batch; well below the lease.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// More than any graceful shutdown takes.
const GRACE: Duration = Duration::from_secs(20);

/// Settings of the services, where tests differ from their defaults.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// How many deletions are remembered (tombstones).
    pub max_tombstones: Option<i64>,
    /// How often data past its retention is deleted.
    pub retention_interval: Option<Duration>,
    /// The maximum age of a stream.
    pub max_stream_age: Option<Duration>,
    /// Each service's admission limits, and how long it waits for its peers.
    pub bounds: Bounds,
    /// How feedback-svc detects that learning-svc has silently gone.
    pub relay_keep_alive: Option<KeepAlive>,
    /// How callers are authenticated.
    pub authenticator: Option<Arc<Authenticator>>,
    /// The token with which feedback-svc authenticates itself to learning-svc.
    pub learning_token: Option<TokenFile>,
    /// How feedback-svc serves raters in browsers.
    pub rating_http: feedback_svc::RatingHttp,
    /// Where learning-svc records its metrics.
    pub learning_metrics: Option<Metrics>,
}

/// A running service.
#[derive(Debug)]
pub struct Running {
    service: Service,
    lifecycle: Lifecycle,
}

#[derive(Debug)]
enum Service {
    Feedback(feedback_svc::Handle),
    Learning(Box<learning_svc::Handle>),
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        match &self.service {
            Service::Feedback(handle) => handle.address(),
            Service::Learning(handle) => handle.address(),
        }
    }

    /// Where it serves raters in browsers.
    pub fn rating_addresses(&self) -> &[SocketAddr] {
        match &self.service {
            Service::Feedback(handle) => handle.rating_addresses(),
            Service::Learning(_) => &[],
        }
    }

    /// Stops it.
    ///
    /// # Panics
    /// If it does not stop by itself, or a part of it had failed.
    pub async fn stop(self) {
        let ended = match &self.service {
            Service::Feedback(handle) => handle.shutdown(GRACE).await,
            Service::Learning(handle) => handle.shutdown(GRACE).await,
        };
        assert_eq!(self.lifecycle.failure(), None, "{:?}", self.service);
        assert_eq!(ended, Shutdown::Graceful, "{:?}", self.service);
    }
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.expect("a free port")
}

/// A feedback-svc on this database that delivers to `learning`.
///
/// # Panics
/// If it does not start.
pub async fn feedback(database_url: &str, learning: SocketAddr, settings: &Settings) -> Running {
    let lifecycle = Lifecycle::new();
    let environment = Environment::system(&lifecycle);
    let learning = learning.to_string().parse().expect("an address");
    let mut config = feedback_svc::Config::new(database_url.parse().expect("a database"), learning);
    config.init = true;
    config.postgres_connections = CONNECTIONS;
    config.relay.lease = LEASE;
    config.relay.answer_timeout = ANSWER_TIMEOUT;
    config.authenticator.clone_from(&settings.authenticator);
    config.learning_token.clone_from(&settings.learning_token);
    config.bounds = settings.bounds;
    config.rating_http.clone_from(&settings.rating_http);
    let relay = &mut config.relay;
    relay.keep_alive = settings.relay_keep_alive.unwrap_or(relay.keep_alive);
    let started = feedback_svc::start(config, listener().await, environment).await;
    let handle = started.unwrap_or_else(|error| panic!("feedback-svc does not start: {error:#}"));
    within("feedback-svc is ready", handle.ready()).await;
    Running {
        service: Service::Feedback(handle),
        lifecycle,
    }
}

/// A learning-svc on this database.
///
/// # Panics
/// If it does not start.
pub async fn learning(database_url: &str, settings: &Settings) -> Running {
    let lifecycle = Lifecycle::new();
    let environment = Environment::system(&lifecycle);
    let mut config = learning_svc::Config::new(database_url.parse().expect("a database"));
    config.connections = CONNECTIONS;
    config.init = true;
    let Settings {
        max_tombstones,
        retention_interval,
        max_stream_age,
        bounds,
        relay_keep_alive: _,
        authenticator,
        learning_token: _,
        rating_http: _,
        learning_metrics,
    } = settings;
    if let Some(metrics) = learning_metrics {
        config.metrics = metrics.clone();
    }
    config.authenticator.clone_from(authenticator);
    config.bounds = *bounds;
    let stream = &mut config.stream;
    stream.max_tombstones = max_tombstones.unwrap_or(stream.max_tombstones);
    stream.retention_interval = retention_interval.unwrap_or(stream.retention_interval);
    stream.max_stream_age = max_stream_age.unwrap_or(stream.max_stream_age);
    let started = learning_svc::start(config, listener().await, environment).await;
    let handle = started.unwrap_or_else(|error| panic!("learning-svc does not start: {error:#}"));
    within("learning-svc is ready", handle.ready()).await;
    Running {
        service: Service::Learning(Box::new(handle)),
        lifecycle,
    }
}
