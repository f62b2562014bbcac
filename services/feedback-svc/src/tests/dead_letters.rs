//! Events that learning-svc refused for good, over the wire, on both databases.

use emend_proto::feedback::v1 as pb;
use feedback_store::testing::Backend;
use tonic::Code;

use crate::tests::{
    Database, evaluated, eventually,
    learning::Behaviour,
    request,
    service::{start, stop},
};

on_both! {
    dead_letters_are_listed_and_redriven
    all_dead_letters_of_a_namespace_are_redriven
}

async fn dead_letters_are_listed_and_redriven(database: Database) {
    let (service, learning, lifecycle) = start(&database).await;
    let mut client = service.client.clone();
    learning.becomes(Behaviour::Refuses(Code::InvalidArgument));
    let mut refused = Vec::new();
    for n in 0..3 {
        let feedback = service.submit(evaluated(request(&n.to_string()))).await.unwrap();
        assert_eq!(feedback.delivery_state(), pb::DeliveryState::DeadLetter);
        assert_eq!(feedback.outcome.unwrap().reason, "NOT_EVALUATED");
        refused.push(feedback.feedback_id);
    }
    let mut listed = Vec::new();
    let mut page_token = String::new();
    for size in [2, 1] {
        let request = pb::ListDeadLettersRequest {
            namespace: "fund-admin".into(),
            page_size: 2,
            page_token,
        };
        let page = client.list_dead_letters(request).await.unwrap().into_inner();
        assert_eq!(page.dead_letters.len(), size);
        listed.extend(page.dead_letters);
        page_token = page.next_page_token;
    }
    assert_eq!(page_token, "");
    assert_eq!(
        listed
            .iter()
            .map(|letter| &letter.feedback_id)
            .collect::<Vec<_>>(),
        refused.iter().collect::<Vec<_>>()
    );
    assert!(listed.iter().all(|letter| {
        (letter.code, letter.error.as_str(), letter.attempts) == (3, "refused", 1) && letter.dead_at.is_some()
    }));

    learning.becomes(Behaviour::Evaluates);
    let redrive = |event_ids| pb::RedriveDeadLettersRequest {
        namespace: "fund-admin".into(),
        event_ids,
    };
    let one = client
        .redrive_dead_letters(redrive(vec![listed[1].event_id.clone()]))
        .await
        .unwrap();
    assert_eq!(one.into_inner().redriven_count, 1);
    service.delivered(&refused[1]).await;
    let rest = client.redrive_dead_letters(redrive(vec![])).await.unwrap();
    assert_eq!(rest.into_inner().redriven_count, 2);
    for id in &refused {
        service.delivered(id).await;
    }
    let none = client
        .list_dead_letters(pb::ListDeadLettersRequest::default())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(none.dead_letters, []);
    stop(service, lifecycle).await;
}

async fn all_dead_letters_of_a_namespace_are_redriven(database: Database) {
    const MANY: usize = 1_100;
    let (service, learning, lifecycle) = start(&database).await;
    let mut client = service.client.clone();
    learning.becomes(Behaviour::Refuses(Code::InvalidArgument));
    for batch in 0..MANY / 100 {
        let requests = (0..100).map(|n| request(&format!("{batch}-{n}"))).collect();
        let stored = client
            .batch_submit_feedback(pb::BatchSubmitFeedbackRequest {
                requests,
                ..Default::default()
            })
            .await
            .unwrap();
        assert_eq!(stored.into_inner().results.len(), 100);
    }
    eventually("all are dead letters", || async {
        let page = pb::ListFeedbackRequest {
            namespace: "fund-admin".into(),
            delivery_state: pb::DeliveryState::Pending.into(),
            ..Default::default()
        };
        let pending = client.clone().list_feedback(page).await.unwrap().into_inner();
        pending.feedback.is_empty()
    })
    .await;
    // They fail again at once, which does not keep the redrive going.
    let all = pb::RedriveDeadLettersRequest {
        namespace: "fund-admin".into(),
        event_ids: Vec::new(),
    };
    let redriven = client.redrive_dead_letters(all).await.unwrap().into_inner();
    assert_eq!(redriven.redriven_count, 1_100);
    stop(service, lifecycle).await;
}
