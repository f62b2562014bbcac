//! Rows of what elements of the graph say, for the events of their being replaced or deleted.

use emend_core::evidence::{EdgeRelation, EvidenceId, NodeRef, NodeType};
use emend_store::StoreError;
use sqlx_macros::FromRow;

use super::{known_rows::identities, rows::reversed};
use crate::rows::At;

/// What an element says of where it belongs, as an event tells it. Texts are not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Says {
    /// Its id.
    pub id: String,
    /// Its task; may be empty.
    pub task: String,
    /// A page's host, address and ids, the page of a fragment or claim, an edge's source, relation and target.
    pub text: String,
}

#[derive(Debug, FromRow)]
pub(crate) struct PageSaysRow {
    node: i64,
    id: String,
    url: String,
    doi: String,
    pmid: String,
    arxiv_id: String,
    reversed: Option<String>,
}

impl PageSaysRow {
    pub(crate) fn says(self) -> (i64, Says) {
        let host = reversed(self.reversed.as_deref().unwrap_or_default());
        let mut parts = vec![host];
        parts.extend((!self.url.is_empty()).then_some(self.url));
        parts.extend(identities(&[self.doi, self.pmid, self.arxiv_id]));
        let says = Says {
            id: self.id,
            task: String::new(),
            text: parts.join(" "),
        };
        (self.node, says)
    }
}

/// A fragment or claim.
#[derive(Debug, FromRow)]
pub(crate) struct PartSaysRow {
    node: i64,
    id: String,
    task_id: Option<String>,
    page_id: Option<String>,
}

impl PartSaysRow {
    pub(crate) fn says(self) -> (i64, Says) {
        let says = Says {
            id: self.id,
            task: self.task_id.unwrap_or_default(),
            text: self.page_id.unwrap_or_default(),
        };
        (self.node, says)
    }
}

#[derive(Debug, FromRow)]
pub(crate) struct EdgeSaysRow {
    node: i64,
    id: String,
    given: i32,
    source_sort: i32,
    target_sort: i32,
    task_id: Option<String>,
    source_id: Option<String>,
    target_id: Option<String>,
}

impl EdgeSaysRow {
    pub(crate) fn says(self) -> Result<(i64, Says), StoreError> {
        let at = At {
            table: "evidence_edges",
            id: &self.id,
        };
        let end = |column, sort: i32, id: &Option<String>| -> Result<NodeRef, StoreError> {
            let id = at.known(column, "none", id.as_ref())?;
            Ok(NodeRef {
                sort: at.known(column, sort, NodeType::from_number(sort))?,
                id: at.parse(column, EvidenceId::parse(id))?,
            })
        };
        let relation = at.known("given", self.given, EdgeRelation::from_number(self.given))?;
        let source = end("source", self.source_sort, &self.source_id)?;
        let target = end("target", self.target_sort, &self.target_id)?;
        let says = Says {
            text: format!("{source} {} {target}", relation.name()),
            task: self.task_id.unwrap_or_default(),
            id: self.id,
        };
        Ok((self.node, says))
    }
}
