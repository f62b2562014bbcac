//! The stream validator passes what a real pair streams, and reports every guarantee that is broken on purpose.

mod find;
mod tamper;

use std::collections::BTreeSet;

use emend_proto::{
    common::v1::{ResourceKey, ResourceKind, Scope},
    feedback::v1::SubmitFeedbackRequest,
    learning::v1::{Cursor, ImportHeader, ImportRow, ListResourcesRequest, SubscribeRequest},
    wire::Message,
};
use emend_tests::{
    audit::stream::{Guarantee, Recorder, Recording, RevisionLog, Run, everything, validate},
    both_databases,
    harness::{
        Gateway, Learning, NAMESPACE, System, alias, answered, eventually, says,
        says::{alias_key, entity_value, phrase_key, verb_value},
        verb,
        wait::holds,
    },
};
use futures::future::join_all;
use uuid::Uuid;

const ELSEWHERE: &str = "elsewhere";

/// The results of a run: what a subscriber to everything received, what one with a narrow filter received, and the log.
struct Left {
    wide: Recording,
    narrow: Recording,
    log: RevisionLog,
}

/// A writer whose acknowledgements the run witnesses.
struct Writer {
    learning: Learning,
    run: Run,
}

impl Writer {
    async fn put(&self, key: ResourceKey, entity: &str) -> i64 {
        let revision = self.learning.put(key, entity_value(entity)).await.revision;
        self.committed(revision).await
    }

    async fn delete(&self, key: ResourceKey) -> i64 {
        let revision = self.learning.delete(key).await.unwrap();
        self.committed(revision).await
    }

    /// Imports `count` rows, which share a revision.
    async fn import(&self, entity: &str, count: u32) -> i64 {
        let rows = (1..=count).map(|line| ImportRow {
            line: line.into(),
            correction: Some(alias(&format!("{line} {}", "x".repeat(400)), entity)),
            user_id: String::new(),
        });
        let header = ImportHeader {
            namespace: NAMESPACE.into(),
            ..ImportHeader::default()
        };
        let done = self.learning.import(header, rows.collect()).await.unwrap();
        self.committed(done.last_revision).await
    }

    /// Notes that a writer was answered; then that a reader was, from the published state.
    async fn committed(&self, revision: i64) -> i64 {
        self.run.committed(revision);
        let request = ListResourcesRequest {
            namespace: NAMESPACE.into(),
            page_size: 1,
            min_revision: revision,
            ..ListResourcesRequest::default()
        };
        answered(self.learning.resources.clone().list_resources(request).await);
        self.run.published(revision);
        revision
    }
}

fn elsewhere(key: ResourceKey) -> ResourceKey {
    ResourceKey {
        namespace: ELSEWHERE.into(),
        ..key
    }
}

/// Small messages, so that long updates come in parts.
fn wide(id: &str) -> SubscribeRequest {
    SubscribeRequest {
        max_batch_bytes: 64 * 1024,
        ..everything(id)
    }
}

/// One namespace's aliases, without user-scoped ones.
fn narrow(id: &str) -> SubscribeRequest {
    SubscribeRequest {
        namespaces: vec![NAMESPACE.into()],
        kinds: vec![ResourceKind::EntityAlias.into()],
        include_user_scoped: false,
        ..everything(id)
    }
}

/// Everything that a recording can show: an empty snapshot, updates of one and of many changes, updates in parts,
/// bookmarks, an absence with deletions, a stall, a Drain.
async fn recorded(system: &mut System) -> Left {
    let run = Run::new();
    let gate = Gateway::open().await;
    gate.lead_to(system.learning[0].front.address());
    let subscribers = [wide("wide"), narrow("narrow"), everything("stalled")];
    let [wide, narrow, stalled] = subscribers.map(|request| Recorder::start(&run, gate.address(), request));
    let all = [&wide, &narrow, &stalled];
    join_all(all.map(|recorder| recorder.reaches(0))).await;

    let learning = system.learning();
    let writer = Writer {
        learning: learning.clone(),
        run: run.clone(),
    };
    // One by one, so that each gets an update of its own on any machine.
    for n in 0..6 {
        let revision = writer
            .put(alias_key(&format!("name {}", n % 4)), &format!("person-{n}"))
            .await;
        join_all(all.map(|recorder| recorder.reaches(revision))).await;
    }
    let own = SubmitFeedbackRequest {
        scope: Scope::User.into(),
        ..says("user-1", alias("my boss", "person-9"))
    };
    system.feedback().learn(own).await;
    system
        .feedback()
        .learn(says("jane", verb("set up a csa", "create_csa")))
        .await;
    learning
        .put(phrase_key("close it"), verb_value("close_position"))
        .await;
    writer.put(elsewhere(alias_key("name 0")), "person-2").await;
    let head = writer.import("person-1", 3).await;
    join_all(all.map(|recorder| recorder.reaches(head))).await;
    for recorder in [&wide, &narrow] {
        bookmarked(recorder, head).await;
    }
    // Too long for one message.
    let head = writer.import("person-2", 400).await;
    wide.reaches(head).await;

    gate.close();
    writer.put(alias_key("came"), "person-3").await;
    writer.delete(alias_key("name 0")).await;
    writer.delete(elsewhere(alias_key("name 0"))).await;
    let head = writer.delete(alias_key("name 1")).await;
    gate.lead_to(system.learning[0].front.address());
    join_all(all.map(|recorder| recorder.reaches(head))).await;

    stalled.stall();
    let mut head = head;
    for n in 0..20 {
        head = writer
            .put(alias_key(&format!("name {}", n % 3)), &format!("person-{n}"))
            .await;
    }
    for recorder in [&wide, &narrow] {
        recorder.reaches(head).await;
    }
    run.resident(1, 2);
    stalled.go_on(head);
    stalled.reaches(head).await;

    system.stop_learning().await;
    system.start_learning().await;
    let head = writer.put(alias_key("afterwards"), "person-4").await;
    join_all([&wide, &narrow, &stalled].map(|recorder| recorder.reaches(head))).await;

    let log = RevisionLog::read(&system.stored()).await;
    stalled.audited(&log).await;
    Left {
        wide: wide.finish(&log).await,
        narrow: narrow.finish(&log).await,
        log,
    }
}

/// Waits for a bookmark at this revision or later.
async fn bookmarked(recorder: &Recorder, revision: i64) {
    eventually("a bookmark comes", || async {
        let recording = recorder.so_far();
        let newest = messages(&recording).filter_map(|message| match message {
            Message::Bookmark(bookmark) => bookmark.cursor.as_ref().map(|cursor| cursor.revision),
            _ => None,
        });
        let newest = newest.max().unwrap_or(-1);
        holds(newest >= revision, || format!("the newest is at {newest}"))
    })
    .await;
}

fn messages(recording: &Recording) -> impl Iterator<Item = &Message> {
    recording
        .connections
        .iter()
        .flat_map(|connection| &connection.messages)
        .map(|received| &received.message)
}

/// Every cursor that was handed out, without duplicates.
fn cursors(recording: &Recording) -> Vec<Cursor> {
    let handed_out = messages(recording).filter_map(|message| match message {
        Message::SnapshotEnd(end) => end.cursor.clone(),
        Message::Update(update) => update.cursor.clone(),
        Message::Bookmark(bookmark) => bookmark.cursor.clone(),
        Message::Resumed(resumed) => resumed.cursor.clone(),
        _ => None,
    });
    let mut cursors: Vec<Cursor> = handed_out.collect();
    cursors.sort_by_key(|cursor| cursor.revision);
    cursors.dedup();
    cursors
}

both_databases! {
    async fn the_streams_of_a_real_pair_keep_every_guarantee(system) {
        let left = recorded(system).await;
        for recording in [&left.wide, &left.narrow] {
            let summary = validate(recording, &left.log).unwrap();
            for guarantee in Guarantee::ALL {
                assert!(summary.checked(guarantee) > 0, "{guarantee} was not checked: {summary}");
            }
            assert!(summary.resumed >= 2 && summary.drains >= 1 && summary.bookmarks >= 1, "{summary}");
        }
    }

    async fn every_cursor_handed_out_can_be_resumed_from(system) {
        let left = recorded(system).await;
        for (recording, request) in [(&left.wide, wide("again")), (&left.narrow, narrow("again"))] {
            let cursors = cursors(recording);
            assert!(cursors.len() > 10, "{cursors:?}");
            for some in cursors.chunks(16) {
                let again = some.iter().map(|cursor| {
                    let request = SubscribeRequest { cursor: Some(cursor.clone()), ..request.clone() };
                    Recorder::start(&Run::new(), system.learning[0].front.address(), request).audited(&left.log)
                });
                for summary in join_all(again).await {
                    assert!(summary.resumed == 1 && summary.snapshots.is_empty(), "{summary}");
                }
            }
        }
    }

    async fn an_invalid_cursor_gets_a_snapshot_with_the_correct_reason(system) {
        system.stop_learning().await;
        system.settings.max_tombstones = Some(1);
        system.settings.retention_interval = Some(std::time::Duration::from_millis(50));
        system.start_learning().await;
        let run = Run::new();
        let learning = system.learning();
        let recorder = Recorder::start(&run, system.learning[0].front.address(), everything("n"));
        for n in 0..4 {
            learning.put(alias_key(&format!("name {n}")), entity_value("person-1")).await;
            learning.delete(alias_key(&format!("name {n}"))).await.unwrap();
        }
        let head = learning.put(alias_key("name"), entity_value("person-1")).await.revision;
        recorder.reaches(head).await;
        let log = eventually("old tombstones are forgotten", || async {
            let log = RevisionLog::read(&system.stored()).await;
            holds(log.current.horizon > 1, || format!("{}", log.current.horizon))?;
            Ok(log)
        })
        .await;
        // Each changed request is sent until a stream has begun.
        let forgeries: [(&str, Forge); 5] = [
            ("SNAPSHOT_REASON_FOREIGN_EPOCH", |request| cursor(request).epoch = Uuid::from_u128(42).to_string()),
            ("SNAPSHOT_REASON_CURSOR_AHEAD", |request| cursor(request).revision += 1_000),
            ("SNAPSHOT_REASON_CURSOR_EXPIRED", |request| cursor(request).revision = 1),
            ("SNAPSHOT_REASON_FILTER_CHANGED", |request| request.include_user_scoped = false),
            ("SNAPSHOT_REASON_NO_CURSOR", |request| request.cursor = None),
        ];
        for (n, (reason, forge)) in (1..).zip(forgeries) {
            // The replica may not know yet that tombstones were deleted.
            eventually(reason, || async {
                recorder.ask(forge);
                begun(&recorder).await;
                let summary = validate(&recorder.so_far(), &log).unwrap();
                let came = summary.snapshots.get(reason).copied().unwrap_or_default();
                let wanted = if reason == "SNAPSHOT_REASON_NO_CURSOR" { 2 } else { 1 };
                holds(came >= wanted, || format!("{n}: {summary}"))
            })
            .await;
        }
        recorder.audited(&log).await;
    }
}

/// Changes a request.
type Forge = fn(&mut SubscribeRequest);

/// Waits until its next stream has begun in full.
async fn begun(recorder: &Recorder) {
    let before = recorder.so_far().connections.len();
    eventually("the next stream begins", || async {
        let connections = recorder.so_far().connections;
        let has_begun = connections.len() > before
            || connections.last().is_some_and(|last| {
                last.messages
                    .iter()
                    .any(|received| matches!(received.message, Message::Resumed(_) | Message::SnapshotEnd(_)))
            });
        holds(has_begun, || format!("{} connections", connections.len()))
    })
    .await;
}

fn cursor(request: &mut SubscribeRequest) -> &mut Cursor {
    request.cursor.as_mut().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_guarantee_broken_on_purpose_is_reported() {
    let mut system = System::sqlite().await;
    let left = recorded(&mut system).await;
    system.stop().await;
    let mut wrong = Vec::new();
    let mut broken = BTreeSet::new();
    for tamper::Mutation {
        what,
        of,
        breaks,
        also,
        tamper,
    } in tamper::MUTATIONS
    {
        let mut recording = match of {
            tamper::RecordingKind::Wide => left.wide.clone(),
            tamper::RecordingKind::Narrow => left.narrow.clone(),
        };
        validate(&recording, &left.log).unwrap();
        tamper(&mut recording);
        let violations = validate(&recording, &left.log).err().unwrap_or_default();
        let reported: BTreeSet<Guarantee> = violations.iter().map(|violation| violation.guarantee).collect();
        let allowed: BTreeSet<Guarantee> = also.iter().chain([breaks]).copied().collect();
        if !reported.contains(breaks) || !reported.is_subset(&allowed) {
            let described: Vec<String> = violations.iter().take(5).map(ToString::to_string).collect();
            wrong.push(format!(
                "{what}: breaks {breaks}, reported {reported:?}:\n  {}",
                described.join("\n  ")
            ));
        }
        broken.insert(*breaks);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let all: BTreeSet<Guarantee> = Guarantee::ALL.into();
    assert_eq!(
        broken, all,
        "each of the eleven is broken on purpose by at least one"
    );
}
