//! From feedback to learned: nothing that was acknowledged is lost, nothing counts twice, and what learning-svc can't
//! take today it gets tomorrow.

use std::{collections::BTreeSet, time::Duration};

use emend_proto::{
    common::v1::{Correction, OutcomeState, Reporter, correction::Correction as Form},
    feedback::v1::{
        BatchSubmitFeedbackRequest, DeadLetter, DeliveryState, ListDeadLettersRequest,
        RedriveDeadLettersRequest, RetractFeedbackRequest, SubmitFeedbackRequest, Wait,
    },
    learning::v1::{
        Event, EventResult, FeedbackRecorded, FeedbackRedacted, FeedbackRetracted, IngestRequest, event,
        event_result,
    },
};
use emend_tests::{
    both_databases,
    harness::{
        Learning, NAMESPACE, answered, as_stored, eventually, refused,
        refusing::{REFUSAL, Refusing},
        rpc::item_refusal,
        says, verb,
        wait::holds,
    },
};
use tonic::Code;
use uuid::Uuid;

const PHRASE: &str = "set up a csa";

both_databases! {
    async fn waiting_for_the_evaluation_answers_with_the_outcome(system) {
        // The call itself answers; no second call is made.
        let stored = system.feedback().submit(says("jane", verb(PHRASE, "create_csa"))).await;
        let outcome = stored.outcome.unwrap();
        assert_eq!((outcome.state(), outcome.reason.as_str()), (OutcomeState::Pending, "BELOW_THRESHOLD"));
        assert_eq!(stored.delivery_state, DeliveryState::Delivered as i32);
        assert!(outcome.evaluated_at.is_some());
    }

    async fn by_default_the_answer_is_that_it_is_stored(system) {
        let request = SubmitFeedbackRequest {
            wait: Wait::Unspecified.into(),
            ..says("jane", verb(PHRASE, "create_csa"))
        };
        let feedback = system.feedback();
        let stored = feedback.submit(request.clone()).await;
        assert_eq!(stored.correction, request.correction);
        assert_eq!(stored.caller, "anonymous");
        assert!(stored.accept_order > 0 && stored.received_at.is_some());
        let later = feedback.delivered(NAMESPACE, &stored.feedback_id).await;
        assert_eq!(later.outcome.unwrap().reporter_count, 1);
    }

    async fn a_later_correction_has_a_higher_accept_order(system) {
        let feedback = system.feedback();
        let mut last = 0;
        for reporter in ["a", "b", "c"] {
            let stored = feedback.submit(says(reporter, verb(PHRASE, "create_csa"))).await;
            assert!(stored.accept_order > last);
            last = stored.accept_order;
        }
    }

    async fn a_repeated_request_id_is_the_same_feedback(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let request = SubmitFeedbackRequest {
            request_id: "r-1".into(),
            ..says("jane", verb(PHRASE, "create_csa"))
        };
        let first = feedback.learn(request.clone()).await;
        let second = feedback.learn(request.clone()).await;
        assert_eq!(as_stored(second), as_stored(first.clone()));
        let candidate = learning.candidate_for(PHRASE, "create_csa").await;
        assert_eq!(candidate.occurrence_count, 1);

        let other = SubmitFeedbackRequest {
            correction: Some(verb(PHRASE, "create_isda")),
            ..request.clone()
        };
        let refusal = refused(feedback.service.clone().submit_feedback(other).await);
        assert_eq!(refusal.code, Code::AlreadyExists);
        assert_eq!(refusal.reason.as_deref(), Some("REQUEST_ID_REUSED"));

        // Another application's ids are its own.
        let elsewhere = SubmitFeedbackRequest { namespace: "elsewhere".into(), ..request };
        assert_ne!(feedback.learn(elsewhere).await.feedback_id, first.feedback_id);
    }

    async fn the_same_request_id_at_once_is_stored_once(system) {
        let feedback = system.feedback();
        let request = SubmitFeedbackRequest {
            request_id: Uuid::from_u128(7).to_string(),
            ..says("jane", verb(PHRASE, "create_csa"))
        };
        let at_once = (0..20).map(|_| feedback.submit(request.clone()));
        let stored = futures::future::join_all(at_once).await;
        let ids: std::collections::HashSet<_> = stored.iter().map(|stored| &stored.feedback_id).collect();
        assert_eq!(ids.len(), 1);
        assert_eq!(feedback.all_delivered(NAMESPACE).await.len(), 1);
    }

    async fn a_batch_gives_each_item_its_own_answer(system) {
        let feedback = system.feedback();
        let good = SubmitFeedbackRequest {
            request_id: "r-1".into(),
            ..says("jane", verb(PHRASE, "create_csa"))
        };
        let reused = SubmitFeedbackRequest {
            correction: Some(verb(PHRASE, "create_isda")),
            ..good.clone()
        };
        let bad = SubmitFeedbackRequest {
            namespace: "Not a namespace".into(),
            correction: Some(Correction { correction: None }),
            ..good.clone()
        };
        let request = BatchSubmitFeedbackRequest {
            requests: vec![good.clone(), bad, reused, good, says("ann", verb(PHRASE, "create_csa"))],
            wait: Wait::Evaluated.into(),
        };
        let results = answered(feedback.service.clone().batch_submit_feedback(request).await).results;
        let codes: Vec<_> = results
            .iter()
            .map(|result| item_refusal(result.status.as_ref()).map(|refusal| refusal.code))
            .collect();
        assert_eq!(
            codes,
            [None, Some(Code::InvalidArgument), Some(Code::AlreadyExists), None, None]
        );
        let id = |index: usize| results[index].feedback.as_ref().map(|stored| stored.feedback_id.clone());
        assert_eq!((id(1), id(2)), (None, None));
        assert_eq!(id(0), id(3));
        assert_ne!(id(0), id(4));
        let learned = results[4].feedback.as_ref().unwrap().outcome.as_ref().unwrap();
        assert_eq!((learned.state(), learned.reason.as_str()), (OutcomeState::Pending, "BELOW_THRESHOLD"));
        assert_eq!(feedback.all_delivered(NAMESPACE).await.len(), 2);
    }

    async fn feedback_sent_while_learning_is_away_is_stored_and_learned_later(system) {
        let feedback = system.feedback();
        system.stop_learning().await;
        let mut ids = Vec::new();
        for reporter in ["a", "b", "c"] {
            let mut request = tonic::Request::new(says(reporter, verb(PHRASE, "create_csa")));
            request.set_timeout(Duration::from_millis(600));
            let stored = answered(feedback.service.clone().submit_feedback(request).await).feedback.unwrap();
            let outcome = stored.outcome.unwrap();
            assert_eq!((outcome.state(), outcome.reason.as_str()), (OutcomeState::Pending, "NOT_EVALUATED"));
            ids.push(stored.feedback_id);
        }
        // One is retracted before learning-svc has heard of it.
        let retract = RetractFeedbackRequest {
            namespace: NAMESPACE.into(),
            feedback_id: ids[0].clone(),
            ..RetractFeedbackRequest::default()
        };
        answered(feedback.service.clone().retract_feedback(retract).await);

        system.start_learning().await;
        let learning = system.learning();
        feedback.all_delivered(NAMESPACE).await;
        let candidate = learning.candidate_for(PHRASE, "create_csa").await;
        assert_eq!(candidate.reporter_count, 2);
        let learned = feedback.learn(says("d", verb(PHRASE, "create_csa"))).await;
        assert_eq!(learned.outcome.unwrap().state(), OutcomeState::Applied);
        assert_eq!(learning.verb_for(PHRASE).await, "create_csa");
    }

    async fn stored_feedback_survives_a_restart_of_either_service(system) {
        let before = system.feedback().learn(says("jane", verb(PHRASE, "create_csa"))).await;
        system.stop_learning().await;
        system.stop_feedback().await;
        system.start_learning().await;
        system.start_feedback().await;
        let feedback = system.feedback();
        let read = feedback.get(NAMESPACE, &before.feedback_id).await;
        assert_eq!(as_stored(read), as_stored(before.clone()));
        feedback.learn(says("ann", verb(PHRASE, "create_csa"))).await;
        let after = feedback.learn(says("tom", verb(PHRASE, "create_csa"))).await;
        assert_eq!(after.outcome.unwrap().state(), OutcomeState::Applied);
        assert!(after.accept_order > before.accept_order);
    }

    async fn feedback_refused_for_good_is_listed_and_can_be_redriven(system) {
        let feedback = system.feedback();
        let refusing = Refusing::start().await;
        let learning = system.learning();
        system.stop_learning().await;
        system.learning[0].front.lead_to(refusing.address());
        let mut ids = Vec::new();
        for reporter in ["a", "b", "c"] {
            let request = SubmitFeedbackRequest {
                wait: Wait::Recorded.into(),
                ..says(reporter, verb(PHRASE, "create_csa"))
            };
            ids.push(feedback.submit(request).await.feedback_id);
        }
        let list = ListDeadLettersRequest { namespace: NAMESPACE.into(), ..Default::default() };
        let letters = eventually("the events are dead letters", || async {
            let page = answered(feedback.service.clone().list_dead_letters(list.clone()).await);
            holds(page.dead_letters.len() == 3, || format!("{page:?}"))?;
            Ok(page.dead_letters)
        })
        .await;
        // Those that died at the same moment come in any order.
        let died = |letter: &DeadLetter| letter.dead_at.map(|at| (at.seconds, at.nanos));
        assert!(letters.is_sorted_by_key(died), "oldest first: {letters:?}");
        let listed: BTreeSet<_> = letters.iter().map(|letter| letter.feedback_id.clone()).collect();
        assert_eq!(listed, ids.iter().cloned().collect());
        assert!(letters.iter().all(|letter| {
            letter.code == i32::from(Code::InvalidArgument) && letter.error.contains(REFUSAL)
                && letter.attempts >= 1 && letter.dead_at.is_some()
        }), "{letters:?}");
        let stored = feedback.get(NAMESPACE, &ids[0]).await;
        assert_eq!(stored.delivery_state(), DeliveryState::DeadLetter);

        system.start_learning().await;
        let redrive = |namespace: &str, event_ids: Vec<String>| {
            let request = RedriveDeadLettersRequest { namespace: namespace.into(), event_ids };
            let mut service = feedback.service.clone();
            async move { answered(service.redrive_dead_letters(request).await).redriven_count }
        };
        assert_eq!(redrive("elsewhere", vec![]).await, 0);
        assert_eq!(redrive("", vec![letters[0].event_id.clone()]).await, 1);
        assert_eq!(redrive(NAMESPACE, vec![]).await, 2);
        for id in &ids {
            feedback.delivered(NAMESPACE, id).await;
        }
        assert_eq!(learning.verb_for(PHRASE).await, "create_csa");
        let left = answered(feedback.service.clone().list_dead_letters(list).await);
        assert_eq!(left.dead_letters, []);
    }

    async fn a_retraction_that_overtakes_its_feedback_leaves_nothing_counted(system) {
        let learning = system.learning();
        let recorded = recorded("jane", PHRASE, "create_csa", 1);
        let retracted = Event {
            event_id: Uuid::from_u128(0xdead).to_string(),
            event: Some(event::Event::Retracted(FeedbackRetracted {
                caller: "web".into(),
                reason: String::new(),
                retracted_at: Some(prost_types::Timestamp { seconds: 1_800_000_001, nanos: 0 }),
                sender_roles: Vec::new(),
            })),
            ..recorded.clone()
        };
        for event in [retracted.clone(), recorded.clone(), retracted, recorded] {
            let results = ingest(&learning, vec![event]).await;
            let Some(event_result::Result::Outcome(outcome)) = &results[0].result else {
                panic!("{results:?}")
            };
            assert_eq!(outcome.state(), OutcomeState::NoEffect);
        }
        for candidate in learning.candidates_for(PHRASE).await {
            assert_eq!((candidate.reporter_count, candidate.occurrence_count), (0, 0));
        }
        let others = [("ann", 2), ("tom", 3)].map(|(reporter, order)| recorded_event(reporter, order));
        ingest(&learning, others.to_vec()).await;
        assert_eq!(learning.candidate_for(PHRASE, "create_csa").await.reporter_count, 2);
        assert_eq!(learning.verb_for(PHRASE).await, "");
    }

    async fn an_event_that_is_delivered_twice_counts_once(system) {
        let learning = system.learning();
        let event = recorded_event("jane", 1);
        let first = ingest(&learning, vec![event.clone(), event.clone()]).await;
        let second = ingest(&learning, vec![event]).await;
        assert_eq!(first[0], first[1]);
        assert_eq!(first[0], second[0]);
        let candidate = learning.candidate_for(PHRASE, "create_csa").await;
        assert_eq!((candidate.reporter_count, candidate.occurrence_count), (1, 1));
    }

    async fn erasing_a_reporter_leaves_votes_and_counts(system) {
        let learning = system.learning();
        let recorded = recorded_event("jane", 1);
        let redacted = Event {
            event_id: Uuid::from_u128(0xdead).to_string(),
            event: Some(event::Event::Redacted(FeedbackRedacted {
                caller: "web".into(),
                redacted_at: Some(prost_types::Timestamp { seconds: 1_800_000_001, nanos: 0 }),
            })),
            ..recorded.clone()
        };
        ingest(&learning, vec![recorded]).await;
        let candidate = learning.candidate_for(PHRASE, "create_csa").await;
        assert_eq!(learning.candidate(&candidate.candidate_id).await.votes[0].reporter_id, "jane");
        ingest(&learning, vec![redacted]).await;
        let shown = learning.candidate(&candidate.candidate_id).await;
        assert_eq!(shown.votes[0].reporter_id, "");
        assert_eq!(shown.candidate.unwrap().reporter_count, 1);
        // The same voter still has one vote.
        ingest(&learning, vec![recorded_event("jane", 2)]).await;
        assert_eq!(learning.candidate_for(PHRASE, "create_csa").await.reporter_count, 1);
    }

    async fn votes_do_not_depend_on_the_order_of_delivery(system) {
        let learning = system.learning();
        // Jane first said one thing and then the other; her last statement counts, whichever arrives first.
        let newer = recorded("jane", PHRASE, "create_csa", 20);
        let older = recorded("jane", PHRASE, "create_isda", 10);
        ingest(&learning, vec![newer]).await;
        ingest(&learning, vec![older]).await;
        assert_eq!(learning.candidate_for(PHRASE, "create_csa").await.reporter_count, 1);
        assert_eq!(learning.candidate_for(PHRASE, "create_isda").await.reporter_count, 0);
    }

    async fn reporters_without_a_name_count_as_one_per_caller(system) {
        let feedback = system.feedback();
        for session in ["s1", "s2", "s3"] {
            let request = SubmitFeedbackRequest {
                reporter: Some(Reporter { session_id: session.into(), ..Reporter::default() }),
                ..says("", verb(PHRASE, "create_csa"))
            };
            feedback.learn(request).await;
        }
        let candidate = system.learning().candidate_for(PHRASE, "create_csa").await;
        assert_eq!((candidate.reporter_count, candidate.occurrence_count), (1, 3));
    }
}

fn recorded_event(reporter: &str, accept_order: i64) -> Event {
    recorded(reporter, PHRASE, "create_csa", accept_order)
}

/// An event as feedback-svc would send it.
fn recorded(reporter: &str, phrase: &str, choice: &str, accept_order: i64) -> Event {
    let number = u128::try_from(accept_order).unwrap();
    let correction = verb(phrase, choice);
    assert!(matches!(correction.correction, Some(Form::Verb(_))));
    Event {
        event_id: Uuid::from_u128(0x1000 + number).to_string(),
        feedback_id: Uuid::from_u128(0x2000 + number).to_string(),
        namespace: NAMESPACE.into(),
        accept_order,
        traceparent: String::new(),
        event: Some(event::Event::Recorded(FeedbackRecorded {
            reporter: Some(Reporter {
                id: reporter.into(),
                ..Reporter::default()
            }),
            caller: "web".into(),
            correction: Some(correction),
            received_at: Some(prost_types::Timestamp {
                seconds: 1_800_000_000,
                nanos: 0,
            }),
            ..FeedbackRecorded::default()
        })),
    }
}

async fn ingest(learning: &Learning, events: Vec<Event>) -> Vec<EventResult> {
    let batches = tokio_stream::iter([IngestRequest {
        events,
        ..Default::default()
    }]);
    let mut answers = answered(learning.ingest.clone().ingest(batches).await);
    let answer = answers.message().await.unwrap().expect("an answer per batch");
    assert_eq!(answers.message().await.unwrap(), None);
    answer.results
}
