//! The flat table that look-ups read: open addressing over 32-byte slots, two to a cache line, so that a look-up costs one
//! cache miss, and one more for the answer's text where answers are many.
//!
//! A slot holds the 128-bit keyed hash that stands for (namespace, user, phrase), and inline the one answer that most
//! phrases have. What has more (a verb and an entity, or prohibitions) is kept apart and found by its index. Texts of
//! answers are shared: thousands of phrases mean one verb. Collisions are resolved by linear probing, and removals shift
//! back what follows (Knuth, The Art of Computer Programming, vol. 3, 6.4, Algorithm R), so there are no tombstones.
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
    Empty,
    Verb,
    Entity,
    /// More than one thing was learned.
    Many,
}

const EMPTY: Slot = Slot { key: 0, revision: Revision(0), index: 0, form: Form::Empty };

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
    slots: Vec<Slot>,
    len: usize,
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
        Self { indices: HashTable::new(), hash }
    }
}

impl Table {
    /// A table with room for `capacity` phrases.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        // Two thirds full at most then; at least two slots, so that one is always empty.
        let slots = (capacity + capacity / 2).max(2);
        Self { slots: vec![EMPTY; slots], len: 0, texts: Arc::default(), entries: Vec::new(), free: Vec::new() }
    }

    /// How many phrases it holds.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether it is better built anew: too full for short probes, or with too many texts that nothing uses any more.
    pub(crate) fn is_worn(&self, additional: usize) -> bool {
        // Four fifths full: about three slots are looked at for a phrase that is there, thirteen for one that is not.
        let full = (self.len + additional) * 5 > self.slots.len() * 4;
        full || self.texts.len() > 2 * self.len + 1024
    }

    /// What it holds for `key`.
    #[inline]
    pub(crate) fn find(&self, key: u128) -> Option<Found<'_>> {
        self.place(key).ok().and_then(|at| self.found(&self.slots[at]))
    }

    /// Everything, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u128, Found<'_>)> {
        self.slots.iter().filter_map(|slot| Some((slot.key, self.found(slot)?)))
    }

    /// Puts what was learned for `key` in place of what was there. The caller keeps the table from getting full.
    pub(crate) fn put(&mut self, key: u128, entry: &Entry, texts: &mut TextIndex) {
        let (form, answer) = match entry {
            Entry { verb: Some(answer), entity: None, prohibited } if prohibited.is_empty() => {
                (Form::Verb, Some(answer))
            }
            Entry { verb: None, entity: Some(answer), prohibited } if prohibited.is_empty() => {
                (Form::Entity, Some(answer))
            }
            _ => (Form::Many, None),
        };
        let (index, revision) = match answer {
            Some(Answer { value, revision }) => (self.text(value, texts), *revision),
            None => (self.keep(entry.clone()), Revision(0)),
        };
        let slot = Slot { key, revision, index, form };
        match self.place(key) {
            Ok(at) => {
                self.release(at);
                self.slots[at] = slot;
            }
            Err(at) => {
                self.slots[at] = slot;
                self.len += 1;
            }
        }
    }

    /// Takes out what was learned for `key`.
    pub(crate) fn remove(&mut self, key: u128) {
        let Ok(mut hole) = self.place(key) else { return };
        self.release(hole);
        self.len -= 1;
        let count = self.slots.len();
        let mut at = hole;
        loop {
            at = (at + 1) % count;
            let slot = self.slots[at];
            if slot.form == Form::Empty {
                break;
            }
            // A slot may move back into the hole unless its home lies behind the hole.
            let from_home = |place: usize| (place + count - self.home(slot.key)) % count;
            if from_home(hole) < from_home(at) {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = EMPTY;
    }

    /// Where `key` is, or the empty place where it would go.
    #[inline]
    fn place(&self, key: u128) -> Result<usize, usize> {
        let mut at = self.home(key);
        loop {
            let slot = &self.slots[at];
            if slot.form == Form::Empty {
                return Err(at);
            }
            if slot.key == key {
                return Ok(at);
            }
            at += 1;
            if at == self.slots.len() {
                at = 0;
            }
        }
    }

    /// Where the search for `key` begins. Scales the hash instead of masking it, so that a table can have any size
    /// (Lemire, "Fast Random Integer Generation in an Interval", 2019).
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half of the hash; the product's high half is below the length")]
    fn home(&self, key: u128) -> usize {
        ((u128::from(key as u64) * self.slots.len() as u128) >> 64) as usize
    }

    #[inline]
    fn found(&self, slot: &Slot) -> Option<Found<'_>> {
        let text = || &*self.texts[slot.index as usize];
        match slot.form {
            Form::Empty => None,
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

    fn release(&mut self, at: usize) {
        let Slot { form, index, .. } = self.slots[at];
        if form == Form::Many {
            self.entries[index as usize] = None;
            self.free.push(index);
        }
    }
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
            // Few distinct keys and homes, so that probes run into each other and around the end.
            steps in proptest::collection::vec(
                (0u64..40, 0u8..8, proptest::option::of((
                    proptest::option::of(0u8..5),
                    proptest::option::of(0u8..5),
                    proptest::collection::vec(0u8..4, 0..3),
                ))),
                1..200,
            ),
        ) {
            let mut table = Table::with_capacity(40);
            let mut texts = texts();
            let mut model: HashMap<u128, Entry> = HashMap::new();
            for (id, home, step) in steps {
                let key = (u128::from(id) << 64) | u128::from(u64::from(home) << 61);
                match step {
                    Some((verb, entity, prohibited)) => {
                        let entry = entry(verb, entity, &prohibited);
                        if entry.is_empty() {
                            continue;
                        }
                        if table.len() < 40 || table.find(key).is_some() {
                            table.put(key, &entry, &mut texts);
                            model.insert(key, entry);
                        }
                    }
                    None => {
                        table.remove(key);
                        model.remove(&key);
                    }
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
    fn a_table_that_gets_full_is_worn() {
        let table = Table::with_capacity(100);
        assert!(!table.is_worn(100));
        assert!(table.is_worn(121));
    }
}
