//! Ratings over the wire: what can be rated is said by settings, which may change.

use emend_base::status::Explained;
use emend_proto::{
    common::v1::{Correction, Rating, RatingClass, correction::Correction as Form},
    feedback::v1::{self as pb, settings_service_client::SettingsServiceClient},
    learning::v1::event,
};
use feedback_store::testing::Backend;
use jiff::{SignedDuration, Timestamp};
use prost_types::FieldMask;
use tonic::{Code, transport::Channel};

use crate::tests::{
    Database, Service, request,
    service::{start, stop},
    with_id,
};

on_both! {
    an_application_rates_targets_of_its_own
    a_request_stays_the_same_whatever_the_settings_become
    ratings_are_listed_by_target_value_and_day
}

fn rates(target: &str, value: &str) -> pb::SubmitFeedbackRequest {
    let rating = Rating {
        target: target.into(),
        value: value.into(),
        target_id: "output-1".into(),
        input_text: "in".into(),
        output_text: "out".into(),
        ..Rating::default()
    };
    let correction = Correction {
        correction: Some(Form::Rating(rating)),
    };
    pb::SubmitFeedbackRequest {
        correction: Some(correction),
        ..request("unused")
    }
}

fn rating(feedback: &pb::Feedback) -> &Rating {
    let Some(Form::Rating(rating)) = feedback.correction.as_ref().and_then(|of| of.correction.as_ref())
    else {
        panic!("no rating: {feedback:?}")
    };
    rating
}

/// Sets what can be rated: the target TRIAGE with these values, or nothing.
async fn set(service: &Service, values: &[(&str, RatingClass)]) {
    let channel = Channel::from_shared(format!("http://{}", service.handle.address())).unwrap();
    let value = |(name, class): &(&str, RatingClass)| pb::RatedValue {
        name: (*name).into(),
        counts_as: (*class).into(),
    };
    let target = (!values.is_empty()).then(|| pb::RatedTarget {
        name: "TRIAGE".into(),
        values: values.iter().map(value).collect(),
        is_judgement: false,
    });
    let update = pb::UpdateSettingsRequest {
        settings: Some(pb::Settings {
            namespace: "fund-admin".into(),
            rated_targets: target.into_iter().collect(),
            ..pb::Settings::default()
        }),
        update_mask: Some(FieldMask {
            paths: vec!["rated_targets".into()],
        }),
        ..pb::UpdateSettingsRequest::default()
    };
    let mut settings = SettingsServiceClient::new(channel.connect_lazy());
    settings.update_settings(update).await.unwrap();
}

async fn batch(
    service: &Service,
    requests: Vec<pb::SubmitFeedbackRequest>,
) -> Vec<pb::BatchSubmitFeedbackResult> {
    let batch = pb::BatchSubmitFeedbackRequest {
        requests,
        ..pb::BatchSubmitFeedbackRequest::default()
    };
    let response = service.client.clone().batch_submit_feedback(batch).await;
    response.unwrap().into_inner().results
}

/// The one field that is wrong, and why.
fn wrong(status: &tonic::Status) -> (String, String) {
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    let mut violations = Explained::from(status).field_violations;
    assert_eq!(violations.len(), 1, "{violations:?}");
    let violation = violations.remove(0);
    (violation.field, violation.description)
}

async fn an_application_rates_targets_of_its_own(database: Database) {
    let (service, learning, lifecycle) = start(&database).await;
    let refused = service.submit(rates("TRIAGE", "RIGHT")).await.unwrap_err();
    let (field, why) = wrong(&refused);
    assert_eq!(field, "correction.rating.target");
    assert!(why.ends_with("EVALUATE, TASK_EXTRACT, is \"TRIAGE\""), "{why}");

    set(
        &service,
        &[("RIGHT", RatingClass::Good), ("WRONG", RatingClass::Bad)],
    )
    .await;
    let stored = service.submit(rates("TRIAGE", "WRONG")).await.unwrap();
    assert_eq!(rating(&stored).counts_as(), RatingClass::Bad);
    service.delivered(&stored.feedback_id).await;
    let [event::Event::Recorded(sent)] = &learning.received_of(&stored.feedback_id)[..] else {
        panic!("{:?}", learning.received())
    };
    let Some(Form::Rating(sent)) = sent.correction.as_ref().and_then(|of| of.correction.as_ref()) else {
        panic!("{sent:?}")
    };
    assert_eq!(sent.counts_as(), RatingClass::Bad, "it travels with its event");

    let (field, why) = wrong(&service.submit(rates("TRIAGE", "MAYBE")).await.unwrap_err());
    assert_eq!(field, "correction.rating.value");
    assert!(why.contains("RIGHT, WRONG with TRIAGE"), "{why}");
    let (_, why) = wrong(&service.submit(rates("OTHER", "RIGHT")).await.unwrap_err());
    assert!(why.contains("TASK_EXTRACT, TRIAGE"), "{why}");
    let elsewhere = pb::SubmitFeedbackRequest {
        namespace: "elsewhere".into(),
        ..rates("TRIAGE", "RIGHT")
    };
    let several = vec![
        rates("TRIAGE", "RIGHT"),
        elsewhere,
        rates("TRIAGE", "MAYBE"),
        rates("EVALUATE", "MISSED"),
    ];
    let codes: Vec<Code> = batch(&service, several)
        .await
        .into_iter()
        .map(|result| Code::from(result.status.unwrap().code))
        .collect();
    assert_eq!(
        codes,
        [Code::Ok, Code::InvalidArgument, Code::InvalidArgument, Code::Ok]
    );
    stop(service, lifecycle).await;
}

async fn a_request_stays_the_same_whatever_the_settings_become(database: Database) {
    let (service, _, lifecycle) = start(&database).await;
    let repeated = with_id("r", rates("TRIAGE", "RIGHT"));
    set(&service, &[("RIGHT", RatingClass::Good)]).await;
    let first = service.submit(repeated.clone()).await.unwrap();
    for values in [
        &[("RIGHT", RatingClass::Bad)][..],
        &[("WRONG", RatingClass::Bad)],
        &[],
    ] {
        set(&service, values).await;
        let again = service.submit(repeated.clone()).await.unwrap();
        assert_eq!(again.feedback_id, first.feedback_id, "{values:?}");
        assert_eq!(rating(&again).counts_as(), RatingClass::Good, "as it was stored");
        let several = batch(&service, vec![repeated.clone(), request("new")]).await;
        assert_eq!(
            several[0].feedback.as_ref().unwrap().feedback_id,
            first.feedback_id
        );
        assert!(several[1].feedback.is_some());
    }
    let mut other = repeated.clone();
    other.reason = "another".into();
    wrong(&service.submit(other).await.unwrap_err());
    wrong(
        &service
            .submit(with_id("s", rates("TRIAGE", "RIGHT")))
            .await
            .unwrap_err(),
    );
    wrong(&service.submit(rates("TRIAGE", "RIGHT")).await.unwrap_err());
    assert_eq!(rating(&service.get(&first.feedback_id).await).value, "RIGHT");
    stop(service, lifecycle).await;
}

async fn ratings_are_listed_by_target_value_and_day(database: Database) {
    let (service, _, lifecycle) = start(&database).await;
    let mut ids = Vec::new();
    for request in [
        rates("INTERPRET", "GOOD"),
        rates("INTERPRET", "BAD"),
        request("a"),
        rates("INTERPRET", "BAD"),
    ] {
        ids.push(service.submit(request).await.unwrap());
    }
    let received = ids[3].received_at.unwrap();
    let received = Timestamp::from_second(received.seconds).unwrap();
    let day = |time: Timestamp| time.strftime("%Y-%m-%d").to_string();
    let asked = |day: String, page_token: &str| pb::ListFeedbackRequest {
        namespace: "fund-admin".into(),
        rating_target: "INTERPRET".into(),
        rating_value: "BAD".into(),
        day,
        time_zone: "Etc/GMT-14".into(),
        page_size: 1,
        page_token: page_token.into(),
        ..pb::ListFeedbackRequest::default()
    };
    let mut client = service.client.clone();
    // Of the two days at most one can have begun or ended between the first and the last rating.
    let there = received + SignedDuration::from_hours(14);
    let page = client
        .list_feedback(asked(day(there), ""))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(page.feedback[0].feedback_id, ids[3].feedback_id);
    let next = asked(day(there), &page.next_page_token);
    let next_page = client.list_feedback(next.clone()).await.unwrap().into_inner();
    assert_eq!(next_page.feedback[0].feedback_id, ids[1].feedback_id);
    let other = pb::ListFeedbackRequest {
        time_zone: "UTC".into(),
        ..next
    };
    assert_eq!(
        wrong(&client.list_feedback(other).await.unwrap_err()).0,
        "page_token"
    );
    let tomorrow = day(there + SignedDuration::from_hours(48));
    let none = client
        .list_feedback(asked(tomorrow, ""))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(none.feedback, []);
    stop(service, lifecycle).await;
}
