//! Settings of clients and services that must soon notice that their peer has silently gone. They differ from
//! production only in how soon. On a busy machine they may give up a healthy connection, which must do no harm either.

use std::time::Duration;

use emend_base::BackoffConfig;
use emend_client::FeedbackClient;
use emend_serve::server::bounds::{Bounds, KeepAlive};
use tonic::transport::{Channel, Endpoint};

use super::start::Settings;

/// How often a silent connection is probed (keep-alive).
pub const INTERVAL: Duration = Duration::from_millis(500);
/// How long the peer may take to answer a probe.
pub const TIMEOUT: Duration = Duration::from_secs(1);

/// The same for services.
pub fn settings() -> Settings {
    let keep_alive = KeepAlive {
        interval: INTERVAL,
        timeout: TIMEOUT,
    };
    Settings {
        bounds: Bounds {
            keep_alive,
            ..Bounds::default()
        },
        relay_keep_alive: Some(keep_alive),
        ..Settings::default()
    }
}

/// Like [`rpc::channel`](super::rpc::channel).
///
/// # Panics
/// If `address` is not an address.
pub fn channel(address: impl std::fmt::Display) -> Channel {
    Endpoint::from_shared(format!("http://{address}"))
        .expect("an address")
        .connect_timeout(INTERVAL + TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(INTERVAL)
        .keep_alive_timeout(TIMEOUT)
        .keep_alive_while_idle(true)
        .connect_lazy()
}

/// A backend's client of the feedback-svc at `address`.
///
/// # Panics
/// If `address` is not an address.
pub fn backend(address: impl std::fmt::Display) -> FeedbackClient {
    FeedbackClient::new(format!("http://{address}"))
        .expect("an address")
        .keep_alive(INTERVAL, TIMEOUT)
        .backoff(BackoffConfig {
            initial: Duration::from_millis(10),
            max: Duration::from_millis(200),
            ..BackoffConfig::default()
        })
}
