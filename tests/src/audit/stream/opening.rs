//! How a stream begins: with a resumption if the cursor is good, with a snapshot and the true reason if it is not,
//! never with silence.

use emend_proto::{
    learning::v1::{Cursor, Resumed, SnapshotReason},
    wire::Message,
};

use super::{
    guarantee::{About, Guarantee, Place},
    recording::{Connection, FilterForm, Moment, covers},
    validate::Audit,
};

impl Audit<'_> {
    /// Checks the first message of a stream.
    pub(super) fn begins(&mut self, place: Place, connection: &Connection, first: &Message) {
        // A resumption sets this again: until its first update, deletions count as made while it was away.
        self.holding.away = false;
        let says = match first {
            Message::Resumed(_) => connection.request.cursor.is_some(),
            // A server that shuts down drains streams that are still waiting for a snapshot.
            Message::SnapshotBegin(_) | Message::Drain(_) => true,
            _ => false,
        };
        self.report.check(Guarantee::Explicit, says, || {
            let what = match (first, &connection.request.cursor) {
                (Message::Resumed(_), _) => "a resumption of nothing: no cursor was sent",
                (_, Some(_)) => "a stream begins without saying whether the cursor was good",
                (_, None) => "a stream begins without saying that there is nothing, or what there is",
            };
            (About::at(place), what.into())
        });
        if let (false, Some(cursor)) = (says, &connection.request.cursor) {
            // Already reported; what follows is judged as if the stream had been resumed.
            self.goes_on_from(connection, cursor);
        }
    }

    /// Checks a claim that the cursor is good.
    pub(super) fn resumed(&mut self, place: Place, connection: &Connection, resumed: &Resumed, first: bool) {
        self.report.summary.resumed += 1;
        let about = || About::at(place);
        self.report.check(Guarantee::Resumable, first, || {
            (about(), "a resumption in the middle of a stream".into())
        });
        let Some(sent) = &connection.request.cursor else {
            return;
        };
        self.report.check(
            Guarantee::Resumable,
            resumed.cursor.as_ref() == Some(sent),
            || {
                let what = format!("{:?} was resumed from, {sent:?} was sent", resumed.cursor);
                (about().revision(sent.revision), what)
            },
        );
        let life = self.log.life(&sent.epoch);
        let hash = self.hashes.get(&FilterForm::from(&connection.request));
        let bad = match life {
            None => Some("of a foreign epoch"),
            Some(_) if hash.is_some_and(|hash| *hash != sent.filter_hash) => Some("of another filter"),
            Some(life) if sent.revision > life.head && !life.tail_lost => Some("ahead of the head"),
            Some(_) => None,
        };
        self.report.check(Guarantee::Resumable, bad.is_none(), || {
            let what = format!("resumed from {sent:?}, which is {}", bad.unwrap_or_default());
            (about().revision(sent.revision), what)
        });
        if first {
            self.goes_on_from(connection, sent);
        }
    }

    /// From here on the subscriber is at this cursor. If it was elsewhere, it now holds what existed there.
    fn goes_on_from(&mut self, connection: &Connection, cursor: &Cursor) {
        if self.holding.position.as_ref() != Some(cursor) {
            if let Some(life) = self.life(cursor) {
                self.holding
                    .replace(life.at(cursor.revision, |key| covers(&connection.request, key)));
            }
            self.holding
                .received
                .retain(|(_, revision)| *revision <= cursor.revision);
            self.holding.bookmark = self
                .holding
                .bookmark
                .filter(|bookmark| *bookmark <= cursor.revision);
            self.holding.position = Some(cursor.clone());
        }
        self.holding.away = true;
    }

    /// Checks whether a complete snapshot that ended with this cursor came for the reason it gave.
    pub(super) fn snapshot_reason(
        &mut self,
        place: Place,
        connection: &Connection,
        reason: SnapshotReason,
        first: bool,
        end: &Cursor,
    ) {
        self.report.saw_snapshot(reason);
        let sent = connection.request.cursor.as_ref();
        // The cursor that the stream was opened with; later in a stream, the position takes its place.
        let from = if first {
            sent
        } else {
            self.holding.position.as_ref()
        };
        let horizon = self.log.life(&end.epoch).map_or(i64::MAX, |life| life.horizon);
        let is_true = match (reason, from) {
            (SnapshotReason::NoCursor, from) => first && from.is_none(),
            (_, None) | (SnapshotReason::Unspecified, _) => false,
            (SnapshotReason::ForeignEpoch, Some(from)) => first && from.epoch != end.epoch,
            (SnapshotReason::FilterChanged, Some(from)) => first && from.filter_hash != end.filter_hash,
            (SnapshotReason::CursorAhead, Some(from)) => {
                let seen = self.seen_until(connection.opened, &end.epoch);
                first && same_log(from, end) && from.revision > seen
            }
            (SnapshotReason::CursorExpired, Some(from)) => same_log(from, end) && from.revision < horizon,
            (SnapshotReason::NewEpoch, Some(from)) => !first && from.epoch != end.epoch,
        };
        self.report.check(Guarantee::Resumable, is_true, || {
            let what = format!(
                "a snapshot for the reason {}, after {from:?}, ending at {end:?}",
                reason.as_str_name()
            );
            (About::at(place).revision(end.revision), what)
        });
    }

    /// The newest revision of an epoch that the subscriber knew before a moment.
    fn seen_until(&self, moment: Moment, epoch: &str) -> i64 {
        let before = self.reached.iter().filter(|(at, _)| *at < moment);
        before
            .filter(|(_, cursor)| cursor.epoch == epoch)
            .map(|(_, cursor)| cursor.revision)
            .max()
            .unwrap_or(0)
    }

    /// Checks that a cursor that is handed out matches the subscriber's position.
    pub(super) fn cursor(
        &mut self,
        place: Place,
        connection: &Connection,
        cursor: Option<&Cursor>,
        revision: Option<i64>,
    ) {
        let about = || About::at(place).revision(revision.unwrap_or_default());
        let given = self.report.check(Guarantee::Resumable, cursor.is_some(), || {
            (about(), "there is no cursor to resume from".into())
        });
        let (true, Some(cursor)) = (given, cursor) else {
            return;
        };
        if let Some(revision) = revision {
            self.report
                .check(Guarantee::Resumable, cursor.revision == revision, || {
                    (about(), format!("the cursor is of revision {}", cursor.revision))
                });
        }
        let life = self.log.life(&cursor.epoch);
        self.report.check(Guarantee::Resumable, life.is_some(), || {
            (
                about(),
                format!("the cursor is of an unknown epoch, {}", cursor.epoch),
            )
        });
        let ahead = life.is_some_and(|life| !life.tail_lost && cursor.revision > life.head);
        self.report.check(Guarantee::Resumable, !ahead, || {
            let what = format!(
                "the cursor, of {}, is ahead of all that was ever committed",
                cursor.revision
            );
            (about(), what)
        });
        let form = FilterForm::from(&connection.request);
        let hash = self.hashes.get(&form).copied();
        let others = self
            .hashes
            .iter()
            .any(|(other, hash)| *other != form && *hash == cursor.filter_hash);
        self.report.check(
            Guarantee::Resumable,
            hash == Some(cursor.filter_hash) && !others,
            || {
                let what = format!("the cursor is of another filter, {:x}", cursor.filter_hash);
                (about(), what)
            },
        );
    }
}

fn same_log(one: &Cursor, other: &Cursor) -> bool {
    (&one.epoch, one.filter_hash) == (&other.epoch, other.filter_hash)
}
