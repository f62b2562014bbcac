//! The unit of work in SQL: what is locked and read before a decision. Written once, compiled for each database.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{
    AcceptOrder, Ballot, CandidateId, ContestId, ContestState, EventId, FeedbackId, Policy, ResourceKey,
    Revision,
};
use emend_store::{CorruptRow, StoreError};
use jiff::Timestamp;
use sqlx::QueryBuilder;
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

use super::{Backend, Db, FOR_UPDATE, Transaction, lock_feedback, notify, writes_sql};
use crate::store::{
    batches::{batches, batches_up_to},
    conflict,
    decisions::{
        DecisionWrites, LockedContest, LockedHead, PolicyKey, PolicyWrite, Seen, StoredContest, StoredPolicy,
        Tx, VoteWrites, WrittenChange,
    },
    erasures::Erasures,
    rows::{
        BallotRow, CandidateRow, ContestRow, CountRow, KeyRow, KnownBallotRow, PolicyRow, ResourceRow,
        SeenRow, WrittenChangeRow,
    },
};

#[cfg(test)]
#[path = "contract/decisions.rs"]
mod contract;
#[cfg(test)]
#[path = "contract/damage.rs"]
mod damage;

type Result<T> = std::result::Result<T, StoreError>;

/// One unit of work: a transaction, rolled back when it is dropped.
pub(super) struct Work {
    pub(super) transaction: Transaction,
    /// The database's keys of the contests that are locked, and of their candidates.
    pub(super) keys: Keys,
}

/// By which keys rows refer to what was read under this unit of work's locks.
#[derive(Debug, Default)]
pub(super) struct Keys {
    contests: HashMap<ContestId, i64>,
    candidates: HashMap<CandidateId, i64>,
}

impl Keys {
    /// The key of a contest, which must be locked.
    pub(super) fn contest(&self, id: ContestId) -> Result<i64> {
        let key = self.contests.get(&id).copied();
        key.ok_or_else(|| CorruptRow::new("contests", "contest_id", id, "written without its lock").into())
    }

    /// The key of a candidate, which must have been read or written.
    pub(super) fn candidate(&self, id: CandidateId) -> Result<i64> {
        let key = self.candidates.get(&id).copied();
        key.ok_or_else(|| CorruptRow::new("candidates", "candidate_id", id, "named and not stored").into())
    }

    /// Notes the key of a candidate.
    pub(super) fn note_candidate(&mut self, id: CandidateId, key: i64) {
        self.candidates.insert(id, key);
    }
}

impl Work {
    pub(super) async fn begin(store: &Backend) -> Result<Self> {
        Ok(Self {
            transaction: store.begin_write().await?,
            keys: Keys::default(),
        })
    }

    pub(super) async fn rows<R>(&mut self, mut query: QueryBuilder<Db>) -> Result<Vec<R>>
    where
        R: for<'r> sqlx::FromRow<'r, <Db as sqlx::Database>::Row> + Send + Unpin,
    {
        Ok(query.build_query_as().fetch_all(&mut *self.transaction).await?)
    }
}

/// Appends `($1, $2, …)`; for no items, a list that matches nothing.
pub(super) fn push_list(query: &mut QueryBuilder<Db>, ids: impl IntoIterator<Item = Uuid>) {
    let mut ids = ids.into_iter().peekable();
    if ids.peek().is_none() {
        query.push("(NULL)");
        return;
    }
    query.push("(");
    let mut list = query.separated(", ");
    for id in ids {
        list.push_bind(bytes(id));
    }
    query.push(")");
}

/// Appends `($1, $2, …)` for keys within the database; for none, a list that matches nothing.
pub(super) fn push_keys(query: &mut QueryBuilder<Db>, keys: &[i64]) {
    if keys.is_empty() {
        query.push("(NULL)");
        return;
    }
    query.push("(");
    let mut list = query.separated(", ");
    for key in keys {
        list.push_bind(*key);
    }
    query.push(")");
}

/// An id as it is stored.
pub(super) fn bytes(id: Uuid) -> Vec<u8> {
    id.as_bytes().to_vec()
}

/// Appends `((a = $1 AND b = $2) OR …)` for namespaces and kinds.
fn push_policy_keys(query: &mut QueryBuilder<Db>, keys: &[PolicyKey]) {
    query.push("(");
    for (index, key) in keys.iter().enumerate() {
        if index > 0 {
            query.push(" OR ");
        }
        query.push("(namespace = ").push_bind(key.namespace.as_str());
        query.push(" AND kind = ").push_bind(key.kind.number());
        query.push(")");
    }
    query.push(")");
}

/// The hash by which contests are looked up by key alone.
pub(super) fn key_hash(key: &str) -> i64 {
    xxh3_64(key.as_bytes()).cast_signed()
}

const POLICY: &str = "SELECT namespace, kind, version, risk, threshold, counting, half_life, max_derived_voters, \
     max_resources, max_value_bytes, max_counted_feedback, updated_at FROM policies WHERE ";
const POLICY_IN_FORCE: &str = " AND version = (SELECT max(newer.version) FROM policies AS newer \
     WHERE newer.namespace = policies.namespace AND newer.kind = policies.kind)";

/// The query for the policies in force.
pub(super) fn policies_in_force(keys: &[PolicyKey]) -> QueryBuilder<Db> {
    let mut query = QueryBuilder::new(POLICY);
    push_policy_keys(&mut query, keys);
    query.push(POLICY_IN_FORCE);
    query
}

/// The stored policy, or the default if it was never changed.
pub(super) fn or_default(rows: &[PolicyRow], key: &PolicyKey) -> Result<StoredPolicy> {
    match rows.first() {
        Some(row) => Ok(row.parse()?.1),
        None => Ok(StoredPolicy {
            policy: Policy::default_for(key.kind),
            updated_at: None,
        }),
    }
}

#[async_trait]
impl Tx for Work {
    async fn lock_feedback(&mut self, ids: &[FeedbackId]) -> Result<()> {
        lock_feedback(&mut self.transaction, ids).await
    }

    async fn seen(&mut self, events: &[EventId], feedback: &[FeedbackId]) -> Result<Seen> {
        let mut seen = Seen::default();
        for (events, feedback) in pair_up(events, feedback) {
            let mut query =
                QueryBuilder::new("SELECT 1 AS what, event_id AS id, outcome FROM inbox WHERE event_id IN ");
            push_list(&mut query, events.iter().map(|id| id.0));
            query.push(" UNION ALL SELECT 2, feedback_id, NULL FROM retraction_marks WHERE feedback_id IN ");
            push_list(&mut query, feedback.iter().map(|id| id.0));
            query.push(" UNION ALL SELECT 3, feedback_id, NULL FROM redaction_marks WHERE feedback_id IN ");
            push_list(&mut query, feedback.iter().map(|id| id.0));
            for row in self.rows::<SeenRow>(query).await? {
                match row.what {
                    1 => {
                        seen.outcomes.insert(row.event()?, row.outcome());
                    }
                    2 => seen.retracted.push(row.feedback()?),
                    _ => seen.redacted.push(row.feedback()?),
                }
            }
            let mut query = QueryBuilder::new(
                "SELECT b.feedback_id, b.contest, c.contest_id, b.candidate_id, b.accept_order, b.voter, b.identified, b.caller, \
                 b.received_at, b.retracted, c.namespace, c.kind, c.key, c.qualifier, c.user_id \
                 FROM ballots AS b JOIN contests AS c ON c.contest = b.contest WHERE b.feedback_id IN ",
            );
            push_list(&mut query, feedback.iter().map(|id| id.0));
            for row in self.rows::<KnownBallotRow>(query).await? {
                let known = row.parse()?;
                seen.ballots.insert(known.ballot.feedback_id, known);
            }
        }
        Ok(seen)
    }

    async fn policies(&mut self, keys: &[PolicyKey]) -> Result<HashMap<PolicyKey, Policy>> {
        let mut policies: HashMap<_, _> = keys
            .iter()
            .map(|key| (key.clone(), Policy::default_for(key.kind)))
            .collect();
        for keys in batches_up_to(keys, 16) {
            for row in self.rows::<PolicyRow>(policies_in_force(keys)).await? {
                let (key, stored) = row.parse()?;
                policies.insert(key, stored.policy);
            }
        }
        Ok(policies)
    }

    async fn resource_counts(&mut self, keys: &[PolicyKey]) -> Result<HashMap<PolicyKey, u64>> {
        let mut counts: HashMap<_, _> = keys.iter().map(|key| (key.clone(), 0)).collect();
        for keys in batches_up_to(keys, 16) {
            let mut query = QueryBuilder::new("SELECT namespace, kind, count FROM resource_counts WHERE ");
            push_policy_keys(&mut query, keys);
            for row in self.rows::<CountRow>(query).await? {
                let (key, count) = row.parse()?;
                counts.insert(key, count);
            }
        }
        Ok(counts)
    }

    async fn scopes_in_use(&mut self) -> Result<u64> {
        let query = QueryBuilder::new("SELECT COUNT(*) FROM resource_counts WHERE count > 0");
        let counted: Vec<(i64,)> = self.rows(query).await?;
        Ok(counted
            .first()
            .map_or(0, |(count,)| u64::try_from(*count).unwrap_or(0)))
    }

    async fn create_contests(&mut self, keys: &[&ResourceKey], now: Timestamp) -> Result<()> {
        for keys in batches(keys) {
            let mut query = insert_contests(keys, now);
            query.build().execute(&mut *self.transaction).await?;
        }
        Ok(())
    }

    async fn lock_contests(&mut self, keys: &[&ResourceKey]) -> Result<Vec<LockedContest>> {
        let mut locked = Vec::with_capacity(keys.len());
        for keys in batches(keys) {
            let mut query = QueryBuilder::new(
                "SELECT contest, contest_id, namespace, kind, key, qualifier, user_id, pinned, highest_accept_order, \
                 policy_version, pending, (SELECT now FROM database_clock) AS locked_at FROM contests \
                 WHERE contest_id IN ",
            );
            push_list(&mut query, keys.iter().map(|key| key.contest_id().0));
            query.push(" ORDER BY contest_id").push(FOR_UPDATE);
            for row in self.rows::<ContestRow>(query).await? {
                let parsed = row.parse()?;
                self.keys.contests.insert(parsed.key.contest_id(), row.contest);
                locked.push(parsed);
            }
        }
        for (asked, found) in keys.iter().zip(&locked) {
            if **asked != found.key {
                return Err(CorruptRow::new(
                    "contests",
                    "key",
                    asked.contest_id(),
                    "another key than the one that was asked for",
                )
                .into());
            }
        }
        if locked.len() == keys.len() {
            Ok(locked)
        } else {
            // Nobody deletes a contest but a worker that finds it empty.
            Err(conflict("a contest was deleted before it could be locked"))
        }
    }

    async fn load_contests(&mut self, rows: Vec<LockedContest>) -> Result<Vec<StoredContest>> {
        let ids: Vec<ContestId> = rows.iter().map(|row| row.key.contest_id()).collect();
        let mut contests: HashMap<ContestId, StoredContest> = rows
            .into_iter()
            .map(|row| (row.key.contest_id(), empty(row)))
            .collect();
        for ids in batches(&ids) {
            let keys = ids.iter().map(|id| self.keys.contest(*id));
            let keys: Vec<i64> = keys.collect::<Result<_>>()?;
            let of: HashMap<i64, ContestId> = keys.iter().copied().zip(ids.iter().copied()).collect();
            let mut query = QueryBuilder::new(
                "SELECT contest, candidate, candidate_id, value, status, status_reason, origin, edited_from, hold, \
                 decision_reason, decided_caller, decided_for, occurrences, reporters, net, risk, threshold, \
                 policy_version, applied_threshold, applied_revision, created_at, updated_at, transitions, version \
                 FROM candidates WHERE contest IN ",
            );
            push_keys(&mut query, &keys);
            query.push(" ORDER BY created_at, candidate_id");
            for row in self.rows::<CandidateRow>(query).await? {
                let (candidate, kept) = row.parse()?;
                self.keys.candidates.insert(candidate.id, row.candidate);
                if let Some(contest) = of.get(&row.contest).and_then(|id| contests.get_mut(id)) {
                    contest.kept.insert(candidate.id, kept);
                    contest.state.candidates.push(candidate);
                }
            }
            let mut query = QueryBuilder::new(
                "SELECT contest, revision, value, committed_at FROM resources WHERE contest IN ",
            );
            push_keys(&mut query, &keys);
            for row in self.rows::<ResourceRow>(query).await? {
                let resource = row.parse()?;
                if let Some(contest) = of.get(&row.contest).and_then(|id| contests.get_mut(id)) {
                    contest.state.resource = Some(resource);
                    contest.committed_at = row.committed_at;
                }
            }
        }
        Ok(ids.iter().filter_map(|id| contests.remove(id)).collect())
    }

    async fn newest_ballots(
        &mut self,
        contests: &[ContestId],
        limit: u32,
    ) -> Result<HashMap<ContestId, Vec<Ballot>>> {
        let mut ballots: HashMap<ContestId, Vec<Ballot>> = HashMap::new();
        for contests in batches_up_to(contests, 16) {
            let keys = contests.iter().map(|id| self.keys.contest(*id));
            let keys: Vec<i64> = keys.collect::<Result<_>>()?;
            let of: HashMap<i64, ContestId> = keys.iter().copied().zip(contests.iter().copied()).collect();
            for row in self.rows::<BallotRow>(newest_ballots(&keys, limit)).await? {
                if let Some(contest) = of.get(&row.contest) {
                    ballots.entry(*contest).or_default().push(row.parse()?);
                }
            }
        }
        Ok(ballots)
    }

    async fn contest_of(&mut self, candidate: CandidateId) -> Result<Option<ResourceKey>> {
        let mut query = QueryBuilder::new(
            "SELECT c.contest_id, c.namespace, c.kind, c.key, c.qualifier, c.user_id FROM candidates AS k \
             JOIN contests AS c ON c.contest = k.contest WHERE k.candidate_id = ",
        );
        query.push_bind(bytes(candidate.0));
        let rows = self.rows::<KeyRow>(query).await?;
        rows.first().map(|row| row.parse("contests")).transpose()
    }

    async fn changes_of(&mut self, revision: Revision) -> Result<Vec<WrittenChange>> {
        let mut query = QueryBuilder::new(
            "SELECT c.contest_id, c.namespace, c.kind, c.key, c.qualifier, c.user_id, h.before_value, \
             (SELECT max(newer.revision) FROM changes AS newer WHERE newer.contest = h.contest) AS newest, \
             (SELECT r.cause FROM revisions AS r WHERE r.revision = h.revision) AS cause \
             FROM changes AS h JOIN contests AS c ON c.contest = h.contest WHERE h.revision = ",
        );
        query.push_bind(revision.0).push(" ORDER BY h.ordinal");
        let rows = self.rows::<WrittenChangeRow>(query).await?;
        rows.into_iter().map(WrittenChangeRow::parse).collect()
    }

    async fn save_votes(&mut self, writes: &VoteWrites) -> Result<()> {
        writes_sql::save_votes(self, writes).await
    }

    async fn advance_head(&mut self, revisions: usize) -> Result<LockedHead> {
        let by = i64::try_from(revisions).unwrap_or(i64::MAX);
        let mut query = QueryBuilder::<Db>::new("UPDATE head SET revision = revision + ");
        query.push_bind(by);
        query.push(" WHERE id = 1 RETURNING revision, (SELECT now FROM database_clock)");
        let (revision, now): (i64, i64) = query
            .build_query_as()
            .fetch_optional(&mut *self.transaction)
            .await?
            .ok_or_else(|| CorruptRow::new("head", "id", 1, "the log has no head"))?;
        if revisions > 0 {
            notify(&mut self.transaction).await?;
        }
        Ok(LockedHead {
            revision: Revision(revision),
            now,
        })
    }

    async fn save_decisions(&mut self, writes: &DecisionWrites) -> Result<HashMap<PolicyKey, u64>> {
        writes_sql::save_decisions(self, writes).await
    }

    async fn stored_policy(&mut self, key: &PolicyKey) -> Result<StoredPolicy> {
        let rows = self.rows(policies_in_force(std::slice::from_ref(key))).await?;
        or_default(&rows, key)
    }

    async fn save_policy(&mut self, policy: &PolicyWrite) -> Result<()> {
        writes_sql::save_policy(&mut self.transaction, policy).await
    }

    fn erasures(&mut self) -> Option<&mut dyn Erasures> {
        Some(self)
    }

    async fn commit(self: Box<Self>) -> Result<()> {
        Ok(self.transaction.commit().await?)
    }
}

/// Batches of both lists in pairs; when one list runs out, its batches are empty.
fn pair_up<'a>(
    events: &'a [EventId],
    feedback: &'a [FeedbackId],
) -> impl Iterator<Item = (&'a [EventId], &'a [FeedbackId])> {
    let mut feedback = batches(feedback);
    let mut events = batches(events);
    std::iter::from_fn(move || match (events.next(), feedback.next()) {
        (None, None) => None,
        (events, feedback) => Some((events.unwrap_or_default(), feedback.unwrap_or_default())),
    })
}

fn empty(row: LockedContest) -> StoredContest {
    let mut state = ContestState::new(row.key.clone());
    state.pinned = row.pinned;
    state.highest_accept_order = AcceptOrder(row.highest_accept_order.0);
    StoredContest {
        row,
        state,
        kept: HashMap::new(),
        committed_at: 0,
    }
}

/// The statement that creates rows for contests that have none.
pub(super) fn insert_contests(keys: &[&ResourceKey], now: Timestamp) -> QueryBuilder<Db> {
    let mut query = QueryBuilder::new(
        "INSERT INTO contests (contest_id, namespace, kind, key, key_hash, qualifier, user_id, pinned, \
         highest_accept_order, policy_version, pending, created_at) ",
    );
    query.push_values(keys, |mut row, key| {
        row.push_bind(bytes(key.contest_id().0))
            .push_bind(key.namespace.as_str())
            .push_bind(key.kind.number())
            .push_bind(key.key.as_str())
            .push_bind(key_hash(key.key.as_str()))
            .push_bind(key.qualifier.as_str())
            .push_bind(key.user_id())
            .push_bind(0_i32)
            .push_bind(0_i64)
            .push_bind(0_i64)
            .push_bind(0_i32)
            .push_bind(now.as_microsecond());
    });
    query.push(" ON CONFLICT (contest_id) DO NOTHING");
    query
}

/// The newest counted ballots of each contest: one bounded read per contest, however many ballots it has.
pub(super) fn newest_ballots(contests: &[i64], limit: u32) -> QueryBuilder<Db> {
    let mut query = QueryBuilder::new("");
    for (index, contest) in contests.iter().enumerate() {
        if index > 0 {
            query.push(" UNION ALL ");
        }
        query.push(
            "SELECT * FROM (SELECT feedback_id, contest, candidate_id, accept_order, voter, identified, caller, \
             received_at FROM ballots WHERE contest = ",
        );
        query.push_bind(*contest);
        query.push(" AND retracted = 0 ORDER BY accept_order DESC, feedback_id LIMIT ");
        query.push_bind(i64::from(limit));
        query.push(format_args!(") AS contest_{index}"));
    }
    query
}
