//! Bad requests to the evidence service.

use emend_proto::learning::v1::{
    DeleteEvidenceRequest, EvidenceClaim, EvidenceEdge, EvidenceElement, EvidenceFragment, EvidencePage,
    ExportCorrectionsRequest, ExportMaterialsRequest, GetClaimRequest, GetReviewStatsRequest,
    ListClaimsRequest, ListEdgesRequest, ListEvidenceEventsRequest, NodeRef, UpsertEvidenceRequest,
    node_ref::Node,
};
use emend_tests::harness::{NAMESPACE, says::supports};
use prost_types::Timestamp;

use super::{NUL, Rpc, UNKNOWN, long};

pub(super) fn cases() -> Vec<Rpc> {
    vec![
        upsert(),
        delete(),
        get_claim(),
        list_claims(),
        list_edges(),
        list_events(),
        review_stats(),
        export_materials(),
        export_corrections(),
    ]
}

/// No time of any calendar.
const NEVER: Option<Timestamp> = Some(Timestamp {
    seconds: i64::MAX,
    nanos: -1,
});

const fn at(seconds: i64) -> Timestamp {
    Timestamp { seconds, nanos: 0 }
}

fn upsert() -> Rpc {
    let good = supports(1, "example.org", "c1", 0.9);
    let page = |page| UpsertEvidenceRequest {
        pages: vec![page],
        ..good.clone()
    };
    let mut rpc = Rpc::of("/emend.learning.v1.EvidenceService/UpsertEvidence")
        .case("empty", &UpsertEvidenceRequest::default(), &["namespace", ""])
        .case(
            "too much",
            &UpsertEvidenceRequest {
                namespace: NAMESPACE.into(),
                pages: vec![EvidencePage::default(); 1_001],
                ..UpsertEvidenceRequest::default()
            },
            &[""],
        )
        .case(
            "a page and a fragment, all of it bad",
            &UpsertEvidenceRequest {
                namespace: "Not OK".into(),
                pages: vec![EvidencePage {
                    url: "gopher://example.org".into(),
                    domain: "https://example.org".into(),
                    title: long(1_025),
                    doi: "x".into(),
                    pmid: "x".into(),
                    arxiv_id: "x".into(),
                    ..EvidencePage::default()
                }],
                fragments: vec![EvidenceFragment {
                    text: long(32_769),
                    ..EvidenceFragment::default()
                }],
                ..UpsertEvidenceRequest::default()
            },
            &[
                "namespace",
                "pages[0].page_id",
                "pages[0].domain",
                "pages[0].url",
                "pages[0].title",
                "pages[0].doi",
                "pages[0].pmid",
                "pages[0].arxiv_id",
                "fragments[0].fragment_id",
                "fragments[0].page_id",
                "fragments[0].text",
            ],
        )
        .case(
            "a claim and an edge, all of it bad",
            &UpsertEvidenceRequest {
                namespace: NAMESPACE.into(),
                claims: vec![EvidenceClaim {
                    task_id: long(257),
                    text: NUL.into(),
                    page_id: NUL.into(),
                    adoption: UNKNOWN,
                    dangerous_patterns: vec!["x".into(); 17],
                    ..EvidenceClaim::default()
                }],
                edges: vec![EvidenceEdge {
                    task_id: NUL.into(),
                    nli_label: 4,
                    nli_confidence: Some(1.5),
                    ..EvidenceEdge::default()
                }],
                ..UpsertEvidenceRequest::default()
            },
            &[
                "claims[0].claim_id",
                "claims[0].task_id",
                "claims[0].text",
                "claims[0].page_id",
                "claims[0].adoption",
                "claims[0].dangerous_patterns",
                "edges[0].edge_id",
                "edges[0].relation",
                "edges[0].source",
                "edges[0].target",
                "edges[0].task_id",
                "edges[0].nli_label",
                "edges[0].nli_confidence",
            ],
        )
        .case(
            "a page without a host",
            &page(EvidencePage {
                page_id: "p1".into(),
                ..EvidencePage::default()
            }),
            &["pages[0].domain"],
        );
    for weight in [f64::NAN, f64::INFINITY, -0.1, 1.1] {
        let mut request = good.clone();
        request.edges[0].nli_confidence = Some(weight);
        rpc = rpc.case(
            format!("the weight {weight}"),
            &request,
            &["edges[0].nli_confidence"],
        );
    }
    let mut twice = good.clone();
    twice.edges.extend(good.edges.clone());
    rpc = rpc.case("an edge twice", &twice, &["edges[1].edge_id"]);
    let mut cites = good.clone();
    cites.edges[0].relation = 4;
    rpc = rpc.case(
        "a citation between a fragment and a claim",
        &cites,
        &["edges[0].source", "edges[0].target"],
    );
    let mut nowhere = good;
    nowhere.edges[0].target = Some(NodeRef {
        node: Some(Node::ClaimId("c9".into())),
    });
    rpc.case("an edge to what nobody knows", &nowhere, &["edges[0].target"])
}

fn delete() -> Rpc {
    Rpc::of("/emend.learning.v1.EvidenceService/DeleteEvidence")
        .case("empty", &DeleteEvidenceRequest::default(), &["namespace", ""])
        .case(
            "too much",
            &DeleteEvidenceRequest {
                namespace: NAMESPACE.into(),
                edge_ids: vec!["e".into(); 1_001],
                ..DeleteEvidenceRequest::default()
            },
            &[""],
        )
        .case(
            "everything at once",
            &DeleteEvidenceRequest {
                namespace: "Not OK".into(),
                page_ids: vec!["p1".into(), String::new()],
                fragment_ids: vec![NUL.into()],
                claim_ids: vec![long(257)],
                edge_ids: vec![NUL.into()],
                reason: long(2_001),
                on_behalf_of: long(129),
            },
            &[
                "namespace",
                "page_ids[1]",
                "fragment_ids[0]",
                "claim_ids[0]",
                "edge_ids[0]",
                "reason",
                "on_behalf_of",
            ],
        )
}

fn get_claim() -> Rpc {
    Rpc::of("/emend.learning.v1.EvidenceService/GetClaim")
        .case("empty", &GetClaimRequest::default(), &["namespace", "claim_id"])
        .case(
            "too long an id",
            &GetClaimRequest {
                namespace: NAMESPACE.into(),
                claim_id: long(257),
                ..GetClaimRequest::default()
            },
            &["claim_id"],
        )
}

fn list_claims() -> Rpc {
    Rpc::of("/emend.learning.v1.EvidenceService/ListClaims")
        .case("empty", &ListClaimsRequest::default(), &["namespace"])
        .case(
            "everything at once",
            &ListClaimsRequest {
                namespace: "Not OK".into(),
                task_id: long(257),
                status: UNKNOWN,
                adoption: UNKNOWN,
                page_size: 1_001,
                page_token: "not a token".into(),
            },
            &[
                "namespace",
                "task_id",
                "status",
                "adoption",
                "page_size",
                "page_token",
            ],
        )
}

fn list_edges() -> Rpc {
    Rpc::of("/emend.learning.v1.EvidenceService/ListEdges")
        .case("empty", &ListEdgesRequest::default(), &["namespace"])
        .case(
            "everything at once",
            &ListEdgesRequest {
                namespace: "Not OK".into(),
                claim_id: NUL.into(),
                relations: vec![0, 1, UNKNOWN],
                levels: vec![0, 1, UNKNOWN],
                task_id: NUL.into(),
                edge_id: NUL.into(),
                page_size: -1,
                page_token: "not a token".into(),
                ..ListEdgesRequest::default()
            },
            &[
                "namespace",
                "claim_id",
                "relations[0]",
                "relations[2]",
                "levels[0]",
                "levels[2]",
                "task_id",
                "edge_id",
                "page_size",
                "page_token",
            ],
        )
        .case(
            "too many of everything",
            &ListEdgesRequest {
                namespace: NAMESPACE.into(),
                relations: vec![1; 17],
                levels: vec![1; 17],
                ..ListEdgesRequest::default()
            },
            &["relations", "levels"],
        )
}

fn list_events() -> Rpc {
    let of = |kind, target: &str| ListEvidenceEventsRequest {
        namespace: NAMESPACE.into(),
        kind,
        target: target.into(),
        ..ListEvidenceEventsRequest::default()
    };
    Rpc::of("/emend.learning.v1.EvidenceService/ListEvidenceEvents")
        .case("empty", &ListEvidenceEventsRequest::default(), &["namespace"])
        .case(
            "everything at once",
            &ListEvidenceEventsRequest {
                namespace: "Not OK".into(),
                target: "x".into(),
                kind: UNKNOWN,
                task_id: NUL.into(),
                caller: NUL.into(),
                from: NEVER,
                to: NEVER,
                page_size: 1_001,
                page_token: "not a token".into(),
                element: Some(EvidenceElement::default()),
            },
            &[
                "namespace",
                "kind",
                "element",
                "task_id",
                "caller",
                "from",
                "to",
                "page_size",
                "page_token",
            ],
        )
        .case("a target without a kind", &of(0, "example.org"), &["kind"])
        .case("a kind without a target", &of(7, ""), &["target"])
        .case(
            "a kind that is not about evidence",
            &of(1, "example.org"),
            &["kind"],
        )
        .case(
            "a period that ends before it begins",
            &ListEvidenceEventsRequest {
                namespace: NAMESPACE.into(),
                from: Some(at(9)),
                to: Some(at(9)),
                ..ListEvidenceEventsRequest::default()
            },
            &["to"],
        )
}

fn review_stats() -> Rpc {
    Rpc::of("/emend.learning.v1.EvidenceService/GetReviewStats")
        .case("empty", &GetReviewStatsRequest::default(), &["namespace"])
        .case(
            "everything at once",
            &GetReviewStatsRequest {
                namespace: "Not OK".into(),
                task_id: NUL.into(),
                predicted_label: 4,
                from: NEVER,
                to: NEVER,
            },
            &["namespace", "task_id", "predicted_label", "from", "to"],
        )
}

fn export_materials() -> Rpc {
    Rpc::of("/emend.learning.v1.EvidenceService/ExportMaterials")
        .case(
            "empty",
            &ExportMaterialsRequest::default(),
            &["namespace", "task_id"],
        )
        .case(
            "U+0000",
            &ExportMaterialsRequest {
                namespace: NUL.into(),
                task_id: NUL.into(),
                ..ExportMaterialsRequest::default()
            },
            &["namespace", "task_id"],
        )
}

fn export_corrections() -> Rpc {
    Rpc::of("/emend.learning.v1.EvidenceService/ExportCorrections")
        .case("empty", &ExportCorrectionsRequest::default(), &["namespace"])
        .case(
            "everything at once",
            &ExportCorrectionsRequest {
                namespace: "Not OK".into(),
                task_id: NUL.into(),
                correct_labels: vec![1, 4, UNKNOWN],
                from: NEVER,
                to: NEVER,
                test_percent: Some(100),
            },
            &[
                "namespace",
                "task_id",
                "correct_labels[1]",
                "correct_labels[2]",
                "from",
                "to",
                "test_percent",
            ],
        )
        .case(
            "a negative share",
            &ExportCorrectionsRequest {
                namespace: NAMESPACE.into(),
                test_percent: Some(-1),
                ..ExportCorrectionsRequest::default()
            },
            &["test_percent"],
        )
}
