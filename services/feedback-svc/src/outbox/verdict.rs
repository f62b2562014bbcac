//! What learning-svc's answer to one event means for its entry in the outbox.
//!
//! A batch without answers is not decided here.

use bytes::Bytes;
use emend_base::status::{Explained, from_item_status};
use emend_proto::learning::v1::{EventResult, event_result};
use feedback_store::records::outbox::{EncodedOutcome, Refusal};
use prost::Message as _;
use tonic::Code;

/// The longest refusal that is stored, in characters.
const MAX_ERROR: usize = 1_000;

/// What an answer means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was applied, now or before.
    Delivered(EncodedOutcome),
    /// It may be applied on a later attempt. With the stable reason, if one is given.
    Again(Refusal, Option<String>),
    /// It will never be applied as it is: a dead letter. With the stable reason, if one is given.
    Never(Refusal, Option<String>),
}

/// The verdict on one answer.
pub(crate) fn judge(result: EventResult) -> Verdict {
    match result.result {
        Some(event_result::Result::Outcome(outcome)) => {
            Verdict::Delivered(EncodedOutcome(Bytes::from(outcome.encode_to_vec())))
        }
        Some(event_result::Result::Error(status)) => {
            let reason = from_item_status(&status).and_then(|status| Explained::from(status).reason);
            refused(status.code, &status.message, reason)
        }
        // From a newer learning-svc, or a bug in it. A retry costs little and loses nothing.
        None => refused(
            Code::Unknown.into(),
            "the result is neither an outcome nor an error",
            None,
        ),
    }
}

/// The verdict on a refusal.
fn refused(code: i32, message: &str, reason: Option<String>) -> Verdict {
    let refusal = Refusal {
        code,
        error: message.chars().take(MAX_ERROR).collect(),
    };
    if is_final(Code::from(code)) {
        Verdict::Never(refusal, reason)
    } else {
        Verdict::Again(refusal, reason)
    }
}

/// Whether a code concerns the event, and not the condition of learning-svc. What causes `NOT_FOUND`,
/// `PERMISSION_DENIED` or `UNIMPLEMENTED` may be put right by somebody, who then redrives the dead letters.
fn is_final(code: Code) -> bool {
    match code {
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented => true,
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::ResourceExhausted
        | Code::Aborted
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss
        | Code::Unauthenticated => false,
    }
}

#[cfg(test)]
mod tests {
    use emend_proto::common::v1::{ItemStatus, Outcome};

    use super::*;

    fn error(code: Code) -> EventResult {
        let status = ItemStatus {
            code: code.into(),
            message: "no".into(),
            details: Vec::new(),
        };
        EventResult {
            event_id: String::new(),
            result: Some(event_result::Result::Error(status)),
        }
    }

    #[test]
    fn refusals_of_an_event_are_final_and_temporary_ones_are_not() {
        for code in [
            Code::InvalidArgument,
            Code::FailedPrecondition,
            Code::Unimplemented,
        ] {
            assert!(
                matches!(judge(error(code)), Verdict::Never(refusal, None) if refusal.code == i32::from(code))
            );
        }
        for code in [
            Code::Unavailable,
            Code::Aborted,
            Code::Internal,
            Code::ResourceExhausted,
            Code::Unauthenticated,
        ] {
            assert!(matches!(judge(error(code)), Verdict::Again(..)), "{code:?}");
        }
        assert!(matches!(judge(EventResult::default()), Verdict::Again(..)));
    }

    #[test]
    fn outcomes_are_passed_on_unchanged() {
        let outcome = Outcome {
            message: "Learned".into(),
            revision: 7,
            ..Outcome::default()
        };
        let result = EventResult {
            event_id: String::new(),
            result: Some(event_result::Result::Outcome(outcome.clone())),
        };
        let Verdict::Delivered(encoded) = judge(result) else {
            panic!("not delivered")
        };
        assert_eq!(Outcome::decode(&*encoded.0), Ok(outcome));
    }
}
