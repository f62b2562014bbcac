//! Networks that cut, half-close, delay, throttle, swallow, lose answers, repeat and reorder, between a backend and
//! feedback-svc, feedback-svc and learning-svc, and learning-svc and its nodes, during submissions, retractions and
//! operators' writes. Once a network is good again everything recovers by itself: what was acknowledged has exactly one
//! effect, no guarantee of the stream is broken, and every node is equal to the database.

use std::time::Duration;

use emend_client::SubscriberEvent;
use emend_tests::{
    audit::{
        ledger::{self, Asked},
        stream::{Habits, Recorder, RevisionLog, Run, everything},
    },
    faults::{
        proxy::{Fault, Gateway, Scrambler},
        runs::{seed, short_or_long},
    },
    harness::{
        Dice, Feedback, Learning, Subscriber, System, eventually, node::Node, system::Database, wait::holds,
        wary,
    },
    load::backends::Backends,
};
use tokio::time::sleep;

const BACKENDS: usize = 4;

/// Services that soon notice that a peer has silently gone.
async fn wary_system(database: Database, feedback: usize, learning: usize) -> System {
    System::start(database, feedback, learning, wary::settings()).await
}

/// All listeners, each on the same bad network to learning-svc.
struct Fleet {
    node: Node,
    recorder: Recorder,
}

impl Fleet {
    async fn start(address: impl std::fmt::Display) -> Self {
        let habits = Habits {
            ping: Some(wary::INTERVAL),
        };
        Self {
            node: Node::start_wary(&address, "search-1").await,
            recorder: Recorder::with(&Run::new(), &address, everything("recorder-1"), habits),
        }
    }

    /// No stream broke a guarantee, and every listener is equal to the database, even one that connects only now.
    async fn ends_equal(mut self, system: &System, head: i64, asked: &Asked) {
        assert_eq!(system.stored().head().await, head);
        let log = RevisionLog::read(&system.stored()).await;
        self.recorder.audited(&log).await;
        self.node.until_certain().await;
        let mut late = Subscriber::of_everything("late");
        late.begin(&Learning::at(system.learning[0].address()).channel)
            .await;
        late.until(head).await;
        ledger::expect_sound(system, Some(asked), &[(&self.node).into(), (&late).into()]).await;
        for event in self.node.events_so_far().await {
            assert!(
                !matches!(&*event, SubscriberEvent::DigestMismatch { .. }),
                "{event:?}"
            );
        }
    }
}

async fn ends_well(load: Backends, fleet: Fleet, system: System) {
    // Bypassing every bad network.
    let feedback = Feedback::at(system.feedback[0].address());
    let learning = Learning::at(system.learning[0].address());
    let (head, asked) = load.end_with_one_effect_each(&feedback, &learning).await;
    fleet.ends_equal(&system, head, &asked).await;
    system.stop().await;
}

/// The number of kinds of rounds.
const KINDS: usize = 6;

/// The faults of one round, and whether anything gets through meanwhile.
fn faults(kind: usize) -> (Vec<Fault>, bool) {
    let delay = Fault::Delay(Duration::from_millis(30));
    match kind {
        0 => (vec![Fault::Cut { within: 8_000 }, delay], true),
        1 => (vec![Fault::HalfClose { within: 2_000 }], true),
        2 => (vec![delay], true),
        3 => (vec![Fault::Throttle(20_000), delay], true),
        4 => (vec![Fault::LostAnswers], false),
        _ => (vec![Fault::BlackHole], false),
    }
}

/// Each kind once, in random order.
fn kinds(dice: &Dice) -> [usize; KINDS] {
    let mut kinds = std::array::from_fn(|kind| kind);
    for last in (1..KINDS).rev() {
        kinds.swap(last, dice.below(last + 1));
    }
    kinds
}

/// One connection after another goes bad, for a while each.
async fn bad_roads(database: Database, seed: u64) {
    let dice = Dice::seeded(seed);
    let system = wary_system(database, 1, 1).await;
    let nodes = Gateway::to(system.learning[0].address()).await;
    let roads = [&system.feedback[0].front, &system.feedback[0].onward, &nodes];
    let fleet = Fleet::start(nodes.address()).await;
    let load = Backends::start(BACKENDS, roads[0].address(), nodes.address(), seed);
    load.go_on_by(20).await;
    let turns: Vec<[usize; KINDS]> = (0..short_or_long(1, 20)).map(|_| kinds(&dice)).collect();
    for (round, kind) in turns.into_iter().flatten().enumerate() {
        let road = roads[round % roads.len()];
        let (faults, passes) = faults(kind);
        tell(round, &faults);
        let before = road.harmed();
        let loses = !matches!(faults[..], [Fault::Delay(_)] | [Fault::Throttle(_), ..]);
        road.suffer(faults.iter().copied(), seed.wrapping_add(round as u64));
        if loses {
            eventually("the fault hits a connection", || async {
                holds(road.harmed() > before, || format!("round {round}: {faults:?}"))
            })
            .await;
        }
        if passes {
            load.go_on_by(15).await;
        } else {
            // Longer than detection takes, so that the next fault meets its consequences too.
            sleep(wary::INTERVAL + wary::TIMEOUT).await;
        }
        road.heal();
        load.go_on_by(15).await;
    }
    ends_well(load, fleet, system).await;
}

#[expect(clippy::print_stderr, reason = "shown where a test fails")]
fn tell(round: usize, faults: &[Fault]) {
    eprintln!("round {round}: {faults:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_while_one_connection_after_another_fails_on_sqlite() {
    bad_roads(Database::sqlite(), seed("bad roads", 31)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_while_one_connection_after_another_fails_on_postgresql() {
    if let Some(database) = Database::postgres().await {
        bad_roads(database, seed("bad roads", 32)).await;
    }
}

/// Events arrive in any order, repeatedly, over several connections, and answers to applied events are lost.
async fn scrambled(database: Database, seed: u64) {
    let system = wary_system(database, 1, 1).await;
    let learning = system.learning[0].address();
    let scrambler = Scrambler::start(learning, seed).await;
    system.feedback[0].onward.lead_to(scrambler.address());
    let fleet = Fleet::start(learning).await;
    let load = Backends::start(BACKENDS, system.feedback[0].address(), learning, seed);
    for _ in 0..short_or_long(1, 50) {
        load.go_on_by(200).await;
    }
    eventually("events have come again and answers were lost", || async {
        let done = scrambler.so_far();
        holds(done.repeated > 0 && done.unanswered > 0, || format!("{done:?}"))
    })
    .await;
    scrambler.calm().await;
    ends_well(load, fleet, system).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_may_arrive_reordered_and_repeated_on_sqlite() {
    scrambled(Database::sqlite(), seed("scrambled events", 33)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_may_arrive_reordered_and_repeated_on_postgresql() {
    if let Some(database) = Database::postgres().await {
        scrambled(database, seed("scrambled events", 34)).await;
    }
}

/// Replicas answer with random delays, and nodes are moved from one to the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_move_between_slow_replicas() {
    let Some(database) = Database::postgres().await else {
        return;
    };
    let seed = seed("late replicas", 35);
    let dice = Dice::seeded(seed);
    let system = wary_system(database, 2, 2).await;
    let roads = [
        Gateway::to(system.learning[0].address()).await,
        Gateway::to(system.learning[1].address()).await,
    ];
    for (number, road) in roads.iter().enumerate() {
        road.suffer([Fault::Delay(Duration::from_millis(60))], seed + number as u64);
        // Traffic from its database is delayed too, and so the replica lags.
        let database = system.learning[number].road.as_ref().unwrap();
        database.suffer([Fault::Delay(Duration::from_millis(10))], seed + number as u64);
    }
    let front = Gateway::to(roads[0].address()).await;
    let fleet = Fleet::start(front.address()).await;
    let load = Backends::start(BACKENDS, system.feedback[0].address(), front.address(), seed);
    for _ in 0..short_or_long(8, 200) {
        load.go_on_by(1 + dice.below(15)).await;
        front.lead_to(roads[dice.below(2)].address());
    }
    for road in roads
        .iter()
        .chain(system.learning.iter().filter_map(|replica| replica.road.as_ref()))
    {
        road.heal();
    }
    ends_well(load, fleet, system).await;
}
