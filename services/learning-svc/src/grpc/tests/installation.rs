//! Of which installation a service is: what it begins with, whose events it takes, and what it tells nodes.

use emend_base::{Environment, Lifecycle, status::Explained};
use emend_proto::learning::v1::{
    self as pb, subscribe_response::Message, subscription_service_client::SubscriptionServiceClient,
};
use tokio::net::TcpListener;
use tonic::{Code, Status};

use super::served::{Database, Served};
use crate::{Config, start};

const OTHER: &str = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10";

async fn started(database: &Database, init: bool) -> anyhow::Result<crate::Handle> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = Config::new(database.url());
    config.init = init;
    start(config, listener, Environment::system(&Lifecycle::new())).await
}

#[tokio::test]
async fn an_empty_postgresql_database_begins_an_installation_only_with_init() {
    let Some(database) = Database::postgres().await else {
        return;
    };
    let refused = started(&database, false).await.unwrap_err().to_string();
    assert!(
        ["is empty", "--init", "--accept-new-installation"]
            .iter()
            .all(|said| refused.contains(said)),
        "{refused}"
    );
    let first = started(&database, true).await.unwrap();
    for init in [false, true] {
        let again = started(&database, init).await.unwrap();
        assert_eq!(
            again.installation(),
            first.installation(),
            "once minted, it stays"
        );
    }
}

/// The answer to one batch meant for `installation_id`.
async fn deliver(served: &Served, installation_id: &str) -> Result<pb::IngestResponse, Status> {
    let batch = pb::IngestRequest {
        events: vec![pb::Event::default()],
        installation_id: installation_id.to_owned(),
    };
    let mut answers = served
        .ingest()
        .ingest(futures::stream::iter([batch]))
        .await?
        .into_inner();
    Ok(answers.message().await?.expect("one answer to one batch"))
}

#[tokio::test]
async fn a_batch_meant_for_another_installation_is_refused() {
    let served = Served::on(&Database::sqlite()).await;
    let own = served.handle.installation().to_string();
    for meant in ["", &own] {
        let answer = deliver(&served, meant).await.unwrap();
        assert_eq!((answer.results.len(), &answer.installation_id), (1, &own));
    }
    let refused = deliver(&served, OTHER).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    let explained = Explained::from(refused);
    assert_eq!(explained.reason.as_deref(), Some("INSTALLATION_MISMATCH"));
    assert!(
        explained.message.contains(&own),
        "it tells its own: {explained:?}"
    );
    assert_eq!(
        deliver(&served, "x").await.unwrap_err().code(),
        Code::InvalidArgument
    );
    served.stop().await;
}

#[tokio::test]
async fn a_snapshot_and_a_resumed_stream_name_the_installation() {
    let served = Served::on(&Database::sqlite()).await;
    let own = served.handle.installation().to_string();
    let mut client = SubscriptionServiceClient::new(served.channel.clone());
    let mut cursor = None;
    for resumes in [false, true] {
        let request = pb::SubscribeRequest {
            node: Some(pb::NodeInfo {
                id: "search-1".to_owned(),
                ..pb::NodeInfo::default()
            }),
            namespaces: vec!["fund-admin".to_owned()],
            cursor: cursor.take(),
            ..pb::SubscribeRequest::default()
        };
        let mut stream = client.subscribe(request).await.unwrap().into_inner();
        match stream.message().await.unwrap().unwrap().message.unwrap() {
            Message::SnapshotBegin(begin) if !resumes => assert_eq!(begin.installation_id, own),
            Message::Resumed(resumed) if resumes => assert_eq!(resumed.installation_id, own),
            other => panic!("{other:?}"),
        }
        while !resumes && cursor.is_none() {
            if let Some(Message::SnapshotEnd(end)) = stream.message().await.unwrap().unwrap().message {
                cursor = end.cursor;
            }
        }
    }
    served.stop().await;
}
