//! Contests in SQL, as reviewers and re-evaluation read them.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{Ballot, CandidateId, Cause, ContestId, FeedbackId, Key, Kind, Namespace, Status, key_hash};
use emend_store::StoreError;
use emend_store::sql::Statement;
use jiff::{SignedDuration, Timestamp};

use crate::SqlStore;
use crate::contests::sql::newest_ballots;
use crate::contests::undo_sql;
use crate::database::bytes;
use crate::database::push_candidates;
use crate::database::push_contests;
use crate::work::only;
use crate::{
    batches::batches,
    codes,
    contests::{
        Asked, CandidateFilter, CandidateOrder, CandidatePosition, CandidateRecord, ContestStore,
        FeedbackRecord, Involvement, Listing, Place, ToReevaluate, TransitionWrite,
        rows::{BallotRow, CandidateRecordRow, FeedbackRow, TransitionRow},
    },
    policies::PolicyKey,
    rows::{At, CountRow, PlacedKeyRow, StoredId},
};

type Result<T> = std::result::Result<T, StoreError>;

/// How little the support of a candidate `k` differs from that of its strongest rival: as
/// [`controversy`](super::controversy).
const CONTROVERSY: &str = "CASE WHEN k.ruling_order = 0 AND k.proposal_version = 0 AND k.net < k.reporters \
     THEN abs(k.net) ELSE 1000000000 END";

/// The transitions `t` that people made by deciding, putting, deleting, reverting or ruling, as in the index.
const BY_PEOPLE: &str = "t.cause IN (2, 3, 5, 9)";

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
        listing: &Listing,
        after: Option<CandidatePosition>,
        limit: u32,
    ) -> Result<Vec<CandidateRecord>> {
        let query = listed(filter, listing, after, limit);
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

    async fn forget_undoable_after(&self, age: SignedDuration) -> Result<u64> {
        undo_sql::forget_after(self, age).await
    }

    async fn waiting(&self, namespace: &Namespace) -> Result<Vec<(Kind, u64, Timestamp)>> {
        let rows: Vec<(i32, i64, i64)> = self.rows(waiting_in(namespace)).await?;
        let mut waiting = Vec::with_capacity(rows.len());
        for (number, count, oldest) in rows {
            let at = At {
                table: "waiting_candidates",
                id: &number,
            };
            // A newer version may have written what this one does not know.
            if let Some(kind) = Kind::from_number(number) {
                waiting.push((kind, count.unsigned_abs(), at.time("created_at", oldest)?));
            }
        }
        Ok(waiting)
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

/// What waits in a namespace, by kind.
pub(crate) fn waiting_in(namespace: &Namespace) -> Statement {
    let mut query = Statement::new(
        "SELECT kind, count(*) AS count, min(created_at) AS oldest FROM waiting_candidates WHERE namespace = ",
    );
    query
        .push_bind(namespace.as_str())
        .push(" GROUP BY kind ORDER BY kind");
    query
}

/// The columns by which a list is ordered, of a candidate `n` in its index and of a candidate `k`, and the direction.
struct Ordered {
    table: &'static str,
    listed: &'static str,
    shown: &'static str,
    descends: bool,
}

impl Ordered {
    fn by(order: CandidateOrder) -> Self {
        let (table, listed, shown) = match order {
            CandidateOrder::NewestFirst | CandidateOrder::OldestFirst => {
                ("candidates", "n.created_at", "k.created_at")
            }
            CandidateOrder::MostVotes => ("waiting_candidates", "n.reporters", "k.reporters"),
            CandidateOrder::MostControversial => ("waiting_candidates", "n.controversy", CONTROVERSY),
        };
        Self {
            table,
            listed,
            shown,
            descends: matches!(order, CandidateOrder::NewestFirst | CandidateOrder::MostVotes),
        }
    }

    /// Appends the condition that a candidate stands after a position.
    fn push_after(&self, query: &mut Statement, (place, id): (&str, &str), after: Option<CandidatePosition>) {
        if let Some(after) = after {
            let follows = if self.descends { "<" } else { ">" };
            query.push(format_args!(" AND ({place}, {id}) {follows} ("));
            query
                .push_bind(after.place)
                .push(", ")
                .push_bind(bytes(after.id.0))
                .push(")");
        }
    }

    /// Appends the order of a list.
    fn push_order(&self, query: &mut Statement, (place, id): (&str, &str), limit: i64) {
        let direction = if self.descends { "DESC" } else { "ASC" };
        query.push(format_args!(
            " ORDER BY {place} {direction}, {id} {direction} LIMIT "
        ));
        query.push_bind(limit);
    }
}

fn push_period(query: &mut Statement, table: &str, listing: &Listing) {
    for (comparison, time) in [(">=", listing.created_after), ("<", listing.created_before)] {
        if let Some(time) = time {
            query.push(format_args!(" AND {table}.created_at {comparison} "));
            query.push_bind(time.as_microsecond());
        }
    }
}

/// The candidates of a filter after a position, in the order asked for.
///
/// What reviewers did something about, which is little: those first. Without that, a key or a user: the first of each kind and status, each found in order by one index, merged. Otherwise: those of the
/// few contests that have the key or are the user's.
pub(crate) fn listed(
    filter: &CandidateFilter,
    listing: &Listing,
    after: Option<CandidatePosition>,
    limit: u32,
) -> Statement {
    let limit = i64::from(limit);
    let ordered = Ordered::by(listing.order);
    let mut query = Statement::new(CANDIDATE_COLUMNS);
    let is_of_contests = !filter.keys.is_empty() || filter.user.is_some() || !filter.reviewed.is_any();
    if is_of_contests {
        push_few(&mut query, &ordered, filter, listing, after);
    } else {
        push_lists(&mut query, &ordered, filter, listing, (after, limit));
    }
    ordered.push_order(&mut query, (ordered.shown, "k.candidate_id"), limit);
    query
}

/// Appends the first of each kind and status, merged.
fn push_lists(
    query: &mut Statement,
    ordered: &Ordered,
    filter: &CandidateFilter,
    listing: &Listing,
    (after, limit): (Option<CandidatePosition>, i64),
) {
    query.push(" FROM (");
    let kinds = if filter.kinds.is_empty() {
        &Kind::ALL[..]
    } else {
        &filter.kinds[..]
    };
    let all = &codes::STATUSES[..];
    let statuses = if filter.statuses.is_empty() {
        all
    } else {
        &filter.statuses[..]
    };
    // What waits has a table of its own, without a status.
    let waits = ordered.table == "waiting_candidates";
    let statuses = if waits { &all[..1] } else { statuses };
    let lists = kinds
        .iter()
        .flat_map(|kind| statuses.iter().map(move |status| (*kind, *status)));
    for (index, (kind, status)) in lists.enumerate() {
        let union = if index > 0 { " UNION ALL " } else { "" };
        query.push(union).push(format_args!(
            "SELECT * FROM (SELECT n.candidate, {} AS place, n.candidate_id FROM {} AS n WHERE n.namespace = ",
            ordered.listed, ordered.table
        ));
        query.push_bind(filter.namespace.as_str());
        query.push(" AND n.kind = ").push_bind(kind.number());
        if !waits {
            query.push(" AND n.status = ").push_bind(codes::status(status));
        }
        push_period(query, "n", listing);
        let columns = (ordered.listed, "n.candidate_id");
        ordered.push_after(query, columns, after);
        ordered.push_order(query, columns, limit);
        query.push(format_args!(") AS list_{index}"));
    }
    ordered.push_order(query, ("place", "candidate_id"), limit);
    query.push(
        ") AS newest CROSS JOIN candidates AS k CROSS JOIN contests AS c WHERE k.candidate = newest.candidate \
         AND c.contest = k.contest",
    );
}

/// Appends the candidates of the few contests that the filter names, or that reviewers did something about.
fn push_few(
    query: &mut Statement,
    ordered: &Ordered,
    filter: &CandidateFilter,
    listing: &Listing,
    after: Option<CandidatePosition>,
) {
    let namespace = filter.namespace.as_str();
    // Start from the few; SQLite would not choose that plan by itself.
    if filter.reviewed.is_any() {
        query.push(" FROM contests AS c CROSS JOIN candidates AS k WHERE k.contest = c.contest");
    } else {
        push_reviewed(query, namespace, &filter.reviewed);
    }
    query.push(" AND c.namespace = ").push_bind(namespace);
    if let Some(user) = &filter.user {
        query
            .push(" AND c.user_id <> '' AND c.user_id = ")
            .push_bind(user.as_str());
    }
    if !filter.keys.is_empty() {
        query.push(" AND ");
        push_any_key(query, &filter.keys);
    }
    push_numbers(
        query,
        " AND c.kind IN (",
        filter.kinds.iter().map(|kind| kind.number()),
    );
    let statuses = filter.statuses.iter().map(|status| codes::status(*status));
    push_numbers(query, " AND k.status IN (", statuses);
    push_period(query, "k", listing);
    ordered.push_after(query, (ordered.shown, "k.candidate_id"), after);
}

/// Appends the candidates `k` that reviewers did something about, and their contests `c`.
fn push_reviewed(query: &mut Statement, namespace: &str, reviewed: &Involvement) {
    query.push(" FROM (");
    let mut lists = 0;
    let mut next = |query: &mut Statement| {
        query.push(if lists > 0 { " INTERSECT " } else { "" });
        lists += 1;
    };
    if let Some(asked) = &reviewed.asked {
        next(query);
        push_asked(query, namespace, asked);
    }
    if let Some((name, since)) = &reviewed.decided {
        next(query);
        push_decided(query, namespace, (name.as_str(), *since));
    }
    if reviewed.approved_once {
        next(query);
        // A literal, as in the index.
        query.push("SELECT s.candidate FROM candidates AS s WHERE s.status_reason = 'SECOND_REVIEWER' AND s.namespace = ");
        query.push_bind(namespace);
    }
    query.push(
        ") AS found CROSS JOIN candidates AS k CROSS JOIN contests AS c WHERE k.candidate = found.candidate \
         AND c.contest = k.contest",
    );
    if reviewed.asked.is_some() || reviewed.approved_once {
        query.push(format_args!(
            " AND k.status = {}",
            codes::status(Status::AwaitingReview)
        ));
    }
}

/// Appends what a reviewer decided since a time and nobody changed since, what they approved as the first of two, whatever the
/// second did, and what they wrote about.
fn push_decided(query: &mut Statement, namespace: &str, (name, since): (&str, Timestamp)) {
    // Not grouped by the column itself: SQLite would read all of the table in its order. Of each candidate only the last change
    // counts: what others decided since is theirs. A first approval stands until it is undone itself.
    query.push(format_args!(
        "SELECT involved.candidate FROM (SELECT t.candidate + 0 AS candidate FROM transitions AS t \
         CROSS JOIN candidates AS d WHERE {BY_PEOPLE} AND d.candidate = t.candidate \
         AND (d.transitions = t.sequence + 1 OR (t.cause = {review} AND t.to_status = {waits} AND NOT EXISTS \
         (SELECT 1 FROM transitions AS u WHERE u.candidate = t.candidate AND u.sequence = t.sequence + 1 AND u.cause = {undo}))) \
         AND t.from_status <> 0 AND t.to_status <> {superseded} AND (t.cause <> {ruling} OR t.to_status = {applied}) \
         AND t.made_at >= ",
        review = Cause::Review.number(),
        waits = codes::status(Status::AwaitingReview),
        undo = Cause::Undo.number(),
        superseded = codes::status(Status::Superseded),
        ruling = Cause::Ruling.number(),
        applied = codes::status(Status::Applied)
    ));
    query.push_bind(since.as_microsecond());
    query.push(" AND (t.caller = ").push_bind(name.to_owned());
    query.push(" OR t.on_behalf_of = ").push_bind(name.to_owned());
    // Who sent the correction that is a ruling stands with the correction alone.
    query.push(format_args!(
        " OR (t.cause = {} AND EXISTS (SELECT 1 FROM ballots AS b CROSS JOIN ballot_details AS r \
         WHERE b.contest = d.contest AND b.candidate_id = d.candidate_id AND r.feedback_id = b.feedback_id \
         AND r.reporter_id = ",
        Cause::Ruling.number()
    ));
    query.push_bind(name.to_owned());
    query.push("))) GROUP BY 1 UNION SELECT a.candidate FROM review_comments AS a WHERE a.namespace = ");
    query.push_bind(namespace.to_owned());
    query
        .push(" AND a.written_at >= ")
        .push_bind(since.as_microsecond());
    query.push(" AND (a.caller = ").push_bind(name.to_owned());
    query.push(" OR a.on_behalf_of = ").push_bind(name.to_owned());
    query.push(")) AS involved");
}

fn push_asked(query: &mut Statement, namespace: &str, Asked { of, by }: &Asked) {
    query.push("SELECT a.candidate FROM review_comments AS a WHERE a.is_open = 1 AND a.namespace = ");
    query.push_bind(namespace);
    if !of.is_empty() {
        query.push(" AND a.asked IN ('', ").push_bind(of.as_str());
        query.push(") AND a.caller <> ").push_bind(of.as_str());
        query.push(" AND a.on_behalf_of <> ").push_bind(of.as_str());
    }
    if !by.is_empty() {
        query.push(" AND (a.caller = ").push_bind(by.as_str());
        query
            .push(" OR a.on_behalf_of = ")
            .push_bind(by.as_str())
            .push(")");
    }
    query.push(" GROUP BY a.candidate");
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
            .push_bind(after.place)
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
