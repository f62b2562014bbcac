//! Look-ups at an edge over HTTP, at a fixed rate, beside the obvious implementation: a handler of axum with a hash map.
//!
//! Edge, peer and service are processes of their own; what asks is this one. Look-ups are sent when they are due, and each is timed from then
//! on, also where the answer before it came too late: who falls behind shows it.

mod asking;
mod serving;
mod stolen;

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
         sent, the peer's in the same rounds; undisturbed are those during which, and in the second before which, no processor time was \
         counted as stolen by other machines",
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
    for _ in 0..rounds {
        for (found, (_, at)) in found.iter_mut().zip(subjects) {
            found.push(load.ask(at).await?);
        }
    }
    let mut of_peer = None;
    for ((name, _), rounds) in subjects.iter().zip(found) {
        let each: Vec<String> = rounds
            .iter()
            .map(|round| format!("{:.3}", round.all.quantile(0.99)))
            .collect();
        let found = Found::of_all(rounds);
        let here = found.p99();
        let peer: [Option<f64>; 2] = *of_peer.get_or_insert(here);
        let ratio = |at: usize| {
            here[at]
                .zip(peer[at])
                .map_or("too few to compare".to_owned(), |(here, peer)| {
                    format!("{:.2}", here / peer)
                })
        };
        println!(
            "{name:>20}: {found}; p99 of each round {}; of the peer's p99 {}, undisturbed {}",
            each.join(", "),
            ratio(0),
            ratio(1)
        );
    }
    Ok(())
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
