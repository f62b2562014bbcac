//! Points at which tests kill this service: between two steps of applying events, deciding, following the log, and
//! maintenance.

use emend_base::fail_point::FailPoint;

/// A group of events was taken from the queue; nothing has been read for it.
pub(crate) const GROUP_TAKEN: FailPoint = FailPoint::named("ingest.taken");
/// A group's contests are locked and read.
pub(crate) const GROUP_LOCKED: FailPoint = FailPoint::named("ingest.locked");
/// A group is decided; nothing is written.
pub(crate) const GROUP_DECIDED: FailPoint = FailPoint::named("ingest.decided");
/// Ballots are written; the head is not locked.
pub(crate) const VOTES_WRITTEN: FailPoint = FailPoint::named("promotion.votes-written");
/// The head is locked and advanced; nothing that names a revision is written.
pub(crate) const HEAD_LOCKED: FailPoint = FailPoint::named("promotion.head-locked");
/// Revisions, changes and resources are written; the transaction is not committed.
pub(crate) const REVISIONS_WRITTEN: FailPoint = FailPoint::named("promotion.revisions-written");
/// A group is committed; the caller is not told.
pub(crate) const GROUP_COMMITTED: FailPoint = FailPoint::named("ingest.committed");
/// The results were handed to the waiting submitters.
pub(crate) const GROUP_TOLD: FailPoint = FailPoint::named("ingest.told");
/// A person's action is committed; the caller is not told.
pub(crate) const ACT_COMMITTED: FailPoint = FailPoint::named("act.committed");
/// All rows of an import are locked; none is decided.
pub(crate) const IMPORT_LOCKED: FailPoint = FailPoint::named("import.locked");
/// One part of an all-or-nothing import is written; the transaction is not committed.
pub(crate) const IMPORT_PART_WRITTEN: FailPoint = FailPoint::named("import.part-written");
/// An all-or-nothing import is committed; the caller is not told.
pub(crate) const IMPORT_COMMITTED: FailPoint = FailPoint::named("import.committed");
/// One part of an import that skips bad rows is committed; there may be more.
pub(crate) const IMPORT_PART_COMMITTED: FailPoint = FailPoint::named("import.part-committed");
/// Revisions were read from the log; they are not published.
pub(crate) const LOG_READ: FailPoint = FailPoint::named("log.read");
/// A new state is published; subscribers are being woken.
pub(crate) const LOG_PUBLISHED: FailPoint = FailPoint::named("log.published");
/// The contests to re-evaluate are known; none is locked. Reached only after a policy change.
pub const REEVALUATION_BEGUN: FailPoint = FailPoint::named("reevaluation.begun");
/// A batch is re-evaluated and committed; nobody is woken. Reached only after a policy change.
pub const REEVALUATION_COMMITTED: FailPoint = FailPoint::named("reevaluation.committed");
/// Node activity was taken from memory; none of it is written.
pub(crate) const NODES_TAKEN: FailPoint = FailPoint::named("nodes.taken");
/// Node activity is written; the transaction is not committed.
pub(crate) const NODES_WRITTEN: FailPoint = FailPoint::named("nodes.written");
/// The horizon of deletions is raised if need be; stale nodes are not yet forgotten. Reached once soon after startup.
pub const HORIZON_RAISED: FailPoint = FailPoint::named("retention.horizon-raised");

/// All fail points.
pub const ALL: [FailPoint; 20] = [
    GROUP_TAKEN,
    GROUP_LOCKED,
    GROUP_DECIDED,
    VOTES_WRITTEN,
    HEAD_LOCKED,
    REVISIONS_WRITTEN,
    GROUP_COMMITTED,
    GROUP_TOLD,
    ACT_COMMITTED,
    IMPORT_LOCKED,
    IMPORT_PART_WRITTEN,
    IMPORT_COMMITTED,
    IMPORT_PART_COMMITTED,
    LOG_READ,
    LOG_PUBLISHED,
    REEVALUATION_BEGUN,
    REEVALUATION_COMMITTED,
    NODES_TAKEN,
    NODES_WRITTEN,
    HORIZON_RAISED,
];

/// The fail points reached only after a policy change.
pub const AFTER_A_CHANGE_OF_POLICY: [FailPoint; 2] = [REEVALUATION_BEGUN, REEVALUATION_COMMITTED];
