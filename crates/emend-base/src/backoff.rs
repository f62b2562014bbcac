//! How long to wait before retrying: exponential back-off with full jitter.
//!
//! Full jitter (M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015) spreads callers that failed
//! together over the whole interval.

use std::time::Duration;

use crate::entropy::Entropy;

/// The bounds of the delays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackoffConfig {
    /// The ceiling of the first delay. No delay is shorter than half of it, so a retry is never immediate.
    pub initial: Duration,
    /// The ceiling of every delay.
    pub max: Duration,
    /// The factor by which the ceiling grows with each attempt; values below 1 count as 1.
    pub multiplier: f64,
}

impl Default for BackoffConfig {
    /// 100 ms, doubling up to 30 s.
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(100),
            max: Duration::from_secs(30),
            multiplier: 2.0,
        }
    }
}

/// The delay before retry number `attempt`, counted from 0. `fraction` in `0.0..=1.0` picks a point between half of
/// `initial` and the attempt's ceiling; the result never exceeds `max`. Pure, for callers that store their attempts.
pub fn delay_for_attempt(attempt: u32, config: &BackoffConfig, fraction: f64) -> Duration {
    let max = config.max.as_secs_f64();
    let initial = config.initial.as_secs_f64().min(max);
    // Beyond 2^1024 the product is infinite, which `min` brings back to the maximum.
    let growth = config
        .multiplier
        .max(1.0)
        .powi(i32::try_from(attempt).unwrap_or(i32::MAX));
    let ceiling = (initial * growth).min(max);
    let floor = initial / 2.0;
    let seconds = (ceiling - floor).mul_add(fraction.clamp(0.0, 1.0), floor);
    Duration::try_from_secs_f64(seconds).map_or(config.max, |delay| delay.min(config.max))
}

/// Counts attempts and yields the delay before the next one.
#[derive(Debug, Clone)]
pub struct Backoff {
    config: BackoffConfig,
    entropy: Entropy,
    attempt: u32,
}

impl Backoff {
    /// Starts at attempt 0.
    pub fn new(config: BackoffConfig, entropy: Entropy) -> Self {
        Self {
            config,
            entropy,
            attempt: 0,
        }
    }

    /// The delay to wait now. The ceiling of the following one is higher.
    #[expect(
        clippy::should_implement_trait,
        reason = "not an iterator: it never ends and is reset"
    )]
    pub fn next(&mut self) -> Duration {
        let delay = delay_for_attempt(self.attempt, &self.config, self.entropy.fraction());
        self.attempt = self.attempt.saturating_add(1);
        delay
    }

    /// The delay to wait now if the server asked for `asked`: at random between `asked` and twice that, or the usual
    /// delay if that is longer, so that clients given the same hint do not return together.
    pub fn next_after(&mut self, asked: Duration) -> Duration {
        let spread = 1.0 + self.entropy.fraction();
        self.next().max(asked.mul_f64(spread))
    }

    /// Starts over after a success.
    pub fn reset(&mut self) {
        self.attempt = 0;
    }

    /// How many delays were handed out since the start or the last reset.
    pub fn attempts(&self) -> u32 {
        self.attempt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wait_lies_between_the_floor_and_the_ceiling() {
        let entropy = Entropy::seeded(3);
        for _ in 0..20_000 {
            let initial = Duration::from_secs_f64(entropy.fraction() * 2.0);
            let config = BackoffConfig {
                initial,
                max: initial + Duration::from_secs_f64(entropy.fraction() * 100.0),
                multiplier: entropy.fraction() * 4.0,
            };
            let attempt = u32::from(entropy.uuid_v4().as_bytes()[0]);
            let delay = delay_for_attempt(attempt, &config, entropy.fraction());
            assert!(delay <= config.max, "{delay:?} {config:?}");
            assert!(
                delay + Duration::from_nanos(2) >= config.initial / 2,
                "{delay:?} {config:?}"
            );
        }
    }

    #[test]
    fn the_ceiling_grows_to_the_maximum_and_never_overflows() {
        let config = BackoffConfig::default();
        let ceilings = [0, 1, 2, 8, 9, 4_000_000_000].map(|attempt| delay_for_attempt(attempt, &config, 1.0));
        assert_eq!(
            ceilings.map(|ceiling| ceiling.as_millis()),
            [100, 200, 400, 25_600, 30_000, 30_000]
        );
    }

    #[test]
    fn callers_given_the_same_wait_do_not_retry_together() {
        let entropy = Entropy::seeded(4);
        let asked = Duration::from_secs(1);
        let waits: Vec<_> = (0..1_000)
            .map(|_| Backoff::new(BackoffConfig::default(), entropy.clone()).next_after(asked))
            .collect();
        assert!(waits.iter().all(|wait| *wait >= asked && *wait <= 2 * asked));
        let early = waits.iter().filter(|wait| **wait < asked.mul_f64(1.5)).count();
        assert!((400..600).contains(&early), "{early} of 1,000 in the first half");
    }

    #[test]
    fn a_jitter_fraction_out_of_range_is_clamped() {
        let config = BackoffConfig::default();
        assert_eq!(delay_for_attempt(0, &config, 7.0), Duration::from_millis(100));
        assert_eq!(delay_for_attempt(0, &config, -7.0), Duration::from_millis(50));
    }

    #[test]
    fn a_reset_starts_over() {
        let mut backoff = Backoff::new(BackoffConfig::default(), Entropy::seeded(1));
        for _ in 0..12 {
            backoff.next();
        }
        assert_eq!(backoff.attempts(), 12);
        backoff.reset();
        assert!(backoff.next() <= Duration::from_millis(100));
    }
}
