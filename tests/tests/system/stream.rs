//! The update stream as subscribers meet it: what comes after an absence, why a snapshot comes, what a filter lets through,
//! and how a stream ends.

use std::time::Duration;

use emend_client::SubscriberEvent;
use emend_core::Kind;
use emend_proto::{
    common::v1::{ResourceKind, Scope},
    feedback::v1::SubmitFeedbackRequest,
    learning::v1::{
        ImportHeader, ImportRow, NodeInfo, ReportStatusRequest, SnapshotReason, SubscribeRequest,
    },
};
use emend_tests::{
    both_databases,
    harness::{
        Heard, Learning, NAMESPACE, Subscriber, System, alias, answered, eventually,
        node::Node,
        phrase, prohibit, refused, says,
        says::{alias_key, entity_value, forbidden_value, phrase_key, prohibition_key, verb_value},
        subscriber::kinds,
        wait::holds,
    },
    replicated,
};
use futures::future::join_all;
use tonic::Code;
use uuid::Uuid;

/// Something of every kind.
async fn learn_a_little(learning: &Learning) {
    learning
        .put(phrase_key("set up a csa"), verb_value("create_csa"))
        .await;
    learning.put(alias_key("jd"), entity_value("person-17")).await;
    learning
        .put(
            prohibition_key("close it", "delete_fund"),
            forbidden_value("delete_fund"),
        )
        .await;
}

/// Adds, changes and deletes; answers with the head.
async fn go_on(learning: &Learning) -> i64 {
    learning
        .put(phrase_key("close it"), verb_value("close_position"))
        .await;
    learning.put(alias_key("jd"), entity_value("person-4")).await;
    learning
        .put(alias_key("came and went"), entity_value("person-5"))
        .await;
    learning.delete(alias_key("came and went")).await.unwrap();
    learning.delete(phrase_key("set up a csa")).await.unwrap()
}

async fn assert_equals_the_database(subscriber: &Subscriber, system: &System) {
    assert_eq!(*subscriber.held(), system.stored().resources().await);
}

/// Begins with a snapshot for that reason and ends equal to the database.
async fn begins_anew(subscriber: &mut Subscriber, system: &System, reason: SnapshotReason) {
    let learning = system.learning();
    let head = learning.head().await;
    assert_eq!(
        subscriber.begin(&learning.channel).await,
        Heard::Snapshot {
            reason,
            revision: head
        }
    );
    assert_equals_the_database(subscriber, system).await;
    // And it is a state from which it goes on.
    let put = learning
        .put(alias_key("afterwards"), entity_value("person-6"))
        .await;
    subscriber.until(put.revision).await;
    assert_equals_the_database(subscriber, system).await;
}

both_databases! {
    async fn nothing_there_is_a_snapshot_of_nothing(system) {
        let learning = system.learning();
        let mut subscriber = Subscriber::new("n");
        let heard = subscriber.begin(&learning.channel).await;
        assert_eq!(heard, Heard::Snapshot { reason: SnapshotReason::NoCursor, revision: 0 });
        let put = learning.put(alias_key("jd"), entity_value("person-17")).await;
        subscriber.until(put.revision).await;
        assert_equals_the_database(&subscriber, system).await;
    }

    async fn whoever_was_away_is_sent_what_changed_and_told_what_was_deleted(system) {
        let learning = system.learning();
        learn_a_little(&learning).await;
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&learning.channel).await;
        subscriber.disconnect();

        let head = go_on(&learning).await;
        assert_eq!(subscriber.begin(&learning.channel).await, Heard::Resumed);
        subscriber.until(head).await;
        assert_equals_the_database(&subscriber, system).await;
        let deleted = subscriber.heard.iter().any(|heard| matches!(
            heard,
            Heard::Update { changes, .. } if changes.iter().any(|(_, key, put)| key.key == "set up a csa" && !put)
        ));
        assert!(deleted, "{:?}", subscriber.heard);
        let snapshots = subscriber.heard.iter().filter(|heard| matches!(heard, Heard::Snapshot { .. }));
        assert_eq!(snapshots.count(), 1, "only the first time");
    }

    async fn whoever_was_away_over_a_restart_is_sent_what_changed(system) {
        let learning = system.learning();
        learn_a_little(&learning).await;
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&learning.channel).await;
        subscriber.disconnect();
        let head = go_on(&learning).await;
        system.stop_learning().await;
        system.start_learning().await;
        assert_eq!(subscriber.begin(&learning.channel).await, Heard::Resumed);
        subscriber.until(head).await;
        assert_equals_the_database(&subscriber, system).await;
    }

    async fn whoever_is_current_is_told_so(system) {
        let learning = system.learning();
        learn_a_little(&learning).await;
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&learning.channel).await;
        subscriber.disconnect();
        assert_eq!(subscriber.begin(&learning.channel).await, Heard::Resumed);
        let bookmark = subscriber.next().await;
        assert_eq!(bookmark, Heard::Bookmark(learning.head().await));
    }

    async fn a_cursor_of_another_life_of_the_log_gets_a_snapshot(system) {
        let learning = system.learning();
        learn_a_little(&learning).await;
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&learning.channel).await;
        subscriber.forge_cursor(|cursor| cursor.epoch = Uuid::from_u128(42).to_string());
        begins_anew(&mut subscriber, system, SnapshotReason::ForeignEpoch).await;
    }

    async fn a_cursor_ahead_of_the_head_gets_a_snapshot(system) {
        let learning = system.learning();
        learn_a_little(&learning).await;
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&learning.channel).await;
        subscriber.forge_cursor(|cursor| cursor.revision += 1_000);
        begins_anew(&mut subscriber, system, SnapshotReason::CursorAhead).await;
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
        begins_anew(&mut subscriber, system, SnapshotReason::FilterChanged).await;
    }

    async fn the_same_filter_in_another_order_is_the_same(system) {
        let learning = system.learning();
        learn_a_little(&learning).await;
        let mut subscriber = Subscriber::of(SubscribeRequest {
            kinds: kinds(&[ResourceKind::EntityAlias, ResourceKind::InvocationPhrase]),
            namespaces: vec!["elsewhere".into(), NAMESPACE.into()],
            ..request("n")
        });
        subscriber.begin(&learning.channel).await;
        subscriber.ask(|request| {
            request.kinds.reverse();
            request.namespaces.reverse();
            request.namespaces.push(NAMESPACE.into());
        });
        assert_eq!(subscriber.begin(&learning.channel).await, Heard::Resumed);
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
        // Retention works in the background: until it has, the old cursor is still good.
        eventually("old tombstones are forgotten", || async {
            let mut other = Subscriber::new("other");
            other.begin(&learning.channel).await;
            other.forge_cursor(|cursor| *cursor = old.clone());
            let heard = other.begin(&learning.channel).await;
            holds(matches!(heard, Heard::Snapshot { .. }), || format!("{heard:?}"))
        })
        .await;
        begins_anew(&mut subscriber, system, SnapshotReason::CursorExpired).await;
    }

    async fn what_one_revision_changed_becomes_visible_together(system) {
        let learning = system.learning();
        let mut subscriber = Subscriber::new("n");
        // Small messages: the update has to come in parts, and is one nevertheless.
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
            if let Heard::Update { changes, .. } = heard {
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

    async fn a_filter_never_leaks(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let filters = [
            request("everything"),
            SubscribeRequest { kinds: kinds(&[ResourceKind::Prohibition]), ..request("prohibitions") },
            SubscribeRequest { namespaces: vec!["elsewhere".into()], ..request("elsewhere") },
            SubscribeRequest { namespaces: vec![NAMESPACE.into()], ..request("here") },
            SubscribeRequest { include_user_scoped: true, ..request("users") },
            SubscribeRequest {
                namespaces: vec![NAMESPACE.into()],
                kinds: kinds(&[ResourceKind::EntityAlias]),
                include_user_scoped: true,
                ..request("a-little-of-it")
            },
        ];
        let mut subscribers: Vec<Subscriber> = filters.into_iter().map(Subscriber::of).collect();
        for subscriber in &mut subscribers {
            subscriber.begin(&learning.channel).await;
        }
        for n in 0..3 {
            for namespace in [NAMESPACE, "elsewhere", "else"] {
                for scope in [Scope::Global, Scope::User] {
                    let request = SubmitFeedbackRequest {
                        namespace: namespace.into(),
                        scope: scope.into(),
                        ..says(&format!("user-{n}"), alias(&format!("name {n}"), &format!("person-{n}")))
                    };
                    feedback.learn(request).await;
                    let prohibition = SubmitFeedbackRequest {
                        namespace: namespace.into(),
                        scope: scope.into(),
                        ..says(&format!("user-{n}"), prohibit("close it", "delete_fund"))
                    };
                    feedback.learn(prohibition).await;
                }
            }
        }
        let head = learning.head().await;
        let stored = system.stored().resources().await;
        for subscriber in &mut subscribers {
            // The subscriber itself refuses what it did not ask for, and compares digests.
            subscriber.until(head).await;
            let request = subscriber.request();
            let expected = stored.iter().filter(|(key, _)| {
                (request.namespaces.is_empty() || request.namespaces.contains(&key.namespace))
                    && (request.kinds.is_empty() || request.kinds.contains(&key.kind))
                    && (request.include_user_scoped || key.user_id.is_empty())
            });
            assert!(subscriber.held().iter().eq(expected), "{request:?}");
        }
        assert!(subscribers.iter().all(|subscriber| !subscriber.held().is_empty()));
    }

    async fn users_own_resources_come_only_to_those_who_ask(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let own = SubmitFeedbackRequest {
            scope: Scope::User.into(),
            ..says("jane", phrase("set up a csa", "create_isda"))
        };
        let mut without = Subscriber::new("without");
        without.begin(&learning.channel).await;
        let told = feedback.learn(own).await.outcome.unwrap();
        let node = Node::start(system.learning[0].front.address(), "with").await;
        node.until(told.revision).await;
        without.until(told.revision).await;
        assert!(without.held().is_empty());
        let answer = node.answer(NAMESPACE, Kind::InvocationPhrase, "set up a csa", "jane");
        assert_eq!(answer.found, Some(("create_isda".into(), told.revision)));
        assert_eq!(node.answer(NAMESPACE, Kind::InvocationPhrase, "set up a csa", "tom").found, None);
    }

    async fn a_stream_ends_with_a_bookmark_and_a_farewell_at_shut_down(system) {
        let learning = system.learning();
        learn_a_little(&learning).await;
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&learning.channel).await;
        let head = learning.head().await;
        system.stop_learning().await;
        subscriber.until_heard(|heard| matches!(heard, Heard::End).then_some(())).await;
        let last = &subscriber.heard[subscriber.heard.len() - 3..];
        assert_eq!(last, [Heard::Bookmark(head), Heard::Drain("SHUTDOWN".into()), Heard::End]);
        system.start_learning().await;
        assert_eq!(subscriber.begin(&learning.channel).await, Heard::Resumed);
    }

    async fn a_stream_that_grew_old_ends_with_a_farewell_and_goes_on_where_it_was(system) {
        system.stop_learning().await;
        system.settings.max_stream_age = Some(Duration::from_millis(300));
        system.start_learning().await;
        let learning = system.learning();
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&learning.channel).await;
        for n in 0..3 {
            let reason = subscriber
                .until_heard(|heard| match heard {
                    Heard::Drain(reason) => Some(reason.clone()),
                    _ => None,
                })
                .await;
            assert_eq!(reason, "MAX_STREAM_AGE");
            learning.put(alias_key(&format!("name {n}")), entity_value("person-1")).await;
            assert_eq!(subscriber.begin(&learning.channel).await, Heard::Resumed);
        }
        subscriber.until(learning.head().await).await;
        assert_equals_the_database(&subscriber, system).await;
    }

    async fn a_node_follows_every_kind_of_change_and_heals_over_a_restart(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let mut node = Node::start(system.learning[0].front.address(), "search-1").await;
        learn_a_little(&learning).await;
        node.until(learning.head().await).await;
        let once = ["set up a csa", "jd", "close it", "came and went"];
        node.assert_answers_by(&system.stored().resources().await, &once);
        system.stop_learning().await;
        node.until_event("the stream is closed", |event| {
            matches!(event, SubscriberEvent::Disconnected { .. }).then_some(())
        })
        .await;
        // It answers on from what it has.
        assert_eq!(node.answer(NAMESPACE, Kind::EntityAlias, "jd", "").found.unwrap().0, "person-17");
        system.start_learning().await;
        go_on(&learning).await;
        for reporter in ["a", "b", "c"] {
            feedback.learn(says(reporter, phrase("set up a csa", "create_isda"))).await;
        }
        node.until(learning.head().await).await;
        node.assert_answers_by(&system.stored().resources().await, &once);
        for event in node.events_so_far().await {
            let fine = !matches!(&*event, SubscriberEvent::Snapshot { .. } | SubscriberEvent::DigestMismatch { .. });
            assert!(fine, "resumed, and nothing was wrong: {event:?}");
        }
    }

    async fn a_node_starts_from_its_copy_while_learning_is_away(system) {
        let learning = system.learning();
        let directory = tempfile::tempdir().unwrap();
        let copy = directory.path().join("learned.emend");
        let address = system.learning[0].front.address();
        let node = Node::start_from(address, "search-1", Some(copy.clone())).await;
        learn_a_little(&learning).await;
        node.until(learning.head().await).await;
        node.stop().await;
        let stored = system.stored().resources().await;
        system.stop_learning().await;

        let mut node = Node::start_from(address, "search-1", Some(copy)).await;
        node.assert_answers_by(&stored, &["jd", "set up a csa"]);
        assert!(!node.view().staleness().connected);
        system.start_learning().await;
        let head = go_on(&learning).await;
        node.until_event("the stream goes on from the copy", |event| match event {
            SubscriberEvent::Resumed { revision } => Some(*revision),
            SubscriberEvent::Snapshot { snapshot, .. } => panic!("{snapshot:?}"),
            _ => None,
        })
        .await;
        node.until(head).await;
        node.assert_answers_by(&system.stored().resources().await, &["jd", "set up a csa"]);
    }

    async fn a_stalled_subscriber_holds_up_nobody(system) {
        let learning = system.learning();
        let mut stalled = Subscriber::new("stalled");
        stalled.begin(&learning.channel).await;
        let mut lively = Subscriber::new("lively");
        lively.begin(&Learning::at(system.learning[0].front.address()).channel).await;
        // Far more than fits into any window, again and again about the same keys; nobody reads it.
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
        }
        let head = learning.head().await;
        lively.until(head).await;
        stalled.until(head).await;
        assert_equals_the_database(&lively, system).await;
        assert_equals_the_database(&stalled, system).await;
    }

    async fn only_the_caller_that_opened_a_stream_reports_for_its_node(system) {
        let learning = system.learning();
        let report = ReportStatusRequest {
            node_id: "nobody-opened-this".into(),
            ..ReportStatusRequest::default()
        };
        let refusal = refused(learning.subscriptions.clone().report_status(report).await);
        assert_eq!(refusal.code, Code::PermissionDenied);
    }

    async fn many_subscribers_of_many_filters_end_alike(system) {
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

replicated! {
    async fn a_node_moved_to_a_replica_that_lags_gets_no_snapshot(system: 1 x 2) {
        let (ahead, behind) = (system.learning_at(0), system.learning_at(1));
        learn_a_little(&ahead).await;
        behind.resources_in(NAMESPACE).await;
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&ahead.channel).await;

        // From here on the second replica hears nothing of its database.
        let road = system.learning[1].road.as_ref().unwrap();
        road.hold();
        let head = go_on(&ahead).await;
        subscriber.until(head).await;
        subscriber.disconnect();
        let shown = answered(behind.resources.clone().list_resources(
            emend_proto::learning::v1::ListResourcesRequest { namespace: NAMESPACE.into(), ..Default::default() },
        ).await);
        assert!(shown.revision < head, "the second replica lags");

        let moved = async {
            let begun = subscriber.begin(&behind.channel).await;
            (begun, subscriber)
        };
        let released = async {
            // It may not answer before it hears of its database again.
            tokio::task::yield_now().await;
            road.release();
        };
        let ((begun, mut subscriber), ()) = tokio::join!(moved, released);
        assert_eq!(begun, Heard::Resumed);
        let put = ahead.put(alias_key("afterwards"), entity_value("person-6")).await;
        subscriber.until(put.revision).await;
        assert_equals_the_database(&subscriber, system).await;
    }

    async fn a_replica_that_lags_too_long_says_when_to_come_back(system: 1 x 2) {
        let (ahead, behind) = (system.learning_at(0), system.learning_at(1));
        learn_a_little(&ahead).await;
        behind.resources_in(NAMESPACE).await;
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&ahead.channel).await;
        let road = system.learning[1].road.as_ref().unwrap();
        road.hold();
        let head = go_on(&ahead).await;
        subscriber.until(head).await;
        subscriber.disconnect();
        let refusal = match subscriber.connect(&behind.channel).await {
            Err(status) => status,
            Ok(()) => subscriber.try_next().await.unwrap_err(),
        };
        let refusal = emend_runtime::status::Explained::from(refusal);
        assert_eq!(refusal.code, Code::Unavailable);
        assert!(refusal.retry_after.is_some(), "{refusal}");
        road.release();
        let begun = eventually("the replica takes the subscriber", || async {
            let mut again = Subscriber::new("n");
            again.resume_from(subscriber.cursor().clone());
            again.connect(&behind.channel).await.map_err(|status| status.to_string())?;
            again.try_next().await.map_err(|status| status.to_string())
        })
        .await;
        assert_eq!(begun, Heard::Resumed);
    }
}

fn request(node_id: &str) -> SubscribeRequest {
    SubscribeRequest {
        node: Some(NodeInfo {
            id: node_id.into(),
            ..NodeInfo::default()
        }),
        bookmark_interval: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
        ..SubscribeRequest::default()
    }
}
