//! What follows where nodes have another page or host than before, in SQL.
//!
//! The namespace must be locked exclusively: no edge is being added that could not be seen.

use std::collections::{BTreeSet, HashMap};

use emend_core::evidence::{NodeRef, NodeType};
use emend_store::StoreError;
use emend_store::sql::Statement;

use crate::evidence::refresh_sql::MARK_DOMAINS;
use crate::evidence::works_sql::mark_claims_of_pages;
use crate::work::Work;
use crate::{batches::batches, evidence::known_rows::KnownNode};

type Result<T> = std::result::Result<T, StoreError>;

/// Gives edges the page and host that their sources have now, and claims the host of their page. Claims that they lead to have other
/// sources. Returns the hosts that anything left.
pub(crate) async fn follow(
    work: &mut Work,
    before: &HashMap<NodeRef, KnownNode>,
    after: &HashMap<NodeRef, KnownNode>,
) -> Result<BTreeSet<i64>> {
    let mut left = BTreeSet::new();
    let mut moved: Vec<(NodeType, &KnownNode, &KnownNode)> = before
        .iter()
        .filter_map(|(node, was)| Some((node.sort, was, after.get(node)?)))
        .filter(|(_, was, is)| (was.page, was.host) != (is.page, is.host))
        .collect();
    // Pages first: what is part of them, and named itself, has its own page after that.
    moved.sort_unstable_by_key(|(sort, was, _)| (*sort, was.key));
    for (sort, was, is) in moved {
        left.extend((was.host != 0).then_some(was.host));
        if sort == NodeType::Page {
            work.run(mark_claims_of_pages(&[is.key])).await?;
            let mut query = Statement::new("UPDATE evidence_claims SET stale = 1, host = ");
            query
                .push_bind(is.host)
                .push(" WHERE page <> 0 AND page = ")
                .push_bind(is.key);
            work.run(query).await?;
            let mut query = Statement::new("UPDATE evidence_edges SET host = ");
            query.push_bind(is.host).push(" WHERE page = ").push_bind(is.key);
            work.run(query).await?;
            continue;
        }
        let mut query = Statement::new(
            "UPDATE evidence_claims SET stale = 1 WHERE claim IN (SELECT target FROM evidence_edges WHERE target_sort = 3",
        );
        from(&mut query, sort, was);
        query.push(")");
        work.run(query).await?;
        let mut query = Statement::new("UPDATE evidence_edges SET page = ");
        query.push_bind(is.page).push(", host = ").push_bind(is.host);
        query.push(" WHERE target <> 0");
        from(&mut query, sort, was);
        work.run(query).await?;
    }
    Ok(left)
}

/// Appends the condition that an edge leads from a fragment or claim.
fn from(query: &mut Statement, sort: NodeType, source: &KnownNode) {
    if sort == NodeType::Fragment {
        query
            .push(" AND source_sort = 2 AND page = ")
            .push_bind(source.page);
    } else {
        query.push(" AND source_sort = 3");
    }
    query.push(" AND source = ").push_bind(source.key);
}

/// What the system says of the domains of these hosts is to be computed anew.
pub(crate) async fn mark_domains_of_hosts(work: &mut Work, hosts: &BTreeSet<i64>) -> Result<()> {
    let hosts: Vec<i64> = hosts.iter().copied().collect();
    for hosts in batches(&hosts) {
        let mut query = Statement::new(MARK_DOMAINS);
        query.push("(SELECT domain FROM evidence_hosts WHERE host IN ");
        query.push_list(hosts.iter().copied());
        query.push(") ORDER BY domain").for_update().push(")");
        work.run(query).await?;
    }
    Ok(())
}
