//! A service as a program of its own: the arguments that all services have, and the way from the command line to the exit
//! code.
//!
//! A service implements [`Program`] and [`Service`] for its arguments; its `main` is [`run`].

use std::{
    convert::Infallible,
    env,
    future::Future,
    io::{self, Write as _},
    net::SocketAddr,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use emend_base::{
    Environment, Lifecycle,
    config::{self, ConfigArgs, Notes, Program},
    lifecycle::{Shutdown, Signals, run_until_signal},
    telemetry::{self, LogArgs, Metrics},
};
use tokio::net::TcpListener;

use crate::{
    admin::{self, AdminListener, TelemetryArgs},
    auth::{self, Authenticator},
    health::Readiness,
    listen::{Exposure, ListenArgs},
    probe,
    server::args::ServeArgs,
    tls::TlsArgs,
};

/// The arguments that all services have. A command that flattens them must say
/// `mut_args(`[`service_settings!`](crate::service_settings)`(…))`, which gives them the service's own defaults and
/// variables.
#[derive(Debug, clap::Args)]
pub struct ServiceArgs {
    /// Where to listen.
    #[command(flatten)]
    pub listen: ListenArgs,
    /// How connections are secured.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// How much is served at once.
    #[command(flatten)]
    pub serve: ServeArgs,
    /// What the log looks like.
    #[command(flatten, next_help_heading = "Log")]
    pub log: LogArgs,
    /// What operators see.
    #[command(flatten)]
    pub telemetry: TelemetryArgs,
    /// The configuration file, and commands that check or print the settings.
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// Gives the settings that all services have one service's variables and defaults: its name in variables, the address it
/// listens on, and its data directory.
#[macro_export]
macro_rules! service_settings {
    ($name:literal, $address:literal, $data_dir:literal) => {
        |setting: clap::Arg| match setting.get_id().as_str() {
            // A flag that has no default of its own is required until it gets one.
            "listen" => setting
                .env(concat!("EMEND_", $name, "_LISTEN"))
                .default_value($address)
                .required(false),
            "data_dir" => setting.default_value($data_dir).required(false),
            "auth_config" => setting.env(concat!("EMEND_", $name, "_AUTH_CONFIG")),
            "database_url" => setting.env(concat!("EMEND_", $name, "_DATABASE_URL")),
            "database_url_file" => setting.env(concat!("EMEND_", $name, "_DATABASE_URL_FILE")),
            "config" => setting.env(concat!("EMEND_", $name, "_CONFIG")),
            _ => setting,
        }
    };
}

impl ServiceArgs {
    /// What is wrong with these arguments, as far as can be told without starting anything.
    pub fn check(&self) -> Vec<String> {
        let log = telemetry::check(&self.log).err().map(|error| error.to_string());
        let auth = auth::args::check(self.listen.exposure.auth_config.as_ref());
        let auth = auth.map(|problem| format!("--auth-config: {problem}"));
        log.into_iter()
            .chain(self.listen.check("--listen"))
            .chain(self.telemetry.check())
            .chain(self.tls.check())
            .chain(auth)
            .collect()
    }
}

/// A service that runs as a program of its own.
pub trait Service: Program {
    /// The program's name.
    const NAME: &'static str;
    /// The name by which health checks ask for it.
    const HEALTH: &'static str;
    /// What it needs before it listens and holds until the process ends, such as the lock of a directory.
    type Held;
    /// The service while it runs.
    type Handle: Running;

    /// The arguments that it shares with all services.
    fn shared(&self) -> &ServiceArgs;

    /// Takes hold of what it needs.
    fn hold(&self) -> anyhow::Result<Self::Held>;

    /// Starts it.
    fn start(&self, held: &Self::Held, start: Start) -> impl Future<Output = anyhow::Result<Self::Handle>>;
}

/// What a service starts with, besides its arguments.
#[derive(Debug)]
pub struct Start {
    /// Where it listens.
    pub listener: TcpListener,
    /// Identifies callers; without one, everybody may do everything.
    pub authenticator: Option<Arc<Authenticator>>,
    /// Where it registers its metrics.
    pub metrics: Metrics,
    /// Its lifecycle, clock and randomness.
    pub environment: Environment,
}

/// A service that runs.
pub trait Running {
    /// Its readiness checks.
    fn readiness(&self) -> &Readiness;

    /// Where it listens, by what is served there.
    fn addresses(&self) -> Vec<(&'static str, SocketAddr)>;

    /// Ends its tasks within `grace` and two seconds, and closes its database.
    fn shutdown(&self, grace: Duration) -> impl Future<Output = Shutdown>;
}

/// Says in the log what starts, and how its callers are kept apart.
pub fn log_start(program: &str, tls: &TlsArgs, exposure: &Exposure) {
    let tls = match (&tls.tls_cert, &tls.tls_client_ca) {
        (None, _) => "off",
        (Some(_), None) => "on",
        (Some(_), Some(_)) => "on, with certificates of clients",
    };
    let authentication = match &exposure.auth_config {
        Some(_) => "on",
        None => "off",
    };
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        tls,
        authentication,
        "{program} starts"
    );
}

/// Runs a service by its command line until a signal ends it.
///
/// # Errors
/// If it can't start.
pub async fn run<S: Service>() -> anyhow::Result<ExitCode> {
    let (service, notes) = match config::begin::<S>(env::args_os()) {
        Ok(begun) => begun,
        Err(exit) => return Ok(exit.print()),
    };
    let arguments = service.shared();
    if arguments.config.probe {
        let way = probe::ProbeTarget::of(&arguments.tls, &arguments.telemetry);
        return Ok(probe::probe(&[(&*arguments.listen.listen, S::HEALTH)], &way).await);
    }
    serve(&service, &notes).await.map_err(|error| {
        let said = format!("{error:#}");
        match notes.variables().named(&said) {
            named if named == said => error,
            named => anyhow::Error::msg(named),
        }
    })
}

/// Serves until a signal.
async fn serve<S: Service>(service: &S, notes: &Notes) -> anyhow::Result<ExitCode> {
    let arguments = service.shared();
    let telemetry = telemetry::init(&arguments.log, "info", Some(S::NAME))?;
    notes.log();
    log_start(S::NAME, &arguments.tls, &arguments.listen.exposure);
    let held = service.hold()?;
    let listener = arguments.listen.bind().await;
    let listener = listener.map_err(|error| anyhow::Error::msg(format!("--listen: {error}")))?;
    let admin = arguments.telemetry.bind().await?;
    let lifecycle = Lifecycle::new();
    let metrics = Metrics::new();
    let start = Start {
        listener,
        authenticator: auth::args::load(arguments.listen.exposure.auth_config.as_deref(), &lifecycle)?,
        metrics: metrics.clone(),
        environment: Environment::system(&lifecycle),
    };
    let mut signals = Signals::listen()?;
    // Boxed because it is large.
    let started = signals.during(&lifecycle, Box::pin(service.start(&held, start)));
    let Some(started) = started.await else {
        telemetry.finish().await;
        return Ok(ExitCode::SUCCESS);
    };
    let running = started.with_context(|| format!("{} can't start", S::NAME))?;
    let metrics_address = admin.as_ref().map(AdminListener::address);
    admin::start(
        &telemetry,
        admin,
        &metrics,
        vec![running.readiness().clone()],
        &lifecycle,
    );
    let code = tokio::select! {
        code = run_until_signal(&mut signals, &lifecycle, arguments.serve.shutdown_grace) => code,
        never = say_when_ready::<S>(&running, metrics_address) => match never {},
    };
    running.shutdown(Duration::ZERO).await;
    telemetry.finish().await;
    Ok(code)
}

/// Writes one line to standard output when the service is ready for the first time, and nothing else ever.
async fn say_when_ready<S: Service>(running: &S::Handle, metrics: Option<SocketAddr>) -> Infallible {
    running.readiness().ready(S::HEALTH).await;
    let line = ready_line(S::NAME, running.addresses(), metrics);
    // Whoever closed standard output does not want to know.
    let _ = writeln!(io::stdout(), "{line}");
    std::future::pending().await
}

/// `learning-svc: ready learning=127.0.0.1:7402 metrics=127.0.0.1:9464`.
fn ready_line(name: &str, served: Vec<(&'static str, SocketAddr)>, metrics: Option<SocketAddr>) -> String {
    let all = served
        .into_iter()
        .chain(metrics.map(|address| ("metrics", address)));
    all.fold(format!("{name}: ready"), |line, (listener, address)| {
        format!("{line} {listener}={address}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_ready_service_says_where_everything_is_served() {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(
            ready_line(
                "learning-svc",
                vec![("learning", address(7402))],
                Some(address(9464))
            ),
            "learning-svc: ready learning=127.0.0.1:7402 metrics=127.0.0.1:9464"
        );
        assert_eq!(ready_line("x", vec![], None), "x: ready");
    }
}
