//! The search as a service and as a page, until its lifecycle ends.

use std::{io, net::SocketAddr, sync::Arc};

use emend_client::Lifecycle;
use emend_client::proto::search::v1::search_service_server::SearchServiceServer;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;

use crate::{backend::Backend, grpc::Service, page};

/// Where it is reached.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    /// `SearchService`.
    pub grpc: SocketAddr,
    /// The page.
    pub http: SocketAddr,
}

/// Serves on these addresses; port 0 takes a free one. `ratings` is where feedback-svc takes ratings over HTTP; empty: nowhere.
/// Returns once connections are accepted.
pub async fn serve(
    backend: Arc<Backend>,
    at: Addresses,
    ratings: &str,
    lifecycle: &Lifecycle,
) -> io::Result<Addresses> {
    let grpc = TcpListener::bind(at.grpc).await?;
    let http = TcpListener::bind(at.http).await?;
    let addresses = Addresses {
        grpc: grpc.local_addr()?,
        http: http.local_addr()?,
    };
    // Without it an answer may wait for the caller's acknowledgement of the part before it.
    let incoming = TcpIncoming::from(grpc).with_nodelay(Some(true));
    let service = SearchServiceServer::new(Service(Arc::clone(&backend)));
    let stop = lifecycle.soft().clone();
    lifecycle.spawn_fallible("search service", async move {
        let server = tonic::transport::Server::builder().add_service(service);
        server
            .serve_with_incoming_shutdown(incoming, stop.cancelled_owned())
            .await
    });
    let stop = lifecycle.soft().clone();
    let routes = page::routes(backend, ratings);
    lifecycle.spawn_fallible("page", async move {
        axum::serve(http, routes)
            .with_graceful_shutdown(stop.cancelled_owned())
            .await
    });
    Ok(addresses)
}
