//! The node's own search, which learning helps: which verb is meant, by the words that its description shares with the
//! query. It must know nothing of what was learned.

use std::collections::{BTreeSet, HashMap};

/// The verbs of the application and how they are described.
const VERBS: [(&str, &str); 4] = [
    ("create_csa", "set up create credit support annex csa"),
    ("create_isda", "create isda master agreement"),
    ("book_trade", "book enter trade deal"),
    ("open_nav_report", "open show nav report fund value"),
];

/// Descriptions by their words, rare words weighing more.
#[derive(Debug)]
pub(crate) struct Index {
    weights: HashMap<&'static str, f64>,
    verbs: Vec<(&'static str, BTreeSet<&'static str>)>,
}

impl Index {
    /// Of all verbs there are.
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

    /// Verbs that share a word with the phrase, best first, with the share of the phrase that they explain: 0.0 to 1.0.
    pub(crate) fn search(&self, phrase: &str) -> Vec<(&'static str, f64)> {
        let phrase = phrase.to_lowercase();
        let words: BTreeSet<&str> = phrase.split_whitespace().collect();
        // A word that no description has weighs most: it is what the index does not understand.
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
    fn the_verb_that_explains_most_comes_first() {
        let found = Index::new().search("Set up a CSA");
        assert_eq!(found[0].0, "create_csa", "{found:?}");
        assert!(
            found.iter().all(|(_, score)| (0.0..=1.0).contains(score)),
            "{found:?}"
        );
    }

    #[test]
    fn what_shares_no_word_is_not_found() {
        assert_eq!(Index::new().search("weather tomorrow"), []);
        assert_eq!(Index::new().search(""), []);
    }
}
