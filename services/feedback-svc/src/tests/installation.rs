//! To which installation of learning-svc events are delivered, and what happens when another one answers.

use emend_base::{Entropy, Environment, Lifecycle, telemetry::Metrics};
use emend_core::InstallationId;
use emend_proto::{common::v1::OutcomeState, feedback::v1 as pb};
use feedback_store::testing::Backend;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::{
    Config, installation, start,
    tests::{Database, SOON, Service, evaluated, eventually, learning::Learning, request},
};

on_both! {
    events_wait_while_another_installation_answers
    an_operator_can_accept_another_installation
}

fn id(number: u128) -> InstallationId {
    InstallationId(Uuid::from_u128(number))
}

fn shows(metrics: &Metrics, mismatch: u8) -> bool {
    metrics
        .render()
        .contains(&format!("\nemend_installation_mismatch {mismatch}\n"))
}

async fn dead_letters(service: &Service) -> usize {
    let all = pb::ListDeadLettersRequest::default();
    let listed = service.client.clone().list_dead_letters(all).await.unwrap();
    listed.into_inner().dead_letters.len()
}

async fn events_wait_while_another_installation_answers(database: Database) {
    let learning = Learning::new();
    learning.is(id(1));
    let (address, lifecycle) = learning.serve().await;
    let metrics = Metrics::new();
    let service = Service::start_with(&database, &address, metrics.clone()).await;
    let first = service.submit(request("a")).await.unwrap();
    service.delivered(&first.feedback_id).await;
    assert!(shows(&metrics, 0));

    learning.is(id(2));
    let second = service.submit(evaluated(request("b"))).await.unwrap();
    assert_eq!(second.outcome.unwrap_or_default().state(), OutcomeState::Pending);
    eventually("the mismatch is shown", || async { shows(&metrics, 1) }).await;
    assert!(
        service.handle.readiness().failing().is_empty(),
        "submissions go on"
    );
    assert_eq!(dead_letters(&service).await, 0);
    assert_eq!(learning.received_of(&second.feedback_id), [], "it got nothing");

    // Also a start that finds the other one delivers nothing to it.
    service.stop().await;
    let service = Service::start_with(&database, &address, Metrics::new()).await;
    let third = service.submit(evaluated(request("c"))).await.unwrap();
    assert_eq!(third.outcome.unwrap_or_default().state(), OutcomeState::Pending);
    assert_eq!(learning.received_of(&third.feedback_id), []);

    learning.is(id(1));
    for waiting in [&second.feedback_id, &third.feedback_id] {
        service.delivered(waiting).await;
    }
    service.stop().await;
    lifecycle.shutdown(SOON).await;
}

async fn an_operator_can_accept_another_installation(database: Database) {
    let learning = Learning::new();
    learning.is(id(1));
    let (address, lifecycle) = learning.serve().await;
    let service = Service::start(&database, &address).await;
    let first = service.submit(request("a")).await.unwrap();
    service.delivered(&first.feedback_id).await;
    learning.is(id(2));
    let second = service.submit(evaluated(request("b"))).await.unwrap();

    let accept = async || installation::accept(&database.url(), id(2), &Entropy::system()).await;
    let service = if let Database::Postgres(_) = &database {
        // It may be running.
        assert_eq!(accept().await.unwrap().before, Some(id(1)));
        service
    } else {
        service.stop().await;
        assert_eq!(accept().await.unwrap().before, Some(id(1)));
        Service::start(&database, &address).await
    };
    service.delivered(&second.feedback_id).await;
    service.stop().await;
    lifecycle.shutdown(SOON).await;
}

#[tokio::test]
async fn an_empty_postgresql_database_is_initialised_only_with_init() {
    let Some(database) = Database::new(Backend::Postgres).await else {
        return;
    };
    let started = async |init| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = Config {
            init,
            ..Config::new(database.url(), "127.0.0.1:1".parse().unwrap())
        };
        start(config, listener, Environment::system(&Lifecycle::new())).await
    };
    for _ in 0..2 {
        let refused = started(false).await.unwrap_err().to_string();
        assert!(
            refused.contains("is empty") && refused.contains("--init"),
            "{refused}"
        );
        let refused = installation::accept(&database.url(), id(1), &Entropy::system()).await;
        assert!(refused.unwrap_err().to_string().contains("is empty"));
    }
    started(true).await.unwrap().shutdown(SOON).await;
    started(false).await.unwrap().shutdown(SOON).await;
}
