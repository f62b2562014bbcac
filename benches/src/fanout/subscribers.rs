//! All subscribers in one process, each with its own connection. They count the updates they receive.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context as _, Result};
use emend_proto::learning::v1::{
    NodeInfo, SubscribeRequest, SubscribeResponse, subscribe_response::Message,
    subscription_service_client::SubscriptionServiceClient,
};
use futures::{StreamExt as _, TryStreamExt as _};
use tokio::task::JoinSet;
use tonic::{Streaming, transport::Channel};

use super::{NAMESPACE, process::tell};

/// How many connect at once.
const CONNECTING: usize = 16;

pub(super) async fn run(server: SocketAddr, count: usize) -> Result<()> {
    let streams: Vec<_> = futures::stream::iter(0..count)
        .map(|number| subscribe(server, number))
        .buffer_unordered(CONNECTING)
        .try_collect()
        .await?;
    let counted = Arc::new(AtomicU64::new(0));
    let mut reading = JoinSet::new();
    for (stream, client) in streams {
        reading.spawn(read(stream, client, Arc::clone(&counted)));
    }
    tell("connected");
    tokio::task::block_in_place(|| {
        for _question in std::io::stdin().lines() {
            tell(&counted.load(Ordering::Relaxed).to_string());
        }
    });
    Ok(())
}

type Client = SubscriptionServiceClient<Channel>;

/// Subscribes and reads until it is current.
async fn subscribe(server: SocketAddr, number: usize) -> Result<(Streaming<SubscribeResponse>, Client)> {
    let channel = Channel::from_shared(format!("http://{server}"))?
        .connect()
        .await?;
    let mut client = SubscriptionServiceClient::new(channel);
    let request = SubscribeRequest {
        node: Some(NodeInfo {
            id: format!("node-{number}"),
            ..Default::default()
        }),
        namespaces: vec![NAMESPACE.into()],
        ..Default::default()
    };
    let mut stream = client.subscribe(request).await?.into_inner();
    loop {
        let message = stream.message().await?.context("the stream ended")?;
        if matches!(message.message, Some(Message::SnapshotEnd(_))) {
            return Ok((stream, client));
        }
    }
}

async fn read(mut stream: Streaming<SubscribeResponse>, client: Client, counted: Arc<AtomicU64>) {
    while let Ok(Some(message)) = stream.message().await {
        if matches!(message.message, Some(Message::Update(_))) {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    }
    // The connection lives as long as its client.
    drop(client);
}
