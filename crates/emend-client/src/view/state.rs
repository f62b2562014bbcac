//! One state of what was learned, immutable once published: a large table shared by many states, and a small overlay of
//! what changed since that table was built.

use std::sync::Arc;

use emend_core::Revision;
use hashbrown::HashTable;

use super::{
    entry::{Entry, Found},
    near::NearIndexes,
    table::Table,
    terms::Terms,
};

/// One state.
#[derive(Debug, Clone)]
pub(crate) struct ViewState {
    pub(crate) table: Arc<Table>,
    pub(crate) overlay: Overlay,
    /// Finds at least the terms that have synonyms in this state; whether one has, the table and overlay say.
    pub(crate) terms: Arc<Terms>,
    /// What near answers come from; `None`: nobody asked for one yet.
    pub(crate) near: Option<Arc<NearIndexes>>,
    /// Whether anything may be user-scoped. If not, look-ups skip the user's entry.
    pub(crate) user_scoped: bool,
    /// Everything up to this revision is included.
    pub(crate) revision: Revision,
}

impl ViewState {
    /// The state in which nothing was learned.
    pub(crate) fn empty() -> Self {
        Self {
            table: Arc::new(Table::with_capacity(0)),
            overlay: Overlay::default(),
            terms: Arc::default(),
            near: None,
            user_scoped: false,
            revision: Revision(0),
        }
    }

    /// What was learned for `key`.
    #[inline]
    pub(crate) fn find(&self, key: u128) -> Option<Found<'_>> {
        match self.overlay.find(key) {
            None => self.table.find(key),
            Some(changed) => changed.as_deref().map(Found::Many),
        }
    }
}

/// What changed since the table was built. Kept small because every update copies it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overlay(HashTable<(u128, Option<Arc<Entry>>)>);

impl Overlay {
    /// What `key` changed to: `Some(None)` if it is gone, `None` if it did not change.
    #[inline]
    pub(crate) fn find(&self, key: u128) -> Option<&Option<Arc<Entry>>> {
        if self.0.is_empty() {
            return None;
        }
        self.0
            .find(place_of(key), |(known, _)| *known == key)
            .map(|(_, entry)| entry)
    }

    /// Records what `key` changed to.
    pub(crate) fn put(&mut self, key: u128, entry: Entry) {
        let entry = (!entry.is_empty()).then(|| Arc::new(entry));
        match self.0.find_mut(place_of(key), |(known, _)| *known == key) {
            Some(known) => known.1 = entry,
            None => {
                self.0
                    .insert_unique(place_of(key), (key, entry), |(known, _)| place_of(*known));
            }
        }
    }

    /// How many phrases changed.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// All changes, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u128, Option<&Entry>)> {
        self.0.iter().map(|(key, entry)| (*key, entry.as_deref()))
    }
}

/// The half of a key that serves as its hash; whole keys are compared.
fn place_of(key: u128) -> u64 {
    (key >> 64) as u64
}
