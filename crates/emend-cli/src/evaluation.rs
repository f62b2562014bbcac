//! Waits until a correction has been evaluated, beyond the time that a submission waits.
//!
//! A submission that asks to wait is answered once it is evaluated, or after at most two seconds, which may be too
//! short on a busy computer.

use std::time::Duration;

use emend_client::{FeedbackClient, Recorded};
use emend_core::Namespace;
use emend_proto::feedback::v1::DeliveryState;
use tokio::time::{Instant, sleep};

use crate::failure::{Failure, Result};

/// The interval between polls.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Returns the correction once its newest event has been evaluated or permanently refused.
pub(crate) async fn wait_until_evaluated(
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
        sleep(POLL_INTERVAL).await;
        recorded = client
            .get(namespace, recorded.feedback_id)
            .await
            .map_err(|error| Failure::Refused(Box::new(error.0)))?;
    }
    Ok(recorded)
}
