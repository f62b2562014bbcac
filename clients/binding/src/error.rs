//! Why something failed, as every language shows it.

use std::{ops::Deref, time::Duration};

use emend_base::status::{Explained, code_name};
use emend_client::{CallError, ConfigError, Invalid, Violations};
use serde::Serialize;
use tonic::Code;

/// Why something failed. `Display` shows all of it, with a line for each violated field.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[error("{}", .0.text)]
#[serde(transparent)]
pub struct Error(Box<Failure>);

/// What an [`Error`] says.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    /// The gRPC code, for example `INVALID_ARGUMENT`.
    pub code: &'static str,
    /// One sentence.
    pub message: String,
    /// A stable reason in `UPPER_SNAKE_CASE`, if there is one.
    pub reason: Option<String>,
    /// Every violated field.
    pub violations: Vec<Violation>,
    /// Every precondition that does not hold.
    pub preconditions: Vec<Precondition>,
    /// How long to wait before the next attempt, in seconds, if the server said so.
    pub retry_after: Option<f64>,
    /// The request's id in the server's log, if the server answered.
    pub request_id: Option<String>,
    /// All of it, for people.
    pub text: String,
}

/// One violated field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Violation {
    /// The path of the field, for example `correction.verb.original_input`.
    pub field: String,
    /// What is wrong with it, with the bound.
    pub description: String,
}

/// One precondition that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Precondition {
    /// Its sort, for example `NEWER_REVISION`.
    pub kind: String,
    /// What it is about.
    pub subject: String,
    /// What does not hold.
    pub description: String,
}

impl Error {
    /// A failure of this library's own.
    pub fn new(code: Code, reason: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        Failure {
            code: code_name(code),
            reason: Some(reason.to_owned()),
            violations: Vec::new(),
            preconditions: Vec::new(),
            retry_after: None,
            request_id: None,
            text: message.clone(),
            message,
        }
        .into()
    }

    /// One field is wrong.
    pub fn of_field(field: &str, description: impl Into<String>) -> Self {
        let mut violations = Violations::new();
        violations.add(field, description);
        violations.into()
    }

    /// A field that does not parse.
    pub fn invalid(field: &str) -> impl Fn(Invalid) -> Self {
        move |Invalid(description)| Self::of_field(field, description)
    }

    /// What a handler of this process refused, as a caller over the network would be told it.
    pub fn refused(error: emend_base::Error) -> Self {
        Self::from(&Explained::from(&tonic::Status::from(error)))
    }

    /// What is asked for is not there.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, "NOT_FOUND", message)
    }

    /// It can't be done now, and may be later.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Code::Unavailable, "UNAVAILABLE", message)
    }

    /// It took longer than the caller wanted to wait.
    pub fn timed_out(message: impl Into<String>) -> Self {
        Self::new(Code::DeadlineExceeded, "TIMED_OUT", message)
    }
}

impl Deref for Error {
    type Target = Failure;

    fn deref(&self) -> &Failure {
        &self.0
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self(Box::new(failure))
    }
}

impl From<Violations> for Error {
    fn from(violations: Violations) -> Self {
        let message = violations.to_string();
        let found = violations.into_vec().into_iter().map(|violation| Violation {
            field: violation.field,
            description: violation.description,
        });
        let mut refused = Self::new(Code::InvalidArgument, "INVALID_FIELDS", message);
        refused.0.violations = found.collect();
        refused
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Address(why) => Self::of_field("addresses", why),
            ConfigError::Invalid(violations) => violations.into(),
        }
    }
}

impl From<&Explained> for Error {
    fn from(explained: &Explained) -> Self {
        let violations = explained.field_violations.iter().map(|violation| Violation {
            field: violation.field.clone(),
            description: violation.description.clone(),
        });
        let preconditions = explained.preconditions.iter().map(|violated| Precondition {
            kind: violated.kind.to_string(),
            subject: violated.subject.clone(),
            description: violated.description.clone(),
        });
        Failure {
            code: code_name(explained.code),
            message: explained.message.clone(),
            reason: explained.reason.clone(),
            violations: violations.collect(),
            preconditions: preconditions.collect(),
            retry_after: explained.retry_after.as_ref().map(Duration::as_secs_f64),
            request_id: explained.request_id.clone(),
            text: explained.to_string(),
        }
        .into()
    }
}

impl From<CallError> for Error {
    fn from(CallError(explained): CallError) -> Self {
        Self::from(&explained)
    }
}
