//! Reading a [`tonic::Status`] on the client's side: the google.rpc details in it, for programs and for people.

use std::{collections::BTreeMap, fmt, time::Duration};

use emend_core::violation::FieldViolation;
use emend_proto::common::v1::ItemStatus;
use prost::Message as _;
use tonic::{Code, Status, TimeoutExpired};
use tonic_types::{ErrorDetails, RpcStatusExt as _, pb};

use crate::{error::PreconditionViolation, tls::is_of_other_protocol};

/// A status with its details decoded. `Display` prints all of it, one line per finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The gRPC code.
    pub code: Code,
    /// One sentence.
    pub message: String,
    /// A stable reason in `UPPER_SNAKE_CASE`.
    pub reason: Option<String>,
    /// The domain that defines the reason.
    pub domain: Option<String>,
    /// More about the reason.
    pub metadata: BTreeMap<String, String>,
    /// Every violated field.
    pub field_violations: Vec<FieldViolation>,
    /// The violated preconditions.
    pub preconditions: Vec<PreconditionViolation>,
    /// How long to wait before retrying.
    pub retry_after: Option<Duration>,
    /// The request's id in the server's log.
    pub request_id: Option<String>,
}

/// The details of a status; empty if they are not a `google.rpc.Status`.
fn details_of(status: &Status) -> ErrorDetails {
    match pb::Status::decode(status.details()) {
        Ok(mut message) => {
            // A delay outside protobuf's range is dropped: it is more than can be computed with.
            message
                .details
                .retain(|detail| !detail.type_url.ends_with(".RetryInfo") || is_countable(&detail.value));
            message.get_error_details()
        }
        Err(_) => ErrorDetails::new(),
    }
}

/// Whether a `RetryInfo` has a delay of 0 to 315,576,000,000 s (10,000 years), or none.
fn is_countable(retry_info: &[u8]) -> bool {
    pb::RetryInfo::decode(retry_info).is_ok_and(|info| {
        info.retry_delay.is_none_or(|delay| {
            (0..=315_576_000_000).contains(&delay.seconds) && (0..1_000_000_000).contains(&delay.nanos)
        })
    })
}

/// Said of a call that the client gave up.
pub const NO_ANSWER: &str = "no answer within the time limit";
/// The same of a call that changes something.
pub const NO_ANSWER_TO_CHANGE: &str =
    "no answer within the time limit; what was to be changed may be changed all the same";

/// Whether the client gave up the call when its time was up. tonic calls that CANCELLED.
pub fn is_expired_here(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if error.is::<TimeoutExpired>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The code and the message. Of a connection that failed, tonic's message says only that there is a cause: the innermost is added.
fn code_and_message(status: &Status) -> (Code, String) {
    let mut innermost = std::error::Error::source(status);
    while let Some(cause) = innermost.and_then(std::error::Error::source) {
        innermost = Some(cause);
    }
    let (code, message) = (status.code(), status.message());
    match innermost.map(ToString::to_string) {
        _ if is_expired_here(status) => (Code::DeadlineExceeded, NO_ANSWER.to_owned()),
        Some(cause) if is_of_other_protocol(&cause) => (Code::Unavailable, cause),
        Some(cause) if !message.contains(&cause) => (code, format!("{message}: {cause}")),
        _ => (code, message.to_owned()),
    }
}

impl From<&Status> for Explained {
    fn from(status: &Status) -> Self {
        let details = details_of(status);
        let info = details.error_info();
        let (code, message) = code_and_message(status);
        Self {
            code,
            message,
            reason: info.map(|info| info.reason.clone()),
            domain: info.map(|info| info.domain.clone()),
            metadata: info
                .map(|info| info.metadata.clone().into_iter().collect())
                .unwrap_or_default(),
            field_violations: details
                .bad_request()
                .map(|bad| &*bad.field_violations)
                .unwrap_or_default()
                .iter()
                .map(|violation| FieldViolation {
                    field: violation.field.clone(),
                    description: violation.description.clone(),
                })
                .collect(),
            preconditions: details
                .precondition_failure()
                .map(|failure| &*failure.violations)
                .unwrap_or_default()
                .iter()
                .map(|violation| PreconditionViolation {
                    kind: violation.r#type.clone().into(),
                    subject: violation.subject.clone(),
                    description: violation.description.clone(),
                })
                .collect(),
            retry_after: details.retry_info().and_then(|retry| retry.retry_delay),
            request_id: details.request_info().map(|request| request.request_id.clone()),
        }
    }
}

impl From<Status> for Explained {
    fn from(status: Status) -> Self {
        Self::from(&status)
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", code_name(self.code))?;
        // The reason of some is the code's name.
        if let Some(reason) = self.reason.as_deref()
            && reason != code_name(self.code)
        {
            write!(f, " ({reason})")?;
        }
        // With violated fields, the message only repeats them in one line.
        if self.field_violations.is_empty() && !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        for violation in &self.field_violations {
            write!(f, "\n  {violation}")?;
        }
        for PreconditionViolation {
            kind,
            subject,
            description,
        } in &self.preconditions
        {
            // One that is all there is to say was said.
            if *description != self.message {
                write!(f, "\n  {kind} {subject}: {description}")?;
            }
        }
        if let Some(delay) = self.retry_after {
            write!(f, "\n  try again in {delay:?}")?;
        }
        if let (Code::Internal | Code::Unknown, Some(id)) = (self.code, &self.request_id) {
            write!(f, "\n  request id {id}")?;
        }
        Ok(())
    }
}

/// The whole status as text for people: code, reason, every violated field and precondition.
pub fn explain(status: &Status) -> String {
    Explained::from(status).to_string()
}

/// The status of one item of a batch; `None` if the item is fine.
pub fn from_item_status(item: &ItemStatus) -> Option<Status> {
    let code = Code::from(item.code);
    (code != Code::Ok).then(|| {
        let encoded = tonic_types::Status {
            code: item.code,
            message: item.message.clone(),
            details: item.details.clone(),
        };
        Status::with_details(code, item.message.clone(), encoded.encode_to_vec().into())
    })
}

/// The name of a code as the gRPC specification writes it, for example `INVALID_ARGUMENT`.
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn people_see_every_violated_field_on_a_line_of_its_own() {
        let violations = ["a", "b"].map(|field| FieldViolation {
            field: field.into(),
            description: "bad".into(),
        });
        let status = Status::from(Error::InvalidArgument(violations.to_vec()));
        assert_eq!(
            explain(&status),
            "INVALID_ARGUMENT (INVALID_FIELDS)\n  a: bad\n  b: bad"
        );
    }

    #[test]
    fn a_status_without_details_is_explained_by_its_message() {
        assert_eq!(
            explain(&Status::unavailable("connection refused")),
            "UNAVAILABLE: connection refused"
        );
    }

    #[test]
    fn a_call_that_the_client_gave_up_has_exceeded_its_deadline() {
        let expired = Status::from_error(Box::new(TimeoutExpired(())));
        assert_eq!(expired.code(), Code::Cancelled);
        assert_eq!(explain(&expired), format!("DEADLINE_EXCEEDED: {NO_ANSWER}"));
        assert_eq!(
            explain(&Status::cancelled("by the server")),
            "CANCELLED: by the server"
        );
    }

    #[test]
    fn details_that_can_not_be_read_do_not_hide_the_status() {
        let status = Status::with_details(Code::Aborted, "etag", vec![0xff; 9].into());
        assert_eq!(explain(&status), "ABORTED: etag");
    }

    #[test]
    fn a_retry_delay_out_of_range_is_ignored_and_the_other_details_are_read() {
        let explained = |seconds, nanos| {
            let busy = Status::from(Error::ResourceExhausted {
                reason: "BUSY",
                message: "later".into(),
                retry_after: None,
            });
            let mut details = pb::Status::decode(busy.details()).unwrap();
            let info = pb::RetryInfo {
                retry_delay: Some(prost_types::Duration { seconds, nanos }),
            };
            details.details.push(prost_types::Any {
                type_url: "type.googleapis.com/google.rpc.RetryInfo".into(),
                value: info.encode_to_vec(),
            });
            let status =
                Status::with_details(Code::ResourceExhausted, "later", details.encode_to_vec().into());
            Explained::from(&status)
        };
        assert_eq!(explained(3, 5).retry_after, Some(Duration::new(3, 5)));
        for (seconds, nanos) in [
            (i64::MIN, 0),
            (i64::MAX, i32::MAX),
            (-1, 0),
            (0, -1),
            (315_576_000_001, 0),
        ] {
            let explained = explained(seconds, nanos);
            assert_eq!(explained.retry_after, None, "{seconds} s, {nanos} ns");
            assert_eq!(explained.reason.as_deref(), Some("BUSY"));
        }
    }

    #[test]
    fn a_successful_item_has_no_status() {
        assert!(from_item_status(&ItemStatus::default()).is_none());
    }
}
