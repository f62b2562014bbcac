//! How likely an answer is right, learned from answers to phrases that were left out.

use super::arithmetic::{logistic, number};

/// Answers from which a calibration is made, at least.
pub(super) const MIN_ANSWERS: usize = 20;
/// Steps of Newton's method, and how far one goes along any slope at most. Where answers are told apart without a fault, many are needed.
const STEPS: usize = 100;
const LONGEST: f64 = 2.0;
/// Keeps the slopes finite where every answer was right.
const RIDGE: f64 = 0.1;

/// The largest number below 1.
const BELOW_ONE: f32 = 1.0 - f32::EPSILON / 2.0;

/// What an answer to a phrase that means nothing learned counts beside others. By measurement (docs/learning.md): more
/// leaves more such phrases alone, and others with them.
const STRANGER: f64 = 0.5;

/// What is known of an answer: figures that speak for it.
pub(super) type Signs = [f32; 3];

/// Logistic regression of "was right" on an answer's signs and the first one's square (Platt scaling, with his corrected
/// targets). The square lets confidence rise more slowly among doubtful answers, as strangers are, than among sure ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Calibration {
    slopes: [f32; TERMS],
    /// Between which the first signs were that it was fitted to. The square says nothing of what is beyond: it may rise again where
    /// answers are the less likely.
    seen: [f32; 2],
}

const TERMS: usize = 5;

fn terms([one, other, third]: Signs) -> [f32; TERMS] {
    [one, other, third, one * one / 8.0, 1.0]
}

impl Calibration {
    /// From answers and whether each was right; none of too few. Of answers to phrases that mean nothing learned, which
    /// cannot be right, each counts a part.
    pub(super) fn of(answers: &[(Signs, bool)], strangers: &[Signs]) -> Option<Self> {
        if answers.len() < MIN_ANSWERS {
            return None;
        }
        let right = answers.iter().filter(|(_, right)| *right).count();
        let wrong = answers.len() - right;
        let (high, low) = (
            f64::from((number(right) + 1.0) / (number(right) + 2.0)),
            f64::from(1.0 / (number(wrong) + 2.0)),
        );
        let mut at = [0.0_f64; TERMS];
        for _ in 0..STEPS {
            let (mut slope, mut curve) = ([0.0_f64; TERMS], [[0.0_f64; TERMS]; TERMS]);
            let known = answers
                .iter()
                .map(|&(signs, right)| (signs, if right { high } else { low }, 1.0));
            let strange = strangers.iter().map(|&signs| (signs, low, STRANGER));
            for (signs, target, weight) in known.chain(strange) {
                let signs = terms(signs).map(f64::from);
                let linear: f64 = at.iter().zip(signs).map(|(at, sign)| at * sign).sum();
                let probability = f64::from(logistic(narrow(linear)));
                let off = weight * (probability - target);
                let spread = weight * (probability * (1.0 - probability)).max(1e-6);
                for row in 0..TERMS {
                    slope[row] += off * signs[row];
                    for column in 0..TERMS {
                        curve[row][column] += spread * signs[row] * signs[column];
                    }
                }
            }
            for row in 0..TERMS {
                slope[row] += RIDGE * at[row];
                curve[row][row] += RIDGE;
            }
            let step = solve(curve, slope);
            // The whole step is shortened: bounded slope by slope it would go elsewhere, and in circles.
            let longest = step.iter().fold(LONGEST, |longest, step| longest.max(step.abs()));
            for (at, step) in at.iter_mut().zip(step) {
                *at -= step * (LONGEST / longest);
            }
        }
        let first_signs = answers.iter().map(|(signs, _)| signs).chain(strangers);
        let seen = first_signs.fold(
            [f32::INFINITY, f32::NEG_INFINITY],
            |[least, most], &[first, ..]| [least.min(first), most.max(first)],
        );
        Some(Self {
            slopes: at.map(narrow),
            seen,
        })
    }

    /// The probability that an answer with these signs is right: above 0 and below 1, though `f32` rounds what is nearly certain to 1.
    pub(super) fn confidence(self, [first, other, third]: Signs) -> f32 {
        let first = first.clamp(self.seen[0], self.seen[1]);
        let terms = self.slopes.iter().zip(terms([first, other, third]));
        logistic(terms.map(|(slope, term)| slope * term).sum()).clamp(f32::MIN_POSITIVE, BELOW_ONE)
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
fn solve(mut left: [[f64; TERMS]; TERMS], mut right: [f64; TERMS]) -> [f64; TERMS] {
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
        let steep = Calibration {
            slopes: [40.0; TERMS],
            seen: [-10.0, 1.0],
        };
        for (sign, side) in [(1.0, "sure"), (-10.0, "doubtful")] {
            let confidence = steep.confidence([sign, sign, 0.0]);
            assert!(
                (f32::MIN_POSITIVE..1.0).contains(&confidence),
                "{side}: {confidence}"
            );
        }
        assert!(
            steep.confidence([f32::NAN, 0.0, 0.0]).is_nan(),
            "and no number is none"
        );
    }

    #[test]
    fn a_sign_beyond_all_that_were_seen_says_no_more_than_the_last_of_them() {
        // Wrong in the middle: the square turns the curve up on the left, where nothing was seen.
        let answers: Vec<(Signs, bool)> = (0_u8..200)
            .map(|number| {
                let sign = f32::from(number) / 20.0;
                ([sign, 0.0, 0.0], sign > 7.0)
            })
            .collect();
        let calibration = Calibration::of(&answers, &[]).unwrap();
        let at = |sign| calibration.confidence([sign, 0.0, 0.0]);
        assert_eq!((at(-9.0), at(90.0)), (at(0.0), at(9.95)));
        assert!(at(0.0) < 0.1 && at(9.95) > 0.9, "{} {}", at(0.0), at(9.95));
    }

    #[test]
    fn answers_that_are_told_apart_without_a_fault_are_told_apart() {
        for count in [1_000_u16, 10_000, 20_000] {
            let answers: Vec<(Signs, bool)> = (0..count)
                .map(|number| {
                    let right = number % 2 == 0;
                    let little = f32::from(number % 100) / 1_000.0;
                    let (first, other) = if right { (9.0, 0.7) } else { (8.9, 0.5) };
                    ([first + little, other + little, 0.2 + little], right)
                })
                .collect();
            let calibration = Calibration::of(&answers, &[]).unwrap();
            for &(signs, right) in &answers {
                let confidence = calibration.confidence(signs);
                assert!((confidence > 0.5) == right, "{count}: {signs:?} {confidence}");
            }
        }
    }
}
