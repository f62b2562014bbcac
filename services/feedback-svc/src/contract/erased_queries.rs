//! What every database must do with queries that are erased: nothing of them is stored again.

use emend_base::Entropy;
use emend_core::{Caller, FeedbackId, Namespace, search::SearchRating};
use feedback_store::{
    ports::{Connected, ErasureStore, QueryStore},
    records::{erased::KNOWN, queries::Query},
    testing::{TestStore, feedback, namespace, search_rated, stored},
};

use crate::{
    contract::{
        get,
        queries::{clicked, found, group, on_both, query, record},
    },
    erasure::tests::redaction,
    queries::retention::Forgetter,
};

on_both! {
    redacting_feedback_erases_the_texts_of_its_query_and_session
    what_is_recorded_of_an_erased_query_or_session_later_is_erased
    a_query_that_is_recorded_while_it_is_erased_keeps_no_texts
    what_was_erased_is_known_for_as_long_as_a_query_may_be_kept
}

async fn redacting_feedback_erases_the_texts_of_its_query_and_session(database: &TestStore) {
    // The feedback is on query-1, in session-1.
    let other = Query {
        session_id: "session-2".into(),
        ..query("q-2", "other cards")
    };
    let queries = vec![query("query-1", "her cards"), query("q-1", "more of hers"), other];
    record(database, &group(queries, vec![])).await;
    let given = feedback("a");
    stored(&*database.store, &given, None).await;
    redact(database, given.id).await;
    assert!(get(database, given.id).await.redaction.is_some());
    for (id, text) in [("query-1", ""), ("q-1", ""), ("q-2", "other cards")] {
        let found = found(database, id).await.unwrap().query;
        assert_eq!(found.query_text, text, "{id}");
        assert_eq!(found.session_id.is_empty(), text.is_empty(), "{id}");
        assert_eq!(found.hit_count, Some(12), "{id}");
    }
}

async fn what_is_recorded_of_an_erased_query_or_session_later_is_erased(database: &TestStore) {
    // The feedback is on query-1, in session-1.
    let given = feedback("a");
    stored(&*database.store, &given, None).await;
    redact(database, given.id).await;
    let in_session = |id: &str, session: &str| Query {
        session_id: session.into(),
        ..query(id, &format!("words of {id}"))
    };
    let texts = async |id: &str| {
        let Query {
            query_text,
            answer_text,
            classification,
            session_id,
            hit_count,
            ..
        } = found(database, id).await.unwrap().query;
        assert_eq!(hit_count, Some(12), "{id}");
        [query_text, answer_text, classification, session_id]
    };
    let queries = vec![
        in_session("query-1", "s-2"),
        in_session("q-1", "session-1"),
        in_session("q-2", "s-2"),
    ];
    let clicks = ["query-1", "q-1", "q-2"].map(|id| clicked(id, "card-1")).to_vec();
    record(database, &group(vec![], vec![clicked("q-1", "card-2")])).await;
    assert_eq!(record(database, &group(queries, clicks)).await, (3, 1));
    for id in ["query-1", "q-1"] {
        assert_eq!(texts(id).await, [""; 4], "{id}");
        assert_eq!(found(database, id).await.unwrap().interactions, [], "{id}");
    }
    assert_eq!(
        texts("q-2").await,
        ["words of q-2", "an answer", "a question", "s-2"]
    );
    let counted = "SELECT queries FROM query_terms WHERE term = 'words'";
    assert_eq!(database.number(counted).await, 1);
    let days = "SELECT CAST(sum(queries) AS BIGINT) FROM query_days";
    assert_eq!(database.number(days).await, 3);
    let mut elsewhere = group(vec![in_session("query-1", "session-1")], vec![]);
    elsewhere.queries[0].0.namespace = Namespace::parse("other").unwrap();
    assert_eq!(record(database, &elsewhere).await, (1, 0));
    let kept = "SELECT count(*) FROM query_personal WHERE query_text = 'words of query-1'";
    assert_eq!(database.number(kept).await, 1);

    // Once it is forgotten, too; but what is searched later in that session is not what was erased.
    database.advance(25 * 3_600).await;
    while database.sql().forget(10).await.unwrap() > 0 {}
    let again = vec![
        in_session("query-1", "s-3"),
        in_session("q-1", "session-1"),
        in_session("q-3", "session-1"),
    ];
    assert_eq!(record(database, &group(again, vec![])).await, (3, 0));
    for id in ["query-1", "q-1"] {
        assert_eq!(texts(id).await, [""; 4], "{id}");
    }
    assert_eq!(texts("q-3").await[3], "session-1");
}

async fn a_query_that_is_recorded_while_it_is_erased_keeps_no_texts(database: &TestStore) {
    let replica = database.sql_replica().await;
    for number in 0..20 {
        let id = format!("q-{number}");
        let rated = search_rated([&format!("r-{number}"), "", ""], &id, SearchRating::Down);
        stored(&*database.store, &rated, None).await;
        let redactions = [redaction(rated.id)];
        let recorded = group(vec![query(&id, "her cards")], vec![clicked(&id, "card-1")]);
        let erasures = replica.clone();
        let (erased, _) = futures::join!(erasures.redact(&redactions), record(database, &recorded));
        erased.unwrap();
        let found = found(database, &id).await.unwrap();
        assert_eq!((&*found.query.query_text, &found.interactions[..]), ("", &[][..]));
    }
    replica.close().await;
}

async fn what_was_erased_is_known_for_as_long_as_a_query_may_be_kept(database: &TestStore) {
    let queries = database.sql();
    // The feedback is on query-1, in session-1.
    let given = feedback("a");
    stored(&*database.store, &given, None).await;
    redact(database, given.id).await;
    database.advance(KNOWN.as_secs().cast_signed()).await;
    assert_eq!(queries.forget_erased(KNOWN, 10).await.unwrap(), 0);
    record(database, &group(vec![query("query-1", "her cards")], vec![])).await;
    assert_eq!(found(database, "query-1").await.unwrap().query.query_text, "");
    database.advance(1).await;
    // The query, and its session.
    assert_eq!(queries.forget_erased(KNOWN, 1).await.unwrap(), 1);
    let forgetter = Forgetter {
        store: database.sql(),
        wake: std::sync::Arc::default(),
        entropy: Entropy::system(),
    };
    forgetter.prune().await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM erased_queries").await, 0);
    assert_eq!(queries.forget_erased(KNOWN, 10).await.unwrap(), 0);
}

async fn redact(database: &TestStore, id: FeedbackId) {
    let caller = Caller::parse("console").unwrap();
    let event_id = emend_core::EventId(Entropy::system().uuid_v4());
    let redaction = feedback_store::records::erasure::NewRedaction {
        namespace: namespace(),
        id,
        caller: caller.clone(),
        event: feedback_store::records::event::redacted(event_id, id, &namespace(), &caller, ""),
    };
    database.sql().redact(&[redaction]).await.unwrap();
}
