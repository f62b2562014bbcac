//! Histograms of how long changes took to be applied, from their commit and from the feedback that caused them, with
//! sample traces.

use emend_base::traceparent::Traceparent;
use emend_proto::learning::v1::{DelayHistogram, EffectTrace};
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
    /// Counts one. A negative delay, possible with two clocks, counts as zero.
    pub(super) fn add(&mut self, delay: SignedDuration) {
        let millis = millis(delay);
        self.counts[bucket_of(millis)] += 1;
        self.sum_ms = self.sum_ms.saturating_add(millis);
    }

    /// Adds another histogram.
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

fn millis(delay: SignedDuration) -> i64 {
    i64::try_from(delay.as_millis()).unwrap_or(i64::MAX).max(0)
}

fn bucket_of(millis: i64) -> usize {
    BOUNDS_MS.partition_point(|bound| *bound < millis)
}

/// Counts of delays from feedback to effect, with the newest sampled trace of each bucket.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Effects {
    delays: Delays,
    traces: [Option<EffectTrace>; BOUNDS_MS.len() + 1],
}

impl Effects {
    /// Counts one. `traceparent` is the W3C trace context of the feedback, or empty.
    pub(super) fn add(&mut self, delay: SignedDuration, traceparent: &str) {
        self.delays.add(delay);
        if let Some(traceparent) = Traceparent::parse_sampled(traceparent) {
            let delay_ms = millis(delay);
            self.traces[bucket_of(delay_ms)] = Some(EffectTrace {
                delay_ms,
                trace_id: traceparent.trace_id().to_owned(),
            });
        }
    }

    /// Adds another's counts and traces, which are older.
    pub(super) fn merge(&mut self, other: Self) {
        self.delays.merge(&other.delays);
        for (trace, older) in self.traces.iter_mut().zip(other.traces) {
            *trace = trace.take().or(older);
        }
    }

    pub(super) fn to_message(&self) -> (DelayHistogram, Vec<EffectTrace>) {
        let traces = self.traces.iter().flatten().cloned();
        (self.delays.to_message(), traces.collect())
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

    #[test]
    fn each_bucket_keeps_its_newest_sampled_trace() {
        let traced = |trace: char, flags: &str| {
            let trace: String = std::iter::repeat_n(trace, 32).collect();
            format!("00-{trace}-00f067aa0ba902b7-{flags}")
        };
        let mut effects = Effects::default();
        for (millis, traceparent) in [
            (40, traced('a', "01")),
            (45, traced('b', "01")),
            (46, traced('c', "00")),
            (47, String::new()),
            (900, traced('d', "01")),
        ] {
            effects.add(SignedDuration::from_millis(millis), &traceparent);
        }
        let mut later = Effects::default();
        later.add(SignedDuration::from_millis(950), &traced('e', "01"));
        later.merge(effects);
        let (delays, contents) = later.to_message();
        assert_eq!(delays.counts.iter().sum::<i64>(), 6);
        let contents: Vec<_> = contents
            .iter()
            .map(|trace| (trace.delay_ms, &trace.trace_id[..1]))
            .collect();
        assert_eq!(contents, [(45, "b"), (950, "e")]);
    }
}
