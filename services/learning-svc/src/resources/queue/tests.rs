//! What is committed together, and what each call is told.

use std::{
    future::Future,
    sync::atomic::{AtomicBool, Ordering},
};

use emend_base::{Entropy, ManualClock};
use emend_core::correction::Form;
use emend_store::{
    StoreError,
    simulation::{Interference, NoInterference, conflict, unavailable},
};
use futures::{
    FutureExt as _,
    future::{BoxFuture, join_all},
};
use learning_store::{begin_installation, log::LogStore, memory::MemoryStore, testing::somebody_waits};

use super::*;
use crate::{
    etag,
    tests::{
        erasure::assert_audited,
        on_both_databases,
        world::{World, assert_sound, core_on, head, key, operator, put, verb},
    },
};

on_both_databases!(
    calls_that_wait_are_committed_together_and_each_keeps_its_own_outcome,
    a_group_of_refused_calls_writes_nothing_and_what_waits_at_the_end_is_written,
    who_waits_for_a_lock_keeps_nobody_else_waiting,
);

/// Begins a call; returns once it is queued.
fn begin<T>(call: impl Future<Output = T>) -> impl Future<Output = T> {
    let mut call = Box::pin(call);
    let now = (&mut call).now_or_never();
    async move {
        match now {
            Some(answer) => answer,
            None => call.await,
        }
    }
}

/// Queues a put that may name an etag; the answer is its revision and the one whose value applies, or why it was refused.
fn begin_put(
    queue: &WriteQueue,
    put: Put,
    etag: Option<i64>,
) -> impl Future<Output = std::result::Result<(i64, i64), &'static str>> + use<> {
    let put = Put {
        etag: etag.map(etag::of_revision),
        ..put
    };
    let queue = queue.clone();
    begin(async move {
        let done = queue.put(ClientKey::Unknown, put).await;
        done.map(|done| (done.revision.0, done.resource_revision.0))
            .map_err(|error| error.reason())
    })
}

fn begin_delete(
    queue: &WriteQueue,
    phrase: &str,
) -> impl Future<Output = std::result::Result<(i64, i64), &'static str>> + use<> {
    let delete = Delete {
        key: key(Form::PhraseMapping, phrase, "x"),
        etag: None,
        reason: None,
        actor: operator(),
    };
    let queue = queue.clone();
    begin(async move {
        let revision = queue.delete(ClientKey::Unknown, delete).await;
        revision
            .map(|revision| (revision.0, 0))
            .map_err(|error| error.reason())
    })
}

async fn contests(world: &World) -> u64 {
    learning_store::testing::number_of_contests(&world.url).await
}

async fn calls_that_wait_are_committed_together_and_each_keeps_its_own_outcome(world: &World) {
    let app = world.instance().await;
    let first = app.resources.put(&put("there", "v")).await.unwrap();
    app.resources.put(&put("kept", "v")).await.unwrap();
    let (queue, mut worker) = WriteQueue::new(&app.resources);
    let gone = begin_put(&queue, put("gone", "v"), None);
    let calls: Vec<BoxFuture<'_, _>> = vec![
        begin_put(&queue, put("a", "v"), None).boxed(),
        // No resource has an etag where there is none.
        begin_put(&queue, put("b", "v"), Some(1)).boxed(),
        begin_delete(&queue, "c").boxed(),
        // The same again changes nothing, and a later one sees what an earlier one did.
        begin_put(&queue, put("a", "v"), None).boxed(),
        begin_put(&queue, put("a", "w"), Some(1)).boxed(),
        begin_put(&queue, put("a", "w"), None).boxed(),
        begin_put(&queue, put("there", "w"), Some(1)).boxed(),
        begin_put(&queue, put("kept", "v"), None).boxed(),
        begin_delete(&queue, "there").boxed(),
        begin_delete(&queue, "there").boxed(),
        begin_put(&queue, put("there", "x"), None).boxed(),
    ];
    drop(gone);
    assert!(worker.run_once().await);
    let answers = join_all(calls).await;
    let not_found = Err("NOT_FOUND");
    let mismatch = Err("ETAG_MISMATCH");
    assert_eq!(
        answers,
        [
            Ok((3, 3)),
            mismatch,
            not_found,
            Ok((0, 3)),
            mismatch,
            Ok((4, 4)),
            Ok((5, 5)),
            Ok((0, 2)),
            Ok((6, 0)),
            not_found,
            Ok((7, 7)),
        ]
    );
    assert_eq!(head(&app).await, 7);
    let again = app.resources.put(&put("there", "x")).await.unwrap();
    assert_eq!((again.revision.0, again.resource_revision.0), (0, 7));
    assert!(again.committed_at > first.committed_at);
    for (phrase, expected) in [
        ("a", Some("w")),
        ("b", None),
        ("gone", None),
        ("there", Some("x")),
    ] {
        assert_eq!(verb(&app, phrase).await.as_deref(), expected, "{phrase}");
    }
    assert_eq!(contests(world).await, 3, "of what was refused nothing is left");
    assert_sound(&app).await;
    assert_audited(world).await;
}

async fn a_group_of_refused_calls_writes_nothing_and_what_waits_at_the_end_is_written(world: &World) {
    let app = world.instance().await;
    let (queue, mut worker) = WriteQueue::new(&app.resources);
    let calls = ["a", "b"].map(|phrase| begin_delete(&queue, phrase));
    assert!(worker.run_once().await);
    assert_eq!(join_all(calls).await, [Err("NOT_FOUND"); 2]);
    assert_eq!((head(&app).await, contests(world).await), (0, 0));

    let last = begin_put(&queue, put("last", "v"), None);
    app.resources.lifecycle.soft().cancel();
    assert!(worker.run_once().await);
    assert_eq!(
        last.await,
        Ok((1, 1)),
        "what waits when the service stops is committed"
    );
    assert!(!worker.run_once().await, "there will be no more");
    assert_eq!(begin_put(&queue, put("late", "v"), None).await, Err("STOPPING"));
}

async fn who_waits_for_a_lock_keeps_nobody_else_waiting(world: &World) {
    if somebody_waits(&world.url).await.is_none() {
        return;
    }
    let (app, other) = (world.instance().await, world.instance().await);
    app.resources.put(&put("held", "v")).await.unwrap();
    let mut holder = other.store.begin().await.unwrap();
    let held = key(Form::PhraseMapping, "held", "v");
    holder
        .contests()
        .create(&[&held], other.decisions.clock.now())
        .await
        .unwrap();
    holder.contests().lock(&[&held]).await.unwrap();

    let (queue, mut worker) = WriteQueue::new(&app.resources);
    let waits = begin_put(&queue, put("held", "w"), None);
    let beside = begin_put(&queue, put("beside", "v"), None);
    assert!(worker.run_once().await);
    assert!(beside.await.is_ok(), "it shared a group with one that waits");
    let behind = begin_put(&queue, put("behind", "v"), None);
    assert!(worker.run_once().await);
    assert!(behind.await.is_ok());
    drop(holder);
    assert!(waits.await.is_ok(), "the lock is free");
    assert_sound(&app).await;
}

/// Fails the first call of a name.
#[derive(Debug)]
struct Fails(&'static str, fn() -> StoreError, AtomicBool);

impl Interference for Fails {
    fn before<'a>(&'a self, call: &'static str) -> BoxFuture<'a, std::result::Result<(), StoreError>> {
        if call == self.0 && !self.2.swap(true, Ordering::SeqCst) {
            return std::future::ready(Err(self.1())).boxed();
        }
        NoInterference.before(call)
    }

    fn after<'a>(&'a self, call: &'static str) -> BoxFuture<'a, std::result::Result<(), StoreError>> {
        NoInterference.after(call)
    }
}

#[tokio::test]
async fn a_group_that_fails_is_told_why_or_is_committed_call_by_call() {
    let lost = || conflict("lost");
    for (call, error, answer) in [
        (
            "begin",
            unavailable as fn() -> StoreError,
            Err("DATABASE_UNAVAILABLE"),
        ),
        ("append", unavailable, Err("DATABASE_UNAVAILABLE")),
        ("append", lost, Ok(())),
        ("begin", lost, Ok(())),
    ] {
        let clock = ManualClock::default();
        let interference = Fails(call, error, AtomicBool::default());
        let store = Arc::new(MemoryStore::on(clock.shared(), Arc::new(interference)));
        let entropy = Entropy::seeded(1);
        begin_installation(&*store, &entropy).await.unwrap();
        let app = core_on(Arc::clone(&store) as _, &clock, &entropy);
        let (queue, mut worker) = WriteQueue::new(&app.resources);
        let calls = ["a", "b"].map(|phrase| begin_put(&queue, put(phrase, "v"), None));
        assert!(worker.run_once().await);
        for told in join_all(calls).await {
            assert_eq!(told.map(|_| ()), answer, "{call}");
        }
        let head = LogStore::head(&*store).await.unwrap().revision;
        assert_eq!(head, if answer.is_ok() { 2 } else { 0 }, "{call}");
    }
}
