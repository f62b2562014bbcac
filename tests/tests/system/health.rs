//! Health: readiness is truthful, liveness does not depend on the database, nor either service's readiness on the
//! other.

use emend_tests::{
    both_databases,
    harness::{NAMESPACE, System, eventually, phrase, process::serving, rpc::channel, says, wait::holds},
    replicated,
};
use tonic_health::pb::{health_check_response::ServingStatus, health_client::HealthClient};

const LIVENESS: &str = "";
const FEEDBACK: &str = "emend.feedback.v1.FeedbackService";
const LEARNING: [&str; 4] = [
    "emend.learning.v1.CandidateService",
    "emend.learning.v1.IngestService",
    "emend.learning.v1.PolicyService",
    "emend.learning.v1.ResourceService",
];
/// It serves what is held, whether or not the database is there.
const STREAM: &str = "emend.learning.v1.SubscriptionService";

async fn becomes(system: &System, feedback: ServingStatus, learning: ServingStatus) {
    let of_feedback = HealthClient::new(channel(system.feedback[0].front.address()));
    let of_learning = HealthClient::new(channel(system.learning[0].front.address()));
    eventually(
        &format!("feedback-svc is {feedback:?}, learning-svc {learning:?}"),
        || async {
            for client in [&of_feedback, &of_learning] {
                let alive = serving(client, LIVENESS).await;
                assert_eq!(
                    alive,
                    Some(ServingStatus::Serving),
                    "it lives, whatever becomes of the database"
                );
            }
            let status = serving(&of_feedback, FEEDBACK).await;
            holds(status == Some(feedback), || format!("feedback-svc is {status:?}"))?;
            for service in LEARNING {
                let status = serving(&of_learning, service).await;
                holds(status == Some(learning), || format!("{service} is {status:?}"))?;
            }
            let status = serving(&of_learning, STREAM).await;
            holds(status == Some(ServingStatus::Serving), || {
                format!("{STREAM} is {status:?}")
            })?;
            Ok(())
        },
    )
    .await;
}

both_databases! {
    async fn each_service_is_ready_when_it_is_started(system) {
        becomes(system, ServingStatus::Serving, ServingStatus::Serving).await;
    }

    async fn feedback_is_taken_while_learning_is_away(system) {
        system.stop_learning().await;
        let of_feedback = HealthClient::new(channel(system.feedback[0].front.address()));
        let request = emend_proto::feedback::v1::SubmitFeedbackRequest {
            wait: 0,
            ..says("jane", phrase("set up a csa", "create_csa"))
        };
        system.feedback().submit(request).await;
        assert_eq!(serving(&of_feedback, FEEDBACK).await, Some(ServingStatus::Serving));
    }
}

replicated! {
    async fn readiness_follows_the_database_and_liveness_does_not(system: 1 x 1) {
        becomes(system, ServingStatus::Serving, ServingStatus::Serving).await;
        let (feedback, learning) = (
            system.feedback[0].road.as_ref().unwrap(),
            system.learning[0].road.as_ref().unwrap(),
        );
        feedback.close();
        becomes(system, ServingStatus::NotServing, ServingStatus::Serving).await;
        learning.close();
        becomes(system, ServingStatus::NotServing, ServingStatus::NotServing).await;
        system.database.reopen(feedback);
        becomes(system, ServingStatus::Serving, ServingStatus::NotServing).await;
        system.database.reopen(learning);
        becomes(system, ServingStatus::Serving, ServingStatus::Serving).await;

        let answer = system.feedback().learn(says("jane", phrase("set up a csa", "create_csa"))).await;
        assert_eq!(answer.outcome.unwrap().reporter_count, 1);
        assert_eq!(system.feedback().all_delivered(NAMESPACE).await.len(), 1);
    }
}
