//! Networks that silently swallow everything: each side detects it by HTTP/2's keep-alive, answers meanwhile as well as
//! it can, and recovers by itself. In long runs each black hole lasts a minute.

use std::time::Duration;

use emend_client::Submission;
use emend_proto::{
    common::v1::OutcomeState,
    feedback::v1::{DeliveryState, ListFeedbackRequest, SubmitFeedbackRequest},
    learning::v1::ListNodesRequest,
};
use emend_tests::{
    faults::{
        proxy::{Fault, Gateway},
        runs::short_or_long,
    },
    harness::{
        NAMESPACE, System, alias, answered, eventually,
        node::Node,
        says,
        says::{alias_key, entity_value},
        system::Database,
        verb,
        wait::holds,
        wary, within,
    },
};
use tokio::time::sleep;

/// Longer than detection takes; a minute in long runs.
fn a_while() -> Duration {
    short_or_long(2 * (wary::INTERVAL + wary::TIMEOUT), Duration::from_mins(1))
}

async fn wary_system() -> System {
    System::start(Database::sqlite(), 1, 1, wary::settings()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_in_a_black_hole_reports_its_staleness_and_recovers() {
    let system = wary_system().await;
    let learning = system.learning();
    let road = Gateway::to(system.learning[0].address()).await;
    let node = Node::start_wary(road.address(), "search-1").await;
    let first = learning.put(alias_key("jd"), entity_value("person-1")).await;
    node.until(first.revision).await;
    let is_connected = async || {
        let fleet = answered(
            learning
                .subscriptions
                .clone()
                .list_nodes(ListNodesRequest::default())
                .await,
        );
        fleet.nodes.iter().any(|node| node.connected)
    };
    eventually("the server knows the node", || async {
        holds(is_connected().await, || "not connected".into())
    })
    .await;

    road.suffer([Fault::BlackHole], 1);
    let missed = learning.put(alias_key("jd"), entity_value("person-2")).await;
    eventually("the node finds out", || async {
        let staleness = node.view().staleness();
        holds(!staleness.connected, || format!("{staleness:?}"))
    })
    .await;
    eventually("the server finds out", || async {
        holds(!is_connected().await, || "still connected".into())
    })
    .await;
    let before = node.view().staleness();
    sleep(a_while()).await;
    let after = node.view().staleness();
    assert_eq!(after.revision.0, first.revision, "it answers with what it has");
    assert!(!after.connected, "{after:?}");
    assert!(
        after.age > before.age,
        "it says that it gets staler: {before:?}, {after:?}"
    );
    assert_eq!(after.current_at, before.current_at);

    road.heal();
    node.until(missed.revision).await;
    assert!(node.view().staleness().connected);
    node.until_certain().await;
    node.assert_answers_by(&system.stored().resources().await, &[]);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn learning_svc_in_a_black_hole_makes_outcomes_pending_and_loses_nothing() {
    let system = wary_system().await;
    let feedback = system.feedback();
    let learned = feedback
        .submit(says("jane", verb("close it", "close_trade")))
        .await;
    feedback.delivered(NAMESPACE, &learned.feedback_id).await;

    let road = &system.feedback[0].onward;
    road.suffer([Fault::BlackHole], 1);
    let submit = async |reporter: &str| {
        let mut request = tonic::Request::new(SubmitFeedbackRequest {
            request_id: format!("of-{reporter}"),
            ..says(reporter, alias("jd", "person-1"))
        });
        // The wait for the outcome must end well before the caller's own deadline.
        request.set_timeout(Duration::from_secs(10));
        let answer = answered(feedback.service.clone().submit_feedback(request).await);
        let stored = answer.feedback.unwrap();
        assert_eq!(stored.outcome.as_ref().unwrap().state(), OutcomeState::Pending);
        assert_eq!(stored.delivery_state(), DeliveryState::Pending);
        stored
    };
    let first = submit("ann").await;
    assert!(road.harmed() > 0, "it was on its way");
    sleep(a_while()).await;
    let second = submit("bob").await;
    let waiting = ListFeedbackRequest {
        delivery_state: DeliveryState::DeadLetter.into(),
        ..feedback.list_request(NAMESPACE)
    };
    assert_eq!(feedback.list(waiting).await, [], "nothing is given up");

    road.heal();
    for stored in [&first, &second] {
        feedback.delivered(NAMESPACE, &stored.feedback_id).await;
    }
    let candidate = system.learning().candidate_for("jd", "person-1").await;
    assert_eq!((candidate.occurrence_count, candidate.reporter_count), (2, 2));
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submission_with_a_lost_answer_is_repeated_with_one_effect() {
    let system = wary_system().await;
    let road = Gateway::to(system.feedback[0].address()).await;
    let backend = wary::backend(road.address()).deadline(Duration::from_mins(1));
    road.suffer([Fault::LostAnswers], 1);
    let submission = Submission::entity(NAMESPACE, "jd", "person-1").reporter("jane");
    let submitting = tokio::spawn(async move { backend.submit(submission).await });

    let direct = system.feedback();
    eventually("it is stored, which its sender can't know", || async {
        let stored = direct.list(direct.list_request(NAMESPACE)).await;
        holds(stored.len() == 1, || format!("{stored:?}"))
    })
    .await;
    assert!(!submitting.is_finished());
    road.heal();
    let recorded = within("it is acknowledged", submitting).await.unwrap().unwrap();
    let stored = direct.all_delivered(NAMESPACE).await;
    assert_eq!(stored.len(), 1, "stored once");
    assert_eq!(stored[0].feedback_id, recorded.feedback_id.to_string());
    let candidate = system.learning().candidate_for("jd", "person-1").await;
    assert_eq!((candidate.occurrence_count, candidate.reporter_count), (1, 1));
    assert!(road.harmed() > 0);
    system.stop().await;
}
