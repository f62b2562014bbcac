//! The evidence graph in parsed form: what backends upsert.

use emend_core::{
    Namespace,
    evidence::{EdgeRelation, EvidenceId, NodeRef, Weight, WorkId},
};

/// Nodes and edges at most in one upsert.
pub const MAX_UPSERT: usize = 1_000;

/// What a backend upserts, all or nothing. Ids of one sort are distinct.
#[derive(Debug, Clone)]
pub struct Upsert {
    /// The search application.
    pub namespace: Namespace,
    /// Pages of sources.
    pub pages: Vec<Page>,
    /// Parts of pages.
    pub fragments: Vec<Fragment>,
    /// Claims.
    pub claims: Vec<ClaimUpsert>,
    /// Edges.
    pub edges: Vec<EdgeUpsert>,
}

/// A page of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its id.
    pub id: EvidenceId,
    /// Its host: lower case, A-labels, no trailing dot; empty if it has none.
    pub host: String,
    /// Where it is; may be empty.
    pub url: String,
    /// Its title; may be empty.
    pub title: String,
    /// The ids of its work.
    pub works: Vec<WorkId>,
}

impl Page {
    /// Its DOI, PubMed id and arXiv id, each in canonical form without its type, or empty.
    pub fn works_by_type(&self) -> [String; 3] {
        let mut by_type = <[String; 3]>::default();
        for work in &self.works {
            match work {
                WorkId::Doi(doi) => by_type[0].clone_from(doi),
                WorkId::Pmid(pmid) => by_type[1] = pmid.to_string(),
                WorkId::Arxiv(arxiv) => by_type[2].clone_from(arxiv),
            }
        }
        by_type
    }
}

/// A part of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    /// Its id.
    pub id: EvidenceId,
    /// The page that it is part of.
    pub page: EvidenceId,
    /// What it says.
    pub text: String,
}

/// A claim as a backend sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimUpsert {
    /// Its id.
    pub id: EvidenceId,
    /// The task that it belongs to.
    pub task: Option<EvidenceId>,
    /// What it says.
    pub text: String,
    /// The page that it was found on.
    pub page: Option<EvidenceId>,
    /// Whether it was adopted; none: as before.
    pub adopted: Option<bool>,
    /// Names of dangerous patterns.
    pub patterns: Vec<String>,
}

/// An edge as a backend sends it.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeUpsert {
    /// Its id.
    pub id: EvidenceId,
    /// What it is.
    pub relation: EdgeRelation,
    /// From where.
    pub source: NodeRef,
    /// To where.
    pub target: NodeRef,
    /// The task that it belongs to.
    pub task: Option<EvidenceId>,
    /// What the model says.
    pub label: Option<EdgeRelation>,
    /// How sure the model is, 0.0 to 1.0, and what that weighs.
    pub confidence: Option<(f64, Weight)>,
}

/// What an upsert did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Upserted {
    /// Nodes and edges that were not known before.
    pub added: usize,
}
