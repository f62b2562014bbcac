//! Samples something repeatedly, at a cost that is bounded whatever there is to sample.

use std::{future::Future, time::Duration};

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// How often gauges that need a database query or a file are sampled, unless that takes long.
pub const INTERVAL: Duration = Duration::from_secs(5);

/// Sampling takes at most one part in this many of the time: a sample that needs a second is taken once in 50 s.
const MAX_SHARE: u32 = 50;

/// Takes samples at intervals until `soft` is cancelled, the first at once.
pub async fn sample_until<F>(soft: CancellationToken, interval: Duration, mut sample: impl FnMut() -> F)
where
    F: Future<Output = ()>,
{
    let rounds = async {
        loop {
            let began = Instant::now();
            sample().await;
            sleep(interval.max(began.elapsed() * MAX_SHARE)).await;
        }
    };
    tokio::select! {
        () = soft.cancelled() => {}
        () = rounds => {}
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn samples_are_taken_at_intervals_and_expensive_ones_less_often() {
        let soft = CancellationToken::new();
        let (taken, cost) = (Cell::new(0), Cell::new(Duration::ZERO));
        let sampling = sample_until(soft.clone(), Duration::from_secs(5), || {
            taken.set(taken.get() + 1);
            sleep(cost.get())
        });
        let watching = async {
            sleep(Duration::from_secs(12)).await;
            assert_eq!(taken.get(), 3, "at 0 s, 5 s and 10 s");
            cost.set(Duration::from_secs(1));
            sleep(Duration::from_secs(106)).await;
            assert_eq!(taken.get(), 6, "at 15 s, 66 s and 117 s");
            soft.cancel();
        };
        tokio::join!(sampling, watching);
    }
}
