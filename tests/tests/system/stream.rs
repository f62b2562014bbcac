//! The update stream from a subscriber's view: what comes after an absence, why a snapshot comes, and how a stream
//! ends.

use std::time::Duration;

use emend_proto::{
    common::v1::ResourceKind,
    learning::v1::{ImportHeader, ImportRow, SnapshotReason, SubscribeRequest},
};
use emend_tests::{
    both_databases,
    harness::{
        Learning, NAMESPACE, StreamEvent, Subscriber, System, alias, eventually,
        says::{alias_key, entity_value},
        subscriber::kinds,
        wait::holds,
    },
};
use futures::future::join_all;
use uuid::Uuid;

use crate::story::{assert_equals_the_database, go_on, learn_a_little, request};

/// Checks that a stream begins with a snapshot for this reason, and that the subscriber ends equal to the database.
async fn begins_with_a_snapshot(subscriber: &mut Subscriber, system: &System, reason: SnapshotReason) {
    let learning = system.learning();
    let head = learning.head().await;
    assert_eq!(
        subscriber.begin(&learning.channel).await,
        StreamEvent::Snapshot {
            reason,
            revision: head
        }
    );
    assert_equals_the_database(subscriber, system).await;
    // And the stream continues from that state.
    let put = learning
        .put(alias_key("afterwards"), entity_value("person-6"))
        .await;
    subscriber.until(put.revision).await;
    assert_equals_the_database(subscriber, system).await;
}

both_databases! {
    async fn an_empty_state_is_sent_as_an_empty_snapshot(system) {
        let learning = system.learning();
        let mut subscriber = Subscriber::new("n");
        let heard = subscriber.begin(&learning.channel).await;
        assert_eq!(heard, StreamEvent::Snapshot { reason: SnapshotReason::NoCursor, revision: 0 });
        let put = learning.put(alias_key("jd"), entity_value("person-17")).await;
        subscriber.until(put.revision).await;
        assert_equals_the_database(&subscriber, system).await;
    }

    async fn a_returning_subscriber_is_sent_changes_and_deletions(system) {
        let learning = system.learning();
        learn_a_little(&learning).await;
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&learning.channel).await;
        subscriber.disconnect();

        let head = go_on(&learning).await;
        assert_eq!(subscriber.begin(&learning.channel).await, StreamEvent::Resumed);
        subscriber.until(head).await;
        assert_equals_the_database(&subscriber, system).await;
        let deleted = subscriber.heard.iter().any(|heard| matches!(
            heard,
            StreamEvent::Update { changes, .. } if changes.iter().any(|(_, key, put)| key.key == "set up a csa" && !put)
        ));
        assert!(deleted, "{:?}", subscriber.heard);
        let snapshots = subscriber.heard.iter().filter(|heard| matches!(heard, StreamEvent::Snapshot { .. }));
        assert_eq!(snapshots.count(), 1, "only the first time");
    }

    async fn a_subscriber_returning_after_a_restart_is_sent_changes_only(system) {
        let learning = system.learning();
        learn_a_little(&learning).await;
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&learning.channel).await;
        subscriber.disconnect();
        let head = go_on(&learning).await;
        system.stop_learning().await;
        system.start_learning().await;
        assert_eq!(subscriber.begin(&learning.channel).await, StreamEvent::Resumed);
        subscriber.until(head).await;
        assert_equals_the_database(&subscriber, system).await;
    }

    async fn a_current_subscriber_gets_a_bookmark_only(system) {
        let learning = system.learning();
        learn_a_little(&learning).await;
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&learning.channel).await;
        subscriber.disconnect();
        assert_eq!(subscriber.begin(&learning.channel).await, StreamEvent::Resumed);
        let bookmark = subscriber.next().await;
        assert_eq!(bookmark, StreamEvent::Bookmark(learning.head().await));
    }

    async fn a_cursor_of_another_epoch_gets_a_snapshot(system) {
        let learning = system.learning();
        learn_a_little(&learning).await;
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&learning.channel).await;
        subscriber.forge_cursor(|cursor| cursor.epoch = Uuid::from_u128(42).to_string());
        begins_with_a_snapshot(&mut subscriber, system, SnapshotReason::ForeignEpoch).await;
    }

    async fn a_cursor_ahead_of_the_head_gets_a_snapshot(system) {
        let learning = system.learning();
        learn_a_little(&learning).await;
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&learning.channel).await;
        subscriber.forge_cursor(|cursor| cursor.revision += 1_000);
        begins_with_a_snapshot(&mut subscriber, system, SnapshotReason::CursorAhead).await;
    }

    async fn a_cursor_of_another_filter_gets_a_snapshot(system) {
        let learning = system.learning();
        learn_a_little(&learning).await;
        let mut subscriber = Subscriber::of(SubscribeRequest {
            kinds: kinds(&[ResourceKind::EntityAlias]),
            ..request("n")
        });
        subscriber.begin(&learning.channel).await;
        assert_eq!(subscriber.held().len(), 1);
        subscriber.ask(|request| request.kinds.clear());
        begins_with_a_snapshot(&mut subscriber, system, SnapshotReason::FilterChanged).await;
    }

    async fn a_cursor_older_than_the_tombstones_gets_a_snapshot(system) {
        system.stop_learning().await;
        system.settings.max_tombstones = Some(1);
        system.settings.retention_interval = Some(Duration::from_millis(50));
        system.start_learning().await;
        let learning = system.learning();
        learn_a_little(&learning).await;
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&learning.channel).await;
        let old = subscriber.cursor().clone();
        subscriber.disconnect();
        go_on(&learning).await;
        // Retention runs in the background: until it has run, the old cursor is still good.
        eventually("old tombstones are forgotten", || async {
            let mut other = Subscriber::new("other");
            other.begin(&learning.channel).await;
            other.forge_cursor(|cursor| *cursor = old.clone());
            let heard = other.begin(&learning.channel).await;
            holds(matches!(heard, StreamEvent::Snapshot { .. }), || format!("{heard:?}"))
        })
        .await;
        begins_with_a_snapshot(&mut subscriber, system, SnapshotReason::CursorExpired).await;
    }

    async fn the_changes_of_one_revision_become_visible_together(system) {
        let learning = system.learning();
        let mut subscriber = Subscriber::new("n");
        // Small messages: the update must come in parts, but is still one.
        subscriber.ask(|request| request.max_batch_bytes = 64 * 1024);
        subscriber.begin(&learning.channel).await;
        let names: Vec<_> = (0..900).map(|n| format!("{n} {}", "x".repeat(400))).collect();
        let rows = (1..)
            .zip(&names)
            .map(|(line, name)| ImportRow {
                line,
                correction: Some(alias(name, "person-1")),
                user_id: String::new(),
            })
            .collect();
        let header = ImportHeader { namespace: NAMESPACE.into(), ..ImportHeader::default() };
        let done = learning.import(header, rows).await.unwrap();
        subscriber.until(done.last_revision).await;
        let mut seen: Vec<(i64, usize)> = Vec::new();
        for heard in &subscriber.heard {
            if let StreamEvent::Update { changes, .. } = heard {
                for revision in done.first_revision..=done.last_revision {
                    let of_revision = changes.iter().filter(|(of, ..)| *of == revision).count();
                    if of_revision > 0 {
                        seen.push((revision, of_revision));
                    }
                }
            }
        }
        let revisions = learning.revisions().await;
        let expected: Vec<(i64, usize)> =
            revisions.iter().rev().map(|revision| (revision.revision, revision.changes.len())).collect();
        assert_eq!(seen, expected, "each revision in one update, whole");
        assert_equals_the_database(&subscriber, system).await;
    }

    async fn a_stream_ends_with_a_bookmark_and_a_drain_at_shutdown(system) {
        let learning = system.learning();
        learn_a_little(&learning).await;
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&learning.channel).await;
        let head = learning.head().await;
        system.stop_learning().await;
        subscriber.until_heard(|heard| matches!(heard, StreamEvent::End).then_some(())).await;
        let last = &subscriber.heard[subscriber.heard.len() - 3..];
        assert_eq!(last, [StreamEvent::Bookmark(head), StreamEvent::Drain("SHUTDOWN".into()), StreamEvent::End]);
        system.start_learning().await;
        assert_eq!(subscriber.begin(&learning.channel).await, StreamEvent::Resumed);
    }

    async fn a_stream_at_its_maximum_age_is_drained_and_resumed(system) {
        system.stop_learning().await;
        system.settings.max_stream_age = Some(Duration::from_millis(300));
        system.start_learning().await;
        let learning = system.learning();
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&learning.channel).await;
        for n in 0..3 {
            let reason = subscriber
                .until_heard(|heard| match heard {
                    StreamEvent::Drain(reason) => Some(reason.clone()),
                    _ => None,
                })
                .await;
            assert_eq!(reason, "MAX_STREAM_AGE");
            learning.put(alias_key(&format!("name {n}")), entity_value("person-1")).await;
            assert_eq!(subscriber.begin(&learning.channel).await, StreamEvent::Resumed);
        }
        subscriber.until(learning.head().await).await;
        assert_equals_the_database(&subscriber, system).await;
    }

    async fn a_stalled_subscriber_delays_no_other(system) {
        let learning = system.learning();
        let mut stalled = Subscriber::new("stalled");
        stalled.begin(&learning.channel).await;
        let mut lively = Subscriber::new("lively");
        lively.begin(&Learning::at(system.learning[0].front.address()).channel).await;
        // Far more than fits into any window, repeatedly about the same keys; nothing reads it.
        for round in 0..20 {
            let rows = (1..=400)
                .map(|line| ImportRow {
                    line,
                    correction: Some(alias(&format!("{line} {}", "x".repeat(400)), &format!("person-{round}"))),
                    user_id: String::new(),
                })
                .collect();
            let header = ImportHeader { namespace: NAMESPACE.into(), ..ImportHeader::default() };
            learning.import(header, rows).await.unwrap();
            // While the other subscriber reads nothing.
            lively.until(learning.head().await).await;
        }
        stalled.until(learning.head().await).await;
        assert_equals_the_database(&lively, system).await;
        assert_equals_the_database(&stalled, system).await;
    }

    async fn many_subscribers_with_many_filters_end_with_the_same_state(system) {
        let learning = system.learning();
        let subscribers = (0..24).map(|n| {
            let learning = learning.clone();
            async move {
                let mut subscriber = Subscriber::of(SubscribeRequest {
                    kinds: if n % 3 == 0 { kinds(&[ResourceKind::EntityAlias]) } else { Vec::new() },
                    ..request(&format!("n-{n}"))
                });
                subscriber.begin(&learning.channel).await;
                subscriber
            }
        });
        let mut subscribers = join_all(subscribers).await;
        for n in 0..40 {
            learning.put(alias_key(&format!("name {}", n % 7)), entity_value(&format!("person-{n}"))).await;
        }
        let head = learning.head().await;
        join_all(subscribers.iter_mut().map(|subscriber| subscriber.until(head))).await;
        for subscriber in &subscribers {
            assert_equals_the_database(subscriber, system).await;
        }
    }
}
