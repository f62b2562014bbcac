//! Phrases that nobody corrected: what nodes and the service answer by similar ones, what would change, and what is proposed for
//! queries that found nothing.

use emend_core::{Kind, Namespace};
use emend_proto::{
    common::v1::{ResourceKey, ResourceKind},
    feedback::v1::{Query, QueryInteraction, RecordInteractionRequest, RecordQueryRequest},
    learning::v1::{
        CandidateOrigin, CandidateStatus, ListCandidatesRequest, NearStatus, Policy, PreviewCandidateRequest,
        PreviewPolicyRequest, PreviewQuery, ResolveRequest, ResolveResponse,
    },
};
use emend_tests::{
    both_databases,
    harness::{
        NAMESPACE, System, answered, eventually,
        node::Node,
        says,
        says::{phrase, phrase_key, value_of, verb_value},
    },
};
use tokio::time::timeout;

pub(crate) const LOST: &str = "report_lost_card";
const BALANCE: &str = "show_balance";
pub(crate) const ASKED: &str = "i think i lost my card";

/// Teaches two verbs, enough for a model; the last revision.
pub(crate) async fn teach(system: &System) -> i64 {
    let learning = system.learning();
    let mut revision = 0;
    for thing in [
        "card",
        "bank card",
        "credit card",
        "debit card",
        "red card",
        "blue card",
    ] {
        for said in [
            format!("i lost my {thing}"),
            format!("my {thing} was stolen"),
            format!("block the {thing}"),
        ] {
            revision = learning.put(phrase_key(&said), verb_value(LOST)).await.revision;
        }
    }
    for account in [
        "account",
        "bank account",
        "savings",
        "current account",
        "old account",
        "deposit",
    ] {
        for said in [
            format!("what is the balance of my {account}"),
            format!("how much money is in my {account}"),
            format!("show me my {account} balance"),
        ] {
            revision = learning
                .put(phrase_key(&said), verb_value(BALANCE))
                .await
                .revision;
        }
    }
    revision
}

pub(crate) async fn resolved(system: &System, phrase: &str) -> ResolveResponse {
    let learning = system.learning();
    let request = ResolveRequest {
        namespace: NAMESPACE.into(),
        kind: ResourceKind::InvocationPhrase.into(),
        phrase: phrase.into(),
        near: true,
        min_revision: learning.head().await,
        ..ResolveRequest::default()
    };
    answered(learning.resources.clone().resolve(request).await)
}

fn searched(text: &str, searches: i64, down: i64) -> PreviewQuery {
    PreviewQuery {
        text: text.into(),
        search_count: searches,
        rated_down_count: down,
        ..PreviewQuery::default()
    }
}

both_databases! {
    async fn nodes_and_the_service_answer_alike_by_what_was_learned_for_similar_phrases(system) {
        let revision = teach(system).await;
        let told = resolved(system, ASKED).await;
        assert_eq!((told.r#match.clone(), told.near_status()), (None, NearStatus::Ready));
        let near = told.near.unwrap();
        assert_eq!(near.choice, LOST);
        assert!(near.confidence >= 0.8 && near.because[0].choice == LOST, "{near:?}");
        assert_eq!(resolved(system, "i lost my card").await.near, None, "it was learned itself");

        let node = Node::start(system.learning[0].front.address(), "search-1").await;
        node.until(revision).await;
        let patience = emend_tests::harness::wait::PATIENCE;
        timeout(patience, node.view().wait_until_near()).await.expect("the models are made");
        let namespace = Namespace::parse(NAMESPACE).unwrap();
        let ask = || node.view().resolve_near(&namespace, Kind::InvocationPhrase, ASKED, None, []).unwrap();
        let same = ask().near.unwrap();
        assert_eq!((&*same.choice, same.revision.to_string()), (&*near.choice, near.model));
        assert_eq!(f64::from(same.confidence).to_bits(), near.confidence.to_bits());

        // How near answers are given is a resource like others.
        let key = ResourceKey {
            namespace: NAMESPACE.into(),
            kind: ResourceKind::NearLookup.into(),
            key: "invocation_phrase".into(),
            ..ResourceKey::default()
        };
        let set = system.learning().put(key.clone(), value_of(Kind::NearLookup, "min_confidence=1")).await;
        node.until(set.revision).await;
        assert_eq!(ask().near, None);
        assert_eq!(resolved(system, ASKED).await.near, None);
        let deleted = system.learning().delete(key).await.unwrap();
        node.until(deleted).await;
        assert_eq!(ask().near.unwrap().choice, same.choice, "the default applies again");
    }

    async fn a_preview_says_which_answers_would_change_and_changes_nothing(system) {
        teach(system).await;
        let (feedback, learning) = (system.feedback(), system.learning());
        for reporter in ["ann", "bob"] {
            feedback.learn(says(reporter, phrase("Freeze the plastic", LOST))).await;
        }
        let head = learning.head().await;
        let candidate = learning.candidate_for("freeze the plastic", LOST).await;
        let queries = vec![searched("freeze the plastic", 3, 1), searched("FREEZE the plastic ", 2, 1), searched("i lost my card", 9, 0)];
        let request = PreviewCandidateRequest {
            namespace: NAMESPACE.into(),
            candidate_id: candidate.candidate_id,
            queries: queries.clone(),
        };
        let previewed = answered(learning.candidates.clone().preview_candidate(request).await);
        let changes = previewed.changes.unwrap();
        assert_eq!((changes.query_count, changes.changed_query_count, changes.changed_search_count), (2, 1, 5));
        let [answer] = &changes.answers[..] else { panic!("{changes:?}") };
        assert_eq!((&*answer.text, &*answer.after, answer.after_is_near), ("freeze the plastic", LOST, false));
        assert_eq!((answer.rated_for_count, answer.rated_against_count), (2, 0));
        assert_eq!((answer.corrected_for_count, answer.corrected_against_count), (2, 0));

        // With a threshold of two, both votes apply it at once.
        let request = PreviewPolicyRequest {
            policy: Some(Policy {
                namespace: NAMESPACE.into(),
                kind: ResourceKind::InvocationPhrase.into(),
                threshold: 2,
                ..Policy::default()
            }),
            queries,
            ..PreviewPolicyRequest::default()
        };
        let previewed = answered(learning.policies.clone().preview_policy(request).await);
        assert_eq!((previewed.contest_count, previewed.resource_count), (1, 1));
        assert_eq!(previewed.resources[0].key.as_ref().unwrap().key, "freeze the plastic");
        assert_eq!(previewed.resources[0].before, None);
        assert_eq!(previewed.changes.unwrap().changed_query_count, 1);
        assert_eq!(learning.head().await, head, "nothing was written");
        assert_eq!(learning.verb_for("freeze the plastic").await, "");
    }

    async fn a_query_that_finds_nothing_and_is_near_to_what_was_learned_or_clicked_waits_for_a_person(system) {
        teach(system).await;
        let searched = [("q", ASKED, 0), ("apart", "a charge back form", 0), ("whole", "a chargeback form", 2)];
        let queries = (0..3).flat_map(|session| {
            searched.map(|(name, text, hits)| Query {
                query_id: format!("{name}-{session}"),
                query_text: text.into(),
                session_id: format!("{name}-{session}"),
                hit_count: Some(hits),
                ..Query::default()
            })
        });
        let request = RecordQueryRequest { namespace: NAMESPACE.into(), queries: queries.collect() };
        let feedback = system.feedback();
        assert_eq!(answered(feedback.queries.clone().record_query(request).await).dropped_count, 0);
        let clicks = (0..3).map(|session| QueryInteraction {
            query_id: format!("whole-{session}"),
            object_id: "form-1".into(),
            action: "click".into(),
            ..QueryInteraction::default()
        });
        let request = RecordInteractionRequest { namespace: NAMESPACE.into(), interactions: clicks.collect() };
        answered(feedback.queries.clone().record_interaction(request).await);
        eventually("they are stored", || async {
            let listed = emend_proto::feedback::v1::ListQueriesRequest {
                namespace: NAMESPACE.into(),
                ..Default::default()
            };
            let stored = answered(feedback.queries.clone().list_queries(listed).await).queries;
            let clicked = stored.iter().filter(|query| !query.interactions.is_empty()).count();
            let counts = (stored.len(), clicked);
            if counts == (9, 3) { Ok(()) } else { Err(format!("{counts:?}, not 9 and 3")) }
        })
        .await;

        // A replica looks for them when it starts, and from then on every five minutes.
        system.stop_feedback().await;
        system.start_feedback().await;
        let learning = system.learning();
        let (mined, respelled) = eventually("both are proposed", || async {
            let request = ListCandidatesRequest { namespace: NAMESPACE.into(), ..ListCandidatesRequest::default() };
            let found = learning.list_candidates(request).await;
            let found = found.into_iter().filter(|candidate| candidate.origin() == CandidateOrigin::Mined);
            let (phrases, synonyms): (Vec<_>, Vec<_>) =
                found.partition(|mined| mined.key.as_ref().unwrap().kind() == ResourceKind::InvocationPhrase);
            match (&phrases[..], &synonyms[..]) {
                ([phrase], [synonym]) => Ok((phrase.clone(), synonym.clone())),
                found => Err(format!("{found:?}")),
            }
        })
        .await;
        for mined in [&mined, &respelled] {
            assert_eq!(mined.status(), CandidateStatus::AwaitingReview);
        }
        let key = respelled.key.as_ref().unwrap();
        assert_eq!((&*key.key, &*key.qualifier), ("charge back", "chargeback"));
        assert_eq!(
            learning.candidate(&respelled.candidate_id).await.history[0].reason,
            "searched 3 times in 3 sessions and found nothing; in 0 of them something else was searched for then, and clicked; \
             it is spelled like a query of which results were clicked in 3 sessions"
        );
        assert_eq!(mined.key.as_ref().unwrap().key, ASKED);
        assert_eq!(says::maps_to(mined.value.as_ref()), LOST);
        let details = learning.candidate(&mined.candidate_id).await;
        let reason = &details.history[0].reason;
        assert!(reason.starts_with("searched 3 times in 3 sessions and found nothing"), "{reason}");
        assert!(reason.contains("near to “i lost my card”"), "{reason}");
        assert_eq!(learning.verb_for(ASKED).await, "", "it counts for nothing");
    }
}
