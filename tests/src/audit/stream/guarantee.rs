//! What the stream guarantees, and what an audit says of it.

use std::{collections::BTreeMap, fmt};

use emend_proto::learning::v1::SnapshotReason;

use crate::harness::Key;

/// How many characters of a key are shown.
const LONGEST: usize = 100;

/// A guarantee of the update stream, between snapshots. `docs/stream.md` says each in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Guarantee {
    /// 1: revisions never go back.
    Ordered,
    /// 2: no change twice.
    Unique,
    /// 3: nothing that matches is missed; the newest version of a resource never.
    Reliable,
    /// 4: what one revision changed becomes visible together.
    Atomic,
    /// 5: every cursor handed out can be resumed from; what can't be gets a snapshot and the reason.
    Resumable,
    /// 6: after a bookmark at R nothing at or below R.
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

/// Where in a recording: which connection, and which of its messages, both from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Which connection.
    pub connection: usize,
    /// Which of its messages; one past the last for what did not come.
    pub message: usize,
}

/// A guarantee that was broken, and what shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which guarantee.
    pub guarantee: Guarantee,
    /// In words.
    pub what: String,
    /// Where in the recording it shows; absent for what concerns the whole of it.
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

/// What a recording held that breaks nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many streams were asked for, refused ones included.
    pub connections: usize,
    /// How many messages came.
    pub messages: usize,
    /// How many of the streams went on from a cursor.
    pub resumed: usize,
    /// How many snapshots came whole, by reason.
    pub snapshots: BTreeMap<&'static str, usize>,
    /// How many updates came whole.
    pub updates: usize,
    /// How many changes were in them.
    pub changes: usize,
    /// How many changes that matched did not come by themselves, because a newer one of their key did.
    pub conflated: usize,
    /// How many bookmarks came.
    pub bookmarks: usize,
    /// How many streams the server ended in good order.
    pub drains: usize,
    checks: [u64; 11],
}

impl Summary {
    /// How often something was held against a guarantee. 0: this recording says nothing of it.
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

/// Gathers what an audit finds.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) summary: Summary,
    violations: Vec<Violation>,
}

/// What a violation concerns beside the words.
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
    /// Counts a check, and notes a violation where it does not hold. Answers with whether it holds.
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
