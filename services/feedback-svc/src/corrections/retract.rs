//! Retracting feedback.
//!
//! A retraction is stored, and its event handed over to the relay, by a task that no caller can cancel: otherwise the
//! event of a caller that leaves in between would wait for its lease to expire. The number of these tasks is bounded by
//! a fair semaphore. A caller waits for its permit for a short time only, and one that leaves meanwhile has begun
//! nothing.

use std::{sync::Arc, time::Duration};

use emend_base::Error;
use emend_core::{FeedbackId, Namespace, Role};
use emend_store::StoreError;
use feedback_store::{
    ports::Retracted,
    records::{
        event,
        feedback::{Feedback, NewRetraction},
    },
};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout},
};

use crate::{
    corrections::{Corrections, cleaned::mask_prose},
    fail_points,
    origin::Origin,
    outbox::dispatch::Reserved,
};

/// How many retractions are stored at once.
pub(crate) const AT_ONCE: usize = 64;
/// How long a retraction waits for its permit.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// The retry hint after that.
const RETRY_AFTER: Duration = Duration::from_millis(250);

impl Corrections {
    /// Retracts a feedback. Idempotent: a repeated retraction is answered like the first, unless the caller has more right
    /// than who retracted it before, and that matters. With `until`, waits until then for the outcome.
    pub(crate) async fn retract(
        self: &Arc<Self>,
        origin: &Origin,
        namespace: Namespace,
        id: FeedbackId,
        mut reason: String,
        until: Option<Instant>,
    ) -> Result<Feedback, Error> {
        mask_prose(&mut reason);
        let Origin {
            caller,
            client,
            traceparent,
            ..
        } = origin;
        let event_id = self.ids.event();
        let roles = origin.roles(&namespace);
        let role = roles.iter().filter_map(|name| Role::parse(name).ok()).max();
        let event = event::retracted(event_id, id, &namespace, caller, roles, traceparent, &reason);
        let waiter = until.map(|_| self.waiters.register(event_id));
        let retraction = NewRetraction {
            namespace,
            id,
            caller: caller.clone(),
            role,
            reason,
            event,
        };
        let namespace = retraction.namespace.clone();
        let turn = timeout(LONGEST_WAIT, self.retractions.acquire(client.clone()))
            .await
            .map_err(|_| Error::ResourceExhausted {
                reason: "TOO_MANY_RETRACTIONS",
                message: "more retractions are waiting than can be stored soon".to_owned(),
                retry_after: Some(RETRY_AFTER),
            })?;
        let (answer, answered) = oneshot::channel();
        // The task owns what it calls, and so a handle to the committer: the relay is not drained before it ends.
        let corrections = Arc::clone(self);
        self.lifecycle.spawn("retract feedback", async move {
            let stored = corrections.store_retraction(retraction).await;
            drop(turn);
            // The caller may be gone; the retraction is stored all the same.
            let _ = answer.send(stored);
        });
        let retracted = answered
            .await
            .map_err(|_| Error::unavailable("STOPPING", "the service is stopping"))??;
        match retracted {
            Retracted::Now { is_delivered, .. } => {
                let feedback = self.read(&namespace, id, None).await?;
                let waiter = waiter.filter(|_| is_delivered);
                Ok(Self::with_answer(feedback, waiter, until).await)
            }
            Retracted::Before => {
                drop(waiter);
                self.read(&namespace, id, until).await
            }
            Retracted::NotFound => Err(Error::not_found("feedback", id.to_string())),
        }
    }

    /// Stores a retraction and hands its event over to the relay.
    async fn store_retraction(&self, retraction: NewRetraction) -> Result<Retracted, StoreError> {
        let reserved = self.dispatch.reserve(1);
        let lease = reserved.as_ref().map(Reserved::lease);
        let retracted = self.store.retract(&retraction, lease).await?;
        fail_points::RETRACTION_COMMITTED.pass();
        if let Retracted::Now {
            accepted,
            has_reason,
            is_delivered: true,
        } = retracted
        {
            let event = if has_reason {
                retraction.event
            } else {
                event::without_reason(&retraction.event)
            };
            self.dispatch.stored(reserved, vec![(event, accepted)]);
        }
        Ok(retracted)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use emend_base::{Entropy, Lifecycle, SystemClock};
    use emend_core::Caller;
    use emend_serve::fair_semaphore::ClientKey;
    use feedback_store::{
        ports::CorrectionStore,
        testing::{TestStore, feedback, namespace, stored},
    };
    use futures::FutureExt as _;

    use super::*;
    use crate::{
        corrections::{config::CommitConfig, group_commit::Committer},
        ids::Ids,
        outbox::{config::RelayConfig, delivery_queue::DeliveryQueue, dispatch::Dispatch, waiters::Waiters},
        tests::{SOON, eventually},
    };

    /// Corrections on that store, in that lifecycle.
    fn corrections(
        database: &TestStore,
        delivery_queue: &DeliveryQueue,
        lifecycle: &Lifecycle,
    ) -> Arc<Corrections> {
        let dispatch = Dispatch::new(delivery_queue.clone(), Entropy::system(), RelayConfig::default());
        let store: Arc<dyn CorrectionStore> = database.store.clone();
        let (committer, _commits) =
            Committer::new(Arc::clone(&store), dispatch.clone(), CommitConfig::default());
        Arc::new(Corrections::new(
            store,
            committer,
            dispatch,
            Waiters::default(),
            lifecycle.clone(),
            Ids::new(SystemClock::shared(), Entropy::system()),
        ))
    }

    fn origin() -> Origin {
        Origin {
            access: emend_serve::auth::Access::open(),
            caller: Caller::anonymous(),
            client: ClientKey::Unknown,
            traceparent: String::new(),
        }
    }

    #[tokio::test]
    async fn the_event_of_a_disconnected_caller_is_still_delivered() {
        let database = TestStore::sqlite().await;
        let new = feedback("a");
        stored(&*database.store, &new, None).await;
        let (delivery_queue, lifecycle) = (DeliveryQueue::new(10), Lifecycle::new());
        let corrections = corrections(&database, &delivery_queue, &lifecycle);
        let origin = origin();
        let mut asked = Box::pin(corrections.retract(&origin, namespace(), new.id, "oops".into(), None));
        assert!((&mut asked).now_or_never().is_none(), "it takes a while");
        drop(asked);
        eventually("its event is handed over", || async { delivery_queue.len() == 1 }).await;
        lifecycle.shutdown(SOON).await;
    }

    #[tokio::test]
    async fn concurrent_retractions_are_bounded_and_an_abandoned_one_stores_nothing() {
        let database = TestStore::sqlite().await;
        let new = feedback("a");
        stored(&*database.store, &new, None).await;
        let (delivery_queue, lifecycle) = (DeliveryQueue::new(10), Lifecycle::new());
        let corrections = corrections(&database, &delivery_queue, &lifecycle);
        let others: Vec<_> = (1..)
            .map(|host| ClientKey::of(None, Some(Ipv4Addr::from_bits(host).into())))
            .map_while(|other| corrections.retractions.try_acquire(other))
            .collect();
        assert_eq!(others.len(), AT_ONCE);
        let origin = origin();
        let ask = || Box::pin(corrections.retract(&origin, namespace(), new.id, "oops".into(), None));

        let mut gone = ask();
        assert!((&mut gone).now_or_never().is_none(), "it waits for its turn");
        drop(gone);
        tokio::time::pause();
        let refused = ask().await.unwrap_err();
        tokio::time::resume();
        assert_eq!(refused.reason(), "TOO_MANY_RETRACTIONS");
        drop(others);
        let before = database.store.feedback(&namespace(), new.id).await.unwrap();
        assert!(before.unwrap().retraction.is_none(), "nothing was begun");

        assert!(ask().await.unwrap().retraction.is_some());
        assert_eq!(corrections.retractions.held_by(&origin.client), 0);
        lifecycle.shutdown(SOON).await;
    }
}
