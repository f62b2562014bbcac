//! Bad requests to the review queue.

use emend_proto::common::v1::ResourceKind;
use emend_proto::learning::v1::{
    ApproveCandidateRequest, BatchApproveCandidatesRequest, BatchRejectCandidatesRequest,
    GetCandidateRequest, ListCandidatesRequest, RejectCandidateRequest,
};
use emend_tests::harness::NAMESPACE;

use super::{BAD_IDS, NOBODY, NUL, Rpc, UNKNOWN, long};

pub(super) fn cases() -> Vec<Rpc> {
    vec![
        list(),
        get(),
        approve(),
        reject(),
        batch_approve(),
        batch_reject(),
    ]
}

fn list() -> Rpc {
    Rpc::of("/emend.learning.v1.CandidateService/ListCandidates")
        .case("empty", &ListCandidatesRequest::default(), &["namespace"])
        .case(
            "everything at once",
            &ListCandidatesRequest {
                namespace: "Not OK".into(),
                kinds: vec![UNKNOWN, 1, 0],
                statuses: vec![0, 1, UNKNOWN],
                key: long(513),
                page_size: 501,
                page_token: "not a token".into(),
                user_id: long(129),
            },
            &[
                "namespace",
                "user_id",
                "kinds[0]",
                "kinds[2]",
                "statuses[0]",
                "statuses[2]",
                "key",
                "page_size",
                "page_token",
            ],
        )
        .case(
            "a negative page and U+0000",
            &ListCandidatesRequest {
                namespace: NAMESPACE.into(),
                key: NUL.into(),
                page_size: -1,
                page_token: NUL.into(),
                ..ListCandidatesRequest::default()
            },
            &["key", "page_size", "page_token"],
        )
        .case(
            "entries of profiles of nobody",
            &ListCandidatesRequest {
                namespace: NAMESPACE.into(),
                kinds: vec![ResourceKind::Profile.into()],
                ..ListCandidatesRequest::default()
            },
            &["user_id"],
        )
        .case(
            "too many of everything",
            &ListCandidatesRequest {
                namespace: NAMESPACE.into(),
                kinds: vec![1; 65],
                statuses: vec![1; 65],
                page_size: 501,
                ..ListCandidatesRequest::default()
            },
            &["kinds", "statuses", "page_size"],
        )
}

fn get() -> Rpc {
    let mut rpc = Rpc::of("/emend.learning.v1.CandidateService/GetCandidate").case(
        "everything at once",
        &GetCandidateRequest {
            namespace: "Not OK".into(),
            candidate_id: "x".into(),
        },
        &["namespace", "candidate_id"],
    );
    for id in BAD_IDS {
        let request = GetCandidateRequest {
            namespace: NAMESPACE.into(),
            candidate_id: id.into(),
        };
        rpc = rpc.case(format!("id {id:?}"), &request, &["candidate_id"]);
    }
    rpc
}

fn approve() -> Rpc {
    Rpc::of("/emend.learning.v1.CandidateService/ApproveCandidate")
        .case(
            "empty",
            &ApproveCandidateRequest::default(),
            &["namespace", "candidate_id"],
        )
        .case(
            "everything at once",
            &ApproveCandidateRequest {
                namespace: "Not OK".into(),
                candidate_id: "x".into(),
                etag: long(65),
                reason: long(2_001),
                on_behalf_of: long(129),
                ..ApproveCandidateRequest::default()
            },
            &["namespace", "candidate_id", "etag", "reason", "on_behalf_of"],
        )
        .case(
            "U+0000 in every text",
            &ApproveCandidateRequest {
                namespace: NUL.into(),
                candidate_id: NUL.into(),
                etag: NUL.into(),
                reason: NUL.into(),
                on_behalf_of: NUL.into(),
                ..ApproveCandidateRequest::default()
            },
            &["namespace", "candidate_id", "etag", "reason", "on_behalf_of"],
        )
        .case(
            "a stray control character",
            &ApproveCandidateRequest {
                namespace: NAMESPACE.into(),
                candidate_id: NOBODY.into(),
                on_behalf_of: "rings \u{7}".into(),
                ..ApproveCandidateRequest::default()
            },
            &["on_behalf_of"],
        )
}

fn reject() -> Rpc {
    Rpc::of("/emend.learning.v1.CandidateService/RejectCandidate")
        .case(
            "empty",
            &RejectCandidateRequest::default(),
            &["namespace", "candidate_id", "reason"],
        )
        .case(
            "everything at once",
            &RejectCandidateRequest {
                namespace: "Not OK".into(),
                candidate_id: "x".into(),
                etag: long(65),
                reason: long(2_001),
                on_behalf_of: long(129),
            },
            &["namespace", "candidate_id", "etag", "reason", "on_behalf_of"],
        )
        .case(
            "a reason of nothing but space and U+0000",
            &RejectCandidateRequest {
                namespace: NAMESPACE.into(),
                candidate_id: NOBODY.into(),
                etag: NUL.into(),
                reason: " \n ".into(),
                on_behalf_of: NUL.into(),
            },
            &["etag", "reason", "on_behalf_of"],
        )
}

fn batch_approve() -> Rpc {
    Rpc::of("/emend.learning.v1.CandidateService/BatchApproveCandidates")
        .case("empty", &BatchApproveCandidatesRequest::default(), &["requests"])
        .case(
            "too many",
            &BatchApproveCandidatesRequest {
                requests: vec![ApproveCandidateRequest::default(); 101],
            },
            &["requests"],
        )
}

fn batch_reject() -> Rpc {
    Rpc::of("/emend.learning.v1.CandidateService/BatchRejectCandidates")
        .case("empty", &BatchRejectCandidatesRequest::default(), &["requests"])
        .case(
            "too many",
            &BatchRejectCandidatesRequest {
                requests: vec![RejectCandidateRequest::default(); 101],
            },
            &["requests"],
        )
}
