//! What it costs the server to deliver one update to one of many subscribers, and to keep an idle subscriber.
//!
//! Server, subscribers and committer are separate processes over real sockets on loopback, so that the server process's
//! usage is the server's alone. The peer is the obvious implementation with tonic: a task and a queue per subscriber,
//! fed by a broadcast, with each message encoded per subscriber.

mod peer;
mod process;
mod subscribers;

use std::{net::SocketAddr, path::Path, time::Duration};

use anyhow::{Context as _, Result};
use emend_base::{Environment, Lifecycle};
use emend_proto::{
    common::v1::{InvocationPhraseValue, ResourceKey, ResourceKind, ResourceValue, resource_value::Value},
    learning::v1::{
        PutResourceRequest, ReportStatusRequest, resource_service_client::ResourceServiceClient,
        subscription_service_client::SubscriptionServiceClient,
    },
};
use emend_store::DatabaseUrl;
use learning_svc::Config;
use tokio::{
    net::TcpListener,
    time::{Instant, MissedTickBehavior, interval, sleep},
};
use tonic::transport::Channel;

use self::process::{Process, Usage};

/// The namespace of the updates.
const NAMESPACE: &str = "bench";
/// How long to let all processes settle before measuring.
const QUIET: Duration = Duration::from_secs(2);

/// CPU per delivered update and memory per idle subscriber, compared with a task and a queue per subscriber.
#[derive(Debug, clap::Args)]
pub(crate) struct Fanout {
    /// Number of subscribers, each with its own connection
    #[arg(long, default_value_t = 1_000)]
    subscribers: usize,
    /// Updates per second
    #[arg(long, default_value_t = 20)]
    rate: u32,
    /// How long updates are sent, in seconds
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Run as one of this benchmark's processes
    #[arg(long, hide = true)]
    role: Option<Role>,
    /// Where the server listens
    #[arg(long, hide = true, requires = "role")]
    server: Option<SocketAddr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Role {
    /// learning-svc.
    Emend,
    /// The peer.
    Peer,
    /// All subscribers.
    Subscribers,
}

/// The measurements of one server.
struct Findings {
    /// Server CPU in microseconds per delivered update, without the cost of the commits alone.
    per_delivery: f64,
    /// The same including the commits.
    per_delivery_whole: f64,
    delivered: u64,
    expected: u64,
    bytes_per_subscriber: f64,
}

pub(crate) fn run(options: &Fanout) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        match (options.role, options.server) {
            (Some(Role::Emend), _) => serve_emend().await,
            (Some(Role::Peer), _) => peer::serve().await,
            (Some(Role::Subscribers), Some(server)) => subscribers::run(server, options.subscribers).await,
            (Some(Role::Subscribers), None) => anyhow::bail!("subscribers need --server"),
            (None, _) => compare(options).await,
        }
    })
}

async fn compare(options: &Fanout) -> Result<()> {
    let emend = measure(options, Role::Emend).await?;
    let peer = measure(options, Role::Peer).await?;
    println!(
        "{} subscribers, {} updates a second for {} s, on loopback",
        options.subscribers, options.rate, options.seconds
    );
    for (name, found) in [("emend", &emend), ("peer", &peer)] {
        println!(
            "{name:>6}: {:6.2} µs of server CPU for each delivered update ({:.2} with the commits), {} of {} delivered, \
             {:.1} KB for each idle subscriber",
            found.per_delivery,
            found.per_delivery_whole,
            found.delivered,
            found.expected,
            found.bytes_per_subscriber / 1e3,
        );
    }
    println!(
        " ratio: CPU {:.2}, memory {:.2} (emend / peer)",
        emend.per_delivery / peer.per_delivery,
        emend.bytes_per_subscriber / peer.bytes_per_subscriber
    );
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts and bytes far below 2^53")]
async fn measure(options: &Fanout, role: Role) -> Result<Findings> {
    let mut server = Process::start(role, &[])?;
    let address: SocketAddr = server.line().await?.parse().context("the server's address")?;
    let mut committer = Committer::connect(role, address).await?;
    // Run once without subscribers to measure the commits alone.
    committer.commit(options).await?;
    sleep(QUIET).await;
    let before = server.usage()?;
    committer.commit(options).await?;
    sleep(QUIET).await;
    let commits = server.usage()?.cpu - before.cpu;

    let empty = server.usage()?;
    let count = options.subscribers.to_string();
    let to = address.to_string();
    let mut subscribers = Process::start(Role::Subscribers, &["--subscribers", &count, "--server", &to])?;
    subscribers.line().await.context("the subscribers connect")?;
    sleep(QUIET).await;
    let idle = server.usage()?;

    let before = server.usage()?;
    committer.commit(options).await?;
    sleep(QUIET).await;
    let Usage { cpu: after, .. } = server.usage()?;
    let delivered: u64 = subscribers.ask("count").await?.parse().context("the count")?;

    let whole = after - before.cpu;
    Ok(Findings {
        per_delivery: (whole - commits) / delivered as f64,
        per_delivery_whole: whole / delivered as f64,
        delivered,
        expected: u64::from(options.rate) * u64::from(options.seconds) * options.subscribers as u64,
        bytes_per_subscriber: (idle.memory as f64 - empty.memory as f64) / options.subscribers as f64,
    })
}

/// Makes the server publish updates, one RPC each.
struct Committer {
    role: Role,
    resources: ResourceServiceClient<Channel>,
    peer: SubscriptionServiceClient<Channel>,
    committed: u64,
}

impl Committer {
    async fn connect(role: Role, server: SocketAddr) -> Result<Self> {
        let channel = Channel::from_shared(format!("http://{server}"))?
            .connect()
            .await?;
        Ok(Self {
            role,
            resources: ResourceServiceClient::new(channel.clone()),
            peer: SubscriptionServiceClient::new(channel),
            committed: 0,
        })
    }

    async fn commit(&mut self, options: &Fanout) -> Result<()> {
        let mut ticks = interval(Duration::from_secs(1) / options.rate);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let until = Instant::now() + Duration::from_secs(u64::from(options.seconds));
        let mut left = options.rate * options.seconds;
        while left > 0 && Instant::now() < until + QUIET {
            ticks.tick().await;
            self.committed += 1;
            left -= 1;
            match self.role {
                Role::Emend => {
                    self.resources.put_resource(put(self.committed)).await?;
                }
                Role::Peer | Role::Subscribers => {
                    self.peer.report_status(ReportStatusRequest::default()).await?;
                }
            }
        }
        Ok(())
    }
}

fn put(number: u64) -> PutResourceRequest {
    PutResourceRequest {
        key: Some(ResourceKey {
            namespace: NAMESPACE.into(),
            kind: ResourceKind::InvocationPhrase.into(),
            key: format!("set up agreement number {}", number % 100),
            ..Default::default()
        }),
        value: Some(ResourceValue {
            value: Some(Value::InvocationPhrase(InvocationPhraseValue {
                verb: format!("create_agreement_{number}"),
            })),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Runs learning-svc as `emend up` does, on an empty SQLite file, until its standard input ends.
async fn serve_emend() -> Result<()> {
    let directory = tempfile::tempdir().context("a temporary directory")?;
    let handle = start_emend(directory.path()).await?;
    handle.ready().await;
    process::tell(&handle.address().to_string());
    process::until_input_ends().await;
    handle.shutdown(QUIET).await;
    Ok(())
}

async fn start_emend(directory: &Path) -> Result<learning_svc::Handle> {
    let config = Config::new(DatabaseUrl::sqlite(directory.join("learning.db")));
    let environment = Environment::system(&Lifecycle::new());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    learning_svc::start(config, listener, environment).await
}
