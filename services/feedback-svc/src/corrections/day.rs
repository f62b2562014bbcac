//! Days: from when until when a day lasts somewhere.

use emend_core::Invalid;
use jiff::{
    Timestamp,
    civil::Date,
    tz::{TimeZone, TimeZoneDatabase},
};

/// The most characters of a time zone's name that are looked at.
const ZONE_CHARS: usize = 64;

/// A day as it is written: YYYY-MM-DD.
pub(crate) fn date(raw: &str) -> Result<Date, Invalid> {
    let date = raw.parse::<Date>().ok();
    // What jiff reads beside that would be another way to write the same.
    date.filter(|date| date.to_string() == raw)
        .ok_or_else(|| Invalid::new("must be a day as YYYY-MM-DD, for example 2026-03-29"))
}

/// A time zone by its IANA name; without one, UTC. The database is part of the program: no machine has another one.
pub(crate) fn time_zone(raw: &str) -> Result<TimeZone, Invalid> {
    if raw.is_empty() {
        return Ok(TimeZone::UTC);
    }
    let known = raw.chars().count() <= ZONE_CHARS;
    let zone = known.then(|| TimeZoneDatabase::bundled().get(raw).ok()).flatten();
    zone.ok_or_else(|| {
        Invalid::new("must be the name of a time zone in the IANA database, for example Asia/Tokyo")
    })
}

/// The first instant of a day, and the first after it. Where the clocks are changed a day has more or less than 24 hours; one
/// that was left out has none.
pub(crate) fn bounds(date: Date, zone: &TimeZone) -> Result<(Timestamp, Timestamp), Invalid> {
    let begins = |date: Date| Ok::<_, jiff::Error>(date.to_zoned(zone.clone())?.timestamp());
    let both = || Ok::<_, jiff::Error>((begins(date)?, begins(date.tomorrow()?)?));
    both().map_err(|_| Invalid::new("is out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_lasts_from_its_first_instant_until_that_of_the_next() {
        for (day, zone, from, before) in [
            ("2026-03-01", "", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"),
            (
                "2026-03-01",
                "Asia/Tokyo",
                "2026-02-28T15:00:00Z",
                "2026-03-01T15:00:00Z",
            ),
            // 23 hours, and 25.
            (
                "2026-03-08",
                "America/New_York",
                "2026-03-08T05:00:00Z",
                "2026-03-09T04:00:00Z",
            ),
            (
                "2026-11-01",
                "America/New_York",
                "2026-11-01T04:00:00Z",
                "2026-11-02T05:00:00Z",
            ),
            // Begins at one o'clock: the clocks skipped midnight.
            (
                "2018-11-04",
                "America/Sao_Paulo",
                "2018-11-04T03:00:00Z",
                "2018-11-05T02:00:00Z",
            ),
            // The hour before midnight came twice.
            (
                "2018-02-17",
                "America/Sao_Paulo",
                "2018-02-17T02:00:00Z",
                "2018-02-18T03:00:00Z",
            ),
            // The first hour came twice.
            (
                "2025-11-02",
                "America/Havana",
                "2025-11-02T04:00:00Z",
                "2025-11-03T05:00:00Z",
            ),
            // There was no such day.
            (
                "2011-12-30",
                "Pacific/Apia",
                "2011-12-30T10:00:00Z",
                "2011-12-30T10:00:00Z",
            ),
            (
                "2024-02-29",
                "UTC",
                "2024-02-29T00:00:00Z",
                "2024-03-01T00:00:00Z",
            ),
        ] {
            let bounds = bounds(date(day).unwrap(), &time_zone(zone).unwrap()).unwrap();
            let bounds = (bounds.0.to_string(), bounds.1.to_string());
            assert_eq!(bounds, (from.to_owned(), before.to_owned()), "{day} {zone}");
        }
    }

    #[test]
    fn what_is_no_day_or_no_zone_is_refused() {
        for raw in [
            "2026-02-30",
            "20260301",
            "2026-3-1",
            "2026-03-01T00:00:00",
            "today",
            " 2026-03-01",
        ] {
            assert!(date(raw).is_err(), "{raw:?}");
        }
        let long = "A".repeat(100_000);
        for raw in ["Mars/Olympus", "+09:00", "JST-9", "../UTC", " UTC", &long] {
            assert!(time_zone(raw).is_err(), "{raw:.20}");
        }
        assert!(bounds(date("9999-12-31").unwrap(), &TimeZone::UTC).is_err());
    }
}
