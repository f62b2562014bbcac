//! What has become of what a correction supports, as it is now.
//!
//! An [`Outcome`](crate::Outcome) is what evaluating one event came to, and stays. A standing is read: it follows what others
//! say and decide later. It says nothing that others wrote.

use crate::{
    candidate::{Candidate, Reason, Status},
    contest::CurrentResource,
    decide::Exclusion,
    ids::{CandidateId, Revision},
    kinds::{Kind, WindowRules},
    outcome::{OutcomeState, state_of, state_sentence},
    policy::Policy,
    ratings::{Rated, RatingClass},
};

/// What has become of one effect of a correction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The state.
    pub state: OutcomeState,
    /// The reason, if the state alone does not say.
    pub reason: Option<Reason>,
    /// The candidate it supports; none where the kind is decided by a window of ratings.
    pub candidate_id: Option<CandidateId>,
    /// The kind it is about.
    pub kind: Kind,
    /// Net confirmations still missing; 0 if none.
    pub confirmations_needed: u32,
    /// Number of distinct voters that support the candidate; 0 where ratings decide.
    pub reporters: u64,
    /// The revision that gave the resource its value, where it applies; 0 in every other state, and of a ruling that nothing
    /// applies which never changed anything.
    pub revision: Revision,
    /// The state in a sentence or two, without the value.
    pub message: String,
}

/// What is known of a rating beside what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RatingPlace {
    /// What excludes it, if anything does.
    pub excluded: Option<Exclusion>,
    /// What its output counts as.
    pub class: Option<RatingClass>,
    /// How many newer outputs of that class there are; counted up to [`MAX_WINDOW`](crate::ratings::MAX_WINDOW).
    pub newer: u32,
}

impl Standing {
    /// Of a correction whose ballot names `candidate`. The ballot may have been retracted; `resource` is the revision of the
    /// contest's current resource.
    pub fn of(candidate: &Candidate, retracted: bool, resource: Option<Revision>) -> Self {
        let is_ruling = candidate.ruling.is_some();
        let is_vote = !is_ruling && candidate.proposal.is_none();
        let has_applied = candidate.applied_revision != Revision::default();
        let was_replaced = is_vote && candidate.status == Status::Superseded;
        let (state, reason, confirmations_needed) = match (state_of(candidate), candidate.status) {
            // Whether a ruling is taken back depends on by whom; its status says.
            _ if retracted && !is_ruling => (OutcomeState::NoEffect, Some(Reason::Retracted), 0),
            ((_, reason, _), Status::Withdrawn) if has_applied && !retracted => {
                (OutcomeState::Withdrawn, reason, 0)
            }
            ((state, _, needed), _) if was_replaced => (state, Some(Reason::Rivals), needed),
            // The ruling that nothing applies, where nothing did.
            (_, Status::Applied)
                if resource.is_none() && candidate.applied_revision == Revision::default() =>
            {
                (OutcomeState::NoEffect, Some(Reason::NothingToClear), 0)
            }
            (as_told, _) => as_told,
        };
        let why = match (state, reason) {
            (OutcomeState::Withdrawn, Some(Reason::Retracted)) => "too many of its supporters took it back",
            (_, Some(reason)) => reason.explanation(),
            (_, None) => "",
        };
        let sentence = state_sentence(state, confirmations_needed, why);
        Self {
            reporters: candidate.reporters,
            confirmations_needed,
            revision: match state {
                // A ruling that is in force again keeps the revision by which it came into force first.
                OutcomeState::Applied => resource.unwrap_or(candidate.applied_revision),
                _ => Revision::default(),
            },
            message: if was_replaced && !retracted {
                format!("Another answer took its place. {sentence}")
            } else {
                sentence
            },
            ..Self::bare(state, reason, candidate.value.learned.kind(), Some(candidate.id))
        }
    }

    /// Of a rating, in a contest of this kind with this resource, under this policy.
    pub fn of_rating(
        kind: Kind,
        rules: &WindowRules,
        rating: &Rated,
        place: RatingPlace,
        resource: Option<&CurrentResource>,
        policy: &Policy,
    ) -> Self {
        let is_shown = |resource: &&CurrentResource| {
            rating.live && (rules.shows)(&resource.value.learned, rating.rated, rating.class)
        };
        let shown = resource.filter(is_shown).filter(|_| place.excluded.is_none());
        let is_of_its_class = place.class == Some(rating.class);
        let is_due = is_of_its_class && place.newer < policy.window.room(rating.class);
        let (state, reason) = match place.excluded {
            Some(Exclusion::Retraction) => (OutcomeState::NoEffect, Some(Reason::Retracted)),
            Some(Exclusion::Redaction) => (OutcomeState::NoEffect, Some(Reason::Redacted)),
            None if rating.class == RatingClass::Neutral => (OutcomeState::NoEffect, Some(Reason::Neutral)),
            None if !rating.live => (OutcomeState::NoEffect, Some(Reason::Replaced)),
            None if shown.is_some() => (OutcomeState::Applied, None),
            None if is_due && policy.frozen => (OutcomeState::Pending, Some(Reason::Frozen)),
            None if is_due && resource.is_none() => (OutcomeState::Pending, Some(Reason::ResourceLimit)),
            None if !is_of_its_class => (OutcomeState::NoEffect, Some(Reason::Outvoted)),
            None => (OutcomeState::NoEffect, Some(Reason::NotInWindow)),
        };
        Self {
            revision: shown.map(|resource| resource.revision).unwrap_or_default(),
            ..Self::bare(state, reason, kind, None)
        }
    }

    /// Of a correction that counts for nothing.
    pub fn without_effect(kind: Kind, candidate_id: Option<CandidateId>, reason: Reason) -> Self {
        Self::bare(OutcomeState::NoEffect, Some(reason), kind, candidate_id)
    }

    fn bare(
        state: OutcomeState,
        reason: Option<Reason>,
        kind: Kind,
        candidate_id: Option<CandidateId>,
    ) -> Self {
        Self {
            state,
            reason,
            candidate_id,
            kind,
            confirmations_needed: 0,
            reporters: 0,
            revision: Revision::default(),
            message: state_sentence(state, 0, reason.map_or("", Reason::explanation)),
        }
    }
}
