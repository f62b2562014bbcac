//! Emend's learning service: ingests corrections, decides what to learn from them, and streams what was learned.
//!
//! It is cut by capability; each folder holds its use cases and its `grpc`:
//! * [`ingest`]: events from feedback-svc, each with exactly-once effect.
//! * [`contests`]: everything proposed for a key, decided by votes and by people; the review queue.
//! * [`evidence`]: the graph of pages, claims and edges, as people corrected it.
//! * [`outputs`]: ratings of what an AI made, and the prompts that it is asked with.
//! * [`profiles`]: what users know and want to learn.
//! * [`standings`]: what has become of feedbacks.
//! * [`policies`]: what it takes to learn something.
//! * [`resources`]: what nodes answer with: read, set, imported.
//! * [`log`]: the revisions, and reverting one.
//! * [`erasure`]: erasing what one user alone had.
//! * [`stream`]: what subscribers see of the log. [`nodes`]: who they are, and how far they got.
//! * [`audit`]: checks that the stored data is consistent with itself.
//!
//! [`app`] is what the use cases share; each is one transaction, from its first read to its commit. [`store`] is
//! persistence on SQLite or PostgreSQL.
//!
//! [`start`] runs one replica; `main` does so from its command line, [`Arguments`]. Any number of replicas share one
//! PostgreSQL database; a SQLite file belongs to one process.

pub mod actor;
pub mod app;
pub mod arguments;
pub mod audit;
pub mod config;
#[cfg(any(test, feature = "simulation"))]
mod consistency;
pub mod contests;
pub mod erasure;
mod etag;
pub mod evidence;
pub mod fail_points;
mod failure;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod grpc;
pub mod ingest;
pub mod log;
pub mod metrics;
pub mod nodes;
pub mod outputs;
pub mod policies;
pub mod profiles;
pub mod resources;
pub mod roles;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
pub mod standings;
pub mod store;
pub mod stream;
#[cfg(test)]
mod tests;
mod watch;

use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use async_trait::async_trait;
use emend_base::{
    Entropy, Environment, Lifecycle,
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
use tokio::net::TcpListener;

pub use arguments::Arguments;
pub use config::Config;

use crate::{
    app::{App, Follower},
    contests::grpc::Candidates,
    erasure::{store::ErasedLog, worker::Eraser},
    evidence::{grpc::EvidenceGraph, mounted::MountedTrustFile},
    ingest::{grpc::Ingest, queue::IngestQueue},
    metrics::LearningMetrics,
    outputs::{generator::http::Model, grpc::Outputs},
    policies::grpc::Policies,
    profiles::grpc::Profiles,
    resources::grpc::Resources,
    store::{CHANNEL, Store},
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

/// A running service. Dropping it does not end the service.
pub struct Handle {
    address: SocketAddr,
    installation: InstallationId,
    inside: Box<Remote>,
    readiness: Readiness,
    lifecycle: Lifecycle,
    store: Arc<dyn Store>,
    app: App,
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
    pub fn app(&self) -> &App {
        &self.app
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
    let head = store::begin_installation(store, entropy).await?;
    tracing::info!(installation = %head.installation, "a new installation begins");
    Ok(head.installation)
}

/// Applies the mounted trust file, if there is one, and whenever it was read again.
async fn mount_trust_file(
    config: &Config,
    app: &App,
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
        tokio::task::spawn_blocking(move || first.reload(When::Asked)).await?;
        lifecycle.spawn(
            "apply the trust file",
            Arc::clone(mounted).run(app.clone(), lifecycle.clone()),
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
    let store = once_available(patience, &entropy, || {
        store::open(&config.database, config.connections)
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
        Arc::<dyn Store>::clone(&store),
        wake,
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

    let mut app = App::new(
        Arc::<dyn Store>::clone(&store),
        Arc::new(stream.clone()),
        clock,
        entropy.clone(),
    );
    app.lifecycle = lifecycle.clone();
    app.promotions = metrics.contests.promotions.clone();
    app.generations = metrics.generations.clone();
    if let Some(endpoint) = &config.generator {
        app.generator = Arc::new(Model::new(
            endpoint,
            Arc::new(Arc::clone(&app.clock)),
            entropy.clone(),
        ));
    }
    app.profile_metrics = metrics.profiles.clone();
    let queue = IngestQueue::start(&app, config.ingest_workers, &lifecycle);
    let report = readiness.clone();
    lifecycle.spawn(
        "evaluate anew",
        app.clone()
            .reevaluate_until_stopped(lifecycle.clone(), move |alive| report.set(REEVALUATION, alive)),
    );
    lifecycle.spawn(
        "follow the evidence",
        app.clone().follow_evidence_until_stopped(lifecycle.clone()),
    );
    lifecycle.spawn(
        "improve prompts",
        app.clone().improve_until_stopped(lifecycle.clone()),
    );
    let erased: Arc<dyn ErasedLog> = Arc::<dyn Store>::clone(&store);
    lifecycle.spawn(
        "clean up after erasures",
        Eraser::new(erased, config.activity_retention).run(
            Arc::clone(&app.erased),
            stream.settings().retention_interval,
            lifecycle.clone(),
        ),
    );
    lifecycle.spawn(
        "watch the database",
        watch_database(
            Arc::<dyn Store>::clone(&store),
            readiness.clone(),
            lifecycle.soft().clone(),
        ),
    );

    let errors = metrics.evidence.trust_file_errors.clone();
    let trust_file = mount_trust_file(&config, &app, &readiness, errors, &lifecycle).await?;

    lifecycle.spawn(
        "sample metrics",
        measure(
            metrics,
            Arc::<dyn Store>::clone(&store),
            stream.settings().clone(),
            lifecycle.soft().clone(),
        ),
    );

    let (address, inside) = Server::new(emend_proto::DESCRIPTOR_SET, readiness.clone(), entropy)
        .add_service(
            IngestServiceServer::new(Ingest::new(
                app.clone(),
                queue,
                installation,
                lifecycle.soft().clone(),
            )),
            READINESS_CHECKS,
        )
        .add_service(SubscriptionServer::new(stream.clone()), STREAM_CHECKS)
        .add_service(
            CandidateServiceServer::new(Candidates::new(app.clone())),
            READINESS_CHECKS,
        )
        .add_service(
            ResourceServiceServer::new(Resources::new(app.clone(), stream.clone(), config.import_bytes)),
            READINESS_CHECKS,
        )
        .add_service(
            EvidenceServiceServer::new(EvidenceGraph::new(app.clone())),
            READINESS_CHECKS,
        )
        .add_service(
            OutputServiceServer::new(Outputs::new(app.clone(), stream.clone())),
            READINESS_CHECKS,
        )
        .add_service(
            PolicyServiceServer::new(Policies::new(app.clone())),
            READINESS_CHECKS,
        )
        .add_service(
            ProfileServiceServer::new(Profiles::new(app.clone())),
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
        app,
        stream,
    })
}
