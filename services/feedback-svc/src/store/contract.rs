//! What every store must do, stamped on both databases.

use std::time::Duration;

use emend_core::{
    AcceptOrder, Caller, Correction, EventId, FeedbackId, Kind, Namespace, Reporter, ReporterId, RequestId,
    Scope, correction::Form,
};
use emend_runtime::store::StoreError;
use futures::future::join_all;
use uuid::Uuid;

use super::{Claimed, Inserted, Retracted, Settlement};
use crate::{
    domain::{
        DeadLetterPosition, DeadLetterQuery, DeliveryState, Feedback, FeedbackQuery, LeaseToken, NewFeedback,
        Redrive, Refusal, Submission,
    },
    testing::{
        Backend, LEASE, TestStore, feedback, lease, namespace, of, outcome, retraction, stored, submission,
        with_request_id,
    },
};

/// One test per scenario and database.
macro_rules! contract {
    ($($scenario:ident)*) => {
        contract!(on_sqlite, Backend::Sqlite, $($scenario)*);
        contract!(on_postgres, Backend::Postgres, $($scenario)*);
    };
    ($module:ident, $backend:expr, $($scenario:ident)*) => {
        mod $module {
            use super::*;
            $(#[tokio::test]
            async fn $scenario() {
                if let Some(database) = TestStore::open($backend).await {
                    super::$scenario(&database).await;
                    database.close().await;
                }
            })*
        }
    };
}

contract! {
    what_is_stored_comes_back_as_it_was
    accept_orders_grow_in_the_order_of_a_group_and_across_replicas
    accept_orders_are_never_behind_now_nor_behind_what_was_given
    a_repeated_request_is_the_same_feedback_and_another_one_is_refused
    of_equal_requests_in_one_group_the_first_counts
    equal_requests_at_once_on_two_replicas_are_one_feedback
    request_ids_are_forgotten_after_the_retention_and_not_before
    a_group_is_stored_whole_or_not_at_all
    lists_are_filtered_paged_and_newest_first
    leased_events_are_claimed_when_the_lease_has_expired
    claims_come_in_accept_order_and_two_replicas_share_nothing
    a_failure_counts_only_under_its_own_lease
    a_delivery_counts_whoever_holds_the_lease
    dead_letters_are_listed_oldest_first_and_made_due_again
    only_the_first_retraction_counts
    the_outcome_of_a_retraction_is_not_replaced_by_an_older_one
    both_events_of_a_feedback_are_settled_at_once
    the_ledger_cannot_be_changed
    a_corrupt_row_is_named
    large_groups_are_stored_and_settled_whole
}

async fn claim_all(database: &TestStore) -> Vec<Claimed> {
    database.store.claim(1_000, lease()).await.unwrap()
}

async fn get(database: &TestStore, id: FeedbackId) -> Feedback {
    database
        .store
        .feedback(&namespace(), id)
        .await
        .unwrap()
        .expect("it is stored")
}

async fn delivered(database: &TestStore, event_id: EventId, text: &'static str) {
    let settlement = Settlement::Delivered {
        event_id,
        outcome: outcome(text),
    };
    database.store.settle(&[settlement]).await.unwrap();
}

fn dead(event_id: EventId, token: LeaseToken) -> Settlement {
    Settlement::Dead {
        event_id,
        token,
        refusal: refusal(),
    }
}

fn refusal() -> Refusal {
    Refusal {
        code: 3,
        error: "no".into(),
    }
}

fn query() -> FeedbackQuery {
    FeedbackQuery {
        namespace: namespace(),
        reporter: None,
        kind: None,
        delivery: None,
        from: None,
        before: None,
        after: None,
        limit: 100,
    }
}

async fn listed(database: &TestStore, query: FeedbackQuery) -> Vec<i64> {
    let list = database.store.list(&query).await.unwrap();
    list.into_iter()
        .map(|feedback| feedback.accepted.order.0)
        .collect()
}

fn orders(inserted: &[Inserted]) -> Vec<i64> {
    let order = |inserted: &Inserted| match inserted {
        Inserted::Stored(accepted) => accepted.order.0,
        other => panic!("not stored: {other:?}"),
    };
    inserted.iter().map(order).collect()
}

async fn what_is_stored_comes_back_as_it_was(database: &TestStore) {
    let full = with_request_id("Set up a CSA", "request-1");
    let bare = of(
        Submission {
            request_id: None,
            namespace: namespace(),
            reporter: Reporter::default(),
            query_id: String::new(),
            reason: String::new(),
            context: std::collections::BTreeMap::new(),
            scope: Scope::Global,
            correction: Correction::parse(Form::Prohibition, "a phrase", "", "a choice").unwrap(),
        },
        &Caller::anonymous(),
    );
    for new in [&full, &bare] {
        let inserted = database
            .store
            .insert(std::slice::from_ref(new), None)
            .await
            .unwrap();
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
        // The request id is used again from the second round on: its item leaves a gap at most.
        let inserted = store.insert(&group, None).await.unwrap();
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

async fn accept_orders_are_never_behind_now_nor_behind_what_was_given(database: &TestStore) {
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

async fn a_repeated_request_is_the_same_feedback_and_another_one_is_refused(database: &TestStore) {
    let original = with_request_id("a", "r");
    stored(&*database.store, &original, None).await;
    let again = with_request_id("a", "r");
    let different = with_request_id("b", "r");
    let answers = database.store.insert(&[again, different], None).await.unwrap();
    assert_eq!(
        answers,
        [Inserted::Replayed(original.id), Inserted::RequestIdReused]
    );

    // Of another caller, or in another namespace, it is another id.
    let request_id = Some(RequestId::parse("r").unwrap());
    let of_another = of(
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
    let elsewhere = of(elsewhere, &original.caller);
    let answers = database
        .store
        .insert(&[of_another, elsewhere], None)
        .await
        .unwrap();
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
    let answers = database.store.insert(&group, None).await.unwrap();
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
        // Groups that name the same ids in opposite order must not lock each other out.
        let mut group = vec![
            with_request_id("a", "r-1"),
            with_request_id("a", "r-2"),
            feedback("alone"),
        ];
        if attempt % 4 < 2 {
            group.reverse();
        }
        async move { store.insert(&group, Some(lease())).await.unwrap() }
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
    let answers = database.store.insert(&again, None).await.unwrap();
    assert_eq!(answers[0], Inserted::Replayed(young.id));
    assert!(orders(&answers[1..])[0] > old_order);
    // What was said with it stays.
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
    let free = database
        .store
        .insert(&[with_request_id("b", "r")], None)
        .await
        .unwrap();
    assert!(matches!(free[..], [Inserted::Stored(_)]));
}

async fn lists_are_filtered_paged_and_newest_first(database: &TestStore) {
    let entity = Submission {
        correction: Correction::parse(Form::Entity, "smith", "", "person-1").unwrap(),
        reporter: Reporter::parse("joe", "", "", "").unwrap(),
        ..submission("unused")
    };
    let one = feedback("a");
    let first = stored(&*database.store, &one, None).await;
    database.advance(10).await;
    let second = stored(&*database.store, &of(entity, &Caller::anonymous()), None).await;
    database.advance(10).await;
    let third = stored(&*database.store, &feedback("c"), None).await;
    let elsewhere = Submission {
        namespace: Namespace::parse("elsewhere").unwrap(),
        ..submission("d")
    };
    stored(&*database.store, &of(elsewhere, &Caller::anonymous()), None).await;
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

async fn leased_events_are_claimed_when_the_lease_has_expired(database: &TestStore) {
    let (leased, due) = (feedback("a"), feedback("b"));
    stored(&*database.store, &leased, Some(lease())).await;
    stored(&*database.store, &due, None).await;
    let ids = |claimed: Vec<Claimed>| {
        claimed
            .into_iter()
            .map(|claimed| claimed.event_id)
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(claim_all(database).await), [due.event.id]);
    database.advance(29).await;
    assert_eq!(ids(claim_all(database).await), []);
    database.advance(1).await;
    assert_eq!(ids(claim_all(database).await), [leased.event.id, due.event.id]);
    assert_eq!(ids(claim_all(database).await), []);
}

async fn claims_come_in_accept_order_and_two_replicas_share_nothing(database: &TestStore) {
    let group: Vec<_> = (0..100)
        .map(|number| feedback(&format!("phrase {number}")))
        .collect();
    database.store.insert(&group, None).await.unwrap();
    let other = database.replica().await;
    let claims = (0..20).map(|attempt| {
        let store = if attempt % 2 == 0 { &database.store } else { &other };
        async move { store.claim(7, lease()).await.unwrap() }
    });
    let claims = join_all(claims).await;
    for claim in &claims {
        assert!(claim.is_sorted_by_key(|claimed| claimed.accepted.order));
    }
    let mut all: Vec<_> = claims
        .concat()
        .into_iter()
        .map(|claimed| claimed.event_id)
        .collect();
    all.extend(
        claim_all(database)
            .await
            .into_iter()
            .map(|claimed| claimed.event_id),
    );
    assert_eq!(all.len(), 100);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 100);
    other.close().await;
}

async fn a_failure_counts_only_under_its_own_lease(database: &TestStore) {
    let new = feedback("a");
    let (mine, theirs) = (lease(), lease());
    stored(&*database.store, &new, Some(mine)).await;
    database.advance(30).await;
    assert_eq!(database.store.claim(1, theirs).await.unwrap().len(), 1);

    let failed = |token| Settlement::Failed {
        event_id: new.event.id,
        token,
        retry_in: Duration::from_secs(5),
        refusal: refusal(),
    };
    // Mine has expired: neither a failure nor a refusal of mine takes their lease from them.
    database
        .store
        .settle(&[failed(mine.token), dead(new.event.id, mine.token)])
        .await
        .unwrap();
    database.advance(10).await;
    assert_eq!(claim_all(database).await, []);
    assert_eq!(get(database, new.id).await.delivery, DeliveryState::Pending);

    database.store.settle(&[failed(theirs.token)]).await.unwrap();
    assert_eq!(claim_all(database).await, []);
    database.advance(5).await;
    assert_eq!(claim_all(database).await[0].attempts, 1);
}

async fn a_delivery_counts_whoever_holds_the_lease(database: &TestStore) {
    let (late, dead_letter) = (feedback("a"), feedback("b"));
    let mine = lease();
    stored(&*database.store, &late, Some(mine)).await;
    stored(&*database.store, &dead_letter, Some(mine)).await;
    database
        .store
        .settle(&[dead(dead_letter.event.id, mine.token)])
        .await
        .unwrap();
    assert_eq!(
        get(database, dead_letter.id).await.delivery,
        DeliveryState::DeadLetter
    );
    database.advance(30).await;
    let theirs = lease();
    database.store.claim(1, theirs).await.unwrap();

    for new in [&late, &dead_letter] {
        delivered(database, new.event.id, "done").await;
        let feedback = get(database, new.id).await;
        assert_eq!(feedback.delivery, DeliveryState::Delivered);
        assert_eq!(feedback.outcome, Some(outcome("done")));
    }
    // Their failure comes too late.
    let late = dead(late.event.id, theirs.token);
    database.store.settle(&[late]).await.unwrap();
    database.advance(3_600).await;
    assert_eq!(claim_all(database).await, []);
    assert_eq!(dead_letters(database, None).await, []);
    assert_eq!(
        listed(
            database,
            FeedbackQuery {
                delivery: Some(DeliveryState::Delivered),
                ..query()
            }
        )
        .await
        .len(),
        2
    );
}

async fn dead_letters(database: &TestStore, after: Option<DeadLetterPosition>) -> Vec<EventId> {
    let query = DeadLetterQuery {
        namespace: None,
        after,
        limit: 2,
    };
    let letters = database.store.dead_letters(&query).await.unwrap();
    letters.into_iter().map(|letter| letter.event_id).collect()
}

async fn dead_letters_are_listed_oldest_first_and_made_due_again(database: &TestStore) {
    let mine = lease();
    let elsewhere = Namespace::parse("elsewhere").unwrap();
    let other = Submission {
        namespace: elsewhere.clone(),
        ..submission("d")
    };
    let group = [
        feedback("a"),
        feedback("b"),
        feedback("c"),
        of(other, &Caller::anonymous()),
    ];
    database.store.insert(&group, Some(mine)).await.unwrap();
    let id = |index: usize| group[index].event.id;
    for index in [2, 0, 3, 1] {
        database
            .store
            .settle(&[dead(id(index), mine.token)])
            .await
            .unwrap();
        if index != 0 {
            database.advance(1).await;
        }
    }
    // The second and third died at the same moment.
    let mut twins = [id(0), id(3)];
    twins.sort_unstable();
    assert_eq!(dead_letters(database, None).await, [id(2), twins[0]]);
    let first = database
        .store
        .dead_letters(&DeadLetterQuery {
            namespace: None,
            after: None,
            limit: 2,
        })
        .await
        .unwrap();
    let after = DeadLetterPosition {
        dead_at_us: first[1].dead_at_us,
        event_id: first[1].event_id,
    };
    assert_eq!(dead_letters(database, Some(after)).await, [twins[1], id(1)]);
    let of_one = DeadLetterQuery {
        namespace: Some(elsewhere.clone()),
        after: None,
        limit: 9,
    };
    let of_one = database.store.dead_letters(&of_one).await.unwrap();
    assert_eq!(
        (of_one.len(), of_one[0].event_id, of_one[0].attempts),
        (1, id(3), 1)
    );
    assert_eq!(
        (&of_one[0].namespace, &of_one[0].refusal),
        (&elsewhere, &refusal())
    );

    // Nobody claims them until they are made due again, and only those that are asked for are.
    database.advance(3_600).await;
    assert_eq!(claim_all(database).await, []);
    let events = |ids: &[EventId], namespace| Redrive::Events(ids.to_vec(), namespace);
    let foreign = events(&[id(3)], Some(namespace()));
    assert_eq!(database.store.redrive(&foreign).await.unwrap(), 0);
    let unknown = EventId(Uuid::from_u128(7));
    assert_eq!(
        database
            .store
            .redrive(&events(&[id(0), unknown], None))
            .await
            .unwrap(),
        1
    );
    assert_eq!(
        database
            .store
            .redrive(&Redrive::Namespace(namespace()))
            .await
            .unwrap(),
        2
    );
    assert_eq!(
        database
            .store
            .redrive(&Redrive::Namespace(namespace()))
            .await
            .unwrap(),
        0
    );
    let claimed = claim_all(database).await;
    assert_eq!(
        claimed.iter().map(|claimed| claimed.event_id).collect::<Vec<_>>(),
        [id(0), id(1), id(2)]
    );
    assert!(claimed.iter().all(|claimed| claimed.attempts == 0));
    assert_eq!(get(database, group[0].id).await.delivery, DeliveryState::Pending);
    assert_eq!(dead_letters(database, None).await, [id(3)]);
}

async fn only_the_first_retraction_counts(database: &TestStore) {
    let new = feedback("a");
    stored(&*database.store, &new, Some(lease())).await;
    database.advance(5).await;
    let first = retraction(new.id, "a mistake");
    let Retracted::Now(accepted) = database.store.retract(&first, None).await.unwrap() else {
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

async fn the_outcome_of_a_retraction_is_not_replaced_by_an_older_one(database: &TestStore) {
    let (new, other) = (feedback("a"), feedback("b"));
    stored(&*database.store, &new, Some(lease())).await;
    stored(&*database.store, &other, Some(lease())).await;
    let (retracted, other_retracted) = (retraction(new.id, ""), retraction(other.id, ""));
    database.store.retract(&retracted, Some(lease())).await.unwrap();
    database
        .store
        .retract(&other_retracted, Some(lease()))
        .await
        .unwrap();
    assert_eq!(get(database, new.id).await.delivery, DeliveryState::Pending);

    // It overtakes the feedback.
    delivered(database, retracted.event.id, "retracted").await;
    assert_eq!(get(database, new.id).await.delivery, DeliveryState::Delivered);
    delivered(database, new.event.id, "recorded").await;
    let feedback = get(database, new.id).await;
    assert_eq!(
        (feedback.outcome, feedback.delivery),
        (Some(outcome("retracted")), DeliveryState::Delivered)
    );

    // In order, the older event says nothing of where the newer stands.
    delivered(database, other.event.id, "recorded").await;
    let feedback = get(database, other.id).await;
    assert_eq!(
        (feedback.outcome, feedback.delivery),
        (Some(outcome("recorded")), DeliveryState::Pending)
    );
    delivered(database, other_retracted.event.id, "retracted").await;
    let feedback = get(database, other.id).await;
    assert_eq!(
        (feedback.outcome, feedback.delivery),
        (Some(outcome("retracted")), DeliveryState::Delivered)
    );
}

async fn both_events_of_a_feedback_are_settled_at_once(database: &TestStore) {
    let new = feedback("a");
    stored(&*database.store, &new, Some(lease())).await;
    let retracted = retraction(new.id, "");
    database.store.retract(&retracted, Some(lease())).await.unwrap();
    let settlement = |event_id, text| Settlement::Delivered {
        event_id,
        outcome: outcome(text),
    };
    let both = [
        settlement(retracted.event.id, "retracted"),
        settlement(new.event.id, "recorded"),
    ];
    database.store.settle(&both).await.unwrap();
    let feedback = get(database, new.id).await;
    assert_eq!(
        (feedback.outcome, feedback.delivery),
        (Some(outcome("retracted")), DeliveryState::Delivered)
    );
    database.advance(60).await;
    assert_eq!(claim_all(database).await, []);
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

async fn large_groups_are_stored_and_settled_whole(database: &TestStore) {
    // Sizes on both sides of those that statements are cut into.
    for size in [1, 3, 4, 17, 64, 65, 199] {
        let group: Vec<NewFeedback> = (0..size)
            .map(|number| with_request_id(&format!("phrase {number}"), &format!("{size}-{number}")))
            .collect();
        let inserted = database.store.insert(&group, Some(lease())).await.unwrap();
        let orders = orders(&inserted);
        assert_eq!(orders.len(), size);
        assert!(orders.is_sorted());
        let settlements: Vec<_> = group
            .iter()
            .map(|new| Settlement::Delivered {
                event_id: new.event.id,
                outcome: outcome("done"),
            })
            .collect();
        database.store.settle(&settlements).await.unwrap();
        for new in &group {
            assert_eq!(get(database, new.id).await.delivery, DeliveryState::Delivered);
        }
    }
    database.advance(i64::try_from(LEASE.as_secs()).unwrap()).await;
    assert_eq!(claim_all(database).await, []);
}
