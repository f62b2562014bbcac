//! The contract of every store, stamped on both databases and on the store in memory that the simulation uses.

use emend_core::{EventId, FeedbackId};
use feedback_store::{
    ports::{Claimed, Inserted, Settlement},
    records::{
        feedback::{Feedback, FeedbackQuery},
        outbox::{LeaseToken, Refusal},
    },
    testing::{TestStore, lease, namespace, outcome},
};

/// One test per scenario and store; those after `sql` apply to databases only.
macro_rules! contract {
    ($($scenario:ident)* $(; sql $($of_sql:ident)*)?) => {
        contract!(on_sqlite, Backend::Sqlite, $($scenario)* $($($of_sql)*)?);
        contract!(on_postgres, Backend::Postgres, $($scenario)* $($($of_sql)*)?);
        contract!(in_memory, Backend::Memory, $($scenario)*);
    };
    ($module:ident, $backend:expr, $($scenario:ident)*) => {
        mod $module {
            use feedback_store::testing::{Backend, TestStore};
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

mod erased_queries;
mod feedback;
mod installation;
mod outbox;
mod queries;
mod query_counts;
mod query_documents;
mod rating_contexts;
mod rating_limits;
mod ratings;
mod search_ratings;
mod stats;
mod stats_recomputed;

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
        target: None,
        rating: None,
        search_ratings: None,
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
