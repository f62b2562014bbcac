//! Asking a service that runs with the same settings whether it is ready, by its own program: images hold nothing else that
//! a container's health check could run. Without TLS.

use std::{fmt, net::SocketAddr, process::ExitCode, time::Duration};

use tokio::{net::lookup_host, time::timeout};
use tonic::transport::Endpoint;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::listen::reachable;

/// How long the service has for its answer.
const PATIENCE: Duration = Duration::from_secs(4);

/// Asks each service, by the address on which it listens (`HOST:PORT`) and its full proto name. Exit code 0 if all are ready,
/// else 1; one line for each says what it is.
pub async fn probe(services: &[(&str, &str)]) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for (address, service) in services {
        let asked = timeout(PATIENCE, ask(address, service)).await;
        let state = asked.unwrap_or_else(|_| Err(NotReady("there is no answer".to_owned())));
        #[expect(clippy::print_stdout, reason = "what the health check shows")]
        match state {
            Ok(()) => println!("{service} at {address}: ready"),
            Err(reason) => {
                println!("{service} at {address}: not ready: {reason}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

/// Why a service is not ready.
#[derive(Debug)]
struct NotReady(String);

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn not_ready(error: impl fmt::Display) -> NotReady {
    NotReady(error.to_string())
}

async fn ask(address: &str, service: &str) -> Result<(), NotReady> {
    let listening: Option<SocketAddr> = lookup_host(address).await.map_err(not_ready)?.next();
    let listening = listening.ok_or_else(|| NotReady("it has no address".to_owned()))?;
    let endpoint = Endpoint::from_shared(format!("http://{}", reachable(listening)));
    let channel = endpoint.map_err(not_ready)?.connect().await.map_err(not_ready)?;
    let request = HealthCheckRequest {
        service: service.to_owned(),
    };
    let answer = HealthClient::new(channel)
        .check(request)
        .await
        .map_err(|status| NotReady(status.message().to_owned()))?;
    match answer.into_inner().status() {
        ServingStatus::Serving => Ok(()),
        other => Err(NotReady(other.as_str_name().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::{Entropy, Lifecycle, health::Readiness, serve::Server};

    #[tokio::test]
    async fn a_service_is_ready_once_its_checks_pass() {
        let (lifecycle, readiness) = (Lifecycle::new(), Readiness::new());
        readiness.register("emend.One", &["database"]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Server::new(readiness.clone(), Entropy::seeded(1))
            .serve(listener, &lifecycle)
            .unwrap()
            .to_string();
        let refused = ask(&address, "emend.One").await.unwrap_err().to_string();
        assert_eq!(refused, "NOT_SERVING");
        readiness.set("database", true);
        assert!(ask(&address, "emend.One").await.is_ok());
        let everywhere = address.replace("127.0.0.1", "0.0.0.0");
        assert!(
            ask(&everywhere, "emend.One").await.is_ok(),
            "who listens everywhere does so here"
        );
        assert!(ask(&address, "emend.Two").await.is_err());
        assert_eq!(probe(&[(&address, "emend.One")]).await, ExitCode::SUCCESS);
        assert_eq!(
            probe(&[(&address, "emend.One"), (&address, "emend.Two")]).await,
            ExitCode::FAILURE
        );
        lifecycle.shutdown(Duration::from_secs(1)).await;
    }

    #[tokio::test]
    async fn what_does_not_listen_is_not_ready() {
        assert!(ask("127.0.0.1:1", "emend.One").await.is_err());
    }
}
