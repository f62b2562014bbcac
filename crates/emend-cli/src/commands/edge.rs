//! `emend edge`: look-ups over HTTP for every language, and expanded queries for engines.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use emend_base::{
    Lifecycle,
    lifecycle::{Signals, run_until_signal},
    telemetry::Metrics,
};
use emend_binding::{ConnectionSettings, NodeSettings};
use emend_edge::{Config, Edge, Listen};
use emend_serve::{
    admin::{self, TelemetryArgs},
    probe::{self, ProbeTarget},
};
use serde_json::json;

use crate::{
    context::Context,
    failure::{Failure, Result},
    output::Output,
    pair::GRACE,
};

/// The node that it is unless something else is said.
const ID: &str = "edge";

/// Where it answers, and which node it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend edge
  emend edge --cache-dir /var/cache/emend --listen unix:/run/emend/edge.sock
  emend edge --config edge.toml
  emend edge --config edge.toml --check-config
  curl 'http://127.0.0.1:7420/v1/default/resolve?phrase=set+up+a+csa'
  curl 'http://127.0.0.1:7420/v1/default/expand?text=cheap+notebook&as=opensearch&fields=title,body'
  curl http://127.0.0.1:7420/openapi.json

An edge.toml says the same and more:
  listen = [\"127.0.0.1:7420\"]
  [node]
  id = \"edge-1\"
  namespaces = [\"shop\"]
  cache_dir = \"/var/cache/emend\"
  include_user_scoped = true
  [node.connection]
  addresses = [\"learning.example:7402\"]
  token_file = \"/etc/emend/token\"

Beyond loopback it needs auth_config and names, and should have TLS:
  listen = [\"0.0.0.0:7420\"]
  names = [\"edge.example\"]
  auth_config = \"/etc/emend/auth.toml\"
  tls = { certificate = \"/etc/emend/tls.crt\", key = \"/etc/emend/tls.key\" }")]
pub struct Args {
    /// A file with everything there is to set
    #[arg(long, value_name = "FILE", env = "EMEND_EDGE_CONFIG", conflicts_with_all = ["listen", "cache_dir"])]
    config: Option<PathBuf>,
    /// Check the settings without starting anything, and exit: code 0, or 2 with what is wrong
    #[arg(long)]
    check_config: bool,
    /// Ask the edge that runs on this machine with this --metrics-addr whether it is ready, and exit: code 0 or 1
    #[arg(long, conflicts_with = "check_config")]
    probe: bool,
    /// Where it answers: an IP address with a port, or unix:PATH; may be given several times [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDR")]
    listen: Vec<Listen>,
    /// The node that it is, whatever the file says [default: edge]
    #[arg(long, value_name = "ID", env = "EMEND_EDGE_ID")]
    id: Option<String>,
    /// Where it runs, whatever the file says
    #[arg(long, value_name = "ZONE", env = "EMEND_EDGE_ZONE")]
    zone: Option<String>,
    /// The directory of its copy, from which it answers while the services are away
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// Hold what users taught for themselves and their profiles, too, as `include_user_scoped` in a file does: without it a look-up
    /// that names a user is refused
    #[arg(long, env = "EMEND_EDGE_USER_SCOPED")]
    user_scoped: bool,
    /// What operators see of it.
    #[command(flatten)]
    telemetry: TelemetryArgs,
}

impl Args {
    fn configuration(self, context: &Context) -> Result<Config> {
        let mut config = match &self.config {
            Some(file) => read("--config", file)?,
            None => Config {
                listen: if self.listen.is_empty() {
                    Config::default_listen()
                } else {
                    self.listen
                },
                node: NodeSettings {
                    id: ID.into(),
                    cache_dir: self.cache_dir,
                    connection: connection(context, context.learning_addr()),
                    ..NodeSettings::default()
                },
                ..Config::default()
            },
        };
        let node = &mut config.node;
        node.id = self.id.unwrap_or_else(|| std::mem::take(&mut node.id));
        node.zone = self.zone.unwrap_or_else(|| std::mem::take(&mut node.zone));
        node.include_user_scoped |= self.user_scoped;
        Ok(config)
    }
}

/// Answers until a signal.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result<ExitCode> {
    if args.probe {
        let at = ProbeTarget::Operators(args.telemetry.metrics_addr);
        return Ok(probe::probe(&[], &at).await);
    }
    let (is_check, operators) = (args.check_config, args.telemetry.clone());
    let config = args.configuration(context)?;
    if is_check {
        config
            .check()
            .map_err(|error| Failure::usage(error.to_string()))?;
        output.result(&json!({"valid": true}), || "The settings are valid.".to_owned())?;
        return Ok(ExitCode::SUCCESS);
    }
    let operators = operators.bind().await;
    let operators = operators.map_err(|error| Failure::usage(error.to_string()))?;
    let lifecycle = Lifecycle::new();
    let metrics = Metrics::new();
    let mut signals = Signals::listen()?;
    let edge = start(config, &metrics, &lifecycle).await?;
    let readiness = edge.readiness().clone();
    admin::start(
        &context.telemetry,
        operators,
        &metrics,
        vec![readiness],
        &lifecycle,
    );
    let places = places(&edge);
    output.result(&json!({"ready": {"edge": places}}), || {
        format!("emend: ready edge={}", places.join(","))
    })?;
    let code = run_until_signal(&mut signals, &lifecycle, GRACE).await;
    close(&edge).await?;
    context.telemetry.finish().await;
    Ok(code)
}

/// An edge beside a pair of this process, at an address or as a file says.
pub async fn beside(
    (address, file): (Option<&str>, Option<&Path>),
    learning: SocketAddr,
    metrics: &Metrics,
    lifecycle: &Lifecycle,
    context: &Context,
) -> Result<Edge> {
    let mut config = match file {
        Some(file) => read("--edge-config", file)?,
        None => Config {
            node: NodeSettings {
                // Where the pair knows no callers, whoever is on this machine may read everything anyway.
                include_user_scoped: context.global.token_file.is_none(),
                ..NodeSettings::default()
            },
            ..Config::default()
        },
    };
    if let Some(address) = address {
        let listen = address.parse::<Listen>();
        let listen = listen.map_err(|error| Failure::usage(format!("--edge-http: {error}")))?;
        config.listen = vec![listen];
    }
    config.node.connection = connection(context, &learning.to_string());
    if config.node.id.is_empty() {
        config.node.id = ID.into();
    }
    start(config, metrics, lifecycle).await
}

/// What a file says that an option names.
fn read(option: &str, file: &Path) -> Result<Config> {
    let fault =
        |error: &dyn std::fmt::Display| Failure::usage(format!("{option} {}: {error}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| fault(&error))?;
    Config::parse(&text).map_err(|error| fault(&error))
}

/// Where it answers, as people type it.
pub fn places(edge: &Edge) -> Vec<String> {
    let scheme = if edge.is_secured() { "https" } else { "http" };
    let addresses = edge
        .addresses()
        .iter()
        .map(|address| format!("{scheme}://{address}"));
    let sockets = edge
        .sockets()
        .iter()
        .map(|path| format!("unix:{}", path.display()));
    let grpc = edge.grpc_address().map(|address| format!("grpc://{address}"));
    addresses.chain(sockets).chain(grpc).collect()
}

/// Ends its node, whose copy is then up to date.
pub async fn close(edge: &Edge) -> Result {
    let closed = edge.node().close().await;
    closed.map_err(|error| Failure::failed(error.to_string()))
}

async fn start(config: Config, metrics: &Metrics, lifecycle: &Lifecycle) -> Result<Edge> {
    let edge = emend_edge::start_measured(config, metrics, lifecycle).await;
    edge.map_err(|error| Failure::usage(error.to_string()))
}

fn connection(context: &Context, addresses: &str) -> ConnectionSettings {
    let global = &context.global;
    ConnectionSettings {
        addresses: addresses
            .split(',')
            .map(|address| address.trim().to_owned())
            .collect(),
        ca: global.ca.clone(),
        certificate: global.client_cert.clone(),
        key: global.client_key.clone(),
        token_file: global.token_file.clone(),
        ..ConnectionSettings::default()
    }
}
