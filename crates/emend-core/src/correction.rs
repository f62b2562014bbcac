//! What people say is wrong, and what they propose to learn.

mod effects;
mod form;
mod parse;
#[cfg(test)]
mod tests;

pub use self::{
    effects::{Assertion, Proposal},
    form::Form,
    parse::MAX_EQUIVALENTS,
};
use crate::{
    evidence::TrustLevel,
    ids::{ReporterId, UserId},
    kinds::{self, EdgeLabel, ReasonCode, Relation, SearchTuning},
    ratings::{RatedTexts, Rating},
    resource::{Key, ResourceValue},
    search::SearchRating,
    violation::{Invalid, Violations},
};

/// Who a correction is learned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Scope {
    /// Everybody in the namespace.
    #[default]
    Global,
    /// The reporter alone.
    User,
}
/// What a correction is about: as people write it, and the key that this is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Subject {
    written: String,
    key: Key,
}

impl Subject {
    /// Parses the text at `field`, of whose keys `form` is the form.
    fn parse(violations: &mut Violations, field: &str, form: kinds::Form, raw: &str) -> Option<Self> {
        let written = violations.check(field, ResourceValue::parse_display(raw))?;
        let key = violations.check(field, Key::parse(form, raw))?;
        Some(Self { written, key })
    }

    /// What people write, before normalisation.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// The same in the form of the kind's keys.
    pub const fn key(&self) -> &Key {
        &self.key
    }
}

/// A valid correction: one variant for each [`Form`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the variants are described where the forms are")]
pub enum Correction {
    Verb {
        phrase: Subject,
        system_choice: Option<String>,
        verb: String,
    },
    PhraseMapping {
        phrase: Subject,
        verb: String,
    },
    Entity {
        alias: Subject,
        system_choice: Option<String>,
        entity: String,
    },
    Prohibition {
        phrase: Subject,
        forbidden: String,
    },
    Term {
        term: Subject,
        equivalents: Vec<Subject>,
        relation: Relation,
    },
    DomainBlock {
        pattern: Subject,
        task: Option<String>,
    },
    DomainUnblock {
        pattern: Subject,
        level: Option<TrustLevel>,
        task: Option<String>,
    },
    DomainClearOverride {
        pattern: Subject,
        task: Option<String>,
    },
    DomainSetTrust {
        pattern: Subject,
        level: TrustLevel,
        task: Option<String>,
    },
    Rating {
        target: Subject,
        rating: Box<Rating>,
    },
    ClaimReject {
        claim: Subject,
        reason_code: Option<ReasonCode>,
        task: Option<String>,
    },
    ClaimRestore {
        claim: Subject,
        task: Option<String>,
    },
    EdgeCorrect {
        edge: Subject,
        label: EdgeLabel,
        task: Option<String>,
    },
    SearchRating(SearchRating),
    Tuning {
        query_type: Subject,
        tuning: SearchTuning,
    },
}

impl Correction {
    /// The form it has.
    pub const fn form(&self) -> Form {
        match self {
            Self::Verb { .. } => Form::Verb,
            Self::PhraseMapping { .. } => Form::PhraseMapping,
            Self::Entity { .. } => Form::Entity,
            Self::Prohibition { .. } => Form::Prohibition,
            Self::Term { .. } => Form::Term,
            Self::DomainBlock { .. } => Form::DomainBlock,
            Self::DomainUnblock { .. } => Form::DomainUnblock,
            Self::DomainClearOverride { .. } => Form::DomainClearOverride,
            Self::DomainSetTrust { .. } => Form::DomainSetTrust,
            Self::Rating { .. } => Form::Rating,
            Self::ClaimReject { .. } => Form::ClaimReject,
            Self::ClaimRestore { .. } => Form::ClaimRestore,
            Self::EdgeCorrect { .. } => Form::EdgeCorrect,
            Self::SearchRating(_) => Form::SearchRating,
            Self::Tuning { .. } => Form::Tuning,
        }
    }

    /// The rating of what a search returned that it is, if it is one.
    pub const fn search_rating(&self) -> Option<SearchRating> {
        match self {
            Self::SearchRating(rating) => Some(*rating),
            _ => None,
        }
    }

    /// The rating that it is, if it is one.
    pub fn rating(&self) -> Option<&Rating> {
        match self {
            Self::Rating { rating, .. } => Some(rating),
            _ => None,
        }
    }

    /// The same with personal data masked in what can be erased. Keys and values are never masked.
    #[must_use]
    pub fn masked(self) -> Self {
        match self {
            Self::Rating { target, rating } => Self::Rating {
                target,
                rating: Box::new(rating.masked()),
            },
            other => other,
        }
    }

    /// The same without what can be erased.
    #[must_use]
    pub fn without_personal_parts(self) -> Self {
        self.with_texts(RatedTexts::default())
    }

    /// The same with these texts, if it is a rating.
    #[must_use]
    pub fn with_texts(mut self, texts: RatedTexts) -> Self {
        if let Self::Rating { rating, .. } = &mut self {
            rating.texts = texts;
        }
        self
    }

    /// What the system chose, if known.
    pub fn system_choice(&self) -> Option<&str> {
        match self {
            Self::Verb { system_choice, .. } | Self::Entity { system_choice, .. } => system_choice.as_deref(),
            _ => None,
        }
    }

    /// The research task in which it was said, if known.
    pub fn task(&self) -> Option<&str> {
        match self {
            Self::DomainBlock { task, .. }
            | Self::DomainUnblock { task, .. }
            | Self::DomainClearOverride { task, .. }
            | Self::DomainSetTrust { task, .. }
            | Self::ClaimReject { task, .. }
            | Self::ClaimRestore { task, .. }
            | Self::EdgeCorrect { task, .. } => task.as_deref(),
            Self::Verb { .. }
            | Self::PhraseMapping { .. }
            | Self::Entity { .. }
            | Self::Prohibition { .. }
            | Self::Term { .. }
            | Self::Rating { .. }
            | Self::SearchRating(_)
            | Self::Tuning { .. } => None,
        }
    }
}

/// The user a correction with that scope is learned for. USER scope without a reporter id is invalid.
pub fn scope_user(scope: Scope, reporter: Option<&ReporterId>) -> Result<Option<UserId>, Invalid> {
    match (scope, reporter) {
        (Scope::Global, _) => Ok(None),
        (Scope::User, Some(reporter)) => Ok(Some(reporter.into())),
        (Scope::User, None) => Err(Invalid::new("is required where the scope is one user's")),
    }
}
