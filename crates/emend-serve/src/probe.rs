//! Asks a service that runs with the same settings whether it is ready, using its own program: images hold nothing else
//! that a container's health check could run.
//!
//! Over TLS the service must present exactly the certificate that the settings name, whatever its names and dates: the
//! probe runs on loopback, wants to know that this very service answers, and has its certificate file. If clients must
//! present certificates, the settings include none fit for a client, and the operators' port is asked instead.

use std::{fmt, net::SocketAddr, process::ExitCode, time::Duration};

use emend_base::{
    reload,
    tls::{ClientTls, Remote, why},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpStream, lookup_host},
    time::{sleep, timeout},
};
use tonic::transport::Channel;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::{admin::TelemetryArgs, listen::reachable, tls::TlsArgs};

/// How long the service has to answer.
const PATIENCE: Duration = Duration::from_secs(4);
/// How long it takes at most until the service has noticed a replaced certificate.
const REPLACED: Duration = reload::INTERVAL.saturating_add(Duration::from_millis(500));
/// The longest answer to `GET /readyz` that is read, in bytes.
const MAX_ANSWER: u64 = 64 * 1024;

/// How to ask services that run with these settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeTarget {
    /// Each through its health service, plain or over TLS.
    Health(Option<ClientTls>),
    /// All together, at this operators' address.
    Operators(String),
    /// Not at all: only clients with certificates are let in, and no operators' address is known.
    None,
}

impl ProbeTarget {
    /// The way that these settings call for.
    pub fn of(tls: &TlsArgs, telemetry: &TelemetryArgs) -> Self {
        match tls.files() {
            None => Self::Health(None),
            Some(files) if files.client_ca.is_none() => {
                Self::Health(Some(ClientTls::default().exactly(files.cert)))
            }
            Some(_) => match telemetry.metrics_addr.rsplit_once(':') {
                Some((_, port)) if port != "0" => Self::Operators(telemetry.metrics_addr.clone()),
                _ => Self::None,
            },
        }
    }
}

/// Asks each service, given its listening address (`HOST:PORT`) and full proto name. Exit code 0 if all are ready, else
/// 1; prints one line for each.
pub async fn probe(services: &[(&str, &str)], way: &ProbeTarget) -> ExitCode {
    match way {
        ProbeTarget::Health(tls) => {
            let mut code = ExitCode::SUCCESS;
            for (address, service) in services {
                let asked = timeout(PATIENCE, ask(address, service, tls.as_ref()));
                if !report(&format!("{service} at {address}"), asked.await) {
                    code = ExitCode::FAILURE;
                }
            }
            code
        }
        ProbeTarget::Operators(address) => {
            let asked = timeout(PATIENCE, ask_operators(address));
            if report(&format!("/readyz at {address}"), asked.await) {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        ProbeTarget::None => {
            #[expect(clippy::print_stdout, reason = "what the health check shows")]
            {
                println!(
                    "unknown: with --tls-client-ca clients must present a certificate, so the probe calls /readyz \
                     instead, for which --metrics-addr must name a port"
                );
            }
            ExitCode::FAILURE
        }
    }
}

/// Prints the outcome and returns whether it is ready.
#[expect(clippy::print_stdout, reason = "what the health check shows")]
fn report(who: &str, asked: Result<Result<(), NotReady>, tokio::time::error::Elapsed>) -> bool {
    match asked.unwrap_or_else(|_| Err(NotReady("it does not answer".to_owned()))) {
        Ok(()) => {
            println!("{who}: ready");
            true
        }
        Err(reason) => {
            println!("{who}: not ready: {reason}");
            false
        }
    }
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

/// Where to connect for a listening address.
async fn whereabouts(address: &str) -> Result<SocketAddr, NotReady> {
    let listening = lookup_host(address).await.map_err(not_ready)?.next();
    let listening = listening.ok_or_else(|| NotReady("it has no address".to_owned()))?;
    Ok(reachable(listening))
}

async fn connect(address: &str, tls: Option<&ClientTls>) -> Result<Channel, NotReady> {
    let at = whereabouts(address).await?;
    let Some(tls) = tls else {
        let remote = Remote::new(&format!("http://{at}")).map_err(not_ready)?;
        return remote.connect().await.map_err(|error| NotReady(why(&error)));
    };
    let remote = Remote::new(&format!("https://{at}")).map_err(not_ready)?;
    let remote = remote.tls(tls.clone()).map_err(not_ready)?;
    if let Ok(channel) = remote.connect().await {
        return Ok(channel);
    }
    // A certificate that was just replaced is presented once the service has polled its files.
    sleep(REPLACED).await;
    remote.connect().await.map_err(|error| NotReady(why(&error)))
}

async fn ask(address: &str, service: &str, tls: Option<&ClientTls>) -> Result<(), NotReady> {
    let channel = connect(address, tls).await?;
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

/// `GET /readyz`: the status line says whether it is ready, the body why not.
async fn ask_operators(address: &str) -> Result<(), NotReady> {
    let mut stream = TcpStream::connect(whereabouts(address).await?)
        .await
        .map_err(not_ready)?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(not_ready)?;
    let mut answer = String::new();
    stream
        .take(MAX_ANSWER)
        .read_to_string(&mut answer)
        .await
        .map_err(not_ready)?;
    if answer.starts_with("HTTP/1.1 200 ") {
        return Ok(());
    }
    let body = answer.rsplit("\r\n\r\n").next().unwrap_or_default().trim();
    Err(not_ready(body.trim_start_matches("not ready: ")))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, sync::Arc};

    use tokio::net::TcpListener;

    use super::*;
    use crate::{
        Server,
        admin::{Admin, AdminListener},
        health::Readiness,
        tls::TlsServer,
    };
    use emend_base::{Entropy, Lifecycle, telemetry::Metrics, tls::testing::Authority};

    const PLAIN: ProbeTarget = ProbeTarget::Health(None);

    async fn serving(readiness: &Readiness, tls: Option<Arc<TlsServer>>, lifecycle: &Lifecycle) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Server::new(
            crate::library::descriptors(),
            readiness.clone(),
            Entropy::seeded(1),
        )
        .tls(tls)
        .serve(listener, lifecycle)
        .unwrap()
        .to_string()
    }

    fn ready() -> Readiness {
        let readiness = Readiness::new();
        readiness.register("emend.One", &[]);
        readiness
    }

    fn settings(directory: &Path, client_ca: Option<&str>, metrics_addr: &str) -> (TlsArgs, TelemetryArgs) {
        let tls = TlsArgs {
            tls_cert: Some(directory.join("server.pem")),
            tls_key: Some(directory.join("server.key")),
            tls_client_ca: client_ca.map(|name| directory.join(name)),
            tls_client_crl: None,
        };
        let metrics_addr = metrics_addr.to_owned();
        (tls, TelemetryArgs { metrics_addr })
    }

    #[tokio::test]
    async fn a_service_is_ready_once_its_checks_pass() {
        let (lifecycle, readiness) = (Lifecycle::new(), Readiness::new());
        readiness.register("emend.One", &["database"]);
        let address = serving(&readiness, None, &lifecycle).await;
        let refused = ask(&address, "emend.One", None).await.unwrap_err().to_string();
        assert_eq!(refused, "NOT_SERVING");
        readiness.set("database", true);
        assert!(ask(&address, "emend.One", None).await.is_ok());
        let everywhere = address.replace("127.0.0.1", "0.0.0.0");
        assert!(
            ask(&everywhere, "emend.One", None).await.is_ok(),
            "who listens everywhere does so here"
        );
        assert!(ask(&address, "emend.Two", None).await.is_err());
        assert_eq!(probe(&[(&address, "emend.One")], &PLAIN).await, ExitCode::SUCCESS);
        assert_eq!(
            probe(&[(&address, "emend.One"), (&address, "emend.Two")], &PLAIN).await,
            ExitCode::FAILURE
        );
        lifecycle.shutdown(Duration::from_secs(1)).await;
    }

    #[tokio::test]
    async fn a_service_that_does_not_listen_is_not_ready() {
        assert!(ask("127.0.0.1:1", "emend.One", None).await.is_err());
        assert!(ask_operators("127.0.0.1:1").await.is_err());
    }

    #[tokio::test]
    async fn a_service_with_tls_must_present_exactly_the_certificate_of_the_file() {
        let (authority, directory) = (Authority::new("ca"), tempfile::tempdir().unwrap());
        let path = directory.path();
        // Not for this address, and issued by a CA that the client does not trust.
        authority.issue(1, &["learning.example"]).write(path, "server");
        let (args, telemetry) = settings(path, None, "127.0.0.1:0");
        let (lifecycle, tls) = (Lifecycle::new(), args.load().unwrap().unwrap());
        let address = serving(&ready(), Some(Arc::clone(&tls)), &lifecycle).await;
        let way = ProbeTarget::of(&args, &telemetry);
        assert_eq!(probe(&[(&address, "emend.One")], &way).await, ExitCode::SUCCESS);
        assert_eq!(probe(&[(&address, "emend.Two")], &way).await, ExitCode::FAILURE);

        // The same name and CA but another certificate: nothing reloads this server's files.
        authority.issue(2, &["learning.example"]).write(path, "server");
        assert_eq!(probe(&[(&address, "emend.One")], &way).await, ExitCode::FAILURE);

        // Reloaded as in services.
        reload::spawn(vec![tls], reload::INTERVAL, &lifecycle);
        authority.issue(3, &["learning.example"]).write(path, "server");
        assert_eq!(
            probe(&[(&address, "emend.One")], &way).await,
            ExitCode::SUCCESS,
            "just replaced"
        );
        fs::remove_file(path.join("server.pem")).unwrap();
        assert_eq!(probe(&[(&address, "emend.One")], &way).await, ExitCode::FAILURE);
        lifecycle.shutdown(Duration::from_secs(1)).await;
    }

    #[tokio::test]
    async fn where_clients_need_certificates_the_operators_port_is_probed() {
        let directory = tempfile::tempdir().unwrap();
        for nowhere in ["", "127.0.0.1:0"] {
            let (args, telemetry) = settings(directory.path(), Some("ca.pem"), nowhere);
            assert_eq!(ProbeTarget::of(&args, &telemetry), ProbeTarget::None);
        }
        assert_eq!(probe(&[], &ProbeTarget::None).await, ExitCode::FAILURE);

        let (lifecycle, readiness) = (Lifecycle::new(), Readiness::new());
        readiness.register("emend.One", &["database"]);
        let listener = AdminListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.address().to_string();
        let admin = Admin::new(
            Metrics::new(),
            vec![readiness.clone()],
            None,
            lifecycle.soft().clone(),
        );
        listener.serve(admin, &lifecycle);
        let (args, telemetry) = settings(directory.path(), Some("ca.pem"), &address);
        let way = ProbeTarget::of(&args, &telemetry);
        assert_eq!(probe(&[], &way).await, ExitCode::FAILURE);
        let reason = ask_operators(&address).await.unwrap_err();
        assert_eq!(reason.to_string(), "database");
        readiness.set("database", true);
        assert_eq!(probe(&[], &way).await, ExitCode::SUCCESS);
        lifecycle.shutdown(Duration::from_secs(1)).await;
    }
}
