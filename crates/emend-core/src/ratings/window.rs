//! How much of the ratings is shown, and what is.

use super::{Language, RatedId, RatingClass};
use crate::ids::FeedbackId;

/// How much a window shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowPolicy {
    /// How many good examples, 0 to [`MAX_WINDOW`].
    pub good: u32,
    /// How many examples to avoid, 0 to [`MAX_WINDOW`].
    pub bad: u32,
    /// The characters after which each text of an example is cut, 100 to 10,000.
    pub max_text_chars: u32,
    /// The language of the headings and labels around examples.
    pub language: Language,
}

impl WindowPolicy {
    /// How many ratings of this class are shown, at most.
    pub fn room(&self, class: RatingClass) -> u32 {
        match class {
            RatingClass::Good => self.good,
            RatingClass::Bad => self.bad,
            RatingClass::Neutral => 0,
        }
    }
}

/// How many ratings of one class any policy shows, at most.
pub const MAX_WINDOW: u32 = 20;

impl Default for WindowPolicy {
    fn default() -> Self {
        Self {
            good: 5,
            bad: 3,
            max_text_chars: 2_000,
            language: Language::En,
        }
    }
}

/// Examples for one target, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct FewShotSet {
    /// The language of the headings and labels around the examples.
    pub language: Language,
    /// Examples of good outputs.
    pub good: Vec<Example>,
    /// Examples to avoid.
    pub bad: Vec<Example>,
}

/// One rated output. Its texts are masked and cut.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Example {
    /// The newest live rating of its class, of which its input and output are.
    pub feedback: FeedbackId,
    /// The output: in a set it stands once.
    pub rated: RatedId,
    /// What the AI was given.
    pub input: String,
    /// What it made of it.
    pub output: String,
    /// What it should have made of it, as who said so last; empty if nobody said, and of good examples.
    pub corrected: String,
    /// What is wrong with the output, most named first; none of good examples.
    pub issues: Vec<String>,
}

impl FewShotSet {
    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.good.is_empty() && self.bad.is_empty()
    }

    /// All examples, the good ones first.
    pub fn examples(&self) -> impl Iterator<Item = &Example> {
        self.good.iter().chain(&self.bad)
    }
}
