//! The node's own search, which learning complements: finds the verb whose description shares the most words with the
//! query.

use std::collections::{BTreeSet, HashMap};

/// The application's verbs and their descriptions.
const VERBS: [(&str, &str); 4] = [
    ("create_csa", "set up create credit support annex csa"),
    ("create_isda", "create isda master agreement"),
    ("book_trade", "book enter trade deal"),
    ("open_nav_report", "open show nav report fund value"),
];

/// Descriptions indexed by word; rare words weigh more.
#[derive(Debug)]
pub(crate) struct Index {
    weights: HashMap<&'static str, f64>,
    verbs: Vec<(&'static str, BTreeSet<&'static str>)>,
}

impl Index {
    /// Indexes all verbs.
    pub(crate) fn new() -> Self {
        let verbs: Vec<_> = VERBS.map(|(verb, text)| (verb, text.split(' ').collect())).into();
        let mut weights = HashMap::new();
        for word in verbs.iter().flat_map(|(_, words): &(_, BTreeSet<&str>)| words) {
            *weights.entry(*word).or_insert(0.0) += 1.0;
        }
        for weight in weights.values_mut() {
            *weight = 1.0 / *weight;
        }
        Self { weights, verbs }
    }

    /// Verbs that share a word with the phrase, best first, scored by the weighted share of the phrase they explain:
    /// 0.0 to 1.0.
    pub(crate) fn search(&self, phrase: &str) -> Vec<(&'static str, f64)> {
        let phrase = phrase.to_lowercase();
        let words: BTreeSet<&str> = phrase.split_whitespace().collect();
        // A word that occurs in no description has the highest weight: the index does not understand it.
        let weight = |word: &str| self.weights.get(word).copied().unwrap_or(1.0);
        let all: f64 = words.iter().map(|word| weight(word)).sum();
        let mut found: Vec<(&str, f64)> = self
            .verbs
            .iter()
            .map(|(verb, described)| {
                (
                    *verb,
                    words
                        .intersection(described)
                        .map(|word| weight(word))
                        .sum::<f64>()
                        / all,
                )
            })
            .filter(|(_, score)| *score > 0.0)
            .collect();
        found.sort_by(|one, other| other.1.total_cmp(&one.1));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::Index;

    #[test]
    fn the_best_matching_verb_comes_first() {
        let found = Index::new().search("Set up a CSA");
        assert_eq!(found[0].0, "create_csa", "{found:?}");
        assert!(
            found.iter().all(|(_, score)| (0.0..=1.0).contains(score)),
            "{found:?}"
        );
    }

    #[test]
    fn a_verb_without_a_shared_word_is_not_found() {
        assert_eq!(Index::new().search("weather tomorrow"), []);
        assert_eq!(Index::new().search(""), []);
    }
}
