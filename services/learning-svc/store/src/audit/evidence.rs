//! Checks the evidence graph: what is derived in it recomputed by the core's rules, and against the rulings in force.
//!
//! What is marked to be computed anew is not compared: it is work in progress.

mod domains;
mod works;

use std::collections::{HashMap, HashSet};

use emend_core::{
    Kind,
    evidence::{ClaimFacts, ClaimStatus, SourceKey, VERIFYING_SOURCES, Weight},
};
use emend_store::{
    StoreError,
    audit::{Check, Findings, Watch},
};
use futures::TryStreamExt as _;

use super::{
    EVIDENCE_DERIVED, EVIDENCE_EDGE, EVIDENCE_EVENT, EVIDENCE_RULING, EVIDENCE_STATUS, EVIDENCE_TARGET,
};
use crate::audit::stored::{
    AuditRead,
    evidence::{AuditedClaim, AuditedEdge, Ruled, Stray},
};

/// Rows per page.
const PAGE: u32 = 500;

pub(super) async fn check(
    reading: &mut dyn AuditRead,
    findings: &mut Findings,
    watch: &mut dyn Watch,
) -> Result<(), StoreError> {
    watch.begins("edges", reading.edge_count().await?);
    check_claims(reading, findings).await?;
    check_edges(reading, findings, watch).await?;
    works::check(reading, findings).await?;
    domains::check(reading, findings).await?;
    report(EVIDENCE_EDGE, reading.strays().await?, findings);
    report(EVIDENCE_RULING, reading.rules_of_nothing().await?, findings);
    report(EVIDENCE_TARGET, reading.wrong_targets().await?, findings);
    report(EVIDENCE_EVENT, reading.stray_events().await?, findings);
    Ok(())
}

fn report(check: Check, strays: Vec<Stray>, findings: &mut Findings) {
    for Stray { what, id, wrong } in strays {
        findings.add(check, format_args!("{what} number {id}"), wrong);
    }
}

async fn check_claims(reading: &mut dyn AuditRead, findings: &mut Findings) -> Result<(), StoreError> {
    let mut after = 0;
    loop {
        let claims = reading.claims_after(after, PAGE).await?;
        let Some(last) = claims.last() else {
            return Ok(());
        };
        let through = last.claim;
        let ids: Vec<&str> = claims.iter().map(|claim| claim.claim_id.as_str()).collect();
        let rulings = rulings(reading, Kind::ClaimState, &ids, findings).await?;
        let sources = sources(reading, after, through, findings).await?;
        for claim in &claims {
            check_claim(claim, &rulings, sources.get(&claim.claim), findings);
        }
        after = through;
    }
}

/// What is in force, by namespace and target.
type Rulings = HashMap<(String, String), Ruled>;

async fn rulings(
    reading: &mut dyn AuditRead,
    kind: Kind,
    targets: &[&str],
    findings: &mut Findings,
) -> Result<Rulings, StoreError> {
    let mut rulings = Rulings::new();
    for row in reading.rulings_of(kind, targets).await? {
        if let Some(ruled) = findings.readable(row.ruled())? {
            rulings.insert((row.namespace, row.key), ruled);
        }
    }
    Ok(rulings)
}

/// The independent sources that support claims, as many as verify one.
async fn sources(
    reading: &mut dyn AuditRead,
    after: i64,
    through: i64,
    findings: &mut Findings,
) -> Result<HashMap<i64, HashSet<SourceKey<i64>>>, StoreError> {
    let mut sources: HashMap<i64, HashSet<SourceKey<i64>>> = HashMap::new();
    let mut rows = reading.supporting(after, through);
    while let Some(row) = rows.try_next().await? {
        let of_claim = sources.entry(row.claim).or_default();
        if (of_claim.len() as u64) < VERIFYING_SOURCES
            && let Some(source) = findings.readable(row.source())?
        {
            of_claim.insert(source);
        }
    }
    Ok(sources)
}

fn check_claim(
    claim: &AuditedClaim,
    rulings: &Rulings,
    sources: Option<&HashSet<SourceKey<i64>>>,
    findings: &mut Findings,
) {
    let id = format!("claim number {}", claim.claim);
    let Some(namespace) = &claim.namespace else {
        findings.add(EVIDENCE_EDGE, &id, "its namespace does not exist");
        return;
    };
    if claim.host != claim.page_host {
        findings.add(EVIDENCE_EDGE, &id, "its host is not that of its page");
    }
    let key = (namespace.clone(), claim.claim_id.clone());
    let (ruled, ..) = rulings.get(&key).copied().unwrap_or_default();
    if ruled != claim.ruled {
        findings.add(
            EVIDENCE_RULING,
            &id,
            format_args!("it is ruled as {}, but in force is {ruled}", claim.ruled),
        );
    }
    let facts = ClaimFacts {
        supporting_sources: sources.map_or(0, |sources| sources.len() as u64),
        ..claim.facts()
    };
    let (status, due) = (ClaimStatus::from_number(claim.status), facts.status());
    let is_rejected = status == Some(ClaimStatus::Rejected);
    if status.is_none() || is_rejected != (due == ClaimStatus::Rejected) {
        findings.add(
            EVIDENCE_DERIVED,
            &id,
            format_args!(
                "its status is number {}, but by its ruling and patterns it is {}",
                claim.status,
                due.name()
            ),
        );
    } else if claim.stale == 0 && status != Some(due) {
        findings.add(
            EVIDENCE_STATUS,
            &id,
            format_args!(
                "its status is number {}, but by its sources it is {}",
                claim.status,
                due.name()
            ),
        );
    }
}

async fn check_edges(
    reading: &mut dyn AuditRead,
    findings: &mut Findings,
    watch: &mut dyn Watch,
) -> Result<(), StoreError> {
    let mut after = 0;
    loop {
        let edges = reading.edges_after(after, PAGE).await?;
        let Some(last) = edges.last() else {
            return Ok(());
        };
        after = last.edge;
        let ids: Vec<&str> = edges.iter().map(|edge| edge.edge_id.as_str()).collect();
        let rulings = rulings(reading, Kind::EdgeLabel, &ids, findings).await?;
        for edge in &edges {
            check_edge(edge, &rulings, findings)?;
        }
        watch.went_on(edges.len() as u64);
    }
}

fn check_edge(edge: &AuditedEdge, rulings: &Rulings, findings: &mut Findings) -> Result<(), StoreError> {
    let id = format!("edge number {}", edge.edge);
    let Some(namespace) = &edge.namespace else {
        findings.add(EVIDENCE_EDGE, &id, "its namespace does not exist");
        return Ok(());
    };
    let wrong = if edge.has_ends == 0 {
        Some("one of its ends does not exist")
    } else if edge.has_task == 0 {
        Some("its task does not exist")
    } else if (edge.page, edge.host) != (edge.source_page, edge.source_host) {
        Some("its page and host are not those of its source")
    } else {
        None
    };
    if let Some(wrong) = wrong {
        findings.add(EVIDENCE_EDGE, &id, wrong);
    }
    let Some(labels) = findings.readable(edge.labels())? else {
        return Ok(());
    };
    let key = (namespace.clone(), edge.edge_id.clone());
    let due = match rulings.get(&key) {
        Some(ruled) if labels.relation.is_label() => *ruled,
        _ => Ruled::default(),
    };
    let (ruled, ruled_at, ruled_by) = due;
    let by = ruled_by.map(|feedback| feedback.0.as_bytes().to_vec());
    if (edge.ruled, edge.ruled_at, &edge.ruled_by) != (ruled, ruled_at, &by) {
        findings.add(
            EVIDENCE_RULING,
            &id,
            format_args!(
                "it is ruled as {} at {}, but in force is {ruled} at {ruled_at}, or another feedback's",
                edge.ruled, edge.ruled_at
            ),
        );
    }
    let weight = |weight: Option<Weight>| i64::from(weight.map_or(0, Weight::millionths));
    let derived = (
        weight(labels.confidence),
        labels.effective_relation().number(),
        weight(labels.effective_confidence()),
    );
    if (
        i64::from(edge.model_weight),
        edge.relation,
        i64::from(edge.weight),
    ) != derived
    {
        findings.add(
            EVIDENCE_DERIVED,
            &id,
            "its relation and weights do not follow from what the backend, its model and people say",
        );
    }
    Ok(())
}
