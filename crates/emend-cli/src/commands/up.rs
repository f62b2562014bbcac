//! `emend up`: runs both services in one process.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use emend_base::{
    Lifecycle,
    bearer::TokenFile,
    config::ConfigArgs,
    lifecycle::{Signals, run_until_signal},
};
use emend_console::ConsoleArgs;
use emend_proto::{
    feedback::v1::feedback_service_server::SERVICE_NAME as FEEDBACK,
    learning::v1::ingest_service_server::SERVICE_NAME as LEARNING,
};
use emend_serve::{
    admin::TelemetryArgs,
    auth::{self, Role},
    listen::{Exposure, ListenArgs, reachable},
    probe,
    tls::TlsArgs,
};
use emend_store::{DatabaseUrl, storage};
use feedback_svc::RatingHttpArgs;
use learning_svc::arguments::GeneratorArgs;
use serde_json::json;

use crate::{
    commands::{console, edge, mcp},
    context::{Context, FEEDBACK_ADDR, Global, LEARNING_ADDR},
    failure::{Failure, Result},
    output::Output,
    pair::{Access, Databases, GRACE, Given, Pair},
};

/// Where the data is kept, and who may connect.
#[derive(Debug, clap::Args)]
#[command(mut_arg("auth_config", |arg| arg.env("EMEND_AUTH_CONFIG")), mut_arg("config", |arg| arg.env("EMEND_CONFIG")), after_help = "\
Examples:
  emend up
  emend up --data-dir /var/lib/emend
  emend up --ephemeral --feedback-addr 127.0.0.1:0 --learning-addr 127.0.0.1:0
  emend up --database-url postgres://emend:secret@db.example/emend --accept-new-installation
  emend up --tls-cert server.pem --tls-key server.key --tls-client-ca ca.pem
  emend up --config /etc/emend/emend.toml --check-config

When both services are ready, one line is written to standard output, and nothing else ever is:
  emend: ready feedback=127.0.0.1:7401 learning=127.0.0.1:7402 console=http://127.0.0.1:7400
The log goes to standard error. SIGTERM or ctrl-c stops it gracefully, within twelve seconds and
with exit code 0; a second one stops it at once, with exit code 130.")]
pub struct Args {
    /// The directory of the SQLite files, which this process alone uses
    #[arg(
        long,
        value_name = "DIR",
        default_value = "emend-data",
        env = "EMEND_DATA_DIR"
    )]
    data_dir: PathBuf,
    /// Keep the data in PostgreSQL instead, both services in one database
    #[arg(
        long,
        value_name = "URL",
        env = "EMEND_DATABASE_URL",
        hide_env_values = true,
        conflicts_with_all = ["ephemeral", "database_url_file"]
    )]
    database_url: Option<DatabaseUrl>,
    /// File with the URL, instead of --database-url
    #[arg(
        long,
        value_name = "FILE",
        env = "EMEND_DATABASE_URL_FILE",
        conflicts_with = "ephemeral"
    )]
    database_url_file: Option<PathBuf>,
    /// Keep the data in a directory that is removed at the end
    #[arg(long)]
    ephemeral: bool,
    /// Start although feedback.db or learning.db is missing or the PostgreSQL database is empty, as at the very first start
    /// on PostgreSQL, and deliver corrections to the installation that then answers; needed once
    #[arg(long, conflicts_with = "ephemeral")]
    accept_new_installation: bool,
    /// Who may connect.
    #[command(flatten)]
    exposure: Exposure,
    /// File with the token by which feedback-svc authenticates to learning-svc, as an ingester; needed with --auth-config
    #[arg(long, value_name = "FILE", env = "EMEND_LEARNING_TOKEN_FILE")]
    learning_token_file: Option<PathBuf>,
    /// A trust file, which learning-svc applies to the namespaces that it names, and again whenever it has changed and its
    /// version is greater; in TOML if its name ends in .toml, otherwise in YAML
    #[arg(long, value_name = "FILE", env = "EMEND_LEARNING_TRUST_FILE")]
    trust_file: Option<PathBuf>,
    /// A directory with vectors in Model2Vec's format (`config.json`, `model.safetensors`, `tokenizer.json`) or a sentence encoder
    /// (`model.onnx`, `tokenizer.json`): near answers are given by them, too, where a policy names just these
    #[arg(long, value_name = "DIR", env = "EMEND_LEARNING_NEAR_VECTORS")]
    near_vectors: Option<PathBuf>,
    /// What generates prompts and suggestions.
    #[command(flatten)]
    generator: GeneratorArgs,
    /// Where raters in browsers are served.
    #[command(flatten)]
    rating_http: RatingHttpArgs,
    /// The page in a browser.
    #[command(flatten)]
    console: ConsoleArgs,
    /// Where an edge answers look-ups over HTTP, for a trial: a loopback address, or unix:PATH; with authentication it
    /// needs --token-file
    #[arg(long, value_name = "ADDR")]
    edge_http: Option<String>,
    /// A file with what else that edge has, as emend edge --config takes it: sinks, for example; it follows this pair, whatever
    /// the file says
    #[arg(long, value_name = "FILE")]
    edge_config: Option<PathBuf>,
    /// Where assistants are served over HTTP.
    #[command(flatten)]
    mcp_http: mcp::http::McpHttpArgs,
    /// How connections to both services are secured.
    #[command(flatten)]
    tls: TlsArgs,
    /// What operators see of both services.
    #[command(flatten)]
    telemetry: TelemetryArgs,
    /// The settings file, and the options that print or check the settings.
    #[command(flatten)]
    config: ConfigArgs,
}

impl Args {
    /// What is wrong with the settings, as far as can be checked without starting anything.
    pub fn check(&self, global: &Global) -> Vec<String> {
        let url = self.url().err().map(|failure| failure.to_string());
        let listen = [
            ("--feedback-addr", &global.feedback_addr, FEEDBACK_ADDR),
            ("--learning-addr", &global.learning_addr, LEARNING_ADDR),
        ];
        let exposed = listen.into_iter().filter_map(|(flag, address, default)| {
            let listen = address.clone().unwrap_or_else(|| default.into());
            ListenArgs {
                listen,
                exposure: self.exposure.clone(),
            }
            .check(flag)
        });
        let rating_http = self.rating_http.configuration(&self.exposure);
        let auth = auth::args::check(self.exposure.auth_config.as_ref());
        let auth = auth.map(|problem| format!("--auth-config: {problem}"));
        let token = self.token().err().map(|failure| failure.to_string());
        let generator = self.generator.endpoint().err().map(|error| error.to_string());
        url.into_iter()
            .chain(exposed)
            .chain(rating_http.check())
            .chain(self.tls.check())
            .chain(self.telemetry.check())
            .chain(auth)
            .chain(token)
            .chain(generator)
            .chain(console::check(&self.console, &self.exposure))
            .chain(self.mcp_http.check(&self.exposure))
            .collect()
    }

    /// The token with which feedback-svc authenticates to learning-svc, if callers are authenticated.
    fn token(&self) -> Result<Option<TokenFile>> {
        match (&self.exposure.auth_config, &self.learning_token_file) {
            (None, _) => Ok(None),
            (Some(known), Some(path)) => {
                let file = TokenFile::new(path);
                let read = file.authorization();
                read.map_err(|error| Failure::usage(format!("--learning-token-file: {error}")))?;
                match auth::args::check_token(known, &file, Role::Ingester) {
                    None => Ok(Some(file)),
                    Some(refused) => Err(Failure::usage(format!(
                        "--learning-token-file: {} does not know the token in {} as that of an ingester, so nothing would be \
                         learned: {refused}",
                        known.display(),
                        path.display()
                    ))),
                }
            }
            (Some(_), None) => Err(Failure::usage(
                "--auth-config needs --learning-token-file: feedback-svc must authenticate to learning-svc, as an ingester",
            )),
        }
    }

    fn url(&self) -> Result<Option<DatabaseUrl>> {
        let url = match (&self.database_url, &self.database_url_file) {
            (None, Some(path)) => {
                let url = storage::read_url("--database-url-file", path);
                Some(url.map_err(|error| Failure::usage(error.to_string()))?)
            }
            (url, _) => url.clone(),
        };
        match url {
            Some(DatabaseUrl::Sqlite(_)) => Err(Failure::usage(
                "--database-url takes postgres://…; SQLite files live in --data-dir",
            )),
            url => Ok(url),
        }
    }
}

/// Runs both services until a signal.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result<ExitCode> {
    if args.config.probe {
        let services = [
            (context.feedback_addr(), FEEDBACK),
            (context.learning_addr(), LEARNING),
        ];
        let way = probe::ProbeTarget::of(&args.tls, &args.telemetry);
        return Ok(probe::probe(&services, &way).await);
    }
    emend_serve::service::log_start("emend up", &args.tls, &args.exposure);
    let token = args.token()?;
    let rating_http = args.rating_http.configuration(&args.exposure);
    if let Some(refused) = rating_http.check().next() {
        return Err(Failure::usage(refused));
    }
    let mut checked =
        console::check(&args.console, &args.exposure).chain(args.mcp_http.check(&args.exposure));
    if let Some(refused) = checked.next() {
        return Err(Failure::usage(refused));
    }
    let generator = args.generator.endpoint();
    let generator = generator.map_err(|error| Failure::usage(error.to_string()))?;
    let tls = args.tls.load();
    let tls =
        tls.map_err(|error| Failure::usage(format!("--tls-cert, --tls-key, --tls-client-ca: {error}")))?;
    let databases = if args.ephemeral {
        Databases::ephemeral()?
    } else {
        Databases::open(&args.data_dir, args.url()?, args.accept_new_installation)?
    };
    let admin = args.telemetry.bind().await;
    let admin = admin.map_err(|error| Failure::usage(error.to_string()))?;
    let lifecycle = Lifecycle::new();
    let authenticator = auth::args::load(args.exposure.auth_config.as_deref(), &lifecycle);
    let authenticator = authenticator.map_err(|error| Failure::usage(format!("--auth-config: {error}")))?;
    let issuer = authenticator.as_ref().and_then(|known| known.issuer());
    let access = Access {
        authenticator,
        token,
        tls,
    };
    let near_vectors = args.near_vectors.as_deref().map(emend_vectors::read).transpose();
    let near_vectors = near_vectors.map_err(|error| Failure::usage(format!("--near-vectors {error}")))?;
    let mut signals = Signals::listen()?;
    // Boxed because it is large, and every command's future would include it.
    let starting = Box::pin(Pair::start(
        databases,
        (context.feedback_addr(), context.learning_addr()),
        (&args.exposure, access),
        rating_http,
        Given {
            trust_file: args.trust_file,
            generator,
            near_vectors,
        },
        &lifecycle,
        context,
    ));
    let Some(pair) = signals.during(&lifecycle, starting).await else {
        context.telemetry.finish().await;
        return Ok(ExitCode::SUCCESS);
    };
    let pair = pair?;
    let telemetry = &context.telemetry;
    emend_serve::admin::start(telemetry, admin, pair.metrics(), pair.readiness(), &lifecycle);
    let console = pair.serve_console(&args.console, &lifecycle, context).await?;
    let console = console.map(|console| console::url(&console));
    let (feedback, learning) = (pair.feedback(), pair.learning());
    let (address, file) = (args.edge_http.as_deref(), args.edge_config.as_deref());
    let edge = if address.is_some() || file.is_some() {
        let learning = reachable(learning);
        Some(edge::beside((address, file), learning, pair.metrics(), &lifecycle, context).await?)
    } else {
        None
    };
    let place = edge.as_ref().map(|edge| edge::places(edge).join(","));
    let assistants = mcp::http::beside(
        &args.mcp_http,
        (&args.exposure, &args.tls),
        issuer,
        pair.context_of_many(context),
        (&lifecycle, pair.metrics()),
    );
    let assistants = assistants.await?.map(|server| server.url());
    let json = json!({"ready": {
        "feedback": feedback.to_string(),
        "learning": learning.to_string(),
        "console": console,
        "edge": place,
        "mcp": assistants,
    }});
    output.result(&json, || {
        let console = console.map(|url| format!(" console={url}")).unwrap_or_default();
        let edge = place.map(|place| format!(" edge={place}")).unwrap_or_default();
        let mcp = assistants.map(|url| format!(" mcp={url}")).unwrap_or_default();
        format!("emend: ready feedback={feedback} learning={learning}{console}{edge}{mcp}")
    })?;
    let code = run_until_signal(&mut signals, &lifecycle, GRACE).await;
    if let Some(edge) = edge {
        edge::close(&edge).await?;
    }
    pair.close(Duration::ZERO).await;
    telemetry.finish().await;
    Ok(code)
}
