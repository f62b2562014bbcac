//! Ratings of search answers over the wire: what is stored of them, what is said about them, and how many there may be.

use std::{collections::HashMap, time::Duration};

use emend_base::{status::Explained, telemetry::Metrics};
use emend_proto::{
    common::v1::{
        Correction, OutcomeState, Reporter, SearchRating, SearchRatingValue, correction::Correction as Form,
    },
    feedback::v1::{self as pb, DeliveryState, query_service_client::QueryServiceClient},
};
use feedback_store::testing::Backend;
use tonic::{Code, transport::Channel};

use crate::tests::{Database, Service, evaluated, request, with_id};

on_both! {
    a_rating_is_stored_without_an_effect_and_labelled
    what_people_write_is_stored_as_plain_text_without_personal_data
    the_eleventh_rating_in_a_minute_is_refused_and_told_when_it_will_not_be
    ratings_are_erased_like_all_feedback
    ratings_that_count_are_exported_and_marked
}

fn rates(reporter: &str, query_id: &str, value: SearchRatingValue) -> pb::SubmitFeedbackRequest {
    pb::SubmitFeedbackRequest {
        reporter: Some(Reporter {
            id: reporter.into(),
            ..Reporter::default()
        }),
        query_id: query_id.into(),
        correction: Some(Correction {
            correction: Some(Form::SearchRating(SearchRating { value: value.into() })),
        }),
        ..request("unused")
    }
}

async fn start(database: &Database) -> (Service, Metrics) {
    let metrics = Metrics::new();
    // Nothing listens there: ratings wait for nobody.
    let service = Service::start_with(database, "127.0.0.1:1", metrics.clone()).await;
    (service, metrics)
}

async fn listed(service: &Service, filter: pb::SearchRatingFilter) -> Vec<String> {
    let request = pb::ListFeedbackRequest {
        namespace: "fund-admin".into(),
        search_ratings: Some(filter),
        ..pb::ListFeedbackRequest::default()
    };
    let response = service.client.clone().list_feedback(request).await.unwrap();
    let listed = response.into_inner().feedback.into_iter();
    listed.map(|feedback| feedback.feedback_id).collect()
}

async fn a_rating_is_stored_without_an_effect_and_labelled(database: Database) {
    let (service, metrics) = start(&database).await;
    let asked = evaluated(with_id("r1", rates("jane", "q1", SearchRatingValue::Down)));
    let rating = service.submit(asked.clone()).await.unwrap();
    let outcome = rating.outcome.clone().unwrap();
    assert_eq!(outcome.state(), OutcomeState::NoEffect);
    assert_eq!((&*outcome.reason, outcome.kind), ("NOTHING_TO_LEARN", 0));
    assert_eq!(outcome.message, "Noted. Nothing is learned from a rating alone.");
    assert_eq!(rating.delivery_state(), DeliveryState::Delivered);
    let state = rating.search_rating.clone().unwrap();
    assert_eq!(state.context_state(), pb::ContextState::Pending);
    assert_eq!(service.get(&rating.feedback_id).await, rating);
    let again = service.submit(asked).await.unwrap();
    assert_eq!(again, rating, "a repeated request is answered with the same");

    let labels = pb::UpdateFeedbackLabelsRequest {
        namespace: "fund-admin".into(),
        feedback_id: rating.feedback_id.clone(),
        set_tags: vec!["synonym_miss".into(), "low_recall".into()],
        processed: Some(true),
        ..pb::UpdateFeedbackLabelsRequest::default()
    };
    let labelled = service
        .client
        .clone()
        .update_feedback_labels(labels)
        .await
        .unwrap();
    let state = labelled.into_inner().feedback.unwrap().search_rating.unwrap();
    assert_eq!(state.tags, ["low_recall", "synonym_miss"]);
    assert!(state.processed);

    let newer = service
        .submit(rates("jane", "q1", SearchRatingValue::Up))
        .await
        .unwrap();
    let state = service.get(&rating.feedback_id).await.search_rating.unwrap();
    assert!(state.replaced && !newer.search_rating.unwrap().replaced);
    let all = pb::SearchRatingFilter::default();
    assert_eq!(
        listed(&service, all.clone()).await,
        [&*newer.feedback_id, &*rating.feedback_id]
    );
    let tagged = pb::SearchRatingFilter {
        tag: "low_recall".into(),
        processed: Some(true),
        value: SearchRatingValue::Down.into(),
        ..all
    };
    assert_eq!(listed(&service, tagged).await, [&*rating.feedback_id]);
    let rendered = metrics.render();
    for line in [
        // Nobody knows yet whether their queries will be recorded.
        "emend_search_ratings_total{rating=\"down\",query_type=\"unknown\"} 0",
        "emend_search_ratings_total{rating=\"up\",query_type=\"unknown\"} 0",
        "emend_search_ratings_total{rating=\"neutral\",query_type=\"unknown\"} 0",
        "emend_search_ratings_failed_total 0",
        "emend_feedback_stored_total{correction=\"search_rating\"} 2",
    ] {
        assert!(rendered.contains(&format!("\n{line}\n")), "{line}\n{rendered}");
    }
    service.stop().await;
}

/// What must not be found in any file of the database.
const PLANTED: [&str; 9] = [
    "<script",
    "alert(1)",
    "onerror",
    "<b>",
    "planted.one@example.org",
    "planted.two@example.org",
    "7946 0958",
    "4111 1111 1111 1111",
    "192.0.2.171",
];

async fn what_people_write_is_stored_as_plain_text_without_personal_data(database: Database) {
    let (service, metrics) = start(&database).await;
    let with = |reason: &str| pb::SubmitFeedbackRequest {
        reason: reason.into(),
        context: HashMap::from([(
            "comment".into(),
            "<img src=x onerror=alert(1)>planted.two@example.org from 192.0.2.171".into(),
        )]),
        ..rates("jane", &format!("q{}", reason.len()), SearchRatingValue::Down)
    };
    for (reason, kept) in [
        ("<script>alert(1)</script>no <b>hits</b>", "no hits"),
        (
            "<div><p onclick='alert(1)'>nested <i>and</p> broken</i",
            "nested and\nbroken",
        ),
        ("&lt;script&gt;alert(1)&lt;/script&gt;hidden", "hidden"),
        ("ask planted.one<b>@</b>example.org", "ask [email]"),
        ("call +44 20 7946 0958", "call [phone]"),
        (
            "card 4111 1111 1111 1111, from 192.0.2.171",
            "card [card], from [ip]",
        ),
        ("場 & 1 < 2", "場 & 1 < 2"),
    ] {
        let stored = service.submit(with(reason)).await.unwrap();
        assert_eq!(stored.reason, kept);
        assert_eq!(stored.context["comment"], "[email] from [ip]");
    }
    let rendered = metrics.render();
    for line in [
        "emend_search_ratings_html_removed_total 7",
        "emend_search_ratings_masked_total 7",
    ] {
        assert!(rendered.contains(&format!("\n{line}\n")), "{line}\n{rendered}");
    }
    service.stop().await;
    let Database::Sqlite(directory) = &database else {
        return;
    };
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        for planted in PLANTED {
            let is_there = bytes
                .windows(planted.len())
                .any(|window| window == planted.as_bytes());
            assert!(!is_there, "{planted}");
        }
    }
}

async fn the_eleventh_rating_in_a_minute_is_refused_and_told_when_it_will_not_be(database: Database) {
    let (service, metrics) = start(&database).await;
    let rate = async |number: usize| {
        let rating = rates("jane", &format!("q{number}"), SearchRatingValue::Down);
        service.submit(rating).await
    };
    for number in 0..10 {
        rate(number).await.unwrap();
    }
    let refused = rate(10).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let explained = Explained::from(&refused);
    assert_eq!(explained.reason.as_deref(), Some("RATING_LIMIT"));
    let wait = explained.retry_after.unwrap();
    assert!(
        wait <= Duration::from_mins(1) && wait > Duration::from_secs(30),
        "{wait:?}"
    );
    service
        .submit(rates("ken", "q1", SearchRatingValue::Down))
        .await
        .unwrap();
    service
        .submit(request("a"))
        .await
        .expect("other feedback is not limited");
    let line = "\nemend_search_ratings_refused_total 1\n";
    assert!(metrics.render().contains(line));
    service.stop().await;
}

async fn ratings_are_erased_like_all_feedback(database: Database) {
    let (service, _) = start(&database).await;
    let rating = service
        .submit(rates("jane", "q1", SearchRatingValue::Down))
        .await
        .unwrap();
    let redact = pb::RedactFeedbackRequest {
        namespace: "fund-admin".into(),
        feedback_id: rating.feedback_id.clone(),
        wait: pb::Wait::Evaluated.into(),
    };
    let redacted = service.client.clone().redact_feedback(redact).await.unwrap();
    let redacted = redacted.into_inner().feedback.unwrap();
    assert!(redacted.redacted_at.is_some() && redacted.reason.is_empty() && redacted.query_id.is_empty());
    assert_eq!(redacted.reporter, Some(Reporter::default()));
    assert_eq!(redacted.delivery_state(), DeliveryState::Delivered);
    assert!(redacted.search_rating.is_some());
    let newer = service
        .submit(rates("jane", "q1", SearchRatingValue::Up))
        .await
        .unwrap();
    let state = service.get(&rating.feedback_id).await.search_rating.unwrap();
    assert!(!state.replaced, "nobody knows any more whose it was");

    let erase = pb::RedactReporterRequest {
        namespace: "fund-admin".into(),
        reporter_id: "jane".into(),
    };
    let mut client = service.client.clone();
    let mut erase = tonic::Request::new(erase);
    erase.set_timeout(Duration::from_secs(1));
    let erased = client.redact_reporter(erase).await.unwrap().into_inner();
    assert_eq!((erased.redacted_count, erased.remaining_count), (1, 0));
    assert!(service.get(&newer.feedback_id).await.redacted_at.is_some());
    service.stop().await;
}

async fn exported(service: &Service, request: pb::ExportFeedbackRequest) -> (String, i32) {
    let channel = Channel::from_shared(format!("http://{}", service.handle.address())).unwrap();
    let mut client = QueryServiceClient::new(channel.connect_lazy());
    let mut parts = client.export_feedback(request).await.unwrap().into_inner();
    let (mut text, mut count) = (String::new(), 0);
    while let Some(part) = parts.message().await.unwrap() {
        text += &part.text;
        count += part.rating_count;
    }
    (text, count)
}

async fn ratings_that_count_are_exported_and_marked(database: Database) {
    let (service, _) = start(&database).await;
    let replaced = rates("jane", "q1", SearchRatingValue::Up);
    service.submit(replaced).await.unwrap();
    let down = service
        .submit(rates("jane", "q1", SearchRatingValue::Down))
        .await
        .unwrap();
    let up = service
        .submit(rates("ken", "q1", SearchRatingValue::Up))
        .await
        .unwrap();
    let retracted = service
        .submit(rates("ann", "q1", SearchRatingValue::Up))
        .await
        .unwrap();
    let retract = pb::RetractFeedbackRequest {
        namespace: "fund-admin".into(),
        feedback_id: retracted.feedback_id,
        ..pb::RetractFeedbackRequest::default()
    };
    service.client.clone().retract_feedback(retract).await.unwrap();
    let request = pb::ExportFeedbackRequest {
        namespace: "fund-admin".into(),
        format: pb::ExportFormat::Csv.into(),
        ..pb::ExportFeedbackRequest::default()
    };
    let (text, count) = exported(&service, request.clone()).await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), count), (3, 2), "{text}");
    assert!(lines[0].starts_with("feedback_id,received_at,query_id,rating,"));
    assert!(lines[1].starts_with(&up.feedback_id) && lines[2].starts_with(&down.feedback_id));
    // Nothing is known of the results: no rating gives a pair, and none is marked.
    let pairs = pb::ExportFeedbackRequest {
        format: pb::ExportFormat::Pairs.into(),
        mark_processed: true,
        ..request.clone()
    };
    assert_eq!(exported(&service, pairs).await, (String::new(), 0));
    let bad = pb::ExportFeedbackRequest {
        search_ratings: Some(pb::SearchRatingFilter {
            value: SearchRatingValue::Down.into(),
            processed: Some(false),
            ..pb::SearchRatingFilter::default()
        }),
        format: pb::ExportFormat::Jsonl.into(),
        mark_processed: true,
        ..request
    };
    let (text, count) = exported(&service, bad.clone()).await;
    let object: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
    assert_eq!(
        (count, object["feedbackId"].as_str()),
        (1, Some(&*down.feedback_id))
    );
    assert!(
        service
            .get(&down.feedback_id)
            .await
            .search_rating
            .unwrap()
            .processed
    );
    assert!(
        !service
            .get(&up.feedback_id)
            .await
            .search_rating
            .unwrap()
            .processed
    );
    assert_eq!(exported(&service, bad).await.1, 0, "each is given once");
    service.stop().await;
}
