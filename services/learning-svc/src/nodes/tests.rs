use std::time::Duration;

use emend_proto::learning::v1::Cursor;
use learning_store::log::testing::{TestLog as _, write};

use crate::{
    nodes::*,
    stream::{
        Settings, Stream,
        testing::{MemoryLog, replica},
    },
};

fn id(text: &str) -> NodeId {
    NodeId::parse(text).unwrap()
}

/// The caller and client that report.
fn who(text: &str) -> (Caller, ClientKey) {
    (caller(text), ClientKey::of(Some(&caller(text)), None))
}

fn caller(text: &str) -> Caller {
    Caller::parse(text).unwrap()
}

fn info(text: &str) -> pb::NodeInfo {
    pb::NodeInfo {
        id: text.into(),
        version: "1.2".into(),
        ..Default::default()
    }
}

fn report(stream: &Stream, revision: i64) -> pb::ReportStatusRequest {
    pb::ReportStatusRequest {
        applied: Some(Cursor {
            epoch: stream.state().unwrap().epoch().to_string(),
            revision,
            filter_hash: 1,
        }),
        problem: "DIGEST_MISMATCH".into(),
        ..Default::default()
    }
}

async fn list(nodes: &Nodes) -> Vec<pb::Node> {
    page(nodes, 100, None).await.nodes
}

async fn page(nodes: &Nodes, limit: u32, token: Option<&str>) -> pb::ListNodesResponse {
    picked(nodes, limit, token, NodeFilter::default()).await
}

async fn picked(nodes: &Nodes, limit: u32, token: Option<&str>, filter: NodeFilter) -> pb::ListNodesResponse {
    let hash = QueryHash::of("ListNodes", &pb::ListNodesRequest::default());
    let position = page::position(hash, token.unwrap_or_default()).unwrap();
    let query = ListNodes {
        hash,
        limit,
        after: position.map(|position| {
            let position = String::from_utf8(position).unwrap();
            let (node_id, caller) = position.split_once('\0').unwrap();
            (node_id.to_owned(), caller.to_owned())
        }),
        seen_within: SignedDuration::from_hours(24),
        filter,
    };
    nodes.list(query).await.unwrap()
}

#[tokio::test]
async fn the_nodes_that_are_looked_for_are_paged_like_all() {
    let stream = replica(&MemoryLog::default(), Settings::default()).await;
    let nodes = stream.nodes();
    let mut open = Vec::new();
    for (name, zone, tier) in [
        ("a", "eu", "gold"),
        ("b", "us", "gold"),
        ("c", "eu", "blue"),
        ("d", "eu", "gold"),
    ] {
        let described = pb::NodeInfo {
            zone: zone.into(),
            labels: [("tier".to_owned(), tier.to_owned())].into(),
            ..info(name)
        };
        open.push(nodes.open(caller("first"), id(name), &described));
    }
    assert_eq!(nodes.run_once().await.unwrap(), 4);
    let filter = NodeFilter {
        zone: "eu".into(),
        labels: vec![("tier".into(), Some("gold".into()))],
        ..NodeFilter::default()
    };
    let (mut found, mut token) = (Vec::new(), None);
    loop {
        let answer = picked(nodes, 1, token.as_deref(), filter.clone()).await;
        found.extend(answer.nodes.into_iter().map(|node| node.info.unwrap().id));
        if answer.next_page_token.is_empty() {
            break;
        }
        token = Some(answer.next_page_token);
    }
    assert_eq!(found, ["a", "d"]);
    let labelled = NodeFilter {
        labels: vec![("tier".into(), None)],
        ..NodeFilter::default()
    };
    assert_eq!(picked(nodes, 9, None, labelled).await.nodes.len(), 4);
    let behind = NodeFilter {
        state: pb::NodeState::Behind,
        ..NodeFilter::default()
    };
    assert_eq!(picked(nodes, 9, None, behind).await.nodes, []);
}

#[tokio::test]
async fn every_replica_lists_the_whole_fleet() {
    let log = MemoryLog::default();
    let (one, other) = (
        replica(&log, Settings::default()).await,
        Stream::new(
            Arc::new(log.clone()),
            Settings::default(),
            emend_base::ManualClock::default().shared(),
            emend_base::Entropy::seeded(2),
        ),
    );
    for _ in 0..3 {
        log.append(&[write("k", Some("v"))]).await;
    }
    let (first, second) = (caller("first"), caller("second"));
    let open = one.nodes().open(first.clone(), id("a"), &info("a"));
    let _elsewhere = other.nodes().open(second.clone(), id("b"), &info("b"));
    one.nodes()
        .report(who("first"), id("a"), &report(&one, 2))
        .await
        .unwrap();
    assert_eq!(one.nodes().run_once().await.unwrap(), 1);
    assert_eq!(other.nodes().run_once().await.unwrap(), 1);

    let nodes = list(other.nodes()).await;
    let [a, b] = nodes.as_slice() else {
        panic!("{nodes:?}")
    };
    assert_eq!(
        (a.caller.as_str(), a.connected, a.lag_revisions),
        ("first", true, 1)
    );
    assert_eq!(a.info, Some(info("a")));
    assert_eq!(a.problem, "DIGEST_MISMATCH");
    assert_eq!(
        (b.caller.as_str(), b.connected, b.lag_revisions),
        ("second", true, 0)
    );

    let behind = |stream: &Stream| stream.nodes().furthest_behind(one.state().unwrap().place());
    assert_eq!(
        (one.state().unwrap().revision(), behind(&one)),
        (0, 0),
        "this replica has no streams of those nodes"
    );
    crate::stream::testing::catch_up(&one).await;
    assert_eq!((behind(&one), behind(&other)), (1, 0), "b has not reported");

    // A node's reports may reach any replica.
    other
        .nodes()
        .report(who("first"), id("a"), &report(&one, 3))
        .await
        .unwrap();
    drop(open);
    other.nodes().run_once().await.unwrap();
    one.nodes().run_once().await.unwrap();
    let a = list(one.nodes()).await.swap_remove(0);
    assert_eq!((a.connected, a.lag_revisions), (false, 0));
}

#[tokio::test]
async fn nodes_with_large_reports_are_listed_in_pages_that_a_client_can_decode() {
    const CLIENT_LIMIT: usize = 4 * 1024 * 1024;
    let stream = replica(&MemoryLog::default(), Settings::default()).await;
    let (nodes, owner) = (stream.nodes(), caller("owner"));
    let names: Vec<String> = (10..22).map(|number| format!("node-{number}")).collect();
    let rejected = pb::RejectedResource {
        error: "\u{10437}".repeat(1_024),
        ..Default::default()
    };
    for name in &names {
        let _open = nodes.open(owner.clone(), id(name), &info(name));
        let report = pb::ReportStatusRequest {
            rejected: vec![rejected.clone(); 100],
            ..report(&stream, 1)
        };
        nodes.report(who("owner"), id(name), &report).await.unwrap();
    }
    nodes.run_once().await.unwrap();
    let (mut listed, mut token) = (Vec::new(), String::new());
    loop {
        let page = page(nodes, 100, Some(&token)).await;
        assert!(page.encoded_len() < CLIENT_LIMIT, "{}", page.encoded_len());
        let ids = page
            .nodes
            .into_iter()
            .map(|node| node.info.unwrap_or_default().id);
        listed.extend(ids);
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(listed, names);
}

#[tokio::test]
async fn a_long_report_is_cut_to_the_newest_rejected_resources() {
    let stream = replica(&MemoryLog::default(), Settings::default()).await;
    let (nodes, owner) = (stream.nodes(), caller("owner"));
    let _open = nodes.open(owner.clone(), id("a"), &info("a"));
    let rejected = (0..100).map(|revision| pb::RejectedResource {
        revision,
        error: "x".repeat(512),
        ..Default::default()
    });
    let long = pb::ReportStatusRequest {
        rejected: rejected.collect(),
        rejected_count: 1_000,
        ..report(&stream, 7)
    };
    nodes.report(who("owner"), id("a"), &long).await.unwrap();
    nodes.run_once().await.unwrap();
    let listed = list(nodes).await.swap_remove(0);
    assert_eq!(
        (listed.rejected_count, listed.problem.as_str(), listed.applied),
        (1_000, "DIGEST_MISMATCH", long.applied.clone())
    );
    let shown = listed.rejected.len();
    assert!((60..64).contains(&shown), "{shown} of 520 bytes fit");
    assert_eq!(listed.rejected, long.rejected[..shown]);
}

#[tokio::test]
async fn unwritten_reports_take_bounded_memory() {
    let log = MemoryLog::default();
    let stream = replica(&log, Settings::default()).await;
    let (nodes, owner) = (stream.nodes(), caller("owner"));
    let lengthy = pb::ReportStatusRequest {
        rejected: vec![
            pb::RejectedResource {
                error: "x".repeat(512),
                ..Default::default()
            };
            100
        ],
        ..report(&stream, 0)
    };
    log.fail(true);
    let (mut open, mut refused) = (Vec::new(), None);
    // Each is stored as almost 32 KiB.
    for number in 0..600 {
        let name = format!("node-{number}");
        open.push(nodes.open(owner.clone(), id(&name), &info(&name)));
        if let Err(error) = nodes.report(who("owner"), id(&name), &lengthy).await {
            refused = refused.or(Some((number, error)));
        }
    }
    let (number, error) = refused.expect("the permits run out");
    assert!((384..400).contains(&number), "three quarters, not {number}");
    let status = tonic::Status::from(error);
    assert_eq!(status.code(), tonic::Code::ResourceExhausted);
    // A pending report makes room for the node's next one, even if a write failed in between.
    assert!(nodes.run_once().await.is_err());
    nodes.report(who("owner"), id("node-0"), &lengthy).await.unwrap();
    // The last quarter is left for other clients.
    let _other = nodes.open(caller("other"), id("other"), &info("other"));
    nodes.report(who("other"), id("other"), &lengthy).await.unwrap();
    // Reports being written keep their permits, also when they are put back after a failed write.
    let (writes, places) = nodes.take_pending();
    assert!(
        nodes
            .report(who("owner"), id("node-599"), &lengthy)
            .await
            .is_err()
    );
    nodes.put_back(writes, places);
    let held = nodes.permits.held_by(&who("owner").1);
    assert!(held > MAX_PENDING_BYTES * 3 / 4 - MAX_REPORT && held <= MAX_PENDING_BYTES * 3 / 4);
    log.fail(false);
    nodes.run_once().await.unwrap();
    assert_eq!(nodes.permits.held_by(&who("owner").1), 0);
    nodes
        .report(who("owner"), id("node-599"), &lengthy)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_node_belongs_to_the_caller_that_opened_its_stream() {
    let log = MemoryLog::default();
    let one = replica(&log, Settings::default()).await;
    let other = replica(&log, Settings::default()).await;
    let nobodys = one
        .nodes()
        .report(who("you"), id("a"), &report(&one, 0))
        .await
        .unwrap_err();
    assert_eq!(
        (nobodys.code(), nobodys.reason()),
        (tonic::Code::PermissionDenied, "NODE_NOT_SUBSCRIBED")
    );
    let open = one.nodes().open(caller("me"), id("a"), &info("a"));
    for written in [false, true] {
        if written {
            one.nodes().run_once().await.unwrap();
        }
        let denied = one
            .nodes()
            .report(who("you"), id("a"), &report(&one, 0))
            .await
            .unwrap_err();
        assert_eq!(
            format!("{denied:?}"),
            format!("{nobodys:?}"),
            "the answer does not tell that somebody has subscribed"
        );
    }
    assert!(
        other
            .nodes()
            .report(who("me"), id("a"), &report(&one, 0))
            .await
            .is_ok()
    );
    drop(open);
    // Still allowed after the stream has ended.
    one.nodes().run_once().await.unwrap();
    assert!(
        one.nodes()
            .report(who("me"), id("a"), &report(&one, 0))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_node_with_two_streams_is_connected_until_the_second_ends() {
    let log = MemoryLog::default();
    let stream = replica(&log, Settings::default()).await;
    let nodes = stream.nodes();
    let first = nodes.open(caller("me"), id("a"), &info("a"));
    let second = nodes.open(caller("me"), id("a"), &info("a"));
    drop(first);
    nodes.run_once().await.unwrap();
    assert!(list(nodes).await[0].connected);
    drop(second);
    nodes.run_once().await.unwrap();
    assert!(!list(nodes).await[0].connected);
}

#[tokio::test]
async fn the_nodes_of_a_dead_replica_do_not_stay_connected() {
    let log = MemoryLog::default();
    let stream = replica(&log, Settings::default()).await;
    let _open = stream.nodes().open(caller("me"), id("a"), &info("a"));
    stream.nodes().run_once().await.unwrap();
    for _ in 0..3 {
        log.advance(SignedDuration::from_secs(50));
        stream.nodes().heartbeat().await.unwrap();
    }
    assert!(list(stream.nodes()).await[0].connected);
    log.advance(SignedDuration::from_secs(61));
    assert!(!list(stream.nodes()).await[0].connected);
}

#[tokio::test]
async fn a_failed_write_is_retried() {
    let log = MemoryLog::default();
    let stream = replica(&log, Settings::default()).await;
    let nodes = stream.nodes();
    let open = nodes.open(caller("me"), id("a"), &info("a"));
    nodes
        .report(who("me"), id("a"), &report(&stream, 0))
        .await
        .unwrap();
    log.fail(true);
    assert!(nodes.run_once().await.is_err());
    drop(open);
    log.fail(false);
    tokio::time::timeout(Duration::from_secs(5), nodes.dirty())
        .await
        .unwrap();
    assert_eq!(nodes.run_once().await.unwrap(), 1);
    let listed = list(nodes).await;
    assert_eq!(
        (listed[0].connected, listed[0].problem.as_str()),
        (false, "DIGEST_MISMATCH")
    );
    assert_eq!(nodes.run_once().await.unwrap(), 0);
}

#[tokio::test]
async fn all_pages_together_list_every_node_once() {
    let log = MemoryLog::default();
    let stream = replica(&log, Settings::default()).await;
    let nodes = stream.nodes();
    let open: Vec<_> = (0..5)
        .map(|n| nodes.open(caller("me"), id(&format!("n{n}")), &info("x")))
        .collect();
    nodes.run_once().await.unwrap();
    let (mut token, mut sizes) = (String::new(), Vec::new());
    loop {
        let page = page(nodes, 2, Some(&token)).await;
        sizes.push(page.nodes.len());
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(sizes, [2, 2, 1]);
    drop(open);
}

#[tokio::test]
async fn a_cursor_of_another_epoch_counts_as_nothing_applied() {
    let log = MemoryLog::default();
    let stream = replica(&log, Settings::default()).await;
    log.append(&[write("k", Some("v"))]).await;
    let _open = stream.nodes().open(caller("me"), id("a"), &info("a"));
    let mut foreign = report(&stream, 900);
    foreign.applied.as_mut().unwrap().epoch = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10".into();
    stream.nodes().report(who("me"), id("a"), &foreign).await.unwrap();
    stream.nodes().run_once().await.unwrap();
    assert_eq!(list(stream.nodes()).await[0].lag_revisions, 1);
}

#[tokio::test]
async fn nodes_that_come_and_go_while_writes_fail_take_bounded_memory() {
    let log = MemoryLog::default();
    let stream = replica(&log, Settings::default()).await;
    let nodes = stream.nodes();
    let staying = nodes.open(caller("c"), id("staying"), &info("staying"));
    for n in 0..MAX_PENDING + 100 {
        drop(nodes.open(caller("c"), id(&format!("node-{n}")), &info("passing")));
    }
    assert_eq!(nodes.lock().pending.len(), MAX_PENDING);
    let known = |id: &str| nodes.lock().pending.contains_key(&(self::id(id), caller("c")));
    assert!(known("staying") && known("node-0"));
    drop(staying);
}

#[tokio::test]
async fn a_node_that_said_it_is_transient_leaves_with_its_last_stream() {
    let log = MemoryLog::default();
    let stream = replica(&log, Settings::default()).await;
    let nodes = stream.nodes();
    let transient = pb::NodeInfo {
        transient: true,
        ..info("watch")
    };
    let watch = nodes.open(caller("me"), id("watch"), &transient);
    let again = nodes.open(caller("me"), id("watch"), &transient);
    drop(nodes.open(caller("me"), id("stays"), &info("stays")));
    drop(watch);
    nodes.run_once().await.unwrap();
    assert_eq!(list(nodes).await.len(), 2);
    drop(again);
    nodes.run_once().await.unwrap();
    // It came and went before anything was written.
    drop(nodes.open(caller("me"), id("watch"), &transient));
    nodes.run_once().await.unwrap();
    let left: Vec<_> = list(nodes)
        .await
        .into_iter()
        .map(|node| node.info.unwrap().id)
        .collect();
    assert_eq!(left, ["stays"]);
}

#[tokio::test]
async fn a_report_ahead_of_the_log_is_refused_and_one_ahead_of_its_replica_is_not() {
    let log = MemoryLog::default();
    let stream = replica(&log, Settings::default()).await;
    let state = stream.state().unwrap();
    // This replica has not read them yet.
    for value in ["v", "w"] {
        log.append(&[write("k", Some(value))]).await;
    }
    let nodes = stream.nodes();
    for (revision, is_refused) in [(1, false), (2, false), (3, true)] {
        let checked = nodes
            .check_applied(&report(&stream, revision), state.place())
            .await;
        assert_eq!(checked.is_err(), is_refused, "{revision}");
    }
    // A cursor of another epoch says nothing of this one.
    let mut other = report(&stream, 9);
    other.applied.as_mut().unwrap().epoch = uuid::Uuid::from_u128(7).to_string();
    nodes.check_applied(&other, state.place()).await.unwrap();
    // Nobody knows what the log has while it is away.
    log.fail(true);
    nodes
        .check_applied(&report(&stream, 9), state.place())
        .await
        .unwrap();
}
