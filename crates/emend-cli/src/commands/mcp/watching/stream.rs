//! Follows the stream of learned resources. What is told is which keys change: nothing is held, so that it costs the same however
//! much was learned.

use emend_base::Backoff;
use emend_proto::learning::v1::{
    Cursor, NodeInfo, SubscribeRequest, SubscribeResponse, Update, change::Change as Changed,
    subscribe_response::Message,
};
use tokio::time::sleep;
use tonic::Status;

use super::{Change, RETRY, Teller, is_refusal, queue::Ended};
use crate::{context::Context, failure::Result};

/// Tells what changes until it is refused.
pub(super) async fn follow(context: &Context, teller: &Teller) -> Status {
    let id = context.entropy.uuid_v4().simple().to_string();
    let mut following = Following {
        node: NodeInfo {
            id: format!("mcp-{}", &id[..8]),
            version: super::super::CLIENT.to_owned(),
            labels: [("program".to_owned(), "emend mcp".to_owned())].into(),
            transient: true,
            ..NodeInfo::default()
        },
        cursor: None,
    };
    let mut backoff = Backoff::new(RETRY, context.entropy.clone());
    loop {
        match following.subscribe(context, teller, &mut backoff).await {
            Err(Ended::Refused(status)) if is_refusal(&status) => return status,
            Ok(()) | Err(_) => sleep(backoff.next()).await,
        }
    }
}

struct Following {
    node: NodeInfo,
    /// Where to go on: nothing at or below it is told again.
    cursor: Option<Cursor>,
}

impl Following {
    async fn subscribe(
        &mut self,
        context: &Context,
        teller: &Teller,
        backoff: &mut Backoff,
    ) -> Result<(), Ended> {
        let request = SubscribeRequest {
            node: Some(self.node.clone()),
            namespaces: vec![context.namespace()],
            cursor: self.cursor.clone(),
            ..SubscribeRequest::default()
        };
        let mut client = context.subscriptions().await?;
        let mut messages = client
            .subscribe(context.request_without_deadline(request))
            .await?
            .into_inner();
        while let Some(message) = messages.message().await? {
            backoff.reset();
            self.read(message, teller);
        }
        Ok(())
    }

    fn read(&mut self, message: SubscribeResponse, teller: &Teller) {
        match message.message {
            Some(Message::Resumed(resumed)) => {
                self.cursor = resumed.cursor;
                teller.resumed();
            }
            // What is committed after it follows it.
            Some(Message::SnapshotBegin(_)) => teller.opened(),
            Some(Message::SnapshotEnd(end)) => self.cursor = end.cursor,
            Some(Message::Update(update)) => self.update(update, teller),
            Some(Message::Bookmark(bookmark)) => self.cursor = bookmark.cursor,
            Some(Message::SnapshotChunk(_) | Message::Drain(_)) | None => {}
        }
    }

    fn update(&mut self, update: Update, teller: &Teller) {
        for change in update.changes {
            let key = match change.change {
                Some(Changed::Put(resource)) => resource.key,
                Some(Changed::Deleted(key)) => Some(key),
                None => None,
            };
            if let Some(key) = key {
                teller.tell(Change::Learned {
                    kind: key.kind,
                    key: key.key,
                    revision: change.revision,
                });
            }
        }
        if update.last {
            self.cursor = update.cursor;
        }
    }
}

#[cfg(test)]
mod tests {
    use emend_proto::{
        common::v1::ResourceKey,
        learning::v1::{Change as ChangeOfKey, Resumed, SnapshotBegin},
    };
    use tokio::sync::{broadcast, watch};

    use super::{super::Stands, *};

    #[test]
    fn what_may_have_been_missed_is_told_and_what_was_resumed_is_not() {
        let (changes, mut told) = broadcast::channel(8);
        let (stands, standing) = watch::channel(Stands::Opening);
        let teller = Teller { changes, stands };
        let mut following = Following {
            node: NodeInfo::default(),
            cursor: None,
        };
        let mut read = |message| {
            let message = SubscribeResponse {
                message: Some(message),
            };
            following.read(message, &teller);
            std::iter::from_fn(|| told.try_recv().ok()).collect::<Vec<_>>()
        };
        let snapshot = || Message::SnapshotBegin(SnapshotBegin::default());
        assert_eq!(read(snapshot()), [], "nobody had read anything before");
        assert!(matches!(*standing.borrow(), Stands::Open));
        let key = ResourceKey {
            kind: 1,
            key: "a".into(),
            ..ResourceKey::default()
        };
        let update = Message::Update(Update {
            changes: vec![ChangeOfKey {
                revision: 5,
                change: Some(Changed::Deleted(key)),
                ..ChangeOfKey::default()
            }],
            ..Update::default()
        });
        let deleted = Change::Learned {
            kind: 1,
            key: "a".into(),
            revision: 5,
        };
        assert_eq!(read(update), [deleted]);
        assert_eq!(read(Message::Resumed(Resumed::default())), []);
        assert_eq!(read(snapshot()), [Change::Anything]);
    }
}
