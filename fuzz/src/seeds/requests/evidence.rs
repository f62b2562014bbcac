//! Valid requests about evidence.

use emend_proto::learning::v1 as learning;

use super::{at, namespace, of};

/// Valid requests to the evidence service.
pub(super) fn evidence() -> Vec<Vec<u8>> {
    let task = || "t-17".to_owned();
    let node = |node| Some(learning::NodeRef { node: Some(node) });
    vec![
        of(
            20,
            &learning::UpsertEvidenceRequest {
                namespace: namespace(),
                pages: vec![learning::EvidencePage {
                    page_id: "p1".into(),
                    url: "https://blog.example.org/a?b#c".into(),
                    title: "A page".into(),
                    doi: "10.1000/X".into(),
                    arxiv_id: "2101.00001v2".into(),
                    ..Default::default()
                }],
                fragments: vec![learning::EvidenceFragment {
                    fragment_id: "f1".into(),
                    page_id: "p1".into(),
                    text: "What it says.".into(),
                }],
                claims: vec![learning::EvidenceClaim {
                    claim_id: "c1".into(),
                    task_id: task(),
                    text: "The claim.".into(),
                    page_id: "p1".into(),
                    adoption: 1,
                    dangerous_patterns: vec!["prompt injection".into()],
                }],
                edges: vec![learning::EvidenceEdge {
                    edge_id: "e1".into(),
                    relation: 1,
                    source: node(learning::node_ref::Node::FragmentId("f1".into())),
                    target: node(learning::node_ref::Node::ClaimId("c1".into())),
                    task_id: task(),
                    nli_label: 3,
                    nli_confidence: Some(0.9),
                }],
                replace: true,
            },
        ),
        of(
            21,
            &learning::ListClaimsRequest {
                namespace: namespace(),
                task_id: task(),
                status: 2,
                adoption: 1,
                page_size: 10,
                page_token: String::new(),
            },
        ),
        of(
            22,
            &learning::ListEdgesRequest {
                namespace: namespace(),
                claim_id: "c1".into(),
                relations: vec![1, 2],
                levels: vec![3],
                reviewed: Some(true),
                corrected: Some(false),
                task_id: task(),
                page_size: 10,
                page_token: String::new(),
                edge_id: "e1".into(),
            },
        ),
        of(
            23,
            &learning::ListEvidenceEventsRequest {
                namespace: namespace(),
                target: "*.Spam.Example.".into(),
                kind: 5,
                task_id: task(),
                caller: "backend".into(),
                from: Some(at(1)),
                to: Some(at(2)),
                page_size: 10,
                page_token: String::new(),
                element: None,
            },
        ),
        of(
            24,
            &learning::GetReviewStatsRequest {
                namespace: namespace(),
                task_id: task(),
                predicted_label: 1,
                from: Some(at(1)),
                to: Some(at(2)),
            },
        ),
        of(
            25,
            &learning::ExportCorrectionsRequest {
                namespace: namespace(),
                task_id: task(),
                correct_labels: vec![1, 3],
                from: Some(at(1)),
                to: Some(at(2)),
                test_percent: Some(30),
            },
        ),
        of(
            26,
            &learning::GetClaimRequest {
                namespace: namespace(),
                claim_id: "c1".into(),
                both_readings: true,
            },
        ),
        of(
            27,
            &learning::ExportMaterialsRequest {
                namespace: namespace(),
                task_id: task(),
                both_readings: true,
            },
        ),
    ]
}
