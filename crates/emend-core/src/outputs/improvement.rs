//! A better prompt from what people found wrong with its outputs.

use super::{RatedTexts, RatingClass};
use crate::{ids::FeedbackId, kinds::Prompt};

/// What an improvement is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Material {
    /// What the AI is asked for.
    pub target: String,
    /// The prompt that is current.
    pub prompt: Prompt,
    /// The ratings since the newest proposal, the newest first.
    pub ratings: Vec<RatedOutput>,
}

/// A rated output, masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatedOutput {
    /// Its feedback.
    pub feedback: FeedbackId,
    /// What the rating counts as.
    pub class: RatingClass,
    /// What it says.
    pub texts: RatedTexts,
}

/// A proposed prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Improved {
    /// Its text.
    pub text: String,
    /// Why it is better: 1 to 2,000 characters.
    pub reason: String,
}
