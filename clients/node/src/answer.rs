//! What JavaScript is told: `{"ok": …}` or `{"error": …}`, JSON in a string.

use emend_binding::Error;
use serde::Serialize;
use serde_json::json;

/// An answer that is JSON already.
pub(crate) fn told(answer: Result<String, Error>) -> String {
    match answer {
        Ok(json) => format!("{{\"ok\":{json}}}"),
        Err(error) => refused(&error),
    }
}

/// An answer of any form.
pub(crate) fn told_of<T: Serialize>(answer: Result<T, Error>) -> String {
    match answer {
        Ok(value) => json!({ "ok": value }).to_string(),
        Err(error) => refused(&error),
    }
}

/// An error.
pub(crate) fn refused(error: &Error) -> String {
    json!({ "error": error }).to_string()
}

/// An error to throw.
pub(crate) fn thrown(error: &Error) -> napi::Error {
    napi::Error::from_reason(refused(error))
}
