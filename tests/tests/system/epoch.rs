//! A new epoch: after a restore nodes take a snapshot, whatever revision they had reached.

use std::path::Path;

use emend_client::{Installed, SubscriberEvent};
use emend_proto::learning::v1::SnapshotReason;
use emend_tests::{
    audit::ledger,
    both_databases,
    harness::{
        Feedback, Learning, StreamEvent, Subscriber, System, alias, deployment::Up, node::Node,
        process::emend, says, system::Database,
    },
};

use crate::story::{go_on, learn_a_little};

/// Runs `emend admin new-epoch` on a database; answers with (the old epoch, the new one).
pub(crate) async fn new_epoch(arguments: &[&str]) -> (String, String) {
    let mut all = vec!["admin", "new-epoch", "--json"];
    all.extend_from_slice(arguments);
    let ran = emend(&all).await;
    assert_eq!(ran.code, 0, "{ran:#?}");
    let json = ran.json();
    let epoch = |field: &str| json[field].as_str().unwrap().to_owned();
    (epoch("oldEpoch"), epoch("epoch"))
}

/// Copies the databases of both services, which have ended.
pub(crate) fn copy_files(from: &Path, to: &Path) {
    for file in ["feedback.db", "learning.db"] {
        std::fs::copy(from.join(file), to.join(file)).unwrap();
    }
}

async fn assert_snapshot(node: &mut Node) {
    node.until_event("a snapshot of the new epoch", |event| {
        matches!(
            event,
            SubscriberEvent::Snapshot {
                snapshot: Installed {
                    reason: SnapshotReason::ForeignEpoch | SnapshotReason::NewEpoch,
                    ..
                },
                ..
            }
        )
        .then_some(())
    })
    .await;
}

both_databases! {
    async fn a_cursor_of_the_old_epoch_gets_a_snapshot_that_says_so(system) {
        let learning = system.learning();
        learn_a_little(&learning).await;
        let mut node = Node::start(system.learning[0].front.address(), "search-1").await;
        node.until(learning.head().await).await;
        let mut steady = Subscriber::of_everything("steady");
        steady.begin(&learning.channel).await;
        let old = steady.cursor().epoch.clone();
        system.stop_learning().await;
        while steady.try_next().await.is_ok_and(|heard| heard != StreamEvent::End) {}

        let url = system.database.url(emend_tests::harness::system::Service::Learning, None);
        let (before, after) = new_epoch(&["--database-url", &url]).await;
        assert!(before == old && after != old, "{before} {after} {old}");

        system.start_learning().await;
        let heard = steady.begin(&system.learning().channel).await;
        let StreamEvent::Snapshot { reason, .. } = heard else {
            panic!("{heard:?}");
        };
        assert_eq!(reason, SnapshotReason::ForeignEpoch);
        assert_eq!(steady.cursor().epoch, after);
        let head = go_on(&system.learning()).await;
        steady.until(head).await;
        assert_snapshot(&mut node).await;
        ledger::expect_sound(system, None, &[(&node).into(), (&steady).into()]).await;
        // After that it is an epoch like any other.
        steady.disconnect();
        assert_eq!(steady.begin(&system.learning().channel).await, StreamEvent::Resumed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_end_equal_to_a_database_that_was_restored_from_a_backup() {
    let mut system = System::sqlite().await;
    let Database::Sqlite(directory) = &system.database else {
        unreachable!("it is SQLite")
    };
    let (data, backup) = (directory.path().to_owned(), tempfile::tempdir().unwrap());
    learn_a_little(&system.learning()).await;
    system
        .feedback()
        .learn(says("jane", alias("backed up", "person-1")))
        .await;
    system.stop_feedback().await;
    system.stop_learning().await;
    copy_files(&data, backup.path());

    system.start_learning().await;
    system.start_feedback().await;
    let mut node = Node::start(system.learning[0].front.address(), "search-1").await;
    let mut steady = Subscriber::of_everything("steady");
    steady.begin(&system.learning().channel).await;
    let lost = system
        .feedback()
        .learn(says("jane", alias("lost", "person-2")))
        .await;
    let beyond = go_on(&system.learning())
        .await
        .max(lost.outcome.unwrap().revision);
    node.until(beyond).await;
    steady.until(beyond).await;

    // The disk dies. Yesterday's backup has fewer revisions, and different ones will follow under the same numbers.
    system.stop_feedback().await;
    system.stop_learning().await;
    steady.disconnect();
    copy_files(backup.path(), &data);
    new_epoch(&["--data-dir", &data.display().to_string()]).await;
    system.start_learning().await;
    system.start_feedback().await;
    let mut head = 0;
    while head <= beyond {
        let name = format!("after {head}");
        let answer = system
            .feedback()
            .learn(says("tom", alias(&name, "person-3")))
            .await;
        head = answer.outcome.unwrap().revision;
    }
    assert!(matches!(
        steady.begin(&system.learning().channel).await,
        StreamEvent::Snapshot {
            reason: SnapshotReason::ForeignEpoch,
            ..
        }
    ));
    steady.until(head).await;
    assert_snapshot(&mut node).await;
    ledger::expect_sound(&system, None, &[(&node).into(), (&steady).into()]).await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_epoch_begins_only_on_an_existing_unused_database() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("none");
    let none = emend(&["admin", "new-epoch", "--data-dir", &missing.display().to_string()]).await;
    assert_eq!(none.code, 2, "{none:#?}");
    assert!(
        none.stderr.contains("no database") && !missing.exists(),
        "{none:#?}"
    );

    let up = Up::start().await;
    let path = up.data_dir().display().to_string();
    let locked = emend(&["admin", "new-epoch", "--data-dir", &path]).await;
    assert_eq!(locked.code, 4, "{locked:#?}");
    assert!(locked.stderr.contains("in use"), "{locked:#?}");

    let help = emend(&["admin", "new-epoch", "--help"]).await;
    assert_eq!(help.code, 0);
    for step in [
        "Stop",
        "Restore",
        "emend admin new-epoch",
        "emend doctor",
        "snapshot",
    ] {
        assert!(help.stdout.contains(step), "{step}: {}", help.stdout);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pair_lives_in_one_postgresql_database_through_a_new_epoch_and_a_restart() {
    let Some(database) = Database::postgres().await else {
        return;
    };
    let url = database.url(emend_tests::harness::system::Service::Learning, None);
    let mut up = Up::start_with(&["--accept-new-installation", "--database-url", &url]).await;
    let (feedback, learning) = (Feedback::at(up.feedback), Learning::at(up.learning));
    let mut node = Node::start(up.learning, "search-1").await;
    let mut steady = Subscriber::of_everything("steady");
    steady.begin(&learning.channel).await;
    let answer = feedback.learn(says("jane", alias("jd", "person-17"))).await;
    let head = answer.outcome.unwrap().revision;
    node.until(head).await;
    steady.until(head).await;

    // While it serves: connected subscribers are told within their streams.
    let sound = emend(&["doctor", "--database-url", &url]).await;
    assert_eq!(sound.code, 0, "{sound:#?}");
    let (_, epoch) = new_epoch(&["--database-url", &url]).await;
    let reason = steady
        .until_heard(|heard| match heard {
            StreamEvent::Snapshot { reason, .. } => Some(*reason),
            _ => None,
        })
        .await;
    assert_eq!(
        (reason, &steady.cursor().epoch),
        (SnapshotReason::NewEpoch, &epoch)
    );
    assert_snapshot(&mut node).await;
    node.assert_answers_by(&database.stored().resources().await, &[]);

    up.process.terminate().await;
    assert_eq!(up.process.ended().await.code(), Some(0));
    assert_eq!(
        up.process.standard_output().lines().count(),
        1,
        "the ready line and no more"
    );
    let up = Up::start_with(&["--database-url", &url]).await;
    assert_eq!(Learning::at(up.learning).entity_for("jd").await, "person-17");
}
