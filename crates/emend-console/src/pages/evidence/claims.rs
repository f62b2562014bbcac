//! Claims: what their evidence says, and rejecting or restoring one.

use askama::Template;
use emend_proto::{
    common::v1::{ClaimDecision, EdgeRelation},
    learning::v1::{
        Claim, ClaimAdoption, ClaimStatus, Edge, GetClaimRequest, ListClaimsRequest, ListEdgesRequest,
        NodeRef, node_ref::Node,
    },
};
use http::StatusCode;
use tonic::Status;

use super::{edges::address as edge_address, may_decide, tabs, words};
use crate::{
    form::Fields,
    page::{Answer, Page, Part, Visitor, html},
    pages::{Choice, chart::Interval, links, tabs::Tab},
    text::{self, Moment, moment},
};

const PAGE: i32 = 50;
/// How many edges of one claim are shown.
const EDGES: i32 = 200;

/// The page of all claims.
#[derive(Debug, Template)]
#[template(path = "claims.html")]
struct Claims {
    page: Page,
    tabs: Vec<Tab>,
    task: String,
    statuses: Vec<Choice>,
    adoptions: Vec<Choice>,
    rows: Vec<Row>,
    first: Option<String>,
    next: Option<String>,
    is_filtered: bool,
    may_decide: bool,
}

/// A claim in one line.
#[derive(Debug)]
struct Row {
    id: String,
    is_rejected: bool,
    href: String,
    text: String,
    task: String,
    status: (&'static str, &'static str),
    confidence: Shown,
}

/// What the evidence of a claim comes to.
#[derive(Debug)]
struct Shown {
    interval: Interval,
    /// `0.787 ± 0.171`.
    text: String,
    verdict: &'static str,
    alpha: String,
    beta: String,
    controversy: String,
    supporting: i64,
    refuting: i64,
    neutral: i64,
    sources: i64,
}

/// The page of one claim.
#[derive(Debug, Template)]
#[template(path = "claim.html")]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of the template")]
struct One {
    page: Page,
    tabs: Vec<Tab>,
    id: String,
    text: String,
    task: String,
    page_id: String,
    domain: String,
    level: &'static str,
    is_adopted: bool,
    patterns: Vec<String>,
    status: (&'static str, &'static str),
    /// What a person decided; empty if nothing.
    decision: &'static str,
    is_rejected: bool,
    confidence: Shown,
    updated: Moment,
    sides: Vec<Side>,
    has_more: bool,
    events: Option<String>,
    may_decide: bool,
}

/// The edges that say the same of a claim.
#[derive(Debug)]
struct Side {
    label: &'static str,
    class: &'static str,
    edges: Vec<End>,
}

/// An edge, as seen from the claim.
#[derive(Debug)]
struct End {
    href: String,
    id: String,
    sort: &'static str,
    node: String,
    node_href: String,
    domain: String,
    level: &'static str,
    weight: String,
    review: &'static str,
}

/// The address of a claim.
pub(crate) fn address(visitor: &Visitor, id: &str) -> String {
    visitor.within(Part::Evidence, &["claims", id], &Fields::default())
}

fn confidence(visitor: &Visitor, claim: &Claim) -> Shown {
    let confidence = claim.confidence.unwrap_or_default();
    Shown {
        interval: Interval::around(confidence.confidence, confidence.uncertainty),
        text: format!("{:.3} ± {:.3}", confidence.confidence, confidence.uncertainty),
        verdict: words::verdict(visitor.language, confidence.verdict),
        alpha: format!("{:.2}", confidence.alpha),
        beta: format!("{:.2}", confidence.beta),
        controversy: format!("{:.3}", confidence.controversy),
        supporting: confidence.supporting_count,
        refuting: confidence.refuting_count,
        neutral: confidence.neutral_count,
        sources: confidence.independent_sources,
    }
}

/// Lists claims.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let (task, status, adoption) = (fields.get("task"), fields.get("status"), fields.get("adoption"));
    let statuses = [
        ("pending", ClaimStatus::Pending),
        ("verified", ClaimStatus::Verified),
        ("rejected", ClaimStatus::Rejected),
    ];
    let adoptions = [
        ("adopted", ClaimAdoption::Adopted, visitor.t("adopted", "採用")),
        (
            "not-adopted",
            ClaimAdoption::NotAdopted,
            visitor.t("not adopted", "不採用"),
        ),
    ];
    let wanted = statuses.iter().find(|(name, _)| *name == status);
    let wanted_adoption = adoptions.iter().find(|(name, ..)| *name == adoption);
    let request = visitor.services.call(ListClaimsRequest {
        namespace: visitor.namespace.clone(),
        task_id: task.to_owned(),
        status: wanted.map_or(0, |(_, status)| *status as i32),
        adoption: wanted_adoption.map_or(0, |(_, adoption, _)| *adoption as i32),
        page_size: PAGE,
        page_token: fields.get("page").to_owned(),
    });
    let answer = visitor.services.evidence().list_claims(request).await?;
    let answer = answer.into_inner();
    let address_of_all = visitor.within(Part::Evidence, &["claims"], &Fields::default());
    let (first, next) = links(&address_of_all, fields, &answer.next_page_token);
    let choice = |value: &str, label: &str, chosen: &str| Choice {
        value: value.to_owned(),
        label: label.to_owned(),
        is_chosen: value == chosen,
    };
    let rows = answer.claims.iter().map(|claim| Row {
        id: claim.claim_id.clone(),
        is_rejected: claim.status() == ClaimStatus::Rejected,
        href: address(visitor, &claim.claim_id),
        text: text::shortened(
            if claim.text.is_empty() {
                &claim.claim_id
            } else {
                &claim.text
            },
            160,
        ),
        task: claim.task_id.clone(),
        status: words::claim_status(visitor.language, claim.status),
        confidence: confidence(visitor, claim),
    });
    let shown = Claims {
        tabs: tabs(visitor, "claims"),
        task: task.to_owned(),
        statuses: statuses
            .iter()
            .map(|(name, number)| {
                let (label, _) = words::claim_status(visitor.language, *number as i32);
                choice(name, label, status)
            })
            .collect(),
        adoptions: adoptions
            .iter()
            .map(|(name, _, label)| choice(name, label, adoption))
            .collect(),
        rows: rows.collect(),
        first,
        next,
        is_filtered: !task.is_empty() || wanted.is_some() || wanted_adoption.is_some(),
        may_decide: may_decide(visitor),
        page: visitor.page(Part::Evidence, visitor.t("Claims", "主張"), fields),
    };
    Ok(html(StatusCode::OK, &shown))
}

/// Whether a node is this claim.
fn is_claim(node: Option<&NodeRef>, id: &str) -> bool {
    matches!(node.and_then(|node| node.node.as_ref()), Some(Node::ClaimId(claim)) if claim == id)
}

/// The other end of an edge of a claim.
fn end(visitor: &Visitor, edge: &Edge, claim: &str) -> End {
    let language = visitor.language;
    let is_target = is_claim(edge.target.as_ref(), claim);
    let (node, domain, level) = if is_target {
        (edge.source.as_ref(), &edge.source_domain, edge.source_level)
    } else {
        (edge.target.as_ref(), &edge.target_domain, edge.target_level)
    };
    let (sort, id) = words::node(language, node);
    let is_a_claim = matches!(node.and_then(|node| node.node.as_ref()), Some(Node::ClaimId(_)));
    End {
        href: edge_address(visitor, &edge.edge_id),
        id: edge.edge_id.clone(),
        sort,
        node_href: if is_a_claim {
            address(visitor, &id)
        } else {
            String::new()
        },
        node: id,
        domain: domain.clone(),
        level: language.level(level),
        weight: edge
            .confidence
            .map_or_else(|| "–".to_owned(), |weight| format!("{weight:.2}")),
        review: match (edge.reviewed, edge.corrected) {
            (false, _) => "",
            (true, false) => language.t("reviewed", "確認済み"),
            (true, true) => language.t("corrected", "修正済み"),
        },
    }
}

/// The edges of a claim by what they say of it, and those that lead from it.
fn sides(visitor: &Visitor, edges: &[Edge], claim: &str) -> Vec<Side> {
    let side = |label, class, edges: Vec<End>| Side { label, class, edges };
    let to = |relation: EdgeRelation| {
        let edges = edges.iter();
        edges
            .filter(|edge| is_claim(edge.target.as_ref(), claim) && edge.relation() == relation)
            .map(|edge| end(visitor, edge, claim))
            .collect()
    };
    let from = edges.iter().filter(|edge| !is_claim(edge.target.as_ref(), claim));
    vec![
        side(
            visitor.language.t("Supports it", "支持するエビデンス"),
            "good",
            to(EdgeRelation::Supports),
        ),
        side(
            visitor.language.t("Refutes it", "反論するエビデンス"),
            "bad",
            to(EdgeRelation::Refutes),
        ),
        side(
            visitor.language.t("Speaks of it", "中立のエビデンス"),
            "",
            to(EdgeRelation::Neutral),
        ),
        side(
            visitor
                .language
                .t("What it speaks of itself", "この主張から出るエッジ"),
            "",
            from.map(|edge| end(visitor, edge, claim)).collect(),
        ),
    ]
}

/// Reads a claim.
pub(crate) async fn read(visitor: &Visitor, id: &str) -> Result<Claim, Status> {
    let request = visitor.services.call(GetClaimRequest {
        namespace: visitor.namespace.clone(),
        claim_id: id.to_owned(),
        ..GetClaimRequest::default()
    });
    let answer = visitor.services.evidence().get_claim(request).await?;
    Ok(answer.into_inner().claim.unwrap_or_default())
}

/// Shows one claim with its evidence.
pub(crate) async fn one(visitor: &Visitor, fields: &Fields) -> Answer {
    let claim = read(visitor, &visitor.item).await?;
    let request = visitor.services.call(ListEdgesRequest {
        namespace: visitor.namespace.clone(),
        claim_id: visitor.item.clone(),
        page_size: EDGES,
        ..ListEdgesRequest::default()
    });
    let edges = visitor.services.evidence().list_edges(request).await?;
    let edges = edges.into_inner();
    let decision = match claim.decision() {
        ClaimDecision::Rejected => visitor.language.t("a person rejected it", "人が却下"),
        ClaimDecision::Restored => visitor.language.t("a person restored it", "人が復元"),
        ClaimDecision::Unspecified | ClaimDecision::Cleared => "",
    };
    let about = Fields::default()
        .with("kind", "claim")
        .with("target", &claim.claim_id);
    let shown = One {
        tabs: tabs(visitor, "claims"),
        level: visitor.language.level(claim.level),
        is_adopted: claim.adoption() == ClaimAdoption::Adopted,
        status: words::claim_status(visitor.language, claim.status),
        is_rejected: claim.status() == ClaimStatus::Rejected,
        decision,
        confidence: confidence(visitor, &claim),
        updated: moment(claim.updated_at.as_ref()),
        sides: sides(visitor, &edges.edges, &claim.claim_id),
        has_more: !edges.next_page_token.is_empty(),
        events: visitor
            .may("learning.v1.EvidenceService/ListEvidenceEvents")
            .then(|| visitor.within(Part::Evidence, &["events"], &about)),
        may_decide: may_decide(visitor),
        page: visitor.page(Part::Evidence, visitor.t("Claim", "主張"), fields),
        id: claim.claim_id,
        text: claim.text,
        task: claim.task_id,
        page_id: claim.page_id,
        domain: claim.domain,
        patterns: claim.dangerous_patterns,
    };
    Ok(html(StatusCode::OK, &shown))
}
