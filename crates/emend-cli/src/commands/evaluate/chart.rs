//! The measures as bars, before and after. Plain SVG without scripts or embedded fonts.

use std::fmt::Write as _;

use super::report::{Group, Measure, Report};

const WIDTH: f64 = 880.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 24.0;
/// Where the first group begins, and how high each is.
const TOP: f64 = 104.0;
const ROW: f64 = 150.0;
/// How high a bar of 1.0 is.
const BAR: f64 = 84.0;

const INK: &str = "#1f2933";
const MUTED: &str = "#5f6c7b";
const GRID: &str = "#e4e7eb";
const BEFORE: &str = "#9aa5b1";
const AFTER: &str = "#0b6e4f";

/// Draws the report.
pub(super) fn draw(report: &Report) -> String {
    let height = ROW.mul_add(
        f64::from(u32::try_from(report.groups.len()).unwrap_or(1)),
        TOP + 16.0,
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"system-ui, sans-serif\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    text(
        &mut svg,
        (24.0, 36.0),
        ("start", 20.0, INK),
        "How good the results are",
    );
    let subtitle = format!("means over judged queries; the first {} results count", report.k);
    text(&mut svg, (24.0, 58.0), ("start", 13.0, MUTED), &subtitle);
    let compares = report
        .groups
        .iter()
        .any(|group| group.measures.iter().any(|of| of.after.is_some()));
    let legend: &[(&str, &str)] = if compares {
        &[(BEFORE, "before"), (AFTER, "after")]
    } else {
        &[(AFTER, "measured")]
    };
    let mut x = 24.0;
    for (colour, name) in legend {
        rect(&mut svg, (x, 74.0), (12.0, 12.0), colour, name);
        text(&mut svg, (x + 18.0, 85.0), ("start", 12.0, INK), name);
        x += 84.0;
    }
    let mut y = TOP;
    for group in &report.groups {
        row(&mut svg, y, group);
        y += ROW;
    }
    svg.push_str("</svg>\n");
    svg
}

/// One group: its name, and the bars of each measure.
fn row(svg: &mut String, top: f64, group: &Group) {
    let base = top + BAR + 24.0;
    let name = if group.query_type.is_empty() {
        "all queries"
    } else {
        &group.query_type
    };
    text(svg, (24.0, base - 24.0), ("start", 14.0, INK), &shortened(name));
    let count = match group.queries {
        1 => "1 query".to_owned(),
        count => format!("{count} queries"),
    };
    text(svg, (24.0, base - 6.0), ("start", 12.0, MUTED), &count);
    for share in [0.0, 0.5, 1.0] {
        let y = base - BAR * share;
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"{GRID}\"/>",
            WIDTH - RIGHT
        );
        text(
            svg,
            (LEFT - 8.0, y + 4.0),
            ("end", 11.0, MUTED),
            &format!("{share:.1}"),
        );
    }
    let column = (WIDTH - LEFT - RIGHT) / 4.0;
    let mut middle = LEFT + column / 2.0;
    for measure in &group.measures {
        bars(svg, (middle, base), measure);
        middle += column;
    }
}

fn bars(svg: &mut String, (middle, base): (f64, f64), measure: &Measure) {
    let mut bar = |x: f64, value: f64, colour: &str, when: &str| {
        let title = format!("{} {when}: {value:.3}", measure.name);
        rect(
            svg,
            (x, base - BAR * value),
            (44.0, BAR * value),
            colour,
            title.trim(),
        );
        text(
            svg,
            (x + 22.0, base - BAR * value - 5.0),
            ("middle", 12.0, INK),
            &format!("{value:.3}"),
        );
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
    text(svg, (middle, base + 18.0), ("middle", 12.0, MUTED), &label);
}

/// What there is room for beside the bars.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(13) {
        Some((end, _)) if name.chars().count() > 14 => format!("{}…", &name[..end]),
        _ => name.to_owned(),
    }
}

/// A p-value as people write it.
pub(super) fn p_value(p: f64) -> String {
    if p < 0.001 {
        "p < 0.001".to_owned()
    } else {
        format!("p = {p:.3}")
    }
}

fn rect(svg: &mut String, (x, y): (f64, f64), (width, height): (f64, f64), colour: &str, title: &str) {
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"><title>{}</title></rect>",
        escaped(title)
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), (anchor, size, colour): (&str, f64, &str), content: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\" fill=\"{colour}\">{}</text>",
        escaped(content)
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
