//! Utterances, each with its true label, in the format of BANKING77.

use std::{collections::HashMap, fmt, path::Path};

use emend_core::NormalizedKey;

use crate::{
    failure::{Failure, Result},
    transfer::source::{Source, csv::Records},
};

/// A label's index in [`Dataset::labels`].
pub type Label = usize;

/// Something a user may say, and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Utterance {
    /// As written.
    pub text: String,
    /// The normalised form, by which it is learned and looked up.
    pub key: NormalizedKey,
    /// The true label.
    pub label: Label,
}

/// All utterances and labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    /// The labels' names, sorted.
    pub labels: Vec<String>,
    /// What users ask, without duplicate phrases.
    pub train: Vec<Utterance>,
    /// What nobody asks during the simulation.
    pub test: Vec<Utterance>,
    /// Rows of train.csv that were left out: duplicates, and phrases with several meanings.
    pub left_out: usize,
    truth: HashMap<NormalizedKey, Label>,
}

impl Dataset {
    /// Reads train.csv and test.csv from a directory.
    pub fn load(directory: &Path) -> Result<Self> {
        let read = |name: &str| rows(&directory.join(name));
        let dataset = Self::new(read("train.csv")?, read("test.csv")?);
        if dataset.train.is_empty() || dataset.labels.len() < 2 {
            return Err(Failure::usage(format!(
                "{}: needs utterances of at least two categories",
                directory.display()
            )));
        }
        Ok(dataset)
    }

    /// Builds a data set from (text, category) rows. Phrases with the same normalised form are taken once; those with
    /// several meanings are left out, because no answer to them would be right.
    pub fn new(train: Vec<(String, String)>, test: Vec<(String, String)>) -> Self {
        let mut labels: Vec<String> = train
            .iter()
            .chain(&test)
            .map(|(_, label)| label.clone())
            .collect();
        labels.sort_unstable();
        labels.dedup();
        let utterances = |rows: Vec<(String, String)>| -> Vec<Utterance> {
            let parsed = rows.into_iter().filter_map(|(text, label)| {
                let key = NormalizedKey::parse(&text).ok()?;
                let label = labels.binary_search(&label).ok()?;
                Some(Utterance { text, key, label })
            });
            parsed.collect()
        };
        let rows_of_train = train.len();
        let (train, test) = (utterances(train), utterances(test));
        let mut meanings: HashMap<NormalizedKey, Option<Label>> = HashMap::new();
        for utterance in &train {
            let meaning = meanings
                .entry(utterance.key.clone())
                .or_insert(Some(utterance.label));
            if *meaning != Some(utterance.label) {
                *meaning = None;
            }
        }
        let truth: HashMap<_, _> = meanings
            .into_iter()
            .filter_map(|(key, meaning)| Some((key, meaning?)))
            .collect();
        let mut taken = std::collections::HashSet::new();
        let train: Vec<Utterance> = train
            .into_iter()
            .filter(|utterance| truth.contains_key(&utterance.key) && taken.insert(utterance.key.clone()))
            .collect();
        Self {
            left_out: rows_of_train - train.len(),
            labels,
            train,
            test,
            truth,
        }
    }

    /// The name of the true label of a normalised phrase.
    pub fn truth(&self, key: &NormalizedKey) -> Option<&str> {
        self.truth.get(key).map(|&label| self.labels[label].as_str())
    }
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

    fn rows(rows: &[(&str, &str)]) -> Vec<(String, String)> {
        rows.iter()
            .map(|&(text, label)| (text.into(), label.into()))
            .collect()
    }

    #[test]
    fn duplicates_are_taken_once_and_ambiguous_phrases_are_left_out() {
        let dataset = Dataset::new(
            rows(&[
                ("Where is it?", "a"),
                ("where  IS it?", "a"),
                ("What?", "a"),
                ("what?", "b"),
                ("Who?", "b"),
            ]),
            rows(&[("Where?", "c")]),
        );
        let texts: Vec<_> = dataset
            .train
            .iter()
            .map(|utterance| utterance.text.as_str())
            .collect();
        assert_eq!(texts, ["Where is it?", "Who?"]);
        assert_eq!(dataset.left_out, 3);
        assert_eq!(dataset.labels, ["a", "b", "c"]);
        assert_eq!(dataset.truth(&NormalizedKey::parse("WHO?").unwrap()), Some("b"));
        assert_eq!(dataset.truth(&NormalizedKey::parse("what?").unwrap()), None);
    }

    #[test]
    fn files_are_read_by_their_column_names() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        file("train.csv", "category,text\na,\"one, two\"\nb,three\n");
        file("test.csv", "category,text\na,four\n");
        let dataset = Dataset::load(directory.path()).unwrap();
        assert_eq!((dataset.train.len(), dataset.test.len()), (2, 1));
        file("test.csv", "\u{FEFF}category,text\r\n\r\na,four\r\nb\r\n");
        let refused = Dataset::load(directory.path()).unwrap_err().to_string();
        assert!(
            refused.contains("test.csv, line 4: text: is required"),
            "{refused}"
        );
        file("test.csv", "label,text\na,four\n");
        let refused = Dataset::load(directory.path()).unwrap_err().to_string();
        assert!(
            refused.contains("test.csv") && refused.contains("category"),
            "{refused}"
        );
    }
}
