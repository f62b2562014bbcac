//! Numbers and times as people type them into forms.

use std::{str::FromStr, time::Duration};

use emend_base::{Error, config::units};
use tonic::Status;

use crate::form::Fields;

/// A number that was typed.
pub(crate) fn number<T: FromStr>(fields: &Fields, field: &'static str) -> Result<T, Status> {
    let number = fields.get(field).parse();
    number.map_err(|_| Error::invalid(field, "must be a whole number within its bounds").into())
}

/// The version of what a form changes, as the page showed it. Without it the change of somebody else could be overwritten unseen.
pub(crate) fn etag(fields: &Fields) -> Result<String, Status> {
    match fields.get("etag") {
        "" => Err(Error::invalid(
            "etag",
            "is missing: open the page again, and change what it shows then",
        )
        .into()),
        etag => Ok(etag.to_owned()),
    }
}

/// A number that was typed; 0 if the field is empty.
pub(crate) fn number_or_zero(fields: &Fields, field: &'static str) -> Result<i32, Status> {
    match fields.get(field) {
        "" => Ok(0),
        _ => number(fields, field),
    }
}

/// A time that was typed, for example `90d`; none if the field is empty.
pub(crate) fn span(fields: &Fields, field: &'static str) -> Result<Option<prost_types::Duration>, Status> {
    let typed = fields.get(field);
    if typed.is_empty() {
        return Ok(None);
    }
    let span = units::duration(typed)
        .and_then(|span| prost_types::Duration::try_from(span).map_err(|_| "is too long".to_owned()));
    span.map(Some).map_err(|why| Error::invalid(field, why).into())
}

/// A time as people type it; empty if there is none.
pub(crate) fn span_text(span: Option<&prost_types::Duration>) -> String {
    let span = span.and_then(|span| Duration::try_from(*span).ok());
    span.map(units::written).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_changed_without_the_version_that_was_seen() {
        assert_eq!(etag(&Fields::parse(b"etag=7")).unwrap(), "7");
        let missing = etag(&Fields::parse(b"etag=+")).unwrap_err();
        assert!(missing.message().contains("etag"), "{missing}");
    }

    #[test]
    fn a_time_comes_back_as_it_was_typed() {
        let fields = Fields::parse(b"span=90d&empty=&bad=soon");
        let typed = span(&fields, "span").unwrap();
        assert_eq!(span_text(typed.as_ref()), "90d");
        assert_eq!(
            (span(&fields, "empty").unwrap(), span_text(None)),
            (None, String::new())
        );
        assert!(span(&fields, "bad").is_err());
    }
}
