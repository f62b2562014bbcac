//! Bad input of every kind on every RPC: `INVALID_ARGUMENT` names all violated fields at once, and nothing is written.

use emend_proto::{
    common::v1 as common,
    learning::v1::{self as pb, import_resources_request::Message},
};
use emend_runtime::status::Explained;
use tonic::{Code, Status};

use super::served::{Database, Served};

const ID: &str = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10";

/// The violated fields, in the order in which they are reported.
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

fn long(length: usize) -> String {
    "x".repeat(length)
}

/// A key whose every part is bad.
fn bad_key() -> common::ResourceKey {
    common::ResourceKey {
        namespace: "Not a namespace".to_owned(),
        kind: 99,
        key: "a\0b".to_owned(),
        qualifier: String::new(),
        user_id: long(129),
    }
}

fn key() -> common::ResourceKey {
    common::ResourceKey {
        namespace: "fund-admin".to_owned(),
        kind: 1,
        key: "a phrase".to_owned(),
        ..common::ResourceKey::default()
    }
}

fn entity_value() -> common::ResourceValue {
    let value = common::EntityAliasValue {
        entity_id: "e".to_owned(),
    };
    common::ResourceValue {
        value: Some(common::resource_value::Value::EntityAlias(value)),
        ..common::ResourceValue::default()
    }
}

/// Asserts that a call is refused with exactly these fields.
macro_rules! refused {
    ($call:expr, [$($field:expr),* $(,)?]) => {
        let status = $call.await.expect_err("the request is bad");
        assert_eq!(fields(&status), [$($field),*] as [&str; _], "{}", stringify!($call));
    };
}

#[tokio::test]
async fn every_violated_field_of_every_rpc_is_named_and_nothing_is_written() {
    let database = Database::sqlite();
    let served = Served::on(&database).await;
    candidates(&served).await;
    resources(&served).await;
    imports(&served).await;
    policies(&served).await;
    events(&served).await;

    let records = served.handle.app().store.contents().await.unwrap();
    assert_eq!(records.head.0, 0);
    assert!(records.candidates.is_empty() && records.ballots.is_empty() && records.resources.is_empty());
    served.stop().await;
}

async fn candidates(served: &Served) {
    let mut client = served.candidates();
    refused!(
        client.list_candidates(pb::ListCandidatesRequest {
            namespace: String::new(),
            kinds: vec![1, 0, 99],
            statuses: vec![7, 0],
            key: long(513),
            page_size: -1,
            page_token: "not a token".to_owned(),
        }),
        [
            "namespace",
            "kinds[1]",
            "kinds[2]",
            "statuses[0]",
            "statuses[1]",
            "key",
            "page_size",
            "page_token"
        ]
    );
    refused!(
        client.list_candidates(pb::ListCandidatesRequest {
            namespace: "ok".to_owned(),
            kinds: vec![1; 65],
            page_size: 501,
            ..pb::ListCandidatesRequest::default()
        }),
        ["kinds", "page_size"]
    );
    refused!(
        client.get_candidate(pb::GetCandidateRequest {
            namespace: "UPPER".to_owned(),
            candidate_id: "17".to_owned(),
        }),
        ["namespace", "candidate_id"]
    );
    let bad_approval = pb::ApproveCandidateRequest {
        namespace: "a_b".to_owned(),
        candidate_id: String::new(),
        etag: long(65),
        reason: long(2_001),
        edited_value: None,
        on_behalf_of: "a\u{7}b".to_owned(),
    };
    refused!(
        client.approve_candidate(bad_approval.clone()),
        ["namespace", "candidate_id", "etag", "reason", "on_behalf_of"]
    );
    let bad_rejection = pb::RejectCandidateRequest {
        namespace: long(64),
        candidate_id: "x".to_owned(),
        etag: "a\0".to_owned(),
        reason: "  ".to_owned(),
        on_behalf_of: long(129),
    };
    refused!(
        client.reject_candidate(bad_rejection.clone()),
        ["namespace", "candidate_id", "etag", "reason", "on_behalf_of"]
    );
    let empty = pb::BatchApproveCandidatesRequest::default();
    refused!(client.batch_approve_candidates(empty), ["requests"]);
    let requests = vec![pb::RejectCandidateRequest::default(); 101];
    refused!(
        client.batch_reject_candidates(pb::BatchRejectCandidatesRequest { requests }),
        ["requests"]
    );

    // Each item of a batch has its own status.
    let batch = pb::BatchRejectCandidatesRequest {
        requests: vec![bad_rejection],
    };
    let results = client
        .batch_reject_candidates(batch)
        .await
        .unwrap()
        .into_inner()
        .results;
    assert_eq!(
        item_fields(&results[0]),
        ["namespace", "candidate_id", "etag", "reason", "on_behalf_of"]
    );
    let batch = pb::BatchApproveCandidatesRequest {
        requests: vec![bad_approval],
    };
    let results = client
        .batch_approve_candidates(batch)
        .await
        .unwrap()
        .into_inner()
        .results;
    assert_eq!(
        item_fields(&results[0]),
        ["namespace", "candidate_id", "etag", "reason", "on_behalf_of"]
    );
}

fn item_fields(result: &pb::ReviewResult) -> Vec<String> {
    assert!(result.candidate.is_none());
    fields(&emend_runtime::status::from_item_status(result.status.as_ref().unwrap()).unwrap())
}

async fn resources(served: &Served) {
    let mut client = served.resources();
    refused!(
        client.get_resource(pb::GetResourceRequest {
            key: Some(bad_key()),
            min_revision: -1,
        }),
        [
            "key.namespace",
            "key.kind",
            "key.key",
            "key.user_id",
            "min_revision"
        ]
    );
    refused!(
        client.put_resource(pb::PutResourceRequest {
            key: Some(bad_key()),
            value: None,
            etag: long(65),
            reason: "a\0".to_owned(),
            on_behalf_of: long(129),
        }),
        [
            "value.display",
            "value.value",
            "key.namespace",
            "key.kind",
            "key.key",
            "key.user_id",
            "etag",
            "reason",
            "on_behalf_of"
        ]
    );
    refused!(
        client.put_resource(pb::PutResourceRequest {
            key: Some(key()),
            value: Some(entity_value()),
            ..pb::PutResourceRequest::default()
        }),
        ["value.value"]
    );
    refused!(
        client.delete_resource(pb::DeleteResourceRequest {
            key: None,
            etag: long(65),
            reason: long(2_001),
            on_behalf_of: long(129),
        }),
        [
            "key.namespace",
            "key.kind",
            "key.key",
            "etag",
            "reason",
            "on_behalf_of"
        ]
    );
    refused!(
        client.list_revisions(pb::ListRevisionsRequest {
            namespace: "-a".to_owned(),
            kind: 4_000,
            key: "\u{200B}".to_owned(),
            operation_id: "x".to_owned(),
            page_size: 501,
            page_token: "AAAA".to_owned(),
        }),
        [
            "namespace",
            "kind",
            "key",
            "operation_id",
            "page_size",
            "page_token"
        ]
    );
    refused!(
        client.revert_revision(pb::RevertRevisionRequest {
            namespace: String::new(),
            revision: 0,
            reason: String::new(),
            on_behalf_of: "\0".to_owned(),
        }),
        ["namespace", "revision", "reason", "on_behalf_of"]
    );
    let listed = client.list_resources(pb::ListResourcesRequest {
        namespace: "A".to_owned(),
        page_size: -5,
        ..pb::ListResourcesRequest::default()
    });
    assert!(fields(&listed.await.unwrap_err()).contains(&"namespace".to_owned()));
    let resolved = client.resolve(pb::ResolveRequest::default());
    assert!(fields(&resolved.await.unwrap_err()).contains(&"phrase".to_owned()));
}

fn header() -> Message {
    Message::Header(pb::ImportHeader {
        namespace: "fund-admin".to_owned(),
        ..pb::ImportHeader::default()
    })
}

fn rows(rows: Vec<pb::ImportRow>) -> Message {
    Message::Rows(pb::ImportRows { rows })
}

fn stream(messages: Vec<Message>) -> impl tonic::IntoStreamingRequest<Message = pb::ImportResourcesRequest> {
    futures::stream::iter(messages.into_iter().map(|message| pb::ImportResourcesRequest {
        message: Some(message),
    }))
}

async fn imports(served: &Served) {
    let mut client = served.resources();
    refused!(client.import_resources(stream(vec![])), ["header"]);
    refused!(client.import_resources(stream(vec![rows(vec![])])), ["header"]);
    refused!(
        client.import_resources(stream(vec![header(), header()])),
        ["header"]
    );
    refused!(
        client.import_resources(stream(vec![header(), rows(vec![])])),
        ["rows.rows"]
    );
    refused!(
        client.import_resources(stream(vec![
            header(),
            rows(vec![pb::ImportRow::default(); 1_001])
        ])),
        ["rows.rows"]
    );
    refused!(
        client.import_resources(stream(vec![Message::Header(pb::ImportHeader {
            namespace: "No".to_owned(),
            mode: 9,
            import_as: 9,
            reason: long(2_001),
            on_behalf_of: long(129),
        })])),
        [
            "header.namespace",
            "header.mode",
            "header.import_as",
            "header.reason",
            "header.on_behalf_of"
        ]
    );
    let bad = pb::ImportRow {
        line: 0,
        correction: Some(common::Correction {
            correction: Some(common::correction::Correction::PhraseMapping(
                common::PhraseMapping {
                    phrase: " ".to_owned(),
                    verb: "a\0".to_owned(),
                },
            )),
        }),
        user_id: long(129),
    };
    refused!(
        client.import_resources(stream(vec![header(), rows(vec![bad])])),
        [
            "rows[line 0].line",
            "rows[line 0].correction.phrase_mapping.phrase",
            "rows[line 0].correction.phrase_mapping.verb",
            "rows[line 0].user_id"
        ]
    );
    // However many rows are bad, the refusal stays small enough to travel.
    let many = vec![pb::ImportRow::default(); 1_000];
    let status = client
        .import_resources(stream(vec![header(), rows(many)]))
        .await
        .unwrap_err();
    assert_eq!(fields(&status).len(), 21);
}

async fn policies(served: &Served) {
    let mut client = served.policies();
    refused!(
        client.get_policy(pb::GetPolicyRequest {
            namespace: "é".to_owned(),
            kind: 0,
        }),
        ["namespace", "kind"]
    );
    refused!(
        client.update_policy(pb::UpdatePolicyRequest {
            policy: Some(pb::Policy {
                namespace: String::new(),
                kind: 99,
                risk_level: 9,
                threshold: -1,
                counting: 9,
                half_life: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
                max_derived_voters: 1_001,
                max_resources: -1,
                max_value_bytes: 524_289,
                max_counted_feedback: 99,
                etag: long(65),
                ..pb::Policy::default()
            }),
            update_mask: None,
            reason: long(2_001),
            on_behalf_of: long(129),
        }),
        [
            "policy.namespace",
            "policy.kind",
            "policy.etag",
            "policy.risk_level",
            "policy.counting",
            "policy.half_life",
            "policy.threshold",
            "policy.max_derived_voters",
            "policy.max_resources",
            "policy.max_value_bytes",
            "policy.max_counted_feedback",
            "reason",
            "on_behalf_of"
        ]
    );
    let policy = pb::Policy {
        namespace: "fund-admin".to_owned(),
        kind: 1,
        ..pb::Policy::default()
    };
    refused!(
        client.update_policy(pb::UpdatePolicyRequest {
            policy: Some(policy.clone()),
            ..pb::UpdatePolicyRequest::default()
        }),
        ["update_mask"]
    );
    refused!(
        client.update_policy(pb::UpdatePolicyRequest {
            policy: Some(policy),
            update_mask: Some(prost_types::FieldMask {
                paths: vec![
                    "threshold".to_owned(),
                    "version".to_owned(),
                    "risk_level".to_owned()
                ],
            }),
            ..pb::UpdatePolicyRequest::default()
        }),
        ["update_mask", "policy.risk_level", "policy.threshold"]
    );
}

/// Sends one batch of these events and returns the violated fields of each.
async fn ingest(served: &Served, events: Vec<pb::Event>) -> Vec<Vec<String>> {
    let requests = futures::stream::iter([pb::IngestRequest { events }]);
    let mut responses = served.ingest().ingest(requests).await.unwrap().into_inner();
    let response = responses.message().await.unwrap().unwrap();
    let results = response.results.into_iter().map(|result| match result.result {
        Some(pb::event_result::Result::Error(error)) => {
            fields(&emend_runtime::status::from_item_status(&error).unwrap())
        }
        other => panic!("the event is bad: {other:?}"),
    });
    results.collect()
}

async fn events(served: &Served) {
    let bad = pb::Event {
        event_id: "1".to_owned(),
        feedback_id: "2".to_owned(),
        namespace: "A".to_owned(),
        accept_order: 0,
        traceparent: "nonsense is ignored".to_owned(),
        event: None,
    };
    let recorded = pb::Event {
        event_id: ID.to_owned(),
        feedback_id: ID.to_owned(),
        namespace: "fund-admin".to_owned(),
        accept_order: 1,
        event: Some(pb::event::Event::Recorded(pb::FeedbackRecorded {
            reporter: Some(common::Reporter {
                id: long(129),
                session_id: long(129),
                ..common::Reporter::default()
            }),
            caller: String::new(),
            query_id: long(129),
            reason: long(2_001),
            context: (0..33).map(|n| (n.to_string(), String::new())).collect(),
            scope: 9,
            correction: None,
            received_at: None,
        })),
        ..pb::Event::default()
    };
    let mut of_nobody = recorded.clone();
    if let Some(pb::event::Event::Recorded(recorded)) = &mut of_nobody.event {
        *recorded = pb::FeedbackRecorded {
            caller: "web".to_owned(),
            scope: common::Scope::User as i32,
            correction: Some(common::Correction {
                correction: Some(common::correction::Correction::Verb(common::VerbCorrection {
                    original_input: "p".to_owned(),
                    system_choice: "v".to_owned(),
                    correct_choice: "v".to_owned(),
                })),
            }),
            received_at: Some(prost_types::Timestamp {
                seconds: i64::MAX,
                nanos: -1,
            }),
            ..pb::FeedbackRecorded::default()
        };
    }
    let retracted = pb::Event {
        event: Some(pb::event::Event::Retracted(pb::FeedbackRetracted::default())),
        ..recorded.clone()
    };
    let redacted = pb::Event {
        event: Some(pb::event::Event::Redacted(pb::FeedbackRedacted::default())),
        ..recorded.clone()
    };
    let found = ingest(served, vec![bad, recorded, of_nobody, retracted, redacted]).await;
    assert_eq!(
        found,
        [
            vec!["event_id", "feedback_id", "namespace", "accept_order", "event"],
            vec![
                "recorded.reporter.id",
                "recorded.reporter.session_id",
                "recorded.caller",
                "recorded.query_id",
                "recorded.reason",
                "recorded.context",
                "recorded.scope",
                "recorded.correction",
                "recorded.received_at"
            ],
            vec![
                "recorded.reporter.id",
                "recorded.correction.verb.correct_choice",
                "recorded.received_at"
            ],
            vec!["retracted.caller", "retracted.retracted_at"],
            vec!["redacted.caller", "redacted.redacted_at"],
        ]
    );

    // An empty or oversized batch ends its stream.
    for events in [vec![], vec![pb::Event::default(); 257]] {
        let requests = futures::stream::iter([pb::IngestRequest { events }]);
        let mut responses = served.ingest().ingest(requests).await.unwrap().into_inner();
        assert_eq!(fields(&responses.message().await.unwrap_err()), ["events"]);
    }
}
