//! Texts in the lines of a terminal.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Breaks a text into lines of at most `width`, at spaces as far as there are any.
pub(super) fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(1);
        if used + wide > width && used > 0 {
            let begun = match line.rfind(' ') {
                _ if c == ' ' => None,
                Some(space) if !line[..space].trim().is_empty() => Some(line.split_off(space + 1)),
                _ => None,
            };
            lines.push(line.trim_end().to_owned());
            line = begun.unwrap_or_default();
            used = line.width();
        }
        if c != ' ' || !line.is_empty() || lines.is_empty() {
            line.push(c);
            used += wide;
        }
    }
    lines.push(line);
    lines
}

/// Cuts a text to at most `width` columns of a terminal, of which a kanji takes two, marking the cut.
pub fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let fits = |c: &char| {
        let left = room.checked_sub(c.width().unwrap_or(1));
        room = left.unwrap_or_default();
        left.is_some()
    };
    let mut short: String = text.chars().take_while(fits).collect();
    short.push('…');
    short
}
