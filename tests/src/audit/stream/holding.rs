//! What the subscriber holds, according to the envelopes it received, and the digests of that.

use std::collections::{BTreeMap, BTreeSet};

use emend_core::digest::{Digest as Sum, Item, value_checksum};
use emend_proto::{
    learning::v1::{Cursor, Digest},
    wire::Resource,
};

use super::{
    guarantee::{About, Guarantee, Place},
    log::Life,
    recording::{Connection, covers, covers_group},
    validate::Audit,
};
use crate::harness::{
    Held, Key,
    held::{Group, group, sum, sums_of},
};

/// What the subscriber holds.
#[derive(Default)]
pub(super) struct Holding {
    /// How far it has applied; `None` before its first snapshot.
    pub(super) position: Option<Cursor>,
    pub(super) held: BTreeMap<Key, Held>,
    pub(super) sums: BTreeMap<Group, Sum>,
    /// Keys and revisions received since the last snapshot, that snapshot included.
    pub(super) received: BTreeSet<(Key, i64)>,
    /// The newest bookmark since the last snapshot.
    pub(super) bookmark: Option<i64>,
    /// It has just come back: deletions made while it was away are still to come.
    pub(super) away: bool,
}

impl Holding {
    /// Replaces everything held.
    pub(super) fn replace(&mut self, held: BTreeMap<Key, Held>) {
        self.sums = sums_of(&held);
        self.held = held;
    }

    /// The revision it has applied; 0 before its first snapshot.
    pub(super) fn revision(&self) -> i64 {
        self.position.as_ref().map_or(0, |position| position.revision)
    }

    /// Puts or deletes a key, and keeps the sums up to date.
    pub(super) fn set(&mut self, key: Key, put: Option<Held>) {
        let sum = self.sums.entry(group(&key)).or_default();
        if let Some(old) = self.held.remove(&key) {
            sum.remove(&item(&key, &old));
        }
        if let Some(held) = put {
            sum.add(&item(&key, &held));
            self.held.insert(key, held);
        }
    }
}

fn item<'a>(key: &'a Key, held: &'a Held) -> Item<'a> {
    Item {
        namespace: &key.namespace,
        kind: key.kind,
        key: &key.key,
        qualifier: &key.qualifier,
        user_id: &key.user_id,
        revision: held.revision,
        value_checksum: value_checksum(&held.value),
    }
}

impl Audit<'_> {
    /// Checks received digests against those of the envelopes received, of these groups or of all non-empty ones.
    pub(super) fn digests(
        &mut self,
        place: Place,
        connection: &Connection,
        digests: &[Digest],
        groups: Option<&BTreeSet<Group>>,
        revision: i64,
    ) {
        let about = || About::at(place).revision(revision);
        let mut stated: BTreeMap<Group, Sum> = BTreeMap::new();
        for digest in digests {
            let is_covered = covers_group(
                &connection.request,
                &digest.namespace,
                digest.kind,
                digest.user_scoped,
            );
            self.report.check(Guarantee::Private, is_covered, || {
                (
                    about(),
                    format!("a digest of {}, outside of the filter", digest.namespace),
                )
            });
            let is_new = digest.hash.len() == 16 && stated.insert(sum(digest).0, sum(digest).1).is_none();
            self.report.check(Guarantee::Reliable, is_new, || {
                (about(), format!("a digest that is none, or twice: {digest:?}"))
            });
        }
        let own: BTreeMap<Group, Sum> = match groups {
            None => self.holding.sums.clone(),
            Some(groups) => {
                let of = |group: &Group| self.holding.sums.get(group).copied().unwrap_or_default();
                groups.iter().map(|group| (group.clone(), of(group))).collect()
            }
        };
        let nothing = Sum::default();
        for group in own.keys().chain(stated.keys()).collect::<BTreeSet<_>>() {
            let (own, stated) = (own.get(group), stated.get(group));
            let is_equal = own.unwrap_or(&nothing) == stated.unwrap_or(&nothing);
            self.report.check(Guarantee::Reliable, is_equal, || {
                let what = format!("the digest of {group:?} is {stated:?}, what is held makes {own:?}");
                (about(), what)
            });
        }
    }

    /// After a breach, makes the subscriber hold what the log says, so that the breach is reported only once.
    pub(super) fn go_on_from_the_log(
        &mut self,
        before: usize,
        connection: &Connection,
        life: Option<&Life>,
        to: i64,
    ) {
        if let (true, Some(life)) = (self.report.violations() > before, life) {
            self.holding
                .replace(life.at(to, |key| covers(&connection.request, key)));
        }
    }

    pub(super) fn envelope(&mut self, place: Place, resource: &Resource) -> Option<(Key, Held)> {
        let key = resource.key.as_ref().map(Key::from);
        let is_sound = key.is_some() && resource.value_checksum == value_checksum(&resource.value);
        self.report.check(Guarantee::Reliable, is_sound, || {
            let about = About::at(place).revision(resource.revision);
            (
                about,
                format!("the checksum is not of the value's bytes: {key:?}"),
            )
        });
        let held = Held {
            revision: resource.revision,
            value: resource.value.to_vec(),
        };
        Some((key?, held))
    }
}
