//! The contract of [`LogStore`] for every implementation, including the one in memory used by the stream's tests and
//! the simulation.

use emend_core::{Epoch, InstallationId, digest::value_checksum};
use emend_stream::log::{Loaded, LoggedChange};
use uuid::Uuid;

use super::{
    testing::{TestLog, write},
    *,
};

pub(crate) fn installation(number: u128) -> InstallationId {
    InstallationId(Uuid::from_u128(number))
}

pub(crate) fn epoch(number: u128) -> Epoch {
    Epoch(Uuid::from_u128(number))
}

async fn loaded(log: &impl TestLog) -> (Loaded, Vec<LoggedChange>) {
    let mut found = Vec::new();
    let loaded = log.load(&mut |changes| found.extend(changes)).await.unwrap();
    found.sort_by_key(|change| change.revision);
    (loaded, found)
}

fn keys(changes: &[LoggedChange]) -> Vec<&str> {
    changes.iter().map(|change| change.key.as_str()).collect()
}

/// At most this many revisions, whatever their size.
fn upto(revisions: i64) -> PageSize {
    PageSize {
        revisions,
        bytes: usize::MAX,
    }
}

pub(crate) async fn a_new_log_is_empty_and_keeps_its_first_epoch_and_installation(log: impl TestLog) {
    assert_eq!(log.find_head().await.unwrap(), None);
    log.create_head(epoch(1), installation(1)).await.unwrap();
    log.create_head(epoch(2), installation(2)).await.unwrap();
    let head = Head {
        epoch: epoch(1),
        installation: installation(1),
        revision: 0,
        horizon: 0,
    };
    assert_eq!(log.head().await.unwrap(), head);
    assert_eq!(log.find_head().await.unwrap(), Some(head));
    let (loaded, changes) = loaded(&log).await;
    assert_eq!((loaded.head, loaded.committed_at, changes.len()), (head, 0, 0));
    let page = log.revisions_after(0, upto(10)).await.unwrap();
    assert_eq!((page.head, page.anchor, page.revisions.len()), (head, None, 0));
}

pub(crate) async fn a_load_has_the_newest_state_of_every_key_and_every_deletion_above_the_horizon(
    log: impl TestLog,
) {
    log.create_head(epoch(1), installation(1)).await.unwrap();
    let old = SignedDuration::from_hours(48);
    log.append_aged(&[write("stays", Some("1")), write("goes early", Some("1"))], old)
        .await;
    log.append_aged(&[write("goes early", None)], old).await;
    log.append(&[
        write("stays", Some("2")),
        write("goes", Some("1")),
        write("returns", Some("1")),
    ])
    .await;
    log.append(&[write("goes", None), write("returns", None)]).await;
    log.append(&[write("returns", Some("2"))
        .of_kind("a", 99)
        .of_user("jane")
        .qualified("q")])
        .await;
    log.append(&[write("returns", Some("2"))]).await;
    let horizon = log
        .raise_horizon(SignedDuration::from_hours(24), 1_000)
        .await
        .unwrap();
    assert_eq!(horizon, 2);

    let (loaded, changes) = loaded(&log).await;
    assert_eq!((loaded.head.revision, loaded.head.horizon), (6, 2));
    assert_eq!(keys(&changes), ["stays", "goes", "returns", "returns"]);
    let page = log.revisions_after(5, upto(10)).await.unwrap();
    assert_eq!(page.revisions[0].committed_at, loaded.committed_at);
    assert_eq!(page.revisions[0].changes[0], changes[3]);
    let unknown = &changes[2];
    assert_eq!(
        (unknown.kind, unknown.user_id.as_str(), unknown.qualifier.as_str()),
        (99, "jane", "q")
    );
    assert_eq!(unknown.value.as_deref(), Some(b"2".as_slice()));
    assert_eq!(unknown.checksum, value_checksum(b"2"));
    assert_eq!(
        (unknown.feedback_received_at, unknown.traceparent.as_str()),
        (7, "trace")
    );
    assert_eq!((changes[1].revision, &changes[1].value), (4, &None));
}

pub(crate) async fn pages_are_contiguous_and_know_the_head_and_their_anchor(log: impl TestLog) {
    log.create_head(epoch(1), installation(1)).await.unwrap();
    for number in 1..=7 {
        let changes: Vec<_> = (0..number)
            .map(|key| write(&format!("{key}"), Some("x")))
            .collect();
        assert_eq!(log.append(&changes).await, number);
    }
    let page = log.revisions_after(2, upto(3)).await.unwrap();
    assert_eq!(page.head.revision, 7);
    assert!(page.anchor.is_some());
    let found: Vec<_> = page
        .revisions
        .iter()
        .map(|revision| (revision.revision, revision.changes.len()))
        .collect();
    assert_eq!(found, [(3, 3), (4, 4), (5, 5)]);
    assert_eq!(keys(&page.revisions[2].changes), ["0", "1", "2", "3", "4"]);
    let end = log.revisions_after(7, upto(3)).await.unwrap();
    assert!(end.anchor.is_some() && end.revisions.is_empty());
}

pub(crate) async fn a_page_ends_with_the_revision_that_fills_it(log: impl TestLog) {
    log.create_head(epoch(1), installation(1)).await.unwrap();
    let filling = "x".repeat(100);
    for _ in 0..5 {
        log.append(&[write("a", Some(&filling)), write("b", Some(&filling))])
            .await;
    }
    for (bytes, found) in [(1, 1), (200, 1), (300, 2), (usize::MAX, 5)] {
        let size = PageSize { revisions: 10, bytes };
        let page = log.revisions_after(0, size).await.unwrap();
        let revisions: Vec<_> = page.revisions.iter().map(|record| record.revision).collect();
        assert_eq!(revisions, (1..=found).collect::<Vec<_>>(), "of {bytes} bytes");
        assert!(page.revisions.iter().all(|record| record.changes.len() == 2));
        assert_eq!((page.is_full, page.head.revision), (found < 5, 5));
    }
    let size = PageSize {
        revisions: 2,
        bytes: usize::MAX,
    };
    let page = log.revisions_after(0, size).await.unwrap();
    assert!(!page.is_full, "it is the number that ends it");
    let size = PageSize {
        revisions: 10,
        bytes: 1,
    };
    let last = log.revisions_after(4, size).await.unwrap();
    assert!(!last.is_full, "there is nothing after it");
}

pub(crate) async fn what_was_lost_shows_in_the_head_and_in_the_anchor(log: impl TestLog) {
    log.create_head(epoch(1), installation(1)).await.unwrap();
    for _ in 0..3 {
        log.append(&[write("k", Some("x"))]).await;
    }
    log.lose_above(1).await;
    let page = log.revisions_after(3, upto(10)).await.unwrap();
    assert_eq!((page.head.revision, page.anchor), (1, None));
}

pub(crate) async fn the_horizon_rises_by_age_and_by_count_and_never_falls(log: impl TestLog) {
    log.create_head(epoch(1), installation(1)).await.unwrap();
    for number in 0..10 {
        let age = SignedDuration::from_hours(100 - number);
        log.append_aged(&[write(&number.to_string(), Some("x"))], age)
            .await;
    }
    for number in 0..10 {
        log.append(&[write(&number.to_string(), None)]).await;
    }
    let week = SignedDuration::from_hours(24 * 7);
    assert_eq!(log.raise_horizon(week, 10).await.unwrap(), 0);
    let by_age = log
        .raise_horizon(SignedDuration::from_mins(60 * 95 + 30), 10)
        .await
        .unwrap();
    assert_eq!(by_age, 5);
    assert_eq!(log.raise_horizon(week, 4).await.unwrap(), 16);
    assert_eq!(log.raise_horizon(week, 10).await.unwrap(), 16);
    assert_eq!(log.head().await.unwrap().horizon, 16);
    assert_eq!(loaded(&log).await.1.len(), 4);
}

pub(crate) async fn of_several_replicas_the_first_mints_the_epoch(log: impl TestLog) {
    log.create_head(epoch(1), installation(1)).await.unwrap();
    assert_eq!(log.mint_epoch(epoch(1), epoch(2)).await.unwrap(), epoch(2));
    assert_eq!(log.mint_epoch(epoch(1), epoch(3)).await.unwrap(), epoch(2));
    let head = log.head().await.unwrap();
    assert_eq!((head.epoch, head.installation), (epoch(2), installation(1)));
}

/// Stamps the suite for one kind of log; `open` returns a log and what it needs, or none to skip the test.
macro_rules! stamp {
    ($open:expr, $($test:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $test() {
                if let Some((log, _guard)) = $open.await {
                    $crate::log::suite::$test(log).await;
                }
            }
        )*
    };
    ($open:expr) => {
        $crate::log::suite::stamp!(
            $open,
            a_new_log_is_empty_and_keeps_its_first_epoch_and_installation,
            a_load_has_the_newest_state_of_every_key_and_every_deletion_above_the_horizon,
            pages_are_contiguous_and_know_the_head_and_their_anchor,
            a_page_ends_with_the_revision_that_fills_it,
            what_was_lost_shows_in_the_head_and_in_the_anchor,
            the_horizon_rises_by_age_and_by_count_and_never_falls,
            of_several_replicas_the_first_mints_the_epoch,
        );
    };
}
pub(crate) use stamp;
