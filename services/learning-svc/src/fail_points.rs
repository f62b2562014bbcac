//! Where tests end this service between two steps of applying events, of deciding, of following the log, and of its upkeep.

use emend_runtime::fail_point::FailPoint;

/// A group of events was taken from the queue; nothing of it is read.
pub(crate) const GROUP_TAKEN: FailPoint = FailPoint::named("ingest.taken");
/// A group's contests are locked and read.
pub(crate) const GROUP_LOCKED: FailPoint = FailPoint::named("ingest.locked");
/// A group is decided; nothing is written.
pub(crate) const GROUP_DECIDED: FailPoint = FailPoint::named("ingest.decided");
/// Ballots are written; the head is not locked.
pub(crate) const VOTES_WRITTEN: FailPoint = FailPoint::named("promotion.votes-written");
/// The head is locked and moved on; nothing that names a revision is written.
pub(crate) const HEAD_LOCKED: FailPoint = FailPoint::named("promotion.head-locked");
/// Revisions, changes and resources are written, in a transaction that is not committed.
pub(crate) const REVISIONS_WRITTEN: FailPoint = FailPoint::named("promotion.revisions-written");
/// A group is committed; nobody is told.
pub(crate) const GROUP_COMMITTED: FailPoint = FailPoint::named("ingest.committed");
/// The sender's results are on their way out of the queue.
pub(crate) const GROUP_TOLD: FailPoint = FailPoint::named("ingest.told");
/// What a person did is committed; the person is not told.
pub(crate) const ACT_COMMITTED: FailPoint = FailPoint::named("act.committed");
/// All rows of an import are locked; none is decided.
pub(crate) const IMPORT_LOCKED: FailPoint = FailPoint::named("import.locked");
/// One part of an import that is all or nothing is written, in a transaction that is not committed.
pub(crate) const IMPORT_PART_WRITTEN: FailPoint = FailPoint::named("import.part-written");
/// An import that is all or nothing is committed; nobody is told.
pub(crate) const IMPORT_COMMITTED: FailPoint = FailPoint::named("import.committed");
/// One part of an import that skips bad rows is committed; there may be more.
pub(crate) const IMPORT_PART_COMMITTED: FailPoint = FailPoint::named("import.part-committed");
/// Revisions were read from the log; they are not published.
pub(crate) const LOG_READ: FailPoint = FailPoint::named("log.read");
/// A new state is published; subscribers are being woken.
pub(crate) const LOG_PUBLISHED: FailPoint = FailPoint::named("log.published");
/// Contests to be evaluated anew are known; none is locked. Passed only after a policy has changed.
pub const REEVALUATION_BEGUN: FailPoint = FailPoint::named("reevaluation.begun");
/// A batch is evaluated anew and committed; nobody is told. Passed only after a policy has changed.
pub const REEVALUATION_COMMITTED: FailPoint = FailPoint::named("reevaluation.committed");
/// What nodes do was taken from memory; nothing of it is written.
pub(crate) const NODES_TAKEN: FailPoint = FailPoint::named("nodes.taken");
/// What nodes do is written, in a transaction that is not committed.
pub(crate) const NODES_WRITTEN: FailPoint = FailPoint::named("nodes.written");
/// The horizon of deletions is raised, as far as need be; nodes long gone are not forgotten. Passed once soon after a start.
pub const HORIZON_RAISED: FailPoint = FailPoint::named("retention.horizon-raised");

/// All of them.
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

/// Those that are passed only after a policy has changed.
pub const AFTER_A_CHANGE_OF_POLICY: [FailPoint; 2] = [REEVALUATION_BEGUN, REEVALUATION_COMMITTED];
