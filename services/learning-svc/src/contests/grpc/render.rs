//! Renders candidates as messages.

use std::collections::HashMap;

use emend_core::{
    CandidateId, Origin, Status,
    candidate::{Proposed, Verdict},
    outputs::SURE,
};
use emend_proto::learning::v1 as pb;
use emend_wire::{page, render};
use prost::Message as _;

use crate::{
    contests::{
        candidates::{CandidateDetails, LiveVote},
        store::{CandidateRecord, FeedbackRecord, TransitionWrite},
    },
    etag,
    grpc::render::{actor, small},
    profiles::store::SuggestionDetails,
};

fn status(status: Status) -> i32 {
    let status = match status {
        Status::Pending => pb::CandidateStatus::Pending,
        Status::AwaitingReview => pb::CandidateStatus::AwaitingReview,
        Status::Applied => pb::CandidateStatus::Applied,
        Status::Rejected => pb::CandidateStatus::Rejected,
        Status::Superseded => pb::CandidateStatus::Superseded,
        Status::Withdrawn => pb::CandidateStatus::Withdrawn,
    };
    status as i32
}

fn origin(origin: Origin) -> i32 {
    let origin = match origin {
        Origin::Votes => pb::CandidateOrigin::Votes,
        Origin::Review => pb::CandidateOrigin::Review,
        Origin::Operator => pb::CandidateOrigin::Operator,
        Origin::Import => pb::CandidateOrigin::Import,
        Origin::Generator => pb::CandidateOrigin::Generator,
        Origin::Mined => pb::CandidateOrigin::Mined,
    };
    origin as i32
}

pub(crate) fn candidate(record: &CandidateRecord) -> pb::Candidate {
    let CandidateRecord {
        candidate,
        key,
        contest_pinned,
        kept,
    } = record;
    let missing = i64::from(candidate.confirmations_needed());
    pb::Candidate {
        candidate_id: candidate.id.to_string(),
        key: Some(render::resource_key(key)),
        value: Some(render::value_of(key, &candidate.value)),
        status: status(candidate.status),
        status_reason: candidate
            .reason
            .map(|reason| reason.name().to_owned())
            .unwrap_or_default(),
        origin: origin(candidate.origin),
        edited_from: candidate.edited_from.map(|id| id.to_string()).unwrap_or_default(),
        risk_level: render::risk_level(candidate.risk) as i32,
        occurrence_count: render::saturated(candidate.occurrences),
        reporter_count: render::saturated(candidate.reporters),
        net_confirmations: candidate.net,
        threshold: small(candidate.threshold),
        confirmations_needed: i32::try_from(missing).unwrap_or(i32::MAX),
        policy_version: candidate.policy_version,
        contest_pinned: *contest_pinned,
        decided_by: Some(actor(&kept.decided_by)),
        decision_reason: candidate.decision_reason.clone().unwrap_or_default(),
        applied_revision: candidate.applied_revision.0,
        created_at: Some(render::timestamp(kept.created_at)),
        updated_at: Some(render::timestamp(kept.updated_at)),
        etag: etag::of_version(kept.version),
        ruling: candidate.ruling.as_ref().map(|ruling| pb::Ruling {
            accept_order: ruling.accept_order.0,
            sender_roles: ruling.roles.names().map(str::to_owned).collect(),
            effective: candidate.is_effective(),
        }),
        proposal: candidate.proposal.as_ref().map(proposal),
    }
}

/// A candidate, with how many redacted ratings it was generated from.
pub(super) fn counted(record: &CandidateRecord, redacted: &HashMap<CandidateId, u64>) -> pb::Candidate {
    let mut candidate = candidate(record);
    if let (Some(proposal), Some(redacted)) = (&mut candidate.proposal, redacted.get(&record.candidate.id)) {
        proposal.redacted_count = i32::try_from(*redacted).unwrap_or(i32::MAX);
    }
    candidate
}

fn proposal(proposal: &Proposed) -> pb::Proposal {
    let decided_as = |verdict| {
        let decided_at = proposal.decided_at.filter(|_| proposal.verdict == verdict);
        decided_at.map(render::timestamp)
    };
    pb::Proposal {
        version: small(proposal.version),
        base_version: small(proposal.base),
        approved_at: decided_as(Verdict::Approved),
        rejected_at: decided_as(Verdict::Rejected),
        redacted_count: 0,
    }
}

/// A candidate's details. Each list is cut to a page, and feedback is dropped until the whole fits in one message.
pub(super) fn candidate_details(details: CandidateDetails) -> pb::GetCandidateResponse {
    let (votes, _) = page::cut(details.votes.into_iter().map(vote).collect());
    let (rivals, _) = page::cut(details.rivals.iter().map(candidate).collect());
    let (feedback, _) = page::cut(details.feedback.into_iter().map(feedback).collect());
    let mut response = pb::GetCandidateResponse {
        candidate: Some(candidate(&details.record)),
        votes,
        rivals,
        feedback,
        history: details.history.into_iter().map(transition).collect(),
        improvement: None,
        suggestion: details.suggestion.as_ref().map(suggestion),
    };
    while response.encoded_len() >= 2 * page::MAX_PAGE_BYTES && response.feedback.pop().is_some() {}
    response
}

/// What is kept of a suggested entry of a profile.
pub(crate) fn suggestion(details: &SuggestionDetails) -> pb::Suggestion {
    pb::Suggestion {
        r#type: details.suggestion.number(),
        reason: details.reason.clone(),
        source_type: details.source_type.clone(),
        source_id: details.source_id.clone(),
        confidence: f64::from(details.confidence) / f64::from(SURE),
    }
}

fn vote(vote: LiveVote) -> pb::Vote {
    pb::Vote {
        reporter_id: vote.reporter,
        caller: vote.caller,
        identified: vote.identified,
        feedback_id: vote.feedback.to_string(),
        received_at: Some(render::timestamp(vote.received_at)),
    }
}

fn feedback(feedback: FeedbackRecord) -> pb::SupportingFeedback {
    pb::SupportingFeedback {
        feedback_id: feedback.feedback.to_string(),
        system_choice: feedback.system_choice,
        reason: feedback.reason,
        context: feedback.context.into_iter().collect(),
        query_id: feedback.query_id,
        received_at: Some(render::timestamp(feedback.received_at)),
        retracted: feedback.retracted,
    }
}

pub(crate) fn transition(transition: TransitionWrite) -> pb::Transition {
    pb::Transition {
        from: transition.from.map_or(0, status),
        to: status(transition.to),
        actor: Some(actor(&transition.actor)),
        cause: render::cause(transition.cause),
        reason: transition.reason,
        at: Some(render::timestamp(transition.at)),
        revision: transition.revision.0,
        policy_version: transition.policy_version,
    }
}

#[cfg(test)]
mod tests {
    use emend_core::{Candidate, FeedbackId, Kind, Learned, ResourceKey, ResourceValue, Revision, RiskLevel};
    use jiff::Timestamp;

    use super::*;
    use crate::{actor::Actor, contests::store::KeptCandidate};

    fn record() -> CandidateRecord {
        let key = ResourceKey::parse("fund-admin", Some(Kind::InvocationPhrase), "p", "", "").unwrap();
        let value = ResourceValue::new("p", Learned::Verb("v".to_owned()));
        CandidateRecord {
            candidate: Candidate {
                id: value.candidate_id(key.contest_id()),
                value,
                status: Status::Pending,
                reason: None,
                origin: Origin::Votes,
                edited_from: None,
                hold: None,
                decision_reason: Some("r".repeat(30_000)),
                occurrences: 0,
                reporters: 0,
                net: 0,
                risk: RiskLevel::Low,
                threshold: 1,
                policy_version: 0,
                applied_threshold: None,
                applied_revision: Revision(0),
                ruling: None,
                proposal: None,
            },
            key,
            contest_pinned: false,
            kept: KeptCandidate {
                decided_by: Actor::caller(emend_core::Caller::system()),
                created_at: Timestamp::UNIX_EPOCH,
                updated_at: Timestamp::UNIX_EPOCH,
                transitions: 0,
                version: 0,
            },
        }
    }

    #[test]
    fn a_candidate_with_much_feedback_and_many_rivals_fits_a_message() {
        let feedback = FeedbackRecord {
            feedback: FeedbackId(uuid::Uuid::nil()),
            system_choice: String::new(),
            reason: String::new(),
            context: [("k".to_owned(), "c".repeat(30_000))].into(),
            query_id: String::new(),
            received_at: Timestamp::UNIX_EPOCH,
            retracted: false,
        };
        let response = candidate_details(CandidateDetails {
            record: record(),
            votes: Vec::new(),
            rivals: vec![record(); 100],
            feedback: vec![feedback; 100],
            history: Vec::new(),
            suggestion: None,
        });
        assert!(response.encoded_len() < 4 * 1024 * 1024);
        assert!(response.rivals.len() > 50 && response.feedback.len() > 50);
    }
}
