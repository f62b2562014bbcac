//! The first of two approvals: what a person approved waits for another one, with the reason `SECOND_REVIEWER`.
//!
//! Who approved first is in the candidate's transitions; whoever asks for a decision says whether it is the second approval of the
//! same value. A rejection needs one person, and ends a first approval as everything does that gives the candidate another status.

use super::{Cause, Evaluation, Refusal, people};
use crate::{
    candidate::{Origin, Reason, Status},
    ids::CandidateId,
    resource::ResourceValue,
};

/// Where votes decide. An edited value is a candidate of its own, which waits; the one that it was made of stays as it is.
pub(super) fn where_votes_decide(
    evaluation: &mut Evaluation<'_>,
    id: CandidateId,
    edited: Option<&ResourceValue>,
    reason: Option<&str>,
) -> Result<(), Refusal> {
    let approved = match edited {
        None => id,
        Some(edited) => edited_candidate(evaluation, id, edited)?,
    };
    evaluation.cause = Cause::Review;
    note_first(evaluation, approved, reason);
    Ok(())
}

fn edited_candidate(
    evaluation: &mut Evaluation<'_>,
    id: CandidateId,
    edited: &ResourceValue,
) -> Result<CandidateId, Refusal> {
    let same = edited.candidate_id(evaluation.state.id());
    let known = evaluation.state.candidate(same);
    // What applies in other words would change at once.
    if known.is_some_and(|candidate| candidate.status == Status::Applied) {
        return Err(Refusal::AlreadyApplied);
    }
    let (approved, was_made) = evaluation.candidate_for(edited, Origin::Review, Status::Pending);
    people::set_value(evaluation, approved, edited);
    if was_made && let Some(candidate) = evaluation.state.candidate_mut(approved) {
        candidate.edited_from = Some(id);
    }
    Ok(approved)
}

/// Notes that a candidate was approved once.
pub(super) fn note_first(evaluation: &mut Evaluation<'_>, id: CandidateId, reason: Option<&str>) {
    people::note(evaluation, id, reason);
    evaluation.move_to(id, Status::AwaitingReview, Some(Reason::SecondReviewer));
    evaluation.subject = Some(id);
}

/// Whether nothing was decided about a candidate.
pub(super) fn waits(evaluation: &Evaluation<'_>, id: CandidateId) -> bool {
    let candidate = evaluation.state.candidate(id);
    candidate.is_some_and(|candidate| matches!(candidate.status, Status::Pending | Status::AwaitingReview))
}
