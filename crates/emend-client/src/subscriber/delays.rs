//! How long it took from commit to applied, as a histogram.
//!
//! It must know nothing of clocks.

use emend_proto::learning::v1::DelayHistogram;
use jiff::SignedDuration;

/// Upper bounds of the buckets in milliseconds.
const BOUNDS_MS: [i64; 16] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 600_000,
];

/// Counts of delays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Delays {
    counts: [i64; BOUNDS_MS.len() + 1],
    sum_ms: i64,
}

impl Delays {
    /// Counts one. Below zero, which two clocks can make of it, counts as zero.
    pub(super) fn add(&mut self, delay: SignedDuration) {
        let millis = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX).max(0);
        self.counts[BOUNDS_MS.partition_point(|bound| *bound < millis)] += 1;
        self.sum_ms = self.sum_ms.saturating_add(millis);
    }

    /// Counts all of another's.
    pub(super) fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.sum_ms = self.sum_ms.saturating_add(other.sum_ms);
    }

    pub(super) fn to_message(&self) -> DelayHistogram {
        DelayHistogram {
            bounds_ms: BOUNDS_MS.into(),
            counts: self.counts.into(),
            sum_ms: self.sum_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_fall_into_their_buckets() {
        let mut delays = Delays::default();
        for millis in [-5, 0, 1, 2, 3, 600_000, 600_001] {
            delays.add(SignedDuration::from_millis(millis));
        }
        let message = delays.to_message();
        assert_eq!(message.counts.len(), message.bounds_ms.len() + 1);
        assert_eq!(message.counts[..3], [3, 1, 1]);
        assert_eq!(message.counts[15..], [1, 1]);
        assert_eq!(message.sum_ms, 1 + 2 + 3 + 600_000 + 600_001);

        let mut twice = delays.clone();
        twice.merge(&delays);
        assert_eq!(twice.to_message().counts[0], 6);
    }
}
