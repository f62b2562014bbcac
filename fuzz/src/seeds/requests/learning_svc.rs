//! Valid requests to learning-svc.

use emend_proto::learning::v1 as learning;

use super::{
    ID,
    evidence::evidence,
    ingested, minutes, namespace, of,
    outputs::{outputs, profiles},
};
use crate::seeds::stream::{key, value};

pub(in crate::seeds) fn learning() -> Vec<Vec<u8>> {
    let cursor = learning::Cursor {
        epoch: ID.into(),
        revision: 9,
        filter_hash: 10,
    };
    let approve = learning::ApproveCandidateRequest {
        namespace: namespace(),
        candidate_id: ID.into(),
        etag: "7".into(),
        reason: "right".into(),
        edited_value: Some(value()),
        on_behalf_of: "ana".into(),
        accept_redacted: true,
    };
    let reject = learning::RejectCandidateRequest {
        namespace: namespace(),
        candidate_id: ID.into(),
        etag: "7".into(),
        reason: "wrong".into(),
        on_behalf_of: "ana".into(),
    };
    let policy = learning::Policy {
        namespace: namespace(),
        kind: 1,
        risk_level: 2,
        threshold: 3,
        counting: 1,
        half_life: Some(minutes(600)),
        max_derived_voters: 1,
        max_resources: 1_000,
        max_value_bytes: 1_000,
        max_counted_feedback: 1_000,
        etag: "4".into(),
        ..Default::default()
    };
    let paths = ["half_life", "threshold", "max_resources"]
        .map(str::to_owned)
        .to_vec();
    vec![
        of(
            0,
            &learning::GetResourceRequest {
                key: Some(key()),
                min_revision: 3,
            },
        ),
        of(
            1,
            &learning::ListResourcesRequest {
                namespace: namespace(),
                kinds: vec![1, 3],
                key_prefix: "Set Up".into(),
                user_id: "jane".into(),
                min_revision: 3,
                page_size: 10,
                page_token: String::new(),
            },
        ),
        of(
            2,
            &learning::ResolveRequest {
                namespace: namespace(),
                kind: 1,
                phrase: "Set up a CSA".into(),
                user_id: "jane".into(),
                backend_candidates: vec![learning::BackendCandidate {
                    value: "create_isda".into(),
                    score: 0.7,
                }],
                min_revision: 1,
                near: true,
            },
        ),
        of(
            3,
            &learning::PutResourceRequest {
                key: Some(key()),
                value: Some(value()),
                etag: "7".into(),
                reason: "because".into(),
                on_behalf_of: "ana".into(),
            },
        ),
        of(
            4,
            &learning::DeleteResourceRequest {
                key: Some(key()),
                etag: "7".into(),
                reason: "because".into(),
                on_behalf_of: "ana".into(),
            },
        ),
        of(
            5,
            &learning::RevertRevisionRequest {
                namespace: namespace(),
                revision: 9,
                reason: "because".into(),
                on_behalf_of: "ana".into(),
                ..learning::RevertRevisionRequest::default()
            },
        ),
        of(
            6,
            &learning::ListRevisionsRequest {
                namespace: namespace(),
                kind: 1,
                key: "Set up a CSA".into(),
                operation_id: ID.into(),
                page_size: 10,
                page_token: String::new(),
                revision: 7,
            },
        ),
        of(
            7,
            &learning::ListCandidatesRequest {
                namespace: namespace(),
                kinds: vec![1, 2],
                statuses: vec![1, 2, 6],
                key: "Set up a CSA".into(),
                page_size: 10,
                page_token: String::new(),
                user_id: String::new(),
                order: 2,
                created_before: None,
                created_after: None,
                text: String::new(),
                second_opinion: Some(learning::SecondOpinionFilter {
                    asked: "tom".into(),
                    asked_by: "ana".into(),
                }),
                decided_by: "tom".into(),
                decided_after: Some(prost_types::Timestamp::default()),
                needs_second_reviewer: true,
            },
        ),
        of(8, &approve),
        of(
            9,
            &learning::BatchApproveCandidatesRequest {
                requests: vec![approve.clone(), approve],
            },
        ),
        of(10, &reject),
        of(
            11,
            &learning::IngestRequest {
                events: ingested(),
                ..Default::default()
            },
        ),
        of(
            12,
            &learning::GetPolicyRequest {
                namespace: namespace(),
                kind: 3,
            },
        ),
        of(
            13,
            &learning::UpdatePolicyRequest {
                policy: Some(policy.clone()),
                update_mask: Some(prost_types::FieldMask { paths }),
                reason: "because".into(),
                on_behalf_of: "ana".into(),
            },
        ),
        of(
            13,
            &learning::UpdatePolicyRequest {
                policy: Some(policy),
                ..Default::default()
            },
        ),
        of(
            14,
            &learning::SubscribeRequest {
                node: Some(learning::NodeInfo {
                    id: "search-1".into(),
                    version: "2.1".into(),
                    zone: "a".into(),
                    labels: [("rack".to_owned(), "7".to_owned())].into(),
                    transient: false,
                }),
                namespaces: vec![namespace(), "another".into()],
                kinds: vec![1, 3],
                include_user_scoped: true,
                cursor: Some(cursor.clone()),
                bookmark_interval: Some(minutes(1)),
                max_batch_bytes: 100_000,
            },
        ),
        of(
            15,
            &learning::ReportStatusRequest {
                node_id: "search-1".into(),
                applied: Some(cursor),
                rejected: vec![learning::RejectedResource {
                    key: Some(key()),
                    revision: 8,
                    error: "unknown kind".into(),
                }],
                rejected_count: 1,
                delays: Some(learning::DelayHistogram {
                    bounds_ms: vec![1, 10, 100],
                    counts: vec![5, 4, 3, 2],
                    sum_ms: 99,
                }),
                problem: "DIGEST_MISMATCH".into(),
                effect_delays: Some(learning::DelayHistogram {
                    bounds_ms: vec![100],
                    counts: vec![1, 0],
                    sum_ms: 7,
                }),
                effect_traces: vec![learning::EffectTrace {
                    delay_ms: 7,
                    trace_id: "4bf92f3577b34da6a3ce929d0e0e4736".into(),
                }],
            },
        ),
        of(
            16,
            &learning::ListNodesRequest {
                page_size: 10,
                page_token: String::new(),
                seen_within: Some(minutes(60)),
                state: learning::NodeState::Behind as i32,
                zone: "eu-1".into(),
                labels: vec!["tier=gold".into()],
            },
        ),
        of(
            17,
            &learning::BatchRejectCandidatesRequest {
                requests: vec![reject],
            },
        ),
        of(
            18,
            &learning::GetCandidateRequest {
                namespace: namespace(),
                candidate_id: ID.into(),
            },
        ),
        of(
            19,
            &learning::GetStandingsRequest {
                namespace: namespace(),
                feedback_ids: vec![ID.into(), ID.into()],
                installation_id: ID.into(),
            },
        ),
        of(
            41,
            &learning::UndoDecisionRequest {
                namespace: namespace(),
                candidate_id: ID.into(),
                etag: "7".into(),
                on_behalf_of: "ana".into(),
            },
        ),
        of(
            42,
            &learning::AcquireReviewLeaseRequest {
                namespace: namespace(),
                candidate_id: ID.into(),
                on_behalf_of: "ana".into(),
            },
        ),
        of(
            45,
            &learning::AskSecondOpinionRequest {
                namespace: namespace(),
                candidate_id: ID.into(),
                comment: "is that verb still in use?".into(),
                asked: "tom".into(),
                on_behalf_of: "ana".into(),
            },
        ),
        of(
            43,
            &learning::WatchQueueRequest {
                namespace: namespace(),
                kinds: vec![1, 2],
            },
        ),
        of(
            44,
            &learning::GetQueueStatsRequest {
                namespace: namespace(),
                days: 7,
            },
        ),
        of(
            20,
            &learning::UpdateNamespacePolicyRequest {
                policy: Some(learning::NamespacePolicy {
                    namespace: namespace(),
                    combining: 2,
                    min_claims: 9,
                    rejected_permille: 250,
                    ..Default::default()
                }),
                ..Default::default()
            },
        ),
    ]
    .into_iter()
    .chain(evidence())
    .chain(outputs())
    .chain(profiles())
    .collect()
}
