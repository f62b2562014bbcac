//! Rows of what is known of nodes and edges, for upserts.

use emend_core::evidence::EvidenceId;
use emend_store::StoreError;
use sqlx_macros::FromRow;

use crate::rows::At;

/// The ids of a page's work, each with its type: "doi:10.1000/x". Given in canonical form without their types, or empty.
pub(crate) fn identities([doi, pmid, arxiv]: &[String; 3]) -> Vec<String> {
    let typed = [("doi", doi), ("pmid", pmid), ("arxiv", arxiv)];
    let there = typed.into_iter().filter(|(_, id)| !id.is_empty());
    there.map(|(sort, id)| format!("{sort}:{id}")).collect()
}

/// What is known of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownNode {
    /// Its key within the database.
    pub key: i64,
    /// The key of its page; 0: none.
    pub page: i64,
    /// The key of that page's host; 0: none.
    pub host: i64,
    /// Of a page as found: the name of its host, in reverse.
    pub reversed_host: String,
    /// Of a page: the key of its work; 0: none.
    pub work: i64,
    /// Of a page: its ids, as [`identities`] gives them.
    pub ids: Vec<String>,
}

#[derive(Debug, FromRow)]
pub(crate) struct KnownNodeRow {
    pub id: String,
    pub node: i64,
    pub page: i64,
    pub host: i64,
    pub reversed_host: String,
    pub work: i64,
    pub doi: String,
    pub pmid: String,
    pub arxiv_id: String,
}

impl KnownNodeRow {
    pub(crate) fn parse(self) -> Result<(EvidenceId, KnownNode), StoreError> {
        let at = At {
            table: "evidence_nodes",
            id: &self.id,
        };
        let id = at.parse("id", EvidenceId::parse(&self.id))?;
        let known = KnownNode {
            key: self.node,
            page: self.page,
            host: self.host,
            reversed_host: self.reversed_host,
            work: self.work,
            ids: identities(&[self.doi, self.pmid, self.arxiv_id]),
        };
        Ok((id, known))
    }
}

/// A page with the ids of its work.
#[derive(Debug, FromRow)]
pub(crate) struct WorkPageRow {
    pub page: i64,
    pub work: i64,
    pub doi: String,
    pub pmid: String,
    pub arxiv_id: String,
}

impl WorkPageRow {
    /// Its ids.
    pub(crate) fn ids(self) -> Vec<String> {
        identities(&[self.doi, self.pmid, self.arxiv_id])
    }
}

/// The ends of an edge, as stored.
#[derive(Debug, FromRow)]
pub(crate) struct KnownEdgeRow {
    pub edge: i64,
    pub edge_id: String,
    pub source_sort: i32,
    pub source: i64,
    pub target_sort: i32,
    pub target: i64,
    pub host: i64,
}

impl KnownEdgeRow {
    pub(crate) fn id(&self) -> Result<EvidenceId, StoreError> {
        let at = At {
            table: "evidence_edges",
            id: &self.edge_id,
        };
        at.parse("edge_id", EvidenceId::parse(&self.edge_id))
    }
}
