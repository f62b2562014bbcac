//! What people write, and what documents say, appears in no log, no span and no metric.

use emend_proto::{
    common::v1::{Correction, Reporter, Scope, SearchRatingValue, VerbCorrection, correction},
    feedback::v1::{
        Query, QueryResult, RecordQueryRequest, RetractFeedbackRequest, SubmitFeedbackRequest, Wait,
    },
};
use emend_tests::harness::{
    Feedback, Learning, eventually, http::Scraped, rpc::answered, says::search_rates, wait::holds,
};
use tonic::Request;

use super::pair::Traced;

/// Occurs in every free text, and nowhere else.
const MARK: &str = "wombat";

fn marked(number: u8) -> SubmitFeedbackRequest {
    SubmitFeedbackRequest {
        namespace: "fund-admin".into(),
        reporter: Some(Reporter {
            id: format!("{MARK}-reporter"),
            session_id: format!("{MARK}-session"),
            client: format!("{MARK}/1.0"),
            client_key: format!("{MARK}-key"),
        }),
        query_id: format!("{MARK}-query"),
        reason: format!("because {MARK} said so"),
        context: [("topic".to_owned(), format!("{MARK} matters"))].into(),
        scope: Scope::Global.into(),
        wait: Wait::Evaluated.into(),
        correction: Some(Correction {
            correction: Some(correction::Correction::Verb(VerbCorrection {
                original_input: format!("set up a {MARK} {number}"),
                system_choice: format!("create_{MARK}"),
                correct_choice: format!("delete_{MARK}"),
            })),
        }),
        ..SubmitFeedbackRequest::default()
    }
}

/// Records a search that found documents, and rates it down.
async fn search_and_rate(feedback: &Feedback) {
    let result = |number: u8| QueryResult {
        title: format!("The {MARK} {number}"),
        ..QueryResult::default()
    };
    let recorded = RecordQueryRequest {
        namespace: "fund-admin".into(),
        queries: vec![Query {
            query_id: format!("{MARK}-searched"),
            query_text: format!("{MARK} in winter"),
            query_type: "SEMANTIC".into(),
            hit_count: Some(2),
            top_results: vec![result(1), result(2)],
            session_id: format!("{MARK}-session"),
            ..Query::default()
        }],
    };
    let recorded = answered(feedback.queries.clone().record_query(recorded).await);
    assert_eq!(recorded.dropped_count, 0);
    let rated = SubmitFeedbackRequest {
        namespace: "fund-admin".into(),
        reason: format!("the {MARK} is missing"),
        ..search_rates("jane", &format!("{MARK}-searched"), SearchRatingValue::Down)
    };
    answered(feedback.service.clone().submit_feedback(rated).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_people_and_documents_say_is_in_no_log_span_or_metric() {
    let Some(traced) = Traced::start().await else {
        return;
    };
    let feedback = Feedback::at(traced.feedback_address);
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let call = |message| {
        let mut request = Request::new(message);
        let traceparent = format!("00-{trace}-00f067aa0ba902b7-01");
        request
            .metadata_mut()
            .insert("traceparent", traceparent.parse().unwrap());
        request
    };
    let mut stored = Vec::new();
    for reporter in ["a", "b", "c"] {
        let mut said = marked(1);
        said.reporter.as_mut().unwrap().id.push_str(reporter);
        let answer = answered(feedback.service.clone().submit_feedback(call(said)).await);
        stored.push(answer.feedback.unwrap().feedback_id);
    }
    // A submission that is refused for its fields.
    let mut wrong = marked(2);
    wrong.query_id = MARK.repeat(100);
    wrong.context.insert(MARK.to_owned(), MARK.repeat(1000));
    assert!(
        feedback
            .service
            .clone()
            .submit_feedback(call(wrong))
            .await
            .is_err()
    );
    search_and_rate(&feedback).await;
    eventually("the rating is logged with what was searched", || async {
        let log = traced.feedback.log();
        let line = log.lines().find(|line| line.contains("a rating was stored"));
        holds(line.is_some_and(|line| line.contains("SEMANTIC")), || {
            format!("{line:?}")
        })
    })
    .await;
    // It does reach the learned state, so that there is something to leak; checked before a retraction costs it a
    // supporter.
    let learning = Learning::at(traced.learning_address);
    eventually("it is learned", || async {
        let resources = learning.resources_in("fund-admin").await;
        holds(
            resources
                .iter()
                .any(|resource| format!("{resource:?}").contains(MARK)),
            || format!("{resources:?}"),
        )
    })
    .await;
    let taken_back = RetractFeedbackRequest {
        namespace: "fund-admin".into(),
        feedback_id: stored.pop().unwrap(),
        reason: format!("{MARK} changed its mind"),
        ..RetractFeedbackRequest::default()
    };
    let mut taken_back = Request::new(taken_back);
    let traceparent = format!("00-{trace}-00f067aa0ba902b7-01");
    taken_back
        .metadata_mut()
        .insert("traceparent", traceparent.parse().unwrap());
    answered(feedback.service.clone().retract_feedback(taken_back).await);
    eventually("it is traced", || async {
        let spans = traced.receiver.trace(trace);
        let applied = spans.iter().filter(|seen| seen.span.name == "apply feedback");
        holds(applied.count() >= 4, || format!("{spans:?}"))
    })
    .await;

    for (what, text) in [
        ("the spans", traced.receiver.everything()),
        ("feedback-svc's metrics", Scraped::from(traced.admin[0]).await.0),
        ("learning-svc's metrics", Scraped::from(traced.admin[1]).await.0),
        ("feedback-svc's log", traced.feedback.log()),
        ("learning-svc's log", traced.learning.as_ref().unwrap().log()),
        ("the node's log", traced.node.log()),
    ] {
        assert!(!text.is_empty(), "{what}");
        let found = text.lines().find(|line| line.to_lowercase().contains(MARK));
        assert_eq!(found, None, "{what}");
    }
    assert!(traced.feedback.log().contains("answered"), "calls are logged");
}
