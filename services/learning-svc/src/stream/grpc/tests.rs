//! The service over real connections, as generated clients see it.

use std::{sync::Arc, time::Duration};

use emend_base::{Entropy, Lifecycle, ManualClock, status::Explained};
use emend_core::{Epoch, InstallationId};
use emend_proto::{
    common::v1 as common,
    learning::v1::{subscribe_response::Message, subscription_service_client::SubscriptionServiceClient},
};
use emend_serve::{Server, health::Readiness};
use learning_store::log::{
    LogStore as _,
    testing::{TestLog as _, write},
};
use tokio::{net::TcpListener, time::timeout};
use tonic::{Code, codec::CompressionEncoding, transport::Channel};

use crate::stream::{Settings, Wake, grpc::*, testing::MemoryLog};

const SOON: Duration = Duration::from_secs(20);

struct Running {
    log: MemoryLog,
    stream: Stream,
    lifecycle: Lifecycle,
    client: SubscriptionServiceClient<Channel>,
}

async fn run() -> Running {
    let (log, lifecycle) = (MemoryLog::default(), Lifecycle::new());
    let (epoch, installation) = (
        Epoch(uuid::Uuid::from_u128(1)),
        InstallationId(uuid::Uuid::from_u128(2)),
    );
    log.create_head(epoch, installation).await.unwrap();
    let stream = Stream::start(
        Arc::new(log.clone()),
        Wake::local(),
        Settings::default(),
        ManualClock::default().shared(),
        Entropy::seeded(1),
        &lifecycle,
    );
    stream.readiness().wait_for(|ready| *ready).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Server::new(emend_proto::DESCRIPTOR_SET, Readiness::new(), Entropy::seeded(2))
        .add_service(SubscriptionServer::new(stream.clone()), &[])
        .serve(listener, &lifecycle)
        .unwrap();
    let client = SubscriptionServiceClient::connect(format!("http://{address}"))
        .await
        .unwrap();
    Running {
        log,
        stream,
        lifecycle,
        client,
    }
}

fn request(node: &str) -> pb::SubscribeRequest {
    pb::SubscribeRequest {
        node: Some(pb::NodeInfo {
            id: node.into(),
            ..Default::default()
        }),
        ..Default::default()
    }
}

async fn next(messages: &mut Streaming<pb::SubscribeResponse>) -> Option<Message> {
    let message = timeout(SOON, messages.message()).await.expect("soon").unwrap();
    message.map(|message| message.message.expect("a message"))
}

fn violated(status: &Status) -> Vec<String> {
    assert_eq!(status.code(), Code::InvalidArgument);
    let violations = Explained::from(status).field_violations;
    violations.into_iter().map(|violation| violation.field).collect()
}

#[tokio::test]
async fn a_generated_client_follows_the_stream_to_its_end() {
    let Running {
        log,
        stream,
        lifecycle,
        mut client,
    } = run().await;
    log.append(&[write("k", Some(""))]).await;
    stream.wake();
    stream.wait_for(1, None).await.unwrap();
    let mut messages = client.subscribe(request("n")).await.unwrap().into_inner();
    let Some(Message::SnapshotBegin(begin)) = next(&mut messages).await else {
        panic!()
    };
    assert_eq!((begin.revision, begin.resource_count), (1, 1));
    let Some(Message::SnapshotChunk(chunk)) = next(&mut messages).await else {
        panic!()
    };
    assert_eq!(chunk.resources[0].key.as_ref().unwrap().key, "k");
    assert!(matches!(next(&mut messages).await, Some(Message::SnapshotEnd(_))));

    log.append(&[write("k", None)]).await;
    stream.wake();
    let Some(Message::Update(update)) = next(&mut messages).await else {
        panic!()
    };
    assert!(update.last && update.changes.len() == 1);

    let ending = tokio::spawn(async move { lifecycle.shutdown(SOON).await });
    assert!(matches!(next(&mut messages).await, Some(Message::Bookmark(_))));
    let Some(Message::Drain(drain)) = next(&mut messages).await else {
        panic!()
    };
    assert_eq!(drain.reason, "SHUTDOWN");
    assert_eq!(next(&mut messages).await, None);
    drop((messages, client));
    ending.await.unwrap();
}

#[tokio::test]
async fn a_client_that_takes_zstd_gets_the_same_messages() {
    let Running {
        log, stream, client, ..
    } = run().await;
    let written: Vec<_> = (0..500).map(|n| write(&format!("key {n}"), Some(""))).collect();
    log.append(&written).await;
    stream.wake();
    stream.wait_for(1, None).await.unwrap();

    let mut received = Vec::new();
    for (mut client, encoding) in [
        (client.clone(), None),
        (client.clone().accept_compressed(CompressionEncoding::Gzip), None),
        (client.accept_compressed(CompressionEncoding::Zstd), Some("zstd")),
    ] {
        let response = client.subscribe(request("n")).await.unwrap();
        let stated = response.metadata().get(ENCODING);
        assert_eq!(stated.map(|encoding| encoding.to_str().unwrap()), encoding);
        let mut messages = response.into_inner();
        received.push([
            next(&mut messages).await,
            next(&mut messages).await,
            next(&mut messages).await,
        ]);
    }
    let [_, Some(Message::SnapshotChunk(chunk)), _] = &received[0] else {
        panic!()
    };
    assert_eq!(chunk.resources.len(), 500);
    assert_eq!(received[0], received[1]);
    assert_eq!(received[0], received[2]);
}

#[tokio::test]
async fn a_bad_subscription_names_every_violated_field() {
    let Running { mut client, .. } = run().await;
    let bad = pb::SubscribeRequest {
        node: Some(pb::NodeInfo {
            id: "not ok".into(),
            version: "v".repeat(65),
            zone: "\u{7}".into(),
            labels: [(String::new(), "x".repeat(129))].into(),
            transient: false,
        }),
        namespaces: vec!["ok".into(), "Not OK".into()],
        kinds: vec![1, 99, 0, -1],
        include_user_scoped: false,
        cursor: Some(pb::Cursor {
            epoch: "x".into(),
            revision: -1,
            filter_hash: 0,
        }),
        bookmark_interval: Some(prost_types::Duration { seconds: 0, nanos: 5 }),
        max_batch_bytes: 17,
    };
    let status = client.subscribe(bad).await.unwrap_err();
    assert_eq!(
        violated(&status),
        [
            "node.id",
            "node.version",
            "node.zone",
            "node.labels[\"\"]",
            "node.labels[\"\"]",
            "namespaces[1]",
            "kinds[1]",
            "kinds[2]",
            "kinds[3]",
            "cursor.epoch",
            "cursor.revision",
            "bookmark_interval",
            "max_batch_bytes"
        ]
    );
    let nothing = client
        .subscribe(pb::SubscribeRequest::default())
        .await
        .unwrap_err();
    assert_eq!(violated(&nothing), ["node.id"]);
    let many = pb::SubscribeRequest {
        namespaces: vec!["a".into(); 1_001],
        kinds: vec![1; 65],
        ..request("n")
    };
    assert_eq!(
        violated(&client.subscribe(many).await.unwrap_err()),
        ["namespaces", "kinds"]
    );
}

#[tokio::test]
async fn a_bad_report_and_a_bad_list_name_every_violated_field() {
    let Running { mut client, .. } = run().await;
    let bad = pb::ReportStatusRequest {
        node_id: String::new(),
        applied: Some(pb::Cursor::default()),
        rejected: vec![pb::RejectedResource {
            key: Some(common::ResourceKey {
                kind: 99,
                ..Default::default()
            }),
            revision: -1,
            error: "e".repeat(513),
        }],
        rejected_count: 0,
        delays: Some(pb::DelayHistogram {
            bounds_ms: vec![5, 5],
            counts: vec![1],
            sum_ms: -1,
        }),
        problem: "not upper".into(),
        effect_delays: Some(pb::DelayHistogram {
            bounds_ms: vec![5],
            counts: vec![1],
            sum_ms: 0,
        }),
        effect_traces: vec![pb::EffectTrace {
            delay_ms: -1,
            trace_id: "4BF92F3577B34DA6A3CE929D0E0E4736".into(),
        }],
    };
    assert_eq!(
        violated(&client.report_status(bad).await.unwrap_err()),
        [
            "node_id",
            "applied.epoch",
            "rejected[0].key.namespace",
            "rejected[0].key.key",
            "rejected[0].revision",
            "rejected[0].error",
            "rejected_count",
            "delays.bounds_ms",
            "delays.counts",
            "delays.sum_ms",
            "effect_delays.counts",
            "effect_traces[0].delay_ms",
            "effect_traces[0].trace_id",
            "problem"
        ]
    );
    let bad = pb::ListNodesRequest {
        page_size: -1,
        page_token: "?".into(),
        seen_within: Some(prost_types::Duration {
            seconds: -1,
            nanos: 0,
        }),
        ..pb::ListNodesRequest::default()
    };
    assert_eq!(
        violated(&client.list_nodes(bad).await.unwrap_err()),
        ["page_size", "page_token", "seen_within"]
    );
}

#[tokio::test]
async fn nodes_report_and_are_listed() {
    let Running { mut client, .. } = run().await;
    let mut messages = client.subscribe(request("n")).await.unwrap().into_inner();
    assert!(next(&mut messages).await.is_some());
    let report = |node: &str| pb::ReportStatusRequest {
        node_id: node.into(),
        ..Default::default()
    };
    client.report_status(report("n")).await.unwrap();
    let unknown = client.report_status(report("other")).await.unwrap_err();
    assert_eq!(unknown.code(), Code::PermissionDenied);
    let listed = timeout(SOON, async {
        loop {
            let answer = client.list_nodes(pb::ListNodesRequest::default()).await.unwrap();
            if let Some(node) = answer.into_inner().nodes.pop() {
                return node;
            }
            tokio::task::yield_now().await;
        }
    });
    let node = listed.await.unwrap();
    assert_eq!((node.info.unwrap().id.as_str(), node.connected), ("n", true));
    assert_eq!(node.caller, "anonymous");
}

#[tokio::test]
async fn a_request_without_a_message_or_too_large_is_refused() {
    let Running { mut client, .. } = run().await;
    let large = pb::SubscribeRequest {
        namespaces: vec!["a".repeat(1_000); 1_000],
        ..request("n")
    };
    assert_eq!(
        client.subscribe(large).await.unwrap_err().code(),
        Code::OutOfRange
    );
}
