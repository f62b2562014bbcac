//! Load that does not give up: many writers that repeat each submission until it is acknowledged.

use std::{
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

use super::{
    clients::{Feedback, Learning},
    says::{NAMESPACE, says, verb},
    wait::{PATIENCE, eventually, holds},
};

/// How many submissions each writer makes.
const EACH: usize = 60;
/// About how many phrases.
const PHRASES: usize = 5;
/// After which a call is made anew.
const CALL: Duration = Duration::from_secs(5);
/// The service is on its way back; asking without a pause would only slow that down.
const PAUSE: Duration = Duration::from_millis(20);

/// Writers at work.
#[derive(Debug)]
pub struct Load {
    acknowledged: Arc<AtomicUsize>,
    writers: Vec<JoinHandle<Vec<String>>>,
}

impl Load {
    /// As many writers as there are clients, each a reporter of its own with each submission.
    pub fn start(clients: impl IntoIterator<Item = Feedback>) -> Self {
        let acknowledged = Arc::new(AtomicUsize::new(0));
        let writers = clients.into_iter().enumerate();
        let writers = writers.map(|(writer, feedback)| {
            let acknowledged = Arc::clone(&acknowledged);
            tokio::spawn(async move {
                let mut ids = Vec::with_capacity(EACH);
                for n in 0..EACH {
                    let request = SubmitFeedbackRequest {
                        request_id: format!("{writer}-{n}"),
                        wait: Wait::Recorded.into(),
                        ..says(
                            &format!("reporter-{writer}-{n}"),
                            verb(&format!("phrase {}", n % PHRASES), "create_csa"),
                        )
                    };
                    ids.push(submit_until_acknowledged(&feedback, request).await);
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                }
                ids
            })
        });
        Self {
            writers: writers.collect(),
            acknowledged,
        }
    }

    /// How many submissions there will have been.
    pub fn total(&self) -> usize {
        self.writers.len() * EACH
    }

    /// Waits until so many are acknowledged.
    pub async fn reaches(&self, count: usize) {
        eventually("the load goes on", || async {
            let acknowledged = self.acknowledged.load(Ordering::SeqCst);
            holds(acknowledged >= count, || format!("{acknowledged} of {count}"))
        })
        .await;
    }

    /// Waits for all writers, and sees to it that what was acknowledged is stored, counted and learned exactly once.
    /// Answers with the head.
    ///
    /// # Panics
    /// If it is not.
    pub async fn ends_with_all_counted_once(self, feedback: &Feedback, learning: &Learning) -> i64 {
        let total = self.total();
        let ids: Vec<String> = join_all(self.writers)
            .await
            .into_iter()
            .flat_map(|ids| ids.expect("a writer ends"))
            .collect();
        let stored = feedback.all_delivered(NAMESPACE).await;
        assert_eq!(stored.len(), total, "stored once each");
        for id in &ids {
            assert!(
                stored.iter().any(|stored| stored.feedback_id == *id),
                "{id} is lost"
            );
        }
        let each = i64::try_from(total / PHRASES).expect("a small number");
        for phrase in 0..PHRASES {
            let candidate = learning
                .candidate_for(&format!("phrase {phrase}"), "create_csa")
                .await;
            assert_eq!(
                (candidate.occurrence_count, candidate.reporter_count),
                (each, each),
                "counted once each"
            );
        }
        let head = learning.head().await;
        assert_eq!(usize::try_from(head), Ok(PHRASES), "one promotion each");
        head
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
