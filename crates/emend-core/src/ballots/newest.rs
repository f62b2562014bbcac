//! The newest few of many, as some come and others go.

use std::collections::BTreeMap;

use super::Place;

/// Entries of which only the newest `limit` are within.
#[derive(Debug, Clone)]
pub(super) struct Newest<T> {
    limit: usize,
    within: BTreeMap<Place, T>,
    /// All of it is older than all that is within, which is then full.
    beyond: BTreeMap<Place, T>,
}

/// What a change moved over the limit, itself included.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Moved {
    /// Now within.
    pub(super) entered: Option<Place>,
    /// No longer within.
    pub(super) left: Option<Place>,
}

impl<T> Newest<T> {
    pub(super) fn new(entries: BTreeMap<Place, T>, limit: usize) -> Self {
        let mut newest = Self {
            limit: usize::MAX,
            within: entries,
            beyond: BTreeMap::new(),
        };
        newest.limit_to(limit);
        newest
    }

    /// Sets the limit anew.
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

    pub(super) fn get(&self, place: Place) -> Option<&T> {
        self.within.get(&place).or_else(|| self.beyond.get(&place))
    }

    pub(super) fn oldest(&self) -> Option<Place> {
        let (place, _) = self.beyond.last_key_value().or(self.within.last_key_value())?;
        Some(*place)
    }

    /// All of it, newest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.within().chain(self.beyond.values())
    }

    /// What is within, newest first.
    pub(super) fn within(&self) -> impl Iterator<Item = &T> {
        self.within.values()
    }

    /// Adds an entry in a place where there is none.
    pub(super) fn insert(&mut self, place: Place, entry: T) -> Moved {
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

    /// Takes an entry out, if it is there.
    pub(super) fn remove(&mut self, place: Place) -> Option<(T, Moved)> {
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

    /// Forgets all but the newest `count`, yet nothing that is within a limit. Says whether anything was forgotten.
    pub(super) fn forget_beyond(&mut self, count: usize) -> bool {
        let before = self.len();
        let keep = count.saturating_sub(self.within.len());
        if let Some(&first_forgotten) = self.beyond.keys().nth(keep) {
            drop(self.beyond.split_off(&first_forgotten));
        }
        self.len() < before
    }
}
