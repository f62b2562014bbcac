//! What is known of the nodes and edges that an upsert names.

use std::collections::{BTreeSet, HashMap};

use emend_core::evidence::{EvidenceId, NodeRef, NodeType};
use emend_store::{StoreError, sql::Statement};

use super::{NO_WORK, Upserting};
use crate::{
    batches::batches,
    evidence::{
        disagreements::node,
        known_rows::{KnownEdgeRow, KnownNodeRow},
        names_sql::{TASKS, named_rows, push_names},
    },
    work::Work,
};

type Result<T> = std::result::Result<T, StoreError>;

impl Upserting<'_> {
    /// Reads what is known of every node that is upserted or named, and numbers the tasks.
    pub(super) async fn read(&mut self, work: &mut Work) -> Result<()> {
        let upsert = self.upsert;
        let mut named: BTreeSet<NodeRef> = BTreeSet::new();
        let page = |id: &EvidenceId| node(NodeType::Page, id);
        named.extend(upsert.pages.iter().map(|upserted| page(&upserted.id)));
        for fragment in &upsert.fragments {
            named.insert(node(NodeType::Fragment, &fragment.id));
            named.insert(page(&fragment.page));
        }
        for claim in &upsert.claims {
            named.insert(node(NodeType::Claim, &claim.id));
            named.extend(claim.page.as_ref().map(page));
        }
        for edge in &upsert.edges {
            named.insert(edge.source.clone());
            named.insert(edge.target.clone());
        }
        for sort in NodeType::ALL {
            let ids: Vec<&str> = named
                .iter()
                .filter(|node| node.sort == sort)
                .map(|node| node.id.as_str())
                .collect();
            for ids in batches(&ids) {
                let mut query = known_nodes(sort, self.space);
                push_names(&mut query, ids.iter().copied());
                for row in work.rows::<KnownNodeRow>(query).await? {
                    let (id, known) = row.parse()?;
                    self.nodes.insert(NodeRef { sort, id }, known);
                }
            }
        }
        let tasks: BTreeSet<&str> = upsert
            .claims
            .iter()
            .map(|claim| &claim.task)
            .chain(upsert.edges.iter().map(|edge| &edge.task))
            .flatten()
            .map(EvidenceId::as_str)
            .collect();
        self.tasks = named_rows(work, &TASKS, self.space, &tasks).await?;
        Ok(())
    }

    pub(super) async fn known_edges(&self, work: &mut Work) -> Result<HashMap<EvidenceId, KnownEdgeRow>> {
        let ids: Vec<&str> = self.upsert.edges.iter().map(|edge| edge.id.as_str()).collect();
        let mut known = HashMap::new();
        for ids in batches(&ids) {
            let mut query = Statement::new(
                "SELECT edge, edge_id, source_sort, source, target_sort, target, host FROM evidence_edges WHERE space = ",
            );
            query.push_bind(self.space);
            query.push(" AND edge_id IN ");
            push_names(&mut query, ids.iter().copied());
            for row in work.rows::<KnownEdgeRow>(query).await? {
                known.insert(row.id()?, row);
            }
        }
        Ok(known)
    }
}

/// A query for what is known of nodes, up to their ids. Pages and hosts are looked up row by row: a join may be planned while the tables
/// are small, and then reads all of them each time.
fn known_nodes(sort: NodeType, space: i64) -> Statement {
    let (columns, of_pages, table) = match sort {
        NodeType::Page => (
            "SELECT n.page_id AS id, n.page AS node, n.page, n.host",
            ", COALESCE((SELECT h.reversed FROM evidence_hosts AS h WHERE h.host = n.host), '') AS reversed_host, n.work, n.doi, n.pmid, \
             n.arxiv_id",
            "evidence_pages",
        ),
        NodeType::Fragment => (
            "SELECT n.fragment_id AS id, n.fragment AS node, n.page, \
             (SELECT p.host FROM evidence_pages AS p WHERE p.page = n.page) AS host",
            NO_WORK,
            "evidence_fragments",
        ),
        NodeType::Claim => (
            "SELECT n.claim_id AS id, n.claim AS node, n.page, n.host",
            NO_WORK,
            "evidence_claims",
        ),
    };
    let mut query = Statement::new(columns);
    query.push(of_pages);
    query
        .push(format_args!(" FROM {table} AS n WHERE n.space = "))
        .push_bind(space);
    query.push(format_args!(" AND n.{}_id IN ", sort.name()));
    query
}
