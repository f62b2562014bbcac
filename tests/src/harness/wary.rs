//! How parties are set up that have to find out soon that the other side has gone without a word. Only how soon differs from
//! production; on a busy machine a connection may be given up that was fine, and nothing may come of that either.

use std::time::Duration;

use emend_client::FeedbackClient;
use emend_runtime::{
    BackoffConfig,
    bounds::{Bounds, KeepAlive},
};
use tonic::transport::{Channel, Endpoint};

use super::start::Settings;

/// How often a silent connection is asked whether the other side still lives.
pub const INTERVAL: Duration = Duration::from_millis(500);
/// How long the other side has for its answer.
pub const TIMEOUT: Duration = Duration::from_secs(1);

/// The same for the services.
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
/// If `address` is none.
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

/// A backend's client of the feedback-svc there.
///
/// # Panics
/// If `address` is none.
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
