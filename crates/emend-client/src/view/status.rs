//! How far a view has applied the server's log, since when, and how stale it may be.

use emend_core::{InstallationId, Revision};
use jiff::{SignedDuration, Timestamp};

/// Where the state that a view answers from came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// Nowhere: no state has arrived yet, and the view is empty.
    #[default]
    Nothing,
    /// From the copy on disk; the stream has not confirmed it yet.
    DiskCopy {
        /// When the copy was written, by this computer's clock.
        written_at: Timestamp,
    },
    /// From the stream, or confirmed by it.
    Stream,
}

/// How current the view is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ViewStatus {
    pub(crate) connected: bool,
    pub(crate) revision: Revision,
    pub(crate) installation: Option<InstallationId>,
    pub(crate) other_installation: Option<InstallationId>,
    pub(crate) epoch: Option<String>,
    pub(crate) origin: Origin,
    pub(crate) current_at: Option<Timestamp>,
    pub(crate) in_doubt: bool,
    /// Whether near answers are by models of all that is shown.
    pub(crate) near_is_current: bool,
}

/// How stale a view may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staleness {
    /// Whether the stream is open.
    pub connected: bool,
    /// The revision at or below which everything has been applied.
    pub revision: Revision,
    /// The installation whose resources the view answers from. `None` before the first state.
    pub installation: Option<InstallationId>,
    /// The installation that answers instead, and that the node was not told to accept: the view stays as it was and
    /// is not updated any more. `None` while the node's own answers.
    pub other_installation: Option<InstallationId>,
    /// The epoch of the log that the revision belongs to: a UUID. `None` before the first state.
    pub epoch: Option<String>,
    /// Where the state that the view answers from came from.
    pub origin: Origin,
    /// When the view was last known to be all there was, by this computer's clock. For a copy on disk, when the copy was. A
    /// server whose database is away says since when it knows of nothing newer, and this is then.
    pub current_at: Option<Timestamp>,
    /// How long ago that was; never negative. `None` if never.
    pub age: Option<SignedDuration>,
    /// The last digest comparison failed: something is missing or wrong, and a new snapshot is on its way.
    pub in_doubt: bool,
}

impl ViewStatus {
    pub(crate) fn staleness(&self, now: Timestamp) -> Staleness {
        Staleness {
            connected: self.connected,
            revision: self.revision,
            installation: self.installation,
            other_installation: self.other_installation,
            epoch: self.epoch.clone(),
            origin: self.origin,
            current_at: self.current_at,
            age: self
                .current_at
                .map(|at| now.duration_since(at).max(SignedDuration::ZERO)),
            in_doubt: self.in_doubt,
        }
    }
}
