//! Value parsers of settings with a unit and bounds: spans of time, sizes, counts.

use std::{fmt, ops::RangeInclusive, time::Duration};

const SPANS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];
const SIZES: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// Parses a span of time: a whole number and one of ms, s, m, h, d, for example `1500ms`, `30s`, `90d`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let millis = parse(text, &SPANS).map_err(|wrong| match wrong {
        ParseError::Unit => "expected a number and a unit: ms, s, m, h or d, for example 30s".to_owned(),
        ParseError::Number(number) => format!("{number:?} is not a whole number"),
        ParseError::Large => "is too long".to_owned(),
    })?;
    Ok(Duration::from_millis(millis))
}

/// A duration in the words of [`duration`].
pub fn written(span: Duration) -> String {
    InUnits(u64::try_from(span.as_millis()).unwrap_or(u64::MAX), &SPANS).to_string()
}

/// Parses a size in bytes: a whole number and one of B, KiB, MiB, GiB, for example `64KiB`.
pub fn size(text: &str) -> Result<u64, String> {
    parse(text, &SIZES).map_err(|wrong| match wrong {
        ParseError::Unit => "expected a number and a unit: B, KiB, MiB or GiB, for example 32MiB".to_owned(),
        ParseError::Number(number) => format!("{number:?} is not a whole number"),
        ParseError::Large => "is too large".to_owned(),
    })
}

/// A value parser of spans within bounds.
pub fn span(
    bounds: RangeInclusive<Duration>,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    move |text| within(duration(text)?, &bounds, |span| written(*span))
}

/// A value parser of sizes in bytes within bounds.
pub fn bytes(
    bounds: RangeInclusive<usize>,
) -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync + 'static {
    move |text| {
        let bytes = usize::try_from(size(text)?).map_err(|_| "is too large".to_owned())?;
        within(bytes, &bounds, |bytes| InUnits(*bytes as u64, &SIZES))
    }
}

/// A value parser of whole numbers within bounds.
pub fn count(
    bounds: RangeInclusive<usize>,
) -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text
            .parse()
            .map_err(|_| format!("{text:?} is not a whole number"))?;
        within(number, &bounds, |number| *number)
    }
}

fn within<T: PartialOrd, S: fmt::Display>(
    value: T,
    bounds: &RangeInclusive<T>,
    shown: impl Fn(&T) -> S,
) -> Result<T, String> {
    if bounds.contains(&value) {
        return Ok(value);
    }
    Err(format!(
        "{} is not within {} to {}",
        shown(&value),
        shown(bounds.start()),
        shown(bounds.end())
    ))
}

enum ParseError {
    Unit,
    Number(String),
    Large,
}

fn parse(text: &str, units: &[(&str, u64)]) -> Result<u64, ParseError> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = units
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, factor)| *factor);
    let factor = factor.ok_or(ParseError::Unit)?;
    let number: u64 = number
        .parse()
        .map_err(|_| ParseError::Number(number.to_owned()))?;
    number.checked_mul(factor).ok_or(ParseError::Large)
}

/// A value in the largest unit that divides it.
struct InUnits(u64, &'static [(&'static str, u64)]);

impl fmt::Display for InUnits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value, units) = self;
        let unit = units
            .iter()
            .find(|(_, factor)| *value > 0 && value.is_multiple_of(*factor));
        match unit.or(units.last()) {
            Some((name, factor)) => write!(f, "{}{name}", value / factor),
            None => value.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_and_sizes_have_a_unit() {
        assert_eq!(duration("1500ms"), Ok(Duration::from_millis(1_500)));
        assert_eq!(duration("2d"), Ok(Duration::from_hours(48)));
        assert_eq!(written(Duration::from_hours(48)), "2d");
        assert_eq!(size("64KiB"), Ok(65_536));
        for bad in [
            "",
            "5",
            "s",
            "1.5h",
            "-1s",
            "5kb",
            "99999999999999999999s",
            "213503982334602d",
        ] {
            assert!(duration(bad).is_err() && size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_value_out_of_bounds_is_refused_with_the_bounds() {
        let parse = span(Duration::from_millis(1_500)..=Duration::from_hours(2));
        assert_eq!(parse("2h"), Ok(Duration::from_hours(2)));
        assert_eq!(parse("3h").unwrap_err(), "3h is not within 1500ms to 2h");
        assert_eq!(
            bytes(0..=65_536)("1MiB").unwrap_err(),
            "1MiB is not within 0B to 64KiB"
        );
        assert_eq!(count(1..=64)("0").unwrap_err(), "0 is not within 1 to 64");
        assert!(count(1..=64)("-1").is_err());
    }
}
