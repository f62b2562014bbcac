//! A person's approval or rejection is undone, soon after.

use emend_base::{Error, error::PreconditionViolation};
use emend_core::{CandidateId, Cause, Event, Namespace, Refusal};
use emend_serve::auth::{Access, Role};
use learning_store::{
    actor::Actor,
    contests::{Named, UNDO_WITHIN, UndoableRecord},
};

use crate::{
    decisions::{
        Decisions, numbering::RevisionChoice, open::Attribution, review::Reviewed, users::lock_user,
    },
    etag,
    failure::{Failure, refused},
};

/// The transitions of a candidate that are read to say why nothing can be undone.
const HISTORY: u32 = 200;

/// Whose decision to undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undo {
    /// The candidate's search application.
    pub namespace: Namespace,
    /// The candidate that was decided on, or the one that an edited approval made.
    pub candidate: CandidateId,
    /// Only if it still has this etag.
    pub etag: Option<String>,
    /// Who undoes it.
    pub actor: Actor,
}

fn refusal(reason: &'static str, message: &str, candidate: CandidateId) -> Error {
    Error::FailedPrecondition {
        reason,
        message: message.to_owned(),
        violations: vec![PreconditionViolation {
            kind: reason.into(),
            subject: candidate.to_string(),
            description: message.to_owned(),
        }],
    }
}

fn too_late(candidate: CandidateId) -> Error {
    let minutes = UNDO_WITHIN.as_mins();
    let message =
        format!("a decision can be undone for {minutes} minutes, and this one is older: decide anew");
    refusal("TOO_LATE_TO_UNDO", &message, candidate)
}

impl Decisions {
    /// Undoes the last decision on a candidate, if `access` permits: its maker may, or an operator.
    pub async fn undo(&self, undo: &Undo, access: &Access) -> Result<Reviewed, Error> {
        let undone = self.retry(|| self.try_undo(undo, access)).await?;
        self.publish(undone.revision).await;
        Ok(undone)
    }

    async fn try_undo(&self, undo: &Undo, access: &Access) -> Result<Reviewed, Failure> {
        let id = undo.candidate;
        let unknown = || Error::not_found("candidate", id.to_string());
        let mut tx = self.store.begin().await?;
        let key = tx
            .contests()
            .contest_of(id)
            .await?
            .filter(|key| key.namespace == undo.namespace)
            .ok_or_else(unknown)?;
        if let Some(user) = &key.user {
            access.speaks_for_users(key.namespace.as_str())?;
            lock_user(&mut *tx, &key.namespace, user).await?;
        }
        let contest = key.contest_id();
        let mut unit = self.open(&mut *tx, [key]).await?;
        unit.read_named(&mut *tx, contest, Named::Candidate(id)).await?;
        let found = unit.found(contest).ok_or_else(unknown)?;
        let now = found.row.locked_at;
        let version = found.kept.get(&id).map(|kept| kept.version).ok_or_else(unknown)?;
        etag::check(undo.etag.as_deref(), &etag::of_version(version))?;

        let kept = tx.contests().undoable(contest).await?;
        let is_other = kept.is_some();
        let is_about = |record: &UndoableRecord| {
            let decision = &record.decision;
            decision.candidate == id || decision.subject == id
        };
        let Some(record) = kept.filter(is_about) else {
            return Err(self.nothing_to_undo(id, is_other).await?.into());
        };
        if now.duration_since(record.made_at) > UNDO_WITHIN {
            return Err(too_late(id).into());
        }
        if record.actor != undo.actor && !access.holds(Role::Operator, &undo.namespace) {
            return Err(Error::PermissionDenied {
                reason: "NOT_THE_DECIDER",
                message: "somebody else decided this: they can undo it, and operators can".to_owned(),
            }
            .into());
        }
        let candidate = record.decision.candidate;
        // Where people review, what was decided about is read only by name.
        let changed = record.decision.changed.iter().map(|changed| changed.id);
        for id in std::iter::once(candidate).chain(changed) {
            unit.read_named(&mut *tx, contest, Named::Candidate(id)).await?;
        }
        let event = Event::Undo {
            decision: Box::new(record.decision),
        };
        let attribution = Attribution::by(undo.actor.clone(), "");
        let made = unit
            .decide(contest, &event, &attribution, RevisionChoice::Own)
            .map_err(|refusal| refused(&refusal, &id.to_string()))?;
        tx.contests().forget_undoable(contest).await?;
        let written = self.commit(tx, &mut unit).await?;
        let candidate = unit.record(contest, candidate).ok_or_else(|| {
            Error::internal(format!(
                "the decision on candidate {candidate} was undone, but the candidate no longer exists"
            ))
        })?;
        Ok(Reviewed {
            candidate,
            revision: written.revisions.of(made.revision),
        })
    }

    /// Why no decision on a candidate can be undone: its history tells. `is_other`: one on another candidate can be.
    async fn nothing_to_undo(&self, id: CandidateId, is_other: bool) -> Result<Error, Failure> {
        let history = self.store.transitions(id, HISTORY).await?;
        let reviewed = history
            .iter()
            .rev()
            .find(|transition| matches!(transition.cause, Cause::Review | Cause::Undo))
            .filter(|transition| transition.cause == Cause::Review && transition.from.is_some());
        Ok(match reviewed {
            None => refusal(
                "NOTHING_TO_UNDO",
                "no person's decision on this candidate is in force",
                id,
            ),
            Some(_) if is_other => refused(&Refusal::NotTheLastDecision, &id.to_string()),
            Some(_) => too_late(id),
        })
    }
}
