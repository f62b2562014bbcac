//! Writes results to standard output, as text for people or as JSON lines for programs.

use std::io::{self, Write};

use serde_json::Value;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

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

/// How a column is aligned and shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Left-aligned, never shortened, such as ids.
    Fixed,
    /// Left-aligned, shortened if the table would be too wide.
    Text,
    /// Right-aligned.
    Number,
}

/// Rows under headings.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<(String, Column)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub fn new<const N: usize>(columns: [(&str, Column); N]) -> Self {
        Self {
            columns: columns
                .into_iter()
                .map(|(heading, column)| (heading.to_owned(), column))
                .collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; cells beyond the columns are not shown.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows
            .push(cells.into_iter().map(|cell| one_line(&cell)).collect());
    }

    /// Adds a row per item.
    #[must_use]
    pub fn with_rows<T, const N: usize>(mut self, items: &[T], row: impl Fn(&T) -> [String; N]) -> Self {
        for item in items {
            self.row(row(item));
        }
        self
    }

    /// Renders the table at most `width` columns wide, if the columns that are never shortened leave room for that.
    pub fn render(&self, width: usize) -> String {
        const GAP: usize = 2;
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(index, (heading, _))| {
                let cells = self.rows.iter().filter_map(|row| row.get(index));
                cells
                    .map(|cell| cell.width())
                    .max()
                    .unwrap_or(0)
                    .max(heading.width())
            })
            .collect();
        // Shrink the widest text column first.
        let room = width.saturating_sub(GAP * self.columns.len().saturating_sub(1));
        while widths.iter().sum::<usize>() > room {
            let widest = (0..widths.len())
                .filter(|&index| self.columns[index].1 == Column::Text && widths[index] > 8)
                .max_by_key(|&index| widths[index]);
            match widest {
                Some(index) => widths[index] -= 1,
                None => break,
            }
        }
        let headings: Vec<String> = self.columns.iter().map(|(heading, _)| heading.clone()).collect();
        let mut text = String::new();
        for row in std::iter::once(&headings).chain(&self.rows) {
            let cells: Vec<String> = row
                .iter()
                .zip(&self.columns)
                .zip(&widths)
                .map(|((cell, (_, column)), &width)| fit(cell, *column, width))
                .collect();
            text.push_str(cells.join(&" ".repeat(GAP)).trim_end());
            text.push('\n');
        }
        text
    }
}

/// Pads or shortens a cell to its column.
fn fit(cell: &str, column: Column, width: usize) -> String {
    let cell = shortened(cell, width);
    let padding = " ".repeat(width.saturating_sub(cell.width()));
    match column {
        Column::Number => padding + &cell,
        Column::Fixed | Column::Text => cell + &padding,
    }
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

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([
            ("ID", Column::Fixed),
            ("PHRASE", Column::Text),
            ("VOTES", Column::Number),
        ]);
        table.row(["0192d3c5-7a0e".into(), "set up\na CSA".into(), "3".into()]);
        table.row([
            "x".into(),
            "a very long phrase that nobody reads to its end".into(),
            "12".into(),
        ]);
        table
    }

    #[test]
    fn columns_are_aligned_and_numbers_are_aligned_right() {
        let text = table().render(100);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "ID             PHRASE                                           VOTES"
        );
        assert!(lines[1].ends_with("    3") && lines[1].contains("set up a CSA"));
        assert!(
            lines
                .iter()
                .all(|line| line.chars().count() == lines[0].chars().count())
        );
    }

    #[test]
    fn text_is_shortened_to_fit_and_ids_are_not() {
        let text = table().render(40);
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert!(text.contains("0192d3c5-7a0e") && text.contains('…'));
    }

    #[test]
    fn a_kanji_takes_two_columns() {
        let mut table = Table::new([("TERM", Column::Text), ("VOTES", Column::Number)]);
        table.row(["相手のリーダー".into(), "3".into()]);
        table.row(["leader".into(), "12".into()]);
        assert_eq!(
            table.render(100),
            "TERM            VOTES\n相手のリーダー      3\nleader             12\n"
        );
        assert_eq!(
            table.render(16),
            "TERM       VOTES\n相手のリ…      3\nleader        12\n"
        );
        assert_eq!(shortened("相手の", 4), "相…");
    }

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
            .results(&[1, 2], |n| serde_json::json!({ "n": n }), |_| table(), "none")
            .unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), "{\"n\":1}\n{\"n\":2}\n");
    }

    #[test]
    fn an_empty_list_is_a_sentence_as_text_and_nothing_as_json() {
        let (mut text, mut json) = (Vec::new(), Vec::new());
        let none: [u8; 0] = [];
        let print = |to: &mut Vec<u8>, as_json| {
            Output::new(to, as_json).results(&none, |_| Value::Null, |_| table(), "nothing here")
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
