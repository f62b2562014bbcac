//! What is searched: records in JSON lines, in the files of one directory.

use std::{collections::HashSet, fs, path::Path};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

/// One text of one title.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// `{what it is of}:{which of its texts}`, such as `JA-017:effect_1`.
    pub id: String,
    /// The title, the same in all records of one card or product.
    pub title: String,
    /// The text.
    pub text: String,
    /// Where it is searched: effects, qa, flavor, combined, products.
    pub namespace: String,
    /// Where it was taken from; empty: from the catalogue itself.
    #[serde(default)]
    pub url: String,
}

impl Record {
    /// What it is of: a card or a product.
    pub fn of(&self) -> &str {
        self.id.split_once(':').map_or(&self.id, |(subject, _)| subject)
    }

    /// Whether there is nothing to search in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// The host that it was taken from, if it was taken from one.
    pub fn host(&self) -> Option<&str> {
        let (_, rest) = self.url.split_once("://")?;
        rest.split(['/', '?', '#', ':'])
            .next()
            .filter(|host| !host.is_empty())
    }
}

/// Reads the `.jsonl` files of a directory, in the order of their names. An id that comes again is an error.
pub fn read(directory: &Path) -> Result<Vec<Record>> {
    let entries =
        fs::read_dir(directory).with_context(|| format!("{} cannot be read", directory.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        files.push(entry?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    ensure!(!files.is_empty(), "{} has no .jsonl files", directory.display());
    let mut records = Vec::new();
    let mut ids = HashSet::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
        for (number, line) in (1..).zip(text.lines()) {
            let place = || format!("{}, line {number}", file.display());
            let record = parse(line).with_context(place)?;
            if !ids.insert(record.id.clone()) {
                bail!("{}: id: {:?} is there twice", place(), record.id);
            }
            records.push(record);
        }
    }
    Ok(records)
}

fn parse(line: &str) -> Result<Record> {
    let record: Record = serde_json::from_str(line)?;
    let parts = record.id.split_once(':');
    let is_whole = parts.is_some_and(|(subject, key)| !subject.is_empty() && !key.is_empty());
    let violations: Vec<&str> = [
        (is_whole, "id: must be {id}:{source_key}"),
        (!record.title.trim().is_empty(), "title: must not be empty"),
        (!record.namespace.is_empty(), "namespace: must not be empty"),
        (
            record.url.is_empty() || record.host().is_some(),
            "url: must have a host",
        ),
    ]
    .into_iter()
    .filter_map(|(holds, why)| (!holds).then_some(why))
    .collect();
    ensure!(violations.is_empty(), "{}", violations.join("; "));
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_line_is_named_with_all_that_is_wrong() {
        let directory = tempfile::tempdir().unwrap();
        let line = |id: &str, title: &str, url: &str| {
            format!(
                "{{\"id\": \"{id}\", \"title\": \"{title}\", \"text\": \"\", \"namespace\": \"qa\", \"url\": \"{url}\"}}\n"
            )
        };
        let good = line("A-1:effect_1", "A", "https://rulings.example:8080/a");
        let file = directory.path().join("a.jsonl");
        fs::write(&file, &good).unwrap();
        let records = read(directory.path()).unwrap();
        assert_eq!(
            (records[0].of(), records[0].host()),
            ("A-1", Some("rulings.example"))
        );
        for (bad, expected) in [
            (
                line("A-1", " ", "nowhere"),
                "line 2: id: must be {id}:{source_key}; title: must not be empty; url: must have a host",
            ),
            (good.clone(), "line 2: id: \"A-1:effect_1\" is there twice"),
        ] {
            fs::write(&file, format!("{good}{bad}")).unwrap();
            let error = format!("{:#}", read(directory.path()).unwrap_err());
            assert!(error.ends_with(expected), "{error}");
        }
    }
}
