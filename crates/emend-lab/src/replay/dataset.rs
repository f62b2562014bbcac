//! Utterances, each with its true label, in the format of BANKING77.

use std::collections::HashMap;

use emend_core::NormalizedKey;

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
}
