//! The features of what was learned, and how telling each is.

use std::{
    cmp::Reverse,
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use xxhash_rust::xxh3::xxh3_64;

use super::{
    arithmetic::{ln, number},
    features::{Block, Feature, Features},
};

/// Most features of a vocabulary.
pub(super) const MAX_ROWS: usize = 1 << 17;

/// Takes a feature's hash for its own.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64(bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A map by features' hashes.
pub(super) type ByFeature<V> = HashMap<u64, V, BuildHasherDefault<Hashed>>;

/// A phrase as a vector: rows of the vocabulary, within a block in the order of their features, with their values.
pub(super) type Vector = Vec<(u32, f32)>;

/// How many phrases have a feature, and the place of the first.
struct Counted {
    phrases: usize,
    place: usize,
}

/// What is known of features.
#[derive(Debug, Clone, Default)]
pub(super) struct Vocabulary {
    rows: ByFeature<u32>,
    /// Inverse document frequency of each row.
    rarity: Vec<f32>,
    /// That of a feature no phrase has.
    unseen: f32,
}

impl Vocabulary {
    /// That of some phrases, whatever their order: of so many features at most, those of the most phrases.
    pub(super) fn of<'f>(phrases: impl ExactSizeIterator<Item = &'f Features>, most_rows: usize) -> Self {
        let all = number(phrases.len());
        let mut counts: ByFeature<Counted> = ByFeature::default();
        for (place, features) in phrases.enumerate() {
            for feature in Block::ALL.iter().flat_map(|&block| features.block(block)) {
                let counted = counts
                    .entry(feature.hash)
                    .or_insert(Counted { phrases: 0, place });
                counted.phrases += 1;
            }
        }
        let mut counts: Vec<(u64, Counted)> = counts.into_iter().collect();
        counts.sort_unstable_by_key(|(hash, counted)| (Reverse(counted.phrases), *hash));
        counts.truncate(most_rows);
        // Most features are one phrase's alone. Phrase by phrase, their weights stand beside each other in memory, which is what
        // fitting them takes longest to go through.
        counts.sort_by_key(|(_, counted)| (counted.phrases == 1).then_some(counted.place));
        let rarity = |count: f32| ln((1.0 + all) / (1.0 + count)) + 1.0;
        Self {
            rarity: counts
                .iter()
                .map(|(_, counted)| rarity(number(counted.phrases)))
                .collect(),
            rows: counts
                .into_iter()
                .zip(0..)
                .map(|((hash, _), row)| (hash, row))
                .collect(),
            unseen: rarity(0.0),
        }
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.rarity.len()
    }

    /// The first row that is not the vocabulary's.
    pub(super) fn rows(&self) -> u32 {
        u32::try_from(self.rarity.len()).unwrap_or(u32::MAX)
    }

    /// About how many bytes are held.
    pub(super) fn bytes(&self) -> usize {
        self.rows.capacity() * (size_of::<(u64, u32)>() + 1) + self.rarity.capacity() * size_of::<f32>()
    }

    /// The known features of a phrase, weighed: by how rare they are, to length 1 in each block, then by the block.
    pub(super) fn vector(&self, features: &Features) -> Vector {
        let mut vector = Vector::new();
        for block in Block::ALL {
            let begin = vector.len();
            let known = features.block(block).iter().filter_map(|feature| {
                let row = *self.rows.get(&feature.hash)?;
                Some((row, repeated(*feature) * self.rarity[row as usize]))
            });
            vector.extend(known);
            let values = vector[begin..].iter_mut().map(|(_, value)| value);
            to_length(values, block.weight());
        }
        vector
    }

    /// The words of a phrase and their parts, known or not, weighed and together of length 1: what neighbours are found by.
    pub(super) fn weighed(&self, features: &Features) -> Vec<(u64, f32)> {
        let mut weighed = Vec::new();
        for block in [Block::Words, Block::Characters] {
            let begin = weighed.len();
            weighed.extend(features.block(block).iter().map(|feature| {
                let rarity = self
                    .rows
                    .get(&feature.hash)
                    .map_or(self.unseen, |&row| self.rarity[row as usize]);
                (feature.hash, repeated(*feature) * rarity)
            }));
            let values = weighed[begin..].iter_mut().map(|(_, value)| value);
            to_length(values, std::f32::consts::FRAC_1_SQRT_2);
        }
        weighed
    }
}

/// What a feature counts that is there several times.
fn repeated(feature: Feature) -> f32 {
    if feature.count == 1 {
        1.0
    } else {
        1.0 + ln(f32::from(feature.count))
    }
}

fn to_length<'v>(values: impl Iterator<Item = &'v mut f32>, length: f32) {
    let values: Vec<&mut f32> = values.collect();
    let squares: f32 = values.iter().map(|value| **value * **value).sum();
    if squares > 0.0 {
        let factor = length / squares.sqrt();
        for value in values {
            *value *= factor;
        }
    }
}
