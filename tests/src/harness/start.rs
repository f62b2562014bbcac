//! How the services are started within this process. The only place that knows.

use std::{net::SocketAddr, time::Duration};

/// What learning-svc is started with, where tests differ from its defaults.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// How many deletions are remembered.
    pub max_tombstones: Option<i64>,
    /// How often what is too old is forgotten.
    pub retention_interval: Option<Duration>,
    /// How long a stream lives.
    pub max_stream_age: Option<Duration>,
}

/// A running service.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops it, in good order.
    pub async fn stop(self) {
        std::future::ready(()).await;
    }
}

/// A feedback-svc on that database that delivers there.
pub async fn feedback(_database_url: &str, _learning: SocketAddr) -> Running {
    std::future::pending().await
}

/// A learning-svc on that database.
pub async fn learning(_database_url: &str, _settings: &Settings) -> Running {
    std::future::pending().await
}
