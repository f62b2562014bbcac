//! Either service killed without warning under load, a few times: every acknowledged feedback is stored and evaluated
//! exactly once, and nodes equal the database.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use emend_proto::feedback::v1::{SubmitFeedbackRequest, Wait};
use emend_tests::harness::{
    Dice, Feedback, NAMESPACE, Subscriber, deployment::Deployment, eventually, node::Node, says, verb,
    wait::holds,
};
use futures::future::join_all;
use tokio::time::{Instant, sleep};

const ROUNDS: usize = 4;
const WRITERS: usize = 8;
/// How many submissions each writer makes. All of them are made in the end, whoever is killed.
const EACH: usize = 60;
const PHRASES: usize = 5;

/// Submits until it is acknowledged; safe to repeat because of the request id.
async fn acknowledged(feedback: &Feedback, request: SubmitFeedbackRequest) -> String {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let mut service = feedback.service.clone();
        let attempt = service.submit_feedback(request.clone());
        match tokio::time::timeout(Duration::from_secs(5), attempt).await {
            Ok(Ok(response)) => return response.into_inner().feedback.unwrap().feedback_id,
            failed => {
                assert!(Instant::now() < deadline, "never acknowledged: {failed:?}");
                // The service is on its way back; asking without a pause would only slow that down.
                sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

async fn killed_under_load(mut deployment: Deployment, seed: u64) {
    let dice = Dice::seeded(seed);
    let node = Node::start(deployment.learning.front.address(), "search-1").await;
    let made = Arc::new(AtomicUsize::new(0));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let feedback = deployment.feedback();
            let made = Arc::clone(&made);
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
                    ids.push(acknowledged(&feedback, request).await);
                    made.fetch_add(1, Ordering::SeqCst);
                }
                ids
            })
        })
        .collect();
    for round in 1..=ROUNDS {
        // At some moment of this round's share of the work.
        let share = WRITERS * EACH / (ROUNDS + 1);
        let moment = (round - 1) * share + dice.below(share);
        eventually("the load goes on", || async {
            let made = made.load(Ordering::SeqCst);
            holds(made >= moment, || format!("{made} of {moment}"))
        })
        .await;
        if dice.chance(0.5) {
            deployment.feedback.kill().await;
            deployment.start_feedback().await;
        } else {
            deployment.learning.kill().await;
            deployment.start_learning().await;
        }
    }
    // Both at once, at the end.
    deployment.feedback.kill().await;
    deployment.learning.kill().await;
    deployment.start_learning().await;
    deployment.start_feedback().await;
    let ids: Vec<String> = join_all(writers)
        .await
        .into_iter()
        .flat_map(Result::unwrap)
        .collect();

    let (feedback, learning) = (deployment.feedback(), deployment.learning());
    let stored = feedback.all_delivered(NAMESPACE).await;
    assert_eq!(stored.len(), WRITERS * EACH, "seed {seed}: stored once each");
    for id in &ids {
        assert!(
            stored.iter().any(|stored| stored.feedback_id == *id),
            "seed {seed}: {id} is lost"
        );
    }
    let each = i64::try_from(WRITERS * EACH / PHRASES).unwrap();
    for phrase in 0..PHRASES {
        let candidate = learning
            .candidate_for(&format!("phrase {phrase}"), "create_csa")
            .await;
        assert_eq!(
            (candidate.occurrence_count, candidate.reporter_count),
            (each, each),
            "seed {seed}: counted once each"
        );
    }
    let head = learning.head().await;
    assert_eq!(
        head,
        i64::try_from(PHRASES).unwrap(),
        "seed {seed}: one promotion each"
    );
    let database = deployment.stored().resources().await;
    let mut subscriber = Subscriber::of_everything("late");
    subscriber.begin(&learning.channel).await;
    subscriber.until(head).await;
    assert_eq!(*subscriber.held(), database);
    node.until(head).await;
    node.assert_answers_by(&database, &[]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_or_counted_twice_on_sqlite() {
    killed_under_load(Deployment::sqlite().await, 11).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_or_counted_twice_on_postgresql() {
    if let Some(deployment) = Deployment::postgres().await {
        killed_under_load(deployment, 12).await;
    }
}
