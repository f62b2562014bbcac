//! What the stream guarantees, and what an audit says about it.

use std::{collections::BTreeMap, fmt};

use emend_proto::learning::v1::SnapshotReason;

use crate::harness::Key;

/// The most characters of a key that are shown.
const LONGEST: usize = 100;

/// A guarantee of the update stream, between snapshots. `docs/stream.md` states each in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Guarantee {
    /// 1: revisions never go back.
    Ordered,
    /// 2: no change comes twice.
    Unique,
    /// 3: no matching change is missed; intermediate versions may be skipped, the newest never is.
    Reliable,
    /// 4: the changes of one revision become visible together.
    Atomic,
    /// 5: every cursor handed out can be resumed from; one that can't gets a snapshot and the reason.
    Resumable,
    /// 6: after a bookmark at R, nothing at or below R follows.
    Bookmarkable,
    /// 7: what was deleted while away is deleted on return.
    Deletions,
    /// 8: the filter never leaks.
    Private,
    /// 9: a slow subscriber costs the others nothing and the server bounded memory.
    Isolated,
    /// 10: publishing never waits for a subscriber.
    NonBlocking,
    /// 11: "nothing there" and "you are current" differ.
    Explicit,
}

impl Guarantee {
    /// In the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Ordered,
        Self::Unique,
        Self::Reliable,
        Self::Atomic,
        Self::Resumable,
        Self::Bookmarkable,
        Self::Deletions,
        Self::Private,
        Self::Isolated,
        Self::NonBlocking,
        Self::Explicit,
    ];

    /// 1 to 11, as the documentation numbers them.
    pub fn number(self) -> usize {
        self as usize + 1
    }
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {self:?}", self.number())
    }
}

/// A place in a recording: a connection and one of its messages, both counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The connection's index.
    pub connection: usize,
    /// The message's index; one past the last for a message that is missing.
    pub message: usize,
}

/// A guarantee that was broken, and the evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which guarantee.
    pub guarantee: Guarantee,
    /// What broke it, in words.
    pub what: String,
    /// Where in the recording; `None` if it concerns the whole of it.
    pub place: Option<Place>,
    /// The revision concerned.
    pub revision: Option<i64>,
    /// The key concerned.
    pub key: Option<Key>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "guarantee {}: {}", self.guarantee, self.what)?;
        if let Some(revision) = self.revision {
            write!(f, "; revision {revision}")?;
        }
        if let Some(key) = &self.key {
            let shown = format!("{key:?}");
            let short: String = shown.chars().take(LONGEST).collect();
            let more = if short.len() < shown.len() { "…" } else { "" };
            write!(f, "; key {short}{more}")?;
        }
        if let Some(Place { connection, message }) = self.place {
            write!(f, "; connection {connection}, message {message}")?;
        }
        Ok(())
    }
}

/// What a recording contained, violations aside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of streams asked for, refused ones included.
    pub connections: usize,
    /// The number of messages received.
    pub messages: usize,
    /// The number of streams that resumed from a cursor.
    pub resumed: usize,
    /// The number of complete snapshots, by reason.
    pub snapshots: BTreeMap<&'static str, usize>,
    /// The number of complete updates.
    pub updates: usize,
    /// The number of changes in them.
    pub changes: usize,
    /// The number of matching changes that were skipped because a newer change of their key came.
    pub conflated: usize,
    /// The number of bookmarks received.
    pub bookmarks: usize,
    /// The number of streams that the server ended gracefully.
    pub drains: usize,
    checks: [u64; 11],
}

impl Summary {
    /// The number of checks made of a guarantee. 0: this recording says nothing about it.
    pub fn checked(&self, guarantee: Guarantee) -> u64 {
        self.checks[guarantee as usize]
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            connections,
            messages,
            resumed,
            snapshots,
            updates,
            changes,
            conflated,
            bookmarks,
            drains,
            checks,
        } = self;
        write!(
            f,
            "{connections} connections ({resumed} resumed), {messages} messages: snapshots {snapshots:?}, {updates} \
             updates with {changes} changes ({conflated} conflated), {bookmarks} bookmarks, {drains} drains; checks by \
             guarantee {checks:?}"
        )
    }
}

/// Collects what an audit finds.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) summary: Summary,
    violations: Vec<Violation>,
}

/// What a violation concerns, besides the words.
#[derive(Debug, Clone, Default)]
pub(super) struct About {
    pub(super) place: Option<Place>,
    pub(super) revision: Option<i64>,
    pub(super) key: Option<Key>,
}

impl About {
    pub(super) fn at(place: Place) -> Self {
        Self {
            place: Some(place),
            ..Self::default()
        }
    }

    pub(super) fn revision(self, revision: i64) -> Self {
        Self {
            revision: Some(revision),
            ..self
        }
    }

    pub(super) fn key(self, key: &Key) -> Self {
        Self {
            key: Some(key.clone()),
            ..self
        }
    }
}

impl Report {
    /// Counts a check, and records a violation if it does not hold. Answers with whether it holds.
    pub(super) fn check(
        &mut self,
        guarantee: Guarantee,
        holds: bool,
        about: impl FnOnce() -> (About, String),
    ) -> bool {
        self.summary.checks[guarantee as usize] += 1;
        if !holds {
            let (About { place, revision, key }, what) = about();
            self.violations.push(Violation {
                guarantee,
                what,
                place,
                revision,
                key,
            });
        }
        holds
    }

    pub(super) fn saw_snapshot(&mut self, reason: SnapshotReason) {
        *self.summary.snapshots.entry(reason.as_str_name()).or_default() += 1;
    }

    pub(super) fn violations(&self) -> usize {
        self.violations.len()
    }

    pub(super) fn finish(self) -> Result<Summary, Vec<Violation>> {
        if self.violations.is_empty() {
            Ok(self.summary)
        } else {
            Err(self.violations)
        }
    }
}
