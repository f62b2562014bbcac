//! Comma-separated values with a header line. Columns may be in any order; `user_id` and `system_choice` are optional.

use std::io::{BufRead, Write};

use ::csv::{Writer as Rows, WriterBuilder};

use super::{
    record::{COLUMNS, FieldName, Fields, Record, RowError},
    source::csv::Records,
};

pub(super) fn read(from: impl BufRead, take: &mut dyn FnMut(u64, Result<Record, RowError>) -> bool) {
    let mut records = match Records::of(from) {
        Ok(Some(records)) => records,
        Ok(None) => return,
        Err((line, error)) => {
            take(line, Err(error));
            return;
        }
    };
    let columns = records.header().iter().enumerate();
    let columns = columns.map(|(index, name)| match name.trim() {
        "" => Err(RowError::row(format!("column {} has no name", index + 1))),
        name => FieldName::parse(name),
    });
    let columns = match columns.collect::<Result<Vec<_>, _>>() {
        Ok(columns) => columns,
        Err(error) => {
            take(1, Err(error.of_the_file()));
            return;
        }
    };
    while let Some((line, record)) = records.next_record() {
        if !take(line, record.and_then(|record| row(&columns, record))) {
            return;
        }
    }
}

fn row(columns: &[FieldName], record: Vec<String>) -> Result<Record, RowError> {
    let mut fields = Fields::default();
    for (&column, value) in columns.iter().zip(record) {
        fields.set(column, value)?;
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
