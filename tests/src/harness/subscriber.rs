//! A subscriber that trusts nothing: it keeps what the stream sends and checks every guarantee that a single subscriber
//! can observe. Any breach fails the test.

use std::collections::{BTreeMap, BTreeSet};

use emend_core::digest::{Digest as Sum, value_checksum};
use emend_proto::{
    common::v1::ResourceKind,
    frame::Frame,
    learning::{
        encoded::subscription_service_client::SubscriptionServiceClient,
        v1::{Cursor, Digest, NodeInfo, SnapshotReason, SubscribeRequest},
    },
    wire::{Change, ChangeKind, Message, Resource, SubscribeResponse, Update},
};
use prost::Message as _;
use tonic::{Status, Streaming, transport::Channel};

use super::{
    held::{Group, Held, Key, group, sum, sums_of},
    wait::within,
};

/// One complete event of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEvent {
    /// The cursor was accepted.
    Resumed,
    /// Everything held was replaced.
    Snapshot {
        /// Why.
        reason: SnapshotReason,
        /// The revision that it shows.
        revision: i64,
    },
    /// Some keys changed.
    Update {
        /// The revision before it.
        from: i64,
        /// The revision after it.
        to: i64,
        /// Each key, with the revision that last changed it and whether it was put (true) or deleted.
        changes: Vec<(i64, Key, bool)>,
    },
    /// No change at or below this revision is still to come.
    Bookmark(i64),
    /// The server ends the stream, for this reason.
    Drain(String),
    /// The stream ended without an error.
    End,
}

/// A subscriber with one filter. It keeps its state between connections.
#[derive(Debug)]
pub struct Subscriber {
    request: SubscribeRequest,
    held: BTreeMap<Key, Held>,
    cursor: Option<Cursor>,
    stream: Option<Streaming<Frame>>,
    /// Everything heard, over all connections.
    pub heard: Vec<StreamEvent>,
}

impl Subscriber {
    /// Subscribes to everything that is not user-scoped.
    pub fn new(node_id: &str) -> Self {
        Self::of(SubscribeRequest {
            node: Some(NodeInfo {
                id: node_id.into(),
                ..NodeInfo::default()
            }),
            // As often as the contract allows: if nothing matches the filter, only a bookmark advances the cursor.
            bookmark_interval: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
            ..SubscribeRequest::default()
        })
    }

    /// Subscribes to everything, user-scoped resources included.
    pub fn of_everything(node_id: &str) -> Self {
        let mut subscriber = Self::new(node_id);
        subscriber.request.include_user_scoped = true;
        subscriber
    }

    /// Subscribes as the request says, except for its cursor, which is ignored.
    pub fn of(request: SubscribeRequest) -> Self {
        Self {
            request,
            held: BTreeMap::new(),
            cursor: None,
            stream: None,
            heard: Vec::new(),
        }
    }

    /// What it asks for.
    pub fn request(&self) -> &SubscribeRequest {
        &self.request
    }

    /// Takes over another subscriber's cursor, without what that one holds.
    pub fn resume_from(&mut self, cursor: Cursor) {
        self.cursor = Some(cursor);
    }

    /// What it holds.
    pub fn held(&self) -> &BTreeMap<Key, Held> {
        &self.held
    }

    /// How far it has applied.
    ///
    /// # Panics
    /// If the stream has never sent a cursor.
    pub fn cursor(&self) -> &Cursor {
        self.cursor.as_ref().expect("the stream gave a cursor")
    }

    /// Alters its cursor, to claim a position that it has not reached.
    pub fn forge_cursor(&mut self, change: impl FnOnce(&mut Cursor)) {
        change(self.cursor.as_mut().expect("the stream gave a cursor"));
    }

    /// Changes the request for its next connection.
    pub fn ask(&mut self, change: impl FnOnce(&mut SubscribeRequest)) {
        change(&mut self.request);
    }

    /// Connects from its cursor. The server may send nothing until it has caught up with the cursor.
    pub async fn connect(&mut self, channel: &Channel) -> Result<(), Status> {
        let request = SubscribeRequest {
            cursor: self.cursor.clone(),
            ..self.request.clone()
        };
        let mut client = SubscriptionServiceClient::new(channel.clone());
        let answer = within("a stream opens", client.subscribe(request)).await?;
        self.stream = Some(answer.into_inner());
        Ok(())
    }

    /// Disconnects without notice.
    pub fn disconnect(&mut self) {
        self.stream = None;
    }

    /// Connects and answers with the first event.
    ///
    /// # Panics
    /// If the stream is refused.
    pub async fn begin(&mut self, channel: &Channel) -> StreamEvent {
        self.connect(channel).await.expect("a stream");
        self.next().await
    }

    /// Listens until it has applied `revision`.
    ///
    /// # Panics
    /// If the stream ends first.
    pub async fn until(&mut self, revision: i64) {
        while self
            .cursor
            .as_ref()
            .is_none_or(|cursor| cursor.revision < revision)
        {
            let heard = self.next().await;
            assert!(
                !matches!(heard, StreamEvent::End),
                "the stream ended before {revision}"
            );
        }
    }

    /// Listens until `found` returns something.
    ///
    /// # Panics
    /// If the stream ends first.
    pub async fn until_heard<T>(&mut self, found: impl Fn(&StreamEvent) -> Option<T>) -> T {
        loop {
            let heard = self.next().await;
            if let Some(found) = found(&heard) {
                return found;
            }
            assert!(
                !matches!(heard, StreamEvent::End),
                "the stream ended before: {:?}",
                self.heard
            );
        }
    }

    /// The next event of the stream, complete and applied.
    ///
    /// # Panics
    /// If a guarantee is broken, or the stream ends with an error.
    pub async fn next(&mut self) -> StreamEvent {
        self.try_next()
            .await
            .unwrap_or_else(|status| panic!("the stream broke: {status}"))
    }

    /// Like [`Subscriber::next`], for streams that may break.
    pub async fn try_next(&mut self) -> Result<StreamEvent, Status> {
        let heard = self.listen().await?;
        self.heard.push(heard.clone());
        Ok(heard)
    }

    async fn listen(&mut self) -> Result<StreamEvent, Status> {
        let heard = match self.message().await? {
            None => StreamEvent::End,
            Some(Message::Resumed(resumed)) => {
                assert_eq!(
                    resumed.cursor, self.cursor,
                    "a resumption confirms the cursor as sent"
                );
                StreamEvent::Resumed
            }
            Some(Message::SnapshotBegin(begin)) => {
                let mut resources = Vec::new();
                let end = loop {
                    match self.message().await? {
                        Some(Message::SnapshotChunk(chunk)) => resources.extend(chunk.into_resources()),
                        Some(Message::SnapshotEnd(end)) => break end,
                        Some(other) => panic!("within a snapshot: {other:?}"),
                        None => return Ok(StreamEvent::End),
                    }
                };
                assert_eq!(
                    i64::try_from(resources.len()),
                    Ok(begin.resource_count),
                    "as many as announced"
                );
                self.replace(resources);
                let cursor = end.cursor.expect("a snapshot ends with a cursor");
                assert_eq!(cursor.revision, begin.revision);
                self.cursor = Some(cursor);
                self.verify_all(&end.digests);
                StreamEvent::Snapshot {
                    reason: begin.reason(),
                    revision: begin.revision,
                }
            }
            Some(Message::SnapshotChunk(_) | Message::SnapshotEnd(_)) => {
                panic!("a part of a snapshot that never began")
            }
            Some(Message::Update(first)) => {
                let Some(update) = self.whole(first).await? else {
                    return Ok(StreamEvent::End);
                };
                self.apply(update)
            }
            Some(Message::Bookmark(bookmark)) => {
                let cursor = bookmark.cursor.expect("a bookmark has a cursor");
                assert!(
                    cursor.revision >= self.cursor().revision,
                    "a bookmark never goes back"
                );
                assert_eq!(
                    (&cursor.epoch, cursor.filter_hash),
                    (&self.cursor().epoch, self.cursor().filter_hash)
                );
                assert!(bookmark.server_time.is_some(), "a bookmark tells the time");
                assert!(bookmark.age.is_some(), "a bookmark tells its age");
                self.cursor = Some(cursor);
                self.verify_all(&bookmark.digests);
                StreamEvent::Bookmark(self.cursor().revision)
            }
            Some(Message::Drain(drain)) => {
                assert!(
                    drain.reconnect_after.is_some(),
                    "a farewell says when to come back"
                );
                StreamEvent::Drain(drain.reason)
            }
        };
        Ok(heard)
    }

    /// The next message, skipping those of kinds that this client does not know.
    async fn message(&mut self) -> Result<Option<Message>, Status> {
        let stream = self.stream.as_mut().expect("connected");
        loop {
            let Some(Frame(bytes)) = within("the stream tells something", stream.message()).await? else {
                return Ok(None);
            };
            let response = SubscribeResponse::decode(bytes).expect("a message of the stream");
            if response.message.is_some() {
                return Ok(response.message);
            }
        }
    }

    /// Collects all parts of an update.
    async fn whole(&mut self, mut update: Update) -> Result<Option<Update>, Status> {
        while !update.last {
            assert!(
                update.cursor.is_none() && update.digests.is_empty(),
                "only the last part can be resumed from"
            );
            match self.message().await? {
                Some(Message::Update(next)) => {
                    assert_eq!(
                        (next.from_revision, next.to_revision),
                        (update.from_revision, update.to_revision),
                        "parts of one update"
                    );
                    let mut changes = update.changes;
                    changes.extend(next.changes);
                    update = Update { changes, ..next };
                }
                Some(other) => panic!("within an update: {other:?}"),
                None => return Ok(None),
            }
        }
        Ok(Some(update))
    }

    fn apply(&mut self, update: Update) -> StreamEvent {
        let before = self.cursor().clone();
        let (from, to) = (update.from_revision, update.to_revision);
        assert_eq!(
            from, before.revision,
            "an update goes on where the subscriber stands"
        );
        assert!(to > from, "an update leads on: {from} to {to}");
        let cursor = update.cursor.expect("the last part has a cursor");
        assert_eq!(cursor.revision, to);
        assert_eq!(
            (&cursor.epoch, cursor.filter_hash),
            (&before.epoch, before.filter_hash)
        );
        let mut changes: Vec<(i64, Key, bool)> = Vec::with_capacity(update.changes.len());
        for Change {
            revision,
            change,
            cause,
            committed_at,
            ..
        } in update.changes
        {
            assert!(
                from < revision && revision <= to,
                "{revision} is in ({from}, {to}]"
            );
            assert!(
                cause != 0 && committed_at.is_some(),
                "a change says why and when: {change:?}"
            );
            let (key, is_put) = match change.expect("a change is a put or a deletion") {
                ChangeKind::Put(resource) => {
                    assert_eq!(resource.revision, revision);
                    let (key, held) = checked(resource);
                    self.held.insert(key.clone(), held);
                    (key, true)
                }
                ChangeKind::Deleted(key) => {
                    let key = Key::from(&key);
                    self.held.remove(&key);
                    (key, false)
                }
            };
            self.assert_asked_for(&key);
            changes.push((revision, key, is_put));
        }
        assert!(
            changes.is_sorted_by(|(r1, k1, _), (r2, k2, _)| (r1, k1) < (r2, k2)),
            "ordered by revision, then by key: {changes:?}"
        );
        let keys: BTreeSet<&Key> = changes.iter().map(|(_, key, _)| key).collect();
        assert_eq!(
            keys.len(),
            changes.len(),
            "no key twice in an update: {changes:?}"
        );
        self.cursor = Some(cursor);
        let sums = sums_of(&self.held);
        let stated: BTreeMap<Group, Sum> = update.digests.iter().map(sum).collect();
        for (_, key, _) in &changes {
            let group = group(key);
            assert_eq!(
                stated.get(&group).copied().unwrap_or_default(),
                sums.get(&group).copied().unwrap_or_default(),
                "the digest of {group:?} after {to}"
            );
        }
        StreamEvent::Update { from, to, changes }
    }

    fn replace(&mut self, resources: Vec<Resource>) {
        let mut held = BTreeMap::new();
        let mut last: Option<Key> = None;
        for resource in resources {
            let (key, value) = checked(resource);
            self.assert_asked_for(&key);
            assert!(
                last.is_none_or(|last| last < key),
                "a snapshot is in key order: {key:?}"
            );
            last = Some(key.clone());
            held.insert(key, value);
        }
        self.held = held;
    }

    fn assert_asked_for(&self, key: &Key) {
        let SubscribeRequest {
            namespaces,
            kinds,
            include_user_scoped,
            ..
        } = &self.request;
        let asked_for = (namespaces.is_empty() || namespaces.contains(&key.namespace))
            && (kinds.is_empty() || kinds.contains(&key.kind))
            && (*include_user_scoped || key.user_id.is_empty());
        assert!(asked_for, "the filter leaked {key:?}");
    }

    fn verify_all(&self, digests: &[Digest]) {
        let stated: BTreeMap<Group, Sum> = digests.iter().map(sum).collect();
        assert_eq!(stated.len(), digests.len(), "no group twice");
        assert_eq!(stated, sums_of(&self.held), "digests of every non-empty group");
    }
}

fn checked(resource: Resource) -> (Key, Held) {
    let key = Key::from(&resource.key.expect("a resource has a key"));
    assert_eq!(
        resource.value_checksum,
        value_checksum(&resource.value),
        "the checksum is of the value's bytes: {key:?}"
    );
    assert!(
        resource.committed_at.is_some(),
        "a resource says when it was committed: {key:?}"
    );
    assert!(resource.etag.is_empty(), "no etag on the stream: {key:?}");
    let held = Held {
        revision: resource.revision,
        value: resource.value.to_vec(),
    };
    (key, held)
}

/// Kinds as the filter encodes them.
pub fn kinds(kinds: &[ResourceKind]) -> Vec<i32> {
    kinds.iter().map(|&kind| kind.into()).collect()
}
