//! A gRPC server as a function of its listener and its [`Lifecycle`].
//!
//! Connections are accepted and owned here rather than by `tonic::transport::Server`, which waits for open streams for
//! ever, leaves its connections behind when it is dropped, and never ends connections that stay silent. Here each
//! connection is a task of the scope: the soft token stops accepting and sends GOAWAY, the hard token closes what is
//! left.
//!
//! Every server also answers health checks ([`crate::health`]) and server reflection v1 and v1alpha for exactly the
//! services it has, and wraps every RPC in the caller, trace, admission and deadline layers. It speaks only HTTP/2;
//! HTTP/1 is answered with 505, and what is no gRPC call with 405 or 415 ([`crate::refused`]). A request message may have up to 4 MiB (tonic's default), one to reflection or health 4
//! KiB.
//!
//! Memory per idle connection is kept small: HTTP/2 windows stay at their defaults, and the bytes queued for one slow
//! stream are bounded by [`SEND_BUFFER`] plus one message.

mod accept;
pub mod admission;
pub mod args;
pub mod bounds;
mod call_bytes;
mod connection;
pub mod deadline;
mod http;
mod open_files;
mod reflection;
mod refusals;
mod request_timeout;
mod timed_connection;
pub mod trace_context;
mod unread;

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc};

use ::http::{Request, Response};
use emend_base::{entropy::Entropy, lifecycle::Lifecycle, tls::Remote};
use tokio::net::TcpListener;
use tonic::{body::Body, server::NamedService, service::Routes};
use tonic_reflection::pb::{v1, v1alpha};
use tower::{Layer as _, Service, util::MapResponse};

use self::{
    accept::{ConnectionLimit, accept, accept_inside},
    admission::AdmissionLayer,
    bounds::Bounds,
    deadline::DeadlineLayer,
    http::{Explain, Serving},
    reflection::Reflection,
    trace_context::TraceLayer,
};
use crate::{
    access_service,
    auth::{AuthLayer, Authenticator, GateLayer, Rule, Rules},
    health::{self, Readiness},
    methods::Methods,
    metrics::RpcMetrics,
    tls::TlsServer,
};

/// The connections of one server may use one part in this many of the process's open-file limit: there may be two
/// servers, and database connections need files too.
const SHARE_OF_FILES: usize = 3;
/// How many bytes may be queued for one stream before its next message is asked for.
pub const SEND_BUFFER: usize = 64 * 1024;
/// What every server tells its callers.
const ACCESS: &str = emend_proto::access::v1::access_service_server::SERVICE_NAME;
/// The longest message to reflection and health checks, which anyone may send.
const SHORT: usize = 4 * 1024;

/// Collects services, then serves them.
#[derive(Debug)]
pub struct Server {
    descriptors: &'static [u8],
    routes: Routes,
    names: Vec<&'static str>,
    bounds: Bounds,
    readiness: Readiness,
    metrics: RpcMetrics,
    authentication: Option<(Arc<Authenticator>, Rules)>,
    tls: Option<Arc<TlsServer>>,
    reflection: bool,
    entropy: Entropy,
}

impl Server {
    /// No service yet; `descriptors`, encoded, describe those that will be added. Added services are registered with
    /// `readiness`; request ids are drawn from `entropy`.
    pub fn new(descriptors: &'static [u8], readiness: Readiness, entropy: Entropy) -> Self {
        Self {
            descriptors,
            routes: Routes::default(),
            names: Vec::new(),
            bounds: Bounds::default(),
            readiness,
            metrics: RpcMetrics::default(),
            authentication: None,
            tls: None,
            reflection: true,
            entropy,
        }
    }

    /// Adds a service that is ready while all the checks it `needs` pass (see [`Readiness::set`]).
    #[must_use]
    pub fn add_service<S>(mut self, service: S, needs: &'static [&'static str]) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        self.readiness.register(S::NAME, needs);
        self.names.push(S::NAME);
        self.routes = self.routes.add_service(service);
        self
    }

    /// How much the server takes on at once; default: [`Bounds::default`].
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// Where calls are counted; default: metrics that nobody reads.
    #[must_use]
    pub fn metrics(mut self, metrics: &RpcMetrics) -> Self {
        self.metrics = metrics.clone();
        self
    }

    /// Identifies callers and decides by these rows what they may do; without an authenticator, everyone may do everything.
    #[must_use]
    pub fn authenticator(mut self, authenticator: Option<Arc<Authenticator>>, rules: &[Rule]) -> Self {
        self.authentication = authenticator.map(|authenticator| (authenticator, Rules::of(rules)));
        self
    }

    /// Serves every connection over TLS, from files that the caller keeps up to date (see [`emend_base::reload`]); default:
    /// no TLS.
    #[must_use]
    pub fn tls(mut self, tls: Option<Arc<TlsServer>>) -> Self {
        self.tls = tls;
        self
    }

    /// Whether to answer server reflection; default: yes.
    #[must_use]
    pub fn reflection(mut self, reflection: bool) -> Self {
        self.reflection = reflection;
        self
    }

    /// Starts serving in `lifecycle`, raises the process's open-file limit as far as the system allows, and returns the
    /// address. The soft token closes the listener; the hard token closes every connection still open.
    pub fn serve(self, listener: TcpListener, lifecycle: &Lifecycle) -> io::Result<SocketAddr> {
        Ok(self.serve_inside(listener, lifecycle)?.0)
    }

    /// The same, and also returns a way in for clients in this process. Their traffic never leaves the process, so it
    /// has no TLS and no client certificate.
    pub fn serve_inside(
        self,
        listener: TcpListener,
        lifecycle: &Lifecycle,
    ) -> io::Result<(SocketAddr, Remote)> {
        let address = listener.local_addr()?;
        let health = health::server(self.readiness.clone(), lifecycle.soft().clone());
        let methods = Methods::of(self.descriptors);
        let rules = self.authentication.as_ref().map(|(_, rules)| rules);
        let access = access_service::server(&methods, &self.names, rules);
        let routes = self.routes.add_service(health.max_decoding_message_size(SHORT));
        let routes = routes.add_service(access.max_decoding_message_size(SHORT));
        let routes = if self.reflection {
            // Only what the descriptors describe is listed.
            let is_described = methods.iter().any(|(path, _)| path.starts_with("/emend.access."));
            let described = self.names.iter().copied().chain(is_described.then_some(ACCESS));
            with_reflection(routes, self.descriptors, described)?
        } else {
            routes
        };
        let routes = MapResponse::new(routes.prepare(), refusals::explained as Explain);
        let admission = AdmissionLayer::new(&self.bounds, methods.clone());
        let admitted = admission.layer(DeadlineLayer.layer(routes));
        let traced = TraceLayer::new(self.entropy.clone(), self.metrics.calls(&methods, &self.names));
        let stack = AuthLayer::new(self.authentication, methods.clone())
            .layer(traced.layer(GateLayer.layer(admitted)));
        let serving = Serving {
            stack,
            methods,
            keep_alive: self.bounds.keep_alive,
            age: self.bounds.connection_age,
            entropy: self.entropy,
            request_time: self.bounds.patience.request,
            lifecycle: lifecycle.clone(),
        };
        // Held by whoever accepts, not by those who may connect: services' workers end with the last of what is served.
        let held = Arc::new(serving.clone());
        let inside = Arc::downgrade(&held);
        let inside = Remote::inside(move || match inside.upgrade() {
            Some(serving) => accept_inside(&serving),
            None => Err(io::Error::new(
                io::ErrorKind::ConnectionRefused,
                "the server has stopped",
            )),
        });
        let files = open_files::raised() / SHARE_OF_FILES;
        let wanted = self.bounds.connections;
        // Whoever listens on loopback alone, as `emend demo` does, will hardly have thousands of clients.
        if files < wanted && !address.ip().is_loopback() {
            tracing::warn!(
                wanted,
                connections = files,
                "fewer connections than configured are accepted: the process may not open enough files"
            );
        }
        let limit = ConnectionLimit::of(wanted.min(files), self.metrics.connections().clone());
        let tls = self.tls;
        lifecycle.spawn("accept connections", async move {
            accept(listener, limit, tls, serving).await;
            drop(held);
        });
        Ok((address, inside))
    }
}

/// Both versions, because older clients ask only for v1alpha.
fn with_reflection(
    routes: Routes,
    descriptors: &'static [u8],
    names: impl Iterator<Item = &'static str>,
) -> io::Result<Routes> {
    let sets = [
        descriptors,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        // The types of error details, so that clients can decode them.
        tonic_types::pb::FILE_DESCRIPTOR_SET,
        v1::FILE_DESCRIPTOR_SET,
        v1alpha::FILE_DESCRIPTOR_SET,
    ];
    let services = names.chain(["grpc.health.v1.Health"]).chain(reflection::SERVICES);
    let services = services.map(str::to_owned).collect();
    let reflection = Reflection::of(&sets, services).map_err(io::Error::other)?;
    let alpha = v1alpha::server_reflection_server::ServerReflectionServer::new(reflection.clone());
    let v1 = v1::server_reflection_server::ServerReflectionServer::new(reflection);
    Ok(routes
        .add_service(v1.max_decoding_message_size(SHORT))
        .add_service(alpha.max_decoding_message_size(SHORT)))
}
