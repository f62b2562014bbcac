//! One rule for rows of an import that disagree, however far apart they are: the first one of a key counts.

use std::{
    collections::{
        HashMap,
        hash_map::{Entry, RandomState},
    },
    hash::BuildHasher as _,
    num::NonZeroU32,
    sync::Arc,
};

use emend_core::ResourceKey;

use super::{Keyed, Row, RowError, Settled};

/// The most bytes of what is kept of a key, 33 with its place in a map: a map that has just grown is filled to seven sixteenths, and the
/// one part that grows is there twice.
const KEPT_BYTES: usize = 80;
/// Parts of the map. Each grows by itself, so that of only one both the old table and the new one are there.
const PARTS: usize = 64;
/// The estimated bytes of what is kept of a text besides itself.
const TEXT_BYTES: usize = 64;
/// The most characters of a value in an error.
const SHOWN_CHARS: usize = 64;

/// What the rows of an import said so far, of each key: where it was said first, and a hash of what. It grows with the keys
/// of an import; whoever reads one bounds it by its [bytes](Self::bytes).
#[derive(Debug)]
pub struct Said {
    /// In the part that the first hash says, by two hashes of the key.
    first: Vec<HashMap<[u64; 2], First>>,
    keys: usize,
    hasher: RandomState,
    texts: Texts,
}

#[derive(Debug, Clone, Copy)]
struct First {
    line: i64,
    /// A hash of the value: of four thousand million rows that disagree one is taken for a repeated one.
    value: u32,
    /// Where the text of the value is, if it was kept.
    text: Option<NonZeroU32>,
}

impl Said {
    /// Nothing so far. Of values at most so many bytes are kept; errors about others show one value of the two.
    pub fn new(text_bytes: usize) -> Self {
        Self {
            first: (0..PARTS).map(|_| HashMap::new()).collect(),
            keys: 0,
            hasher: RandomState::new(),
            texts: Texts {
                places: HashMap::new(),
                all: Vec::new(),
                bytes: 0,
                most: text_bytes,
            },
        }
    }

    /// The estimated bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.keys * KEPT_BYTES + self.texts.bytes
    }

    /// Of rows in their order, those that are the first of their key, and what becomes of the others.
    pub fn settle(&mut self, rows: Vec<Row>) -> Settled {
        let mut settled = Settled::default();
        for row in rows {
            let contest = row.proposal.key.contest_id();
            // How a phrase is written does not matter, what is learned for it does.
            let value = row.proposal.value.candidate_id(contest);
            let value = lower(self.hasher.hash_one(value));
            let hashes = self.hashes(&row.proposal.key);
            match self.first[part(hashes)].entry(hashes) {
                Entry::Vacant(place) => {
                    self.keys += 1;
                    let text = self.texts.keep(shown(&row));
                    place.insert(First {
                        line: row.line,
                        value,
                        text,
                    });
                    settled.rows.push(Keyed { contest, row });
                }
                Entry::Occupied(first) if first.get().value == value => settled.repeated += 1,
                Entry::Occupied(first) => {
                    let First { line, text, .. } = *first.get();
                    let here = shown(&row);
                    let description = match text.and_then(|place| self.texts.at(place)) {
                        Some(there) => format!("disagrees with line {line}: {there:?} there, {here:?} here"),
                        None => format!("disagrees with line {line}: {here:?} here"),
                    };
                    settled.disagreeing.push(RowError {
                        line: row.line,
                        field: "correction".to_owned(),
                        description,
                    });
                }
            }
        }
        settled.rows.sort_by_key(|keyed| keyed.contest);
        settled
    }

    fn hashes(&self, key: &ResourceKey) -> [u64; 2] {
        [0_u8, 1].map(|number| self.hasher.hash_one((number, key)))
    }
}

/// The part of the map in which a key is.
fn part([first, _]: [u64; 2]) -> usize {
    usize::from(first.to_le_bytes()[0]) % PARTS
}

/// The lower half of a hash.
fn lower(hash: u64) -> u32 {
    let [a, b, c, d, ..] = hash.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// What distinguishes a row's value from others of its key, shortened.
fn shown(row: &Row) -> String {
    let fields = row.proposal.value.learned.fields().into_iter();
    let texts = fields.filter(|field| field.distinguishes && !field.text.is_empty());
    let texts: Vec<_> = texts.map(|field| field.text).collect();
    texts.join(" ").chars().take(SHOWN_CHARS).collect()
}

/// Texts, each once: many keys have the same.
#[derive(Debug)]
struct Texts {
    places: HashMap<Arc<str>, NonZeroU32>,
    all: Vec<Arc<str>>,
    bytes: usize,
    most: usize,
}

impl Texts {
    /// The place of a text, from 1; none if there is no more room.
    fn keep(&mut self, text: String) -> Option<NonZeroU32> {
        if let Some(place) = self.places.get(text.as_str()) {
            return Some(*place);
        }
        let bytes = TEXT_BYTES + text.len();
        if self.bytes.saturating_add(bytes) > self.most {
            return None;
        }
        let place = NonZeroU32::new(u32::try_from(self.all.len() + 1).ok()?)?;
        self.bytes += bytes;
        let text: Arc<str> = text.into();
        self.places.insert(Arc::clone(&text), place);
        self.all.push(text);
        Some(place)
    }

    fn at(&self, place: NonZeroU32) -> Option<&str> {
        let place = usize::try_from(place.get()).ok()?.checked_sub(1)?;
        self.all.get(place).map(|text| &**text)
    }
}

#[cfg(test)]
mod tests {
    use emend_core::{Correction, Namespace};

    use super::*;

    fn row(line: i64, phrase: &str, verb: &str) -> Row {
        let correction = Correction::parse_phrase_mapping(phrase, verb).unwrap();
        let namespace = Namespace::parse("default").unwrap();
        Row {
            line,
            proposal: correction.effects(&namespace, None).remove(0),
        }
    }

    #[test]
    fn the_first_row_of_a_key_counts_in_whichever_part_the_others_are() {
        let mut said = Said::new(usize::MAX);
        let first = said.settle(vec![row(1, "P", "a"), row(2, "q", "x"), row(3, " p ", "b")]);
        assert_eq!(
            (first.rows.len(), first.repeated, first.disagreeing.len()),
            (2, 0, 1)
        );
        let next = said.settle(vec![row(4, "p", "a"), row(5, "Q", "y"), row(6, "r", "x")]);
        assert_eq!((next.rows.len(), next.repeated), (1, 1));
        let [error] = &next.disagreeing[..] else {
            panic!("{:?}", next.disagreeing)
        };
        assert_eq!((error.line, &*error.field), (5, "correction"));
        assert_eq!(
            error.description,
            "disagrees with line 2: \"x\" there, \"y\" here"
        );
    }

    #[test]
    fn a_million_keys_of_as_many_values_fit_in_what_an_import_may_take_by_default() {
        const DEFAULT: usize = 128 << 20;
        const KEYS: usize = 1_000_000;
        const { assert!(KEYS * KEPT_BYTES + DEFAULT / 8 <= DEFAULT / 4 * 3) };
        // A place has one byte besides its entry.
        let place = size_of::<([u64; 2], First)>() + 1;
        for keys in [KEYS, PARTS * 14_337] {
            let map: HashMap<[u64; 2], First> = HashMap::with_capacity(keys / PARTS);
            let places = (map.capacity() * 8 / 7).next_power_of_two();
            let taken = place * places * (PARTS + 1);
            assert!(taken <= keys * KEPT_BYTES, "{keys} keys take {taken} bytes");
        }
    }

    #[test]
    fn what_is_kept_grows_with_keys_alone_and_texts_have_a_bound() {
        let mut said = Said::new(200);
        let one = |line: i64| row(line, &format!("p {line}"), &format!("verb_{line}"));
        said.settle((1..=100).map(one).collect());
        let bytes = said.bytes();
        assert!(
            (100 * KEPT_BYTES..=100 * KEPT_BYTES + 200).contains(&bytes),
            "{bytes}"
        );
        let settled = said.settle(vec![row(101, "p 1", "other"), row(102, "p 99", "other")]);
        let errors: Vec<&str> = settled
            .disagreeing
            .iter()
            .map(|error| &*error.description)
            .collect();
        let expected = [
            "disagrees with line 1: \"verb_1\" there, \"other\" here",
            "disagrees with line 99: \"other\" here",
        ];
        assert_eq!(errors, expected);
        assert_eq!(said.bytes(), bytes);
    }
}
