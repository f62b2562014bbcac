//! Writes results to standard output, as text for people or as JSON lines for programs.

mod table;

use std::io::{self, Write};

use serde_json::Value;

pub use self::table::{Cell, Column, ID_PREFIX, Table, shortened};
use crate::failure::Result;

/// The maximum line width of a table that people read, where the terminal does not say how wide it is.
const WIDTH: usize = 100;

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
    pub fn within(mut self, columns: Option<u16>) -> Self {
        self.width = columns.map_or(WIDTH, usize::from);
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
            self.line(&json.to_string())
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
                .try_for_each(|item| self.line(&json(item).to_string()))
        } else if items.is_empty() {
            self.line(if_empty)
        } else {
            self.line(&table(items).render(self.width))
        }
    }

    /// Writes a text byte for byte; where people read it, with a line end if it has none.
    pub fn verbatim(&mut self, text: &str) -> Result {
        self.to.write_all(text.as_bytes())?;
        if self.width != usize::MAX && !text.ends_with('\n') {
            self.to.write_all(b"\n")?;
        }
        self.to.flush()?;
        Ok(())
    }

    /// Writes a line and flushes it, so that it appears at once when watching a stream.
    pub fn line(&mut self, text: &str) -> Result {
        writeln!(self.to, "{}", text.trim_end_matches('\n'))?;
        self.to.flush()?;
        Ok(())
    }
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
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
