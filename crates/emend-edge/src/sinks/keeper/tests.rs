use std::sync::{Arc, Mutex};

use emend_base::SystemClock;
use jiff::Timestamp;

use super::*;
use crate::sinks::{
    error::Problem,
    metrics::SinkMetrics,
    selection::{Selection, What},
    testing::{self, wanted, writer},
};

const LATER: Standing = Standing {
    is_confirmed: false,
    is_connected: true,
};
const CONFIRMED: Standing = Standing {
    is_confirmed: true,
    is_connected: true,
};
const CUT_OFF: Standing = Standing {
    is_confirmed: false,
    is_connected: false,
};

/// What is in an engine.
#[derive(Debug)]
struct Held {
    seen: Seen,
    /// The set by which it answers.
    loaded: Option<Mark>,
    writes: usize,
    /// What somebody else makes of the set when it is written the next time.
    meddled: Option<Seen>,
}

/// A place that several edges may write. Clones share it.
#[derive(Debug, Clone)]
struct Shelf(Arc<Mutex<Held>>);

impl Shelf {
    fn with(seen: Seen) -> Self {
        let loaded = match &seen {
            Seen::Intact(stamp) => Some(stamp.mark.clone()),
            _ => None,
        };
        Self(Arc::new(Mutex::new(Held {
            seen,
            loaded,
            writes: 0,
            meddled: None,
        })))
    }

    fn set(&self, seen: Seen) {
        self.0.lock().unwrap().seen = seen;
    }

    fn writes(&self) -> usize {
        self.0.lock().unwrap().writes
    }

    fn stamp(&self) -> Option<Stamp> {
        match &self.0.lock().unwrap().seen {
            Seen::Intact(stamp) => Some(stamp.clone()),
            _ => None,
        }
    }

    /// Somebody adds a rule by hand, and leaves the others as they are.
    fn change_by_hand(&self) {
        self.set(Seen::Changed("3 synonyms".into()));
    }
}

impl Target for Shelf {
    fn selection(&self, namespaces: &[String]) -> Selection {
        Selection {
            namespaces: namespaces.to_owned(),
            what: What::Synonyms,
        }
    }

    async fn accept(&mut self, _wanted: &mut Wanted) -> Result<(), SinkError> {
        Ok(())
    }

    async fn read(&mut self, _wanted: &Wanted) -> Result<Seen, SinkError> {
        Ok(self.0.lock().unwrap().seen.clone())
    }

    fn wait(&self, _now: Timestamp) -> Option<Duration> {
        None
    }

    async fn write(&mut self, wanted: &Wanted) -> Result<(), SinkError> {
        let mut held = self.0.lock().unwrap();
        held.writes += 1;
        held.seen = held
            .meddled
            .take()
            .unwrap_or_else(|| Seen::Intact(wanted.stamp()));
        held.loaded = Some(wanted.mark.clone());
        Ok(())
    }

    async fn load(&mut self, wanted: &Wanted) -> Result<(), SinkError> {
        self.0.lock().unwrap().loaded = Some(wanted.mark.clone());
        Ok(())
    }

    async fn probe(&mut self, wanted: &Wanted) -> Result<bool, SinkError> {
        Ok(self.0.lock().unwrap().loaded.as_ref() == Some(&wanted.mark))
    }
}

/// A sink of one edge.
struct Edge {
    keeper: Keeper<Shelf>,
    gauges: Gauges,
}

impl Edge {
    fn new(shelf: &Shelf, more: &str) -> Self {
        let pace = if more.contains("pace") { "" } else { "pace = 0\n" };
        let settings =
            format!("kind = \"solr\"\naddress = \"http://a\"\ncore = \"c\"\nfield = \"t\"\n{pace}{more}");
        let (common, _) = testing::sink(&settings);
        Self {
            keeper: Keeper::new(shelf.clone(), &common, SystemClock::shared()),
            gauges: SinkMetrics::default().of("solr:cards"),
        }
    }

    async fn step(&mut self, wanted: Wanted, standing: Standing) -> Result<Step, SinkError> {
        self.keeper.step(wanted, standing, &self.gauges).await
    }

    async fn is_in_force(&mut self, wanted: Wanted, standing: Standing) -> bool {
        matches!(self.step(wanted, standing).await, Ok(Step::InForce(_)))
    }
}

fn first(revision: i64) -> Wanted {
    wanted(&[("notebook", &["laptop"])], revision)
}

fn second(revision: i64) -> Wanted {
    wanted(&[("notebook", &["laptop"]), ("slate", &["tablet"])], revision)
}

/// Another set for each revision.
fn changed(revision: i64) -> Wanted {
    wanted(&[("notebook", &[&*format!("laptop {revision}")])], revision)
}

/// What another writer left there.
fn by(other: Writer) -> Seen {
    let mut wanted = second(0);
    wanted.writer = Some(other);
    Seen::Intact(wanted.stamp())
}

#[tokio::test(start_paused = true)]
async fn a_state_is_in_force_only_once_it_was_read_back() {
    let shelf = Shelf::with(Seen::Empty);
    let mut edge = Edge::new(&shelf, "");
    // The probe's own rule is as it was written; another one is not.
    shelf.0.lock().unwrap().meddled = Some(Seen::Changed("2 synonyms".into()));
    let refused = edge.step(first(1), LATER).await.unwrap_err();
    assert!(refused.words.contains("something else writes there"), "{refused}");
    assert!(edge.is_in_force(first(1), LATER).await);
    assert_eq!(shelf.writes(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_changes_nothing_is_not_told_of_a_set_that_somebody_changed_meanwhile() {
    let shelf = Shelf::with(Seen::Empty);
    let mut edge = Edge::new(&shelf, "");
    assert!(edge.is_in_force(first(1), LATER).await);
    shelf.change_by_hand();
    // No check is due.
    assert!(edge.is_in_force(first(2), LATER).await);
    assert_eq!((shelf.writes(), shelf.stamp()), (2, Some(first(2).stamp())));
}

#[tokio::test(start_paused = true)]
async fn what_is_left_as_somebody_changed_it_is_never_in_force() {
    let shelf = Shelf::with(Seen::Empty);
    let mut edge = Edge::new(&shelf, "on_drift = \"leave\"");
    assert!(edge.is_in_force(first(1), LATER).await);
    shelf.change_by_hand();
    tokio::time::advance(edge.keeper.check()).await;
    for standing in [CONFIRMED, CONFIRMED, LATER] {
        let left = edge.step(first(1), standing).await;
        assert!(matches!(left, Ok(Step::Left)), "{left:?}");
    }
    // After a restart, too.
    let mut next = Edge::new(&shelf, "on_drift = \"leave\"");
    let left = next.step(first(1), LATER).await;
    assert!(matches!(left, Ok(Step::Left)), "{left:?}");
    assert_eq!(shelf.writes(), 1);
    shelf.set(Seen::Intact(first(1).stamp()));
    assert!(
        edge.is_in_force(first(1), CONFIRMED).await,
        "it was put back by hand"
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_is_written_at_once_when_idle_and_then_at_most_one_in_an_interval() {
    let shelf = Shelf::with(Seen::Empty);
    let mut edge = Edge::new(&shelf, "pace = 30");
    let mut written = Vec::new();
    for second in 0..100 {
        let before = shelf.writes();
        let stepped = edge.step(changed(second), LATER).await;
        if shelf.writes() == before {
            let Ok(Step::Later(wait)) = stepped else {
                panic!("at {second}: {stepped:?}");
            };
            let due = 30 - second % 30;
            assert_eq!(
                wait,
                Duration::from_secs(u64::try_from(due).unwrap()),
                "at {second}"
            );
        } else {
            assert!(
                matches!(stepped, Ok(Step::InForce(_))),
                "at {second}: {stepped:?}"
            );
            written.push(second);
        }
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(written, [0, 30, 60, 90]);
    assert_eq!(
        shelf.stamp(),
        Some(changed(90).stamp()),
        "what waits is written together"
    );
    tokio::time::advance(Duration::from_mins(5)).await;
    assert!(edge.is_in_force(changed(100), LATER).await, "it was idle");
    // What fails costs an outage, too.
    tokio::time::advance(Duration::from_secs(30)).await;
    shelf.0.lock().unwrap().meddled = Some(Seen::Changed("2 synonyms".into()));
    edge.step(changed(101), LATER).await.unwrap_err();
    let again = edge.step(changed(101), LATER).await;
    assert!(
        matches!(again, Ok(Step::Later(wait)) if wait == Duration::from_secs(30)),
        "{again:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_edge_that_is_behind_gives_way_and_two_do_not_write_in_turns() {
    let shelf = Shelf::with(Seen::Empty);
    let (mut old, mut new) = (Edge::new(&shelf, ""), Edge::new(&shelf, ""));
    assert!(old.is_in_force(first(10), LATER).await);
    assert!(new.is_in_force(second(20), LATER).await);
    for _ in 0..5 {
        tokio::time::advance(old.keeper.check()).await;
        let overtaken = old.step(first(10), CUT_OFF).await;
        assert!(matches!(overtaken, Ok(Step::Overtaken)), "{overtaken:?}");
        assert!(new.is_in_force(second(20), CONFIRMED).await);
    }
    assert_eq!(shelf.writes(), 2);
    // Once it has heard of it, what is there is its own.
    assert!(old.is_in_force(second(21), LATER).await);
    assert_eq!(shelf.writes(), 2);
    assert!(old.is_in_force(first(22), LATER).await, "it goes on");
}

#[tokio::test(start_paused = true)]
async fn who_may_write_over_a_set_is_told_by_its_stamp() {
    let of_other_epoch = Writer::new("solr:cards", ["shop", "synonyms"], "before", 90);
    let of_other_settings = Writer::new("solr:cards", ["shop", "toys", "synonyms"], "epoch", 3);
    let of_other_sink = Writer::new("solr:toys", ["shop", "synonyms"], "epoch", 3);
    let older = Seen::Intact(Stamp {
        writer: None,
        ..second(0).stamp()
    });
    // By what is there, and how current this edge is: whether it writes, when it has just been started.
    for (there, standing, writes) in [
        (by(writer(9)), LATER, Ok(true)),
        (by(writer(9)), CUT_OFF, Ok(true)),
        (by(writer(11)), LATER, Ok(false)),
        (by(of_other_epoch.clone()), LATER, Ok(true)),
        (by(of_other_epoch), CUT_OFF, Ok(false)),
        (by(of_other_settings.clone()), LATER, Ok(true)),
        (by(of_other_sink), LATER, Err("another sink keeps this set")),
        (older, LATER, Ok(true)),
    ] {
        let shelf = Shelf::with(there.clone());
        let stepped = Edge::new(&shelf, "").step(first(10), standing).await;
        match writes {
            Ok(true) => assert!(matches!(stepped, Ok(Step::InForce(_))), "{there:?} {stepped:?}"),
            Ok(false) => assert!(matches!(stepped, Ok(Step::Overtaken)), "{there:?} {stepped:?}"),
            Err(words) => {
                let refused = stepped.unwrap_err();
                assert_eq!(refused.problem, Problem::Refused);
                assert!(refused.words.contains(words), "{refused}");
            }
        }
        assert_eq!(shelf.writes(), usize::from(writes == Ok(true)), "{there:?}");
    }
    // Of two with different settings the one that was started last goes on.
    let shelf = Shelf::with(Seen::Empty);
    let mut edge = Edge::new(&shelf, "");
    assert!(edge.is_in_force(first(10), LATER).await);
    shelf.set(by(of_other_settings));
    let refused = edge.step(first(11), LATER).await.unwrap_err();
    assert!(refused.words.contains("started later"), "{refused}");
    assert_eq!(shelf.writes(), 1);
}
