//! What every store must do with feedback: the ledger, lists, request ids, retractions.

use std::time::Duration;

use emend_core::{
    AcceptOrder, Caller, Correction, DomainRule, FeedbackId, Kind, Namespace, Reporter, ReporterId,
    RequestId, Role, Scope,
};
use emend_store::StoreError;
use feedback_store::{
    ports::{Claimed, Inserted, Retracted},
    records::{
        feedback::{Feedback, FeedbackQuery, NewRetraction, Submission},
        outbox::DeliveryState,
    },
    testing::{
        TestStore, feedback, inserted, lease, namespace, new_feedback, retraction, stored, submission,
        with_request_id,
    },
};
use futures::future::join_all;
use uuid::Uuid;

use crate::contract::{claim_all, delivered, get, listed, orders, query};

contract! {
    stored_feedback_is_read_back_unchanged
    accept_orders_grow_in_the_order_of_a_group_and_across_replicas
    accept_orders_are_never_below_the_clock_or_earlier_ones
    accept_orders_keep_up_with_the_clock
    accept_orders_of_concurrent_groups_never_repeat
    a_repeated_request_is_the_same_feedback_and_another_one_is_refused
    a_repeat_that_cannot_be_answered_fails_alone
    of_equal_requests_in_one_group_the_first_counts
    equal_requests_at_once_on_two_replicas_are_one_feedback
    request_ids_are_forgotten_after_the_retention_and_not_before
    a_group_is_stored_whole_or_not_at_all
    lists_are_filtered_paged_and_newest_first
    only_the_first_retraction_counts
    a_ruling_is_retracted_again_by_a_stronger_role
    ; sql
    the_ledger_cannot_be_changed
    a_corrupt_row_is_named
}

async fn stored_feedback_is_read_back_unchanged(database: &TestStore) {
    let full = with_request_id("Set up a CSA", "request-1");
    let bare = new_feedback(
        Submission {
            request_id: None,
            namespace: namespace(),
            reporter: Reporter::default(),
            query_id: String::new(),
            reason: String::new(),
            context: std::collections::BTreeMap::new(),
            scope: Scope::Global,
            correction: Correction::parse_prohibition("a phrase", "a choice").unwrap(),
        },
        &Caller::anonymous(),
    );
    for new in [&full, &bare] {
        let inserted = inserted(&*database.store, std::slice::from_ref(new), None).await;
        let Inserted::Stored(accepted) = inserted[0] else {
            panic!("{inserted:?}")
        };
        let expected = Feedback {
            id: new.id,
            submission: new.submission.clone(),
            caller: new.caller.clone(),
            accepted,
            retraction: None,
            outcome: None,
            delivery: DeliveryState::Pending,
            redaction: None,
            search_rating: None,
        };
        assert_eq!(get(database, new.id).await, expected);
        let elsewhere = Namespace::parse("elsewhere").unwrap();
        assert_eq!(database.store.feedback(&elsewhere, new.id).await.unwrap(), None);
        let claimed = claim_all(database).await;
        let expected = Claimed {
            event_id: new.event.id,
            accepted,
            attempts: 0,
            payload: new.event.payload.clone(),
        };
        assert_eq!(claimed, [expected]);
    }
}

async fn accept_orders_grow_in_the_order_of_a_group_and_across_replicas(database: &TestStore) {
    let other = database.replica().await;
    let mut last = 0;
    for store in [&database.store, &other, &database.store] {
        let group = [feedback("a"), with_request_id("b", "r"), feedback("c")];
        // The request id is taken from the second round on: its item leaves a gap at most.
        let inserted = inserted(&**store, &group, None).await;
        let kept: Vec<_> = inserted
            .iter()
            .filter(|inserted| matches!(inserted, Inserted::Stored(_)))
            .copied()
            .collect();
        for order in orders(&kept) {
            assert!(order > last, "{order} after {last}");
            last = order;
        }
    }
    other.close().await;
}

async fn accept_orders_are_never_below_the_clock_or_earlier_ones(database: &TestStore) {
    let first = stored(&*database.store, &feedback("a"), None).await;
    let received = database.store.list(&query()).await.unwrap()[0]
        .accepted
        .at
        .as_microsecond();
    database.advance(3_600).await;
    let later = database.replica().await;
    let second = stored(&*later, &feedback("b"), None).await;
    assert!(second >= received + 3_600_000_000, "{second} is behind now");
    database.advance(-7_200).await;
    let with_a_clock_gone_back = database.replica().await;
    let third = stored(&*with_a_clock_gone_back, &feedback("c"), None).await;
    assert!(first < second && second < third);
    later.close().await;
    with_a_clock_gone_back.close().await;
}

async fn accept_orders_keep_up_with_the_clock(database: &TestStore) {
    let store = &*database.store;
    let first = stored(store, &feedback("a"), None).await;
    let received = database.store.list(&query()).await.unwrap()[0]
        .accepted
        .at
        .as_microsecond();
    database.advance(3_600).await;
    let group = orders(&inserted(store, &[feedback("b"), feedback("c")], None).await);
    assert!(group[0] >= received + 3_600_000_000, "{group:?} is behind now");
    assert!(group[0] < group[1]);

    database.advance(-7_200).await;
    let with_a_clock_gone_back = stored(store, &feedback("d"), None).await;
    assert!(first < group[0] && group[1] < with_a_clock_gone_back);
}

async fn accept_orders_of_concurrent_groups_never_repeat(database: &TestStore) {
    let other = database.replica().await;
    let stores = [&database.store, &other];
    let groups = (0..40).map(|number| async move {
        let group = [feedback("a"), feedback("b"), feedback("c")];
        let given = orders(&inserted(&**stores[number % 2], &group, None).await);
        assert!(given.is_sorted());
        given
    });
    let given: Vec<i64> = futures::future::join_all(groups).await.concat();
    let distinct: std::collections::HashSet<_> = given.iter().collect();
    assert_eq!(distinct.len(), 120, "{given:?}");
    other.close().await;
}

async fn a_repeat_that_cannot_be_answered_fails_alone(database: &TestStore) {
    stored(&*database.store, &with_request_id("a", "r"), None).await;
    database.corrupt_request_ids().await;
    let group = [feedback("b"), with_request_id("a", "r"), feedback("c")];
    let answers = database.store.insert(&group, None).await.unwrap();
    assert!(
        matches!(
            answers[..],
            [
                Ok(Inserted::Stored(_)),
                Err(StoreError::Corrupt(_)),
                Ok(Inserted::Stored(_))
            ]
        ),
        "{answers:?}"
    );
    assert_eq!(listed(database, query()).await.len(), 3);
}

async fn a_repeated_request_is_the_same_feedback_and_another_one_is_refused(database: &TestStore) {
    let original = with_request_id("a", "r");
    stored(&*database.store, &original, None).await;
    let again = with_request_id("a", "r");
    let different = with_request_id("b", "r");
    let answers = inserted(&*database.store, &[again, different], None).await;
    assert_eq!(
        answers,
        [Inserted::Replayed(original.id), Inserted::RequestIdReused]
    );

    // For another caller, or in another namespace, it is a different id.
    let request_id = Some(RequestId::parse("r").unwrap());
    let of_another = new_feedback(
        Submission {
            request_id: request_id.clone(),
            ..submission("b")
        },
        &Caller::anonymous(),
    );
    let elsewhere = Submission {
        request_id,
        namespace: Namespace::parse("elsewhere").unwrap(),
        ..submission("b")
    };
    let elsewhere = new_feedback(elsewhere, &original.caller);
    let answers = inserted(&*database.store, &[of_another, elsewhere], None).await;
    assert_eq!(orders(&answers).len(), 2);
    assert_eq!(claim_all(database).await.len(), 3);
}

async fn of_equal_requests_in_one_group_the_first_counts(database: &TestStore) {
    let group = [
        feedback("x"),
        with_request_id("a", "r"),
        with_request_id("a", "r"),
        with_request_id("b", "r"),
    ];
    let answers = inserted(&*database.store, &group, None).await;
    assert!(matches!(
        answers[..],
        [Inserted::Stored(_), Inserted::Stored(_), Inserted::Replayed(id), Inserted::RequestIdReused] if id == group[1].id
    ));
    assert_eq!(listed(database, query()).await.len(), 2);
}

async fn equal_requests_at_once_on_two_replicas_are_one_feedback(database: &TestStore) {
    let other = database.replica().await;
    let requests = (0..40).map(|attempt| {
        let store = if attempt % 2 == 0 { &database.store } else { &other };
        // Groups that name the same ids in opposite order must not deadlock.
        let mut group = vec![
            with_request_id("a", "r-1"),
            with_request_id("a", "r-2"),
            feedback("alone"),
        ];
        if attempt % 4 < 2 {
            group.reverse();
        }
        async move { inserted(&**store, &group, Some(lease())).await }
    });
    let answers = join_all(requests).await.concat();
    let stored = answers
        .iter()
        .filter(|answer| matches!(answer, Inserted::Stored(_)))
        .count();
    let replayed = answers
        .iter()
        .filter(|answer| matches!(answer, Inserted::Replayed(_)))
        .count();
    assert_eq!((stored, replayed), (40 + 2, 80 - 2));
    assert_eq!(listed(database, query()).await.len(), 42);
    other.close().await;
}

async fn request_ids_are_forgotten_after_the_retention_and_not_before(database: &TestStore) {
    let retention = Duration::from_hours(24);
    let (old, young) = (with_request_id("a", "old"), with_request_id("a", "young"));
    let old_order = stored(&*database.store, &old, None).await;
    database.advance(86_400).await;
    assert_eq!(database.store.prune_request_ids(retention, 10).await.unwrap(), 0);
    stored(&*database.store, &young, None).await;
    database.advance(1).await;
    assert_eq!(database.store.prune_request_ids(retention, 10).await.unwrap(), 1);
    assert_eq!(database.store.prune_request_ids(retention, 10).await.unwrap(), 0);

    let again = [with_request_id("a", "young"), with_request_id("a", "old")];
    let answers = inserted(&*database.store, &again, None).await;
    assert_eq!(answers[0], Inserted::Replayed(young.id));
    assert!(orders(&answers[1..])[0] > old_order);
    // The feedback itself stays.
    assert_eq!(get(database, old.id).await.submission, old.submission);
}

async fn a_group_is_stored_whole_or_not_at_all(database: &TestStore) {
    let first = feedback("a");
    stored(&*database.store, &first, None).await;
    let error = database
        .store
        .insert(&[with_request_id("b", "r"), first, feedback("c")], None)
        .await
        .unwrap_err();
    assert!(error.is_unique_violation(), "{error}");
    assert_eq!(listed(database, query()).await.len(), 1);
    assert_eq!(claim_all(database).await.len(), 1);
    let free = inserted(&*database.store, &[with_request_id("b", "r")], None).await;
    assert!(matches!(free[..], [Inserted::Stored(_)]));
}

async fn lists_are_filtered_paged_and_newest_first(database: &TestStore) {
    let entity = Submission {
        correction: Correction::parse_entity("smith", "", "person-1").unwrap(),
        reporter: Reporter::parse("joe", "", "", "").unwrap(),
        ..submission("unused")
    };
    let one = feedback("a");
    let first = stored(&*database.store, &one, None).await;
    database.advance(10).await;
    let second = stored(
        &*database.store,
        &new_feedback(entity, &Caller::anonymous()),
        None,
    )
    .await;
    database.advance(10).await;
    let third = stored(&*database.store, &feedback("c"), None).await;
    let elsewhere = Submission {
        namespace: Namespace::parse("elsewhere").unwrap(),
        ..submission("d")
    };
    stored(
        &*database.store,
        &new_feedback(elsewhere, &Caller::anonymous()),
        None,
    )
    .await;
    delivered(database, one.event.id, "done").await;

    assert_eq!(listed(database, query()).await, [third, second, first]);
    assert_eq!(
        listed(database, FeedbackQuery { limit: 2, ..query() }).await,
        [third, second]
    );
    let behind = Some(AcceptOrder(second));
    assert_eq!(
        listed(
            database,
            FeedbackQuery {
                after: behind,
                ..query()
            }
        )
        .await,
        [first]
    );

    let reporter = Some(ReporterId::parse("joe").unwrap());
    assert_eq!(
        listed(
            database,
            FeedbackQuery {
                reporter: reporter.clone(),
                ..query()
            }
        )
        .await,
        [second]
    );
    assert_eq!(
        listed(
            database,
            FeedbackQuery {
                reporter,
                after: behind,
                ..query()
            }
        )
        .await,
        [0; 0]
    );
    let kind = Some(Kind::InvocationPhrase);
    assert_eq!(
        listed(database, FeedbackQuery { kind, ..query() }).await,
        [third, first]
    );
    for (delivery, expected) in [
        (DeliveryState::Pending, vec![third, second]),
        (DeliveryState::Delivered, vec![first]),
        (DeliveryState::DeadLetter, vec![]),
    ] {
        assert_eq!(
            listed(
                database,
                FeedbackQuery {
                    delivery: Some(delivery),
                    ..query()
                }
            )
            .await,
            expected
        );
    }
    let at = database
        .store
        .list(&FeedbackQuery { limit: 2, ..query() })
        .await
        .unwrap()[1]
        .accepted
        .at;
    assert_eq!(
        listed(
            database,
            FeedbackQuery {
                from: Some(at),
                ..query()
            }
        )
        .await,
        [third, second]
    );
    assert_eq!(
        listed(
            database,
            FeedbackQuery {
                before: Some(at),
                ..query()
            }
        )
        .await,
        [first]
    );
    let all_at_once = FeedbackQuery {
        reporter: Some(ReporterId::parse("jane").unwrap()),
        kind,
        delivery: Some(DeliveryState::Pending),
        from: Some(at),
        before: Some(at + jiff::SignedDuration::from_hours(1)),
        after: Some(AcceptOrder(i64::MAX)),
        ..query()
    };
    assert_eq!(listed(database, all_at_once).await, [third]);
}

async fn only_the_first_retraction_counts(database: &TestStore) {
    let new = feedback("a");
    stored(&*database.store, &new, Some(lease())).await;
    database.advance(5).await;
    let first = retraction(new.id, "a mistake");
    let Retracted::Now {
        accepted,
        has_reason: true,
        ..
    } = database.store.retract(&first, None).await.unwrap()
    else {
        panic!("not retracted")
    };
    let before = get(database, new.id).await;
    assert_eq!(before.accepted.order, accepted.order);
    let noted = before.retraction.clone().unwrap();
    assert_eq!((noted.at, noted.reason.as_str()), (accepted.at, "a mistake"));
    assert_eq!(accepted.at.duration_since(before.accepted.at).as_secs(), 5);

    database.advance(5).await;
    let again = retraction(new.id, "another reason");
    assert_eq!(
        database.store.retract(&again, None).await.unwrap(),
        Retracted::Before
    );
    assert_eq!(get(database, new.id).await, before);
    let claimed = claim_all(database).await;
    assert_eq!(
        claimed.iter().map(|claimed| claimed.event_id).collect::<Vec<_>>(),
        [first.event.id]
    );
    assert_eq!(claimed[0].accepted, accepted);

    let unknown = retraction(FeedbackId(Uuid::from_u128(7)), "");
    assert_eq!(
        database.store.retract(&unknown, None).await.unwrap(),
        Retracted::NotFound
    );
    let mut elsewhere = retraction(new.id, "");
    elsewhere.namespace = Namespace::parse("elsewhere").unwrap();
    assert_eq!(
        database.store.retract(&elsewhere, None).await.unwrap(),
        Retracted::NotFound
    );
}

async fn a_ruling_is_retracted_again_by_a_stronger_role(database: &TestStore) {
    let mut ruling = submission("a");
    ruling.correction = Correction::parse_domain("example.org", Ok(DomainRule::Block), "").unwrap();
    let (ruling, vote) = (new_feedback(ruling, &Caller::anonymous()), feedback("b"));
    for new in [&ruling, &vote] {
        stored(&*database.store, new, None).await;
    }
    let mut taken = Vec::new();
    for (role, counts) in [
        (Role::Reporter, [true, true]),
        (Role::Reporter, [false, false]),
        (Role::Reviewer, [true, false]),
        (Role::Reporter, [false, false]),
        (Role::Admin, [true, false]),
    ] {
        for (new, counts) in [&ruling, &vote].into_iter().zip(counts) {
            let retraction = NewRetraction {
                role: Some(role),
                ..retraction(new.id, if role == Role::Admin { "" } else { role.name() })
            };
            let retracted = database.store.retract(&retraction, None).await.unwrap();
            assert_eq!(
                matches!(retracted, Retracted::Now { has_reason: true, .. }),
                counts,
                "{role:?}"
            );
            if counts {
                taken.push(retraction.event.id);
            }
        }
    }
    let reason_of = |feedback: Feedback| feedback.retraction.unwrap().reason;
    assert_eq!(
        reason_of(get(database, ruling.id).await),
        "",
        "the reason of the last one that counts"
    );
    assert_eq!(reason_of(get(database, vote.id).await), "reporter");
    let mut sent: Vec<_> = claim_all(database)
        .await
        .iter()
        .map(|claimed| claimed.event_id)
        .collect();
    taken.extend([ruling.event.id, vote.event.id]);
    sent.sort_unstable();
    taken.sort_unstable();
    assert_eq!(sent, taken);
}

async fn the_ledger_cannot_be_changed(database: &TestStore) {
    stored(&*database.store, &feedback("a"), None).await;
    for change in ["UPDATE feedback SET namespace = 'x'", "DELETE FROM feedback"] {
        let error = database.execute(change).await.unwrap_err();
        assert!(error.to_string().contains("append-only"), "{error}");
    }
}

async fn a_corrupt_row_is_named(database: &TestStore) {
    let new = feedback("a");
    let order = stored(&*database.store, &new, None).await;
    database
        .execute("UPDATE feedback_personal SET context = 'not json'")
        .await
        .unwrap();
    let error = database.store.feedback(&namespace(), new.id).await.unwrap_err();
    let StoreError::Corrupt(row) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (row.table, row.column, row.id),
        ("feedback_personal", "context", order.to_string())
    );
}
