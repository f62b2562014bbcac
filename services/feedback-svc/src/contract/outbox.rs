//! What every store must do with events: leases, claims, results of deliveries, dead letters.

use std::{sync::Arc, time::Duration};

use emend_base::Entropy;
use emend_core::{Caller, EventId, Namespace};
use emend_store::StoreError;
use feedback_store::{
    ports::{Backlog, Settlement},
    records::{
        feedback::{FeedbackQuery, NewFeedback, Submission},
        outbox::{DeadLetterPosition, DeadLetterQuery, DeliveryState, Lease, LeaseHolder, LeaseToken},
    },
    testing::{
        Backend, LEASE, TestStore, TestedStore, feedback, inserted, lease, namespace, new_feedback, outcome,
        retraction, stored, submission, with_request_id,
    },
};
use futures::future::join_all;
use tokio::time::timeout;
use uuid::Uuid;

use crate::contract::{claim_all, dead, delivered, get, listed, orders, query, refusal};

/// Longer than a server takes to notice that a connection has ended.
const SOON: Duration = Duration::from_secs(20);

contract! {
    leased_events_are_claimed_when_the_lease_has_expired
    a_clock_set_back_delays_no_event
    claims_are_in_accept_order_and_disjoint_between_replicas
    a_failure_counts_only_under_its_own_lease
    a_delivery_counts_whoever_holds_the_lease
    only_pending_events_under_the_same_token_are_still_leased
    dead_letters_are_listed_oldest_first_and_made_due_again
    the_outcome_of_a_retraction_is_not_replaced_by_an_older_one
    both_events_of_a_feedback_are_settled_at_once
    large_groups_are_stored_and_settled_whole
    the_backlog_counts_pending_events_their_age_and_dead_letters
}

async fn claimed_ids(database: &TestStore) -> Vec<EventId> {
    let claimed = claim_all(database).await;
    claimed.iter().map(|claimed| claimed.event_id).collect()
}

async fn leased_events_are_claimed_when_the_lease_has_expired(database: &TestStore) {
    let (leased, due) = (feedback("a"), feedback("b"));
    stored(&*database.store, &leased, Some(lease())).await;
    stored(&*database.store, &due, None).await;
    assert_eq!(claimed_ids(database).await, [due.event.id]);
    database.advance(29).await;
    assert_eq!(claimed_ids(database).await, []);
    database.advance(1).await;
    assert_eq!(claimed_ids(database).await, [leased.event.id, due.event.id]);
    assert_eq!(claimed_ids(database).await, []);
}

async fn a_clock_set_back_delays_no_event(database: &TestStore) {
    let leased = feedback("a");
    stored(&*database.store, &leased, Some(lease())).await;
    database.advance(-60).await;
    assert_eq!(claim_all(database).await, [], "a little: the lease is longer");
    database.advance(-3600).await;
    let claimed = claim_all(database).await;
    assert_eq!(claimed.len(), 1, "an hour: it is not waited for");
    assert_eq!(claimed[0].event_id, leased.event.id);
    assert_eq!(claim_all(database).await, [], "a new lease is one");
}

async fn claims_are_in_accept_order_and_disjoint_between_replicas(database: &TestStore) {
    let group: Vec<_> = (0..100)
        .map(|number| feedback(&format!("phrase {number}")))
        .collect();
    inserted(&*database.store, &group, None).await;
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
    // My lease has expired: neither a failure nor a refusal of mine takes theirs away.
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
    let again = lease();
    assert_eq!(database.store.claim(1, again).await.unwrap()[0].attempts, 1);

    // Releasing a lease is not a failure, and only its holder can do it.
    let released = |token| Settlement::Released {
        event_id: new.event.id,
        token,
    };
    database.store.settle(&[released(theirs.token)]).await.unwrap();
    assert_eq!(claim_all(database).await, []);
    database.store.settle(&[released(again.token)]).await.unwrap();
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
        new_feedback(other, &Caller::anonymous()),
    ];
    inserted(&*database.store, &group, Some(mine)).await;
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
        dead_at: first[1].dead_at,
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

    // They are not claimed until they are redriven, and only those that are asked for are redriven.
    database.advance(3_600).await;
    assert_eq!(claim_all(database).await, []);
    let own = namespace();
    assert_eq!(database.store.redrive(&[id(3)], Some(&own)).await.unwrap(), 0);
    let unknown = EventId(Uuid::from_u128(7));
    assert_eq!(database.store.redrive(&[id(0), unknown], None).await.unwrap(), 1);
    let all = [0, 1, 2, 3].map(id);
    assert_eq!(database.store.redrive(&all, Some(&own)).await.unwrap(), 2);
    assert_eq!(database.store.redrive(&all, Some(&own)).await.unwrap(), 0);
    let claimed = claim_all(database).await;
    assert_eq!(
        claimed.iter().map(|claimed| claimed.event_id).collect::<Vec<_>>(),
        [id(0), id(1), id(2)]
    );
    assert!(claimed.iter().all(|claimed| claimed.attempts == 0));
    assert_eq!(get(database, group[0].id).await.delivery, DeliveryState::Pending);
    assert_eq!(dead_letters(database, None).await, [id(3)]);
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

    // The retraction overtakes the feedback.
    delivered(database, retracted.event.id, "retracted").await;
    assert_eq!(get(database, new.id).await.delivery, DeliveryState::Delivered);
    delivered(database, new.event.id, "recorded").await;
    let feedback = get(database, new.id).await;
    assert_eq!(
        (feedback.outcome, feedback.delivery),
        (Some(outcome("retracted")), DeliveryState::Delivered)
    );

    // In order, the older event says nothing about the delivery of the newer one.
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

async fn large_groups_are_stored_and_settled_whole(database: &TestStore) {
    // Sizes around those of the batches that statements are split into.
    for size in [1, 3, 4, 17, 64, 65, 199, 300] {
        let group: Vec<NewFeedback> = (0..size)
            .map(|number| with_request_id(&format!("phrase {number}"), &format!("{size}-{number}")))
            .collect();
        let inserted = inserted(&*database.store, &group, Some(lease())).await;
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
async fn dead_letters(database: &TestStore, after: Option<DeadLetterPosition>) -> Vec<EventId> {
    let query = DeadLetterQuery {
        namespace: None,
        after,
        limit: 2,
    };
    let letters = database.store.dead_letters(&query).await.unwrap();
    letters.into_iter().map(|letter| letter.event_id).collect()
}

async fn the_backlog_counts_pending_events_their_age_and_dead_letters(database: &TestStore) {
    let backlog = || async { database.store.backlog().await.unwrap() };
    assert_eq!(backlog().await, Backlog::default());

    let (old, young) = (feedback("old"), feedback("young"));
    let token = lease();
    stored(&*database.store, &old, None).await;
    delivered(database, old.event.id, "done").await;
    stored(&*database.store, &young, Some(token)).await;
    database.advance(40).await;
    // An event of the older feedback, but younger itself: it must not hide the one that has waited longer.
    let taken_back = retraction(old.id, "oops");
    database.store.retract(&taken_back, Some(token)).await.unwrap();
    database.advance(20).await;
    let found = backlog().await;
    assert_eq!((found.pending, found.dead_letters), (2, 0));
    assert!((60..70).contains(&found.oldest_age.as_secs()), "{found:?}");

    database
        .store
        .settle(&[dead(young.event.id, token.token)])
        .await
        .unwrap();
    let found = backlog().await;
    assert_eq!((found.pending, found.dead_letters), (1, 1));
    assert!((20..30).contains(&found.oldest_age.as_secs()), "{found:?}");

    delivered(database, taken_back.event.id, "done").await;
    let found = backlog().await;
    assert_eq!(
        (found.pending, found.oldest_age.as_secs(), found.dead_letters),
        (0, 0, 1)
    );
}

async fn only_pending_events_under_the_same_token_are_still_leased(database: &TestStore) {
    let names = ["held", "delivered", "dead", "claimed", "unknown"];
    let [held, gone, dead_one, claimed, unknown] = names.map(feedback);
    let own = lease();
    for feedback in [&held, &gone, &dead_one, &claimed] {
        stored(&*database.store, feedback, Some(own)).await;
    }
    delivered(database, gone.event.id, "learned").await;
    database
        .store
        .settle(&[dead(dead_one.event.id, own.token)])
        .await
        .unwrap();
    let other = LeaseToken(Uuid::from_u128(7));
    let asked = [
        (unknown.event.id, own.token),
        (held.event.id, own.token),
        (gone.event.id, own.token),
        (dead_one.event.id, own.token),
        (claimed.event.id, other),
    ];
    assert_eq!(
        database.store.still_leased(&asked).await.unwrap(),
        [held.event.id]
    );
    assert_eq!(database.store.still_leased(&[]).await.unwrap(), []);
}

/// A replica that looks for others that are gone.
struct Replica {
    store: Arc<dyn TestedStore>,
    holder: LeaseHolder,
}

impl Replica {
    async fn of(database: &TestStore, holder: u32) -> Self {
        let replica = Self {
            store: database.replica().await,
            holder: LeaseHolder(holder),
        };
        // From the third look on it knows all the others.
        for _ in 0..3 {
            replica.looks().await.unwrap();
        }
        replica
    }

    async fn looks(&self) -> Result<u64, StoreError> {
        self.store.release_abandoned(self.holder).await
    }

    /// Stores feedback and leases its event to itself.
    async fn leases(&self, phrase: &str) -> EventId {
        let new = feedback(phrase);
        let lease = Lease {
            token: self.holder.token(&Entropy::system()),
            duration: LEASE,
        };
        stored(&*self.store, &new, Some(lease)).await;
        new.event.id
    }

    /// Looks until it finds abandoned leases. The server may notice the end of a connection a moment later.
    async fn finds(&self) -> u64 {
        timeout(SOON, async {
            loop {
                match self.looks().await {
                    Ok(0) | Err(_) => tokio::task::yield_now().await,
                    Ok(released) => return released,
                }
            }
        })
        .await
        .expect("it finds out")
    }
}

#[tokio::test]
async fn what_a_dead_replica_had_leased_is_due_at_once_on_postgres() {
    let Some(database) = TestStore::open(Backend::Postgres).await else {
        return;
    };
    let first = Replica::of(&database, 1).await;
    let second = Replica::of(&database, u32::MAX).await;
    let third = Replica::of(&database, 3).await;
    first.leases("a").await;
    let of_second = second.leases("b").await;
    let of_third = third.leases("c").await;
    for replica in [&first, &second, &third, &first] {
        assert_eq!(replica.looks().await.unwrap(), 0, "all are alive");
    }

    drop(second);
    assert_eq!(first.finds().await, 1);
    assert_eq!(claimed_ids(&database).await, [of_second]);
    assert_eq!(first.looks().await.unwrap(), 0);

    // A replica that starts finds what was left behind before.
    drop(third);
    let late = Replica {
        store: database.replica().await,
        holder: LeaseHolder(4),
    };
    assert_eq!(late.finds().await, 1, "what the first one has since is its own");
    assert_eq!(claimed_ids(&database).await, [of_third]);
    database.close().await;
}

#[tokio::test]
async fn a_replica_that_lost_its_connection_keeps_its_leases_on_postgres() {
    let Some(database) = TestStore::open(Backend::Postgres).await else {
        return;
    };
    let first = Replica::of(&database, 1).await;
    let second = Replica::of(&database, 2).await;
    first.leases("a").await;
    second.leases("b").await;
    assert_eq!(first.looks().await.unwrap(), 0);
    let of_all = "TRUE";
    let of_second = "pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = 2)";
    for lost in [of_all, of_second] {
        let lost = format!(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
             WHERE application_name = 'emend presence' AND datname = current_database() AND {lost}"
        );
        database.execute(&lost).await.unwrap();
        // As far apart as their looks may be.
        for replica in [&first, &first, &second, &first, &second, &first] {
            assert_eq!(replica.looks().await.unwrap(), 0);
        }
    }
    assert_eq!(claim_all(&database).await, []);
    database.close().await;
}

#[tokio::test]
async fn nobody_shares_an_outbox_on_sqlite() {
    let database = TestStore::sqlite().await;
    let replica = Replica {
        store: database.store.clone(),
        holder: LeaseHolder(1),
    };
    stored(&*database.store, &feedback("a"), Some(lease())).await;
    for _ in 0..3 {
        assert_eq!(replica.looks().await.unwrap(), 0);
    }
    assert_eq!(claim_all(&database).await, []);
    database.close().await;
}
