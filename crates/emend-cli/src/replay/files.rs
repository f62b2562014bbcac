//! The files of a data set, in the format of BANKING77.

use std::{fmt, path::Path};

use emend_lab::replay::dataset::Dataset;

use crate::{
    failure::{Failure, Result},
    transfer::source::{Source, csv::Records},
};

/// Reads train.csv and test.csv from a directory.
pub(super) fn load(directory: &Path) -> Result<Dataset> {
    let read = |name: &str| rows(&directory.join(name));
    let dataset = Dataset::new(read("train.csv")?, read("test.csv")?);
    if dataset.train.is_empty() || dataset.labels.len() < 2 {
        return Err(Failure::usage(format!(
            "{}: needs utterances of at least two categories",
            directory.display()
        )));
    }
    Ok(dataset)
}

fn rows(path: &Path) -> Result<Vec<(String, String)>> {
    let source = Source::open(path)?;
    let bad = |line: u64, why: &dyn fmt::Display| Failure::usage(format!("{source}, line {line}: {why}"));
    let mut records = Records::of(source.reader()?)
        .map_err(|(line, error)| bad(line, &error))?
        .ok_or_else(|| bad(1, &"has no header"))?;
    let column = |name: &str| {
        let found = records.header().iter().position(|header| header.trim() == name);
        found.ok_or_else(|| bad(1, &format_args!("has no column {name}; expected text,category")))
    };
    let (text, category) = (column("text")?, column("category")?);
    let mut rows = Vec::new();
    while let Some((line, record)) = records.next_record() {
        let record = record.map_err(|error| bad(line, &error))?;
        let cell = |index: usize, name: &str| match record.get(index).map(|cell| cell.trim()) {
            None | Some("") => Err(bad(line, &format_args!("{name}: is required"))),
            Some(cell) => Ok(cell.to_owned()),
        };
        rows.push((cell(text, "text")?, cell(category, "category")?));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_by_their_column_names() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        file("train.csv", "category,text\na,\"one, two\"\nb,three\n");
        file("test.csv", "category,text\na,four\n");
        let dataset = load(directory.path()).unwrap();
        assert_eq!((dataset.train.len(), dataset.test.len()), (2, 1));
        file("test.csv", "\u{FEFF}category,text\r\n\r\na,four\r\nb\r\n");
        let refused = load(directory.path()).unwrap_err().to_string();
        assert!(
            refused.contains("test.csv, line 4: text: is required"),
            "{refused}"
        );
        file("test.csv", "label,text\na,four\n");
        let refused = load(directory.path()).unwrap_err().to_string();
        assert!(
            refused.contains("test.csv") && refused.contains("category"),
            "{refused}"
        );
    }
}
