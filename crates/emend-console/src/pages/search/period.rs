//! From which day to which a page of search looks, by the fields `from` and `to` of its address.

use jiff::{ToSpan as _, civil::Date, tz::TimeZone};
use prost_types::Timestamp;
use tonic::Status;

use crate::form::Fields;

/// A period of whole days in UTC, its last day included; without an end where none was typed.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Period {
    /// The first day as it was typed.
    pub first: String,
    /// The last day as it was typed.
    pub last: String,
    /// Its first instant.
    pub from: Option<Timestamp>,
    /// The first instant behind it.
    pub before: Option<Timestamp>,
}

impl Period {
    /// The one that an address says.
    pub(super) fn of(fields: &Fields) -> Result<Self, Status> {
        Ok(Self {
            first: fields.get("from").to_owned(),
            last: fields.get("to").to_owned(),
            from: day(fields, "from", false)?,
            before: day(fields, "to", true)?,
        })
    }
}

/// The begin of a day that was typed, or of the day after it; none if none was.
fn day(fields: &Fields, name: &'static str, after: bool) -> Result<Option<Timestamp>, Status> {
    let typed = fields.get(name);
    if typed.is_empty() {
        return Ok(None);
    }
    let invalid = || Status::from(emend_base::Error::invalid(name, "must be a date, YYYY-MM-DD"));
    let date: Date = typed.parse().map_err(|_| invalid())?;
    let date = if after {
        date.checked_add(1.day()).map_err(|_| invalid())?
    } else {
        date
    };
    let at = date.to_zoned(TimeZone::UTC).map_err(|_| invalid())?.timestamp();
    Ok(Some(Timestamp {
        seconds: at.as_second(),
        nanos: 0,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_ends_with_its_last_day() {
        let period = Period::of(&Fields::parse(b"from=2026-11-01&to=2026-11-01")).unwrap();
        let seconds = |at: Option<Timestamp>| at.unwrap().seconds;
        assert_eq!(seconds(period.before) - seconds(period.from), 86_400);
        assert_eq!(Period::of(&Fields::default()).unwrap(), Period::default());
        assert!(Period::of(&Fields::parse(b"from=1")).is_err());
    }
}
