//! Liveness of a process and readiness of its services: `grpc.health.v1`.
//!
//! Liveness is the service with the empty name: `SERVING` for as long as the process answers at all, whatever the state
//! of the database, because restarting a process does not repair a database. Every other service is `SERVING` only
//! while all the checks it was registered with pass, and `NOT_SERVING` from the moment the process is asked to stop, so
//! that balancers send it nothing new.

use std::{
    collections::{BTreeMap, HashMap},
    pin::Pin,
    sync::{Arc, PoisonError, RwLock},
};

use emend_base::error::Error;
use futures::{Stream, StreamExt as _, stream};
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse,
    health_check_response::ServingStatus,
    health_server::{Health, HealthServer},
};

/// The name under which health checks ask for liveness.
pub const LIVENESS: &str = "";

/// The checks that services' readiness depends on. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<RwLock<Checks>>);

#[derive(Debug, Default)]
struct Checks {
    passing: BTreeMap<&'static str, bool>,
    notes: BTreeMap<&'static str, String>,
    services: HashMap<&'static str, Registered>,
}

#[derive(Debug)]
struct Registered {
    needs: &'static [&'static str],
    ready: watch::Sender<bool>,
}

impl Readiness {
    /// No service yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a service by its full proto name. It is ready while all the checks it `needs` pass; a check never
    /// reported does not pass. With no needs it is ready at once.
    pub fn register(&self, service: &'static str, needs: &'static [&'static str]) {
        let mut checks = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for check in needs {
            checks.passing.entry(check).or_insert(false);
        }
        let ready = checks.all_pass(needs);
        checks.services.insert(
            service,
            Registered {
                needs,
                ready: watch::channel(ready).0,
            },
        );
    }

    /// Reports a check. Cheap to repeat: only changes reach watchers.
    pub fn set(&self, check: &'static str, passes: bool) {
        let mut checks = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if checks.passing.insert(check, passes) == Some(passes) {
            return;
        }
        tracing::info!(check, passes, "readiness check changed");
        for service in checks.services.values() {
            let ready = checks.all_pass(service.needs);
            service
                .ready
                .send_if_modified(|before| std::mem::replace(before, ready) != ready);
        }
    }

    /// Whether a registered service is ready.
    pub fn is_ready(&self, service: &str) -> bool {
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        checks
            .services
            .get(service)
            .is_some_and(|registered| *registered.ready.borrow())
    }

    /// Waits until a registered service is ready. Never returns for one that is not registered.
    pub async fn ready(&self, service: &str) {
        match self.subscribe(service) {
            Some(mut ready) => {
                // It fails only if the sender is gone, and `self` keeps the sender.
                let _ = ready.wait_for(|ready| *ready).await;
            }
            None => std::future::pending().await,
        }
    }

    /// The failing checks, in alphabetical order.
    pub fn failing(&self) -> Vec<&'static str> {
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        checks
            .passing
            .iter()
            .filter(|(_, passes)| !**passes)
            .map(|(check, _)| *check)
            .collect()
    }

    /// Tells operators what is wrong with something that readiness does not depend on, or that nothing is any more.
    pub fn note(&self, subject: &'static str, problem: Option<String>) {
        let mut checks = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match problem {
            Some(problem) => checks.notes.insert(subject, problem),
            None => checks.notes.remove(subject),
        };
    }

    /// What is wrong that readiness does not depend on, each on a line after its subject.
    pub fn notes(&self) -> Vec<String> {
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let notes = checks.notes.iter();
        notes
            .map(|(subject, problem)| format!("{subject}: {problem}"))
            .collect()
    }

    fn subscribe(&self, service: &str) -> Option<watch::Receiver<bool>> {
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        checks
            .services
            .get(service)
            .map(|registered| registered.ready.subscribe())
    }
}

impl Checks {
    fn all_pass(&self, needs: &[&str]) -> bool {
        needs.iter().all(|check| self.passing.get(check) == Some(&true))
    }
}

/// Answers health checks until `soft` is cancelled; then no service is ready any more and watches end.
pub(crate) fn server(readiness: Readiness, soft: CancellationToken) -> HealthServer<impl Health> {
    HealthServer::new(Endpoint { readiness, soft })
}

struct Endpoint {
    readiness: Readiness,
    soft: CancellationToken,
}

type Watching = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

#[tonic::async_trait]
impl Health for Endpoint {
    type WatchStream = Watching;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = &request.get_ref().service;
        let status = if service == LIVENESS {
            ServingStatus::Serving
        } else {
            let ready = self
                .readiness
                .subscribe(service)
                .ok_or_else(|| Error::not_found("service", service.as_str()))?;
            status_of(*ready.borrow() && !self.soft.is_cancelled())
        };
        Ok(Response::new(answer(status)))
    }

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<Watching>, Status> {
        let service = &request.get_ref().service;
        let changes: Watching = if service == LIVENESS {
            Box::pin(stream::iter([Ok(answer(ServingStatus::Serving))]).chain(stream::pending()))
        } else if let Some(ready) = self.readiness.subscribe(service) {
            Box::pin(WatchStream::new(ready).map(|ready| Ok(answer(status_of(ready)))))
        } else {
            // As the protocol requires: unknown for now, perhaps not for ever, and not an error.
            Box::pin(stream::iter([Ok(answer(ServingStatus::ServiceUnknown))]).chain(stream::pending()))
        };
        let last = (service != LIVENESS).then(|| Ok(answer(ServingStatus::NotServing)));
        let until_stop = changes.take_until(self.soft.clone().cancelled_owned());
        Ok(Response::new(Box::pin(until_stop.chain(stream::iter(last)))))
    }
}

fn status_of(ready: bool) -> ServingStatus {
    if ready {
        ServingStatus::Serving
    } else {
        ServingStatus::NotServing
    }
}

fn answer(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse {
        status: status.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_ready_only_while_all_its_checks_pass() {
        let readiness = Readiness::new();
        readiness.register("emend.Both", &["database", "tailer"]);
        readiness.register("emend.One", &["database"]);
        readiness.register("emend.None", &[]);
        assert!(readiness.is_ready("emend.None"));
        assert_eq!(readiness.failing(), ["database", "tailer"]);

        readiness.set("database", true);
        assert!(readiness.is_ready("emend.One"));
        assert!(!readiness.is_ready("emend.Both"));
        readiness.set("tailer", true);
        assert!(readiness.is_ready("emend.Both"));
        readiness.set("database", false);
        assert!(!readiness.is_ready("emend.One"));
        assert!(!readiness.is_ready("emend.Both"));
        assert_eq!(readiness.failing(), ["database"]);
    }

    #[test]
    fn a_service_that_nobody_registered_is_not_ready() {
        assert!(!Readiness::new().is_ready("emend.Unknown"));
    }

    #[test]
    fn a_check_reported_before_the_registration_counts() {
        let readiness = Readiness::new();
        readiness.set("database", true);
        readiness.register("emend.One", &["database"]);
        assert!(readiness.is_ready("emend.One"));
    }

    #[tokio::test]
    async fn waiting_for_readiness_ends_with_the_last_check() {
        let readiness = Readiness::new();
        readiness.register("emend.One", &["database"]);
        let waiting = tokio::spawn({
            let readiness = readiness.clone();
            async move { readiness.ready("emend.One").await }
        });
        readiness.set("database", true);
        waiting.await.unwrap();
    }
}
