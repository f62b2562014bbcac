//! Sessions over an in-memory log, in paused time: each guarantee of the stream has its test, and [`Client`] checks all
//! of them with every message it applies.

mod budget;
mod cursors;
mod guarantees;
mod histories;
mod leaving;
mod pacing;
mod sharing;
mod stale;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake},
    time::Duration,
};

use emend_base::Entropy;
use emend_core::{Caller, Epoch, Namespace, NodeId};
use emend_proto::learning::v1::{self as pb, SnapshotReason};
use emend_serve::{auth::Access, fair_semaphore::ClientKey};
use emend_stream::{Subscription, filter::Filter, opening::Cursor};
use futures::StreamExt as _;
use learning_store::log::testing::{TestLog as _, Written, write};
use tokio::time::Instant;

use crate::stream::{
    Session, Settings, Stream as Replica,
    testing::{Client, MemoryLog, catch_up, covered, model_at, replica},
};

fn everything() -> Filter {
    Filter::new(&[], &[], true)
}

fn only(namespace: &str) -> Filter {
    Filter::new(&[Namespace::parse(namespace).unwrap()], &[], true)
}

/// A subscription of some node.
fn by_node(stream: Subscription) -> crate::stream::Subscription {
    crate::stream::Subscription {
        node_id: NodeId::parse("node").unwrap(),
        caller: Caller::anonymous(),
        info: pb::NodeInfo::default(),
        stream,
    }
}

fn subscription(filter: Filter, cursor: Option<pb::Cursor>) -> Subscription {
    Subscription {
        client: ClientKey::Unknown,
        access: Access::open(),
        filter,
        cursor: cursor.map(|cursor| Cursor {
            epoch: Epoch::parse(&cursor.epoch).unwrap(),
            revision: cursor.revision,
            filter_hash: cursor.filter_hash,
        }),
        bookmark_interval: Duration::from_secs(30),
        max_batch_bytes: 1024 * 1024,
    }
}

/// A client and its stream.
struct Subscriber {
    client: Client,
    session: Session,
}

impl Subscriber {
    async fn open(replica: &Replica, filter: Filter) -> Self {
        Self::resume(replica, filter, Client::new()).await
    }

    /// Opens a stream from the client's cursor.
    async fn resume(replica: &Replica, filter: Filter, mut client: Client) -> Self {
        let cursor = client.reconnect();
        let session = replica
            .subscribe(by_node(subscription(filter, cursor)))
            .await
            .unwrap();
        Self { client, session }
    }

    /// Applies one message, if there is one.
    fn read_one(&mut self) -> bool {
        let waker = Arc::new(Count::default()).into();
        let mut cx = Context::from_waker(&waker);
        match self.session.poll_next_unpin(&mut cx) {
            Poll::Ready(Some(message)) => {
                self.client.apply(&message.unwrap());
                true
            }
            Poll::Ready(None) | Poll::Pending => false,
        }
    }

    /// Applies every message there is.
    fn read(&mut self) {
        while self.read_one() {}
    }

    fn held(&self) -> usize {
        self.client.held.len()
    }
}

/// Counts wake-ups.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A log with this many resources, and a replica at its head.
async fn with_resources(count: usize) -> (MemoryLog, Replica) {
    let log = MemoryLog::default();
    let replica = replica(&log, Settings::default()).await;
    if count > 0 {
        let changes: Vec<_> = (0..count).map(|n| write(&format!("k{n}"), Some("v"))).collect();
        commit(&log, &replica, &changes).await;
    }
    (log, replica)
}

async fn commit(log: &MemoryLog, replica: &Replica, changes: &[Written]) {
    log.append(changes).await;
    catch_up(replica).await;
}
