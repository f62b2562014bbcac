//! Deleting nodes and edges in SQL.

use std::collections::{BTreeSet, HashMap};

use emend_core::{Namespace, evidence::EvidenceId};
use emend_store::StoreError;
use emend_store::sql::Statement;

use crate::{
    SqlStore,
    batches::batches,
    evidence::{
        DeleteStep, DeletionBatch, EvidenceAction,
        elements_sql::{save_element_events, says},
        graph::{By, Deletion, ElementSort},
        names_sql::push_names,
        reads_sql::space_of,
        replace_sql::mark_domains_of_hosts,
        works_sql::{mark_claims_of_pages, relate},
    },
    work::Work,
};

type Result<T> = std::result::Result<T, StoreError>;

/// Columns of an element's key and id, and its table.
const fn table(sort: ElementSort) -> (&'static str, &'static str, &'static str) {
    match sort {
        ElementSort::Page => ("page", "page_id", "evidence_pages"),
        ElementSort::Fragment => ("fragment", "fragment_id", "evidence_fragments"),
        ElementSort::Claim => ("claim", "claim_id", "evidence_claims"),
        ElementSort::Edge => ("edge", "edge_id", "evidence_edges"),
    }
}

/// See [`EvidenceStore::next_to_delete`](crate::evidence::EvidenceStore::next_to_delete).
pub(crate) async fn next_to_delete(
    store: &SqlStore,
    deletion: &Deletion,
    limit: usize,
) -> Result<Option<DeletionBatch>> {
    let Some(space) = space_of(&mut &*store, &deletion.namespace).await? else {
        return Ok(None);
    };
    let pages = named(store, space, ElementSort::Page, &deletion.pages).await?;
    let fragments = named(store, space, ElementSort::Fragment, &deletion.fragments).await?;
    let claims = named(store, space, ElementSort::Claim, &deletion.claims).await?;
    let mut edges = named(store, space, ElementSort::Edge, &deletion.edges).await?;
    for (hanging, of) in HANGING.iter().zip([&pages, &pages, &fragments, &claims, &claims]) {
        for of in batches(&keys(of)) {
            if edges.len() < limit {
                edges.extend(found(store, hanging, of, limit - edges.len()).await?);
            }
        }
    }
    let mut parts = fragments;
    let mut detached = Vec::new();
    for pages in batches(&keys(&pages)) {
        for (hanging, kept) in [(FRAGMENTS, &mut parts), (CLAIMS_FOUND, &mut detached)] {
            if kept.len() < limit {
                kept.extend(found(store, hanging, pages, limit - kept.len()).await?);
            }
        }
    }
    // What hangs on others goes before them.
    let steps = [
        (DeleteStep::Edges, edges),
        (DeleteStep::Fragments, parts),
        (DeleteStep::Claims, claims),
        (DeleteStep::ClaimsFound, detached),
        (DeleteStep::Pages, pages),
    ];
    let next = steps.into_iter().find(|(_, found)| !found.is_empty());
    Ok(next.map(|(step, mut elements)| {
        elements.sort_unstable();
        elements.dedup();
        elements.truncate(limit);
        DeletionBatch { step, elements }
    }))
}

fn keys(elements: &[(i64, EvidenceId)]) -> Vec<i64> {
    elements.iter().map(|(key, _)| *key).collect()
}

async fn named(
    store: &SqlStore,
    space: i64,
    sort: ElementSort,
    ids: &[EvidenceId],
) -> Result<Vec<(i64, EvidenceId)>> {
    let (key, id, table) = table(sort);
    let mut elements = Vec::new();
    for ids in batches(ids) {
        let mut query = Statement::new("");
        query.push(format_args!("SELECT {key}, {id} FROM {table} WHERE space = "));
        query.push_bind(space).push(format_args!(" AND {id} IN "));
        push_names(&mut query, ids.iter().map(EvidenceId::as_str));
        elements.extend(store.rows::<(i64, String)>(query).await?);
    }
    parsed(elements)
}

/// Edges that lead from pages or their fragments, that cite pages, that lead from fragments, to claims and from claims.
pub(crate) const HANGING: [&str; 5] = [
    "SELECT e.edge, e.edge_id FROM evidence_edges AS e WHERE e.source_sort <> 3 AND e.page IN ",
    "SELECT e.edge, e.edge_id FROM evidence_edges AS e WHERE e.target_sort = 1 AND e.target IN ",
    "SELECT e.edge, e.edge_id FROM evidence_fragments AS f CROSS JOIN evidence_edges AS e \
     WHERE e.page = f.page AND e.source_sort = 2 AND e.source = f.fragment AND f.fragment IN ",
    "SELECT e.edge, e.edge_id FROM evidence_edges AS e WHERE e.target_sort = 3 AND e.target IN ",
    "SELECT e.edge, e.edge_id FROM evidence_edges AS e WHERE e.source_sort = 3 AND e.source IN ",
];
pub(crate) const FRAGMENTS: &str = "SELECT fragment, fragment_id FROM evidence_fragments WHERE page IN ";
pub(crate) const CLAIMS_FOUND: &str =
    "SELECT claim, claim_id FROM evidence_claims WHERE page <> 0 AND page IN ";

pub(crate) fn hanging(sql: &'static str, keys: &[i64], limit: usize) -> Statement {
    let mut query = Statement::new(sql);
    query.push_list(keys.iter().copied());
    query.push(" LIMIT ");
    query.push_limit(u32::try_from(limit).unwrap_or(u32::MAX));
    query
}

async fn found(
    store: &SqlStore,
    sql: &'static str,
    keys: &[i64],
    limit: usize,
) -> Result<Vec<(i64, EvidenceId)>> {
    parsed(store.rows(hanging(sql, keys, limit)).await?)
}

fn parsed(rows: Vec<(i64, String)>) -> Result<Vec<(i64, EvidenceId)>> {
    let parsed = rows.into_iter().map(|(key, id)| {
        let at = crate::rows::At {
            table: "evidence_nodes",
            id: &id,
        };
        Ok((key, at.parse("id", EvidenceId::parse(&id))?))
    });
    parsed.collect()
}

/// What has edges, or a page fragments or claims, is not deleted yet.
pub(crate) fn bare(step: DeleteStep, space: i64, keys: &[i64]) -> Statement {
    let (key, id, table) = table(step.sort());
    let mut query = Statement::new("");
    query.push(format_args!(
        "SELECT n.{key}, n.{id} FROM {table} AS n WHERE n.space = "
    ));
    query.push_bind(space).push(format_args!(" AND n.{key} IN "));
    query.push_list(keys.iter().copied());
    query.push(match step {
        DeleteStep::Edges => "",
        DeleteStep::ClaimsFound => " AND n.page <> 0",
        DeleteStep::Fragments => {
            " AND NOT EXISTS (SELECT 1 FROM evidence_edges AS e WHERE e.page = n.page AND e.source_sort = 2 \
             AND e.source = n.fragment)"
        }
        DeleteStep::Claims => {
            " AND NOT EXISTS (SELECT 1 FROM evidence_edges AS e WHERE e.target_sort = 3 AND e.target = n.claim) \
             AND NOT EXISTS (SELECT 1 FROM evidence_edges AS e WHERE e.source_sort = 3 AND e.source = n.claim)"
        }
        DeleteStep::Pages => {
            " AND NOT EXISTS (SELECT 1 FROM evidence_edges AS e WHERE e.page = n.page) \
             AND NOT EXISTS (SELECT 1 FROM evidence_edges AS e WHERE e.target_sort = 1 AND e.target = n.page) \
             AND NOT EXISTS (SELECT 1 FROM evidence_fragments AS f WHERE f.page = n.page) \
             AND NOT EXISTS (SELECT 1 FROM evidence_claims AS c WHERE c.page <> 0 AND c.page = n.page)"
        }
    });
    query
}

/// See [`EvidenceRepository::delete`](crate::evidence::EvidenceRepository::delete).
pub(crate) async fn delete(
    work: &mut Work,
    namespace: &Namespace,
    batch: &DeletionBatch,
    by: &By,
) -> Result<Vec<EvidenceId>> {
    let mut query = Statement::new("SELECT space FROM evidence_spaces WHERE namespace = ");
    query.push_bind(namespace.as_str()).for_update();
    let Some((space,)) = work.rows::<(i64,)>(query).await?.pop() else {
        return Ok(Vec::new());
    };
    let sort = batch.step.sort();
    let mut gone = Vec::with_capacity(batch.elements.len());
    for keys in batches(&keys(&batch.elements)) {
        gone.extend(work.rows::<(i64, String)>(bare(batch.step, space, keys)).await?);
    }
    let gone = parsed(gone)?;
    let keys = keys(&gone);
    let before = says(work, sort, &keys).await?;
    let left = match batch.step {
        DeleteStep::Edges => mark_ends(work, &keys).await?,
        DeleteStep::Fragments | DeleteStep::Pages => BTreeSet::new(),
        DeleteStep::Claims => {
            hosts_of(
                work,
                "SELECT host FROM evidence_claims WHERE host <> 0 AND claim IN ",
                &keys,
            )
            .await?
        }
        DeleteStep::ClaimsFound => detach(work, &keys).await?,
    };
    if batch.step == DeleteStep::ClaimsFound {
        let after = says(work, sort, &keys).await?;
        save_element_events(
            work,
            namespace,
            EvidenceAction::Replaced,
            sort,
            (&before, &after),
            by,
        )
        .await?;
    } else {
        let works: BTreeSet<i64> = if batch.step == DeleteStep::Pages {
            hosts_of(
                work,
                "SELECT work FROM evidence_pages WHERE work <> 0 AND page IN ",
                &keys,
            )
            .await?
        } else {
            BTreeSet::new()
        };
        let (key, _, table) = table(sort);
        for keys in batches(&keys) {
            let mut query = Statement::new("");
            query.push(format_args!("DELETE FROM {table} WHERE {key} IN "));
            query.push_list(keys.iter().copied());
            work.run(query).await?;
        }
        relate(work, space, Vec::new(), &works).await?;
        let nothing = HashMap::new();
        save_element_events(
            work,
            namespace,
            EvidenceAction::Deleted,
            sort,
            (&before, &nothing),
            by,
        )
        .await?;
    }
    mark_domains_of_hosts(work, &left).await?;
    Ok(gone.into_iter().map(|(_, id)| id).collect())
}

/// Numbers that a query finds for keys.
async fn hosts_of(work: &mut Work, sql: &'static str, keys: &[i64]) -> Result<BTreeSet<i64>> {
    let mut found = BTreeSet::new();
    for keys in batches(keys) {
        let mut query = Statement::new(sql);
        query.push_list(keys.iter().copied());
        found.extend(
            work.rows::<(i64,)>(query)
                .await?
                .into_iter()
                .map(|(number,)| number),
        );
    }
    Ok(found)
}

/// What edges lead to has other sources without them. Returns the hosts that they lead from.
async fn mark_ends(work: &mut Work, edges: &[i64]) -> Result<BTreeSet<i64>> {
    for edges in batches(edges) {
        let mut query = Statement::new(
            "UPDATE evidence_claims SET stale = 1 WHERE claim IN \
             (SELECT target FROM evidence_edges WHERE target_sort = 3 AND edge IN ",
        );
        query.push_list(edges.iter().copied());
        query.push(")");
        work.run(query).await?;
    }
    hosts_of(
        work,
        "SELECT host FROM evidence_edges WHERE host <> 0 AND edge IN ",
        edges,
    )
    .await
}

/// Claims stay without the page that they were found on, and edges from them without a source. Returns the hosts of their pages.
async fn detach(work: &mut Work, claims: &[i64]) -> Result<BTreeSet<i64>> {
    let hosts = hosts_of(
        work,
        "SELECT host FROM evidence_claims WHERE host <> 0 AND claim IN ",
        claims,
    )
    .await?;
    let pages = hosts_of(
        work,
        "SELECT page FROM evidence_claims WHERE page <> 0 AND claim IN ",
        claims,
    )
    .await?;
    for pages in batches(&pages.into_iter().collect::<Vec<_>>()) {
        work.run(mark_claims_of_pages(pages)).await?;
    }
    for claims in batches(claims) {
        for sql in [
            "UPDATE evidence_edges SET page = 0, host = 0 WHERE source_sort = 3 AND source IN ",
            "UPDATE evidence_claims SET page = 0, host = 0, stale = 1 WHERE claim IN ",
        ] {
            let mut query = Statement::new(sql);
            query.push_list(claims.iter().copied());
            work.run(query).await?;
        }
    }
    Ok(hosts)
}
