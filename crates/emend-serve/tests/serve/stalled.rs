//! Calls that their clients leave unfinished or unread.

use std::time::Duration;

use emend_base::telemetry::metrics::Metrics;
use emend_serve::{
    Server,
    metrics::ServerMetrics,
    server::bounds::{Bounds, ClientTimeouts},
};
use futures::stream;
use tokio::time::timeout;
use tonic::{Code, Request, client::Grpc, codegen::http::uri::PathAndQuery, transport::Channel};
use tonic_prost::ProstCodec;

use crate::{
    harness::{Running, SOON},
    library::{LIST, Text, call},
};

fn impatient(server: Server) -> Server {
    server.bounds(Bounds {
        calls: 4,
        patience: ClientTimeouts {
            request: Duration::from_millis(300),
            response: Duration::from_millis(300),
        },
        ..Bounds::default()
    })
}

#[tokio::test]
async fn calls_that_are_never_finished_release_their_permits() {
    let server = Running::with(impatient).await;
    let channel = server.channel().await;
    let stalled: Vec<_> = (0..8)
        .map(|_| {
            let mut grpc = Grpc::new(channel.clone());
            tokio::spawn(async move {
                grpc.ready().await.unwrap();
                let path = PathAndQuery::from_static(LIST);
                let codec = ProstCodec::<Text, Text>::default();
                let request = Request::new(stream::pending::<Text>());
                let answer = grpc.streaming(request, path, codec).await?;
                answer.into_inner().message().await.map(drop)
            })
        })
        .collect();
    let mut codes = Vec::new();
    for stalled in stalled {
        codes.push(timeout(SOON, stalled).await.unwrap().unwrap().unwrap_err().code());
    }
    codes.sort_by_key(|code| i32::from(*code));
    let refused = codes.partition_point(|code| *code == Code::ResourceExhausted);
    // One of the four permits is reserved for other clients.
    assert!(codes.len() - refused >= 3, "{codes:?}");
    assert!(
        codes[refused..].iter().all(|code| *code == Code::Aborted),
        "{codes:?}"
    );
    assert!(call(channel, LIST, Text::from("all")).await.is_ok());
    server.lifecycle.shutdown(SOON).await;
}

#[tokio::test]
async fn responses_that_are_never_read_release_their_permits() {
    let metrics = Metrics::new();
    let server = Running::with(|server| impatient(server).metrics(ServerMetrics::of(&metrics).rpc())).await;
    let narrow = Channel::from_shared(format!("http://{}", server.address))
        .unwrap()
        .initial_stream_window_size(32 * 1024)
        .connect()
        .await
        .unwrap();
    let mut grpc = Grpc::new(narrow);
    let mut unread = Vec::new();
    for _ in 0..3 {
        grpc.ready().await.unwrap();
        let path = PathAndQuery::from_static(LIST);
        let codec = ProstCodec::<Text, Text>::default();
        let request = Request::new(stream::iter([Text::from("all")]));
        unread.push(grpc.streaming(request, path, codec).await.unwrap().into_inner());
    }
    // Another connection from the same address: one of the four permits is reserved for other clients.
    let other = server.channel().await;
    let answered = async {
        while call(other.clone(), LIST, Text::from("all")).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, answered).await.unwrap();
    // Read only once they are abandoned: a client that reads in time still gets its response.
    let given_up = async {
        let all = "grpc_method=\"List\",grpc_code=\"Canceled\"} 3\n";
        while !metrics.render().contains(all) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, given_up).await.unwrap();
    // The clients were told, and their queued responses are gone.
    for mut unread in unread {
        let ended = unread.message().await.map(drop).unwrap_err();
        assert_eq!(ended.code(), Code::Cancelled);
    }
    server.lifecycle.shutdown(SOON).await;
}
