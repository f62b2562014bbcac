//! Fuzzes requests and page tokens.

use std::fmt::Debug;

use bytes::Bytes;
use emend_core::{
    Caller, Kind, Policy, Violations,
    evidence::{BlockingPolicy, NamespacePolicy},
};
use emend_proto::{codec, learning::v1 as pb};
use emend_wire::{page, parse as wire, render};
use jiff::Timestamp;
use prost::{Message, Name};

use crate::{
    contests::grpc as candidates,
    evidence::grpc as evidence,
    grpc::{candidates::token, parse},
    ingest::grpc as ingest,
    outputs::grpc as outputs,
    policies::grpc as policies,
    profiles::grpc as profiles,
    resources::grpc::{self as resources, Reverting, read as reads},
    standings::grpc as standings,
    stream::grpc as subscriptions,
};

pub use crate::resources::grpc::import::fuzzing::import;

/// When requests are parsed.
const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// Parses one request; the first byte selects the method. A valid request stays the same when rendered and parsed
/// again.
pub fn request(bytes: &[u8]) {
    let Some((which, message)) = bytes.split_first() else {
        return;
    };
    match which % 48 {
        0 => read(message, |request| reads::fuzzing::get_resource(&request)),
        1 => read(message, reads::fuzzing::list_resources),
        2 => read(message, |request| reads::fuzzing::resolve(&request)),
        3 => read(message, |request| put(&request)),
        4 => read(message, |request| delete(&request)),
        5 => read(message, |request| revert(&request)),
        6 => read(message, |request| list_revisions(&request)),
        7 => read(message, |request| list_candidates(&request)),
        8 => read(message, |request: pb::ApproveCandidateRequest| approve(&request)),
        9 => read(message, |request: pb::BatchApproveCandidatesRequest| {
            request.requests.iter().for_each(approve);
        }),
        10 => read(message, |request: pb::RejectCandidateRequest| reject(&request)),
        11 => read(message, |request: pb::IngestRequest| {
            for event in &request.events {
                let _ = ingest::event(event);
            }
        }),
        12 => read(message, |request: pb::GetPolicyRequest| {
            let _ = wire::kind(request.kind);
        }),
        13 => read(message, update_policy),
        14 => read(message, subscriptions::fuzzing::subscribe),
        15 => read(message, subscriptions::fuzzing::report_status),
        16 => read(message, subscriptions::fuzzing::list_nodes),
        17 => read(message, |request: pb::BatchRejectCandidatesRequest| {
            request.requests.iter().for_each(reject);
        }),
        18 => read(message, |request: pb::GetCandidateRequest| {
            let mut violations = Violations::new();
            let id = parse::candidate_id(&mut violations, &request.candidate_id);
            let shown = id.map(|id| id.to_string());
            assert!(shown.is_none_or(|shown| shown.eq_ignore_ascii_case(&request.candidate_id)));
        }),
        19 => read(message, |request: pb::GetStandingsRequest| {
            if let Ok((namespace, feedback)) = standings::asked(&request) {
                let again = pb::GetStandingsRequest {
                    namespace: namespace.to_string(),
                    feedback_ids: feedback.iter().map(ToString::to_string).collect(),
                    ..request
                };
                same(standings::asked(&again), &(namespace, feedback));
            }
        }),
        20 => read(message, update_namespace_policy),
        evidence @ 21..=28 => evidence::fuzzing::request(evidence - 21, message),
        outputs @ 29..=35 => outputs::fuzzing::request(outputs - 29, message),
        profile @ 36..=40 => profiles::fuzzing::request(profile - 36, message),
        41 => read(message, |request: pb::UndoDecisionRequest| undo(&request)),
        42 => read(message, |request: pb::AcquireReviewLeaseRequest| opened(&request)),
        43 => read(message, |request: pb::WatchQueueRequest| watched(&request)),
        44 => read(message, |request: pb::GetQueueStatsRequest| {
            let _ = candidates::stats(&request);
        }),
        45 => read(message, |request: pb::AskSecondOpinionRequest| written(&request)),
        46 => outputs::fuzzing::request(7, message),
        _ => profiles::fuzzing::request(5, message),
    }
}

/// Takes an encoded event as feedback-svc sends it; the error says why it is refused.
pub fn event(bytes: &[u8]) -> Result<(), String> {
    let event = pb::Event::decode(bytes).map_err(|error| error.to_string())?;
    ingest::event(&event)
        .map(drop)
        .map_err(|refused| refused.to_string())
}

/// Sends any position back in a page token of each list.
pub fn page_token(position: &[u8]) {
    let mut revisions = pb::ListRevisionsRequest {
        namespace: "a".to_owned(),
        ..Default::default()
    };
    let query = resources::query(&revisions);
    revisions.page_token = page::token(query, position);
    // A revision and, if it is listed in parts, how many of its changes came before.
    let is_place = match position {
        [_, _, _, _, _, _, _, _] => true,
        [.., sign] => position.len() == 16 && *sign < 0x80,
        [] => false,
    };
    assert_eq!(resources::list(&revisions, query).is_ok(), is_place);
    let mut queue = pb::ListCandidatesRequest {
        namespace: "a".to_owned(),
        ..Default::default()
    };
    let query = candidates::query(&queue);
    queue.page_token = page::token(query, position);
    assert_eq!(candidates::list(&queue, query, NOW).is_ok(), position.len() == 24);
    profiles::fuzzing::page_token(position);
    reads::fuzzing::page_token(position);
    subscriptions::fuzzing::page_token(position);
}

pub(crate) fn read<M: Message + Name + Default>(bytes: &[u8], read: impl FnOnce(M)) {
    if let Ok(message) = codec::decode::<M>(Bytes::copy_from_slice(bytes)) {
        read(message);
    }
}

/// A rendered request is valid and parses to the same value.
pub(crate) fn same<T: Debug, E: Debug>(again: Result<T, E>, first: &T) {
    let again = again.expect("what was rendered is valid");
    assert_eq!(format!("{again:?}"), format!("{first:?}"));
}

fn put(request: &pb::PutResourceRequest) {
    let caller = Caller::anonymous();
    let Ok(put) = resources::put(&caller, request) else {
        return;
    };
    let again = pb::PutResourceRequest {
        key: Some(render::resource_key(&put.key)),
        value: Some(render::value_of(&put.key, &put.value)),
        etag: put.etag.clone().unwrap_or_default(),
        reason: put.reason.clone().unwrap_or_default(),
        on_behalf_of: put.actor.on_behalf_of.clone(),
    };
    same(resources::put(&caller, &again), &put);
    // The value survives being stored and read, and the key gives the same contest id again.
    let stored = emend_wire::value::encode(&put.value);
    assert_eq!(emend_wire::value::decode(&stored).as_ref(), Ok(&put.value));
    let key = wire::resource_key(again.key.as_ref()).expect("as was parsed before");
    assert_eq!(key.contest_id(), put.key.contest_id());
}

fn delete(request: &pb::DeleteResourceRequest) {
    let caller = Caller::anonymous();
    let Ok(delete) = resources::delete(&caller, request) else {
        return;
    };
    let again = pb::DeleteResourceRequest {
        key: Some(render::resource_key(&delete.key)),
        etag: delete.etag.clone().unwrap_or_default(),
        reason: delete.reason.clone().unwrap_or_default(),
        on_behalf_of: delete.actor.on_behalf_of.clone(),
    };
    same(resources::delete(&caller, &again), &delete);
}

fn revert(request: &pb::RevertRevisionRequest) {
    let caller = Caller::anonymous();
    let Ok(revert) = resources::revert(&caller, request) else {
        return;
    };
    let again = match &revert {
        Reverting::Revision(revert) => pb::RevertRevisionRequest {
            namespace: revert.namespace.to_string(),
            revision: revert.revision.0,
            reason: revert.reason.clone(),
            on_behalf_of: revert.actor.on_behalf_of.clone(),
            ..pb::RevertRevisionRequest::default()
        },
        Reverting::Preview(revert) => pb::RevertRevisionRequest {
            namespace: revert.namespace.to_string(),
            revision: revert.revision.0,
            preview: true,
            reason: revert.reason.clone(),
            on_behalf_of: revert.actor.on_behalf_of.clone(),
            ..pb::RevertRevisionRequest::default()
        },
        Reverting::Operation(revert) => pb::RevertRevisionRequest {
            namespace: revert.namespace.to_string(),
            operation_id: revert.operation.to_string(),
            preview: revert.preview,
            reason: revert.reason.clone(),
            on_behalf_of: revert.actor.on_behalf_of.clone(),
            ..pb::RevertRevisionRequest::default()
        },
    };
    same(resources::revert(&caller, &again), &revert);
}

fn list_revisions(request: &pb::ListRevisionsRequest) {
    let Ok(list) = resources::list(request, resources::query(request)) else {
        return;
    };
    let (filter, before, limit) = &list;
    let mut again = pb::ListRevisionsRequest {
        namespace: filter.namespace.to_string(),
        kind: filter.kind.map(render::kind).unwrap_or_default(),
        key: request.key.clone(),
        operation_id: filter
            .operation
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        page_size: i32::try_from(*limit).expect("pages are small"),
        page_token: String::new(),
        revision: request.revision,
    };
    let query = resources::query(&again);
    again.page_token = before.token(query);
    same(resources::list(&again, query), &list);
}

fn list_candidates(request: &pb::ListCandidatesRequest) {
    let Ok(list) = candidates::list(request, candidates::query(request), NOW) else {
        return;
    };
    let (asked, after, limit) = &list;
    let filter = &asked.filter;
    let decided = filter.reviewed.decided.as_ref();
    let mut again = pb::ListCandidatesRequest {
        namespace: filter.namespace.to_string(),
        kinds: filter.kinds.iter().copied().map(render::kind).collect(),
        statuses: request.statuses.clone(),
        key: request.key.clone(),
        page_size: i32::try_from(*limit).expect("pages are small"),
        page_token: String::new(),
        user_id: request.user_id.clone(),
        order: request.order,
        created_after: asked.listing.created_after.map(render::timestamp),
        created_before: asked.listing.created_before.map(render::timestamp),
        text: asked.text.as_ref().map_or("", |text| text.as_str()).to_owned(),
        second_opinion: filter
            .reviewed
            .asked
            .as_ref()
            .map(|asked| pb::SecondOpinionFilter {
                asked: asked.of.clone(),
                asked_by: asked.by.clone(),
            }),
        decided_by: decided.map(|(name, _)| name.clone()).unwrap_or_default(),
        needs_second_reviewer: filter.reviewed.approved_once,
        decided_after: decided.map(|(_, since)| render::timestamp(*since)),
    };
    let query = candidates::query(&again);
    again.page_token = after.map(|after| token(query, after)).unwrap_or_default();
    same(candidates::list(&again, query, NOW), &list);
}

fn approve(request: &pb::ApproveCandidateRequest) {
    let mut violations = Violations::new();
    let _ = parse::candidate_id(&mut violations, &request.candidate_id);
    let _ = parse::etag(&mut violations, "etag", &request.etag);
    let _ = parse::reason(&mut violations, &request.reason);
    if let Some(edited) = &request.edited_value
        && let Ok(value) = wire::resource_value(Some(edited), None, "as sent")
    {
        let again = render::stored_value(&value);
        same(wire::resource_value(Some(&again), None, "as sent"), &value);
    }
}

fn reject(request: &pb::RejectCandidateRequest) {
    let mut violations = Violations::new();
    let reason = parse::required_reason(&mut violations, &request.reason);
    let actor = parse::actor(&mut violations, &Caller::anonymous(), &request.on_behalf_of);
    if let (Some(reason), Some(actor)) = (reason, actor) {
        let again = parse::required_reason(&mut violations, &reason);
        assert_eq!(again, Some(reason));
        let again = parse::actor(&mut violations, &Caller::anonymous(), &actor.on_behalf_of);
        assert_eq!(again, Some(actor));
    }
}

fn undo(request: &pb::UndoDecisionRequest) {
    if let Ok(undo) = candidates::undo(&Caller::anonymous(), request) {
        let again = pb::UndoDecisionRequest {
            namespace: undo.namespace.to_string(),
            candidate_id: undo.candidate.to_string(),
            etag: undo.etag.clone().unwrap_or_default(),
            on_behalf_of: undo.actor.on_behalf_of.clone(),
        };
        same(candidates::undo(&Caller::anonymous(), &again), &undo);
    }
}

fn opened(request: &pb::AcquireReviewLeaseRequest) {
    let parse = |namespace: &str, candidate: &str, on_behalf_of: &str| {
        candidates::opened(&Caller::anonymous(), (namespace, candidate, on_behalf_of))
    };
    if let Ok(opened) = parse(&request.namespace, &request.candidate_id, &request.on_behalf_of) {
        let (namespace, candidate) = (opened.namespace.to_string(), opened.candidate.to_string());
        same(parse(&namespace, &candidate, &opened.actor.on_behalf_of), &opened);
    }
}

fn written(request: &pb::AskSecondOpinionRequest) {
    let parse = |request: &pb::AskSecondOpinionRequest| {
        let candidate = (
            &*request.namespace,
            &*request.candidate_id,
            &*request.on_behalf_of,
        );
        candidates::written(&Caller::anonymous(), candidate, &request.comment, &request.asked)
    };
    if let Ok(written) = parse(request) {
        let (about, comment, asked) = written.clone();
        let again = pb::AskSecondOpinionRequest {
            namespace: about.namespace.to_string(),
            candidate_id: about.candidate.to_string(),
            comment,
            asked,
            on_behalf_of: about.actor.on_behalf_of,
        };
        same(parse(&again), &written);
    }
}

fn watched(request: &pb::WatchQueueRequest) {
    if let Ok(watched) = candidates::watched(request) {
        let again = pb::WatchQueueRequest {
            namespace: watched.namespace.to_string(),
            kinds: watched.kinds.iter().map(|kind| kind.number()).collect(),
        };
        same(candidates::watched(&again), &watched);
    }
}

fn update_policy(request: pb::UpdatePolicyRequest) {
    if let Ok(update) = policies::update(&Caller::anonymous(), request) {
        for kind in Kind::ALL {
            let mut policy = Policy::default_for(kind);
            (update.change)(&mut policy);
            assert_eq!(
                policy.validate(),
                Ok(()),
                "an update that is accepted keeps policies valid"
            );
        }
    }
}

fn update_namespace_policy(request: pb::UpdateNamespacePolicyRequest) {
    if let Ok(update) = policies::namespaces::update(&Caller::anonymous(), request) {
        let mut policy = NamespacePolicy::default();
        (update.change)(&mut policy);
        let again = BlockingPolicy::new(policy.blocking.min_claims(), policy.blocking.rejected_permille());
        assert_eq!(
            again,
            Ok(policy.blocking),
            "an update that is accepted keeps policies valid"
        );
    }
}
