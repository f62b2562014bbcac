//! How likely an answer is right, learned from answers to phrases that were left out.

use super::arithmetic::{logistic, number};

/// Answers from which a calibration is made, at least.
pub(super) const MIN_ANSWERS: usize = 20;
/// Steps of Newton's method.
const STEPS: usize = 25;
/// Keeps the slopes finite where every answer was right.
const RIDGE: f64 = 0.1;

/// The largest number below 1.
const BELOW_ONE: f32 = 1.0 - f32::EPSILON / 2.0;

/// What an answer to a phrase that means nothing learned counts beside others. By measurement (docs/learning.md): more
/// leaves more such phrases alone, and others with them.
const STRANGER: f64 = 0.77;

/// What is known of an answer: figures that speak for it.
pub(super) type Signs = [f32; 3];

/// What speaks for an answer to a known phrase: the signs and the first one's square.
fn of_right([one, other, third]: Signs) -> [f32; 5] {
    [one, other, third, one * one / 8.0, 1.0]
}

/// What speaks for the phrase being known: the signs and all products of two of them. With these, fewer phrases that mean something learned
/// are taken for strangers.
fn of_known([one, other, third]: Signs) -> [f32; 10] {
    [
        one,
        other,
        third,
        one * one / 8.0,
        one * other / 2.0,
        one * third / 2.0,
        other * other,
        other * third,
        third * third,
        1.0,
    ]
}

/// Answers two questions: whether the phrase means something learned, and whether the answer is right if it does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Calibration {
    is_right: Regression<5>,
    /// None where no answer to a stranger is known.
    is_known: Option<Regression<10>>,
}

impl Calibration {
    /// From answers to phrases that mean something learned, each right or not, and to others; none of too few.
    pub(super) fn of(answers: &[(Signs, bool)], strangers: &[Signs]) -> Option<Self> {
        if answers.len() < MIN_ANSWERS {
            return None;
        }
        let right: Vec<_> = answers
            .iter()
            .map(|&(signs, right)| (of_right(signs), right))
            .collect();
        let known = answers.iter().map(|&(signs, _)| (of_known(signs), true));
        let strange = strangers.iter().map(|&signs| (of_known(signs), false));
        let is_known = (!strangers.is_empty())
            .then(|| Regression::fit(&known.chain(strange).collect::<Vec<_>>(), STRANGER));
        Some(Self {
            is_right: Regression::fit(&right, 1.0),
            is_known,
        })
    }

    /// The probability that an answer with these signs is right: above 0 and below 1, though `f32` rounds what is nearly certain to 1.
    pub(super) fn confidence(self, signs: Signs) -> f32 {
        let is_right = self.is_right.probability(of_right(signs));
        let confidence = self.is_known.map_or(is_right, |is_known| {
            both(is_right, is_known.probability(of_known(signs)))
        });
        confidence.clamp(f32::MIN_POSITIVE, BELOW_ONE)
    }
}

/// The probability of two things that depend on each other, by Clayton's copula with θ = 2: more than their product, as if neither
/// told of the other, and less than the lesser, as if one followed from the other. Neither may be 0, which [`logistic`] never gives.
fn both(one: f32, other: f32) -> f32 {
    let inverse_square = |probability: f32| {
        let inverse = f64::from(probability).recip();
        inverse * inverse
    };
    narrow((inverse_square(one) + inverse_square(other) - 1.0).sqrt().recip())
}

/// Logistic regression with Platt's corrected targets.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Regression<const TERMS: usize> {
    slopes: [f32; TERMS],
}

impl<const TERMS: usize> Regression<TERMS> {
    /// Fits it to examples of what is and of what is not. Each of the latter counts so much beside one of the former.
    fn fit(examples: &[([f32; TERMS], bool)], weight: f64) -> Self {
        let yes = examples.iter().filter(|(_, is)| *is).count();
        let no = examples.len() - yes;
        let (high, low) = (
            f64::from((number(yes) + 1.0) / (number(yes) + 2.0)),
            f64::from(1.0 / (number(no) + 2.0)),
        );
        let mut at = [0.0_f64; TERMS];
        for _ in 0..STEPS {
            let (mut slope, mut curve) = ([0.0_f64; TERMS], [[0.0_f64; TERMS]; TERMS]);
            for &(terms, is) in examples {
                let (target, weight) = if is { (high, 1.0) } else { (low, weight) };
                let terms = terms.map(f64::from);
                let linear: f64 = at.iter().zip(terms).map(|(at, term)| at * term).sum();
                let probability = f64::from(logistic(narrow(linear)));
                let off = weight * (probability - target);
                let spread = weight * (probability * (1.0 - probability)).max(1e-6);
                for row in 0..TERMS {
                    slope[row] += off * terms[row];
                    for column in 0..TERMS {
                        curve[row][column] += spread * terms[row] * terms[column];
                    }
                }
            }
            for row in 0..TERMS {
                slope[row] += RIDGE * at[row];
                curve[row][row] += RIDGE;
            }
            let step = solve(curve, slope);
            for (at, step) in at.iter_mut().zip(step) {
                *at -= step.clamp(-2.0, 2.0);
            }
        }
        Self {
            slopes: at.map(narrow),
        }
    }

    fn probability(self, terms: [f32; TERMS]) -> f32 {
        let terms = self.slopes.iter().zip(terms);
        logistic(terms.map(|(slope, term)| slope * term).sum())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "rounded to the nearest, as IEEE 754 says"
)]
fn narrow(x: f64) -> f32 {
    x as f32
}

/// Solves symmetric, positive definite equations by elimination.
fn solve<const TERMS: usize>(mut left: [[f64; TERMS]; TERMS], mut right: [f64; TERMS]) -> [f64; TERMS] {
    for pivot in 0..TERMS {
        let of_pivot = left[pivot];
        for row in pivot + 1..TERMS {
            let factor = left[row][pivot] / of_pivot[pivot];
            for (coefficient, above) in left[row].iter_mut().zip(of_pivot).skip(pivot) {
                *coefficient -= factor * above;
            }
            right[row] -= factor * right[pivot];
        }
    }
    for row in (0..TERMS).rev() {
        for column in row + 1..TERMS {
            right[row] -= left[row][column] * right[column];
        }
        right[row] /= left[row][row];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_sure_as_it_was_right() {
        // Of those with the sign four in five were right, of those without one in five.
        let answers: Vec<(Signs, bool)> = (0..1_000)
            .map(|number| {
                let sign = number % 2 == 0;
                let usual = number % 5 != 4;
                ([f32::from(u8::from(sign)), 0.0, 0.0], sign == usual)
            })
            .collect();
        let calibration = Calibration::of(&answers, &[]).unwrap();
        assert!((calibration.confidence([1.0, 0.0, 0.0]) - 0.8).abs() < 0.02);
        assert!((calibration.confidence([0.0, 0.0, 0.0]) - 0.2).abs() < 0.02);
    }

    #[test]
    fn of_too_few_there_is_none_and_nothing_is_certain() {
        let right = vec![([1.0, 1.0, 1.0], true); MIN_ANSWERS];
        assert_eq!(Calibration::of(&right[1..], &[]), None);
        let confidence = Calibration::of(&right, &[]).unwrap().confidence([1.0, 1.0, 1.0]);
        assert!(confidence > 0.7 && confidence < 0.99, "{confidence}");
        let is_right = Regression { slopes: [40.0; 5] };
        for is_known in [None, Some(Regression { slopes: [40.0; 10] })] {
            let steep = Calibration { is_right, is_known };
            for (sign, side) in [(1.0, "sure"), (-10.0, "doubtful")] {
                let confidence = steep.confidence([sign, sign, 0.0]);
                assert!(confidence > 0.0 && confidence < 1.0, "{side}: {confidence}");
            }
        }
    }

    #[test]
    fn an_answer_to_what_looks_like_a_stranger_is_doubted_however_right_others_were() {
        // By the first sign all would be right; strangers lack the second.
        let answers = vec![([1.0, 1.0, 0.0], true); 100];
        let strangers = vec![[1.0, 0.0, 0.0]; 50];
        let told = Calibration::of(&answers, &strangers).unwrap();
        assert!(told.confidence([1.0, 1.0, 0.0]) > 0.9);
        assert!(told.confidence([1.0, 0.0, 0.0]) < 0.2);
        let untold = Calibration::of(&answers, &[]).unwrap();
        assert!(
            untold.confidence([1.0, 0.0, 0.0]) > 0.8,
            "nothing is known of strangers"
        );
    }

    #[test]
    fn both_is_between_one_following_from_the_other_and_neither_telling_of_the_other() {
        let some = [1e-6_f32, 0.1, 0.5, 0.9, 0.999];
        for one in some {
            for other in some {
                let both = both(one, other);
                let (product, lesser) = (one * other, one.min(other));
                assert!(
                    both >= product * 0.999 && both <= lesser * 1.001,
                    "{one} and {other}: {both}"
                );
            }
        }
        // The root of 1 / (4 + 4 - 1).
        assert!((both(0.5, 0.5) - 0.377_964_5).abs() < 1e-6);
    }
}
