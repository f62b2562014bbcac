//! Capabilities on a store, with nobody to deliver to.

use std::sync::Arc;

use emend_base::{Entropy, Lifecycle, SystemClock};
use feedback_store::testing::TestStore;

use crate::{
    corrections::{Corrections, config::CommitConfig, group_commit::Committer},
    ids::Ids,
    outbox::{config::RelayConfig, delivery_queue::DeliveryQueue, dispatch::Dispatch, waiters::Waiters},
    queries::Queries,
    ratings::Ratings,
};

pub(crate) fn corrections(database: &TestStore, delivery_queue: &DeliveryQueue) -> Arc<Corrections> {
    let dispatch = dispatch(delivery_queue);
    let (committer, _commits) =
        Committer::new(database.store.clone(), dispatch.clone(), CommitConfig::default());
    Arc::new(Corrections::new(
        database.store.clone(),
        committer,
        dispatch,
        Waiters::default(),
        Lifecycle::new(),
        ids(),
    ))
}

pub(crate) fn dispatch(delivery_queue: &DeliveryQueue) -> Dispatch {
    Dispatch::new(delivery_queue.clone(), Entropy::system(), RelayConfig::default())
}

pub(crate) fn ids() -> Ids {
    Ids::new(SystemClock::shared(), Entropy::system())
}

pub(crate) fn ratings(database: &TestStore) -> Ratings {
    Ratings {
        store: database.sql(),
        corrections: corrections(database, &DeliveryQueue::new(10)),
    }
}

pub(crate) fn queries(database: &TestStore) -> Queries {
    Queries {
        store: database.sql(),
    }
}
