//! Writes results to standard output, as text for people or as JSON lines for programs.
//!
//! What others wrote reaches no terminal as it is: characters that people do not see, and control characters, become escapes, in
//! text `\u{202E}`, in JSON JSON's own ([`emend_core::text`]).

mod lines;
mod table;

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
    io::{self, Write},
};

use emend_base::lines::{all_wrapped, width_of_standard_error, wrapped};
use emend_core::text::{escaped, escaped_as};
use serde_json::Value;

pub use self::{
    lines::shortened,
    table::{Cell, Column, ID_PREFIX, Table},
};
use crate::failure::Result;

/// The maximum line width of a table that people read, where the terminal does not say how wide it is.
const WIDTH: usize = 100;

/// A count with the word for what is counted: "1 query", "2 queries".
pub fn counted<N: Copy + PartialEq + From<bool> + fmt::Display>(count: N, one: &str, many: &str) -> String {
    let word = if count == N::from(true) { one } else { many };
    format!("{count} {word}")
}

/// The destination of results, and their format.
pub struct Output<'a> {
    to: &'a mut (dyn Write + Send),
    json: bool,
    width: usize,
    coloured: bool,
}

impl<'a> Output<'a> {
    /// Writes JSON lines or text to `to`.
    pub fn new(to: &'a mut (dyn Write + Send), json: bool) -> Self {
        Self {
            to,
            json,
            width: WIDTH,
            coloured: false,
        }
    }

    /// Writes tables as wide as the terminal, if that is known.
    #[must_use]
    pub fn within(mut self, columns: Option<usize>) -> Self {
        self.width = columns.unwrap_or(WIDTH);
        self
    }

    /// Writes tables at full width, for programs and files.
    #[must_use]
    pub fn unshortened(mut self) -> Self {
        self.width = usize::MAX;
        self
    }

    /// Writes in colours what is easier to read so, if asked to.
    #[must_use]
    pub fn coloured(mut self, coloured: bool) -> Self {
        self.coloured = coloured;
        self
    }

    /// Whether to write in colours.
    pub fn is_coloured(&self) -> bool {
        self.coloured
    }

    /// The maximum line width of a table.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether JSON was asked for.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// One result: a line of JSON, or the text.
    pub fn result(&mut self, json: &Value, text: impl FnOnce() -> String) -> Result {
        if self.json {
            self.json_line(&json.to_string())
        } else {
            self.line(&text())
        }
    }

    /// Several results: a line of JSON each, or one table; in text, `if_empty` if there are none.
    pub fn results<T>(
        &mut self,
        items: &[T],
        json: impl Fn(&T) -> Value,
        table: impl FnOnce(&[T]) -> Table,
        if_empty: &str,
    ) -> Result {
        if self.json {
            items
                .iter()
                .try_for_each(|item| self.json_line(&json(item).to_string()))
        } else if items.is_empty() {
            self.line(if_empty)
        } else {
            self.line(&table(items).render(self.width))
        }
    }

    /// Results of which there may be more.
    pub fn list<T>(
        &mut self,
        items: &[T],
        more: bool,
        json: impl Fn(&T) -> Value,
        table: impl FnOnce(&[T]) -> Table,
        if_empty: &str,
    ) -> Result {
        self.results(items, json, table, if_empty)?;
        if more {
            // On standard error, so that it is not mistaken for a result.
            eprintln!("emend: there are more; --limit 0 shows all");
        }
        Ok(())
    }

    /// Writes a text as it is, where people read it with escapes, and ends its last line if it does not end itself.
    pub fn verbatim(&mut self, text: &str) -> Result {
        if self.width == usize::MAX {
            self.to.write_all(text.as_bytes())?;
            if !text.ends_with('\n') {
                self.to.write_all(b"\n")?;
            }
            self.to.flush()?;
            return Ok(());
        }
        self.lines(text.strip_suffix('\n').unwrap_or(text))
    }

    /// Writes lines of text, broken where they are too long for the terminal, and flushes them, so that they appear at once when
    /// watching a stream.
    pub fn line(&mut self, text: &str) -> Result {
        let lines = text.trim_end_matches('\n').split('\n');
        let lines: Vec<_> = lines.map(|line| wrapped(line, self.width)).collect();
        self.lines(&lines.join("\n"))
    }

    fn lines(&mut self, text: &str) -> Result {
        for line in text.split('\n') {
            writeln!(self.to, "{}", shown(line, self.coloured))?;
        }
        self.to.flush()?;
        Ok(())
    }

    /// Writes a line of JSON.
    pub fn json_line(&mut self, json: &str) -> Result {
        writeln!(self.to, "{}", json_escaped(json))?;
        self.to.flush()?;
        Ok(())
    }
}

/// A text as it is written to standard error: with escapes, and broken into lines where a terminal shows it.
pub fn on_standard_error(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(escaped).collect();
    all_wrapped(&lines.join("\n"), width_of_standard_error())
}

/// Colours in which a whole line may be written, and what ends them.
pub const RED: &str = "\x1b[31m";
/// See [`RED`].
pub const GREEN: &str = "\x1b[32m";
/// See [`RED`].
pub const CYAN: &str = "\x1b[36m";
/// See [`RED`].
pub const BOLD: &str = "\x1b[1m";
/// Ends any of them.
pub const RESET: &str = "\x1b[0m";

/// A line as it is shown: its own colour stays, if colours are wanted.
fn shown(line: &str, coloured: bool) -> Cow<'_, str> {
    let colours = [RED, GREEN, CYAN, BOLD].into_iter().filter(|_| coloured);
    let mut painted = colours.filter_map(|colour| {
        let text = line.strip_prefix(colour)?.strip_suffix(RESET)?;
        Some(format!("{colour}{}{RESET}", escaped(text)))
    });
    if let Some(painted) = painted.next() {
        return Cow::Owned(painted);
    }
    match line.strip_suffix('\r') {
        // It ends the line with the line feed that follows.
        Some(line) => Cow::Owned(format!("{}\r", escaped(line))),
        None => escaped(line),
    }
}

/// JSON in which what people do not see is escaped, as JSON has it.
pub fn json_escaped(json: &str) -> Cow<'_, str> {
    escaped_as(json, |to, c| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a String can't fail.
            let _ = write!(to, "\\u{unit:04x}");
        }
    })
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl std::fmt::Debug for Output<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("json", &self.json)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_for_a_program_is_not_shortened() {
        let print = |unshortened: bool| {
            let mut written = Vec::new();
            let output = Output::new(&mut written, false);
            let mut output = if unshortened { output.unshortened() } else { output };
            let phrase = "a phrase of many words ".repeat(9);
            let table =
                |_: &[String]| Table::new([("PHRASE", Column::Text)]).with_rows(&[()], |()| [phrase.clone()]);
            output
                .results(std::slice::from_ref(&phrase), |_| Value::Null, table, "")
                .unwrap();
            String::from_utf8(written).unwrap()
        };
        assert!(print(true).contains(&"a phrase of many words ".repeat(9).trim_end().to_owned()));
        assert!(print(false).contains('…'));
    }

    #[test]
    fn what_people_do_not_see_is_shown_as_escapes() {
        let hidden = "a\u{202E}b\u{E0041}\u{1b}[31mc";
        let print = |json: bool, coloured: bool, text: &str| {
            let mut written = Vec::new();
            let mut output = Output::new(&mut written, json).coloured(coloured);
            let line = Value::from(text);
            output.result(&line, || text.to_owned()).unwrap();
            String::from_utf8(written).unwrap()
        };
        let shown = "a\\u{202E}b\\u{E0041}\\u{001B}[31mc";
        assert_eq!(print(false, false, hidden), format!("{shown}\n"));
        assert_eq!(print(false, true, hidden), format!("{shown}\n"));
        let painted = format!("{RED}-{hidden}{RESET}\n a\r\nb\rc");
        assert_eq!(
            print(false, true, &painted),
            format!("{RED}-{shown}{RESET}\n a\r\nb\\u{{000D}}c\n")
        );
        let json = print(true, false, hidden);
        assert_eq!(json, "\"a\\u202eb\\udb40\\udc41\\u001b[31mc\"\n");
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), hidden);
        let mut written = Vec::new();
        let mut output = Output::new(&mut written, false);
        let table = |_: &[&str]| {
            Table::new([("A", Column::Text), ("B", Column::Text)])
                .with_rows(&[()], |()| [hidden, "x"].map(String::from))
        };
        output.results(&[hidden], |_| Value::Null, table, "").unwrap();
        let table = String::from_utf8(written).unwrap();
        assert!(table.contains(&format!("{shown}  x\n")), "{table}");
    }

    #[test]
    fn a_text_for_a_program_is_written_as_it_is_with_its_last_line_ended_and_shown_to_people_with_escapes() {
        let print = |people: bool, text: &str| {
            let mut written = Vec::new();
            let output = Output::new(&mut written, false);
            let mut output = if people { output } else { output.unshortened() };
            output.verbatim(text).unwrap();
            String::from_utf8(written).unwrap()
        };
        for ended in ["", "\n"] {
            let text = format!("a\u{202E}b\r\n\n c{ended}");
            assert_eq!(print(false, &text), "a\u{202E}b\r\n\n c\n");
            assert_eq!(print(true, &text), "a\\u{202E}b\r\n\n c\n");
        }
    }

    #[test]
    fn json_has_one_line_for_each_result() {
        let mut written = Vec::new();
        Output::new(&mut written, true)
            .results(
                &[1, 2],
                |n| serde_json::json!({ "n": n }),
                |_| Table::new([("ID", Column::Fixed)]),
                "none",
            )
            .unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), "{\"n\":1}\n{\"n\":2}\n");
    }

    #[test]
    fn an_empty_list_is_a_sentence_as_text_and_nothing_as_json() {
        let (mut text, mut json) = (Vec::new(), Vec::new());
        let none: [u8; 0] = [];
        let print = |to: &mut Vec<u8>, as_json| {
            Output::new(to, as_json).results(
                &none,
                |_| Value::Null,
                |_| Table::new([("ID", Column::Fixed)]),
                "nothing here",
            )
        };
        print(&mut text, false).unwrap();
        print(&mut json, true).unwrap();
        assert_eq!(
            (text.as_slice(), json.as_slice()),
            (&b"nothing here\n"[..], &b""[..])
        );
    }

    #[test]
    fn tables_are_as_wide_as_the_terminal_or_a_hundred_columns() {
        let widths = [Some(60), Some(180), None].map(|columns| {
            let mut sink = Vec::new();
            Output::new(&mut sink, false).within(columns).width()
        });
        assert_eq!(widths, [60, 180, 100]);
    }
}
