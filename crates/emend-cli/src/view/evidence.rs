//! The evidence graph as JSON.
//!
//! Here enums are in lower case, and names those of the wire contract, as in the files that `emend evidence import` reads: an
//! exported claim is the claim that `emend evidence claims show --json` prints. Every field is there; null: there is none. Only what
//! has to be asked for, the two readings of a claim's edges, is left out otherwise.

use emend_core::evidence::Combining;
use emend_proto::{
    common::v1::{ClaimDecision, EdgeRelation, TrustLevel},
    learning::v1::{
        Claim, ClaimAdoption, ClaimStatus, Confidence, CorrectionSample, Edge, EvidenceAction, EvidenceEvent,
        EvidenceFragment, ExportMaterialsResponse, ExportedPage, GetReviewStatsResponse, Verdict,
        evidence_element::Element, export_materials_response::Line,
    },
};
use serde_json::{Value, json};

use super::time;
use crate::{
    transfer::materials::{Sort, node_json},
    words,
};

/// An enum's value in lower case; `None`: unspecified. Numbers unknown to this version are shown as numbers.
pub(super) fn word<E: TryFrom<i32>>(
    number: i32,
    name: impl Fn(&E) -> &'static str,
    prefix: &str,
) -> Option<String> {
    let known = E::try_from(number).ok();
    (number != 0).then(|| words::short(known.as_ref().map(name), prefix, number))
}

/// A relation or label.
pub fn relation(number: i32) -> Option<String> {
    word(number, EdgeRelation::as_str_name, "EDGE_RELATION_")
}

/// A level of trust.
pub fn level(number: i32) -> Option<String> {
    word(number, TrustLevel::as_str_name, "TRUST_LEVEL_")
}

/// Where a claim stands.
pub fn claim_status(number: i32) -> Option<String> {
    word(number, ClaimStatus::as_str_name, "CLAIM_STATUS_")
}

/// Whether a backend adopted a claim.
pub fn adoption(number: i32) -> Option<String> {
    word(number, ClaimAdoption::as_str_name, "CLAIM_ADOPTION_")
}

/// What people decided about a claim.
pub fn decision(number: i32) -> Option<String> {
    word(number, ClaimDecision::as_str_name, "CLAIM_DECISION_")
}

/// What the evidence says of a claim.
pub fn verdict(number: i32) -> Option<String> {
    word(number, Verdict::as_str_name, "VERDICT_")
}

/// What was done.
pub fn action(number: i32) -> Option<String> {
    word(number, EvidenceAction::as_str_name, "EVIDENCE_ACTION_")
}

/// Names and what they stand for, a line each.
pub fn lines(rows: &[(&str, String)]) -> String {
    let line = |(name, value): &(&str, String)| {
        let value = if value.is_empty() { "–" } else { value };
        format!("{name:<19} {value}\n")
    };
    rows.iter().map(line).collect()
}

/// A claim.
pub fn claim(claim: &Claim) -> Value {
    let confidence = claim.confidence.unwrap_or_default();
    let mut json = json!({
        "claim_id": claim.claim_id,
        "task_id": claim.task_id,
        "text": claim.text,
        "page_id": claim.page_id,
        "domain": claim.domain,
        "level": level(claim.level),
        "adoption": adoption(claim.adoption),
        "dangerous_patterns": claim.dangerous_patterns,
        "status": claim_status(claim.status),
        "decision": decision(claim.decision),
        "alpha": confidence.alpha,
        "beta": confidence.beta,
        "confidence": confidence.confidence,
        "uncertainty": confidence.uncertainty,
        "controversy": confidence.controversy,
        "supporting_count": confidence.supporting_count,
        "refuting_count": confidence.refuting_count,
        "neutral_count": confidence.neutral_count,
        "evidence_count": confidence.evidence_count,
        "independent_sources": confidence.independent_sources,
        "verdict": verdict(confidence.verdict),
        "created_at": time(claim.created_at.as_ref()),
        "updated_at": time(claim.updated_at.as_ref()),
    });
    for (way, reading) in [
        (Combining::CountAll, claim.count_all),
        (Combining::OnePerSource, claim.one_per_source),
    ] {
        if let Some(reading) = reading {
            json[way.name()] = weighed(&reading);
        }
    }
    json
}

/// What the edges of a claim come to in one reading; how many they are is the same in each.
fn weighed(reading: &Confidence) -> Value {
    json!({
        "alpha": reading.alpha,
        "beta": reading.beta,
        "confidence": reading.confidence,
        "uncertainty": reading.uncertainty,
        "controversy": reading.controversy,
        "verdict": verdict(reading.verdict),
    })
}

/// An edge.
pub fn edge(edge: &Edge) -> Value {
    json!({
        "edge_id": edge.edge_id,
        "relation": relation(edge.relation),
        "confidence": edge.confidence,
        "source": node_json(edge.source.as_ref()),
        "target": node_json(edge.target.as_ref()),
        "source_domain": edge.source_domain,
        "source_level": level(edge.source_level),
        "target_domain": edge.target_domain,
        "target_level": level(edge.target_level),
        "task_id": edge.task_id,
        "nli_label": relation(edge.predicted_label),
        "nli_confidence": edge.predicted_confidence,
        "reviewed": edge.reviewed,
        "corrected": edge.corrected,
        "reviewed_at": time(edge.reviewed_at.as_ref()),
        "review_reason": edge.review_reason,
        "feedback_id": edge.feedback_id,
    })
}

fn page(exported: &ExportedPage) -> Value {
    let page = exported.page.clone().unwrap_or_default();
    json!({
        "page_id": page.page_id,
        "domain": page.domain,
        "level": level(exported.level),
        "url": page.url,
        "title": page.title,
        "doi": page.doi,
        "pmid": page.pmid,
        "arxiv_id": page.arxiv_id,
    })
}

fn fragment(fragment: &EvidenceFragment) -> Value {
    json!({
        "fragment_id": fragment.fragment_id,
        "page_id": fragment.page_id,
        "text": fragment.text,
    })
}

/// A line of an export; `None` if this version does not know what it is.
pub fn material(line: &ExportMaterialsResponse) -> Option<Value> {
    let (sort, value) = match line.line.as_ref()? {
        Line::Page(line) => (Sort::Page, page(line)),
        Line::Fragment(line) => (Sort::Fragment, fragment(line)),
        Line::Claim(line) => (Sort::Claim, claim(line)),
        Line::Edge(line) => (Sort::Edge, edge(line)),
    };
    Some(json!({ sort.name(): value }))
}

/// What was replaced or deleted: its sort and its id; none of a decision.
pub fn element(event: &EvidenceEvent) -> Option<(&'static str, &str)> {
    Some(match event.element.as_ref()?.element.as_ref()? {
        Element::PageId(id) => ("page", id),
        Element::FragmentId(id) => ("fragment", id),
        Element::ClaimId(id) => ("claim", id),
        Element::EdgeId(id) => ("edge", id),
    })
}

/// Something that was done.
pub fn evidence_event(event: &EvidenceEvent) -> Value {
    let key = event.key.clone().unwrap_or_default();
    let actor = event.actor.clone().unwrap_or_default();
    let element = element(event);
    json!({
        "event_id": event.event_id,
        "action": action(event.action),
        "kind": event.key.as_ref().map(|key| words::kind_name(key.kind)),
        "element": element.map(|(sort, _)| sort),
        "target": element.map_or(key.key.as_str(), |(_, id)| id),
        "layer": key.qualifier,
        "task_id": event.task_id,
        "caller": actor.caller,
        "on_behalf_of": actor.on_behalf_of,
        "reporter": event.reporter,
        "reason": event.reason,
        "before": event.before,
        "after": event.after,
        "proposed": event.proposed,
        "feedback_id": event.feedback_id,
        "candidate_id": event.candidate_id,
        "revision": event.revision,
        "at": time(event.at.as_ref()),
    })
}

/// How often the model was wrong.
pub fn review_stats(stats: &GetReviewStatsResponse) -> Value {
    let labels: Vec<_> = stats
        .labels
        .iter()
        .map(|pair| {
            json!({
                "predicted_label": relation(pair.predicted_label),
                "correct_label": relation(pair.correct_label),
                "edges": pair.edges,
            })
        })
        .collect();
    json!({
        "reviewed": stats.reviewed,
        "corrected": stats.corrected,
        "error_rate": stats.error_rate,
        "labels": labels,
    })
}

/// A correction sample.
pub fn sample(sample: &CorrectionSample) -> Value {
    json!({
        "sample_id": sample.sample_id,
        "edge_id": sample.edge_id,
        "task_id": sample.task_id,
        "split": if sample.is_test { "test" } else { "train" },
        "premise": sample.premise,
        "hypothesis": sample.hypothesis,
        "predicted_label": relation(sample.predicted_label),
        "predicted_confidence": sample.predicted_confidence,
        "correct_label": relation(sample.correct_label),
        "reason": sample.reason,
        "reporter": sample.reporter,
        "corrected_at": time(sample.corrected_at.as_ref()),
    })
}

#[cfg(test)]
mod tests {
    use emend_proto::learning::v1::{NodeRef, node_ref::Node};

    use super::*;
    use crate::transfer::materials::Material;

    #[test]
    fn what_is_exported_can_be_imported() {
        let lines = [
            Line::Page(ExportedPage {
                level: TrustLevel::Academic.into(),
                ..ExportedPage::default()
            }),
            Line::Fragment(EvidenceFragment::default()),
            Line::Claim(Claim {
                claim_id: "claim:1".into(),
                adoption: ClaimAdoption::Adopted.into(),
                status: ClaimStatus::Verified.into(),
                confidence: Some(Confidence::default()),
                count_all: Some(Confidence::default()),
                one_per_source: Some(Confidence::default()),
                ..Claim::default()
            }),
            Line::Edge(Edge {
                edge_id: "edge:1".into(),
                relation: EdgeRelation::Refutes.into(),
                confidence: Some(1.0),
                source: Some(NodeRef {
                    node: Some(Node::FragmentId("fragment:a".into())),
                }),
                predicted_label: EdgeRelation::Supports.into(),
                predicted_confidence: Some(0.9),
                reviewed: true,
                ..Edge::default()
            }),
        ];
        let read = lines.map(|line| {
            let exported = material(&ExportMaterialsResponse { line: Some(line) }).unwrap();
            Material::parse(&exported.to_string()).unwrap_or_else(|error| panic!("{exported}: {error}"))
        });
        assert_eq!(read.each_ref().map(Material::sort), Sort::ALL);
        let [.., Material::Claim(claim), Material::Edge(edge)] = read else {
            panic!("a claim and an edge")
        };
        assert_eq!(claim.adoption(), ClaimAdoption::Adopted);
        // The model's prediction, not what people say of it.
        assert_eq!(
            (edge.nli_label(), edge.nli_confidence),
            (EdgeRelation::Supports, Some(0.9))
        );
    }

    #[test]
    fn what_there_is_none_of_is_null() {
        let edge = edge(&Edge::default());
        for field in [
            "relation",
            "confidence",
            "nli_confidence",
            "source",
            "source_level",
            "reviewed_at",
        ] {
            assert_eq!(edge[field], Value::Null, "{field}");
        }
        assert_eq!(level(99), Some("99".into()));
    }
}
