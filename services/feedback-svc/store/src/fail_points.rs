//! Points at which tests abort the service: within its transactions.

use emend_base::fail_point::FailPoint;

/// A group is written, but its transaction is not committed. Only on SQLite: on PostgreSQL a group is one statement.
pub const GROUP_WRITTEN: FailPoint = FailPoint::named("submission.written");
/// A retraction is written, but its transaction is not committed.
pub const RETRACTION_WRITTEN: FailPoint = FailPoint::named("retraction.written");
/// The answers are written, but their transaction is not committed.
pub const BATCH_WRITTEN: FailPoint = FailPoint::named("outbox.written");
