//! An edge that runs.

use std::{
    fs::{self, Permissions},
    io,
    net::SocketAddr,
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use emend_base::{
    Entropy, Lifecycle,
    reload::{self, Reload},
    telemetry::Metrics,
    tls::TlsError,
};
use emend_binding::{Error, Node};
use emend_proto::edge::v1::look_up_service_server::LookUpServiceServer;
use emend_serve::{
    Server,
    auth::{self, Authenticator},
    health::Readiness,
    hosts::Hosts,
    metrics::{ServerMetrics, watch_files, watch_readiness},
    plain_http::{self, Bounds},
    tls::TlsServer,
};
use tokio::net::{TcpListener, UnixListener};

use crate::{
    config::{Config, ConfigError, Listen},
    followed::Followed,
    grpc::{LookUps, RULES},
    metrics::EdgeMetrics,
    routes::{Shared, routes},
    sinks::{self, SinkMetrics},
};

/// A backend keeps its connections open.
const BOUNDS: Bounds = Bounds {
    connections: 4_096,
    patience: Duration::from_mins(1),
    served: Duration::from_hours(1),
};

/// Labels say what sort of node it is.
const SORT: &str = "kind";
const EDGE: &str = "edge";
/// What it needs to be ready.
const STATE: &str = "state";

/// Why an edge does not start.
#[derive(Debug, thiserror::Error)]
pub enum EdgeError {
    /// Its settings can't be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Its files of TLS can't be used.
    #[error("tls: {0}")]
    Tls(#[from] TlsError),
    /// The file of its callers can't be used.
    #[error("auth_config: {0}")]
    Auth(#[from] auth::ConfigError),
    /// It can't listen.
    #[error("listen: {0}: {1}")]
    Listen(String, #[source] io::Error),
    /// Its node refuses its settings.
    #[error("node: {0}")]
    Node(#[from] Error),
}

/// An edge that answers.
#[derive(Debug)]
pub struct Edge {
    addresses: Vec<SocketAddr>,
    sockets: Vec<PathBuf>,
    grpc: Option<SocketAddr>,
    node: Arc<Node>,
    readiness: Readiness,
    is_secured: bool,
}

impl Edge {
    /// Whether its addresses are of TLS.
    pub fn is_secured(&self) -> bool {
        self.is_secured
    }

    /// The addresses where it answers.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The sockets where it answers.
    pub fn sockets(&self) -> &[PathBuf] {
        &self.sockets
    }

    /// Where it answers over gRPC.
    pub fn grpc_address(&self) -> Option<SocketAddr> {
        self.grpc
    }

    /// Whether it has a state to answer from, be it that of its copy: of the service `edge`.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// The node that it is.
    pub fn node(&self) -> &Node {
        &self.node
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        for socket in &self.sockets {
            // Whoever removed it before did the same.
            let _ = fs::remove_file(socket);
        }
    }
}

/// Starts it: it answers from its copy on disk, if it has one, whether or not the services can be reached.
pub async fn start(config: Config, lifecycle: &Lifecycle) -> Result<Edge, EdgeError> {
    start_measured(config, &Metrics::new(), lifecycle).await
}

/// The same; what it counts is among the metrics of this process.
pub async fn start_measured(
    mut config: Config,
    metrics: &Metrics,
    lifecycle: &Lifecycle,
) -> Result<Edge, EdgeError> {
    config.check()?;
    let tls = config.tls.as_ref().map(|tls| TlsServer::for_http1(tls.files()));
    let tls = tls.transpose()?.map(Arc::new);
    if let Some(tls) = &tls {
        let watched: Arc<dyn Reload> = Arc::<TlsServer>::clone(tls);
        reload::spawn(vec![watched], reload::INTERVAL, lifecycle);
    }
    let authenticator = auth::args::load(config.auth_config.as_deref(), lifecycle)?;
    metrics.name_service(EDGE, env!("CARGO_PKG_VERSION"));
    watch_files(metrics, EDGE, authenticator.as_ref(), tls.as_ref());
    if config.node.version.is_empty() {
        env!("CARGO_PKG_VERSION").clone_into(&mut config.node.version);
    }
    let labels = &mut config.node.labels;
    labels.entry(SORT.to_owned()).or_insert_with(|| EDGE.to_owned());
    let followed = Followed::by(&config.node, lifecycle)?;
    let holds_users = config.node.include_user_scoped;
    let sinks = SinkMetrics::of_process(metrics);
    sinks::start(config.sinks, &config.node, &sinks, lifecycle).await?;
    let node = Arc::new(Node::start(config.node).await?);
    let mut served = Served {
        metrics: EdgeMetrics::showing(metrics, &node),
        edge: Edge {
            addresses: Vec::new(),
            sockets: Vec::new(),
            grpc: None,
            readiness: readiness(&node, metrics, lifecycle),
            node,
            is_secured: tls.is_some(),
        },
        followed,
        holds_users,
        authenticator,
        tls,
        names: config.names,
    };
    for listen in config.listen {
        match listen {
            Listen::Address(address) => served.at(address, lifecycle).await,
            Listen::Unix(path) => served.at_socket(path, lifecycle),
        }?;
    }
    if let Some(address) = config.listen_grpc {
        let tls = config.tls.as_ref().map(|tls| TlsServer::load(tls.files()));
        let tls = tls.transpose()?.map(Arc::new);
        served.at_grpc(address, tls, metrics, lifecycle).await?;
    }
    Ok(served.edge)
}

/// It is ready once it has a state to answer from.
fn readiness(node: &Node, metrics: &Metrics, lifecycle: &Lifecycle) -> Readiness {
    let readiness = Readiness::new();
    readiness.register(EDGE, &[STATE]);
    watch_readiness(metrics, EDGE, readiness.clone(), EDGE);
    let (told, filled) = (readiness.clone(), node.wait_ready(Duration::MAX));
    let stop = lifecycle.soft().clone();
    lifecycle.spawn("say when the edge is ready", async move {
        tokio::select! {
            () = stop.cancelled() => {}
            filled = filled => told.set(STATE, filled.is_ok()),
        }
    });
    readiness
}

/// An edge while it begins to answer.
struct Served {
    metrics: EdgeMetrics,
    edge: Edge,
    followed: Arc<Followed>,
    holds_users: bool,
    authenticator: Option<Arc<Authenticator>>,
    tls: Option<Arc<TlsServer>>,
    names: Vec<String>,
}

impl Served {
    async fn at(&mut self, address: SocketAddr, lifecycle: &Lifecycle) -> Result<(), EdgeError> {
        let fault = |error| EdgeError::Listen(address.to_string(), error);
        let listener = TcpListener::bind(address).await.map_err(fault)?;
        let address = listener.local_addr().map_err(fault)?;
        let hosts = Hosts::new(authorities(&self.names, address.port()), address);
        let routes = routes(self.shared(Some(hosts)));
        let scope = lifecycle.clone();
        match self.tls.clone() {
            None => lifecycle.spawn(
                "answer look-ups",
                plain_http::accept(listener, routes, BOUNDS, scope),
            ),
            Some(tls) => lifecycle.spawn(
                "answer look-ups over TLS",
                plain_http::accept_secured(listener, tls, routes, BOUNDS, scope),
            ),
        };
        self.edge.addresses.push(address);
        Ok(())
    }

    async fn at_grpc(
        &mut self,
        address: SocketAddr,
        tls: Option<Arc<TlsServer>>,
        metrics: &Metrics,
        lifecycle: &Lifecycle,
    ) -> Result<(), EdgeError> {
        let fault = |error| EdgeError::Listen(address.to_string(), error);
        let listener = TcpListener::bind(address).await.map_err(fault)?;
        if let Some(tls) = &tls {
            let watched: Arc<dyn Reload> = Arc::<TlsServer>::clone(tls);
            reload::spawn(vec![watched], reload::INTERVAL, lifecycle);
        }
        let look_ups = LookUpServiceServer::new(LookUps(self.shared(None)));
        let server = Server::new(
            emend_proto::edge::DESCRIPTOR_SET,
            self.edge.readiness.clone(),
            Entropy::system(),
        );
        let bound = server
            .add_service(look_ups, &[STATE])
            .metrics(ServerMetrics::of(metrics).rpc())
            .authenticator(self.authenticator.clone(), &RULES)
            .tls(tls)
            .serve(listener, lifecycle);
        self.edge.grpc = Some(bound.map_err(fault)?);
        Ok(())
    }

    fn shared(&self, hosts: Option<Hosts>) -> Arc<Shared> {
        Arc::new(Shared {
            node: Arc::clone(&self.edge.node),
            followed: Arc::clone(&self.followed),
            holds_users: self.holds_users,
            // Who may use a socket, its owner says, and gRPC's server knows its callers itself.
            authenticator: self.authenticator.clone().filter(|_| hosts.is_some()),
            metrics: self.metrics.clone(),
            hosts,
        })
    }

    /// Who may use a socket, its owner says: nobody is authenticated there.
    fn at_socket(&mut self, path: PathBuf, lifecycle: &Lifecycle) -> Result<(), EdgeError> {
        let listener = bind(&path).map_err(|error| EdgeError::Listen(path.display().to_string(), error))?;
        let routes = routes(self.shared(None));
        let accepting = plain_http::accept_local(listener, routes, BOUNDS, lifecycle.clone());
        lifecycle.spawn("answer local look-ups", accepting);
        self.edge.sockets.push(path);
        Ok(())
    }
}

/// Names as requests have them: one without a port stands for itself, as behind a proxy, and for itself with this port.
fn authorities(names: &[String], port: u16) -> Vec<String> {
    let all = names.iter().flat_map(|name| {
        let name = name.to_ascii_lowercase();
        let with_port = (!name.contains(':')).then(|| format!("{name}:{port}"));
        with_port.into_iter().chain([name])
    });
    all.collect()
}

/// Listens at a socket that its owner alone can use. One that a killed process left behind is replaced; one where somebody
/// answers is not.
fn bind(path: &Path) -> io::Result<UnixListener> {
    if path.exists() {
        if UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(
                io::ErrorKind::AddrInUse,
                "another process answers there",
            ));
        }
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}
