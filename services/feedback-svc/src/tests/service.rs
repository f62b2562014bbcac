//! What the service promises, over the wire, on both databases.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicU8, Ordering},
};

use emend_base::{Entropy, Lifecycle, status::Explained};
use emend_proto::{
    common::v1::{self as common, OutcomeState},
    feedback::v1 as pb,
    learning::v1::event,
};
use feedback_store::{
    SqlStore,
    ports::Connected,
    testing::{Backend, feedback, lease, stored},
};
use futures::future::join_all;
use tonic::{Code, Request};

use crate::tests::{
    Database, SOON, Service, evaluated, eventually,
    learning::{Behaviour, Learning},
    request, with_id,
};

on_both! {
    a_correction_is_stored_sent_and_answered_with_its_outcome
    a_repeated_request_is_answered_as_the_first_with_its_current_outcome
    without_learning_svc_the_answer_is_pending_in_time_and_nothing_is_lost
    a_retraction_is_delivered_and_a_repeat_gets_the_same_answer
    a_batch_is_answered_item_by_item
    pages_continue_where_they_ended_and_only_for_the_same_query
    a_broken_or_silent_stream_loses_nothing
    events_unsent_before_a_restart_are_sent_after_it
}

pub(super) async fn start(database: &Database) -> (Service, Learning, Lifecycle) {
    let learning = Learning::new();
    let (address, lifecycle) = learning.serve().await;
    (Service::start(database, &address).await, learning, lifecycle)
}

pub(super) async fn stop(service: Service, learning: Lifecycle) {
    service.stop().await;
    learning.shutdown(SOON).await;
}

/// An address on which nobody listens yet, nor will another test until it is used: each call gives another host of the
/// loopback network, and the others are at the first of them.
fn vacant() -> SocketAddr {
    static GIVEN: AtomicU8 = AtomicU8::new(1);
    let host = GIVEN.fetch_add(1, Ordering::Relaxed);
    let listener = std::net::TcpListener::bind((Ipv4Addr::new(127, 1, 0, host), 0)).unwrap();
    listener.local_addr().unwrap()
}

async fn a_correction_is_stored_sent_and_answered_with_its_outcome(database: Database) {
    let (service, learning, lifecycle) = start(&database).await;
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let mut traced = Request::new(evaluated(request("Mail jane.doe@example.org")));
    traced
        .metadata_mut()
        .insert("traceparent", traceparent.parse().unwrap());
    let answered = service
        .client
        .clone()
        .submit_feedback(traced)
        .await
        .unwrap()
        .into_inner()
        .feedback
        .unwrap();

    let outcome = answered.outcome.clone().unwrap();
    assert_eq!(
        (outcome.state(), outcome.revision),
        (OutcomeState::Applied, answered.accept_order)
    );
    assert_eq!(answered.delivery_state(), pb::DeliveryState::Delivered);
    assert_eq!(
        (answered.caller.as_str(), answered.scope()),
        ("anonymous", common::Scope::Global)
    );
    // Free text is masked; text that becomes a key is not.
    assert_eq!(answered.reason, "ask [email]");
    assert_eq!(
        answered.correction,
        request("Mail jane.doe@example.org").correction
    );
    assert_eq!(service.get(&answered.feedback_id).await, answered);

    let [sent] = &learning.received()[..] else {
        panic!("one event")
    };
    assert_eq!(
        (&sent.feedback_id, &sent.namespace),
        (&answered.feedback_id, &answered.namespace)
    );
    assert_eq!(
        (sent.accept_order, sent.traceparent.as_str()),
        (answered.accept_order, traceparent)
    );
    let Some(event::Event::Recorded(recorded)) = &sent.event else {
        panic!("{sent:?}")
    };
    assert_eq!(
        (&recorded.reason, &recorded.context),
        (&answered.reason, &answered.context)
    );
    assert_eq!(
        (recorded.received_at, &recorded.correction),
        (answered.received_at, &answered.correction)
    );
    assert_eq!(
        (&recorded.reporter, &recorded.caller),
        (&answered.reporter, &answered.caller)
    );

    // Without waiting, the response comes before the outcome, which still follows.
    let recorded = service.submit(request("another")).await.unwrap();
    let outcome = recorded.outcome.unwrap();
    assert_eq!(
        (outcome.state(), outcome.reason.as_str()),
        (OutcomeState::Pending, "NOT_EVALUATED")
    );
    service.delivered(&recorded.feedback_id).await;
    stop(service, lifecycle).await;
}

async fn a_repeated_request_is_answered_as_the_first_with_its_current_outcome(database: Database) {
    let (service, learning, lifecycle) = start(&database).await;
    let first = service.submit(with_id("r-1", request("a"))).await.unwrap();
    let again = service
        .submit(evaluated(with_id("r-1", request("a"))))
        .await
        .unwrap();
    assert_eq!(
        (&again.feedback_id, again.accept_order),
        (&first.feedback_id, first.accept_order)
    );
    assert_eq!(again.outcome.unwrap().state(), OutcomeState::Applied);

    let other = service.submit(with_id("r-1", request("b"))).await.unwrap_err();
    assert_eq!(other.code(), Code::AlreadyExists);
    assert_eq!(
        Explained::from(&other).reason.as_deref(),
        Some("REQUEST_ID_REUSED")
    );

    // Many at once, on two replicas where the database can be shared.
    let second = match &database {
        Database::Sqlite(_) => None,
        Database::Postgres(_) => Some(Service::start(&database, "127.0.0.1:1").await),
    };
    let replicas = [&service, second.as_ref().unwrap_or(&service)];
    let attempts = (0..60).map(|attempt| {
        let request_id = format!("r-{}", 2 + attempt % 3);
        replicas[attempt % 2].submit(with_id(&request_id, request("c")))
    });
    let mut ids: Vec<_> = join_all(attempts)
        .await
        .into_iter()
        .map(|answer| answer.unwrap().feedback_id)
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3);
    assert_eq!(service.list().await.len(), 4);
    // It reaches nobody: while it runs it may claim events again and again, and keep each until its lease ends.
    if let Some(second) = second {
        second.stop().await;
    }
    for id in &ids {
        service.delivered(id).await;
    }
    assert_eq!(learning.received().len(), 4);
    stop(service, lifecycle).await;
}

async fn without_learning_svc_the_answer_is_pending_in_time_and_nothing_is_lost(database: Database) {
    let address = vacant();
    let service = Service::start(&database, &address.to_string()).await;
    let answered = service.submit(evaluated(request("a"))).await.unwrap();
    let outcome = answered.outcome.unwrap();
    assert_eq!(
        (outcome.state(), outcome.reason.as_str()),
        (OutcomeState::Pending, "NOT_EVALUATED")
    );

    let many = join_all((0..100).map(|n| service.submit(request(&format!("phrase {n}"))))).await;
    let learning = Learning::new();
    let lifecycle = learning.serve_at(address).await;
    service.delivered(&answered.feedback_id).await;
    for feedback in many {
        service.delivered(&feedback.unwrap().feedback_id).await;
    }
    let mut events: Vec<_> = learning
        .received()
        .into_iter()
        .map(|event| event.event_id)
        .collect();
    events.sort_unstable();
    events.dedup();
    assert_eq!(events.len(), 101);
    stop(service, lifecycle).await;
}

async fn a_retraction_is_delivered_and_a_repeat_gets_the_same_answer(database: Database) {
    let (service, learning, lifecycle) = start(&database).await;
    let stored = service.submit(evaluated(request("a"))).await.unwrap();
    let retract = |namespace: &str, reason: &str| pb::RetractFeedbackRequest {
        namespace: namespace.into(),
        feedback_id: stored.feedback_id.clone(),
        reason: reason.into(),
        wait: pb::Wait::Evaluated.into(),
    };
    let mut client = service.client.clone();
    let elsewhere = client
        .retract_feedback(retract("elsewhere", ""))
        .await
        .unwrap_err();
    assert_eq!(elsewhere.code(), Code::NotFound);

    let request = retract("fund-admin", "call +44 20 7946 0958");
    let first = client
        .retract_feedback(request)
        .await
        .unwrap()
        .into_inner()
        .feedback
        .unwrap();
    assert!(first.retracted_at.is_some());
    assert_eq!(first.retract_reason, "call [phone]");
    let outcome = first.outcome.clone().unwrap();
    assert_eq!(
        (outcome.state(), outcome.reason.as_str()),
        (OutcomeState::NoEffect, "RETRACTED")
    );
    let again = client
        .retract_feedback(retract("fund-admin", "other"))
        .await
        .unwrap()
        .into_inner()
        .feedback
        .unwrap();
    assert_eq!(again, first);

    let [event::Event::Recorded(_), event::Event::Retracted(sent)] =
        &learning.received_of(&stored.feedback_id)[..]
    else {
        panic!("{:?}", learning.received())
    };
    assert_eq!(
        (sent.reason.as_str(), sent.retracted_at),
        ("call [phone]", first.retracted_at)
    );
    stop(service, lifecycle).await;
}

async fn a_batch_is_answered_item_by_item(database: Database) {
    let (service, _, lifecycle) = start(&database).await;
    let first = service.submit(with_id("r", request("a"))).await.unwrap();
    let batch = pb::BatchSubmitFeedbackRequest {
        requests: vec![
            with_id("r", request("a")),
            with_id("r", request("b")),
            request(""),
            request("new"),
            with_id("s", request("twice")),
            with_id("s", request("twice")),
        ],
        wait: pb::Wait::Evaluated.into(),
    };
    let results = service
        .client
        .clone()
        .batch_submit_feedback(batch)
        .await
        .unwrap()
        .into_inner()
        .results;
    let code = |place: usize| Code::from(results[place].status.as_ref().unwrap().code);
    let codes: Vec<_> = (0..results.len()).map(code).collect();
    let expected = [
        Code::Ok,
        Code::AlreadyExists,
        Code::InvalidArgument,
        Code::Ok,
        Code::Ok,
        Code::Ok,
    ];
    assert_eq!(codes, expected);
    let feedback = |place: usize| results[place].feedback.as_ref().unwrap();
    assert_eq!(feedback(0).feedback_id, first.feedback_id);
    assert_eq!(feedback(4).feedback_id, feedback(5).feedback_id);
    for place in [0, 3, 4, 5] {
        assert_eq!(
            feedback(place).outcome.as_ref().unwrap().state(),
            OutcomeState::Applied,
            "{place}"
        );
    }
    assert_eq!(service.list().await.len(), 3);
    stop(service, lifecycle).await;
}

async fn pages_continue_where_they_ended_and_only_for_the_same_query(database: Database) {
    let (service, _, lifecycle) = start(&database).await;
    let mut client = service.client.clone();
    for n in 0..5 {
        service.submit(request(&n.to_string())).await.unwrap();
    }
    let all = service.list().await;
    assert!(all.is_sorted_by(|newer, older| newer.accept_order > older.accept_order));
    let query = |page_token: &str| pb::ListFeedbackRequest {
        namespace: "fund-admin".into(),
        page_size: 2,
        page_token: page_token.into(),
        ..pb::ListFeedbackRequest::default()
    };
    let mut paged = Vec::new();
    let mut token = String::new();
    let mut first_token = String::new();
    loop {
        let page = client.list_feedback(query(&token)).await.unwrap().into_inner();
        paged.extend(page.feedback.into_iter().map(|feedback| feedback.feedback_id));
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
        if first_token.is_empty() {
            first_token.clone_from(&token);
        }
    }
    assert_eq!(
        paged,
        all.iter()
            .map(|feedback| feedback.feedback_id.clone())
            .collect::<Vec<_>>()
    );

    // Another page size is the same query; another filter is not.
    let larger = pb::ListFeedbackRequest {
        page_size: 100,
        ..query(&first_token)
    };
    assert_eq!(
        client
            .list_feedback(larger)
            .await
            .unwrap()
            .into_inner()
            .feedback
            .len(),
        3
    );
    let other = pb::ListFeedbackRequest {
        reporter_id: "jane".into(),
        ..query(&first_token)
    };
    let status = client.list_feedback(other).await.unwrap_err();
    assert_eq!(Explained::from(&status).field_violations[0].field, "page_token");
    stop(service, lifecycle).await;
}

async fn a_broken_or_silent_stream_loses_nothing(database: Database) {
    let (service, learning, lifecycle) = start(&database).await;
    learning.becomes(Behaviour::BreaksOnce);
    let broken = service.submit(evaluated(request("a"))).await.unwrap();
    service.delivered(&broken.feedback_id).await;

    learning.becomes(Behaviour::Silent);
    let unanswered = service.submit(request("b")).await.unwrap();
    eventually("the batch is swallowed", || async { learning.unanswered() > 0 }).await;
    learning.becomes(Behaviour::Evaluates);
    service.delivered(&unanswered.feedback_id).await;
    stop(service, lifecycle).await;
}

async fn events_unsent_before_a_restart_are_sent_after_it(database: Database) {
    let address = vacant();
    let service = Service::start(&database, &address.to_string()).await;
    let before = join_all((0..20).map(|n| service.submit(request(&n.to_string())))).await;
    let retract = pb::RetractFeedbackRequest {
        namespace: "fund-admin".into(),
        feedback_id: before[0].as_ref().unwrap().feedback_id.clone(),
        ..pb::RetractFeedbackRequest::default()
    };
    service.client.clone().retract_feedback(retract).await.unwrap();
    service.stop().await;

    let learning = Learning::new();
    let lifecycle = learning.serve_at(address).await;
    let service = Service::start(&database, &address.to_string()).await;
    for feedback in before {
        service.delivered(&feedback.unwrap().feedback_id).await;
    }
    eventually("the retraction arrives", || async {
        learning.received().len() == 21
    })
    .await;
    stop(service, lifecycle).await;
}

#[tokio::test]
async fn on_sqlite_leases_of_a_killed_process_delay_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("feedback.db");
    let new = feedback("book the trade");
    {
        let killed = SqlStore::open_sqlite(&path, Entropy::system()).await.unwrap();
        // Leased for longer than this test waits.
        stored(&killed, &new, Some(lease())).await;
        Connected::close(&killed).await;
    }
    // Kept to the end: dropping it deletes the directory.
    let database = Database::Sqlite(directory);
    let (service, _learning, lifecycle) = start(&database).await;
    service.delivered(&new.id.to_string()).await;
    stop(service, lifecycle).await;
}

#[tokio::test]
async fn two_replicas_deliver_everything_that_either_accepted() {
    let Some(database) = Database::new(Backend::Postgres).await else {
        return;
    };
    let (one, learning, lifecycle) = start(&database).await;
    // The second replica's learning-svc is away: the first delivers what it stored once its leases are released or
    // expire.
    let other = Service::start(&database, "127.0.0.1:1").await;
    let submissions = (0..60).map(|n| [&one, &other][n % 2].submit(request(&format!("phrase {n}"))));
    let stored: Vec<_> = join_all(submissions)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let mut orders: Vec<_> = stored.iter().map(|feedback| feedback.accept_order).collect();
    orders.sort_unstable();
    orders.dedup();
    assert_eq!(orders.len(), 60);
    other.stop().await;
    for feedback in &stored {
        one.delivered(&feedback.feedback_id).await;
    }
    let mut events: Vec<_> = learning
        .received()
        .into_iter()
        .map(|event| event.event_id)
        .collect();
    events.sort_unstable();
    events.dedup();
    assert_eq!(events.len(), 60);
    stop(one, lifecycle).await;
}

#[tokio::test]
async fn submissions_in_flight_at_a_shutdown_are_answered_and_delivered() {
    let database = Database::new(Backend::Sqlite).await.unwrap();
    let (service, learning, lifecycle) = start(&database).await;
    let submissions = (0..50).map(|n| service.submit(request(&n.to_string())));
    let answered = join_all(submissions).await;
    assert!(answered.iter().all(Result::is_ok));
    service.stop().await;
    assert_eq!(learning.received().len(), 50);
    lifecycle.shutdown(SOON).await;
}

#[tokio::test]
async fn a_service_without_its_database_lives_and_is_not_ready() {
    let database = Database::new(Backend::Sqlite).await.unwrap();
    let (service, _, lifecycle) = start(&database).await;
    let name = "emend.feedback.v1.FeedbackService";
    assert!(service.handle.readiness().is_ready(name));
    service.handle.store.close().await;
    eventually("it is not ready", || async {
        !service.handle.readiness().is_ready(name)
    })
    .await;
    assert_eq!(service.handle.readiness().failing(), ["database"]);
    let status = service.submit(request("a")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(Explained::from(&status).retry_after.is_some());
    stop(service, lifecycle).await;
}
