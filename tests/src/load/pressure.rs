//! More calls than a service can take: first what it can take is found out, in the same run, by callers that wait for each
//! answer; then calls begin at a multiple of that, whether or not earlier ones were answered.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use emend_runtime::status::Explained;
use futures::future::join_all;
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};
use tonic::{Code, Status};

/// How often calls begin; so many as are due by then.
const TICK: Duration = Duration::from_millis(5);

/// What became of one call.
#[derive(Debug)]
pub struct Called {
    /// From when it was made until it was answered.
    pub took: Duration,
    /// Why it was refused.
    pub refusal: Option<Explained>,
}

/// What became of all calls.
#[derive(Debug, Default)]
pub struct Answers(Vec<Called>);

async fn called(call: impl Future<Output = Result<(), Status>>) -> Called {
    let begun = Instant::now();
    let answer = call.await;
    Called {
        took: begun.elapsed(),
        refusal: answer.err().map(Explained::from),
    }
}

/// How many calls a second are answered where so many callers each wait for their answer before they call again. `call` is
/// given the number of the call.
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

/// Calls so many times a second, for so long, and waits for all answers.
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
        // All that is due, however late this generator is: those who call do not slow down for it.
        for number in made..due {
            let call = Arc::clone(&call);
            calls.spawn(async move { called(call(number)).await });
        }
        made = made.max(due);
    }
    Answers(calls.join_all().await)
}

impl Answers {
    /// Of several generators.
    pub fn of(all: impl IntoIterator<Item = Self>) -> Self {
        Self(all.into_iter().flat_map(|answers| answers.0).collect())
    }

    /// How many calls were made.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no call was made.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many were accepted.
    pub fn accepted(&self) -> usize {
        self.0.iter().filter(|called| called.refusal.is_none()).count()
    }

    /// How many were refused.
    pub fn refused(&self) -> usize {
        self.len() - self.accepted()
    }

    /// Of a hundred accepted calls ninety-nine took at most this; nothing where none was accepted.
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

    /// That every refusal is that of a service that has too much to do, and says when to try again.
    ///
    /// # Panics
    /// If one is not.
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
