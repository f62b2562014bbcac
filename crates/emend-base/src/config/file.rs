//! The settings file: TOML with one level of keys.

use std::{fs, path::Path};

use toml::{Table, Value};

/// The value of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// `true` or `false`.
    Switch(bool),
    /// One value as text.
    One(String),
    /// A list of values.
    Many(Vec<String>),
    /// A value that no setting takes.
    Unfit(&'static str),
}

/// Reads the file. An error names the file and, if known, the line; never the line's text, which may hold a secret.
pub(super) fn read(path: &Path) -> Result<Vec<(String, Entry)>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error
            .span()
            .and_then(|span| text.get(..span.start))
            .map_or(1, |before| before.matches('\n').count() + 1);
        format!(
            "{}, line {line}: not valid TOML: {}",
            path.display(),
            error.message()
        )
    })?;
    Ok(table
        .into_iter()
        .map(|(key, value)| (key, entry(value)))
        .collect())
}

fn entry(value: Value) -> Entry {
    match value {
        Value::Boolean(switch) => Entry::Switch(switch),
        Value::Array(values) => values.into_iter().map(text).collect::<Option<_>>().map_or(
            Entry::Unfit("a list with values other than texts and numbers"),
            Entry::Many,
        ),
        Value::Table(_) => Entry::Unfit("a table"),
        one => text(one).map_or(Entry::Unfit("another thing"), Entry::One),
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Datetime(time) => Some(time.to_string()),
        Value::Boolean(_) | Value::Array(_) | Value::Table(_) => None,
    }
}
