//! The protocol, message by message, checked against a model of the server's log.

mod installation;

use std::time::Duration;

use emend_base::Entropy;
use emend_proto::learning::v1::SnapshotReason;

use super::*;
use crate::server_log::{self, INSTALLATION, Key, ServerLog, drain, response, verb, verb_key};

fn replica() -> Replica {
    Replica::new(Arc::new(KeyedHash::new(&Entropy::seeded(1))))
}

fn feed(replica: &mut Replica, messages: Vec<Message>) -> Result<Effect, ProtocolViolation> {
    let mut last = Effect::Ignored;
    for message in messages {
        last = replica.receive(response(message))?;
    }
    Ok(last)
}

/// What is held, in the model's terms.
fn held(replica: &Replica) -> server_log::State {
    let to_key = |key: KeyParts<'_>| -> Key {
        (
            key.namespace.into(),
            key.kind,
            key.key.into(),
            key.qualifier.into(),
            key.user_id.into(),
        )
    };
    let held = replica.held.iter();
    held.map(|envelope| {
        (
            to_key(envelope.key()),
            (envelope.revision(), envelope.value().to_vec()),
        )
    })
    .collect()
}

/// A log with three revisions, and a replica that holds all of them.
fn current() -> (ServerLog, Replica) {
    let mut log = ServerLog::new("epoch");
    for phrase in ["a", "b", "c"] {
        log.commit([(verb_key(phrase), Some(verb(phrase, "do_it")))]);
    }
    let mut replica = replica();
    replica.open();
    feed(&mut replica, log.snapshot(3, SnapshotReason::NoCursor, 2)).unwrap();
    (log, replica)
}

fn as_update(message: Message) -> wire::Update {
    let Message::Update(update) = message else {
        panic!("{message:?}")
    };
    update
}

#[test]
fn a_snapshot_replaces_everything_when_it_is_complete() {
    let (mut log, mut replica) = current();
    let before = held(&replica);
    log.commit([(verb_key("a"), None), (verb_key("d"), Some(verb("d", "other")))]);
    let mut messages = log.snapshot(4, SnapshotReason::FilterChanged, 1);
    let end = messages.pop().unwrap();
    feed(&mut replica, messages).unwrap();
    assert_eq!(held(&replica), before);
    let effect = replica.receive(response(end)).unwrap();
    assert_eq!(&held(&replica), log.state(4));
    let Effect::Installed(installed) = effect else {
        panic!("{effect:?}")
    };
    assert_eq!(
        (installed.reason, installed.count),
        (SnapshotReason::FilterChanged, 3)
    );
    assert_eq!(replica.open(), Some(log.cursor(4)));
}

#[test]
fn an_empty_snapshot_is_a_state() {
    let log = ServerLog::new("epoch");
    let mut replica = replica();
    assert_eq!(replica.open(), None);
    assert_eq!(replica.position(), None);
    feed(&mut replica, log.snapshot(0, SnapshotReason::NoCursor, 1)).unwrap();
    assert_eq!(replica.position(), Some(&log.cursor(0)));
}

#[test]
fn a_snapshot_may_interrupt_an_update_or_a_snapshot() {
    let (mut log, mut replica) = current();
    log.commit(["a", "b"].map(|phrase| (verb_key(phrase), Some(verb(phrase, "other")))));
    replica.receive(response(log.update(3, 4, 1).remove(0))).unwrap();
    feed(
        &mut replica,
        log.snapshot(4, SnapshotReason::NewEpoch, 1)[..2].to_vec(),
    )
    .unwrap();
    feed(&mut replica, log.snapshot(4, SnapshotReason::NewEpoch, 1)).unwrap();
    assert_eq!(&held(&replica), log.state(4));
}

#[test]
fn a_snapshot_must_have_as_many_resources_as_announced() {
    for chunk in [1, 3] {
        let (log, _) = current();
        let mut replica = replica();
        let mut messages = log.snapshot(3, SnapshotReason::NoCursor, chunk);
        messages.remove(1);
        assert!(matches!(
            feed(&mut replica, messages),
            Err(ProtocolViolation::Count { stated: 3, .. })
        ));
        let mut messages = log.snapshot(3, SnapshotReason::NoCursor, chunk);
        messages[0] = Message::SnapshotBegin(pb::SnapshotBegin {
            revision: 3,
            reason: 1,
            resource_count: 2,
            installation_id: INSTALLATION.into(),
        });
        assert_eq!(
            feed(&mut replica, messages),
            Err(ProtocolViolation::Count {
                stated: 2,
                received: 3
            })
        );
        assert_eq!((replica.len(), replica.position()), (0, None));
    }
}

#[test]
fn a_snapshot_must_not_repeat_a_key_or_contain_newer_resources() {
    let (log, _) = current();
    let mut messages = log.snapshot(3, SnapshotReason::NoCursor, 1);
    messages[2] = messages[1].clone();
    assert!(matches!(
        feed(&mut replica(), messages),
        Err(ProtocolViolation::Malformed { .. })
    ));
    let mut messages = log.snapshot(3, SnapshotReason::NoCursor, 1);
    messages[0] = Message::SnapshotBegin(pb::SnapshotBegin {
        revision: 2,
        reason: 1,
        resource_count: 3,
        installation_id: INSTALLATION.into(),
    });
    assert!(matches!(
        feed(&mut replica(), messages),
        Err(ProtocolViolation::Malformed { .. })
    ));
}

#[test]
fn the_parts_of_an_update_become_visible_together() {
    let (mut log, mut replica) = current();
    log.commit(["a", "b", "d"].map(|phrase| (verb_key(phrase), Some(verb(phrase, "other")))));
    let mut parts = log.update(3, 4, 1);
    let last = parts.pop().unwrap();
    let before = held(&replica);
    assert_eq!(feed(&mut replica, parts), Ok(Effect::Staged));
    assert_eq!(held(&replica), before);
    let effect = replica.receive(response(last)).unwrap();
    let Effect::Applied(applied) = effect else {
        panic!("{effect:?}")
    };
    assert_eq!(
        (applied.from, applied.to, applied.changes.len()),
        (Revision(3), Revision(4), 3)
    );
    assert_eq!(applied.digest_check, DigestCheck::Same);
    assert_eq!(&held(&replica), log.state(4));
}

#[test]
fn an_update_that_a_broken_stream_left_unfinished_is_discarded() {
    let (mut log, mut replica) = current();
    log.commit(["a", "b"].map(|phrase| (verb_key(phrase), Some(verb(phrase, "other")))));
    replica.receive(response(log.update(3, 4, 1).remove(0))).unwrap();
    assert_eq!(replica.open(), Some(log.cursor(3)));
    assert_eq!(
        replica.receive(response(log.resumed(3))),
        Ok(Effect::Resumed(Revision(3)))
    );
    feed(&mut replica, log.update(3, 4, 9)).unwrap();
    assert_eq!(&held(&replica), log.state(4));
}

#[test]
fn a_revision_that_was_applied_must_not_be_sent_again() {
    let (mut log, mut replica) = current();
    log.commit([(verb_key("a"), None)]);
    feed(&mut replica, log.update(3, 4, 1)).unwrap();
    let again = feed(&mut replica, log.update(3, 4, 1));
    assert_eq!(again, Err(ProtocolViolation::NotNew { held: 4, revision: 4 }));
    // Nor inside a later update.
    log.commit([(verb_key("b"), None)]);
    replica.open();
    feed(&mut replica, vec![log.resumed(4)]).unwrap();
    let overlapping = feed(&mut replica, log.update(3, 5, 9));
    assert_eq!(
        overlapping,
        Err(ProtocolViolation::NotNew { held: 4, revision: 4 })
    );
    assert_eq!(&held(&replica), log.state(4));
}

#[test]
fn an_update_must_begin_where_the_last_one_ended() {
    let (mut log, mut replica) = current();
    log.commit([(verb_key("a"), None)]);
    log.commit([(verb_key("b"), None)]);
    let gap = feed(&mut replica, log.update(4, 5, 1));
    assert_eq!(gap, Err(ProtocolViolation::Gap { held: 3, from: 4 }));
}

#[test]
fn the_changes_of_an_update_must_be_in_order_and_in_its_range() {
    let (mut log, replica) = current();
    log.commit([(verb_key("a"), Some(verb("a", "x")))]);
    log.commit([(verb_key("b"), None)]);
    let good = as_update(log.update(3, 5, 9).remove(0));
    let mut swapped = good.clone();
    swapped.changes.swap(0, 1);
    let mut late = good.clone();
    late.changes[1].revision = 6;
    let mut other = good.clone();
    if let Some(ChangeKind::Put(resource)) = &mut other.changes[0].change {
        resource.revision = 3;
    }
    let mut without_key = good;
    if let Some(ChangeKind::Put(resource)) = &mut without_key.changes[0].change {
        resource.key = None;
    }
    drop(replica);
    for bad in [swapped, late, other, without_key] {
        let (log, mut replica) = current();
        let refused = replica.receive(response(Message::Update(bad)));
        assert!(
            matches!(refused, Err(ProtocolViolation::Malformed { .. })),
            "{refused:?}"
        );
        assert_eq!(&held(&replica), log.state(3), "nothing is applied");
    }
}

#[test]
fn cursors_must_be_of_the_same_epoch_filter_and_revision() {
    for (epoch, filter_hash, ahead) in [("other", 7, 0), ("epoch", 8, 0), ("epoch", 7, 1)] {
        let (mut log, mut replica) = current();
        log.commit([(verb_key("a"), None)]);
        let foreign = Cursor {
            epoch: epoch.into(),
            filter_hash,
            revision: 4 + ahead,
        };
        let mut update = as_update(log.update(3, 4, 9).remove(0));
        update.cursor = Some(foreign.clone());
        let refused = replica.receive(response(Message::Update(update)));
        assert_eq!(refused, Err(ProtocolViolation::ForeignCursor("Update")));

        replica.open();
        let resumed = Message::Resumed(pb::Resumed {
            cursor: Some(foreign),
            installation_id: INSTALLATION.into(),
        });
        assert_eq!(
            replica.receive(response(resumed)),
            Err(ProtocolViolation::ForeignCursor("Resumed"))
        );
    }
}

#[test]
fn a_bookmark_advances_the_position_and_never_moves_it_back() {
    let (mut log, mut replica) = current();
    // A revision that the filter hides.
    log.commit([]);
    let effect = replica.receive(response(log.bookmark(4)));
    assert_eq!(
        effect,
        Ok(Effect::Current {
            revision: Revision(4),
            age: Duration::ZERO,
            digest_check: DigestCheck::Same
        })
    );
    assert_eq!(replica.open(), Some(log.cursor(4)));
    replica.receive(response(log.resumed(4))).unwrap();
    let back = replica.receive(response(log.bookmark(3)));
    assert_eq!(back, Err(ProtocolViolation::NotNew { held: 4, revision: 3 }));
}

#[test]
fn unexpected_messages_are_refused() {
    let (mut log, mut replica) = current();
    log.commit(["a", "b"].map(|phrase| (verb_key(phrase), None)));
    let update = log.update(3, 4, 1);
    let chunk = log.snapshot(3, SnapshotReason::NoCursor, 9).remove(1);
    let end = log.snapshot(3, SnapshotReason::NoCursor, 9).remove(2);
    let refused = |replica: &mut Replica, message: &Message| {
        let refused = replica.receive(response(message.clone()));
        assert!(
            matches!(refused, Err(ProtocolViolation::Unexpected(_))),
            "{refused:?}"
        );
        replica.open();
        replica
            .receive(response(Message::Resumed(pb::Resumed {
                cursor: replica.position.clone(),
                installation_id: INSTALLATION.into(),
            })))
            .unwrap();
    };
    for message in [&chunk, &end, &log.resumed(3)] {
        refused(&mut replica, message);
    }
    // Before the stream has said how it continues.
    for message in [&log.bookmark(3), &update[0], &chunk, &end] {
        replica.open();
        refused(&mut replica, message);
    }
    // Within an update, and within a snapshot.
    replica.receive(response(update[0].clone())).unwrap();
    refused(&mut replica, &log.bookmark(4));
    for message in [&log.bookmark(4), &update[0], &log.resumed(3)] {
        feed(
            &mut replica,
            log.snapshot(3, SnapshotReason::NoCursor, 9)[..1].to_vec(),
        )
        .unwrap();
        refused(&mut replica, message);
    }
}

#[test]
fn a_state_that_differs_from_the_server_is_not_resumed_from() {
    let (mut log, mut replica) = current();
    let mut other = log.clone();
    log.commit([(verb_key("a"), Some(verb("a", "x")))]);
    other.commit([(verb_key("a"), Some(verb("a", "y")))]);
    feed(&mut replica, other.update(3, 4, 9)).unwrap();
    assert!(replica.copy().is_some());
    let effect = replica.receive(response(log.bookmark(4))).unwrap();
    let Effect::Current {
        digest_check: DigestCheck::Differs(differences),
        ..
    } = effect
    else {
        panic!("{effect:?}")
    };
    assert_eq!(differences.len(), 1);
    assert_eq!(differences[0].group.kind, 1);
    assert!(differences[0].to_string().contains("the server has 3 resources"));
    assert!(replica.copy().is_none());
    assert_eq!(replica.open(), None, "a snapshot is requested");
    feed(&mut replica, log.snapshot(4, SnapshotReason::NoCursor, 9)).unwrap();
    assert_eq!(replica.open(), Some(log.cursor(4)));
}

#[test]
fn a_bookmark_whose_digests_differ_does_not_advance_the_position() {
    let (mut log, mut replica) = current();
    log.commit([(verb_key("missed"), Some(verb("missed", "x")))]);
    let effect = replica.receive(response(log.bookmark(4))).unwrap();
    assert!(matches!(effect, Effect::Current { digest_check, .. } if digest_check.differs()));
    assert_eq!(replica.revision(), Revision(3), "it has not received revision 4");
    assert_eq!(replica.open(), None, "a snapshot is requested");
}

#[test]
fn a_group_that_only_one_side_has_is_a_difference() {
    let (log, mut replica) = current();
    let bookmark = |digests| {
        Message::Bookmark(pb::Bookmark {
            cursor: Some(log.cursor(3)),
            digests,
            server_time: None,
            age: None,
        })
    };
    let verdict_of = |effect| match effect {
        Ok(Effect::Current { digest_check, .. }) => digest_check.differs(),
        other => panic!("{other:?}"),
    };
    assert!(verdict_of(replica.receive(response(bookmark(Vec::new())))));
    let mut more = log.digests(3);
    more.push(pb::Digest {
        namespace: "x".into(),
        kind: 2,
        user_scoped: true,
        count: 1,
        hash: vec![1; 16].into(),
    });
    assert!(verdict_of(replica.receive(response(bookmark(more)))));
    let mut short = log.digests(3);
    short[0].hash = vec![1; 15].into();
    assert!(replica.receive(response(bookmark(short))).is_err());
}

#[test]
fn a_rejected_resource_counts_in_digests_and_does_not_hold_back_others() {
    let (mut log, mut replica) = current();
    let mut unknown = verb_key("a");
    unknown.1 = 99;
    log.commit([
        (verb_key("a"), Some(b"\xff\xff".to_vec())),
        (verb_key("b"), Some(verb("b", "other"))),
        (unknown.clone(), Some(verb("a", "x"))),
    ]);
    let effect = feed(&mut replica, log.update(3, 4, 9)).unwrap();
    let Effect::Applied(applied) = effect else {
        panic!("{effect:?}")
    };
    assert_eq!(applied.digest_check, DigestCheck::Same);
    let rejected = applied
        .changes
        .iter()
        .filter(|change| matches!(change.state, State::Rejected(_)));
    assert_eq!((rejected.count(), replica.rejected().len()), (2, 2));
    assert_eq!(replica.facts().count(), 2, "those of b and c");

    log.commit([(verb_key("a"), Some(verb("a", "repaired"))), (unknown, None)]);
    feed(&mut replica, log.update(4, 5, 9)).unwrap();
    assert_eq!(replica.rejected().len(), 0);
    assert_eq!(replica.facts().count(), 3);
}

#[test]
fn a_value_corrupted_in_transit_is_rejected() {
    let (mut log, mut replica) = current();
    log.commit([(verb_key("a"), Some(verb("a", "good")))]);
    let mut update = as_update(log.update(3, 4, 9).remove(0));
    if let Some(ChangeKind::Put(resource)) = &mut update.changes[0].change {
        resource.value = verb("a", "evil").into();
    }
    replica.receive(response(Message::Update(update))).unwrap();
    let (key, revision, why) = replica.rejected().newest().next().unwrap();
    assert_eq!((key.key, revision), ("a", 4));
    assert!(matches!(why, Rejection::ChecksumMismatch { .. }));
}

#[test]
fn unknown_messages_are_ignored() {
    let (_, mut replica) = current();
    assert_eq!(
        replica.receive(wire::SubscribeResponse { message: None }),
        Ok(Effect::Ignored)
    );
    let effect = replica.receive(response(drain())).unwrap();
    assert!(matches!(effect, Effect::Drain { reason, .. } if reason == "SHUTDOWN"));
}

#[test]
fn a_copy_restores_what_was_held() {
    let (log, replica) = current();
    let (cursor, holdings) = replica.copy().unwrap();
    let restored: Vec<_> = holdings
        .iter()
        .map(|envelope| SavedResource {
            key: envelope.packed_key().into(),
            value: envelope.value().into(),
            revision: envelope.revision(),
            value_checksum: envelope.value_checksum(),
        })
        .collect();
    let mut again = Replica::restore(
        Arc::clone(&replica.hash),
        &restored,
        replica.installation(),
        cursor,
    );
    assert_eq!(&held(&again), log.state(3));
    assert_eq!(again.open(), Some(log.cursor(3)));
    let effect = feed(&mut again, vec![log.resumed(3), log.bookmark(3)]).unwrap();
    assert_eq!(
        effect,
        Effect::Current {
            revision: Revision(3),
            age: Duration::ZERO,
            digest_check: DigestCheck::Same
        }
    );
}

#[test]
fn a_drain_with_an_invalid_duration_asks_for_no_wait() {
    for (seconds, nanos, wait) in [
        (2, 5, Duration::new(2, 5)),
        (i64::MIN, i32::MIN, Duration::ZERO),
        (i64::MAX, i32::MAX, Duration::ZERO),
        (-1, 0, Duration::ZERO),
    ] {
        let effect = replica().receive(response(Message::Drain(pb::Drain {
            reconnect_after: Some(prost_types::Duration { seconds, nanos }),
            reason: "SHUTDOWN".into(),
        })));
        let Ok(Effect::Drain { reconnect_after, .. }) = effect else {
            panic!("{effect:?}")
        };
        assert_eq!(reconnect_after, wait, "{seconds} s, {nanos} ns");
    }
}
