//! Valid requests to feedback-svc.

use emend_proto::{common::v1::Correction, feedback::v1 as feedback};
use emend_wire::page::{self, QueryHash};

use super::{ID, at, corrections, namespace, of, reporter};

pub(super) fn submissions() -> Vec<feedback::SubmitFeedbackRequest> {
    let of = |(number, correction): (usize, Option<Correction>)| feedback::SubmitFeedbackRequest {
        request_id: format!("request-{number}"),
        namespace: namespace(),
        reporter: Some(reporter()),
        query_id: "q-7".into(),
        reason: "I meant the annex; call +49 30 901820 or a@b.cd".into(),
        context: [("topic".to_owned(), "derivatives, mail a@b.cd".to_owned())].into(),
        scope: i32::from(number % 2 == 0) + 1,
        wait: feedback::Wait::Evaluated.into(),
        correction,
    };
    corrections().into_iter().enumerate().map(of).collect()
}

pub(in crate::seeds) fn feedback() -> Vec<Vec<u8>> {
    let mut list = feedback::ListFeedbackRequest {
        namespace: namespace(),
        page_size: 20,
        page_token: String::new(),
        reporter_id: "jane".into(),
        kind: 1,
        delivery_state: 2,
        received_from: Some(at(1_700_000_000)),
        received_before: Some(at(1_800_000_000)),
        rating_target: "TRIAGE".into(),
        rating_value: "RIGHT".into(),
        day: "2023-11-26".into(),
        time_zone: "America/New_York".into(),
        search_ratings: None,
    };
    let rated = feedback::ListFeedbackRequest {
        namespace: namespace(),
        search_ratings: Some(feedback::SearchRatingFilter {
            value: 3,
            query_type: "SEMANTIC".into(),
            tag: "low_recall".into(),
            processed: Some(false),
            counting: true,
            query_text: "cards lost".into(),
        }),
        ..Default::default()
    };
    let hash = QueryHash::of(
        "ListFeedback",
        &feedback::ListFeedbackRequest {
            page_size: 0,
            ..list.clone()
        },
    );
    list.page_token = page::number_token(hash, 77);
    let mut letters = feedback::ListDeadLettersRequest {
        namespace: namespace(),
        page_size: 0,
        page_token: String::new(),
    };
    letters.page_token = page::token(QueryHash::of("ListDeadLetters", &letters), &[3; 24]);
    let mut requests: Vec<_> = submissions().iter().map(|request| of(0, request)).collect();
    requests.extend([
        of(
            1,
            &feedback::BatchSubmitFeedbackRequest {
                requests: submissions(),
                wait: 1,
            },
        ),
        of(
            2,
            &feedback::GetFeedbackRequest {
                namespace: namespace(),
                feedback_id: ID.into(),
            },
        ),
        of(3, &list),
        of(3, &rated),
        of(
            11,
            &feedback::ExportFeedbackRequest {
                namespace: namespace(),
                format: 4,
                received_from: Some(at(1_700_000_000)),
                ..Default::default()
            },
        ),
        of(
            10,
            &feedback::UpdateFeedbackLabelsRequest {
                namespace: namespace(),
                feedback_id: ID.into(),
                set_tags: vec!["low_recall".into()],
                clear_tags: vec!["synonym_miss".into()],
                processed: Some(true),
            },
        ),
        of(
            4,
            &feedback::RetractFeedbackRequest {
                namespace: namespace(),
                feedback_id: ID.into(),
                reason: "a mistake\nof mine".into(),
                wait: 2,
            },
        ),
        of(5, &letters),
        of(
            6,
            &feedback::RedriveDeadLettersRequest {
                namespace: namespace(),
                event_ids: vec![ID.into(), ID.into()],
            },
        ),
    ]);
    requests.extend(queries());
    requests
}

fn queries() -> [Vec<u8>; 5] {
    let query = feedback::Query {
        query_id: "q-1".into(),
        query_text: "手札に戻すカード, a@b.cd".into(),
        answer_text: "Bounce".into(),
        query_type: "HYBRID".into(),
        top_results: vec![
            feedback::QueryResult {
                title: "Card".into(),
                score: 0.5,
                object_id: "card-1".into(),
            };
            6
        ],
        namespaces: vec!["combined".into()],
        min_score: Some(0.4),
        hit_count: Some(7),
        searched_at: Some(at(-5)),
        ..feedback::Query::default()
    };
    let interaction = feedback::QueryInteraction {
        query_id: "q-1".into(),
        object_id: "card-1".into(),
        action: "Click".into(),
        position: 1,
        acted_at: Some(at(-4)),
    };
    let mut list = feedback::ListQueriesRequest {
        namespace: namespace(),
        query_type: "HYBRID".into(),
        only_without_hits: true,
        searched_from: Some(at(1_700_000_000)),
        searched_before: Some(at(1_800_000_000)),
        ..feedback::ListQueriesRequest::default()
    };
    list.page_token = page::number_token(QueryHash::of("ListQueries", &list), 77);
    [
        of(
            7,
            &feedback::RecordQueryRequest {
                namespace: namespace(),
                queries: vec![query],
            },
        ),
        of(
            8,
            &feedback::RecordInteractionRequest {
                namespace: namespace(),
                interactions: vec![interaction],
            },
        ),
        of(9, &list),
        of(
            11,
            &feedback::GetFeedbackStatsRequest {
                top_query_count: 20,
                worst_query_count: 5,
                namespace: namespace(),
                rated_from: Some(at(1_700_000_000)),
                rated_before: Some(at(1_800_000_000)),
                query_type: "HYBRID".into(),
                compare: Some(feedback::StatsComparison {
                    by: 4,
                    one: "A".into(),
                    other: "B".into(),
                }),
            },
        ),
        of(
            12,
            &feedback::ListNegativeTermsRequest {
                namespace: namespace(),
                query_type: "HYBRID".into(),
                page_size: 20,
                ..feedback::ListNegativeTermsRequest::default()
            },
        ),
    ]
}
