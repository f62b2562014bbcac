//! Whether a difference is more than chance.

/// Two bounds, the lower first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

/// The quantile of the normal distribution for 95 % on two sides.
const Z_95: f64 = 1.959_963_984_540_054;

/// The 95 % confidence interval of a share, `hits` of `total` (Wilson, "Probable inference, the law of succession, and
/// statistical inference", 1927). `None` of nothing, and of more hits than there are.
#[expect(clippy::cast_precision_loss, reason = "counts below 2^52")]
pub fn wilson(hits: u64, total: u64) -> Option<Interval> {
    if total == 0 || hits > total {
        return None;
    }
    let (n, share) = (total as f64, hits as f64 / total as f64);
    let z2 = Z_95 * Z_95;
    let centre = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z_95 / (1.0 + z2 / n) * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    Some(Interval {
        low: (centre - half).max(0.0),
        high: (centre + half).min(1.0),
    })
}

/// The two-sided p-value of two shares being equal: the z-test with the pooled share (Fleiss, Levin and Paik, "Statistical
/// methods for rates and proportions", 3rd edition, 2.4, without continuity correction). `None` if a side has nothing, or
/// more hits than there are. 1.0 where all or none are hits.
#[expect(clippy::cast_precision_loss, reason = "counts below 2^52")]
pub fn two_proportions((hits, total): (u64, u64), (other_hits, other_total): (u64, u64)) -> Option<f64> {
    if total == 0 || other_total == 0 || hits > total || other_hits > other_total {
        return None;
    }
    let (n, m) = (total as f64, other_total as f64);
    let pooled = (hits as f64 + other_hits as f64) / (n + m);
    let deviation = (pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m)).sqrt();
    if deviation == 0.0 {
        return Some(1.0);
    }
    let z = (hits as f64 / n - other_hits as f64 / m) / deviation;
    Some(two_sided(z))
}

/// The probability that a normal variable is at least that far from its mean, in standard deviations.
fn two_sided(z: f64) -> f64 {
    erfc(z.abs() / std::f64::consts::SQRT_2).clamp(0.0, 1.0)
}

/// The complementary error function of an argument that is not negative, by its Maclaurin series below 3 and its continued
/// fraction above (Abramowitz and Stegun, "Handbook of mathematical functions", 7.1.6 and 7.1.14), to at least 12 digits.
fn erfc(x: f64) -> f64 {
    let density = (-x * x).exp() / std::f64::consts::PI.sqrt();
    if x < 3.0 {
        let (mut term, mut sum) = (x, x);
        for k in 1..200 {
            term *= 2.0 * x * x / f64::from(2 * k + 1);
            sum += term;
            if term < sum * f64::EPSILON {
                break;
            }
        }
        return 1.0 - 2.0 * density * sum;
    }
    let fraction = (1..=60).rev().fold(x, |below, k| x + f64::from(k) / 2.0 / below);
    density / fraction
}

/// The most queries for which every exchange is tried.
const EXACT: usize = 16;
/// How many exchanges are drawn for more.
const DRAWS: u32 = 100_000;

/// The two-sided p-value of two systems being equally good, from a measure of each query with one and with the other: Fisher's
/// paired randomisation test, which Smucker, Allan and Carterette ("A comparison of statistical significance tests for
/// information retrieval evaluation", 2007) recommend. Under the hypothesis each query's two values could as well be
/// exchanged; the p-value is the share of exchanges whose mean difference is at least as large. All are tried up to 16 queries,
/// 100,000 drawn from a fixed sequence for more. `None` of nothing.
pub fn paired_randomisation(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.is_empty() {
        return None;
    }
    let differences: Vec<f64> = pairs.iter().map(|(one, other)| other - one).collect();
    let observed = differences.iter().sum::<f64>().abs();
    // Sums of the same numbers in another order differ in their last bits.
    let reached = |sum: f64| sum.abs() >= observed - 1e-12;
    // Equal values are equal however they are exchanged.
    let moving: Vec<f64> = differences
        .into_iter()
        .filter(|difference| *difference != 0.0)
        .collect();
    if moving.len() <= EXACT {
        let all = 1u32 << moving.len();
        let signed = |signs: u32| {
            let each = moving.iter().enumerate();
            each.map(|(place, difference)| {
                if signs >> place & 1 == 0 {
                    *difference
                } else {
                    -difference
                }
            })
            .sum::<f64>()
        };
        let as_large = (0..all).filter(|signs| reached(signed(*signs))).count();
        let as_large = u32::try_from(as_large).unwrap_or(all);
        return Some(f64::from(as_large) / f64::from(all));
    }
    let mut draw = SplitMix(0);
    let mut as_large = 1u32;
    for _ in 0..DRAWS {
        let mut sum = 0.0;
        let mut signs = 0;
        for (place, difference) in moving.iter().enumerate() {
            if place % 64 == 0 {
                signs = draw.next();
            }
            sum += if signs >> (place % 64) & 1 == 0 {
                *difference
            } else {
                -difference
            };
        }
        as_large += u32::from(reached(sum));
    }
    // With the observed one among them, so that no p-value is 0.
    Some(f64::from(as_large) / f64::from(DRAWS + 1))
}

/// A fixed sequence of random bits (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014), so that the
/// same figures always come to the same p-value.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() < 5e-5, "{value} is not {expected}");
    }

    #[test]
    fn the_interval_of_a_share_worked_by_hand() {
        // 8 of 10: z² = 3.84146; centre (0.8 + 0.192073) / 1.384146 = 0.716741,
        // half 1.959964 / 1.384146 · √(0.016 + 0.0096036) = 0.226576.
        let interval = wilson(8, 10).unwrap();
        close(interval.low, 0.49016);
        close(interval.high, 0.94332);
        // None of 10: from 0 to z² / (n + z²) = 3.84146 / 13.84146.
        let interval = wilson(0, 10).unwrap();
        close(interval.low, 0.0);
        close(interval.high, 0.27753);
        close(wilson(10, 10).unwrap().low, 1.0 - 0.27753);
        assert_eq!(wilson(0, 0), None);
        assert_eq!(wilson(2, 1), None);
    }

    #[test]
    fn the_tail_of_the_normal_distribution() {
        for (z, p) in [
            (0.0, 1.0),
            (1.0, 0.317_310_5),
            (1.959_964, 0.05),
            (2.575_829, 0.01),
        ] {
            close(two_sided(z), p);
        }
        // Both sides of the change of method, and far out.
        assert!((erfc(2.999_999_999) / erfc(3.000_000_001) - 1.0).abs() < 1e-6);
        assert!((erfc(3.0) / 2.209_049_699_858_544e-5 - 1.0).abs() < 1e-9);
        assert!((erfc(5.0) / 1.537_459_794_428_035e-12 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn two_shares_worked_by_hand() {
        // 30 of 100 and 45 of 100: pooled 0.375, deviation √(0.375 · 0.625 · 0.02) = 0.0684653, z = 2.19089.
        close(two_proportions((30, 100), (45, 100)).unwrap(), 0.02846);
        close(two_proportions((45, 100), (30, 100)).unwrap(), 0.02846);
        close(two_proportions((5, 10), (50, 100)).unwrap(), 1.0);
        close(two_proportions((0, 10), (0, 20)).unwrap(), 1.0);
        assert_eq!(two_proportions((0, 0), (1, 2)), None);
        assert_eq!(two_proportions((3, 2), (1, 2)), None);
    }

    #[test]
    fn exchanges_worked_by_hand() {
        // Differences 1, 2, 3: of 8 exchanges only +++ and −−− reach 6.
        close(
            paired_randomisation(&[(0.0, 1.0), (0.0, 2.0), (0.0, 3.0)]).unwrap(),
            0.25,
        );
        // Differences 1, 1, −1: all but none reach 1 in size.
        close(
            paired_randomisation(&[(0.0, 1.0), (0.0, 1.0), (1.0, 0.0)]).unwrap(),
            1.0,
        );
        // A query in which both are equal changes nothing.
        let with_equal = [(0.0, 1.0), (0.0, 2.0), (0.0, 3.0), (0.4, 0.4)];
        close(paired_randomisation(&with_equal).unwrap(), 0.25);
        close(paired_randomisation(&[(0.5, 0.5)]).unwrap(), 1.0);
        assert_eq!(paired_randomisation(&[]), None);
    }

    #[test]
    fn many_queries_are_drawn_and_always_come_to_the_same() {
        let better: Vec<(f64, f64)> = (0..40).map(|pair| (0.0, 0.1 + f64::from(pair) / 100.0)).collect();
        let p = paired_randomisation(&better).unwrap();
        assert!(p < 0.001, "{p}");
        assert_eq!(paired_randomisation(&better), Some(p));
        let alike: Vec<(f64, f64)> = (0..40)
            .map(|pair| if pair % 2 == 0 { (0.0, 1.0) } else { (1.0, 0.0) })
            .collect();
        close(paired_randomisation(&alike).unwrap(), 1.0);
        // 17 differences of which 13 are better: the sign test's binomial tail, 2 · 3214 / 2^17.
        let mut signs = vec![(0.0, 1.0); 13];
        signs.extend([(1.0, 0.0); 4]);
        let p = paired_randomisation(&signs).unwrap();
        assert!((p - 0.049_04).abs() < 0.003, "{p}");
    }
}
