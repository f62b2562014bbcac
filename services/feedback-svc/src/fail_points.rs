//! Points at which tests abort this service: between two steps of storing a correction, of delivering its event to
//! learning-svc, and of upkeep.

use emend_base::fail_point::FailPoint;
use feedback_store::fail_points::{BATCH_WRITTEN, GROUP_WRITTEN, RETRACTION_WRITTEN};

/// A group of submissions was taken from the queue; nothing of it is stored.
pub(crate) const GROUP_TAKEN: FailPoint = FailPoint::named("submission.taken");
/// A group is stored; its events are not handed over to the relay.
pub(crate) const GROUP_COMMITTED: FailPoint = FailPoint::named("submission.committed");
/// A group's events are handed over to the relay; no caller is answered.
pub(crate) const GROUP_HANDED_OVER: FailPoint = FailPoint::named("submission.handed-over");
/// A retraction is stored; its event is not handed over to the relay.
pub(crate) const RETRACTION_COMMITTED: FailPoint = FailPoint::named("retraction.committed");
/// Events from the outbox are leased to this replica; none is sent.
pub const EVENTS_CLAIMED: FailPoint = FailPoint::named("outbox.claimed");
/// A batch was taken from the relay's queue; it is not sent.
pub(crate) const BATCH_TAKEN: FailPoint = FailPoint::named("outbox.taken");
/// A batch is sent; no answer has come.
pub(crate) const BATCH_SENT: FailPoint = FailPoint::named("outbox.sent");
/// learning-svc has answered; nothing of it is recorded.
pub(crate) const BATCH_ANSWERED: FailPoint = FailPoint::named("outbox.answered");
/// The answers are recorded; their waiters have not been told.
pub(crate) const BATCH_SETTLED: FailPoint = FailPoint::named("outbox.settled");
/// A batch of old request ids is deleted; there may be more. Passed once soon after startup.
pub const REQUEST_IDS_FORGOTTEN: FailPoint = FailPoint::named("upkeep.request-ids-forgotten");

/// All of them.
pub const ALL: [FailPoint; 13] = [
    GROUP_TAKEN,
    GROUP_WRITTEN,
    GROUP_COMMITTED,
    GROUP_HANDED_OVER,
    RETRACTION_WRITTEN,
    RETRACTION_COMMITTED,
    EVENTS_CLAIMED,
    BATCH_TAKEN,
    BATCH_SENT,
    BATCH_ANSWERED,
    BATCH_WRITTEN,
    BATCH_SETTLED,
    REQUEST_IDS_FORGOTTEN,
];

/// Those that a service on PostgreSQL never passes.
pub const ON_SQLITE_ONLY: [FailPoint; 1] = [GROUP_WRITTEN];
