//! What reviewers, auditors and re-evaluation read, in SQL. Written once, compiled for each database.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use emend_core::{
    Ballot, CandidateId, ContestId, FeedbackId, Kind, Namespace, ResourceKey, Revision, Status,
};
use emend_store::{Connections, StoreError};
use sqlx::{FromRow, QueryBuilder};

use super::{
    Backend, Db,
    decisions_sql::{Work, bytes, key_hash, newest_ballots, or_default, policies_in_force, push_list},
};
use crate::store::{
    batches::batches,
    codes,
    decisions::{
        CandidateFilter, CandidatePosition, CandidateRecord, ChangeRecord, DecisionStore, FeedbackRecord,
        PolicyKey, RevisionFilter, RevisionRecord, StoredPolicy, TransitionWrite, Tx,
    },
    rows::{
        At, BallotRow, CandidateRecordRow, ChangeRow, CountRow, FeedbackRow, KeyRow, RevisionRow, StoredId,
        TransitionRow,
    },
};

type Result<T> = std::result::Result<T, StoreError>;

/// A page of revisions ends after this many changes, so that no more are read than are likely to fit a message. The
/// renderer checks whether they do.
const CHANGES_PER_PAGE: i64 = 2_000;

/// The columns read of a candidate `k` and its contest `c`.
const CANDIDATE_COLUMNS: &str = "SELECT k.contest, k.candidate, k.candidate_id, k.value, k.status, k.status_reason, k.origin, \
     k.edited_from, k.hold, k.decision_reason, k.decided_caller, k.decided_for, k.occurrences, k.reporters, k.net, \
     k.risk, k.threshold, k.policy_version, k.applied_threshold, k.applied_revision, k.created_at, k.updated_at, \
     k.transitions, k.version, c.contest_id, c.namespace, c.kind, c.key, c.qualifier, c.user_id, c.pinned";

fn candidate_records() -> QueryBuilder<Db> {
    let mut query = QueryBuilder::new(CANDIDATE_COLUMNS);
    query.push(" FROM candidates AS k JOIN contests AS c ON c.contest = k.contest WHERE ");
    query
}

impl Backend {
    async fn rows<R>(&self, mut query: QueryBuilder<Db>) -> Result<Vec<R>>
    where
        R: for<'r> FromRow<'r, <Db as sqlx::Database>::Row> + Send + Unpin,
    {
        Ok(query
            .build_query_as()
            .fetch_all(&mut *self.reader().await?)
            .await?)
    }

    /// Revisions by number, without their changes.
    async fn revision_records(&self, shown: &[RevisionSize]) -> Result<BTreeMap<i64, RevisionRecord>> {
        let mut query = QueryBuilder::new(
            "SELECT revision, operation_id, cause, caller, on_behalf_of, reason, committed_at FROM revisions WHERE \
             revision IN (",
        );
        push_revisions(&mut query, shown);
        let rows = self.rows::<RevisionRow>(query).await?;
        rows.into_iter()
            .map(|row| Ok((row.revision, row.parse()?)))
            .collect()
    }

    /// The changes these revisions made in a namespace, in order.
    async fn change_records(
        &self,
        namespace: &Namespace,
        shown: &[RevisionSize],
    ) -> Result<Vec<(i64, ChangeRecord)>> {
        let mut query = QueryBuilder::new(
            "SELECT h.revision, c.contest_id, c.namespace, c.kind, c.key, c.qualifier, c.user_id, h.value, \
             h.before_value, k.candidate_id, h.feedback_id, h.policy_version \
             FROM changes AS h JOIN contests AS c ON c.contest = h.contest \
             LEFT JOIN candidates AS k ON k.candidate = h.candidate WHERE h.revision IN (",
        );
        push_revisions(&mut query, shown);
        query.push(" AND c.namespace = ").push_bind(namespace.as_str());
        query.push(" ORDER BY h.revision, h.ordinal");
        let rows = self.rows::<ChangeRow>(query).await?;
        rows.into_iter()
            .map(|row| Ok((row.revision, row.parse()?)))
            .collect()
    }

    async fn parsed_candidates(&self, query: QueryBuilder<Db>) -> Result<Vec<CandidateRecord>> {
        parse_candidates(self.rows(query).await?)
    }
}

fn parse_candidates(rows: Vec<CandidateRecordRow>) -> Result<Vec<CandidateRecord>> {
    rows.into_iter().map(CandidateRecordRow::parse).collect()
}

#[derive(FromRow)]
struct RevisionSize {
    revision: i64,
    changes: i64,
}

#[async_trait]
impl DecisionStore for Backend {
    async fn begin(&self) -> Result<Box<dyn Tx>> {
        Ok(Box::new(Work::begin(self).await?))
    }

    async fn candidate(&self, id: CandidateId) -> Result<Option<CandidateRecord>> {
        let mut query = candidate_records();
        query.push("k.candidate_id = ").push_bind(bytes(id.0));
        Ok(self.parsed_candidates(query).await?.pop())
    }

    async fn list_candidates(
        &self,
        filter: &CandidateFilter,
        after: Option<CandidatePosition>,
        limit: u32,
    ) -> Result<Vec<CandidateRecord>> {
        let query = listed(filter, after, limit);
        parse_candidates(self.rows(query).await?)
    }

    async fn rivals(&self, of: &CandidateRecord, limit: u32) -> Result<Vec<CandidateRecord>> {
        let mut query = candidate_records();
        query
            .push("c.contest_id = ")
            .push_bind(bytes(of.key.contest_id().0));
        query
            .push(" AND k.candidate_id <> ")
            .push_bind(bytes(of.candidate.id.0));
        query.push(" ORDER BY k.net DESC, k.reporters DESC, k.candidate_id LIMIT ");
        query.push_bind(i64::from(limit));
        self.parsed_candidates(query).await
    }

    async fn ballots(&self, contest: ContestId, limit: u32) -> Result<Vec<Ballot>> {
        let mut query = QueryBuilder::new("SELECT contest FROM contests WHERE contest_id = ");
        query.push_bind(bytes(contest.0));
        let found = self.rows::<(i64,)>(query).await?;
        let Some((contest,)) = found.first() else {
            return Ok(Vec::new());
        };
        let rows = self.rows::<BallotRow>(newest_ballots(&[*contest], limit)).await?;
        rows.iter().map(BallotRow::parse).collect()
    }

    async fn reporters(&self, feedback: &[FeedbackId]) -> Result<HashMap<FeedbackId, String>> {
        let mut reporters = HashMap::with_capacity(feedback.len());
        for feedback in batches(feedback) {
            let mut query = QueryBuilder::new(
                "SELECT feedback_id, reporter_id FROM ballot_details WHERE reporter_id <> '' AND feedback_id IN ",
            );
            push_list(&mut query, feedback.iter().map(|id| id.0));
            for (id, reporter) in self.rows::<(Vec<u8>, String)>(query).await? {
                let at = At {
                    table: "ballot_details",
                    id: &StoredId(&id),
                };
                reporters.insert(FeedbackId(at.uuid("feedback_id", &id)?), reporter);
            }
        }
        Ok(reporters)
    }

    async fn feedback(&self, candidate: CandidateId, limit: u32) -> Result<Vec<FeedbackRecord>> {
        let mut query = QueryBuilder::new(
            "SELECT b.feedback_id, b.system_choice, b.received_at, b.retracted, d.reason, d.context, d.query_id \
             FROM ballots AS b LEFT JOIN ballot_details AS d ON d.feedback_id = b.feedback_id WHERE b.contest = \
             (SELECT k.contest FROM candidates AS k WHERE k.candidate_id = ",
        );
        query.push_bind(bytes(candidate.0));
        query
            .push(") AND b.candidate_id = ")
            .push_bind(bytes(candidate.0));
        query.push(" ORDER BY b.accept_order DESC, b.feedback_id LIMIT ");
        query.push_bind(i64::from(limit));
        // Of a contest with very many ballots, all may have to be passed over to find a few of one candidate.
        let mut reader = self.browser().await?;
        let rows: Vec<FeedbackRow> = query.build_query_as().fetch_all(&mut *reader).await?;
        rows.into_iter().map(FeedbackRow::parse).collect()
    }

    async fn transitions(&self, candidate: CandidateId, limit: u32) -> Result<Vec<TransitionWrite>> {
        let mut query = QueryBuilder::new(
            "SELECT k.candidate_id, t.sequence, t.from_status, t.to_status, t.cause, t.reason, t.caller, \
             t.on_behalf_of, t.made_at, t.revision, t.policy_version \
             FROM candidates AS k JOIN transitions AS t ON t.candidate = k.candidate WHERE k.candidate_id = ",
        );
        query.push_bind(bytes(candidate.0));
        query
            .push(" ORDER BY t.sequence LIMIT ")
            .push_bind(i64::from(limit));
        let rows = self.rows::<TransitionRow>(query).await?;
        rows.into_iter().map(TransitionRow::parse).collect()
    }

    async fn list_revisions(
        &self,
        filter: &RevisionFilter,
        before: Option<Revision>,
        limit: u32,
    ) -> Result<(Vec<RevisionRecord>, bool)> {
        let sizes = self.rows::<RevisionSize>(matching(filter, before, limit)).await?;
        let Some((shown, more)) = page(&sizes, limit) else {
            return Ok((Vec::new(), false));
        };
        let mut revisions = Vec::with_capacity(shown.len());
        for shown in batches(shown) {
            let mut records = self.revision_records(shown).await?;
            for (row, change) in self.change_records(&filter.namespace, shown).await? {
                if let Some(record) = records.get_mut(&row) {
                    record.changes.push(change);
                }
            }
            revisions.extend(records.into_values().rev());
        }
        Ok((revisions, more))
    }

    async fn policy(&self, key: &PolicyKey) -> Result<StoredPolicy> {
        let rows = self.rows(policies_in_force(std::slice::from_ref(key))).await?;
        or_default(&rows, key)
    }

    async fn reevaluation_remaining(&self, key: &PolicyKey, version: i64) -> Result<u64> {
        let mut query = QueryBuilder::new(
            "SELECT namespace, kind, count(*) AS count FROM contests WHERE pending = 1 AND namespace = ",
        );
        query.push_bind(key.namespace.as_str());
        query.push(" AND kind = ").push_bind(key.kind.number());
        query.push(" AND policy_version < ").push_bind(version);
        query.push(" GROUP BY namespace, kind");
        let rows = self.rows::<CountRow>(query).await?;
        rows.first().map_or(Ok(0), |row| Ok(row.parse()?.1))
    }

    async fn contests_to_reevaluate(&self, after: Option<ContestId>, limit: u32) -> Result<Vec<ResourceKey>> {
        let mut query = QueryBuilder::new(
            "SELECT c.contest_id, c.namespace, c.kind, c.key, c.qualifier, c.user_id FROM \
             (SELECT namespace, kind, max(version) AS version FROM policies GROUP BY namespace, kind) AS p \
             JOIN contests AS c ON c.namespace = p.namespace AND c.kind = p.kind AND c.policy_version < p.version \
             WHERE c.pending = 1",
        );
        if let Some(after) = after {
            query.push(" AND c.contest_id > ").push_bind(bytes(after.0));
        }
        query.push(" ORDER BY c.contest_id LIMIT ");
        query.push_bind(i64::from(limit));
        let rows = self.rows::<KeyRow>(query).await?;
        rows.iter().map(|row| row.parse("contests")).collect()
    }

    #[cfg(any(test, feature = "simulation"))]
    async fn contents(&self) -> Result<crate::store::contents::Contents> {
        super::contents_sql::read(self).await
    }

    async fn count_candidates(&self) -> Result<Vec<(Kind, Status, u64)>> {
        let rows: Vec<(i32, i32, i64)> =
            sqlx::query_as("SELECT kind, status, count(*) FROM candidates GROUP BY kind, status")
                .fetch_all(&mut *self.reader().await?)
                .await?;
        // A newer version may have written what this one does not know: leave it out.
        let known = rows.into_iter().filter_map(|(kind, status, count)| {
            let kind = Kind::from_number(kind)?;
            Some((kind, codes::parse_status(status)?, count.unsigned_abs()))
        });
        Ok(known.collect())
    }

    fn connections(&self) -> Connections {
        self.pool_connections()
    }

    async fn ping(&self) -> Result<()> {
        sqlx::query("SELECT 1")
            .execute(&mut *self.reader().await?)
            .await?;
        Ok(())
    }

    async fn close(&self) {
        self.close_pools().await;
    }
}

/// Appends `$1, $2, …)`.
fn push_revisions(query: &mut QueryBuilder<Db>, shown: &[RevisionSize]) {
    let mut list = query.separated(", ");
    for size in shown {
        list.push_bind(size.revision);
    }
    query.push(")");
}

/// The candidates of a filter after a position, newest first.
///
/// Without a key: the newest of each kind and status, each found in order by one index, merged. With a key: those of the
/// few contests that have it.
pub(super) fn listed(
    filter: &CandidateFilter,
    after: Option<CandidatePosition>,
    limit: u32,
) -> QueryBuilder<Db> {
    let namespace = filter.namespace.as_str();
    let limit = i64::from(limit);
    let mut query = QueryBuilder::new(CANDIDATE_COLUMNS);
    if let Some(key) = &filter.key {
        // Start from the contests; SQLite would not choose that plan by itself.
        query.push(" FROM contests AS c CROSS JOIN candidates AS k WHERE k.contest = c.contest AND ");
        push_key(&mut query, key);
        query.push(" AND c.namespace = ").push_bind(namespace);
        push_numbers(
            &mut query,
            " AND c.kind IN (",
            filter.kinds.iter().map(|kind| kind.number()),
        );
        let statuses = filter.statuses.iter().map(|status| codes::status(*status));
        push_numbers(&mut query, " AND k.status IN (", statuses);
        push_after(&mut query, "k", after);
    } else {
        query.push(" FROM (");
        let kinds = if filter.kinds.is_empty() {
            &Kind::ALL[..]
        } else {
            &filter.kinds[..]
        };
        let statuses = if filter.statuses.is_empty() {
            &codes::STATUSES[..]
        } else {
            &filter.statuses[..]
        };
        let lists = kinds
            .iter()
            .flat_map(|kind| statuses.iter().map(move |status| (*kind, *status)));
        for (index, (kind, status)) in lists.enumerate() {
            let union = if index > 0 { " UNION ALL " } else { "" };
            query.push(union).push("SELECT * FROM (SELECT n.candidate, n.created_at, n.candidate_id FROM candidates AS n WHERE n.namespace = ");
            query.push_bind(namespace);
            query.push(" AND n.kind = ").push_bind(kind.number());
            query.push(" AND n.status = ").push_bind(codes::status(status));
            push_after(&mut query, "n", after);
            query
                .push(" ORDER BY n.created_at DESC, n.candidate_id DESC LIMIT ")
                .push_bind(limit);
            query.push(format_args!(") AS list_{index}"));
        }
        query
            .push(" ORDER BY created_at DESC, candidate_id DESC LIMIT ")
            .push_bind(limit);
        query.push(
            ") AS newest CROSS JOIN candidates AS k CROSS JOIN contests AS c WHERE k.candidate = newest.candidate \
             AND c.contest = k.contest",
        );
    }
    query
        .push(" ORDER BY k.created_at DESC, k.candidate_id DESC LIMIT ")
        .push_bind(limit);
    query
}

fn push_numbers(query: &mut QueryBuilder<Db>, condition: &str, numbers: impl ExactSizeIterator<Item = i32>) {
    if numbers.len() > 0 {
        query.push(condition);
        let mut list = query.separated(", ");
        for number in numbers {
            list.push_bind(number);
        }
        query.push(")");
    }
}

fn push_after(query: &mut QueryBuilder<Db>, of: &str, after: Option<CandidatePosition>) {
    if let Some(after) = after {
        query.push(format_args!(" AND ({of}.created_at, {of}.candidate_id) < ("));
        query
            .push_bind(after.created_at)
            .push(", ")
            .push_bind(bytes(after.id.0))
            .push(")");
    }
}

/// The matching revisions below `before`, newest first, each with its number of changes in the namespace. They are
/// found in order by an index on what is asked for, then counted.
pub(super) fn matching(filter: &RevisionFilter, before: Option<Revision>, limit: u32) -> QueryBuilder<Db> {
    let namespace = filter.namespace.as_str();
    let limit = i64::from(limit) + 1;
    let mut query = QueryBuilder::new(
        "SELECT found.revision, (SELECT count(*) FROM changes AS shown JOIN contests AS of ON of.contest = shown.contest \
         WHERE shown.revision = found.revision AND of.namespace = ",
    );
    query.push_bind(namespace).push(") AS changes FROM (");
    match (&filter.key, filter.operation) {
        (None, None) => {
            // The newest of each kind, merged.
            let kinds = filter.kind.as_ref().map_or(&Kind::ALL[..], std::slice::from_ref);
            for (index, kind) in kinds.iter().enumerate() {
                let union = if index > 0 { " UNION " } else { "" };
                query
                    .push(union)
                    .push("SELECT * FROM (SELECT r.revision FROM revision_kinds AS r WHERE r.namespace = ");
                query.push_bind(namespace);
                query.push(" AND r.kind = ").push_bind(kind.number());
                push_before(&mut query, "r", before);
                query.push(" ORDER BY r.revision DESC LIMIT ").push_bind(limit);
                query.push(format_args!(") AS kind_{index}"));
            }
            query.push(" ORDER BY revision DESC LIMIT ").push_bind(limit);
        }
        (_, Some(operation)) => {
            query
                .push("SELECT r.revision FROM revisions AS r WHERE r.operation_id IS NOT NULL AND r.operation_id = ")
                .push_bind(bytes(operation.0));
            push_before(&mut query, "r", before);
            query.push(
                " AND EXISTS (SELECT 1 FROM changes AS h JOIN contests AS c ON c.contest = h.contest \
                 WHERE h.revision = r.revision",
            );
            push_changed(&mut query, filter);
            query.push(") ORDER BY r.revision DESC LIMIT ").push_bind(limit);
        }
        (Some(_), None) => {
            // A CROSS JOIN makes SQLite join in this order.
            query.push(
                "SELECT h.revision FROM contests AS c CROSS JOIN changes AS h WHERE h.contest = c.contest",
            );
            push_changed(&mut query, filter);
            push_before(&mut query, "h", before);
            query
                .push(" GROUP BY h.revision ORDER BY h.revision DESC LIMIT ")
                .push_bind(limit);
        }
    }
    query.push(") AS found ORDER BY found.revision DESC");
    query
}

/// Appends the conditions on the contest `c` of a change.
fn push_changed(query: &mut QueryBuilder<Db>, filter: &RevisionFilter) {
    if let Some(key) = &filter.key {
        query.push(" AND ");
        push_key(query, key);
    }
    query
        .push(" AND c.namespace = ")
        .push_bind(filter.namespace.as_str().to_owned());
    if let Some(kind) = filter.kind {
        query.push(" AND c.kind = ").push_bind(kind.number());
    }
}

fn push_before(query: &mut QueryBuilder<Db>, of: &str, before: Option<Revision>) {
    if let Some(before) = before {
        query.push(format_args!(" AND {of}.revision < "));
        query.push_bind(before.0);
    }
}

/// Appends the condition that contest `c` has this key.
fn push_key(query: &mut QueryBuilder<Db>, key: &str) {
    query.push("c.key_hash = ").push_bind(key_hash(key));
    query.push(" AND c.key = ").push_bind(key.to_owned());
}

/// The matching revisions that fit a page, and whether there are more. None if nothing matches.
fn page(sizes: &[RevisionSize], limit: u32) -> Option<(&[RevisionSize], bool)> {
    let mut changes = 0;
    let fitting = sizes
        .iter()
        .take(limit as usize)
        .take_while(|size| {
            let first = changes == 0;
            changes += size.changes;
            first || changes <= CHANGES_PER_PAGE
        })
        .count();
    let (shown, rest) = sizes.split_at_checked(fitting)?;
    (!shown.is_empty()).then_some((shown, !rest.is_empty()))
}
