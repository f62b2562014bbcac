//! Whether proposals under review agree with their contests, and generated prompts with what is kept of them.

use std::collections::HashSet;

use emend_core::{
    Candidate, Status,
    candidate::{Proposed, Verdict},
};
use emend_store::{StoreError, audit::Findings};

use super::Contest;
use crate::audit::{IMPROVEMENT, PROPOSAL_VERDICT, PROPOSAL_VERSION};
use crate::{audit::stored::AuditRead, rows::StoredId};

/// Compares the proposals of a contest with each other and with its row.
pub(super) fn check(contest: &Contest, findings: &mut Findings) {
    let Some(row) = contest.row.as_ref().filter(|_| contest.is_by_review()) else {
        return;
    };
    let candidates = contest.candidates.values().map(|known| &known.candidate);
    let mut numbers = HashSet::new();
    let mut applied = 0;
    for candidate in candidates {
        let Some(kept) = candidate.proposal else { continue };
        if !numbers.insert(kept.version) {
            findings.add(
                PROPOSAL_VERSION,
                format_args!("contest {}", contest.name),
                format_args!("it has version {} twice", kept.version),
            );
        }
        if candidate.status == Status::Applied {
            applied = kept.version;
        }
        if let Some(wrong) = wrong_with(candidate, kept) {
            findings.add(
                PROPOSAL_VERDICT,
                format_args!("candidate {}", candidate.id),
                wrong,
            );
        }
    }
    if u32::try_from(row.current_version) != Ok(applied) {
        findings.add(
            PROPOSAL_VERSION,
            format_args!("contest {}", contest.name),
            format_args!(
                "version {} is current, but version {applied} is applied",
                row.current_version
            ),
        );
    }
}

fn wrong_with(candidate: &Candidate, kept: Proposed) -> Option<String> {
    let goes_with = match kept.verdict {
        Verdict::Open => candidate.status == Status::AwaitingReview,
        Verdict::Rejected => matches!(candidate.status, Status::Rejected | Status::Withdrawn),
        // An approved version may be taken back by another, a deletion or a revert.
        Verdict::Approved => matches!(
            candidate.status,
            Status::Applied | Status::Superseded | Status::Withdrawn
        ),
        Verdict::Closed => matches!(candidate.status, Status::Superseded | Status::Withdrawn),
    };
    let is_decided = matches!(kept.verdict, Verdict::Approved | Verdict::Rejected);
    if !goes_with {
        Some(format!(
            "its status is {:?}, but its verdict is {:?}",
            candidate.status, kept.verdict
        ))
    } else if kept.decided_at.is_some() != is_decided {
        Some(format!(
            "its verdict is {:?}, but whether a person gave it at some time is {}",
            kept.verdict,
            kept.decided_at.is_some()
        ))
    } else {
        None
    }
}

/// Compares proposals over contests, and generated prompts with what is kept of them.
pub(super) async fn check_all(
    reading: &mut dyn AuditRead,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    for wrong in reading.wrong_proposals().await? {
        let (check, subject, message) = match wrong.what {
            1 => (
                PROPOSAL_VERSION,
                "candidate",
                "its number is above the last one that was given",
            ),
            2 => (
                PROPOSAL_VERSION,
                "candidate",
                "its number says something else under another label",
            ),
            3 => (
                IMPROVEMENT,
                "improvement",
                "the candidate that it names does not exist, or was made for another version",
            ),
            4 => (
                IMPROVEMENT,
                "improvement",
                "it was made of another number of ratings than it says",
            ),
            5 => (
                IMPROVEMENT,
                "candidate",
                "it was generated, but nothing is kept of that",
            ),
            _ => (
                IMPROVEMENT,
                "rating of feedback",
                "the improvement that was made of it does not exist",
            ),
        };
        findings.add(check, format_args!("{subject} {}", StoredId(&wrong.id)), message);
    }
    Ok(())
}
