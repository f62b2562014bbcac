//! Emend's feedback service: stores corrections durably and delivers each to learning-svc.
//!
//! A submission is parsed, grouped with concurrent ones, stored with its event in one transaction, and then answered.
//! The event is leased to this replica and sent at once; one that learning-svc does not answer stays in the outbox,
//! where any replica claims it. Nothing that was answered OK is lost, and learning-svc receives each event at least
//! once.
//!
//! ```text
//! corrections: grpc ─▶ use case ─▶ group commit ─▶ store ◀─ outbox: relay ─▶ learning-svc
//!                                       └── events, in memory ──▶┘
//! ```
//!
//! It is cut by capability; each folder holds its use cases and its `grpc`:
//! * `corrections`: taking, reading and retracting feedback.
//! * `outbox`: delivering events to learning-svc, and dead letters.
//! * `erasure`: redacting feedback and erasing reporters.
//! * `installation`: which installation of learning-svc events are delivered to.
//! * `queries`: what was searched, recorded by backends and kept for a short time.
//! * `ratings`: ratings of search answers.
//! * `settings`: what is done with the feedback of a namespace.
//!
//! `feedback-store` has what is stored and how, for all of them.
//!
//! [`start`] runs one replica; `main` does so from its command line, [`Arguments`]. Any number of replicas share one
//! PostgreSQL database; a SQLite file belongs to one process.

pub mod arguments;
pub mod config;
#[cfg(test)]
mod contract;
mod corrections;
mod erasure;
pub mod fail_points;
mod feedback_service;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod ids;
pub mod installation;
mod metrics;
mod origin;
mod outbox;
mod page;
mod pauses;
mod queries;
mod ratings;
pub mod roles;
mod settings;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod upkeep;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use emend_base::{
    Entropy, Environment, Lifecycle, SharedClock,
    lifecycle::Shutdown,
    reload::{self, Reload},
    telemetry::{Metrics, metrics::prometheus::Gauge},
    tls::Remote,
};
use emend_proto::feedback::v1::{
    feedback_service_server::{FeedbackServiceServer, SERVICE_NAME},
    query_service_server::QueryServiceServer,
    settings_service_server::SettingsServiceServer,
};
use emend_serve::{Server, health::Readiness, metrics::ServerMetrics, service::Running};
use emend_store::available::once_available;
use tokio::{net::TcpListener, sync::Notify};
use tokio_util::sync::CancellationToken;

pub use arguments::Arguments;
pub use arguments::RatingHttpArgs;
pub use config::{Config, LearningAddress};
pub use corrections::config::CommitConfig;
pub use outbox::config::RelayConfig;
pub use ratings::http::{Binding, BindingError, KeyFile, RatingHttp};

use crate::{
    corrections::{
        Corrections,
        group_commit::{CommitWorker, Committer},
        grpc::CorrectionRpcs,
        present::PresentState,
    },
    erasure::{redact::Erasures, worker::Eraser},
    feedback_service::FeedbackEndpoint,
    ids::Ids,
    installation::Target,
    metrics::FeedbackMetrics,
    outbox::{
        Delivery,
        credentials::{CredentialsCheck, LEARNING},
        dead_letters::DeadLetters,
        delivery_queue::DeliveryQueue,
        ingest::IngestClient,
        waiters::Waiters,
        worker::Relay,
    },
    queries::{
        Queries,
        grpc::QueryEndpoint,
        mining::Miner,
        record::{RecordWorker, Recorder},
        retention::Forgetter,
        ubi::{self, Taking},
    },
    ratings::{Ratings, http::Listener, worker::ContextWorker},
    settings::{NamespaceSettings, grpc::SettingsEndpoint},
    upkeep::{DATABASE, Pruner, RELAY, ReadinessCheck, Sampler},
};
use feedback_store::{
    SqlStore,
    ports::{Connected, FeedbackStore, InstallationStore, LONGEST_WAIT},
};

/// A running service. Dropping it does not stop the service.
#[derive(Debug)]
pub struct Handle {
    address: SocketAddr,
    // Boxed because it is large, and so would be every future that holds this.
    inside: Box<Remote>,
    rating_addresses: Vec<SocketAddr>,
    readiness: Readiness,
    lifecycle: Lifecycle,
    store: Arc<SqlStore>,
}

impl Handle {
    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How other parts of this process connect to it: without TLS, since nothing leaves the process.
    pub fn inside(&self) -> Remote {
        (*self.inside).clone()
    }

    /// The addresses on which it takes ratings over HTTP, in the order of the configuration.
    pub fn rating_addresses(&self) -> &[SocketAddr] {
        &self.rating_addresses
    }

    /// Waits until it is ready: its database answers, its relay makes progress, and learning-svc does not refuse it.
    pub async fn ready(&self) {
        self.readiness.ready(SERVICE_NAME).await;
    }

    /// Its readiness checks.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Stops the service: accepts nothing more, stores what it has accepted and sends the events it holds, all within
    /// `grace` plus two seconds.
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
        let ratings = self.rating_addresses.iter();
        let ratings = ratings.map(|address| ("rating-http", *address));
        std::iter::once(("feedback", self.address))
            .chain(ratings)
            .collect()
    }

    async fn shutdown(&self, grace: Duration) -> Shutdown {
        Self::shutdown(self, grace).await
    }
}

/// Opens the database and serves on `listener`. learning-svc need not be running.
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
    anyhow::ensure!(
        config.relay.lease.max(config.relay.retry.max) <= LONGEST_WAIT / 2,
        "relay: lease and retry.max must be at most {:?}",
        LONGEST_WAIT / 2
    );
    let lifecycle = lifecycle.child();
    let patience = config.database.patience(config.database_patience);
    let open = || feedback_store::open(&config.database, config.postgres_connections, &entropy);
    let store = once_available(&config.database, patience, &entropy, open)
        .await
        .with_context(|| format!("can't open the database {}", config.database))?;
    installation::begun(&*store, &config.database, config.init).await?;
    if let Some(installation) = config.accept_installation {
        store.accept(installation).await?;
    }
    let readiness = Readiness::new();
    let mut metrics = FeedbackMetrics::register(&config.metrics);
    metrics.ratings.logs_titles = config.log_result_titles;
    upkeep::watch(&config, store.clone(), &readiness, &lifecycle);

    let credentials = CredentialsCheck {
        remote: config.learning.remote(),
        token: config.learning_token.clone(),
        readiness: readiness.clone(),
        entropy: entropy.clone(),
    };
    let delivery = IngestClient::new(
        config.learning.remote(),
        config.learning_token,
        lifecycle.clone(),
        config.relay.answer_timeout,
        config.relay.keep_alive,
    );
    let Parts {
        rpcs,
        waiters,
        ids,
        commits,
        relay,
    } = Parts::assemble(
        store.clone(),
        Arc::new(delivery),
        (config.commit, config.relay),
        &lifecycle,
        clock.clone(),
        &entropy,
        metrics.installation_mismatch.clone(),
    );
    let soft = lifecycle.soft().clone();
    let (recorder, recording) = Recorder::new(
        store.clone(),
        (metrics.queries.clone(), metrics.ratings.clone()),
        entropy.clone(),
        soft.clone(),
    );
    let corrections = Arc::clone(&rpcs.corrections);
    let dispatch = relay.dispatch().clone();
    let wake_eraser = Arc::new(Notify::new());
    let erasures = Arc::new(Erasures {
        store: store.clone(),
        corrections: Arc::clone(&corrections),
        dispatch: dispatch.clone(),
        waiters,
        ids: ids.clone(),
        wake: Arc::clone(&wake_eraser),
    });
    let ratings = Arc::new(Ratings {
        store: store.clone(),
        corrections,
    });
    let feedback = FeedbackEndpoint {
        corrections: rpcs,
        erasures: Arc::clone(&erasures),
        ratings: Arc::clone(&ratings),
        dead_letters: Arc::new(DeadLetters {
            store: store.clone(),
            dispatch: dispatch.clone(),
        }),
    };
    let taking = Taking {
        recorder: recorder.clone(),
        clock: clock.clone(),
    };
    let of_users = move |listener: &Arc<Listener>| ubi::routes(listener, &taking);
    let queries = QueryEndpoint {
        queries: Arc::new(Queries { store: store.clone() }),
        ratings: Arc::clone(&ratings),
        recorder,
        clock,
    };
    let settings = SettingsEndpoint(Arc::new(NamespaceSettings {
        store: store.clone(),
        wake: Arc::clone(&wake_eraser),
    }));
    let (address, inside) = Server::new(emend_proto::DESCRIPTOR_SET, readiness.clone(), entropy.clone())
        .add_service(FeedbackServiceServer::new(feedback), &[DATABASE, RELAY, LEARNING])
        .add_service(QueryServiceServer::new(queries), &[DATABASE])
        .add_service(SettingsServiceServer::new(settings), &[DATABASE, RELAY])
        .bounds(config.bounds)
        .metrics(ServerMetrics::of(&config.metrics).rpc())
        .authenticator(config.authenticator, &roles::RULES)
        .tls(config.tls.clone())
        .reflection(config.reflection)
        .serve_inside(listener, &lifecycle)
        .context("can't serve")?;

    let rating_addresses =
        ratings::http::serve(&config.rating_http, &ratings, &entropy, &lifecycle, of_users).await?;
    let reloaded = config.tls.iter().map(|tls| Arc::clone(tls) as Arc<dyn Reload>);
    reload::spawn(reloaded.collect(), reload::INTERVAL, &lifecycle);
    let commits = commits.counting(metrics.stored.clone(), metrics.ratings.clone());
    let storing = commits.storing().clone();
    spawn_delivery(commits, &relay, config.relay, &lifecycle);
    // Ends after the last connection, once all that was recorded is stored.
    lifecycle.spawn("store queries", RecordWorker::run(recording));
    let forgetter = Forgetter {
        store: store.clone(),
        wake: wake_eraser,
        entropy: entropy.clone(),
    };
    lifecycle.spawn("forget queries", forgetter.run(soft.clone()));
    let contexts = ContextWorker {
        store: store.clone(),
        metrics: metrics.ratings.clone(),
        entropy: entropy.clone(),
    };
    lifecycle.spawn("complete ratings", contexts.run(soft.clone()));
    let miner = Miner {
        store: store.clone(),
        dispatch,
        ids,
        metrics: metrics.queries.clone(),
        entropy: entropy.clone(),
    };
    lifecycle.spawn("mine queries", miner.run(soft.clone()));
    let eraser = Eraser::new(erasures, metrics.redacted.clone());
    let sampler = Sampler {
        store: store.clone(),
        metrics,
    };
    lifecycle.spawn("measure the outbox", sampler.run(soft.clone()));
    lifecycle.spawn("erase personal parts", eraser.run(entropy.clone(), soft.clone()));
    let pruner = Pruner {
        store: store.clone(),
        retention: config.request_id_retention,
        entropy,
    };
    lifecycle.spawn("forget request ids", pruner.run(soft.clone()));
    let check = ReadinessCheck {
        store: store.clone(),
        storing,
        relay,
        readiness: readiness.clone(),
    };
    check.run_once().await;
    lifecycle.spawn("watch readiness", check.run(soft.clone()));
    lifecycle.spawn("try learning-svc's credentials", credentials.run(soft.clone()));
    tracing::info!(%address, database = %config.database, learning = %config.learning, "feedback-svc is ready");
    Ok(Handle {
        address,
        inside: Box::new(inside),
        rating_addresses,
        readiness,
        lifecycle,
        store,
    })
}

/// Registers this service's metrics in `metrics`, as [`start`] does, for code that documents them.
pub fn describe_metrics(metrics: &Metrics) {
    FeedbackMetrics::register(metrics);
}

/// The parts that accept feedback and deliver it to learning-svc, independent of store and transport.
struct Parts {
    rpcs: CorrectionRpcs,
    waiters: Waiters,
    ids: Ids,
    commits: CommitWorker,
    relay: Arc<Relay>,
}

impl Parts {
    fn assemble(
        store: Arc<dyn FeedbackStore>,
        delivery: Arc<dyn Delivery>,
        (commit, relay): (CommitConfig, RelayConfig),
        lifecycle: &Lifecycle,
        clock: SharedClock,
        entropy: &Entropy,
        mismatch: Gauge,
    ) -> Self {
        let waiters = Waiters::default();
        let ids = Ids::new(clock, entropy.clone());
        let target = Target::new(store.clone(), mismatch);
        let present = PresentState::new(Arc::clone(&delivery), target.clone());
        let relay = Arc::new(Relay::new(
            store.clone(),
            delivery,
            target,
            DeliveryQueue::new(relay.queue_events),
            waiters.clone(),
            entropy.clone(),
            relay,
        ));
        let (committer, commits) = Committer::new(store.clone(), relay.dispatch().clone(), commit);
        let corrections = Corrections::new(
            store.clone(),
            committer,
            relay.dispatch().clone(),
            waiters.clone(),
            lifecycle.clone(),
            ids.clone(),
        );
        Self {
            rpcs: CorrectionRpcs {
                corrections: Arc::new(corrections),
                settings: store,
                present,
            },
            waiters,
            ids,
            commits,
            relay,
        }
    }
}

/// Spawns the committer and the relay.
fn spawn_delivery(commits: CommitWorker, relay: &Arc<Relay>, config: RelayConfig, lifecycle: &Lifecycle) {
    // The committer ends after the last connection, and the relay once nothing more can come from the committer.
    let draining = CancellationToken::new();
    let until_committed = draining.clone().drop_guard();
    lifecycle.spawn("commit submissions", async move {
        commits.run().await;
        drop(until_committed);
    });
    for _ in 0..config.workers.max(1) {
        lifecycle.spawn("relay events", Arc::clone(relay).run(draining.clone()));
    }
    lifecycle.spawn(
        "check the outbox",
        Arc::clone(relay).ask_periodically(lifecycle.soft().clone()),
    );
}
