//! What bounds a profile: how many entries a list may have, however they come into being, and how long activities are kept.

use emend_base::Error;
use emend_core::{
    ProfileEntry, ResourceKey, ResourceValue, Revision,
    kinds::{KNOWN_TECHNOLOGIES, LEARNING_GOALS, Learned},
};
use emend_serve::auth::Access;
use futures::future::join_all;
use jiff::SignedDuration;
use learning_store::profiles::ProfileStore;

use crate::{
    capabilities::Capabilities,
    decisions::profile_room::MAX_ENTRIES,
    erasure::worker::Eraser,
    log::revert::Revert,
    profiles::suggestions::entry_key,
    resources::write::{Delete, Put},
    tests::{
        erasure::assert_audited,
        on_both_databases,
        profiles::{accept, activity, list, on_behalf, record, suggest, update, user},
        world::{World, approval, assert_sound, head, namespace, review},
    },
};

on_both_databases!(
    of_those_who_add_the_last_entry_at_once_one_wins,
    a_full_list_takes_nothing_more_by_whichever_way,
    activities_are_forgotten_once_they_have_been_kept_for_long_enough,
);

fn key(entry: &str) -> ResourceKey {
    entry_key(&namespace(), &user("ann"), KNOWN_TECHNOLOGIES, entry).unwrap()
}

async fn put(app: &Capabilities, entry: &str) -> Result<Revision, Error> {
    let put = Put {
        key: key(entry),
        value: ResourceValue::new(
            KNOWN_TECHNOLOGIES,
            Learned::ProfileEntry(ProfileEntry::Text(entry.to_owned())),
        ),
        etag: None,
        reason: None,
        actor: on_behalf("ann"),
    };
    app.resources.put(&put).await.map(|done| done.revision)
}

/// Fills a list but for so many entries.
async fn fill(app: &Capabilities, free: usize) {
    let entries: Vec<String> = (free..MAX_ENTRIES).map(|number| format!("t{number}")).collect();
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    app.profiles
        .update_profile(&update("ann", &[(KNOWN_TECHNOLOGIES, &entries)]))
        .await
        .unwrap();
}

async fn count(app: &Capabilities) -> usize {
    list(app, "ann", KNOWN_TECHNOLOGIES).await.len()
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::ResourceExhausted { .. }) && error.reason() == "RESOURCE_LIMIT"
}

async fn of_those_who_add_the_last_entry_at_once_one_wins(world: &World) {
    let apps = [world.instance().await, world.instance().await];
    fill(&apps[0], 1).await;
    let calls = (0..10).map(|number| {
        let app = apps[number % 2].clone();
        tokio::spawn(async move { put(&app, &format!("new {number}")).await })
    });
    let (won, lost): (Vec<_>, Vec<_>) = join_all(calls)
        .await
        .into_iter()
        .map(Result::unwrap)
        .partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 9));
    assert!(
        lost.iter().all(|lost| is_full(lost.as_ref().unwrap_err())),
        "{lost:?}"
    );
    assert_eq!(count(&apps[0]).await, MAX_ENTRIES);
}

async fn a_full_list_takes_nothing_more_by_whichever_way(world: &World) {
    let app = world.instance().await;
    record(
        &app,
        "ann",
        &[activity(1, &["Go"], &["Kafka"]), activity(2, &["Go"], &[])],
    )
    .await;
    let suggested = suggest(&app, "ann").await;
    let of = |field: &str| {
        let mut found = suggested.iter();
        found.find(|of| of.record.key.key.as_str() == field).unwrap()
    };
    fill(&app, 0).await;
    app.resources
        .delete(&Delete {
            key: key("t7"),
            etag: None,
            reason: None,
            actor: on_behalf("ann"),
        })
        .await
        .unwrap();
    let deleted = Revision(head(&app).await);
    put(&app, "in its place").await.unwrap();
    assert_eq!(count(&app).await, MAX_ENTRIES);
    let before = head(&app).await;

    let technology = of(KNOWN_TECHNOLOGIES);
    let revert = Revert {
        namespace: namespace(),
        revision: deleted,
        reason: "a mistake".into(),
        actor: on_behalf("ann"),
    };
    let refused = [
        put(&app, "one more").await.unwrap_err(),
        accept(&app, "ann", technology).await.unwrap_err(),
        review(&app, technology.record.candidate.id, None, approval())
            .await
            .unwrap_err(),
        app.log.revert(&revert, &Access::open()).await.unwrap_err(),
    ];
    assert!(refused.iter().all(is_full), "{refused:?}");
    assert_eq!((count(&app).await, head(&app).await), (MAX_ENTRIES, before));

    // Another list has room, what is there may be written again, and who removes one may add another.
    accept(&app, "ann", of(LEARNING_GOALS)).await.unwrap();
    put(&app, "T8").await.unwrap();
    app.resources
        .delete(&Delete {
            key: key("t9"),
            etag: None,
            reason: None,
            actor: on_behalf("ann"),
        })
        .await
        .unwrap();
    accept(&app, "ann", technology).await.unwrap();
    assert_eq!(count(&app).await, MAX_ENTRIES);
    assert_sound(&app).await;
    assert_audited(world).await;
}

async fn activities_are_forgotten_once_they_have_been_kept_for_long_enough(world: &World) {
    let app = world.instance().await;
    let days = SignedDuration::from_hours(90 * 24);
    let mut worker = Eraser::new(world.store().await, days);
    let kept = async || {
        let store = world.store().await;
        let profiles: &dyn ProfileStore = &*store;
        let kept = profiles.activities(&namespace(), &user("ann"), None, 5_000).await;
        kept.unwrap().len()
    };
    let many: Vec<_> = (1..=1_500).map(|day| activity(day, &["Go"], &[])).collect();
    for part in many.chunks(500) {
        record(&app, "ann", part).await;
    }
    worker.run_once().await.unwrap();
    assert_eq!(
        kept().await,
        1_500,
        "they were recorded just now, however long ago they happened"
    );
    let made = suggest(&app, "ann").await;
    assert_eq!(made.len(), 1);
    // By the database's clock: 90 days but for an hour, and that hour.
    learning_store::testing::tamper(
        &world.url,
        "UPDATE activities SET recorded_at = recorded_at - 7772400000000",
    )
    .await;
    record(&app, "ann", &[activity(2_000, &["Go"], &[])]).await;
    worker.run_once().await.unwrap();
    assert_eq!(kept().await, 1_501);
    learning_store::testing::tamper(
        &world.url,
        "UPDATE activities SET recorded_at = recorded_at - 3600000000",
    )
    .await;
    worker.run_once().await.unwrap();
    assert_eq!(kept().await, 1, "all pages of them");
    // What was suggested from them stays.
    accept(&app, "ann", &made[0]).await.unwrap();
    assert_audited(world).await;
}
