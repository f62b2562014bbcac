//! Reading claims and edges in SQL.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{
    ContestId, Kind, Namespace, ResourceKey,
    evidence::{ClaimStatus, Combining, Evidence, EvidenceId, WorkId},
    key_hash,
};
use emend_store::StoreError;
use emend_store::sql::{Row, Statement};

use crate::{
    SqlStore,
    batches::batches,
    database::bytes,
    evidence::{
        ClaimFilter, ClaimRecord, DeletionBatch, EdgeFilter, EdgeOrder, EdgePosition, EdgeRecord,
        EvidenceStore, KnownPage, Readings, Weighing,
        deletes_sql::next_to_delete,
        graph::Deletion,
        identities_sql,
        rows::{ClaimRow, EdgeRow, SumRow},
    },
    rows::KeyRow,
};

type Result<T> = std::result::Result<T, StoreError>;

/// A contest's key.
const CONTEST: &str =
    "SELECT contest_id, namespace, kind, key, qualifier, user_id FROM contests WHERE target_known = 0";

/// The contests without a target whose target is known by now.
pub(crate) fn to_arrive(after: Option<ContestId>, limit: u32) -> Statement {
    let mut query = Statement::new(CONTEST);
    query
        .push(" AND contest_id > ")
        .push_bind(after.map_or_else(Vec::new, |after| bytes(after.0)));
    query.push(" AND ((kind = ").push_bind(Kind::ClaimState.number());
    query.push(
        " AND EXISTS (SELECT 1 FROM evidence_spaces AS s JOIN evidence_claims AS t ON t.space = s.space \
         WHERE s.namespace = contests.namespace AND t.claim_id = contests.key)) OR (kind = ",
    );
    query.push_bind(Kind::EdgeLabel.number());
    query.push(
        " AND EXISTS (SELECT 1 FROM evidence_spaces AS s JOIN evidence_edges AS t ON t.space = s.space \
         WHERE s.namespace = contests.namespace AND t.edge_id = contests.key))) \
         ORDER BY contest_id LIMIT ",
    );
    query.push_bind(i64::from(limit));
    query
}

#[async_trait]
impl EvidenceStore for SqlStore {
    async fn contests_without_target(
        &self,
        namespace: &Namespace,
        kind: Kind,
        targets: &[EvidenceId],
    ) -> Result<Vec<ResourceKey>> {
        let mut found = Vec::new();
        for targets in batches(targets) {
            let mut query = Statement::new(CONTEST);
            query.push(" AND key_hash IN ");
            let hashes: Vec<i64> = targets.iter().map(|target| key_hash(target.as_str())).collect();
            query.push_list(hashes.iter().copied());
            query.push(" AND namespace = ").push_bind(namespace.as_str());
            query.push(" AND kind = ").push_bind(kind.number());
            for row in self.rows::<KeyRow>(query).await? {
                found.push(row.parse("contests")?);
            }
        }
        Ok(found)
    }

    async fn contests_to_arrive(&self, after: Option<ContestId>, limit: u32) -> Result<Vec<ResourceKey>> {
        let rows = self.rows::<KeyRow>(to_arrive(after, limit)).await?;
        rows.iter().map(|row| row.parse("contests")).collect()
    }

    async fn next_to_delete(&self, deletion: &Deletion, limit: usize) -> Result<Option<DeletionBatch>> {
        next_to_delete(self, deletion, limit).await
    }

    async fn pages_known_as(
        &self,
        namespace: &Namespace,
        ids: &[EvidenceId],
        works: &[WorkId],
    ) -> Result<Vec<KnownPage>> {
        identities_sql::pages_known_as(&mut &*self, namespace, ids, works).await
    }

    async fn claim(
        &self,
        namespace: &Namespace,
        claim: &EvidenceId,
        weighing: Weighing,
    ) -> Result<Option<ClaimRecord>> {
        let Some(space) = space_of(&mut &*self, namespace).await? else {
            return Ok(None);
        };
        let query = named_claim(space, claim);
        let mut found = claim_records(&mut &*self, query, weighing).await?;
        Ok(found.pop().map(|(_, record)| record))
    }

    async fn claims(
        &self,
        filter: &ClaimFilter,
        combining: Combining,
        after: i64,
        limit: u32,
    ) -> Result<Vec<(i64, ClaimRecord)>> {
        let Some(space) = space_of(&mut &*self, &filter.namespace).await? else {
            return Ok(Vec::new());
        };
        let Some(query) = self.listed_claims(space, filter, after, limit).await? else {
            return Ok(Vec::new());
        };
        claim_records(&mut &*self, query, combining.into()).await
    }

    async fn edges(
        &self,
        filter: &EdgeFilter,
        after: EdgePosition,
        limit: u32,
    ) -> Result<Vec<(EdgePosition, EdgeRecord)>> {
        let Some(space) = space_of(&mut &*self, &filter.namespace).await? else {
            return Ok(Vec::new());
        };
        let task = match &filter.task {
            None => None,
            Some(task) => match task_of(&mut &*self, space, task).await? {
                None => return Ok(Vec::new()),
                found => found,
            },
        };
        let claim = match &filter.claim {
            None => None,
            Some(claim) => {
                let mut query = Statement::new("SELECT claim FROM evidence_claims WHERE space = ");
                query.push_bind(space);
                query.push(" AND claim_id = ").push_bind(claim.as_str());
                match self.rows::<(i64,)>(query).await?.first() {
                    None => return Ok(Vec::new()),
                    Some((claim,)) => Some(*claim),
                }
            }
        };
        let query = listed_edges(space, filter, task, claim, after, limit);
        let keys: Vec<EdgePosition> = self
            .rows::<(i64, i64)>(query)
            .await?
            .into_iter()
            .map(|(first, edge)| EdgePosition { first, edge })
            .collect();
        edge_records(&mut &*self, &keys).await
    }
}

impl SqlStore {
    /// None: nothing belongs to the task.
    async fn listed_claims(
        &self,
        space: i64,
        filter: &ClaimFilter,
        after: i64,
        limit: u32,
    ) -> Result<Option<Statement>> {
        let mut query = Statement::new(CLAIMS);
        query.push_bind(space);
        if let Some(task) = &filter.task {
            let Some(task) = task_of(&mut &*self, space, task).await? else {
                return Ok(None);
            };
            query.push(" AND c.task <> 0 AND c.task = ").push_bind(task);
        }
        let adoption = match filter.adopted {
            None => "",
            Some(true) => " AND c.adoption = 1",
            Some(false) => " AND c.adoption <> 1",
        };
        query.push(adoption);
        match filter.status {
            None => {}
            Some(status) if filter.task.is_some() => {
                query
                    .push(" AND (c.stale = 1 OR c.status = ")
                    .push_bind(status.number());
                query.push(")");
            }
            Some(status) => {
                query.push(" AND c.claim IN (");
                of_status(&mut query, space, status, adoption, after, limit);
                query.push(")");
            }
        }
        if filter.task.is_some() || filter.status.is_some() {
            query.push(" AND c.claim > ").push_bind(after);
            query.push(" ORDER BY c.claim LIMIT ").push_bind(i64::from(limit));
        } else {
            query.push(" AND c.claim_id > COALESCE((SELECT claim_id FROM evidence_claims WHERE claim = ");
            query.push_bind(after).push("), '') ORDER BY c.claim_id LIMIT ");
            query.push_bind(i64::from(limit));
        }
        Ok(Some(query))
    }
}

/// Appends the keys of claims that are stored with a status, and of those that are to be verified anew: each by its index.
fn of_status(
    query: &mut Statement,
    space: i64,
    status: ClaimStatus,
    adoption: &'static str,
    after: i64,
    limit: u32,
) {
    for (union, name, condition) in [
        ("", "of_status", "c.status = "),
        (" UNION ", "of_stale", "c.stale = 1"),
    ] {
        query.push(format_args!(
            "{union}SELECT claim FROM (SELECT c.claim FROM evidence_claims AS c WHERE {condition}"
        ));
        if union.is_empty() {
            query.push_bind(status.number());
        }
        query.push(" AND c.space = ").push_bind(space);
        query.push(adoption).push(" AND c.claim > ").push_bind(after);
        query.push(" ORDER BY c.claim LIMIT ").push_bind(i64::from(limit));
        query.push(format_args!(") AS {name}"));
    }
}

/// Where rows are read: each query on a connection of its own, or all of them in one state.
pub(crate) trait Rows: Send {
    /// All rows of a query.
    fn rows<R>(&mut self, query: Statement) -> impl Future<Output = Result<Vec<R>>> + Send
    where
        R: Row;
}

impl Rows for &SqlStore {
    async fn rows<R>(&mut self, query: Statement) -> Result<Vec<R>>
    where
        R: Row,
    {
        SqlStore::rows(self, query).await
    }
}

/// The key of a namespace's graph, if it has one.
pub(crate) async fn space_of(reading: &mut impl Rows, namespace: &Namespace) -> Result<Option<i64>> {
    let mut query = Statement::new("SELECT space FROM evidence_spaces WHERE namespace = ");
    query.push_bind(namespace.as_str().to_owned());
    let found: Vec<(i64,)> = reading.rows(query).await?;
    Ok(found.first().map(|(space,)| *space))
}

/// The key of a task, if anything belongs to it.
pub(crate) async fn task_of(reading: &mut impl Rows, space: i64, task: &EvidenceId) -> Result<Option<i64>> {
    let mut query = Statement::new("SELECT task FROM evidence_tasks WHERE space = ");
    query.push_bind(space);
    query.push(" AND task_id = ").push_bind(task.as_str().to_owned());
    let found: Vec<(i64,)> = reading.rows(query).await?;
    Ok(found.first().map(|(task,)| *task))
}

/// Claims with what their edges come to, in the order of the query.
pub(crate) async fn claim_records(
    reading: &mut impl Rows,
    query: Statement,
    weighing: Weighing,
) -> Result<Vec<(i64, ClaimRecord)>> {
    let rows: Vec<ClaimRow> = reading.rows(query).await?;
    let keys: Vec<i64> = rows.iter().map(|row| row.claim).collect();
    let mut sums: HashMap<(i64, Combining), Evidence> = HashMap::new();
    let mut sources: HashMap<i64, i64> = HashMap::new();
    for keys in batches(&keys) {
        for &combining in weighing.ways() {
            for row in reading.rows::<SumRow>(summed(keys, combining)).await? {
                row.add_to(sums.entry((row.claim, combining)).or_default())?;
            }
        }
        for (claim, count) in reading.rows::<(i64, i64)>(independent(keys)).await? {
            sources.insert(claim, count);
        }
    }
    rows.into_iter()
        .map(|row| {
            let key = row.claim;
            let sum = |combining| sums.get(&(key, combining)).copied().unwrap_or_default();
            let readings = weighing.both.then(|| Readings {
                count_all: sum(Combining::CountAll),
                one_per_source: sum(Combining::OnePerSource),
            });
            let sources = sources.get(&key).copied().unwrap_or(0);
            Ok((key, row.parse(sum(weighing.combining), readings, sources)?))
        })
        .collect()
}

/// These edges, in this order.
pub(crate) async fn edge_records(
    reading: &mut impl Rows,
    positions: &[EdgePosition],
) -> Result<Vec<(EdgePosition, EdgeRecord)>> {
    let mut found = HashMap::with_capacity(positions.len());
    let keys: Vec<i64> = positions.iter().map(|position| position.edge).collect();
    for keys in batches(&keys) {
        for row in reading.rows::<EdgeRow>(edges_by_keys(keys)).await? {
            found.insert(row.edge, row.parse()?);
        }
    }
    // One may have been deleted since it was found.
    Ok(positions
        .iter()
        .filter_map(|position| Some((*position, found.remove(&position.edge)?)))
        .collect())
}

/// Claims of a space.
pub(crate) const CLAIMS: &str = "SELECT c.claim, c.claim_id, c.text, c.adoption, c.patterns, c.ruled, c.status, c.created_at, \
     c.updated_at, t.task_id, p.page_id, h.reversed, h.level FROM evidence_claims AS c \
     LEFT JOIN evidence_tasks AS t ON t.task = c.task LEFT JOIN evidence_pages AS p ON p.page = c.page \
     LEFT JOIN evidence_hosts AS h ON h.host = p.host WHERE c.space = ";

pub(crate) fn named_claim(space: i64, claim: &EvidenceId) -> Statement {
    let mut query = Statement::new(CLAIMS);
    query.push_bind(space);
    query
        .push(" AND c.claim_id = ")
        .push_bind(claim.as_str().to_owned());
    query
}

pub(crate) fn edges_by_keys(edges: &[i64]) -> Statement {
    let mut query = Statement::new(EDGES);
    query.push_list(edges.iter().copied());
    query
}

/// Edges by their keys. The target's host is that of its page.
const EDGES: &str = "SELECT e.edge, e.edge_id, e.given, e.label, e.confidence, e.ruled, e.ruled_at, e.ruled_by, e.relation, \
     e.source_sort, e.target_sort, t.task_id, h.reversed AS source_host, h.level AS source_level, \
     g.reversed AS target_host, g.level AS target_level, d.reason, \
     CASE e.source_sort WHEN 1 THEN (SELECT n.page_id FROM evidence_pages AS n WHERE n.page = e.source) \
     WHEN 2 THEN (SELECT n.fragment_id FROM evidence_fragments AS n WHERE n.fragment = e.source) \
     ELSE (SELECT n.claim_id FROM evidence_claims AS n WHERE n.claim = e.source) END AS source_id, \
     CASE e.target_sort WHEN 1 THEN tp.page_id ELSE tc.claim_id END AS target_id \
     FROM evidence_edges AS e LEFT JOIN evidence_tasks AS t ON t.task = e.task \
     LEFT JOIN evidence_hosts AS h ON h.host = e.host \
     LEFT JOIN evidence_claims AS tc ON e.target_sort = 3 AND tc.claim = e.target \
     LEFT JOIN evidence_pages AS tp ON tp.page = CASE e.target_sort WHEN 1 THEN e.target ELSE tc.page END \
     LEFT JOIN evidence_hosts AS g ON g.host = tp.host \
     LEFT JOIN ballot_details AS d ON d.feedback_id = e.ruled_by WHERE e.edge IN ";

/// What makes two edges `e` of pages `p` on hosts `h` evidence of one source: the work, else the page where the host is at ACADEMIC or
/// above, else the registrable domain. A page without a host, and a claim without a page, is a source of its own.
const SOURCE: &str = "CASE WHEN p.page IS NULL THEN 'claim ' || CAST(e.source AS TEXT) WHEN p.work <> 0 THEN 'work ' || CAST(p.work AS TEXT) \
     WHEN h.host IS NULL OR h.set_level <= 3 THEN 'page ' || CAST(e.page AS TEXT) ELSE 'domain ' || CAST(h.domain AS TEXT) END";
/// The same where it is asked what edges weigh: trust has no part in confidence, so whatever a domain publishes without a work's id is
/// one source.
const WEIGHED_SOURCE: &str = "CASE WHEN p.page IS NULL THEN 'claim ' || CAST(e.source AS TEXT) WHEN p.work <> 0 THEN 'work ' || CAST(p.work AS TEXT) \
     WHEN h.host IS NULL THEN 'page ' || CAST(e.page AS TEXT) ELSE 'domain ' || CAST(h.domain AS TEXT) END";
const WITH_PAGE: &str = " FROM evidence_edges AS e LEFT JOIN evidence_pages AS p ON p.page = e.page \
     LEFT JOIN evidence_hosts AS h ON h.host = e.host WHERE e.target_sort = 3 AND e.target IN ";

/// How many edges of each relation claims have, and what they weigh.
pub(crate) fn summed(claims: &[i64], combining: Combining) -> Statement {
    let mut query = Statement::new(
        "SELECT claim, relation, CAST(SUM(edges) AS BIGINT) AS edges, \
         CAST(SUM(weight) AS BIGINT) AS weight FROM (",
    );
    match combining {
        Combining::CountAll => {
            query.push(
                "SELECT e.target AS claim, e.relation, 1 AS edges, e.weight FROM evidence_edges AS e \
                 WHERE e.target_sort = 3 AND e.target IN ",
            );
            query.push_list(claims.iter().copied());
        }
        Combining::OnePerSource => {
            query.push(format_args!(
                "SELECT e.target AS claim, e.relation, COUNT(*) AS edges, MAX(e.weight) AS weight{WITH_PAGE}"
            ));
            query.push_list(claims.iter().copied());
            query.push(format_args!(" GROUP BY e.target, e.relation, {WEIGHED_SOURCE}"));
        }
    }
    query.push(") AS weighed GROUP BY claim, relation");
    query
}

/// How many independent sources support claims. A claim is no source.
pub(crate) fn independent(claims: &[i64]) -> Statement {
    let mut query = Statement::new("");
    query.push(format_args!(
        "SELECT e.target, COUNT(DISTINCT {SOURCE}){WITH_PAGE}"
    ));
    query.push_list(claims.iter().copied());
    query.push(" AND e.relation = 1 AND e.page <> 0 GROUP BY e.target");
    query
}

/// The hosts and keys of edges, through the index that narrows them most.
pub(crate) fn listed_edges(
    space: i64,
    filter: &EdgeFilter,
    task: Option<i64>,
    claim: Option<i64>,
    after: EdgePosition,
    limit: u32,
) -> Statement {
    let mut query = Statement::new("");
    let conditions = |query: &mut Statement| {
        if let Some(edge) = &filter.edge {
            query
                .push(" AND e.edge_id = ")
                .push_bind(edge.as_str().to_owned());
        }
        if let Some(task) = task {
            query.push(" AND e.task <> 0 AND e.task = ").push_bind(task);
        }
        if !filter.relations.is_empty() {
            query.push(" AND e.relation IN ");
            let relations: Vec<i64> = filter
                .relations
                .iter()
                .map(|relation| i64::from(relation.number()))
                .collect();
            query.push_list(relations.iter().copied());
        }
        if !filter.levels.is_empty() && filter.order() != EdgeOrder::Host {
            query
                .push(" AND EXISTS (SELECT 1 FROM evidence_hosts AS l WHERE l.host = e.host AND l.level IN ");
            push_levels(query, filter);
            query.push(")");
        }
        match filter.reviewed {
            None => {}
            Some(true) => {
                query.push(" AND e.ruled <> 0");
            }
            Some(false) => {
                query.push(" AND e.ruled = 0");
            }
        }
        match filter.corrected {
            None => {}
            Some(true) => {
                query.push(
                    " AND e.ruled <> 0 AND e.ruled <> (CASE WHEN e.label = 0 THEN e.given ELSE e.label END)",
                );
            }
            Some(false) => {
                query.push(
                    " AND (e.ruled = 0 OR e.ruled = (CASE WHEN e.label = 0 THEN e.given ELSE e.label END))",
                );
            }
        }
    };
    let limit = i64::from(limit);
    match filter.order() {
        EdgeOrder::Host => {
            query.push(
                "SELECT e.host AS first, e.edge FROM evidence_hosts AS h JOIN evidence_edges AS e ON e.host = h.host \
                 WHERE h.space = ",
            );
            query.push_bind(space);
            query.push(" AND h.level IN ");
            push_levels(&mut query, filter);
            query.push(" AND h.host >= ").push_bind(after.first);
            query.push(" AND (e.host, e.edge) > (").push_bind(after.first);
            query.push(", ").push_bind(after.edge).push(")");
            conditions(&mut query);
            query.push(" ORDER BY e.host, e.edge LIMIT ").push_bind(limit);
        }
        EdgeOrder::Review => {
            query.push("SELECT e.ruled_at AS first, e.edge FROM evidence_edges AS e WHERE e.space = ");
            query.push_bind(space);
            query
                .push(" AND e.ruled <> 0 AND (e.ruled_at, e.edge) > (")
                .push_bind(after.first);
            query.push(", ").push_bind(after.edge).push(")");
            conditions(&mut query);
            query.push(" ORDER BY e.ruled_at, e.edge LIMIT ").push_bind(limit);
        }
        EdgeOrder::Id => {
            query.push("SELECT CAST(0 AS BIGINT) AS first, e.edge FROM evidence_edges AS e WHERE e.space = ");
            query.push_bind(space);
            query.push(" AND e.edge_id > COALESCE((SELECT edge_id FROM evidence_edges WHERE edge = ");
            query.push_bind(after.edge).push("), '')");
            conditions(&mut query);
            query.push(" ORDER BY e.edge_id LIMIT ").push_bind(limit);
        }
        // Those that lead to a claim and those that lead from it: each is found by an index of its own.
        EdgeOrder::Upserted => {
            let ends: &[&str] = if claim.is_some() {
                &["target", "source"]
            } else {
                &["task"]
            };
            query.push("SELECT CAST(0 AS BIGINT) AS first, edge FROM (");
            for (index, end) in ends.iter().enumerate() {
                query.push(if index > 0 { " UNION " } else { "" });
                query.push("SELECT * FROM (SELECT e.edge FROM evidence_edges AS e WHERE e.edge > ");
                query.push_bind(after.edge);
                if let Some(claim) = claim {
                    query.push(format_args!(" AND e.{end}_sort = 3 AND e.{end} = "));
                    query.push_bind(claim);
                }
                conditions(&mut query);
                query.push(" ORDER BY e.edge LIMIT ").push_bind(limit);
                query.push(format_args!(") AS of_{end}"));
            }
            query.push(") AS found ORDER BY edge LIMIT ").push_bind(limit);
        }
    }
    query
}

fn push_levels(query: &mut Statement, filter: &EdgeFilter) {
    let levels: Vec<i64> = filter
        .levels
        .iter()
        .map(|level| i64::from(level.number()))
        .collect();
    query.push_list(levels.iter().copied());
}
