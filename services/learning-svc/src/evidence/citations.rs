//! Papers related to a paper: the best of them become pages with their abstracts, joined to the paper's page by CITES edges.

use std::collections::BTreeSet;

use emend_base::Error;
use emend_core::{
    Namespace,
    evidence::{EdgeRelation, EvidenceId, NodeRef, NodeType, RankedPaper, RelatedPaper, WorkId, rank},
};
use learning_store::evidence::{
    KnownPage,
    graph::{EdgeUpsert, Fragment, Page, Upsert},
};
use uuid::Uuid;

use crate::evidence::Evidence;

/// Papers in one request at most.
pub(crate) const MAX_RELATED: usize = 500;

/// The namespace of the UUIDs that name CITES edges and abstracts.
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
    /// Its page, whose host may be empty.
    pub(crate) page: Page,
    /// Other ids that its page may have.
    pub(crate) other_ids: Vec<EvidenceId>,
    /// Its abstract; may be empty.
    pub(crate) summary: String,
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
    /// The id of the page that was given.
    pub(crate) given: EvidenceId,
    /// Its score, from 0 to 1.
    pub(crate) score: f64,
    /// Its edge; where the two cite each other, the one given first.
    pub(crate) edge: EvidenceId,
    /// The fragment that its abstract is.
    pub(crate) fragment: EvidenceId,
}

impl Evidence {
    /// Ranks the papers, and upserts the best with their abstracts and edges. A page that is there already under any of a paper's ids
    /// is the paper's. The same call again changes nothing.
    pub(crate) async fn rank_citations(&self, citations: &Citations) -> Result<RankedCitations, Error> {
        let Citations {
            namespace,
            page,
            related,
            best,
            task,
        } = citations;
        let known = self.known_pages(citations).await?;
        if !known.iter().any(|known| known.id == *page) {
            return Err(Error::not_found("page", page.as_str()));
        }
        // The paper itself may be given under another id of it.
        let is_related =
            |place: &usize| page_of(&known, related, &[*place]).is_none_or(|known| known.id != *page);
        let places: Vec<usize> = (0..related.len()).filter(is_related).collect();
        // Papers whose pages are known to be one work are one paper, whatever ids they are given with.
        let with_known_ids = |place: &usize| {
            let mut paper = related[*place].paper.clone();
            let page = page_of(&known, related, &[*place]);
            paper
                .ids
                .extend(page.into_iter().flat_map(|page| page.works.iter().cloned()));
            paper
        };
        let papers: Vec<RelatedPaper> = places.iter().map(with_known_ids).collect();
        let mut ranking = rank(&papers, *best);
        for paper in &mut ranking.best {
            paper.places = paper.places.iter().map(|place| places[*place]).collect();
        }
        let mut upsert = Upsert {
            namespace: namespace.clone(),
            pages: Vec::new(),
            fragments: Vec::new(),
            claims: Vec::new(),
            edges: Vec::new(),
        };
        let (mut chosen, mut upserted) = (Vec::new(), Vec::new());
        for paper in &ranking.best {
            let of_paper = merged_page(related, paper);
            let given = of_paper.id.clone();
            let id = if let Some(known) = page_of(&known, related, &paper.places) {
                // What its backend said of it stays: an upsert would take away ids that are not given here.
                known.id.clone()
            } else {
                upsert.pages.push(of_paper);
                upserted.push(paper);
                given.clone()
            };
            let fragment = named("abstract", id.as_str())?;
            let mut summaries = paper.places.iter().map(|place| &related[*place].summary);
            let text = summaries
                .find(|text| !text.is_empty())
                .cloned()
                .unwrap_or_default();
            if upsert.fragments.iter().all(|known| known.id != fragment) {
                upsert.fragments.push(Fragment {
                    id: fragment.clone(),
                    page: id.clone(),
                    text,
                });
            }
            let mut edges: Vec<EdgeUpsert> = Vec::new();
            for place in &paper.places {
                let (source, target) = if related[*place].cites_the_paper {
                    (&id, page)
                } else {
                    (page, &id)
                };
                let edge = edge_id(source, target)?;
                if edges.iter().all(|known| known.id != edge) {
                    edges.push(cites(edge, source, target, task.as_ref()));
                }
            }
            chosen.extend(edges.first().map(|edge| RankedCitation {
                page: id.clone(),
                given,
                score: paper.score,
                edge: edge.id.clone(),
                fragment,
            }));
            edges.retain(|edge| upsert.edges.iter().all(|known| known.id != edge.id));
            upsert.edges.extend(edges);
        }
        if !chosen.is_empty() {
            let result = self.upsert(&upsert).await;
            result.map_err(|error| by_place(error, &upserted))?;
        }
        let to_fetch = ranking.to_fetch.iter().map(|place| places[*place]).map(|place| {
            let known = page_of(&known, related, &[place]);
            known.map_or_else(|| related[place].page.id.clone(), |known| known.id.clone())
        });
        Ok(RankedCitations {
            best: chosen,
            to_fetch: to_fetch.collect(),
            merged: ranking.merged,
        })
    }

    /// The pages that are there of the paper and of those that are related to it.
    async fn known_pages(&self, citations: &Citations) -> Result<Vec<KnownPage>, Error> {
        let mut ids = BTreeSet::from([citations.page.clone()]);
        let mut works: BTreeSet<WorkId> = BTreeSet::new();
        for related in &citations.related {
            ids.insert(related.page.id.clone());
            ids.extend(related.other_ids.iter().cloned());
            works.extend(related.page.works.iter().cloned());
        }
        let (ids, works): (Vec<_>, Vec<_>) = (ids.into_iter().collect(), works.into_iter().collect());
        let known = self.graph().pages_known_as(&citations.namespace, &ids, &works);
        Ok(known.await?)
    }
}

/// The page that is there of what was given at these places: the one that has the id of the first, else the one that was there first.
fn page_of<'k>(known: &'k [KnownPage], related: &[Related], places: &[usize]) -> Option<&'k KnownPage> {
    let first = places.first().map(|place| &related[*place].page.id);
    let is_of = |known: &&KnownPage| {
        places.iter().map(|place| &related[*place]).any(|candidate| {
            candidate.page.id == known.id
                || candidate.other_ids.contains(&known.id)
                || candidate.page.works.iter().any(|work| known.works.contains(work))
        })
    };
    let same = known.iter().find(|known| Some(&known.id) == first);
    same.or_else(|| known.iter().find(is_of))
}

/// The page of what was given first, with the first host that is known and the ids of all: of each type the first.
fn merged_page(related: &[Related], paper: &RankedPaper) -> Page {
    let mut pages = paper.places.iter().map(|place| &related[*place].page);
    let mut merged = pages
        .next()
        .expect("invariant: a ranked paper has the places of what was given of it")
        .clone();
    let is_of_type =
        |one: &WorkId, other: &WorkId| std::mem::discriminant(one) == std::mem::discriminant(other);
    for page in pages {
        if merged.host.is_empty() {
            merged.host.clone_from(&page.host);
        }
        for id in &page.works {
            if !merged.works.iter().any(|known| is_of_type(known, id)) {
                merged.works.push(id.clone());
            }
        }
    }
    merged
}

fn cites(id: EvidenceId, source: &EvidenceId, target: &EvidenceId, task: Option<&EvidenceId>) -> EdgeUpsert {
    let page = |id: &EvidenceId| NodeRef {
        sort: NodeType::Page,
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
    named("cites", &ends)
}

/// An id of this sort, made of what it is to be told apart by.
fn named(sort: &str, name: &str) -> Result<EvidenceId, Error> {
    let id = format!("{sort}:{}", Uuid::new_v5(&CITES, name.as_bytes()));
    EvidenceId::parse(&id).map_err(Error::internal)
}

/// A violation of a page that was upserted, as one of what was given.
fn by_place(error: Error, upserted: &[&RankedPaper]) -> Error {
    let Error::InvalidArgument(mut violations) = error else {
        return error;
    };
    for violation in &mut violations {
        let place = violation.field.strip_prefix("pages[").and_then(|rest| {
            let (index, rest) = rest.split_once(']')?;
            let place = upserted.get(index.parse::<usize>().ok()?)?.places.first()?;
            Some(format!("related[{place}].page{rest}"))
        });
        if let Some(field) = place {
            violation.field = field;
        }
    }
    Error::InvalidArgument(violations)
}
