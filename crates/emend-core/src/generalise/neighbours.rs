//! The learned phrases whose wording is nearest to a phrase's.

use std::sync::Arc;

use super::vocabulary::ByFeature;

/// Entries of postings that one look-up reads, the rarest features' first.
const MAX_READ: usize = 8_192;

/// A phrase and what it means.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Learned {
    pub(super) phrase: Arc<str>,
    pub(super) choice: Arc<str>,
}

#[derive(Debug, Clone, Copy)]
struct Posting {
    learned: u32,
    value: f32,
}

/// Learned phrases by their features.
#[derive(Debug, Clone, Default)]
pub(super) struct Neighbours {
    learned: Vec<Learned>,
    postings: ByFeature<Vec<Posting>>,
}

impl Neighbours {
    /// Adds a phrase with its weighed features.
    pub(super) fn add(&mut self, learned: Learned, weighed: &[(u64, f32)]) {
        let Ok(at) = u32::try_from(self.learned.len()) else {
            return;
        };
        for &(hash, value) in weighed {
            self.postings
                .entry(hash)
                .or_default()
                .push(Posting { learned: at, value });
        }
        self.learned.push(learned);
    }

    /// Gives back memory that was reserved for more.
    pub(super) fn shrink(&mut self) {
        self.postings.values_mut().for_each(Vec::shrink_to_fit);
        self.postings.shrink_to_fit();
        self.learned.shrink_to_fit();
    }

    /// The phrases, in the order in which they were added.
    pub(super) fn learned(&self) -> &[Learned] {
        &self.learned
    }

    /// How similar each phrase is, 0 to 1: the cosine over the features that are read.
    pub(super) fn similarities(&self, weighed: &[(u64, f32)]) -> Vec<f32> {
        let mut similarities = vec![0.0; self.learned.len()];
        let mut known: Vec<(&[Posting], u64, f32)> = weighed
            .iter()
            .filter_map(|&(hash, value)| Some((&**self.postings.get(&hash)?, hash, value)))
            .collect();
        known.sort_unstable_by_key(|&(postings, hash, _)| (postings.len(), hash));
        let mut read = 0;
        for (postings, _, value) in known {
            read += postings.len();
            if read > MAX_READ {
                break;
            }
            for posting in postings {
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
        let mut nearest: Vec<(usize, f32)> = Vec::with_capacity(count + 1);
        for (at, &similarity) in similarities.iter().enumerate() {
            if similarity <= 0.0 || nearest.len() == count && similarity < nearest[count - 1].1 {
                continue;
            }
            if !counts(at, &self.learned[at]) {
                continue;
            }
            let before = nearest.partition_point(|&(other, theirs)| {
                let by_phrase = || self.learned[at].cmp(&self.learned[other]);
                theirs.total_cmp(&similarity).then_with(by_phrase).is_gt()
            });
            nearest.insert(before, (at, similarity));
            nearest.truncate(count);
        }
        nearest
    }

    /// About how many bytes are held.
    pub(super) fn bytes(&self) -> usize {
        let postings: usize = self.postings.values().map(Vec::capacity).sum();
        let texts: usize = self.learned.iter().map(|learned| learned.phrase.len() + 16).sum();
        postings * size_of::<Posting>()
            + self.postings.capacity() * (size_of::<u64>() + size_of::<Vec<Posting>>() + 1)
            + self.learned.len() * size_of::<Learned>()
            + texts
    }
}
