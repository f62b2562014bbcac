//! A chart of the days: shares above, counts below. Plain SVG without scripts or embedded fonts.

use super::report::{Day, Report, share};
use crate::svg::{GRID, INK, MUTED, Svg, number};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 640.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 24.0;
/// The panel of shares: its top and bottom.
const SHARES: (f64, f64) = (108.0, 348.0);
/// The panel of counts.
const COUNTS: (f64, f64) = (424.0, 564.0);

const HIT: &str = "#0b6e4f";
const BASE: &str = "#9aa5b1";
const LEARNED: &str = "#2f6fde";
const NEAR: &str = "#8a4fd0";
const TEST: &str = "#b8478f";
const NEEDED: &str = "#c9d6ea";
const PROMOTED: &str = "#e09f3e";
const WRONG: &str = "#b42318";

/// Draws the report.
pub fn draw(report: &Report) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT);
    svg.text(
        LEFT,
        34.0,
        "start",
        20.0,
        INK,
        "What the node answers, day by day",
    );
    svg.text(LEFT, 56.0, "start", 13.0, MUTED, &subtitle(report));
    shares(&mut svg, &report.days);
    counts(&mut svg, &report.days);
    days(&mut svg, &report.days);
    svg.finish()
}

fn subtitle(report: &Report) -> String {
    let settings = &report.settings;
    format!(
        "{} queries a day by {} reporters: {:.0} % err at random, {:.0} % attack together; {} net confirmations promote",
        settings.queries_per_day,
        settings.reporters,
        100.0 * settings.noise,
        100.0 * settings.colluders,
        settings.threshold,
    )
}

/// The middle of a day's column.
fn x(index: usize, days: usize) -> f64 {
    let column = (WIDTH - LEFT - RIGHT) / number(days as u64);
    column.mul_add(number(index as u64) + 0.5, LEFT)
}

/// A share's height in the upper panel.
fn y_share(share: f64) -> f64 {
    (SHARES.0 - SHARES.1).mul_add(share, SHARES.1)
}

/// A line's colour, its name, and what it counts, of how many.
type Series = (&'static str, &'static str, fn(&Day) -> (u64, u64));
const SERIES: [Series; 5] = [
    (HIT, "answered right", |day| (day.hits, day.queries)),
    (NEAR, "with near answers", |day| (day.hits_with_near, day.queries)),
    (LEARNED, "learned", |day| (day.learned, day.queries)),
    (BASE, "right had nothing been learned", |day| {
        (day.base_hits, day.queries)
    }),
    (TEST, "test set, every near answer", |day| {
        (day.test.hits_at_any_confidence, day.test.queries)
    }),
];

fn shares(svg: &mut Svg, days: &[Day]) {
    for percent in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let y = y_share(percent);
        svg.line((LEFT, y), (WIDTH - RIGHT, y), GRID);
        svg.text(
            LEFT - 10.0,
            y + 4.0,
            "end",
            12.0,
            MUTED,
            &format!("{:.0} %", 100.0 * percent),
        );
    }
    svg.label(&SHARES, "share of queries");
    let mut legend = LEFT;
    for (colour, name, count) in SERIES {
        let points: Vec<(f64, f64)> = days
            .iter()
            .enumerate()
            .map(|(index, day)| {
                let (some, all) = count(day);
                (x(index, days.len()), y_share(share(some, all)))
            })
            .collect();
        svg.polyline(&points, colour);
        for (point, day) in points.iter().zip(days) {
            let (some, all) = count(day);
            let title = format!("day {}: {:.1} % {name}", day.number, 100.0 * share(some, all));
            svg.dot(*point, colour, &title);
        }
        legend = svg.legend(legend, SHARES.0 - 20.0, colour, name);
    }
}

fn counts(svg: &mut Svg, days: &[Day]) {
    let most = days
        .iter()
        .map(|day| day.corrections_needed().max(day.promotions))
        .max()
        .unwrap_or(0);
    let top = ceiling(most);
    let y = |count: u64| (COUNTS.0 - COUNTS.1).mul_add(share(count, top), COUNTS.1);
    for quarter in 0..=2 {
        let count = top * quarter / 2;
        svg.line((LEFT, y(count)), (WIDTH - RIGHT, y(count)), GRID);
        svg.text(
            LEFT - 10.0,
            y(count) + 4.0,
            "end",
            12.0,
            MUTED,
            &count.to_string(),
        );
    }
    svg.label(&COUNTS, "count");
    let column = (WIDTH - LEFT - RIGHT) / number(days.len() as u64);
    let bar = (column * 0.3).min(36.0);
    for (index, day) in days.iter().enumerate() {
        let middle = x(index, days.len());
        let mut draw = |left: f64, count: u64, colour: &str, name: &str| {
            let title = format!("day {}: {count} {name}", day.number);
            svg.bar((left, y(count)), (bar, COUNTS.1 - y(count)), colour, &title);
        };
        draw(
            middle - bar - 2.0,
            day.corrections_needed(),
            NEEDED,
            "corrections still needed",
        );
        draw(middle + 2.0, day.promotions, PROMOTED, "promotions");
        // Drawn over the promotions, of which they are a part.
        draw(middle + 2.0, day.wrong_promotions, WRONG, "wrong promotions");
    }
    let mut legend = LEFT;
    for (colour, name) in [
        (NEEDED, "corrections still needed"),
        (PROMOTED, "promotions"),
        (WRONG, "of them wrong"),
    ] {
        legend = svg.legend(legend, COUNTS.0 - 20.0, colour, name);
    }
}

fn days(svg: &mut Svg, days: &[Day]) {
    // Thins the labels out to fit.
    let step = days.len().div_ceil(25).max(1);
    for (index, day) in days.iter().enumerate().step_by(step) {
        svg.text(
            x(index, days.len()),
            COUNTS.1 + 20.0,
            "middle",
            12.0,
            MUTED,
            &day.number.to_string(),
        );
    }
    svg.text(
        f64::midpoint(LEFT, WIDTH - RIGHT),
        COUNTS.1 + 46.0,
        "middle",
        13.0,
        INK,
        "day",
    );
}

/// Rounds up to the next of 2, 4, 10, 20, 40, 100 …, whose halves are whole numbers.
fn ceiling(most: u64) -> u64 {
    let mut power = 1;
    loop {
        for step in [2, 4, 10] {
            if most <= step * power {
                return step * power;
            }
        }
        power *= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{replay::report::tests::report, svg::is_well_formed};

    #[test]
    fn the_chart_is_well_formed() {
        let chart = draw(&report());
        assert!(is_well_formed(&chart), "{chart}");
    }

    #[test]
    fn every_day_and_every_series_is_drawn() {
        let chart = draw(&report());
        assert_eq!(chart.matches("<polyline").count(), 5);
        assert_eq!(chart.matches("<circle").count(), 15);
        for part in [
            "share of queries",
            "promotions",
            "of them wrong",
            "day 3: 72.0 % answered right",
            "day 3: 64.9 % test set, every near answer",
        ] {
            assert!(chart.contains(part), "{part}");
        }
        assert!(!chart.contains("NaN") && !chart.contains("inf"));
    }

    #[test]
    fn a_report_of_no_days_can_be_drawn() {
        let mut report = report();
        report.days.clear();
        let chart = draw(&report);
        assert!(is_well_formed(&chart) && !chart.contains("NaN"), "{chart}");
    }

    #[test]
    fn the_scale_covers_every_bar_and_has_whole_halves() {
        for (most, top) in [(0, 2), (2, 2), (3, 4), (5, 10), (918, 1_000), (1_001, 2_000)] {
            assert_eq!(ceiling(most), top);
        }
    }
}
