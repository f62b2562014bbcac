//! Requests that are refused before the protocol sees them.

use axum::{
    body::Body,
    response::{IntoResponse as _, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

/// Why a caller is not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// It has to say who it is.
    NoToken(String),
    /// Its token is not accepted: it expired, is for somebody else, or is none.
    BadToken(String),
    /// It may do nothing here.
    Forbidden(String),
    /// Nobody can tell now.
    Unavailable(String),
}

impl Refused {
    /// As OAuth names it.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::NoToken(_) => "invalid_request",
            Self::BadToken(_) => "invalid_token",
            Self::Forbidden(_) => "insufficient_scope",
            Self::Unavailable(_) => "temporarily_unavailable",
        }
    }

    fn message(&self) -> &str {
        let (Self::NoToken(message)
        | Self::BadToken(message)
        | Self::Forbidden(message)
        | Self::Unavailable(message)) = self;
        message
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::NoToken(_) | Self::BadToken(_) => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The answer, with the challenge of a 401.
    pub(super) fn response(&self, challenge: &str) -> Response {
        let body = json!({"error": self.code(), "error_description": self.message()});
        let mut response = json_of(self.status(), &body);
        let headers = response.headers_mut();
        match self {
            Self::NoToken(_) | Self::BadToken(_) => {
                if let Ok(challenge) = HeaderValue::from_str(challenge) {
                    headers.insert(header::WWW_AUTHENTICATE, challenge);
                }
            }
            Self::Unavailable(_) => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
            }
            Self::Forbidden(_) => {}
        }
        response
    }
}

/// An answer in JSON.
pub(super) fn json_of(status: StatusCode, value: &Value) -> Response {
    let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, json, Body::from(value.to_string())).into_response()
}
