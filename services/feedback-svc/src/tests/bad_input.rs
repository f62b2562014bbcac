//! Bad input of every kind on every RPC: every violated field is named at once, and nothing is written.

use std::collections::HashMap;

use emend_proto::{
    common::v1::{self as common, correction::Correction},
    feedback::v1 as pb,
};
use emend_runtime::status::Explained;
use prost_types::Timestamp;
use tonic::{Code, Status};

use super::{Database, Service, request};
use crate::testing::Backend;

/// The fields that a refusal names.
fn fields(status: &Status) -> Vec<String> {
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    let explained = Explained::from(status);
    assert_eq!(explained.reason.as_deref(), Some("INVALID_FIELDS"));
    explained
        .field_violations
        .into_iter()
        .map(|violation| violation.field)
        .collect()
}

fn with(change: impl FnOnce(&mut pb::SubmitFeedbackRequest)) -> pb::SubmitFeedbackRequest {
    let mut request = request("set up a csa");
    change(&mut request);
    request
}

#[expect(clippy::unnecessary_wraps, reason = "it is put where messages are optional")]
fn some(correction: Correction) -> Option<common::Correction> {
    Some(common::Correction {
        correction: Some(correction),
    })
}

fn bad_submissions() -> Vec<(pb::SubmitFeedbackRequest, Vec<&'static str>)> {
    let long = |length| "x".repeat(length);
    vec![
        (
            pb::SubmitFeedbackRequest::default(),
            vec!["namespace", "correction"],
        ),
        (
            pb::SubmitFeedbackRequest {
                request_id: "two words".into(),
                namespace: "Fund_Admin".into(),
                reporter: Some(common::Reporter {
                    id: long(129),
                    session_id: "a\0b".into(),
                    client: long(129),
                    client_key: "\u{7}".into(),
                }),
                query_id: long(129),
                reason: long(2_001),
                context: HashMap::from([(String::new(), String::new()), ("k".into(), long(1_025))]),
                scope: 9,
                wait: 9,
                correction: some(Correction::Verb(common::VerbCorrection {
                    original_input: long(513),
                    system_choice: long(257),
                    correct_choice: String::new(),
                })),
            },
            vec![
                "request_id",
                "namespace",
                "reporter.id",
                "reporter.session_id",
                "reporter.client",
                "reporter.client_key",
                "query_id",
                "reason",
                "context",
                "context[\"k\"]",
                "scope",
                "wait",
                "correction.verb.original_input",
                "correction.verb.correct_choice",
                "correction.verb.system_choice",
            ],
        ),
        (with(|request| request.request_id = long(65)), vec!["request_id"]),
        (with(|request| request.namespace = "-a".into()), vec!["namespace"]),
        (with(|request| request.scope = -1), vec!["scope"]),
        (with(|request| request.reason = "nul \0".into()), vec!["reason"]),
        (
            with(|request| request.context = (0..33).map(|n| (n.to_string(), String::new())).collect()),
            vec!["context"],
        ),
        (
            with(|request| request.context = HashMap::from([("k".into(), "\0".into())])),
            vec!["context[\"k\"]"],
        ),
        (
            with(|request| request.correction = Some(common::Correction { correction: None })),
            vec!["correction"],
        ),
        (
            with(|request| {
                request.scope = common::Scope::User.into();
                request.reporter = None;
            }),
            vec!["reporter.id"],
        ),
        (
            with(|request| {
                request.correction = some(Correction::PhraseMapping(common::PhraseMapping::default()));
            }),
            vec![
                "correction.phrase_mapping.phrase",
                "correction.phrase_mapping.verb",
            ],
        ),
        (
            with(|request| {
                request.correction = some(Correction::Prohibition(common::Prohibition {
                    phrase: "a\0".into(),
                    forbidden_choice: long(257),
                }));
            }),
            vec![
                "correction.prohibition.phrase",
                "correction.prohibition.forbidden_choice",
            ],
        ),
        (
            with(|request| {
                request.correction = some(Correction::Entity(common::EntityCorrection {
                    original_input: "smith".into(),
                    system_choice: "same".into(),
                    correct_choice: "same".into(),
                }));
            }),
            vec!["correction.entity.correct_choice"],
        ),
        (
            with(|request| {
                // Only invisible characters.
                request.correction = some(Correction::Verb(common::VerbCorrection {
                    original_input: "\u{200b}\u{ad}".into(),
                    system_choice: String::new(),
                    correct_choice: "verb".into(),
                }));
            }),
            vec!["correction.verb.original_input"],
        ),
    ]
}

#[tokio::test]
async fn submissions_name_every_violated_field_and_write_nothing() {
    let database = Database::new(Backend::Sqlite).await.unwrap();
    let service = Service::start(&database, "127.0.0.1:1").await;
    for (bad, expected) in bad_submissions() {
        let status = service.submit(bad.clone()).await.unwrap_err();
        assert_eq!(fields(&status), expected, "{bad:?}");
    }
    assert_eq!(service.list().await, []);
    service.stop().await;
}

#[tokio::test]
async fn a_bad_item_of_a_batch_costs_the_others_nothing() {
    let database = Database::new(Backend::Sqlite).await.unwrap();
    let service = Service::start(&database, "127.0.0.1:1").await;
    let mut client = service.client.clone();
    let (bad, expected): (Vec<_>, Vec<_>) = bad_submissions()
        .into_iter()
        // An item's wait is ignored, but has to be valid.
        .unzip();
    let requests = std::iter::once(request("good"))
        .chain(bad)
        .chain([request("good too")])
        .collect();
    let batch = pb::BatchSubmitFeedbackRequest { requests, wait: 0 };
    let results = client
        .batch_submit_feedback(batch)
        .await
        .unwrap()
        .into_inner()
        .results;
    assert_eq!(results.len(), expected.len() + 2);
    for (place, result) in results.iter().enumerate() {
        let status = emend_runtime::status::from_item_status(result.status.as_ref().unwrap());
        match status {
            None => assert!(result.feedback.is_some() && (place == 0 || place == expected.len() + 1)),
            Some(status) => assert_eq!(fields(&status), expected[place - 1]),
        }
    }
    assert_eq!(service.list().await.len(), 2);

    for (batch, expected) in [
        (
            pb::BatchSubmitFeedbackRequest {
                requests: vec![],
                wait: 9,
            },
            vec!["requests", "wait"],
        ),
        (
            pb::BatchSubmitFeedbackRequest {
                requests: vec![request("a"); 101],
                wait: 0,
            },
            vec!["requests"],
        ),
    ] {
        assert_eq!(
            fields(&client.batch_submit_feedback(batch).await.unwrap_err()),
            expected
        );
    }
    assert_eq!(service.list().await.len(), 2);
    service.stop().await;
}

#[tokio::test]
async fn every_other_rpc_names_every_violated_field() {
    let database = Database::new(Backend::Sqlite).await.unwrap();
    let service = Service::start(&database, "127.0.0.1:1").await;
    let mut client = service.client.clone();

    let get = pb::GetFeedbackRequest {
        namespace: String::new(),
        feedback_id: "7".into(),
    };
    assert_eq!(
        fields(&client.get_feedback(get).await.unwrap_err()),
        ["namespace", "feedback_id"]
    );

    let retract = pb::RetractFeedbackRequest {
        namespace: "a.b".into(),
        feedback_id: String::new(),
        reason: "x".repeat(2_001),
        wait: 3,
    };
    let status = client.retract_feedback(retract).await.unwrap_err();
    assert_eq!(fields(&status), ["namespace", "feedback_id", "reason", "wait"]);

    let list = pb::ListFeedbackRequest {
        namespace: "x".repeat(64),
        page_size: 501,
        page_token: "?".into(),
        reporter_id: "\0".into(),
        kind: 99,
        delivery_state: 4,
        received_from: Some(Timestamp {
            seconds: 0,
            nanos: -1,
        }),
        received_before: Some(Timestamp {
            seconds: i64::MAX,
            nanos: 0,
        }),
    };
    let status = client.list_feedback(list).await.unwrap_err();
    let all = [
        "namespace",
        "page_size",
        "page_token",
        "reporter_id",
        "kind",
        "delivery_state",
        "received_from",
        "received_before",
    ];
    assert_eq!(fields(&status), all);
    let inverted = pb::ListFeedbackRequest {
        namespace: "a".into(),
        page_size: -1,
        received_from: Some(Timestamp { seconds: 2, nanos: 0 }),
        received_before: Some(Timestamp { seconds: 1, nanos: 0 }),
        ..pb::ListFeedbackRequest::default()
    };
    assert_eq!(
        fields(&client.list_feedback(inverted).await.unwrap_err()),
        ["page_size", "received_before"]
    );

    let letters = pb::ListDeadLettersRequest {
        namespace: "A".into(),
        page_size: -1,
        page_token: "AAAA".into(),
    };
    let status = client.list_dead_letters(letters).await.unwrap_err();
    assert_eq!(fields(&status), ["namespace", "page_size", "page_token"]);

    let redrive = pb::RedriveDeadLettersRequest {
        namespace: "A".into(),
        event_ids: vec!["x".into(), String::new()],
    };
    let status = client.redrive_dead_letters(redrive).await.unwrap_err();
    assert_eq!(fields(&status), ["namespace", "event_ids[0]", "event_ids[1]"]);
    let status = client
        .redrive_dead_letters(pb::RedriveDeadLettersRequest::default())
        .await
        .unwrap_err();
    assert_eq!(fields(&status), ["namespace"]);
    let many = vec!["0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10".to_owned(); 501];
    let redrive = pb::RedriveDeadLettersRequest {
        namespace: String::new(),
        event_ids: many,
    };
    assert_eq!(
        fields(&client.redrive_dead_letters(redrive).await.unwrap_err()),
        ["event_ids"]
    );
    service.stop().await;
}
