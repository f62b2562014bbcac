//! The share of negative ratings as a picture: week by week, then by type, version and variant.

use emend_lab::svg::{GRID, INK, MUTED, Svg, number};
use emend_proto::feedback::v1::{GetFeedbackStatsResponse, RatingShare};
use jiff::civil::Date;

use super::{interval, name, percent};
use crate::output::{counted, shortened};

const WIDTH: f64 = 880.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 856.0;
/// The panel of weeks: its top and bottom.
const WEEKS: (f64, f64) = (96.0, 316.0);
/// Where the rows of types, versions and variants begin, how high each is, and from where to where a share reaches.
const ROWS: f64 = 400.0;
const ROW: f64 = 24.0;
const BARS: (f64, f64) = (260.0, 640.0);
/// The most rows of a type, version or variant: those with the most ratings.
const MAX_ROWS: usize = 12;
/// The most dates below the weeks.
const MAX_DATES: usize = 10;

const SHARE: &str = "#b42318";
const INTERVAL: &str = "#e8b4ae";

/// Draws the statistics.
pub(super) fn draw(stats: &GetFeedbackStatsResponse) -> String {
    let groups: [(&str, &[RatingShare]); 4] = [
        ("by type of query", &stats.query_types),
        ("by embedding version", &stats.embedding_versions),
        ("by index version", &stats.index_versions),
        ("by variant", &stats.variants),
    ];
    let rows = |shares: &[RatingShare]| {
        shares
            .iter()
            .filter(|share| share.rating_count > 0)
            .count()
            .min(MAX_ROWS)
    };
    // A heading and a gap for each group.
    let lines: usize = groups
        .iter()
        .map(|(_, shares)| rows(shares))
        .map(|rows| if rows > 0 { rows + 2 } else { 0 })
        .sum();
    let mut svg = Svg::new(WIDTH, ROW.mul_add(number(lines as u64), ROWS));
    svg.text(24.0, 36.0, "start", 20.0, INK, "How many ratings are negative");
    let total = stats.total.clone().unwrap_or_default();
    let subtitle = match total.negative_share {
        None => "there are no ratings".to_owned(),
        Some(share) => format!(
            "{} of {}; bars are 95 % confidence intervals (Wilson)",
            percent(share),
            counted(total.rating_count, "rating", "ratings")
        ),
    };
    svg.text(24.0, 58.0, "start", 13.0, MUTED, &subtitle);
    weeks(&mut svg, &stats.weeks);
    let mut y = ROWS;
    for (heading, shares) in groups {
        let with_ratings = shares.iter().filter(|share| share.rating_count > 0);
        let shown: Vec<&RatingShare> = with_ratings.take(MAX_ROWS).collect();
        if shown.is_empty() {
            continue;
        }
        svg.text(24.0, y, "start", 14.0, INK, heading);
        for share in shown {
            y += ROW;
            row(&mut svg, y, share);
        }
        y += 2.0 * ROW;
    }
    svg.finish()
}

/// The weeks from left to right, at distances as in the calendar.
fn weeks(svg: &mut Svg, weeks: &[RatingShare]) {
    let y = |share: f64| (WEEKS.0 - WEEKS.1).mul_add(share, WEEKS.1);
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        svg.line((LEFT, y(share)), (RIGHT, y(share)), GRID);
        let label = format!("{:.0} %", 100.0 * share);
        svg.text(LEFT - 10.0, y(share) + 4.0, "end", 12.0, MUTED, &label);
    }
    svg.label(&WEEKS, "negative ratings");
    let places = places(weeks);
    let last = places.last().copied().unwrap_or_default();
    let column = (RIGHT - LEFT) / number(last + 1);
    let step = (last + 1).div_ceil(MAX_DATES as u64);
    let width = (column * 0.5).clamp(2.0, 14.0);
    let mut line: Vec<(f64, f64)> = Vec::new();
    let mut lines = Vec::new();
    let mut dots = Vec::new();
    let mut before = None;
    for (share, place) in weeks.iter().zip(places) {
        let x = column.mul_add(number(place) + 0.5, LEFT);
        if place % step == 0 {
            svg.text(x, WEEKS.1 + 20.0, "middle", 12.0, MUTED, &share.name);
            let count = format!("n = {}", share.rating_count);
            svg.text(x, WEEKS.1 + 36.0, "middle", 11.0, MUTED, &count);
        }
        let Some((at, low, high)) = shares(share) else {
            continue;
        };
        if before != place.checked_sub(1) {
            lines.push(std::mem::take(&mut line));
        }
        before = Some(place);
        line.push((x, y(at)));
        let title = described("week of ", share);
        svg.bar(
            (x - width / 2.0, y(high)),
            (width, y(low) - y(high)),
            INTERVAL,
            &title,
        );
        dots.push(((x, y(at)), title));
    }
    lines.push(line);
    // A line only between weeks that follow one another.
    for line in lines.iter().filter(|line| line.len() > 1) {
        svg.polyline(line, SHARE);
    }
    for (at, title) in dots {
        svg.dot(at, SHARE, &title);
    }
    let middle = f64::midpoint(LEFT, RIGHT);
    let caption = "week, by its Monday; n: ratings";
    svg.text(middle, WEEKS.1 + 56.0, "middle", 12.0, INK, caption);
}

/// How many weeks after the first each is.
fn places(weeks: &[RatingShare]) -> Vec<u64> {
    let date = |share: &RatingShare| share.name.parse::<Date>().ok();
    let first = weeks.first().and_then(date);
    let place = |share: &RatingShare| {
        let days = first?.until(date(share)?).ok()?.get_days();
        u64::try_from(days / 7).ok()
    };
    let indexed = (0..).zip(weeks);
    indexed
        .map(|(index, share)| place(share).unwrap_or(index))
        .collect()
}

/// A share beside its name.
fn row(svg: &mut Svg, y: f64, share: &RatingShare) {
    let Some((at, low, high)) = shares(share) else {
        return;
    };
    let x = |share: f64| (BARS.1 - BARS.0).mul_add(share, BARS.0);
    let middle = y - 4.0;
    let name = match &*share.name {
        "" => "not known".to_owned(),
        name => shortened(name, 34),
    };
    svg.text(BARS.0 - 12.0, y, "end", 12.0, INK, &name);
    svg.line((BARS.0, middle), (BARS.1, middle), GRID);
    let title = described("", share);
    svg.bar((x(low), middle - 5.0), (x(high) - x(low), 10.0), INTERVAL, &title);
    svg.dot((x(at), middle), SHARE, &title);
    let numbers = format!(
        "{} of {} ({})",
        percent(at),
        share.rating_count,
        interval(share.negative_share_low, share.negative_share_high)
    );
    svg.text(BARS.1 + 12.0, y, "start", 12.0, MUTED, &numbers);
}

/// The share and its interval; none without ratings.
fn shares(share: &RatingShare) -> Option<(f64, f64, f64)> {
    Some((
        share.negative_share?,
        share.negative_share_low?,
        share.negative_share_high?,
    ))
}

fn described(what: &str, share: &RatingShare) -> String {
    let percentage = share.negative_share.map(percent).unwrap_or_default();
    format!(
        "{what}{}: {percentage} of {}, {}",
        name(share),
        counted(share.rating_count, "rating", "ratings"),
        interval(share.negative_share_low, share.negative_share_high)
    )
}

#[cfg(test)]
mod tests {
    use super::{super::tests::share, *};
    use emend_lab::svg::is_well_formed;

    #[test]
    fn every_week_with_ratings_has_a_dot_and_a_gap_breaks_the_line() {
        let mut weeks: Vec<_> = ["2026-03-02", "2026-03-09", "2026-03-23", "2026-03-30"]
            .map(|name| share(name, 5, 20))
            .into();
        weeks.insert(
            2,
            RatingShare {
                name: "2026-03-16".into(),
                query_count: 3,
                ..RatingShare::default()
            },
        );
        let stats = GetFeedbackStatsResponse {
            total: Some(share("", 20, 80)),
            weeks,
            variants: vec![share("A & <B>", 5, 20), share("", 1, 4)],
            ..GetFeedbackStatsResponse::default()
        };
        let svg = draw(&stats);
        assert!(is_well_formed(&svg), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 4 + 2);
        assert_eq!(svg.matches("<polyline").count(), 2);
        for part in [
            "week of 2026-03-02: 25.0 % of 20 ratings, 10.0 to 50.0 %",
            "by variant",
            "A &amp; &lt;B&gt;",
            "n = 20",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert!(!svg.contains("by index version") && !svg.contains("NaN"));
    }

    #[test]
    fn weeks_are_as_far_apart_as_in_the_calendar() {
        let weeks = ["2026-03-02", "2026-03-09", "2026-04-27"].map(|name| share(name, 5, 20));
        assert_eq!(places(&weeks), [0, 1, 8]);
    }

    #[test]
    fn without_ratings_there_is_an_empty_picture() {
        let svg = draw(&GetFeedbackStatsResponse {
            total: Some(RatingShare::default()),
            ..GetFeedbackStatsResponse::default()
        });
        assert!(
            is_well_formed(&svg) && svg.contains("there are no ratings") && !svg.contains("NaN"),
            "{svg}"
        );
    }
}
