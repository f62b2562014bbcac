//! The bounds of serving that operators set, as arguments. Flattened into the arguments of each service.
//!
//! It must know nothing of what is served.

use std::time::Duration;

use crate::{
    bounds::{Bounds, KeepAlive, Patience},
    config::units::{bytes, count, span},
};

/// How much is served at once, how the dead are noticed, how long ending may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Serving")]
pub struct ServeArgs {
    /// How many calls may be under way at once, streams that have begun not counted, 1 to 1000000; one more is refused at once
    #[arg(long, value_name = "COUNT", default_value_t = Bounds::default().calls, value_parser = count(1..=1_000_000))]
    pub max_calls: usize,
    /// How many connections there may be at once, 1 to 1000000, three quarters of them from one address, and never more than a third
    /// of the files that the process may have open; one more is closed
    #[arg(long, value_name = "COUNT", default_value_t = Bounds::default().connections, value_parser = count(1..=1_000_000))]
    pub max_connections: usize,
    /// How many bytes calls may hold at once, of requests and of answers that wait to be read, three quarters of them of one
    /// client, 8MiB to 16GiB; what is larger than what is left is refused at once. The first 4KiB of each are not counted
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = bytes(8 << 20..=16 << 30))]
    pub call_buffer_size: usize,
    /// How often a silent connection is asked whether its client still lives, 1s to 1h
    #[arg(long, value_name = "SPAN", default_value = "30s",
          value_parser = span(Duration::from_secs(1)..=Duration::from_hours(1)))]
    pub keep_alive_interval: Duration,
    /// How long the client has for its answer until the connection is closed, 1s to 10m
    #[arg(long, value_name = "SPAN", default_value = "20s",
          value_parser = span(Duration::from_secs(1)..=Duration::from_mins(10)))]
    pub keep_alive_timeout: Duration,
    /// How long a request may take until all of it has come, 1s to 10m
    #[arg(long, value_name = "SPAN", default_value = "30s",
          value_parser = span(Duration::from_secs(1)..=Duration::from_mins(10)))]
    pub request_patience: Duration,
    /// How long a client may leave an answer unread, 1s to 1h, long-lived streams apart
    #[arg(long, value_name = "SPAN", default_value = "1m",
          value_parser = span(Duration::from_secs(1)..=Duration::from_hours(1)))]
    pub response_patience: Duration,
    /// How long what is under way may take when the service ends, 0s to 1h; two seconds later the process is gone
    #[arg(long, value_name = "SPAN", default_value = "20s",
          value_parser = span(Duration::ZERO..=Duration::from_hours(1)))]
    pub shutdown_grace: Duration,
}

impl ServeArgs {
    /// How much is taken on at once, and how long those at the other side are waited for.
    pub fn bounds(&self) -> Bounds {
        Bounds {
            calls: self.max_calls,
            connections: self.max_connections,
            bytes: self.call_buffer_size,
            patience: Patience {
                request: self.request_patience,
                response: self.response_patience,
            },
            keep_alive: KeepAlive {
                interval: self.keep_alive_interval,
                timeout: self.keep_alive_timeout,
            },
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
    fn what_is_not_set_is_as_for_every_server() {
        let bounds = Arguments::parse_from(["service"]).serve.bounds();
        assert_eq!(bounds, Bounds::default());
    }
}
