//! Walks through a recording, message by message, and checks each against the log.

use std::collections::{BTreeMap, HashMap};

use emend_proto::{
    learning::v1::{Cursor, Drain, SnapshotBegin},
    wire::{Message, Resource, Update},
};

use super::{
    guarantee::{About, Guarantee, Place, Report, Summary, Violation},
    holding::Holding,
    isolation,
    log::{Life, RevisionLog},
    recording::{Connection, Ending, FilterForm, Moment, Recording, covers, handed_out},
    update::key_of,
};
use crate::harness::Key;

/// Checks a recording against the log.
///
/// # Errors
/// Every breach that it shows. After one, the audit continues from what the log says, so that each breach is reported
/// once.
pub fn validate(recording: &Recording, log: &RevisionLog) -> Result<Summary, Vec<Violation>> {
    let mut audit = Audit::new(recording, log);
    for (index, connection) in recording.connections.iter().enumerate() {
        audit.connection(index, connection);
    }
    audit.ends(recording);
    isolation::check(recording, &audit.reached, &mut audit.report);
    audit.report.finish()
}

/// An audit in progress: what the subscriber holds at this point of its recording.
pub(super) struct Audit<'a> {
    pub(super) report: Report,
    pub(super) log: &'a RevisionLog,
    /// The hash of each filter, as first handed out.
    pub(super) hashes: BTreeMap<FilterForm, u64>,
    /// The last place of each change among all updates of the recording.
    pub(super) last_came: HashMap<(String, Key, i64), Place>,
    /// The subscriber's positions, each with the moment from which it was there.
    pub(super) reached: Vec<(Moment, Cursor)>,
    pub(super) holding: Holding,
}

/// What a stream is in the middle of.
enum Doing {
    /// Nothing: each message is complete.
    Following,
    /// A snapshot, and whether it is the first message of the stream.
    Snapshot(SnapshotBegin, Vec<Resource>, bool),
    /// The parts of an update.
    Update(Update),
}

impl<'a> Audit<'a> {
    fn new(recording: &Recording, log: &'a RevisionLog) -> Self {
        let mut hashes = BTreeMap::new();
        let mut last_came = HashMap::new();
        for (index, connection) in recording.connections.iter().enumerate() {
            // Of the parts of an update, only the last one names its epoch.
            let mut parts = Vec::new();
            for (number, received) in connection.messages.iter().enumerate() {
                if let Some(cursor) = handed_out(&received.message)
                    && !matches!(received.message, Message::Resumed(_))
                {
                    hashes
                        .entry(FilterForm::from(&connection.request))
                        .or_insert(cursor.filter_hash);
                }
                let Message::Update(update) = &received.message else {
                    parts.clear();
                    continue;
                };
                parts.extend(update.changes.iter().filter_map(key_of));
                if let (true, Some(cursor)) = (update.last, &update.cursor) {
                    let place = Place {
                        connection: index,
                        message: number,
                    };
                    for (key, revision) in parts.drain(..) {
                        last_came.insert((cursor.epoch.clone(), key, revision), place);
                    }
                }
            }
        }
        Self {
            report: Report::default(),
            log,
            hashes,
            last_came,
            reached: Vec::new(),
            holding: Holding::default(),
        }
    }

    /// The epoch of a position, if what is held there can be judged.
    pub(super) fn life(&self, cursor: &Cursor) -> Option<&'a Life> {
        self.log
            .life(&cursor.epoch)
            .filter(|life| cursor.revision <= life.head)
    }

    fn connection(&mut self, index: usize, connection: &Connection) {
        self.report.summary.connections += 1;
        self.report.summary.messages += connection.messages.len();
        let mut doing = Doing::Following;
        let mut before: Option<&Message> = None;
        for (number, received) in connection.messages.iter().enumerate() {
            let place = Place {
                connection: index,
                message: number,
            };
            self.report.check(
                Guarantee::Resumable,
                !matches!(before, Some(Message::Drain(_))),
                || (About::at(place), "a stream that said farewell goes on".into()),
            );
            if number == 0 {
                self.begins(place, connection, &received.message);
            }
            doing = self.message(place, connection, doing, before, &received.message);
            if handed_out(&received.message).is_some()
                && let Some(position) = &self.holding.position
            {
                self.reached.push((received.at, position.clone()));
            }
            before = Some(&received.message);
        }
        if connection.messages.is_empty() {
            let place = Place {
                connection: index,
                message: 0,
            };
            self.report
                .check(Guarantee::Explicit, connection.ending != Ending::Ended, || {
                    (About::at(place), "a stream ended without a word".into())
                });
        }
    }

    fn message(
        &mut self,
        place: Place,
        connection: &Connection,
        doing: Doing,
        before: Option<&Message>,
        message: &Message,
    ) -> Doing {
        match (doing, message) {
            (Doing::Snapshot(begin, mut resources, first), Message::SnapshotChunk(chunk)) => {
                resources.extend(chunk.clone().into_resources());
                return Doing::Snapshot(begin, resources, first);
            }
            (Doing::Snapshot(begin, resources, first), Message::SnapshotEnd(end)) => {
                self.snapshot(place, connection, (&begin, &resources, end), first);
                return Doing::Following;
            }
            (Doing::Update(update), Message::Update(next))
                if (next.from_revision, next.to_revision) == (update.from_revision, update.to_revision) =>
            {
                return self.part(place, connection, Some(update), next);
            }
            // A server that shuts down breaks off transfers instead of keeping their subscribers waiting.
            (Doing::Snapshot(..) | Doing::Update(_), Message::Drain(_)) | (Doing::Following, _) => {}
            (Doing::Snapshot(..), _) => {
                self.interrupted(place, "a snapshot");
            }
            (Doing::Update(_), _) => {
                self.interrupted(place, "an update");
            }
        }
        match message {
            Message::Resumed(resumed) => {
                self.resumed(place, connection, resumed, before.is_none());
                Doing::Following
            }
            Message::SnapshotBegin(begin) => Doing::Snapshot(begin.clone(), Vec::new(), before.is_none()),
            Message::SnapshotChunk(_) | Message::SnapshotEnd(_) => {
                self.report.check(Guarantee::Atomic, false, || {
                    (
                        About::at(place),
                        "a part of a snapshot that is not under way".into(),
                    )
                });
                Doing::Following
            }
            Message::Update(update) => self.part(place, connection, None, update),
            Message::Bookmark(bookmark) => {
                self.bookmark(place, connection, bookmark);
                Doing::Following
            }
            Message::Drain(drain) => {
                self.drain(place, before, drain);
                Doing::Following
            }
        }
    }

    fn interrupted(&mut self, place: Place, what: &str) {
        self.report.check(Guarantee::Atomic, false, || {
            (About::at(place), format!("comes between the parts of {what}"))
        });
    }

    fn part(&mut self, place: Place, connection: &Connection, begun: Option<Update>, next: &Update) -> Doing {
        let mut update = next.clone();
        if let Some(begun) = begun {
            update.changes = begun.changes;
            update.changes.extend(next.changes.iter().cloned());
        }
        if next.last {
            self.update(place, connection, &update);
            return Doing::Following;
        }
        self.report.check(
            Guarantee::Atomic,
            next.cursor.is_none() && next.digests.is_empty(),
            || {
                let what = "a part that is not the last can be resumed from";
                (About::at(place).revision(next.to_revision), what.into())
            },
        );
        Doing::Update(update)
    }

    /// Checks that a stream ends with a bookmark before its Drain, unless a transfer was in progress or awaited.
    fn drain(&mut self, place: Place, before: Option<&Message>, drain: &Drain) {
        self.report.summary.drains += 1;
        let waits = match before {
            None
            | Some(
                Message::Bookmark(_)
                | Message::Resumed(_)
                | Message::SnapshotBegin(_)
                | Message::SnapshotChunk(_),
            ) => true,
            Some(Message::Update(update)) => !update.last,
            Some(Message::SnapshotEnd(_) | Message::Drain(_)) => false,
        };
        self.report.check(Guarantee::Resumable, waits, || {
            let what = "a farewell without a bookmark to resume from";
            (About::at(place), what.into())
        });
        self.report
            .check(Guarantee::Resumable, drain.reconnect_after.is_some(), || {
                let what = "a farewell that does not say when to come back";
                (About::at(place), what.into())
            });
    }

    /// Checks how the recording ends.
    fn ends(&mut self, recording: &Recording) {
        let Some((epoch, head)) = &recording.until else {
            return;
        };
        let position = self.holding.position.clone();
        let reached = position
            .as_ref()
            .is_some_and(|position| position.epoch == *epoch && position.revision >= *head);
        self.report.check(Guarantee::Reliable, reached, || {
            let about = About::default().revision(*head);
            (
                about,
                format!("the recording ends short of the head, at {position:?}"),
            )
        });
        let (Some(position), Some(last)) = (position, recording.connections.last()) else {
            return;
        };
        if let Some(life) = self.life(&position) {
            let truth = life.at(position.revision, |key| covers(&last.request, key));
            self.report
                .check(Guarantee::Reliable, truth == self.holding.held, || {
                    let about = About::default().revision(position.revision);
                    (
                        about,
                        format!(
                            "{} resources are held in the end, {} are in the log, or others",
                            self.holding.held.len(),
                            truth.len()
                        ),
                    )
                });
        }
    }
}
