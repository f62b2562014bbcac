//! One JSON object per line; empty lines are skipped.

use std::io::{BufRead, Write};

use serde_json::{Map, Value};

use super::{
    record::{FieldName, Fields, Record, RowError},
    source::Lines,
};
use crate::output::json_escaped;

pub(super) fn read(from: impl BufRead, take: &mut dyn FnMut(u64, Result<Record, RowError>) -> bool) {
    let mut lines = Lines::of(from);
    while let Some((line, text)) = lines.next_text() {
        if text.as_ref().is_ok_and(|text| text.trim().is_empty()) {
            continue;
        }
        if !take(line, text.and_then(row)) {
            return;
        }
    }
}

fn row(text: &str) -> Result<Record, RowError> {
    let object: Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| RowError::row(format!("is not a JSON object: {error}")))?;
    let mut fields = Fields::default();
    for (name, value) in object {
        let field = FieldName::parse(&name)?;
        match value {
            Value::Null => {}
            Value::String(text) => fields.set(field, text)?,
            Value::Number(number) => fields.set(field, number.to_string())?,
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                return Err(RowError::field(&name, "must be a string"));
            }
        }
    }
    fields.finish()
}

pub(super) fn write(to: &mut dyn Write, record: &Record) -> anyhow::Result<()> {
    writeln!(to, "{}", json_escaped(&serde_json::to_string(record)?))?;
    Ok(())
}
