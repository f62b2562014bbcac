//! The forms in which people correct something.

use super::Scope;
use crate::{
    kinds::{Kind, Rule},
    violation::Invalid,
};

/// The form of a correction. Forms that teach the same kind vote in the same contests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// The wrong verb was chosen.
    Verb,
    /// A phrase means this verb.
    PhraseMapping,
    /// The wrong entity was chosen.
    Entity,
    /// A choice must never be offered.
    Prohibition,
    /// Other terms stand for this one.
    Term,
    /// The sources of a domain must not be shown.
    DomainBlock,
    /// The sources of a domain are shown, whatever blocked them.
    DomainUnblock,
    /// What people decided about a domain no longer applies.
    DomainClearOverride,
    /// The sources of a domain are trusted this far.
    DomainSetTrust,
    /// What an AI made is good, or is not.
    Rating,
    /// A claim is hidden from results.
    ClaimReject,
    /// A claim is shown, whatever speaks against it.
    ClaimRestore,
    /// An edge has this label.
    EdgeCorrect,
    /// What a search found is good, or is not.
    SearchRating,
    /// Queries of one type are searched so.
    Tuning,
}

impl Form {
    /// All forms, in the order of their numbers on the wire.
    pub const ALL: [Self; 15] = [
        Self::Verb,
        Self::PhraseMapping,
        Self::Entity,
        Self::Prohibition,
        Self::Term,
        Self::DomainBlock,
        Self::DomainUnblock,
        Self::DomainClearOverride,
        Self::DomainSetTrust,
        Self::Rating,
        Self::ClaimReject,
        Self::ClaimRestore,
        Self::EdgeCorrect,
        Self::SearchRating,
        Self::Tuning,
    ];

    /// The kind of resource it teaches; none of a rating of a search answer, from which alone nothing is learned.
    pub const fn kind(self) -> Option<Kind> {
        Some(match self {
            Self::SearchRating => return None,
            Self::Verb | Self::PhraseMapping => Kind::InvocationPhrase,
            Self::Entity => Kind::EntityAlias,
            Self::Prohibition => Kind::Prohibition,
            Self::Term => Kind::Synonym,
            Self::DomainBlock | Self::DomainUnblock | Self::DomainClearOverride | Self::DomainSetTrust => {
                Kind::DomainRule
            }
            Self::Rating => Kind::FewShotSet,
            Self::ClaimReject | Self::ClaimRestore => Kind::ClaimState,
            Self::EdgeCorrect => Kind::EdgeLabel,
            Self::Tuning => Kind::SearchTuning,
        })
    }

    /// The name of its field on the wire, also the label of metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Verb => "verb",
            Self::PhraseMapping => "phrase_mapping",
            Self::Entity => "entity",
            Self::Prohibition => "prohibition",
            Self::Term => "term",
            Self::DomainBlock => "domain_block",
            Self::DomainUnblock => "domain_unblock",
            Self::DomainClearOverride => "domain_clear_override",
            Self::DomainSetTrust => "domain_set_trust",
            Self::Rating => "rating",
            Self::ClaimReject => "claim_reject",
            Self::ClaimRestore => "claim_restore",
            Self::EdgeCorrect => "edge_correct",
            Self::SearchRating => "search_rating",
            Self::Tuning => "tuning",
        }
    }

    /// Whether the reporter has to say why.
    pub const fn needs_reason(self) -> bool {
        match self {
            Self::Verb
            | Self::PhraseMapping
            | Self::Entity
            | Self::Prohibition
            | Self::Term
            | Self::Rating
            | Self::EdgeCorrect
            | Self::SearchRating
            | Self::Tuning => false,
            Self::DomainBlock
            | Self::DomainUnblock
            | Self::DomainClearOverride
            | Self::DomainSetTrust
            | Self::ClaimReject
            | Self::ClaimRestore => true,
        }
    }

    /// Whether it may be learned for the reporter alone. What is not decided by votes is decided for everybody.
    pub const fn may_be_for_a_user(self) -> bool {
        match self.kind() {
            Some(kind) => matches!(kind.rules().rule, Rule::Votes { .. }),
            None => false,
        }
    }

    /// Checks that it may be said with that scope.
    pub fn check_scope(self, scope: Scope) -> Result<(), Invalid> {
        if scope == Scope::Global || self.may_be_for_a_user() {
            return Ok(());
        }
        let why = match self.kind() {
            Some(_) => "it is decided for everybody",
            None => "nothing is learned from it alone",
        };
        Err(Invalid::new(format!(
            "must be GLOBAL with {}: {why}",
            self.name()
        )))
    }

    /// The wire contract's name of the field that says what it is about, used in violations.
    pub(super) const fn subject_field(self) -> &'static str {
        match self {
            Self::Verb | Self::Entity => "original_input",
            Self::PhraseMapping | Self::Prohibition => "phrase",
            Self::Term => "equivalents",
            Self::DomainBlock | Self::DomainUnblock | Self::DomainClearOverride | Self::DomainSetTrust => {
                "pattern"
            }
            Self::Rating => "target",
            Self::ClaimReject | Self::ClaimRestore => "claim_id",
            Self::EdgeCorrect => "edge_id",
            Self::SearchRating => "value",
            Self::Tuning => "query_type",
        }
    }
}
