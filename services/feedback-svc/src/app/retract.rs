//! Taking feedback back.

use emend_core::{FeedbackId, Namespace};
use emend_runtime::Error;
use tokio::time::Instant;

use super::{Origin, UseCases};
use crate::{
    domain::{Feedback, NewRetraction, mask_prose},
    event,
    relay::dispatch::Reserved,
    store::Retracted,
};

impl UseCases {
    /// Takes a feedback back. Doing so twice answers as the first time. With `until`, waits so long for the outcome.
    pub(crate) async fn retract(
        &self,
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
        let reserved = self.dispatch.reserve(1);
        let retracted = self
            .store
            .retract(&retraction, reserved.as_ref().map(Reserved::lease))
            .await?;
        let NewRetraction { namespace, event, .. } = retraction;
        match retracted {
            Retracted::Now(accepted) => {
                self.dispatch.stored(reserved, vec![(event, accepted)]);
                let feedback = self.looked_for(&namespace, id, None).await?;
                Ok(Self::awaited(feedback, waiter, until).await)
            }
            Retracted::Before => {
                drop((waiter, reserved));
                self.looked_for(&namespace, id, until).await
            }
            Retracted::NotFound => Err(Error::not_found("feedback", id.to_string())),
        }
    }
}
