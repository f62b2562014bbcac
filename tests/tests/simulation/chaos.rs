//! Faults beyond single calls and messages: processes die, networks partition, databases go down, clocks are stepped, a
//! database is restored from a copy.

use std::{sync::Arc, time::Duration};

use emend_store::simulation::NoInterference;
use jiff::SignedDuration;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    node::Node,
    weather::Place,
    world::{World, lock},
};

/// Causes faults for some seconds. When it returns, all of them have ended and everything is running.
pub(crate) async fn rage(world: &Arc<World>, nodes: &[Arc<Node>]) {
    let until = Instant::now() + Duration::from_secs(1) + world.some_millis(7_000);
    let mut under_way = JoinSet::new();
    if world.dice.chance(0.12) {
        under_way.spawn(lose_tail(Arc::clone(world)));
    }
    while Instant::now() < until {
        sleep(world.some_millis(1_200)).await;
        let (world, nodes) = (Arc::clone(world), nodes.to_vec());
        under_way.spawn(async move { trouble(&world, &nodes).await });
    }
    while under_way.join_next().await.is_some() {}
    for number in 0..world.feedback.len() {
        if world.feedback[number].running().is_none() {
            world.start_feedback(number);
        }
    }
    for number in 0..world.learning.len() {
        if world.learning[number].running().is_none() {
            world.start_learning(number);
        }
    }
}

async fn trouble(world: &Arc<World>, nodes: &[Arc<Node>]) {
    let dice = &world.dice;
    let (feedback, learning) = (dice.below(world.feedback.len()), dice.below(world.learning.len()));
    match dice.below(11) {
        0 | 1 => {
            world.kill_feedback(feedback);
            sleep(world.some_millis(1_500)).await;
            if world.feedback[feedback].running().is_none() {
                world.start_feedback(feedback);
            }
        }
        2 | 3 => {
            world.kill_learning(learning);
            sleep(world.some_millis(1_500)).await;
            start_learning(world, learning);
        }
        4 => {
            if let Some(running) = world.learning[learning].running() {
                world
                    .trace
                    .note(format_args!("learning-svc {learning} is asked to stop"));
                running.replica.stop();
            }
            sleep(world.some_millis(1_500)).await;
            world.kill_learning(learning);
            sleep(world.some_millis(1_000)).await;
            start_learning(world, learning);
        }
        5 | 6 => {
            let one = if dice.chance(0.5) {
                Place::Feedback(feedback)
            } else {
                Place::Node(dice.below(nodes.len()))
            };
            let other = Place::Learning(learning);
            world
                .trace
                .note(format_args!("nothing goes between {one:?} and {other:?}"));
            world.weather.cut(one, other);
            sleep(world.some_millis(3_500)).await;
            world
                .trace
                .note(format_args!("{one:?} and {other:?} hear each other again"));
            world.weather.mend(one, other);
        }
        7 => {
            world.trace.note(format_args!("feedback-svc's database is away"));
            world.weather.set_feedback_database_away(true);
            sleep(world.some_millis(1_000)).await;
            world.weather.set_feedback_database_away(false);
        }
        8 => {
            world.trace.note(format_args!("learning-svc's database is away"));
            world.weather.set_learning_database_away(true);
            sleep(world.some_millis(1_500)).await;
            world.weather.set_learning_database_away(false);
        }
        9 => step_a_clock(world, feedback, learning),
        _ => {
            let node = &nodes[dice.below(nodes.len())];
            node.kill();
            node.start().await;
        }
    }
}

fn start_learning(world: &Arc<World>, number: usize) {
    if world.learning[number].running().is_none() {
        world.start_learning(number);
    }
}

fn step_a_clock(world: &World, feedback: usize, learning: usize) {
    let dice = &world.dice;
    let seconds = i64::try_from(dice.below(7_200)).expect("small") - 3_600;
    match dice.below(4) {
        0 => world.feedback[feedback].clock.step(seconds * 1_000_000),
        1 => world.learning[learning].clock.step(seconds * 1_000_000),
        // A small step, because a lease lasts longer by as much as its database's clock goes back.
        2 => world
            .feedback_database
            .step_clock(SignedDuration::from_secs(seconds / 600)),
        _ => world
            .learning_database
            .advance(SignedDuration::from_secs(seconds)),
    }
    world
        .trace
        .note(format_args!("a clock is stepped by about {seconds} s"));
}

/// Restores the learning database to its state of some seconds before.
async fn lose_tail(world: Arc<World>) {
    sleep(world.some_millis(3_000)).await;
    let database = world.learning_database.connect(Arc::new(NoInterference));
    let backup = database.back_up();
    sleep(world.some_millis(4_000)).await;
    world
        .trace
        .note(format_args!("learning-svc's database loses its tail"));
    world.note_lost_tail();
    lock(&world.history).restore(&backup);
    if world.dice.chance(0.4) {
        // No replica that saw the tail is left; nodes may be.
        for number in 0..world.learning.len() {
            world.kill_learning(number);
        }
        sleep(world.some_millis(1_000)).await;
        for number in 0..world.learning.len() {
            start_learning(&world, number);
        }
    }
}
