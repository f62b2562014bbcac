//! Requests about queries.

use emend_proto::feedback::v1::{
    GetFeedbackStatsRequest, ListNegativeTermsRequest, ListQueriesRequest, Query, QueryInteraction,
    QueryResult, RecordInteractionRequest, RecordQueryRequest, StatsComparison,
};
use emend_tests::harness::NAMESPACE;
use prost_types::Timestamp;

use super::{NUL, Rpc, UNKNOWN, long};

pub(super) fn cases() -> Vec<Rpc> {
    vec![
        record_query(),
        record_interaction(),
        list_queries(),
        get_feedback_stats(),
        list_negative_terms(),
    ]
}

/// The last second of year 9999.
const FAR_AHEAD: Timestamp = Timestamp {
    seconds: 253_402_300_799,
    nanos: 0,
};

fn record_query() -> Rpc {
    let of = |query: Query| RecordQueryRequest {
        namespace: NAMESPACE.into(),
        queries: vec![query],
    };
    let good = || Query {
        query_id: "q-1".into(),
        query_text: "cards".into(),
        ..Query::default()
    };
    Rpc::of("/emend.feedback.v1.QueryService/RecordQuery")
        .case("empty", &RecordQueryRequest::default(), &["namespace", "queries"])
        .case(
            "everything at once",
            &RecordQueryRequest {
                namespace: "Not OK".into(),
                queries: vec![
                    good(),
                    Query {
                        query_id: long(129),
                        query_text: String::new(),
                        answer_text: long(8_001),
                        query_type: long(65),
                        classification: long(501),
                        top_results: vec![QueryResult {
                            title: long(301),
                            score: f64::NAN,
                            object_id: long(257),
                        }],
                        namespaces: vec![long(65)],
                        min_score: Some(f64::INFINITY),
                        embedding_version: long(65),
                        index_version: long(65),
                        client_version: long(65),
                        build: long(65),
                        variant: long(65),
                        session_id: long(129),
                        hit_count: Some(0),
                        searched_at: Some(FAR_AHEAD),
                        ..Query::default()
                    },
                ],
            },
            &[
                "namespace",
                "queries[1].query_id",
                "queries[1].query_text",
                "queries[1].answer_text",
                "queries[1].classification",
                "queries[1].query_type",
                "queries[1].embedding_version",
                "queries[1].index_version",
                "queries[1].client_version",
                "queries[1].build",
                "queries[1].variant",
                "queries[1].session_id",
                "queries[1].namespaces[0]",
                "queries[1].top_results[0].score",
                "queries[1].top_results[0].object_id",
                "queries[1].min_score",
                "queries[1].hit_count",
                "queries[1].searched_at",
            ],
        )
        .case(
            "too many",
            &RecordQueryRequest {
                namespace: NAMESPACE.into(),
                queries: vec![good(); 101],
            },
            &["queries"],
        )
        .case(
            "too many results and parts of the index",
            &of(Query {
                top_results: vec![QueryResult::default(); 101],
                namespaces: vec!["combined".into(); 33],
                ..good()
            }),
            &["queries[0].namespaces", "queries[0].top_results"],
        )
        .case(
            "no id, too long a text, and fewer hits than results",
            &of(Query {
                query_id: String::new(),
                query_text: long(2_001),
                top_results: vec![QueryResult::default(); 4],
                hit_count: Some(3),
                ..good()
            }),
            &[
                "queries[0].query_id",
                "queries[0].query_text",
                "queries[0].hit_count",
            ],
        )
        .case(
            "U+0000",
            &of(Query {
                query_text: NUL.into(),
                variant: NUL.into(),
                ..good()
            }),
            &["queries[0].query_text", "queries[0].variant"],
        )
}

fn record_interaction() -> Rpc {
    let of = |interaction: QueryInteraction| RecordInteractionRequest {
        namespace: NAMESPACE.into(),
        interactions: vec![interaction],
    };
    let good = || QueryInteraction {
        query_id: "q-1".into(),
        object_id: "card-1".into(),
        action: "click".into(),
        ..QueryInteraction::default()
    };
    let position = |position| of(QueryInteraction { position, ..good() });
    Rpc::of("/emend.feedback.v1.QueryService/RecordInteraction")
        .case(
            "empty",
            &RecordInteractionRequest::default(),
            &["namespace", "interactions"],
        )
        .case(
            "everything at once",
            &of(QueryInteraction {
                query_id: long(129),
                object_id: long(257),
                action: long(101),
                position: 100_001,
                acted_at: Some(FAR_AHEAD),
            }),
            &[
                "interactions[0].query_id",
                "interactions[0].object_id",
                "interactions[0].action",
                "interactions[0].position",
                "interactions[0].acted_at",
            ],
        )
        .case(
            "a negative position",
            &position(-1),
            &["interactions[0].position"],
        )
}

fn list_queries() -> Rpc {
    let good = || ListQueriesRequest {
        namespace: NAMESPACE.into(),
        ..ListQueriesRequest::default()
    };
    let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
    Rpc::of("/emend.feedback.v1.QueryService/ListQueries")
        .case("empty", &ListQueriesRequest::default(), &["namespace"])
        .case(
            "everything at once",
            &ListQueriesRequest {
                namespace: "Not OK".into(),
                page_size: 501,
                page_token: "not a token".into(),
                query_id: long(129),
                query_type: long(65),
                only_without_hits: true,
                searched_from: at(7),
                searched_before: at(7),
            },
            &[
                "namespace",
                "page_size",
                "page_token",
                "query_type",
                "searched_before",
                "query_id",
            ],
        )
        .case(
            "a negative page",
            &ListQueriesRequest {
                page_size: -1,
                ..good()
            },
            &["page_size"],
        )
}

fn get_feedback_stats() -> Rpc {
    let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
    let comparing = |by: i32, one: &str, other: &str| GetFeedbackStatsRequest {
        namespace: NAMESPACE.into(),
        compare: Some(StatsComparison {
            by,
            one: one.into(),
            other: other.into(),
        }),
        ..GetFeedbackStatsRequest::default()
    };
    Rpc::of("/emend.feedback.v1.QueryService/GetFeedbackStats")
        .case("empty", &GetFeedbackStatsRequest::default(), &["namespace"])
        .case(
            "everything at once",
            &GetFeedbackStatsRequest {
                namespace: "Not OK".into(),
                rated_from: at(7),
                rated_before: at(7),
                query_type: long(65),
                compare: Some(StatsComparison {
                    by: 0,
                    one: long(65),
                    other: long(65),
                }),
                top_query_count: -1,
                worst_query_count: 501,
            },
            &[
                "namespace",
                "rated_before",
                "query_type",
                "compare.by",
                "compare.one",
                "compare.other",
                "top_query_count",
                "worst_query_count",
            ],
        )
        .case(
            "an unknown dimension",
            &comparing(UNKNOWN, "a", "b"),
            &["compare.by"],
        )
        .case("one with itself", &comparing(4, "a", " a"), &["compare.other"])
}

fn list_negative_terms() -> Rpc {
    let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
    Rpc::of("/emend.feedback.v1.QueryService/ListNegativeTerms")
        .case("empty", &ListNegativeTermsRequest::default(), &["namespace"])
        .case(
            "everything at once",
            &ListNegativeTermsRequest {
                namespace: "Not OK".into(),
                rated_from: at(7),
                rated_before: at(6),
                query_type: long(65),
                page_size: 501,
            },
            &["namespace", "rated_before", "query_type", "page_size"],
        )
}
