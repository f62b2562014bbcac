//! What the calls do, over the wire, on both databases.

use std::time::Duration;

use emend_base::{Entropy, status::Explained};
use emend_core::FeedbackId;
use emend_proto::{
    common::v1 as common,
    learning::v1::{self as pb, event_result, import_resources_request::Message},
};
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

use super::served::{Database, Served};

const NAMESPACE: &str = "fund-admin";
const SOON: Duration = Duration::from_secs(20);

macro_rules! on_both_databases {
    ($($test:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    super::$test(&super::Database::sqlite()).await;
                }
            )+
        }
        mod postgres {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    if let Some(database) = super::Database::postgres().await {
                        super::$test(&database).await;
                    }
                }
            )+
        }
    };
}

on_both_databases!(
    batches_are_answered_in_order_while_several_are_in_flight,
    a_put_is_read_back_at_once_and_soon_by_another_instance,
    candidates_are_listed_approved_in_a_batch_and_shown_in_detail,
    an_import_reports_bad_rows_and_imports_the_others,
    a_third_concurrent_import_is_told_to_retry,
    a_policy_change_is_carried_out_in_the_background,
    a_restart_loses_nothing,
    refused_calls_say_why,
);

fn key(phrase: &str) -> common::ResourceKey {
    common::ResourceKey {
        namespace: NAMESPACE.to_owned(),
        kind: common::ResourceKind::InvocationPhrase as i32,
        key: phrase.to_owned(),
        ..common::ResourceKey::default()
    }
}

fn value(verb: &str) -> common::ResourceValue {
    let verb = verb.to_owned();
    common::ResourceValue {
        value: Some(common::resource_value::Value::InvocationPhrase(
            common::InvocationPhraseValue { verb },
        )),
        ..common::ResourceValue::default()
    }
}

fn mapping(phrase: &str, verb: &str) -> common::Correction {
    common::Correction {
        correction: Some(common::correction::Correction::PhraseMapping(
            common::PhraseMapping {
                phrase: phrase.to_owned(),
                verb: verb.to_owned(),
            },
        )),
    }
}

fn event(order: i64, reporter: &str, phrase: &str, verb: &str) -> pb::Event {
    let entropy = Entropy::system();
    pb::Event {
        event_id: entropy.uuid_v4().to_string(),
        feedback_id: FeedbackId(entropy.uuid_v4()).to_string(),
        namespace: NAMESPACE.to_owned(),
        accept_order: order,
        traceparent: String::new(),
        event: Some(pb::event::Event::Recorded(pb::FeedbackRecorded {
            reporter: Some(common::Reporter {
                id: reporter.to_owned(),
                ..common::Reporter::default()
            }),
            caller: "backend".to_owned(),
            correction: Some(mapping(phrase, verb)),
            received_at: Some(prost_types::Timestamp {
                seconds: 1_767_225_600,
                nanos: 0,
            }),
            ..pb::FeedbackRecorded::default()
        })),
    }
}

fn outcomes(response: pb::IngestResponse) -> Vec<common::Outcome> {
    let results = response.results.into_iter().map(|result| match result.result {
        Some(event_result::Result::Outcome(outcome)) => outcome,
        other => panic!("not applied: {other:?}"),
    });
    results.collect()
}

/// Sends one batch.
async fn ingest(served: &Served, events: Vec<pb::Event>) -> Vec<common::Outcome> {
    let requests = futures::stream::iter([pb::IngestRequest {
        events,
        ..Default::default()
    }]);
    let mut responses = served.ingest().ingest(requests).await.unwrap().into_inner();
    outcomes(responses.message().await.unwrap().unwrap())
}

async fn put(served: &Served, phrase: &str, verb: &str) -> pb::PutResourceResponse {
    let request = pb::PutResourceRequest {
        key: Some(key(phrase)),
        value: Some(value(verb)),
        ..pb::PutResourceRequest::default()
    };
    served
        .resources()
        .put_resource(request)
        .await
        .unwrap()
        .into_inner()
}

async fn resource(
    served: &Served,
    phrase: &str,
    min_revision: i64,
) -> Result<common::Resource, tonic::Status> {
    let request = pb::GetResourceRequest {
        key: Some(key(phrase)),
        min_revision,
    };
    let response = served.resources().get_resource(request).await?;
    Ok(response.into_inner().resource.unwrap())
}

async fn batches_are_answered_in_order_while_several_are_in_flight(database: &Database) {
    let served = Served::on(database).await;
    let (sender, receiver) = tokio::sync::mpsc::channel(32);
    let mut responses = served
        .ingest()
        .ingest(ReceiverStream::new(receiver))
        .await
        .unwrap()
        .into_inner();
    let mut sent = Vec::new();
    for batch in 0..20 {
        let events: Vec<_> = (0..7)
            .map(|n| event(batch * 7 + n + 1, &format!("r{n}"), &format!("p{batch}"), "v"))
            .collect();
        sent.push(
            events
                .iter()
                .map(|event| event.event_id.clone())
                .collect::<Vec<_>>(),
        );
        sender
            .send(pb::IngestRequest {
                events,
                ..Default::default()
            })
            .await
            .unwrap();
    }
    drop(sender);
    for ids in sent {
        let response = timeout(SOON, responses.message())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        let answered: Vec<_> = response
            .results
            .iter()
            .map(|result| result.event_id.clone())
            .collect();
        assert_eq!(answered, ids);
        assert_eq!(
            outcomes(response)
                .iter()
                .filter(|outcome| outcome.auto_applied)
                .count(),
            1
        );
    }
    assert!(responses.message().await.unwrap().is_none());
    served.stop().await;
}

async fn a_put_is_read_back_at_once_and_soon_by_another_instance(database: &Database) {
    let served = Served::on(database).await;
    let done = put(&served, "Set up a CSA", "create_csa").await;
    let written = done.resource.unwrap();
    let read = resource(&served, "  set up a csa", 0).await.unwrap();
    assert_eq!(read, written, "read your writes, etag and time included");
    assert_eq!(read.value.unwrap().display, "Set up a CSA");
    let plain = put(&served, "wind down", "close_fund").await.resource.unwrap();
    let read = resource(&served, "wind down", 0).await.unwrap();
    assert_eq!(read, plain, "the display, too, where it is the key");
    assert_eq!(read.value.unwrap().display, "wind down");
    let list = pb::ListRevisionsRequest {
        namespace: plain.key.unwrap().namespace,
        ..Default::default()
    };
    let listed = served
        .resources()
        .list_revisions(list)
        .await
        .unwrap()
        .into_inner();
    let after = listed.revisions[0].changes[0].after.clone();
    assert_eq!(after.unwrap().display, "wind down");
    if matches!(database, Database::Postgres(_)) {
        let other = Served::on(database).await;
        assert_eq!(
            resource(&other, "set up a csa", done.revision).await.unwrap(),
            written
        );
        let next = put(&served, "another", "v").await;
        assert_eq!(
            resource(&other, "another", next.revision).await.unwrap().revision,
            next.revision
        );
        other.stop().await;
    }
    let delete = pb::DeleteResourceRequest {
        key: Some(key("set up a csa")),
        etag: written.etag,
        ..pb::DeleteResourceRequest::default()
    };
    served.resources().delete_resource(delete).await.unwrap();
    assert_eq!(
        resource(&served, "set up a csa", 0).await.unwrap_err().code(),
        Code::NotFound
    );
    served.stop().await;
}

async fn candidates_are_listed_approved_in_a_batch_and_shown_in_detail(database: &Database) {
    let served = Served::on(database).await;
    let events = ["a", "b", "c"]
        .map(|phrase| event(1, "ann", phrase, "v"))
        .to_vec();
    ingest(&served, events).await;
    let mut client = served.candidates();
    let list = pb::ListCandidatesRequest {
        namespace: NAMESPACE.to_owned(),
        page_size: 2,
        ..pb::ListCandidatesRequest::default()
    };
    let first = client.list_candidates(list.clone()).await.unwrap().into_inner();
    let rest = client
        .list_candidates(pb::ListCandidatesRequest {
            page_token: first.next_page_token.clone(),
            ..list
        })
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (
            first.candidates.len(),
            rest.candidates.len(),
            rest.next_page_token.as_str()
        ),
        (2, 1, "")
    );
    let candidate = &first.candidates[0];
    assert_eq!(
        (candidate.confirmations_needed, candidate.status_reason.as_str()),
        (2, "BELOW_THRESHOLD")
    );

    let mut requests: Vec<_> = first
        .candidates
        .iter()
        .chain(&rest.candidates)
        .map(approve)
        .collect();
    requests[1].etag = "stale".to_owned();
    let batch = pb::BatchApproveCandidatesRequest { requests };
    let results = client
        .batch_approve_candidates(batch)
        .await
        .unwrap()
        .into_inner()
        .results;
    let codes: Vec<_> = results
        .iter()
        .map(|result| result.status.as_ref().unwrap().code)
        .collect();
    assert_eq!(codes, [0, Code::Aborted as i32, 0]);
    let phrase = &results[0].candidate.as_ref().unwrap().key.as_ref().unwrap().key;
    assert_eq!(
        resource(&served, phrase, 0).await.unwrap().revision,
        results[0].revision
    );

    let get = pb::GetCandidateRequest {
        namespace: NAMESPACE.to_owned(),
        candidate_id: candidate.candidate_id.clone(),
    };
    let details = client.get_candidate(get).await.unwrap().into_inner();
    assert_eq!(details.votes[0].reporter_id, "ann");
    assert_eq!(details.history.len(), 2);
    served.stop().await;
}

fn approve(candidate: &pb::Candidate) -> pb::ApproveCandidateRequest {
    pb::ApproveCandidateRequest {
        namespace: NAMESPACE.to_owned(),
        candidate_id: candidate.candidate_id.clone(),
        etag: candidate.etag.clone(),
        ..pb::ApproveCandidateRequest::default()
    }
}

async fn a_third_concurrent_import_is_told_to_retry(database: &Database) {
    let served = Served::on(database).await;
    let header = pb::ImportResourcesRequest {
        message: Some(Message::Header(pb::ImportHeader {
            namespace: NAMESPACE.to_owned(),
            ..pb::ImportHeader::default()
        })),
    };
    let (mut senders, mut imports) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let (sender, messages) = tokio::sync::mpsc::channel(1);
        sender.send(header.clone()).await.unwrap();
        senders.push(sender);
        let mut client = served.resources();
        imports.push(tokio::spawn(async move {
            client.import_resources(ReceiverStream::new(messages)).await
        }));
    }
    // Two wait for more messages; whichever came last is refused.
    let (busy, _, under_way) = timeout(SOON, futures::future::select_all(imports))
        .await
        .expect("refused in time");
    let busy = busy.unwrap().unwrap_err();
    let explained = Explained::from(&busy);
    assert_eq!(
        (busy.code(), explained.reason.as_deref()),
        (Code::ResourceExhausted, Some("IMPORTS_BUSY"))
    );
    assert!(explained.retry_after.is_some());
    drop(senders);
    for import in under_way {
        timeout(SOON, import).await.unwrap().unwrap().unwrap();
    }
    let one_more = futures::stream::iter([header]);
    served.resources().import_resources(one_more).await.unwrap();
    served.stop().await;
}

async fn an_import_reports_bad_rows_and_imports_the_others(database: &Database) {
    let served = Served::on(database).await;
    let header = pb::ImportHeader {
        namespace: NAMESPACE.to_owned(),
        mode: pb::ImportMode::SkipInvalid as i32,
        ..pb::ImportHeader::default()
    };
    let row = |line, phrase: &str| pb::ImportRow {
        line,
        correction: Some(mapping(phrase, "v")),
        user_id: String::new(),
    };
    let messages = [
        Message::Header(header),
        Message::Rows(pb::ImportRows {
            rows: vec![row(1, "a"), row(2, "")],
        }),
        Message::Rows(pb::ImportRows {
            rows: vec![row(3, "c"), row(4, "A")],
        }),
    ];
    let messages = messages.map(|message| pb::ImportResourcesRequest {
        message: Some(message),
    });
    let stream = futures::stream::iter(messages);
    let done = served
        .resources()
        .import_resources(stream)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (done.applied_count, done.unchanged_count, done.rejected_count),
        (2, 1, 1)
    );
    assert_eq!((done.first_revision, done.last_revision), (1, 1));
    assert_eq!(
        (done.errors[0].line, done.errors[0].field.as_str()),
        (2, "correction.phrase_mapping.phrase")
    );
    assert_eq!(resource(&served, "c", 0).await.unwrap().revision, 1);
    let list = pb::ListRevisionsRequest {
        namespace: NAMESPACE.to_owned(),
        operation_id: done.operation_id,
        ..pb::ListRevisionsRequest::default()
    };
    let log = served
        .resources()
        .list_revisions(list)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(log.revisions[0].changes.len(), 2);
    assert_eq!(log.revisions[0].cause(), common::Cause::Import);
    served.stop().await;
}

async fn a_policy_change_is_carried_out_in_the_background(database: &Database) {
    let served = Served::on(database).await;
    ingest(&served, vec![event(1, "ann", "p", "v")]).await;
    let mut client = served.policies();
    let update = pb::UpdatePolicyRequest {
        policy: Some(pb::Policy {
            namespace: NAMESPACE.to_owned(),
            kind: common::ResourceKind::InvocationPhrase as i32,
            threshold: 1,
            half_life: Some(prost_types::Duration {
                seconds: 315_360_000,
                nanos: 0,
            }),
            etag: "0".to_owned(),
            ..pb::Policy::default()
        }),
        ..pb::UpdatePolicyRequest::default()
    };
    let policy = client
        .update_policy(update.clone())
        .await
        .unwrap()
        .into_inner()
        .policy
        .unwrap();
    assert_eq!(
        (policy.version, policy.threshold, policy.etag.as_str()),
        (1, 1, "1")
    );
    assert_eq!(
        policy.risk_level(),
        common::RiskLevel::Medium,
        "fields that are not set stay"
    );
    // The read model waits for the revision the re-evaluation writes.
    let promoted = timeout(SOON, resource(&served, "p", 1)).await.unwrap().unwrap();
    assert_eq!(promoted.revision, 1);
    assert_eq!(
        client.update_policy(update).await.unwrap_err().code(),
        Code::Aborted
    );
    served.stop().await;
}

async fn a_restart_loses_nothing(database: &Database) {
    let served = Served::on(database).await;
    let done = put(&served, "p", "v").await;
    served.stop().await;
    let served = Served::on(database).await;
    let read = resource(&served, "p", 0).await.unwrap();
    assert_eq!(Some(read), done.resource);
    assert_eq!(put(&served, "q", "v").await.revision, 2);
    served.stop().await;
}

async fn refused_calls_say_why(database: &Database) {
    let served = Served::on(database).await;
    put(&served, "p", "v").await;
    put(&served, "p", "w").await;
    let revert = |revision| pb::RevertRevisionRequest {
        namespace: NAMESPACE.to_owned(),
        revision,
        reason: "a mistake".to_owned(),
        ..pb::RevertRevisionRequest::default()
    };
    let mut client = served.resources();
    let refused = client.revert_revision(revert(1)).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    let explained = Explained::from(&refused);
    assert_eq!(
        explained.preconditions[0].subject,
        "fund-admin/invocation_phrase/p"
    );
    assert_eq!(
        client.revert_revision(revert(9)).await.unwrap_err().code(),
        Code::NotFound
    );
    let restored = client.revert_revision(revert(2)).await.unwrap().into_inner();
    assert_eq!(restored.revision, 3);
    let value = resource(&served, "p", 0).await.unwrap().value.unwrap().value;
    assert_eq!(value, self::value("v").value);
    let missing = pb::ApproveCandidateRequest {
        namespace: NAMESPACE.to_owned(),
        candidate_id: Entropy::system().uuid_v4().to_string(),
        edited_value: Some(self::value("x")),
        ..pb::ApproveCandidateRequest::default()
    };
    let missing = served.candidates().approve_candidate(missing).await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    served.stop().await;
}
