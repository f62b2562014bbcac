//! The measures as bars, before and after. Plain SVG without scripts or embedded fonts.

use super::report::{Group, Measure, Report};
use crate::svg::{GRID, INK, MUTED, Svg};

const WIDTH: f64 = 880.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 24.0;
/// Where the first group begins, and how high each is.
const TOP: f64 = 104.0;
const ROW: f64 = 150.0;
/// How high a bar of 1.0 is.
const BAR: f64 = 84.0;

const BEFORE: &str = "#9aa5b1";
const AFTER: &str = "#0b6e4f";

/// Draws the report.
pub fn draw(report: &Report) -> String {
    let height = ROW.mul_add(
        f64::from(u32::try_from(report.groups.len()).unwrap_or(1)),
        TOP + 16.0,
    );
    let mut svg = Svg::new(WIDTH, height);
    svg.text(24.0, 36.0, "start", 20.0, INK, "How good the results are");
    let subtitle = format!("means over judged queries; the first {} results count", report.k);
    svg.text(24.0, 58.0, "start", 13.0, MUTED, &subtitle);
    let compares = report
        .groups
        .iter()
        .any(|group| group.measures.iter().any(|measure| measure.after.is_some()));
    let legend: &[(&str, &str)] = if compares {
        &[(BEFORE, "before"), (AFTER, "after")]
    } else {
        &[(AFTER, "measured")]
    };
    let mut x = 24.0;
    for (colour, name) in legend {
        x = svg.legend(x, 85.0, colour, name);
    }
    let mut y = TOP;
    for group in &report.groups {
        row(&mut svg, y, group);
        y += ROW;
    }
    svg.finish()
}

/// One group: its name, and the bars of each measure.
fn row(svg: &mut Svg, top: f64, group: &Group) {
    let base = top + BAR + 24.0;
    let name = if group.query_type.is_empty() {
        "all queries"
    } else {
        &group.query_type
    };
    svg.text(24.0, base - 24.0, "start", 14.0, INK, &shortened(name));
    let count = match group.queries {
        1 => "1 query".to_owned(),
        count => format!("{count} queries"),
    };
    svg.text(24.0, base - 6.0, "start", 12.0, MUTED, &count);
    for share in [0.0, 0.5, 1.0] {
        let y = base - BAR * share;
        svg.line((LEFT, y), (WIDTH - RIGHT, y), GRID);
        let share = format!("{share:.1}");
        svg.text(LEFT - 8.0, y + 4.0, "end", 11.0, MUTED, &share);
    }
    let column = (WIDTH - LEFT - RIGHT) / 4.0;
    let mut middle = LEFT + column / 2.0;
    for measure in &group.measures {
        bars(svg, (middle, base), measure);
        middle += column;
    }
}

fn bars(svg: &mut Svg, (middle, base): (f64, f64), measure: &Measure) {
    let mut bar = |x: f64, value: f64, colour: &str, when: &str| {
        let title = format!("{} {when}: {value:.3}", measure.name);
        let top = base - BAR * value;
        svg.bar((x, top), (44.0, BAR * value), colour, title.trim());
        let value = format!("{value:.3}");
        svg.text(x + 22.0, top - 5.0, "middle", 12.0, INK, &value);
    };
    let label = match measure.after {
        None => {
            bar(middle - 22.0, measure.before, AFTER, "");
            measure.name.clone()
        }
        Some((after, p)) => {
            bar(middle - 50.0, measure.before, BEFORE, "before");
            bar(middle + 6.0, after, AFTER, "after");
            format!("{} · {}", measure.name, p_value(p))
        }
    };
    svg.text(middle, base + 18.0, "middle", 12.0, MUTED, &label);
}

/// What there is room for beside the bars.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(13) {
        Some((end, _)) if name.chars().count() > 14 => format!("{}…", &name[..end]),
        _ => name.to_owned(),
    }
}

/// A p-value as people write it.
pub fn p_value(p: f64) -> String {
    if p < 0.001 {
        "p < 0.001".to_owned()
    } else {
        format!("p = {p:.3}")
    }
}
