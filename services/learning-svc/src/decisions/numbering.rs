//! Where revisions get their numbers: last, under the head's lock, which is held only while they are written.
//!
//! Until then they carry provisional numbers, which sort after all others; [`Numbers`] turn them into the final ones.

use emend_core::{Revision, decide::Cause};
use learning_store::log::{ChangeWrite, LockedHead, LogWrites, RevisionWrite};

use crate::decisions::open::Attribution;

/// Provisional numbers lie above this one, which no log ever reaches.
const PROVISIONAL: i64 = i64::MAX / 2;

/// Which revision a change goes into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevisionChoice {
    /// One of its own.
    Own,
    /// The one shared by all `Shared` changes since [`NewRevisions::end_shared`]; at most 1,000 of them.
    Shared,
}

/// The revisions that a unit of work adds, and what they change.
#[derive(Debug, Default)]
pub struct NewRevisions {
    revisions: Vec<RevisionWrite>,
    shared: Option<Revision>,
    changes: Vec<ChangeWrite>,
}

impl NewRevisions {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.revisions.len()
    }

    /// The provisional number of the revision for a change.
    pub fn choose(&mut self, choice: RevisionChoice, cause: Cause, attribution: &Attribution) -> Revision {
        if let (RevisionChoice::Shared, Some(shared)) = (choice, self.shared) {
            return shared;
        }
        let revision = Revision(PROVISIONAL + 1 + signed(self.revisions.len()));
        self.revisions.push(RevisionWrite {
            revision,
            operation: attribution.operation,
            cause,
            actor: attribution.actor.clone(),
            reason: attribution.reason.clone(),
        });
        if choice == RevisionChoice::Shared {
            self.shared = Some(revision);
        }
        revision
    }

    /// Adds a change at the end of its revision.
    pub fn add(&mut self, change: ChangeWrite) {
        let revision = change.revision;
        let earlier = self.changes.iter().rev();
        let ordinal = earlier.take_while(|other| other.revision == revision).count();
        self.changes.push(ChangeWrite {
            ordinal: i32::try_from(ordinal).unwrap_or(i32::MAX),
            ..change
        });
    }

    /// Lets the next `Shared` change begin another revision.
    pub fn end_shared(&mut self) {
        self.shared = None;
    }

    /// Everything, with its final numbers, for the log.
    pub fn take(&mut self, numbers: &Numbers) -> LogWrites {
        let mut writes = LogWrites {
            revisions: std::mem::take(&mut self.revisions),
            changes: std::mem::take(&mut self.changes),
            committed_at: numbers.committed_at,
        };
        for revision in &mut writes.revisions {
            revision.revision = numbers.of(revision.revision);
        }
        for change in &mut writes.changes {
            change.revision = numbers.of(change.revision);
        }
        writes
    }
}

/// The numbers that the revisions of a unit of work got.
#[derive(Debug, Clone, Copy, Default)]
pub struct Numbers {
    /// The revision before the first one.
    base: i64,
    count: i64,
    /// When they were committed, in microseconds since 1970 by the database's clock; 0 where there is none.
    pub committed_at: i64,
}

impl Numbers {
    /// The newest `count` numbers of a head that was advanced by as many.
    pub fn newest(count: usize, head: LockedHead) -> Self {
        let count = signed(count);
        Self {
            base: head.revision.0 - count,
            count,
            committed_at: head.now,
        }
    }

    /// The final number of a revision, whether its number was provisional or not.
    pub fn of(&self, revision: Revision) -> Revision {
        if revision.0 > PROVISIONAL {
            Revision(self.base + (revision.0 - PROVISIONAL))
        } else {
            revision
        }
    }

    /// The first revision; 0 where there is none.
    pub fn first(&self) -> Revision {
        Revision(if self.count > 0 { self.base + 1 } else { 0 })
    }

    /// The last revision; 0 where there is none.
    pub fn last(&self) -> Revision {
        Revision(if self.count > 0 { self.base + self.count } else { 0 })
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
