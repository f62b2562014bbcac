//! What people decide: approving, editing, rejecting, reverting, and acting only on what they saw.

use emend_proto::{
    common::v1::{Cause, OutcomeState, ResourceKey, ResourceKind},
    learning::v1::{
        AcquireReviewLeaseRequest, ApproveCandidateRequest, BatchApproveCandidatesRequest,
        BatchRejectCandidatesRequest, CandidateOrigin, CandidateStatus, CommentOnCandidateRequest,
        DeleteResourceRequest, GetPolicyRequest, GetResourceRequest, Policy, PutResourceRequest,
        RejectCandidateRequest, ReleaseReviewLeaseRequest, UpdatePolicyRequest, WatchQueueRequest,
        watch_queue_response::Message,
    },
};
use emend_tests::{
    both_databases,
    harness::{
        NAMESPACE, alias, answered, refused,
        rpc::item_refusal,
        says,
        says::{alias_key, entity_value, maps_to, phrase_key, verb_value},
        system::Service,
        tamper::unreadable_queue_change,
        verb, within,
    },
};
use tonic::Code;

const PHRASE: &str = "set up a csa";
const NOBODY: &str = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10";

both_databases! {
    async fn an_approved_candidate_applies_and_is_pinned(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        feedback.learn(says("jane", verb(PHRASE, "create_csa"))).await;
        let waiting = learning.candidate_for(PHRASE, "create_csa").await;
        let (approved, revision) = learning.approve(&waiting).await.unwrap();
        assert_eq!(approved.status(), CandidateStatus::Applied);
        assert!(approved.contest_pinned);
        assert_eq!(approved.applied_revision, revision);
        assert_eq!(approved.decided_by.unwrap().on_behalf_of, "a reviewer");
        assert_eq!(learning.verb_for(PHRASE).await, "create_csa");
        assert_eq!(learning.revisions().await[0].cause(), Cause::Review);

        let again = refused(learning.approve(&waiting).await);
        assert_eq!(again.code, Code::FailedPrecondition);
        for reporter in ["a", "b", "c", "d"] {
            feedback.learn(says(reporter, verb(PHRASE, "create_isda"))).await;
        }
        assert_eq!(learning.verb_for(PHRASE).await, "create_csa");
    }

    async fn an_edited_approval_is_a_candidate_of_its_own(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        feedback.learn(says("jane", verb(PHRASE, "create_csa"))).await;
        let original = learning.candidate_for(PHRASE, "create_csa").await;
        let request = ApproveCandidateRequest {
            namespace: NAMESPACE.into(),
            candidate_id: original.candidate_id.clone(),
            edited_value: Some(verb_value("create_credit_support_annex")),
            ..ApproveCandidateRequest::default()
        };
        let edited = answered(learning.candidates.clone().approve_candidate(request).await).candidate.unwrap();
        assert_ne!(edited.candidate_id, original.candidate_id);
        assert_eq!(edited.edited_from, original.candidate_id);
        assert_eq!(edited.origin(), CandidateOrigin::Review);
        assert_eq!(edited.status(), CandidateStatus::Applied);
        assert_eq!(learning.verb_for(PHRASE).await, "create_credit_support_annex");
        let original = learning.candidate(&original.candidate_id).await;
        assert_eq!(original.candidate.unwrap().status(), CandidateStatus::Superseded);
        assert_eq!(original.rivals.len(), 1);
    }

    async fn a_rejected_value_stays_rejected_and_reporters_learn_why(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        for reporter in ["a", "b", "c"] {
            feedback.learn(says(reporter, verb(PHRASE, "create_csa"))).await;
        }
        let applied = learning.candidate_for(PHRASE, "create_csa").await;
        let (rejected, revision) = learning.reject(&applied, "CSAs are made elsewhere").await.unwrap();
        assert_eq!(rejected.status(), CandidateStatus::Rejected);
        assert!(revision > applied.applied_revision);
        assert_eq!(learning.verb_for(PHRASE).await, "");

        for reporter in ["d", "e", "f", "g"] {
            let outcome = feedback.learn(says(reporter, verb(PHRASE, "create_csa"))).await.outcome.unwrap();
            assert_eq!(outcome.state(), OutcomeState::Rejected);
            assert_eq!(outcome.decision_reason, "CSAs are made elsewhere");
            assert!(!outcome.message.contains("CSAs"), "{}", outcome.message);
            assert_eq!(outcome.confirmations_needed, 0);
        }
        assert_eq!(learning.verb_for(PHRASE).await, "");
        let again = refused(learning.reject(&rejected, "again").await);
        assert_eq!(again.code, Code::FailedPrecondition);
    }

    async fn a_decision_is_undone_by_who_made_it(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        feedback.learn(says("jane", verb(PHRASE, "create_csa"))).await;
        let waiting = learning.candidate_for(PHRASE, "create_csa").await;
        let nothing = refused(learning.undo(&waiting).await);
        assert_eq!(nothing.reason.as_deref(), Some("NOTHING_TO_UNDO"));
        let (_, approved) = learning.approve(&waiting).await.unwrap();
        let (undone, revision) = learning.undo(&waiting).await.unwrap();
        assert_eq!((undone.status(), undone.contest_pinned), (waiting.status(), false));
        assert_eq!(revision, approved + 1);
        assert_eq!(learning.verb_for(PHRASE).await, "");
        assert_eq!(learning.revisions().await[0].cause(), Cause::Undo);
        let history = learning.candidate(&waiting.candidate_id).await.history;
        assert_eq!(history.last().unwrap().cause(), Cause::Undo);
    }

    async fn an_open_candidate_shows_who_has_it_until_it_is_decided(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        feedback.learn(says("jane", verb(PHRASE, "create_csa"))).await;
        let waiting = learning.candidate_for(PHRASE, "create_csa").await;
        assert_eq!(waiting.lease, None);
        let opens = async |person: &str| {
            let request = AcquireReviewLeaseRequest {
                namespace: NAMESPACE.into(),
                candidate_id: waiting.candidate_id.clone(),
                on_behalf_of: person.into(),
            };
            answered(learning.candidates.clone().acquire_review_lease(request).await)
        };
        let own = opens("ana").await;
        assert!(own.acquired);
        let other = opens("bob").await;
        assert_eq!((&other.lease, other.acquired), (&own.lease, false));
        assert_eq!(learning.candidate_for(PHRASE, "create_csa").await.lease, own.lease);
        let shown = learning.candidate(&waiting.candidate_id).await.candidate.unwrap();
        assert_eq!(shown.lease.unwrap().actor.unwrap().on_behalf_of, "ana");
        learning.approve(&waiting).await.unwrap();
        assert_eq!(learning.candidate_for(PHRASE, "create_csa").await.lease, None);

        let released = ReleaseReviewLeaseRequest {
            namespace: NAMESPACE.into(),
            candidate_id: waiting.candidate_id.clone(),
            on_behalf_of: "bob".into(),
        };
        assert!(opens("bob").await.acquired);
        answered(learning.candidates.clone().release_review_lease(released).await);
        assert!(opens("ana").await.acquired);
    }

    async fn who_watches_the_queue_is_told_what_changes_in_order(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let request = WatchQueueRequest {
            namespace: NAMESPACE.into(),
            kinds: vec![ResourceKind::InvocationPhrase as i32],
        };
        let mut watch = answered(learning.candidates.clone().watch_queue(request).await);
        let opened = within("it begins", watch.message()).await.unwrap().unwrap();
        assert!(matches!(opened.message, Some(Message::Opened(_))), "{opened:?}");
        feedback.learn(says("jane", verb(PHRASE, "create_csa"))).await;
        // What is of another kind is not told.
        feedback.learn(says("jane", alias("JD", "job description"))).await;
        let waiting = learning.candidate_for(PHRASE, "create_csa").await;
        let (approved, revision) = learning.approve(&waiting).await.unwrap();
        let comment = CommentOnCandidateRequest {
            namespace: NAMESPACE.into(),
            candidate_id: waiting.candidate_id.clone(),
            comment: "as legal says".into(),
            on_behalf_of: "ana".into(),
        };
        answered(learning.candidates.clone().comment_on_candidate(comment).await);
        learning.reject(&approved, "that verb is retired").await.unwrap();
        let mut told = Vec::new();
        while told.len() < 3 {
            let message = within("it is told", watch.message()).await.unwrap().unwrap();
            match message.message {
                Some(Message::Change(change)) => told.push(change),
                Some(Message::KeepAlive(_)) => {}
                other => panic!("nothing was left out: {other:?}"),
            }
        }
        let expected = [
            (CandidateStatus::Pending, CandidateStatus::Applied, revision),
            // The comment, read once the candidate may have its next status already.
            (told[1].status(), told[1].status(), 0),
            (CandidateStatus::Applied, CandidateStatus::Rejected, revision + 1),
        ];
        for (told, (previous, status, revision)) in told.iter().zip(expected) {
            assert_eq!(told.candidate_id, waiting.candidate_id);
            assert_eq!((told.previous_status(), told.status(), told.revision), (previous, status, revision));
        }
        assert!(told[0].decided_by.is_some() && told[1].decided_by.is_none());
        let details = learning.candidate(&waiting.candidate_id).await;
        assert_eq!(details.comments[0].comment, "as legal says");
    }

    async fn who_watches_the_queue_is_told_that_a_change_was_left_out(system) {
        let learning = system.learning();
        let request = WatchQueueRequest {
            namespace: NAMESPACE.into(),
            ..WatchQueueRequest::default()
        };
        let mut watch = answered(learning.candidates.clone().watch_queue(request).await);
        let mut next = async || within("it is told", watch.message()).await.unwrap().unwrap().message;
        assert!(matches!(next().await, Some(Message::Opened(_))));
        system.feedback().learn(says("jane", verb(PHRASE, "create_csa"))).await;
        let waiting = learning.candidate_for(PHRASE, "create_csa").await;
        let (applied, _) = learning.approve(&waiting).await.unwrap();
        assert!(matches!(next().await, Some(Message::Change(_))));
        unreadable_queue_change(&system.database.url(Service::Learning, None)).await;
        let told = next().await;
        assert!(matches!(told, Some(Message::Resync(_))), "{told:?}");
        // The watch goes on.
        learning.reject(&applied, "that verb is retired").await.unwrap();
        let told = next().await;
        assert!(matches!(told, Some(Message::Change(_))), "{told:?}");
    }

    async fn a_candidate_changed_since_it_was_read_is_not_decided(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        feedback.learn(says("jane", verb(PHRASE, "create_csa"))).await;
        let seen = learning.candidate_for(PHRASE, "create_csa").await;
        feedback.learn(says("tom", verb(PHRASE, "create_csa"))).await;
        let approve = ApproveCandidateRequest {
            namespace: NAMESPACE.into(),
            candidate_id: seen.candidate_id.clone(),
            etag: seen.etag.clone(),
            ..ApproveCandidateRequest::default()
        };
        let stale = refused(learning.candidates.clone().approve_candidate(approve.clone()).await);
        assert_eq!(stale.code, Code::Aborted);
        let reject = RejectCandidateRequest {
            namespace: NAMESPACE.into(),
            candidate_id: seen.candidate_id.clone(),
            etag: seen.etag,
            reason: "no".into(),
            ..RejectCandidateRequest::default()
        };
        assert_eq!(refused(learning.candidates.clone().reject_candidate(reject).await).code, Code::Aborted);
        let etag = learning.candidate_for(PHRASE, "create_csa").await.etag;
        let fresh = ApproveCandidateRequest { etag, ..approve };
        answered(learning.candidates.clone().approve_candidate(fresh).await);
    }

    async fn a_resource_changed_since_it_was_read_is_not_set_or_deleted(system) {
        let learning = system.learning();
        let put = async |etag: &str, verb: &str| {
            let request = PutResourceRequest {
                key: Some(phrase_key(PHRASE)),
                value: Some(verb_value(verb)),
                etag: etag.into(),
                ..PutResourceRequest::default()
            };
            learning.resources.clone().put_resource(request).await
        };
        let delete = async |etag: &str| {
            let request = DeleteResourceRequest {
                key: Some(phrase_key(PHRASE)),
                etag: etag.into(),
                ..DeleteResourceRequest::default()
            };
            learning.resources.clone().delete_resource(request).await
        };
        let first = answered(put("", "create_csa").await);
        let second = answered(put("", "create_isda").await);
        assert_eq!(second.revision, first.revision + 1);
        let (old, new) = (first.resource.unwrap().etag, second.resource.unwrap().etag);
        assert!(!old.is_empty() && old != new);
        assert_eq!(refused(put(&old, "create_gmra").await).code, Code::Aborted);
        assert_eq!(refused(delete(&old).await).code, Code::Aborted);

        let request = GetResourceRequest {
            key: Some(phrase_key(PHRASE)),
            min_revision: second.revision,
        };
        let read = answered(learning.resources.clone().get_resource(request).await).resource.unwrap();
        assert_eq!(read.etag, new);
        assert_eq!(maps_to(read.value.as_ref()), "create_isda");
        answered(delete(&new).await);
        assert_eq!(refused(delete("").await).code, Code::NotFound);
    }

    async fn a_policy_changed_since_it_was_read_is_not_updated(system) {
        let learning = system.learning();
        let kind = phrase_key(PHRASE).kind;
        let get = GetPolicyRequest { namespace: NAMESPACE.into(), kind };
        let seen = answered(learning.policies.clone().get_policy(get).await).policy.unwrap();
        let update = async |etag: &str, threshold: i32| {
            let request = UpdatePolicyRequest {
                policy: Some(Policy {
                    namespace: NAMESPACE.into(),
                    kind,
                    threshold,
                    etag: etag.into(),
                    ..Policy::default()
                }),
                ..UpdatePolicyRequest::default()
            };
            learning.policies.clone().update_policy(request).await
        };
        let changed = answered(update(&seen.etag, 4).await).policy.unwrap();
        assert_eq!((changed.version, changed.threshold), (1, 4));
        assert_eq!(refused(update(&seen.etag, 5).await).code, Code::Aborted);
        assert_eq!(answered(update(&changed.etag, 5).await).policy.unwrap().version, 2);
    }

    async fn setting_the_current_value_writes_nothing(system) {
        let learning = system.learning();
        let first = learning.put(phrase_key(PHRASE), verb_value("create_csa")).await;
        let second = learning.put(phrase_key(" Set up a CSA"), verb_value("create_csa")).await;
        assert!(first.revision > 0);
        // Its display form differs, so the value does; the same display form writes nothing.
        let third = learning.put(phrase_key(" Set up a CSA"), verb_value("create_csa")).await;
        assert_eq!(third.revision, 0);
        assert_eq!(third.resource, second.resource);
    }

    async fn a_batch_of_reviews_gives_each_item_its_own_answer(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let mut requests = Vec::new();
        for input in ["one", "two"] {
            feedback.learn(says("jane", verb(input, "create_csa"))).await;
            requests.push(ApproveCandidateRequest {
                namespace: NAMESPACE.into(),
                candidate_id: learning.candidate_for(input, "create_csa").await.candidate_id,
                ..ApproveCandidateRequest::default()
            });
        }
        requests.insert(1, ApproveCandidateRequest {
            candidate_id: NOBODY.into(),
            ..requests[0].clone()
        });
        requests.push(ApproveCandidateRequest {
            candidate_id: "not an id".into(),
            ..requests[0].clone()
        });
        let rejects: Vec<RejectCandidateRequest> = requests
            .iter()
            .map(|request| RejectCandidateRequest {
                namespace: request.namespace.clone(),
                candidate_id: request.candidate_id.clone(),
                reason: "no longer".into(),
                ..RejectCandidateRequest::default()
            })
            .collect();

        let batch = BatchApproveCandidatesRequest { requests };
        let results = answered(learning.candidates.clone().batch_approve_candidates(batch).await).results;
        let codes = |results: &[emend_proto::learning::v1::ReviewResult]| -> Vec<Option<Code>> {
            let refusals = results.iter().map(|result| item_refusal(result.status.as_ref()));
            refusals.map(|refusal| refusal.map(|refusal| refusal.code)).collect()
        };
        let expected = [None, Some(Code::NotFound), None, Some(Code::InvalidArgument)];
        assert_eq!(codes(&results), expected);
        assert!(results[0].revision > 0 && results[2].revision > 0);
        assert_eq!(learning.verb_for("one").await, "create_csa");

        let batch = BatchRejectCandidatesRequest { requests: rejects };
        let results = answered(learning.candidates.clone().batch_reject_candidates(batch).await).results;
        assert_eq!(codes(&results), expected);
        assert_eq!(learning.verb_for("one").await, "");
        assert_eq!(learning.verb_for("two").await, "");
    }

    async fn reverting_a_revision_restores_the_previous_values(system) {
        let learning = system.learning();
        let first = learning.put(phrase_key(PHRASE), verb_value("create_csa")).await;
        let second = learning.put(phrase_key(PHRASE), verb_value("create_isda")).await;
        let reverted = learning.revert(second.revision).await.unwrap();
        assert_eq!(learning.verb_for(PHRASE).await, "create_csa");
        let log = learning.revisions().await;
        assert_eq!((log[0].revision, log[0].cause()), (reverted, Cause::Revert));
        assert_eq!(maps_to(log[0].changes[0].before.as_ref()), "create_isda");
        assert_eq!(maps_to(log[0].changes[0].after.as_ref()), "create_csa");

        let refusal = refused(learning.revert(first.revision).await);
        assert_eq!(refusal.code, Code::FailedPrecondition);
        assert_eq!(refusal.preconditions.len(), 1, "{refusal}");
        assert!(refusal.preconditions[0].subject.contains(PHRASE), "{refusal}");
        let unknown = refused(learning.revert(reverted + 1_000).await);
        assert_eq!(unknown.code, Code::NotFound);
    }

    async fn the_audit_trail_shows_who_did_what_and_why(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let voted = feedback.learn(says("jane", emend_tests::harness::alias("jd", "person-1"))).await;
        let request = PutResourceRequest {
            key: Some(alias_key("JD")),
            value: Some(entity_value("person-2")),
            reason: "HR says so".into(),
            on_behalf_of: "tom".into(),
            ..PutResourceRequest::default()
        };
        answered(learning.resources.clone().put_resource(request).await);
        let log = learning.revisions().await;
        assert_eq!(log.iter().map(|revision| revision.revision).collect::<Vec<_>>(), [2, 1]);
        let put = &log[0];
        assert_eq!((put.cause(), put.reason.as_str()), (Cause::Operator, "HR says so"));
        let actor = put.actor.as_ref().unwrap();
        assert_eq!((actor.caller.as_str(), actor.on_behalf_of.as_str()), ("anonymous", "tom"));
        assert_eq!(put.changes[0].key, Some(ResourceKey { key: "jd".into(), ..alias_key("jd") }));
        assert_eq!(log[1].changes[0].feedback_id, voted.feedback_id);
        assert_eq!(log[1].changes[0].before, None);
        assert!(log.iter().all(|revision| revision.committed_at.is_some()));
    }

    async fn unknown_ids_are_not_found(system) {
        let learning = system.learning();
        let request = GetResourceRequest {
            key: Some(phrase_key("never said")),
            min_revision: 0,
        };
        assert_eq!(refused(learning.resources.clone().get_resource(request).await).code, Code::NotFound);
        let candidate = emend_proto::learning::v1::GetCandidateRequest {
            namespace: NAMESPACE.into(),
            candidate_id: NOBODY.into(),
        };
        let refusal = refused(learning.candidates.clone().get_candidate(candidate).await);
        assert_eq!(refusal.code, Code::NotFound);
    }

    async fn a_read_waits_a_bounded_time_for_the_revision_it_asks_for(system) {
        let learning = system.learning();
        let put = learning.put(phrase_key(PHRASE), verb_value("create_csa")).await;
        let read = async |min_revision: i64| {
            let request = GetResourceRequest { key: Some(phrase_key(PHRASE)), min_revision };
            learning.resources.clone().get_resource(request).await
        };
        assert!(answered(read(put.revision).await).resource.is_some());
        let refusal = refused(read(put.revision + 1).await);
        assert_eq!(refusal.code, Code::Unavailable);
        assert!(refusal.retry_after.is_some(), "{refusal}");
    }
}
