//! Follows the review queue.

use emend_base::Backoff;
use emend_proto::learning::v1::{WatchQueueRequest, watch_queue_response::Message};
use tokio::time::sleep;
use tonic::Status;

use super::{Change, RETRY, Teller, is_refusal};
use crate::{
    context::Context,
    failure::{Failure, Result},
};

/// Tells what changes until it is refused.
pub(super) async fn follow(context: &Context, teller: &Teller) -> Status {
    let mut backoff = Backoff::new(RETRY, context.entropy.clone());
    loop {
        match watch(context, teller, &mut backoff).await {
            Err(Ended::Refused(status)) if is_refusal(&status) => return status,
            Ok(()) | Err(_) => sleep(backoff.next()).await,
        }
    }
}

/// Why a watch ended.
#[derive(Debug)]
pub(super) enum Ended {
    Refused(Status),
    Away,
}

impl From<Status> for Ended {
    fn from(status: Status) -> Self {
        Self::Refused(status)
    }
}

impl From<Failure> for Ended {
    fn from(_: Failure) -> Self {
        Self::Away
    }
}

async fn watch(context: &Context, teller: &Teller, backoff: &mut Backoff) -> Result<(), Ended> {
    let request = WatchQueueRequest {
        namespace: context.namespace(),
        kinds: Vec::new(),
    };
    let mut client = context.candidates().await?;
    let mut messages = client
        .watch_queue(context.request_without_deadline(request))
        .await?
        .into_inner();
    while let Some(message) = messages.message().await? {
        match message.message {
            Some(Message::Opened(_)) => {
                backoff.reset();
                teller.opened();
            }
            Some(Message::Change(change)) => teller.tell(Change::Queue {
                revision: change.revision,
            }),
            Some(Message::Resync(_)) => teller.tell(Change::Anything),
            Some(Message::KeepAlive(_)) | None => {}
        }
    }
    Ok(())
}
