//! Many calls at once: one effect each, whichever replica takes them, and no internal lock ever shows in an answer to a
//! caller.

use std::collections::HashSet;

use emend_proto::{
    common::v1::{OutcomeState, ResourceKind},
    feedback::v1::{BatchSubmitFeedbackRequest, Feedback as Stored, SubmitFeedbackRequest, Wait},
    learning::v1::{
        ApproveCandidateRequest, BatchApproveCandidatesRequest, CandidateStatus, ImportHeader, ImportRow,
        Policy, UpdatePolicyRequest,
    },
};
use emend_tests::{
    both_databases,
    harness::{
        NAMESPACE, Subscriber, System, alias, answered, eventually, phrase,
        rpc::item_refusal,
        says,
        says::{alias_key, entity_value},
        verb,
        wait::holds,
    },
    replicated,
};
use futures::future::join_all;
use tonic::Code;

const PHRASE: &str = "set up a csa";

/// A hundred reporters say the same at once, spread over the replicas.
async fn a_hundred_at_once(system: &System) {
    let replicas = system.feedback.len();
    let clients: Vec<_> = (0..replicas).map(|index| system.feedback_at(index)).collect();
    let submissions = (0..100).map(|n| {
        let feedback = &clients[n % replicas];
        feedback.submit(says(&format!("reporter-{n}"), verb(PHRASE, "create_csa")))
    });
    let stored: Vec<Stored> = join_all(submissions).await;
    let mut promotions = 0;
    for feedback in &stored {
        let delivered = clients[0].delivered(NAMESPACE, &feedback.feedback_id).await;
        promotions += usize::from(delivered.outcome.unwrap().auto_applied);
    }
    assert_eq!(promotions, 1, "one promotion");

    let learning = system.learning();
    let candidates = learning.candidates_for(PHRASE).await;
    assert_eq!(candidates.len(), 1, "one candidate");
    let candidate = &candidates[0];
    assert_eq!((candidate.occurrence_count, candidate.reporter_count), (100, 100));
    assert_eq!(candidate.status(), CandidateStatus::Applied);
    let history = learning.candidate(&candidate.candidate_id).await.history;
    let applied = history
        .iter()
        .filter(|step| step.to() == CandidateStatus::Applied);
    assert_eq!(applied.count(), 1);
    assert_eq!(learning.revisions().await.len(), 1, "one revision");
    assert_eq!(learning.head().await, 1);
    assert_eq!(system.stored().resources().await.len(), 1);
    for index in 0..system.learning.len() {
        assert_eq!(system.learning_at(index).verb_for(PHRASE).await, "create_csa");
    }
}

/// Batches about two phrases, half of them in reverse order, all at once.
async fn crossed_batches(system: &System) {
    let replicas = system.feedback.len();
    let rounds = 30;
    let batches = (0..rounds).map(|n| {
        let feedback = system.feedback_at(n % replicas);
        let reporter = format!("reporter-{n}");
        let mut requests: Vec<SubmitFeedbackRequest> = ["phrase a", "phrase b"]
            .map(|input| says(&reporter, verb(input, "create_csa")))
            .to_vec();
        if n % 2 == 1 {
            requests.reverse();
        }
        async move {
            let request = BatchSubmitFeedbackRequest {
                requests,
                wait: Wait::Evaluated.into(),
            };
            let results = answered(feedback.service.clone().batch_submit_feedback(request).await).results;
            for result in results {
                assert_eq!(item_refusal(result.status.as_ref()), None);
            }
        }
    });
    join_all(batches).await;
    let stored = system.feedback().all_delivered(NAMESPACE).await;
    assert_eq!(stored.len(), 2 * rounds);
    let learning = system.learning();
    for input in ["phrase a", "phrase b"] {
        let candidate = learning.candidate_for(input, "create_csa").await;
        assert_eq!(candidate.reporter_count, i64::try_from(rounds).unwrap());
        assert_eq!(learning.verb_for(input).await, "create_csa");
    }
    assert_eq!(learning.head().await, 2);
}

/// Imports, approvals and operators' decisions about the same keys in opposite orders, all at once.
async fn crossed_decisions(system: &System) {
    let names: Vec<String> = (0..8).map(|n| format!("name {n}")).collect();
    let feedback = system.feedback();
    for name in &names {
        feedback.learn(says("jane", phrase(name, "a verb"))).await;
    }
    let learnings: Vec<_> = (0..system.learning.len())
        .map(|index| system.learning_at(index))
        .collect();
    let mut candidate_ids = Vec::new();
    for name in &names {
        candidate_ids.push(learnings[0].candidate_for(name, "a verb").await.candidate_id);
    }
    let imports = (0..16).map(|n| {
        let learning = &learnings[n % learnings.len()];
        let mut rows: Vec<ImportRow> = (1..)
            .zip(&names)
            .map(|(line, name)| ImportRow {
                line,
                correction: Some(alias(name, &format!("person-{n}"))),
                user_id: String::new(),
            })
            .collect();
        if n % 2 == 1 {
            rows.reverse();
        }
        let header = ImportHeader {
            namespace: NAMESPACE.into(),
            ..ImportHeader::default()
        };
        async move {
            // Imports take turns, and one that has to wait is told so; no caller is told of locks.
            eventually("the import gets its turn", || async {
                let Err(status) = learning.import(header.clone(), rows.clone()).await else {
                    return Ok(());
                };
                assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
                Err(status.message().to_owned())
            })
            .await;
        }
    });
    let puts = (0..32).map(|n| {
        let learning = &learnings[n % learnings.len()];
        let name = &names[n % names.len()];
        async move {
            learning
                .put(alias_key(name), entity_value(&format!("person-by-hand-{n}")))
                .await;
        }
    });
    let approvals = (0..6).map(|n| {
        let learning = &learnings[n % learnings.len()];
        let mut requests: Vec<ApproveCandidateRequest> = candidate_ids
            .iter()
            .map(|id| ApproveCandidateRequest {
                namespace: NAMESPACE.into(),
                candidate_id: id.clone(),
                ..ApproveCandidateRequest::default()
            })
            .collect();
        if n % 2 == 1 {
            requests.reverse();
        }
        async move {
            let batch = BatchApproveCandidatesRequest { requests };
            let results = answered(learning.candidates.clone().batch_approve_candidates(batch).await).results;
            for result in results {
                let code = item_refusal(result.status.as_ref()).map(|refusal| refusal.code);
                // The second caller is told that it applies already; no caller is told of locks.
                assert!(matches!(code, None | Some(Code::FailedPrecondition)), "{code:?}");
            }
        }
    });
    tokio::join!(join_all(imports), join_all(puts), join_all(approvals));

    let head = learnings[0].head().await;
    let log: Vec<i64> = learnings[0]
        .revisions()
        .await
        .iter()
        .map(|revision| revision.revision)
        .collect();
    assert_eq!(log, (1..=head).rev().collect::<Vec<_>>(), "no gap, nothing twice");
    for learning in &learnings {
        assert_eq!(learning.resources_in(NAMESPACE).await.len(), 2 * names.len());
    }
}

both_databases! {
    async fn a_hundred_identical_submissions_at_once_are_one_candidate_and_one_promotion(system) {
        a_hundred_at_once(system).await;
    }

    async fn crossed_batches_of_two_phrases_all_succeed(system) {
        crossed_batches(system).await;
    }

    async fn crossed_decisions_about_the_same_keys_all_succeed(system) {
        crossed_decisions(system).await;
    }
}

replicated! {
    async fn a_hundred_identical_submissions_over_two_replicas_are_one_candidate_and_one_promotion(system: 2 x 2) {
        a_hundred_at_once(system).await;
    }

    async fn exactly_three_at_once_on_three_replicas_are_applied(system: 3 x 3) {
        for round in 0..10 {
            let input = format!("phrase {round}");
            let submissions = (0..3).map(|n| {
                let feedback = system.feedback_at(n);
                let request = says(&format!("reporter-{n}"), verb(&input, "create_csa"));
                async move { feedback.learn(request).await }
            });
            let outcomes: Vec<_> = join_all(submissions).await.into_iter().map(|told| told.outcome.unwrap()).collect();
            let promoted: Vec<_> = outcomes.iter().filter(|outcome| outcome.auto_applied).collect();
            assert_eq!(promoted.len(), 1, "{outcomes:?}");
            assert_eq!((promoted[0].state(), promoted[0].reporter_count), (OutcomeState::Applied, 3));
            for index in 0..3 {
                assert_eq!(system.learning_at(index).verb_for(&input).await, "create_csa");
            }
        }
        assert_eq!(system.learning().head().await, 10);
    }

    async fn crossed_batches_over_two_replicas_all_succeed(system: 2 x 2) {
        crossed_batches(system).await;
    }

    async fn crossed_decisions_over_two_replicas_all_succeed(system: 1 x 2) {
        crossed_decisions(system).await;
    }

    async fn one_voter_at_two_replicas_at_once_has_one_vote(system: 2 x 2) {
        let submissions = (0..20).map(|n| {
            let feedback = system.feedback_at(n % 2);
            let choice = if n % 3 == 0 { "create_isda" } else { "create_csa" };
            let request = says("jane", verb(PHRASE, choice));
            async move { feedback.learn(request).await }
        });
        let stored = join_all(submissions).await;
        let newest = stored.iter().max_by_key(|stored| stored.accept_order).unwrap();
        let learning = system.learning();
        let mut votes = 0;
        for candidate in learning.candidates_for(PHRASE).await {
            votes += candidate.reporter_count;
            let supports = newest.outcome.as_ref().unwrap().candidate_id == candidate.candidate_id;
            assert_eq!(candidate.reporter_count, i64::from(supports));
        }
        assert_eq!(votes, 1);
    }

    async fn the_same_request_id_at_two_replicas_at_once_is_stored_once(system: 2 x 1) {
        for round in 0..10 {
            let request = SubmitFeedbackRequest {
                request_id: format!("r-{round}"),
                ..says("jane", verb(&format!("phrase {round}"), "create_csa"))
            };
            let at_once = (0..8).map(|n| {
                let feedback = system.feedback_at(n % 2);
                let request = request.clone();
                async move { feedback.submit(request).await.feedback_id }
            });
            let ids: HashSet<String> = join_all(at_once).await.into_iter().collect();
            assert_eq!(ids.len(), 1);
        }
        assert_eq!(system.feedback().all_delivered(NAMESPACE).await.len(), 10);
    }

    async fn a_policy_change_during_votes_promotes_each_phrase_once(system: 2 x 2) {
        let phrases: Vec<String> = (0..30).map(|n| format!("phrase {n}")).collect();
        let vote = async |reporter: &str| {
            let votes = phrases.iter().enumerate().map(|(n, input)| {
                let feedback = system.feedback_at(n % 2);
                let request = says(reporter, verb(input, "create_csa"));
                async move { feedback.learn(request).await }
            });
            join_all(votes).await
        };
        vote("jane").await;
        let lower = UpdatePolicyRequest {
            policy: Some(Policy {
                namespace: NAMESPACE.into(),
                kind: ResourceKind::InvocationPhrase.into(),
                threshold: 2,
                ..Policy::default()
            }),
            ..UpdatePolicyRequest::default()
        };
        let learning = system.learning_at(1);
        let mut policies = learning.policies.clone();
        tokio::join!(vote("ann"), async { answered(policies.update_policy(lower).await) });
        eventually("every phrase is applied", || async {
            let applied = learning.resources_in(NAMESPACE).await.len();
            holds(applied == phrases.len(), || format!("{applied} are"))
        })
        .await;
        assert_eq!(learning.head().await, 30, "one revision each");
        let stored = system.stored().resources().await;
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&learning.channel).await;
        subscriber.until(30).await;
        assert_eq!(*subscriber.held(), stored);
    }
}
