//! Renders candidates as messages.

use std::collections::HashMap;

use emend_core::{CandidateId, Reason};
use emend_proto::learning::v1 as pb;
use emend_wire::{page, render};
use jiff::Timestamp;
use learning_store::{
    contests::{CandidateRecord, FeedbackRecord},
    queue::{FirstApproval, Lease, QueueChange, ReviewComment},
};
use prost::Message as _;

use crate::{
    contests::{
        candidates::{CandidateDetails, LiveVote},
        queue::{stats::QueueStats, watch::Watching},
    },
    grpc::{
        candidates::{candidate, status, suggestion, transition},
        render::actor,
    },
};

/// A candidate, with how many redacted ratings it was generated from.
pub(super) fn counted(record: &CandidateRecord, redacted: &HashMap<CandidateId, u64>) -> pb::Candidate {
    let mut candidate = candidate(record);
    if let (Some(proposal), Some(redacted)) = (&mut candidate.proposal, redacted.get(&record.candidate.id)) {
        proposal.redacted_count = i32::try_from(*redacted).unwrap_or(i32::MAX);
    }
    candidate
}

/// Who has a candidate open.
pub(super) fn lease(lease: &Lease) -> pb::ReviewLease {
    pb::ReviewLease {
        actor: Some(actor(&lease.actor)),
        expires_at: Some(render::timestamp(lease.expires_at)),
    }
}

/// Who approved a candidate as the first of two.
pub(super) fn first_approval(approval: &FirstApproval) -> pb::FirstApproval {
    let is_said = approval.reason != Reason::SecondReviewer.name();
    pb::FirstApproval {
        actor: Some(actor(&approval.actor)),
        reason: if is_said {
            approval.reason.clone()
        } else {
            String::new()
        },
        approved_at: Some(render::timestamp(approval.at)),
    }
}

/// What a reviewer wrote.
pub(super) fn comment(comment: &ReviewComment) -> pb::ReviewComment {
    pb::ReviewComment {
        actor: Some(actor(&comment.actor)),
        comment: comment.comment.clone(),
        asks: comment.asked.is_some(),
        asked: comment.asked.clone().unwrap_or_default(),
        open: comment.open,
        written_at: Some(render::timestamp(comment.written_at)),
    }
}

/// One message of a watch.
pub(super) fn watching(message: Watching) -> pb::WatchQueueResponse {
    use pb::watch_queue_response::Message;
    let message = match message {
        Watching::Opened => Message::Opened(pb::QueueOpened {}),
        Watching::Change(change) => Message::Change(queue_change(&change)),
        Watching::Resync => Message::Resync(pb::QueueResync {}),
        Watching::KeepAlive => Message::KeepAlive(pb::QueueKeepAlive {}),
    };
    pb::WatchQueueResponse {
        message: Some(message),
    }
}

/// The figures of the queue.
pub(super) fn stats(stats: QueueStats) -> pb::GetQueueStatsResponse {
    let days = stats.days.into_iter().map(|count| pb::QueueDay {
        day: date(count.day),
        kind: render::kind(count.kind),
        received_count: render::saturated(count.figures.received),
        applied_count: render::saturated(count.figures.applied),
        rejected_count: render::saturated(count.figures.rejected),
        withdrawn_count: render::saturated(count.figures.withdrawn),
    });
    let waiting = stats
        .waiting
        .into_iter()
        .map(|(kind, count, oldest)| pb::QueueWaiting {
            kind: render::kind(kind),
            count: render::saturated(count),
            oldest_created_at: Some(render::timestamp(oldest)),
        });
    pb::GetQueueStatsResponse {
        days: days.collect(),
        waiting: waiting.collect(),
        frozen_kinds: stats.frozen.into_iter().map(render::kind).collect(),
    }
}

/// A UTC day as a date.
fn date(day: i64) -> String {
    let midnight = Timestamp::from_second(day.saturating_mul(24 * 60 * 60)).unwrap_or_default();
    midnight.strftime("%Y-%m-%d").to_string()
}

fn queue_change(change: &QueueChange) -> pb::QueueChange {
    pb::QueueChange {
        candidate_id: change.candidate.to_string(),
        key: Some(render::resource_key(&change.key)),
        status: status(change.status),
        previous_status: change.previous.map_or(0, status),
        decided_by: change.decided_by.as_ref().map(actor),
        lease: change.lease.as_ref().map(lease),
        revision: change.revision.0,
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
        comments: Vec::new(),
        suggestion: details.suggestion.as_ref().map(suggestion),
    };
    while response.encoded_len() >= 2 * page::MAX_PAGE_BYTES && response.feedback.pop().is_some() {}
    response
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

#[cfg(test)]
mod tests {
    use emend_core::{
        Candidate, FeedbackId, Kind, Learned, Origin, ResourceKey, ResourceValue, Revision, RiskLevel, Status,
    };
    use jiff::Timestamp;

    use super::*;
    use learning_store::{actor::Actor, contests::KeptCandidate};

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
