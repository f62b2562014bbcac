//! Where an upsert disagrees with what is known: it names nodes that nobody knows, or moves what keeps its place.

use std::collections::{BTreeSet, HashMap};

use emend_core::evidence::{EvidenceId, NodeRef, NodeType};

use super::{
    graph::Upsert,
    known_rows::{KnownEdgeRow, KnownNode},
    rows::reversed,
};

/// The part of an upserted element that says where it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The host of a page.
    PageHost,
    /// The page of a fragment.
    FragmentPage,
    /// The page of a claim.
    ClaimPage,
    /// Where an edge comes from.
    EdgeSource,
    /// Where an edge leads.
    EdgeTarget,
}

/// What is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It names a node that is neither known nor in the upsert.
    Unknown(NodeRef),
    /// A page had another host.
    OtherHost {
        /// The host that it had.
        before: String,
    },
    /// It was another one before, and only somebody who replaces may change it.
    Other,
    /// It is a node of another sort than before, which nobody may change.
    OtherSort,
}

/// One such part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// Which part.
    pub part: Part,
    /// The place of its element among the upserted ones of its sort, from 0.
    pub index: usize,
    /// What is wrong with it.
    pub why: Why,
}

/// What is known of the nodes and edges that an upsert names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'k> {
    pub(crate) nodes: &'k HashMap<NodeRef, KnownNode>,
    pub(crate) edges: &'k HashMap<EvidenceId, KnownEdgeRow>,
}

impl Known<'_> {
    /// Where an upsert disagrees. Who replaces may move elements, but an edge stays one to a node of the same sort.
    pub(crate) fn disagreements(self, upsert: &Upsert, replaces: bool) -> Vec<Disagreement> {
        let coming = coming(upsert);
        let unknown = |node: &NodeRef| !self.nodes.contains_key(node) && !coming.contains(node);
        let key = |node: &NodeRef| self.nodes.get(node).map(|known| known.key);
        let mut found = Vec::new();
        let mut add = |part, index, why| found.push(Disagreement { part, index, why });
        for (index, page) in upsert.pages.iter().enumerate() {
            if let Some(known) = self.nodes.get(&node(NodeType::Page, &page.id))
                && !replaces
                && known.host != 0
                && !page.host.is_empty()
                && known.reversed_host != reversed(&page.host)
            {
                let before = reversed(&known.reversed_host);
                add(Part::PageHost, index, Why::OtherHost { before });
            }
        }
        for (index, fragment) in upsert.fragments.iter().enumerate() {
            let page = node(NodeType::Page, &fragment.page);
            let known = self.nodes.get(&node(NodeType::Fragment, &fragment.id));
            if unknown(&page) {
                add(Part::FragmentPage, index, Why::Unknown(page));
            } else if !replaces && known.is_some_and(|known| Some(known.page) != key(&page)) {
                add(Part::FragmentPage, index, Why::Other);
            }
        }
        for (index, claim) in upsert.claims.iter().enumerate() {
            let Some(page) = &claim.page else { continue };
            let page = node(NodeType::Page, page);
            let known = self.nodes.get(&node(NodeType::Claim, &claim.id));
            let before = known.map_or(0, |known| known.page);
            if unknown(&page) {
                add(Part::ClaimPage, index, Why::Unknown(page));
            } else if !replaces && before != 0 && Some(before) != key(&page) {
                add(Part::ClaimPage, index, Why::Other);
            }
        }
        for (index, edge) in upsert.edges.iter().enumerate() {
            let ends = [(Part::EdgeSource, &edge.source), (Part::EdgeTarget, &edge.target)];
            for (part, end) in ends {
                if unknown(end) {
                    add(part, index, Why::Unknown(end.clone()));
                }
            }
            let Some(known) = self.edges.get(&edge.id) else {
                continue;
            };
            if replaces {
                if edge.target.sort.number() != known.target_sort {
                    add(Part::EdgeTarget, index, Why::OtherSort);
                }
                continue;
            }
            let before = [
                (known.source_sort, known.source),
                (known.target_sort, known.target),
            ];
            for ((part, end), before) in ends.into_iter().zip(before) {
                let now = key(end).map(|key| (end.sort.number(), key));
                // What comes with it was not there before.
                if now != Some(before) && (now.is_some() || coming.contains(end)) {
                    add(part, index, Why::Other);
                }
            }
        }
        found
    }
}

/// The nodes that an upsert brings.
fn coming(upsert: &Upsert) -> BTreeSet<NodeRef> {
    let pages = upsert.pages.iter().map(|page| node(NodeType::Page, &page.id));
    let fragments = upsert
        .fragments
        .iter()
        .map(|fragment| node(NodeType::Fragment, &fragment.id));
    let claims = upsert.claims.iter().map(|claim| node(NodeType::Claim, &claim.id));
    pages.chain(fragments).chain(claims).collect()
}

pub(crate) fn node(sort: NodeType, id: &EvidenceId) -> NodeRef {
    NodeRef { sort, id: id.clone() }
}
