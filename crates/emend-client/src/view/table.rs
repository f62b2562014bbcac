//! The flat table that look-ups read: 32-byte slots, two to a cache line, beside one byte of each slot's hash.
//!
//! A slot holds the 128-bit keyed hash that stands for (namespace, user, phrase), and inline the one answer that most
//! phrases have. What has more (a verb and an entity, or prohibitions) is kept apart and found by its index. Texts of
//! answers are shared: thousands of phrases mean one verb. So a look-up goes to memory once, for the slot; for a phrase that
//! was not learned, as most are, the bytes tell, and those mostly stay in the processor's cache. (Plain linear probing goes
//! to memory less often for what is there, but measured a third slower: whether a probe ends at its first slot cannot be
//! predicted, and a wrong guess throws away the look-ups that were begun behind it.)
//!
//! It must know nothing of updates, nor of who reads.

use std::sync::Arc;

use emend_core::{Kind, Revision};
use hashbrown::HashTable;

use super::entry::{Answer, Entry};
use crate::keyed_hash::KeyedHash;

/// One place in the table.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
struct Slot {
    /// Stands for (namespace, user, phrase).
    key: u128,
    /// Of the inline answer.
    revision: Revision,
    /// Index of the inline answer's text in `texts`, or of the entry in `entries`.
    index: u32,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Verb,
    Entity,
    /// More than one thing was learned.
    Many,
}

/// What a table holds for one phrase.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Found<'a> {
    /// One answer of that kind and nothing else.
    One(Kind, &'a str, Revision),
    /// All of this.
    Many(&'a Entry),
}

impl<'a> Found<'a> {
    /// The answer of that kind.
    #[inline]
    pub(crate) fn answer(self, kind: Kind) -> Option<(&'a str, Revision)> {
        match self {
            Self::One(of, value, revision) => (of == kind).then_some((value, revision)),
            Self::Many(entry) => entry.answer(kind).map(|answer| (&*answer.value, answer.revision)),
        }
    }

    /// The choices never to be offered, sorted.
    #[inline]
    pub(crate) fn prohibited(self) -> &'a [Arc<str>] {
        match self {
            Self::One(..) => &[],
            Self::Many(entry) => &entry.prohibited,
        }
    }

    /// The same as an entry of its own.
    pub(crate) fn to_entry(self) -> Entry {
        match self {
            Self::One(kind, value, revision) => {
                let mut entry = Entry::default();
                entry.learn(kind, value, revision);
                entry
            }
            Self::Many(entry) => entry.clone(),
        }
    }
}

/// A flat table. Cloning copies the slots and shares the texts.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    slots: HashTable<Slot>,
    texts: Arc<Vec<Arc<str>>>,
    entries: Vec<Option<Entry>>,
    /// Indices in `entries` that are free again.
    free: Vec<u32>,
}

/// Finds the index of a text; kept by whoever changes tables, apart from what readers touch.
#[derive(Debug)]
pub(crate) struct TextIndex {
    indices: HashTable<u32>,
    hash: Arc<KeyedHash>,
}

impl TextIndex {
    /// Knows no text yet: the index of an empty table.
    pub(crate) fn new(hash: Arc<KeyedHash>) -> Self {
        Self {
            indices: HashTable::new(),
            hash,
        }
    }
}

impl Table {
    /// A table with room for `capacity` phrases before it has to grow.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            slots: HashTable::with_capacity(capacity),
            texts: Arc::default(),
            entries: Vec::new(),
            free: Vec::new(),
        }
    }

    /// How many phrases it holds.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether it is better built anew, because it keeps too many texts that nothing uses any more.
    pub(crate) fn is_worn(&self) -> bool {
        self.texts.len() > 2 * self.slots.len() + 1024
    }

    /// What it holds for `key`.
    #[inline]
    pub(crate) fn find(&self, key: u128) -> Option<Found<'_>> {
        let slot = self.slots.find(place_of(key), |slot| slot.key == key)?;
        self.found(slot)
    }

    /// Everything, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u128, Found<'_>)> {
        self.slots
            .iter()
            .filter_map(|slot| Some((slot.key, self.found(slot)?)))
    }

    /// Puts what was learned for `key` in place of what was there.
    pub(crate) fn put(&mut self, key: u128, entry: &Entry, texts: &mut TextIndex) {
        let (form, answer) = match entry {
            Entry {
                verb: Some(answer),
                entity: None,
                prohibited,
            } if prohibited.is_empty() => (Form::Verb, Some(answer)),
            Entry {
                verb: None,
                entity: Some(answer),
                prohibited,
            } if prohibited.is_empty() => (Form::Entity, Some(answer)),
            _ => (Form::Many, None),
        };
        let (index, revision) = match answer {
            Some(Answer { value, revision }) => (self.text(value, texts), *revision),
            None => (self.keep(entry.clone()), Revision(0)),
        };
        let slot = Slot {
            key,
            revision,
            index,
            form,
        };
        match self.slots.find_mut(place_of(key), |slot| slot.key == key) {
            Some(known) => {
                let before = std::mem::replace(known, slot);
                self.release(before);
            }
            None => {
                self.slots.insert_unique(place_of(key), slot, |slot| place_of(slot.key));
            }
        }
    }

    /// Takes out what was learned for `key`.
    pub(crate) fn remove(&mut self, key: u128) {
        if let Ok(entry) = self.slots.find_entry(place_of(key), |slot| slot.key == key) {
            let (before, _) = entry.remove();
            self.release(before);
        }
    }

    #[inline]
    fn found(&self, slot: &Slot) -> Option<Found<'_>> {
        let text = || &*self.texts[slot.index as usize];
        match slot.form {
            Form::Verb => Some(Found::One(Kind::InvocationPhrase, text(), slot.revision)),
            Form::Entity => Some(Found::One(Kind::EntityAlias, text(), slot.revision)),
            Form::Many => self.entries[slot.index as usize].as_ref().map(Found::Many),
        }
    }

    fn text(&mut self, value: &Arc<str>, known: &mut TextIndex) -> u32 {
        let TextIndex { indices, hash } = known;
        let hash_of = |text: &str| hash.bytes(text.as_bytes());
        let texts = &self.texts;
        if let Some(&index) = indices.find(hash_of(value), |&index| texts[index as usize] == *value) {
            return index;
        }
        // Copies the list of texts if readers still have it, which a known text does not.
        let texts = Arc::make_mut(&mut self.texts);
        let index = u32::try_from(texts.len()).expect("invariant: not more texts than fit the memory");
        texts.push(Arc::clone(value));
        indices.insert_unique(hash_of(value), index, |&index| hash_of(&texts[index as usize]));
        index
    }

    fn keep(&mut self, entry: Entry) -> u32 {
        if let Some(index) = self.free.pop() {
            self.entries[index as usize] = Some(entry);
            return index;
        }
        self.entries.push(Some(entry));
        u32::try_from(self.entries.len() - 1).expect("invariant: not more entries than fit the memory")
    }

    fn release(&mut self, slot: Slot) {
        if slot.form == Form::Many {
            self.entries[slot.index as usize] = None;
            self.free.push(slot.index);
        }
    }
}

/// The half of a key that says where it is; all of it is compared.
#[inline]
pub(crate) fn place_of(key: u128) -> u64 {
    (key >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use emend_runtime::Entropy;
    use proptest::prelude::*;

    use super::*;

    fn texts() -> TextIndex {
        TextIndex::new(Arc::new(KeyedHash::new(&Entropy::seeded(1))))
    }

    fn entry(verb: Option<u8>, entity: Option<u8>, prohibited: &[u8]) -> Entry {
        let mut entry = Entry::default();
        let text = |of: u8| format!("choice-{of}");
        if let Some(verb) = verb {
            entry.learn(Kind::InvocationPhrase, &text(verb), Revision(i64::from(verb)));
        }
        if let Some(entity) = entity {
            entry.learn(Kind::EntityAlias, &text(entity), Revision(i64::from(entity)));
        }
        for &choice in prohibited {
            entry.learn(Kind::Prohibition, &text(choice), Revision(1));
        }
        entry
    }

    proptest! {
        #[test]
        fn a_table_holds_what_a_map_would(
            // Few distinct keys and places, so that they run into each other.
            steps in proptest::collection::vec(
                (0u64..40, 0u8..8, proptest::option::of((
                    proptest::option::of(0u8..5),
                    proptest::option::of(0u8..5),
                    proptest::collection::vec(0u8..4, 0..3),
                ))),
                1..200,
            ),
        ) {
            let mut table = Table::with_capacity(0);
            let mut texts = texts();
            let mut model: HashMap<u128, Entry> = HashMap::new();
            for (id, home, step) in steps {
                let key = (u128::from(home) << 64) | u128::from(id);
                if let Some((verb, entity, prohibited)) = step {
                    let entry = entry(verb, entity, &prohibited);
                    if !entry.is_empty() {
                        table.put(key, &entry, &mut texts);
                        model.insert(key, entry);
                    }
                } else {
                    table.remove(key);
                    model.remove(&key);
                }
                prop_assert_eq!(table.len(), model.len());
                for (key, entry) in &model {
                    prop_assert_eq!(&table.find(*key).expect("is there").to_entry(), entry);
                }
                prop_assert_eq!(table.iter().count(), model.len());
            }
        }
    }

    #[test]
    fn texts_are_shared_and_a_slot_is_half_a_cache_line() {
        let mut table = Table::with_capacity(100);
        let mut texts = texts();
        for key in 0..100 {
            table.put(key << 32, &entry(Some(1), None, &[]), &mut texts);
        }
        assert_eq!(table.texts.len(), 1);
        assert_eq!(size_of::<Slot>(), 32);
    }

    #[test]
    fn a_table_with_many_texts_that_nothing_uses_is_worn() {
        let mut table = Table::with_capacity(1);
        let mut texts = texts();
        for revision in 0..2_000 {
            assert_eq!(table.is_worn(), revision > 1026);
            let mut entry = Entry::default();
            entry.learn(Kind::InvocationPhrase, &format!("verb {revision}"), Revision(revision));
            table.put(7, &entry, &mut texts);
        }
    }
}
