//! The chart of docs/performance.md, drawn from the page's table: how near each figure is to its aim.

use std::{fmt::Write as _, fs, path::PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::Written;
use crate::process::Workspace;

const PAGE: &str = "docs/performance.md";
const CHART: &str = "docs/images/performance.svg";
const HEADER: &str = "| what | ours | best peer | ratio | aim |";

const WIDTH: f64 = 960.0;
const TOP: f64 = 96.0;
const ROW: f64 = 26.0;
/// Where bars begin and end.
const BARS: (f64, f64) = (330.0, 810.0);
/// Where it is said whether the aim is reached.
const VERDICT: f64 = 836.0;
/// What the ends of the scale stand for, as multiples of the aim.
const SCALE: (f64, f64) = (0.2, 10.0);
const INK: &str = "#1f2933";
const GRID: &str = "#e4e7eb";
/// The lines to read lengths by; that of the aim is the darkest.
const TICKS: [(f64, &str); 6] = [
    (0.2, GRID),
    (0.5, GRID),
    (1.0, INK),
    (2.0, GRID),
    (5.0, GRID),
    (10.0, GRID),
];
const REACHED: &str = "#0b6e4f";
const PARTLY: &str = "#2f6fde";
const MISSED: &str = "#e09f3e";

/// The chart as the table says it.
pub(super) fn chart(workspace: &Workspace) -> Result<Written> {
    let page = fs::read_to_string(workspace.path(PAGE)).context(PAGE)?;
    Ok((PathBuf::from(CHART), draw(&rows(&page).context(PAGE)?)))
}

/// A row of the table: what was measured, and the least and most of it as multiples of its aim. More is better.
#[derive(Debug, PartialEq)]
struct Row {
    what: String,
    least: f64,
    most: f64,
}

impl Row {
    fn parse(line: &str) -> Result<Self> {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let &[what, ours, _, ratio, aim] = &*cells else {
            anyhow::bail!("five cells are expected: {line}");
        };
        let (at_least, aim) = match aim.split_once(' ') {
            Some(("at", aim)) => (aim.starts_with("least "), aim),
            _ => anyhow::bail!("an aim is at least or at most something: {line}"),
        };
        let (_, aim) = aim.split_once(' ').unwrap_or_default();
        let aims = numbers(aim);
        let measured = numbers(if aim.ends_with('×') { ratio } else { ours });
        ensure!(
            aims.len() == 1 && (1..=2).contains(&measured.len()),
            "one aim, and one figure or two, are expected: {line}"
        );
        let parts: Vec<f64> = measured
            .iter()
            .map(|value| {
                if at_least {
                    value / aims[0]
                } else {
                    aims[0] / value
                }
            })
            .collect();
        Ok(Self {
            what: what.to_owned(),
            least: parts.iter().copied().fold(f64::INFINITY, f64::min),
            most: parts.iter().copied().fold(0.0, f64::max),
        })
    }

    fn verdict(&self) -> (&'static str, &'static str) {
        if self.least >= 1.0 {
            ("reached", REACHED)
        } else if self.most < 1.0 {
            ("missed", MISSED)
        } else {
            ("not in all runs", PARTLY)
        }
    }
}

/// The numbers of a cell, of which thousands may be separated by commas.
fn numbers(cell: &str) -> Vec<f64> {
    let words = cell.split_whitespace().map(|word| word.replace(',', ""));
    words.filter_map(|word| word.parse().ok()).collect()
}

fn rows(page: &str) -> Result<Vec<Row>> {
    let (_, table) = page
        .split_once(HEADER)
        .with_context(|| format!("no table {HEADER}"))?;
    let lines = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    lines.map(Row::parse).collect()
}

fn draw(rows: &[Row]) -> String {
    let (low, high) = (SCALE.0.ln(), SCALE.1.ln());
    let x = |part: f64| {
        let share = (part.clamp(SCALE.0, SCALE.1).ln() - low) / (high - low);
        (BARS.1 - BARS.0).mul_add(share, BARS.0)
    };
    let count = f64::from(u16::try_from(rows.len()).unwrap_or(u16::MAX));
    let bottom = ROW.mul_add(count, TOP);
    let height = bottom + 20.0;
    // Writing to a string does not fail.
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" font-family="system-ui, sans-serif" font-size="13" fill="{INK}" role="img">
<title>How near each figure is to its aim</title>
<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>
<text x="20" y="30" font-size="17">How near each figure is to its aim</text>
<text x="20" y="50" fill="#5f6c7b">A bar spans all runs. On the line marked 1 × the aim is met; further right is better.</text>"##
    );
    for (tick, colour) in TICKS {
        let at = x(tick);
        let _ = writeln!(
            svg,
            r##"<line x1="{at:.1}" y1="{:.1}" x2="{at:.1}" y2="{bottom:.1}" stroke="{colour}"/>
<text x="{at:.1}" y="{:.1}" text-anchor="middle" font-size="12" fill="#5f6c7b">{tick} ×</text>"##,
            TOP - 6.0,
            TOP - 12.0,
        );
    }
    let mut top = TOP;
    for row in rows {
        let (verdict, colour) = row.verdict();
        let (from, to) = (x(row.least), x(row.most));
        let _ = writeln!(
            svg,
            r##"<text x="20" y="{:.1}">{}</text>
<rect x="{:.1}" y="{:.1}" width="{:.1}" height="12" rx="3" fill="{colour}"/>
<text x="{:.1}" y="{:.1}" font-size="12" fill="#5f6c7b">{verdict}</text>"##,
            top + 17.0,
            escaped(&row.what),
            // A single figure is still seen.
            from - 3.0,
            top + 7.0,
            to - from + 6.0,
            VERDICT,
            top + 17.0,
        );
        top += ROW;
    }
    svg.push_str("</svg>\n");
    svg
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(line: &str) -> (String, String, &'static str) {
        let row = Row::parse(line).unwrap();
        let (least, most) = (format!("{:.2}", row.least), format!("{:.2}", row.most));
        (least, most, row.verdict().0)
    }

    #[test]
    fn a_figure_is_compared_with_its_aim_in_the_aims_unit() {
        for (line, least, most, verdict) in [
            (
                "| a | 5,000 to 6,000 /s | 9 /s | 0.34 to 0.51 × | at least 0.85 × |",
                "0.40",
                "0.60",
                "missed",
            ),
            ("| b | 20 to 25 s | | | at most 30 s |", "1.20", "1.50", "reached"),
            (
                "| c | 9 ms | 8 ms | 0.91 to 1.21 × | at most 1.2 × |",
                "0.99",
                "1.32",
                "not in all runs",
            ),
            ("| d | 40,000 | | | at least 20,000 |", "2.00", "2.00", "reached"),
        ] {
            assert_eq!(row(line), (least.to_owned(), most.to_owned(), verdict), "{line}");
        }
    }

    #[test]
    fn a_row_that_cannot_be_drawn_is_named() {
        for line in [
            "| a | 1 | at least 2 |",
            "| a | 1 | | | 2 s |",
            "| a | | | | at least 2 s |",
        ] {
            assert!(Row::parse(line).unwrap_err().to_string().contains(line), "{line}");
        }
    }

    #[test]
    fn every_row_is_drawn() {
        let page = format!(
            "{HEADER}\n|---|---|---|---|---|\n| a < b | 1 | | | at least 2 |\n| c | 3 | | | at most 4 |\n\nMore."
        );
        let svg = draw(&rows(&page).unwrap());
        assert!(
            svg.contains(">a &lt; b<") && svg.contains(">c<") && !svg.contains("NaN"),
            "{svg}"
        );
    }
}
