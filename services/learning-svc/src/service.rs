//! One replica: its parts put together, its workers, and its server.

use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use async_trait::async_trait;
use emend_base::{
    Entropy, Environment, Lifecycle,
    http_client::model::Endpoint,
    lifecycle::Shutdown,
    reload::{self, Reload, When},
    telemetry::metrics::prometheus::Gauge,
    tls::Remote,
};
use emend_core::{InstallationId, Revision};
use emend_proto::learning::v1::{
    candidate_service_server::CandidateServiceServer,
    evidence_service_server::EvidenceServiceServer,
    ingest_service_server::{IngestServiceServer, SERVICE_NAME as INGEST},
    output_service_server::OutputServiceServer,
    policy_service_server::PolicyServiceServer,
    profile_service_server::ProfileServiceServer,
    resource_service_server::ResourceServiceServer,
};
use emend_serve::{Server, health::Readiness, metrics::ServerMetrics, service::Running};
use emend_store::{DatabaseUrl, available::once_available, postgres::PgWake};
use http::uri::Authority;
use learning_store::{self, CHANNEL, Database, Store, erasure::ErasedLog};
use tokio::net::TcpListener;

use crate::{
    capabilities::{Capabilities, Parts},
    config::Config,
    contests::grpc::CandidateHandler,
    decisions::Follower,
    erasure::worker::Eraser,
    evidence::{Evidence, grpc::EvidenceHandler, mounted::MountedTrustFile, trust_file::MAX_BYTES},
    generator::http::Model,
    ingest::{grpc::IngestHandler, queue::IngestQueue},
    lookups::{Guesses, NearModels, Previews},
    metrics::{self, LearningMetrics},
    outputs::grpc::OutputHandler,
    policies::grpc::PolicyHandler,
    profiles::grpc::ProfileHandler,
    resources::grpc::ResourceHandler,
    roles,
    stream::{Settings, Stream, Wake, grpc::SubscriptionServer},
    watch::{DATABASE, REEVALUATION, measure, watch_database},
};

/// The readiness check that state and log are loaded and being followed.
const LOG: &str = "log";
/// The readiness check that state and log were loaded, whether or not the log is still being followed.
const LOADED: &str = "loaded";
/// The checks that every service of this process but the stream needs to be ready.
const READINESS_CHECKS: &[&str] = &[DATABASE, LOG, REEVALUATION];
/// What the stream needs to be ready: while the database is away, it serves what is held.
const STREAM_CHECKS: &[&str] = &[LOADED];

/// Bytes of a message beside the trust file that it carries.
const BESIDE_TRUST_FILE: usize = 4 << 10;

/// A running service. Dropping it does not end the service.
pub struct Handle {
    address: SocketAddr,
    installation: InstallationId,
    inside: Box<Remote>,
    readiness: Readiness,
    lifecycle: Lifecycle,
    store: Arc<dyn Database>,
    capabilities: Box<Capabilities>,
    stream: Stream,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Handle {
    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The installation that its database belongs to.
    pub fn installation(&self) -> InstallationId {
        self.installation
    }

    /// How other parts of this process connect to it: without TLS, since nothing leaves the process.
    pub fn inside(&self) -> Remote {
        (*self.inside).clone()
    }

    /// Waits until it is ready: the database answers, state and log are loaded and followed, re-evaluation is running.
    pub async fn ready(&self) {
        self.readiness.ready(INGEST).await;
    }

    /// Its use cases, for embedders in the same process.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Its update stream and read model, for embedders in the same process.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Its readiness checks.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Shuts down: applies queued events and sends subscribers a `Drain`, all within `grace` plus two seconds.
    pub async fn shutdown(&self, grace: Duration) -> Shutdown {
        let ended = self.lifecycle.shutdown(grace).await;
        emend_store::close(self.store.close()).await;
        ended
    }
}

impl Running for Handle {
    fn readiness(&self) -> &Readiness {
        Self::readiness(self)
    }

    fn addresses(&self) -> Vec<(&'static str, SocketAddr)> {
        vec![("learning", self.address())]
    }

    async fn shutdown(&self, grace: Duration) -> Shutdown {
        Self::shutdown(self, grace).await
    }
}

#[async_trait]
impl Follower for Stream {
    fn wake(&self) {
        Self::wake(self);
    }

    async fn reached(&self, revision: Revision) {
        // If this times out, the replica lags; readers that must see the revision ask with min_revision.
        let _ = self.wait_for(revision.0, None).await;
    }
}

/// The installation that the database belongs to. An empty database begins one if it is a file, or if told to.
async fn installation(
    store: &dyn Store,
    config: &Config,
    entropy: &Entropy,
) -> anyhow::Result<InstallationId> {
    if let Some(head) = store.find_head().await? {
        return Ok(head.installation);
    }
    let begins = config.init || matches!(config.database, DatabaseUrl::Sqlite(_));
    anyhow::ensure!(
        begins,
        "the database {} is empty. If this is the very first start, start once with --init (EMEND_LEARNING_INIT=true), \
         or `emend up` with --accept-new-installation, which begins a new installation. If it is not, this is the wrong \
         database, or what was learned is lost: correct its URL, or restore a backup. Search nodes keep what they hold \
         meanwhile",
        config.database
    );
    let head = learning_store::begin_installation(store, entropy).await?;
    tracing::info!(installation = %head.installation, "a new installation begins");
    Ok(head.installation)
}

/// Applies the mounted trust file, if there is one, and whenever it was read again.
async fn mount_trust_file(
    config: &Config,
    evidence: &Evidence,
    readiness: &Readiness,
    errors: Gauge,
    lifecycle: &Lifecycle,
) -> anyhow::Result<Option<Arc<dyn Reload>>> {
    let mounted = config.trust_file.clone().map(|path| {
        let mounted = MountedTrustFile::new(path, readiness.clone(), errors);
        Arc::new(mounted)
    });
    if let Some(mounted) = &mounted {
        let first = Arc::clone(mounted);
        tokio::task::spawn_blocking(move || first.reload(When::Requested)).await?;
        lifecycle.spawn(
            "apply the trust file",
            Arc::clone(mounted).run(evidence.clone(), lifecycle.clone()),
        );
    }
    let mounted = mounted.map(|mounted| mounted as Arc<dyn Reload>);
    config
        .metrics
        .watch_files(metrics::SERVICE, "trust", mounted.clone());
    Ok(mounted)
}

/// Opens the database and serves on `listener`.
pub async fn start(
    config: Config,
    listener: TcpListener,
    environment: Environment,
) -> anyhow::Result<Handle> {
    let Environment {
        lifecycle,
        clock,
        entropy,
    } = environment;
    let lifecycle = lifecycle.child();
    let patience = config.database.patience(config.database_patience);
    let store = once_available(&config.database, patience, &entropy, || {
        learning_store::open(&config.database, config.connections)
    });
    let store = store
        .await
        .with_context(|| format!("can't open the database {}", config.database))?;
    let installation = installation(&*store, &config, &entropy).await?;
    let readiness = Readiness::new();
    let service = metrics::SERVICE;
    config
        .metrics
        .name_installation(service, &installation.to_string());
    let metrics = LearningMetrics::register(&config.metrics);

    let wake = match &config.database {
        DatabaseUrl::Sqlite(_) => Wake::local(),
        DatabaseUrl::Postgres(url) => {
            let direct = config.listen_database.as_ref().unwrap_or(url);
            Wake::notified(PgWake::listen(direct, CHANNEL, &lifecycle, &entropy))
        }
    };
    let stream = Stream::start(
        Arc::<dyn Database>::clone(&store),
        wake.clone(),
        Settings {
            metrics: metrics.stream.clone(),
            node_metrics: metrics.nodes.clone(),
            ..config.stream
        },
        Arc::clone(&clock),
        entropy.clone(),
        &lifecycle,
    );
    stream.report_readiness(readiness.clone(), LOG, LOADED, &lifecycle);

    metrics.watch(&config, &readiness, &stream, &store);

    let mut parts = Parts::new(
        Arc::<dyn Database>::clone(&store),
        Arc::new(stream.clone()),
        clock,
        entropy.clone(),
    );
    parts.lifecycle = lifecycle.clone();
    parts.metrics = metrics.clone();
    if let Some(endpoint) = &config.generator {
        let Endpoint { url, model, .. } = endpoint;
        let host = url.authority().map_or("", Authority::as_str);
        tracing::info!(
            host,
            model,
            "a model is asked for better prompts and suggestions; what people rated is sent there"
        );
        parts.generator = Arc::new(Model::new(
            endpoint,
            Arc::new(Arc::clone(&parts.clock)),
            entropy.clone(),
        ));
    }
    let vectors = config.near_vectors.clone();
    let near = NearModels::new(Arc::clone(&parts.clock), vectors);
    let previews = Previews::new(stream.clone(), near.clone(), Arc::<dyn Database>::clone(&store));
    let capabilities = Capabilities::new(parts);
    let Capabilities {
        contests,
        erasure,
        evidence,
        imports,
        ingest,
        log,
        namespaces,
        outputs,
        policies,
        profiles,
        queue: review_queue,
        resources,
        standings,
        ..
    } = capabilities.clone();
    ingest.guess_by(Guesses::new(stream.clone(), near.clone()));
    let queue = IngestQueue::start(&ingest, config.ingest_workers, &lifecycle);
    let report = readiness.clone();
    lifecycle.spawn(
        "evaluate anew",
        contests
            .clone()
            .reevaluate_until_stopped(lifecycle.clone(), move |alive| report.set(REEVALUATION, alive)),
    );
    lifecycle.spawn(
        "follow the evidence",
        evidence.clone().follow_until_stopped(lifecycle.clone()),
    );
    lifecycle.spawn(
        "improve prompts",
        outputs.clone().improve_until_stopped(lifecycle.clone()),
    );
    lifecycle.spawn(
        "follow the review queue",
        review_queue.clone().follow_until_stopped(wake, entropy.clone()),
    );
    lifecycle.spawn(
        "tidy the review queue",
        review_queue.clone().tidy_until_stopped(lifecycle.soft().clone()),
    );
    let erased: Arc<dyn ErasedLog> = Arc::<dyn Database>::clone(&store);
    lifecycle.spawn(
        "clean up after erasures",
        Eraser::new(erased, config.activity_retention).run(
            erasure.erased(),
            stream.settings().retention_interval,
            lifecycle.clone(),
        ),
    );
    lifecycle.spawn(
        "watch the database",
        watch_database(
            Arc::<dyn Database>::clone(&store),
            readiness.clone(),
            lifecycle.soft().clone(),
        ),
    );

    let errors = metrics.evidence.trust_file_errors.clone();
    let trust_file =
        mount_trust_file(&config, &capabilities.evidence, &readiness, errors, &lifecycle).await?;

    lifecycle.spawn(
        "sample metrics",
        measure(
            metrics,
            Arc::<dyn Database>::clone(&store),
            stream.settings().clone(),
            lifecycle.soft().clone(),
        ),
    );

    let (address, inside) = Server::new(emend_proto::DESCRIPTOR_SET, readiness.clone(), entropy)
        .add_service(
            IngestServiceServer::new(IngestHandler::new(
                queue,
                standings,
                installation,
                lifecycle.soft().clone(),
            )),
            READINESS_CHECKS,
        )
        .add_service(SubscriptionServer::new(stream.clone()), STREAM_CHECKS)
        .add_service(
            CandidateServiceServer::new(CandidateHandler::new(
                contests,
                review_queue,
                outputs.clone(),
                previews.clone(),
            )),
            READINESS_CHECKS,
        )
        .add_service(
            ResourceServiceServer::new(ResourceHandler::new(
                &resources,
                imports,
                log,
                stream.clone(),
                near.clone(),
                config.import_bytes,
            )),
            READINESS_CHECKS,
        )
        .add_service(
            // A trust file is one message.
            EvidenceServiceServer::new(EvidenceHandler::new(evidence))
                .max_decoding_message_size(MAX_BYTES + BESIDE_TRUST_FILE),
            READINESS_CHECKS,
        )
        .add_service(
            OutputServiceServer::new(OutputHandler::new(outputs, stream.clone())),
            READINESS_CHECKS,
        )
        .add_service(
            PolicyServiceServer::new(PolicyHandler::new(policies, namespaces, previews)),
            READINESS_CHECKS,
        )
        .add_service(
            ProfileServiceServer::new(ProfileHandler::new(profiles)),
            READINESS_CHECKS,
        )
        .bounds(config.bounds)
        .metrics(ServerMetrics::of(&config.metrics).rpc())
        .authenticator(config.authenticator, &roles::RULES)
        .tls(config.tls.clone())
        .reflection(config.reflection)
        .serve_inside(listener, &lifecycle)
        .context("can't serve")?;
    let reloaded = config.tls.iter().map(|tls| Arc::clone(tls) as Arc<dyn Reload>);
    reload::spawn(reloaded.chain(trust_file).collect(), reload::INTERVAL, &lifecycle);
    tracing::info!(%address, database = %config.database, %installation, "learning-svc serves");
    Ok(Handle {
        address,
        installation,
        inside: Box::new(inside),
        readiness,
        lifecycle,
        store,
        capabilities: Box::new(capabilities),
        stream,
    })
}
