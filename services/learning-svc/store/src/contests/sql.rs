//! Contests in SQL: what is locked and read before a decision, and what is written after it. Written once, compiled for
//! each database.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{
    AcceptOrder, Ballot, Candidate, CandidateId, ContestId, ContestState, Kind, ResourceKey, Status, key_hash,
};
use emend_store::sql::Statement;
use emend_store::{CorruptRow, StoreError};
use jiff::Timestamp;
use uuid::Uuid;

use crate::contests::lists_sql::push_numbers;
use crate::contests::undo_sql;
use crate::contests::waiting_sql;
use crate::database::bytes;
use crate::database::locks_rows;
use crate::database::push_candidates;
use crate::database::push_contests;
use crate::work::Work;
use crate::work::only;
use crate::{
    batches::{batches, batches_up_to},
    codes, conflict,
    contests::{
        CandidateWrite, ContestRepository, ContestWrite, KeptCandidate, LockedContest, Named, StoredContest,
        TransitionWrite, UndoableRecord, VoteWrites,
        rows::{BallotRow, CandidateRow, ContestRow, ResourceRow},
    },
    integers::{saturated, small},
    queue::{self, QueueCount},
    rows::{KeyRow, optional_id},
};

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl ContestRepository for Work {
    async fn create(&mut self, keys: &[&ResourceKey], now: Timestamp) -> Result<()> {
        let unknown = keys.iter().filter(|key| !self.keys.is_known(key.contest_id()));
        let rows: Vec<ContestWrite> = unknown.map(|key| ContestWrite::first((*key).clone())).collect();
        let new = if locks_rows(self.dialect()) {
            let rows: Vec<_> = rows.iter().map(|row| (row, now)).collect();
            insert_contests(self, &rows).await?
        } else {
            rows.iter().map(|row| row.key.contest_id()).collect()
        };
        self.keys.new.extend(new.into_iter().map(|id| (id, now)));
        Ok(())
    }

    async fn lock(&mut self, keys: &[&ResourceKey]) -> Result<Vec<LockedContest>> {
        let mut found: HashMap<ContestId, LockedContest> = HashMap::with_capacity(keys.len());
        // What was inserted here is locked.
        let locks_rows = locks_rows(self.dialect());
        let asked = keys.iter().copied();
        let asked: Vec<&ResourceKey> = asked
            .filter(|key| !locks_rows || !self.keys.is_new(key.contest_id()))
            .collect();
        for keys in batches(&asked) {
            let mut query = Statement::new(
                "SELECT contest, contest_id, namespace, kind, key, qualifier, user_id, pinned, highest_accept_order, \
                 policy_version, pending, target_known, current_version, last_version, decisions, (SELECT now FROM database_clock) AS locked_at FROM contests \
                 WHERE ",
            );
            push_contests(&mut query, keys.iter().map(|key| key.contest_id()));
            query.push(" ORDER BY contest_id").for_update();
            for row in self.rows::<ContestRow>(query).await? {
                let parsed = row.parse()?;
                let id = parsed.key.contest_id();
                self.keys.note_contest(id, row.contest);
                self.keys.new.remove(&id);
                found.insert(id, parsed);
            }
        }
        let mut locked = Vec::with_capacity(keys.len());
        let mut now = None;
        for key in keys {
            let id = key.contest_id();
            match found.remove(&id) {
                Some(found) => locked.push(found),
                None if self.keys.is_new(id) => {
                    let now = match now {
                        Some(now) => now,
                        None => *now.insert(self.database_time().await?),
                    };
                    locked.push(LockedContest::new((*key).clone(), now, locks_rows));
                }
                // Nobody deletes a contest but a worker that finds it empty.
                None => return Err(conflict("a contest was deleted before it could be locked")),
            }
        }
        Ok(locked)
    }

    async fn forget_new(&mut self, contests: &[ContestId]) -> Result<()> {
        let new = contests.iter().filter(|id| self.keys.is_new(**id));
        let new: Vec<ContestId> = new.copied().collect();
        let stored = new.iter().filter(|id| self.keys.unstored(**id).is_none());
        let stored: Vec<i64> = stored.map(|id| self.keys.contest(*id)).collect::<Result<_>>()?;
        for keys in batches(&stored) {
            let mut query = Statement::new("DELETE FROM contests WHERE contest IN ");
            query.push_list(keys.iter().copied());
            self.run(query).await?;
        }
        self.keys.forget(&new);
        Ok(())
    }

    async fn load(&mut self, rows: Vec<LockedContest>) -> Result<Vec<StoredContest>> {
        let ids: Vec<ContestId> = rows.iter().map(|row| row.key.contest_id()).collect();
        let mut contests: HashMap<ContestId, StoredContest> = rows
            .into_iter()
            .map(|row| (row.key.contest_id(), empty(row)))
            .collect();
        let stored: Vec<ContestId> = ids.iter().copied().filter(|id| !self.keys.is_new(*id)).collect();
        for ids in batches(&stored) {
            let keys = ids.iter().map(|id| self.keys.contest(*id));
            let keys: Vec<i64> = keys.collect::<Result<_>>()?;
            let ids_by_key: HashMap<i64, ContestId> = keys.iter().copied().zip(ids.iter().copied()).collect();
            let in_full = |key: &i64| {
                let contest = ids_by_key.get(key).and_then(|id| contests.get(id));
                contest.is_none_or(|contest| contest.row.key.kind.rules().rule.depends_on_the_decided())
            };
            let (in_full, in_part): (Vec<i64>, Vec<i64>) = keys.iter().partition(|key| in_full(key));
            for query in [
                (!in_full.is_empty()).then(|| all_candidates(&in_full)),
                (!in_part.is_empty()).then(|| live_candidates(&in_part)),
            ]
            .into_iter()
            .flatten()
            {
                for row in self.rows::<CandidateRow>(query).await? {
                    let (candidate, kept) = row.parse()?;
                    self.keys.note_candidate(row.contest, candidate.id, row.candidate);
                    if let Some(contest) = ids_by_key.get(&row.contest).and_then(|id| contests.get_mut(id)) {
                        contest.kept.insert(candidate.id, kept);
                        contest.state.candidates.push(candidate);
                    }
                }
            }
            let mut query = Statement::new(
                "SELECT contest, revision, coalesce(value, (SELECT h.value FROM changes AS h \
                 WHERE h.contest = resources.contest AND +h.revision = resources.revision)) AS value, committed_at \
                 FROM resources WHERE contest IN ",
            );
            query.push_list(keys.iter().copied());
            for row in self.rows::<ResourceRow>(query).await? {
                let resource = row.parse()?;
                if let Some(contest) = ids_by_key.get(&row.contest).and_then(|id| contests.get_mut(id)) {
                    contest.state.resource = Some(resource);
                    contest.committed_at = row.committed_at;
                }
            }
        }
        Ok(ids.iter().filter_map(|id| contests.remove(id)).collect())
    }

    async fn named(
        &mut self,
        contest: ContestId,
        which: Named,
    ) -> Result<Option<(Candidate, KeptCandidate)>> {
        if self.keys.is_new(contest) {
            return Ok(None);
        }
        let query = named_candidate(self.keys.contest(contest)?, which);
        let Some(row) = self.rows::<CandidateRow>(query).await?.pop() else {
            return Ok(None);
        };
        let (candidate, kept) = row.parse()?;
        self.keys.note_candidate(row.contest, candidate.id, row.candidate);
        Ok(Some((candidate, kept)))
    }

    async fn newest_ballots(
        &mut self,
        contests: &[ContestId],
        limit: u32,
    ) -> Result<HashMap<ContestId, Vec<Ballot>>> {
        let mut ballots: HashMap<ContestId, Vec<Ballot>> = HashMap::new();
        let contests: Vec<ContestId> = contests
            .iter()
            .copied()
            .filter(|id| !self.keys.is_new(*id))
            .collect();
        for contests in batches_up_to(&contests, 16) {
            let keys = contests.iter().map(|id| self.keys.contest(*id));
            let keys: Vec<i64> = keys.collect::<Result<_>>()?;
            let ids_by_key: HashMap<i64, ContestId> =
                keys.iter().copied().zip(contests.iter().copied()).collect();
            for row in self.rows::<BallotRow>(newest_ballots(&keys, limit)).await? {
                if let Some(contest) = ids_by_key.get(&row.contest) {
                    ballots.entry(*contest).or_default().push(row.parse()?);
                }
            }
        }
        Ok(ballots)
    }

    async fn contest_of(&mut self, candidate: CandidateId) -> Result<Option<ResourceKey>> {
        let row = only(self.rows::<KeyRow>(contest_of(candidate)).await?, candidate)?;
        row.map(|row| row.parse("contests")).transpose()
    }

    async fn save_votes(&mut self, writes: &VoteWrites) -> Result<()> {
        save_contests(self, writes).await?;
        save_ballots(self, writes).await?;
        for retracted in batches(&writes.retracted) {
            let mut query = Statement::new("UPDATE ballots SET retracted = 1 WHERE feedback_id IN ");
            query.push_list(retracted.iter().map(|id| id.0).map(bytes));
            self.run(query).await?;
        }
        for erased in batches(&writes.erased) {
            let mut query = Statement::new("DELETE FROM ballot_details WHERE feedback_id IN ");
            query.push_list(erased.iter().map(|id| id.0).map(bytes));
            self.run(query).await?;
        }
        Ok(())
    }

    async fn save_candidates(
        &mut self,
        candidates: &[CandidateWrite],
        transitions: &[(ContestId, TransitionWrite)],
    ) -> Result<()> {
        save_candidates(self, candidates).await?;
        waiting_sql::save(self, candidates, transitions).await?;
        save_transitions(self, transitions).await?;
        queue::changes_sql::note(self, transitions).await
    }

    async fn count(&mut self, counts: &[QueueCount]) -> Result<()> {
        queue::days_sql::note(self, counts).await
    }

    async fn save_undoable(&mut self, record: &UndoableRecord) -> Result<()> {
        undo_sql::save(self, record).await
    }

    async fn undoable(&mut self, contest: ContestId) -> Result<Option<UndoableRecord>> {
        undo_sql::read(self, contest).await
    }

    async fn forget_undoable(&mut self, contest: ContestId) -> Result<()> {
        undo_sql::forget(self, contest).await
    }
}

/// The key of a candidate's contest.
pub(crate) fn contest_of(candidate: CandidateId) -> Statement {
    let mut query = Statement::new(
        "SELECT c.contest_id, c.namespace, c.kind, c.key, c.qualifier, c.user_id FROM candidates AS k \
         JOIN contests AS c ON c.contest = k.contest WHERE ",
    );
    push_candidates(&mut query, [candidate]);
    query
}

const CANDIDATES: &str = "SELECT contest, candidate, candidate_id, coalesce(value, (SELECT h.value FROM changes AS h \
     WHERE h.contest = candidates.contest AND +h.revision = candidates.applied_revision)) AS value, status, status_reason, origin, edited_from, hold, \
     decision_reason, decided_caller, decided_for, occurrences, reporters, net, risk, threshold, policy_version, \
     applied_threshold, applied_revision, ruling_order, ruling_roles, ruling_approved, ruling_taken_back, \
     proposal_version, proposal_base, proposal_verdict, proposal_decided_at, created_at, updated_at, transitions, \
     version FROM candidates WHERE contest ";

/// All candidates of contests.
fn all_candidates(contests: &[i64]) -> Statement {
    let mut query = Statement::new(CANDIDATES);
    query.push("IN ");
    query.push_list(contests.iter().copied());
    query.push(" ORDER BY created_at, candidate_id");
    query
}

/// The candidates under review in contests that are open or applied, however many others there are.
pub(crate) fn live_candidates(contests: &[i64]) -> Statement {
    let mut query = Statement::new(CANDIDATES);
    query.push("IN ");
    query.push_list(contests.iter().copied());
    let live = [Status::Pending, Status::AwaitingReview, Status::Applied];
    push_numbers(
        &mut query,
        " AND status IN (",
        live.into_iter().map(codes::status),
    );
    // All candidates under review have a number.
    query.push(" AND proposal_version > 0 ORDER BY created_at, candidate_id");
    query
}

/// One candidate of a contest.
pub(crate) fn named_candidate(contest: i64, which: Named) -> Statement {
    let mut query = Statement::new(CANDIDATES);
    query.push("= ").push_bind(contest);
    match which {
        Named::Candidate(id) => query.push(" AND candidate_id = ").push_bind(bytes(id.0)),
        Named::Version(version) => query
            .push(" AND proposal_version > 0 AND proposal_version = ")
            .push_bind(small(version)),
    };
    query
}

fn empty(row: LockedContest) -> StoredContest {
    let mut state = ContestState::new(row.key.clone());
    state.pinned = row.pinned;
    state.target = row.target;
    state.versions = row.versions;
    state.decisions = row.decisions;
    state.highest_accept_order = AcceptOrder(row.highest_accept_order.0);
    StoredContest {
        row,
        state,
        kept: HashMap::new(),
        committed_at: 0,
    }
}

/// Creates the rows of contests that have none and notes their keys. Returns which were created.
async fn insert_contests(work: &mut Work, new: &[(&ContestWrite, Timestamp)]) -> Result<Vec<ContestId>> {
    let mut created = Vec::with_capacity(new.len());
    for new in batches(new) {
        let inserted: Vec<(Vec<u8>, i64)> = work.rows(insertion(new)).await?;
        for (id, contest) in inserted {
            let parsed = Uuid::from_slice(&id)
                .map_err(|error| CorruptRow::new("contests", "contest_id", contest, error))?;
            work.keys.note_contest(ContestId(parsed), contest);
            created.push(ContestId(parsed));
        }
    }
    Ok(created)
}

/// The statement that creates the rows of contests that have none, each with the time at which it is created.
pub(crate) fn insertion(new: &[(&ContestWrite, Timestamp)]) -> Statement {
    let mut query = Statement::new(
        "INSERT INTO contests (contest_id, namespace, kind, key, key_hash, qualifier, user_id, pinned, \
         highest_accept_order, policy_version, pending, target_known, current_version, last_version, decisions, created_at) ",
    );
    query.push_values(new, |mut row, (contest, created_at)| {
        let key = &contest.key;
        row.push_bind(bytes(key.contest_id().0))
            .push_bind(key.namespace.as_str())
            .push_bind(key.kind.number())
            .push_bind(key.key.as_str())
            .push_bind(key_hash(key.key.as_str()))
            .push_bind(key.qualifier.as_str())
            .push_bind(key.user_id())
            .push_bind(i32::from(contest.pinned))
            .push_bind(contest.highest_accept_order.0)
            .push_bind(contest.policy_version)
            .push_bind(i32::from(contest.pending))
            .push_bind(contest.target.number())
            .push_bind(small(contest.versions.current))
            .push_bind(small(contest.versions.last))
            .push_bind(saturated(contest.decisions))
            .push_bind(created_at.as_microsecond());
    });
    query.push(" ON CONFLICT DO NOTHING RETURNING contest_id, contest");
    query
}

/// The newest counted ballots of each contest: one bounded read per contest, however many ballots it has.
pub(crate) fn newest_ballots(contests: &[i64], limit: u32) -> Statement {
    let mut query = Statement::new("");
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
        query.push_limit(limit);
        query.push(format_args!(") AS contest_{index}"));
    }
    query
}

async fn save_contests(work: &mut Work, writes: &VoteWrites) -> Result<()> {
    let mut stored = Vec::with_capacity(writes.contests.len());
    let mut new = Vec::new();
    for contest in &writes.contests {
        match work.keys.unstored(contest.key.contest_id()) {
            Some(created_at) => new.push((contest, created_at)),
            None => stored.push(contest),
        }
    }
    insert_contests(work, &new).await?;
    for contests in batches(&stored) {
        let mut rows = Vec::with_capacity(contests.len());
        for contest in contests {
            rows.push((work.keys.contest(contest.key.contest_id())?, contest));
        }
        let query = work.write(
            "UPDATE contests SET pinned = written.column2, highest_accept_order = written.column3, \
             policy_version = written.column4, pending = written.column5, target_known = written.column6, \
             current_version = written.column7, last_version = written.column8, decisions = written.column9 FROM (",
        );
        query.push_values(rows, |mut row, (key, contest)| {
            row.push_bind(key)
                .push_bind(i32::from(contest.pinned))
                .push_bind(contest.highest_accept_order.0)
                .push_bind(contest.policy_version)
                .push_bind(i32::from(contest.pending))
                .push_bind(contest.target.number())
                .push_bind(small(contest.versions.current))
                .push_bind(small(contest.versions.last))
                .push_bind(saturated(contest.decisions));
        });
        query.push(") AS written WHERE contests.contest = written.column1");
        work.written().await?;
    }
    // From here on there is more of them than what this unit of work knows by itself.
    work.keys.new.clear();
    let prompts = writes
        .contests
        .iter()
        .filter(|contest| contest.key.kind == Kind::Prompt);
    let prompts: Vec<i64> = prompts
        .map(|contest| work.keys.contest(contest.key.contest_id()))
        .collect::<Result<_>>()?;
    for prompts in batches(&prompts) {
        work.run(since_now(prompts)).await?;
    }
    Ok(())
}

/// Notes of prompts whose current version is another one than before which rating arrived last.
pub(crate) fn since_now(contests: &[i64]) -> Statement {
    let mut query = Statement::new(
        "INSERT INTO current_prompts (contest, version, since_rating) SELECT contest, current_version, \
         COALESCE((SELECT max(rating) FROM ratings), 0) FROM contests WHERE current_version > 0 AND contest IN ",
    );
    query.push_list(contests.iter().copied());
    query.push(
        " ON CONFLICT (contest) DO UPDATE SET version = excluded.version, since_rating = excluded.since_rating \
         WHERE current_prompts.version <> excluded.version",
    );
    query
}

async fn save_ballots(work: &mut Work, writes: &VoteWrites) -> Result<()> {
    for ballots in batches(&writes.ballots) {
        let mut rows = Vec::with_capacity(ballots.len());
        for new in ballots {
            rows.push((work.keys.contest(new.contest)?, new));
        }
        let mut query = Statement::new(
            "INSERT INTO ballots (feedback_id, contest, candidate_id, accept_order, voter, identified, caller, \
             received_at, retracted, system_choice, traceparent) ",
        );
        query.push_values(rows, |mut row, (contest, new)| {
            row.push_bind(bytes(new.ballot.feedback_id.0))
                .push_bind(contest)
                .push_bind(bytes(new.ballot.candidate.0))
                .push_bind(new.ballot.accept_order.0)
                .push_bind(bytes(new.ballot.voter.0))
                .push_bind(i32::from(new.ballot.identified))
                .push_bind(new.ballot.caller.as_str())
                .push_bind(new.ballot.received_at.as_microsecond())
                .push_bind(i32::from(new.retracted))
                .push_bind(new.system_choice.as_str())
                .push_bind(new.traceparent.as_str());
        });
        work.run(query).await?;
    }
    for details in batches(&writes.details) {
        let mut query = Statement::new(
            "INSERT INTO ballot_details (feedback_id, reporter_id, session_id, client, client_key, query_id, reason, \
             context) ",
        );
        query.push_values(details, |mut row, details| {
            let reporter = &details.reporter;
            let context = serde_json::to_string(&details.context)
                .expect("invariant: a map of strings is always a JSON object");
            row.push_bind(bytes(details.feedback.0))
                .push_bind(reporter.id.as_ref().map_or("", |id| id.as_str()))
                .push_bind(reporter.session.as_deref().unwrap_or_default())
                .push_bind(reporter.client.as_str())
                .push_bind(reporter.client_key.as_str())
                .push_bind(details.query_id.as_str())
                .push_bind(details.reason.as_str())
                .push_bind(context);
        });
        work.run(query).await?;
    }
    Ok(())
}

async fn save_candidates(work: &mut Work, writes: &[CandidateWrite]) -> Result<()> {
    for candidates in batches(writes) {
        let mut rows = Vec::with_capacity(candidates.len());
        for write in candidates {
            rows.push((work.keys.contest(write.key.contest_id())?, write));
        }
        let query = work.write(
            "INSERT INTO candidates (candidate_id, contest, namespace, kind, value, status, status_reason, origin, \
             edited_from, hold, decision_reason, decided_caller, decided_for, occurrences, reporters, net, risk, \
             threshold, policy_version, applied_threshold, applied_revision, ruling_order, ruling_roles, ruling_approved, \
             ruling_taken_back, proposal_version, proposal_base, proposal_verdict, proposal_decided_at, created_at, updated_at, transitions, version) ",
        );
        query.push_values(rows, |mut row, (contest, write)| {
            let (candidate, kept) = (&write.candidate, &write.kept);
            row.push_bind(bytes(candidate.id.0))
                .push_bind(contest)
                .push_bind(write.key.namespace.as_str())
                .push_bind(write.key.kind.number())
                .push_bind(emend_wire::value::encode(&candidate.value).to_vec())
                .push_bind(codes::status(candidate.status))
                .push_bind(codes::reason(candidate.reason))
                .push_bind(codes::origin(candidate.origin))
                .push_bind(optional_id(candidate.edited_from.map(|id| id.0)))
                .push_bind(codes::hold(candidate.hold))
                .push_bind(candidate.decision_reason.as_deref().unwrap_or_default())
                .push_bind(kept.decided_by.caller.as_str())
                .push_bind(kept.decided_by.on_behalf_of.as_str())
                .push_bind(saturated(candidate.occurrences))
                .push_bind(saturated(candidate.reporters))
                .push_bind(candidate.net)
                .push_bind(codes::risk(candidate.risk))
                .push_bind(small(candidate.threshold))
                .push_bind(candidate.policy_version)
                .push_bind(small(candidate.applied_threshold.unwrap_or(0)))
                .push_bind(candidate.applied_revision.0)
                .push_bind(
                    candidate
                        .ruling
                        .as_ref()
                        .map_or(0, |ruling| ruling.accept_order.0),
                )
                .push_bind(
                    candidate
                        .ruling
                        .as_ref()
                        .map(|ruling| ruling.roles.to_string())
                        .unwrap_or_default(),
                )
                .push_bind(i32::from(
                    candidate.ruling.as_ref().is_some_and(|ruling| ruling.approved),
                ))
                .push_bind(
                    candidate
                        .ruling
                        .as_ref()
                        .map_or(0, |ruling| codes::taken_back(ruling.taken_back)),
                )
                .push_bind(candidate.proposal.map_or(0, |proposal| small(proposal.version)))
                .push_bind(candidate.proposal.map_or(0, |proposal| small(proposal.base)))
                .push_bind(
                    candidate
                        .proposal
                        .map_or(0, |proposal| codes::verdict(proposal.verdict)),
                )
                .push_bind(
                    candidate
                        .proposal
                        .and_then(|proposal| proposal.decided_at)
                        .map_or(0, jiff::Timestamp::as_microsecond),
                )
                .push_bind(kept.created_at.as_microsecond())
                .push_bind(kept.updated_at.as_microsecond())
                .push_bind(kept.transitions)
                .push_bind(kept.version);
        });
        query.push(
            " ON CONFLICT (contest, candidate_id) DO UPDATE SET value = excluded.value, status = excluded.status, \
             status_reason = excluded.status_reason, edited_from = excluded.edited_from, hold = excluded.hold, \
             decision_reason = excluded.decision_reason, decided_caller = excluded.decided_caller, \
             decided_for = excluded.decided_for, occurrences = excluded.occurrences, reporters = excluded.reporters, \
             net = excluded.net, risk = excluded.risk, threshold = excluded.threshold, \
             policy_version = excluded.policy_version, applied_threshold = excluded.applied_threshold, \
             applied_revision = excluded.applied_revision, ruling_approved = excluded.ruling_approved, \
             ruling_taken_back = excluded.ruling_taken_back, proposal_verdict = excluded.proposal_verdict, \
             proposal_decided_at = excluded.proposal_decided_at, updated_at = excluded.updated_at, \
             transitions = excluded.transitions, version = excluded.version \
             RETURNING contest, candidate_id, candidate",
        );
        // Their rows come together where the statements go together.
        if !work.waits() {
            note_candidates(work).await?;
        }
    }
    note_candidates(work).await
}

/// Executes what writes candidates and notes their keys.
async fn note_candidates(work: &mut Work) -> Result<()> {
    for (contest, id, key) in work.rows_written::<(i64, Vec<u8>, i64)>().await? {
        let parsed = Uuid::from_slice(&id)
            .map_err(|error| CorruptRow::new("candidates", "candidate_id", key, error))?;
        work.keys.note_candidate(contest, CandidateId(parsed), key);
    }
    Ok(())
}

async fn save_transitions(work: &mut Work, writes: &[(ContestId, TransitionWrite)]) -> Result<()> {
    for transitions in batches(writes) {
        let mut rows = Vec::with_capacity(transitions.len());
        for (contest, transition) in transitions {
            rows.push((work.keys.candidate(*contest, transition.candidate)?, transition));
        }
        let query = work.write(
            "INSERT INTO transitions (candidate, sequence, from_status, to_status, cause, reason, caller, \
             on_behalf_of, made_at, revision, policy_version) ",
        );
        query.push_values(rows, |mut row, (candidate, transition)| {
            row.push_bind(candidate)
                .push_bind(transition.sequence)
                .push_bind(transition.from.map_or(0, codes::status))
                .push_bind(codes::status(transition.to))
                .push_bind(transition.cause.number())
                .push_bind(transition.reason.as_str())
                .push_bind(transition.actor.caller.as_str())
                .push_bind(transition.actor.on_behalf_of.as_str())
                .push_bind(transition.at.as_microsecond())
                .push_bind(transition.revision.0)
                .push_bind(transition.policy_version);
        });
        work.written().await?;
    }
    Ok(())
}
