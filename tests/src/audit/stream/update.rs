//! What updates show, compared with the log.

use std::collections::{BTreeMap, BTreeSet};

use emend_proto::wire::{Change, ChangeKind, Update};

use super::{
    guarantee::{About, Guarantee, Place},
    log::Life,
    recording::{Connection, covers},
    validate::Audit,
};
use crate::harness::{
    Held, Key,
    held::{Group, group},
};

/// The key and revision of a change; `None` if it has no content.
pub(super) fn key_of(change: &Change) -> Option<(Key, i64)> {
    let key = match change.change.as_ref()? {
        ChangeKind::Put(resource) => Key::from(resource.key.as_ref()?),
        ChangeKind::Deleted(key) => Key::from(key),
    };
    Some((key, change.revision))
}

/// A change as received.
struct ReceivedChange {
    revision: i64,
    key: Key,
    /// `None` for a deletion.
    put: Option<Held>,
}

impl<'a> Audit<'a> {
    /// Checks a complete update.
    pub(super) fn update(&mut self, place: Place, connection: &Connection, update: &Update) {
        let before = self.report.violations();
        let (from, to) = (update.from_revision, update.to_revision);
        self.report.summary.updates += 1;
        self.report.summary.changes += update.changes.len();
        let received = self.read_changes(place, update);
        self.range(place, update, &received);
        self.order(place, &received);
        for change in &received {
            self.change(place, connection, update, change);
        }
        let position = self.holding.position.clone();
        self.cursor(place, connection, update.cursor.as_ref(), Some(to));
        // If an update leaves something out, that is reported once, as its range; the update itself is judged by what
        // lies in the range.
        let life = update
            .cursor
            .as_ref()
            .or(position.as_ref())
            .and_then(|cursor| self.log.life(&cursor.epoch))
            .filter(|life| to <= life.head);
        if let Some(life) = life {
            let matches = |key: &Key| covers(&connection.request, key);
            self.whole(place, life, (from, to), &received, matches);
            let all = life.count(from, to, matches);
            self.report.summary.conflated += all.saturating_sub(received.len());
        }
        let groups: BTreeSet<Group> = received.iter().map(|change| group(&change.key)).collect();
        for ReceivedChange { revision, key, put } in received {
            self.holding.received.insert((key.clone(), revision));
            self.holding.set(key, put);
        }
        self.digests(place, connection, &update.digests, Some(&groups), to);
        if let Some(cursor) = &update.cursor {
            self.holding.position = Some(cursor.clone());
        }
        self.holding.away = false;
        self.go_on_from_the_log(before, connection, life, to);
    }

    /// Checks that an update continues from the subscriber's position.
    fn range(&mut self, place: Place, update: &Update, received: &[ReceivedChange]) {
        let (from, to) = (update.from_revision, update.to_revision);
        let about = || About::at(place).revision(from);
        let at = self.holding.revision();
        self.report.check(Guarantee::Ordered, to > from, || {
            (about(), format!("an update leads from {from} to {to}"))
        });
        self.report.check(Guarantee::Reliable, from <= at, || {
            let what = format!("an update leaves out what is between {at} and {from}");
            (about(), what)
        });
        let bookmark = self.holding.bookmark.unwrap_or(0);
        self.report.check(Guarantee::Bookmarkable, from >= bookmark, || {
            let what = format!("an update from {from} after a bookmark at {bookmark}");
            (about(), what)
        });
        // Changes that came before are reported one by one.
        let again = !received.is_empty()
            && received.iter().all(|change| {
                let known = (change.key.clone(), change.revision);
                self.holding.received.contains(&known)
            });
        let goes_on = from >= at || from < bookmark || again;
        self.report.check(Guarantee::Ordered, goes_on, || {
            let what = format!("an update goes back to {from}, the subscriber is at {at}");
            (about(), what)
        });
    }

    fn order(&mut self, place: Place, received: &[ReceivedChange]) {
        for pair in received.windows(2) {
            let [one, next] = pair else { continue };
            let in_order = (one.revision, &one.key) <= (next.revision, &next.key);
            self.report.check(Guarantee::Ordered, in_order, || {
                let what = format!("a change comes after {:?} of revision {}", one.key, one.revision);
                (About::at(place).revision(next.revision).key(&next.key), what)
            });
        }
        let mut keys = BTreeSet::new();
        for change in received {
            let is_new = keys.insert(&change.key);
            self.report.check(Guarantee::Unique, is_new, || {
                let what = "a key comes twice in one update";
                (
                    About::at(place).revision(change.revision).key(&change.key),
                    what.into(),
                )
            });
        }
    }

    /// Checks one change: within the filter and the range, new, and as the log says.
    fn change(&mut self, place: Place, connection: &Connection, update: &Update, change: &ReceivedChange) {
        let ReceivedChange { revision, key, put } = change;
        let (from, to) = (update.from_revision, update.to_revision);
        let about = || About::at(place).revision(*revision).key(key);
        let is_covered = covers(&connection.request, key);
        self.report.check(Guarantee::Private, is_covered, || {
            (about(), "is outside of the filter".into())
        });
        let is_new = !self.holding.received.contains(&(key.clone(), *revision));
        self.report.check(Guarantee::Unique, is_new, || {
            (about(), "a change comes again".into())
        });
        let bookmark = self.holding.bookmark.unwrap_or(0);
        self.report
            .check(Guarantee::Bookmarkable, *revision > bookmark, || {
                (about(), format!("a change follows the bookmark at {bookmark}"))
            });
        self.report
            .check(Guarantee::Ordered, *revision > from || !is_new, || {
                (
                    about(),
                    format!("a change lies before its update, which begins at {from}"),
                )
            });
        self.report.check(Guarantee::Atomic, *revision <= to, || {
            (
                about(),
                format!("a change lies beyond its update, which ends at {to}"),
            )
        });
        let Some(life) = self.life_of(update) else { return };
        let Some(state) = life.version(key, *revision) else {
            self.report.check(Guarantee::Reliable, false, || {
                (about(), "the log has no such change".into())
            });
            return;
        };
        let lives = state.value.is_none() && put.is_some();
        self.report.check(Guarantee::Deletions, !lives, || {
            (about(), "was deleted, and comes with a value".into())
        });
        let is_same = state.value == put.as_ref().map(|held| &held.value[..]);
        self.report.check(Guarantee::Reliable, is_same || lives, || {
            (about(), "has another value in the log".into())
        });
    }

    fn life_of(&self, update: &Update) -> Option<&'a Life> {
        let cursor = update.cursor.as_ref().or(self.holding.position.as_ref())?;
        let life = self.log.life(&cursor.epoch)?;
        (update.to_revision <= life.head).then_some(life)
    }

    /// Checks that an update has the newest state, at its end, of every key that changed in its range.
    fn whole(
        &mut self,
        place: Place,
        life: &Life,
        (from, to): (i64, i64),
        received: &[ReceivedChange],
        matches: impl Fn(&Key) -> bool,
    ) {
        let by_key: BTreeMap<&Key, i64> = received
            .iter()
            .map(|change| (&change.key, change.revision))
            .collect();
        let epoch = life.epoch.clone();
        for key in life.changed(from, to).into_iter().filter(|key| matches(key)) {
            let Some(newest) = life.newest(key, to) else {
                continue;
            };
            let has_come = by_key.get(key) == Some(&newest.revision);
            let about = || About::at(place).revision(newest.revision).key(key);
            let was_deleted_while_away = self.holding.away && newest.value.is_none();
            if was_deleted_while_away {
                self.report.check(Guarantee::Deletions, has_come, || {
                    (
                        about(),
                        "was deleted while the subscriber was away, and is not told".into(),
                    )
                });
                continue;
            }
            let known = (epoch.clone(), key.clone(), newest.revision);
            let comes_later = self.last_came.get(&known).is_some_and(|later| *later > place);
            let is_torn = comes_later
                || received
                    .iter()
                    .any(|change| change.revision == newest.revision && change.key != *key);
            self.report.check(Guarantee::Atomic, has_come || !is_torn, || {
                let what =
                    format!("is not shown by the update to {to}, while others of its revision or range are");
                (about(), what)
            });
            self.report
                .check(Guarantee::Reliable, has_come || comes_later, || {
                    let what = format!("its newest state at {to} never comes");
                    (about(), what)
                });
        }
    }

    fn read_changes(&mut self, place: Place, update: &Update) -> Vec<ReceivedChange> {
        let mut received = Vec::with_capacity(update.changes.len());
        for change in &update.changes {
            let revision = change.revision;
            match &change.change {
                Some(ChangeKind::Put(resource)) => {
                    self.report
                        .check(Guarantee::Reliable, resource.revision == revision, || {
                            let what = format!("a change whose resource is of {}", resource.revision);
                            (About::at(place).revision(revision), what)
                        });
                    if let Some((key, held)) = self.envelope(place, resource) {
                        let put = Some(held);
                        received.push(ReceivedChange { revision, key, put });
                    }
                }
                Some(ChangeKind::Deleted(key)) => received.push(ReceivedChange {
                    revision,
                    key: Key::from(key),
                    put: None,
                }),
                None => {
                    self.report.check(Guarantee::Reliable, false, || {
                        let about = About::at(place).revision(revision);
                        (about, "a change that says nothing".into())
                    });
                }
            }
        }
        received
    }
}
