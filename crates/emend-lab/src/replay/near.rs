//! What a node answers to phrases that were not learned, by what was learned for similar ones.
//!
//! A node fits its index within a minute of a change, by the clock. Here it is fitted once a day, so that equal seeds give
//! equal figures; what is learned on the day itself answers by its nearest phrases until the next.

use emend_core::{
    NormalizedKey,
    generalise::{Index, Method, Near},
};

use super::dataset::{Dataset, Label};

/// Whether and when near answers are given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Use {
    /// The confidence from which they count, 0 to 1.
    pub min_confidence: f32,
    /// Whether the simulated users get them, and so correct other answers. Otherwise they are counted beside.
    pub answered: bool,
}

/// An index of what was learned during a replay.
#[derive(Debug)]
pub struct NearNode {
    index: Index,
}

impl Default for NearNode {
    fn default() -> Self {
        Self {
            index: Index::new(Method::Lexical),
        }
    }
}

/// A near answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NearAnswer {
    /// `None` if it is no label of the data set.
    pub label: Option<Label>,
    /// The probability that it is right.
    pub confidence: f32,
}

impl NearNode {
    /// A phrase in normal form means this choice, or nothing, from now on.
    pub fn change(&mut self, phrase: &str, before: Option<&str>, after: Option<&str>) {
        if let Some(before) = before {
            self.index.forget(phrase, before);
        }
        if let Some(after) = after {
            self.index.learn(phrase, after);
        }
    }

    /// Fits what was learned so far.
    pub fn refit(&mut self) {
        if self.index.is_behind() {
            self.index.adopt(self.index.refit());
        }
    }

    /// The near answer to a phrase, however sure.
    pub fn answer(&self, dataset: &Dataset, phrase: &NormalizedKey) -> Option<NearAnswer> {
        let Near {
            choice, confidence, ..
        } = self.index.near(phrase.as_str(), &|_| false, 0.0)?;
        Some(NearAnswer {
            label: dataset
                .labels
                .binary_search_by(|label| label.as_str().cmp(&choice))
                .ok(),
            confidence,
        })
    }
}
