//! Why a use case failed: the database, or a reason the caller is told.

use emend_base::Error;
use emend_core::{Refusal, ResourceKey};
use emend_store::{CorruptRow, MayConflict, StoreError};

/// Why a use case failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The database failed; a conflict restarts the use case.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A reason the caller is told.
    #[error(transparent)]
    Refused(#[from] Error),
}

impl MayConflict for Failure {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_conflict())
    }
}

impl From<CorruptRow> for Failure {
    fn from(row: CorruptRow) -> Self {
        Self::Store(row.into())
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Store(error) => error.into(),
            Failure::Refused(error) => error,
        }
    }
}

/// The error for a limit of the policy that is reached.
pub(crate) fn resource_limit(message: impl Into<String>) -> Error {
    Error::ResourceExhausted {
        reason: "RESOURCE_LIMIT",
        message: message.into(),
        retry_after: None,
    }
}

/// The error for a value larger than `limit`, the bytes the policy allows.
pub(crate) fn value_too_large(limit: u32) -> Error {
    resource_limit(format!(
        "the value has more than the {limit} bytes that the policy allows"
    ))
}

/// The error for a refusal by the rules. `subject` names what it is about.
pub(crate) fn refused(refusal: &Refusal, subject: &str) -> Error {
    let precondition = |reason| Error::FailedPrecondition {
        reason,
        message: refusal.to_string(),
        violations: vec![emend_base::error::PreconditionViolation {
            kind: reason.into(),
            subject: subject.to_owned(),
            description: refusal.to_string(),
        }],
    };
    match refusal {
        Refusal::UnknownCandidate => Error::not_found("candidate", subject),
        Refusal::NoResource => Error::not_found("resource", subject),
        Refusal::AlreadyApplied => precondition("ALREADY_APPLIED"),
        Refusal::AlreadyRejected => precondition("ALREADY_REJECTED"),
        Refusal::RejectedForGood => precondition("REJECTED_FOR_GOOD"),
        Refusal::TakenBack => precondition("TAKEN_BACK"),
        Refusal::Window => precondition("WINDOW"),
        Refusal::NotApproved => precondition("NOT_APPROVED"),
        Refusal::NotByReview => precondition("NOT_BY_REVIEW"),
        Refusal::NotByVotes => precondition("NOT_BY_VOTES"),
        Refusal::SameId => precondition("SAME_ID"),
        Refusal::NotTheLastDecision => precondition("NOT_THE_LAST_DECISION"),
        Refusal::BaseChanged => Error::Aborted {
            reason: "BASE_CHANGED",
            message: refusal.to_string(),
        },
        Refusal::WrongKind | Refusal::NoValue => Error::invalid("value", refusal.to_string()),
        Refusal::Full => resource_limit(refusal.to_string()),
    }
}

/// The name of a resource in errors: its parts, joined by slashes.
pub(crate) fn subject(key: &ResourceKey) -> String {
    let mut subject = format!("{}/{}/{}", key.namespace, key.kind, key.key);
    for part in [key.qualifier.as_str(), key.user_id()] {
        if !part.is_empty() {
            subject.push('/');
            subject.push_str(part);
        }
    }
    subject
}
