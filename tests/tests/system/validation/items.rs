//! Items of batches: each bad one is told everything that is wrong with it, with its own paths, and its siblings
//! succeed.

use emend_base::status::{Explained, from_item_status};
use emend_proto::{
    common::v1::{
        Correction, OutcomeState, Reporter, ResourceValue, Scope, VerbCorrection,
        correction::Correction as Form,
    },
    feedback::v1::{BatchSubmitFeedbackRequest, ListFeedbackRequest, SubmitFeedbackRequest},
    learning::v1::{
        ApproveCandidateRequest, BatchApproveCandidatesRequest, BatchRejectCandidatesRequest, Event,
        EventResult, FeedbackRecorded, FeedbackRedacted, FeedbackRetracted, ImportHeader, ImportRow,
        IngestRequest, ListCandidatesRequest, RejectCandidateRequest, event, event_result,
    },
};
use emend_tests::{
    both_databases,
    harness::{
        NAMESPACE, alias, answered, refused,
        rpc::{fields, item_refusal},
        says,
        says::{entity_value, verb_value},
        verb,
    },
};
use prost::Message as _;
use prost_types::Timestamp;
use tonic::Code;

use super::{Case, NOBODY, NUL, REASON, UNKNOWN, long, table, written};

/// The fields that a refusal for bad input names, sorted.
#[track_caller]
fn violated(refusal: &Explained) -> Vec<&str> {
    assert_eq!(
        (refusal.code, refusal.reason.as_deref()),
        (Code::InvalidArgument, Some(REASON)),
        "{refusal}"
    );
    fields(refusal)
}

both_databases! {
    async fn every_violation_of_a_bad_feedback_item_in_a_batch_is_named(system) {
        let feedback = system.feedback();
        let mut requests = vec![says("jane", alias("jd", "person-1"))];
        let mut expected = vec![vec![]];
        // Each bad submission of the table. An item's wait is ignored, but has to be valid.
        for Case { path, messages, fields, .. } in table() {
            if path.ends_with("/SubmitFeedback") {
                requests.push(SubmitFeedbackRequest::decode(&*messages[0]).unwrap());
                expected.push(fields);
            }
        }
        requests.push(says("jane", alias("ms", "person-2")));
        expected.push(vec![]);
        let request = BatchSubmitFeedbackRequest { requests: requests.clone(), wait: 0 };
        let results = answered(feedback.service.clone().batch_submit_feedback(request).await).results;
        assert_eq!(results.len(), requests.len());
        for ((result, expected), sent) in results.iter().zip(expected).zip(requests) {
            let refusal = item_refusal(result.status.as_ref());
            let named = refusal.as_ref().map(violated).unwrap_or_default();
            assert_eq!(named, expected, "{sent:?}");
            assert_eq!(result.feedback.is_some(), expected.is_empty(), "{sent:?}");
        }
        assert_eq!(feedback.all_delivered(NAMESPACE).await.len(), 2);
    }

    async fn every_violation_of_a_bad_review_item_in_a_batch_is_named(system) {
        let learning = system.learning();
        let before = written(system).await;
        let approve = ApproveCandidateRequest {
            namespace: "Not OK".into(),
            candidate_id: "x".into(),
            etag: long(65),
            reason: long(2_001),
            on_behalf_of: NUL.into(),
            ..ApproveCandidateRequest::default()
        };
        let batch = BatchApproveCandidatesRequest { requests: vec![approve] };
        let results = answered(learning.candidates.clone().batch_approve_candidates(batch).await).results;
        let refusal = item_refusal(results[0].status.as_ref()).unwrap();
        assert_eq!(violated(&refusal), ["candidate_id", "etag", "namespace", "on_behalf_of", "reason"]);
        assert_eq!(results[0].candidate, None);

        let reject = RejectCandidateRequest {
            namespace: long(64),
            candidate_id: "x".into(),
            etag: NUL.into(),
            reason: "  ".into(),
            on_behalf_of: long(129),
        };
        let requests = vec![RejectCandidateRequest::default(), reject];
        let batch = BatchRejectCandidatesRequest { requests };
        let results = answered(learning.candidates.clone().batch_reject_candidates(batch).await).results;
        assert_eq!(results.len(), 2);
        for (result, expected) in results.iter().zip([
            vec!["candidate_id", "namespace", "reason"],
            vec!["candidate_id", "etag", "namespace", "on_behalf_of", "reason"],
        ]) {
            let refusal = item_refusal(result.status.as_ref()).unwrap();
            assert_eq!(violated(&refusal), expected);
            assert_eq!(result.candidate, None);
        }
        assert_eq!(written(system).await, before);
    }

    async fn every_violation_of_a_bad_edit_is_named(system) {
        let learning = system.learning();
        system.feedback().learn(says("jane", verb("set up a csa", "create_csa"))).await;
        let candidate = learning.candidate_for("set up a csa", "create_csa").await;
        let before = written(system).await;
        for (edited, expected) in [
            (ResourceValue::default(), vec!["edited_value.value"]),
            (entity_value("x"), vec!["edited_value.value"]),
            (
                ResourceValue { display: long(513), ..verb_value("") },
                vec!["edited_value.display", "edited_value.invocation_phrase.verb"],
            ),
        ] {
            let request = ApproveCandidateRequest {
                namespace: NAMESPACE.into(),
                candidate_id: candidate.candidate_id.clone(),
                edited_value: Some(edited.clone()),
                ..ApproveCandidateRequest::default()
            };
            let refusal = refused(learning.candidates.clone().approve_candidate(request).await);
            assert_eq!(violated(&refusal), expected, "{edited:?}");
        }
        assert_eq!(written(system).await, before);
    }

    async fn every_violation_of_a_bad_event_is_named(system) {
        let learning = system.learning();
        let before = written(system).await;
        let bad_time = Some(Timestamp { seconds: 0, nanos: -1 });
        let good = Event {
            event_id: NOBODY.into(),
            feedback_id: NOBODY.into(),
            namespace: NAMESPACE.into(),
            accept_order: 1,
            ..Event::default()
        };
        let right = Event {
            event: Some(event::Event::Recorded(FeedbackRecorded {
                reporter: Some(Reporter { id: "jane".into(), ..Reporter::default() }),
                caller: "web".into(),
                correction: Some(alias("jd", "person-1")),
                received_at: Some(Timestamp { seconds: 1_800_000_000, nanos: 0 }),
                ..FeedbackRecorded::default()
            })),
            ..good.clone()
        };
        let cases = [
            (
                // A bad traceparent is ignored.
                Event { traceparent: "nonsense".into(), ..Event::default() },
                vec!["accept_order", "event", "event_id", "feedback_id", "namespace"],
            ),
            (
                Event {
                    event_id: "x".into(),
                    feedback_id: NUL.into(),
                    namespace: "Not OK".into(),
                    accept_order: -1,
                    event: Some(event::Event::Recorded(FeedbackRecorded {
                        reporter: Some(Reporter {
                            id: long(129),
                            session_id: long(129),
                            ..Reporter::default()
                        }),
                        caller: NUL.into(),
                        query_id: long(129),
                        reason: long(2_001),
                        context: [("k".to_owned(), NUL.to_owned())].into(),
                        scope: UNKNOWN,
                        correction: Some(Correction {
                            correction: Some(Form::Verb(VerbCorrection::default())),
                        }),
                        received_at: bad_time,
                        erased_voter: None,
                        sender_roles: vec!["NOT OK".into()],
                    })),
                    ..Event::default()
                },
                vec![
                    "accept_order",
                    "event_id",
                    "feedback_id",
                    "namespace",
                    "recorded.caller",
                    "recorded.context[\"k\"]",
                    "recorded.correction.verb.correct_choice",
                    "recorded.correction.verb.original_input",
                    "recorded.query_id",
                    "recorded.reason",
                    "recorded.received_at",
                    "recorded.reporter.id",
                    "recorded.reporter.session_id",
                    "recorded.scope",
                    "recorded.sender_roles",
                ],
            ),
            (
                Event {
                    event: Some(event::Event::Recorded(FeedbackRecorded {
                        context: (0..33).map(|n| (n.to_string(), String::new())).collect(),
                        ..FeedbackRecorded::default()
                    })),
                    ..good.clone()
                },
                vec![
                    "recorded.caller",
                    "recorded.context",
                    "recorded.correction",
                    "recorded.received_at",
                ],
            ),
            (
                // One user's own without the user, and with nothing to correct.
                Event {
                    event: Some(event::Event::Recorded(FeedbackRecorded {
                        caller: "web".into(),
                        scope: Scope::User.into(),
                        correction: Some(Correction {
                            correction: Some(Form::Verb(VerbCorrection {
                                original_input: "set up a csa".into(),
                                system_choice: "create_csa".into(),
                                correct_choice: "create_csa".into(),
                            })),
                        }),
                        received_at: Some(Timestamp { seconds: i64::MAX, nanos: 0 }),
                        ..FeedbackRecorded::default()
                    })),
                    ..good.clone()
                },
                vec![
                    "recorded.correction.verb.correct_choice",
                    "recorded.received_at",
                    "recorded.reporter.id",
                ],
            ),
            (
                Event {
                    event: Some(event::Event::Retracted(FeedbackRetracted::default())),
                    ..good.clone()
                },
                vec!["retracted.caller", "retracted.retracted_at"],
            ),
            (
                Event {
                    event: Some(event::Event::Redacted(FeedbackRedacted::default())),
                    ..good.clone()
                },
                vec!["redacted.caller", "redacted.redacted_at"],
            ),
            (
                Event {
                    event: Some(event::Event::Retracted(FeedbackRetracted {
                        caller: String::new(),
                        // It is not stored there, so its length does not matter.
                        reason: long(2_001),
                        retracted_at: bad_time,
                        sender_roles: vec!["a".into(); 17],
                    })),
                    ..good.clone()
                },
                vec!["retracted.caller", "retracted.retracted_at", "retracted.sender_roles"],
            ),
            (
                Event {
                    event: Some(event::Event::Redacted(FeedbackRedacted {
                        caller: NUL.into(),
                        redacted_at: bad_time,
                    })),
                    ..good
                },
                vec!["redacted.caller", "redacted.redacted_at"],
            ),
        ];
        let (events, expected): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
        let batches = tokio_stream::iter([IngestRequest { events, ..Default::default() }]);
        let mut answers = answered(learning.ingest.clone().ingest(batches).await);
        let results = answers.message().await.unwrap().unwrap().results;
        assert_eq!(results.len(), expected.len());
        for (result, expected) in results.iter().zip(expected) {
            let Some(event_result::Result::Error(error)) = &result.result else {
                panic!("taken: {result:?}")
            };
            let refusal = from_item_status(error).map(Explained::from).unwrap();
            assert_eq!(violated(&refusal), expected);
        }
        assert_eq!(written(system).await, before);

        // Had a bad one been noted, this one with its id would be taken for a repetition.
        let well = tokio_stream::iter([IngestRequest { events: vec![right], ..Default::default() }]);
        let mut answers = answered(learning.ingest.clone().ingest(well).await);
        let results = answers.message().await.unwrap().unwrap().results;
        let [EventResult { result: Some(event_result::Result::Outcome(outcome)), .. }] = &results[..] else {
            panic!("refused: {results:?}")
        };
        assert_eq!(outcome.state(), OutcomeState::Applied, "{outcome:?}");
    }

    async fn bad_rows_of_an_import_are_named_by_line(system) {
        let learning = system.learning();
        let before = written(system).await;
        let rows = vec![
            ImportRow { line: 3, correction: Some(alias("jd", "person-1")), user_id: String::new() },
            ImportRow { line: 4, correction: Some(alias("", NUL)), user_id: long(129) },
            ImportRow { line: 5, correction: None, user_id: String::new() },
        ];
        let header = ImportHeader { namespace: NAMESPACE.into(), ..ImportHeader::default() };
        let refusal = refused(learning.import(header, rows).await);
        assert_eq!(
            violated(&refusal),
            [
                "rows[line 4].correction.entity.correct_choice",
                "rows[line 4].correction.entity.original_input",
                "rows[line 4].user_id",
                "rows[line 5].correction",
            ]
        );
        assert_eq!(written(system).await, before);
    }

    async fn a_page_token_of_another_list_is_refused(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        for name in ["one", "two", "three"] {
            feedback.learn(says("jane", alias(name, "person-1"))).await;
        }
        let list = ListFeedbackRequest { page_size: 1, ..feedback.list_request(NAMESPACE) };
        let page = answered(feedback.service.clone().list_feedback(list.clone()).await);
        let other = ListFeedbackRequest {
            page_token: page.next_page_token.clone(),
            reporter_id: "jane".into(),
            ..list
        };
        let refusal = refused(feedback.service.clone().list_feedback(other).await);
        assert_eq!(violated(&refusal), ["page_token"]);
        let candidates = ListCandidatesRequest {
            namespace: NAMESPACE.into(),
            page_token: page.next_page_token,
            ..ListCandidatesRequest::default()
        };
        let refusal = refused(learning.candidates.clone().list_candidates(candidates).await);
        assert_eq!(violated(&refusal), ["page_token"]);
    }
}
