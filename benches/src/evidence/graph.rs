//! The graph that is measured. Edges lead from fragments of pages on many hosts to claims that have ten edges each.

use anyhow::{Result, anyhow};
use emend_core::{
    Namespace,
    evidence::{EdgeRelation, EvidenceId, NodeRef, NodeType, Weight},
};
use learning_store::evidence::graph::{ClaimUpsert, EdgeUpsert, Fragment, Page, Upsert};

use super::BATCH;

/// Edges of one claim.
pub(super) const PER_CLAIM: usize = 10;
/// Edges from the pages of one host.
pub(super) const PER_HOST: usize = 100;
/// Hosts of one domain, of which a change of trust is measured.
pub(super) const TRUSTED_HOSTS: usize = 1_000;
/// That domain.
pub(super) const TRUSTED_DOMAIN: &str = "trusted.example";
/// Claims of an ordinary task: 10,000 edges.
const CLAIMS_OF_TASK: usize = 1_000;
/// The task of half of all claims.
pub(super) const LARGE_TASK: &str = "large";

pub(super) fn namespace() -> Result<Namespace> {
    Namespace::parse("bench").map_err(|invalid| anyhow!("{invalid}"))
}

pub(super) fn id(kind: &str, number: usize) -> Result<EvidenceId> {
    EvidenceId::parse(&format!("{kind}{number:08}")).map_err(|invalid| anyhow!("{invalid}"))
}

/// The host with this number: the first [`TRUSTED_HOSTS`] are below one domain.
pub(super) fn host(number: usize) -> String {
    if number < TRUSTED_HOSTS {
        format!("www{number}.{TRUSTED_DOMAIN}")
    } else {
        format!("www.host{number}.example")
    }
}

/// The task of a claim: that of 1,000 claims in the first half, one large task in the other.
pub(super) fn task(claim: usize, edges: usize) -> Result<EvidenceId> {
    if claim < edges / PER_CLAIM / 2 {
        id("t", claim / CLAIMS_OF_TASK)
    } else {
        EvidenceId::parse(LARGE_TASK).map_err(|invalid| anyhow!("{invalid}"))
    }
}

fn upsert() -> Result<Upsert> {
    Ok(Upsert {
        namespace: namespace()?,
        pages: Vec::new(),
        fragments: Vec::new(),
        claims: Vec::new(),
        edges: Vec::new(),
    })
}

/// A fragment for two edges, a page for 10 fragments, a host for 5 pages, and a claim for [`PER_CLAIM`] edges.
pub(super) fn nodes(edges: usize) -> Result<Vec<Upsert>> {
    let mut upserts = Vec::new();
    let fragments: Vec<usize> = (0..edges.div_ceil(2)).collect();
    let pages: Vec<usize> = (0..fragments.len().div_ceil(10)).collect();
    let claims: Vec<usize> = (0..edges.div_ceil(PER_CLAIM)).collect();
    for pages in pages.chunks(BATCH) {
        let mut upsert = upsert()?;
        for &page in pages {
            upsert.pages.push(Page {
                id: id("p", page)?,
                host: host(page / 5),
                url: String::new(),
                title: String::new(),
                works: Vec::new(),
            });
        }
        upserts.push(upsert);
    }
    for fragments in fragments.chunks(BATCH) {
        let mut upsert = upsert()?;
        for &fragment in fragments {
            upsert.fragments.push(Fragment {
                id: id("f", fragment)?,
                page: id("p", fragment / 10)?,
                text: "A part of a page that says something of a claim.".into(),
            });
        }
        upserts.push(upsert);
    }
    for claims in claims.chunks(BATCH) {
        let mut upsert = upsert()?;
        for &claim in claims {
            upsert.claims.push(ClaimUpsert {
                id: id("c", claim)?,
                task: Some(task(claim, edges)?),
                text: "Something that is said to be true.".into(),
                page: None,
                adopted: None,
                patterns: Vec::new(),
            });
        }
        upserts.push(upsert);
    }
    Ok(upserts)
}

pub(super) fn edges(numbers: &[usize], of_all: usize) -> Result<Upsert> {
    let mut upsert = upsert()?;
    let weight = Weight::parse(0.9).map_err(|invalid| anyhow!("{invalid}"))?;
    for &number in numbers {
        upsert.edges.push(EdgeUpsert {
            id: id("e", number)?,
            relation: EdgeRelation::LABELS[number % 3],
            source: NodeRef {
                sort: NodeType::Fragment,
                id: id("f", number / 2)?,
            },
            target: NodeRef {
                sort: NodeType::Claim,
                id: id("c", number / PER_CLAIM)?,
            },
            task: Some(task(number / PER_CLAIM, of_all)?),
            label: None,
            confidence: Some((0.9, weight)),
        });
    }
    Ok(upsert)
}
