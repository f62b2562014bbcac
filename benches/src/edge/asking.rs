//! What asks: look-ups that are due at fixed times, over connections that stay open.

use std::{fmt, net::SocketAddr, path::PathBuf, thread, time::Duration};

use anyhow::{Context as _, Result, anyhow};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpStream, UnixStream},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinSet,
    time::Instant,
};

use super::phrase;

/// What is left out of the figures: connections open, code is loaded.
const WARM_UP: Duration = Duration::from_secs(1);
/// By how much the next phrase is farther: a prime, so that phrases come in no order.
const STEP: usize = 7_919;

/// Where look-ups are answered.
pub(super) enum At {
    Address(SocketAddr),
    Socket(PathBuf),
}

/// How much is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) phrases: usize,
    pub(super) rate: u32,
    pub(super) connections: u32,
    pub(super) time: Duration,
}

/// What was found; both sorted.
#[derive(Default)]
pub(super) struct Found {
    /// How long look-ups took: from when they were due, or, where a connection had waited for that, from when it woke.
    took: Vec<Duration>,
    /// By how much later than due turns were given, which is this program's doing or the machine's.
    late: Vec<Duration>,
}

impl Found {
    /// That of several together.
    pub(super) fn of_all(parts: Vec<Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.took.extend(part.took);
            all.late.extend(part.late);
        }
        all.took.sort_unstable();
        all.late.sort_unstable();
        all
    }

    /// A quantile of how long look-ups took, in milliseconds.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        quantile(&self.took, share)
    }
}

fn quantile(sorted: &[Duration], share: f64) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in a list"
    )]
    let place = (sorted.len() as f64 * share) as usize;
    let at = sorted.get(place.min(sorted.len().saturating_sub(1)));
    at.copied().unwrap_or_default().as_secs_f64() * 1e3
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} answered, p50 {:.3}, p99 {:.3}, p99.9 {:.3}, most {:.3}; asked late by p99 {:.3}",
            self.took.len(),
            self.quantile(0.5),
            self.quantile(0.99),
            self.quantile(0.999),
            self.quantile(1.0),
            quantile(&self.late, 0.99)
        )
    }
}

impl Load {
    /// Asks, and waits for all answers.
    pub(super) async fn ask(self, at: &At) -> Result<Found> {
        let start = Instant::now() + WARM_UP / 10;
        let (mut asking, mut turns) = (JoinSet::new(), Vec::new());
        for number in 0..self.connections {
            let (give, take) = unbounded_channel();
            turns.push(give);
            match at {
                At::Address(address) => {
                    let connection = TcpStream::connect(address).await?;
                    connection.set_nodelay(true)?;
                    asking.spawn(self.ask_by(connection, number, take, address.to_string()));
                }
                At::Socket(path) => {
                    let connection = UnixStream::connect(path).await?;
                    asking.spawn(self.ask_by(connection, number, take, "edge".to_owned()));
                }
            }
        }
        let giving = thread::spawn(move || self.give_turns(start, &turns));
        let mut took = Vec::new();
        while let Some(asked) = asking.join_next().await {
            for (due, time) in asked?? {
                if due >= start + WARM_UP {
                    took.push(time);
                }
            }
        }
        let late = giving.join().map_err(|_| anyhow!("turns were not given"))?;
        Ok(Found::of_all(vec![Found { took, late }]))
    }

    /// Gives the connections their turns one after the other, evenly over time. Timers of tokio are as fine as a millisecond: with
    /// them all connections would ask at once. Says by how much turns came late.
    fn give_turns(self, start: Instant, turns: &[UnboundedSender<Instant>]) -> Vec<Duration> {
        let pause = Duration::from_secs(1) / self.rate;
        let mut due = start;
        let mut late = Vec::new();
        for turn in turns.iter().cycle() {
            if due >= start + WARM_UP + self.time {
                break;
            }
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if turn.send(due).is_err() {
                break;
            }
            if due >= start + WARM_UP {
                late.push(due.elapsed());
            }
            due += pause;
        }
        late
    }

    /// Asks at each turn, and says when it was due and how long the answer took.
    async fn ask_by(
        self,
        mut connection: impl AsyncRead + AsyncWrite + Unpin,
        number: u32,
        mut turns: UnboundedReceiver<Instant>,
        host: String,
    ) -> Result<Vec<(Instant, Duration)>> {
        let mut place = number as usize;
        let mut found = Vec::new();
        let mut buffer = Vec::with_capacity(4_096);
        loop {
            // Whoever waits for a turn is late by what a timer is late, which is nobody's but its own; who comes late to one is not.
            let waits = turns.is_empty();
            let Some(due) = turns.recv().await else {
                return Ok(found);
            };
            let from = if waits { Instant::now() } else { due };
            place = (place + STEP) % (2 * self.phrases.max(1));
            let asked = phrase(place).replace(' ', "+");
            let request = format!("GET /v1/bench/resolve?phrase={asked} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            connection.write_all(request.as_bytes()).await?;
            answered(&mut connection, &mut buffer).await?;
            found.push((due, from.elapsed()));
        }
    }
}

/// Reads one answer to its end.
async fn answered(connection: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> Result<()> {
    buffer.clear();
    loop {
        let read = connection.read_buf(buffer).await?;
        anyhow::ensure!(read > 0, "the connection has ended");
        let Some(head) = buffer.windows(4).position(|window| window == b"\r\n\r\n") else {
            continue;
        };
        let text = std::str::from_utf8(&buffer[..head])?.to_ascii_lowercase();
        anyhow::ensure!(text.starts_with("http/1.1 200"), "{text}");
        let length = text
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.lines().next());
        let length: usize = length.context("a length")?.parse()?;
        if buffer.len() >= head + 4 + length {
            return Ok(());
        }
    }
}
