//! Finds the messages in a recording that a mutation is about.

use bytes::Bytes;
use emend_proto::{
    common::v1::ResourceKey,
    learning::v1::{Bookmark, Digest, Resumed, SnapshotBegin},
    wire::{Change, ChangeKind, Message, Resource, Update},
};
use emend_tests::{
    audit::stream::{Received, Recording, Witness},
    harness::Key,
};

pub(super) fn as_update(message: &Message) -> Option<&Update> {
    match message {
        Message::Update(update) => Some(update),
        _ => None,
    }
}

pub(super) fn as_update_mut(message: &mut Message) -> Option<&mut Update> {
    match message {
        Message::Update(update) => Some(update),
        _ => None,
    }
}

/// An update in a single part: those in several parts come later in the recording.
pub(super) fn whole(update: &Update) -> bool {
    let first = update.changes.first();
    update.last && first.is_some_and(|change| change.revision == update.from_revision + 1)
}

pub(super) fn shares_a_revision(update: &Update) -> bool {
    let [first, second, ..] = &update.changes[..] else {
        return false;
    };
    first.revision == second.revision
}

/// The update that carries the deletions made while the subscriber was away: no other update of the recording has any.
pub(super) fn away(update: &Update) -> bool {
    update.changes.iter().any(is_deletion)
}

pub(super) fn is_deletion(change: &Change) -> bool {
    matches!(change.change, Some(ChangeKind::Deleted(_)))
}

/// The first message that matches: the indices of its connection and of the message.
pub(super) fn position(recording: &Recording, matches: impl Fn(&Message) -> bool) -> (usize, usize) {
    for (index, connection) in recording.connections.iter().enumerate() {
        let found = connection
            .messages
            .iter()
            .position(|received| matches(&received.message));
        if let Some(found) = found {
            return (index, found);
        }
    }
    panic!("the recording has no such message")
}

pub(super) fn message(recording: &mut Recording, matches: impl Fn(&Message) -> bool) -> &mut Message {
    let (connection, message) = position(recording, matches);
    &mut recording.connections[connection].messages[message].message
}

pub(super) fn update(recording: &mut Recording, matches: impl Fn(&Update) -> bool) -> &mut Update {
    let found = message(recording, |message| as_update(message).is_some_and(&matches));
    as_update_mut(found).unwrap()
}

pub(super) fn resumed(recording: &mut Recording) -> &mut Resumed {
    match message(recording, |message| matches!(message, Message::Resumed(_))) {
        Message::Resumed(resumed) => resumed,
        other => panic!("{other:?}"),
    }
}

pub(super) fn snapshot_begin(recording: &mut Recording) -> &mut SnapshotBegin {
    match message(recording, |message| matches!(message, Message::SnapshotBegin(_))) {
        Message::SnapshotBegin(begin) => begin,
        other => panic!("{other:?}"),
    }
}

/// The first resource that is put.
pub(super) fn put(recording: &mut Recording) -> &mut Resource {
    let update = update(recording, |update| {
        matches!(
            update.changes.first(),
            Some(Change {
                change: Some(ChangeKind::Put(_)),
                ..
            })
        )
    });
    match &mut update.changes[0].change {
        Some(ChangeKind::Put(resource)) => resource,
        other => panic!("{other:?}"),
    }
}

/// Two consecutive updates of one part each.
pub(super) fn neighbours(recording: &mut Recording) -> (&mut Vec<Received>, usize) {
    for connection in &mut recording.connections {
        let found = connection.messages.windows(2).position(|pair| {
            pair.iter()
                .all(|received| as_update(&received.message).is_some_and(whole))
        });
        if let Some(found) = found {
            return (&mut connection.messages, found);
        }
    }
    panic!("the recording has no such messages")
}

/// A bookmark directly after an update in a single part.
pub(super) fn position_of_bookmark_after_update(recording: &Recording) -> (usize, usize) {
    for (index, connection) in recording.connections.iter().enumerate() {
        let found = connection.messages.windows(2).position(|pair| {
            matches!(pair[1].message, Message::Bookmark(_))
                && as_update(&pair[0].message).is_some_and(|update| update.last)
        });
        if let Some(found) = found {
            return (index, found + 1);
        }
    }
    panic!("the recording has no such bookmark")
}

pub(super) fn bookmark_after_update(recording: &mut Recording) -> &mut Bookmark {
    let (connection, message) = position_of_bookmark_after_update(recording);
    match &mut recording.connections[connection].messages[message].message {
        Message::Bookmark(bookmark) => bookmark,
        other => panic!("{other:?}"),
    }
}

pub(super) fn spoil(digest: &mut Digest) {
    let mut hash = digest.hash.to_vec();
    hash[0] ^= 1;
    digest.hash = Bytes::from(hash);
}

/// Adds a change of a key that another filter would let through.
pub(super) fn leak(recording: &mut Recording, change: impl FnOnce(&mut ResourceKey)) {
    let mut leaked = put(recording).clone();
    change(leaked.key.as_mut().unwrap());
    let update = update(recording, whole);
    leaked.revision = update.changes[0].revision;
    let change = Change {
        change: Some(ChangeKind::Put(leaked)),
        ..update.changes[0].clone()
    };
    update.changes.push(change);
    update.changes.sort_by_key(|change| {
        let key = match change.change.as_ref().unwrap() {
            ChangeKind::Put(resource) => resource.key.clone().unwrap(),
            ChangeKind::Deleted(key) => key.clone(),
        };
        (change.revision, Key::from(&key))
    });
}

pub(super) fn stall(recording: &Recording) -> (u64, u64) {
    let at = |matches: fn(&Witness) -> bool| {
        let found = recording
            .witnessed
            .iter()
            .find(|witnessed| matches(&witnessed.what));
        found.unwrap().at
    };
    (
        at(|witness| matches!(witness, Witness::StallBegins(_))),
        at(|witness| matches!(witness, Witness::StallEnds(..))),
    )
}
