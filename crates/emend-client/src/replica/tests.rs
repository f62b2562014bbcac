//! The protocol, message by message, checked against a model of the server's log.

use std::time::Duration;

use emend_runtime::Entropy;

use super::*;
use crate::ledger::{self, INSTALLATION, Key, Ledger, drain, response, verb, verb_key};

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
fn held(replica: &Replica) -> ledger::State {
    let of = |key: KeyParts<'_>| -> Key {
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
            of(envelope.key()),
            (envelope.revision(), envelope.value().to_vec()),
        )
    })
    .collect()
}

/// A log with three revisions, and a replica that holds all of them.
fn current() -> (Ledger, Replica) {
    let mut ledger = Ledger::new("epoch");
    for phrase in ["a", "b", "c"] {
        ledger.commit([(verb_key(phrase), Some(verb(phrase, "do_it")))]);
    }
    let mut replica = replica();
    replica.open();
    feed(&mut replica, ledger.snapshot(3, SnapshotReason::NoCursor, 2)).unwrap();
    (ledger, replica)
}

fn as_update(message: Message) -> wire::Update {
    let Message::Update(update) = message else {
        panic!("{message:?}")
    };
    update
}

#[test]
fn a_snapshot_replaces_everything_at_its_end_and_not_before() {
    let (mut ledger, mut replica) = current();
    let before = held(&replica);
    ledger.commit([(verb_key("a"), None), (verb_key("d"), Some(verb("d", "other")))]);
    let mut messages = ledger.snapshot(4, SnapshotReason::FilterChanged, 1);
    let end = messages.pop().unwrap();
    feed(&mut replica, messages).unwrap();
    assert_eq!(held(&replica), before);
    let effect = replica.receive(response(end)).unwrap();
    assert_eq!(&held(&replica), ledger.state(4));
    let Effect::Installed(installed) = effect else {
        panic!("{effect:?}")
    };
    assert_eq!(
        (installed.reason, installed.count),
        (SnapshotReason::FilterChanged, 3)
    );
    assert_eq!(replica.open(), Some(ledger.cursor(4)));
}

#[test]
fn an_empty_snapshot_is_not_the_same_as_none() {
    let ledger = Ledger::new("epoch");
    let mut replica = replica();
    assert_eq!(replica.open(), None);
    assert_eq!(replica.position(), None);
    feed(&mut replica, ledger.snapshot(0, SnapshotReason::NoCursor, 1)).unwrap();
    assert_eq!(replica.position(), Some(&ledger.cursor(0)));
}

#[test]
fn a_snapshot_may_come_in_the_middle_of_anything() {
    let (mut ledger, mut replica) = current();
    ledger.commit(["a", "b"].map(|phrase| (verb_key(phrase), Some(verb(phrase, "other")))));
    replica
        .receive(response(ledger.update(3, 4, 1).remove(0)))
        .unwrap();
    feed(
        &mut replica,
        ledger.snapshot(4, SnapshotReason::NewEpoch, 1)[..2].to_vec(),
    )
    .unwrap();
    feed(&mut replica, ledger.snapshot(4, SnapshotReason::NewEpoch, 1)).unwrap();
    assert_eq!(&held(&replica), ledger.state(4));
}

#[test]
fn a_snapshot_must_have_as_many_resources_as_it_said() {
    for chunk in [1, 3] {
        let (ledger, _) = current();
        let mut replica = replica();
        let mut messages = ledger.snapshot(3, SnapshotReason::NoCursor, chunk);
        messages.remove(1);
        assert!(matches!(
            feed(&mut replica, messages),
            Err(ProtocolViolation::Count { stated: 3, .. })
        ));
        let mut messages = ledger.snapshot(3, SnapshotReason::NoCursor, chunk);
        messages[0] = Message::SnapshotBegin(pb::SnapshotBegin {
            revision: 3,
            reason: 1,
            resource_count: 2,
            installation_id: INSTALLATION.into(),
        });
        assert_eq!(
            feed(&mut replica, messages),
            Err(ProtocolViolation::Count { stated: 2, came: 3 })
        );
        assert_eq!((replica.len(), replica.position()), (0, None));
    }
}

#[test]
fn a_snapshot_must_not_repeat_a_key_or_hold_what_came_later() {
    let (ledger, _) = current();
    let mut messages = ledger.snapshot(3, SnapshotReason::NoCursor, 1);
    messages[2] = messages[1].clone();
    assert!(matches!(
        feed(&mut replica(), messages),
        Err(ProtocolViolation::Malformed { .. })
    ));
    let mut messages = ledger.snapshot(3, SnapshotReason::NoCursor, 1);
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
    let (mut ledger, mut replica) = current();
    ledger.commit(["a", "b", "d"].map(|phrase| (verb_key(phrase), Some(verb(phrase, "other")))));
    let mut parts = ledger.update(3, 4, 1);
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
    assert_eq!(applied.verdict, Verdict::Same);
    assert_eq!(&held(&replica), ledger.state(4));
}

#[test]
fn what_a_broken_stream_left_unfinished_is_forgotten_and_resumed_from_before() {
    let (mut ledger, mut replica) = current();
    ledger.commit(["a", "b"].map(|phrase| (verb_key(phrase), Some(verb(phrase, "other")))));
    replica
        .receive(response(ledger.update(3, 4, 1).remove(0)))
        .unwrap();
    assert_eq!(replica.open(), Some(ledger.cursor(3)));
    assert_eq!(
        replica.receive(response(ledger.resumed(3))),
        Ok(Effect::Resumed(Revision(3)))
    );
    feed(&mut replica, ledger.update(3, 4, 9)).unwrap();
    assert_eq!(&held(&replica), ledger.state(4));
}

#[test]
fn what_came_before_must_not_come_again() {
    let (mut ledger, mut replica) = current();
    ledger.commit([(verb_key("a"), None)]);
    feed(&mut replica, ledger.update(3, 4, 1)).unwrap();
    let again = feed(&mut replica, ledger.update(3, 4, 1));
    assert_eq!(again, Err(ProtocolViolation::NotNew { held: 4, revision: 4 }));
    // Nor inside a later update.
    ledger.commit([(verb_key("b"), None)]);
    replica.open();
    feed(&mut replica, vec![ledger.resumed(4)]).unwrap();
    let overlapping = feed(&mut replica, ledger.update(3, 5, 9));
    assert_eq!(
        overlapping,
        Err(ProtocolViolation::NotNew { held: 4, revision: 4 })
    );
    assert_eq!(&held(&replica), ledger.state(4));
}

#[test]
fn nothing_may_be_missing_between_what_is_held_and_what_comes() {
    let (mut ledger, mut replica) = current();
    ledger.commit([(verb_key("a"), None)]);
    ledger.commit([(verb_key("b"), None)]);
    let gap = feed(&mut replica, ledger.update(4, 5, 1));
    assert_eq!(gap, Err(ProtocolViolation::Gap { held: 3, from: 4 }));
}

#[test]
fn the_changes_of_an_update_must_be_ordered_and_within_it() {
    let (mut ledger, replica) = current();
    ledger.commit([(verb_key("a"), Some(verb("a", "x")))]);
    ledger.commit([(verb_key("b"), None)]);
    let good = as_update(ledger.update(3, 5, 9).remove(0));
    let mut swapped = good.clone();
    swapped.changes.swap(0, 1);
    let mut late = good.clone();
    late.changes[1].revision = 6;
    let mut other = good.clone();
    if let Some(ChangeKind::Put(resource)) = &mut other.changes[0].change {
        resource.revision = 3;
    }
    let mut nameless = good;
    if let Some(ChangeKind::Put(resource)) = &mut nameless.changes[0].change {
        resource.key = None;
    }
    drop(replica);
    for bad in [swapped, late, other, nameless] {
        let (ledger, mut replica) = current();
        let refused = replica.receive(response(Message::Update(bad)));
        assert!(
            matches!(refused, Err(ProtocolViolation::Malformed { .. })),
            "{refused:?}"
        );
        assert_eq!(&held(&replica), ledger.state(3), "nothing of it is applied");
    }
}

#[test]
fn cursors_must_be_of_this_log_filter_and_revision() {
    for (epoch, filter_hash, ahead) in [("other", 7, 0), ("epoch", 8, 0), ("epoch", 7, 1)] {
        let (mut ledger, mut replica) = current();
        ledger.commit([(verb_key("a"), None)]);
        let foreign = Cursor {
            epoch: epoch.into(),
            filter_hash,
            revision: 4 + ahead,
        };
        let mut update = as_update(ledger.update(3, 4, 9).remove(0));
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
fn a_bookmark_moves_on_and_never_back() {
    let (mut ledger, mut replica) = current();
    // A revision that the filter hides.
    ledger.commit([]);
    let effect = replica.receive(response(ledger.bookmark(4)));
    assert_eq!(
        effect,
        Ok(Effect::Current {
            revision: Revision(4),
            verdict: Verdict::Same
        })
    );
    assert_eq!(replica.open(), Some(ledger.cursor(4)));
    replica.receive(response(ledger.resumed(4))).unwrap();
    let back = replica.receive(response(ledger.bookmark(3)));
    assert_eq!(back, Err(ProtocolViolation::NotNew { held: 4, revision: 3 }));
}

#[test]
fn messages_out_of_place_are_refused() {
    let (mut ledger, mut replica) = current();
    ledger.commit(["a", "b"].map(|phrase| (verb_key(phrase), None)));
    let update = ledger.update(3, 4, 1);
    let chunk = ledger.snapshot(3, SnapshotReason::NoCursor, 9).remove(1);
    let end = ledger.snapshot(3, SnapshotReason::NoCursor, 9).remove(2);
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
    for message in [&chunk, &end, &ledger.resumed(3)] {
        refused(&mut replica, message);
    }
    // Before the stream has said how it continues.
    for message in [&ledger.bookmark(3), &update[0], &chunk, &end] {
        replica.open();
        refused(&mut replica, message);
    }
    // Within an update, and within a snapshot.
    replica.receive(response(update[0].clone())).unwrap();
    refused(&mut replica, &ledger.bookmark(4));
    for message in [&ledger.bookmark(4), &update[0], &ledger.resumed(3)] {
        feed(
            &mut replica,
            ledger.snapshot(3, SnapshotReason::NoCursor, 9)[..1].to_vec(),
        )
        .unwrap();
        refused(&mut replica, message);
    }
}

#[test]
fn what_differs_from_the_server_is_found_and_not_resumed_from() {
    let (mut ledger, mut replica) = current();
    let mut other = ledger.clone();
    ledger.commit([(verb_key("a"), Some(verb("a", "x")))]);
    other.commit([(verb_key("a"), Some(verb("a", "y")))]);
    feed(&mut replica, other.update(3, 4, 9)).unwrap();
    assert!(replica.copy().is_some());
    let effect = replica.receive(response(ledger.bookmark(4))).unwrap();
    let Effect::Current {
        verdict: Verdict::Differs(differences),
        ..
    } = effect
    else {
        panic!("{effect:?}")
    };
    assert_eq!(differences.len(), 1);
    assert_eq!(differences[0].group.kind, 1);
    assert!(differences[0].to_string().contains("the server has 3 resources"));
    assert!(replica.copy().is_none());
    assert_eq!(replica.open(), None, "a snapshot is asked for");
    feed(&mut replica, ledger.snapshot(4, SnapshotReason::NoCursor, 9)).unwrap();
    assert_eq!(replica.open(), Some(ledger.cursor(4)));
}

#[test]
fn a_bookmark_that_finds_something_missing_moves_nothing_on() {
    let (mut ledger, mut replica) = current();
    ledger.commit([(verb_key("missed"), Some(verb("missed", "x")))]);
    let effect = replica.receive(response(ledger.bookmark(4))).unwrap();
    assert!(matches!(effect, Effect::Current { verdict, .. } if verdict.differs()));
    assert_eq!(replica.revision(), Revision(3), "of 4 it has not heard");
    assert_eq!(replica.open(), None, "a snapshot is asked for");
}

#[test]
fn a_group_that_only_one_side_has_differs() {
    let (ledger, mut replica) = current();
    let bookmark = |digests| {
        Message::Bookmark(pb::Bookmark {
            cursor: Some(ledger.cursor(3)),
            digests,
            server_time: None,
        })
    };
    let verdict_of = |effect| match effect {
        Ok(Effect::Current { verdict, .. }) => verdict.differs(),
        other => panic!("{other:?}"),
    };
    assert!(verdict_of(replica.receive(response(bookmark(Vec::new())))));
    let mut more = ledger.digests(3);
    more.push(pb::Digest {
        namespace: "x".into(),
        kind: 2,
        user_scoped: true,
        count: 1,
        hash: vec![1; 16].into(),
    });
    assert!(verdict_of(replica.receive(response(bookmark(more)))));
    let mut short = ledger.digests(3);
    short[0].hash = vec![1; 15].into();
    assert!(replica.receive(response(bookmark(short))).is_err());
}

#[test]
fn what_cannot_be_used_is_noted_counts_in_digests_and_holds_nothing_back() {
    let (mut ledger, mut replica) = current();
    let mut unknown = verb_key("a");
    unknown.1 = 99;
    ledger.commit([
        (verb_key("a"), Some(b"\xff\xff".to_vec())),
        (verb_key("b"), Some(verb("b", "other"))),
        (unknown.clone(), Some(verb("a", "x"))),
    ]);
    let effect = feed(&mut replica, ledger.update(3, 4, 9)).unwrap();
    let Effect::Applied(applied) = effect else {
        panic!("{effect:?}")
    };
    assert_eq!(applied.verdict, Verdict::Same);
    let rejected = applied
        .changes
        .iter()
        .filter(|change| matches!(change.state, State::Rejected(_)));
    assert_eq!((rejected.count(), replica.rejected().len()), (2, 2));
    assert_eq!(replica.facts().count(), 2, "of b and c");

    ledger.commit([(verb_key("a"), Some(verb("a", "mended"))), (unknown, None)]);
    feed(&mut replica, ledger.update(4, 5, 9)).unwrap();
    assert_eq!(replica.rejected().len(), 0);
    assert_eq!(replica.facts().count(), 3);
}

#[test]
fn a_value_that_was_changed_on_the_way_is_rejected() {
    let (mut ledger, mut replica) = current();
    ledger.commit([(verb_key("a"), Some(verb("a", "good")))]);
    let mut update = as_update(ledger.update(3, 4, 9).remove(0));
    if let Some(ChangeKind::Put(resource)) = &mut update.changes[0].change {
        resource.value = verb("a", "evil").into();
    }
    replica.receive(response(Message::Update(update))).unwrap();
    let (key, revision, why) = replica.rejected().newest().next().unwrap();
    assert_eq!((key.key, revision), ("a", 4));
    assert!(matches!(why, Rejection::ChecksumMismatch { .. }));
}

#[test]
fn what_this_version_does_not_know_is_skipped() {
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
    let (ledger, replica) = current();
    let (cursor, holdings) = replica.copy().unwrap();
    let restored: Vec<_> = holdings
        .iter()
        .map(|envelope| Restored {
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
    assert_eq!(&held(&again), ledger.state(3));
    assert_eq!(again.open(), Some(ledger.cursor(3)));
    let effect = feed(&mut again, vec![ledger.resumed(3), ledger.bookmark(3)]).unwrap();
    assert_eq!(
        effect,
        Effect::Current {
            revision: Revision(3),
            verdict: Verdict::Same
        }
    );
}

/// The same log, as another installation would send it.
fn of_another_installation(ledger: &Ledger) -> Ledger {
    let mut other = ledger.clone();
    other.installation = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f11".into();
    other
}

fn id(ledger: &Ledger) -> InstallationId {
    InstallationId::parse(&ledger.installation).unwrap()
}

#[test]
fn another_installations_stream_changes_nothing() {
    let (ledger, mut replica) = current();
    let other = of_another_installation(&ledger);
    let refused = Effect::OtherInstallation {
        held: id(&ledger),
        answering: id(&other),
    };
    // An empty database, the same log under another id, and a snapshot in the middle of a good stream.
    let snapshot =
        of_another_installation(&Ledger::new("other epoch")).snapshot(0, SnapshotReason::ForeignEpoch, 9);
    replica.open();
    assert_eq!(
        replica.receive(response(snapshot[0].clone())),
        Ok(refused.clone())
    );
    assert!(
        feed(&mut replica, snapshot[1..].to_vec()).is_err(),
        "nothing more is taken from that stream"
    );
    replica.open();
    assert_eq!(replica.receive(response(other.resumed(3))), Ok(refused.clone()));
    replica.open();
    replica.receive(response(ledger.resumed(3))).unwrap();
    assert_eq!(replica.receive(response(snapshot[0].clone())), Ok(refused));

    assert_eq!(&held(&replica), ledger.state(3));
    assert_eq!(replica.installation(), Some(id(&ledger)));
    assert!(replica.copy().is_some());
    // Its own installation is resumed from where it was.
    assert_eq!(replica.open(), Some(ledger.cursor(3)));
    assert_eq!(
        replica.receive(response(ledger.resumed(3))),
        Ok(Effect::Resumed(Revision(3)))
    );
}

#[test]
fn an_accepted_installation_replaces_what_is_held_at_the_end_of_its_snapshot() {
    let (ledger, mut replica) = current();
    let mut other = of_another_installation(&Ledger::new("other epoch"));
    other.commit([(verb_key("d"), Some(verb("d", "other")))]);
    replica.accept(id(&other));
    replica.open();
    let mut snapshot = other.snapshot(1, SnapshotReason::ForeignEpoch, 9);
    let end = snapshot.pop().unwrap();
    feed(&mut replica, snapshot).unwrap();
    assert_eq!(
        (&held(&replica), replica.installation()),
        (ledger.state(3), Some(id(&ledger)))
    );
    replica.receive(response(end)).unwrap();
    assert_eq!(
        (&held(&replica), replica.installation()),
        (other.state(1), Some(id(&other)))
    );
    // From now on, the one before is the other one.
    replica.open();
    let begin = ledger.snapshot(3, SnapshotReason::ForeignEpoch, 9).remove(0);
    let refused = replica.receive(response(begin));
    assert!(
        matches!(refused, Ok(Effect::OtherInstallation { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_replica_that_holds_nothing_accepts_any_installation() {
    let (ledger, _) = current();
    let mut replica = replica();
    let empty = of_another_installation(&Ledger::new("other epoch"));
    feed(&mut replica, empty.snapshot(0, SnapshotReason::NoCursor, 9)).unwrap();
    assert_eq!(replica.installation(), Some(id(&empty)));
    replica.open();
    feed(&mut replica, ledger.snapshot(3, SnapshotReason::ForeignEpoch, 9)).unwrap();
    assert_eq!(
        (&held(&replica), replica.installation()),
        (ledger.state(3), Some(id(&ledger)))
    );
}

#[test]
fn a_new_epoch_of_the_same_installation_replaces_what_is_held() {
    let (_, mut replica) = current();
    let mut restored = Ledger::new("new epoch");
    restored.commit([(verb_key("a"), Some(verb("a", "restored")))]);
    replica.open();
    feed(
        &mut replica,
        restored.snapshot(1, SnapshotReason::ForeignEpoch, 9),
    )
    .unwrap();
    assert_eq!(&held(&replica), restored.state(1));
}

#[test]
fn a_drain_for_longer_than_can_be_counted_asks_for_no_wait() {
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
