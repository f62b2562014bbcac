//! The contract of [`LogStore`] for every implementation, including the one in memory used by the stream's tests and
//! the simulation.

use bytes::Bytes;
use emend_core::digest::value_checksum;
use uuid::Uuid;

use super::*;

/// A change to write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Written {
    pub(crate) namespace: String,
    pub(crate) kind: i32,
    pub(crate) key: String,
    pub(crate) qualifier: String,
    pub(crate) user_id: String,
    pub(crate) value: Option<Vec<u8>>,
}

/// Writes `value` to the global `key` of kind 1 in namespace `a`, or deletes it.
pub(crate) fn write(key: &str, value: Option<&str>) -> Written {
    Written {
        namespace: "a".into(),
        kind: 1,
        key: key.into(),
        qualifier: String::new(),
        user_id: String::new(),
        value: value.map(|value| value.as_bytes().to_vec()),
    }
}

impl Written {
    pub(crate) fn of_kind(mut self, namespace: &str, kind: i32) -> Self {
        self.namespace = namespace.into();
        self.kind = kind;
        self
    }

    pub(crate) fn of_user(mut self, user_id: &str) -> Self {
        self.user_id = user_id.into();
        self
    }

    pub(crate) fn qualified(mut self, qualifier: &str) -> Self {
        self.qualifier = qualifier.into();
        self
    }

    /// An id made of its key, for kinds that are not known as well.
    pub(crate) fn contest_id(&self) -> Uuid {
        let key = (
            &self.namespace,
            self.kind,
            &self.key,
            &self.qualifier,
            &self.user_id,
        );
        Uuid::new_v5(&Uuid::nil(), format!("{key:?}").as_bytes())
    }

    pub(crate) fn logged(&self, revision: i64, committed_at: i64) -> LoggedChange {
        LoggedChange {
            revision,
            committed_at,
            cause: 1,
            namespace: self.namespace.clone(),
            kind: self.kind,
            key: self.key.clone(),
            qualifier: self.qualifier.clone(),
            user_id: self.user_id.clone(),
            value: self.value.clone().map(Bytes::from),
            checksum: self.checksum(),
            feedback_received_at: 7,
            traceparent: "trace".into(),
        }
    }

    pub(crate) fn checksum(&self) -> u64 {
        self.value.as_deref().map_or(0, value_checksum)
    }
}

/// A log that can also be written and damaged.
#[async_trait]
pub(crate) trait TestLog: LogStore {
    /// Commits a revision as if `age` ago. Returns its number.
    async fn append_aged(&self, changes: &[Written], age: SignedDuration) -> i64;

    /// Drops all revisions above that one, as a failover that lost them does; resources stay as they are.
    async fn lose_above(&self, revision: i64);

    async fn append(&self, changes: &[Written]) -> i64 {
        self.append_aged(changes, SignedDuration::ZERO).await
    }
}

fn installation(number: u128) -> InstallationId {
    InstallationId(Uuid::from_u128(number))
}

fn epoch(number: u128) -> Epoch {
    Epoch(Uuid::from_u128(number))
}

async fn loaded(log: &impl TestLog) -> (Loaded, Vec<LoggedChange>) {
    let mut found = Vec::new();
    let loaded = log.load(&mut |change| found.push(change)).await.unwrap();
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
        let revisions: Vec<_> = page.revisions.iter().map(|of| of.revision).collect();
        assert_eq!(revisions, (1..=found).collect::<Vec<_>>(), "of {bytes} bytes");
        assert!(page.revisions.iter().all(|of| of.changes.len() == 2));
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

async fn listed(log: &impl TestLog) -> Vec<(String, String, bool, Vec<u8>)> {
    let day = SignedDuration::from_hours(24);
    let page = log.list_nodes(None, 100, day).await.unwrap();
    let rows = page.nodes.into_iter();
    rows.map(|row| (row.node_id, row.caller, row.connected, row.report))
        .collect()
}

pub(crate) async fn nodes_are_written_listed_and_forgotten(log: impl TestLog) {
    log.create_head(epoch(1), installation(1)).await.unwrap();
    let opened = |seconds_ago| Some(Connection::Opened(opening(seconds_ago)));
    let flash = Some(Connection::OpenedAndClosed(opening(20)));
    log.write_nodes(
        "r1",
        &[
            node("b", "me", opened(20), None),
            node("a", "me", opened(20), Some(b"first")),
            node("a", "you", flash, None),
            node("nobody", "me", Some(Connection::Closed), Some(b"lost")),
        ],
    )
    .await
    .unwrap();
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
    log.write_nodes("r2", &[node("a", "me", opened(10), None)])
        .await
        .unwrap();
    log.write_nodes("r1", &[node("a", "me", Some(Connection::Closed), None)])
        .await
        .unwrap();
    log.touch_nodes("r2").await.unwrap();
    assert_eq!(listed(&log).await[0], row("a", "me", true, b"first"));
    log.write_nodes(
        "r2",
        &[node("a", "me", Some(Connection::Closed), Some(b"second"))],
    )
    .await
    .unwrap();
    assert_eq!(listed(&log).await[0], row("a", "me", false, b"second"));

    let day = SignedDuration::from_hours(24);
    let page = log
        .list_nodes(Some(("a".into(), "me".into())), 1, day)
        .await
        .unwrap();
    assert_eq!((page.nodes.len(), page.nodes[0].caller.as_str()), (1, "you"));
    assert!(page.nodes[0].seen_at <= page.now && page.nodes[0].info == b"info");

    assert_eq!(log.forget_nodes(day).await.unwrap(), 0);
    assert_eq!(log.forget_nodes(-day).await.unwrap(), 3);
    assert!(listed(&log).await.is_empty());
}

pub(crate) async fn an_opening_that_is_written_late_does_not_hide_a_newer_one_on_another_replica(
    log: impl TestLog,
) {
    log.create_head(epoch(1), installation(1)).await.unwrap();
    let newer = node("a", "me", Some(Connection::Opened(opening(10))), None);
    log.write_nodes("r2", &[newer]).await.unwrap();
    for late in [
        Connection::Opened(opening(60)),
        Connection::OpenedAndClosed(opening(60)),
        Connection::Closed,
    ] {
        log.write_nodes("r1", &[node("a", "me", Some(late), None)])
            .await
            .unwrap();
        assert!(listed(&log).await[0].2, "r2 holds its stream");
    }
    // What a replica says about its own streams counts in the order it says it.
    let closed = node("a", "me", Some(Connection::OpenedAndClosed(opening(60))), None);
    log.write_nodes("r2", &[closed]).await.unwrap();
    assert!(!listed(&log).await[0].2);
}

pub(crate) async fn nodes_are_counted_by_whether_they_are_connected(log: impl TestLog) {
    log.create_head(epoch(1), installation(1)).await.unwrap();
    let opened = || Some(Connection::Opened(opening(20)));
    let (minute, day) = (SignedDuration::from_mins(1), SignedDuration::from_hours(24));
    let count = async |connected_within, seen_within| {
        let counted = log.count_nodes(connected_within, seen_within).await.unwrap();
        (counted.connected, counted.disconnected)
    };
    assert_eq!(count(minute, day).await, (0, 0));
    log.write_nodes(
        "r1",
        &[
            node("a", "me", opened(), None),
            node("b", "me", opened(), None),
            node("c", "me", Some(Connection::OpenedAndClosed(opening(20))), None),
        ],
    )
    .await
    .unwrap();
    assert_eq!(count(minute, day).await, (2, 1));
    assert_eq!(count(-day, day).await, (0, 3), "their replica was not heard of");
    assert_eq!(count(minute, -day).await, (0, 0), "long gone");
}

/// Stamps the suite for one kind of log; `open` returns a log and what it needs, or none to skip the test.
macro_rules! stamp {
    ($open:expr, $($test:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $test() {
                if let Some((log, _guard)) = $open.await {
                    $crate::store::log::suite::$test(log).await;
                }
            }
        )*
    };
    ($open:expr) => {
        $crate::store::log::suite::stamp!(
            $open,
            a_new_log_is_empty_and_keeps_its_first_epoch_and_installation,
            a_load_has_the_newest_state_of_every_key_and_every_deletion_above_the_horizon,
            pages_are_contiguous_and_know_the_head_and_their_anchor,
            a_page_ends_with_the_revision_that_fills_it,
            what_was_lost_shows_in_the_head_and_in_the_anchor,
            the_horizon_rises_by_age_and_by_count_and_never_falls,
            of_several_replicas_the_first_mints_the_epoch,
            nodes_are_written_listed_and_forgotten,
            nodes_are_counted_by_whether_they_are_connected,
            an_opening_that_is_written_late_does_not_hide_a_newer_one_on_another_replica,
        );
    };
}
pub(crate) use stamp;
