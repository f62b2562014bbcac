//! Why a command failed, how the failure is reported, and its exit code.

use std::{io, process::ExitCode};

use emend_base::{
    config::FromVariables,
    status::{Explained, code_name},
};
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::{
    context::Unreached,
    output::{json_escaped, on_standard_error},
};

/// The result of a command.
pub type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// The exit codes, as `emend --help` documents them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Ok = 0,
    /// Failed for a reason without a code of its own.
    Failed = 1,
    /// The command line or an argument is not valid.
    Usage = 2,
    /// Something named does not exist.
    NotFound = 3,
    /// The state does not allow it: something exists already, changed meanwhile, or a precondition does not hold.
    Conflict = 4,
    /// The service is unreachable, overloaded or too slow; the same command may succeed later.
    Unavailable = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line or a file is not valid.
    #[error("{0}")]
    Usage(String),
    /// A service can't be reached.
    #[error("can't reach {service} at {address}: {reason}\n  {}", elsewhere(flag))]
    Unreachable {
        /// The service's name.
        service: &'static str,
        /// The address tried.
        address: String,
        /// The flag that sets the address.
        flag: &'static str,
        /// The network's error.
        reason: String,
    },
    /// A service answers, but one side does not trust the other.
    #[error("no secure connection to {service} at {address}: {reason}")]
    Untrusted {
        /// The service's name.
        service: &'static str,
        /// The address tried.
        address: String,
        /// Why one side does not trust the other.
        reason: String,
    },
    /// A service refused the call.
    #[error("{0}")]
    Refused(Box<Explained>),
    /// Something that was named does not exist.
    #[error("{0}")]
    NotFound(String),
    /// Existing state is in the way.
    #[error("{0}")]
    Conflict(String),
    /// Something is unreachable or too slow; the same command may succeed later.
    #[error("{0}")]
    Unavailable(String),
    /// The output was closed by its reader, so there is nobody to report to.
    #[error("the output was closed")]
    OutputClosed,
    /// Anything else.
    #[error("{0:#}")]
    Failed(anyhow::Error),
}

impl Failure {
    /// A failure without a code of its own.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(anyhow::anyhow!(message.into()))
    }

    /// An invalid command line; `message` says what is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) => Exit::Usage,
            Self::Unreachable { .. } | Self::Unavailable(_) => Exit::Unavailable,
            Self::Refused(explained) => exit_of(explained.code),
            Self::NotFound(_) => Exit::NotFound,
            Self::Conflict(_) => Exit::Conflict,
            Self::OutputClosed => Exit::Ok,
            Self::Untrusted { .. } | Self::Failed(_) => Exit::Failed,
        }
    }

    /// The same, which names the environment variables that give what it says is wrong: nobody sees them on the command line.
    #[must_use]
    pub fn naming_variables(self, variables: &FromVariables) -> Self {
        match self {
            Self::Usage(said) => Self::Usage(variables.named(&said)),
            Self::Failed(error) => {
                let said = format!("{error:#}");
                match variables.named(&said) {
                    named if named == said => Self::Failed(error),
                    named => Self::failed(named),
                }
            }
            Self::Refused(mut explained) => {
                let namespace = variables.after("--namespace");
                let violations = explained.field_violations.iter_mut();
                for violation in violations.filter(|violation| violation.field == "namespace") {
                    violation.description += &namespace;
                }
                Self::Refused(explained)
            }
            other => other,
        }
    }

    /// As one JSON object: `{"error": {…}}`.
    pub fn to_json(&self) -> Value {
        let error = match self {
            Self::Refused(explained) => explained_to_json(explained),
            Self::Usage(_) => json!({"code": "INVALID_ARGUMENT", "message": self.to_string()}),
            Self::Unreachable { .. } | Self::Unavailable(_) => {
                json!({"code": "UNAVAILABLE", "message": self.to_string()})
            }
            Self::NotFound(_) => json!({"code": "NOT_FOUND", "message": self.to_string()}),
            Self::Conflict(_) => json!({"code": "FAILED_PRECONDITION", "message": self.to_string()}),
            Self::OutputClosed | Self::Untrusted { .. } | Self::Failed(_) => {
                json!({"code": "UNKNOWN", "message": self.to_string()})
            }
        };
        json!({ "error": error })
    }

    /// Reports the failure on standard error, as text or as JSON.
    pub fn report(&self, json: bool) {
        match self {
            Self::OutputClosed => {}
            failure if json => eprintln!("{}", json_escaped(&failure.to_json().to_string())),
            failure => eprintln!("{}", on_standard_error(&format!("emend: {failure}"))),
        }
    }
}

/// What to do about what can't be reached. A search node is none of the services that `emend up` runs.
fn elsewhere(flag: &str) -> String {
    match flag {
        "node" => "Is a search node running there? --node says where one is.".to_owned(),
        flag => format!("Is `emend up` running? If the service is elsewhere, pass --{flag}."),
    }
}

/// The exit code of a gRPC code.
pub fn exit_of(code: Code) -> Exit {
    match code {
        Code::Ok => Exit::Ok,
        Code::InvalidArgument | Code::OutOfRange => Exit::Usage,
        Code::NotFound => Exit::NotFound,
        Code::AlreadyExists | Code::FailedPrecondition | Code::Aborted => Exit::Conflict,
        Code::Unavailable | Code::DeadlineExceeded | Code::ResourceExhausted | Code::Cancelled => {
            Exit::Unavailable
        }
        Code::Unknown
        | Code::PermissionDenied
        | Code::Unimplemented
        | Code::Internal
        | Code::DataLoss
        | Code::Unauthenticated => Exit::Failed,
    }
}

/// A status with all its details as JSON.
pub fn explained_to_json(explained: &Explained) -> Value {
    let violations: Vec<_> = explained
        .field_violations
        .iter()
        .map(|violation| json!({"field": violation.field, "description": violation.description}))
        .collect();
    let preconditions: Vec<_> = explained
        .preconditions
        .iter()
        .map(|violation| {
            json!({"type": violation.kind, "subject": violation.subject, "description": violation.description})
        })
        .collect();
    json!({
        "code": code_name(explained.code),
        "reason": explained.reason,
        "message": explained.message,
        "fieldViolations": violations,
        "preconditions": preconditions,
        "retryAfterSeconds": explained.retry_after.map(|delay| delay.as_secs_f64()),
        "requestId": explained.request_id,
    })
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        if let Some(failure) = Unreached::failure(&status) {
            return failure;
        }
        Explained::from(&status).into()
    }
}

impl From<Explained> for Failure {
    fn from(mut explained: Explained) -> Self {
        if explained.reason.as_deref() == Some("CREDENTIALS_MISSING") {
            explained.message += ": pass --token-file, or --client-cert and --client-key";
        }
        Self::Refused(Box::new(explained))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::Failed(error.into())
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<Status>() {
            Ok(status) => status.into(),
            Err(error) => Self::Failed(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use emend_base::Error;
    use emend_core::FieldViolation;

    use super::*;

    #[test]
    fn every_code_has_the_documented_exit_code() {
        for (code, exit) in [
            (Code::InvalidArgument, 2),
            (Code::NotFound, 3),
            (Code::AlreadyExists, 4),
            (Code::FailedPrecondition, 4),
            (Code::Aborted, 4),
            (Code::Unavailable, 5),
            (Code::DeadlineExceeded, 5),
            (Code::ResourceExhausted, 5),
            (Code::Internal, 1),
        ] {
            assert_eq!(
                Failure::from(Status::new(code, "no")).exit() as u8,
                exit,
                "{code:?}"
            );
        }
        assert_eq!(Failure::usage("no").exit(), Exit::Usage);
        assert_eq!(Failure::failed("no").exit(), Exit::Failed);
    }

    #[test]
    fn every_violated_field_is_reported_as_text_and_as_json() {
        let violations = ["namespace", "correction.verb.correct_choice"].map(|field| FieldViolation {
            field: field.into(),
            description: "is required".into(),
        });
        let failure = Failure::from(Status::from(Error::InvalidArgument(violations.to_vec())));
        let text = failure.to_string();
        assert!(
            text.contains("namespace: is required") && text.contains("correct_choice: is required"),
            "{text}"
        );
        let json = failure.to_json();
        assert_eq!(json["error"]["code"], "INVALID_ARGUMENT");
        assert_eq!(
            json["error"]["fieldViolations"][1]["field"],
            "correction.verb.correct_choice"
        );
    }

    #[test]
    fn the_time_to_retry_after_is_reported() {
        let failure = Failure::from(Status::from(Error::unavailable("DATABASE_UNAVAILABLE", "away")));
        assert_eq!(failure.exit(), Exit::Unavailable);
        assert!(failure.to_string().contains("try again in 1s"), "{failure}");
        assert_eq!(failure.to_json()["error"]["retryAfterSeconds"], 1.0);
    }

    #[test]
    fn a_closed_output_is_not_a_failure() {
        let gone = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(gone.exit(), Exit::Ok);
    }
}
