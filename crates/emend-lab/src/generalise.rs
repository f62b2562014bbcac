//! How well near answers do on utterances that were not learned, by how much was learned.

use std::collections::{HashMap, HashSet};

use emend_core::generalise::{Index, Method};
use rand::{SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};

use crate::replay::dataset::{Dataset, Label, Utterance};

/// Bins of equal width in which confidence is compared with what was right.
const BINS: usize = 15;
/// The confidence at which answers are given by default.
pub const MIN_CONFIDENCE: f32 = 0.8;

/// What is learned of train.csv.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// Everything.
    All,
    /// So many utterances of each label.
    Each(usize),
    /// So many utterances at random.
    Random(usize),
    /// Everything but all utterances of so many labels, whose test utterances are strangers then.
    Without(usize),
}

/// How near answers did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Score {
    /// The share of utterances answered right at any confidence.
    pub right: f64,
    /// The share answered at [`MIN_CONFIDENCE`].
    pub covered: f64,
    /// The share of those that is right.
    pub precision: f64,
    /// Expected calibration error: how far confidence is from the share that is right, over bins.
    pub calibration_error: f64,
    /// The share of strangers that is left alone at [`MIN_CONFIDENCE`]; no number without strangers.
    pub left_alone: f64,
}

impl Score {
    /// The mean of several.
    pub fn mean(scores: &[Self]) -> Self {
        let mean = |figure: fn(&Self) -> f64| ratio(scores.iter().map(figure).sum(), scores.len());
        Self {
            right: mean(|score| score.right),
            covered: mean(|score| score.covered),
            precision: mean(|score| score.precision),
            calibration_error: mean(|score| score.calibration_error),
            left_alone: mean(|score| score.left_alone),
        }
    }
}

/// Learns a share, drawn by the seed, to be compared by a method.
pub fn learn(dataset: &Dataset, share: Share, seed: u64, method: Method) -> (Index, HashSet<Label>) {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut utterances: Vec<&Utterance> = dataset.train.iter().collect();
    utterances.shuffle(&mut rng);
    let mut strangers = HashSet::new();
    match share {
        Share::All => {}
        Share::Random(count) => utterances.truncate(count),
        Share::Each(count) => {
            let mut taken: HashMap<Label, usize> = HashMap::new();
            utterances.retain(|utterance| {
                let taken = taken.entry(utterance.label).or_default();
                *taken += 1;
                *taken <= count
            });
        }
        Share::Without(count) => {
            let mut labels: Vec<Label> = (0..dataset.labels.len()).collect();
            labels.shuffle(&mut rng);
            strangers.extend(labels.into_iter().take(count));
            utterances.retain(|utterance| !strangers.contains(&utterance.label));
        }
    }
    let mut index = Index::new(method);
    for utterance in utterances {
        index.learn(utterance.key.as_str(), &dataset.labels[utterance.label]);
    }
    (index, strangers)
}

/// Asks a fitted index every utterance of test.csv.
pub fn score(index: &Index, dataset: &Dataset, strangers: &HashSet<Label>) -> Score {
    let (mut asked, mut right, mut covered, mut covered_right) = (0, 0, 0, 0);
    let (mut strange, mut left_alone) = (0, 0);
    let mut bins = [(0.0, 0); BINS];
    for utterance in &dataset.test {
        let answer = index.near(utterance.key.as_str(), &|_| false, 0.0);
        let is_sure = answer
            .as_ref()
            .is_some_and(|near| near.confidence >= MIN_CONFIDENCE);
        if strangers.contains(&utterance.label) {
            strange += 1;
            left_alone += usize::from(!is_sure);
            continue;
        }
        asked += 1;
        let Some(near) = answer else { continue };
        let is_right = *near.choice == *dataset.labels[utterance.label];
        right += usize::from(is_right);
        covered += usize::from(is_sure);
        covered_right += usize::from(is_sure && is_right);
        let bin = &mut bins[bin(near.confidence)];
        bin.0 += f64::from(near.confidence);
        bin.1 += usize::from(is_right);
    }
    let error: f64 = bins
        .iter()
        .map(|&(sure, right)| (sure - number(right)).abs())
        .sum();
    Score {
        right: ratio(number(right), asked),
        covered: ratio(number(covered), asked),
        precision: ratio(number(covered_right), covered),
        calibration_error: ratio(error, asked),
        left_alone: ratio(number(left_alone), strange),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a share of few bins"
)]
fn bin(confidence: f32) -> usize {
    ((confidence * BINS as f32) as usize).min(BINS - 1)
}

#[expect(clippy::cast_precision_loss, reason = "counts are far smaller than 2^52")]
fn number(count: usize) -> f64 {
    count as f64
}

fn ratio(part: f64, whole: usize) -> f64 {
    part / number(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dataset() -> Dataset {
        let rows = |from: usize| {
            let rows = (from..from + 20).flat_map(|number| {
                [
                    (format!("where is my card {number}"), "card".to_owned()),
                    (format!("the rate of euros {number}"), "rate".to_owned()),
                    (format!("close everything {number}"), "close".to_owned()),
                ]
            });
            rows.collect::<Vec<_>>()
        };
        Dataset::new(rows(0), rows(100))
    }

    fn scored(share: Share) -> Score {
        let dataset = dataset();
        let (mut index, strangers) = learn(&dataset, share, 1, Method::Lexical);
        index.adopt(index.refit());
        score(&index, &dataset, &strangers)
    }

    #[test]
    fn what_can_be_told_apart_is_answered_right() {
        let score = scored(Share::All);
        assert!(
            score.right > 0.99 && score.precision > 0.99 && score.covered > 0.9,
            "{score:?}"
        );
        assert!(score.left_alone.is_nan(), "there are no strangers");
    }

    #[test]
    fn shares_have_the_sizes_they_are_named_after() {
        let size = |share| learn(&dataset(), share, 1, Method::Lexical).0.len();
        assert_eq!(
            [size(Share::All), size(Share::Each(4)), size(Share::Random(7))],
            [60, 12, 7]
        );
        let (index, strangers) = learn(&dataset(), Share::Without(1), 1, Method::Lexical);
        assert_eq!((index.len(), strangers.len()), (40, 1));
        assert!((0.0..=1.0).contains(&scored(Share::Without(1)).left_alone));
    }

    /// 140 utterances of 20 intents are learned, 60 others asked.
    #[test]
    fn japanese_is_answered_too() {
        let rows = |name: &str| -> Vec<(String, String)> {
            let path = format!(
                "{}/../../tests/data/japanese/{name}.csv",
                env!("CARGO_MANIFEST_DIR")
            );
            let text = std::fs::read_to_string(path).unwrap();
            let rows = text.lines().skip(1).map(|line| line.split_once(',').unwrap());
            rows.map(|(text, label)| (text.to_owned(), label.to_owned()))
                .collect()
        };
        let dataset = Dataset::new(rows("train"), rows("test"));
        assert_eq!(
            (dataset.train.len(), dataset.test.len(), dataset.labels.len()),
            (140, 60, 20)
        );
        let (mut index, strangers) = learn(&dataset, Share::All, 1, Method::Lexical);
        index.adopt(index.refit());
        let score = score(&index, &dataset, &strangers);
        assert!(
            score.right > 0.85 && score.covered > 0.7 && score.precision > 0.9,
            "{score:?}"
        );
    }
}
