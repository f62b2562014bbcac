//! Events and figures of reviews in SQL.

use async_trait::async_trait;
use emend_core::key_hash;
use emend_store::StoreError;
use emend_store::sql::Statement;

use crate::SqlStore;
use crate::evidence::exports_sql::Exporting;
use crate::evidence::reads_sql::space_of;
use crate::evidence::reads_sql::task_of;
use crate::evidence::{
    EdgePosition, EventFilter, EventPosition, EventRecord, EvidenceReads, ExportRead, Period, ReviewCount,
    ReviewFilter,
    listing_rows::{EventRow, ReviewRow},
};

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl EvidenceReads for SqlStore {
    async fn events(
        &self,
        filter: &EventFilter,
        before: Option<EventPosition>,
        limit: u32,
    ) -> Result<Vec<(EventPosition, EventRecord)>> {
        let mut contests = Vec::new();
        if let Some((kind, key)) = &filter.target {
            let mut query = Statement::new("SELECT contest FROM contests WHERE key_hash = ");
            query.push_bind(key_hash(key.as_str()));
            query.push(" AND key = ").push_bind(key.as_str());
            query
                .push(" AND namespace = ")
                .push_bind(filter.namespace.as_str());
            query.push(" AND kind = ").push_bind(kind.number());
            let found = self.rows::<(i64,)>(query).await?;
            contests.extend(found.into_iter().map(|(contest,)| contest));
            if contests.is_empty() && filter.element.is_none() {
                return Ok(Vec::new());
            }
        }
        let rows: Vec<EventRow> = self.rows(listed_events(filter, &contests, before, limit)).await?;
        rows.into_iter().map(EventRow::parse).collect()
    }

    async fn review_counts(&self, filter: &ReviewFilter) -> Result<Vec<ReviewCount>> {
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
        let query = counted_reviews(space, task, filter);
        // Of very many reviews all are passed over.
        let mut reader = self.browser().await?;
        let rows: Vec<ReviewRow> = reader.rows(query).await?;
        rows.iter().map(ReviewRow::parse).collect()
    }

    async fn begin_export(&self) -> Result<Box<dyn ExportRead>> {
        Ok(Box::new(Exporting::begin(self).await?))
    }
}

/// Finds events in order by an index on what is asked for, then reads them.
pub(crate) fn listed_events(
    filter: &EventFilter,
    contests: &[i64],
    before: Option<EventPosition>,
    limit: u32,
) -> Statement {
    let limit = i64::from(limit);
    let mut query = Statement::new(
        "SELECT found.first, e.event, e.action, e.task_id, e.caller, e.on_behalf_of, e.reason, e.value_before, \
         e.value_after, e.proposed, e.feedback_id, e.candidate_id, e.revision, e.made_at, e.element_sort, e.element_id, c.contest_id, \
         c.namespace, c.kind, c.key, c.qualifier, c.user_id, d.reason AS said, d.reporter_id AS reporter FROM (",
    );
    let conditions = |query: &mut Statement| {
        push_period(query, "e.made_at", filter.period);
        if let Some(caller) = &filter.caller {
            query
                .push(" AND e.caller = ")
                .push_bind(caller.as_str().to_owned());
        }
        match before {
            Some(before) if filter.in_order() => {
                query.push(" AND e.event < ").push_bind(before.event);
            }
            Some(before) => {
                query.push(" AND (e.made_at, e.event) < (").push_bind(before.at);
                query.push(", ").push_bind(before.event).push(")");
            }
            None => {}
        }
    };
    if contests.is_empty() && filter.element.is_none() {
        let first = if filter.in_order() {
            "CAST(0 AS BIGINT)"
        } else {
            "e.made_at"
        };
        query.push(format_args!(
            "SELECT {first} AS first, e.event FROM evidence_events AS e WHERE e.namespace = "
        ));
        query.push_bind(filter.namespace.as_str().to_owned());
        if let Some(task) = &filter.task {
            query.push(" AND e.task_id <> '' AND e.task_id = ");
            query.push_bind(task.as_str().to_owned());
        }
        conditions(&mut query);
        query.push(if filter.in_order() {
            " ORDER BY e.event DESC LIMIT "
        } else {
            " ORDER BY e.made_at DESC, e.event DESC LIMIT "
        });
        query.push_bind(limit);
    } else {
        // One for each layer of a pattern, and one for what was done to the element itself, each by its index.
        query.push("SELECT * FROM (");
        let of_element = filter.element.as_ref().map(Err);
        for (index, about) in contests.iter().map(Ok).chain(of_element).enumerate() {
            query.push(if index > 0 { " UNION ALL " } else { "" });
            query.push(
                "SELECT * FROM (SELECT CAST(0 AS BIGINT) AS first, e.event FROM evidence_events AS e WHERE ",
            );
            match about {
                Ok(contest) => {
                    query.push("e.contest = ").push_bind(*contest);
                }
                Err(element) => {
                    query
                        .push("e.element_sort <> 0 AND e.namespace = ")
                        .push_bind(filter.namespace.as_str().to_owned());
                    query
                        .push(" AND e.element_sort = ")
                        .push_bind(element.sort.number());
                    query
                        .push(" AND e.element_id = ")
                        .push_bind(element.id.as_str().to_owned());
                }
            }
            if let Some(task) = &filter.task {
                query
                    .push(" AND e.task_id = ")
                    .push_bind(task.as_str().to_owned());
            }
            conditions(&mut query);
            query.push(" ORDER BY e.event DESC LIMIT ").push_bind(limit);
            query.push(format_args!(") AS list_{index}"));
        }
        query
            .push(") AS list_all ORDER BY event DESC LIMIT ")
            .push_bind(limit);
    }
    query.push(
        ") AS found JOIN evidence_events AS e ON e.event = found.event LEFT JOIN contests AS c ON c.contest = e.contest \
         LEFT JOIN ballot_details AS d ON e.action = 1 AND d.feedback_id = e.feedback_id \
         ORDER BY found.first DESC, found.event DESC",
    );
    query
}

/// Appends the condition that a time is in a period.
fn push_period(query: &mut Statement, column: &str, period: Period) {
    if let Some(from) = period.from {
        query
            .push(format_args!(" AND {column} >= "))
            .push_bind(from.as_microsecond());
    }
    if let Some(to) = period.to {
        query
            .push(format_args!(" AND {column} < "))
            .push_bind(to.as_microsecond());
    }
}

/// What the model says of an edge `e`.
const PREDICTED: &str = "(CASE WHEN e.label = 0 THEN e.given ELSE e.label END)";

/// Counts reviewed edges by what the model and people say, through the index of reviews or that of the task.
pub(crate) fn counted_reviews(space: i64, task: Option<i64>, filter: &ReviewFilter) -> Statement {
    let mut query = Statement::new("");
    query.push(format_args!(
        "SELECT predicted, ruled, COUNT(*) AS edges FROM (SELECT {PREDICTED} AS predicted, e.ruled \
         FROM evidence_edges AS e WHERE e.space = "
    ));
    query.push_bind(space);
    push_reviewed(&mut query, task, filter);
    query.push(") AS found GROUP BY predicted, ruled ORDER BY predicted, ruled");
    query
}

/// Appends the conditions on reviewed edges `e`.
fn push_reviewed(query: &mut Statement, task: Option<i64>, filter: &ReviewFilter) {
    query.push(" AND e.ruled <> 0");
    push_period(query, "e.ruled_at", filter.period);
    if let Some(task) = task {
        query.push(" AND e.task <> 0 AND e.task = ").push_bind(task);
    }
    if let Some(predicted) = filter.predicted {
        query
            .push(format_args!(" AND {PREDICTED} = "))
            .push_bind(predicted.number());
    }
    if !filter.correct.is_empty() {
        query.push(" AND e.ruled IN (");
        let mut list = query.separated(", ");
        for correct in &filter.correct {
            list.push_bind(correct.number());
        }
        query.push(")");
    }
}

/// When they were reviewed and the keys of corrected edges, in that order, through the index of reviews.
pub(crate) fn listed_samples(
    space: i64,
    task: Option<i64>,
    filter: &ReviewFilter,
    after: EdgePosition,
    limit: u32,
) -> Statement {
    let mut query =
        Statement::new("SELECT e.ruled_at AS first, e.edge FROM evidence_edges AS e WHERE e.space = ");
    query.push_bind(space);
    push_reviewed(&mut query, task, filter);
    query.push(format_args!(" AND e.ruled <> {PREDICTED}"));
    query.push(" AND (e.ruled_at, e.edge) > (").push_bind(after.first);
    query.push(", ").push_bind(after.edge);
    query
        .push(") ORDER BY e.ruled_at, e.edge LIMIT ")
        .push_bind(i64::from(limit));
    query
}
