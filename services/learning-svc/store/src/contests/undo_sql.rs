//! What it takes to undo a person's decision, in SQL.

use emend_core::{
    CandidateId, ContestId, UndoableDecision,
    decide::{CandidateBefore, ChangedCandidate},
};
use emend_store::{StoreError, sql::Statement};
use jiff::SignedDuration;
use sqlx_macros::FromRow;

use crate::{
    SqlStore,
    batches::batches,
    codes,
    contests::UndoableRecord,
    database::bytes,
    integers::{micros, saturated, small},
    rows::{At, StoredId, actor},
    work::Work,
};

type Result<T> = std::result::Result<T, StoreError>;

#[derive(Debug, FromRow)]
struct DecisionRow {
    candidate_id: Vec<u8>,
    subject_id: Vec<u8>,
    number: i64,
    pinned: i32,
    occurrences: i64,
    policy_version: i64,
    caller: String,
    on_behalf_of: String,
    made_at: i64,
}

#[derive(Debug, FromRow)]
struct ChangeRow {
    candidate_id: Vec<u8>,
    status_after: i32,
    status: i32,
    status_reason: String,
    hold: String,
    decision_reason: String,
    applied_threshold: i32,
    value: Option<Vec<u8>>,
    ruling_approved: i32,
    proposal_verdict: i32,
    proposal_decided_at: i64,
}

impl ChangeRow {
    fn parse(self) -> Result<ChangedCandidate> {
        let at = At {
            table: "undoable_changes",
            id: &StoredId(&self.candidate_id),
        };
        let status = |column, number| at.known(column, number, codes::parse_status(number));
        let before = match self.status {
            0 => None,
            number => {
                let decided_at = match self.proposal_decided_at {
                    0 => None,
                    microseconds => Some(at.time("proposal_decided_at", microseconds)?),
                };
                let verdict = match self.proposal_verdict {
                    0 => None,
                    number => Some(at.known("proposal_verdict", number, codes::parse_verdict(number))?),
                };
                let threshold: u32 = at.number("applied_threshold", self.applied_threshold)?;
                let value = self.value.as_deref().map(|value| at.value("value", value));
                Some(CandidateBefore {
                    status: status("status", number)?,
                    reason: at.known(
                        "status_reason",
                        &self.status_reason,
                        codes::parse_reason(&self.status_reason),
                    )?,
                    hold: at.known("hold", &self.hold, codes::parse_hold(&self.hold))?,
                    decision_reason: Some(self.decision_reason).filter(|reason| !reason.is_empty()),
                    applied_threshold: Some(threshold).filter(|threshold| *threshold > 0),
                    value: value.transpose()?,
                    approved: self.ruling_approved != 0,
                    verdict: verdict.map(|verdict| (verdict, decided_at)),
                })
            }
        };
        Ok(ChangedCandidate {
            id: CandidateId(at.uuid("candidate_id", &self.candidate_id)?),
            status: status("status_after", self.status_after)?,
            before,
        })
    }
}

pub(super) async fn save(work: &mut Work, record: &UndoableRecord) -> Result<()> {
    let contest = work.keys.contest(record.contest)?;
    let decision = &record.decision;
    let query = work.write(
        "INSERT INTO undoable_decisions (contest, candidate_id, subject_id, number, pinned, occurrences, \
         policy_version, caller, on_behalf_of, made_at) ",
    );
    query.push_values([record], |mut row, record| {
        row.push_bind(contest)
            .push_bind(bytes(decision.candidate.0))
            .push_bind(bytes(decision.subject.0))
            .push_bind(saturated(decision.number))
            .push_bind(i32::from(decision.pinned))
            .push_bind(saturated(decision.occurrences))
            .push_bind(decision.policy_version)
            .push_bind(record.actor.caller.as_str())
            .push_bind(record.actor.on_behalf_of.as_str())
            .push_bind(record.made_at.as_microsecond());
    });
    query.push(
        " ON CONFLICT (contest) DO UPDATE SET candidate_id = excluded.candidate_id, \
         subject_id = excluded.subject_id, number = excluded.number, pinned = excluded.pinned, \
         occurrences = excluded.occurrences, policy_version = excluded.policy_version, caller = excluded.caller, \
         on_behalf_of = excluded.on_behalf_of, made_at = excluded.made_at",
    );
    work.written().await?;
    let query = work.write("DELETE FROM undoable_changes WHERE contest = ");
    query.push_bind(contest);
    work.written().await?;
    for changed in batches(&decision.changed) {
        let query = work.write(
            "INSERT INTO undoable_changes (contest, candidate_id, status_after, status, status_reason, hold, \
             decision_reason, applied_threshold, value, ruling_approved, proposal_verdict, proposal_decided_at) ",
        );
        query.push_values(changed, |mut row, changed| {
            let before = changed.before.as_ref();
            let verdict = before.and_then(|before| before.verdict);
            let value = before.and_then(|before| before.value.as_ref());
            row.push_bind(contest)
                .push_bind(bytes(changed.id.0))
                .push_bind(codes::status(changed.status))
                .push_bind(before.map_or(0, |before| codes::status(before.status)))
                .push_bind(codes::reason(before.and_then(|before| before.reason)))
                .push_bind(codes::hold(before.and_then(|before| before.hold)))
                .push_bind(
                    before
                        .and_then(|before| before.decision_reason.as_deref())
                        .unwrap_or_default(),
                )
                .push_bind(
                    before
                        .and_then(|before| before.applied_threshold)
                        .map_or(0, small),
                )
                .push_bind(value.map(|value| emend_wire::value::encode(value).to_vec()))
                .push_bind(i32::from(before.is_some_and(|before| before.approved)))
                .push_bind(verdict.map_or(0, |(verdict, _)| codes::verdict(verdict)))
                .push_bind(
                    verdict
                        .and_then(|(_, decided_at)| decided_at)
                        .map_or(0, jiff::Timestamp::as_microsecond),
                );
        });
        work.written().await?;
    }
    Ok(())
}

pub(super) async fn read(work: &mut Work, id: ContestId) -> Result<Option<UndoableRecord>> {
    let contest = work.keys.contest(id)?;
    let mut query = Statement::new(
        "SELECT candidate_id, subject_id, number, pinned, occurrences, policy_version, caller, on_behalf_of, made_at \
         FROM undoable_decisions WHERE contest = ",
    );
    query.push_bind(contest);
    let Some(row) = work.rows::<DecisionRow>(query).await?.pop() else {
        return Ok(None);
    };
    let mut query = Statement::new(
        "SELECT candidate_id, status_after, status, status_reason, hold, decision_reason, applied_threshold, value, \
         ruling_approved, proposal_verdict, proposal_decided_at FROM undoable_changes WHERE contest = ",
    );
    query.push_bind(contest).push(" ORDER BY candidate_id");
    let changed = work.rows::<ChangeRow>(query).await?;
    let at = At {
        table: "undoable_decisions",
        id: &contest,
    };
    Ok(Some(UndoableRecord {
        contest: id,
        decision: UndoableDecision {
            candidate: CandidateId(at.uuid("candidate_id", &row.candidate_id)?),
            subject: CandidateId(at.uuid("subject_id", &row.subject_id)?),
            number: at.number("number", row.number)?,
            pinned: row.pinned != 0,
            occurrences: at.number("occurrences", row.occurrences)?,
            policy_version: row.policy_version,
            changed: changed.into_iter().map(ChangeRow::parse).collect::<Result<_>>()?,
        },
        actor: actor(at, "caller", &row.caller, &row.on_behalf_of)?,
        made_at: at.time("made_at", row.made_at)?,
    }))
}

pub(super) async fn forget(work: &mut Work, contest: ContestId) -> Result<()> {
    let contest = work.keys.contest(contest)?;
    for sql in [
        "DELETE FROM undoable_changes WHERE contest = ",
        "DELETE FROM undoable_decisions WHERE contest = ",
    ] {
        work.write(sql).push_bind(contest);
        work.written().await?;
    }
    Ok(())
}

pub(super) async fn forget_after(store: &SqlStore, age: SignedDuration) -> Result<u64> {
    let mut transaction = store.begin_write().await?;
    let mut old = Statement::new(
        "SELECT contest FROM undoable_decisions WHERE made_at < (SELECT now FROM database_clock) - ",
    );
    old.push_bind(micros(age)).push(" ORDER BY contest").for_update();
    let old: Vec<i64> = transaction.values(old).await?;
    for contests in batches(&old) {
        for sql in [
            "DELETE FROM undoable_changes WHERE contest IN ",
            "DELETE FROM undoable_decisions WHERE contest IN ",
        ] {
            let mut query = Statement::new(sql);
            query.push_list(contests.iter().copied());
            transaction.execute(query).await?;
        }
    }
    transaction.commit().await?;
    Ok(old.len() as u64)
}
