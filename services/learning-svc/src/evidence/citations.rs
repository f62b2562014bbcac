//! Papers related to a paper: the best of them become pages, joined to the paper's page by CITES edges.

use emend_base::Error;
use emend_core::{
    Namespace,
    evidence::{EdgeRelation, EvidenceId, NodeRef, NodeSort, RankedPaper, RelatedPaper, WorkId, rank},
};
use uuid::Uuid;

use crate::{
    app::App,
    evidence::graph::{EdgeUpsert, Page, Upsert},
};

/// Papers in one request at most.
pub(crate) const MAX_RELATED: usize = 500;

/// The namespace of the UUIDs that name CITES edges.
const CITES: Uuid = Uuid::from_u128(0x8a5d_90c2_6f4b_4d0e_9e27_31c4_0b7a_5d16);

/// A paper's related papers.
#[derive(Debug, Clone)]
pub(crate) struct Citations {
    /// The search application.
    pub(crate) namespace: Namespace,
    /// The paper's page.
    pub(crate) page: EvidenceId,
    /// What it cites, and what cites it.
    pub(crate) related: Vec<Related>,
    /// How many of the best become pages.
    pub(crate) best: usize,
    /// The task of the edges.
    pub(crate) task: Option<EvidenceId>,
}

/// A related paper.
#[derive(Debug, Clone)]
pub(crate) struct Related {
    /// Its page.
    pub(crate) page: Page,
    /// What it is ranked by.
    pub(crate) paper: RelatedPaper,
    /// Whether it cites the paper; otherwise the paper cites it.
    pub(crate) cites_the_paper: bool,
}

/// What became of the papers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankedCitations {
    /// The best, the best first.
    pub(crate) best: Vec<RankedCitation>,
    /// Pages of papers without an abstract.
    pub(crate) to_fetch: Vec<EvidenceId>,
    /// How many were the same work as one before.
    pub(crate) merged: usize,
}

/// A paper that is a page now.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankedCitation {
    /// Its page.
    pub(crate) page: EvidenceId,
    /// Its score, from 0 to 1.
    pub(crate) score: f64,
    /// Its edge; where the two cite each other, the one given first.
    pub(crate) edge: EvidenceId,
}

impl App {
    /// Ranks the papers, and upserts the best with their edges. The same call again changes nothing.
    pub(crate) async fn rank_citations(&self, citations: &Citations) -> Result<RankedCitations, Error> {
        let Citations {
            namespace,
            page,
            related,
            best,
            task,
        } = citations;
        if !self.evidence()?.knows_page(namespace, page).await? {
            return Err(Error::not_found("page", page.as_str()));
        }
        let papers: Vec<RelatedPaper> = related.iter().map(|related| related.paper.clone()).collect();
        let ranking = rank(&papers, *best);
        let mut upsert = Upsert {
            namespace: namespace.clone(),
            pages: Vec::new(),
            fragments: Vec::new(),
            claims: Vec::new(),
            edges: Vec::new(),
        };
        let mut chosen = Vec::new();
        for paper in &ranking.best {
            let of_paper = merged_page(related, paper);
            let mut edges: Vec<EdgeUpsert> = Vec::new();
            for place in &paper.places {
                let (source, target) = if related[*place].cites_the_paper {
                    (&of_paper.id, page)
                } else {
                    (page, &of_paper.id)
                };
                let id = edge_id(source, target)?;
                if edges.iter().all(|edge| edge.id != id) {
                    edges.push(cites(id, source, target, task.as_ref()));
                }
            }
            chosen.extend(edges.first().map(|edge| RankedCitation {
                page: of_paper.id.clone(),
                score: paper.score,
                edge: edge.id.clone(),
            }));
            upsert.pages.push(of_paper);
            upsert.edges.extend(edges);
        }
        if !upsert.pages.is_empty() {
            let upserted = self.upsert_evidence(&upsert).await;
            upserted.map_err(|error| by_place(error, &ranking.best))?;
        }
        Ok(RankedCitations {
            best: chosen,
            to_fetch: ranking
                .to_fetch
                .iter()
                .map(|place| related[*place].page.id.clone())
                .collect(),
            merged: ranking.merged,
        })
    }
}

/// The page of what was given first, with the ids of all: of each type the first.
fn merged_page(related: &[Related], paper: &RankedPaper) -> Page {
    let mut pages = paper.places.iter().map(|place| &related[*place].page);
    let mut merged = pages
        .next()
        .expect("invariant: a ranked paper has the places of what was given of it")
        .clone();
    let is_of_type =
        |one: &WorkId, other: &WorkId| std::mem::discriminant(one) == std::mem::discriminant(other);
    for id in pages.flat_map(|page| &page.works) {
        if !merged.works.iter().any(|known| is_of_type(known, id)) {
            merged.works.push(id.clone());
        }
    }
    merged
}

fn cites(id: EvidenceId, source: &EvidenceId, target: &EvidenceId, task: Option<&EvidenceId>) -> EdgeUpsert {
    let page = |id: &EvidenceId| NodeRef {
        sort: NodeSort::Page,
        id: id.clone(),
    };
    EdgeUpsert {
        id,
        relation: EdgeRelation::Cites,
        source: page(source),
        target: page(target),
        task: task.cloned(),
        label: None,
        confidence: None,
    }
}

/// The edge's id, by its ends, so that a repeated call writes the same edge.
fn edge_id(source: &EvidenceId, target: &EvidenceId) -> Result<EvidenceId, Error> {
    // The length of the first keeps two pairs apart whose texts together are the same.
    let ends = format!("{}:{source}{target}", source.as_str().len());
    let id = format!("cites:{}", Uuid::new_v5(&CITES, ends.as_bytes()));
    EvidenceId::parse(&id).map_err(Error::internal)
}

/// A violation of a page that was upserted, as one of what was given.
fn by_place(error: Error, best: &[RankedPaper]) -> Error {
    let Error::InvalidArgument(mut violations) = error else {
        return error;
    };
    for violation in &mut violations {
        let place = violation.field.strip_prefix("pages[").and_then(|rest| {
            let (index, rest) = rest.split_once(']')?;
            let place = best.get(index.parse::<usize>().ok()?)?.places.first()?;
            Some(format!("related[{place}].page{rest}"))
        });
        if let Some(field) = place {
            violation.field = field;
        }
    }
    Error::InvalidArgument(violations)
}
