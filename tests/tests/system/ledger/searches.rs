//! Searches that an audit looks at: recorded, rated, and asked again in other words.

use emend_proto::{
    common::v1::SearchRatingValue,
    feedback::v1::{
        ListQueriesRequest, Query, QueryInteraction, QueryResult, RecordInteractionRequest,
        RecordQueryRequest, RedactFeedbackRequest,
    },
};
use emend_tests::harness::{
    Feedback, NAMESPACE, System, answered, eventually, says::search_rates, wait::holds,
};

/// A query that found a card, or nothing.
fn query(id: &str, text: &str, session: &str, hits: i32) -> Query {
    let card = QueryResult {
        title: "A card".into(),
        score: 0.5,
        object_id: "card-1".into(),
    };
    Query {
        query_id: id.into(),
        query_text: text.into(),
        query_type: "SEMANTIC".into(),
        session_id: session.into(),
        hit_count: Some(hits),
        top_results: vec![card; usize::from(hits > 0)],
        ..Query::default()
    }
}

async fn record(feedback: &Feedback, queries: Vec<Query>) {
    let request = RecordQueryRequest {
        namespace: NAMESPACE.into(),
        queries,
    };
    let recorded = answered(feedback.queries.clone().record_query(request).await);
    assert_eq!(recorded.dropped_count, 0);
}

/// In three sessions nothing is found for one wording, and a result of the other is clicked.
async fn rewords(feedback: &Feedback, failed: &str, worked: &str) {
    for session in 0..3 {
        let (nothing, something) = (format!("{failed}-{session}"), format!("{worked}-{session}"));
        let session = format!("session {failed} {session}");
        let queries = vec![
            query(&nothing, &format!("cards that {failed}"), &session, 0),
            query(&something, &format!("cards that {worked}"), &session, 1),
        ];
        record(feedback, queries).await;
        let click = QueryInteraction {
            query_id: something,
            object_id: "card-1".into(),
            action: "click".into(),
            position: 1,
            acted_at: None,
        };
        let request = RecordInteractionRequest {
            namespace: NAMESPACE.into(),
            interactions: vec![click],
        };
        answered(feedback.queries.clone().record_interaction(request).await);
    }
}

/// Ratings of search answers: one replaced by a newer one of the same query, which was recorded; one of a query that was
/// recorded and of which everything was erased; and one of a query that was not. And a rewording that was mined.
pub(super) async fn searches(system: &mut System) {
    let feedback = system.feedback();
    rewords(&feedback, "bounce", "return").await;
    let recorded = ["q1", "q3"].map(|id| query(id, "cards that heal", "", 1));
    record(&feedback, recorded.into()).await;
    eventually("what was recorded is stored", || async {
        let request = ListQueriesRequest {
            namespace: NAMESPACE.into(),
            ..ListQueriesRequest::default()
        };
        let stored = answered(feedback.queries.clone().list_queries(request).await).queries;
        let clicked = stored.iter().filter(|query| !query.interactions.is_empty());
        holds(stored.len() >= 8 && clicked.count() >= 3, || {
            format!("{stored:?}")
        })
    })
    .await;
    // Rewordings are looked for when it starts.
    system.stop_feedback().await;
    system.start_feedback().await;
    let learning = system.learning();
    eventually("a rewording is mined", || async {
        let found = learning.candidates_for("bounce").await;
        holds(found.len() == 1, || format!("{found:?}"))
    })
    .await;
    for (query, value) in [
        ("q1", SearchRatingValue::Down),
        ("q1", SearchRatingValue::Up),
        ("q2", SearchRatingValue::Neutral),
    ] {
        feedback.submit(search_rates("ann", query, value)).await;
    }
    let erased = feedback
        .submit(search_rates("gil", "q3", SearchRatingValue::Down))
        .await;
    let redact = RedactFeedbackRequest {
        namespace: NAMESPACE.into(),
        feedback_id: erased.feedback_id,
        ..RedactFeedbackRequest::default()
    };
    answered(feedback.service.clone().redact_feedback(redact).await);
}

/// A rewording that is mined while learning-svc is away, and the query that found nothing before it.
pub(super) async fn reworded_in_vain(system: &mut System) {
    rewords(&system.feedback(), "storm", "rush").await;
    system.stop_feedback().await;
    system.start_feedback().await;
    until_events_wait(system, 2).await;
}

/// So many events are in the outbox. One of a query that found nothing is there until the model of near answers is made.
pub(super) async fn until_events_wait(system: &System, count: u64) {
    let databases = system.database.databases();
    eventually("the events wait, or none does", || async {
        let waiting = emend_audit::waiting(&databases).await;
        let waiting = waiting.map_err(|error| error.to_string())?;
        holds(waiting.events == count, || format!("{waiting:?}"))
    })
    .await;
}
