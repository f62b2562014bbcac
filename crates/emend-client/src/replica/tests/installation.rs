//! What a replica does when another installation answers.

use super::*;

/// The same log, as another installation would send it.
fn of_another_installation(log: &ServerLog) -> ServerLog {
    let mut other = log.clone();
    other.installation = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f11".into();
    other
}

fn id(log: &ServerLog) -> InstallationId {
    InstallationId::parse(&log.installation).unwrap()
}

#[test]
fn another_installations_stream_changes_nothing() {
    let (log, mut replica) = current();
    let other = of_another_installation(&log);
    let refused = Effect::OtherInstallation {
        held: id(&log),
        answering: id(&other),
    };
    // An empty database, the same log under another id, and a snapshot in the middle of a good stream.
    let snapshot =
        of_another_installation(&ServerLog::new("other epoch")).snapshot(0, SnapshotReason::ForeignEpoch, 9);
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
    replica.receive(response(log.resumed(3))).unwrap();
    assert_eq!(replica.receive(response(snapshot[0].clone())), Ok(refused));

    assert_eq!(&held(&replica), log.state(3));
    assert_eq!(replica.installation(), Some(id(&log)));
    assert!(replica.copy().is_some());
    // Its own installation is resumed from where it was.
    assert_eq!(replica.open(), Some(log.cursor(3)));
    assert_eq!(
        replica.receive(response(log.resumed(3))),
        Ok(Effect::Resumed(Revision(3)))
    );
}

#[test]
fn an_accepted_installation_replaces_what_is_held_at_the_end_of_its_snapshot() {
    let (log, mut replica) = current();
    let mut other = of_another_installation(&ServerLog::new("other epoch"));
    other.commit([(verb_key("d"), Some(verb("d", "other")))]);
    replica.accept(id(&other));
    replica.open();
    let mut snapshot = other.snapshot(1, SnapshotReason::ForeignEpoch, 9);
    let end = snapshot.pop().unwrap();
    feed(&mut replica, snapshot).unwrap();
    assert_eq!(
        (&held(&replica), replica.installation()),
        (log.state(3), Some(id(&log)))
    );
    replica.receive(response(end)).unwrap();
    assert_eq!(
        (&held(&replica), replica.installation()),
        (other.state(1), Some(id(&other)))
    );
    // From now on, the one before is the other one.
    replica.open();
    let begin = log.snapshot(3, SnapshotReason::ForeignEpoch, 9).remove(0);
    let refused = replica.receive(response(begin));
    assert!(
        matches!(refused, Ok(Effect::OtherInstallation { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_replica_that_holds_nothing_accepts_any_installation() {
    let (log, _) = current();
    let mut replica = replica();
    let empty = of_another_installation(&ServerLog::new("other epoch"));
    feed(&mut replica, empty.snapshot(0, SnapshotReason::NoCursor, 9)).unwrap();
    assert_eq!(replica.installation(), Some(id(&empty)));
    replica.open();
    feed(&mut replica, log.snapshot(3, SnapshotReason::ForeignEpoch, 9)).unwrap();
    assert_eq!(
        (&held(&replica), replica.installation()),
        (log.state(3), Some(id(&log)))
    );
}

#[test]
fn a_new_epoch_of_the_same_installation_replaces_what_is_held() {
    let (_, mut replica) = current();
    let mut restored = ServerLog::new("new epoch");
    restored.commit([(verb_key("a"), Some(verb("a", "restored")))]);
    replica.open();
    feed(
        &mut replica,
        restored.snapshot(1, SnapshotReason::ForeignEpoch, 9),
    )
    .unwrap();
    assert_eq!(&held(&replica), restored.state(1));
}
