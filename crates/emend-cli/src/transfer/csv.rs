//! Comma-separated values with a header line. Columns may be in any order; `user_id` and `system_choice` are optional.

use std::io::{self, BufRead, Cursor, Read, Write};

use ::csv::{Reader, ReaderBuilder, StringRecord, Writer as Rows, WriterBuilder};

use super::record::{COLUMNS, Fields, Named, Record, RowError};

pub(super) fn read(from: impl BufRead, take: &mut dyn FnMut(u64, Result<Record, RowError>) -> bool) {
    let (header, mut records) = match records(from) {
        Ok(Some(opened)) => opened,
        Ok(None) => return,
        Err(error) => {
            take(1, Err(error.of_the_file()));
            return;
        }
    };
    let columns = match header.iter().map(Named::parse).collect::<Result<Vec<_>, _>>() {
        Ok(columns) => columns,
        Err(error) => {
            take(1, Err(error.of_the_file()));
            return;
        }
    };
    while let Some((line, record)) = records.next() {
        if !take(line, record.and_then(|record| row(&columns, record))) {
            return;
        }
    }
}

/// What is below a header line.
pub(super) struct Records<R> {
    reader: Reader<R>,
    record: StringRecord,
    columns: usize,
}

/// The header of a file, and what is below it; `None` for an empty file.
pub(super) fn records(from: impl BufRead) -> Result<Option<(StringRecord, Records<impl Read>)>, RowError> {
    let unreadable =
        |error: &dyn std::fmt::Display| RowError::row(format!("the header can't be read: {error}"));
    let from = without_byte_order_mark(from).map_err(|error| unreadable(&error))?;
    let mut reader = ReaderBuilder::new().flexible(true).from_reader(from);
    let header = reader.headers().map_err(|error| unreadable(&error))?.clone();
    // An empty file has no columns and no rows.
    if header.iter().all(str::is_empty) {
        return Ok(None);
    }
    let records = Records {
        reader,
        record: StringRecord::new(),
        columns: header.len(),
    };
    Ok(Some((header, records)))
}

impl<R: Read> Records<R> {
    /// The next record with its line; `None` after the last one.
    pub(super) fn next(&mut self) -> Option<(u64, Result<&StringRecord, RowError>)> {
        let line = self.reader.position().line();
        let read = self.reader.read_record(&mut self.record);
        // The reader's position is before any blank lines; the record knows where it begins.
        let line = self.record.position().map_or(line, ::csv::Position::line);
        let (is, should) = (self.record.len(), self.columns);
        match read {
            Ok(false) => None,
            Err(error) => Some((line, Err(RowError::row(error.to_string())))),
            Ok(true) if is > should => Some((
                line,
                Err(RowError::row(format!(
                    "has {is} fields, but the header has {should}; is a comma not quoted?"
                ))),
            )),
            Ok(true) => Some((line, Ok(&self.record))),
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

fn row(columns: &[Named], record: &StringRecord) -> Result<Record, RowError> {
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
