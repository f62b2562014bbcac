//! Corrections: taking feedback, reading and retracting it.
//!
//! [`cleaned`] and [`plain_text`] take personal data and HTML out of it, [`day`] says when a day begins, [`group_commit`] stores
//! concurrent submissions together, [`present`] asks learning-svc what has become of it, and [`grpc`] parses and renders.

pub(crate) mod cleaned;
pub(crate) mod config;
pub(crate) mod day;
pub(crate) mod group_commit;
pub(crate) mod grpc;
pub(crate) mod plain_text;
pub(crate) mod present;
pub(crate) mod read;
pub(crate) mod retract;
pub(crate) mod submit;

use std::sync::Arc;

use emend_base::Lifecycle;
use emend_serve::fair_semaphore::FairSemaphore;
use feedback_store::ports::CorrectionStore;

use crate::{
    corrections::group_commit::Committer,
    ids::Ids,
    outbox::{dispatch::Dispatch, waiters::Waiters},
};

/// Takes, reads and retracts feedback.
#[derive(Debug)]
pub(crate) struct Corrections {
    store: Arc<dyn CorrectionStore>,
    committer: Committer,
    dispatch: Dispatch,
    waiters: Waiters,
    /// Owns the tasks that go on after their caller has left.
    lifecycle: Lifecycle,
    /// Bounds these tasks, which are retractions.
    retractions: FairSemaphore,
    ids: Ids,
}

impl Corrections {
    pub(crate) fn new(
        store: Arc<dyn CorrectionStore>,
        committer: Committer,
        dispatch: Dispatch,
        waiters: Waiters,
        lifecycle: Lifecycle,
        ids: Ids,
    ) -> Self {
        Self {
            store,
            committer,
            dispatch,
            waiters,
            lifecycle,
            retractions: FairSemaphore::of(retract::AT_ONCE),
            ids,
        }
    }
}
