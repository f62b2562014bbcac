//! What is answered: JSON, with the revision that answered, or why there is no answer.

use axum::response::{IntoResponse, Response};
use emend_binding::{Error, Failure};
use http::{
    HeaderValue, StatusCode,
    header::{CONTENT_TYPE, WWW_AUTHENTICATE},
};
use schemars::JsonSchema;
use serde::Serialize;

/// An answer and its revision.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}Answered")]
pub(crate) struct Answered<T> {
    /// The revision that answered: everything at or below it is applied.
    pub revision: i64,
    #[serde(flatten)]
    pub answer: T,
}

/// The answers of a list of look-ups, in its order.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}List")]
pub(crate) struct Answers<T> {
    /// The revision that answered: everything at or below it is applied.
    pub revision: i64,
    /// One for each look-up.
    pub answers: Vec<Item<T>>,
}

/// The answer of one look-up of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "{T}Item")]
pub(crate) enum Item<T> {
    /// It was answered.
    Answer(T),
    /// It was refused.
    Refused(Refusal),
}

/// Why there is no answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Refusal {
    /// What is wrong.
    error: Failure,
}

impl From<&Error> for Refusal {
    fn from(error: &Error) -> Self {
        let error: &Failure = error;
        Self { error: error.clone() }
    }
}

/// JSON.
pub(crate) fn json_of(status: StatusCode, answer: &impl Serialize) -> Response {
    let body = serde_json::to_vec(answer).expect("invariant: answers have texts as keys");
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}

/// An error as an answer.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) Error);

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<emend_base::Error> for Refused {
    fn from(error: emend_base::Error) -> Self {
        Self(Error::refused(error))
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = match self.0.code {
            "INVALID_ARGUMENT" | "OUT_OF_RANGE" => StatusCode::BAD_REQUEST,
            "UNAUTHENTICATED" => StatusCode::UNAUTHORIZED,
            "PERMISSION_DENIED" => StatusCode::FORBIDDEN,
            "NOT_FOUND" => StatusCode::NOT_FOUND,
            "FAILED_PRECONDITION" => StatusCode::CONFLICT,
            "DEADLINE_EXCEEDED" => StatusCode::GATEWAY_TIMEOUT,
            "UNAVAILABLE" => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut answer = json_of(status, &Refusal::from(&self.0));
        if status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            answer.headers_mut().insert(WWW_AUTHENTICATE, bearer);
        }
        answer
    }
}
