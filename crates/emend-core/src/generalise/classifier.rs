//! Multinomial logistic regression over sparse vectors: which choice a phrase belongs to, and how likely.
//!
//! Fitted by dual coordinate ascent: one phrase after the other, its probabilities are moved towards what the weights say
//! of it, by the step that is best along that line, and the weights follow. (The dual: Yu, Huang and Lin, "Dual coordinate descent
//! methods for logistic regression and maximum entropy models", 2011; the direction: Shalev-Shwartz and Zhang,
//! "Accelerated proximal stochastic dual coordinate ascent for regularized loss minimization", 2014.) Phrases come in an
//! order that depends on nothing but their number, so that equal input gives equal weights.

use super::{
    arithmetic::{ln, softmax, to_i8},
    vocabulary::Vector,
};

/// How much fitting the phrases counts beside small weights. By measurement (docs/learning.md): 10 to 30 are as good.
const COST: f32 = 10.0;
/// How often each phrase is visited.
const ROUNDS: usize = 10;
/// Halvings of the interval in which the best step lies.
const HALVINGS: usize = 9;

/// Weights while they are fitted: for each row one for each choice.
pub(super) struct Weights {
    choices: usize,
    weights: Vec<f32>,
}

impl Weights {
    /// Fits phrases, each a vector over `rows` rows and the index of its choice below `choices`.
    pub(super) fn fit(phrases: &[(&Vector, usize)], rows: usize, choices: usize) -> Self {
        let mut fitted = Self {
            choices,
            weights: vec![0.0; rows * choices],
        };
        let mut believed = vec![0.0; phrases.len() * choices];
        for (believed, &(_, choice)) in believed.chunks_exact_mut(choices).zip(phrases) {
            believed[choice] = 1.0;
        }
        let (mut scores, mut direction, mut logs) =
            (vec![0.0; choices], vec![0.0; choices], vec![0.0; choices]);
        let squares: Vec<f32> = phrases.iter().map(|(vector, _)| squares(vector)).collect();
        let mut order: Vec<usize> = (0..phrases.len()).collect();
        let mut draw = Draw(0x2545_f491_4f6c_dd1d);
        for _ in 0..ROUNDS {
            draw.shuffle(&mut order);
            for &at in &order {
                let (vector, _) = phrases[at];
                let believed = &mut believed[at * choices..][..choices];
                fitted.score(vector, &mut scores);
                direction.copy_from_slice(&scores);
                softmax(&mut direction);
                for (direction, &believed) in direction.iter_mut().zip(&*believed) {
                    *direction -= believed;
                }
                let step = best_step((believed, &direction), &scores, squares[at], &mut logs);
                for (believed, &direction) in believed.iter_mut().zip(&direction) {
                    *believed += step * direction;
                }
                for &(row, value) in vector {
                    let weights = &mut fitted.weights[row as usize * choices..][..choices];
                    let by = COST * step * value;
                    for (weight, &direction) in weights.iter_mut().zip(&direction) {
                        *weight -= by * direction;
                    }
                }
            }
        }
        fitted
    }

    /// The log-odds of each choice.
    pub(super) fn score(&self, vector: &Vector, scores: &mut [f32]) {
        scores.fill(0.0);
        for &(row, value) in vector {
            let weights = &self.weights[row as usize * self.choices..][..self.choices];
            for (score, &weight) in scores.iter_mut().zip(weights) {
                *score += value * weight;
            }
        }
    }
}

/// The square of a vector's length.
fn squares(vector: &Vector) -> f32 {
    vector.iter().map(|&(_, value)| value * value).sum()
}

/// How far to go, 0 to 1: where the dual objective's slope along the direction is 0. It only ever rises.
fn best_step((believed, direction): (&[f32], &[f32]), scores: &[f32], squares: f32, logs: &mut [f32]) -> f32 {
    // Each addition waits for the one before it in its sum: two sums take as long as one.
    let (mut length, mut constant) = (0.0_f32, 0.0_f32);
    for (&direction, &score) in direction.iter().zip(scores) {
        length += direction * direction;
        constant -= direction * score;
    }
    if length < 1e-12 {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let step = 0.5 * (low + high);
        for ((log, &believed), &direction) in logs.iter_mut().zip(believed).zip(direction) {
            *log = direction * ln(believed + step * direction);
        }
        let slope = logs.iter().sum::<f32>() + constant + COST * step * squares * length;
        if slope < 0.0 {
            low = step;
        } else {
            high = step;
        }
    }
    0.5 * (low + high)
}

/// Numbers in no order, the same each time.
struct Draw(u64);

impl Draw {
    /// Marsaglia's xorshift.
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn shuffle(&mut self, order: &mut [usize]) {
        for last in (1..order.len()).rev() {
            let Ok(other) = usize::try_from(self.next() % (last as u64 + 1)) else {
                continue;
            };
            order.swap(last, other);
        }
    }
}

/// Fitted weights in a byte each, with a scale for each row.
#[derive(Debug, Clone)]
pub(super) struct Classifier {
    choices: usize,
    weights: Vec<i8>,
    scales: Vec<f32>,
}

impl Classifier {
    /// Rounds weights to a 127th of the largest of their row.
    pub(super) fn new(fitted: &Weights) -> Self {
        let mut weights = Vec::with_capacity(fitted.weights.len());
        let mut scales = Vec::with_capacity(fitted.weights.len() / fitted.choices.max(1));
        for row in fitted.weights.chunks_exact(fitted.choices) {
            let most = row.iter().fold(0.0_f32, |most, weight| most.max(weight.abs()));
            let scale = most.max(f32::MIN_POSITIVE) / 127.0;
            weights.extend(row.iter().map(|weight| to_i8(weight / scale)));
            scales.push(scale);
        }
        Self {
            choices: fitted.choices,
            weights,
            scales,
        }
    }

    /// The probability of each choice. Rows that were not fitted, as those of vectors where nothing that was learned has one, say nothing:
    /// they are the last ones of a vector.
    pub(super) fn probabilities(&self, vector: &Vector) -> Vec<f32> {
        let mut scores = vec![0.0; self.choices];
        let fitted = vector.partition_point(|&(row, _)| self.is_fitted(row));
        let vector = &vector[..fitted];
        let row = |&(row, value): &(u32, f32)| {
            let weights = &self.weights[row as usize * self.choices..][..self.choices];
            (value * self.scales[row as usize], weights)
        };
        // Several rows at a time, so that they are waited for together and a score is read and written once for all of them. Each
        // is added by itself: sums are those of one row after the other.
        let (together, rest) = vector.as_chunks::<4>();
        for rows in together {
            let [one, two, three, four] = rows.each_ref().map(row);
            let weights = one.1.iter().zip(two.1).zip(three.1).zip(four.1);
            for (score, (((&first, &second), &third), &fourth)) in scores.iter_mut().zip(weights) {
                *score += one.0 * f32::from(first);
                *score += two.0 * f32::from(second);
                *score += three.0 * f32::from(third);
                *score += four.0 * f32::from(fourth);
            }
        }
        for (value, weights) in rest.iter().map(row) {
            for (score, &weight) in scores.iter_mut().zip(weights) {
                *score += value * f32::from(weight);
            }
        }
        softmax(&mut scores);
        scores
    }

    fn is_fitted(&self, row: u32) -> bool {
        (row as usize) < self.scales.len()
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.weights.len() + self.scales.len() * size_of::<f32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three choices, each with a word of its own beside one that all have.
    fn phrases() -> Vec<(Vector, usize)> {
        (0..30_u32)
            .map(|number| (vec![(number % 3, 1.0), (3, 0.5)], number as usize % 3))
            .collect()
    }

    fn fit() -> Weights {
        let phrases = phrases();
        let phrases: Vec<(&Vector, usize)> =
            phrases.iter().map(|(vector, choice)| (vector, *choice)).collect();
        Weights::fit(&phrases, 4, 3)
    }

    #[test]
    fn it_finds_the_least_of_the_objective() {
        // At the optimum each weight is the cost times what remains unexplained of the choices.
        let fitted = fit();
        let mut expected = [0.0_f32; 12];
        let mut scores = vec![0.0; 3];
        for (vector, choice) in phrases() {
            fitted.score(&vector, &mut scores);
            softmax(&mut scores);
            for (row, value) in vector {
                for (other, probability) in scores.iter().enumerate() {
                    let rest = f32::from(u8::from(other == choice)) - probability;
                    expected[row as usize * 3 + other] += COST * rest * value;
                }
            }
        }
        for (weight, expected) in fitted.weights.iter().zip(expected) {
            assert!((weight - expected).abs() < 0.05, "{weight} {expected}");
        }
    }

    #[test]
    fn rows_are_added_one_after_the_other_however_many_are_read_together() {
        let classifier = Classifier {
            choices: 3,
            weights: (-13..14_i8).map(|weight| weight * 9).collect(),
            scales: (1..10_u8).map(|row| 1.0 / f32::from(row)).collect(),
        };
        for length in 0..=9_u8 {
            let values = (0..length).map(|row: u8| (u32::from(row), 0.3 + 0.7 / (1.0 + f32::from(row))));
            let vector: Vector = values.collect();
            let mut scores = vec![0.0_f32; 3];
            for &(row, value) in &vector {
                let row = row as usize;
                for (choice, score) in scores.iter_mut().enumerate() {
                    *score +=
                        value * classifier.scales[row] * f32::from(classifier.weights[3 * row + choice]);
                }
            }
            softmax(&mut scores);
            assert_eq!(classifier.probabilities(&vector), scores, "{length} rows");
        }
    }

    #[test]
    fn bytes_say_what_the_weights_say() {
        let fitted = fit();
        let rounded = Classifier::new(&fitted);
        let mut scores = vec![0.0; 3];
        for (vector, choice) in phrases() {
            fitted.score(&vector, &mut scores);
            softmax(&mut scores);
            let probabilities = rounded.probabilities(&vector);
            assert!((scores[choice] - probabilities[choice]).abs() < 0.01);
            assert!(probabilities[choice] > 0.9);
        }
    }
}
