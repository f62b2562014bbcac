//! Small charts: a bar of shares, and a share with its uncertainty.

/// Good, neutral and bad as parts of a bar that is 100 wide.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Shares {
    /// How many are good.
    pub good: i64,
    /// How many are neutral.
    pub neutral: i64,
    /// How many are bad.
    pub bad: i64,
}

impl Shares {
    /// How many there are.
    pub(crate) fn total(&self) -> i64 {
        self.good.max(0) + self.neutral.max(0) + self.bad.max(0)
    }

    /// Adds others.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            good: self.good + other.good,
            neutral: self.neutral + other.neutral,
            bad: self.bad + other.bad,
        }
    }

    fn width(&self, count: i64) -> f64 {
        match self.total() {
            0 => 0.0,
            total => {
                #[expect(clippy::cast_precision_loss, reason = "a chart some pixels wide")]
                let share = count.max(0) as f64 / total as f64;
                (share * 1_000.0).round() / 10.0
            }
        }
    }

    /// Class, begin and width of each part that there is, as `rect` has them.
    pub(crate) fn parts(&self) -> Vec<(&'static str, f64, f64)> {
        let mut begin = 0.0;
        [("good", self.good), ("neutral", self.neutral), ("bad", self.bad)]
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(class, count)| {
                let width = self.width(count);
                let part = (class, begin, width);
                begin += width;
                part
            })
            .collect()
    }
}

/// A share from 0 to 1 and how sure it is, on a scale that is 100 wide.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    low: f64,
    mean: f64,
    high: f64,
}

impl Interval {
    /// As far to both sides as the share is uncertain, within 0 and 1.
    pub(crate) fn around(mean: f64, uncertainty: f64) -> Self {
        Self::between(mean - uncertainty, mean, mean + uncertainty)
    }

    /// Between these, within 0 and 1.
    pub(crate) fn between(low: f64, mean: f64, high: f64) -> Self {
        let at = |share: f64| (share.clamp(0.0, 1.0) * 1_000.0).round() / 10.0;
        Self {
            low: at(low),
            mean: at(mean),
            high: at(high),
        }
    }

    /// Where it begins.
    pub(crate) fn low(&self) -> f64 {
        self.low
    }

    /// How wide it is.
    pub(crate) fn width(&self) -> f64 {
        ((self.high - self.low) * 10.0).round() / 10.0
    }

    /// Where the mark of the share begins, which stays within the scale.
    pub(crate) fn mean(&self) -> f64 {
        ((self.mean - 0.6).clamp(0.0, 98.8) * 10.0).round() / 10.0
    }

    /// The lower end in words.
    pub(crate) fn low_text(&self) -> String {
        format!("{:.3}", self.low / 100.0)
    }

    /// The upper end in words.
    pub(crate) fn high_text(&self) -> String {
        format!("{:.3}", self.high / 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_bar_follow_each_other_and_fill_it() {
        let shares = Shares {
            good: 3,
            neutral: 0,
            bad: 1,
        };
        assert_eq!(shares.parts(), [("good", 0.0, 75.0), ("bad", 75.0, 25.0)]);
        assert_eq!(shares.total(), 4);
        assert_eq!(Shares::default().parts(), []);
    }

    #[test]
    fn an_interval_stays_on_its_scale() {
        let sure = Interval::around(0.95, 0.1);
        assert_eq!((sure.low(), sure.width(), sure.mean()), (85.0, 15.0, 94.4));
        assert_eq!(
            (sure.low_text(), sure.high_text()),
            ("0.850".into(), "1.000".into())
        );
        let none = Interval::around(0.0, 0.0);
        assert_eq!((none.low(), none.width(), none.mean()), (0.0, 0.0, 0.0));
    }
}
