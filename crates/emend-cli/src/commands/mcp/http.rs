//! The tools over HTTP, for many callers: each is served with its own token, and may do what the services say of it.

use std::{
    collections::HashMap,
    fs,
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicI64},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use emend_base::{
    Backoff, Lifecycle,
    bearer::Token,
    lifecycle::{Signals, run_until_signal},
    reload::{self, Reload},
    telemetry::Metrics,
};
use emend_core::{Invalid, Namespace};
use emend_mcp::http::{
    Callers, DEFAULT_SESSIONS, HttpConfig, HttpServer, MAX_SESSIONS, McpMetrics, Refused, Served, pseudonym,
};
use emend_serve::{
    admin,
    health::Readiness,
    listen::{self, Exposure, ListenArgs},
    metrics::{watch_files, watch_readiness},
    origin::Origin,
    probe::{self, ProbeTarget},
    tls::{TlsArgs, TlsServer},
};
use rmcp::model::{ProtocolVersion, RequestStateCodec};
use serde_json::json;
use tokio::{
    net::{TcpListener, lookup_host},
    time::{Instant, sleep},
};
use tonic::Code;

use super::{
    Args, REVISIONS, Server,
    rights::Rights,
    seal,
    tools::ToolSet,
    watching::{RETRY, Watches},
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::Output,
    pair::GRACE,
};

/// By what callers without a name are named where no key is set: each start and each replica has to give them the same names.
const NAMING: [u8; 32] = *b"emend: who calls without a name.";
/// For how long a token is remembered that nobody sends.
const REMEMBERED: Duration = Duration::from_mins(30);
/// The most tokens that are remembered.
const MOST_REMEMBERED: usize = 10_000;
/// What it is called in metrics, and what its readiness needs.
const SERVICE: &str = "mcp";
const SERVICES: &str = "services";

/// Where the tools are served over HTTP.
#[expect(clippy::struct_field_names, reason = "named as the options are")]
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "MCP over HTTP")]
pub struct McpHttpArgs {
    /// Serve assistants over HTTP here, at /mcp, each with a token of its own, in the namespace that --namespace names
    #[arg(long, value_name = "HOST:PORT")]
    mcp_http: Option<String>,
    /// The address that assistants have, for example <https://emend.example>; requests for another host are refused. Needed beyond
    /// loopback. May be repeated. Default: the address where it listens, and localhost
    #[arg(long, value_name = "URL", env = "EMEND_MCP_PUBLIC_URL", value_delimiter = ',')]
    mcp_public_url: Vec<Origin>,
    /// Who gives out tokens, which assistants are told. May be repeated. Default for up: the issuer in --auth-config
    #[arg(long, value_name = "URL", env = "EMEND_MCP_ISSUER", value_delimiter = ',')]
    mcp_issuer: Vec<String>,
    /// File with 32 bytes as base64, by which questions to a person are sealed and clients without a name are named, the same for
    /// all replicas. Default: questions are sealed by a new key at each start
    #[arg(long, value_name = "FILE", env = "EMEND_MCP_STATE_KEY_FILE")]
    mcp_state_key_file: Option<PathBuf>,
    /// The most sessions at once, of the revisions that have them; a silent one takes about 40 kB
    #[arg(
        long,
        value_name = "COUNT",
        env = "EMEND_MCP_MAX_SESSIONS",
        default_value_t = DEFAULT_SESSIONS,
        value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_SESSIONS))
    )]
    mcp_max_sessions: u16,
}

impl McpHttpArgs {
    fn sessions(&self) -> usize {
        self.mcp_max_sessions.into()
    }

    /// Where to listen, if anywhere.
    pub fn address(&self) -> Option<&str> {
        self.mcp_http.as_deref()
    }

    /// What is wrong with the settings before services that this exposes, as far as can be told without listening.
    pub fn check(&self, exposure: &Exposure) -> Vec<String> {
        let Some(address) = self.address() else {
            return Vec::new();
        };
        let listen = ListenArgs {
            listen: address.to_owned(),
            exposure: exposure.clone(),
        };
        let resolved: Vec<SocketAddr> = address.parse().into_iter().collect();
        let key = self.key().err();
        let url = self.refusal(&resolved);
        let failures = key.into_iter().chain(url).map(|failure| failure.to_string());
        listen.check("--mcp-http").into_iter().chain(failures).collect()
    }

    /// Why it may not listen there: beyond loopback it must know its own names.
    fn refusal(&self, addresses: &[SocketAddr]) -> Option<Failure> {
        let beyond = beyond_loopback(addresses)?;
        self.mcp_public_url.is_empty().then(|| {
            Failure::usage(format!(
                "{beyond} is not a loopback address: --mcp-public-url must say by which address assistants reach it, or a page of \
                 somebody else could reach it by another name"
            ))
        })
    }

    /// The key in the file, if there is one.
    fn key(&self) -> Result<Option<[u8; 32]>> {
        let Some(path) = &self.mcp_state_key_file else {
            return Ok(None);
        };
        let fault = |why: String| Failure::usage(format!("--mcp-state-key-file {}: {why}", path.display()));
        let text = fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
        let bytes = STANDARD.decode(text.trim()).unwrap_or_default();
        let key = bytes.try_into();
        key.map(Some)
            .map_err(|_| fault("it must be 32 bytes as base64".to_owned()))
    }
}

fn beyond_loopback(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    let is_beyond = |address: &&SocketAddr| !address.ip().to_canonical().is_loopback();
    addresses.iter().find(is_beyond).copied()
}

/// What the services before which it stands ask of callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Whatever they ask.
    Anything,
    /// A token that they know.
    KnownToken,
}

/// Serves until a signal.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result<ExitCode> {
    if args.probe {
        let at = ProbeTarget::Operators(args.telemetry.metrics_addr);
        return Ok(probe::probe(&[], &at).await);
    }
    if context.global.token_file.is_some() {
        return Err(Failure::usage(
            "--token-file: over HTTP each assistant sends a token of its own; leave it out, also as EMEND_TOKEN_FILE",
        ));
    }
    let operators = args.telemetry.bind().await;
    let operators = operators.map_err(|error| Failure::usage(error.to_string()))?;
    let (lifecycle, metrics) = (Lifecycle::new(), Metrics::new());
    let tls = secured(&args.tls, &lifecycle)?;
    let mut signals = Signals::listen()?;
    let listener = bind(&args.http, None).await?;
    let beyond = beyond_loopback(&[listener.local_addr()?]).is_some();
    // A certificate would let in whoever sends no token, as this process.
    let must_be_known = context.global.client_cert.is_some() || beyond && !args.allow_unauthenticated;
    let asked = if must_be_known {
        Asked::KnownToken
    } else {
        Asked::Anything
    };
    let services = (context.feedback_remote()?, context.learning_remote()?);
    let context_of_many = context.for_many(services.0, services.1);
    metrics.name_service(SERVICE, env!("CARGO_PKG_VERSION"));
    watch_files(&metrics, SERVICE, None, tls.as_ref());
    let readiness = readiness(&context_of_many, &metrics, &lifecycle);
    let config = HttpConfig {
        public_urls: args.http.mcp_public_url.clone(),
        issuers: args.http.mcp_issuer.clone(),
        tls,
        sessions: args.http.sessions(),
    };
    let key = args.http.key()?;
    let own = McpMetrics::of(&metrics);
    let callers = HttpCallers::new(context_of_many, args.tools, key, asked, (&lifecycle, &own))?;
    let server = emend_mcp::http::serve(listener, config, callers, (&lifecycle, &context.entropy, &own))?;
    admin::start(
        &context.telemetry,
        operators,
        &metrics,
        vec![readiness],
        &lifecycle,
    );
    let url = server.url();
    output.result(&json!({"ready": {"mcp": url}}), || {
        format!("emend: ready mcp={url}")
    })?;
    let code = run_until_signal(&mut signals, &lifecycle, GRACE).await;
    context.telemetry.finish().await;
    Ok(code)
}

/// It is ready once both services have answered: what can't reach them from the start takes nobody's place. While one is away later
/// it stays ready, and its answers say so.
fn readiness(context: &Context, metrics: &Metrics, lifecycle: &Lifecycle) -> Readiness {
    let readiness = Readiness::new();
    readiness.register(SERVICE, &[SERVICES]);
    watch_readiness(metrics, SERVICE, readiness.clone(), SERVICE);
    let (told, context, stop) = (readiness.clone(), context.clone(), lifecycle.soft().clone());
    let answered = async move {
        let mut backoff = Backoff::new(RETRY, context.entropy.clone());
        let mut was_away = false;
        while let Some(away) = Box::pin(Rights::default().out_of_reach(&context)).await {
            if !was_away {
                tracing::warn!(error = %away, "assistants can't be served yet");
                was_away = true;
            }
            sleep(backoff.next()).await;
        }
        if was_away {
            tracing::info!("assistants can be served");
        }
        told.set(SERVICES, true);
    };
    lifecycle.spawn("say when assistants can be served", async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = answered => {}
        }
    });
    readiness
}

/// Serves beside a pair of this process, to which `context` is connected; `None` if that is not asked for.
pub async fn beside(
    args: &McpHttpArgs,
    (exposure, tls): (&Exposure, &TlsArgs),
    issuer: Option<String>,
    context: Context,
    (lifecycle, metrics): (&Lifecycle, &Metrics),
) -> Result<Option<HttpServer>> {
    if args.address().is_none() {
        return Ok(None);
    }
    let key = args.key()?;
    let listener = bind(args, Some(exposure)).await?;
    let issuers = match &args.mcp_issuer[..] {
        [] => issuer
            .into_iter()
            .filter(|issuer| issuer.starts_with("http"))
            .collect(),
        issuers => issuers.to_vec(),
    };
    let config = HttpConfig {
        public_urls: args.mcp_public_url.clone(),
        issuers,
        tls: secured(tls, lifecycle)?,
        sessions: args.sessions(),
    };
    let entropy = context.entropy.clone();
    let own = McpMetrics::of(metrics);
    let callers = HttpCallers::new(context, Vec::new(), key, Asked::Anything, (lifecycle, &own))?;
    let server = emend_mcp::http::serve(listener, config, callers, (lifecycle, &entropy, &own))?;
    Ok(Some(server))
}

/// TLS for HTTP, if there is to be any; its files are read again when they change.
fn secured(args: &TlsArgs, lifecycle: &Lifecycle) -> Result<Option<Arc<TlsServer>>> {
    let Some(files) = args.files() else {
        return Ok(None);
    };
    let tls = TlsServer::for_http1(files);
    let tls = Arc::new(
        tls.map_err(|error| Failure::usage(format!("--tls-cert, --tls-key, --tls-client-ca: {error}")))?,
    );
    let watched: Arc<dyn Reload> = Arc::<TlsServer>::clone(&tls);
    reload::spawn(vec![watched], reload::INTERVAL, lifecycle);
    Ok(Some(tls))
}

/// Listens, unless that would expose services of this process which authenticate nobody.
async fn bind(args: &McpHttpArgs, exposure: Option<&Exposure>) -> Result<TcpListener> {
    let address = args.address().unwrap_or_default();
    let fault = |error: std::io::Error| Failure::usage(format!("can't listen on {address}: {error}"));
    let resolved: Vec<SocketAddr> = lookup_host(address).await.map_err(fault)?.collect();
    if let Some(refused) = args.refusal(&resolved) {
        return Err(refused);
    }
    match exposure {
        Some(exposure) => listen::bind(address, exposure)
            .await
            .map_err(|error| Failure::usage(error.to_string())),
        None => TcpListener::bind(&*resolved).await.map_err(fault),
    }
}

/// Everybody who calls.
#[derive(Debug)]
struct HttpCallers {
    context: Context,
    sets: Vec<ToolSet>,
    seal: Arc<RequestStateCodec>,
    asked: Asked,
    /// What is followed for callers, each by its own token.
    watches: Arc<Watches>,
    /// The key by which callers that have no name are named.
    naming: String,
    remembered: Mutex<HashMap<Option<Token>, Remembered>>,
}

/// What is kept for a token.
#[derive(Debug, Clone)]
struct Remembered {
    caller: Arc<HttpCaller>,
    called: Instant,
}

/// One who calls, with one token.
#[derive(Debug)]
struct HttpCaller {
    token: Option<Token>,
    context: Arc<Context>,
    rights: Arc<Rights>,
    /// The newest revision that an answer to a request without a session named.
    newest: Arc<AtomicI64>,
}

/// One who may call now.
#[derive(Debug, Clone)]
struct Admitted {
    caller: Arc<HttpCaller>,
    /// The name by which the services know it, whatever its token is; none where they authenticate nobody.
    name: Option<String>,
    /// Whether the services authenticate nobody: then all who call are one.
    is_anybody: bool,
}

impl Admitted {
    /// What tells it from others: its name, otherwise its token.
    fn identity(&self) -> [&[u8]; 2] {
        match (&self.name, &self.caller.token) {
            (Some(name), _) => [b"caller", name.as_bytes()],
            (None, Some(token)) => [b"token", token.as_bytes()],
            (None, None) => [b"nobody", b""],
        }
    }
}

/// The revisions that are spoken over this transport: it is none of the first.
const OVER_HTTP: &[ProtocolVersion] = REVISIONS.split_at(1).1;

impl HttpCallers {
    fn new(
        context: Context,
        sets: Vec<ToolSet>,
        key: Option<[u8; 32]>,
        asked: Asked,
        (lifecycle, metrics): (&Lifecycle, &McpMetrics),
    ) -> Result<Self> {
        let namespace = context.namespace();
        Namespace::parse(&namespace).map_err(|Invalid(why)| Failure::usage(format!("--namespace: {why}")))?;
        let sealing = key.unwrap_or_else(|| {
            let mut random = [0; 32];
            context.entropy.fill(&mut random);
            random
        });
        Ok(Self {
            context,
            sets,
            seal: seal(sealing)?,
            asked,
            watches: Arc::new(Watches::new(lifecycle.child(), metrics.clone())),
            // Of its own, so that nothing is sealed and named by one key.
            naming: pseudonym(&key.unwrap_or(NAMING), &[b"names of callers"]),
            remembered: Mutex::default(),
        })
    }

    fn remembered(&self) -> MutexGuard<'_, HashMap<Option<Token>, Remembered>> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who calls with this token.
    fn caller(&self, token: Option<&Token>) -> Arc<HttpCaller> {
        let known = self.remembered().get(&token.cloned()).cloned();
        known.map_or_else(
            || {
                Arc::new(HttpCaller {
                    token: token.cloned(),
                    context: Arc::new(self.context.with_token(token.cloned())),
                    rights: Arc::default(),
                    newest: Arc::default(),
                })
            },
            |known| known.caller,
        )
    }

    fn remember(&self, caller: &Arc<HttpCaller>) {
        let mut remembered = self.remembered();
        if remembered.len() >= MOST_REMEMBERED {
            remembered.retain(|_, known| known.called.elapsed() < REMEMBERED);
        }
        if remembered.len() < MOST_REMEMBERED || remembered.contains_key(&caller.token) {
            let known = Remembered {
                caller: Arc::clone(caller),
                called: Instant::now(),
            };
            remembered.insert(caller.token.clone(), known);
        }
    }

    /// Whether it may call now, as the services say it.
    async fn checked(&self, caller: &Arc<HttpCaller>) -> Result<Admitted, Refused> {
        let HttpCaller { context, rights, .. } = &**caller;
        if let Err(failure) = Box::pin(rights.checked(context)).await {
            return Err(refusal(failure, caller.token.is_some()));
        }
        let known = Box::pin(rights.known(context)).await;
        let is_authenticated = known.as_ref().map(|access| access.authenticated);
        match (self.asked, is_authenticated) {
            (Asked::Anything, _) | (_, Some(true)) => Ok(Admitted {
                caller: Arc::clone(caller),
                name: known.filter(|access| access.authenticated).map(|access| access.caller.clone()),
                is_anybody: is_authenticated == Some(false),
            }),
            (_, Some(false)) => Err(Refused::Forbidden(
                "the services do not authenticate callers, and others than those on this machine could call: start emend mcp on a \
                 loopback address, or with --allow-unauthenticated"
                    .to_owned(),
            )),
            (_, None) => Err(Refused::Unavailable(
                "neither service can say now who calls".to_owned(),
            )),
        }
    }
}

impl Callers for HttpCallers {
    type Caller = Admitted;
    type Handler = Arc<Server>;

    async fn admitted(&self, token: Option<&Token>) -> Result<Admitted, Refused> {
        if token.is_none() && self.asked == Asked::KnownToken {
            return Err(no_token());
        }
        let caller = self.caller(token);
        let admitted = self.checked(&caller).await;
        match &admitted {
            Ok(_) => self.remember(&caller),
            Err(Refused::Unavailable(_)) => {}
            Err(_) => drop(self.remembered().remove(&caller.token)),
        }
        admitted
    }

    fn counted_as(&self, admitted: &Admitted) -> Arc<str> {
        if admitted.is_anybody {
            return Arc::from("");
        }
        pseudonym(self.naming.as_bytes(), &admitted.identity()).into()
    }

    fn handler(&self, admitted: &Admitted, served: &Served) -> Arc<Server> {
        let caller = &admitted.caller;
        let (session, newest) = match served {
            Served::Session => (caller.context.entropy.uuid_v4().to_string(), Arc::default()),
            // However many they are, they are one voter.
            Served::Request { client } => {
                let [what, who] = admitted.identity();
                let session = pseudonym(self.naming.as_bytes(), &[what, who, client.as_bytes()]);
                (session, Arc::clone(&caller.newest))
            }
        };
        // Shared: the tasks of a session would each reserve room for it.
        Arc::new(Server {
            context: Arc::clone(&caller.context),
            reporter: String::new(),
            by: String::new(),
            session,
            sets: self.sets.clone(),
            revisions: OVER_HTTP,
            rights: Arc::clone(&caller.rights),
            seal: Arc::clone(&self.seal),
            newest,
            watches: Arc::clone(&self.watches),
            subscriptions: Arc::default(),
        })
    }
}

fn no_token() -> Refused {
    Refused::NoToken("a token is needed, in the header `Authorization: Bearer TOKEN`".to_owned())
}

/// Why a caller is not admitted whom the services did not let in.
fn refusal(failure: Failure, has_token: bool) -> Refused {
    match failure {
        Failure::Refused(explained) if explained.code == Code::Unauthenticated => {
            if has_token {
                Refused::BadToken(explained.message)
            } else {
                no_token()
            }
        }
        Failure::Refused(explained) => Refused::Forbidden(explained.message),
        Failure::Usage(message) => Refused::Forbidden(message),
        other => Refused::Unavailable(other.to_string()),
    }
}
