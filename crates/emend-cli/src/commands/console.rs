//! `emend console`: serves the console to browsers.

use std::{io::ErrorKind, net::SocketAddr, process::ExitCode};

use emend_base::{
    Environment, Lifecycle,
    lifecycle::{Signals, run_until_signal},
    telemetry::Metrics,
};
use emend_console::{Console, ConsoleArgs, Services};
use emend_serve::{
    admin::{self, TelemetryArgs},
    health::Readiness,
    listen::{Exposure, ListenArgs, reachable},
    metrics::watch_readiness,
    probe::{self, ProbeTarget},
};
use serde_json::json;
use tokio::net::{TcpListener, lookup_host};

use crate::{
    context::Context,
    failure::{Failure, Result},
    output::Output,
    pair::GRACE,
};

/// Where no console is wanted.
const OFF: &str = "off";
/// What it is called in metrics.
const SERVICE: &str = "console";

/// Where it listens, and how people sign in.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend console
  emend console --feedback-addr one.example:7401 --learning-addr one.example:7402
  emend console --console-addr 0.0.0.0:7400 --console-public-url https://emend.example

Who signs in does so with a token of their own, and everything is done in its name. `emend up` serves the
same console. It keeps nothing; --console-cookie-key-file lets sessions outlive it and be shared by replicas.
Services that want certificates of their clients are shown --client-cert, and still only called with a
token of the person at the browser.")]
pub struct Args {
    #[command(flatten)]
    console: ConsoleArgs,
    /// What operators see of it.
    #[command(flatten)]
    telemetry: TelemetryArgs,
    /// Ask the console that runs with these settings on this machine whether it answers, and exit: code 0 or 1
    #[arg(long)]
    probe: bool,
}

/// What is wrong with the settings of a console before services that this exposes.
pub fn check(args: &ConsoleArgs, exposure: &Exposure) -> impl Iterator<Item = String> {
    let listen = ListenArgs {
        listen: args.address().to_owned(),
        exposure: exposure.clone(),
    };
    let exposed = listen.check("--console-addr").filter(|_| args.address() != OFF);
    args.check().into_iter().chain(exposed)
}

/// Serves it until a signal.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result<ExitCode> {
    if args.probe {
        let at = ProbeTarget::Operators(args.console.address().to_owned());
        return Ok(probe::probe(&[], &at).await);
    }
    let mut services = Services::new(context.feedback_remote()?, context.learning_remote()?);
    if context.global.client_cert.is_some() {
        services = services.with_tokens_only();
    }
    let operators = args.telemetry.bind().await;
    let operators = operators.map_err(|error| Failure::usage(error.to_string()))?;
    let lifecycle = Lifecycle::new();
    let mut signals = Signals::listen()?;
    let metrics = Metrics::new();
    let console = serve(&args.console, services, &metrics, &lifecycle, context).await?;
    let console =
        console.ok_or_else(|| Failure::usage("--console-addr off: then there is nothing to serve"))?;
    // It is ready as soon as it listens: while a service is away, its pages say so.
    let readiness = Readiness::new();
    readiness.register(SERVICE, &[]);
    metrics.name_service(SERVICE, env!("CARGO_PKG_VERSION"));
    watch_readiness(&metrics, SERVICE, readiness.clone(), SERVICE);
    admin::start(
        &context.telemetry,
        operators,
        &metrics,
        vec![readiness],
        &lifecycle,
    );
    let url = url(&console);
    output.result(&json!({"ready": {"console": url}}), || {
        format!("emend: ready console={url}")
    })?;
    let code = run_until_signal(&mut signals, &lifecycle, GRACE).await;
    context.telemetry.finish().await;
    Ok(code)
}

/// Listens and serves; none if none is wanted, or if the default address is taken, which a line of the log then says.
pub async fn serve(
    args: &ConsoleArgs,
    services: Services,
    metrics: &Metrics,
    lifecycle: &Lifecycle,
    context: &Context,
) -> Result<Option<Console>> {
    let address = args.address();
    if address == OFF {
        return Ok(None);
    }
    let config = args.configuration(context.namespace(), &context.entropy);
    let config = config.map_err(|error| Failure::usage(error.to_string()))?;
    let fault = |error: std::io::Error| Failure::usage(format!("--console-addr {address}: {error}"));
    let resolved: Vec<SocketAddr> = lookup_host(address).await.map_err(fault)?.collect();
    if let Some(refused) = config.refusal(&resolved) {
        return Err(Failure::usage(refused.to_string()));
    }
    let listener = match TcpListener::bind(&*resolved).await {
        Ok(listener) => listener,
        Err(error) if error.kind() == ErrorKind::AddrInUse && args.console_addr.is_none() => {
            tracing::warn!(
                address,
                "the console is not served: its default address is taken; --console-addr names another"
            );
            return Ok(None);
        }
        Err(error) => return Err(fault(error)),
    };
    let environment = Environment {
        lifecycle: lifecycle.clone(),
        clock: context.clock.clone(),
        entropy: context.entropy.clone(),
    };
    let console = emend_console::serve(listener, &config, services, metrics, &environment);
    console.map(Some).map_err(fault)
}

/// The address to open.
pub fn url(console: &Console) -> String {
    format!("http://{}", reachable(console.address()))
}
