//! Comma-separated values under a header line, as RFC 4180 has them.
//!
//! The csv crate writes such files. It does not read them here: the lines that it tells are wrong behind `\r\n` and blank
//! lines, and it takes a quote that is never closed, or text behind a closing one, for content. Such a file would lose rows
//! unseen, so it ends there.

use std::io::BufRead;

use super::{
    RowError,
    encoding::not_utf8,
    lines::{Lines, MAX_LINE_BYTES, Numbered},
};
use crate::output::counted;

/// The records below a header line.
#[derive(Debug)]
pub struct Records<R> {
    lines: Lines<R>,
    header: Vec<String>,
    /// The columns of the header, also those at its end that have no name.
    width: usize,
    is_at_end: bool,
}

impl<R: BufRead> Records<R> {
    /// Reads the header; `None` for an empty file. An error tells the line, and ends the file.
    pub fn of(from: R) -> Result<Option<Self>, (u64, RowError)> {
        let mut lines = Lines::of(from);
        let Some((line, header)) = record(&mut lines) else {
            return Ok(None);
        };
        let mut header = header.map_err(|error| (line, error.of_the_file()))?;
        let width = header.len();
        // Spreadsheets write columns that were once used.
        while header.last().is_some_and(|name| name.trim().is_empty()) {
            header.pop();
        }
        if let [only] = &header[..]
            && let Some(separator) = [';', '\t', '|']
                .into_iter()
                .find(|candidate| only.contains(*candidate))
        {
            let name = if separator == '\t' {
                "tabs".to_owned()
            } else {
                separator.to_string()
            };
            let why = format!("columns are separated by {name}, expected commas");
            return Err((line, RowError::row(why).of_the_file()));
        }
        Ok((!header.is_empty()).then_some(Self {
            lines,
            header,
            width,
            is_at_end: false,
        }))
    }

    /// The names of the columns.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// The next record with the line that it begins on; `None` after the last one. Cells at its end may be missing.
    pub fn next_record(&mut self) -> Numbered<Vec<String>> {
        if self.is_at_end {
            return None;
        }
        let (line, read) = record(&mut self.lines)?;
        self.is_at_end = read.as_ref().is_err_and(RowError::ends_file);
        let checked = read.and_then(|mut cells| {
            let (named, found) = (self.header.len(), cells.len());
            if found > self.width {
                return Err(RowError::row(format!(
                    "has {}, but the header has {}; is a comma not quoted?",
                    counted(found, "field", "fields"),
                    self.width
                )));
            }
            if let Some(at) = (named..found).find(|at| !cells[*at].trim().is_empty()) {
                let cell = &cells[at];
                return Err(RowError::row(format!("has {cell:?} in a column without a name")));
            }
            cells.truncate(named);
            Ok(cells)
        });
        Some((line, checked))
    }
}

/// The fields of a record that is one line.
pub fn fields(line: &str) -> Result<Vec<String>, RowError> {
    let mut parser = Parser::new(1);
    parser.line(1, line.as_bytes())?;
    parser.finish()
}

/// The next record that is not blank, with the line it begins on or on which it breaks.
fn record<R: BufRead>(lines: &mut Lines<R>) -> Numbered<Vec<String>> {
    let mut open: Option<Parser> = None;
    loop {
        let Some((number, line)) = lines.next_bytes() else {
            return open.map(|open| (open.quote, Err(unclosed().of_the_file())));
        };
        // A line that is too long could hold a quote.
        let line = match line {
            Ok(line) => line,
            Err(error) => return Some((number, Err(error.of_the_file()))),
        };
        if open.is_none() && line.trim_ascii().is_empty() {
            continue;
        }
        let parser = open.get_or_insert_with(|| Parser::new(number));
        match parser.line(number, line) {
            Ok(true) => {}
            Ok(false) if parser.raw.len() > MAX_LINE_BYTES => {
                return Some((parser.quote, Err(unclosed().of_the_file())));
            }
            Ok(false) => continue,
            Err(error) => return Some((number, Err(error.of_the_file()))),
        }
        return open.map(|open| (open.begins, open.finish()));
    }
}

fn unclosed() -> RowError {
    RowError::row("has a quote that is not closed")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the beginning of a field.
    Begin,
    Plain,
    Quoted,
    /// After a quote within a quoted field: it closes the field, or the next one makes it a quote.
    Closing,
}

/// A record as its lines come in.
#[derive(Debug)]
struct Parser {
    begins: u64,
    /// The line of the last quote that opened a field.
    quote: u64,
    state: State,
    raw: Vec<u8>,
    field: Vec<u8>,
    fields: Vec<Vec<u8>>,
}

impl Parser {
    fn new(begins: u64) -> Self {
        Self {
            begins,
            quote: begins,
            state: State::Begin,
            raw: Vec::new(),
            field: Vec::new(),
            fields: Vec::new(),
        }
    }

    /// Takes a line with its end. Whether the record ends with it.
    fn line(&mut self, number: u64, line: &[u8]) -> Result<bool, RowError> {
        self.raw.extend_from_slice(line);
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        let content = content.strip_suffix(b"\r").unwrap_or(content);
        for &byte in content {
            self.state = match (self.state, byte) {
                (State::Begin, b'"') => {
                    self.quote = number;
                    State::Quoted
                }
                (State::Begin | State::Plain | State::Closing, b',') => {
                    self.fields.push(std::mem::take(&mut self.field));
                    State::Begin
                }
                (State::Quoted, b'"') => State::Closing,
                (State::Closing, b'"') => {
                    self.field.push(byte);
                    State::Quoted
                }
                (State::Closing, _) => return Err(self.behind_the_closing_quote(number)),
                (state, _) => {
                    self.field.push(byte);
                    if state == State::Begin {
                        State::Plain
                    } else {
                        state
                    }
                }
            };
        }
        if self.state != State::Quoted {
            return Ok(true);
        }
        self.field
            .extend_from_slice(line.get(content.len()..).unwrap_or_default());
        Ok(false)
    }

    fn behind_the_closing_quote(&self, number: u64) -> RowError {
        let opened = if self.quote == number {
            String::new()
        } else {
            format!(" that was opened on line {}", self.quote)
        };
        RowError::row(format!(
            "has text behind a closing quote{opened}; write a quote within quotes twice"
        ))
    }

    /// Its fields, if no quote is open.
    fn finish(mut self) -> Result<Vec<String>, RowError> {
        if self.state == State::Quoted {
            return Err(unclosed());
        }
        self.fields.push(self.field);
        let texts = self.fields.into_iter().map(String::from_utf8);
        texts.collect::<Result<_, _>>().map_err(|_| not_utf8(&self.raw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rows = Vec<(u64, Result<Vec<String>, String>)>;

    fn rows(bytes: &[u8]) -> Rows {
        let mut rows = Rows::new();
        match Records::of(bytes) {
            Ok(None) => {}
            Err((line, error)) => rows.push((line, Err(text(&error)))),
            Ok(Some(mut records)) => {
                while let Some((line, record)) = records.next_record() {
                    rows.push((line, record.map_err(|error| text(&error))));
                }
            }
        }
        rows
    }

    fn text(error: &RowError) -> String {
        let end = if error.ends_file() { " (ends the file)" } else { "" };
        format!("{error}{end}")
    }

    fn good(line: u64, cells: &[&str]) -> (u64, Result<Vec<String>, String>) {
        (line, Ok(cells.iter().map(|cell| (*cell).to_owned()).collect()))
    }

    #[test]
    fn lines_are_true_with_any_line_end_blank_lines_and_quoted_line_ends() {
        for end in ["\n", "\r\n"] {
            let text = "\u{FEFF}a,b\n\n1,\"x\ny\"\n\n\n2,\"\"\"q\"\"\"\n3\n".replace('\n', end);
            let expected = [
                good(3, &["1", &format!("x{end}y")]),
                good(7, &["2", "\"q\""]),
                good(8, &["3"]),
            ];
            assert_eq!(rows(text.as_bytes()), expected, "{end:?}");
        }
        assert_eq!(
            rows(b"a,b\nx \"y\" z, \"w\""),
            [good(2, &["x \"y\" z", " \"w\""])]
        );
        assert_eq!(rows(b""), []);
    }

    #[test]
    fn an_open_quote_or_text_behind_one_ends_the_file_on_its_line() {
        for (text, line, says) in [
            (
                "a,b\n1,2\n3,\"x\n4,5\n",
                3,
                "has a quote that is not closed (ends the file)",
            ),
            (
                "a,b\n3,\"x\n4,\"5\n6,7\n",
                3,
                "has text behind a closing quote that was opened on line 2; write a quote within quotes twice (ends the file)",
            ),
            (
                "a,b\n\"x\"y,1\n2,3\n",
                2,
                "has text behind a closing quote; write a quote within quotes twice (ends the file)",
            ),
            (
                "a,\"b\n1,2\n",
                1,
                "has a quote that is not closed (ends the file)",
            ),
        ] {
            assert_eq!(
                rows(text.as_bytes()).last(),
                Some(&(line, Err(says.to_owned()))),
                "{text:?}"
            );
        }
        let endless = format!("a,b\n1,\"{}", "x\n".repeat(MAX_LINE_BYTES));
        let rows = rows(endless.as_bytes());
        assert!(matches!(&rows[..], [(2, Err(error))] if error.contains("not closed")));
    }

    #[test]
    fn a_wrong_separator_is_named() {
        for (header, says) in [
            ("a;b", "separated by ;"),
            ("a\tb\tc", "separated by tabs"),
            ("a|b,", "separated by |"),
        ] {
            let rows = rows(format!("{header}\r\n1;2\r\n").as_bytes());
            assert!(
                matches!(&rows[..], [(1, Err(error))] if error.contains(says) && error.contains("ends")),
                "{rows:?}"
            );
        }
    }

    #[test]
    fn columns_without_a_name_at_the_end_are_passed_over_while_they_are_empty() {
        let rows = rows(b"a,b,,\n1,2,,\n1,2\n1,2,,x\n1,2,,,\n");
        let expected = [
            good(2, &["1", "2"]),
            good(3, &["1", "2"]),
            (4, Err("has \"x\" in a column without a name".to_owned())),
            (
                5,
                Err("has 5 fields, but the header has 4; is a comma not quoted?".to_owned()),
            ),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_record_that_is_not_utf_8_is_bad_and_the_next_is_read() {
        let rows = rows(b"a,b\ncaf\xE9,1\n2,3\n");
        assert!(
            matches!(&rows[..], [(2, Err(error)), (3, Ok(_))] if error.contains("windows-1252") && !error.contains("ends")),
            "{rows:?}"
        );
        assert!(matches!(&self::rows(b"caf\xE9,b\n1,2\n")[..], [(1, Err(error))] if error.contains("ends")));
    }
}
