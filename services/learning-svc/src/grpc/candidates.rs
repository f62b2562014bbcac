//! Candidates in messages: rendered, and what lists of them share.

use emend_core::{
    CandidateId, Invalid, Origin, Status, Violations,
    candidate::{Proposed, Verdict},
    outputs::SURE,
};
use emend_proto::learning::v1 as pb;
use emend_wire::{
    page::{self, QueryHash},
    parse, render,
};
use learning_store::{
    contests::{CandidatePosition, CandidateRecord, TransitionWrite},
    profiles::SuggestionDetails,
};

use crate::{
    etag,
    grpc::render::{actor, small},
};

/// Elements of a filter at most; more than there are distinct values.
pub(crate) const FILTER: usize = 64;

pub(crate) fn status(status: Status) -> i32 {
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
        lease: None,
        first_approval: None,
        second_opinion: None,
    }
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

pub(crate) fn too_many(length: usize) -> String {
    format!("must have at most {FILTER} entries, has {length}")
}

/// The statuses of a filter; an empty list means any. UNSPECIFIED is refused like an unknown number.
pub(crate) fn statuses(numbers: &[i32], violations: &mut Violations) -> Vec<Status> {
    if numbers.len() > FILTER {
        violations.add("statuses", too_many(numbers.len()));
    }
    let numbers = &numbers[..numbers.len().min(FILTER)];
    let mut statuses = Vec::with_capacity(numbers.len());
    for (index, &number) in numbers.iter().enumerate() {
        match parse::candidate_status(number) {
            Some(status) => statuses.push(status),
            None => violations.add(
                format!("statuses[{index}]"),
                format!("is not a known candidate status: {number}"),
            ),
        }
    }
    statuses
}

pub(crate) fn token(query: QueryHash, position: CandidatePosition) -> String {
    let mut bytes = position.place.to_le_bytes().to_vec();
    bytes.extend_from_slice(position.id.0.as_bytes());
    page::token(query, &bytes)
}

pub(crate) fn position(bytes: &[u8]) -> Result<CandidatePosition, Invalid> {
    let bad = || Invalid::new("is not a page token of this list");
    let (place, id) = bytes.split_first_chunk::<8>().ok_or_else(bad)?;
    Ok(CandidatePosition {
        place: i64::from_le_bytes(*place),
        id: CandidateId(uuid::Uuid::from_slice(id).map_err(|_| bad())?),
    })
}
