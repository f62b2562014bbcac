//! People approve and reject candidates.

use emend_base::{Error, error::PreconditionViolation};
use emend_core::{
    CandidateId, Cause, ContestState, Event, Namespace, OperationId, Policy, ResourceValue, Revision, Status,
};
use emend_serve::auth::Access;
use learning_store::{
    actor::Actor,
    contests::{CandidateRecord, Named},
};

use crate::{
    decisions::{Decisions, numbering::RevisionChoice, open::Attribution, users::lock_user},
    etag,
    failure::{Failure, refused, value_too_large},
};

/// The reason for which a proposal is not approved without a word.
const RATINGS_REDACTED: &str = "RATINGS_REDACTED";

/// The transitions of a candidate that are read to find its first approval.
const HISTORY: u32 = 200;

/// Which candidate a person decides on, and who that person is.
#[derive(Debug, Clone)]
pub struct Review {
    /// The candidate's search application.
    pub namespace: Namespace,
    /// The candidate.
    pub candidate: CandidateId,
    /// Only if it still has this etag.
    pub etag: Option<String>,
    /// The reviewer.
    pub actor: Actor,
    /// The bulk action this is part of.
    pub operation: Option<OperationId>,
    /// The decision.
    pub verdict: Verdict,
}

/// A person's decision on a candidate.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// Apply it, as proposed or edited.
    Approve {
        /// The value to apply instead.
        edited: Option<ResourceValue>,
        /// The reason given.
        reason: Option<String>,
        /// Also if ratings that it was generated from have been redacted since.
        accept_redacted: bool,
    },
    /// Turn it down.
    Reject {
        /// The reason given.
        reason: String,
    },
}

/// An approval, once it is known whether it is the second of the same value.
struct Approval {
    candidate: CandidateId,
    edited: Option<ResourceValue>,
    is_second: bool,
}

/// The result of a review.
#[derive(Debug, Clone)]
pub struct Reviewed {
    /// The candidate decided on; if the value was edited, the edited one.
    pub candidate: CandidateRecord,
    /// The revision written; 0 where no resource changed.
    pub revision: Revision,
}

/// The error for a proposal that may still say what was erased.
fn ratings_redacted(candidate: CandidateId, redacted: u64) -> Error {
    let message = format!(
        "{redacted} of the ratings that it was made of have been redacted since, and what they said may still be in the text: \
         read it, then approve it with accept_redacted"
    );
    precondition(RATINGS_REDACTED, &message, candidate)
}

fn precondition(reason: &'static str, message: &str, candidate: CandidateId) -> Error {
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

impl Decisions {
    /// The candidate with this id, if it is in the namespace.
    pub async fn candidate(&self, namespace: &Namespace, id: CandidateId) -> Result<CandidateRecord, Error> {
        self.store
            .candidate(id)
            .await?
            .filter(|record| record.key.namespace == *namespace)
            .ok_or_else(|| Error::not_found("candidate", id.to_string()))
    }

    /// Carries out a person's decision if `access` permits: a user's own resource needs the right to act for users.
    pub async fn review(&self, review: &Review, access: &Access) -> Result<Reviewed, Error> {
        let reviewed = self.retry(|| self.try_review(review, access)).await?;
        self.publish(reviewed.revision).await;
        Ok(reviewed)
    }

    async fn try_review(&self, review: &Review, access: &Access) -> Result<Reviewed, Failure> {
        let id = review.candidate;
        let unknown = || Error::not_found("candidate", id.to_string());
        let mut tx = self.store.begin().await?;
        let key = tx
            .contests()
            .contest_of(id)
            .await?
            .filter(|key| key.namespace == review.namespace)
            .ok_or_else(unknown)?;
        if let Some(user) = &key.user {
            access.speaks_for_users(key.namespace.as_str())?;
            lock_user(&mut *tx, &key.namespace, user).await?;
        }
        let contest = key.contest_id();
        let mut unit = self.open(&mut *tx, [key.clone()]).await?;
        unit.read_named(&mut *tx, contest, Named::Candidate(id)).await?;
        let version = unit
            .found(contest)
            .and_then(|found| found.kept.get(&id))
            .map(|kept| kept.version)
            .ok_or_else(unknown)?;
        etag::check(review.etag.as_deref(), &etag::of_version(version))?;

        let (event, reason) = match &review.verdict {
            Verdict::Approve {
                edited,
                reason,
                accept_redacted: _,
            } => {
                if let Some(edited) = edited {
                    unit.check_size(&key, edited).map_err(value_too_large)?;
                }
                let found = unit.found(contest).ok_or_else(unknown)?;
                let policy = unit.policy(&key);
                let approval = self
                    .approval(&found.state, &policy, (review, edited.as_ref()), access)
                    .await?;
                let event = Event::Approve {
                    candidate: approval.candidate,
                    edited: approval.edited,
                    reason: reason.clone(),
                    is_second: approval.is_second,
                };
                (event, reason.clone().unwrap_or_default())
            }
            Verdict::Reject { reason } => {
                let event = Event::Reject {
                    candidate: id,
                    reason: reason.clone(),
                };
                (event, reason.clone())
            }
        };
        let attribution = Attribution {
            actor: review.actor.clone(),
            reason,
            operation: review.operation,
            trigger: None,
            task: None,
        };
        let made = unit
            .decide(contest, &event, &attribution, RevisionChoice::Own)
            .map_err(|refusal| refused(&refusal, &id.to_string()))?;
        if let Verdict::Approve {
            accept_redacted: false,
            ..
        } = review.verdict
        {
            match tx.redactions().redacted(id).await? {
                0 => {}
                redacted => return Err(ratings_redacted(id, redacted).into()),
            }
        }
        let decided_upon = made.subject.unwrap_or(id);
        let written = self.commit(tx, &mut unit).await?;
        let candidate = unit.record(contest, decided_upon).ok_or_else(|| {
            Error::internal(format!(
                "candidate {decided_upon} was decided, but no longer exists"
            ))
        })?;
        Ok(Reviewed {
            candidate,
            revision: written.revisions.of(made.revision),
        })
    }

    /// Where the policy needs two reviewers: whether another one approved the same value before. They are told apart by what the
    /// service knows of them, not by on whose behalf they say to act.
    async fn approval(
        &self,
        state: &ContestState,
        policy: &Policy,
        (review, edited): (&Review, Option<&ResourceValue>),
        access: &Access,
    ) -> Result<Approval, Failure> {
        let id = review.candidate;
        let mut approval = Approval {
            candidate: id,
            edited: edited.cloned(),
            is_second: false,
        };
        if !policy.needs_two(state.key.user.is_some()) {
            return Ok(approval);
        }
        if !access.is_authenticated() {
            let message =
                "the policy needs two reviewers, who can't be told apart: callers are not authenticated";
            return Err(precondition("AUTHENTICATION_NEEDED", message, id).into());
        }
        let awaiting = || {
            state
                .candidates
                .iter()
                .filter(|candidate| candidate.awaits_second())
        };
        if let Some(edited) = edited
            && let Some(same) = awaiting().find(|candidate| candidate.value == *edited)
        {
            approval.candidate = same.id;
            approval.edited = None;
        }
        let is_approved =
            approval.edited.is_none() && awaiting().any(|candidate| candidate.id == approval.candidate);
        if is_approved {
            let history = self.store.transitions(approval.candidate, HISTORY).await?;
            let first = history.iter().rfind(|transition| {
                transition.cause == Cause::Review && transition.to == Status::AwaitingReview
            });
            if first.is_some_and(|first| first.actor.caller == review.actor.caller) {
                let message = "you approved it already, and the policy needs another reviewer";
                return Err(precondition("SECOND_REVIEWER", message, approval.candidate).into());
            }
            approval.is_second = first.is_some();
        }
        Ok(approval)
    }
}
