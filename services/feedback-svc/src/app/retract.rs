//! Taking feedback back.
//!
//! What is stored is handed over to the relay by the same task, which no caller can end: else the event of one who goes
//! away in between would wait for its lease to expire.

use std::sync::Arc;

use emend_core::{FeedbackId, Namespace};
use emend_runtime::Error;
use tokio::{sync::oneshot, time::Instant};

use super::{Origin, UseCases};
use crate::{
    domain::{Feedback, NewRetraction, mask_prose},
    event, fail_points,
    relay::dispatch::Reserved,
    store::{Retracted, StoreError},
};

impl UseCases {
    /// Takes a feedback back. Doing so twice answers as the first time. With `until`, waits so long for the outcome.
    pub(crate) async fn retract(
        self: &Arc<Self>,
        origin: &Origin,
        namespace: Namespace,
        id: FeedbackId,
        mut reason: String,
        until: Option<Instant>,
    ) -> Result<Feedback, Error> {
        mask_prose(&mut reason);
        let Origin { caller, traceparent } = origin;
        let event_id = self.new_event_id();
        let event = event::retracted(event_id, id, &namespace, caller, traceparent, &reason);
        let waiter = until.map(|_| self.waiters.register(event_id));
        let retraction = NewRetraction {
            namespace,
            id,
            caller: caller.clone(),
            reason,
            event,
        };
        let namespace = retraction.namespace.clone();
        let (answer, answered) = oneshot::channel();
        // Owning these use cases it owns a way to the committer: the relay is not drained before it ends.
        let use_cases = Arc::clone(self);
        self.lifecycle.spawn("retract feedback", async move {
            // Whoever asked may be gone; it is stored all the same.
            let _ = answer.send(use_cases.store_retraction(retraction).await);
        });
        let retracted = answered
            .await
            .map_err(|_| Error::unavailable("STOPPING", "the service is stopping"))??;
        match retracted {
            Retracted::Now(_) => {
                let feedback = self.looked_for(&namespace, id, None).await?;
                Ok(Self::awaited(feedback, waiter, until).await)
            }
            Retracted::Before => {
                drop(waiter);
                self.looked_for(&namespace, id, until).await
            }
            Retracted::NotFound => Err(Error::not_found("feedback", id.to_string())),
        }
    }

    /// Stores a retraction and hands over its event.
    async fn store_retraction(&self, retraction: NewRetraction) -> Result<Retracted, StoreError> {
        let reserved = self.dispatch.reserve(1);
        let lease = reserved.as_ref().map(Reserved::lease);
        let retracted = self.store.retract(&retraction, lease).await?;
        fail_points::RETRACTION_COMMITTED.pass();
        if let Retracted::Now(accepted) = retracted {
            self.dispatch.stored(reserved, vec![(retraction.event, accepted)]);
        }
        Ok(retracted)
    }
}

#[cfg(test)]
mod tests {
    use emend_core::Caller;
    use emend_runtime::{Entropy, Lifecycle, SystemClock};
    use futures::FutureExt as _;

    use super::*;
    use crate::{
        committer::Committer,
        config::{CommitConfig, RelayConfig},
        relay::{dispatch::Dispatch, hand_over::HandOver},
        testing::{TestStore, feedback, namespace, stored},
        tests::{SOON, eventually},
        waiters::Waiters,
    };

    #[tokio::test]
    async fn the_event_of_a_caller_that_goes_away_is_handed_over_all_the_same() {
        let database = TestStore::sqlite().await;
        let said = feedback("a");
        stored(&*database.store, &said, None).await;
        let hand_over = HandOver::new(10);
        let dispatch = Dispatch::new(hand_over.clone(), Entropy::system(), RelayConfig::default());
        let (committer, _commits) = Committer::new(
            Arc::clone(&database.store),
            dispatch.clone(),
            CommitConfig::default(),
        );
        let lifecycle = Lifecycle::new();
        let use_cases = Arc::new(UseCases::new(
            Arc::clone(&database.store),
            committer,
            dispatch,
            Waiters::default(),
            lifecycle.clone(),
            SystemClock::shared(),
            Entropy::system(),
        ));
        let origin = Origin {
            caller: Caller::anonymous(),
            traceparent: String::new(),
        };
        let mut asked = Box::pin(use_cases.retract(&origin, namespace(), said.id, "oops".into(), None));
        assert!((&mut asked).now_or_never().is_none(), "it takes a while");
        drop(asked);
        eventually("its event is handed over", || async { hand_over.len() == 1 }).await;
        lifecycle.shutdown(SOON).await;
    }
}
