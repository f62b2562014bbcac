//! Databases that fail under load, and databases restored from a backup: nothing is lost or counted twice, and nodes
//! end equal to what the database then holds.

use std::time::Duration;

use emend_client::SubscriberEvent;
use emend_proto::learning::v1::SnapshotReason;
use emend_tests::{
    harness::{
        Dice, StreamEvent, Subscriber, System, eventually,
        load::Load,
        node::Node,
        says,
        says::{alias_key, entity_value},
        system::Database,
        verb,
    },
    replicated,
};
use tokio::time::Instant;
use tonic::Code;

const ROUNDS: usize = 10;

replicated! {
    async fn a_database_that_goes_away_under_load_loses_nothing(system: 2 x 2) {
        let dice = Dice::seeded(21);
        let nodes = [
            Node::start(system.learning[0].front.address(), "search-0").await,
            Node::start(system.learning[1].front.address(), "search-1").await,
        ];
        let load = Load::start((0..8).map(|n| system.feedback_at(n % 2)));
        for _ in 0..ROUNDS {
            load.goes_on_by(1 + dice.below(100)).await;
            // In the middle of whatever is in progress, all connections of one replica end.
            let replicas = if dice.chance(0.5) { &system.feedback } else { &system.learning };
            let road = replicas[dice.below(2)].road.as_ref().unwrap();
            road.close();
            system.database.reopen(road);
        }
        load.goes_on_by(1).await;
        let head = load.ends_with_all_counted_once(&system.feedback(), &system.learning()).await;
        let stored = system.stored().resources().await;
        for (index, node) in nodes.iter().enumerate() {
            node.until(head).await;
            node.assert_answers_by(&stored, &[]);
            let mut subscriber = Subscriber::of_everything(&format!("late-{index}"));
            subscriber.begin(&system.learning_at(index).channel).await;
            subscriber.until(head).await;
            assert_eq!(*subscriber.held(), stored);
        }
    }
}

replicated! {
    async fn a_submission_fails_at_once_while_the_database_is_known_to_be_away(system: 1 x 1) {
        let road = system.feedback[0].road.as_ref().unwrap();
        let submit = async || {
            let mut service = system.feedback().service;
            let began = Instant::now();
            let answer = service.submit_feedback(says("jane", verb("set up a csa", "create_csa"))).await;
            (answer.map(drop), began.elapsed())
        };
        submit().await.0.expect("it is stored");
        road.close();
        // The first to come finds out.
        eventually("it is known", async || match submit().await.0 {
            Err(status) if status.code() == Code::Unavailable => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        let mut took = Vec::new();
        for _ in 0..9 {
            let (answer, elapsed) = submit().await;
            assert_eq!(answer.expect_err("it is away").code(), Code::Unavailable);
            took.push(elapsed);
        }
        took.sort_unstable();
        // The machine may be busy with other tests: most are to be that fast.
        assert!(took[4] < Duration::from_millis(500), "{took:?}");
        system.database.reopen(road);
        eventually("it is stored again", async || submit().await.0.map_err(|status| status.to_string())).await;
    }
}

/// Copies learning-svc's files, to or from a backup. The service must be stopped.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    for file in ["learning.db", "learning.db-wal", "learning.db-shm"] {
        let (from, to) = (from.join(file), to.join(file));
        if from.exists() {
            std::fs::copy(from, to).expect("a file is copied");
        } else if to.exists() {
            std::fs::remove_file(to).expect("a file is removed");
        }
    }
}

/// Takes a backup at revision 2, continues to revision 4, and restores the backup.
async fn restored_from_a_backup(system: &mut System, meanwhile: impl AsyncFnOnce(&System)) {
    let Database::Sqlite(directory) = &system.database else {
        unreachable!("started on SQLite")
    };
    let directory = directory.path().to_owned();
    let backup = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        system
            .learning()
            .put(alias_key(name), entity_value("person-1"))
            .await;
    }
    system.stop_learning().await;
    copy(&directory, backup.path());
    system.start_learning().await;
    system
        .learning()
        .put(alias_key("three"), entity_value("person-1"))
        .await;
    system.learning().delete(alias_key("two")).await.unwrap();
    meanwhile(system).await;
    system.stop_learning().await;
    copy(backup.path(), &directory);
    system.start_learning().await;
    assert_eq!(system.learning().head().await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscriber_ahead_of_a_restored_database_gets_a_snapshot_and_is_told_why() {
    let mut system = System::sqlite().await;
    let mut subscriber = Subscriber::new("n");
    restored_from_a_backup(&mut system, async |system| {
        subscriber.begin(&system.learning().channel).await;
        subscriber.until(4).await;
        subscriber.disconnect();
    })
    .await;
    let reason = SnapshotReason::CursorAhead;
    assert_eq!(
        subscriber.begin(&system.learning().channel).await,
        StreamEvent::Snapshot { reason, revision: 2 }
    );
    assert_eq!(*subscriber.held(), system.stored().resources().await);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_detects_that_a_restored_database_diverged_and_recovers() {
    let mut system = System::sqlite().await;
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("learned.emend");
    let front = system.learning[0].front.address();
    restored_from_a_backup(&mut system, async |_| {
        let node = Node::start_from(front, "search-1", Some(kept.clone())).await;
        node.until(4).await;
        node.stop().await;
    })
    .await;
    // The log grows beyond where the node has been, with different content.
    for name in ["four", "five", "six"] {
        system
            .learning()
            .put(alias_key(name), entity_value("person-2"))
            .await;
    }
    let mut node = Node::start_from(front, "search-1", Some(kept)).await;
    node.until_event("it finds out", |event| {
        matches!(event, SubscriberEvent::DigestMismatch { .. }).then_some(())
    })
    .await;
    node.until_event("it starts over", |event| {
        matches!(event, SubscriberEvent::Snapshot { .. }).then_some(())
    })
    .await;
    node.until_certain().await;
    node.until(5).await;
    node.assert_answers_by(&system.stored().resources().await, &["one", "two", "three"]);
    system.stop().await;
}
