//! How often one rater may rate: so many in any minute, and so many in any hour. A rating that soon replaces one of the same
//! query, as a comment does that is typed after a thumb down, is none more. Such are limited as often by themselves, or who
//! rates one query again and again would have no limit.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use emend_core::{Invalid, Violations, search::Rater};

const MINUTE: i64 = 60 * 1_000_000;
/// The longest window, in microseconds.
pub const HOUR: i64 = 60 * MINUTE;
/// For so long a rating may be replaced by one that does not count, in microseconds.
pub const REPLACED_WITHIN: i64 = 5 * MINUTE;

/// How many ratings one rater may give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RatingLimits {
    /// In any 60 seconds.
    pub per_minute: u32,
    /// In any hour.
    pub per_hour: u32,
}

impl Default for RatingLimits {
    fn default() -> Self {
        Self {
            per_minute: 10,
            per_hour: 100,
        }
    }
}

impl RatingLimits {
    const MOST_PER_MINUTE: i64 = 1_000;
    const MOST_PER_HOUR: i64 = 10_000;

    /// Parses both numbers; 0 is the default.
    pub fn parse(per_minute: i64, per_hour: i64) -> Result<Self, Violations> {
        let default = Self::default();
        let mut violations = Violations::new();
        let bounded = |number: i64, default: u32, most: i64| match number {
            0 => Ok(default),
            number if (1..=most).contains(&number) => Ok(u32::try_from(number).unwrap_or(default)),
            number => Err(Invalid::new(format!(
                "must be 1 to {most}, or 0 for {default}, is {number}"
            ))),
        };
        let minute = bounded(per_minute, default.per_minute, Self::MOST_PER_MINUTE);
        let minute = violations.check("per_minute", minute);
        let hour = bounded(per_hour, default.per_hour, Self::MOST_PER_HOUR);
        let hour = violations.check("per_hour", hour);
        if let (Some(minute), Some(hour)) = (minute, hour)
            && hour < minute
        {
            violations.add(
                "per_hour",
                format!("must not be less than per_minute, which is {minute}"),
            );
        }
        violations.finish(
            minute
                .zip(hour)
                .map(|(per_minute, per_hour)| Self { per_minute, per_hour }),
        )
    }
}

/// When raters rated within the last hour. Times are microseconds by the database's clock.
#[derive(Debug, Default)]
pub struct Windows(HashMap<Rater, Given>);

/// When one rater rated.
#[derive(Debug, Default)]
struct Given {
    ratings: VecDeque<i64>,
    replacements: VecDeque<i64>,
    /// By query, when it was rated last so that it counts.
    counted: HashMap<String, i64>,
}

impl Given {
    /// Whether a rating of this query does not count now.
    fn is_replacement(&self, query_id: &str, now: i64) -> bool {
        let counted = self.counted.get(query_id);
        counted.is_some_and(|at| now.saturating_sub(*at) <= REPLACED_WITHIN)
    }

    fn record(&mut self, query_id: &str, at: i64) {
        if self.is_replacement(query_id, at) {
            self.replacements.push_back(at);
            return;
        }
        self.ratings.push_back(at);
        if !query_id.is_empty() {
            self.counted.insert(query_id.to_owned(), at);
        }
    }
}

impl Windows {
    /// Of these ratings, each with its query and time; those of one rater in the order of time.
    pub fn of(ratings: impl IntoIterator<Item = (Rater, String, i64)>) -> Self {
        let mut windows = Self::default();
        for (rater, query_id, at) in ratings {
            windows.0.entry(rater).or_default().record(&query_id, at);
        }
        windows
    }

    /// Counts one more rating, if the rater may give it now; otherwise says after how long the rater may.
    pub fn admit(
        &mut self,
        rater: Rater,
        query_id: &str,
        limits: RatingLimits,
        now: i64,
    ) -> Result<(), Duration> {
        let given = self.0.entry(rater).or_default();
        let times = if given.is_replacement(query_id, now) {
            &given.replacements
        } else {
            &given.ratings
        };
        // The newest of so many is still within the window if the oldest of them is.
        let free_at = |most: u32, window: i64| {
            let oldest = times.len().checked_sub(most as usize)?;
            let free_at = times.get(oldest)?.saturating_add(window);
            (free_at > now).then_some(free_at)
        };
        let free_at = free_at(limits.per_minute, MINUTE).max(free_at(limits.per_hour, HOUR));
        match free_at {
            None => {
                given.record(query_id, now);
                Ok(())
            }
            Some(free_at) => Err(Duration::from_micros((free_at - now).unsigned_abs())),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const RATER: Rater = Rater(Uuid::nil());

    #[test]
    fn as_many_are_admitted_in_any_window_as_the_limits_say_and_it_is_said_when_the_next_will_be() {
        let limits = RatingLimits::default();
        let second = |seconds: i64| seconds * 1_000_000;
        let mut windows = Windows::default();
        for seconds in 0..10 {
            assert_eq!(windows.admit(RATER, "", limits, second(seconds)), Ok(()));
        }
        assert_eq!(
            windows.admit(RATER, "", limits, second(10)),
            Err(Duration::from_secs(50))
        );
        assert_eq!(
            windows.admit(RATER, "", limits, second(60) - 1),
            Err(Duration::from_micros(1))
        );
        assert_eq!(windows.admit(RATER, "", limits, second(60)), Ok(()));
        assert_eq!(
            windows.admit(RATER, "", limits, second(60)),
            Err(Duration::from_secs(1))
        );
        assert_eq!(
            windows.admit(Rater(Uuid::max()), "", limits, second(60)),
            Ok(()),
            "others may"
        );
    }

    #[test]
    fn the_hundred_and_first_in_an_hour_waits_for_the_hour_to_pass() {
        let limits = RatingLimits::default();
        let at = |number: i64| number * 10 * 1_000_000;
        let mut windows = Windows::of((0..100).map(|number| (RATER, String::new(), at(number))));
        let refused = windows.admit(RATER, "", limits, at(100));
        assert_eq!(refused, Err(Duration::from_secs(3_600 - 1_000)));
        assert_eq!(windows.admit(RATER, "", limits, HOUR), Ok(()));
    }

    #[test]
    fn what_replaces_a_rating_within_five_minutes_counts_apart() {
        let limits = RatingLimits::default();
        let mut windows = Windows::default();
        for query in 0..10 {
            assert_eq!(windows.admit(RATER, &format!("q{query}"), limits, 0), Ok(()));
        }
        let minute = Duration::from_mins(1);
        assert_eq!(windows.admit(RATER, "q10", limits, 0), Err(minute));
        for query in 0..10 {
            assert_eq!(windows.admit(RATER, &format!("q{query}"), limits, 0), Ok(()));
        }
        assert_eq!(
            windows.admit(RATER, "q0", limits, 0),
            Err(minute),
            "ten in a minute"
        );
        // The time begins with the rating that counts, not with what replaced it.
        for (at, still_free) in [(REPLACED_WITHIN, 10), (REPLACED_WITHIN + 1, 9)] {
            assert_eq!(windows.admit(RATER, "q0", limits, at), Ok(()));
            let others = (0..20).filter(|other| {
                windows
                    .admit(RATER, &format!("at {at}, {other}"), limits, at)
                    .is_ok()
            });
            assert_eq!(others.count(), still_free);
            // Leave the minute's window as it was.
            windows.0.entry(RATER).or_default().ratings.retain(|of| *of < at);
        }
    }

    #[test]
    fn limits_are_bounded_and_fit_together() {
        assert_eq!(RatingLimits::parse(0, 0), Ok(RatingLimits::default()));
        for (minute, hour, fields) in [
            (-1, 0, vec!["per_minute"]),
            (1_001, 10_001, vec!["per_minute", "per_hour"]),
            (0, 9, vec!["per_hour"]),
            (200, 0, vec!["per_hour"]),
        ] {
            let refused = RatingLimits::parse(minute, hour).unwrap_err().into_vec();
            assert_eq!(refused.iter().map(|of| &*of.field).collect::<Vec<_>>(), fields);
        }
    }
}
