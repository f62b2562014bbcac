//! A list of mappings, read one by one: a file with a million rows is never held in memory as a whole.

use std::{
    cell::Cell,
    collections::BTreeMap,
    fmt,
    io::{BufRead, Write},
};

use serde::de::{DeserializeSeed as _, Deserializer, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::{
    record::{FieldName, Fields, Record, RowError},
    source::Utf8,
};

type Take<'t> = dyn FnMut(u64, Result<Record, RowError>) -> bool + 't;

pub(super) fn read(from: impl BufRead, take: &mut Take<'_>) {
    // No parser budget: files may be as large as an import, whose cost is bounded by its number of rows.
    let options = serde_saphyr::options! { budget: None, with_snippet: false };
    let last = Cell::new(1);
    let (from, wrong) = Utf8::of(from);
    let read = serde_saphyr::with_deserializer_from_reader_with_options(from, options, |deserializer| {
        List {
            take: &mut *take,
            last: &last,
        }
        .deserialize(deserializer)
    });
    if let Some((line, error)) = wrong.take() {
        take(line, Err(error));
    } else if let Err(error) = read {
        let line = error.location().map_or(last.get(), |location| location.line());
        let error = RowError::row(format!("is not the expected YAML: {}", error.without_snippet()));
        take(line, Err(error.of_the_file()));
    }
}

/// Passes on each element of a list as it is read.
struct List<'t, 'l> {
    take: &'t mut Take<'l>,
    last: &'t Cell<u64>,
}

impl<'de> serde::de::DeserializeSeed<'de> for List<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rows")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        while let Some(fields) = rows.next_element::<Spanned<BTreeMap<String, Option<String>>>>()? {
            let line = fields.referenced.line();
            self.last.set(line);
            if !(self.take)(line, row(fields.value)) {
                // Skip the rest.
                while rows.next_element::<serde::de::IgnoredAny>()?.is_some() {}
                break;
            }
        }
        Ok(())
    }
}

fn row(named: BTreeMap<String, Option<String>>) -> Result<Record, RowError> {
    let mut fields = Fields::default();
    for (name, value) in named {
        let field = FieldName::parse(&name)?;
        if let Some(value) = value {
            fields.set(field, value)?;
        }
    }
    fields.finish()
}

pub(super) fn write(to: &mut dyn Write, record: &Record) -> anyhow::Result<()> {
    // A list with one element; consecutive lists are one list.
    to.write_all(serde_saphyr::to_string(&[record])?.as_bytes())?;
    Ok(())
}
