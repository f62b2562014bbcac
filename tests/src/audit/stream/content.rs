//! What bookmarks and snapshots show, compared with the log.

use std::collections::BTreeMap;

use emend_proto::{
    learning::v1::{Bookmark, SnapshotBegin, SnapshotEnd},
    wire::Resource,
};

use super::{
    guarantee::{About, Guarantee, Place},
    log::Life,
    recording::{Connection, covers},
    validate::Audit,
};
use crate::harness::{Held, Key, held::sums_of};

impl Audit<'_> {
    /// Checks that no matching change lies between the subscriber and a bookmark.
    pub(super) fn bookmark(&mut self, place: Place, connection: &Connection, bookmark: &Bookmark) {
        let before = self.report.violations();
        self.report.summary.bookmarks += 1;
        self.cursor(place, connection, bookmark.cursor.as_ref(), None);
        let Some(cursor) = &bookmark.cursor else { return };
        let (at, to) = (self.holding.revision(), cursor.revision);
        self.report.check(Guarantee::Ordered, to >= at, || {
            let what = format!("a bookmark goes back to {to}, the subscriber is at {at}");
            (About::at(place).revision(to), what)
        });
        let same_epoch = self
            .holding
            .position
            .as_ref()
            .is_some_and(|position| position.epoch == cursor.epoch);
        self.report.check(Guarantee::Resumable, same_epoch, || {
            let what = format!(
                "a bookmark of the epoch {} without a snapshot of it",
                cursor.epoch
            );
            (About::at(place).revision(to), what)
        });
        let life = self.life(cursor);
        if let Some(life) = life {
            for key in life.changed(at, to) {
                if !covers(&connection.request, key) {
                    continue;
                }
                let Some(newest) = life.newest(key, to) else {
                    continue;
                };
                let guarantee = if self.holding.away && newest.value.is_none() {
                    Guarantee::Deletions
                } else {
                    Guarantee::Reliable
                };
                self.report.check(guarantee, false, || {
                    let what = format!("changed between {at} and the bookmark at {to}, and did not come");
                    (About::at(place).revision(newest.revision).key(key), what)
                });
            }
        }
        // Recomputed from everything held, not summed up along the way.
        self.holding.sums = sums_of(&self.holding.held);
        self.digests(place, connection, &bookmark.digests, None, to);
        self.holding.bookmark = Some(to.max(self.holding.bookmark.unwrap_or(0)));
        self.holding.position = Some(cursor.clone());
        self.holding.away = false;
        self.go_on_from_the_log(before, connection, life, to);
    }

    /// Checks a complete snapshot.
    pub(super) fn snapshot(
        &mut self,
        place: Place,
        connection: &Connection,
        (begin, resources, end): (&SnapshotBegin, &[Resource], &SnapshotEnd),
        first: bool,
    ) {
        let before = self.report.violations();
        let revision = begin.revision;
        if let Some(cursor) = &end.cursor {
            self.snapshot_reason(place, connection, begin.reason(), first, cursor);
        }
        self.cursor(place, connection, end.cursor.as_ref(), Some(revision));
        let count = i64::try_from(resources.len()).unwrap_or(i64::MAX);
        let guarantee = if count == 0 || begin.resource_count == 0 {
            Guarantee::Explicit
        } else {
            Guarantee::Reliable
        };
        self.report.check(guarantee, count == begin.resource_count, || {
            let what = format!("{} resources were announced, {count} came", begin.resource_count);
            (About::at(place).revision(revision), what)
        });
        let mut held = BTreeMap::new();
        let mut last: Option<Key> = None;
        for resource in resources {
            let Some((key, value)) = self.envelope(place, resource) else {
                continue;
            };
            let about = || About::at(place).revision(resource.revision).key(&key);
            self.report
                .check(Guarantee::Private, covers(&connection.request, &key), || {
                    (about(), "is outside of the filter".into())
                });
            self.report
                .check(Guarantee::Unique, !held.contains_key(&key), || {
                    (about(), "a key comes twice in a snapshot".into())
                });
            self.report
                .check(Guarantee::Ordered, last.is_none_or(|last| last <= key), || {
                    (about(), "a snapshot is not in key order".into())
                });
            last = Some(key.clone());
            held.insert(key, value);
        }
        let cursor = end.cursor.as_ref();
        let life = cursor.and_then(|cursor| self.life(cursor));
        if let Some(life) = life {
            self.shows(place, connection, life, revision, &held);
        }
        self.holding.received = held
            .iter()
            .map(|(key, held)| (key.clone(), held.revision))
            .collect();
        self.holding.replace(held);
        self.digests(place, connection, &end.digests, None, revision);
        self.holding.bookmark = None;
        self.holding.away = false;
        self.holding.position.clone_from(&end.cursor);
        self.go_on_from_the_log(before, connection, life, revision);
    }

    /// Checks that a snapshot shows exactly what existed at its revision.
    fn shows(
        &mut self,
        place: Place,
        connection: &Connection,
        life: &Life,
        revision: i64,
        held: &BTreeMap<Key, Held>,
    ) {
        let truth = life.at(revision, |key| covers(&connection.request, key));
        for (key, there) in &truth {
            let about = || About::at(place).revision(there.revision).key(key);
            let shown = held.get(key);
            let is_beyond = shown.is_some_and(|shown| shown.revision > revision);
            self.report.check(Guarantee::Atomic, !is_beyond, || {
                (
                    about(),
                    format!("is shown as it was after the snapshot's {revision}"),
                )
            });
            self.report
                .check(Guarantee::Reliable, is_beyond || shown == Some(there), || {
                    (
                        about(),
                        format!("is not in the snapshot of {revision} as it was then"),
                    )
                });
        }
        for (key, shown) in held {
            if truth.contains_key(key) || !covers(&connection.request, key) {
                continue;
            }
            let was_deleted = life
                .newest(key, revision)
                .is_some_and(|state| state.value.is_none());
            let guarantee = if was_deleted {
                Guarantee::Deletions
            } else {
                Guarantee::Reliable
            };
            self.report.check(guarantee, false, || {
                let what = format!("is in the snapshot of {revision}, and was not there then");
                (About::at(place).revision(shown.revision).key(key), what)
            });
        }
    }
}
