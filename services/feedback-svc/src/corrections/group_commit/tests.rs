//! The committer, step by step, on a real store.

mod groups;
mod queue;

use std::future::Future;

use emend_base::Entropy;
use feedback_store::{
    records::{feedback::FeedbackQuery, outbox::DeadLetterQuery},
    testing::{Backend, TestStore, feedback, lease, namespace, stored, with_request_id},
};
use futures::{FutureExt as _, future::join_all};
use tonic::Code;

use crate::{
    corrections::group_commit::*,
    outbox::{config::RelayConfig, delivery_queue::DeliveryQueue},
};

struct Fixture {
    database: TestStore,
    delivery_queue: DeliveryQueue,
    committer: Committer,
    worker: CommitWorker,
}

impl Fixture {
    async fn new(config: CommitConfig) -> Self {
        Self::on(TestStore::sqlite().await, config)
    }

    fn on(database: TestStore, config: CommitConfig) -> Self {
        let delivery_queue = DeliveryQueue::new(1_000);
        let dispatch = Dispatch::new(delivery_queue.clone(), Entropy::seeded(1), RelayConfig::default());
        let (committer, worker) = Committer::new(database.store.clone(), dispatch, config);
        Self {
            database,
            delivery_queue,
            committer,
            worker,
        }
    }

    async fn stored(&self) -> usize {
        let all = FeedbackQuery {
            namespace: namespace(),
            reporter: None,
            kind: None,
            search_ratings: None,
            target: None,
            rating: None,
            delivery: None,
            from: None,
            before: None,
            after: None,
            limit: 1_000,
        };
        self.database.store.list(&all).await.unwrap().len()
    }

    /// Begins to store items; returns once they are queued.
    fn begin(&self, items: Vec<NewFeedback>) -> impl Future<Output = Result<Results, Error>> + use<> {
        self.begin_for(ClientKey::Unknown, items)
    }

    /// The same for `client`.
    fn begin_for(
        &self,
        client: ClientKey,
        items: Vec<NewFeedback>,
    ) -> impl Future<Output = Result<Results, Error>> + use<> {
        let committer = self.committer.clone();
        let mut waiting = Box::pin(async move { committer.store(client, items).await });
        let now = (&mut waiting).now_or_never();
        async move {
            match now {
                Some(answer) => answer,
                None => waiting.await,
            }
        }
    }
}
