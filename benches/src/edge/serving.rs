//! The processes of this benchmark that serve: each prints where, once it does.

use std::{collections::HashMap, net::SocketAddr, ops::Range, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use axum::{
    Router,
    extract::{RawQuery, State},
    routing::get,
};
use emend_base::{Environment, Lifecycle};
use emend_binding::{ConnectionSettings, NodeSettings};
use emend_edge::{Config, Listen};
use emend_proto::{
    common::v1::{Correction, PhraseMapping, correction},
    learning::v1::{
        ImportAs, ImportHeader, ImportMode, ImportResourcesRequest, ImportRow, ImportRows,
        import_resources_request::Message, resource_service_client::ResourceServiceClient,
    },
};
use emend_serve::plain_http::{self, Bounds};
use emend_store::DatabaseUrl;
use serde_json::json;
use tokio::net::TcpListener;

use super::phrase;

const NAMESPACE: &str = "bench";
/// Rows of one message.
const ROWS: usize = 1_000;
/// Rows of one import: more new keys need more memory than a service allows an import.
const OF_IMPORT: usize = 200_000;

fn verb(number: usize) -> String {
    format!("create_{}", number % 5_000)
}

/// learning-svc with these phrases, stored in a directory.
pub(super) async fn service(phrases: usize, directory: &Path) -> Result<()> {
    let config = learning_svc::Config::new(DatabaseUrl::sqlite(directory.join("learning.db")));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let environment = Environment::system(&Lifecycle::new());
    let service = learning_svc::start(config, listener, environment).await?;
    service.ready().await;
    let address = service.address();
    let mut client = ResourceServiceClient::connect(format!("http://{address}")).await?;
    for first in (0..phrases).step_by(OF_IMPORT) {
        let numbers = first..phrases.min(first + OF_IMPORT);
        client
            .import_resources(tokio_stream::iter(import(numbers)))
            .await?;
    }
    println!("{address}");
    std::future::pending().await
}

/// The messages of an import of the phrases of these numbers.
fn import(numbers: Range<usize>) -> impl Iterator<Item = ImportResourcesRequest> {
    let header = ImportHeader {
        namespace: NAMESPACE.into(),
        mode: ImportMode::AllOrNothing.into(),
        import_as: ImportAs::Decision.into(),
        reason: "a benchmark".into(),
        ..ImportHeader::default()
    };
    let begin = numbers.start;
    let row = move |number: usize| ImportRow {
        line: i64::try_from(number - begin).unwrap_or(i64::MAX - 1) + 1,
        correction: Some(Correction {
            correction: Some(correction::Correction::PhraseMapping(PhraseMapping {
                phrase: phrase(number),
                verb: verb(number),
            })),
        }),
        ..ImportRow::default()
    };
    let starts = numbers.clone().step_by(ROWS);
    let rows = starts.map(move |start| ImportResourcesRequest {
        message: Some(Message::Rows(ImportRows {
            rows: (start..numbers.end.min(start + ROWS)).map(row).collect(),
        })),
    });
    let header = ImportResourcesRequest {
        message: Some(Message::Header(header)),
    };
    std::iter::once(header).chain(rows)
}

/// An edge that follows the service.
pub(super) async fn edge(service: SocketAddr) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let socket = directory.path().join("edge.sock");
    let config = Config {
        listen: vec!["127.0.0.1:0".parse()?, Listen::Unix(socket.clone())],
        node: NodeSettings {
            id: "edge".into(),
            namespaces: vec![NAMESPACE.into()],
            connection: ConnectionSettings {
                addresses: vec![service.to_string()],
                ..ConnectionSettings::default()
            },
            ..NodeSettings::default()
        },
        ..Config::default()
    };
    let lifecycle = Lifecycle::new();
    let edge = emend_edge::start(config, &lifecycle).await?;
    edge.node().wait_ready(Duration::from_mins(5)).await?;
    let address = edge.addresses().first().context("an address")?;
    println!("{address} {}", socket.display());
    std::future::pending().await
}

/// The obvious implementation: what is asked is looked up in a hash map as it stands.
pub(super) async fn peer(phrases: usize) -> Result<()> {
    let known: HashMap<String, String> = (0..phrases)
        .map(|number| (phrase(number), verb(number)))
        .collect();
    let routes = Router::new()
        .route("/v1/bench/resolve", get(answer))
        .with_state(Arc::new(known));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let bounds = Bounds {
        served: Duration::from_hours(1),
        ..Bounds::default()
    };
    plain_http::accept(listener, routes, bounds, Lifecycle::new()).await;
    Ok(())
}

async fn answer(
    State(known): State<Arc<HashMap<String, String>>>,
    RawQuery(query): RawQuery,
) -> ([(&'static str, &'static str); 1], String) {
    let query = query.unwrap_or_default();
    let asked = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "phrase");
    let choice = asked.and_then(|(_, phrase)| known.get(&*phrase));
    let answer = json!({"revision": 1, "choice": choice}).to_string();
    ([("content-type", "application/json")], answer)
}
