//! What asks: look-ups that are due at fixed times, over connections that stay open.

use std::{fmt, net::SocketAddr, path::PathBuf, sync::mpsc, thread, time::Duration};

use anyhow::{Context as _, Result, anyhow};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpStream, UnixStream},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinSet,
    time::Instant,
};

use super::{phrase, stolen::Stolen};

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

/// One look-up.
struct Asked {
    due: Instant,
    answered: Instant,
    took: Duration,
}

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    /// How long look-ups took: from when they were due, or, where a connection had waited for that, from when it woke.
    pub(super) all: Times,
    /// The same of those around which no stolen time was counted.
    pub(super) undisturbed: Times,
    /// By how much later than due turns were given, which is this program's doing or the machine's.
    late: Times,
    /// The processors' ticks meanwhile, and those of them that were stolen.
    ticks: [u64; 2],
}

impl Found {
    /// That of several together.
    pub(super) fn of_all(parts: Vec<Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.all.extend(part.all);
            all.undisturbed.extend(part.undisturbed);
            all.late.extend(part.late);
            for (all, part) in all.ticks.iter_mut().zip(part.ticks) {
                *all += part;
            }
        }
        all
    }

    /// The 99th percentiles in milliseconds, of all and of the undisturbed; none of fewer than a hundred times what lies beyond.
    pub(super) fn p99(&self) -> [Option<f64>; 2] {
        const LEAST: usize = 10_000;
        [&self.all, &self.undisturbed].map(|times| (times.0.len() >= LEAST).then(|| times.quantile(0.99)))
    }
}

/// Times, sorted.
#[derive(Default)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
        self.0.sort_unstable();
    }

    /// A quantile in milliseconds; no number of none.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a place in a list"
        )]
        let place = (self.0.len() as f64 * share) as usize;
        let at = self.0.get(place.min(self.0.len().saturating_sub(1)));
        at.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_all = |share| self.all.quantile(share);
        let [all, stolen] = self.ticks;
        #[expect(clippy::cast_precision_loss, reason = "ticks of minutes")]
        let stolen = 100.0 * stolen as f64 / all.max(1) as f64;
        write!(
            f,
            "{} answered, p50 {:.3}, p99 {:.3}, p99.9 {:.3}, most {:.3}; stolen {stolen:.1} %; undisturbed {}, p99 {:.3}; asked late by p99 {:.3}",
            self.all.0.len(),
            of_all(0.5),
            of_all(0.99),
            of_all(0.999),
            of_all(1.0),
            self.undisturbed.0.len(),
            self.undisturbed.quantile(0.99),
            self.late.quantile(0.99)
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
        let (end, ended) = mpsc::channel();
        let watching = thread::spawn(move || Stolen::watch(&ended));
        let mut asked = Vec::new();
        while let Some(some) = asking.join_next().await {
            asked.extend(some??.into_iter().filter(|asked| asked.due >= start + WARM_UP));
        }
        let late = giving.join().map_err(|_| anyhow!("turns were not given"))?;
        drop(end);
        let stolen = watching.join().map_err(|_| anyhow!("nobody looked"))??;
        let undisturbed = asked
            .iter()
            .filter(|asked| stolen.is_none(asked.due, asked.answered));
        Ok(Found {
            undisturbed: Times::new(undisturbed.map(|asked| asked.took).collect()),
            all: Times::new(asked.iter().map(|asked| asked.took).collect()),
            late: Times::new(late),
            ticks: stolen.ticks(),
        })
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

    /// Asks at each turn.
    async fn ask_by(
        self,
        mut connection: impl AsyncRead + AsyncWrite + Unpin,
        number: u32,
        mut turns: UnboundedReceiver<Instant>,
        host: String,
    ) -> Result<Vec<Asked>> {
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
            read(&mut connection, &mut buffer).await?;
            let answered = Instant::now();
            found.push(Asked {
                due,
                answered,
                took: answered - from,
            });
        }
    }
}

/// Reads one answer to its end.
async fn read(connection: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> Result<()> {
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
