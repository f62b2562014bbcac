//! The flat table that look-ups read: a look-up goes to memory once, for one cache line, and only if the key is nearly
//! certainly there.
//!
//! A line holds four slots. Each has half of its key's 128-bit keyed hash (the other half selected the line) and a word
//! with the single answer that most phrases have, or the single decision about a domain. Entries with more (a verb and an
//! entity, or prohibitions) are stored separately, synonyms apart from the rest. Texts of answers are shared: thousands of phrases mean one verb. The
//! slots of a line are compared without branches, because a mispredicted branch would discard the look-ups begun
//! speculatively behind it, which costs more than the comparisons. What does not fit in a full line goes to the next, and
//! a removal moves it back (Knuth, The Art of Computer Programming, vol. 3, 6.4: linear probing with buckets, Algorithm
//! R), so there are no tombstones.
//!
//! A byte of each slot's key is also kept in an array of its own, which a cache holds where it does not hold the lines. It
//! tells nearly always that a phrase was not learned, as most that people search for: of those about one in a hundred gets
//! to a line.
//!
//! A phrase that was not learned is mistaken for one that was if 63 bits of their hashes and their lines are equal:
//! with a million phrases and 10^12 look-ups a day, by chance about once in ten thousand years.

use std::sync::Arc;

use emend_core::Kind;
use hashbrown::HashTable;
use slab::Slab;

use super::{
    domains,
    entry::{Answer, Entry, Found},
    line::{Line, Marks, SLOTS, Word, halves},
    synonyms::Synonyms,
};
use crate::keyed_hash::KeyedHash;

/// A flat table. Cloning copies the lines and shares the texts.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    lines: Vec<Line>,
    /// Of each line.
    marks: Vec<Marks>,
    /// The upper halves of the keys in the slots; only writes need them.
    places: Vec<[u64; SLOTS]>,
    len: usize,
    texts: Arc<Vec<Arc<str>>>,
    entries: Slab<Entry>,
    /// Of phrases that have nothing else: a search expands many, and reads less of them than of an entry.
    synonyms: Slab<Synonyms>,
}

/// Finds the index of a text. The writer keeps it, apart from the memory that readers touch.
#[derive(Debug)]
pub(crate) struct TextIndex {
    indices: HashTable<u32>,
    hash: Arc<KeyedHash>,
}

impl TextIndex {
    /// The index of an empty table: knows no texts.
    pub(crate) fn new(hash: Arc<KeyedHash>) -> Self {
        Self {
            indices: HashTable::new(),
            hash,
        }
    }
}

impl Table {
    /// A table with room for `capacity` phrases before it needs to be rebuilt.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        // At most half full then: an unknown phrase seldom hits a full line, so its look-up seldom continues to the
        // next. At least two lines, so that they are never all full.
        let lines = (capacity * 2).div_ceil(SLOTS).max(2);
        Self {
            lines: vec![Line::default(); lines],
            marks: vec![Marks::default(); lines],
            places: vec![[0; SLOTS]; lines],
            len: 0,
            texts: Arc::default(),
            entries: Slab::new(),
            synonyms: Slab::new(),
        }
    }

    /// How many phrases it holds.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether to rebuild the table before putting in `additional` phrases: it would be too full (beyond three quarters
    /// many lines overflow), or it has too many unused texts.
    pub(crate) fn needs_rebuild(&self, additional: usize) -> bool {
        (self.len + additional) * 4 > self.lines.len() * SLOTS * 3 || self.texts.len() > 2 * self.len + 1024
    }

    /// What it holds for `key`.
    #[inline]
    pub(crate) fn find(&self, key: u128) -> Option<Found<'_>> {
        let (place, tag) = halves(key);
        let mark = Marks::of(tag);
        let mut at = self.home(place);
        loop {
            let marks = self.marks[at];
            if marks.have(mark) {
                let line = &self.lines[at];
                if let Some(slot) = line.slot_of(tag) {
                    return self.found(line.words[slot]);
                }
            }
            if !marks.are_full() {
                return None;
            }
            at = self.next(at);
        }
    }

    /// Everything, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u128, Found<'_>)> {
        self.lines
            .iter()
            .zip(&self.places)
            .flat_map(move |(line, places)| {
                let slots = line.tags.iter().zip(places).zip(&line.words);
                slots
                    .filter(|((tag, _), _)| **tag != 0)
                    .filter_map(move |((tag, place), word)| {
                        Some((u128::from(*place) << 64 | u128::from(*tag), self.found(*word)?))
                    })
            })
    }

    /// Replaces what is stored for `key`. The caller must not put into a table that needs to be rebuilt.
    pub(crate) fn put(&mut self, key: u128, entry: &Entry, texts: &mut TextIndex) {
        let (place, tag) = halves(key);
        let word = self.word(entry, texts);
        let mut at = self.home(place);
        loop {
            let line = &mut self.lines[at];
            if let Some(slot) = line.slot_of(tag) {
                let before = std::mem::replace(&mut line.words[slot], word);
                return self.release(before);
            }
            if let Some(slot) = line.slot_of(0) {
                line.tags[slot] = tag;
                line.words[slot] = word;
                self.marks[at].set(slot, Marks::of(tag));
                self.places[at][slot] = place;
                self.len += 1;
                return;
            }
            at = self.next(at);
        }
    }

    /// Removes what is stored for `key`.
    pub(crate) fn remove(&mut self, key: u128) {
        let (place, tag) = halves(key);
        let mut at = self.home(place);
        let slot = loop {
            let line = &self.lines[at];
            if let Some(slot) = line.slot_of(tag) {
                break slot;
            }
            if !line.is_full() {
                return;
            }
            at = self.next(at);
        };
        self.len -= 1;
        self.release(self.lines[at].words[slot]);
        self.fill_gap(at, slot);
    }

    /// Empties a slot. If its line was full, others may have overflowed to the next: moves one back, and so on.
    fn fill_gap(&mut self, mut gap: usize, mut slot: usize) {
        loop {
            let was_full = self.lines[gap].is_full();
            self.lines[gap].tags[slot] = 0;
            self.marks[gap].set(slot, 0);
            if !was_full {
                return;
            }
            let mut from = self.next(gap);
            let moved = loop {
                let moved = (0..SLOTS).find(|other| {
                    let home = self.home(self.places[from][*other]);
                    self.lines[from].tags[*other] != 0 && self.distance(home, gap) < self.distance(home, from)
                });
                if moved.is_some() || !self.lines[from].is_full() {
                    break moved;
                }
                from = self.next(from);
            };
            let Some(other) = moved else { return };
            let tag = self.lines[from].tags[other];
            self.lines[gap].tags[slot] = tag;
            self.marks[gap].set(slot, Marks::of(tag));
            self.lines[gap].words[slot] = self.lines[from].words[other];
            self.places[gap][slot] = self.places[from][other];
            (gap, slot) = (from, other);
        }
    }

    /// The line where a search begins. Scales the hash instead of masking it, so that a table can have any size
    /// (Lemire, "Fast Random Integer Generation in an Interval", 2019).
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "below the number of lines")]
    fn home(&self, place: u64) -> usize {
        ((u128::from(place) * self.lines.len() as u128) >> 64) as usize
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        if at + 1 == self.lines.len() { 0 } else { at + 1 }
    }

    /// How many lines after `home` the line `at` is.
    fn distance(&self, home: usize, at: usize) -> usize {
        if at >= home {
            at - home
        } else {
            at + self.lines.len() - home
        }
    }

    #[inline]
    fn found(&self, word: Word) -> Option<Found<'_>> {
        let one = |kind| Some(Found::One(kind, &self.texts[word.text()], word.revision()));
        match word.form() {
            Word::VERB => one(Kind::InvocationPhrase),
            Word::ENTITY => one(Kind::EntityAlias),
            Word::DOMAIN => domains::unpacked(word.text(), word.revision()).map(Found::Domain),
            _ if word.has_synonyms() => self.synonyms.get(word.entry()).map(Found::Synonyms),
            _ => self.entries.get(word.entry()).map(Found::Many),
        }
    }

    fn word(&mut self, entry: &Entry, texts: &mut TextIndex) -> Word {
        let one = match entry {
            Entry {
                verb: Some(answer),
                entity: None,
                prohibited,
                synonyms: None,
                domains: None,
                outputs: None,
                claim: None,
                edge: None,
                tuning: None,
                near: None,
            } if prohibited.is_empty() => self.answer_word(Word::VERB, answer, texts),
            Entry {
                verb: None,
                entity: Some(answer),
                prohibited,
                synonyms: None,
                domains: None,
                outputs: None,
                claim: None,
                edge: None,
                tuning: None,
                near: None,
            } if prohibited.is_empty() => self.answer_word(Word::ENTITY, answer, texts),
            Entry {
                verb: None,
                entity: None,
                prohibited,
                synonyms: None,
                domains: Some(rules),
                outputs: None,
                claim: None,
                edge: None,
                tuning: None,
                near: None,
            } if prohibited.is_empty() => {
                domains::packed(rules).and_then(|(index, revision)| Word::one(Word::DOMAIN, index, revision))
            }
            Entry {
                verb: None,
                entity: None,
                prohibited,
                synonyms: Some(synonyms),
                domains: None,
                outputs: None,
                claim: None,
                edge: None,
                tuning: None,
                near: None,
            } if prohibited.is_empty() => {
                Some(Word::synonyms(index(self.synonyms.insert((**synonyms).clone()))))
            }
            _ => None,
        };
        one.unwrap_or_else(|| Word::many(index(self.entries.insert(entry.clone()))))
    }

    fn answer_word(&mut self, form: u64, answer: &Answer, texts: &mut TextIndex) -> Option<Word> {
        Word::one(form, self.text(&answer.value, texts), answer.revision)
    }

    fn text(&mut self, value: &Arc<str>, known: &mut TextIndex) -> u32 {
        let TextIndex { indices, hash } = known;
        let hash_of = |text: &str| hash.bytes(text.as_bytes());
        let texts = &self.texts;
        if let Some(&index) = indices.find(hash_of(value), |&index| texts[index as usize] == *value) {
            return index;
        }
        // Copies the list of texts if readers still hold it. A text that is already known does not get here.
        let texts = Arc::make_mut(&mut self.texts);
        let index = index(texts.len());
        texts.push(Arc::clone(value));
        indices.insert_unique(hash_of(value), index, |&index| hash_of(&texts[index as usize]));
        index
    }

    fn release(&mut self, word: Word) {
        match (word.form(), word.has_synonyms()) {
            (Word::MANY, true) => drop(self.synonyms.try_remove(word.entry())),
            (Word::MANY, false) => drop(self.entries.try_remove(word.entry())),
            _ => {}
        }
    }
}

fn index(place: usize) -> u32 {
    u32::try_from(place).expect("invariant: not more entries than fit the memory")
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use emend_base::Entropy;
    use emend_core::{Relation, Revision, Synonym};
    use proptest::prelude::*;

    use super::{
        super::line::{INDEX_BITS, REVISION_BITS},
        *,
    };

    fn texts() -> TextIndex {
        TextIndex::new(Arc::new(KeyedHash::new(&Entropy::seeded(1))))
    }

    fn synonyms(last: u8) -> Synonyms {
        let mut synonyms = Synonyms::default();
        let synonym = Synonym {
            relation: Relation::Equivalent,
            representative: format!("Representative-{last}"),
        };
        for id in 0..=last {
            synonyms.stands_for(&format!("representative-{id}"), &synonym, Revision(1));
        }
        synonyms
    }

    fn entry(verb: Option<u8>, entity: Option<u8>, prohibited: &[u8]) -> Entry {
        let mut entry = Entry::default();
        let text = |number: u8| format!("choice-{number}");
        if let Some(verb) = verb {
            entry.set_answer(Kind::InvocationPhrase, text(verb), Revision(i64::from(verb)));
        }
        if let Some(entity) = entity {
            entry.set_answer(Kind::EntityAlias, text(entity), Revision(i64::from(entity)));
        }
        for &choice in prohibited {
            entry.prohibit(&text(choice));
        }
        entry
    }

    proptest! {
        #[test]
        fn a_table_equals_a_map(
            // Few distinct keys and places, so that they collide.
            steps in proptest::collection::vec(
                (0u64..40, proptest::option::of((
                    proptest::option::of(0u8..5),
                    proptest::option::of(0u8..5),
                    proptest::collection::vec(0u8..4, 0..3),
                    proptest::option::of(0u8..3),
                ))),
                1..200,
            ),
        ) {
            let mut table = Table::with_capacity(32);
            let mut texts = texts();
            let mut model: HashMap<u128, Entry> = HashMap::new();
            for (id, step) in steps {
                // Two by two they have the same mark.
                let key = (u128::from((id % 8) << 61) << 64) | u128::from(((id / 2) << 56) | (2 * id + 1));
                if let Some((verb, entity, prohibited, synonymous)) = step {
                    let mut entry = entry(verb, entity, &prohibited);
                    entry.synonyms = synonymous.map(synonyms).map(Box::new);
                    let fits = table.len() < 48 || table.find(key).is_some();
                    if fits && !entry.is_empty() {
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
    fn texts_are_shared_and_a_line_fills_a_cache_line() {
        let mut table = Table::with_capacity(100);
        let mut texts = texts();
        for key in 0..100 {
            table.put(key << 32, &entry(Some(1), None, &[]), &mut texts);
        }
        assert_eq!(table.texts.len(), 1);
        assert_eq!(size_of::<Line>(), 64);
    }

    #[test]
    fn an_answer_too_large_for_its_slot_is_stored_separately() {
        let mut table = Table::with_capacity(2);
        let mut texts = texts();
        for revision in [i64::MAX, 1 << REVISION_BITS, (1 << REVISION_BITS) - 1, 0, -1] {
            let mut entry = Entry::default();
            entry.set_answer(Kind::InvocationPhrase, "verb", Revision(revision));
            table.put(7, &entry, &mut texts);
            assert_eq!(table.find(7).expect("is there").to_entry(), entry);
        }
        assert!(table.entries.vacant_key() < 2, "freed entries are used again");
        assert_eq!(Word::one(Word::VERB, 1 << INDEX_BITS, Revision(1)), None);
    }

    #[test]
    fn synonyms_alone_are_stored_apart() {
        let mut table = Table::with_capacity(2);
        let mut texts = texts();
        let alone = Entry {
            synonyms: Some(Box::new(synonyms(1))),
            ..Entry::default()
        };
        let mut with_answer = entry(Some(1), None, &[]);
        with_answer.synonyms = Some(Box::new(synonyms(1)));
        for (entry, counts) in [(&alone, (1, 0)), (&with_answer, (0, 1)), (&alone, (1, 0))] {
            table.put(7, entry, &mut texts);
            assert_eq!(&table.find(7).expect("is there").to_entry(), entry);
            assert_eq!((table.synonyms.len(), table.entries.len()), counts);
        }
        table.remove(7);
        assert!(table.synonyms.is_empty());
    }

    #[test]
    fn a_table_that_is_too_full_needs_to_be_rebuilt() {
        let table = Table::with_capacity(100);
        assert!(!table.needs_rebuild(150));
        assert!(table.needs_rebuild(151));
    }

    #[test]
    fn a_table_with_many_unused_texts_needs_to_be_rebuilt() {
        let mut table = Table::with_capacity(1);
        let mut texts = texts();
        for revision in 0..2_000 {
            assert_eq!(table.needs_rebuild(0), revision > 1026);
            let mut entry = Entry::default();
            entry.set_answer(
                Kind::InvocationPhrase,
                format!("verb {revision}"),
                Revision(revision),
            );
            table.put(7, &entry, &mut texts);
        }
    }
}
