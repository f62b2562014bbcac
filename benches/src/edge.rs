//! Look-ups at an edge over HTTP, at a fixed rate, beside the obvious implementation: a handler of axum with a hash map.
//!
//! Edge, peer and service are processes of their own; what asks is this one. Look-ups are sent when they are due, and each is timed from then
//! on, also where the answer before it came too late: who falls behind shows it.

mod asking;
mod serving;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use clap::ValueEnum as _;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStdout, Command},
};

use self::asking::{At, Found, Load};

/// Look-ups at an edge over HTTP and over a Unix socket, with its service and without, against a hash map behind axum.
#[derive(Debug, clap::Args)]
pub(crate) struct Edge {
    /// How many phrases are learned
    #[arg(long, default_value_t = 1_000_000)]
    phrases: usize,
    /// Look-ups a second
    #[arg(long, default_value_t = 5_000)]
    rate: u32,
    /// Connections that they are spread over
    #[arg(long, default_value_t = 8)]
    connections: u32,
    /// How long each figure is measured, in seconds
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// How often each is measured, in turn with the others
    #[arg(long, default_value_t = 3, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    rounds: usize,
    /// Run as one of this benchmark's processes
    #[arg(long, hide = true)]
    role: Option<Role>,
    /// Where the service is
    #[arg(long, hide = true, requires = "role")]
    service: Option<SocketAddr>,
    /// Where the service stores its phrases
    #[arg(long, hide = true, requires = "role")]
    directory: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Role {
    /// learning-svc with the phrases.
    Service,
    /// The edge.
    Edge,
    /// The peer with the same phrases.
    Peer,
}

/// The phrase of a number; half of those that are asked are not learned.
fn phrase(number: usize) -> String {
    format!("set up product number {number} for me")
}

pub(crate) fn run(options: &Edge) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        match options.role {
            Some(Role::Service) => {
                let directory = options.directory.as_deref();
                let directory = directory.context("a service needs --directory")?;
                serving::service(options.phrases, directory).await
            }
            Some(Role::Edge) => serving::edge(options.service.context("an edge needs --service")?).await,
            Some(Role::Peer) => serving::peer(options.phrases).await,
            None => compare(options).await,
        }
    })
}

async fn compare(options: &Edge) -> Result<()> {
    let load = Load {
        phrases: options.phrases,
        rate: options.rate,
        connections: options.connections,
        time: Duration::from_secs(options.seconds.into()),
    };
    let phrases = options.phrases.to_string();
    let mut peer = Process::start(Role::Peer, &["--phrases", &phrases])?;
    let peer = At::Address(peer.line().await?.parse()?);
    let directory = tempfile::tempdir()?;
    let stored = directory.path().to_str().context("a directory of UTF-8")?;
    let mut service = Process::start(Role::Service, &["--phrases", &phrases, "--directory", stored])?;
    let address = service.line().await?;
    let mut edge = Process::start(Role::Edge, &["--service", &address])?;
    let places = edge.line().await?;
    let (address, socket) = places.split_once(' ').context("an address and a socket")?;
    let (edge, socket) = (At::Address(address.parse()?), At::Socket(socket.into()));
    println!(
        "{} phrases, {} look-ups a second on {} connections for {} s in each of {} rounds; milliseconds from when a look-up was to be \
         sent, the peer's in the same rounds",
        options.phrases, options.rate, options.connections, options.seconds, options.rounds
    );
    // What the service stored is written to the disk now, not while look-ups are timed.
    let written = Command::new("sync").status().await?;
    anyhow::ensure!(written.success(), "sync: {written}");
    let here = [
        ("hash map behind axum", &peer),
        ("edge", &edge),
        ("edge, Unix socket", &socket),
    ];
    in_rounds(options.rounds, load, &here).await?;
    service.end().await?;
    directory.close()?;
    let away = [
        ("hash map behind axum", &peer),
        ("edge, service away", &edge),
        ("socket, service away", &socket),
    ];
    in_rounds(options.rounds, load, &away).await
}

/// Asks them in turn, so that what else the machine does meets all of them, and prints what was found; the first one is the peer.
async fn in_rounds(rounds: usize, load: Load, subjects: &[(&str, &At)]) -> Result<()> {
    let mut found: Vec<Vec<Found>> = subjects.iter().map(|_| Vec::new()).collect();
    let before = Processors::now()?;
    for _ in 0..rounds {
        for (found, (_, at)) in found.iter_mut().zip(subjects) {
            found.push(load.ask(at).await?);
        }
    }
    let mut of_peer = None;
    for ((name, _), rounds) in subjects.iter().zip(found) {
        let each: Vec<String> = rounds
            .iter()
            .map(|round| format!("{:.3}", round.quantile(0.99)))
            .collect();
        let all = Found::of_all(rounds);
        let p99 = all.quantile(0.99);
        let of_peer = *of_peer.get_or_insert(p99);
        println!(
            "{name:>20}: {all}; p99 of each round {}; {:.2} of the peer's p99",
            each.join(", "),
            p99 / of_peer
        );
    }
    println!(
        "{:>20}: {:.1} % of the processors' time went to other machines meanwhile",
        "stolen",
        100.0 * Processors::now()?.stolen_since(&before)
    );
    Ok(())
}

/// The time of the processors since the machine was started, in ticks.
struct Processors {
    all: u64,
    /// What a machine that is virtual was to have and did not get.
    stolen: u64,
}

impl Processors {
    fn now() -> Result<Self> {
        /// Its place among the figures of `cpu`, as `proc_stat(5)` has them.
        const STOLEN: usize = 7;
        let text = std::fs::read_to_string("/proc/stat")?;
        let line = text.lines().next().context("a line of all processors")?;
        let ticks = line.split_whitespace().skip(1).take(STOLEN + 1).map(str::parse);
        let ticks = ticks.collect::<Result<Vec<u64>, _>>()?;
        Ok(Self {
            all: ticks.iter().sum(),
            stolen: *ticks.get(STOLEN).context("the stolen ticks")?,
        })
    }

    /// The share that was stolen since.
    #[expect(clippy::cast_precision_loss, reason = "ticks of minutes")]
    fn stolen_since(&self, before: &Self) -> f64 {
        // One of the figures, the time that waited for a disk, may fall.
        let (stolen, all) = (
            self.stolen.saturating_sub(before.stolen),
            self.all.saturating_sub(before.all),
        );
        stolen as f64 / all.max(1) as f64
    }
}

/// A process of this benchmark; killed when it is dropped.
struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start(role: Role, arguments: &[&str]) -> Result<Self> {
        let role = role.to_possible_value().context("a role has a name")?;
        let mut child = Command::new(std::env::current_exe()?)
            .args(["edge", "--role", role.get_name()])
            .args(arguments)
            .stdout(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self {
            output: BufReader::new(child.stdout.take().context("a pipe")?),
            child,
        })
    }

    /// Ends it, and waits until what it held is given back: that takes a core some time.
    async fn end(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    /// The line that it prints once it serves.
    async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line).await?;
        anyhow::ensure!(!line.is_empty(), "the process has ended");
        Ok(line.trim().to_owned())
    }
}
