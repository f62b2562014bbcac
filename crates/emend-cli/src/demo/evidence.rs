//! What a backend has read before the day, and people argue about.

use emend_core::EdgeRelation;
use emend_proto::learning::v1::{
    EvidenceClaim, EvidenceEdge, EvidencePage, NodeRef, UpsertEvidenceRequest, node_ref::Node,
};

use super::script::{NAMESPACE, PAPER};

/// The claim that people argue about.
pub(super) const CLAIM: &str = "claim:no-fees";

/// What a backend read before the day: two pages of one blog support a claim, and of a paper the model missed that it refutes it.
pub(super) fn evidence() -> UpsertEvidenceRequest {
    let page = |id: &str, domain: &str, doi: &str| EvidencePage {
        page_id: id.into(),
        domain: domain.into(),
        doi: doi.into(),
        ..EvidencePage::default()
    };
    let edge = |id: &str, page: &str, relation: EdgeRelation, confidence| EvidenceEdge {
        edge_id: id.into(),
        relation: relation.number(),
        source: Some(NodeRef {
            node: Some(Node::PageId(page.into())),
        }),
        target: Some(NodeRef {
            node: Some(Node::ClaimId(CLAIM.into())),
        }),
        nli_confidence: Some(confidence),
        ..EvidenceEdge::default()
    };
    UpsertEvidenceRequest {
        namespace: NAMESPACE.into(),
        pages: vec![
            page("page:post-1", "gossip.example", ""),
            page("page:post-2", "gossip.example", ""),
            page("page:paper", "papers.example", "10.1000/fees"),
        ],
        claims: vec![EvidenceClaim {
            claim_id: CLAIM.into(),
            text: "The fund pays no fees".into(),
            ..EvidenceClaim::default()
        }],
        edges: vec![
            edge("edge:post-1", "page:post-1", EdgeRelation::Supports, 0.9),
            edge("edge:post-2", "page:post-2", EdgeRelation::Supports, 0.9),
            edge(PAPER.phrase, "page:paper", EdgeRelation::Neutral, 0.88),
        ],
        ..UpsertEvidenceRequest::default()
    }
}
