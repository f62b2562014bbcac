//! Bad requests to the review queue.

use emend_proto::common::v1::ResourceKind;
use emend_proto::learning::v1::{
    AcquireReviewLeaseRequest, ApproveCandidateRequest, AskSecondOpinionRequest,
    BatchApproveCandidatesRequest, BatchRejectCandidatesRequest, CandidateOrder, CommentOnCandidateRequest,
    GetCandidateRequest, GetQueueStatsRequest, ListCandidatesRequest, PreviewCandidateRequest, PreviewQuery,
    RejectCandidateRequest, ReleaseReviewLeaseRequest, SecondOpinionFilter, UndoDecisionRequest,
    WatchQueueRequest,
};
use emend_tests::harness::NAMESPACE;

use super::{BAD_IDS, NOBODY, NUL, Rpc, UNKNOWN, long};

pub(super) fn cases() -> Vec<Rpc> {
    vec![
        list(),
        get(),
        preview(),
        approve(),
        reject(),
        undo(),
        acquire(),
        release(),
        ask(),
        comment(),
        watch(),
        stats(),
        batch_approve(),
        batch_reject(),
    ]
}

fn list() -> Rpc {
    Rpc::of("/emend.learning.v1.CandidateService/ListCandidates")
        .case("empty", &ListCandidatesRequest::default(), &["namespace"])
        .case(
            "an order that only the queue has, and times and texts out of bounds",
            &ListCandidatesRequest {
                namespace: NAMESPACE.into(),
                order: CandidateOrder::MostVotes.into(),
                created_before: Some(prost_types::Timestamp {
                    seconds: i64::MAX,
                    nanos: 0,
                }),
                created_after: Some(prost_types::Timestamp {
                    seconds: 0,
                    nanos: -1,
                }),
                text: long(201),
                ..ListCandidatesRequest::default()
            },
            &["statuses", "created_before", "created_after", "text"],
        )
        .case(
            "names of reviewers that are too long, and times that nobody asked about",
            &ListCandidatesRequest {
                namespace: NAMESPACE.into(),
                second_opinion: Some(SecondOpinionFilter {
                    asked: long(129),
                    asked_by: long(129),
                }),
                decided_after: Some(prost_types::Timestamp::default()),
                ..ListCandidatesRequest::default()
            },
            &["second_opinion.asked", "second_opinion.asked_by", "decided_after"],
        )
        .case(
            "an unknown order",
            &ListCandidatesRequest {
                namespace: NAMESPACE.into(),
                order: UNKNOWN,
                ..ListCandidatesRequest::default()
            },
            &["order"],
        )
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
                ..ListCandidatesRequest::default()
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

fn preview() -> Rpc {
    let of = |queries: Vec<PreviewQuery>| PreviewCandidateRequest {
        namespace: NAMESPACE.into(),
        candidate_id: "0e939fab-e5c7-8140-b875-9d80da3294c0".into(),
        queries,
    };
    let query = |text: &str, count: i64| PreviewQuery {
        text: text.into(),
        search_count: count,
        ..PreviewQuery::default()
    };
    Rpc::of("/emend.learning.v1.CandidateService/PreviewCandidate")
        .case(
            "everything at once",
            &PreviewCandidateRequest {
                namespace: "Not OK".into(),
                candidate_id: "x".into(),
                queries: vec![query("", 1)],
            },
            &["namespace", "candidate_id", "queries[0].text"],
        )
        .case("too many", &of(vec![query("a", 1); 1_001]), &["queries"])
        .case("fewer than none", &of(vec![query("a", -1)]), &["queries[0]"])
        .case(
            "right without a name",
            &of(vec![PreviewQuery {
                right_choices: vec![String::new()],
                ..query("a", 1)
            }]),
            &["queries[0].right_choices"],
        )
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

fn undo() -> Rpc {
    Rpc::of("/emend.learning.v1.CandidateService/UndoDecision")
        .case(
            "empty",
            &UndoDecisionRequest::default(),
            &["namespace", "candidate_id"],
        )
        .case(
            "everything at once",
            &UndoDecisionRequest {
                namespace: "Not OK".into(),
                candidate_id: "x".into(),
                etag: long(65),
                on_behalf_of: long(129),
            },
            &["namespace", "candidate_id", "etag", "on_behalf_of"],
        )
}

fn acquire() -> Rpc {
    Rpc::of("/emend.learning.v1.CandidateService/AcquireReviewLease")
        .case(
            "empty",
            &AcquireReviewLeaseRequest::default(),
            &["namespace", "candidate_id"],
        )
        .case(
            "everything at once",
            &AcquireReviewLeaseRequest {
                namespace: "Not OK".into(),
                candidate_id: "x".into(),
                on_behalf_of: long(129),
            },
            &["namespace", "candidate_id", "on_behalf_of"],
        )
}

fn release() -> Rpc {
    Rpc::of("/emend.learning.v1.CandidateService/ReleaseReviewLease")
        .case(
            "empty",
            &ReleaseReviewLeaseRequest::default(),
            &["namespace", "candidate_id"],
        )
        .case(
            "everything at once",
            &ReleaseReviewLeaseRequest {
                namespace: "Not OK".into(),
                candidate_id: "x".into(),
                on_behalf_of: long(129),
            },
            &["namespace", "candidate_id", "on_behalf_of"],
        )
}

fn ask() -> Rpc {
    Rpc::of("/emend.learning.v1.CandidateService/AskSecondOpinion")
        .case(
            "empty",
            &AskSecondOpinionRequest::default(),
            &["namespace", "candidate_id", "comment"],
        )
        .case(
            "everything at once",
            &AskSecondOpinionRequest {
                namespace: "Not OK".into(),
                candidate_id: "x".into(),
                comment: long(2_001),
                asked: long(129),
                on_behalf_of: long(129),
            },
            &["namespace", "candidate_id", "on_behalf_of", "comment", "asked"],
        )
}

fn comment() -> Rpc {
    Rpc::of("/emend.learning.v1.CandidateService/CommentOnCandidate")
        .case(
            "empty",
            &CommentOnCandidateRequest::default(),
            &["namespace", "candidate_id", "comment"],
        )
        .case(
            "everything at once",
            &CommentOnCandidateRequest {
                namespace: "Not OK".into(),
                candidate_id: "x".into(),
                comment: NUL.into(),
                on_behalf_of: long(129),
            },
            &["namespace", "candidate_id", "on_behalf_of", "comment"],
        )
}

fn watch() -> Rpc {
    Rpc::of("/emend.learning.v1.CandidateService/WatchQueue")
        .case("empty", &WatchQueueRequest::default(), &["namespace"])
        .case(
            "everything at once",
            &WatchQueueRequest {
                namespace: "Not OK".into(),
                kinds: vec![UNKNOWN, 1, 0],
            },
            &["namespace", "kinds[0]", "kinds[2]"],
        )
        .case(
            "too many kinds",
            &WatchQueueRequest {
                namespace: NAMESPACE.into(),
                kinds: vec![1; 65],
            },
            &["kinds"],
        )
}

fn stats() -> Rpc {
    let asks = |namespace: &str, days| GetQueueStatsRequest {
        namespace: namespace.into(),
        days,
    };
    Rpc::of("/emend.learning.v1.CandidateService/GetQueueStats")
        .case("empty", &GetQueueStatsRequest::default(), &["namespace"])
        .case("everything at once", &asks("Not OK", 91), &["namespace", "days"])
        .case("a negative number of days", &asks(NAMESPACE, -1), &["days"])
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
