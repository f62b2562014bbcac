//! Re-bins a node's delay histogram into ours.

use emend_proto::learning::v1::{DelayHistogram, EffectTrace};

/// Maximum delays counted from one report; above it, buckets are scaled down in proportion, so no report keeps a
/// replica busy for long.
const MAX_COUNTED: u128 = 10_000;

/// One bucket of a node's histogram: more than `from`, at most `to`, in milliseconds.
struct Bucket {
    from: f64,
    to: f64,
    count: u64,
}

/// Calls `observe` once per delay, in seconds, with the id of its trace where one was reported. Each delay lies in its
/// bucket, and together they add up to the reported sum as far as possible.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts and milliseconds are far below 2^53"
)]
pub(super) fn each(
    histogram: &DelayHistogram,
    traces: &[EffectTrace],
    mut observe: impl FnMut(f64, Option<&str>),
) {
    let mut sum_ms = histogram.sum_ms as f64;
    let mut buckets = buckets(histogram);
    for EffectTrace { delay_ms, trace_id } in traces {
        let delay = *delay_ms as f64;
        let bucket = buckets
            .iter_mut()
            .find(|bucket| delay <= bucket.to && bucket.count > 0);
        if let Some(bucket) = bucket.filter(|bucket| bucket.from < delay || bucket.from <= 0.0) {
            bucket.count -= 1;
            sum_ms -= delay;
            observe(delay / 1_000.0, Some(trace_id));
        }
    }
    let total = buckets
        .iter()
        .fold(0_u128, |sum, bucket| sum + u128::from(bucket.count));
    if total == 0 {
        return;
    }
    let least: f64 = buckets
        .iter()
        .map(|bucket| bucket.from * bucket.count as f64)
        .sum();
    let width: f64 = buckets
        .iter()
        .map(|bucket| (bucket.to - bucket.from) * bucket.count as f64)
        .sum();
    // Strictly above the lower bound, which belongs to the bucket below.
    let place = if width > 0.0 {
        ((sum_ms - least) / width).clamp(1e-6, 1.0)
    } else {
        // All buckets that hold delays have zero width.
        1.0
    };
    for Bucket { from, to, count } in buckets {
        let seconds = (from + place * (to - from)) / 1_000.0;
        let counted = if total > MAX_COUNTED {
            u128::from(count) * MAX_COUNTED / total
        } else {
            count.into()
        };
        for _ in 0..counted {
            observe(seconds, None);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds are far below 2^53")]
fn buckets(histogram: &DelayHistogram) -> Vec<Bucket> {
    let bounds = &histogram.bounds_ms;
    let longest = bounds.last().copied().unwrap_or(0) as f64;
    // The overflow bucket has no upper bound: take twice the last bound, or the sum if that is larger; at least 1 ms.
    let above = (2.0 * longest).max(histogram.sum_ms as f64).max(1.0);
    let lower = std::iter::once(0.0).chain(bounds.iter().map(|bound| *bound as f64));
    let upper = bounds.iter().map(|bound| *bound as f64).chain([above]);
    let counts = histogram.counts.iter().map(|count| count.unsigned_abs());
    lower
        .zip(upper)
        .zip(counts)
        .map(|((from, to), count)| Bucket { from, to, count })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(counts: [i64; 4], sum_ms: i64) -> DelayHistogram {
        DelayHistogram {
            bounds_ms: vec![10, 100, 1_000],
            counts: counts.into(),
            sum_ms,
        }
    }

    fn observed(histogram: &DelayHistogram, traces: &[EffectTrace]) -> Vec<(f64, Option<String>)> {
        let mut all = Vec::new();
        each(histogram, traces, |seconds, trace| {
            all.push((seconds, trace.map(ToOwned::to_owned)));
        });
        all
    }

    fn trace(delay_ms: i64) -> EffectTrace {
        EffectTrace {
            delay_ms,
            trace_id: delay_ms.to_string(),
        }
    }

    #[test]
    fn delays_stay_in_their_buckets_and_add_up_to_the_sum() {
        let all = observed(&histogram([2, 3, 1, 0], 700), &[]);
        let within = |from: f64, to: f64| {
            let found = all
                .iter()
                .filter(|(seconds, _)| *seconds > from && *seconds <= to);
            found.count()
        };
        assert_eq!(
            (within(0.0, 0.01), within(0.01, 0.1), within(0.1, 1.0)),
            (2, 3, 1)
        );
        let sum: f64 = all.iter().map(|(seconds, _)| seconds).sum();
        assert!((sum - 0.7).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn delays_above_all_bounds_are_as_long_as_the_sum_says() {
        let all = observed(&histogram([0, 0, 0, 2], 50_000), &[]);
        assert_eq!(all.len(), 2);
        let sum: f64 = all.iter().map(|(seconds, _)| seconds).sum();
        assert!((sum - 50.0).abs() < 1e-9, "{sum}");
        assert!(all.iter().all(|(seconds, _)| *seconds > 1.0));
    }

    #[test]
    fn a_traced_delay_counts_once_and_only_if_its_bucket_has_one() {
        let all = observed(
            &histogram([1, 1, 0, 0], 60),
            &[trace(50), trace(60), trace(5_000)],
        );
        let traces: Vec<_> = all.iter().filter_map(|(_, trace)| trace.as_deref()).collect();
        assert_eq!((all.len(), traces), (2, vec!["50"]));
        assert!((all[0].0 - 0.05).abs() < 1e-9);
    }

    #[test]
    fn delays_in_a_bucket_without_width_equal_its_bound() {
        let nothing = DelayHistogram {
            bounds_ms: vec![0],
            counts: vec![2, 0],
            sum_ms: 0,
        };
        assert_eq!(observed(&nothing, &[]), [(0.0, None), (0.0, None)]);
    }

    #[test]
    fn an_empty_histogram_counts_nothing_and_a_huge_one_is_scaled_down() {
        assert!(observed(&DelayHistogram::default(), &[trace(1)]).is_empty());
        let all = observed(&histogram([3_000_000, 1_000_000, 0, 0], 1), &[]);
        let small = all.iter().filter(|(seconds, _)| *seconds <= 0.01).count();
        assert_eq!((small, all.len()), (7_500, 10_000));
        let absurd = observed(&histogram([i64::MAX; 4], i64::MAX), &[]);
        assert!(absurd.len() <= 10_000);
    }
}
