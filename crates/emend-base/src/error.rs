//! The one taxonomy of what can go wrong with a request, and the one place that turns it into a [`tonic::Status`].
//!
//! Every status carries google.rpc details: `BadRequest` with every violated field, `ErrorInfo` with a stable reason,
//! `RetryInfo`, `PreconditionFailure`, `ResourceInfo`. Internal errors are logged with the request's id; the caller
//! gets that id and nothing else. It must know nothing of databases or of any service's rules.

use std::{borrow::Cow, collections::HashMap, error::Error as StdError, fmt, time::Duration};

use emend_core::violation::{FieldViolation, Violations};
use emend_proto::common::v1::ItemStatus;
use prost::Message as _;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::request_id::RequestId;

/// The most violations that a status names: twenty, plus one that sums up the rest.
const MOST_VIOLATIONS: usize = 21;
/// Longest text of a violation's part, in bytes.
const LONGEST_PART: usize = 200;
/// Longest message of a status, in bytes.
const LONGEST_MESSAGE: usize = 2_000;
/// The domain of every `ErrorInfo` that Emend sends.
pub const DOMAIN: &str = "emend.dev";

/// Any error from inside.
pub type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// Why a request, or one item of a batch, was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Some fields are invalid. Nothing was written.
    #[error("invalid argument: {}", Listed(.0))]
    InvalidArgument(Vec<FieldViolation>),
    /// No such resource.
    #[error("{resource} {id:?} not found")]
    NotFound {
        /// The type of resource, for example `candidate`.
        resource: Cow<'static, str>,
        /// The id or name it was looked up by.
        id: String,
    },
    /// Something else already has this identity.
    #[error("{message}")]
    AlreadyExists {
        /// A stable reason in `UPPER_SNAKE_CASE`.
        reason: &'static str,
        /// One sentence.
        message: String,
    },
    /// The current state does not allow it; repeating it will not help until the state changes.
    #[error("{message}")]
    FailedPrecondition {
        /// A stable reason in `UPPER_SNAKE_CASE`.
        reason: &'static str,
        /// One sentence.
        message: String,
        /// The violated preconditions, each with its subject.
        violations: Vec<PreconditionViolation>,
    },
    /// A concurrent change won; read again, then repeat.
    #[error("{message}")]
    Aborted {
        /// A stable reason in `UPPER_SNAKE_CASE`.
        reason: &'static str,
        /// One sentence.
        message: String,
    },
    /// The caller is not known.
    #[error("{message}")]
    Unauthenticated {
        /// A stable reason in `UPPER_SNAKE_CASE`.
        reason: &'static str,
        /// One sentence that reveals nothing to a stranger.
        message: String,
    },
    /// The caller may not do this.
    #[error("{message}")]
    PermissionDenied {
        /// A stable reason in `UPPER_SNAKE_CASE`.
        reason: &'static str,
        /// One sentence.
        message: String,
    },
    /// A limit is reached.
    #[error("{message}")]
    ResourceExhausted {
        /// A stable reason in `UPPER_SNAKE_CASE`.
        reason: &'static str,
        /// One sentence, with the limit.
        message: String,
        /// How long to wait before retrying; `None` if waiting does not help.
        retry_after: Option<Duration>,
    },
    /// Not possible now; the same request may succeed later.
    #[error("{message}")]
    Unavailable {
        /// A stable reason in `UPPER_SNAKE_CASE`.
        reason: &'static str,
        /// One sentence.
        message: String,
        /// How long to wait before retrying.
        retry_after: Option<Duration>,
    },
    /// The caller cancelled the call or is gone, before its request was whole.
    #[error("the caller cancelled the call, or went away, before its request was complete")]
    Cancelled,
    /// The caller's deadline has passed.
    #[error("the deadline has passed")]
    DeadlineExceeded,
    /// A message is larger than one may be.
    #[error("{message}")]
    OutOfRange {
        /// A stable reason in `UPPER_SNAKE_CASE`.
        reason: &'static str,
        /// One sentence, with the limit.
        message: String,
    },
    /// Not built.
    #[error("{0} is not implemented")]
    Unimplemented(&'static str),
    /// A defect, or an error nobody foresaw. The source goes to the log only.
    #[error("internal error")]
    Internal(#[source] BoxError),
}

/// A violated precondition of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreconditionViolation {
    /// The kind of precondition in `UPPER_SNAKE_CASE`, for example `NEWER_REVISION`.
    pub kind: Cow<'static, str>,
    /// What it is about, for example a resource key.
    pub subject: String,
    /// One sentence.
    pub description: String,
}

impl Error {
    /// One invalid field.
    pub fn invalid(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self::InvalidArgument(vec![FieldViolation {
            field: field.into(),
            description: description.into(),
        }])
    }

    /// No such resource.
    pub fn not_found(resource: impl Into<Cow<'static, str>>, id: impl Into<String>) -> Self {
        Self::NotFound {
            resource: resource.into(),
            id: id.into(),
        }
    }

    /// A defect, or an error nobody foresaw.
    pub fn internal(source: impl Into<BoxError>) -> Self {
        Self::Internal(source.into())
    }

    /// Not possible now; worth retrying after a second.
    pub fn unavailable(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Unavailable {
            reason,
            message: message.into(),
            retry_after: Some(Duration::from_secs(1)),
        }
    }

    /// The gRPC code that the caller sees.
    pub fn code(&self) -> Code {
        match self {
            Self::InvalidArgument(_) => Code::InvalidArgument,
            Self::NotFound { .. } => Code::NotFound,
            Self::AlreadyExists { .. } => Code::AlreadyExists,
            Self::FailedPrecondition { .. } => Code::FailedPrecondition,
            Self::Aborted { .. } => Code::Aborted,
            Self::Unauthenticated { .. } => Code::Unauthenticated,
            Self::PermissionDenied { .. } => Code::PermissionDenied,
            Self::ResourceExhausted { .. } => Code::ResourceExhausted,
            Self::Unavailable { .. } => Code::Unavailable,
            Self::Cancelled => Code::Cancelled,
            Self::DeadlineExceeded => Code::DeadlineExceeded,
            Self::OutOfRange { .. } => Code::OutOfRange,
            Self::Unimplemented(_) => Code::Unimplemented,
            Self::Internal(_) => Code::Internal,
        }
    }

    /// The stable reason in `UPPER_SNAKE_CASE` that the caller sees.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::InvalidArgument(_) => "INVALID_FIELDS",
            Self::NotFound { .. } => "NOT_FOUND",
            Self::AlreadyExists { reason, .. }
            | Self::FailedPrecondition { reason, .. }
            | Self::Aborted { reason, .. }
            | Self::Unauthenticated { reason, .. }
            | Self::PermissionDenied { reason, .. }
            | Self::ResourceExhausted { reason, .. }
            | Self::OutOfRange { reason, .. }
            | Self::Unavailable { reason, .. } => reason,
            Self::Cancelled => "CANCELLED",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::Unimplemented(_) => "UNIMPLEMENTED",
            Self::Internal(_) => "INTERNAL",
        }
    }

    /// The google.rpc details that the caller gets.
    fn details(&self, request_id: Option<&RequestId>) -> ErrorDetails {
        let mut details = ErrorDetails::new();
        details.set_error_info(self.reason(), DOMAIN, HashMap::new());
        if let Some(id) = request_id {
            details.set_request_info(id.as_str(), "");
        }
        match self {
            Self::InvalidArgument(violations) => {
                let (named, others) = named(violations);
                for FieldViolation { field, description } in named {
                    details.add_bad_request_violation(
                        shortened(field, LONGEST_PART),
                        shortened(description, LONGEST_PART),
                    );
                }
                if others > 0 {
                    details.add_bad_request_violation("request", not_listed(others));
                }
            }
            Self::NotFound { resource, id } => {
                details.set_resource_info(resource.as_ref(), shortened(id, LONGEST_PART), "", "not found");
            }
            Self::FailedPrecondition { violations, .. } => {
                let (named, others) = named(violations);
                for PreconditionViolation {
                    kind,
                    subject,
                    description,
                } in named
                {
                    details.add_precondition_failure_violation(
                        kind.as_ref(),
                        shortened(subject, LONGEST_PART),
                        shortened(description, LONGEST_PART),
                    );
                }
                if let (Some(last), 1..) = (named.last(), others) {
                    details.add_precondition_failure_violation(
                        last.kind.as_ref(),
                        "request",
                        not_listed(others),
                    );
                }
            }
            Self::ResourceExhausted {
                retry_after: Some(delay),
                ..
            }
            | Self::Unavailable {
                retry_after: Some(delay),
                ..
            } => {
                details.set_retry_info(Some(*delay));
            }
            _ => {}
        }
        details
    }

    /// Logs what the caller must not see.
    fn log_internals(&self, request_id: Option<&RequestId>) {
        if let Self::Internal(source) = self {
            let request_id = request_id.map(RequestId::as_str);
            tracing::error!(request_id, error = %Chain(source.as_ref()), "internal error");
        }
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        to_status(&error)
    }
}

/// The violations that a status names, and how many others there are: those have the last place of [`MOST_VIOLATIONS`].
fn named<T>(violations: &[T]) -> (&[T], usize) {
    if violations.len() <= MOST_VIOLATIONS {
        return (violations, 0);
    }
    let (named, others) = violations.split_at(MOST_VIOLATIONS - 1);
    (named, others.len())
}

fn not_listed(others: usize) -> String {
    format!("has {others} more violations, which are not listed")
}

/// The text, truncated if it is longer than `most` bytes.
fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(most)]))
}

/// The status that the caller sees. It travels in headers, of which clients accept about 16 KiB, so only the first
/// violations are named and long texts are truncated.
pub fn to_status(error: &Error) -> Status {
    let request_id = RequestId::current();
    error.log_internals(request_id.as_ref());
    Status::with_error_details(
        error.code(),
        shortened(&error.to_string(), LONGEST_MESSAGE),
        error.details(request_id.as_ref()),
    )
}

/// The same status, with the same details, for one item of a batch.
pub fn to_item_status(error: &Error) -> ItemStatus {
    item_status(&to_status(error))
}

/// A status as that of one item of a batch.
pub fn item_status(status: &Status) -> ItemStatus {
    let details = tonic_types::Status::decode(status.details())
        .map(|decoded| decoded.details)
        .unwrap_or_default();
    ItemStatus {
        code: status.code().into(),
        message: status.message().to_owned(),
        details,
    }
}

impl From<Vec<FieldViolation>> for Error {
    fn from(violations: Vec<FieldViolation>) -> Self {
        Self::InvalidArgument(violations)
    }
}

impl From<Violations> for Error {
    fn from(violations: Violations) -> Self {
        Self::InvalidArgument(violations.into_vec())
    }
}

/// Violations, separated by semicolons.
struct Listed<'a>(&'a [FieldViolation]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, violation) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{violation}")?;
        }
        Ok(())
    }
}

/// An error with all its sources.
struct Chain<'a>(&'a (dyn StdError + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{request_id::CURRENT, status::Explained};

    fn explained(error: Error) -> Explained {
        Explained::from(&Status::from(error))
    }

    #[test]
    fn every_violated_field_reaches_the_caller() {
        let violations = ["namespace", "correction.verb.correct_choice"].map(|field| FieldViolation {
            field: field.into(),
            description: "is required".into(),
        });
        let status = Status::from(Error::from(violations.to_vec()));
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(
            status.message(),
            "invalid argument: namespace: is required; correction.verb.correct_choice: is required"
        );
        let seen = Explained::from(&status);
        assert_eq!(seen.field_violations, violations);
        assert_eq!(
            (seen.reason.as_deref(), seen.domain.as_deref()),
            (Some("INVALID_FIELDS"), Some(DOMAIN))
        );
    }

    #[test]
    fn very_many_or_very_long_violations_fit_into_the_headers_that_clients_accept() {
        let violations = (0..10_000).map(|n| FieldViolation {
            field: format!("context[{n}]"),
            description: "é".repeat(1_000),
        });
        let many = Status::from(Error::from(violations.collect::<Vec<_>>()));
        let long = Status::from(Error::not_found("service", "\u{1}".repeat(4 << 20)));
        let named = Explained::from(&many).field_violations;
        assert_eq!(named.len(), MOST_VIOLATIONS);
        assert_eq!(
            named[MOST_VIOLATIONS - 1].to_string(),
            "request: has 9980 more violations, which are not listed"
        );
        for status in [many, long] {
            let headers = status.into_http::<()>().into_parts().0.headers;
            let length: usize = headers
                .iter()
                .map(|(name, value)| name.as_str().len() + value.len() + 32)
                .sum();
            assert!(length < 16 * 1024, "{length}");
        }
    }

    #[test]
    fn violated_preconditions_are_listed() {
        let violation = PreconditionViolation {
            kind: "NEWER_REVISION".into(),
            subject: "demo/INVOCATION_PHRASE/set up a csa".into(),
            description: "revision 9 is newer".into(),
        };
        let seen = explained(Error::FailedPrecondition {
            reason: "REVERT_CONFLICT",
            message: "newer revisions exist".into(),
            violations: vec![violation.clone()],
        });
        assert_eq!(
            (seen.code, seen.reason.as_deref()),
            (Code::FailedPrecondition, Some("REVERT_CONFLICT"))
        );
        assert_eq!(seen.preconditions, [violation]);
    }

    #[test]
    fn a_retryable_error_says_when_to_retry() {
        let seen = explained(Error::unavailable("DATABASE_UNAVAILABLE", "the database is away"));
        assert_eq!(
            (seen.code, seen.retry_after),
            (Code::Unavailable, Some(Duration::from_secs(1)))
        );
    }

    #[tokio::test]
    async fn internals_are_hidden_and_the_caller_gets_the_request_id() {
        let secret = std::io::Error::other("password=hunter2 rejected by 10.0.0.7");
        let id = RequestId::parse("req-1").unwrap();
        let status = CURRENT
            .scope(id, async { Status::from(Error::internal(secret)) })
            .await;
        assert_eq!(
            (status.code(), status.message()),
            (Code::Internal, "internal error")
        );
        assert!(!String::from_utf8_lossy(status.details()).contains("hunter2"));
        assert_eq!(Explained::from(&status).request_id.as_deref(), Some("req-1"));
    }

    #[test]
    fn an_item_of_a_batch_carries_the_same_details_as_a_status() {
        let item = to_item_status(&Error::invalid("namespace", "is required"));
        let status = crate::status::from_item_status(&item).unwrap();
        let direct = Status::from(Error::invalid("namespace", "is required"));
        assert_eq!(
            (status.code(), status.message()),
            (direct.code(), direct.message())
        );
        assert_eq!(Explained::from(&status), Explained::from(&direct));
        assert_eq!(Explained::from(&status).field_violations.len(), 1);
    }

    #[test]
    fn every_source_of_an_error_is_logged() {
        let inner = std::io::Error::other("disk on fire");
        let outer = Error::internal(inner);
        let chain = Chain(&outer).to_string();
        assert_eq!(chain, "internal error: disk on fire");
    }
}
