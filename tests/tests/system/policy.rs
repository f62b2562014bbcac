//! Policies: how much it takes to learn something, and what a change does to candidates that wait.

use emend_proto::{
    common::v1::{Cause, OutcomeState, ResourceKind, RiskLevel},
    learning::v1::{Counting, GetPolicyRequest, Policy, UpdatePolicyRequest},
};
use emend_tests::{
    both_databases,
    harness::{Learning, NAMESPACE, alias, answered, eventually, says, verb, wait::holds},
};

const PHRASE: &str = "set up a csa";

async fn policy(learning: &Learning, kind: ResourceKind) -> Policy {
    let request = GetPolicyRequest {
        namespace: NAMESPACE.into(),
        kind: kind.into(),
    };
    answered(learning.policies.clone().get_policy(request).await)
        .policy
        .unwrap()
}

async fn update(learning: &Learning, policy: Policy) -> Policy {
    let request = UpdatePolicyRequest {
        policy: Some(Policy {
            namespace: NAMESPACE.into(),
            ..policy
        }),
        reason: "tuning".into(),
        ..UpdatePolicyRequest::default()
    };
    answered(learning.policies.clone().update_policy(request).await)
        .policy
        .unwrap()
}

fn phrases() -> Policy {
    Policy {
        kind: ResourceKind::InvocationPhrase.into(),
        ..Policy::default()
    }
}

both_databases! {
    async fn unset_policies_have_the_documented_defaults(system) {
        let learning = system.learning();
        for (kind, risk) in [
            (ResourceKind::InvocationPhrase, RiskLevel::Medium),
            (ResourceKind::EntityAlias, RiskLevel::Low),
            (ResourceKind::Prohibition, RiskLevel::Medium),
        ] {
            let policy = policy(&learning, kind).await;
            assert_eq!((policy.version, policy.risk_level(), policy.threshold), (0, risk, 3));
            assert_eq!(policy.counting(), Counting::DistinctVoters);
            assert_eq!((policy.half_life, policy.updated_at), (None, None));
            assert_eq!((policy.max_derived_voters, policy.max_counted_feedback), (1, 10_000));
            assert_eq!((policy.max_resources, policy.max_value_bytes), (2_000_000, 524_288));
        }
    }

    async fn a_lower_threshold_applies_pending_values(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        for input in ["one", "two", "three"] {
            for reporter in ["a", "b"] {
                feedback.learn(says(reporter, verb(input, "create_csa"))).await;
            }
        }
        let updated = update(&learning, Policy { threshold: 2, ..phrases() }).await;
        assert_eq!((updated.version, updated.threshold), (1, 2));
        eventually("every pending contest is evaluated again", || async {
            let policy = policy(&learning, ResourceKind::InvocationPhrase).await;
            holds(policy.reevaluation_remaining == 0, || format!("{policy:?}"))
        })
        .await;
        for input in ["one", "two", "three"] {
            assert_eq!(learning.verb_for(input).await, "create_csa");
        }
        let log = learning.revisions().await;
        assert!(log.iter().all(|revision| revision.cause() == Cause::Policy));
        assert!(log.iter().flat_map(|revision| &revision.changes).all(|change| change.policy_version == 1));
    }

    async fn a_higher_threshold_withdraws_nothing(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        for reporter in ["a", "b", "c"] {
            feedback.learn(says(reporter, verb(PHRASE, "create_csa"))).await;
        }
        update(&learning, Policy { threshold: 10, ..phrases() }).await;
        let outcome = feedback.learn(says("d", verb(PHRASE, "create_csa"))).await.outcome.unwrap();
        assert_eq!((outcome.state(), outcome.threshold_applied), (OutcomeState::Applied, 10));
        assert_eq!(learning.verb_for(PHRASE).await, "create_csa");
    }

    async fn high_risk_values_await_review_whatever_their_count(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        update(&learning, Policy { risk_level: RiskLevel::High.into(), ..phrases() }).await;
        for reporter in ["a", "b", "c", "d", "e"] {
            let outcome = feedback.learn(says(reporter, verb(PHRASE, "create_csa"))).await.outcome.unwrap();
            assert_eq!((outcome.state(), outcome.reason.as_str()), (OutcomeState::AwaitingReview, "HIGH_RISK"));
        }
        assert_eq!(learning.verb_for(PHRASE).await, "");
        let waiting = learning.candidate_for(PHRASE, "create_csa").await;
        learning.approve(&waiting).await.unwrap();
        assert_eq!(learning.verb_for(PHRASE).await, "create_csa");
    }

    async fn occurrences_can_be_what_counts(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        update(&learning, Policy { counting: Counting::Occurrences.into(), ..phrases() }).await;
        for _ in 0..2 {
            feedback.learn(says("jane", verb(PHRASE, "create_csa"))).await;
        }
        let outcome = feedback.learn(says("jane", verb(PHRASE, "create_csa"))).await.outcome.unwrap();
        assert_eq!((outcome.state(), outcome.reporter_count, outcome.occurrence_count), (OutcomeState::Applied, 1, 3));
    }

    async fn a_full_namespace_sends_promotions_to_review(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let limit = Policy {
            kind: ResourceKind::EntityAlias.into(),
            max_resources: 2,
            ..Policy::default()
        };
        update(&learning, limit).await;
        for name in ["one", "two"] {
            feedback.learn(says("jane", alias(name, "person-1"))).await;
        }
        let outcome = feedback.learn(says("jane", alias("three", "person-1"))).await.outcome.unwrap();
        assert_eq!((outcome.state(), outcome.reason.as_str()), (OutcomeState::AwaitingReview, "RESOURCE_LIMIT"));
        assert_eq!(learning.resources_in(NAMESPACE).await.len(), 2);
    }

    async fn only_fields_named_by_the_mask_change(system) {
        let learning = system.learning();
        update(&learning, Policy { threshold: 5, max_derived_voters: 7, ..phrases() }).await;
        let request = UpdatePolicyRequest {
            policy: Some(Policy {
                namespace: NAMESPACE.into(),
                threshold: 9,
                max_derived_voters: 2,
                ..phrases()
            }),
            update_mask: Some(prost_types::FieldMask { paths: vec!["threshold".into()] }),
            ..UpdatePolicyRequest::default()
        };
        let updated = answered(learning.policies.clone().update_policy(request).await).policy.unwrap();
        assert_eq!((updated.threshold, updated.max_derived_voters, updated.version), (9, 7, 2));
    }
}
