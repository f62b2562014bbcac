//! Rows of the evidence graph.

use emend_core::{
    DomainRule, Learned,
    evidence::{EvidenceId, Layer, TrustLevel},
};
use emend_store::StoreError;
use sqlx::FromRow;

use crate::store::rows::At;

/// A host's name with its labels in reverse, so that all names below one are together; and back again.
pub(crate) fn reversed(name: &str) -> String {
    let labels: Vec<&str> = name.rsplit('.').collect();
    labels.join(".")
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
    /// Of a page: its work; may be empty.
    pub work: String,
}

#[derive(Debug, FromRow)]
pub(crate) struct KnownNodeRow {
    pub id: String,
    pub node: i64,
    pub page: i64,
    pub host: i64,
    pub reversed_host: String,
    pub work: String,
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
        };
        Ok((id, known))
    }
}

/// The ends of an edge, as stored.
#[derive(Debug, FromRow)]
pub(crate) struct KnownEdgeRow {
    pub edge_id: String,
    pub source_sort: i32,
    pub source: i64,
    pub target_sort: i32,
    pub target: i64,
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

/// How far a host is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HostLevel {
    /// By all layers.
    pub level: TrustLevel,
    /// By the layers human and file only.
    pub set_level: TrustLevel,
    /// The layer that decided.
    pub layer: Option<Layer>,
}

impl HostLevel {
    /// The layer by its number: 0 none, 1 human, 2 file, 3 verified.
    pub(crate) fn layer_number(self) -> i32 {
        match self.layer {
            None => 0,
            Some(Layer::Human) => 1,
            Some(Layer::File) => 2,
            Some(Layer::Verified) => 3,
        }
    }
}

/// A rule in force about a pattern of domains.
#[derive(Debug, FromRow)]
pub(crate) struct DomainRuleRow {
    pub key: String,
    pub qualifier: String,
    pub value: Vec<u8>,
}

impl DomainRuleRow {
    pub(crate) fn parse(self) -> Result<(String, Layer, DomainRule), StoreError> {
        let at = At {
            table: "resources",
            id: &self.key,
        };
        let layer = at.parse("qualifier", Layer::parse(&self.qualifier))?;
        match at.value("value", &self.value)?.learned {
            Learned::DomainRule(rule) => Ok((self.key, layer, rule)),
            other => Err(at.corrupt("value", format_args!("is no domain rule: {}", other.kind()))),
        }
    }
}
