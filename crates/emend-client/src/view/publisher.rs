//! The writing half of a view: builds the next state and swaps it in as a whole, so that an update's changes become
//! visible together and readers never wait.
//!
//! An update copies the overlay and changes the copy. When the overlay exceeds its bound it is merged into a new table;
//! at 20 updates a second, that is every few minutes for a million phrases. The publisher keeps retired states until
//! no reader holds them, so that a reader never has to free a large table or matcher.
//!
//! What finds terms in texts is built as `terms.rs` says, and swapped in with the rest.

use std::{borrow::Cow, sync::Arc};

use emend_core::{Kind, Learned, NearLookup, ResourceValue, Revision, evidence::Covering};

use super::{
    LearnedView,
    entry::{Entry, Found},
    near_index::NearIndex,
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
    /// Where it counts for near answers, if it does: what everybody is taught that a phrase means.
    fn taught_to_all(&self) -> Option<(&str, Kind)> {
        (self.user_id.is_empty() && self.kind.rules().is_answer).then_some((self.namespace, self.kind))
    }

    /// How near answers are given, and of what, if it is about that.
    fn sets_near(&self) -> Option<(&str, Kind, NearLookup)> {
        if self.kind != Kind::NearLookup || !self.user_id.is_empty() {
            return None;
        }
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == self.key)?;
        let setting = match self.value.as_ref().map(|value| &value.learned) {
            Some(Learned::NearLookup(Some(setting))) => setting.clone(),
            _ => NearLookup::default(),
        };
        Some((self.namespace, kind, setting))
    }

    /// Tells near answers of it; before it, nothing was learned for its key.
    fn tell(&self, near: &mut NearIndex) {
        if let Some((namespace, kind, setting)) = self.sets_near() {
            near.set((namespace, kind), &setting);
        }
        if let (Some(place), Some(value)) = (self.taught_to_all(), &self.value) {
            near.note(place, self.key, None, Some(value.learned.maps_to()));
        }
    }

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
    /// `None` while nobody has asked for a near answer.
    near: Option<NearIndex>,
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
            near: None,
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
        let mut near = self.new_near();
        let mut user_scoped = false;
        for fact in facts {
            if fact.value.is_none() {
                continue;
            }
            if let Some(near) = &mut near {
                fact.tell(near);
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
        if let Some(near) = &mut near {
            near.all_is_told();
        }
        self.near = near;
        self.publish(ViewState {
            table: Arc::new(table),
            overlay: Overlay::default(),
            terms: self.terms.current(),
            near: None,
            user_scoped,
            revision,
        });
    }

    /// Publishes a set of changes, all at once.
    pub fn apply<'a>(&mut self, facts: impl IntoIterator<Item = Fact<'a>>, revision: Revision) {
        let mut next = ViewState::clone(&self.view.state());
        next.revision = revision;
        if self.near.is_none() && next.table.len() + next.overlay.len() == 0 {
            self.near = self.new_near();
        }
        for fact in facts {
            next.user_scoped |= !fact.user_id.is_empty();
            if let Some(near) = &mut self.near
                && let Some((namespace, kind, setting)) = fact.sets_near()
            {
                near.set((namespace, kind), &setting);
            }
            fact.for_each_entry(&self.hash, |key, term, note| {
                let mut entry = next.find(key).map(Found::to_entry).unwrap_or_default();
                if let Some(near) = &mut self.near
                    && let Some(place) = fact.taught_to_all()
                {
                    let before = entry.answer(fact.kind).map(|answer| &*answer.value);
                    let after = fact.value.as_ref().map(|value| value.learned.maps_to());
                    near.note(place, fact.key, before, after);
                }
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

    /// Takes models of near answers that are ready, and begins those that are to be made. To be called about twice a second once
    /// somebody wants them. Says whether all that is learned must be told anew, by [`relearn`](Self::relearn).
    pub fn refresh_near(&mut self) -> bool {
        let Some(near) = &mut self.near else {
            return self.view.keeps_near();
        };
        if near.is_lacking() {
            return true;
        }
        if near.refresh() {
            self.publish(ViewState::clone(&self.view.state()));
        }
        false
    }

    /// Whether there is anything for [`refresh_near`](Self::refresh_near) to do.
    pub(crate) fn near_is_due(&self) -> bool {
        match &self.near {
            Some(near) => near.is_due() || near.is_lacking(),
            None => self.view.keeps_near(),
        }
    }

    /// Makes the models of near answers of all that is learned, which is what was published last.
    pub fn relearn<'a>(&mut self, facts: impl IntoIterator<Item = Fact<'a>>) {
        self.near = self.new_near();
        if let Some(near) = &mut self.near {
            for fact in facts {
                fact.tell(near);
            }
            near.all_is_told();
            near.refresh();
            self.publish(ViewState::clone(&self.view.state()));
        }
    }

    /// Makes all models of near answers, here and now: for those who publish by themselves, such as tests and benchmarks.
    pub fn fit_near(&mut self) {
        if let Some(near) = &mut self.near {
            near.settle();
            self.publish(ViewState::clone(&self.view.state()));
        }
    }

    fn new_near(&mut self) -> Option<NearIndex> {
        let (clock, vectors) = (Arc::clone(&self.view.0.clock), self.view.0.vectors.clone());
        self.view
            .keeps_near()
            .then(|| NearIndex::new(clock, vectors, self.near.take()))
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

    fn publish(&mut self, mut next: ViewState) {
        if let Some(near) = &mut self.near {
            near.republish();
            next.near = Some(near.current());
        }
        self.retired.push(self.view.swap(Arc::new(next)));
        // Whoever waits for it finds the state that has it.
        if let Some(is_current) = self.near.as_ref().map(NearIndex::is_current) {
            self.view
                .update_status(|status| status.near_is_current = is_current);
        }
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
