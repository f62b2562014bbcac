//! One schedule from its seed, and many of them in parallel.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::{
    runtime::Builder,
    time::{Instant, sleep, timeout},
};

use crate::{
    chaos, checks,
    node::Node,
    people,
    sabotage::Sabotage,
    world::{World, lock},
};

/// How long, in virtual time, everything may take to arrive once the faults have stopped.
const LIVENESS: Duration = Duration::from_mins(2);

/// The result of a schedule.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) seed: u64,
    pub(crate) violations: Vec<String>,
    pub(crate) trace: Vec<String>,
}

/// Plays the schedule of a seed. It depends on nothing but the seed and the sabotage.
pub(crate) fn play(seed: u64, sabotage: Option<Sabotage>, traced: bool) -> Played {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let played = runtime.block_on(async {
        let world = World::new(seed, sabotage, traced).await;
        for number in 0..world.learning.len() {
            world.start_learning(number);
        }
        for number in 0..world.feedback.len() {
            world.start_feedback(number);
        }
        let nodes: Vec<_> = (0..=world.dice.below(4))
            .map(|number| Node::new(&world, number))
            .collect();
        for node in &nodes {
            node.start().await;
        }
        let (acknowledged, mut at_work) = people::set_to_work(&world);
        chaos::rage(&world, &nodes).await;
        world.trace.note(format_args!("the sky clears"));
        world.weather.clear();
        let arrived = timeout(LIVENESS, async {
            while at_work.join_next().await.is_some() {}
            while checks::unfinished(&world, &nodes).is_some() {
                sleep(Duration::from_millis(200)).await;
            }
        });
        if arrived.await.is_err() {
            let what = checks::unfinished(&world, &nodes).unwrap_or_else(|| "people still work".to_owned());
            world.violation(format!("after {LIVENESS:?} of clear sky: {what}"));
        }
        world.trace.note(format_args!("everybody has arrived"));
        checks::ledger(&world, &acknowledged).await;
        world.look_for_failures();
        for node in &nodes {
            node.kill();
        }
        for number in 0..world.feedback.len() {
            world.kill_feedback(number);
        }
        for number in 0..world.learning.len() {
            world.kill_learning(number);
        }
        Played {
            seed,
            violations: world.violations(),
            trace: world.trace.lines(),
        }
    });
    runtime.shutdown_background();
    played
}

/// The result of many schedules.
#[derive(Debug)]
pub(crate) struct ScheduleRun {
    pub(crate) played: u64,
    pub(crate) took: Duration,
    /// The failed schedule with the lowest seed.
    pub(crate) failed: Option<Played>,
}

/// Plays `count` schedules from the seed `first` on, on all processors, until one fails.
pub(crate) fn play_many(first: u64, count: u64, sabotage: Option<Sabotage>) -> ScheduleRun {
    let (next, played) = (AtomicU64::new(first), AtomicU64::new(0));
    let failed: Mutex<Option<Played>> = Mutex::default();
    let began = Instant::now();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= first + count || lock(&failed).is_some() {
                        return;
                    }
                    let outcome = play(seed, sabotage, false);
                    played.fetch_add(1, Ordering::SeqCst);
                    if !outcome.violations.is_empty() {
                        let mut failed = lock(&failed);
                        if failed.as_ref().is_none_or(|other| outcome.seed < other.seed) {
                            *failed = Some(outcome);
                        }
                    }
                }
            });
        }
    });
    ScheduleRun {
        played: played.into_inner(),
        took: began.elapsed(),
        failed: failed.into_inner().unwrap_or_default(),
    }
}
