//! What elements of the graph say, and the events of their being replaced or deleted, in SQL. Written once, compiled for each
//! database.

use std::collections::HashMap;

use emend_core::Namespace;
use emend_store::StoreError;
use emend_store::sql::Statement;

use crate::{
    batches::batches,
    evidence::{
        EvidenceAction,
        element_rows::{EdgeSaysRow, PageSaysRow, PartSaysRow, Says},
        graph::{By, ElementSort},
    },
    work::Work,
};

type Result<T> = std::result::Result<T, StoreError>;

/// What elements of a sort say, by their keys.
pub(crate) async fn says(work: &mut Work, sort: ElementSort, keys: &[i64]) -> Result<HashMap<i64, Says>> {
    let mut found = HashMap::with_capacity(keys.len());
    for keys in batches(keys) {
        let query = said(sort, keys);
        match sort {
            ElementSort::Page => {
                let rows: Vec<PageSaysRow> = work.rows(query).await?;
                found.extend(rows.into_iter().map(PageSaysRow::says));
            }
            ElementSort::Fragment | ElementSort::Claim => {
                let rows: Vec<PartSaysRow> = work.rows(query).await?;
                found.extend(rows.into_iter().map(PartSaysRow::says));
            }
            ElementSort::Edge => {
                for row in work.rows::<EdgeSaysRow>(query).await? {
                    let (key, says) = row.says()?;
                    found.insert(key, says);
                }
            }
        }
    }
    Ok(found)
}

pub(crate) fn said(sort: ElementSort, keys: &[i64]) -> Statement {
    let mut query = Statement::new(match sort {
        ElementSort::Page => {
            "SELECT n.page AS node, n.page_id AS id, n.url, n.doi, n.pmid, n.arxiv_id, \
             (SELECT h.reversed FROM evidence_hosts AS h WHERE h.host = n.host) AS reversed \
             FROM evidence_pages AS n WHERE n.page IN "
        }
        ElementSort::Fragment => {
            "SELECT n.fragment AS node, n.fragment_id AS id, NULL AS task_id, \
             (SELECT p.page_id FROM evidence_pages AS p WHERE p.page = n.page) AS page_id \
             FROM evidence_fragments AS n WHERE n.fragment IN "
        }
        ElementSort::Claim => {
            "SELECT n.claim AS node, n.claim_id AS id, \
             (SELECT t.task_id FROM evidence_tasks AS t WHERE t.task = n.task) AS task_id, \
             (SELECT p.page_id FROM evidence_pages AS p WHERE p.page = n.page) AS page_id \
             FROM evidence_claims AS n WHERE n.claim IN "
        }
        ElementSort::Edge => {
            "SELECT e.edge AS node, e.edge_id AS id, e.given, e.source_sort, e.target_sort, \
             (SELECT t.task_id FROM evidence_tasks AS t WHERE t.task = e.task) AS task_id, \
             CASE e.source_sort WHEN 1 THEN (SELECT n.page_id FROM evidence_pages AS n WHERE n.page = e.source) \
             WHEN 2 THEN (SELECT n.fragment_id FROM evidence_fragments AS n WHERE n.fragment = e.source) \
             ELSE (SELECT n.claim_id FROM evidence_claims AS n WHERE n.claim = e.source) END AS source_id, \
             CASE e.target_sort WHEN 1 THEN (SELECT n.page_id FROM evidence_pages AS n WHERE n.page = e.target) \
             ELSE (SELECT n.claim_id FROM evidence_claims AS n WHERE n.claim = e.target) END AS target_id \
             FROM evidence_edges AS e WHERE e.edge IN "
        }
    });
    query.push_list(keys.iter().copied());
    query
}

/// Writes an event for each element that says something else than before; what is gone says nothing.
pub(crate) async fn save_element_events(
    work: &mut Work,
    namespace: &Namespace,
    action: EvidenceAction,
    sort: ElementSort,
    (before, after): (&HashMap<i64, Says>, &HashMap<i64, Says>),
    by: &By,
) -> Result<()> {
    let mut changed: Vec<(&Says, &str)> = before
        .iter()
        .map(|(key, before)| (before, after.get(key).map_or("", |after| after.text.as_str())))
        .filter(|(before, after)| action == EvidenceAction::Deleted || before.text != *after)
        .collect();
    changed.sort_unstable_by(|(one, _), (other, _)| one.id.cmp(&other.id));
    for changed in batches(&changed) {
        let mut query = Statement::new(
            "INSERT INTO evidence_events (namespace, contest, element_sort, element_id, action, task_id, caller, on_behalf_of, \
             reason, value_before, value_after, proposed, feedback_id, candidate_id, revision, made_at) ",
        );
        query.push_values(changed, |mut row, (before, after)| {
            row.push_bind(namespace.as_str())
                .push("0")
                .push_bind(sort.number())
                .push_bind(before.id.as_str())
                .push_bind(action.number())
                .push_bind(before.task.as_str())
                .push_bind(by.actor.caller.as_str())
                .push_bind(by.actor.on_behalf_of.as_str())
                .push_bind(by.reason.as_str())
                .push_bind(before.text.as_str())
                .push_bind(*after)
                .push("'', NULL, NULL, 0")
                .push_bind(by.at.as_microsecond());
        });
        work.run(query).await?;
    }
    Ok(())
}
