//! Where a test can make an edge die while a sink writes.

use emend_base::fail_point::FailPoint;

/// The engine was asked whether it takes what is to be written.
pub(crate) const ACCEPTED: FailPoint = FailPoint::named("sink-accepted");
/// The index is about to be closed, which is noted on disk.
pub(crate) const NOTED: FailPoint = FailPoint::named("sink-noted");
/// The index is closed.
pub(crate) const CLOSED: FailPoint = FailPoint::named("sink-closed");
/// The set says that it is being written.
pub(crate) const BEGUN: FailPoint = FailPoint::named("sink-begun");
/// What is no longer learned is out of the set.
pub(crate) const REMOVED: FailPoint = FailPoint::named("sink-removed");
/// The set is written.
pub(crate) const WRITTEN: FailPoint = FailPoint::named("sink-written");
/// The engine has loaded it.
pub(crate) const LOADED: FailPoint = FailPoint::named("sink-loaded");
/// A probe query was answered by it.
pub(crate) const PROBED: FailPoint = FailPoint::named("sink-probed");
/// A receiver took a revision.
pub(crate) const DELIVERED: FailPoint = FailPoint::named("sink-delivered");
/// That it took it is kept on disk.
pub(crate) const KEPT: FailPoint = FailPoint::named("sink-kept");

/// All of them.
pub const ALL: [FailPoint; 10] = [
    ACCEPTED, NOTED, CLOSED, BEGUN, REMOVED, WRITTEN, LOADED, PROBED, DELIVERED, KEPT,
];
