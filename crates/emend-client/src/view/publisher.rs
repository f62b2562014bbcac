//! The writing half of a view: builds the next state and swaps it in as a whole, so that an update's changes become
//! visible together and readers never wait.
//!
//! An update copies the overlay and changes the copy. When the overlay exceeds its bound it is merged into a new table;
//! at 20 updates a second, that is every few minutes for a million phrases. The publisher keeps retired states until
//! no reader holds them, so that a reader never has to free a large table or matcher.
//!
//! What finds terms in texts is built as `terms.rs` says, and swapped in with the rest.

use std::{borrow::Cow, sync::Arc};

use emend_core::{Kind, ResourceValue, Revision, evidence::Covering};

use super::{
    LearnedView,
    entry::{Entry, Found},
    state::{Overlay, ViewState},
    table::{Table, TextIndex},
    terms::TermIndex,
};
use crate::keyed_hash::KeyedHash;

/// How many phrases a table has at least that takes milliseconds to copy or to free.
const LARGE: usize = 20_000;

/// What is learned, or no longer learned, for one key.
#[derive(Debug, Clone)]
pub struct Fact<'a> {
    /// The search application.
    pub namespace: &'a str,
    /// What it is about.
    pub kind: Kind,
    /// The normalised key.
    pub key: &'a str,
    /// The forbidden choice of a prohibition, the representative of a synonym, the layer of a decision about a domain; empty
    /// otherwise.
    pub qualifier: &'a str,
    /// The user whose own it is; empty for everybody's.
    pub user_id: &'a str,
    /// The revision that made this change.
    pub revision: Revision,
    /// What was learned; `None` if it is no longer learned.
    pub value: Option<Cow<'a, ResourceValue>>,
}

impl Fact<'_> {
    /// Passes to `change` each entry that the fact belongs to, by the hash of its key and the key itself, and how it is noted
    /// there: a synonym also in the entry of its representative, a decision about a domain in that of the pattern's name.
    fn for_each_entry(&self, hash: &KeyedHash, mut change: impl FnMut(u128, &str, fn(&mut Entry, &Self))) {
        let key = match self.kind {
            Kind::DomainRule => Covering::of(self.key).name,
            _ => self.key,
        };
        change(hash.entry(self.namespace, self.user_id, key), key, Entry::note);
        if self.kind == Kind::Synonym {
            let representative = hash.entry(self.namespace, self.user_id, self.qualifier);
            change(representative, self.qualifier, Entry::note_in_set);
        }
    }
}

/// Publishes the states that a [`LearnedView`] answers from. Each view has one.
#[derive(Debug)]
pub struct Publisher {
    view: LearnedView,
    hash: Arc<KeyedHash>,
    texts: TextIndex,
    terms: TermIndex,
    /// Whether large matchers are left where they are: neither taken nor freed.
    leaves_large: bool,
    pub(super) retired: Vec<Arc<ViewState>>,
}

impl Publisher {
    pub(crate) fn new(view: LearnedView, hash: Arc<KeyedHash>) -> Self {
        let texts = TextIndex::new(Arc::clone(&hash));
        Self {
            view,
            hash,
            texts,
            terms: TermIndex::default(),
            leaves_large: false,
            retired: Vec::new(),
        }
    }

    /// Publishes a complete new state, replacing the previous one. `count` is the approximate number of facts.
    pub fn replace<'a>(
        &mut self,
        count: usize,
        facts: impl IntoIterator<Item = Fact<'a>>,
        revision: Revision,
    ) {
        let mut table = Table::with_capacity(count);
        let mut texts = TextIndex::new(Arc::clone(&self.hash));
        let mut terms = TermIndex::default();
        let mut user_scoped = false;
        for fact in facts {
            if fact.value.is_none() {
                continue;
            }
            user_scoped |= !fact.user_id.is_empty();
            fact.for_each_entry(&self.hash, |key, term, note| {
                if table.needs_rebuild(1) {
                    table = rebuilt(&table, count, &mut texts, &self.hash);
                }
                let mut entry = table.find(key).map(Found::to_entry).unwrap_or_default();
                terms.watch(fact.namespace, term, &mut entry, |entry| note(entry, &fact));
                table.put(key, &entry, &mut texts);
            });
        }
        self.texts = texts;
        terms.settle(&self.terms);
        self.terms = terms;
        self.publish(ViewState {
            table: Arc::new(table),
            overlay: Overlay::default(),
            terms: self.terms.current(),
            user_scoped,
            revision,
        });
    }

    /// Publishes a set of changes, all at once.
    pub fn apply<'a>(&mut self, facts: impl IntoIterator<Item = Fact<'a>>, revision: Revision) {
        let mut next = ViewState::clone(&self.view.state());
        next.revision = revision;
        for fact in facts {
            next.user_scoped |= !fact.user_id.is_empty();
            fact.for_each_entry(&self.hash, |key, term, note| {
                let mut entry = next.find(key).map(Found::to_entry).unwrap_or_default();
                self.terms
                    .watch(fact.namespace, term, &mut entry, |entry| note(entry, &fact));
                next.overlay.put(key, entry);
            });
        }
        if next.overlay.len() > overlay_bound(next.table.len()) {
            self.merge(&mut next);
        }
        self.terms.refresh(!self.leaves_large);
        next.terms = self.terms.current();
        self.publish(next);
    }

    /// Publishes that nothing has changed up to `revision`.
    pub fn advance(&mut self, revision: Revision) {
        self.sweep();
        let current = self.view.state();
        if self.terms.refresh(!self.leaves_large) || current.revision != revision {
            self.publish(ViewState {
                revision,
                terms: self.terms.current(),
                ..ViewState::clone(&current)
            });
        }
    }

    /// Whether the next `apply` of so many changes, or the next `advance`, may take milliseconds, because it merges into a
    /// large table, has many new terms, takes or begins a large matcher, or frees what is large.
    pub(crate) fn is_slow(&self, changes: usize) -> bool {
        let current = self.view.state();
        let phrases = current.table.len();
        let merges = phrases > LARGE && current.overlay.len() + changes > overlay_bound(phrases);
        merges || self.terms.is_slow_to_refresh(changes) || self.frees_much(&current)
    }

    /// From now on leaves large matchers and tables to a later update that may be slow, or does not. What `is_slow` found may
    /// have changed since: a matcher may be ready, and a reader gone.
    pub(crate) fn leave_large(&mut self, leaves: bool) {
        self.leaves_large = leaves;
    }

    /// Whether a state that no reader holds any more has a large table or matcher that the current one does not share.
    fn frees_much(&self, current: &ViewState) -> bool {
        let is_free = |state: &&Arc<ViewState>| Arc::strong_count(state) == 1;
        self.retired
            .iter()
            .filter(is_free)
            .any(|state| is_large_beside(state, current))
    }

    /// The thread that builds a large matcher, and whether it is done.
    #[cfg(test)]
    pub(super) fn builder(&self) -> Option<(&std::thread::Thread, bool)> {
        self.terms.builder()
    }

    /// How many terms only small matchers find.
    #[cfg(test)]
    pub(super) fn new_terms(&self) -> usize {
        self.terms.new_terms()
    }

    /// The large matcher of a namespace.
    #[cfg(test)]
    pub(super) fn large_matcher(&self, namespace: &str) -> Option<Arc<emend_core::search::Matcher>> {
        self.terms.large_matcher(namespace)
    }

    fn merge(&mut self, next: &mut ViewState) {
        let changed = next.overlay.len();
        let mut table = if next.table.needs_rebuild(changed) {
            rebuilt(&next.table, changed, &mut self.texts, &self.hash)
        } else {
            Table::clone(&next.table)
        };
        for (key, entry) in next.overlay.iter() {
            match entry {
                Some(entry) => table.put(key, entry, &mut self.texts),
                None => table.remove(key),
            }
        }
        next.table = Arc::new(table);
        next.overlay = Overlay::default();
    }

    fn publish(&mut self, next: ViewState) {
        self.retired.push(self.view.swap(Arc::new(next)));
        self.sweep();
    }

    /// Frees the states that no reader holds any more; large ones only where that may be slow.
    fn sweep(&mut self) {
        let current = self.view.state();
        let leaves_large = self.leaves_large;
        self.retired.retain(|state| {
            Arc::strong_count(state) > 1 || (leaves_large && is_large_beside(state, &current))
        });
    }
}

/// Whether a state has a large table or matcher that the current one does not share.
fn is_large_beside(state: &ViewState, current: &ViewState) -> bool {
    let has_table = state.table.len() > LARGE && !Arc::ptr_eq(&state.table, &current.table);
    has_table || state.terms.has_large_beside(&current.terms)
}

/// The size of the overlay, in phrases, above which it is merged: small enough to be copied for every update and to
/// stay in the processor's cache, large enough to amortise the cost of a merge.
fn overlay_bound(phrases: usize) -> usize {
    (phrases / 256).clamp(1024, 8192)
}

/// A new table with the same phrases, room for `additional` more, and no unused texts.
fn rebuilt(table: &Table, additional: usize, texts: &mut TextIndex, hash: &Arc<KeyedHash>) -> Table {
    let mut new = Table::with_capacity(table.len() + table.len() / 8 + additional);
    *texts = TextIndex::new(Arc::clone(hash));
    for (key, found) in table.iter() {
        new.put(key, &found.to_entry(), texts);
    }
    new
}
