//! The search system before anything was learned: matches words of the utterance with words of the label names.
//!
//! Deliberately weak: no stemming, no weights, no synonyms. It does not know which label is right.

use std::collections::{HashMap, HashSet};

use super::dataset::Label;

/// Matches labels by shared words.
#[derive(Debug, Clone)]
pub struct BaseMatcher {
    /// The labels that contain each word.
    by_word: HashMap<String, Vec<Label>>,
    /// How many words each label has.
    sizes: Vec<usize>,
}

impl BaseMatcher {
    /// A matcher that knows only the labels' names.
    pub fn new(labels: &[String]) -> Self {
        let mut matcher = Self {
            by_word: HashMap::new(),
            sizes: Vec::with_capacity(labels.len()),
        };
        for (label, name) in labels.iter().enumerate() {
            let words = words(name);
            matcher.sizes.push(words.len());
            for word in words {
                matcher.by_word.entry(word).or_default().push(label);
            }
        }
        matcher
    }

    /// The label with the largest share of its words in the utterance; the first in a tie. `None` if no word is shared.
    pub fn best(&self, utterance: &str) -> Option<Label> {
        let mut shared: HashMap<Label, usize> = HashMap::new();
        for word in words(utterance) {
            for &label in self.by_word.get(&word).map(Vec::as_slice).unwrap_or_default() {
                *shared.entry(label).or_default() += 1;
            }
        }
        shared
            .into_iter()
            // Compares a/b with c/d without fractions: a·d with c·b.
            .max_by(|&(one, a), &(other, c)| {
                (a * self.sizes[other])
                    .cmp(&(c * self.sizes[one]))
                    .then(other.cmp(&one))
            })
            .map(|(label, _)| label)
    }
}

fn words(text: &str) -> HashSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(utterance: &str) -> Option<&'static str> {
        const LABELS: [&str; 4] = [
            "card_arrival",
            "card_not_working",
            "lost_or_stolen_card",
            "top_up_failed",
        ];
        let matcher = BaseMatcher::new(&LABELS.map(str::to_owned));
        matcher.best(utterance).map(|label| LABELS[label])
    }

    #[test]
    fn the_label_with_the_largest_share_of_shared_words_wins() {
        assert_eq!(best("My top-up FAILED!"), Some("top_up_failed"));
        assert_eq!(best("the card is not working"), Some("card_not_working"));
        assert_eq!(best("my card"), Some("card_arrival"));
    }

    #[test]
    fn of_equal_shares_the_first_label_wins() {
        assert_eq!(best("arrival of what was stolen"), Some("card_arrival"));
        assert_eq!(best("working, failed"), Some("card_not_working"));
    }

    #[test]
    fn without_a_shared_word_there_is_no_answer() {
        assert_eq!(best("hello?"), None);
        assert_eq!(best(""), None);
    }
}
