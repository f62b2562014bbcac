//! Which terms have synonyms, and what finds them in texts.
//!
//! A matcher of many terms takes long to build (up to a second or two for 90,000), so no update waits for one: what finds a
//! namespace's terms is a large matcher and beside it a small one of the terms that are new since, which is built with the
//! update. Once there are many, a thread in the background builds a large one of all, and the next state has it. A term
//! that lost its synonyms stays in the large matcher until then: a matcher only finds, what is found means the state's
//! table says, so a look-up sees one revision. Only a complete new state waits for its matchers, as it does for its table.

use std::{collections::HashMap, sync::Arc, thread::JoinHandle};

use emend_core::search::Matcher;

use super::entry::Entry;
use crate::background;

/// How many terms a matcher has at least that takes milliseconds to free.
const MANY: usize = 20_000;

/// What finds terms in texts, by namespace.
#[derive(Debug, Default)]
pub(crate) struct Terms(HashMap<Arc<str>, Matchers>);

/// What finds one namespace's terms.
#[derive(Debug, Clone)]
struct Matchers {
    large: Arc<Matcher>,
    /// `None` if no term is new.
    small: Option<Arc<Matcher>>,
}

impl Terms {
    /// What together finds the terms of a namespace.
    pub(crate) fn of(&self, namespace: &str) -> Vec<&Matcher> {
        let Some(Matchers { large, small }) = self.0.get(namespace) else {
            return Vec::new();
        };
        [Some(large), small.as_ref()]
            .into_iter()
            .flatten()
            .map(|matcher| &**matcher)
            .collect()
    }

    /// Whether these have a matcher of many terms that the others do not share.
    pub(super) fn has_large_beside(&self, others: &Self) -> bool {
        self.0.iter().any(|(namespace, Matchers { large, .. })| {
            let other = others.0.get(namespace);
            let is_shared = other.is_some_and(|other| Arc::ptr_eq(large, &other.large));
            !is_shared && large.len() > MANY
        })
    }
}

/// The terms that have synonyms, and what finds them. The publisher keeps it, apart from what readers touch.
#[derive(Debug, Default)]
pub(super) struct TermIndex {
    namespaces: HashMap<Arc<str>, TermsHere>,
    current: Arc<Terms>,
    building: Option<Building>,
}

/// The terms of one namespace.
#[derive(Debug)]
struct TermsHere {
    /// Every term that has synonyms or is in the large matcher.
    terms: HashMap<Arc<str>, Term>,
    /// How many are not in the large matcher.
    new: usize,
    /// How many are in the large matcher and have no synonyms any more.
    gone: usize,
    matchers: Matchers,
    /// Whether the new terms are other ones than the small matcher finds.
    is_changed: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Term {
    /// For how many users it has synonyms; everybody is one.
    users: u32,
    is_in_large: bool,
}

/// A large matcher that is being built.
#[derive(Debug)]
struct Building {
    namespace: Arc<str>,
    /// Ends by itself once it is built, whether anybody still wants it or not.
    thread: JoinHandle<Matcher>,
}

impl Building {
    fn is_ready(&self) -> bool {
        self.thread.is_finished()
    }
}

impl Default for TermsHere {
    fn default() -> Self {
        Self {
            terms: HashMap::new(),
            new: 0,
            gone: 0,
            matchers: Matchers {
                large: Arc::new(Matcher::new([])),
                small: None,
            },
            is_changed: false,
        }
    }
}

impl TermIndex {
    /// Changes the entry of a term, and notes whether it has synonyms now.
    pub(super) fn watch(
        &mut self,
        namespace: &str,
        term: &str,
        entry: &mut Entry,
        change: impl FnOnce(&mut Entry),
    ) {
        let had = entry.synonyms.is_some();
        change(entry);
        let has = entry.synonyms.is_some();
        if had == has {
            return;
        }
        if !self.namespaces.contains_key(namespace) {
            self.namespaces.insert(namespace.into(), TermsHere::default());
        }
        if let Some(here) = self.namespaces.get_mut(namespace) {
            here.change(term, has);
        }
    }

    /// What finds all terms as of the last refresh.
    pub(super) fn current(&self) -> Arc<Terms> {
        Arc::clone(&self.current)
    }

    /// Whether a refresh after this many changes may take milliseconds: it builds a small matcher of many terms, takes a
    /// large one or begins one.
    pub(super) fn is_slow_to_refresh(&self, changes: usize) -> bool {
        let has_large = self.building.as_ref().is_some_and(Building::is_ready);
        let begins = self.building.is_none() && self.namespaces.values().any(|here| here.is_crowded(changes));
        let has_many_new = |here: &TermsHere| here.new + changes > 500 && here.new > 0;
        has_large || begins || self.namespaces.values().any(has_many_new)
    }

    /// Puts all terms into large matchers; keeps those of `before` that find them already.
    pub(super) fn settle(&mut self, before: &Self) {
        for (namespace, here) in &mut self.namespaces {
            let reused = before.namespaces.get(namespace).and_then(|old| {
                let large = &old.matchers.large;
                let found = |term: &Arc<str>| old.terms.get(term).is_some_and(|term| term.is_in_large);
                let is_close = old.terms.len() <= here.terms.len() + here.terms.len() / 8;
                (is_close && here.terms.keys().all(found)).then(|| Arc::clone(large))
            });
            let large = reused.unwrap_or_else(|| Arc::new(Matcher::new(here.terms.keys().cloned())));
            here.settle(large);
        }
        self.republish();
    }

    /// Takes a large matcher that is ready if it `takes_large`, begins another one where many terms are new, and lets small
    /// ones find the rest. Says whether anything changed.
    pub(super) fn refresh(&mut self, takes_large: bool) -> bool {
        let mut is_changed = false;
        if takes_large
            && self.building.as_ref().is_some_and(Building::is_ready)
            && let Some(Building { namespace, thread }) = self.building.take()
            && let Ok(large) = thread.join()
            && let Some(here) = self.namespaces.get_mut(&namespace)
        {
            here.settle(Arc::new(large));
            is_changed = true;
        }
        if self.building.is_none() {
            let crowded = self.namespaces.iter().find(|(_, here)| here.is_crowded(0));
            self.building = crowded.and_then(|(namespace, here)| here.build(namespace));
        }
        for here in self.namespaces.values_mut().filter(|here| here.is_changed) {
            here.refresh();
            is_changed = true;
        }
        if is_changed {
            self.republish();
        }
        is_changed
    }

    fn republish(&mut self) {
        let matchers = self
            .namespaces
            .iter()
            .map(|(namespace, here)| (Arc::clone(namespace), here.matchers.clone()));
        self.current = Arc::new(Terms(matchers.collect()));
    }

    /// The large matcher of a namespace.
    #[cfg(test)]
    pub(super) fn large_matcher(&self, namespace: &str) -> Option<Arc<Matcher>> {
        self.namespaces
            .get(namespace)
            .map(|here| Arc::clone(&here.matchers.large))
    }

    /// The thread that builds a large matcher, and whether it is done.
    #[cfg(test)]
    pub(super) fn builder(&self) -> Option<(&std::thread::Thread, bool)> {
        let building = self.building.as_ref()?;
        Some((building.thread.thread(), building.is_ready()))
    }

    /// How many terms are new, in all namespaces.
    #[cfg(test)]
    pub(super) fn new_terms(&self) -> usize {
        self.namespaces.values().map(|here| here.new).sum()
    }
}

impl TermsHere {
    /// Records that a term has synonyms for one user more, or less.
    fn change(&mut self, term: &str, has: bool) {
        if let Some(known) = self.terms.get_mut(term) {
            let had_any = known.users > 0;
            known.users = if has {
                known.users + 1
            } else {
                known.users.saturating_sub(1)
            };
            let is_in_large = known.is_in_large;
            match (had_any, known.users > 0) {
                (false, true) if is_in_large => self.gone -= 1,
                (true, false) if is_in_large => self.gone += 1,
                (true, false) => {
                    self.terms.remove(term);
                    self.new -= 1;
                    self.is_changed = true;
                }
                _ => {}
            }
        } else if has {
            let term = (
                term.into(),
                Term {
                    users: 1,
                    is_in_large: false,
                },
            );
            self.terms.extend([term]);
            self.new += 1;
            self.is_changed = true;
        }
    }

    /// Whether, with so many more, the small matcher has become so large that each update takes long to build it, or the
    /// large one finds much that is gone.
    fn is_crowded(&self, more: usize) -> bool {
        let large = self.terms.len() - self.new;
        let has_many_new = self.new > 0 && self.new + more > (large / 256).clamp(128, 1024);
        has_many_new || self.gone > large / 2 + 1024
    }

    /// Begins to build a large matcher of all terms; `None` if the system has no thread for it now.
    fn build(&self, namespace: &Arc<str>) -> Option<Building> {
        let living = self.terms.iter().filter(|(_, term)| term.users > 0);
        let terms: Vec<Arc<str>> = living.map(|(term, _)| Arc::clone(term)).collect();
        let thread = background::spawn("emend-terms", move || Matcher::new(terms)).ok()?;
        Some(Building {
            namespace: Arc::clone(namespace),
            thread,
        })
    }

    /// Takes a large matcher. What it does not find is new.
    fn settle(&mut self, large: Arc<Matcher>) {
        for term in self.terms.values_mut() {
            term.is_in_large = false;
        }
        for term in large.terms() {
            self.terms.entry(Arc::clone(term)).or_default().is_in_large = true;
        }
        self.terms.retain(|_, term| term.is_in_large || term.users > 0);
        self.new = self.terms.values().filter(|term| !term.is_in_large).count();
        self.gone = self.terms.values().filter(|term| term.users == 0).count();
        self.matchers.large = large;
        self.refresh();
    }

    /// Lets the small matcher find the terms that are new.
    fn refresh(&mut self) {
        let new = self.terms.iter().filter(|(_, term)| !term.is_in_large);
        let new: Vec<Arc<str>> = new.map(|(term, _)| Arc::clone(term)).collect();
        self.matchers.small = (!new.is_empty()).then(|| Arc::new(Matcher::new(new)));
        self.is_changed = false;
    }
}
