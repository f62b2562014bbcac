//! A node against a server on a real socket: connecting, resuming, healing, reporting, starting from disk, mirroring.

#[path = "subscriber/mirror.rs"]
mod mirror;
mod support;

use std::{path::Path, time::Duration};

use emend_base::{BackoffConfig, Entropy, Lifecycle};
use emend_client::{Events, LearnedView, NodeHandle, Origin, Subscriber, SubscriberBuilder, SubscriberEvent};
use emend_core::{InstallationId, Kind, Namespace, Revision};
use emend_proto::learning::v1::{ReportStatusRequest, SnapshotReason};
use jiff::SignedDuration;
use tonic::Status;
use tonic_types::{ErrorDetails, StatusExt as _};

use self::support::{
    FakeServer, bounded, event,
    server_log::{INSTALLATION, ServerLog, drain, verb, verb_key},
};

const GRACE: Duration = Duration::from_secs(5);

fn builder(uri: &str) -> SubscriberBuilder {
    Subscriber::builder(uri, "search-1")
        .namespace("fund-admin")
        .bookmark_interval(Duration::from_secs(1))
        .report_interval(Duration::from_millis(20))
        .backoff(BackoffConfig {
            initial: Duration::from_millis(10),
            max: Duration::from_millis(50),
            multiplier: 2.0,
        })
        .entropy(Entropy::seeded(1))
}

fn answer(view: &LearnedView, phrase: &str) -> Option<String> {
    let namespace = Namespace::parse("fund-admin").expect("valid");
    let resolution = view
        .resolve(&namespace, Kind::InvocationPhrase, phrase, None, [])
        .expect("valid");
    resolution.found.map(|found| found.value)
}

async fn at(node: &NodeHandle, revision: i64) {
    bounded("a revision", node.view().wait_for_revision(Revision(revision))).await;
}

fn one_revision() -> ServerLog {
    let mut log = ServerLog::new("epoch");
    log.commit([(
        verb_key("set up a csa"),
        Some(verb("Set up a CSA", "create_isda")),
    )]);
    log
}

#[tokio::test]
async fn a_node_answers_what_the_server_learned() {
    let (mut server, lifecycle) = (FakeServer::start().await, Lifecycle::new());
    let node = builder(&server.uri()).zone("eu").spawn(&lifecycle).await.unwrap();
    assert_eq!(node.view().staleness().origin, Origin::Nothing);

    let stream = server.stream().await;
    assert_eq!(stream.request.cursor, None);
    assert_eq!(stream.request.namespaces, ["fund-admin"]);
    assert_eq!(stream.request.node.as_ref().unwrap().zone, "eu");
    let mut log = one_revision();
    stream.send(log.snapshot(1, SnapshotReason::NoCursor, 10)).await;
    at(&node, 1).await;
    assert_eq!(
        answer(node.view(), "  SET up a csa ").as_deref(),
        Some("create_isda")
    );

    log.commit([(verb_key("set up a csa"), Some(verb("Set up a CSA", "create_csa")))]);
    stream.send(log.update(1, 2, 10)).await;
    at(&node, 2).await;
    assert_eq!(answer(node.view(), "set up a csa").as_deref(), Some("create_csa"));
    let staleness = node.view().staleness();
    assert!(staleness.connected && !staleness.in_doubt && staleness.age.is_some());
    assert_eq!(
        (staleness.origin, staleness.epoch.as_deref()),
        (Origin::Stream, Some("epoch"))
    );

    let applied_2 =
        |report: &ReportStatusRequest| report.applied.as_ref().is_some_and(|cursor| cursor.revision == 2);
    let report = server.report(applied_2).await;
    assert_eq!((report.node_id.as_str(), report.rejected_count), ("search-1", 0));
    assert_eq!(
        report.delays.unwrap().counts.iter().sum::<i64>(),
        1,
        "a snapshot's resources are not counted as delays"
    );
    lifecycle.shutdown(GRACE).await;
}

#[tokio::test]
async fn a_broken_stream_is_resumed_where_it_broke() {
    let (mut server, lifecycle) = (FakeServer::start().await, Lifecycle::new());
    let node = builder(&server.uri()).spawn(&lifecycle).await.unwrap();
    let mut log = one_revision();
    let stream = server.stream().await;
    stream.send(log.snapshot(1, SnapshotReason::NoCursor, 10)).await;
    log.commit(["a", "b"].map(|phrase| (verb_key(phrase), Some(verb(phrase, "x")))));
    // The last part is never sent.
    stream.send(log.update(1, 2, 1).into_iter().take(1)).await;
    at(&node, 1).await;
    stream.fail(Status::unavailable("the server is going away")).await;

    let stream = server.stream().await;
    assert_eq!(stream.request.cursor, Some(log.cursor(1)));
    assert_eq!(answer(node.view(), "a"), None);
    stream.send([log.resumed(1)]).await;
    stream.send(log.update(1, 2, 1)).await;
    at(&node, 2).await;
    assert_eq!(answer(node.view(), "b").as_deref(), Some("x"));
    lifecycle.shutdown(GRACE).await;
}

#[tokio::test]
async fn a_drained_stream_is_reopened_with_the_cursor() {
    let (mut server, lifecycle) = (FakeServer::start().await, Lifecycle::new());
    let (node, mut events) = builder(&server.uri()).spawn_observed(&lifecycle).await.unwrap();
    let log = one_revision();
    let stream = server.stream().await;
    stream.send(log.snapshot(1, SnapshotReason::NoCursor, 10)).await;
    stream.send([log.bookmark(1), drain()]).await;
    stream.closed().await;
    let reason = event("the drain", &mut events, |event| match event {
        SubscriberEvent::Disconnected { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    assert!(reason.await.contains("SHUTDOWN"));
    let stream = server.stream().await;
    assert_eq!(stream.request.cursor, Some(log.cursor(1)));
    stream.send([log.resumed(1)]).await;
    event("resumed", &mut events, |event| {
        matches!(event, SubscriberEvent::Resumed { .. }).then_some(())
    })
    .await;
    assert!(node.view().staleness().connected);
    lifecycle.shutdown(GRACE).await;
}

#[tokio::test]
async fn a_node_whose_digests_differ_takes_a_snapshot_and_reports_it() {
    let (mut server, lifecycle) = (FakeServer::start().await, Lifecycle::new());
    let (node, mut events) = builder(&server.uri()).spawn_observed(&lifecycle).await.unwrap();
    let log = one_revision();
    let stream = server.stream().await;
    stream.send(log.snapshot(1, SnapshotReason::NoCursor, 10)).await;
    at(&node, 1).await;
    // The server has lost a revision and written others in its place.
    let mut other = ServerLog::new("epoch");
    other.commit([(verb_key("set up a csa"), Some(verb("Set up a CSA", "create_csa")))]);
    other.commit([(verb_key("another"), Some(verb("Another", "create_csa")))]);
    stream.send([other.bookmark(2)]).await;
    stream.closed().await;

    let stream = server.stream().await;
    assert_eq!(stream.request.cursor, None, "a snapshot is requested");
    let staleness = node.view().staleness();
    assert!(staleness.in_doubt);
    assert_eq!(staleness.revision.0, 1, "a wait for revision 2 goes on");
    assert_eq!(
        answer(node.view(), "set up a csa").as_deref(),
        Some("create_isda"),
        "what is held stays in use"
    );
    stream.send(other.snapshot(2, SnapshotReason::NoCursor, 10)).await;
    stream.send([other.bookmark(2)]).await;
    let report = server.report(|report| !report.problem.is_empty()).await;
    assert_eq!(report.problem, "DIGEST_MISMATCH");
    event("a verified bookmark", &mut events, |event| match event {
        SubscriberEvent::Bookmark { .. } if !node.view().staleness().in_doubt => Some(()),
        _ => None,
    })
    .await;
    assert_eq!(answer(node.view(), "set up a csa").as_deref(), Some("create_csa"));
    lifecycle.shutdown(GRACE).await;
}

#[tokio::test]
async fn a_node_is_as_old_as_its_server_says() {
    let (mut server, lifecycle) = (FakeServer::start().await, Lifecycle::new());
    let (node, mut events) = builder(&server.uri()).spawn_observed(&lifecycle).await.unwrap();
    let log = one_revision();
    let stream = server.stream().await;
    stream.send(log.snapshot(1, SnapshotReason::NoCursor, 10)).await;
    for minutes in [7, 0] {
        let mut bookmark = log.bookmark(1);
        let emend_proto::wire::Message::Bookmark(message) = &mut bookmark else {
            unreachable!("a bookmark")
        };
        let announced = SignedDuration::from_mins(minutes);
        message.age = Some(announced.unsigned_abs().try_into().unwrap());
        stream.send([bookmark]).await;
        let age = event("the bookmark", &mut events, |event| match event {
            SubscriberEvent::Bookmark { age, .. } => Some(*age),
            _ => None,
        });
        assert_eq!(age.await, announced.unsigned_abs());
        let age = node.view().staleness().age.unwrap();
        assert!(
            (announced..announced + SignedDuration::from_mins(1)).contains(&age),
            "{age:?}"
        );
    }
    lifecycle.shutdown(GRACE).await;
}

#[tokio::test]
async fn a_mismatch_that_a_snapshot_does_not_repair_is_retried_with_back_off() {
    let (mut server, lifecycle) = (FakeServer::start().await, Lifecycle::new());
    let slow = BackoffConfig {
        initial: Duration::from_millis(100),
        max: Duration::from_secs(1),
        multiplier: 2.0,
    };
    let building = builder(&server.uri()).backoff(slow);
    let (_node, mut events) = building.spawn_observed(&lifecycle).await.unwrap();
    let log = one_revision();
    let mut waits = Vec::new();
    for _ in 0..3 {
        let stream = server.stream().await;
        assert_eq!(stream.request.cursor, None);
        let mut snapshot = log.snapshot(1, SnapshotReason::NoCursor, 10);
        if let Some(emend_proto::wire::Message::SnapshotEnd(end)) = snapshot.last_mut() {
            end.digests[0].count += 1;
        }
        stream.send(snapshot).await;
        let wait = event("the wait", &mut events, |event| match event {
            SubscriberEvent::Disconnected { retry_in, .. } => Some(*retry_in),
            _ => None,
        });
        waits.push(wait.await);
    }
    assert_eq!(waits[0], Duration::ZERO);
    assert!(
        waits[1..].iter().all(|wait| *wait >= Duration::from_millis(50)),
        "{waits:?}"
    );
    lifecycle.shutdown(GRACE).await;
}

#[tokio::test]
async fn a_rejected_resource_is_reported_at_once_and_does_not_hold_back_others() {
    let (mut server, lifecycle) = (FakeServer::start().await, Lifecycle::new());
    let building = builder(&server.uri()).report_interval(Duration::from_hours(1));
    let node = building.spawn(&lifecycle).await.unwrap();
    let mut log = one_revision();
    let stream = server.stream().await;
    stream.send(log.snapshot(1, SnapshotReason::NoCursor, 10)).await;
    server.report(|_| true).await;
    log.commit([
        (verb_key("broken"), Some(b"\xff".to_vec())),
        (verb_key("valid"), Some(verb("valid", "x"))),
    ]);
    stream.send(log.update(1, 2, 10)).await;
    let report = server.report(|report| report.rejected_count > 0).await;
    assert_eq!(report.rejected[0].key.as_ref().unwrap().key, "broken");
    assert_eq!(report.rejected[0].revision, 2);
    assert_eq!(report.applied, Some(log.cursor(2)));
    assert_eq!(answer(node.view(), "valid").as_deref(), Some("x"));
    stream.send([log.bookmark(2)]).await;
    at(&node, 2).await;
    assert!(!node.view().staleness().in_doubt, "it counts in the digests");
    lifecycle.shutdown(GRACE).await;
}

#[tokio::test]
async fn a_silent_stream_is_closed() {
    let (mut server, lifecycle) = (FakeServer::start().await, Lifecycle::new());
    let building = builder(&server.uri()).idle_timeout(Duration::from_millis(100));
    let (_node, mut events) = building.spawn_observed(&lifecycle).await.unwrap();
    let log = one_revision();
    let stream = server.stream().await;
    stream.send(log.snapshot(1, SnapshotReason::NoCursor, 10)).await;
    let reason = event("the end", &mut events, |event| match event {
        SubscriberEvent::Disconnected { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    assert!(reason.await.contains("no message for"));
    assert_eq!(server.stream().await.request.cursor, Some(log.cursor(1)));
    lifecycle.shutdown(GRACE).await;
}

#[tokio::test]
async fn after_two_protocol_violations_a_snapshot_is_requested() {
    let (mut server, lifecycle) = (FakeServer::start().await, Lifecycle::new());
    let node = builder(&server.uri()).spawn(&lifecycle).await.unwrap();
    let mut log = one_revision();
    let stream = server.stream().await;
    stream.send(log.snapshot(1, SnapshotReason::NoCursor, 10)).await;
    log.commit([]);
    log.commit([(verb_key("a"), Some(verb("a", "x")))]);
    stream.send(log.update(2, 3, 10)).await;
    let stream = server.stream().await;
    assert_eq!(stream.request.cursor, Some(log.cursor(1)));
    stream.send([log.resumed(1)]).await;
    stream.send(log.update(2, 3, 10)).await;
    let stream = server.stream().await;
    assert_eq!(stream.request.cursor, None);
    stream.send(log.snapshot(3, SnapshotReason::NoCursor, 10)).await;
    at(&node, 3).await;
    server
        .report(|report| report.problem == "PROTOCOL_VIOLATION")
        .await;
    lifecycle.shutdown(GRACE).await;
}

#[tokio::test]
async fn repeated_protocol_violations_are_retried_with_back_off() {
    let (mut server, lifecycle) = (FakeServer::start().await, Lifecycle::new());
    let growing = BackoffConfig {
        initial: Duration::from_millis(20),
        max: Duration::from_secs(1),
        multiplier: 4.0,
    };
    let building = builder(&server.uri()).backoff(growing);
    let (_node, mut events) = building.spawn_observed(&lifecycle).await.unwrap();
    let mut log = one_revision();
    log.commit([]);
    log.commit([(verb_key("a"), Some(verb("a", "x")))]);
    let mut waits = Vec::new();
    for _ in 0..7 {
        let stream = server.stream().await;
        stream
            .send(match stream.request.cursor {
                // Each stream starts validly.
                None => log.snapshot(1, SnapshotReason::NoCursor, 10),
                Some(_) => vec![log.resumed(1)],
            })
            .await;
        // Revision 2 is left out.
        stream.send(log.update(2, 3, 10)).await;
        let wait = event("the wait", &mut events, |event| match event {
            SubscriberEvent::Disconnected { retry_in, .. } => Some(*retry_in),
            _ => None,
        });
        waits.push(wait.await);
    }
    // Waits are drawn from nearly zero upwards. That none of seven is long happens by chance once in 100,000 runs.
    assert!(waits.iter().any(|wait| *wait > 4 * growing.initial), "{waits:?}");
    lifecycle.shutdown(GRACE).await;
}

#[tokio::test]
async fn an_overloaded_server_is_not_called_before_the_delay_it_asks_for() {
    let (mut server, lifecycle) = (FakeServer::start().await, Lifecycle::new());
    let (_node, mut events) = builder(&server.uri()).spawn_observed(&lifecycle).await.unwrap();
    let asked = Duration::from_millis(300);
    let status = Status::with_error_details(
        tonic::Code::Unavailable,
        "busy",
        ErrorDetails::with_retry_info(Some(asked)),
    );
    server.stream().await.fail(status).await;
    let wait = event("the wait", &mut events, |event| match event {
        SubscriberEvent::Disconnected { retry_in, .. } => Some(*retry_in),
        _ => None,
    });
    // And up to as long again, so that nodes that were given the same wait do not return together.
    let wait = wait.await;
    assert!((asked..=2 * asked).contains(&wait), "{wait:?}");
    server.stream().await;
    lifecycle.shutdown(GRACE).await;
}

#[tokio::test]
async fn a_node_starts_from_disk_while_the_server_is_down_and_then_resumes() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("learned");
    let mut server = FakeServer::start().await;
    let mut log = one_revision();
    let lifecycle = Lifecycle::new();
    let node = builder(&server.uri())
        .copy(&copy)
        .spawn(&lifecycle)
        .await
        .unwrap();
    let stream = server.stream().await;
    stream.send(log.snapshot(1, SnapshotReason::NoCursor, 10)).await;
    at(&node, 1).await;
    node.shutdown(GRACE).await;
    let uri = server.uri();
    let address = server.stop().await;

    let (node, mut events) = builder(&uri)
        .copy(&copy)
        .spawn_observed(&lifecycle)
        .await
        .unwrap();
    assert_eq!(
        answer(node.view(), "set up a csa").as_deref(),
        Some("create_isda")
    );
    let staleness = node.view().staleness();
    assert!(
        matches!(staleness.origin, Origin::DiskCopy { .. }),
        "{staleness:?}"
    );
    assert!(!staleness.connected && staleness.age.is_some());
    assert_eq!(staleness.revision, Revision(1));
    event("a failed attempt", &mut events, |event| {
        matches!(event, SubscriberEvent::Disconnected { .. }).then_some(())
    })
    .await;

    let mut server = FakeServer::start_at(address).await;
    let stream = server.stream().await;
    assert_eq!(stream.request.cursor, Some(log.cursor(1)));
    log.commit([(verb_key("set up a csa"), None)]);
    stream.send([log.resumed(1)]).await;
    stream.send(log.update(1, 2, 10)).await;
    at(&node, 2).await;
    assert_eq!(
        answer(node.view(), "set up a csa"),
        None,
        "what was deleted in the meantime is deleted on return"
    );
    let saved = |event: &SubscriberEvent| {
        matches!(
            event,
            SubscriberEvent::Saved {
                revision: Revision(2)
            }
        )
        .then_some(())
    };
    // Written at the latest when the node ends.
    node.shutdown(GRACE).await;
    event("the copy", &mut events, saved).await;
    lifecycle.shutdown(GRACE).await;
}

#[tokio::test]
async fn the_copy_is_written_while_the_node_runs() {
    let directory = tempfile::tempdir().unwrap();
    let (mut server, lifecycle) = (FakeServer::start().await, Lifecycle::new());
    let building = builder(&server.uri())
        .copy(directory.path().join("learned"))
        .copy_interval(Duration::ZERO);
    let (_node, mut events) = building.spawn_observed(&lifecycle).await.unwrap();
    let mut log = one_revision();
    let stream = server.stream().await;
    stream.send(log.snapshot(1, SnapshotReason::NoCursor, 10)).await;
    for revision in 1..4 {
        event("a copy", &mut events, |event| match event {
            SubscriberEvent::Saved {
                revision: Revision(saved),
            } if *saved == revision => Some(()),
            _ => None,
        })
        .await;
        log.commit([(verb_key("a"), Some(verb("a", &format!("x{revision}"))))]);
        stream.send(log.update(revision, revision + 1, 10)).await;
    }
    lifecycle.shutdown(GRACE).await;
}

#[tokio::test]
async fn a_damaged_copy_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("learned");
    std::fs::write(&copy, b"EMENDLKG and then nothing of the kind").unwrap();
    let (mut server, lifecycle) = (FakeServer::start().await, Lifecycle::new());
    let (node, mut events) = builder(&server.uri())
        .copy(&copy)
        .spawn_observed(&lifecycle)
        .await
        .unwrap();
    event("the refusal", &mut events, |event| {
        matches!(event, SubscriberEvent::CopyRefused { .. }).then_some(())
    })
    .await;
    assert_eq!(node.view().staleness().origin, Origin::Nothing);
    assert_eq!(server.stream().await.request.cursor, None);
    lifecycle.shutdown(GRACE).await;
}

#[tokio::test]
async fn a_copy_of_other_namespaces_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("learned");
    let (mut server, lifecycle) = (FakeServer::start().await, Lifecycle::new());
    write_copy(&mut server, &copy, &lifecycle).await;
    let other = builder(&server.uri())
        .namespace("legal")
        .copy(&copy)
        .spawn(&lifecycle)
        .await
        .unwrap();
    assert_eq!(answer(other.view(), "set up a csa"), None);
    assert_eq!(server.stream().await.request.cursor, None);
    lifecycle.shutdown(GRACE).await;
}

async fn write_copy(server: &mut FakeServer, copy: &Path, lifecycle: &Lifecycle) {
    let node = builder(&server.uri())
        .copy(copy)
        .spawn(lifecycle)
        .await
        .expect("valid");
    let log = one_revision();
    server
        .stream()
        .await
        .send(log.snapshot(1, SnapshotReason::NoCursor, 10))
        .await;
    at(&node, 1).await;
    node.shutdown(GRACE).await;
}

/// The log of another installation, and its id.
fn another_installation(revisions: usize) -> (ServerLog, InstallationId) {
    let mut log = ServerLog::new("another epoch");
    log.installation = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f11".into();
    for revision in 0..revisions {
        let verb = verb("New", &format!("new_{revision}"));
        log.commit([(verb_key("new"), Some(verb))]);
    }
    let id = InstallationId::parse(&log.installation).expect("a UUID");
    (log, id)
}

/// Waits for an event that says that another installation answers, and returns that one.
async fn mismatch(events: &mut Events) -> InstallationId {
    event("the mismatch", events, |event| match event {
        SubscriberEvent::InstallationMismatch { held, answering } => {
            assert_eq!(Some(*held), InstallationId::parse(INSTALLATION).ok());
            Some(*answering)
        }
        _ => None,
    })
    .await
}

#[tokio::test]
async fn a_node_keeps_its_state_while_another_installation_answers() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("learned");
    let (mut server, lifecycle) = (FakeServer::start().await, Lifecycle::new());
    write_copy(&mut server, &copy, &lifecycle).await;
    let started = builder(&server.uri()).copy(&copy).spawn_observed(&lifecycle);
    let (node, mut events) = started.await.unwrap();
    let log = one_revision();
    let (empty, other) = another_installation(0);

    // Twice: the node goes on trying, with the cursor that it had.
    for _ in 0..2 {
        let stream = server.stream().await;
        assert_eq!(stream.request.cursor, Some(log.cursor(1)));
        stream
            .send(empty.snapshot(0, SnapshotReason::ForeignEpoch, 10))
            .await;
        let report = server.report(|report| !report.problem.is_empty()).await;
        assert_eq!(report.problem, "INSTALLATION_MISMATCH");
        assert_eq!(report.applied, Some(log.cursor(1)));
        stream.closed().await;
    }
    assert_eq!(mismatch(&mut events).await, other);
    let staleness = node.view().staleness();
    assert_eq!(staleness.installation, InstallationId::parse(INSTALLATION).ok());
    assert_eq!(staleness.other_installation, Some(other));
    assert_eq!(
        answer(node.view(), "set up a csa").as_deref(),
        Some("create_isda")
    );

    // Another replica, or a repaired server.
    let stream = server.stream().await;
    stream.send([log.resumed(1)]).await;
    let resumed = event("the resumed stream", &mut events, |event| match event {
        SubscriberEvent::Resumed { .. } => Some(true),
        SubscriberEvent::InstallationMismatch { .. } => Some(false),
        _ => None,
    });
    assert!(resumed.await, "the mismatch is an event once");
    assert_eq!(node.view().staleness().other_installation, None);
    node.shutdown(GRACE).await;
    lifecycle.shutdown(GRACE).await;
}

#[tokio::test]
async fn accepting_the_other_installation_takes_its_snapshot_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("learned");
    let (mut server, lifecycle) = (FakeServer::start().await, Lifecycle::new());
    write_copy(&mut server, &copy, &lifecycle).await;
    let never = BackoffConfig {
        initial: Duration::from_hours(1),
        max: Duration::from_hours(1),
        multiplier: 1.0,
    };
    let started = builder(&server.uri()).backoff(never).copy(&copy);
    let (node, mut events) = started.spawn_observed(&lifecycle).await.unwrap();
    let (new, other) = another_installation(2);
    let stream = server.stream().await;
    stream
        .send(new.snapshot(2, SnapshotReason::ForeignEpoch, 10))
        .await;
    let answering = mismatch(&mut events).await;
    stream.closed().await;

    node.accept_installation(answering);
    let stream = server.stream().await;
    stream
        .send(new.snapshot(2, SnapshotReason::ForeignEpoch, 10))
        .await;
    at(&node, 2).await;
    assert_eq!(answer(node.view(), "new").as_deref(), Some("new_1"));
    assert_eq!(answer(node.view(), "set up a csa"), None);
    let staleness = node.view().staleness();
    assert_eq!(
        (staleness.installation, staleness.other_installation),
        (Some(other), None)
    );
    node.shutdown(GRACE).await;

    // The copy on disk is of the accepted installation.
    let node = builder(&server.uri())
        .copy(&copy)
        .spawn(&lifecycle)
        .await
        .unwrap();
    assert_eq!(node.view().staleness().installation, Some(other));
    assert_eq!(answer(node.view(), "new").as_deref(), Some("new_1"));
    lifecycle.shutdown(GRACE).await;
}

#[tokio::test]
async fn an_installation_accepted_in_the_settings_replaces_the_copy_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("learned");
    let (mut server, lifecycle) = (FakeServer::start().await, Lifecycle::new());
    write_copy(&mut server, &copy, &lifecycle).await;
    let (new, other) = another_installation(2);
    let started = builder(&server.uri()).copy(&copy).accept_installation(other);
    let node = started.spawn(&lifecycle).await.unwrap();
    let stream = server.stream().await;
    stream
        .send(new.snapshot(2, SnapshotReason::ForeignEpoch, 10))
        .await;
    at(&node, 2).await;
    assert_eq!(answer(node.view(), "new").as_deref(), Some("new_1"));
    lifecycle.shutdown(GRACE).await;
}

#[tokio::test]
async fn a_slow_observer_misses_events_and_delays_nobody() {
    let (mut server, lifecycle) = (FakeServer::start().await, Lifecycle::new());
    let node = builder(&server.uri()).spawn(&lifecycle).await.unwrap();
    let mut slow = node.events();
    let mut log = one_revision();
    let stream = server.stream().await;
    stream.send(log.snapshot(1, SnapshotReason::NoCursor, 10)).await;
    for revision in 1..600 {
        log.commit([(verb_key("a"), Some(verb("a", "x")))]);
        stream.send(log.update(revision, revision + 1, 10)).await;
    }
    at(&node, 600).await;
    let first = bounded("an event", slow.next()).await;
    assert!(
        matches!(first, Some(emend_client::Observed::Missed(_))),
        "{first:?}"
    );
    lifecycle.shutdown(GRACE).await;
}

#[tokio::test]
async fn every_invalid_setting_is_named() {
    let building = Subscriber::builder("http://127.0.0.1:1", "not an id")
        .namespace("Not OK")
        .bookmark_interval(Duration::ZERO)
        .max_batch_bytes(5);
    let error = building.spawn(&Lifecycle::new()).await.unwrap_err().to_string();
    for field in ["node.id", "namespaces[0]", "bookmark_interval", "max_batch_bytes"] {
        assert!(error.contains(field), "{error}");
    }
    assert!(
        Subscriber::builder("not an address", "a")
            .spawn(&Lifecycle::new())
            .await
            .is_err()
    );
}
