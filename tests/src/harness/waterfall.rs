//! A trace as a picture: a row for each span, indented under its parent, with a bar from its start to its end.

use std::fmt::Write as _;

use super::otlp::Seen;

const WIDTH: f64 = 960.0;
const TOP: f64 = 84.0;
const ROW: f64 = 34.0;
/// Where bars begin and end.
const BARS: (f64, f64) = (400.0, 860.0);
/// The width of a bar of no length, which would not be seen.
const NARROWEST: f64 = 3.0;
const INDENT: f64 = 16.0;
const COLOURS: [&str; 4] = ["#2f6fde", "#0b6e4f", "#e09f3e", "#9b51a0"];
/// Marks the labels of spans among the texts.
const LABEL: &str = r#"<text class="span""#;

/// Draws the spans of one trace, of which all but the first ancestor are there, as plain SVG.
pub fn draw(title: &str, spans: &[Seen]) -> String {
    let rows = in_order(spans);
    let start = spans.iter().map(|seen| seen.span.start_time_unix_nano).min();
    let end = spans.iter().map(|seen| seen.span.end_time_unix_nano).max();
    let (start, end) = (start.unwrap_or_default(), end.unwrap_or_default());
    let whole = millis(start, end).max(0.001);
    let x = |at: u64| (BARS.1 - BARS.0).mul_add(millis(start, at) / whole, BARS.0);
    let bottom = ROW.mul_add(f64::from(u16::try_from(rows.len()).unwrap_or(u16::MAX)), TOP);
    let height = bottom + 16.0;
    // Writing to a string does not fail.
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" font-family="system-ui, sans-serif" font-size="13" fill="#1f2933" role="img">
<title>{title}</title>
<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>
<text x="20" y="30" font-size="17">{title}</text>"##,
        title = escaped(title),
    );
    for quarter in 0..=4_u8 {
        let share = f64::from(quarter) / 4.0;
        let at = (BARS.1 - BARS.0).mul_add(share, BARS.0);
        let _ = writeln!(
            svg,
            r##"<line x1="{at:.1}" y1="{:.1}" x2="{at:.1}" y2="{bottom:.1}" stroke="#e4e7eb"/>
<text x="{at:.1}" y="{:.1}" text-anchor="middle" font-size="12" fill="#5f6c7b">{:.1} ms</text>"##,
            TOP - 8.0,
            TOP - 14.0,
            share * whole,
        );
    }
    let services = services(&rows);
    let mut top = TOP;
    for (depth, seen) in rows {
        let colour = services.iter().position(|service| *service == seen.service);
        let colour = COLOURS[colour.unwrap_or_default() % COLOURS.len()];
        let (from, to) = (x(seen.span.start_time_unix_nano), x(seen.span.end_time_unix_nano));
        let width = (to - from).max(NARROWEST);
        let left = INDENT.mul_add(f64::from(depth), 20.0);
        let took = millis(seen.span.start_time_unix_nano, seen.span.end_time_unix_nano);
        let _ = writeln!(
            svg,
            r##"{LABEL} x="{left:.1}" y="{:.1}">{}</text>
<text x="{left:.1}" y="{:.1}" font-size="11" fill="#5f6c7b">{}</text>
<rect x="{from:.1}" y="{:.1}" width="{width:.1}" height="16" rx="2" fill="{colour}"/>
<text x="{:.1}" y="{:.1}" font-size="12" fill="#5f6c7b">{took:.1} ms</text>"##,
            top + 12.0,
            escaped(&seen.span.name),
            top + 26.0,
            escaped(&seen.service),
            top + 6.0,
            from + width + 6.0,
            top + 18.0,
        );
        top += ROW;
    }
    svg.push_str("</svg>\n");
    svg
}

/// The names of the spans in a picture, from top to bottom.
pub fn labels(svg: &str) -> Vec<&str> {
    let texts = svg.lines().filter(|line| line.starts_with(LABEL));
    let labels = texts.filter_map(|line| line.split_once('>')?.1.strip_suffix("</text>"));
    labels.collect()
}

/// Each span after its parent and with its depth; siblings by their start.
fn in_order(spans: &[Seen]) -> Vec<(u8, &Seen)> {
    let mut left: Vec<_> = spans.iter().collect();
    left.sort_by_key(|seen| seen.span.start_time_unix_nano);
    let is_known = |id: &str| spans.iter().any(|seen| seen.id() == id);
    let mut rows = Vec::new();
    let roots = left.iter().rev().filter(|seen| !is_known(&seen.parent()));
    let mut waiting: Vec<(u8, &Seen)> = roots.map(|seen| (0, *seen)).collect();
    while let Some((depth, seen)) = waiting.pop() {
        rows.push((depth, seen));
        let children = left.iter().rev().filter(|child| child.parent() == seen.id());
        waiting.extend(children.map(|child| (depth.saturating_add(1), *child)));
    }
    rows
}

fn services<'a>(rows: &[(u8, &'a Seen)]) -> Vec<&'a str> {
    let mut services: Vec<&str> = Vec::new();
    for (_, seen) in rows {
        if !services.contains(&&*seen.service) {
            services.push(&seen.service);
        }
    }
    services
}

fn millis(from: u64, to: u64) -> f64 {
    std::time::Duration::from_nanos(to.saturating_sub(from)).as_secs_f64() * 1000.0
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
