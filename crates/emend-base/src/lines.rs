//! Texts in the lines of a terminal.

use std::{
    borrow::Cow,
    env,
    ffi::OsStr,
    fmt::Write as _,
    io::{self, IsTerminal},
    os::fd::AsFd,
};

use terminal_size::Width;
use unicode_width::UnicodeWidthStr as _;

/// How far the lines below the first one of a broken line are indented.
const HANGING: usize = 2;
/// The widest that a name and the spaces after it are, where a value stands beside it.
const NAME: usize = 24;

/// A line as lines of at most `width`, broken at spaces; the lower ones stand below the value of a name, or are indented. What has no
/// spaces stays whole, such as a token, and so does a line in colours.
pub fn wrapped(line: &str, width: usize) -> Cow<'_, str> {
    if line.width() <= width || line.starts_with('\x1b') {
        return Cow::Borrowed(line);
    }
    let value = value_at(line);
    let (head, text) = line.split_at(value.unwrap_or(line.len() - line.trim_start().len()));
    let indent = head.width() + if value.is_some() { 0 } else { HANGING };
    let mut lines = head.to_owned();
    let mut used = head.width();
    for (index, word) in text.split(' ').enumerate() {
        if index > 0 && used + 1 + word.width() > width {
            let _ = write!(lines, "\n{:indent$}", "");
            used = indent;
        } else if index > 0 {
            lines.push(' ');
            used += 1;
        }
        lines.push_str(word);
        used += word.width();
    }
    Cow::Owned(lines)
}

/// Where the value begins in a line of a name, two spaces or more, and a value.
fn value_at(line: &str) -> Option<usize> {
    let begin = line.len() - line.trim_start().len();
    let gap = begin + line[begin..].find("  ")?;
    let value = gap + line[gap..].find(|c| c != ' ')?;
    (line[..value].width() <= NAME).then_some(value)
}

/// Each line of a text, wrapped.
pub fn all_wrapped(text: &str, width: usize) -> String {
    let lines: Vec<_> = text.split('\n').map(|line| wrapped(line, width)).collect();
    lines.join("\n")
}

/// How wide the terminal is that shows standard error; as wide as any line where none does.
pub fn width_of_standard_error() -> usize {
    width_of_terminal(&io::stderr()).unwrap_or(usize::MAX)
}

/// How many columns the terminal has that shows what is written: as it says itself, else as `COLUMNS` says. `None` where neither
/// does, and where it is no terminal.
pub fn width_of_terminal(shown: &(impl AsFd + IsTerminal)) -> Option<usize> {
    if !shown.is_terminal() {
        return None;
    }
    let own = terminal_size::terminal_size_of(shown).map(|(Width(columns), _)| columns.into());
    own.or_else(|| columns(env::var_os("COLUMNS").as_deref()))
}

fn columns(variable: Option<&OsStr>) -> Option<usize> {
    variable?.to_str()?.parse().ok().filter(|columns| *columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_columns_is_more_than_none() {
        for (variable, expected) in [("60", Some(60)), ("0", None), ("", None), ("wide", None)] {
            assert_eq!(columns(Some(OsStr::new(variable))), expected, "{variable}");
        }
        assert_eq!(columns(None), None);
    }

    #[test]
    fn a_long_line_is_broken_at_spaces_and_what_follows_a_name_stays_below_its_value() {
        for (line, expected) in [
            ("short enough", "short enough"),
            (
                "No decisions about domains in the namespace fund-admin match.",
                "No decisions about domains in the\n  namespace fund-admin match.",
            ),
            (
                "evidence       3 for, 1 against, 0 neutral",
                "evidence       3 for, 1 against, 0\n               neutral",
            ),
            (
                "of a-word-that-is-longer-than-a-line-of-this-width nothing",
                "of\n  a-word-that-is-longer-than-a-line-of-this-width\n  nothing",
            ),
            (
                "  of “手数料の一覧” nothing was learned",
                "  of “手数料の一覧” nothing was\n    learned",
            ),
        ] {
            let shown = wrapped(line, 36);
            assert_eq!(shown, expected);
        }
    }
}
