//! Ways to break a recording on purpose, each with the guarantee that it breaks.

use bytes::Bytes;
use emend_core::digest::value_checksum;
use emend_proto::{
    learning::v1::{Resumed, SnapshotReason},
    wire::{ChangeKind, Message},
};
use emend_tests::audit::stream::{
    Ending,
    Guarantee::{
        self, Atomic, Bookmarkable, Deletions, Explicit, Isolated, NonBlocking, Ordered, Private, Reliable,
        Resumable, Unique,
    },
    Received, Recording, Witness,
};
use uuid::Uuid;

use super::find::{
    as_update, as_update_mut, away, bookmark_after_update, is_deletion, leak, neighbours, position,
    position_of_bookmark_after_update, put, resumed, shares_a_revision, snapshot_begin, spoil, stall, update,
    whole,
};

/// The recording that is tampered with.
pub(super) enum RecordingKind {
    /// The one of everything.
    Wide,
    /// The one of one namespace's aliases.
    Narrow,
}

/// One way to break a recording.
pub(super) struct Mutation {
    pub(super) what: &'static str,
    pub(super) of: RecordingKind,
    /// The guarantee that must be reported.
    pub(super) breaks: Guarantee,
    /// Guarantees that may be reported too, because they are also broken.
    pub(super) also: &'static [Guarantee],
    pub(super) tamper: fn(&mut Recording),
}

const fn wide(
    what: &'static str,
    breaks: Guarantee,
    also: &'static [Guarantee],
    tamper: fn(&mut Recording),
) -> Mutation {
    Mutation {
        what,
        of: RecordingKind::Wide,
        breaks,
        also,
        tamper,
    }
}

const fn narrow(
    what: &'static str,
    breaks: Guarantee,
    also: &'static [Guarantee],
    tamper: fn(&mut Recording),
) -> Mutation {
    Mutation {
        of: RecordingKind::Narrow,
        ..wide(what, breaks, also, tamper)
    }
}

/// All of them.
pub(super) const MUTATIONS: &[Mutation] = &[
    wide("two updates are swapped", Ordered, &[Reliable], |recording| {
        let (messages, at) = neighbours(recording);
        messages.swap(at, at + 1);
    }),
    wide(
        "changes within an update are swapped",
        Ordered,
        &[],
        |recording| {
            update(recording, |update| update.changes.len() > 1)
                .changes
                .swap(0, 1);
        },
    ),
    wide("a bookmark goes back", Ordered, &[Reliable], |recording| {
        let bookmark = bookmark_after_update(recording);
        bookmark.cursor.as_mut().unwrap().revision -= 1;
    }),
    wide("an update comes twice", Unique, &[], |recording| {
        let (messages, at) = neighbours(recording);
        messages.insert(at + 1, messages[at].clone());
    }),
    wide("a change comes twice in an update", Unique, &[], |recording| {
        let changes = &mut update(recording, |update| update.changes.len() > 1).changes;
        changes.insert(1, changes[0].clone());
    }),
    wide(
        "a change comes again in the next update",
        Unique,
        &[Ordered, Atomic],
        |recording| {
            let (messages, at) = neighbours(recording);
            let again = as_update(&messages[at].message).unwrap().changes[0].clone();
            as_update_mut(&mut messages[at + 1].message)
                .unwrap()
                .changes
                .insert(0, again);
        },
    ),
    wide("an update is dropped", Reliable, &[], |recording| {
        let (messages, at) = neighbours(recording);
        messages.remove(at);
    }),
    wide(
        "the only change of an update is dropped",
        Reliable,
        &[],
        |recording| {
            update(recording, |update| update.changes.len() == 1 && !away(update))
                .changes
                .clear();
        },
    ),
    wide("a value is another", Reliable, &[], |recording| {
        let resource = put(recording);
        let mut value = resource.value.to_vec();
        *value.last_mut().unwrap() ^= 1;
        resource.value_checksum = value_checksum(&value);
        resource.value = Bytes::from(value);
    }),
    wide("a checksum is wrong", Reliable, &[], |recording| {
        put(recording).value_checksum ^= 1;
    }),
    wide("a digest is wrong", Reliable, &[], |recording| {
        spoil(&mut update(recording, |update| !update.digests.is_empty()).digests[0]);
    }),
    wide("a digest is missing", Reliable, &[], |recording| {
        bookmark_after_update(recording).digests.remove(0);
    }),
    wide(
        "the newest version is left out, a bookmark goes beyond it",
        Reliable,
        &[],
        |recording| {
            let found = position_of_bookmark_after_update(recording);
            recording.connections[found.0].messages.remove(found.1 - 1);
        },
    ),
    wide(
        "the recording ends short of the head",
        Reliable,
        &[Isolated],
        |recording| {
            recording.connections.truncate(1);
        },
    ),
    wide(
        "a revision is split over two updates",
        Atomic,
        &[Ordered, Reliable],
        |recording| {
            let found = position(recording, |message| {
                as_update(message).is_some_and(|update| whole(update) && shares_a_revision(update))
            });
            let messages = &mut recording.connections[found.0].messages;
            let mut rest = messages[found.1].clone();
            let update = as_update_mut(&mut messages[found.1].message).unwrap();
            as_update_mut(&mut rest.message).unwrap().changes = update.changes.split_off(1);
            messages.insert(found.1 + 1, rest);
        },
    ),
    wide(
        "a change of a revision is dropped, its siblings are not",
        Atomic,
        &[Reliable],
        |recording| {
            update(recording, |update| whole(update) && shares_a_revision(update))
                .changes
                .remove(0);
        },
    ),
    wide(
        "a bookmark comes between the parts of an update",
        Atomic,
        &[Reliable, Ordered, Bookmarkable, Resumable],
        |recording| {
            let found = position(recording, |message| {
                as_update(message).is_some_and(|update| !update.last)
            });
            let bookmark = bookmark_after_update(recording).clone();
            let messages = &mut recording.connections[found.0].messages;
            let at = messages[found.1].at;
            messages.insert(
                found.1 + 1,
                Received {
                    at,
                    message: Message::Bookmark(bookmark),
                },
            );
        },
    ),
    wide(
        "a change lies beyond its update",
        Atomic,
        &[Ordered, Reliable, Unique],
        |recording| {
            let (messages, at) = neighbours(recording);
            let beyond = as_update(&messages[at + 1].message).unwrap().changes[0].clone();
            as_update_mut(&mut messages[at].message)
                .unwrap()
                .changes
                .push(beyond);
        },
    ),
    wide(
        "an update's cursor is of a forged epoch",
        Resumable,
        &[Reliable],
        |recording| {
            let update = update(recording, whole);
            update.cursor.as_mut().unwrap().epoch = Uuid::from_u128(42).to_string();
        },
    ),
    wide(
        "a bookmark's cursor is of another filter",
        Resumable,
        &[],
        |recording| {
            bookmark_after_update(recording)
                .cursor
                .as_mut()
                .unwrap()
                .filter_hash ^= 1;
        },
    ),
    wide(
        "an update's cursor is of another revision",
        Resumable,
        &[Ordered, Reliable],
        |recording| {
            update(recording, whole).cursor.as_mut().unwrap().revision += 1;
        },
    ),
    wide(
        "an update has no cursor",
        Resumable,
        &[Reliable, Ordered, Unique, Deletions],
        |recording| {
            update(recording, whole).cursor = None;
        },
    ),
    wide(
        "another cursor is confirmed than was sent",
        Resumable,
        &[],
        |recording| {
            resumed(recording).cursor.as_mut().unwrap().revision -= 1;
        },
    ),
    wide("a foreign epoch is resumed from", Resumable, &[], |recording| {
        let forged = Uuid::from_u128(42).to_string();
        let found = position(recording, |message| matches!(message, Message::Resumed(_)));
        let connection = &mut recording.connections[found.0];
        connection
            .request
            .cursor
            .as_mut()
            .unwrap()
            .epoch
            .clone_from(&forged);
        let Message::Resumed(resumed) = &mut connection.messages[found.1].message else {
            unreachable!("found as one")
        };
        resumed.cursor.as_mut().unwrap().epoch = forged;
    }),
    wide(
        "a snapshot comes for a reason that is not true",
        Resumable,
        &[],
        |recording| {
            snapshot_begin(recording).reason = SnapshotReason::CursorExpired.into();
        },
    ),
    wide("a good cursor gets a snapshot", Resumable, &[], |recording| {
        let first = recording.connections[0].messages.clone();
        let end = first
            .iter()
            .position(|received| matches!(received.message, Message::SnapshotEnd(_)));
        let mut snapshot = first[..=end.unwrap()].to_vec();
        if let Message::SnapshotBegin(begin) = &mut snapshot[0].message {
            begin.reason = SnapshotReason::CursorExpired.into();
        }
        // Sent, before everything else, to a subscriber that returns with the cursor of the empty snapshot.
        let cursor = snapshot.last().and_then(|received| match &received.message {
            Message::SnapshotEnd(end) => end.cursor.clone(),
            _ => None,
        });
        let mut again = recording.connections[0].clone();
        again.request.cursor = cursor;
        recording.connections[0].messages.truncate(snapshot.len());
        again.messages.splice(..snapshot.len(), snapshot);
        recording.connections.insert(1, again);
    }),
    wide(
        "a farewell comes without a bookmark",
        Resumable,
        &[],
        |recording| {
            let found = position(recording, |message| matches!(message, Message::Drain(_)));
            recording.connections[found.0].messages.remove(found.1 - 1);
        },
    ),
    wide(
        "a stream goes on after its farewell",
        Resumable,
        &[],
        |recording| {
            let found = position(recording, |message| matches!(message, Message::Drain(_)));
            let messages = &mut recording.connections[found.0].messages;
            let again = messages[found.1 - 1].clone();
            messages.push(again);
        },
    ),
    wide(
        "an update comes after the bookmark that covers it",
        Bookmarkable,
        &[Reliable],
        |recording| {
            let found = position_of_bookmark_after_update(recording);
            recording.connections[found.0].messages.swap(found.1 - 1, found.1);
        },
    ),
    wide(
        "what was deleted while away is not told",
        Deletions,
        &[Reliable, Atomic],
        |recording| {
            let update = update(recording, away);
            let deleted = update.changes.iter().position(is_deletion).unwrap();
            update.changes.remove(deleted);
        },
    ),
    wide(
        "what was deleted while away comes with a value",
        Deletions,
        &[Reliable],
        |recording| {
            let resource = put(recording).clone();
            let update = update(recording, away);
            let change = update
                .changes
                .iter_mut()
                .find(|change| is_deletion(change))
                .unwrap();
            let Some(ChangeKind::Deleted(key)) = change.change.take() else {
                unreachable!("found as one")
            };
            let mut resource = resource;
            resource.revision = change.revision;
            resource.key = Some(key);
            change.change = Some(ChangeKind::Put(resource));
        },
    ),
    narrow(
        "a key of a foreign namespace leaks",
        Private,
        &[Reliable],
        |recording| {
            leak(recording, |key| key.namespace = "elsewhere".into());
        },
    ),
    narrow("a user's own leaks", Private, &[Reliable], |recording| {
        leak(recording, |key| key.user_id = "user-1".into());
    }),
    narrow(
        "a kind that was not asked for leaks",
        Private,
        &[Reliable],
        |recording| leak(recording, |key| key.kind = 1),
    ),
    narrow(
        "a digest of a foreign namespace leaks",
        Private,
        &[Reliable],
        |recording| {
            let digests = &mut bookmark_after_update(recording).digests;
            let mut foreign = digests[0].clone();
            foreign.namespace = "elsewhere".into();
            digests.push(foreign);
        },
    ),
    wide(
        "what passed while another stalled came only after it",
        Isolated,
        &[],
        |recording| {
            let (begun, ended) = stall(recording);
            for connection in &mut recording.connections {
                for received in &mut connection.messages {
                    if (begun..ended).contains(&received.at) {
                        received.at = ended + 1;
                    }
                }
            }
        },
    ),
    narrow(
        "the server's memory was beyond its bound",
        Isolated,
        &[],
        |recording| {
            for witnessed in &mut recording.witnessed {
                if let Witness::Resident { bytes, bound } = &mut witnessed.what {
                    *bytes = *bound + 1;
                }
            }
        },
    ),
    wide(
        "nothing was published while one stalled",
        NonBlocking,
        &[],
        |recording| {
            let (begun, ended) = stall(recording);
            recording.witnessed.retain(|witnessed| {
                !((begun..ended).contains(&witnessed.at) && matches!(witnessed.what, Witness::Published(_)))
            });
        },
    ),
    narrow(
        "no writer was answered while one stalled",
        NonBlocking,
        &[],
        |recording| {
            let (begun, ended) = stall(recording);
            recording.witnessed.retain(|witnessed| {
                !((begun..ended).contains(&witnessed.at) && matches!(witnessed.what, Witness::Committed(_)))
            });
        },
    ),
    wide("a resumption turns into silence", Explicit, &[], |recording| {
        let found = position(recording, |message| matches!(message, Message::Resumed(_)));
        recording.connections[found.0].messages.remove(found.1);
    }),
    wide(
        "that there is nothing turns into: you are current",
        Explicit,
        &[],
        |recording| {
            let messages = &mut recording.connections[0].messages;
            let Some(Message::SnapshotEnd(end)) = messages.get(1).map(|received| received.message.clone())
            else {
                panic!("a snapshot of nothing: {messages:?}")
            };
            messages.remove(1);
            messages[0].message = Message::Resumed(Resumed {
                cursor: end.cursor,
                ..Default::default()
            });
        },
    ),
    wide(
        "a snapshot of nothing announces something",
        Explicit,
        &[],
        |recording| {
            snapshot_begin(recording).resource_count = 1;
        },
    ),
    narrow("a stream ends without a word", Explicit, &[], |recording| {
        let mut silent = recording.connections[0].clone();
        silent.messages.clear();
        silent.ending = Ending::Ended;
        recording.connections.insert(0, silent);
    }),
];
