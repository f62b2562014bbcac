//! The contract of what is stored of nodes, for every implementation.

use super::*;
use crate::{
    Store,
    log::suite::{epoch, installation},
};

async fn write(store: &impl Store, replica: &str, writes: &[NodeWrite]) {
    let mut work = store.begin().await.unwrap();
    work.nodes().write(replica, writes).await.unwrap();
    work.commit().await.unwrap();
}

async fn forget(store: &impl Store, unseen_for: SignedDuration) -> u64 {
    let mut work = store.begin().await.unwrap();
    let forgotten = work.nodes().forget(unseen_for).await.unwrap();
    work.commit().await.unwrap();
    forgotten
}

fn node(id: &str, caller: &str, connection: Option<Connection>, report: Option<&[u8]>) -> NodeWrite {
    NodeWrite {
        node_id: NodeId::parse(id).unwrap(),
        caller: Caller::parse(caller).unwrap(),
        connection,
        report: report.map(<[u8]>::to_vec),
    }
}

fn opening(seconds_ago: u64) -> Opening {
    Opening {
        info: b"info".to_vec(),
        at: Instant::now() - std::time::Duration::from_secs(seconds_ago),
    }
}

async fn listed(log: &impl Store) -> Vec<(String, String, bool, Vec<u8>)> {
    let day = SignedDuration::from_hours(24);
    let page = log.list_nodes(None, 100, day).await.unwrap();
    let rows = page.nodes.into_iter();
    rows.map(|row| (row.node_id, row.caller, row.connected, row.report))
        .collect()
}

pub(crate) async fn nodes_are_written_listed_and_forgotten(log: impl Store) {
    log.create_head(epoch(1), installation(1)).await.unwrap();
    let opened = |seconds_ago| Some(Connection::Opened(opening(seconds_ago)));
    let flash = Some(Connection::OpenedAndClosed(opening(20)));
    write(
        &log,
        "r1",
        &[
            node("b", "me", opened(20), None),
            node("a", "me", opened(20), Some(b"first")),
            node("a", "you", flash, None),
            node("nobody", "me", Some(Connection::Closed), Some(b"lost")),
        ],
    )
    .await;
    let row = |id: &str, caller: &str, connected, report: &[u8]| {
        (id.to_owned(), caller.to_owned(), connected, report.to_vec())
    };
    let all = [
        row("a", "me", true, b"first"),
        row("a", "you", false, b""),
        row("b", "me", true, b""),
    ];
    assert_eq!(listed(&log).await, all);
    assert_eq!(
        log.node_callers(&NodeId::parse("a").unwrap())
            .await
            .unwrap()
            .len(),
        2
    );

    // The node moved to another replica before the first recorded that its stream had ended.
    write(&log, "r2", &[node("a", "me", opened(10), None)]).await;
    write(&log, "r1", &[node("a", "me", Some(Connection::Closed), None)]).await;
    let mut work = log.begin().await.unwrap();
    work.nodes().touch("r2").await.unwrap();
    work.commit().await.unwrap();
    assert_eq!(listed(&log).await[0], row("a", "me", true, b"first"));
    write(
        &log,
        "r2",
        &[node("a", "me", Some(Connection::Closed), Some(b"second"))],
    )
    .await;
    assert_eq!(listed(&log).await[0], row("a", "me", false, b"second"));

    let day = SignedDuration::from_hours(24);
    let page = log
        .list_nodes(Some(("a".into(), "me".into())), 1, day)
        .await
        .unwrap();
    assert_eq!((page.nodes.len(), page.nodes[0].caller.as_str()), (1, "you"));
    assert!(page.nodes[0].seen_at <= page.now && page.nodes[0].info == b"info");

    // One that leaves is forgotten, unless another replica holds its stream by now.
    for replica in ["r2", "r1"] {
        write(&log, replica, &[node("b", "me", Some(Connection::Left), None)]).await;
        assert_eq!(listed(&log).await.len(), if replica == "r2" { 3 } else { 2 });
    }

    assert_eq!(forget(&log, day).await, 0);
    assert_eq!(forget(&log, -day).await, 2);
    assert!(listed(&log).await.is_empty());
}

pub(crate) async fn an_opening_that_is_written_late_does_not_hide_a_newer_one_on_another_replica(
    log: impl Store,
) {
    log.create_head(epoch(1), installation(1)).await.unwrap();
    let newer = node("a", "me", Some(Connection::Opened(opening(10))), None);
    write(&log, "r2", &[newer]).await;
    for late in [
        Connection::Opened(opening(60)),
        Connection::OpenedAndClosed(opening(60)),
        Connection::Closed,
    ] {
        write(&log, "r1", &[node("a", "me", Some(late), None)]).await;
        assert!(listed(&log).await[0].2, "r2 holds its stream");
    }
    // What a replica says about its own streams counts in the order it says it.
    let closed = node("a", "me", Some(Connection::OpenedAndClosed(opening(60))), None);
    write(&log, "r2", &[closed]).await;
    assert!(!listed(&log).await[0].2);
}

pub(crate) async fn nodes_are_counted_by_whether_they_are_connected(log: impl Store) {
    log.create_head(epoch(1), installation(1)).await.unwrap();
    let opened = || Some(Connection::Opened(opening(20)));
    let (minute, day) = (SignedDuration::from_mins(1), SignedDuration::from_hours(24));
    let count = async |connected_within, seen_within| {
        let counted = log.count_nodes(connected_within, seen_within).await.unwrap();
        (counted.connected, counted.disconnected)
    };
    assert_eq!(count(minute, day).await, (0, 0));
    write(
        &log,
        "r1",
        &[
            node("a", "me", opened(), None),
            node("b", "me", opened(), None),
            node("c", "me", Some(Connection::OpenedAndClosed(opening(20))), None),
        ],
    )
    .await;
    assert_eq!(count(minute, day).await, (2, 1));
    assert_eq!(count(-day, day).await, (0, 3), "their replica was not heard of");
    assert_eq!(count(minute, -day).await, (0, 0), "long gone");
}

/// Stamps the suite for one kind of store; `open` returns a store and what it needs, or none to skip the test.
macro_rules! stamp {
    ($open:expr, $($test:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $test() {
                if let Some((store, _guard)) = $open.await {
                    $crate::nodes::suite::$test(store).await;
                }
            }
        )*
    };
    ($open:expr) => {
        $crate::nodes::suite::stamp!(
            $open,
            nodes_are_written_listed_and_forgotten,
            nodes_are_counted_by_whether_they_are_connected,
            an_opening_that_is_written_late_does_not_hide_a_newer_one_on_another_replica,
        );
    };
}
pub(crate) use stamp;
