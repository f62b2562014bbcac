//! The features of what was learned, and how telling each is.

use std::{
    cmp::Reverse,
    collections::HashMap,
    f32::consts::FRAC_1_SQRT_2,
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

/// How many phrases have a feature, the place of the first, and whether neighbours are found by it.
struct Counted {
    phrases: usize,
    place: usize,
    finds_neighbours: bool,
}

/// What is known of features.
#[derive(Debug, Clone, Default)]
pub(super) struct Vocabulary {
    /// Of every feature that has a row or finds neighbours.
    known: ByFeature<Known>,
    /// How many of them have a row; they are the first ones.
    rows: u32,
    /// What a feature is worth that has no row.
    unseen: f32,
}

/// A feature that phrases have.
#[derive(Debug, Clone, Copy)]
struct Known {
    number: u32,
    /// Inverse document frequency.
    rarity: f32,
}

/// A feature of a phrase beside others of the phrase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Weighed {
    pub(super) hash: u64,
    /// Its number among the vocabulary's features, if it is one.
    pub(super) number: Option<u32>,
    pub(super) value: f32,
}

/// What a vocabulary makes of a phrase.
#[derive(Debug, Clone, Default)]
pub(super) struct Read {
    /// The features that have a row, weighed: by how rare they are, to length 1 in each block, then by the block.
    pub(super) vector: Vector,
    /// The words and their parts, known or not, weighed and together of length 1: what neighbours are found by.
    pub(super) weighed: Vec<Weighed>,
}

impl Vocabulary {
    /// That of some phrases, whatever their order. Of so many features at most, those of the most phrases, have a row.
    pub(super) fn of<'f>(phrases: impl ExactSizeIterator<Item = &'f Features>, most_rows: usize) -> Self {
        let all = number(phrases.len());
        let mut counts: ByFeature<Counted> = ByFeature::default();
        for (place, features) in phrases.enumerate() {
            for block in Block::ALL {
                for feature in features.block(block) {
                    let counted = counts.entry(feature.hash).or_insert(Counted {
                        phrases: 0,
                        place,
                        finds_neighbours: false,
                    });
                    counted.phrases += 1;
                    counted.finds_neighbours |= block.finds_neighbours();
                }
            }
        }
        let mut counts: Vec<(u64, Counted)> = counts.into_iter().collect();
        counts.sort_unstable_by_key(|(hash, counted)| (Reverse(counted.phrases), *hash));
        let rows = counts.len().min(most_rows);
        let mut place = 0..;
        counts.retain(|(_, counted)| {
            place.next().is_some_and(|place| place < rows) || counted.finds_neighbours
        });
        // Most features are one phrase's alone. Phrase by phrase, their weights stand beside each other in memory, which is what
        // fitting them takes longest to go through.
        counts[..rows].sort_by_key(|(_, counted)| (counted.phrases == 1).then_some(counted.place));
        let rarity = |count: f32| ln((1.0 + all) / (1.0 + count)) + 1.0;
        let unseen = rarity(0.0);
        let known = counts.into_iter().zip(0..).map(|((hash, counted), number)| {
            let has_row = (number as usize) < rows;
            let rarity = if has_row {
                rarity(self::number(counted.phrases))
            } else {
                unseen
            };
            (hash, Known { number, rarity })
        });
        Self {
            known: known.collect(),
            rows: u32::try_from(rows).unwrap_or(u32::MAX),
            unseen,
        }
    }

    /// How many features have a number.
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// How many of them have a row, and so the first row that is not the vocabulary's.
    pub(super) fn rows(&self) -> u32 {
        self.rows
    }

    /// About how many bytes are held.
    pub(super) fn bytes(&self) -> usize {
        self.known.capacity() * (size_of::<(u64, Known)>() + 1)
    }

    /// Reads a phrase's features.
    pub(super) fn read(&self, features: &Features) -> Read {
        let count = |of: &dyn Fn(Block) -> bool| {
            let blocks = Block::ALL.iter().filter(|&&block| of(block));
            blocks.map(|&block| features.block(block).len()).sum()
        };
        let mut read = Read {
            vector: Vec::with_capacity(count(&|_| true)),
            weighed: Vec::with_capacity(count(&Block::finds_neighbours)),
        };
        for block in Block::ALL {
            let (begin, begin_weighed) = (read.vector.len(), read.weighed.len());
            for &feature in features.block(block) {
                let known = self.known.get(&feature.hash);
                let repeated = repeated(feature);
                if let Some(known) = known.filter(|known| known.number < self.rows) {
                    read.vector.push((known.number, repeated * known.rarity));
                }
                if block.finds_neighbours() {
                    read.weighed.push(Weighed {
                        hash: feature.hash,
                        number: known.map(|known| known.number),
                        value: repeated * known.map_or(self.unseen, |known| known.rarity),
                    });
                }
            }
            to_length(&mut read.vector[begin..], |(_, value)| value, block.weight());
            to_length(
                &mut read.weighed[begin_weighed..],
                |weighed| &mut weighed.value,
                FRAC_1_SQRT_2,
            );
        }
        read
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

/// Brings the values of these to this length together.
fn to_length<T>(all: &mut [T], value: impl Fn(&mut T) -> &mut f32, length: f32) {
    let squares: f32 = all
        .iter_mut()
        .map(|one| {
            let value = *value(one);
            value * value
        })
        .sum();
    if squares > 0.0 {
        let factor = length / squares.sqrt();
        for one in all {
            *value(one) *= factor;
        }
    }
}
