//! Pictures as plain SVG, without scripts or embedded fonts.

use std::fmt::Write as _;

/// The colour of what is read first.
pub const INK: &str = "#1f2933";
/// The colour of what is read when it is looked for.
pub const MUTED: &str = "#5f6c7b";
/// The colour of lines to read heights by.
pub const GRID: &str = "#e4e7eb";

/// A picture to which shapes are added one after the other. Writing to a String can't fail, so results are ignored.
#[derive(Debug)]
pub struct Svg(String);

impl Svg {
    /// An empty picture, so wide and so high.
    pub fn new(width: f64, height: f64) -> Self {
        let mut svg = Self(String::new());
        let _ = writeln!(
            svg.0,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="system-ui, sans-serif" role="img">"#
        );
        let _ = writeln!(
            svg.0,
            r##"<rect width="{width}" height="{height}" fill="#ffffff"/>"##
        );
        svg
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str) {
        let _ = writeln!(
            self.0,
            r#"<line x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}" stroke="{colour}"/>"#,
            from.0, from.1, to.0, to.1
        );
    }

    /// A line through points.
    pub fn polyline(&mut self, points: &[(f64, f64)], colour: &str) {
        let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            self.0,
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2.5" stroke-linejoin="round"/>"#,
            points.join(" ")
        );
    }

    /// A dot; `title` is shown when it is pointed at.
    pub fn dot(&mut self, at: (f64, f64), colour: &str, title: &str) {
        let _ = writeln!(
            self.0,
            r#"<circle cx="{:.1}" cy="{:.1}" r="3.5" fill="{colour}"><title>{}</title></circle>"#,
            at.0,
            at.1,
            escaped(title)
        );
    }

    /// A rectangle; `title` is shown when it is pointed at.
    pub fn bar(&mut self, at: (f64, f64), size: (f64, f64), colour: &str, title: &str) {
        let _ = writeln!(
            self.0,
            r#"<rect x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}" fill="{colour}"><title>{}</title></rect>"#,
            at.0,
            at.1,
            size.0,
            size.1,
            escaped(title)
        );
    }

    /// A text, whose `anchor` (start, middle or end) is at this point.
    pub fn text(&mut self, x: f64, y: f64, anchor: &str, size: f64, colour: &str, text: &str) {
        let _ = writeln!(
            self.0,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{}</text>"#,
            escaped(text)
        );
    }

    /// A panel's axis label, rotated to read upwards.
    pub fn label(&mut self, panel: &(f64, f64), text: &str) {
        let y = f64::midpoint(panel.0, panel.1);
        let _ = writeln!(
            self.0,
            r#"<text x="20" y="{y:.1}" text-anchor="middle" font-size="13" fill="{INK}" transform="rotate(-90 20 {y:.1})">{}</text>"#,
            escaped(text)
        );
    }

    /// An entry of the legend. Returns where the next one begins.
    pub fn legend(&mut self, x: f64, y: f64, colour: &str, name: &str) -> f64 {
        /// The approximate width of a letter at this size.
        const LETTER: f64 = 7.4;
        let _ = writeln!(
            self.0,
            r#"<rect x="{x:.1}" y="{:.1}" width="12" height="12" rx="2" fill="{colour}"/>"#,
            y - 10.0
        );
        self.text(x + 18.0, y, "start", 13.0, INK, name);
        LETTER.mul_add(number(name.chars().count() as u64), x + 18.0) + 24.0
    }

    /// The whole document.
    pub fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A count as a length.
#[expect(clippy::cast_precision_loss, reason = "counts are far smaller than 2^52")]
pub fn number(count: u64) -> f64 {
    count as f64
}

/// Whether every element is closed and every quote is paired, which suffices for what is written here.
#[cfg(any(test, feature = "testing"))]
pub fn is_well_formed(svg: &str) -> bool {
    let mut open = Vec::new();
    let mut rest = svg.trim();
    while let Some(start) = rest.find('<') {
        let Some(end) = rest[start..].find('>').map(|end| start + end) else {
            return false;
        };
        let tag = &rest[start + 1..end];
        if !tag.matches('"').count().is_multiple_of(2) {
            return false;
        }
        let name = tag
            .trim_start_matches('/')
            .split([' ', '/'])
            .next()
            .unwrap_or_default();
        if tag.starts_with('/') {
            if open.pop() != Some(name) {
                return false;
            }
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        rest = &rest[end + 1..];
    }
    open.is_empty() && !rest.contains('<')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_well_formed_whatever_its_texts_contain() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text(0.0, 0.0, "start", 10.0, INK, "a & <b> \"c\"");
        svg.dot((0.0, 0.0), INK, "<\"&");
        assert!(is_well_formed(&svg.finish()));
        assert!(!is_well_formed("<svg><rect></svg>"));
    }
}
