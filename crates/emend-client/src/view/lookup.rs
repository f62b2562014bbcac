//! The answers of a view.

use std::sync::Arc;

use emend_core::{
    NormalizedKey, Revision, Scope,
    generalise::Near,
    lookup::{self, Match},
    normalize::compose,
};

use super::NearStatus;

/// The score of every learned answer.
pub const LEARNED_SCORE: f64 = 1.0;

/// Where an answer came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// It was learned.
    Learned,
}

/// The result of a look-up; borrows from the [`Reading`](super::Reading) that answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lookup<'a> {
    pub(crate) resolved: lookup::Resolved<'a>,
    pub(crate) user_prohibited: &'a [Arc<str>],
    pub(crate) global_prohibited: &'a [Arc<str>],
}

impl<'a> Lookup<'a> {
    /// The learned answer, never a prohibited one. Its score is [`LEARNED_SCORE`].
    pub fn found(&self) -> Option<Match<'a>> {
        self.resolved.found
    }

    /// A learned answer exists but is prohibited.
    pub fn found_prohibited(&self) -> bool {
        self.resolved.found_prohibited
    }

    /// The choices that must never be offered for this phrase: the user's own, then everybody's. A choice may occur
    /// twice.
    pub fn prohibited(&self) -> impl Iterator<Item = &'a str> {
        self.user_prohibited
            .iter()
            .chain(self.global_prohibited)
            .map(|choice| &**choice)
    }

    /// Whether this choice must never be offered for this phrase.
    pub fn is_prohibited(&self, choice: &str) -> bool {
        let choice = compose(choice);
        contains(self.user_prohibited, &choice) || contains(self.global_prohibited, &choice)
    }

    /// Whether the backend should ask its user: nothing was learned, and of its candidates that are not prohibited
    /// there is more than one and the best scores below 0.9. Candidates are (value, score from 0.0 to 1.0).
    pub fn feedback_hint<'c>(&self, candidates: impl IntoIterator<Item = (&'c str, f64)>) -> bool {
        lookup::feedback_hint(&self.resolved, candidates, |choice| self.is_prohibited(choice))
    }
}

#[inline]
pub(crate) fn contains(prohibited: &[Arc<str>], choice: &str) -> bool {
    prohibited.binary_search_by(|known| (**known).cmp(choice)).is_ok()
}

/// A learned answer.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedAnswer {
    /// The verb or entity id.
    pub value: String,
    /// Always [`LEARNED_SCORE`].
    pub score: f64,
    /// Where it came from.
    pub source: Source,
    /// The revision that applied it.
    pub revision: Revision,
    /// Whether it is the user's own or everybody's.
    pub scope: Scope,
}

/// What a node answers for a phrase as written; the same as the server's `Resolve`.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    /// The learned answer; `None` if nothing was learned or the answer is prohibited.
    pub found: Option<LearnedAnswer>,
    /// A learned answer exists but is prohibited.
    pub found_prohibited: bool,
    /// Choices to remove from the backend's own, sorted and without duplicates.
    pub prohibited: Vec<String>,
    /// Ask the user: nothing was learned, and of the backend's candidates that are not prohibited there is more than
    /// one and the best scores below 0.9.
    pub feedback_hint: bool,
    /// What was learned for similar phrases; only where the caller asked for it and nothing was learned for the phrase itself.
    pub near: Option<Near>,
    /// Whether near answers are given.
    pub near_status: NearStatus,
    /// The normalised phrase that was looked up.
    pub phrase: NormalizedKey,
    /// The revision of the state that answered.
    pub revision: Revision,
}

impl Resolution {
    pub(crate) fn new<'c>(
        found: &Lookup<'_>,
        phrase: NormalizedKey,
        candidates: impl IntoIterator<Item = (&'c str, f64)>,
        revision: Revision,
    ) -> Self {
        let mut prohibited: Vec<String> = found.prohibited().map(str::to_owned).collect();
        prohibited.sort_unstable();
        prohibited.dedup();
        Self {
            found: found.found().map(|found| LearnedAnswer {
                value: found.value.to_owned(),
                score: LEARNED_SCORE,
                source: Source::Learned,
                revision: found.revision,
                scope: found.scope,
            }),
            found_prohibited: found.found_prohibited(),
            prohibited,
            feedback_hint: found.feedback_hint(candidates),
            near: None,
            near_status: NearStatus::NotAsked,
            phrase,
            revision,
        }
    }
}
