//! The evidence graph in parsed form: what backends upsert.

use emend_core::{
    Namespace,
    evidence::{EdgeRelation, EvidenceId, NodeRef, Weight, WorkId},
};
use jiff::Timestamp;

use crate::actor::Actor;

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

/// What a node or edge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ElementSort {
    /// A page of a source.
    Page,
    /// A part of a page.
    Fragment,
    /// A claim.
    Claim,
    /// An edge.
    Edge,
}

impl ElementSort {
    /// All sorts.
    pub const ALL: [Self; 4] = [Self::Page, Self::Fragment, Self::Claim, Self::Edge];

    /// The number in databases.
    pub const fn number(self) -> i32 {
        match self {
            Self::Page => 1,
            Self::Fragment => 2,
            Self::Claim => 3,
            Self::Edge => 4,
        }
    }

    /// The sort with this number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|sort| sort.number() == number)
    }
}

/// A node or edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// What it is.
    pub sort: ElementSort,
    /// Its id among those of its sort.
    pub id: EvidenceId,
}

/// Who replaces or deletes elements, when and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    /// Who.
    pub actor: Actor,
    /// Why; may be empty.
    pub reason: String,
    /// When, by the service's clock.
    pub at: Timestamp,
}

/// What is to be deleted, with what hangs on it.
#[derive(Debug, Clone)]
pub struct Deletion {
    /// The search application.
    pub namespace: Namespace,
    /// Pages, with their fragments.
    pub pages: Vec<EvidenceId>,
    /// Fragments.
    pub fragments: Vec<EvidenceId>,
    /// Claims.
    pub claims: Vec<EvidenceId>,
    /// Edges.
    pub edges: Vec<EvidenceId>,
    /// Why; may be empty.
    pub reason: String,
    /// Who deletes them.
    pub actor: Actor,
}

/// What an upsert did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Upserted {
    /// Nodes and edges that were not known before.
    pub added: usize,
}
