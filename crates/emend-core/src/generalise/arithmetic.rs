//! Elementary functions that give the same bits on every machine.
//!
//! The platform's `exp` and `ln` differ in the last bit from one C library to the next. These use nothing but IEEE 754's
//! addition, multiplication, division and square root, which Rust neither reorders nor fuses.

use std::f32::consts::{LN_2, LOG2_E, SQRT_2};

/// Adding and subtracting it rounds a number below 2^22 to the nearest whole number.
const ROUND: f32 = 12_582_912.0;
const EXPONENT_BITS: u32 = 23;
const BIAS: u32 = 127;

/// e^x to about six digits, of `x` brought into -87..=88.
pub(super) fn exp(x: f32) -> f32 {
    // ln 2 in two parts, of which the first has few digits: the whole multiple is subtracted exactly.
    const HIGH: f32 = 0.693_359_4;
    const LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let rest = x - whole * HIGH - whole * LOW;
    let series = 1.0
        + rest
            * (1.0
                + rest
                    * (0.5 + rest * (1.0 / 6.0 + rest * (1.0 / 24.0 + rest * (1.0 / 120.0 + rest / 720.0)))));
    let power = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(BIAS) << EXPONENT_BITS;
    series * f32::from_bits(power)
}

/// The natural logarithm to about six digits; of anything below the smallest normal number, that number's.
pub(super) fn ln(x: f32) -> f32 {
    let bits = x.max(f32::MIN_POSITIVE).to_bits();
    let mantissa = f32::from_bits((bits & ((1 << EXPONENT_BITS) - 1)) | (BIAS << EXPONENT_BITS));
    let halved = mantissa > SQRT_2;
    let mantissa = if halved { 0.5 * mantissa } else { mantissa };
    let exponent = (bits >> EXPONENT_BITS) + u32::from(halved);
    // A whole number below 2^22 beside ROUND's own bits is that number added to ROUND.
    let exponent = f32::from_bits(ROUND.to_bits() + exponent) - ROUND - 127.0;
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    let series = 2.0
        * ratio
        * (1.0 + square * (1.0 / 3.0 + square * (1.0 / 5.0 + square * (1.0 / 7.0 + square / 9.0))));
    series + exponent * LN_2
}

/// The probability whose log-odds are `x`.
pub(super) fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The log-odds of a probability, brought into -12..=12.
pub(super) fn log_odds(probability: f32) -> f32 {
    (ln(probability) - ln(1.0 - probability)).clamp(-12.0, 12.0)
}

/// Log-odds as probabilities that sum up to 1.
pub(super) fn softmax(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for score in &mut *scores {
        *score = exp(*score - most);
    }
    let sum: f32 = scores.iter().sum();
    for score in scores {
        *score /= sum;
    }
}

/// A count as a number.
#[expect(clippy::cast_precision_loss, reason = "counts of phrases are below 2^24")]
pub(super) fn number(count: usize) -> f32 {
    count as f32
}

/// The nearest whole number from -127 to 127.
#[expect(clippy::cast_possible_truncation, reason = "rounded and brought into bounds")]
pub(super) fn to_i8(x: f32) -> i8 {
    let rounded = (x.clamp(-127.0, 127.0) + ROUND) - ROUND;
    rounded as i8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_the_functions_they_are_named_after() {
        for step in -8_000_i16..=8_000 {
            let x = f32::from(step) / 100.0;
            let (ours, exact) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((ours / exact - 1.0).abs() < 2e-6, "exp {x}: {ours} {exact}");
            let (back, exact) = (f64::from(ln(exp(x))), f64::from(exp(x)).ln());
            assert!((back - exact).abs() < 1e-5, "ln {x}: {back} {exact}");
        }
        assert!((logistic(log_odds(0.8)) - 0.8).abs() < 1e-6);
        assert_eq!(
            [to_i8(-300.0), to_i8(1.4), to_i8(1.6), to_i8(200.0)],
            [-127, 1, 2, 127]
        );
    }

    #[test]
    fn their_bits_are_these_on_every_machine() {
        let bits = [exp(1.0), exp(-3.7), ln(10.0), ln(0.03), logistic(0.5)].map(f32::to_bits);
        assert_eq!(
            bits,
            [0x402d_f854, 0x3cca_88fe, 0x4013_5d8e, 0xc060_6b72, 0x3f1f_597f],
            "{bits:x?}"
        );
    }

    #[test]
    fn probabilities_sum_up_to_one() {
        let mut scores = [1_000.0, 999.0, -1_000.0];
        softmax(&mut scores);
        assert!((scores.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert!(scores[0] > scores[1] && scores[1] > scores[2]);
    }
}
