use std::sync::Arc;

use jiff::SignedDuration;
use learning_store::log::testing::{TestLog as _, write};

use super::*;
use crate::stream::{
    Settings, Stream,
    testing::{MemoryLog, catch_up, replica},
};

fn revision(stream: &Stream) -> i64 {
    stream.state().unwrap().revision()
}

#[tokio::test]
async fn the_state_is_loaded_first_and_then_the_log_followed_page_by_page() {
    let log = MemoryLog::default();
    let settings = Settings {
        page_size: PageSize {
            revisions: 2,
            bytes: 1_000,
        },
        ..Settings::default()
    };
    let stream = replica(&log, settings).await;
    for _ in 0..5 {
        log.append(&[write("k", Some("x"))]).await;
    }
    let tailer = stream.tailer();
    assert_eq!(tailer.run_once().await.unwrap(), TailOutcome::More);
    assert_eq!(revision(&stream), 2);
    assert_eq!(tailer.run_once().await.unwrap(), TailOutcome::More);
    assert_eq!(tailer.run_once().await.unwrap(), TailOutcome::Current);
    assert_eq!(tailer.run_once().await.unwrap(), TailOutcome::Current);
    assert_eq!(revision(&stream), 5);
}

#[tokio::test]
async fn large_revisions_are_read_one_by_one_and_a_gap_among_them_is_noticed() {
    let log = MemoryLog::default();
    let settings = Settings {
        page_size: PageSize {
            revisions: 64,
            bytes: 1,
        },
        ..Settings::default()
    };
    let stream = replica(&log, settings).await;
    for _ in 0..4 {
        log.append(&[write("k", Some("x"))]).await;
    }
    let tailer = stream.tailer();
    assert_eq!(tailer.run_once().await.unwrap(), TailOutcome::More);
    assert_eq!(revision(&stream), 1);
    log.tear(3);
    assert_eq!(tailer.run_once().await.unwrap(), TailOutcome::More);
    let error = tailer.run_once().await.unwrap_err();
    assert!(matches!(error, TailError::Gap { missing: 3, head: 4 }), "{error}");
}

#[tokio::test]
async fn a_missing_revision_is_an_error_and_nothing_beyond_it_is_published() {
    let log = MemoryLog::default();
    let stream = replica(&log, Settings::default()).await;
    for _ in 0..3 {
        log.append(&[write("k", Some("x"))]).await;
    }
    log.tear(2);
    let error = stream.tailer().run_once().await.unwrap_err();
    assert!(matches!(error, TailError::Gap { missing: 2, head: 3 }), "{error}");
    assert_eq!(revision(&stream), 0);
}

#[tokio::test]
async fn a_store_failure_changes_nothing_and_following_goes_on_later() {
    let log = MemoryLog::default();
    let stream = replica(&log, Settings::default()).await;
    log.append(&[write("k", Some("x"))]).await;
    log.fail(true);
    assert!(stream.tailer().run_once().await.is_err());
    assert_eq!(revision(&stream), 0);
    log.fail(false);
    catch_up(&stream).await;
    assert_eq!(revision(&stream), 1);
}

#[tokio::test]
async fn when_the_log_goes_backwards_one_of_several_replicas_mints_the_epoch() {
    let log = MemoryLog::default();
    let (one, other) = (
        replica(&log, Settings::default()).await,
        replica(&log, Settings::default()).await,
    );
    for key in ["a", "b", "c"] {
        log.append(&[write(key, Some("x"))]).await;
    }
    catch_up(&one).await;
    catch_up(&other).await;
    let before = one.state().unwrap().epoch();

    log.lose_above(1).await;
    assert_eq!(one.tailer().run_once().await.unwrap(), TailOutcome::NewEpoch);
    assert_eq!(other.tailer().run_once().await.unwrap(), TailOutcome::NewEpoch);
    let (state, others) = (one.state().unwrap(), other.state().unwrap());
    assert_eq!(
        (state.epoch(), state.revision()),
        (others.epoch(), others.revision())
    );
    assert_ne!(state.epoch(), before);
    assert_eq!(state.revision(), 1);
    assert!(state.get("a", 1, "a", "", "").is_some() && state.get("a", 1, "b", "", "").is_none());
}

#[tokio::test]
async fn a_log_that_lost_its_tail_and_grew_past_it_is_noticed() {
    let log = MemoryLog::default();
    let stream = replica(&log, Settings::default()).await;
    for key in ["a", "b", "c"] {
        log.append(&[write(key, Some("x"))]).await;
    }
    catch_up(&stream).await;
    log.lose_above(1).await;
    log.advance(SignedDuration::from_secs(1));
    for key in ["d", "e", "f"] {
        log.append(&[write(key, Some("x"))]).await;
    }
    assert_eq!(stream.tailer().run_once().await.unwrap(), TailOutcome::NewEpoch);
    let state = stream.state().unwrap();
    assert_eq!(state.revision(), 4);
    assert!(state.get("a", 1, "c", "", "").is_none() && state.get("a", 1, "f", "", "").is_some());
}

#[tokio::test]
async fn a_raised_horizon_reaches_the_state() {
    let log = MemoryLog::default();
    let stream = replica(&log, Settings::default()).await;
    log.append(&[write("k", Some("x"))]).await;
    log.append(&[write("k", None)]).await;
    catch_up(&stream).await;
    assert_eq!(stream.state().unwrap().tombstones(), 1);
    log.advance(SignedDuration::from_hours(24 * 8));
    assert_eq!(stream.retention().run_once().await.unwrap(), 2);
    catch_up(&stream).await;
    let state = stream.state().unwrap();
    assert_eq!((state.horizon(), state.tombstones()), (2, 0));
}

#[tokio::test]
async fn waiting_for_a_revision_ends_when_it_is_published_or_times_out() {
    let log = MemoryLog::default();
    let settings = Settings {
        max_wait: std::time::Duration::from_millis(20),
        ..Settings::default()
    };
    let stream = replica(&log, settings).await;
    let error = stream.wait_for(1, None).await.unwrap_err();
    assert_eq!(error.reason(), "REPLICA_BEHIND");
    let waiting = {
        let stream = stream.clone();
        async move { stream.wait_for(1, None).await.map(|state| state.revision()) }
    };
    let publishing = async {
        log.append(&[write("k", Some("x"))]).await;
        catch_up(&stream).await;
    };
    let (waited, ()) = tokio::join!(waiting, publishing);
    assert_eq!(waited.unwrap(), 1);
    let empty = Stream::new(
        Arc::new(log.clone()),
        Settings {
            max_wait: std::time::Duration::from_millis(1),
            ..Settings::default()
        },
        emend_base::ManualClock::default().shared(),
        emend_base::Entropy::seeded(1),
    );
    assert_eq!(empty.wait_for(0, None).await.unwrap_err().reason(), "NOT_LOADED");
}

#[tokio::test]
async fn a_database_of_another_installation_is_not_served() {
    let log = MemoryLog::default();
    let stream = replica(&log, Settings::default()).await;
    let served = stream.state().unwrap().installation();
    log.replace_installation(InstallationId(uuid::Uuid::from_u128(9)));
    let error = stream.tailer().run_once().await.unwrap_err();
    assert!(matches!(error, TailError::OtherInstallation { .. }), "{error}");
    assert_eq!(stream.state().unwrap().installation(), served);
}

fn page_of_one() -> Settings {
    Settings {
        page_size: PageSize {
            revisions: 1,
            bytes: 1_000,
        },
        ..Settings::default()
    }
}

#[tokio::test]
async fn no_state_is_published_that_lacks_a_value_which_the_log_no_longer_has() {
    let empty = MemoryLog::default();
    let stream = replica(&empty, page_of_one()).await;
    catch_up(&stream).await;
    for value in ["first", "second", "third"] {
        empty
            .append(&[write("k", Some(value)), write(value, Some("x"))])
            .await;
    }
    empty.append(&[write("other", Some("x"))]).await;
    empty.drop_first_value(1);
    empty.drop_first_value(2);
    assert_eq!(stream.tailer().run_once().await.unwrap(), TailOutcome::More);
    let state = stream.state().unwrap();
    assert_eq!(state.revision(), 3, "all three pages at once");
    let entry = state.get("a", 1, "k", "", "").unwrap();
    assert_eq!((entry.revision, entry.value.as_deref()), (3, Some(&b"third"[..])));
    assert!(state.get("a", 1, "first", "", "").is_some());
    assert_eq!(stream.tailer().run_once().await.unwrap(), TailOutcome::Current);
}

#[tokio::test]
async fn a_value_that_is_not_kept_and_not_replaced_is_an_error() {
    let log = MemoryLog::default();
    let stream = replica(&log, page_of_one()).await;
    catch_up(&stream).await;
    log.append(&[write("k", Some("x"))]).await;
    log.drop_first_value(1);
    let error = stream.tailer().run_once().await.unwrap_err();
    assert!(error.to_string().contains("no newer change"), "{error}");
    assert_eq!(revision(&stream), 0);
}
