//! Who watches is told in order, and whoever is too slow is told so; how many watch costs nothing.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{Learned, ResourceKey, ResourceValue, Revision, Status};
use emend_store::StoreError;
use learning_store::{
    actor::Actor,
    queue::{FirstApproval, Lease, QueueCount, ReadChange, ReviewComment},
};

use super::*;

/// Changes that were committed, in their order.
#[derive(Debug, Default)]
struct Committed(Mutex<(Vec<ResourceKey>, bool)>);

impl Committed {
    fn commit(&self, namespace: &str, kind: Kind, keys: std::ops::Range<usize>) {
        let keys =
            keys.map(|key| ResourceKey::parse(namespace, Some(kind), &format!("phrase {key}"), "", ""));
        self.0.lock().unwrap().0.extend(keys.map(Result::unwrap));
    }

    fn fail(&self, fails: bool) {
        self.0.lock().unwrap().1 = fails;
    }

    fn read(&self) -> Result<Vec<ResourceKey>, StoreError> {
        let (keys, fails) = &*self.0.lock().unwrap();
        if *fails {
            return Err(emend_store::simulation::unavailable());
        }
        Ok(keys.clone())
    }
}

fn place(change: usize) -> QueuePosition {
    QueuePosition {
        transaction: 0,
        change: i64::try_from(change).unwrap(),
    }
}

fn change(key: ResourceKey) -> QueueChange {
    let value = ResourceValue::new("p", Learned::Verb("v".to_owned()));
    QueueChange {
        candidate: value.candidate_id(key.contest_id()),
        key,
        status: Status::Applied,
        previous: Some(Status::AwaitingReview),
        decided_by: None,
        lease: None,
        revision: Revision::default(),
    }
}

#[async_trait]
impl QueueStore for Committed {
    async fn acquire_lease(
        &self,
        _candidate: emend_core::CandidateId,
        _actor: &Actor,
    ) -> Result<Option<Lease>, StoreError> {
        Ok(None)
    }

    async fn release_lease(
        &self,
        _candidate: emend_core::CandidateId,
        _actor: &Actor,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    async fn leases(
        &self,
        _candidates: &[emend_core::CandidateId],
    ) -> Result<HashMap<emend_core::CandidateId, Lease>, StoreError> {
        Ok(HashMap::new())
    }

    async fn queue_position(&self) -> Result<QueuePosition, StoreError> {
        Ok(place(self.read()?.len()))
    }

    async fn queue_changes(&self, after: QueuePosition, limit: u32) -> Result<Vec<ReadChange>, StoreError> {
        let keys = self.read()?.into_iter().zip(1..);
        let later = keys.filter(|(_, number)| place(*number) > after);
        let changes = later.map(|(key, number)| (place(number), Ok(Some(change(key)))));
        Ok(changes.take(limit as usize).collect())
    }

    async fn queue_days(&self, _namespace: &Namespace, _day: i64) -> Result<Vec<QueueCount>, StoreError> {
        Ok(Vec::new())
    }

    async fn fold_queue_counts(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn comment(
        &self,
        _candidate: emend_core::CandidateId,
        _actor: &Actor,
        _comment: &str,
        _asked: Option<&str>,
    ) -> Result<Option<ReviewComment>, StoreError> {
        Ok(None)
    }

    async fn comments(&self, _candidate: emend_core::CandidateId) -> Result<Vec<ReviewComment>, StoreError> {
        Ok(Vec::new())
    }

    async fn open_questions(
        &self,
        _candidates: &[emend_core::CandidateId],
    ) -> Result<HashMap<emend_core::CandidateId, ReviewComment>, StoreError> {
        Ok(HashMap::new())
    }

    async fn first_approvals(
        &self,
        _candidates: &[emend_core::CandidateId],
    ) -> Result<HashMap<emend_core::CandidateId, FirstApproval>, StoreError> {
        Ok(HashMap::new())
    }

    async fn close_questions(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn forget_queue_changes(&self, _before: QueuePosition) -> Result<u64, StoreError> {
        Ok(0)
    }
}

struct Fixture {
    committed: Arc<Committed>,
    feed: Arc<QueueFeed>,
    follower: Follower,
    soft: CancellationToken,
}

fn fixture() -> Fixture {
    let (committed, soft) = (Arc::<Committed>::default(), CancellationToken::new());
    let feed = Arc::new(QueueFeed::new(Arc::default(), soft.clone()));
    Fixture {
        follower: Follower::new(Arc::<Committed>::clone(&committed), Arc::clone(&feed)),
        committed,
        feed,
        soft,
    }
}

impl Fixture {
    async fn watch(&mut self, namespace: &str, kinds: &[Kind]) -> Watch {
        let watched = Watched {
            namespace: Namespace::parse(namespace).unwrap(),
            kinds: kinds.to_vec(),
        };
        let (watch, read) = tokio::join!(self.feed.watch(watched), self.follower.run_once());
        read.unwrap();
        let mut watch = watch.unwrap();
        assert_eq!(watch.next().await, Some(Watching::Opened));
        watch
    }

    async fn read_all(&mut self) {
        while self.follower.run_once().await.unwrap() {}
    }
}

/// The number of the phrase that a message is about.
fn about(message: Option<Watching>) -> String {
    match message {
        Some(Watching::Change(change)) => change.key.key.as_str().to_owned(),
        other => panic!("a change was to come: {other:?}"),
    }
}

#[tokio::test]
async fn a_watch_is_told_what_it_asked_for_in_order_and_nothing_from_before() {
    let mut fixture = fixture();
    fixture.committed.commit("here", Kind::EntityAlias, 0..3);
    let mut all = fixture.watch("here", &[]).await;
    fixture.committed.commit("there", Kind::EntityAlias, 0..2);
    fixture.committed.commit("here", Kind::InvocationPhrase, 7..8);
    fixture.committed.commit("here", Kind::EntityAlias, 3..4);
    let mut aliases = fixture.watch("here", &[Kind::EntityAlias]).await;
    fixture.committed.commit("here", Kind::EntityAlias, 4..5);
    fixture.read_all().await;
    for phrase in ["phrase 7", "phrase 3", "phrase 4"] {
        assert_eq!(about(all.next().await), phrase);
    }
    // What was committed before it began may be told.
    assert!(["phrase 3", "phrase 4"].contains(&about(aliases.next().await).as_str()));
}

#[tokio::test]
async fn a_watch_that_is_too_slow_is_told_so_and_then_goes_on() {
    let mut fixture = fixture();
    let (mut slow, mut quick) = (fixture.watch("here", &[]).await, fixture.watch("here", &[]).await);
    for begin in (0..2_000).step_by(500) {
        fixture
            .committed
            .commit("here", Kind::EntityAlias, begin..begin + 500);
        fixture.read_all().await;
        for number in begin..begin + 500 {
            assert_eq!(about(quick.next().await), format!("phrase {number}"));
        }
    }
    assert_eq!(slow.next().await, Some(Watching::Resync));
    assert_eq!(about(slow.next().await), format!("phrase {}", 2_000 - RING));
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_kept_alive_and_ends_when_the_replica_stops() {
    let mut fixture = fixture();
    let mut watch = fixture.watch("here", &[]).await;
    let before = Instant::now();
    assert_eq!(watch.next().await, Some(Watching::KeepAlive));
    assert_eq!(before.elapsed(), KEEP_ALIVE);
    fixture.soft.cancel();
    assert_eq!(watch.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn after_a_database_was_away_for_long_all_are_told_to_load_anew() {
    let mut fixture = fixture();
    let mut watch = fixture.watch("here", &[]).await;
    fixture.committed.fail(true);
    assert!(fixture.follower.run_once().await.is_err());
    fixture.committed.commit("here", Kind::EntityAlias, 0..1);
    fixture.committed.fail(false);
    fixture.read_all().await;
    assert_eq!(about(watch.next().await), "phrase 0");

    sleep(UNREAD).await;
    fixture.committed.commit("here", Kind::EntityAlias, 1..2);
    fixture.read_all().await;
    fixture.committed.commit("here", Kind::EntityAlias, 2..3);
    fixture.read_all().await;
    assert_eq!(watch.next().await, Some(Watching::Resync));
    assert_eq!(about(watch.next().await), "phrase 2");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_while_nobody_watches_and_a_watch_waits_for_a_cursor() {
    let mut fixture = fixture();
    fixture.committed.fail(true);
    assert!(!fixture.follower.run_once().await.unwrap(), "nobody watches");
    let watched = Watched {
        namespace: Namespace::parse("here").unwrap(),
        kinds: Vec::new(),
    };
    let refused = fixture.feed.watch(watched.clone()).await.unwrap_err();
    assert_eq!(refused.reason(), "QUEUE_NOT_READ");
    fixture.committed.fail(false);
    let watch = fixture.watch("here", &[]).await;
    drop(watch);
    fixture.read_all().await;
    fixture.committed.commit("here", Kind::EntityAlias, 0..1);
    let mut watch = fixture.watch("here", &[]).await;
    fixture.committed.commit("here", Kind::EntityAlias, 1..2);
    fixture.read_all().await;
    assert_eq!(about(watch.next().await), "phrase 1");

    let taken: Vec<_> = (0..WATCHES - 1)
        .map(|_| Arc::clone(&fixture.feed.slots).try_acquire_owned().unwrap())
        .collect();
    let refused = fixture.feed.watch(watched).await.unwrap_err();
    assert_eq!(refused.reason(), "TOO_MANY_WATCHES");
    drop(taken);
}
