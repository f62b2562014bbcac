//! The feedback-svc program.

use std::{env, process::ExitCode, time::Duration};

use anyhow::Context as _;
use emend_proto::feedback::v1::feedback_service_server::SERVICE_NAME;
use emend_runtime::{
    Entropy, Lifecycle, SystemClock, auth, config,
    lifecycle::{Signals, run_until_signal},
    probe, telemetry,
};
use feedback_svc::{Arguments, Environment, start};

/// Idle connections take a little less memory than with the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Default listen address.
const ADDRESS: &str = "127.0.0.1:7401";

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let (arguments, notes) = match config::begin::<Arguments>(env::args_os()) {
        Ok(begun) => begun,
        Err(told) => return Ok(told.tell()),
    };
    if arguments.config.probe {
        let address = arguments.listen.listen.as_deref().unwrap_or(ADDRESS);
        let way = probe::Way::of(&arguments.tls, &arguments.telemetry);
        return Ok(probe::probe(&[(address, SERVICE_NAME)], &way).await);
    }
    let telemetry = telemetry::init(&arguments.log, "info")?.export_traces("feedback-svc")?;
    notes.log();
    // Held until the process ends.
    let (database, _lock) = arguments.database()?;
    let listener = arguments.listen.bind(ADDRESS).await?;
    let admin = arguments.telemetry.bind().await?;
    let lifecycle = Lifecycle::new();
    let environment = Environment {
        lifecycle: lifecycle.clone(),
        clock: SystemClock::shared(),
        entropy: Entropy::system(),
    };
    let mut config = arguments.configuration(database)?;
    config.authenticator = auth::args::load(arguments.listen.exposure.auth_config.as_deref(), &lifecycle)?;
    let metrics = config.metrics.clone();
    let mut signals = Signals::listen()?;
    let started = signals.during(&lifecycle, Box::pin(start(config, listener, environment)));
    let Some(started) = started.await else {
        telemetry.finish().await;
        return Ok(ExitCode::SUCCESS);
    };
    let handle = started.context("feedback-svc can't start")?;
    telemetry.serve(admin, &metrics, vec![handle.readiness().clone()], &lifecycle);
    let code = run_until_signal(&mut signals, &lifecycle, arguments.serve.shutdown_grace).await;
    handle.shutdown(Duration::ZERO).await;
    telemetry.finish().await;
    Ok(code)
}
