//! Look-ups at an edge over HTTP, at a fixed rate, beside the obvious implementation: a handler of axum with a hash map.
//!
//! Edge, peer and service are processes of their own; what asks is this one. Look-ups are sent when they are due, and each is timed from then
//! on, also where the answer before it came too late: who falls behind shows it.

mod asking;
mod serving;

use std::{net::SocketAddr, time::Duration};

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
    /// Run as one of this benchmark's processes
    #[arg(long, hide = true)]
    role: Option<Role>,
    /// Where the service is
    #[arg(long, hide = true, requires = "role")]
    service: Option<SocketAddr>,
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
        match (options.role, options.service) {
            (Some(Role::Service), _) => serving::service(options.phrases).await,
            (Some(Role::Edge), Some(service)) => serving::edge(service).await,
            (Some(Role::Edge), None) => anyhow::bail!("an edge needs --service"),
            (Some(Role::Peer), _) => serving::peer(options.phrases).await,
            (None, _) => compare(options).await,
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
    let at = At::Address(peer.line().await?.parse()?);
    let of_peer = load.ask(&at).await?;
    drop(peer);
    let mut service = Process::start(Role::Service, &["--phrases", &phrases])?;
    let address = service.line().await?;
    let mut edge = Process::start(Role::Edge, &["--service", &address])?;
    let places = edge.line().await?;
    let (address, socket) = places.split_once(' ').context("an address and a socket")?;
    let (at, at_socket) = (At::Address(address.parse()?), At::Socket(socket.into()));
    let with_service = load.ask(&at).await?;
    let by_socket = load.ask(&at_socket).await?;
    drop(service);
    let without_service = load.ask(&at).await?;
    println!(
        "{} phrases, {} look-ups a second on {} connections for {} s each; milliseconds from when a look-up was to be sent",
        options.phrases, options.rate, options.connections, options.seconds
    );
    for (name, found) in [
        ("hash map behind axum", &of_peer),
        ("edge", &with_service),
        ("edge, Unix socket", &by_socket),
        ("edge, service away", &without_service),
    ] {
        println!("{name:>20}: {found}");
    }
    let ratio = |found: &Found| found.quantile(0.99) / of_peer.quantile(0.99);
    println!(
        "ratios of p99: edge {:.2}, socket {:.2}, service away {:.2} (edge / hash map)",
        ratio(&with_service),
        ratio(&by_socket),
        ratio(&without_service)
    );
    Ok(())
}

/// A process of this benchmark; killed when it is dropped.
struct Process {
    _child: Child,
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
            _child: child,
        })
    }

    /// The line that it prints once it serves.
    async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line).await?;
        anyhow::ensure!(!line.is_empty(), "the process has ended");
        Ok(line.trim().to_owned())
    }
}
