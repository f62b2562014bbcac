//! Candidates, the audit trail, policies, nodes and answers.

use emend_proto::{
    common::v1::Language,
    learning::v1::{
        Candidate, CandidateOrigin, CandidateStatus, Combining, Counting, Cursor, EntitledRole,
        GetCandidateResponse, ImportResourcesResponse, MatchSource, NamespacePolicy, Node, Policy,
        RejectedResource, ResolveResponse, RevertRevisionResponse, ReviewResult, Revision, Transition,
        policy,
    },
};
use serde_json::{Value, json};

use super::{
    cause,
    common::{actor, item_error, key, value},
    kind, name,
    outputs::{improvement, suggestion},
    present, risk, scope, span, time,
};

fn status(number: i32) -> Value {
    name(
        CandidateStatus::try_from(number)
            .ok()
            .map(|status| status.as_str_name()),
        number,
    )
}

/// A candidate.
pub fn candidate(candidate: &Candidate) -> Value {
    present(json!({
        "candidateId": candidate.candidate_id,
        "key": key(candidate.key.as_ref()),
        "value": value(candidate.value.as_ref()),
        "status": status(candidate.status),
        "statusReason": candidate.status_reason,
        "origin": name(
            CandidateOrigin::try_from(candidate.origin).ok().map(|origin| origin.as_str_name()),
            candidate.origin,
        ),
        "editedFrom": candidate.edited_from,
        "riskLevel": risk(candidate.risk_level),
        "occurrenceCount": candidate.occurrence_count,
        "reporterCount": candidate.reporter_count,
        "netConfirmations": candidate.net_confirmations,
        "threshold": candidate.threshold,
        "confirmationsNeeded": candidate.confirmations_needed,
        "policyVersion": candidate.policy_version,
        "contestPinned": candidate.contest_pinned,
        "decidedBy": actor(candidate.decided_by.as_ref()),
        "decisionReason": candidate.decision_reason,
        "appliedRevision": candidate.applied_revision,
        "createdAt": time(candidate.created_at.as_ref()),
        "updatedAt": time(candidate.updated_at.as_ref()),
        "etag": candidate.etag,
        "proposal": candidate.proposal.as_ref().map(|proposal| present(json!({
            "version": proposal.version,
            "baseVersion": proposal.base_version,
            "approvedAt": time(proposal.approved_at.as_ref()),
            "rejectedAt": time(proposal.rejected_at.as_ref()),
            "redactedCount": proposal.redacted_count,
        }))),
    }))
}

/// A candidate with votes, rivals, feedback and history.
pub fn candidate_details(details: &GetCandidateResponse) -> Value {
    let votes: Vec<_> = details
        .votes
        .iter()
        .map(|vote| {
            present(json!({
                "reporterId": vote.reporter_id,
                "caller": vote.caller,
                "identified": vote.identified,
                "feedbackId": vote.feedback_id,
                "receivedAt": time(vote.received_at.as_ref()),
            }))
        })
        .collect();
    let feedback: Vec<_> = details
        .feedback
        .iter()
        .map(|feedback| {
            present(json!({
                "feedbackId": feedback.feedback_id,
                "systemChoice": feedback.system_choice,
                "reason": feedback.reason,
                "context": feedback.context,
                "queryId": feedback.query_id,
                "receivedAt": time(feedback.received_at.as_ref()),
                "retracted": feedback.retracted,
            }))
        })
        .collect();
    let history: Vec<_> = details.history.iter().map(transition).collect();
    present(json!({
        "candidate": details.candidate.as_ref().map(candidate),
        "votes": votes,
        "rivals": details.rivals.iter().map(candidate).collect::<Vec<_>>(),
        "feedback": feedback,
        "history": history,
        "improvement": details.improvement.as_ref().map(improvement),
        "suggestion": details.suggestion.as_ref().map(suggestion),
    }))
}

/// A change of a candidate's status.
pub(super) fn transition(transition: &Transition) -> Value {
    present(json!({
        "from": status(transition.from),
        "to": status(transition.to),
        "actor": actor(transition.actor.as_ref()),
        "cause": cause(transition.cause),
        "reason": transition.reason,
        "at": time(transition.at.as_ref()),
        "revision": transition.revision,
        "policyVersion": transition.policy_version,
    }))
}

/// The result of one item of a review.
pub fn review(result: &ReviewResult) -> Value {
    present(json!({
        "error": item_error(result.status.as_ref()),
        "candidate": result.candidate.as_ref().map(candidate),
        "revision": result.revision,
    }))
}

/// An entry of the audit trail.
pub fn revision(revision: &Revision) -> Value {
    let changes: Vec<_> = revision
        .changes
        .iter()
        .map(|change| {
            present(json!({
                "key": key(change.key.as_ref()),
                "before": value(change.before.as_ref()),
                "after": value(change.after.as_ref()),
                "candidateId": change.candidate_id,
                "feedbackId": change.feedback_id,
                "policyVersion": change.policy_version,
            }))
        })
        .collect();
    present(json!({
        "revision": revision.revision,
        "operationId": revision.operation_id,
        "cause": cause(revision.cause),
        "actor": actor(revision.actor.as_ref()),
        "reason": revision.reason,
        "committedAt": time(revision.committed_at.as_ref()),
        "changes": changes,
    }))
}

/// A policy.
pub fn policy(policy: &Policy) -> Value {
    present(json!({
        "namespace": policy.namespace,
        "kind": kind(policy.kind),
        "riskLevel": risk(policy.risk_level),
        "threshold": policy.threshold,
        "counting": name(
            Counting::try_from(policy.counting).ok().map(|counting| counting.as_str_name()),
            policy.counting,
        ),
        "halfLife": span(policy.half_life.as_ref()),
        "maxDerivedVoters": policy.max_derived_voters,
        "maxResources": policy.max_resources,
        "maxValueBytes": policy.max_value_bytes,
        "maxCountedFeedback": policy.max_counted_feedback,
        "frozen": policy.frozen,
        "ruling": ruling_policy(policy),
        "window": window_policy(policy),
        "review": review_policy(policy),
        "version": policy.version,
        "etag": policy.etag,
        "updatedAt": time(policy.updated_at.as_ref()),
        "reevaluationRemaining": policy.reevaluation_remaining,
    }))
}

/// The policy of a namespace as a whole.
pub fn namespace_policy(policy: &NamespacePolicy) -> Value {
    present(json!({
        "namespace": policy.namespace,
        "combining": name(
            Combining::try_from(policy.combining).ok().map(|combining| combining.as_str_name()),
            policy.combining,
        ),
        "minClaims": policy.min_claims,
        "rejectedPermille": policy.rejected_permille,
        "version": policy.version,
        "etag": policy.etag,
        "updatedAt": time(policy.updated_at.as_ref()),
    }))
}

fn ruling_policy(policy: &Policy) -> Value {
    let Some(policy::Rule::Ruling(ruling)) = &policy.rule else {
        return Value::Null;
    };
    json!({"entitledRole": name(
        EntitledRole::try_from(ruling.entitled_role).ok().map(|role| role.as_str_name()),
        ruling.entitled_role,
    )})
}

fn window_policy(policy: &Policy) -> Value {
    let Some(policy::Rule::Window(window)) = &policy.rule else {
        return Value::Null;
    };
    json!({
        "good": window.good,
        "bad": window.bad,
        "maxTextChars": window.max_text_chars,
        "language": name(
            Language::try_from(window.language).ok().map(|language| language.as_str_name()),
            window.language,
        ),
    })
}

fn review_policy(policy: &Policy) -> Value {
    let Some(policy::Rule::Review(review)) = &policy.rule else {
        return Value::Null;
    };
    json!({"minBad": review.min_bad, "automatic": review.automatic})
}

fn cursor(cursor: Option<&Cursor>) -> Value {
    cursor.map_or(Value::Null, |cursor| {
        json!({
            "epoch": cursor.epoch,
            "revision": cursor.revision,
            "filterHash": cursor.filter_hash.to_string(),
        })
    })
}

fn rejected(rejected: &RejectedResource) -> Value {
    present(json!({
        "key": key(rejected.key.as_ref()),
        "revision": rejected.revision,
        "error": rejected.error,
    }))
}

/// A search node, as last seen.
pub fn node(node: &Node) -> Value {
    let info = node.info.as_ref().map(
        |info| json!({"id": info.id, "version": info.version, "zone": info.zone, "labels": info.labels}),
    );
    let delays = node
        .delays
        .as_ref()
        .map(|delays| json!({"boundsMs": delays.bounds_ms, "counts": delays.counts, "sumMs": delays.sum_ms}));
    present(json!({
        "info": info,
        "caller": node.caller,
        "connected": node.connected,
        "applied": cursor(node.applied.as_ref()),
        "lagRevisions": node.lag_revisions,
        "rejected": node.rejected.iter().map(rejected).collect::<Vec<_>>(),
        "rejectedCount": node.rejected_count,
        "delays": delays,
        "problem": node.problem,
        "connectedAt": time(node.connected_at.as_ref()),
        "seenAt": time(node.seen_at.as_ref()),
    }))
}

/// What a node answers.
pub fn resolved(resolved: &ResolveResponse) -> Value {
    let found = resolved.r#match.as_ref().map(|found| {
        json!({
            "value": found.value,
            "score": found.score,
            "source": name(
                MatchSource::try_from(found.source).ok().map(|source| source.as_str_name()),
                found.source,
            ),
            "revision": found.revision,
            "scope": scope(found.scope),
        })
    });
    present(json!({
        "match": found,
        "prohibited": resolved.prohibited,
        "matchProhibited": resolved.match_prohibited,
        "feedbackHint": resolved.feedback_hint,
        "normalizedPhrase": resolved.normalized_phrase,
        "revision": resolved.revision,
    }))
}

/// What reverting an operation came to.
pub fn reverted(reverted: &RevertRevisionResponse) -> Value {
    let left = reverted.left.iter().map(|left| {
        json!({
            "key": key(left.key.as_ref()),
            "revision": left.revision,
            "description": left.description,
        })
    });
    let left: Vec<_> = left.collect();
    json!({
        "operationId": reverted.operation_id,
        "firstRevision": reverted.first_revision,
        "lastRevision": reverted.revision,
        "revertedCount": reverted.reverted_count,
        "alreadyCount": reverted.already_count,
        "leftCount": reverted.left_count,
        "left": left,
    })
}

/// The result of an import.
pub fn import(import: &ImportResourcesResponse) -> Value {
    let errors: Vec<_> = import
        .errors
        .iter()
        .map(|error| json!({"line": error.line, "field": error.field, "description": error.description}))
        .collect();
    json!({
        "operationId": import.operation_id,
        "appliedCount": import.applied_count,
        "unchangedCount": import.unchanged_count,
        "rejectedCount": import.rejected_count,
        "firstRevision": import.first_revision,
        "lastRevision": import.last_revision,
        "errors": errors,
    })
}
