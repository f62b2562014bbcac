//! Comma-separated values with a header line. Columns may be in any order; `user_id` and `system_choice` are optional.

use std::io::{self, BufRead, Cursor, Read, Write};

use ::csv::{ReaderBuilder, StringRecord, Writer as Rows, WriterBuilder};

use super::record::{COLUMNS, Field, Fields, Record, RowError};

pub(super) fn read(from: impl BufRead, take: &mut dyn FnMut(u64, Result<Record, RowError>) -> bool) {
    let unreadable =
        |error: &dyn std::fmt::Display| Err(RowError::row(format!("the header can't be read: {error}")));
    let from = match without_byte_order_mark(from) {
        Ok(from) => from,
        Err(error) => {
            take(1, unreadable(&error));
            return;
        }
    };
    let mut reader = ReaderBuilder::new().flexible(true).from_reader(from);
    let columns = match reader.headers() {
        Err(error) => {
            take(1, unreadable(&error));
            return;
        }
        // An empty file has no columns and no rows.
        Ok(header) if header.iter().all(str::is_empty) => return,
        Ok(header) => match header.iter().map(Field::parse).collect::<Result<Vec<_>, _>>() {
            Ok(columns) => columns,
            Err(error) => {
                take(1, Err(error));
                return;
            }
        },
    };
    let mut record = StringRecord::new();
    loop {
        let line = reader.position().line();
        let row = match reader.read_record(&mut record) {
            Ok(false) => return,
            Ok(true) => row(&columns, &record),
            Err(error) => Err(RowError::row(error.to_string())),
        };
        // The reader's position is before any blank lines; the record knows where it begins.
        let line = record.position().map_or(line, ::csv::Position::line);
        if !take(line, row) {
            return;
        }
    }
}

/// The CSV reader skips a byte order mark only if one read returns it together with what follows, and takes it for an
/// empty header if it arrives alone.
fn without_byte_order_mark(mut from: impl BufRead) -> io::Result<impl Read> {
    const MARK: &[u8] = "\u{FEFF}".as_bytes();
    let mut first = Vec::new();
    loop {
        from.by_ref().take(MARK.len() as u64).read_to_end(&mut first)?;
        // Concatenated files may have several.
        if first != MARK {
            break;
        }
        first.clear();
    }
    Ok(Cursor::new(first).chain(from))
}

fn row(columns: &[Field], record: &StringRecord) -> Result<Record, RowError> {
    if record.len() > columns.len() {
        let (is, should) = (record.len(), columns.len());
        return Err(RowError::row(format!(
            "has {is} fields, but the header has {should}; is a comma not quoted?"
        )));
    }
    let mut fields = Fields::default();
    for (&column, value) in columns.iter().zip(record) {
        fields.set(column, value.to_owned())?;
    }
    fields.finish()
}

/// Writes rows under a header.
pub struct Writer<'w>(Rows<Box<dyn Write + Send + 'w>>);

impl<'w> Writer<'w> {
    /// Writes the header.
    pub fn new(to: Box<dyn Write + Send + 'w>) -> anyhow::Result<Self> {
        let mut rows = WriterBuilder::new().from_writer(to);
        rows.write_record(COLUMNS)?;
        Ok(Self(rows))
    }

    /// Writes one row.
    pub fn write(&mut self, record: &Record) -> anyhow::Result<()> {
        Ok(self.0.write_record(record.columns().map(|(_, text)| text))?)
    }

    /// Flushes what is buffered.
    pub fn finish(mut self) -> anyhow::Result<()> {
        Ok(self.0.flush()?)
    }
}
