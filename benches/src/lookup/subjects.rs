//! The subjects of the measurement: a node's view, and the obvious alternatives.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex, RwLock},
};

use arc_swap::ArcSwap;
use emend_client::{
    LearnedView, LookupKey, Reading,
    view::{Fact, Publisher},
};
use emend_core::{Kind, Learned, Namespace, NormalizedKey, ResourceValue, Revision};

/// The only search application.
pub(crate) const NAMESPACE: &str = "fund-admin";

/// A map that can be queried and updated.
pub(super) trait Subject: Sync {
    /// A look-up function for one thread. Returns the length of the answer and its revision, so that both are read;
    /// `None` if not learned.
    fn asker(&self) -> impl FnMut(&NormalizedKey) -> Option<(usize, i64)>;
    /// Applies one update.
    fn update(&self, changes: &[Change], revision: i64);
}

pub(super) struct Answer {
    pub(super) value: String,
    pub(super) revision: i64,
}

pub(super) struct View {
    pub(super) learned: LearnedView,
    pub(super) namespace: Namespace,
    pub(super) publisher: Mutex<Publisher>,
}

/// Loads the current state for each look-up.
pub(super) struct ByView<'a>(pub(super) &'a View);

/// Uses one reader per thread.
pub(super) struct ByReader<'a>(pub(super) &'a View);

impl View {
    fn ask(&self, reading: &Reading<'_>, phrase: &NormalizedKey) -> Option<(usize, i64)> {
        let key = LookupKey {
            namespace: &self.namespace,
            phrase,
        };
        let found = reading.lookup(key, Kind::InvocationPhrase, None).found()?;
        Some((found.value.len(), found.revision.0))
    }
}

impl Subject for ByView<'_> {
    fn asker(&self) -> impl FnMut(&NormalizedKey) -> Option<(usize, i64)> {
        |phrase| self.0.ask(&self.0.learned.read(), phrase)
    }

    fn update(&self, changes: &[Change], revision: i64) {
        self.0.update(changes, revision);
    }
}

impl Subject for ByReader<'_> {
    fn asker(&self) -> impl FnMut(&NormalizedKey) -> Option<(usize, i64)> {
        let mut reader = self.0.learned.reader();
        move |phrase| self.0.ask(&reader.read(), phrase)
    }

    fn update(&self, changes: &[Change], revision: i64) {
        self.0.update(changes, revision);
    }
}

impl View {
    fn update(&self, changes: &[Change], revision: i64) {
        let facts = changes
            .iter()
            .map(|change| fact(&change.phrase, Cow::Borrowed(&change.value), revision));
        if let Ok(mut publisher) = self.publisher.lock() {
            publisher.apply(facts, Revision(revision));
        }
    }
}

pub(super) struct Locked(pub(super) RwLock<HashMap<String, Answer>>);

impl Subject for Locked {
    fn asker(&self) -> impl FnMut(&NormalizedKey) -> Option<(usize, i64)> {
        |phrase| {
            let map = self.0.read().ok()?;
            let found = map.get(phrase.as_str())?;
            Some((found.value.len(), found.revision))
        }
    }

    fn update(&self, changes: &[Change], revision: i64) {
        if let Ok(mut map) = self.0.write() {
            for change in changes {
                let value = change.verb.clone();
                map.insert(change.phrase.clone(), Answer { value, revision });
            }
        }
    }
}

pub(super) struct Persistent(pub(super) ArcSwap<imbl::HashMap<String, Arc<Answer>>>);

impl Subject for Persistent {
    fn asker(&self) -> impl FnMut(&NormalizedKey) -> Option<(usize, i64)> {
        |phrase| {
            let map = self.0.load();
            let found = map.get(phrase.as_str())?;
            Some((found.value.len(), found.revision))
        }
    }

    fn update(&self, changes: &[Change], revision: i64) {
        let mut map = imbl::HashMap::clone(&self.0.load());
        for change in changes {
            let value = change.verb.clone();
            map.insert(change.phrase.clone(), Arc::new(Answer { value, revision }));
        }
        self.0.store(Arc::new(map));
    }
}

/// What a phrase is to map to from now on, in the form in which each subject is given it.
pub(super) struct Change {
    phrase: String,
    verb: String,
    value: ResourceValue,
}

impl Change {
    pub(super) fn new(phrase: &str, verb: String) -> Self {
        Self {
            phrase: phrase.to_owned(),
            value: ResourceValue::of(Learned::Verb(verb.clone())),
            verb,
        }
    }
}

/// A fact that maps a phrase to a verb.
pub(crate) fn fact<'a>(phrase: &'a str, value: Cow<'a, ResourceValue>, revision: i64) -> Fact<'a> {
    Fact {
        namespace: NAMESPACE,
        kind: Kind::InvocationPhrase,
        key: phrase,
        qualifier: "",
        user_id: "",
        revision: Revision(revision),
        value: Some(value),
    }
}
