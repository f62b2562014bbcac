//! Waits until a correction has been evaluated, however long the service takes over it.
//!
//! A submission that asks for it is answered once it is evaluated, or after two seconds at most; on a busy computer that
//! may be too short. It must know nothing of what is corrected.

use std::time::Duration;

use emend_client::{FeedbackClient, Recorded};
use emend_core::Namespace;
use emend_proto::feedback::v1::DeliveryState;
use tokio::time::{Instant, sleep};

use crate::failure::{Failure, Result};

/// How long to wait before asking again.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// The correction once its newest event has been evaluated, or refused for good.
pub(crate) async fn settled(
    client: &FeedbackClient,
    namespace: &Namespace,
    mut recorded: Recorded,
    deadline: Instant,
) -> Result<Recorded> {
    while !matches!(
        recorded.feedback.delivery_state(),
        DeliveryState::Delivered | DeliveryState::DeadLetter
    ) {
        if Instant::now() > deadline {
            return Err(Failure::failed(format!(
                "feedback {} was not evaluated in time",
                recorded.feedback_id
            )));
        }
        sleep(ASK_AGAIN).await;
        recorded = client
            .get(namespace, recorded.feedback_id)
            .await
            .map_err(|error| Failure::Refused(Box::new(error.0)))?;
    }
    Ok(recorded)
}
