//! More calls than a service can take. First its capacity is measured, in the same run, by callers that wait for each
//! answer; then calls begin at a multiple of that rate, whether or not earlier ones were answered.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use emend_base::status::Explained;
use futures::future::join_all;
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};
use tonic::{Code, Status};

/// The interval at which calls that are due begin.
const TICK: Duration = Duration::from_millis(5);

/// The outcome of one call.
#[derive(Debug)]
pub struct CallResult {
    /// From the call to its answer.
    pub took: Duration,
    /// Why it was refused; `None` if it was not.
    pub refusal: Option<Explained>,
}

/// The outcomes of all calls.
#[derive(Debug, Default)]
pub struct Answers(Vec<CallResult>);

async fn called(call: impl Future<Output = Result<(), Status>>) -> CallResult {
    let begun = Instant::now();
    let answer = call.await;
    CallResult {
        took: begun.elapsed(),
        refusal: answer.err().map(Explained::from),
    }
}

/// The number of calls answered per second when `callers` callers each wait for an answer before they call again.
/// `call` is given the number of the call.
///
/// # Panics
/// If a call is refused.
pub async fn capacity<F, Fut>(callers: usize, calls: usize, call: F) -> f64
where
    F: Fn(usize) -> Fut + Sync,
    Fut: Future<Output = Result<(), Status>>,
{
    let next = AtomicUsize::new(0);
    let begun = Instant::now();
    join_all((0..callers).map(|_| async {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= calls {
                return;
            }
            let answer = call(number).await;
            assert!(
                answer.is_ok(),
                "without too much load nothing is refused: {answer:?}"
            );
        }
    }))
    .await;
    #[expect(clippy::cast_precision_loss, reason = "few enough")]
    let calls = calls as f64;
    calls / begun.elapsed().as_secs_f64()
}

/// Makes `per_second` calls a second for `lasting`, and waits for all answers.
///
/// # Panics
/// If a call panics.
pub async fn press<F, Fut>(per_second: f64, lasting: Duration, call: F) -> Answers
where
    F: Fn(usize) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), Status>> + Send + 'static,
{
    let call = Arc::new(call);
    let mut calls = JoinSet::new();
    let begun = Instant::now();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut made = 0;
    while begun.elapsed() < lasting {
        ticks.tick().await;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive and small"
        )]
        let due = (begun.elapsed().min(lasting).as_secs_f64() * per_second) as usize;
        // Starts everything that is due, however late this generator is: callers do not slow down for it.
        for number in made..due {
            let call = Arc::clone(&call);
            calls.spawn(async move { called(call(number)).await });
        }
        made = made.max(due);
    }
    Answers(calls.join_all().await)
}

impl Answers {
    /// Merges the answers of several generators.
    pub fn of(all: impl IntoIterator<Item = Self>) -> Self {
        Self(all.into_iter().flat_map(|answers| answers.0).collect())
    }

    /// The number of calls made.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no call was made.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of calls accepted.
    pub fn accepted(&self) -> usize {
        self.0.iter().filter(|called| called.refusal.is_none()).count()
    }

    /// The number of calls refused.
    pub fn refused(&self) -> usize {
        self.len() - self.accepted()
    }

    /// The 99th percentile of the duration of accepted calls; zero if none was accepted.
    pub fn p99_of_accepted(&self) -> Duration {
        let mut took: Vec<Duration> = self
            .0
            .iter()
            .filter(|called| called.refusal.is_none())
            .map(|called| called.took)
            .collect();
        took.sort_unstable();
        let index = (took.len() * 99).div_ceil(100).saturating_sub(1);
        took.get(index).copied().unwrap_or_default()
    }

    /// Asserts that every refusal is one of an overloaded service, and says when to retry.
    ///
    /// # Panics
    /// If one is otherwise.
    pub fn assert_refused_properly(&self) {
        for refusal in self.0.iter().filter_map(|called| called.refusal.as_ref()) {
            assert!(
                matches!(refusal.code, Code::ResourceExhausted | Code::Unavailable),
                "{refusal}"
            );
            assert!(refusal.retry_after.is_some(), "says when to try again: {refusal}");
        }
    }
}
