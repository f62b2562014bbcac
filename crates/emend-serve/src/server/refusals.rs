//! Requests that never reach their handler: of methods that nobody serves, unreadable, or too large.
//!
//! tonic and the codec refuse them with a code and a sentence. Here they get what every other refusal has: a stable reason,
//! and for what is the request's fault the code that says so.

use std::collections::HashMap;

use emend_base::{error::DOMAIN, request_id::RequestId};
use http::Response;
use tonic::{Code, Status, body::Body};
use tonic_types::{ErrorDetails, StatusExt as _};

/// The response; if it refuses without saying why in details, with these.
pub(super) fn explained(mut response: Response<Body>) -> Response<Body> {
    let Some(status) = Status::from_header_map(response.headers()) else {
        return response;
    };
    if !status.details().is_empty() {
        return response;
    }
    let (code, reason) = match status.code() {
        // Handlers give their own details: what has none was refused while it was read.
        Code::InvalidArgument | Code::Internal => (Code::InvalidArgument, "REQUEST_UNREADABLE"),
        Code::OutOfRange => (Code::OutOfRange, "REQUEST_TOO_LARGE"),
        Code::Unimplemented => (Code::Unimplemented, "UNIMPLEMENTED"),
        _ => return response,
    };
    let mut details = ErrorDetails::new();
    details.set_error_info(reason, DOMAIN, HashMap::new());
    if let Some(id) = RequestId::current() {
        details.set_request_info(id.as_str(), "");
    }
    let message = match status.message() {
        "" => "no such method",
        message => message,
    };
    let explained = Status::with_error_details(code, message, details);
    // Fails only for a message that can't be a header, and it was one.
    let _ = explained.add_header(response.headers_mut());
    response
}

#[cfg(test)]
mod tests {
    use emend_base::{error::Error, status::Explained};

    use super::*;

    fn explained_of(status: Status) -> (Code, Option<String>, String) {
        let response = explained(status.into_http());
        let status = Status::from_header_map(response.headers()).expect("a status");
        let explained = Explained::from(&status);
        (explained.code, explained.reason, explained.message)
    }

    #[test]
    fn what_is_refused_before_its_handler_gets_a_reason_and_other_answers_stay() {
        for (status, code, reason) in [
            (
                Status::invalid_argument("can't be read"),
                Code::InvalidArgument,
                "REQUEST_UNREADABLE",
            ),
            (
                Status::internal("Missing request message."),
                Code::InvalidArgument,
                "REQUEST_UNREADABLE",
            ),
            (
                Status::out_of_range("too large"),
                Code::OutOfRange,
                "REQUEST_TOO_LARGE",
            ),
            (Status::unimplemented(""), Code::Unimplemented, "UNIMPLEMENTED"),
            (
                Error::not_found("candidate", "x").into(),
                Code::NotFound,
                "NOT_FOUND",
            ),
            (Error::internal("a defect").into(), Code::Internal, "INTERNAL"),
        ] {
            let (seen, seen_reason, message) = explained_of(status);
            assert_eq!((seen, seen_reason.as_deref()), (code, Some(reason)));
            assert!(!message.is_empty());
        }
        assert_eq!(explained_of(Status::not_found("")).1, None);
        assert!(Status::from_header_map(explained(Response::new(Body::empty())).headers()).is_none());
    }
}
