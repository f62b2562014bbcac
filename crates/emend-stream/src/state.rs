//! What applies now and what changed when: one immutable state per revision, which shares everything that did not
//! change.
//!
//! Everything the stream sends and every read returns comes from one such state, so it is consistent at one revision
//! without any lock. Persistent B-trees (imbl) make copying a state cheap and applying a revision O(changes · log n).
//! Each group of resources keeps an index by revision, tombstones included, which answers "what changed since" in time
//! proportional to the answer. The groups themselves are indexed by their last change, so that churn in other
//! namespaces costs nothing. It must know nothing of messages, subscribers or databases.

mod entry;
mod restore;

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
    ops::{Bound, ControlFlow},
    sync::Arc,
};

use emend_core::{Digest, Epoch, InstallationId};
use imbl::{OrdMap, OrdSet};

use self::entry::{ByKey, ByRevision, ByUser};
pub use self::{entry::Entry, restore::Restored};
use crate::{
    filter::{Filter, GroupId},
    log::{LoggedChange, LoggedRevision},
};

/// A filter that names more namespaces than this is answered from the index of groups by last change.
const FEW_NAMESPACES: usize = 16;

/// One group's resources and its index of changes.
#[derive(Debug, Clone)]
pub struct Group {
    /// Which group.
    pub id: Arc<GroupId>,
    /// The number of resources and the sum of their hashes.
    pub digest: Digest,
    /// The bytes of its resources' keys and values.
    pub bytes: u64,
    /// The newest revision that changed one of its resources.
    pub last_changed: i64,
    live: OrdSet<ByKey>,
    dead: OrdSet<ByKey>,
    /// Live and dead entries, by the revision that changed them last.
    changed: OrdSet<ByRevision>,
    /// Live entries by user; empty unless the group is user-scoped.
    by_user: OrdSet<ByUser>,
}

impl Group {
    fn new(id: Arc<GroupId>) -> Self {
        Self {
            id,
            digest: Digest::default(),
            bytes: 0,
            last_changed: 0,
            live: OrdSet::new(),
            dead: OrdSet::new(),
            changed: OrdSet::new(),
            by_user: OrdSet::new(),
        }
    }

    /// Puts the newest state of a key and returns the tombstone it replaces, if any.
    fn put(&mut self, entry: &Arc<Entry>) -> Option<Arc<Entry>> {
        let place = ByKey(Arc::clone(entry));
        if let Some(ByKey(before)) = self.live.remove(&place) {
            self.digest.remove(&before.digest_item());
            self.bytes = self.bytes.saturating_sub(before.bytes());
            self.by_user.remove(&ByUser(Arc::clone(&before)));
            self.changed.remove(&ByRevision(before));
        }
        let tombstone = self.dead.remove(&place).map(|ByKey(before)| before);
        if let Some(before) = &tombstone {
            self.changed.remove(&ByRevision(Arc::clone(before)));
        }
        self.changed.insert(ByRevision(Arc::clone(entry)));
        if entry.value.is_some() {
            self.digest.add(&entry.digest_item());
            self.bytes += entry.bytes();
            if self.id.user_scoped {
                self.by_user.insert(ByUser(Arc::clone(entry)));
            }
            self.live.insert(place);
        } else {
            self.dead.insert(place);
        }
        self.last_changed = self.last_changed.max(entry.revision);
        tombstone
    }

    fn forget(&mut self, tombstone: &Arc<Entry>) {
        self.dead.remove(&ByKey(Arc::clone(tombstone)));
        self.changed.remove(&ByRevision(Arc::clone(tombstone)));
    }

    fn is_empty(&self) -> bool {
        self.live.is_empty() && self.dead.is_empty()
    }
}

/// Everything that applied at one revision. Cloning shares all of it.
#[derive(Debug, Clone)]
pub struct ReplicaState {
    epoch: Epoch,
    installation: InstallationId,
    revision: i64,
    committed_at: i64,
    horizon: i64,
    groups: OrdMap<Arc<GroupId>, Arc<Group>>,
    /// Groups by their last change.
    newest: OrdSet<(i64, Arc<GroupId>)>,
    tombstones: OrdSet<ByRevision>,
}

impl ReplicaState {
    /// An empty state.
    pub fn empty(epoch: Epoch, installation: InstallationId) -> Self {
        Self {
            epoch,
            installation,
            revision: 0,
            committed_at: 0,
            horizon: 0,
            groups: OrdMap::new(),
            newest: OrdSet::new(),
            tombstones: OrdSet::new(),
        }
    }

    /// Applies the next revision and returns the groups it changed. A change whose value the log no longer has is passed over:
    /// whoever applies it also applies the newer change of its key before anybody sees the state.
    pub fn apply(&mut self, revision: LoggedRevision) -> BTreeSet<Arc<GroupId>> {
        self.revision = revision.revision;
        self.committed_at = revision.committed_at;
        revision
            .changes
            .into_iter()
            .filter(|change| !change.is_dropped())
            .map(|change| self.put(change))
            .collect()
    }

    /// Raises the horizon and forgets deletions at or below it. The horizon never falls.
    pub fn raise_horizon(&mut self, horizon: i64) {
        self.horizon = self.horizon.max(horizon);
        while let Some(ByRevision(oldest)) = self.tombstones.get_min().cloned() {
            if oldest.revision > self.horizon {
                return;
            }
            self.tombstones.remove(&ByRevision(Arc::clone(&oldest)));
            let Some(group) = self.groups.get_mut(&oldest.group) else {
                continue;
            };
            let group = Arc::make_mut(group);
            group.forget(&oldest);
            if group.is_empty() {
                self.newest
                    .remove(&(group.last_changed, Arc::clone(&oldest.group)));
                self.groups.remove(&oldest.group);
            }
        }
    }

    fn put(&mut self, change: LoggedChange) -> Arc<GroupId> {
        let id = GroupId {
            namespace: change.namespace.as_str().into(),
            kind: change.kind,
            user_scoped: !change.user_id.is_empty(),
        };
        let id = match self.groups.get_key_value(&id) {
            Some((id, _)) => Arc::clone(id),
            None => Arc::new(id),
        };
        let entry = Arc::new(Entry::new(Arc::clone(&id), change));
        let group = self
            .groups
            .entry(Arc::clone(&id))
            .or_insert_with(|| Arc::new(Group::new(Arc::clone(&id))));
        let group = Arc::make_mut(group);
        let before = group.last_changed;
        if let Some(tombstone) = group.put(&entry) {
            self.tombstones.remove(&ByRevision(tombstone));
        }
        if group.last_changed > before {
            self.newest.remove(&(before, Arc::clone(&id)));
            self.newest.insert((group.last_changed, Arc::clone(&id)));
        }
        if entry.value.is_none() {
            self.tombstones.insert(ByRevision(entry));
        }
        id
    }

    /// The installation that the log belongs to.
    pub fn installation(&self) -> InstallationId {
        self.installation
    }

    /// The epoch of the log and the revision.
    pub fn place(&self) -> (Epoch, i64) {
        (self.epoch, self.revision)
    }

    /// The epoch of the log.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The revision at which all of this applied.
    pub fn revision(&self) -> i64 {
        self.revision
    }

    /// When that revision was committed, in microseconds since 1970; 0 at revision 0.
    pub fn committed_at(&self) -> i64 {
        self.committed_at
    }

    /// Deletions at or below this revision are forgotten.
    pub fn horizon(&self) -> i64 {
        self.horizon
    }

    /// How many resources apply, and the bytes of their keys and values.
    pub fn held(&self) -> (u64, u64) {
        let groups = self.groups.values();
        groups.fold((0, 0), |(count, bytes), group| {
            (count + group.digest.count.unsigned_abs(), bytes + group.bytes)
        })
    }

    /// The number of deletions remembered.
    pub fn tombstones(&self) -> usize {
        self.tombstones.len()
    }

    /// The groups a filter covers, in key order.
    pub fn groups<'a>(&'a self, filter: &Filter) -> Vec<&'a Group> {
        let Some(names) = filter.namespaces() else {
            return covered(self.groups.values(), filter).collect();
        };
        let mut found = Vec::new();
        for name in names {
            let (first, last) = GroupId::bounds(name);
            let range = self.groups.range::<_, GroupId>(first..=last);
            found.extend(covered(range.map(|(_, group)| group), filter));
        }
        found
    }

    /// The groups a filter covers in which something changed after `from`, in key order.
    pub fn groups_changed_since<'a>(&'a self, filter: &Filter, from: i64) -> Vec<&'a Group> {
        if filter
            .namespaces()
            .is_some_and(|names| names.len() <= FEW_NAMESPACES)
        {
            let mut groups = self.groups(filter);
            groups.retain(|group| group.last_changed > from);
            return groups;
        }
        let newer = self.newest.iter().rev().take_while(|(last, _)| *last > from);
        let mut groups: Vec<_> = covered(newer.filter_map(|(_, id)| self.groups.get(id)), filter).collect();
        groups.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        groups
    }

    /// The newest state of every key a filter covers that changed after `from` or, if `after` is given, that comes
    /// after that entry. Ordered by revision, then by key, until `visit` breaks off. No key comes twice: older states
    /// are not kept.
    pub fn changes_since(
        &self,
        filter: &Filter,
        from: i64,
        after: Option<&Arc<Entry>>,
        mut visit: impl FnMut(&Arc<Entry>) -> ControlFlow<()>,
    ) {
        let lower = match after {
            Some(entry) => Bound::Excluded(ByRevision(Arc::clone(entry))),
            None => Bound::Included(first_after(from)),
        };
        let groups = self.groups_changed_since(filter, after.map_or(from, |entry| entry.revision - 1));
        // Merges the groups' own orders.
        let mut heap = BinaryHeap::with_capacity(groups.len());
        let mut ranges = Vec::with_capacity(groups.len());
        for group in groups {
            let mut range = group
                .changed
                .range::<_, ByRevision>((lower.as_ref(), Bound::Unbounded));
            if let Some(first) = range.next() {
                heap.push(Reverse((first, ranges.len())));
                ranges.push(range);
            }
        }
        while let Some(Reverse((entry, index))) = heap.pop() {
            if visit(&entry.0).is_break() {
                return;
            }
            if let Some(next) = ranges[index].next() {
                heap.push(Reverse((next, index)));
            }
        }
    }

    /// Every resource a filter covers after that entry, in key order (namespace, kind, key, qualifier, user), until
    /// `visit` breaks off.
    pub fn resources(
        &self,
        filter: &Filter,
        after: Option<&Arc<Entry>>,
        mut visit: impl FnMut(&Arc<Entry>) -> ControlFlow<()>,
    ) {
        let groups = self.groups(filter);
        let mut rest = match after {
            Some(entry) => {
                let passed = groups.partition_point(|group| group.id.cmp_key(&entry.group).is_lt());
                &groups[passed..]
            }
            None => &groups[..],
        };
        while let Some(first) = rest.first() {
            // The global and the user-scoped resources of one kind are two groups that share one key order.
            let same = rest.partition_point(|group| group.id.cmp_key(&first.id).is_eq());
            let (kind, others) = rest.split_at(same);
            rest = others;
            let lower = match after {
                Some(entry) if entry.group.cmp_key(&first.id).is_eq() => {
                    Bound::Excluded(ByKey(Arc::clone(entry)))
                }
                _ => Bound::Unbounded,
            };
            let mut ranges: Vec<_> = kind
                .iter()
                .map(|group| {
                    let mut range = group.live.range::<_, ByKey>((lower.as_ref(), Bound::Unbounded));
                    (range.next(), range)
                })
                .collect();
            while let Some((head, range)) = ranges
                .iter_mut()
                .filter(|(head, _)| head.is_some())
                .min_by_key(|(head, _)| *head)
                && let Some(ByKey(entry)) = std::mem::replace(head, range.next())
            {
                if visit(entry).is_break() {
                    return;
                }
            }
        }
    }

    /// The resource with that key.
    pub fn get(
        &self,
        namespace: &str,
        kind: i32,
        key: &str,
        qualifier: &str,
        user_id: &str,
    ) -> Option<&Arc<Entry>> {
        let id = group_id(namespace, kind, !user_id.is_empty());
        let place = Entry::place(Arc::new(id), 0, key, qualifier, user_id);
        let group = self.groups.get(&*place.group)?;
        group
            .live
            .get(&ByKey(Arc::clone(&place)))
            .map(|ByKey(entry)| entry)
    }

    /// The kinds for which a namespace has a group of that scope, by number.
    pub fn kinds(&self, namespace: &str, user_scoped: bool) -> Vec<i32> {
        let (first, last) = GroupId::bounds(&namespace.into());
        self.groups
            .range::<_, GroupId>(first..=last)
            .filter(|(id, _)| id.user_scoped == user_scoped)
            .map(|(id, _)| id.kind)
            .collect()
    }

    /// How many resources of a kind a namespace has: those that are users' own, of all users, or those that are everybody's.
    pub fn count(&self, namespace: &str, kind: i32, user_scoped: bool) -> usize {
        let group = self.groups.get(&group_id(namespace, kind, user_scoped));
        group.map_or(0, |group| group.live.len())
    }

    /// One kind's resources from the position (key, qualifier) on, in key order: the global ones if `user_id` is empty,
    /// else that user's own. `included`: whether a resource at that very position counts.
    pub fn of_kind<'a>(
        &'a self,
        namespace: &str,
        kind: i32,
        user_id: &'a str,
        from: (&str, &str),
        included: bool,
    ) -> Box<dyn Iterator<Item = &'a Arc<Entry>> + 'a> {
        let id = group_id(namespace, kind, !user_id.is_empty());
        let Some(group) = self.groups.get(&id) else {
            return Box::new(std::iter::empty());
        };
        let place = Entry::place(Arc::clone(&group.id), 0, from.0, from.1, user_id);
        if user_id.is_empty() {
            let place = ByKey(place);
            let range = group
                .live
                .range::<_, ByKey>((lower(included, &place), Bound::Unbounded));
            Box::new(range.map(|ByKey(entry)| entry))
        } else {
            let place = ByUser(place);
            let range = group
                .by_user
                .range::<_, ByUser>((lower(included, &place), Bound::Unbounded));
            Box::new(
                range
                    .map(|ByUser(entry)| entry)
                    .take_while(move |entry| &*entry.user_id == user_id),
            )
        }
    }
}

fn covered<'a>(
    groups: impl Iterator<Item = &'a Arc<Group>>,
    filter: &Filter,
) -> impl Iterator<Item = &'a Group> {
    groups
        .map(|group| &**group)
        .filter(|group| filter.covers(&group.id))
}

fn group_id(namespace: &str, kind: i32, user_scoped: bool) -> GroupId {
    GroupId {
        namespace: namespace.into(),
        kind,
        user_scoped,
    }
}

fn lower<T>(included: bool, place: &T) -> Bound<&T> {
    if included {
        Bound::Included(place)
    } else {
        Bound::Excluded(place)
    }
}

/// Sorts before every entry of a revision after `from` and after all others.
fn first_after(from: i64) -> ByRevision {
    let id = group_id("", i32::MIN, false);
    ByRevision(Entry::place(Arc::new(id), from.saturating_add(1), "", "", ""))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use uuid::Uuid;

    use super::*;

    fn change(revision: i64, value: Option<&'static str>) -> LoggedRevision {
        let change = LoggedChange {
            revision,
            committed_at: revision,
            cause: 0,
            namespace: "a".to_owned(),
            kind: 1,
            key: "key".to_owned(),
            qualifier: String::new(),
            user_id: "jane".to_owned(),
            value: value.map(|value| Bytes::from_static(value.as_bytes())),
            checksum: 0,
            feedback_received_at: 0,
            traceparent: String::new(),
        };
        LoggedRevision {
            revision,
            committed_at: revision,
            changes: vec![change],
        }
    }

    #[test]
    fn a_group_without_resources_and_tombstones_is_dropped() {
        let ids = (Epoch(Uuid::from_u128(1)), InstallationId(Uuid::from_u128(2)));
        let mut state = ReplicaState::empty(ids.0, ids.1);
        state.apply(change(1, Some("value")));
        state.apply(change(2, None));
        let counts = |state: &ReplicaState| (state.groups.len(), state.newest.len(), state.tombstones());
        assert_eq!(counts(&state), (1, 1, 1));
        state.raise_horizon(2);
        assert_eq!(counts(&state), (0, 0, 0));
        state.raise_horizon(1);
        assert_eq!(state.horizon(), 2);
    }
}
