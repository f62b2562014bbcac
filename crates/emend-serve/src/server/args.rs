//! The operator's bounds on serving, as arguments. Flattened into the arguments of each service.

use std::time::Duration;

use emend_base::config::units::{bytes, count, span};

use crate::server::bounds::{Bounds, ClientTimeouts, KeepAlive};

/// How much is served at once, how dead connections are detected, how long shutdown may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Serving")]
pub struct ServeArgs {
    /// How many calls may be in progress at once, 1 to 1000000, not counting streams that have begun; further calls are
    /// refused at once
    #[arg(long, value_name = "COUNT", default_value_t = Bounds::default().calls, value_parser = count(1..=1_000_000))]
    pub max_calls: usize,
    /// How many connections may be open at once, 1 to 1000000, at most three quarters of them from one address, and
    /// never more than a third of the files that the process may open; further connections are closed
    #[arg(long, value_name = "COUNT", default_value_t = Bounds::default().connections, value_parser = count(1..=1_000_000))]
    pub max_connections: usize,
    /// How many bytes calls may hold at once, in requests and unread answers, 8MiB to 16GiB, at most three quarters of
    /// them for one client; the first 4KiB of each call are not counted, and what does not fit is refused at once
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = bytes(8 << 20..=16 << 30))]
    pub call_buffer_size: usize,
    /// How often a silent connection is pinged to check that its client is alive, 1s to 1h
    #[arg(long, value_name = "SPAN", default_value = "30s",
          value_parser = span(Duration::from_secs(1)..=Duration::from_hours(1)))]
    pub keep_alive_interval: Duration,
    /// How long the client has to answer a ping before the connection is closed, 1s to 10m
    #[arg(long, value_name = "SPAN", default_value = "20s",
          value_parser = span(Duration::from_secs(1)..=Duration::from_mins(10)))]
    pub keep_alive_timeout: Duration,
    /// How long a connection accepts new calls on average, 0s to 30d, varied by up to a tenth; its client then
    /// reconnects, perhaps to another replica, and presents its certificate again, while calls in progress go on; 0s
    /// means no limit
    #[arg(long, value_name = "SPAN", default_value = "0s",
          value_parser = span(Duration::ZERO..=Duration::from_hours(30 * 24)))]
    pub max_connection_age: Duration,
    /// How long a request may take to arrive completely, 1s to 10m
    #[arg(long, value_name = "SPAN", default_value = "30s",
          value_parser = span(Duration::from_secs(1)..=Duration::from_mins(10)))]
    pub request_patience: Duration,
    /// How long a client may leave an answer unread, 1s to 1h, except on long-lived streams
    #[arg(long, value_name = "SPAN", default_value = "1m",
          value_parser = span(Duration::from_secs(1)..=Duration::from_hours(1)))]
    pub response_patience: Duration,
    /// How long calls and work in progress may take to finish when the service stops, 0s to 1h; two seconds later the
    /// process is gone
    #[arg(long, value_name = "SPAN", default_value = "20s",
          value_parser = span(Duration::ZERO..=Duration::from_hours(1)))]
    pub shutdown_grace: Duration,
}

impl ServeArgs {
    /// How much is taken on at once, and how long to wait for clients.
    pub fn bounds(&self) -> Bounds {
        Bounds {
            calls: self.max_calls,
            connections: self.max_connections,
            bytes: self.call_buffer_size,
            patience: ClientTimeouts {
                request: self.request_patience,
                response: self.response_patience,
            },
            keep_alive: KeepAlive {
                interval: self.keep_alive_interval,
                timeout: self.keep_alive_timeout,
            },
            connection_age: Some(self.max_connection_age).filter(|age| !age.is_zero()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Arguments {
        #[command(flatten)]
        serve: ServeArgs,
    }

    #[test]
    fn settings_left_out_have_the_defaults_of_the_server() {
        let bounds = Arguments::parse_from(["service"]).serve.bounds();
        assert_eq!(bounds, Bounds::default());
    }
}
