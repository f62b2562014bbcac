//! The learned phrases whose wording is nearest to a phrase's.

use std::sync::Arc;

use super::vocabulary::{ByFeature, Weighed};

/// Entries of postings that one look-up reads, the rarest features' first.
const MAX_READ: usize = 8_192;
/// In one number: a count of up to that many entries, then the first bits of a feature's hash, then its place in its phrase, of which
/// the longest has 1,700 features.
const COUNT_BITS: u32 = 14;
const PLACE_BITS: u32 = 11;
const HASH_BITS: u32 = u64::BITS - COUNT_BITS - PLACE_BITS;
/// Similarities that are passed over together where none of them is high enough.
const TOGETHER: usize = 64;

/// A phrase and what it means.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Learned {
    pub(super) phrase: Arc<str>,
    pub(super) choice: Arc<str>,
}

/// A phrase that has a feature, and what the feature is worth in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posting {
    learned: u32,
    value: f32,
}

/// The phrases that have a feature of a phrase, and what it is worth there.
struct Found<'p> {
    value: f32,
    /// Read when it is found: those of all features are far apart in memory, and are so waited for together.
    first: Posting,
    rest: &'p [Posting],
}

/// The phrases that have a feature.
pub(super) trait Postings {
    /// Those of one, in the order of their places.
    fn of(&self, feature: &Weighed) -> &[Posting];

    /// About how many bytes are held.
    fn bytes(&self) -> usize;
}

/// Of whatever features, and phrases can be added.
#[derive(Debug, Clone, Default)]
pub(super) struct ByHash(ByFeature<Vec<Posting>>);

/// Of the features that a vocabulary knows, without gaps.
#[derive(Debug, Clone, Default)]
pub(super) struct ByNumber {
    /// Where each feature's begin, and where the last one's end.
    begins: Vec<u32>,
    postings: Vec<Posting>,
}

/// Learned phrases by their features.
#[derive(Debug, Clone, Default)]
pub(super) struct Neighbours<P> {
    learned: Vec<Learned>,
    postings: P,
}

impl Postings for ByHash {
    fn of(&self, feature: &Weighed) -> &[Posting] {
        self.0.get(&feature.hash).map_or(&[], Vec::as_slice)
    }

    fn bytes(&self) -> usize {
        let postings: usize = self.0.values().map(Vec::capacity).sum();
        postings * size_of::<Posting>() + self.0.capacity() * (size_of::<(u64, Vec<Posting>)>() + 1)
    }
}

impl Postings for ByNumber {
    fn of(&self, feature: &Weighed) -> &[Posting] {
        let begin = feature.number.map(|number| number as usize);
        let range = begin.and_then(|begin| Some(*self.begins.get(begin)?..*self.begins.get(begin + 1)?));
        range.map_or(&[], |range| {
            &self.postings[range.start as usize..range.end as usize]
        })
    }

    fn bytes(&self) -> usize {
        self.postings.capacity() * size_of::<Posting>() + self.begins.capacity() * size_of::<u32>()
    }
}

impl Neighbours<ByHash> {
    /// Adds a phrase with its weighed features.
    pub(super) fn add(&mut self, learned: Learned, weighed: &[Weighed]) {
        let Ok(at) = u32::try_from(self.learned.len()) else {
            return;
        };
        for &Weighed { hash, value, .. } in weighed {
            let postings = self.postings.0.entry(hash).or_default();
            postings.push(Posting { learned: at, value });
        }
        self.learned.push(learned);
    }
}

impl Neighbours<ByNumber> {
    /// Phrases with the weighed features of each, whose numbers are below `features`.
    pub(super) fn new(
        learned: Vec<Learned>,
        features: usize,
        weighed: impl IntoIterator<Item = Vec<Weighed>>,
    ) -> Self {
        let mut by_number: Vec<Vec<Posting>> = vec![Vec::new(); features];
        for (learned, weighed) in (0..).zip(weighed) {
            for Weighed { number, value, .. } in weighed {
                if let Some(number) = number {
                    by_number[number as usize].push(Posting { learned, value });
                }
            }
        }
        let mut postings = Vec::with_capacity(by_number.iter().map(Vec::len).sum());
        let mut begins = Vec::with_capacity(features + 1);
        for of_one in by_number {
            begins.push(u32::try_from(postings.len()).unwrap_or(u32::MAX));
            postings.extend(of_one);
        }
        begins.push(u32::try_from(postings.len()).unwrap_or(u32::MAX));
        Self {
            learned,
            postings: ByNumber { begins, postings },
        }
    }
}

/// By what features are sorted: how many phrases have them, then their hashes.
fn rank(count: usize, hash: u64, place: usize) -> u64 {
    let first_bits = hash >> (u64::BITS - HASH_BITS);
    (count as u64) << (HASH_BITS + PLACE_BITS) | first_bits << PLACE_BITS | place as u64
}

/// The place of what has a rank.
fn place(rank: u64) -> usize {
    (rank & ((1 << PLACE_BITS) - 1)) as usize
}

impl<P: Postings> Neighbours<P> {
    /// The phrases, in the order in which they were added.
    pub(super) fn learned(&self) -> &[Learned] {
        &self.learned
    }

    /// How similar each phrase is, 0 to 1: the cosine over the features that are read.
    pub(super) fn similarities(&self, weighed: &[Weighed]) -> Vec<f32> {
        let mut similarities = vec![0.0; self.learned.len()];
        if similarities.is_empty() {
            return similarities;
        }
        let mut found = Vec::with_capacity(weighed.len());
        let mut order = Vec::with_capacity(weighed.len());
        for feature in weighed.iter().take(1 << PLACE_BITS) {
            let [first, rest @ ..] = self.postings.of(feature) else {
                continue;
            };
            let count = 1 + rest.len();
            if count <= MAX_READ {
                order.push(rank(count, feature.hash, found.len()));
                found.push(Found {
                    value: feature.value,
                    first: *first,
                    rest,
                });
            }
        }
        order.sort_unstable();
        let mut read = 0;
        for rank in order {
            let Found { value, first, rest } = &found[place(rank)];
            read += 1 + rest.len();
            if read > MAX_READ {
                break;
            }
            similarities[first.learned as usize] += value * first.value;
            for posting in *rest {
                similarities[posting.learned as usize] += value * posting.value;
            }
        }
        similarities
    }

    /// Up to `count` of the nearest phrases that `counts` accepts, the nearest first, of equals in the order of phrases.
    pub(super) fn nearest(
        &self,
        similarities: &[f32],
        count: usize,
        counts: impl Fn(usize, &Learned) -> bool,
    ) -> Vec<(usize, f32)> {
        let mut nearest = Nearest::new(&self.learned, count);
        for (first, together) in (0..).step_by(TOGETHER).zip(similarities.chunks(TOGETHER)) {
            let least = nearest.least();
            // All are compared, whatever the first ones are: that is done several at a time.
            let mut is_any_high_enough = false;
            for &similarity in together {
                is_any_high_enough |= similarity >= least;
            }
            if !is_any_high_enough {
                continue;
            }
            for (at, &similarity) in (first..).zip(together) {
                nearest.offer(at, similarity, &counts);
            }
        }
        nearest.found
    }

    /// The same among the phrases of these places.
    pub(super) fn nearest_among(
        &self,
        places: &[u32],
        similarities: &[f32],
        count: usize,
        counts: impl Fn(usize, &Learned) -> bool,
    ) -> Vec<(usize, f32)> {
        let mut nearest = Nearest::new(&self.learned, count);
        for &at in places {
            nearest.offer(at as usize, similarities[at as usize], &counts);
        }
        nearest.found
    }

    /// About how many bytes are held.
    pub(super) fn bytes(&self) -> usize {
        let texts: usize = self.learned.iter().map(|learned| learned.phrase.len() + 16).sum();
        self.postings.bytes() + self.learned.len() * size_of::<Learned>() + texts
    }
}

/// The nearest phrases of those that were offered.
struct Nearest<'l> {
    learned: &'l [Learned],
    count: usize,
    found: Vec<(usize, f32)>,
}

impl<'l> Nearest<'l> {
    fn new(learned: &'l [Learned], count: usize) -> Self {
        Self {
            learned,
            count,
            found: Vec::with_capacity(count + 1),
        }
    }

    /// How similar a phrase must be to be one of them.
    fn least(&self) -> f32 {
        let last = self.found.get(self.count - 1);
        last.map_or(f32::MIN_POSITIVE, |&(_, similarity)| similarity)
    }

    fn offer(&mut self, at: usize, similarity: f32, counts: impl Fn(usize, &Learned) -> bool) {
        if similarity < self.least() || !counts(at, &self.learned[at]) {
            return;
        }
        let before = self.found.partition_point(|&(other, theirs)| {
            let by_phrase = || self.learned[at].cmp(&self.learned[other]);
            theirs.total_cmp(&similarity).then_with(by_phrase).is_gt()
        });
        self.found.insert(before, (at, similarity));
        self.found.truncate(self.count);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// So many phrases, sorted, none of which has a feature.
    fn neighbours(count: usize) -> Neighbours<ByNumber> {
        let learned = (0..count).map(|number| Learned {
            phrase: format!("{number:04}").into(),
            choice: "any".into(),
        });
        Neighbours::new(learned.collect(), 0, [])
    }

    proptest! {
        /// What is passed over together is never one of the nearest, whatever is equal and whatever counts.
        #[test]
        fn the_nearest_are_those_that_sorting_all_would_give(
            similarities in proptest::collection::vec(prop_oneof![Just(0.0_f32), Just(0.5), 0.0_f32..1.0], 0..400),
            count in 1_usize..4,
            every in 1_usize..5,
        ) {
            let neighbours = neighbours(similarities.len());
            let counts = |at: usize, _: &Learned| at.is_multiple_of(every);
            let mut all: Vec<(usize, f32)> = similarities.iter().copied().enumerate().collect();
            all.retain(|&(at, similarity)| similarity > 0.0 && at.is_multiple_of(every));
            // Stable, and phrases are in the order of their places.
            all.sort_by(|(_, one), (_, other)| other.total_cmp(one));
            all.truncate(count);
            prop_assert_eq!(&neighbours.nearest(&similarities, count, counts), &all);
            let places: Vec<u32> = (0..).take(similarities.len()).collect();
            prop_assert_eq!(&neighbours.nearest_among(&places, &similarities, count, counts), &all);
        }
    }

    #[test]
    fn the_rarest_features_are_read_first_until_enough_is_read() {
        let feature = |number: u32, value| Weighed {
            hash: u64::from(number) << 40,
            number: Some(number),
            value,
        };
        // How similar the first phrase is, which has all features, says which were read: one bit each.
        let read = |counts: &[usize]| {
            let weighed = (0..10_000).map(|phrase| {
                let has = (0..).zip(counts).filter(|&(_, &count)| phrase < count);
                has.map(|(number, _)| feature(number, 1.0)).collect()
            });
            let learned = neighbours(10_000).learned;
            let neighbours = Neighbours::new(learned, counts.len(), weighed);
            let asked = (0..3_u32).map(|number| feature(number, [1.0, 2.0, 4.0][number as usize]));
            neighbours
                .similarities(&asked.collect::<Vec<_>>())
                .first()
                .copied()
        };
        assert_eq!(read(&[5_000, 10, 3_000]), Some(7.0), "8,010 are read");
        assert_eq!(
            read(&[5_000, 183, 3_010]),
            Some(6.0),
            "8,193 are too many, and the commonest is left"
        );
        assert_eq!(
            read(&[4_096, 4_096, 4_096]),
            Some(3.0),
            "equals are read by their hashes"
        );
        assert_eq!(read(&[8_192]), Some(1.0));
        assert_eq!(
            read(&[8_193, 1]),
            Some(2.0),
            "one that is too common by itself is passed over"
        );
    }

    #[test]
    fn postings_by_number_are_those_by_hash() {
        let feature = |number: u32, value| Weighed {
            hash: u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            number: Some(number),
            value,
        };
        let learned = |phrase: &str| Learned {
            phrase: phrase.into(),
            choice: "any".into(),
        };
        let phrases = [
            ("a", vec![feature(0, 0.5), feature(3, 0.25)]),
            ("b", vec![]),
            ("c", vec![feature(3, 1.0)]),
        ];
        let mut by_hash = Neighbours::default();
        for (phrase, weighed) in &phrases {
            by_hash.add(learned(phrase), weighed);
        }
        let weighed = phrases.iter().map(|(_, weighed)| weighed.clone());
        let by_number = Neighbours::new(
            phrases.iter().map(|(phrase, _)| learned(phrase)).collect(),
            4,
            weighed,
        );
        let unknown = Weighed {
            hash: 1,
            number: None,
            value: 1.0,
        };
        let asked = [feature(3, 0.5), unknown, feature(0, 1.0), feature(2, 1.0)];
        assert_eq!(by_number.similarities(&asked), [0.625, 0.0, 0.5]);
        assert_eq!(by_hash.similarities(&asked), by_number.similarities(&asked));
    }
}
