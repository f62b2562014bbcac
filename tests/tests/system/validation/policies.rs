//! Bad requests about policies.

use emend_proto::{
    common::v1::{NearLookupValue, ResourceKind},
    learning::v1::{
        GetNamespacePolicyRequest, GetPolicyRequest, NamespacePolicy, Policy, PreviewPolicyRequest,
        PreviewQuery, UpdateNamespacePolicyRequest, UpdatePolicyRequest,
    },
};
use emend_tests::harness::NAMESPACE;
use prost_types::{Duration, FieldMask};

use super::{NUL, Rpc, UNKNOWN, long};

pub(super) fn cases() -> Vec<Rpc> {
    vec![
        get(),
        update(),
        preview(),
        get_of_namespace(),
        update_of_namespace(),
    ]
}

fn get() -> Rpc {
    Rpc::of("/emend.learning.v1.PolicyService/GetPolicy")
        .case("empty", &GetPolicyRequest::default(), &["namespace", "kind"])
        .case(
            "everything at once",
            &GetPolicyRequest {
                namespace: "Not OK".into(),
                kind: UNKNOWN,
            },
            &["namespace", "kind"],
        )
}

fn preview() -> Rpc {
    let of = |policy: Policy| PreviewPolicyRequest {
        policy: Some(policy),
        ..PreviewPolicyRequest::default()
    };
    let good = Policy {
        namespace: NAMESPACE.into(),
        kind: ResourceKind::InvocationPhrase.into(),
        threshold: 2,
        ..Policy::default()
    };
    Rpc::of("/emend.learning.v1.PolicyService/PreviewPolicy")
        .case(
            "empty",
            &PreviewPolicyRequest::default(),
            &["policy.kind", "policy.namespace"],
        )
        .case(
            "a kind that no phrase is looked up as",
            &of(Policy {
                kind: ResourceKind::Synonym.into(),
                ..good.clone()
            }),
            &["policy.kind"],
        )
        .case(
            "no change",
            &of(Policy {
                threshold: 0,
                ..good.clone()
            }),
            &["update_mask"],
        )
        .case(
            "everything at once",
            &PreviewPolicyRequest {
                near: Some(NearLookupValue {
                    min_confidence: Some(1.1),
                    method: UNKNOWN,
                    vectors: "x".into(),
                    cleared: false,
                }),
                queries: vec![PreviewQuery::default()],
                ..of(Policy {
                    threshold: 1_001,
                    ..good
                })
            },
            &[
                "queries[0].text",
                "near.method",
                "near.min_confidence",
                "near.vectors",
                "policy.threshold",
            ],
        )
}

fn update() -> Rpc {
    let good = Policy {
        namespace: NAMESPACE.into(),
        kind: ResourceKind::InvocationPhrase.into(),
        threshold: 2,
        ..Policy::default()
    };
    let of = |policy: Policy| UpdatePolicyRequest {
        policy: Some(policy),
        ..UpdatePolicyRequest::default()
    };
    let masked = |policy: Policy, paths: &[&str]| UpdatePolicyRequest {
        update_mask: Some(FieldMask {
            paths: paths.iter().map(|&path| path.to_owned()).collect(),
        }),
        ..of(policy)
    };
    Rpc::of("/emend.learning.v1.PolicyService/UpdatePolicy")
        .case(
            "empty",
            &UpdatePolicyRequest::default(),
            // An empty mask is also a violation.
            &["policy.namespace", "policy.kind", "update_mask"],
        )
        .case(
            "everything at once",
            &UpdatePolicyRequest {
                policy: Some(Policy {
                    namespace: "Not OK".into(),
                    kind: UNKNOWN,
                    risk_level: UNKNOWN,
                    threshold: 1_001,
                    counting: UNKNOWN,
                    half_life: Some(Duration { seconds: 1, nanos: 0 }),
                    max_derived_voters: 1_001,
                    max_resources: 2_000_001,
                    max_value_bytes: 524_289,
                    max_counted_feedback: 99,
                    etag: long(65),
                    ..Policy::default()
                }),
                reason: long(2_001),
                on_behalf_of: long(129),
                ..UpdatePolicyRequest::default()
            },
            &[
                "policy.namespace",
                "policy.kind",
                "policy.risk_level",
                "policy.threshold",
                "policy.counting",
                "policy.half_life",
                "policy.max_derived_voters",
                "policy.max_resources",
                "policy.max_value_bytes",
                "policy.max_counted_feedback",
                "policy.etag",
                "reason",
                "on_behalf_of",
            ],
        )
        .case(
            "negative numbers",
            &of(Policy {
                threshold: -1,
                max_derived_voters: -1,
                max_resources: -1,
                max_value_bytes: -1,
                max_counted_feedback: -1,
                half_life: Some(Duration {
                    seconds: -1,
                    nanos: 0,
                }),
                ..good.clone()
            }),
            &[
                "policy.threshold",
                "policy.half_life",
                "policy.max_derived_voters",
                "policy.max_resources",
                "policy.max_value_bytes",
                "policy.max_counted_feedback",
            ],
        )
        .case(
            "U+0000 in every text",
            &UpdatePolicyRequest {
                reason: NUL.into(),
                on_behalf_of: NUL.into(),
                ..of(Policy {
                    etag: NUL.into(),
                    ..good.clone()
                })
            },
            &["policy.etag", "reason", "on_behalf_of"],
        )
        .case(
            "an update of nothing",
            &of(Policy {
                threshold: 0,
                ..good.clone()
            }),
            &["update_mask"],
        )
        .case(
            "a mask of what is not there",
            &masked(good.clone(), &["mood"]),
            &["update_mask"],
        )
        .case(
            "a mask of a read-only field",
            &masked(good.clone(), &["version"]),
            &["update_mask"],
        )
        .case(
            "a mask that takes a risk and a number away and names a read-only field",
            &masked(
                Policy {
                    threshold: 0,
                    ..good.clone()
                },
                &["threshold", "version", "risk_level"],
            ),
            &["update_mask", "policy.risk_level", "policy.threshold"],
        )
        .case(
            "a mask that takes a number away",
            &masked(Policy { threshold: 0, ..good }, &["threshold"]),
            &["policy.threshold"],
        )
}

fn get_of_namespace() -> Rpc {
    Rpc::of("/emend.learning.v1.PolicyService/GetNamespacePolicy")
        .case("empty", &GetNamespacePolicyRequest::default(), &["namespace"])
        .case(
            "everything at once",
            &GetNamespacePolicyRequest {
                namespace: "Not OK".into(),
            },
            &["namespace"],
        )
}

fn update_of_namespace() -> Rpc {
    let of = |policy: NamespacePolicy| UpdateNamespacePolicyRequest {
        policy: Some(policy),
        ..UpdateNamespacePolicyRequest::default()
    };
    let good = NamespacePolicy {
        namespace: NAMESPACE.into(),
        min_claims: 9,
        ..NamespacePolicy::default()
    };
    let masked = |path: &str| UpdateNamespacePolicyRequest {
        update_mask: Some(FieldMask {
            paths: vec![path.to_owned()],
        }),
        ..of(good.clone())
    };
    Rpc::of("/emend.learning.v1.PolicyService/UpdateNamespacePolicy")
        .case(
            "empty",
            &UpdateNamespacePolicyRequest::default(),
            &["policy.namespace", "update_mask"],
        )
        .case(
            "everything at once",
            &UpdateNamespacePolicyRequest {
                reason: long(2_001),
                on_behalf_of: long(129),
                ..of(NamespacePolicy {
                    namespace: "Not OK".into(),
                    combining: UNKNOWN,
                    min_claims: 1_000_001,
                    rejected_permille: 1_001,
                    etag: long(65),
                    ..NamespacePolicy::default()
                })
            },
            &[
                "policy.namespace",
                "policy.combining",
                "policy.min_claims",
                "policy.rejected_permille",
                "policy.etag",
                "reason",
                "on_behalf_of",
            ],
        )
        .case(
            "negative numbers",
            &of(NamespacePolicy {
                min_claims: -1,
                rejected_permille: -1,
                ..good.clone()
            }),
            &["policy.min_claims", "policy.rejected_permille"],
        )
        .case(
            "U+0000 in every text",
            &UpdateNamespacePolicyRequest {
                reason: NUL.into(),
                on_behalf_of: NUL.into(),
                ..of(NamespacePolicy {
                    etag: NUL.into(),
                    ..good.clone()
                })
            },
            &["policy.etag", "reason", "on_behalf_of"],
        )
        .case(
            "a combining that is named and not given",
            &masked("combining"),
            &["policy.combining"],
        )
        .case("a mask of what is not there", &masked("mood"), &["update_mask"])
}
