//! Contests in SQL, as reviewers and re-evaluation read them.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{Ballot, CandidateId, ContestId, FeedbackId, Key, Kind, Status, key_hash};
use emend_store::StoreError;
use emend_store::sql::Statement;

use crate::SqlStore;
use crate::contests::sql::newest_ballots;
use crate::database::bytes;
use crate::database::push_candidates;
use crate::database::push_contests;
use crate::work::only;
use crate::{
    batches::batches,
    codes,
    contests::{
        CandidateFilter, CandidatePosition, CandidateRecord, ContestStore, FeedbackRecord, Place,
        ToReevaluate, TransitionWrite,
        rows::{BallotRow, CandidateRecordRow, FeedbackRow, TransitionRow},
    },
    policies::PolicyKey,
    rows::{At, CountRow, PlacedKeyRow, StoredId},
};

type Result<T> = std::result::Result<T, StoreError>;

/// The columns read of a candidate `k` and its contest `c`.
pub(crate) const CANDIDATE_COLUMNS: &str = "SELECT k.contest, k.candidate, k.candidate_id, \
     coalesce(k.value, (SELECT h.value FROM changes AS h WHERE h.contest = k.contest AND +h.revision = k.applied_revision)) \
     AS value, k.status, k.status_reason, k.origin, \
     k.edited_from, k.hold, k.decision_reason, k.decided_caller, k.decided_for, k.occurrences, k.reporters, k.net, \
     k.risk, k.threshold, k.policy_version, k.applied_threshold, k.applied_revision, k.ruling_order, \
     k.ruling_roles, k.ruling_approved, k.ruling_taken_back, k.proposal_version, k.proposal_base, k.proposal_verdict, \
     k.proposal_decided_at, k.created_at, k.updated_at, k.transitions, k.version, c.contest_id, c.namespace, c.kind, c.key, c.qualifier, c.user_id, c.pinned";

fn candidate_records() -> Statement {
    let mut query = Statement::new(CANDIDATE_COLUMNS);
    query.push(" FROM candidates AS k JOIN contests AS c ON c.contest = k.contest WHERE ");
    query
}

pub(crate) fn candidate_record(id: CandidateId) -> Statement {
    let mut query = candidate_records();
    push_candidates(&mut query, [id]);
    query
}

/// The newest feedback for a candidate.
pub(crate) fn feedback_of(candidate: CandidateId, limit: u32) -> Statement {
    let mut query = Statement::new(
        "SELECT b.feedback_id, b.system_choice, b.received_at, b.retracted, d.reason, d.context, d.query_id \
         FROM ballots AS b LEFT JOIN ballot_details AS d ON d.feedback_id = b.feedback_id WHERE b.contest = \
         (SELECT k.contest FROM candidates AS k WHERE ",
    );
    push_candidates(&mut query, [candidate]);
    query
        .push(") AND b.candidate_id = ")
        .push_bind(bytes(candidate.0));
    query.push(" ORDER BY b.accept_order DESC, b.feedback_id LIMIT ");
    query.push_bind(i64::from(limit));
    query
}

/// The newest changes of a candidate's status.
pub(crate) fn transitions_of(candidate: CandidateId, limit: u32) -> Statement {
    let mut query = Statement::new(
        "SELECT k.candidate_id, t.sequence, t.from_status, t.to_status, t.cause, t.reason, t.caller, \
         t.on_behalf_of, t.made_at, t.revision, t.policy_version \
         FROM candidates AS k JOIN transitions AS t ON t.candidate = k.candidate WHERE ",
    );
    push_candidates(&mut query, [candidate]);
    query
        .push(" ORDER BY t.sequence DESC LIMIT ")
        .push_bind(i64::from(limit));
    query
}

impl SqlStore {
    async fn parsed_candidates(&self, query: Statement) -> Result<Vec<CandidateRecord>> {
        parse_candidates(self.rows(query).await?)
    }
}

fn parse_candidates(rows: Vec<CandidateRecordRow>) -> Result<Vec<CandidateRecord>> {
    rows.into_iter().map(CandidateRecordRow::parse).collect()
}

#[async_trait]
impl ContestStore for SqlStore {
    async fn candidate(&self, id: CandidateId) -> Result<Option<CandidateRecord>> {
        only(self.parsed_candidates(candidate_record(id)).await?, id)
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

    async fn rivals(&self, candidate: &CandidateRecord, limit: u32) -> Result<Vec<CandidateRecord>> {
        let mut query = candidate_records();
        push_contests(&mut query, [candidate.key.contest_id()]);
        query
            .push(" AND k.candidate_id <> ")
            .push_bind(bytes(candidate.candidate.id.0));
        query.push(" ORDER BY k.net DESC, k.reporters DESC, k.candidate_id LIMIT ");
        query.push_bind(i64::from(limit));
        self.parsed_candidates(query).await
    }

    async fn ballots(&self, contest: ContestId, limit: u32) -> Result<Vec<Ballot>> {
        let mut query = Statement::new("SELECT contest FROM contests WHERE ");
        push_contests(&mut query, [contest]);
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
            let mut query = Statement::new(
                "SELECT feedback_id, reporter_id FROM ballot_details WHERE reporter_id <> '' AND feedback_id IN ",
            );
            query.push_list(feedback.iter().map(|id| id.0).map(bytes));
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
        // Of a contest with very many ballots, all may have to be passed over to find a few of one candidate.
        let mut reader = self.browser().await?;
        let query = feedback_of(candidate, limit);
        let rows: Vec<FeedbackRow> = reader.rows(query).await?;
        rows.into_iter().map(FeedbackRow::parse).collect()
    }

    async fn transitions(&self, candidate: CandidateId, limit: u32) -> Result<Vec<TransitionWrite>> {
        let rows = self
            .rows::<TransitionRow>(transitions_of(candidate, limit))
            .await?;
        rows.into_iter().rev().map(TransitionRow::parse).collect()
    }

    async fn reevaluation_remaining(&self, key: &PolicyKey, version: i64) -> Result<u64> {
        let mut query = Statement::new(
            "SELECT namespace, kind, count(*) AS count FROM contests WHERE pending = 1 AND namespace = ",
        );
        query.push_bind(key.namespace.as_str());
        query.push(" AND kind = ").push_bind(key.kind.number());
        query.push(" AND policy_version < ").push_bind(version);
        query.push(" GROUP BY namespace, kind");
        let rows = self.rows::<CountRow>(query).await?;
        rows.first().map_or(Ok(0), |row| Ok(row.parse()?.1))
    }

    async fn contests_to_reevaluate(&self, after: Option<Place>, limit: u32) -> Result<Vec<ToReevaluate>> {
        let mut query = Statement::new(
            "SELECT c.contest, c.contest_id, c.namespace, c.kind, c.key, c.qualifier, c.user_id FROM \
             (SELECT namespace, kind, max(version) AS version FROM policies GROUP BY namespace, kind) AS p \
             JOIN contests AS c ON c.namespace = p.namespace AND c.kind = p.kind AND c.policy_version < p.version \
             WHERE c.pending = 1",
        );
        if let Some(after) = after {
            query.push(" AND c.contest > ").push_bind(after.0);
        }
        query.push(" ORDER BY c.contest LIMIT ");
        query.push_bind(i64::from(limit));
        let rows = self.rows::<PlacedKeyRow>(query).await?;
        rows.iter()
            .map(|row| match row.key.parse("contests") {
                Ok(key) => Ok((Place(row.contest), Ok(key))),
                Err(StoreError::Corrupt(corrupt)) => Ok((Place(row.contest), Err(corrupt))),
                Err(error) => Err(error),
            })
            .collect()
    }

    async fn count_candidates(&self) -> Result<Vec<(Kind, Status, u64)>> {
        let rows: Vec<(i32, i32, i64)> = self.reader().await?.rows(Statement::new(COUNTS)).await?;
        // A newer version may have written what this one does not know: leave it out.
        let known = rows.into_iter().filter_map(|(kind, status, count)| {
            let kind = Kind::from_number(kind)?;
            Some((kind, codes::parse_status(status)?, count.unsigned_abs()))
        });
        Ok(known.collect())
    }
}

/// Counts those of each namespace in the order of the index of lists: sorting them all would take SQLite three times as long.
pub(crate) const COUNTS: &str = "SELECT kind, status, CAST(sum(n) AS BIGINT) FROM \
     (SELECT kind, status, count(*) AS n FROM candidates GROUP BY namespace, kind, status) AS counted GROUP BY kind, status";

/// The candidates of a filter after a position, newest first.
///
/// Without a key or user: the newest of each kind and status, each found in order by one index, merged. Otherwise: those of the
/// few contests that have the key or are the user's.
pub(crate) fn listed(filter: &CandidateFilter, after: Option<CandidatePosition>, limit: u32) -> Statement {
    let namespace = filter.namespace.as_str();
    let limit = i64::from(limit);
    let mut query = Statement::new(CANDIDATE_COLUMNS);
    if filter.keys.is_empty() && filter.user.is_none() {
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
    } else {
        // Start from the contests; SQLite would not choose that plan by itself.
        query.push(
            " FROM contests AS c CROSS JOIN candidates AS k WHERE k.contest = c.contest AND c.namespace = ",
        );
        query.push_bind(namespace);
        if let Some(user) = &filter.user {
            query
                .push(" AND c.user_id <> '' AND c.user_id = ")
                .push_bind(user.as_str());
        }
        if !filter.keys.is_empty() {
            query.push(" AND ");
            push_any_key(&mut query, &filter.keys);
        }
        push_numbers(
            &mut query,
            " AND c.kind IN (",
            filter.kinds.iter().map(|kind| kind.number()),
        );
        let statuses = filter.statuses.iter().map(|status| codes::status(*status));
        push_numbers(&mut query, " AND k.status IN (", statuses);
        push_after(&mut query, "k", after);
    }
    query
        .push(" ORDER BY k.created_at DESC, k.candidate_id DESC LIMIT ")
        .push_bind(limit);
    query
}

pub(crate) fn push_numbers(
    query: &mut Statement,
    condition: &str,
    numbers: impl ExactSizeIterator<Item = i32>,
) {
    if numbers.len() > 0 {
        query.push(condition);
        let mut list = query.separated(", ");
        for number in numbers {
            list.push_bind(number);
        }
        query.push(")");
    }
}

pub(crate) fn push_after(query: &mut Statement, table: &str, after: Option<CandidatePosition>) {
    if let Some(after) = after {
        query.push(format_args!(
            " AND ({table}.created_at, {table}.candidate_id) < ("
        ));
        query
            .push_bind(after.created_at)
            .push(", ")
            .push_bind(bytes(after.id.0))
            .push(")");
    }
}

/// Appends the condition that contest `c` has one of these keys.
pub(crate) fn push_any_key(query: &mut Statement, keys: &[Key]) {
    query.push("c.key_hash IN (");
    let mut hashes = query.separated(", ");
    for key in keys {
        hashes.push_bind(key_hash(key.as_str()));
    }
    query.push(") AND c.key IN (");
    let mut texts = query.separated(", ");
    for key in keys {
        texts.push_bind(key.as_str().to_owned());
    }
    query.push(")");
}
