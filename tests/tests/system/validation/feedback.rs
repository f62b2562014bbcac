//! Bad requests to feedback-svc.

mod settings;
mod submit;

use emend_proto::feedback::v1::{
    ExportFeedbackRequest, GetFeedbackRequest, ListDeadLettersRequest, ListFeedbackRequest,
    RedactFeedbackRequest, RedactReporterRequest, RedriveDeadLettersRequest, RetractFeedbackRequest,
    SearchRatingFilter, UpdateFeedbackLabelsRequest,
};
use emend_tests::harness::NAMESPACE;
use prost_types::Timestamp;

use self::{
    settings::{get_settings, update_settings},
    submit::{batch, submit},
};
use super::{BAD_IDS, NOBODY, NUL, Rpc, UNKNOWN, long};

pub(super) fn cases() -> Vec<Rpc> {
    vec![
        submit(),
        batch(),
        get(),
        list(),
        retract(),
        redact_feedback(),
        redact_reporter(),
        update_labels(),
        export(),
        get_settings(),
        update_settings(),
        dead_letters(),
        redrive(),
    ]
}

fn get() -> Rpc {
    let mut rpc = Rpc::of("/emend.feedback.v1.FeedbackService/GetFeedback").case(
        "empty",
        &GetFeedbackRequest::default(),
        &["namespace", "feedback_id"],
    );
    for id in BAD_IDS {
        let request = GetFeedbackRequest {
            namespace: NAMESPACE.into(),
            feedback_id: id.into(),
        };
        rpc = rpc.case(format!("id {id:?}"), &request, &["feedback_id"]);
    }
    rpc
}

fn list() -> Rpc {
    let good = ListFeedbackRequest {
        namespace: NAMESPACE.into(),
        ..ListFeedbackRequest::default()
    };
    let at = |seconds: i64| Some(Timestamp { seconds, nanos: 0 });
    let received = |from: i64, before: i64| ListFeedbackRequest {
        received_from: at(from),
        received_before: at(before),
        ..good.clone()
    };
    Rpc::of("/emend.feedback.v1.FeedbackService/ListFeedback")
        .case("empty", &ListFeedbackRequest::default(), &["namespace"])
        .case(
            "everything at once",
            &ListFeedbackRequest {
                namespace: "Not OK".into(),
                page_size: 501,
                page_token: "not a token".into(),
                reporter_id: long(129),
                kind: UNKNOWN,
                delivery_state: UNKNOWN,
                received_from: Some(Timestamp {
                    seconds: 0,
                    nanos: -1,
                }),
                received_before: Some(Timestamp {
                    seconds: i64::MAX,
                    nanos: 0,
                }),
                rating_target: long(513),
                rating_value: long(513),
                day: "2026-02-30".into(),
                time_zone: "Mars/Olympus".into(),
                search_ratings: None,
            },
            &[
                "namespace",
                "page_size",
                "page_token",
                "reporter_id",
                "kind",
                "delivery_state",
                "received_from",
                "received_before",
                "rating_target",
                "rating_value",
                "day",
                "time_zone",
            ],
        )
        .case(
            "a value of no target and a zone of no day",
            &ListFeedbackRequest {
                rating_value: "GOOD".into(),
                time_zone: "Asia/Tokyo".into(),
                ..good.clone()
            },
            &["rating_value", "time_zone"],
        )
        .case(
            "a negative page and U+0000",
            &ListFeedbackRequest {
                page_size: -1,
                page_token: NUL.into(),
                reporter_id: NUL.into(),
                ..good.clone()
            },
            &["page_size", "page_token", "reporter_id"],
        )
        .case(
            "ratings of search answers that are none",
            &ListFeedbackRequest {
                search_ratings: Some(SearchRatingFilter {
                    value: UNKNOWN,
                    query_type: NUL.into(),
                    tag: "Not fine".into(),
                    processed: None,
                    counting: false,
                    query_text: long(2_001),
                }),
                ..good.clone()
            },
            &[
                "search_ratings.value",
                "search_ratings.query_type",
                "search_ratings.tag",
                "search_ratings.query_text",
            ],
        )
        .case(
            "ratings of search answers that teach something",
            &ListFeedbackRequest {
                kind: 1,
                rating_target: "INTERPRET".into(),
                search_ratings: Some(SearchRatingFilter::default()),
                ..good.clone()
            },
            &["search_ratings"],
        )
        .case("a span of nothing", &received(7, 7), &["received_before"])
        .case(
            "a span that ends before it begins",
            &received(2, 1),
            &["received_before"],
        )
}

fn retract() -> Rpc {
    Rpc::of("/emend.feedback.v1.FeedbackService/RetractFeedback")
        .case(
            "empty",
            &RetractFeedbackRequest::default(),
            &["namespace", "feedback_id"],
        )
        .case(
            "everything at once",
            &RetractFeedbackRequest {
                namespace: "Not OK".into(),
                feedback_id: "x".into(),
                reason: long(2_001),
                wait: UNKNOWN,
            },
            &["namespace", "feedback_id", "reason", "wait"],
        )
        .case(
            "U+0000 in every text",
            &RetractFeedbackRequest {
                namespace: NUL.into(),
                feedback_id: NUL.into(),
                reason: NUL.into(),
                wait: 0,
            },
            &["namespace", "feedback_id", "reason"],
        )
}

fn update_labels() -> Rpc {
    let tags = |tags: &[&str]| tags.iter().map(ToString::to_string).collect();
    let good = UpdateFeedbackLabelsRequest {
        namespace: NAMESPACE.into(),
        feedback_id: NOBODY.into(),
        ..UpdateFeedbackLabelsRequest::default()
    };
    Rpc::of("/emend.feedback.v1.FeedbackService/UpdateFeedbackLabels")
        .case(
            "empty",
            &UpdateFeedbackLabelsRequest::default(),
            &["namespace", "feedback_id", "set_tags"],
        )
        .case(
            "tags that are none",
            &UpdateFeedbackLabelsRequest {
                set_tags: tags(&["fine", "Not fine", NUL]),
                clear_tags: vec!["a".repeat(33), String::new()],
                ..good.clone()
            },
            &["set_tags[1]", "set_tags[2]", "clear_tags[0]", "clear_tags[1]"],
        )
        .case(
            "too many tags, and one to set and to clear",
            &UpdateFeedbackLabelsRequest {
                set_tags: (0..17).map(|number| format!("t{number}")).collect(),
                clear_tags: tags(&["t3"]),
                ..good
            },
            &["set_tags", "clear_tags"],
        )
}

fn export() -> Rpc {
    let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
    Rpc::of("/emend.feedback.v1.QueryService/ExportFeedback")
        .case(
            "empty",
            &ExportFeedbackRequest::default(),
            &["namespace", "format"],
        )
        .case(
            "everything at once",
            &ExportFeedbackRequest {
                namespace: "Not OK".into(),
                search_ratings: Some(SearchRatingFilter {
                    value: UNKNOWN,
                    ..SearchRatingFilter::default()
                }),
                received_from: at(2),
                received_before: at(1),
                format: UNKNOWN,
                mark_processed: true,
            },
            &["namespace", "search_ratings.value", "received_before", "format"],
        )
}

fn redact_feedback() -> Rpc {
    Rpc::of("/emend.feedback.v1.FeedbackService/RedactFeedback")
        .case(
            "empty",
            &RedactFeedbackRequest::default(),
            &["namespace", "feedback_id"],
        )
        .case(
            "everything at once",
            &RedactFeedbackRequest {
                namespace: "Not OK".into(),
                feedback_id: "x".into(),
                wait: UNKNOWN,
            },
            &["namespace", "feedback_id", "wait"],
        )
}

fn redact_reporter() -> Rpc {
    let of = |reporter_id: &str| RedactReporterRequest {
        namespace: NAMESPACE.into(),
        reporter_id: reporter_id.into(),
    };
    Rpc::of("/emend.feedback.v1.FeedbackService/RedactReporter")
        .case(
            "empty",
            &RedactReporterRequest::default(),
            &["namespace", "reporter_id"],
        )
        .case("too long a reporter id", &of(&long(129)), &["reporter_id"])
        .case("U+0000", &of(NUL), &["reporter_id"])
        .case("a pseudonym", &of(&format!("erased:{NOBODY}")), &["reporter_id"])
}

fn dead_letters() -> Rpc {
    Rpc::of("/emend.feedback.v1.FeedbackService/ListDeadLetters")
        .case(
            "everything at once",
            &ListDeadLettersRequest {
                namespace: "Not OK".into(),
                page_size: 501,
                page_token: "not a token".into(),
            },
            &["namespace", "page_size", "page_token"],
        )
        .case(
            "a negative page and a token of no list",
            &ListDeadLettersRequest {
                page_size: -1,
                page_token: "AAAA".into(),
                ..ListDeadLettersRequest::default()
            },
            &["page_size", "page_token"],
        )
}

fn redrive() -> Rpc {
    Rpc::of("/emend.feedback.v1.FeedbackService/RedriveDeadLetters")
        .case("empty", &RedriveDeadLettersRequest::default(), &["namespace"])
        .case(
            "everything at once",
            &RedriveDeadLettersRequest {
                namespace: "Not OK".into(),
                event_ids: vec!["x".into(), String::new(), NOBODY.into(), NUL.into()],
            },
            &["namespace", "event_ids[0]", "event_ids[1]", "event_ids[3]"],
        )
        .case(
            "too many",
            &RedriveDeadLettersRequest {
                namespace: NAMESPACE.into(),
                event_ids: vec![NOBODY.into(); 501],
            },
            &["event_ids"],
        )
        .case(
            "too many, of any namespace",
            &RedriveDeadLettersRequest {
                event_ids: vec![NOBODY.into(); 501],
                ..RedriveDeadLettersRequest::default()
            },
            &["event_ids"],
        )
}
