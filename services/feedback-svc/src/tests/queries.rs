//! Queries recorded and listed over real sockets.

use emend_proto::feedback::v1 as pb;
use feedback_store::testing::Backend;

use crate::tests::{Database, Service, eventually};

on_both! {
    what_one_replica_records_another_lists
    a_hit_count_is_unknown_zero_or_a_number
    what_is_queued_when_the_service_stops_is_stored
}

const AWAY: &str = "127.0.0.1:1";

fn query(id: &str) -> pb::Query {
    pb::Query {
        query_id: id.into(),
        query_text: "cards that draw; ask jane.doe@example.org".into(),
        query_type: "SEMANTIC".into(),
        top_results: (0..8)
            .map(|rank| pb::QueryResult {
                title: format!("Card\n{rank}"),
                score: f64::from(rank),
                object_id: format!("card-{rank}"),
            })
            .collect(),
        ..pb::Query::default()
    }
}

fn recording(queries: Vec<pb::Query>) -> pb::RecordQueryRequest {
    pb::RecordQueryRequest {
        namespace: "fund-admin".into(),
        queries,
    }
}

fn clicked(id: &str) -> pb::RecordInteractionRequest {
    pb::RecordInteractionRequest {
        namespace: "fund-admin".into(),
        interactions: vec![pb::QueryInteraction {
            query_id: id.into(),
            object_id: "card-7".into(),
            action: "Click".into(),
            position: 1,
            acted_at: None,
        }],
    }
}

async fn listed(service: &Service) -> Vec<pb::Query> {
    let request = pb::ListQueriesRequest {
        namespace: "fund-admin".into(),
        ..pb::ListQueriesRequest::default()
    };
    let response = service.queries.clone().list_queries(request).await.unwrap();
    response.into_inner().queries
}

async fn what_one_replica_records_another_lists(database: Database) {
    let first = Service::start(&database, AWAY).await;
    let second = match &database {
        Database::Postgres(_) => Some(Service::start(&database, AWAY).await),
        Database::Sqlite(_) => None,
    };
    // The click comes first, by another replica.
    let clicks = second.as_ref().unwrap_or(&first);
    let answer = clicks.queries.clone().record_interaction(clicked("q-1")).await;
    assert_eq!(answer.unwrap().into_inner().dropped_count, 0);
    let answer = first
        .queries
        .clone()
        .record_query(recording(vec![query("q-1"), query("q-2")]))
        .await;
    assert_eq!(answer.unwrap().into_inner(), pb::RecordQueryResponse::default());
    let lists = second.as_ref().unwrap_or(&first);
    eventually("both are listed, one with its click", || async {
        let listed = listed(lists).await;
        listed.len() == 2 && listed[1].interactions.len() == 1
    })
    .await;
    let listed = listed(lists).await;
    let found = &listed[1];
    assert_eq!(found.query_id, "q-1");
    assert_eq!(found.query_text, "cards that draw; ask [email]");
    assert_eq!(found.hit_count, Some(8));
    let titles: Vec<_> = found.top_results.iter().map(|one| one.title.as_str()).collect();
    assert_eq!(
        titles,
        ["Card 7", "Card 6", "Card 5", "Card 4", "Card 3"],
        "the five best"
    );
    assert_eq!(found.interactions[0].action, "click");

    let page = |page_token: String| {
        let mut client = lists.queries.clone();
        async move {
            let request = pb::ListQueriesRequest {
                namespace: "fund-admin".into(),
                page_size: 1,
                page_token,
                ..pb::ListQueriesRequest::default()
            };
            client.list_queries(request).await.unwrap().into_inner()
        }
    };
    let newest = page(String::new()).await;
    assert_eq!(newest.queries[0].query_id, "q-2");
    let oldest = page(newest.next_page_token).await;
    assert_eq!(
        (
            oldest.queries[0].query_id.as_str(),
            oldest.next_page_token.as_str()
        ),
        ("q-1", "")
    );
    for service in [Some(first), second].into_iter().flatten() {
        service.stop().await;
    }
}

async fn a_hit_count_is_unknown_zero_or_a_number(database: Database) {
    let service = Service::start(&database, AWAY).await;
    let found = |id: &str, hit_count| pb::Query {
        hit_count,
        top_results: Vec::new(),
        ..query(id)
    };
    let queries = vec![
        found("unknown", None),
        found("zero", Some(0)),
        found("three", Some(3)),
        query("shown"),
    ];
    service
        .queries
        .clone()
        .record_query(recording(queries))
        .await
        .unwrap();
    eventually("all are listed", || async { listed(&service).await.len() == 4 }).await;
    let listed = listed(&service).await;
    let hits: Vec<_> = listed
        .iter()
        .map(|query| (query.query_id.as_str(), query.hit_count))
        .collect();
    assert_eq!(
        hits,
        [
            ("shown", Some(8)),
            ("three", Some(3)),
            ("zero", Some(0)),
            ("unknown", None)
        ]
    );
    let request = pb::ListQueriesRequest {
        namespace: "fund-admin".into(),
        only_without_hits: true,
        ..pb::ListQueriesRequest::default()
    };
    let without = service
        .queries
        .clone()
        .list_queries(request)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(without.queries.len(), 1);
    assert_eq!(without.queries[0].query_id, "zero");
    let request = pb::GetFeedbackStatsRequest {
        namespace: "fund-admin".into(),
        ..pb::GetFeedbackStatsRequest::default()
    };
    let stats = service
        .queries
        .clone()
        .get_feedback_stats(request)
        .await
        .unwrap()
        .into_inner();
    let total = stats.total.unwrap();
    assert_eq!(
        (total.query_count, total.zero_hit_count, total.unknown_hit_count),
        (4, 1, 1)
    );
    assert!((total.zero_hit_share.unwrap() - 1.0 / 3.0).abs() < 1e-9);
    service.stop().await;
}

async fn what_is_queued_when_the_service_stops_is_stored(database: Database) {
    let service = Service::start(&database, AWAY).await;
    for number in 0..50 {
        let request = recording(vec![query(&format!("q-{number}"))]);
        service.queries.clone().record_query(request).await.unwrap();
    }
    service.stop().await;
    let again = Service::start(&database, AWAY).await;
    assert_eq!(listed(&again).await.len(), 50);
    again.stop().await;
}
