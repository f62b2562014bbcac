//! Exports in SQL: one state, read page by page.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{Namespace, evidence::EvidenceId};
use emend_store::StoreError;
use emend_store::sql::{Row, Statement, Transaction};

use crate::SqlStore;
use crate::evidence::events_sql::listed_samples;
use crate::evidence::reads_sql::CLAIMS;
use crate::evidence::reads_sql::Rows;
use crate::evidence::reads_sql::claim_records;
use crate::evidence::reads_sql::edge_records;
use crate::evidence::reads_sql::space_of;
use crate::evidence::reads_sql::task_of;
use crate::{
    batches::batches,
    evidence::{
        EdgePosition, ExportRead, Line, Part, ReviewFilter, SampleRecord, TaskKey, Weighing,
        listing_rows::{FragmentRow, PageRow, SampleRow},
    },
};

type Result<T> = std::result::Result<T, StoreError>;

/// A transaction that reads one state.
pub(crate) struct Exporting {
    transaction: Transaction,
}

impl Exporting {
    /// Begins to read the state as of now.
    pub(crate) async fn begin(store: &SqlStore) -> Result<Self> {
        let mut transaction = store.begin_read().await?;
        // The state is that of the first read.
        transaction
            .optional_value::<i64>(Statement::new("SELECT revision FROM head"))
            .await?;
        Ok(Self { transaction })
    }
}

impl Rows for Exporting {
    async fn rows<R>(&mut self, query: Statement) -> Result<Vec<R>>
    where
        R: Row,
    {
        self.transaction.rows(query).await
    }
}

#[async_trait]
impl ExportRead for Exporting {
    async fn task(&mut self, namespace: &Namespace, task: &EvidenceId) -> Result<Option<TaskKey>> {
        let Some(space) = space_of(self, namespace).await? else {
            return Ok(None);
        };
        let task = task_of(self, space, task).await?;
        Ok(task.map(|task| TaskKey { space, task }))
    }

    async fn keys(&mut self, part: Part, task: TaskKey, after: i64, limit: u32) -> Result<Vec<i64>> {
        let found: Vec<(i64,)> = self.rows(exported_keys(part, task.task, after, limit)).await?;
        Ok(found.into_iter().map(|(key,)| key).collect())
    }

    async fn lines(
        &mut self,
        part: Part,
        task: TaskKey,
        keys: &[i64],
        weighing: Weighing,
    ) -> Result<Vec<Line>> {
        let mut lines = Vec::with_capacity(keys.len());
        for keys in batches(keys) {
            match part {
                Part::Pages => {
                    for row in self.rows::<PageRow>(exported_pages(keys)).await? {
                        lines.push(Line::Page(row.parse()?));
                    }
                }
                Part::Fragments => {
                    for row in self.rows::<FragmentRow>(exported_fragments(keys)).await? {
                        lines.push(Line::Fragment(row.parse()?));
                    }
                }
                Part::Claims => {
                    let claims = claim_records(self, exported_claims(task.space, keys), weighing).await?;
                    lines.extend(claims.into_iter().map(|(_, claim)| Line::Claim(Box::new(claim))));
                }
                Part::Edges => {
                    let positions: Vec<EdgePosition> =
                        keys.iter().map(|&edge| EdgePosition { first: 0, edge }).collect();
                    let edges = edge_records(self, &positions).await?;
                    lines.extend(edges.into_iter().map(|(_, edge)| Line::Edge(Box::new(edge))));
                }
            }
        }
        Ok(lines)
    }

    async fn samples(
        &mut self,
        filter: &ReviewFilter,
        after: EdgePosition,
        limit: u32,
    ) -> Result<Vec<(EdgePosition, SampleRecord)>> {
        let Some(space) = space_of(self, &filter.namespace).await? else {
            return Ok(Vec::new());
        };
        let task = match &filter.task {
            None => None,
            Some(task) => match task_of(self, space, task).await? {
                None => return Ok(Vec::new()),
                found => found,
            },
        };
        let found: Vec<(i64, i64)> = self
            .rows(listed_samples(space, task, filter, after, limit))
            .await?;
        let positions: Vec<EdgePosition> = found
            .into_iter()
            .map(|(first, edge)| EdgePosition { first, edge })
            .collect();
        let mut texts: HashMap<i64, SampleRow> = HashMap::with_capacity(positions.len());
        let keys: Vec<i64> = positions.iter().map(|position| position.edge).collect();
        for keys in batches(&keys) {
            let mut query = Statement::new(TEXTS);
            query.push_list(keys.iter().copied());
            let rows: Vec<SampleRow> = self.rows(query).await?;
            texts.extend(rows.into_iter().map(|row| (row.edge, row)));
        }
        let edges = edge_records(self, &positions).await?;
        Ok(edges
            .into_iter()
            .filter_map(|(position, edge)| Some((position, texts.remove(&position.edge)?.of(edge))))
            .collect())
    }
}

pub(crate) fn exported_pages(keys: &[i64]) -> Statement {
    let mut query = Statement::new(PAGES);
    query.push_list(keys.iter().copied());
    query.push(" ORDER BY p.page");
    query
}

pub(crate) fn exported_fragments(keys: &[i64]) -> Statement {
    let mut query = Statement::new(FRAGMENTS);
    query.push_list(keys.iter().copied());
    query.push(" ORDER BY f.fragment");
    query
}

pub(crate) fn exported_claims(space: i64, keys: &[i64]) -> Statement {
    let mut query = Statement::new(CLAIMS);
    query.push_bind(space).push(" AND c.claim IN ");
    query.push_list(keys.iter().copied());
    query.push(" ORDER BY c.claim");
    query
}

const PAGES: &str = "SELECT p.page_id, p.url, p.title, p.doi, p.pmid, p.arxiv_id, h.reversed, h.level \
     FROM evidence_pages AS p LEFT JOIN evidence_hosts AS h ON h.host = p.host WHERE p.page IN ";

const FRAGMENTS: &str = "SELECT f.fragment_id, p.page_id, f.text FROM evidence_fragments AS f \
     LEFT JOIN evidence_pages AS p ON p.page = f.page WHERE f.fragment IN ";

/// The texts of edges' ends.
const TEXTS: &str = "SELECT e.edge, d.reporter_id, \
     CASE e.source_sort WHEN 1 THEN (SELECT n.title FROM evidence_pages AS n WHERE n.page = e.source) \
     WHEN 2 THEN (SELECT n.text FROM evidence_fragments AS n WHERE n.fragment = e.source) \
     ELSE (SELECT n.text FROM evidence_claims AS n WHERE n.claim = e.source) END AS premise, \
     (SELECT n.text FROM evidence_claims AS n WHERE e.target_sort = 3 AND n.claim = e.target) AS hypothesis \
     FROM evidence_edges AS e LEFT JOIN ballot_details AS d ON d.feedback_id = e.ruled_by WHERE e.edge IN ";

/// The keys of a part of a task's export, through the indexes of the task's claims and edges.
pub(crate) fn exported_keys(part: Part, task: i64, after: i64, limit: u32) -> Statement {
    // The column, from the task's claims (c) or edges (e), and what else must hold.
    let sources: &[(&str, &str, &str)] = match part {
        Part::Pages => &[
            ("c.page", "c", ""),
            ("e.page", "e", ""),
            ("e.target", "e", " AND e.target_sort = 1"),
            // A claim that is only named comes with its page.
            ("n.page", "n", ""),
        ],
        Part::Fragments => &[("e.source", "e", " AND e.source_sort = 2")],
        Part::Claims => &[
            ("c.claim", "c", ""),
            ("e.target", "e", " AND e.target_sort = 3"),
            ("e.source", "e", " AND e.source_sort = 3"),
        ],
        Part::Edges => &[("e.edge", "e", "")],
    };
    let mut query = Statement::new("SELECT node FROM (");
    for (index, (column, of, condition)) in sources.iter().enumerate() {
        let (table, task_of) = match *of {
            "c" => ("evidence_claims AS c", "c"),
            "n" => (
                "evidence_edges AS e JOIN evidence_claims AS n ON e.target_sort = 3 AND n.claim = e.target",
                "e",
            ),
            _ => ("evidence_edges AS e", "e"),
        };
        let union = if index > 0 { " UNION " } else { "" };
        query.push(format_args!(
            "{union}SELECT {column} AS node FROM {table} WHERE {task_of}.task <> 0 AND {task_of}.task = "
        ));
        query.push_bind(task);
        query.push(format_args!(" AND {column} > ")).push_bind(after);
        query.push(*condition);
    }
    query
        .push(") AS found ORDER BY node LIMIT ")
        .push_bind(i64::from(limit));
    query
}
