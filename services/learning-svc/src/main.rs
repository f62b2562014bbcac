//! learning-svc as a program.

use std::{env, process::ExitCode, time::Duration};

use anyhow::Context as _;
use emend_runtime::{Entropy, Lifecycle, SystemClock, config, lifecycle::run_until_signal, telemetry};
use learning_svc::{Arguments, Environment, start};

/// Keeps idle connections a little smaller than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let (arguments, notes) = match config::begin::<Arguments>(env::args_os()) {
        Ok(begun) => begun,
        Err(told) => return Ok(told.tell()),
    };
    telemetry::init(&arguments.log, "info")?;
    notes.log();
    // Held until the process ends.
    let (database, _lock) = arguments.database()?;
    let listener = arguments.listen.bind("127.0.0.1:7402").await?;
    let lifecycle = Lifecycle::new();
    let environment = Environment {
        lifecycle: lifecycle.clone(),
        clock: SystemClock::shared(),
        entropy: Entropy::system(),
    };
    let handle = start(arguments.configuration(database)?, listener, environment)
        .await
        .context("learning-svc can't start")?;
    let code = run_until_signal(&lifecycle, arguments.serve.shutdown_grace).await;
    handle.shutdown(Duration::ZERO).await;
    Ok(code)
}
