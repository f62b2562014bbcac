//! A better prompt from what people found wrong with its outputs.

use crate::{
    ids::FeedbackId,
    kinds::Prompt,
    ratings::{Language, RatedTexts, RatingClass},
    text::clean,
    violation::{Violations, bounded_prose},
};

/// The most characters of a reason.
const REASON_CHARS: usize = 2_000;

/// What an improvement is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Material {
    /// What the AI is asked for.
    pub target: String,
    /// The prompt that is current.
    pub prompt: Prompt,
    /// The language of what is said about it, as the target's examples have it.
    pub language: Language,
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

/// Why ratings make no better prompt: another attempt with the same ratings comes to the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unimproved {
    /// None that is bad or neutral has issues or a corrected text.
    #[error("nothing in the bad ratings says what is wrong: they have neither issues nor corrected texts")]
    NothingSaid,
    /// The prompt is as long as prompts may be.
    #[error("the prompt has no room for guidelines")]
    NoRoom,
}

/// A proposed prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Improved {
    /// Its text.
    pub text: String,
    /// Why it is better: 1 to 2,000 characters.
    pub reason: String,
}

impl Improved {
    /// The next version of a prompt, if this is one: its variables still have their places, and it says something else.
    pub fn version_of(&self, prompt: &Prompt) -> Result<Prompt, Violations> {
        let mut violations = Violations::new();
        violations.check("reason", bounded_prose(&self.reason, 1, REASON_CHARS));
        // What nobody sees is no part of what a generator says: nobody could review it.
        let mut text = clean(&self.text).into_owned();
        // Models leave out the line feed at the end, which nobody wants to see as a change.
        if prompt.text().ends_with('\n') && !text.ends_with('\n') {
            text.push('\n');
        }
        let version = violations.part("", prompt.with_text(&text));
        if version
            .as_ref()
            .is_some_and(|version| version.says_the_same(prompt))
        {
            violations.add("text", "is the text of the current prompt");
        }
        violations.finish(version)
    }
}
