//! What a correction asserts, and what it proposes in the contests that this concerns.

use std::slice;

use super::{Correction, Subject};
use crate::{
    evidence::DomainRule,
    ids::{CandidateId, FeedbackId, Namespace, UserId},
    kinds::{self, ClaimState, HUMAN, Learned, Rule, Synonym},
    personal_data,
    ratings::{FewShotSet, Rating},
    resource::{Key, ResourceKey, ResourceValue, proposal_of, ruling_of},
    violation::Violations,
};

/// One thing that a correction asserts: what an input means.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Assertion {
    /// What the user says, as written: the key before normalisation.
    pub input: String,
    /// `input` in the form of the kind's keys.
    pub key: Key,
    /// The qualifier of the key, in its form; empty if the kind has none.
    pub qualifier: String,
    /// What it maps to; of a rating, a set without examples: only all ratings together say what there is to show.
    pub learned: Learned,
}

/// What a correction does to one contest: it proposes a value there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The contest.
    pub key: ResourceKey,
    /// The proposed value.
    pub value: ResourceValue,
    /// What the system chose, shown with the candidate.
    pub system_choice: Option<String>,
    /// Personal data was found in the key or value, and the scope is GLOBAL. Keys that are ids of the application are not
    /// searched: their digits only look like somebody's number.
    pub personal_data: bool,
    /// The rating, where the kind is decided by a window of ratings. `value` is then a set without examples.
    pub rating: Option<Box<Rating>>,
    /// The research task in which it was said, if known.
    pub task: Option<String>,
}

impl Proposal {
    /// The candidate that a feedback proposes: of votes the one with this value, of rulings and for review the feedback's own;
    /// ratings propose none.
    pub fn candidate_of(&self, feedback: FeedbackId) -> Option<CandidateId> {
        let contest = self.key.contest_id();
        match self.key.kind.rules().rule {
            Rule::Votes { .. } => Some(self.value.candidate_id(contest)),
            Rule::Ruling(_) => Some(ruling_of(contest, feedback)),
            Rule::Window(_) => None,
            Rule::Review(_) => Some(proposal_of(contest, 0, feedback.0.as_bytes())),
        }
    }
}

impl Correction {
    /// Checks what makes a new correction invalid, though one that was stored before is not: what its keys may be is said
    /// by lists that change. Violations name the field within the form's message.
    pub fn check_new(&self) -> Result<(), Violations> {
        let mut violations = Violations::new();
        let form = self.form();
        let (subjects, qualifier) = self.subjects();
        for (kind, subject) in form
            .kind()
            .iter()
            .flat_map(|kind| subjects.iter().map(move |subject| (kind, subject)))
        {
            let allowed = (kind.rules().allows)(subject.key.as_str(), qualifier);
            violations.check(form.subject_field(), allowed);
        }
        violations.finish(Some(()))
    }

    /// What it asserts: at least one thing, all of one kind, each about a key of its own; nothing if it is a rating of a search
    /// answer.
    pub fn assertions(&self) -> Vec<Assertion> {
        let (subjects, qualifier) = self.subjects();
        let learned = self.learned();
        let learned = learned.map(|learned| std::iter::repeat_n(learned, subjects.len()));
        let assertions = subjects.iter().zip(learned.into_iter().flatten());
        assertions
            .map(|(subject, learned)| Assertion {
                input: subject.written.clone(),
                key: subject.key.clone(),
                qualifier: qualifier.to_owned(),
                learned,
            })
            .collect()
    }

    /// What it is about, each a key of its own, and the qualifier that these keys share.
    fn subjects(&self) -> (&[Subject], &str) {
        match self {
            Self::Verb { phrase: subject, .. }
            | Self::PhraseMapping { phrase: subject, .. }
            | Self::Entity { alias: subject, .. }
            | Self::Rating { target: subject, .. }
            | Self::ClaimReject { claim: subject, .. }
            | Self::ClaimRestore { claim: subject, .. }
            | Self::EdgeCorrect { edge: subject, .. }
            | Self::Tuning {
                query_type: subject, ..
            } => (slice::from_ref(subject), ""),
            Self::DomainBlock { pattern, .. }
            | Self::DomainUnblock { pattern, .. }
            | Self::DomainClearOverride { pattern, .. }
            | Self::DomainSetTrust { pattern, .. } => (slice::from_ref(pattern), HUMAN),
            Self::Prohibition { phrase, forbidden } => (slice::from_ref(phrase), forbidden),
            Self::Term {
                term, equivalents, ..
            } => (equivalents, term.key.as_str()),
            Self::SearchRating(_) => (&[], ""),
        }
    }

    /// What each subject maps to; nothing if it is a rating of a search answer.
    fn learned(&self) -> Option<Learned> {
        Some(match self {
            Self::Verb { verb, .. } | Self::PhraseMapping { verb, .. } => Learned::Verb(verb.clone()),
            Self::Entity { entity, .. } => Learned::Entity(entity.clone()),
            Self::Prohibition { forbidden, .. } => Learned::Forbidden(forbidden.clone()),
            Self::Term { term, relation, .. } => Learned::Synonym(Synonym {
                relation: *relation,
                representative: term.written.clone(),
            }),
            Self::DomainBlock { .. } => Learned::DomainRule(DomainRule::Block.into()),
            Self::DomainUnblock { level, .. } => Learned::DomainRule(DomainRule::Unblock(*level).into()),
            Self::DomainClearOverride { .. } => Learned::DomainRule(DomainRule::Clear.into()),
            Self::DomainSetTrust { level, .. } => Learned::DomainRule(DomainRule::SetTrust(*level).into()),
            Self::Rating { .. } => Learned::FewShotSet(FewShotSet::default()),
            Self::ClaimReject { reason_code, .. } => {
                Learned::ClaimState(Some(ClaimState::Rejected(reason_code.clone())))
            }
            Self::ClaimRestore { .. } => Learned::ClaimState(Some(ClaimState::Restored)),
            Self::EdgeCorrect { label, .. } => Learned::EdgeLabel(Some(*label)),
            Self::SearchRating(_) => return None,
            Self::Tuning { tuning, .. } => Learned::SearchTuning(Some(tuning.clone())),
        })
    }

    /// What it proposes in `namespace`, for everybody or for one user: its effects, each in a contest of its own. A rating of a
    /// search answer has none.
    pub fn effects(&self, namespace: &Namespace, user: Option<&UserId>) -> Vec<Proposal> {
        let rating = match self {
            Self::Rating { rating, .. } => Some(rating),
            _ => None,
        };
        let proposal = |assertion: Assertion| {
            let Assertion {
                input,
                key,
                qualifier,
                learned,
            } = assertion;
            let kind = learned.kind();
            let personal_data = user.is_none()
                && !matches!(kind.rules().key, kinds::Form::Exact | kinds::Form::Target)
                && (personal_data::found_in(&input) || personal_data::found_in(learned.maps_to()));
            Proposal {
                value: ResourceValue::new(input, learned).at(key.as_str()),
                key: ResourceKey {
                    namespace: namespace.clone(),
                    kind,
                    key,
                    qualifier,
                    user: user.cloned(),
                },
                system_choice: self.system_choice().map(str::to_owned),
                rating: rating.cloned(),
                task: self.task().map(str::to_owned),
                personal_data,
            }
        };
        self.assertions().into_iter().map(proposal).collect()
    }
}
