//! Renders the evidence graph.

use emend_core::evidence::{Confidence, EdgeRelation, Evidence, NodeRef, NodeType, TrustLevel, Verdict};
use emend_proto::learning::v1::{self as pb, node_ref::Node};
use emend_wire::render::{saturated, timestamp};
use learning_store::evidence::{ClaimRecord, EdgeRecord, HostRecord};

pub(crate) fn claim(claim: ClaimRecord) -> pb::Claim {
    let sources = claim.independent_sources;
    let (domain, level) = host(claim.source);
    pb::Claim {
        claim_id: claim.id.to_string(),
        task_id: claim.task,
        text: claim.text,
        page_id: claim.page,
        domain,
        level,
        adoption: if claim.adopted {
            pb::ClaimAdoption::Adopted.into()
        } else {
            pb::ClaimAdoption::NotAdopted.into()
        },
        dangerous_patterns: claim.patterns,
        status: claim.status.number(),
        decision: claim.ruled,
        confidence: Some(confidence(claim.evidence, sources)),
        created_at: Some(timestamp(claim.created_at)),
        updated_at: Some(timestamp(claim.updated_at)),
        count_all: claim.readings.map(|both| confidence(both.count_all, sources)),
        one_per_source: claim
            .readings
            .map(|both| confidence(both.one_per_source, sources)),
    }
}

fn confidence(evidence: Evidence, independent_sources: u64) -> pb::Confidence {
    let Confidence {
        alpha,
        beta,
        confidence,
        uncertainty,
        controversy,
        verdict,
    } = evidence.reported();
    pb::Confidence {
        alpha,
        beta,
        confidence,
        uncertainty,
        controversy,
        supporting_count: saturated(evidence.supporting_count),
        refuting_count: saturated(evidence.refuting_count),
        neutral_count: saturated(evidence.neutral_count),
        evidence_count: saturated(evidence.evidence_count()),
        independent_sources: saturated(independent_sources),
        verdict: self::verdict(verdict).into(),
    }
}

fn verdict(verdict: Verdict) -> pb::Verdict {
    match verdict {
        Verdict::Supported => pb::Verdict::Supported,
        Verdict::Refuted => pb::Verdict::Refuted,
        Verdict::Inconclusive => pb::Verdict::Inconclusive,
    }
}

pub(crate) fn edge(edge: EdgeRecord) -> pb::Edge {
    let is_corrected = edge.is_corrected();
    let predicted = edge.predicted();
    let (source_domain, source_level) = host(edge.source_host);
    let (target_domain, target_level) = host(edge.target_host);
    pb::Edge {
        edge_id: edge.id.to_string(),
        relation: edge.relation.number(),
        confidence: if is_corrected { Some(1.0) } else { edge.confidence },
        source: Some(node(&edge.source)),
        target: Some(node(&edge.target)),
        source_domain,
        source_level,
        target_domain,
        target_level,
        task_id: edge.task,
        predicted_label: match predicted {
            EdgeRelation::Cites => 0,
            label => label.number(),
        },
        predicted_confidence: edge.confidence,
        reviewed: edge.ruled.is_some(),
        corrected: is_corrected,
        reviewed_at: edge.reviewed_at.map(timestamp),
        review_reason: edge.review_reason,
        feedback_id: edge
            .reviewed_by
            .map(|feedback| feedback.to_string())
            .unwrap_or_default(),
    }
}

pub(crate) fn node(node: &NodeRef) -> pb::NodeRef {
    let id = node.id.to_string();
    pb::NodeRef {
        node: Some(match node.sort {
            NodeType::Page => Node::PageId(id),
            NodeType::Fragment => Node::FragmentId(id),
            NodeType::Claim => Node::ClaimId(id),
        }),
    }
}

/// The name of a host and its level's number; empty and 0 where there is none.
pub(crate) fn host(host: Option<HostRecord>) -> (String, i32) {
    host.map_or_else(Default::default, |host| (host.name, level(host.level)))
}

pub(crate) fn level(level: TrustLevel) -> i32 {
    level.number()
}
