//! Both services in this process.

mod databases;

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use emend_base::{
    Environment, Lifecycle, bearer::TokenFile, http_client::model::Endpoint, telemetry::Metrics,
};
use emend_console::{Console, ConsoleArgs, ConsoleMetrics, Services};
use emend_core::generalise::Vectors;
use emend_serve::{
    auth::Authenticator,
    health::Readiness,
    listen::{self, Exposure, reachable},
    tls::TlsServer,
};
use feedback_svc::{LearningAddress, RatingHttp};

pub use self::databases::{Databases, FEEDBACK_FILE, LEARNING_FILE};
use crate::{
    commands::console,
    context::Context,
    failure::{Failure, Result},
};

/// The grace period for work under way when the pair stops.
pub const GRACE: Duration = Duration::from_secs(10);

/// How long the pair may take to become ready.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// How both services authenticate callers and secure connections.
#[derive(Debug, Default)]
pub struct Access {
    /// Authenticates callers; without it everybody may do everything.
    pub authenticator: Option<Arc<Authenticator>>,
    /// The token with which feedback-svc authenticates to learning-svc. Calls between the two never leave this
    /// process, so they need neither TLS nor certificates.
    pub token: Option<TokenFile>,
    /// TLS; `None` for plaintext connections.
    pub tls: Option<Arc<TlsServer>>,
}

/// What learning-svc is given besides.
#[derive(Debug, Default)]
pub struct Given {
    /// The trust file that it applies.
    pub trust_file: Option<PathBuf>,
    /// What generates prompts and suggestions for profiles.
    pub generator: Option<Endpoint>,
    /// The vectors that near answers are given by, too, where a policy names just these.
    pub near_vectors: Option<Arc<dyn Vectors>>,
}

/// The two services, running and ready.
#[derive(Debug)]
pub struct Pair {
    feedback: feedback_svc::Handle,
    learning: learning_svc::Handle,
    metrics: Metrics,
    // Dropped last: the data directory is released once nothing uses it.
    _databases: Databases,
}

impl Pair {
    /// Starts both, listening on the (feedback, learning) addresses, and waits until both are ready. learning-svc applies the trust
    /// file, if there is one.
    pub async fn start(
        databases: Databases,
        addresses: (&str, &str),
        (exposure, access): (&Exposure, Access),
        rating_http: RatingHttp,
        given: Given,
        lifecycle: &Lifecycle,
        context: &Context,
    ) -> Result<Self> {
        let bind = async |flag: &str, address: &str| {
            let bound = listen::bind(address, exposure).await;
            bound.map_err(|error| Failure::usage(format!("{flag}: {error}")))
        };
        let feedback_listener = bind("--feedback-addr", addresses.0).await?;
        let learning_listener = bind("--learning-addr", addresses.1).await?;
        let environment = Environment {
            lifecycle: lifecycle.clone(),
            clock: context.clock.clone(),
            entropy: context.entropy.clone(),
        };
        let metrics = Metrics::new();
        // Also where no console is served, so that dashboards have zeros.
        let _ = ConsoleMetrics::of(&metrics);
        let mut config = learning_svc::Config::new(databases.learning.clone());
        config.init = databases.accept_new_installation;
        config.trust_file = given.trust_file;
        config.generator = given.generator;
        config.near_vectors = given.near_vectors;
        config.metrics = metrics.clone();
        config.authenticator.clone_from(&access.authenticator);
        config.tls.clone_from(&access.tls);
        config.reflection = !exposure.no_reflection;
        let learning = learning_svc::start(config, learning_listener, environment.clone())
            .await
            .context("learning-svc can't start")?;
        let peer = LearningAddress::inside(learning.inside());
        let mut config = feedback_svc::Config::new(databases.feedback.clone(), peer);
        config.init = databases.accept_new_installation;
        config.accept_installation = databases.accept_new_installation.then(|| learning.installation());
        config.metrics = metrics.clone();
        config.authenticator = access.authenticator;
        config.rating_http = rating_http;
        config.learning_token = access.token;
        config.tls = access.tls;
        config.reflection = !exposure.no_reflection;
        let feedback = feedback_svc::start(config, feedback_listener, environment)
            .await
            .context("feedback-svc can't start")?;
        let ready = async {
            learning.ready().await;
            feedback.ready().await;
        };
        tokio::select! {
            () = ready => {}
            () = lifecycle.soft().cancelled() => {
                return Err(Failure::failed(lifecycle.failure().unwrap_or("stopped while starting")));
            }
            () = tokio::time::sleep(START_TIMEOUT) => {
                return Err(Failure::failed(format!("the services were not ready within {START_TIMEOUT:?}; see the log")));
            }
        }
        databases.started()?;
        Ok(Self {
            feedback,
            learning,
            metrics,
            _databases: databases,
        })
    }

    /// Starts a pair on free loopback ports, whose data is removed at the end.
    pub async fn ephemeral(lifecycle: &Lifecycle, context: &Context) -> Result<Self> {
        let loopback = ("127.0.0.1:0", "127.0.0.1:0");
        Self::start(
            Databases::ephemeral()?,
            loopback,
            (&Exposure::default(), Access::default()),
            RatingHttp::default(),
            Given::default(),
            lifecycle,
            context,
        )
        .await
    }

    /// Where feedback-svc listens.
    pub fn feedback(&self) -> SocketAddr {
        self.feedback.address()
    }

    /// Where learning-svc listens.
    pub fn learning(&self) -> SocketAddr {
        self.learning.address()
    }

    /// Serves the console to browsers, which reaches both services within this process.
    pub async fn serve_console(
        &self,
        args: &ConsoleArgs,
        lifecycle: &Lifecycle,
        context: &Context,
    ) -> Result<Option<Console>> {
        let services = Services::new(self.feedback.inside(), self.learning.inside());
        console::serve(args, services, &self.metrics, lifecycle, context).await
    }

    /// The metrics of both.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The readiness of both.
    pub fn readiness(&self) -> Vec<Readiness> {
        vec![
            self.feedback.readiness().clone(),
            self.learning.readiness().clone(),
        ]
    }

    /// The same context, but connected to this pair.
    pub fn context(&self, context: &Context) -> Context {
        context.at(reachable(self.feedback()), reachable(self.learning()))
    }

    /// The same context, but for many callers, whose calls reach both services within this process.
    pub fn context_of_many(&self, context: &Context) -> Context {
        context.for_many(self.feedback.inside(), self.learning.inside())
    }

    /// Stops both, feedback-svc first, and closes their databases. With zero grace, for when their tasks have already
    /// had theirs, both stop at once.
    pub async fn close(self, grace: Duration) {
        if grace.is_zero() {
            tokio::join!(self.feedback.shutdown(grace), self.learning.shutdown(grace));
            return;
        }
        self.feedback.shutdown(grace).await;
        self.learning.shutdown(grace).await;
    }
}
