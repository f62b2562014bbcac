//! The writes of a unit of work in SQL, several rows per statement. Written once, compiled for each database.

use std::collections::{BTreeSet, HashMap};

use emend_core::{CandidateId, digest::value_checksum};
use emend_store::{CorruptRow, StoreError};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::{
    Db, Transaction,
    decisions_sql::{Work, bytes, push_keys, push_list},
};
use crate::store::{
    batches::batches,
    codes, conflict,
    decisions::{DecisionWrites, Mark, PolicyKey, PolicyWrite, VoteWrites},
    rows::{CountRow, optional_id},
};

type Result<T> = std::result::Result<T, StoreError>;
type Transacting<'a> = &'a mut Transaction;

async fn run(transaction: Transacting<'_>, mut query: QueryBuilder<Db>) -> Result<u64> {
    Ok(query.build().execute(&mut **transaction).await?.rows_affected())
}

/// Writes everything that names no revision.
pub(super) async fn save_votes(work: &mut Work, writes: &VoteWrites) -> Result<()> {
    save_contests(work, writes).await?;
    save_ballots(work, writes).await?;
    let transaction = &mut work.transaction;
    for retracted in batches(&writes.retracted) {
        let mut query = QueryBuilder::new("UPDATE ballots SET retracted = 1 WHERE feedback_id IN ");
        push_list(&mut query, retracted.iter().map(|id| id.0));
        run(transaction, query).await?;
    }
    for erased in batches(&writes.erased) {
        let mut query = QueryBuilder::new("DELETE FROM ballot_details WHERE feedback_id IN ");
        push_list(&mut query, erased.iter().map(|id| id.0));
        run(transaction, query).await?;
    }
    save_marks(transaction, "retraction_marks", &writes.retraction_marks).await?;
    save_marks(transaction, "redaction_marks", &writes.redaction_marks).await
}

async fn save_contests(work: &mut Work, writes: &VoteWrites) -> Result<()> {
    for contests in batches(&writes.contests) {
        let mut query = QueryBuilder::new(
            "UPDATE contests SET pinned = written.column2, highest_accept_order = written.column3, \
             policy_version = written.column4, pending = written.column5 FROM (",
        );
        let mut rows = Vec::with_capacity(contests.len());
        for contest in contests {
            rows.push((work.keys.contest(contest.key.contest_id())?, contest));
        }
        query.push_values(rows, |mut row, (key, contest)| {
            row.push_bind(key)
                .push_bind(i32::from(contest.pinned))
                .push_bind(contest.highest_accept_order.0)
                .push_bind(contest.policy_version)
                .push_bind(i32::from(contest.pending));
        });
        query.push(") AS written WHERE contests.contest = written.column1");
        run(&mut work.transaction, query).await?;
    }
    Ok(())
}

async fn save_ballots(work: &mut Work, writes: &VoteWrites) -> Result<()> {
    for ballots in batches(&writes.ballots) {
        let mut rows = Vec::with_capacity(ballots.len());
        for new in ballots {
            rows.push((work.keys.contest(new.contest)?, new));
        }
        let mut query = QueryBuilder::new(
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
        run(&mut work.transaction, query).await?;
    }
    for details in batches(&writes.details) {
        let mut query = QueryBuilder::new(
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
        run(&mut work.transaction, query).await?;
    }
    Ok(())
}

async fn save_marks(transaction: Transacting<'_>, table: &'static str, marks: &[Mark]) -> Result<()> {
    for marks in batches(marks) {
        let mut query = QueryBuilder::new("INSERT INTO ");
        query
            .push(table)
            .push(" (feedback_id, event_id, caller, marked_at) ");
        query.push_values(marks, |mut row, mark| {
            row.push_bind(bytes(mark.feedback.0))
                .push_bind(bytes(mark.event.0))
                .push_bind(mark.caller.as_str())
                .push_bind(mark.at.as_microsecond());
        });
        query.push(" ON CONFLICT (feedback_id) DO NOTHING");
        run(transaction, query).await?;
    }
    Ok(())
}

/// Writes the rest, under the head's lock.
pub(super) async fn save_decisions(
    work: &mut Work,
    writes: &DecisionWrites,
) -> Result<HashMap<PolicyKey, u64>> {
    save_candidates(work, writes).await?;
    save_transitions(work, writes).await?;
    save_log(work, writes).await?;
    save_resources(work, writes).await?;
    save_inbox(&mut work.transaction, writes).await?;
    save_counts(&mut work.transaction, writes).await
}

async fn save_candidates(work: &mut Work, writes: &DecisionWrites) -> Result<()> {
    for candidates in batches(&writes.candidates) {
        let mut rows = Vec::with_capacity(candidates.len());
        for write in candidates {
            rows.push((work.keys.contest(write.key.contest_id())?, write));
        }
        let mut query = QueryBuilder::<Db>::new(
            "INSERT INTO candidates (candidate_id, contest, namespace, kind, value, status, status_reason, origin, \
             edited_from, hold, decision_reason, decided_caller, decided_for, occurrences, reporters, net, risk, \
             threshold, policy_version, applied_threshold, applied_revision, created_at, updated_at, transitions, \
             version) ",
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
                .push_bind(kept.created_at.as_microsecond())
                .push_bind(kept.updated_at.as_microsecond())
                .push_bind(kept.transitions)
                .push_bind(kept.version);
        });
        query.push(
            " ON CONFLICT (candidate_id) DO UPDATE SET value = excluded.value, status = excluded.status, \
             status_reason = excluded.status_reason, edited_from = excluded.edited_from, hold = excluded.hold, \
             decision_reason = excluded.decision_reason, decided_caller = excluded.decided_caller, \
             decided_for = excluded.decided_for, occurrences = excluded.occurrences, reporters = excluded.reporters, \
             net = excluded.net, risk = excluded.risk, threshold = excluded.threshold, \
             policy_version = excluded.policy_version, applied_threshold = excluded.applied_threshold, \
             applied_revision = excluded.applied_revision, updated_at = excluded.updated_at, \
             transitions = excluded.transitions, version = excluded.version \
             RETURNING candidate_id, candidate",
        );
        let stored: Vec<(Vec<u8>, i64)> = query.build_query_as().fetch_all(&mut *work.transaction).await?;
        for (id, key) in stored {
            let parsed = Uuid::from_slice(&id)
                .map_err(|error| CorruptRow::new("candidates", "candidate_id", key, error))?;
            work.keys.note_candidate(CandidateId(parsed), key);
        }
    }
    Ok(())
}

async fn save_transitions(work: &mut Work, writes: &DecisionWrites) -> Result<()> {
    for transitions in batches(&writes.transitions) {
        let mut rows = Vec::with_capacity(transitions.len());
        for transition in transitions {
            rows.push((work.keys.candidate(transition.candidate)?, transition));
        }
        let mut query = QueryBuilder::new(
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
        run(&mut work.transaction, query).await?;
    }
    Ok(())
}

async fn save_log(work: &mut Work, writes: &DecisionWrites) -> Result<()> {
    for revisions in batches(&writes.revisions) {
        let mut query = QueryBuilder::new(
            "INSERT INTO revisions (revision, operation_id, cause, caller, on_behalf_of, reason, committed_at) ",
        );
        query.push_values(revisions, |mut row, revision| {
            row.push_bind(revision.revision.0)
                .push_bind(optional_id(revision.operation.map(|id| id.0)))
                .push_bind(revision.cause.number())
                .push_bind(revision.actor.caller.as_str())
                .push_bind(revision.actor.on_behalf_of.as_str())
                .push_bind(revision.reason.as_str())
                .push_bind(writes.committed_at);
        });
        run(&mut work.transaction, query).await?;
    }
    let kinds = writes.changes.iter().map(|change| {
        let (namespace, kind) = (change.key.namespace.as_str(), change.key.kind.number());
        (namespace, kind, change.revision.0)
    });
    let kinds: Vec<_> = kinds.collect::<BTreeSet<_>>().into_iter().collect();
    for kinds in batches(&kinds) {
        let mut query = QueryBuilder::new("INSERT INTO revision_kinds (namespace, kind, revision) ");
        query.push_values(kinds, |mut row, (namespace, kind, revision)| {
            row.push_bind(*namespace).push_bind(*kind).push_bind(*revision);
        });
        run(&mut work.transaction, query).await?;
    }
    for changes in batches(&writes.changes) {
        let mut rows = Vec::with_capacity(changes.len());
        for change in changes {
            let candidate = change.candidate.map(|id| work.keys.candidate(id)).transpose()?;
            rows.push((work.keys.contest(change.key.contest_id())?, candidate, change));
        }
        let mut query = QueryBuilder::new(
            "INSERT INTO changes (revision, ordinal, contest, value, value_checksum, before_value, candidate, \
             feedback_id, feedback_received_at, traceparent, policy_version) ",
        );
        query.push_values(rows, |mut row, (contest, candidate, change)| {
            let trigger = change.trigger.as_ref();
            row.push_bind(change.revision.0)
                .push_bind(change.ordinal)
                .push_bind(contest)
                .push_bind(change.value.as_ref().map(|bytes| bytes.to_vec()))
                .push_bind(change.value.as_ref().map_or(0, |bytes| checksum(bytes)))
                .push_bind(change.before.as_ref().map(|bytes| bytes.to_vec()))
                .push_bind(candidate)
                .push_bind(optional_id(trigger.map(|trigger| trigger.feedback.0)))
                .push_bind(trigger.map_or(0, |trigger| trigger.received_at.as_microsecond()))
                .push_bind(trigger.map_or("", |trigger| trigger.traceparent.as_str()))
                .push_bind(change.policy_version);
        });
        run(&mut work.transaction, query).await?;
    }
    Ok(())
}

async fn save_resources(work: &mut Work, writes: &DecisionWrites) -> Result<()> {
    let (mut put, mut deleted) = (Vec::new(), Vec::new());
    for resource in &writes.resources {
        let contest = work.keys.contest(resource.key.contest_id())?;
        match &resource.value {
            Some(value) => put.push((contest, resource.revision, value)),
            None => deleted.push(contest),
        }
    }
    for put in batches(&put) {
        let mut query = QueryBuilder::new(
            "INSERT INTO resources (contest, revision, value, value_checksum, committed_at) ",
        );
        query.push_values(put, |mut row, (contest, revision, value)| {
            row.push_bind(*contest)
                .push_bind(revision.0)
                .push_bind(value.to_vec())
                .push_bind(checksum(value))
                .push_bind(writes.committed_at);
        });
        query.push(
            " ON CONFLICT (contest) DO UPDATE SET revision = excluded.revision, value = excluded.value, \
             value_checksum = excluded.value_checksum, committed_at = excluded.committed_at",
        );
        run(&mut work.transaction, query).await?;
    }
    for deleted in batches(&deleted) {
        let mut query = QueryBuilder::new("DELETE FROM resources WHERE contest IN ");
        push_keys(&mut query, deleted);
        run(&mut work.transaction, query).await?;
    }
    Ok(())
}

async fn save_inbox(transaction: Transacting<'_>, writes: &DecisionWrites) -> Result<()> {
    for inbox in batches(&writes.inbox) {
        let mut query = QueryBuilder::new("INSERT INTO inbox (event_id, feedback_id, applied_at, outcome) ");
        query.push_values(inbox, |mut row, entry| {
            row.push_bind(bytes(entry.event.0))
                .push_bind(bytes(entry.feedback.0))
                .push_bind(entry.at.as_microsecond())
                .push_bind(entry.outcome.to_vec());
        });
        run(transaction, query).await?;
    }
    Ok(())
}

async fn save_counts(
    transaction: Transacting<'_>,
    writes: &DecisionWrites,
) -> Result<HashMap<PolicyKey, u64>> {
    let changed: Vec<_> = writes.counts.iter().filter(|(_, by)| **by != 0).collect();
    let mut counts = HashMap::with_capacity(changed.len());
    for changed in batches(&changed) {
        let mut query = QueryBuilder::new("INSERT INTO resource_counts (namespace, kind, count) ");
        query.push_values(changed, |mut row, (key, by)| {
            row.push_bind(key.namespace.as_str())
                .push_bind(key.kind.number())
                .push_bind(**by);
        });
        query.push(
            " ON CONFLICT (namespace, kind) DO UPDATE SET count = resource_counts.count + excluded.count \
             RETURNING namespace, kind, count",
        );
        let rows: Vec<CountRow> = query.build_query_as().fetch_all(&mut **transaction).await?;
        for row in rows {
            let (key, count) = row.parse()?;
            counts.insert(key, count);
        }
    }
    Ok(counts)
}

/// Stores a policy version; a conflict if it is already stored.
pub(super) async fn save_policy(transaction: Transacting<'_>, write: &PolicyWrite) -> Result<()> {
    let policy = &write.policy;
    let mut query = QueryBuilder::new(
        "INSERT INTO policies (namespace, kind, version, risk, threshold, counting, half_life, max_derived_voters, \
         max_resources, max_value_bytes, max_counted_feedback, caller, on_behalf_of, reason, updated_at) ",
    );
    query.push_values([write], |mut row, write| {
        row.push_bind(write.key.namespace.as_str())
            .push_bind(write.key.kind.number())
            .push_bind(policy.version)
            .push_bind(codes::risk(policy.risk))
            .push_bind(small(policy.threshold))
            .push_bind(codes::counting(policy.counting))
            .push_bind(policy.half_life.map_or(0, |half_life| half_life.as_secs()))
            .push_bind(small(policy.max_derived_voters))
            .push_bind(saturated(policy.max_resources))
            .push_bind(small(policy.max_value_bytes))
            .push_bind(small(policy.max_counted_feedback))
            .push_bind(write.actor.caller.as_str())
            .push_bind(write.actor.on_behalf_of.as_str())
            .push_bind(write.reason.as_str())
            .push_bind(write.updated_at.as_microsecond());
    });
    query.push(" ON CONFLICT (namespace, kind, version) DO NOTHING");
    if run(transaction, query).await? == 1 {
        Ok(())
    } else {
        Err(conflict("another update stored this version of the policy"))
    }
}

fn checksum(bytes: &[u8]) -> i64 {
    value_checksum(bytes).cast_signed()
}

fn saturated(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn small(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
