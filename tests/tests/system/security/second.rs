//! Two reviewers who are known: what one approves the other decides, and what one asks the other answers.

use emend_proto::{
    common::v1::ResourceKind,
    feedback::v1::SubmitFeedbackRequest,
    learning::v1::{
        ApproveCandidateRequest, ApproveCandidateResponse, AskSecondOpinionRequest, Candidate,
        CandidateStatus, CommentOnCandidateRequest, GetCandidateRequest, ListCandidatesRequest, Policy,
        SecondOpinionFilter, UpdatePolicyRequest,
    },
};
use emend_tests::harness::{answered, refused, says, verb};
use tonic::{Code, Status};

use super::{Guarded, IN_OWN, OWN, on_both_databases, token_of, with_token};

/// A phrase that somebody reported, under a policy that needs two reviewers.
async fn reported(guarded: &Guarded) -> Candidate {
    let update = UpdatePolicyRequest {
        policy: Some(Policy {
            namespace: OWN.into(),
            kind: ResourceKind::InvocationPhrase.into(),
            risk_level: emend_proto::common::v1::RiskLevel::High.into(),
            reviewers_needed: 2,
            ..Policy::default()
        }),
        ..UpdatePolicyRequest::default()
    };
    let mut policies = guarded.system.learning().policies;
    let policy = answered(
        policies
            .update_policy(with_token(update, Some(&token_of("boss"))))
            .await,
    );
    assert_eq!(policy.policy.unwrap().reviewers_needed, 2);
    let submission = SubmitFeedbackRequest {
        namespace: OWN.into(),
        ..says("", verb("set up a csa", "create_csa"))
    };
    let mut feedback = guarded.system.feedback().service;
    answered(
        feedback
            .submit_feedback(with_token(submission, Some(&token_of("rita"))))
            .await,
    );
    listed(guarded, "rita", ListCandidatesRequest::default())
        .await
        .remove(0)
}

async fn listed(guarded: &Guarded, name: &str, request: ListCandidatesRequest) -> Vec<Candidate> {
    let request = ListCandidatesRequest {
        namespace: OWN.into(),
        ..request
    };
    let mut candidates = guarded.system.learning().candidates;
    answered(
        candidates
            .list_candidates(with_token(request, Some(&token_of(name))))
            .await,
    )
    .candidates
}

async fn approve(guarded: &Guarded, name: &str, id: &str) -> Result<ApproveCandidateResponse, Status> {
    let request = ApproveCandidateRequest {
        namespace: OWN.into(),
        candidate_id: id.to_owned(),
        reason: "asked legal".into(),
        ..ApproveCandidateRequest::default()
    };
    let mut candidates = guarded.system.learning().candidates;
    let approved = candidates
        .approve_candidate(with_token(request, Some(&token_of(name))))
        .await?;
    Ok(approved.into_inner())
}

on_both_databases! {
    async fn what_one_reviewer_approves_another_decides(guarded: [
        ("rita", "reviewer", IN_OWN),
        ("rob", "reviewer", IN_OWN),
        ("boss", "admin", IN_OWN),
    ]) {
        let id = reported(guarded).await.candidate_id;
        let first = approve(guarded, "rita", &id).await.unwrap();
        let once = first.candidate.unwrap();
        assert_eq!((once.status(), &*once.status_reason), (CandidateStatus::AwaitingReview, "SECOND_REVIEWER"));
        assert_eq!(first.revision, 0);
        let again = refused(approve(guarded, "rita", &id).await);
        assert_eq!((again.code, again.reason.as_deref()), (Code::FailedPrecondition, Some("SECOND_REVIEWER")));
        let waits = ListCandidatesRequest {
            needs_second_reviewer: true,
            ..ListCandidatesRequest::default()
        };
        let waiting = listed(guarded, "rob", waits).await;
        let shown = waiting[0].first_approval.clone().unwrap();
        assert_eq!((shown.actor.unwrap().caller, shown.reason), ("rita".into(), "asked legal".into()));

        let second = approve(guarded, "rob", &id).await.unwrap();
        assert_eq!(second.candidate.unwrap().status(), CandidateStatus::Applied);
        assert_eq!(second.revision, 1);
        // Both of the two who approved it find it among what they decided.
        for (name, count) in [("rita", 1), ("rob", 1), ("ann", 0)] {
            let decided = ListCandidatesRequest {
                decided_by: name.into(),
                ..ListCandidatesRequest::default()
            };
            assert_eq!(listed(guarded, "rob", decided).await.len(), count, "{name}");
        }
    }

    async fn what_one_reviewer_asks_another_answers(guarded: [
        ("rita", "reviewer", IN_OWN),
        ("rob", "reviewer", IN_OWN),
        ("boss", "admin", IN_OWN),
    ]) {
        let id = reported(guarded).await.candidate_id;
        let ask = AskSecondOpinionRequest {
            namespace: OWN.into(),
            candidate_id: id.clone(),
            comment: "is that verb still in use?".into(),
            asked: "rob".into(),
            ..AskSecondOpinionRequest::default()
        };
        let mut candidates = guarded.system.learning().candidates;
        let asked = answered(candidates.ask_second_opinion(with_token(ask, Some(&token_of("rita")))).await);
        assert!(asked.comment.unwrap().open);
        let of = |name: &str| ListCandidatesRequest {
            second_opinion: Some(SecondOpinionFilter {
                asked: name.into(),
                ..SecondOpinionFilter::default()
            }),
            ..ListCandidatesRequest::default()
        };
        assert!(listed(guarded, "boss", of("boss")).await.is_empty());
        let waiting = listed(guarded, "rob", of("rob")).await;
        assert_eq!(waiting[0].second_opinion.clone().unwrap().comment, "is that verb still in use?");
        let answer = CommentOnCandidateRequest {
            namespace: OWN.into(),
            candidate_id: id.clone(),
            comment: "it is".into(),
            ..CommentOnCandidateRequest::default()
        };
        answered(candidates.comment_on_candidate(with_token(answer, Some(&token_of("rob")))).await);
        assert!(listed(guarded, "rob", of("rob")).await.is_empty());
        let get = GetCandidateRequest {
            namespace: OWN.into(),
            candidate_id: id,
        };
        let details = answered(candidates.get_candidate(with_token(get, Some(&token_of("rita")))).await);
        let words: Vec<_> = details.comments.iter().map(|comment| &*comment.comment).collect();
        assert_eq!(words, ["is that verb still in use?", "it is"]);
        assert_eq!(details.candidate.unwrap().second_opinion, None);
    }
}
