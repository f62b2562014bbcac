//! What has become of feedback: who is told, and that nobody waits for it in vain.

use emend_core::InstallationId;
use emend_proto::{
    common::v1::{OutcomeState, Standing},
    feedback::v1 as pb,
};
use feedback_store::testing::Backend;
use tokio::time::Instant;
use uuid::Uuid;

use crate::tests::{
    Database, SOON, Service, evaluated,
    learning::{Behaviour, Learning},
    request, with_id,
};

on_both! {
    reads_and_repeated_requests_say_what_has_become_of_feedback_and_nothing_else_asks
    a_read_does_without_it_when_learning_svc_does_not_answer
}

fn id(number: u128) -> InstallationId {
    InstallationId(Uuid::from_u128(number))
}

fn present(feedback: &pb::Feedback) -> Option<OutcomeState> {
    feedback.present.as_ref().map(Standing::state)
}

async fn reads_and_repeated_requests_say_what_has_become_of_feedback_and_nothing_else_asks(
    database: Database,
) {
    let learning = Learning::new();
    learning.is(id(1));
    let (address, lifecycle) = learning.serve().await;
    let service = Service::start(&database, &address).await;
    let first = service
        .submit(evaluated(with_id("r-1", request("a"))))
        .await
        .unwrap();
    let second = service
        .submit(evaluated(with_id("r-2", request("b"))))
        .await
        .unwrap();
    let retracted = pb::RetractFeedbackRequest {
        namespace: "fund-admin".into(),
        feedback_id: second.feedback_id.clone(),
        wait: pb::Wait::Evaluated.into(),
        ..pb::RetractFeedbackRequest::default()
    };
    let mut client = service.client.clone();
    let retracted = client.retract_feedback(retracted).await.unwrap().into_inner();
    let retracted = retracted.feedback.unwrap();
    assert_eq!([present(&first), present(&retracted)], [None; 2]);
    assert_eq!(
        learning.asked(),
        Vec::<usize>::new(),
        "neither a new submission nor a retraction asks"
    );

    let read = service.get(&first.feedback_id).await;
    assert_eq!(present(&read), Some(OutcomeState::Withdrawn));
    assert_eq!(
        read.outcome, first.outcome,
        "it is as it was when it was evaluated"
    );
    let again = service.submit(with_id("r-1", request("a"))).await.unwrap();
    assert_eq!(again, read);
    assert_eq!(learning.asked(), [1, 1]);
    let listed = service.list().await;
    assert_eq!(listed.iter().filter_map(present).count(), 2);
    assert_eq!(learning.asked(), [2], "one call for a page");

    let elsewhere = pb::SubmitFeedbackRequest {
        namespace: "research".into(),
        ..with_id("r-1", request("a"))
    };
    let batch = |requests| pb::BatchSubmitFeedbackRequest {
        requests,
        wait: pb::Wait::Evaluated.into(),
    };
    let requests = vec![
        elsewhere,
        with_id("r-2", request("b")),
        with_id("r-3", request("c")),
    ];
    client
        .batch_submit_feedback(batch(requests.clone()))
        .await
        .unwrap();
    assert_eq!(learning.asked(), [1], "of what was stored before");
    let results = client.batch_submit_feedback(batch(requests)).await.unwrap();
    let results = results.into_inner().results;
    assert!(
        results
            .iter()
            .all(|result| present(result.feedback.as_ref().unwrap()).is_some())
    );
    assert_eq!(learning.asked(), [1, 2], "one call for each namespace");
    service.stop().await;
    lifecycle.shutdown(SOON).await;
}

async fn a_read_does_without_it_when_learning_svc_does_not_answer(database: Database) {
    let learning = Learning::new();
    learning.is(id(1));
    let (address, lifecycle) = learning.serve().await;
    let service = Service::start(&database, &address).await;
    let stored = service.submit(evaluated(request("a"))).await.unwrap();
    let read = async || {
        let began = Instant::now();
        let read = service.get(&stored.feedback_id).await;
        assert_eq!(read.outcome, stored.outcome);
        (present(&read), began.elapsed().as_secs())
    };
    assert_eq!(read().await, (Some(OutcomeState::Withdrawn), 0));
    learning.becomes(Behaviour::Silent);
    assert_eq!(read().await, (None, 1), "it waits for a second");
    learning.becomes(Behaviour::Evaluates);
    assert_eq!(read().await.0, Some(OutcomeState::Withdrawn));
    learning.is(id(2));
    assert_eq!(
        read().await,
        (None, 0),
        "another installation knows nothing of it"
    );
    learning.is(id(1));
    assert_eq!(read().await.0, Some(OutcomeState::Withdrawn));
    lifecycle.shutdown(SOON).await;
    assert_eq!(read().await, (None, 0), "nobody listens");
    service.stop().await;
}
