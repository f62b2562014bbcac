//! Bulk import: many rows at once, as a person's decisions (applied and pinned) or as the caller's votes.
//!
//! Of more than [`CHUNK`] rows, decisions on keys of which nothing is known take a path of their own (`fresh`), thousands at a time in few
//! statements; all others are decided as any act of a person is, a thousand at a time.
//!
//! Of rows with the same key in an import the first counts ([`Said`]); those that say the same are reported as unchanged, those that
//! disagree are bad. Importing twice changes nothing: a value that applies and is pinned is left alone, and a vote's id is derived from caller, contest
//! and value, so it is cast once, even if the caller has voted otherwise since.
//!
//! An all-or-nothing import is one transaction: contests are locked in order of their ids, then the head, which is held
//! to the end. Writers of other revisions wait for a large import; on PostgreSQL, after 10 s of waiting for a lock,
//! they fail with a retryable error. An import that skips bad rows is written in parts of [`PART`] rows, as they arrive, so that
//! others get in between and no more than two parts are in memory.
//!
//! Both can take long enough for the caller to lose its rights meanwhile, so rights are checked before each commit:
//! what is committed stays, the rest is not written.

mod fresh;
mod said;

pub use said::Said;

use std::sync::Arc;

use emend_base::Error;
use emend_core::{
    Ballot, Caller, ContestId, Event, FeedbackId, Kind, Namespace, OperationId, Origin, Proposal, Refusal,
    ResourceValue, Revision, Roles, Rule, contest::MAX_CANDIDATES, decide::Cause, voter::Voter,
};
use learning_store::{
    Database, UnitOfWork,
    actor::Actor,
    contests::{BallotDetails, NewBallot},
    log::Trigger,
    resources::PER_REVISION,
};

use crate::{
    decisions::{
        Decisions,
        numbering::RevisionChoice,
        open::{Attribution, OpenContests, Written},
    },
    fail_points,
    failure::{Failure, resource_limit},
};

/// Rows of which something is known, and votes, per revision, and per transaction where bad rows are skipped.
const CHUNK: usize = PER_REVISION;

/// Rows taken from a caller at once where bad rows are skipped. Those of which nothing is known are written in one
/// transaction: the more there are, the less often a page of an index is written, and the longer others wait.
pub(crate) const PART: usize = 10_000;

/// What an import does with rows the policy does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nothing is written.
    AllOrNothing,
    /// The other rows are written, these are reported.
    SkipInvalid,
}

/// What rows count as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportAs {
    /// A person's decision: applied and pinned.
    Decision,
    /// One vote each, cast by the caller.
    Votes,
}

/// How to import.
#[derive(Debug, Clone)]
pub struct Import {
    /// The search application.
    pub namespace: Namespace,
    /// What to do with bad rows.
    pub mode: Mode,
    /// What rows count as.
    pub import_as: ImportAs,
    /// The reason given.
    pub reason: Option<String>,
    /// Who imports.
    pub actor: Actor,
    /// The operation id carried by this import's revisions.
    pub operation: OperationId,
}

/// Called before each commit; an error prevents the commit. Must not block.
pub type CommitCheck<'a> = &'a (dyn Fn() -> Result<(), Error> + Send + Sync);

/// A valid row.
#[derive(Debug, Clone)]
pub struct Row {
    /// The line or entry in the source.
    pub line: i64,
    /// The value it proposes.
    pub proposal: Proposal,
}

/// Why a row is bad.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowError {
    /// The line as sent.
    pub line: i64,
    /// The violated field, relative to the row.
    pub field: String,
    /// What is wrong, with the bound.
    pub description: String,
}

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// Rows that changed something.
    pub applied: u64,
    /// Rows that changed nothing, including those that an earlier row says already.
    pub unchanged: u64,
    /// The first revision written; 0 if none was.
    pub first: Revision,
    /// The last revision written; 0 if none was.
    pub last: Revision,
    /// Rows that the policy did not allow, or that an earlier row disagrees with.
    pub refused: Vec<RowError>,
}

/// Rows of which no two have the same key, in the order in which contests are locked, and what became of the others.
#[derive(Debug, Default)]
pub struct Settled {
    rows: Vec<Keyed>,
    /// How many say what an earlier row says.
    pub repeated: u64,
    /// Those that say something else than an earlier row of the same key.
    pub disagreeing: Vec<RowError>,
}

impl From<Vec<Row>> for Settled {
    /// Of rows that are all of an import.
    fn from(rows: Vec<Row>) -> Self {
        Said::new(usize::MAX).settle(rows)
    }
}

impl Settled {
    /// Whether no row is left to write.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// In parts that are written at once; what became of other rows is told with the first.
    fn parts(self) -> Vec<Self> {
        let mut parts: Vec<Self> = Vec::new();
        for keyed in self.rows {
            match parts.last_mut() {
                Some(part) if part.rows.len() < PART => part.rows.push(keyed),
                _ => parts.push(Self {
                    rows: vec![keyed],
                    ..Self::default()
                }),
            }
        }
        if let Some(first) = parts.first_mut() {
            first.repeated = self.repeated;
            first.disagreeing = self.disagreeing;
        }
        parts
    }
}

impl Imported {
    pub(crate) fn add(&mut self, chunk: Self) {
        self.applied += chunk.applied;
        self.unchanged += chunk.unchanged;
        if self.first == Revision::default() {
            self.first = chunk.first;
        }
        self.last = self.last.max(chunk.last);
        self.refused.extend(chunk.refused);
    }
}

/// A row with the contest of its key.
#[derive(Debug)]
struct Keyed {
    contest: ContestId,
    row: Row,
}

/// The use cases of imports.
#[derive(Debug, Clone)]
pub struct Imports {
    database: Arc<dyn Database>,
    decisions: Arc<Decisions>,
}

impl Imports {
    /// Imports by decisions.
    pub(crate) fn new(database: Arc<dyn Database>, decisions: Arc<Decisions>) -> Self {
        Self { database, decisions }
    }

    /// The id of a new operation.
    pub(crate) fn new_operation(&self) -> OperationId {
        let Decisions { entropy, clock, .. } = &*self.decisions;
        OperationId(entropy.uuid_v7(clock.now()))
    }

    /// Imports valid rows, as long as `may` allows each commit.
    pub async fn import(
        &self,
        import: &Import,
        rows: impl Into<Settled> + Send,
        may: CommitCheck<'_>,
    ) -> Result<Imported, Error> {
        let imported = match import.mode {
            Mode::AllOrNothing => self.import_whole(import, rows.into(), may).await?,
            Mode::SkipInvalid => {
                let mut imported = Imported::default();
                for part in rows.into().parts() {
                    imported.add(self.import_part(import, part, may).await?);
                }
                imported
            }
        };
        self.publish(imported.last).await;
        Ok(imported)
    }

    /// Imports all rows in one transaction.
    async fn import_whole(
        &self,
        import: &Import,
        settled: Settled,
        may: CommitCheck<'_>,
    ) -> Result<Imported, Error> {
        let Settled {
            rows,
            repeated,
            disagreeing,
        } = settled;
        let disagreeing = disagreeing
            .into_iter()
            .next()
            .map(|row| (row.line, row.description));
        let wrong = || {
            rows.iter()
                .find_map(|keyed| Some((keyed.row.line, no_vote(import, &keyed.row)?)))
        };
        if let Some((line, why)) = disagreeing.or_else(wrong) {
            return Err(Error::invalid(format!("rows[line {line}].correction"), why));
        }
        let done = self.decisions.retry(|| self.try_whole(import, &rows, may));
        let mut imported = done.await?;
        imported.unchanged += repeated;
        fail_points::IMPORT_COMMITTED.pass();
        Ok(imported)
    }

    /// Imports the next part of an import that skips bad rows; its revisions are yet to be [published](Self::publish).
    pub(crate) async fn import_part(
        &self,
        import: &Import,
        settled: Settled,
        may: CommitCheck<'_>,
    ) -> Result<Imported, Error> {
        let Settled {
            rows,
            repeated,
            disagreeing,
        } = settled;
        let fresh = self.decisions.retry(|| self.try_fresh(import, &rows, may));
        let (mut imported, others) = fresh.await?;
        imported.unchanged += repeated;
        imported.refused.extend(disagreeing);
        if imported.applied > 0 {
            self.part_committed();
        }
        for chunk in others.chunks(CHUNK) {
            let done = self.decisions.retry(|| self.try_known(import, chunk, may));
            let done = done.await?;
            if done.last > Revision::default() {
                self.part_committed();
            }
            imported.add(done);
        }
        Ok(imported)
    }

    /// Announces what was imported and waits briefly until this replica's readers see it.
    pub(crate) async fn publish(&self, revision: Revision) {
        self.decisions.publish(revision).await;
    }

    fn part_committed(&self) {
        fail_points::IMPORT_PART_COMMITTED.pass();
        self.decisions.wake();
    }

    /// Writes the rows of which nothing is known, in one transaction. The others come back.
    async fn try_fresh<'r>(
        &self,
        import: &Import,
        rows: &'r [Keyed],
        may: CommitCheck<'_>,
    ) -> Result<(Imported, Vec<&'r Keyed>), Failure> {
        if rows.len() <= CHUNK {
            return Ok((Imported::default(), rows.iter().collect()));
        }
        let attribution = attribution(import);
        let mut tx = self.database.begin_whole().await?;
        let (fresh, others) =
            fresh::divide(&mut *tx, import, &attribution, rows, self.decisions.clock.now()).await?;
        if fresh.len() == 0 {
            return Ok((Imported::default(), others));
        }
        fresh.create(&mut *tx).await?;
        let imported = fresh.save(&mut *tx, &attribution).await?;
        fail_points::IMPORT_PART_WRITTEN.pass();
        may()?;
        tx.commit().await?;
        self.decisions.promotions.count(&fresh.promoted());
        Ok((imported, others))
    }

    /// Decides rows of which something may be known, in one transaction.
    async fn try_known(
        &self,
        import: &Import,
        rows: &[&Keyed],
        may: CommitCheck<'_>,
    ) -> Result<Imported, Failure> {
        let mut tx = self.database.begin_whole().await?;
        let mut promoted = Vec::new();
        let imported = self.try_chunk(&mut *tx, import, rows, &mut promoted).await?;
        fail_points::IMPORT_PART_WRITTEN.pass();
        may()?;
        tx.commit().await?;
        self.decisions.promotions.count(&promoted);
        Ok(imported)
    }

    /// Imports all rows in one transaction.
    async fn try_whole(
        &self,
        import: &Import,
        rows: &[Keyed],
        may: CommitCheck<'_>,
    ) -> Result<Imported, Failure> {
        let now = self.decisions.clock.now();
        let attribution = attribution(import);
        let mut tx = self.database.begin_whole().await?;
        let (fresh, others) = match rows.len() {
            // One revision, whatever is known.
            ..=CHUNK => (fresh::Fresh::default(), rows.iter().collect()),
            _ => fresh::divide(&mut *tx, import, &attribution, rows, now).await?,
        };
        fresh.create(&mut *tx).await?;
        if rows.len() > CHUNK {
            // All contests are created before any is locked, and all are locked before the head is.
            let keys: Vec<_> = others.iter().map(|keyed| &keyed.row.proposal.key).collect();
            for keys in keys.chunks(CHUNK) {
                tx.contests().create(keys, now).await?;
            }
            for keys in keys.chunks(CHUNK) {
                tx.contests().lock(keys).await?;
            }
            tx.log().advance_head(0).await?;
            fail_points::IMPORT_LOCKED.pass();
        }
        let mut imported = fresh.save(&mut *tx, &attribution).await?;
        let mut promoted = fresh.promoted();
        if fresh.len() > 0 {
            fail_points::IMPORT_PART_WRITTEN.pass();
        }
        for chunk in others.chunks(CHUNK) {
            imported.add(self.try_chunk(&mut *tx, import, chunk, &mut promoted).await?);
            fail_points::IMPORT_PART_WRITTEN.pass();
            if let Some(refused) = imported.refused.first() {
                return Err(resource_limit(format!(
                    "nothing was imported: line {}: {} {}",
                    refused.line, refused.field, refused.description
                ))
                .into());
            }
        }
        may()?;
        tx.commit().await?;
        self.decisions.promotions.count(&promoted);
        Ok(imported)
    }

    async fn try_chunk(
        &self,
        tx: &mut dyn UnitOfWork,
        import: &Import,
        rows: &[&Keyed],
        promoted: &mut Vec<(Kind, Cause)>,
    ) -> Result<Imported, Failure> {
        let keys = rows.iter().map(|keyed| keyed.row.proposal.key.clone());
        let mut unit = self.decisions.open(tx, keys).await?;
        let attribution = attribution(import);
        let mut imported = Imported::default();
        let cast = match import.import_as {
            ImportAs::Decision => std::collections::HashMap::new(),
            ImportAs::Votes => {
                let ids: Vec<FeedbackId> = rows
                    .iter()
                    .map(|keyed| vote_id(&import.actor.caller, &keyed.row.proposal))
                    .collect();
                tx.inbox().seen(&[], &ids).await?.ballots
            }
        };
        for Keyed { row, .. } in rows {
            let done = if let Some(why) = no_vote(import, row) {
                Err(why)
            } else if let Err(limit) = unit.check_size(&row.proposal.key, &row.proposal.value) {
                Err(format!("has more than the {limit} bytes that the policy allows"))
            } else if import.import_as == ImportAs::Votes
                && !unit.check_candidates(
                    row.proposal.key.contest_id(),
                    row.proposal.value.candidate_id(row.proposal.key.contest_id()),
                )
            {
                Err(format!(
                    "is a new value for a key that has {MAX_CANDIDATES} candidates already"
                ))
            } else {
                let done = match import.import_as {
                    ImportAs::Decision => decide_row(&mut unit, &attribution, row),
                    ImportAs::Votes if cast.contains_key(&vote_id(&import.actor.caller, &row.proposal)) => {
                        Ok(false)
                    }
                    ImportAs::Votes => self.vote_row(&mut unit, import, &attribution, row),
                };
                done.map_err(|refusal| format!("is refused: {refusal}"))
            };
            match done {
                Ok(true) => imported.applied += 1,
                Ok(false) => imported.unchanged += 1,
                Err(description) => imported.refused.push(RowError {
                    line: row.line,
                    field: "correction".to_owned(),
                    description,
                }),
            }
        }
        let written: Written = unit.finish(tx).await?;
        imported.first = written.revisions.first();
        imported.last = written.revisions.last();
        promoted.extend(written.promoted);
        Ok(imported)
    }

    /// Casts the caller's vote for a row.
    fn vote_row(
        &self,
        unit: &mut OpenContests,
        import: &Import,
        attribution: &Attribution,
        row: &Row,
    ) -> Result<bool, Refusal> {
        let Proposal { key, value, .. } = &row.proposal;
        let contest = key.contest_id();
        let caller = &import.actor.caller;
        let voter = Voter::new(None, caller.clone(), None);
        let ballot = Ballot {
            feedback_id: vote_id(caller, &row.proposal),
            accept_order: unit.next_accept_order(contest),
            voter: voter.key(&key.namespace),
            identified: voter.is_identified(),
            caller: caller.clone(),
            candidate: value.candidate_id(contest),
            received_at: self.decisions.clock.now(),
        };
        let event = Event::Recorded {
            ballot: ballot.clone(),
            value: value.clone(),
            origin: Origin::Import,
            personal_data: row.proposal.personal_data,
            sender: Roles::default(),
            retracted_by: None,
        };
        let attribution = Attribution {
            trigger: Some(Trigger {
                feedback: ballot.feedback_id,
                received_at: ballot.received_at,
                traceparent: String::new(),
            }),
            task: None,
            ..attribution.clone()
        };
        unit.decide(contest, &event, &attribution, RevisionChoice::Shared)?;
        unit.votes.details.push(BallotDetails {
            feedback: ballot.feedback_id,
            reporter: emend_core::Reporter::default(),
            query_id: String::new(),
            reason: attribution.reason,
            context: std::collections::BTreeMap::new(),
        });
        unit.votes.ballots.push(NewBallot {
            contest,
            ballot,
            retracted: false,
            system_choice: row.proposal.system_choice.clone().unwrap_or_default(),
            traceparent: String::new(),
        });
        Ok(true)
    }
}

/// Why a row can't be imported as a vote, if it is to be.
fn no_vote(import: &Import, row: &Row) -> Option<String> {
    let kind = row.proposal.key.kind;
    let rule = kind.rules().rule;
    let is_wrong = import.import_as == ImportAs::Votes && !matches!(rule, Rule::Votes { .. });
    is_wrong.then(|| {
        format!(
            "is no vote: {kind} is decided by {}, import it as a decision",
            rule.decided_by()
        )
    })
}

/// Applies a row's value as a person's decision. Returns whether that changed anything.
fn decide_row(unit: &mut OpenContests, attribution: &Attribution, row: &Row) -> Result<bool, Refusal> {
    let Proposal { key, value, .. } = &row.proposal;
    let contest = key.contest_id();
    let is_so = unit
        .state(contest)
        .is_some_and(|state| match key.kind.rules().rule {
            // What somebody else decided alike may be taken back; what a person wrote stays.
            Rule::Ruling(_) => state.effective().first().is_some_and(|newest| {
                let is_written = newest
                    .ruling
                    .as_ref()
                    .is_some_and(|of| of.approved && of.roles == Roles::default());
                is_written && newest.value == *value
            }),
            _ => {
                state.pinned
                    && state
                        .resource
                        .as_ref()
                        .is_some_and(|resource| resource.value == *value)
            }
        });
    if is_so {
        return Ok(false);
    }
    unit.decide(
        contest,
        &put(attribution, value),
        attribution,
        RevisionChoice::Shared,
    )?;
    Ok(true)
}

/// A person puts a value by import.
fn put(attribution: &Attribution, value: &ResourceValue) -> Event {
    Event::Put {
        value: value.clone(),
        origin: Origin::Import,
        reason: (!attribution.reason.is_empty()).then(|| attribution.reason.clone()),
    }
}

/// Who imports, and why.
fn attribution(import: &Import) -> Attribution {
    Attribution {
        actor: import.actor.clone(),
        reason: import.reason.clone().unwrap_or_default(),
        operation: Some(import.operation),
        trigger: None,
        task: None,
    }
}

/// The id of the caller's vote for a value.
fn vote_id(caller: &Caller, proposal: &Proposal) -> FeedbackId {
    let contest = proposal.key.contest_id();
    learning_store::contests::imported_vote_id(caller, contest, proposal.value.candidate_id(contest))
}
