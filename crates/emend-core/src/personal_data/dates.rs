//! Tells dates and times of the day from telephone numbers.

use std::ops::RangeInclusive;

/// Whether a run of groups of digits is nothing but dates and times of the day: each date a year, a month and a day, or the
/// other way round, with the same separator between them; times of up to three parts before or after it. Or it is nothing but
/// months, or dates and times without separators. After the hours and minutes of a time it may also be seconds with a fraction
/// of any length, and what the time differs from UTC.
///
/// A date whose year has two digits looks like a part of a telephone number in pairs of digits: beside it there is at most one
/// other group, and that is no further part behind a slash.
pub(super) fn are_dates(run: &str, before: &str) -> bool {
    let groups = groups(run);
    if are_months(&groups) || are_compact(&groups) {
        return true;
    }
    // After a colon begins a part of a time.
    if are_spelled_out(&groups, usize::from(before.ends_with(':'))) {
        return true;
    }
    let with_fraction = fraction(&groups, before);
    with_fraction > 0 && (with_fraction == groups.len() || are_spelled_out(&groups[with_fraction..], 3))
}

/// Whether they are dates with separators, and times beside them, of which so many parts were before.
fn are_spelled_out(groups: &[(&str, &str)], mut parts_of_time: usize) -> bool {
    let (mut place, mut dates) = (0, 0);
    while place < groups.len() {
        if let Some(year) = date(&groups[place..]) {
            if year == Year::TwoDigits && !is_alone(groups, place) {
                return false;
            }
            place += 3;
            dates += 1;
            parts_of_time = 0;
        } else if parts_of_time < 3 && within(groups[place].0, 0..=59) {
            place += 1;
            parts_of_time += 1;
        } else {
            return false;
        }
    }
    dates > 0
}

/// How many groups are seconds with a fraction, and the difference from UTC behind it: after `HH:MM:`.
fn fraction(groups: &[(&str, &str)], before: &str) -> usize {
    let start = before.len().saturating_sub("HH:MM:".len());
    let is_after_minutes = match &before.as_bytes()[start..] {
        [hour @ .., b':', ten, one, b':'] => {
            hour.len() == 2 && hour.iter().chain([ten, one]).all(u8::is_ascii_digit)
        }
        _ => false,
    };
    if !is_after_minutes {
        return 0;
    }
    match groups {
        [(seconds, "."), (_, "-"), (difference, _), ..]
            if within(seconds, 0..=60) && (within(difference, 0..=23) || is_clock(difference)) =>
        {
            3
        }
        [(seconds, "."), (_, _), ..] if within(seconds, 0..=60) => 2,
        _ => 0,
    }
}

/// Whether they are years with a month each, all written the same way: 2026/04-2026/09.
fn are_months(groups: &[(&str, &str)]) -> bool {
    let Some((_, first)) = groups.first() else {
        return false;
    };
    let is_month = |group: &[(&str, &str)]| match group {
        [(year, between), (month, _)] => is_year(year) && between == first && within(month, 1..=12),
        _ => false,
    };
    matches!(*first, "/" | "-" | ".") && groups.chunks(2).all(is_month)
}

/// Whether they are dates as 20260401, with or without a time as 1030 or 103000 behind each, apart or not.
fn are_compact(groups: &[(&str, &str)]) -> bool {
    let mut may_be_time = false;
    groups.iter().all(|(group, _)| {
        let is_date = is_compact(group);
        let fits = is_date || may_be_time && is_clock(group);
        may_be_time = is_date && group.len() == 8;
        fits
    })
}

/// Whether the digits are a date, and then perhaps a time of the day.
fn is_compact(digits: &str) -> bool {
    if !matches!(digits.len(), 8 | 12 | 14) {
        return false;
    }
    let (year, month, day) = (&digits[..4], &digits[4..6], &digits[6..8]);
    is_year(year)
        && within(month, 1..=12)
        && within(day, 1..=31)
        && (digits.len() == 8 || is_clock(&digits[8..]))
}

/// Whether the digits are hours and minutes, and then perhaps seconds.
fn is_clock(digits: &str) -> bool {
    matches!(digits.len(), 4 | 6)
        && within(&digits[..2], 0..=23)
        && within(&digits[2..4], 0..=59)
        && (digits.len() == 4 || within(&digits[4..], 0..=59))
}

/// Whether it is a year of four digits.
fn is_year(group: &str) -> bool {
    group.len() == 4 && (group.starts_with("19") || group.starts_with("20"))
}

/// The groups of digits, each with the separators behind it.
pub(super) fn groups(run: &str) -> Vec<(&str, &str)> {
    let mut groups = Vec::new();
    let mut rest = run;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (group, behind) = rest.split_at(digits);
        let separators = behind.find(|c: char| c.is_ascii_digit()).unwrap_or(behind.len());
        let (separator, behind) = behind.split_at(separators);
        groups.push((group, separator));
        rest = behind;
    }
    groups
}

/// How the year of a date is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Year {
    TwoDigits,
    FourDigits,
}

/// The year of the date with which the groups begin, if they do. It has four digits, or two between slashes.
fn date(groups: &[(&str, &str)]) -> Option<Year> {
    let [(one, between), (two, same), (three, _), ..] = groups else {
        return None;
    };
    if between != same || !matches!(*between, "/" | "-" | ".") {
        return None;
    }
    let year = |group: &str| match group.len() {
        4 => is_year(group).then_some(Year::FourDigits),
        2 => (*between == "/").then_some(Year::TwoDigits),
        _ => None,
    };
    let month_and_day = |month, day| within(month, 1..=12) && within(day, 1..=31);
    let first = year(one).filter(|_| month_and_day(two, three));
    first.or_else(|| year(three).filter(|_| month_and_day(one, two) || month_and_day(two, one)))
}

/// Whether beside the date at this place there is at most one other group, which no slash joins to it.
fn is_alone(groups: &[(&str, &str)], place: usize) -> bool {
    let before = place.checked_sub(1).map_or("", |place| groups[place].1);
    let behind = groups[place + 2].1;
    groups.len() <= 4 && !before.contains('/') && !behind.contains('/')
}

/// Whether one or two digits are such a number.
fn within(group: &str, range: RangeInclusive<u32>) -> bool {
    matches!(group.len(), 1 | 2) && group.parse().is_ok_and(|number| range.contains(&number))
}

#[cfg(test)]
mod tests {
    use crate::personal_data::mask;

    #[test]
    fn dates_and_times_are_not_masked() {
        for text in [
            "on 2026-11-21",
            "2026/11/21 10",
            "2026/11/21 10:30",
            "at 10:30 2026/11/21",
            "at 10:30:15 2026-11-21",
            "2026-11-21 10.30.15",
            "21.11.2026 9",
            "11/21/2026 10:30",
            "26/11/21",
            "26/11/21 10",
            "26/11/21 10:30",
            "26/11/21 10:30:15",
            "at 10:30 26/11/21",
            "at 10:30:15 26/11/21",
            "2026/11/21-2026/11/25",
            "2026/11/21 10-12",
            "２０２６／１１／２１　１０：３０に",
            "2026/11/21 10時",
            "2026/04-2026/09",
            "２０２６－０４－２０２６－０９",
            "20260401-20260930",
            "20260401 1030",
            "20260401 103000",
            "202604011030",
            "20260401103000",
            "期間20260401〜20260930",
            "2026-11-21T10:30:05.1234567+09:00",
            "2026-11-21T10:30:05.1234567-05:00",
            "2026-11-21T10:30:05.1234567-0500",
            "2026-11-21T10:30:05.123456789Z",
            "10:30:05.123456789",
            "10:30:05.123456789012345",
            "10:30:05.123456789 2026-11-21",
            "2026/11/21 10:30:05.1234567",
            "時刻は１０：３０：０５．１２３４５６７です",
        ] {
            assert_eq!(mask(text), text);
        }
    }

    #[test]
    fn telephone_numbers_beside_colons_and_times_are_masked() {
        for (text, masked) in [
            ("TEL:03.12345678", "TEL:[phone]"),
            ("10:03.12345678", "10:[phone]"),
            ("tel:10:03.12345678", "tel:10:[phone]"),
            ("10:30:090.1234.5678", "10:30:[phone]"),
            ("10:30:05.12 090-1234-5678", "10:30:[phone]"),
            ("10:30:05.12 34 56 78", "10:30:[phone]"),
        ] {
            assert_eq!(mask(text), masked);
        }
    }

    #[test]
    fn numbers_that_only_look_like_dates_are_masked() {
        for text in [
            "01.02.03.04.05",
            "2026/13/21 10",
            "2026/11-21 10",
            "2026/11/21 090-1234-5678",
            "090-1234-5678 2026/11/21",
            "1999-12-31 555 1234",
            "2026/13-2026/14",
            "20261301 20261401",
            "20260401 10309999",
            // Pairs of digits, as telephone numbers are written in France.
            "06/12/34/56/18",
            "06/12/34 56 18",
            "06/12/34-56-18",
            "06/12/34/56",
            "06 18 12/11/34",
            "06 12/11/34 18",
            "34/06/12/11/08",
            "０６／１２／３４／５６／１８",
        ] {
            assert_eq!(mask(text), "[phone]", "{text}");
        }
    }
}
