//! Upserting nodes and edges in SQL.
//!
//! Rows are written in the order of their ids, claims before edges, so that two upserts seldom wait for each other in turn; where they
//! do, the database says so and the use case is retried. Upserts hold the namespace shared. One that changes what edges of others
//! depend on, which pages are one work, holds it alone: it waits for upserts under way, whose edges it could not see.

mod reading;
mod writing;

use std::collections::HashMap;

use emend_core::{
    Namespace,
    evidence::{EvidenceId, NodeRef, NodeType},
};
use emend_store::{StoreError, sql::Statement};

use crate::{
    batches::batches,
    database::plan_anew,
    evidence::{
        EvidenceAction,
        disagreements::{Disagreement, Known, node},
        element_rows::Says,
        elements_sql::{save_element_events, says},
        graph::{By, ElementSort, Page, Upsert, Upserted},
        known_rows::{KnownEdgeRow, KnownNode, identities},
        names_sql::push_names,
        replace_sql::{follow, mark_domains_of_hosts},
    },
    work::Work,
};

type Result<T> = std::result::Result<T, StoreError>;

/// An upsert under way: what is known of the nodes that it names.
struct Upserting<'u> {
    upsert: &'u Upsert,
    /// Whether what is otherwise as before may be another.
    replaces: bool,
    /// Whether the namespace is locked alone: what edges of others depend on may change.
    is_alone: bool,
    space: i64,
    added: usize,
    nodes: HashMap<NodeRef, KnownNode>,
    tasks: HashMap<String, i64>,
}

/// See [`EvidenceRepository::upsert`](crate::evidence::EvidenceRepository::upsert).
pub(crate) async fn upsert(
    work: &mut Work,
    upsert: &Upsert,
    replaced: Option<&By>,
) -> Result<std::result::Result<Upserted, Vec<Disagreement>>> {
    // Most of a graph may come before its tables are analysed.
    plan_anew(work.transaction().await?).await?;
    let space = space(work, &upsert.namespace).await?;
    let mut is_alone = replaced.is_some() || names_new_ids(work, space, &upsert.pages).await?;
    lock(work, space, is_alone).await?;
    let (mut upserting, known_edges) = loop {
        let mut upserting = Upserting {
            upsert,
            replaces: replaced.is_some(),
            is_alone,
            space,
            added: 0,
            nodes: HashMap::new(),
            tasks: HashMap::new(),
        };
        upserting.read(work).await?;
        let known_edges = upserting.known_edges(work).await?;
        let known = Known {
            nodes: &upserting.nodes,
            edges: &known_edges,
        };
        let disagreements = known.disagreements(upsert, upserting.replaces);
        if !disagreements.is_empty() {
            return Ok(Err(disagreements));
        }
        if is_alone || !upserting.changes_others() {
            break (upserting, known_edges);
        }
        // What was read may change until it is locked alone.
        lock(work, space, true).await?;
        is_alone = true;
    };
    let before = upserting.nodes.clone();
    let said = upserting.says(work, replaced, &before, &known_edges).await?;
    upserting.save_pages(work).await?;
    upserting.save_fragments(work).await?;
    upserting.save_claims(work).await?;
    if is_alone {
        // Also what is named and not upserted may be of a page that has another host.
        upserting.read(work).await?;
    }
    let mut left = follow(work, &before, &upserting.nodes).await?;
    upserting.save_edges(work, &known_edges).await?;
    if let Some(by) = replaced {
        left.extend(
            known_edges
                .values()
                .map(|edge| edge.host)
                .filter(|host| *host != 0),
        );
        let says = upserting.says(work, replaced, &before, &known_edges).await?;
        for ((sort, before), (_, after)) in said.iter().zip(&says) {
            save_element_events(
                work,
                &upsert.namespace,
                EvidenceAction::Replaced,
                *sort,
                (before, after),
                by,
            )
            .await?;
        }
    }
    mark_domains_of_hosts(work, &left).await?;
    Ok(Ok(Upserted {
        added: upserting.added,
    }))
}

/// The key of a namespace's graph, which begins if there is none.
async fn space(work: &mut Work, namespace: &Namespace) -> Result<i64> {
    loop {
        let mut query = Statement::new("SELECT space FROM evidence_spaces WHERE namespace = ");
        query.push_bind(namespace.as_str());
        if let Some((space,)) = work.rows::<(i64,)>(query).await?.first() {
            return Ok(*space);
        }
        let mut query = Statement::new("INSERT INTO evidence_spaces (namespace, rules) VALUES (");
        query.push_bind(namespace.as_str());
        query.push(", 0) ON CONFLICT (namespace) DO NOTHING");
        work.run(query).await?;
    }
}

/// Locks a namespace's graph: no rule about its domains changes before the end. Alone, it waits for upserts under way, and later
/// ones wait.
async fn lock(work: &mut Work, space: i64, alone: bool) -> Result<()> {
    let mut query = Statement::new("SELECT space FROM evidence_spaces WHERE space = ");
    query.push_bind(space);
    if alone {
        query.for_update();
    } else {
        query.for_share();
    }
    work.rows::<(i64,)>(query).await?;
    Ok(())
}

/// Whether a page has ids that it was not stored with: so an upsert of papers takes the lock that it needs at once, and two of them
/// don't wait for each other in turn.
async fn names_new_ids(work: &mut Work, space: i64, pages: &[Page]) -> Result<bool> {
    let with_ids: HashMap<&str, Vec<String>> = pages
        .iter()
        .map(|page| (page.id.as_str(), identities(&page.works_by_type())))
        .filter(|(_, ids)| !ids.is_empty())
        .collect();
    let names: Vec<&str> = with_ids.keys().copied().collect();
    let mut same = 0;
    for names in batches(&names) {
        let mut query =
            Statement::new("SELECT page_id, doi, pmid, arxiv_id FROM evidence_pages WHERE space = ");
        query.push_bind(space).push(" AND page_id IN ");
        push_names(&mut query, names.iter().copied());
        for (id, doi, pmid, arxiv) in work.rows::<(String, String, String, String)>(query).await? {
            same += usize::from(with_ids.get(id.as_str()) == Some(&identities(&[doi, pmid, arxiv])));
        }
    }
    Ok(same < with_ids.len())
}

impl Upserting<'_> {
    /// What the elements say that are upserted and were known before, where somebody replaces them.
    async fn says(
        &self,
        work: &mut Work,
        replaced: Option<&By>,
        before: &HashMap<NodeRef, KnownNode>,
        edges: &HashMap<EvidenceId, KnownEdgeRow>,
    ) -> Result<Vec<(ElementSort, HashMap<i64, Says>)>> {
        let mut all = Vec::new();
        if replaced.is_none() {
            return Ok(all);
        }
        let upsert = self.upsert;
        let keys_of = |sort, ids: Vec<&EvidenceId>| -> Vec<i64> {
            let known = ids
                .into_iter()
                .filter_map(|id| Some(before.get(&node(sort, id))?.key));
            known.collect()
        };
        let pages = keys_of(
            NodeType::Page,
            upsert.pages.iter().map(|upserted| &upserted.id).collect(),
        );
        let fragments = keys_of(
            NodeType::Fragment,
            upsert.fragments.iter().map(|upserted| &upserted.id).collect(),
        );
        let claims = keys_of(
            NodeType::Claim,
            upsert.claims.iter().map(|upserted| &upserted.id).collect(),
        );
        let edges = edges.values().map(|edge| edge.edge).collect();
        for (sort, keys) in [
            (ElementSort::Page, pages),
            (ElementSort::Fragment, fragments),
            (ElementSort::Claim, claims),
            (ElementSort::Edge, edges),
        ] {
            all.push((sort, says(work, sort, &keys).await?));
        }
        Ok(all)
    }

    /// Whether it changes what edges of other upserts depend on: ids of works, or the host of a page or the page of a claim that had
    /// none.
    fn changes_others(&self) -> bool {
        let mut pages = self.upsert.pages.iter();
        let mut claims = self.upsert.claims.iter();
        pages.any(|page| {
            let known = self.nodes.get(&node(NodeType::Page, &page.id));
            let ids = identities(&page.works_by_type());
            known.map_or(!ids.is_empty(), |known| {
                known.ids != ids || (known.host == 0 && !page.host.is_empty())
            })
        }) || claims.any(|claim| {
            let known = self.nodes.get(&node(NodeType::Claim, &claim.id));
            claim.page.is_some() && known.is_some_and(|known| known.page == 0)
        })
    }
}

/// What only pages have.
const NO_WORK: &str =
    ", '' AS reversed_host, CAST(0 AS BIGINT) AS work, '' AS doi, '' AS pmid, '' AS arxiv_id";
