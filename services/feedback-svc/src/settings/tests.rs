//! Settings: versions, and what is refused.

use std::sync::Arc;

use emend_core::{Caller, RatingClass, ratings::OwnTarget, search::SearchRating};
use feedback_store::{
    ports::Inserted,
    records::{
        limits::RatingLimits,
        settings::{Change, Settings, SettingsUpdate},
    },
    testing::{Backend, TestStore, inserted, namespace, search_rated},
};
use tokio::time::Duration;

use crate::settings::NamespaceSettings;

fn to(hours: u64, etag: Option<&str>) -> SettingsUpdate {
    SettingsUpdate {
        namespace: namespace(),
        etag: etag.map(str::to_owned),
        personal_retention: Change::Set(Some(Duration::from_hours(hours))),
        rated_targets: Change::Keep,
        query_retention: Change::Keep,
        max_queries: Change::Keep,
        rating_limits: Change::Keep,
        caller: Caller::parse("console").unwrap(),
        on_behalf_of: String::new(),
        reason: String::new(),
    }
}

async fn each_change_is_a_version_and_an_old_etag_is_refused(database: &TestStore) {
    let settings = NamespaceSettings {
        store: database.sql(),
        wake: Arc::default(),
    };
    let before = settings.get(namespace()).await.unwrap();
    assert_eq!(before, Settings::default_of(namespace()));
    let first = settings.update(&to(24, Some("0"))).await.unwrap();
    assert_eq!(
        (first.version, first.personal_retention),
        (1, Some(Duration::from_hours(24)))
    );
    assert!(first.updated_at.is_some());
    let same = settings.update(&to(24, None)).await.unwrap();
    assert_eq!(same, first, "nothing changed");
    let late = settings.update(&to(48, Some("0"))).await.unwrap_err();
    assert_eq!(late.reason(), "ETAG_MISMATCH");
    let none = SettingsUpdate {
        personal_retention: Change::Set(None),
        ..to(1, Some("1"))
    };
    let last = settings.update(&none).await.unwrap();
    assert_eq!((last.version, last.personal_retention), (2, None));

    let values = [("RIGHT", RatingClass::Good), ("WRONG", RatingClass::Bad)];
    let targets = vec![OwnTarget::parse("TRIAGE", values, true).unwrap()];
    let with_targets = SettingsUpdate {
        rated_targets: Change::Set(targets.clone()),
        ..to(24, Some("2"))
    };
    let with_targets = settings.update(&with_targets).await.unwrap();
    assert_eq!((with_targets.version, &with_targets.rated_targets), (3, &targets));
    let later = settings.update(&to(48, None)).await.unwrap();
    assert_eq!(
        (later.version, &later.rated_targets),
        (4, &targets),
        "they are kept"
    );
    assert_eq!(settings.get(namespace()).await.unwrap().rated_targets, targets);
    let elsewhere = emend_core::Namespace::parse("elsewhere").unwrap();
    assert_eq!(settings.get(elsewhere).await.unwrap().rated_targets, []);

    let limits = RatingLimits::parse(2, 3).unwrap();
    let limited = SettingsUpdate {
        personal_retention: Change::Keep,
        rating_limits: Change::Set(Some(limits)),
        ..to(1, None)
    };
    let limited = settings.update(&limited).await.unwrap();
    assert_eq!(limited.rating_limits, Some(limits));
    let rate = |number| search_rated(["jane", "", ""], number, SearchRating::Down);
    let answers = inserted(&*database.store, &["a", "b", "c"].map(rate), None).await;
    assert!(
        matches!(answers[2], Inserted::TooOften(_)),
        "they are in force at once"
    );
}

#[tokio::test]
async fn on_sqlite() {
    let database = TestStore::sqlite().await;
    each_change_is_a_version_and_an_old_etag_is_refused(&database).await;
    database.close().await;
}

#[tokio::test]
async fn on_postgres() {
    if let Some(database) = TestStore::open(Backend::Postgres).await {
        each_change_is_a_version_and_an_old_etag_is_refused(&database).await;
        database.close().await;
    }
}
