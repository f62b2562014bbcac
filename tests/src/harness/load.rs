//! Load that does not give up: writers that repeat each submission until it is acknowledged, until they are stopped.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use emend_proto::feedback::v1::{SubmitFeedbackRequest, Wait};
use futures::future::join_all;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    clients::{Feedback, Learning},
    says::{NAMESPACE, says, verb},
    wait::{PATIENCE, eventually, holds},
};

/// The number of different phrases.
const PHRASES: usize = 20;
/// The timeout after which a call is repeated.
const CALL: Duration = Duration::from_secs(5);
/// Pause between a writer's calls. It keeps small what has to be counted in the end.
const PAUSE: Duration = Duration::from_millis(10);

/// Running writers.
#[derive(Debug)]
pub struct Load {
    stop: CancellationToken,
    acknowledged: Arc<AtomicUsize>,
    writers: Vec<JoinHandle<Vec<Acknowledged>>>,
}

/// A submission that was answered OK.
#[derive(Debug)]
struct Acknowledged {
    feedback_id: String,
    phrase: usize,
}

impl Load {
    /// One writer per client. Every submission comes from a reporter of its own.
    pub fn start(clients: impl IntoIterator<Item = Feedback>) -> Self {
        let stop = CancellationToken::new();
        let acknowledged = Arc::new(AtomicUsize::new(0));
        let writers = clients.into_iter().enumerate().map(|(writer, feedback)| {
            let (stop, acknowledged) = (stop.clone(), Arc::clone(&acknowledged));
            tokio::spawn(async move {
                let mut done = Vec::new();
                for n in 0.. {
                    if stop.is_cancelled() {
                        break;
                    }
                    let phrase = (n + writer) % PHRASES;
                    let feedback_id = submit_until_acknowledged(&feedback, request(writer, n, phrase)).await;
                    done.push(Acknowledged { feedback_id, phrase });
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                    sleep(PAUSE).await;
                }
                done
            })
        });
        Self {
            writers: writers.collect(),
            stop,
            acknowledged,
        }
    }

    /// Waits until `count` more submissions are acknowledged.
    pub async fn goes_on_by(&self, count: usize) {
        let goal = self.acknowledged.load(Ordering::SeqCst) + count;
        eventually("the load goes on", || async {
            let acknowledged = self.acknowledged.load(Ordering::SeqCst);
            holds(acknowledged >= goal, || format!("{acknowledged} of {goal}"))
        })
        .await;
    }

    /// Stops the writers and asserts that everything acknowledged is stored, counted and learned exactly once. Answers
    /// with the head.
    ///
    /// # Panics
    /// If it is not.
    pub async fn ends_with_all_counted_once(self, feedback: &Feedback, learning: &Learning) -> i64 {
        self.stop.cancel();
        let done: Vec<Acknowledged> = join_all(self.writers)
            .await
            .into_iter()
            .flat_map(|done| done.expect("a writer ends"))
            .collect();
        let stored: HashSet<String> = feedback
            .all_delivered(NAMESPACE)
            .await
            .into_iter()
            .map(|stored| stored.feedback_id)
            .collect();
        let mut expected: BTreeMap<usize, i64> = BTreeMap::new();
        for Acknowledged { feedback_id, phrase } in &done {
            assert!(stored.contains(feedback_id), "{feedback_id} is lost");
            *expected.entry(*phrase).or_default() += 1;
        }
        assert_eq!(stored.len(), done.len(), "stored once each");
        let mut promotions = 0;
        for (phrase, count) in expected {
            let candidate = learning.candidate_for(&name(phrase), "create_csa").await;
            assert_eq!(
                (candidate.occurrence_count, candidate.reporter_count),
                (count, count),
                "counted once each"
            );
            promotions += i64::from(count >= 3);
        }
        let head = learning.head().await;
        assert_eq!(head, promotions, "one promotion each");
        head
    }
}

fn name(phrase: usize) -> String {
    format!("phrase {phrase}")
}

fn request(writer: usize, n: usize, phrase: usize) -> SubmitFeedbackRequest {
    SubmitFeedbackRequest {
        request_id: format!("{writer}-{n}"),
        wait: Wait::Recorded.into(),
        ..says(
            &format!("reporter-{writer}-{n}"),
            verb(&name(phrase), "create_csa"),
        )
    }
}

/// Safe to repeat because of the request id.
async fn submit_until_acknowledged(feedback: &Feedback, request: SubmitFeedbackRequest) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut service = feedback.service.clone();
        match timeout(CALL, service.submit_feedback(request.clone())).await {
            Ok(Ok(response)) => {
                let stored = response.into_inner().feedback;
                return stored.expect("an answer has the feedback").feedback_id;
            }
            failed => {
                assert!(Instant::now() < deadline, "never acknowledged: {failed:?}");
                sleep(PAUSE).await;
            }
        }
    }
}
