//! Ratings of search answers at two replicas of feedback-svc on one PostgreSQL: the limits hold over both.

use std::time::Duration;

use emend_base::status::Explained;
use emend_proto::{
    common::v1::{Reporter, SearchRatingValue},
    feedback::v1::{
        RatingLimits, Settings, SubmitFeedbackRequest, UpdateSettingsRequest,
        settings_service_client::SettingsServiceClient,
    },
};
use emend_tests::{
    harness::{NAMESPACE, System, answered, says::search_rates},
    replicated,
};
use tonic::{Code, Status};

/// A rating by each kind of rater: a reporter, a session, a client key, and all of the caller.
fn raters() -> [Reporter; 4] {
    let of = |id: &str, session_id: &str, client_key: &str| Reporter {
        id: id.into(),
        session_id: session_id.into(),
        client_key: client_key.into(),
        ..Reporter::default()
    };
    [
        of("jane", "", ""),
        of("", "s1", ""),
        of("", "", "k1"),
        of("", "", ""),
    ]
}

/// Rates at one replica or the other.
async fn rate(system: &System, rater: &Reporter, number: usize) -> Result<(), Status> {
    let request = SubmitFeedbackRequest {
        reporter: Some(rater.clone()),
        ..search_rates("", &format!("q{number}"), SearchRatingValue::Down)
    };
    let mut service = system.feedback_at(number % 2).service;
    service.submit_feedback(request).await.map(drop)
}

/// Checks that so many ratings are taken and the next is refused until the first is older than `window`.
async fn takes(system: &System, rater: &Reporter, most: usize, window: Duration) {
    for number in 0..most {
        let taken = rate(system, rater, number).await;
        assert!(taken.is_ok(), "{number} of {rater:?}: {taken:?}");
    }
    for number in [most, most + 1] {
        let refused = rate(system, rater, number).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        let explained = Explained::from(&refused);
        assert_eq!(explained.reason.as_deref(), Some("RATING_LIMIT"));
        let wait = explained.retry_after.unwrap();
        assert!(wait <= window && wait > window / 2, "{wait:?}");
    }
}

replicated! {
    async fn the_eleventh_rating_in_a_minute_is_refused_at_either_replica(system: 2 x 1) {
        for rater in raters() {
            takes(system, &rater, 10, Duration::from_mins(1)).await;
        }
    }

    async fn the_hundred_and_first_rating_in_an_hour_is_refused_at_either_replica(system: 2 x 1) {
        let update = UpdateSettingsRequest {
            settings: Some(Settings {
                namespace: NAMESPACE.into(),
                rating_limits: Some(RatingLimits { per_minute: 100, per_hour: 100 }),
                ..Settings::default()
            }),
            ..UpdateSettingsRequest::default()
        };
        let mut settings = SettingsServiceClient::new(system.feedback_at(0).channel);
        answered(settings.update_settings(update).await);
        for rater in raters() {
            takes(system, &rater, 100, Duration::from_hours(1)).await;
        }
    }
}
