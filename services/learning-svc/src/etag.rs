//! Etags, opaque to callers: a change takes effect only on the state its caller saw.

use emend_base::Error;
use emend_core::{Invalid, violation::bounded_text};

/// Maximum length of an etag sent, in characters; longer than any ever handed out.
const MAX_LENGTH: usize = 64;

/// The etag of a resource: the revision that gave it its value.
pub(crate) fn of_revision(revision: i64) -> String {
    revision.to_string()
}

/// The etag of a candidate or policy: a version number that grows with each change.
pub(crate) fn of_version(version: i64) -> String {
    version.to_string()
}

/// Parses an etag as sent; empty means none. One of white space was meant to be one, and must not change what it guards.
pub(crate) fn parse(raw: &str) -> Result<Option<String>, Invalid> {
    if raw.is_empty() {
        return Ok(None);
    }
    bounded_text(raw, 1, MAX_LENGTH).map(Some)
}

/// Refuses to change something that is no longer as the caller saw it.
pub(crate) fn check(asked: Option<&str>, current: &str) -> Result<(), Error> {
    match asked {
        Some(asked) if asked != current => Err(Error::Aborted {
            reason: "ETAG_MISMATCH",
            message: "it has changed since you read it: read it again".into(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_different_etag_is_a_mismatch() {
        assert!(check(None, "7").is_ok());
        assert!(check(Some("7"), "7").is_ok());
        assert!(matches!(check(Some("6"), "7"), Err(Error::Aborted { .. })));
        assert_eq!(parse(""), Ok(None));
        assert!(parse(&"x".repeat(65)).is_err());
        assert!(parse("a\0").is_err());
        assert!(parse(" \t").is_err());
    }
}
