//! A collection that knows its newest `limit` entries as entries come and go.

use std::collections::BTreeMap;

use super::SortKey;

/// Entries, split into the newest `limit` and the rest.
#[derive(Debug, Clone)]
pub(super) struct Newest<T> {
    limit: usize,
    within: BTreeMap<SortKey, T>,
    /// Older than everything in `within`; non-empty only if `within` is full.
    beyond: BTreeMap<SortKey, T>,
}

/// What a change moved across the limit, including the changed entry itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Moved {
    /// The entry now within the limit.
    pub(super) entered: Option<SortKey>,
    /// The entry no longer within the limit.
    pub(super) left: Option<SortKey>,
}

impl<T> Newest<T> {
    pub(super) fn new(entries: BTreeMap<SortKey, T>, limit: usize) -> Self {
        let mut newest = Self {
            limit: usize::MAX,
            within: entries,
            beyond: BTreeMap::new(),
        };
        newest.limit_to(limit);
        newest
    }

    /// Changes the limit.
    pub(super) fn limit_to(&mut self, limit: usize) {
        if limit == self.limit {
            return;
        }
        self.limit = limit;
        self.within.append(&mut self.beyond);
        if let Some(&first_beyond) = self.within.keys().nth(limit) {
            self.beyond = self.within.split_off(&first_beyond);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.within.len() + self.beyond.len()
    }

    pub(super) fn get(&self, place: SortKey) -> Option<&T> {
        self.within.get(&place).or_else(|| self.beyond.get(&place))
    }

    pub(super) fn oldest(&self) -> Option<SortKey> {
        let (place, _) = self.beyond.last_key_value().or(self.within.last_key_value())?;
        Some(*place)
    }

    /// All entries, newest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.within().chain(self.beyond.values())
    }

    /// The entries within the limit, newest first.
    pub(super) fn within(&self) -> impl Iterator<Item = &T> {
        self.within.values()
    }

    /// Adds an entry at a place that is free.
    pub(super) fn insert(&mut self, place: SortKey, entry: T) -> Moved {
        let is_full = self.within.len() >= self.limit;
        if is_full && self.within.last_key_value().is_none_or(|(last, _)| *last < place) {
            self.beyond.insert(place, entry);
            return Moved::default();
        }
        self.within.insert(place, entry);
        let mut moved = Moved {
            entered: Some(place),
            left: None,
        };
        if is_full && let Some((last, entry)) = self.within.pop_last() {
            self.beyond.insert(last, entry);
            moved.left = Some(last);
        }
        moved
    }

    /// Removes an entry, if present.
    pub(super) fn remove(&mut self, place: SortKey) -> Option<(T, Moved)> {
        if let Some(entry) = self.beyond.remove(&place) {
            return Some((entry, Moved::default()));
        }
        let entry = self.within.remove(&place)?;
        let mut moved = Moved {
            entered: None,
            left: Some(place),
        };
        if let Some((next, entry)) = self.beyond.pop_first() {
            self.within.insert(next, entry);
            moved.entered = Some(next);
        }
        Some((entry, moved))
    }

    /// Drops all but the newest `count` entries, but never one within the limit. Returns whether any was dropped.
    pub(super) fn forget_beyond(&mut self, count: usize) -> bool {
        let before = self.len();
        let keep = count.saturating_sub(self.within.len());
        if let Some(&first_forgotten) = self.beyond.keys().nth(keep) {
            drop(self.beyond.split_off(&first_forgotten));
        }
        self.len() < before
    }
}
