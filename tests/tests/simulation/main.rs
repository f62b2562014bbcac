//! Deterministic simulation: the whole loop on one thread and in virtual time, in thousands of schedules.
//!
//! A schedule is played from a seed. It runs one to three replicas of each service on in-memory stores that keep the
//! databases' contract, with search nodes, backends and operators: all of it production code except sockets and SQL.
//! The network delays, loses, repeats and reorders messages; databases fail, conflict, and lose answers; processes are
//! killed and stopped, networks partition, clocks are stepped, a database loses its tail. Every one of these choices
//! comes from the seed's dice, so that a seed always plays the same schedule.
//!
//! * [`schedule`] plays one schedule, or many. [`world`] is what a schedule contains; [`weather`], [`disturbance`],
//!   [`network`] and [`chaos`] are what goes wrong; [`people`] and [`node`] are its users.
//! * [`witness`] reads every stream ([`line`] carries them), [`picture`] is what a node shows, [`history`] is what both
//!   are checked against; [`checks`] looks at the rest once the faults have stopped.
//! * [`sabotage`] breaks things on purpose: the simulation is worth what it notices.
//!
//! `EMEND_TEST_SEED=n` plays only that seed, with its trace; `EMEND_TEST_LONG=1` plays many more.

mod chaos;
mod checks;
mod clock;
mod disturbance;
mod history;
mod line;
mod network;
mod node;
mod people;
mod picture;
mod sabotage;
mod schedule;
mod trace;
mod weather;
mod witness;
mod world;

use std::env;

use emend_tests::faults::runs::short_or_long;
use feedback_svc::simulation::Defect as FeedbackDefect;
use learning_store::memory::Defect as LearningDefect;

use crate::{
    sabotage::{Sabotage, StreamDefect},
    schedule::{Played, ScheduleRun, play, play_many},
};

/// The number of schedules by default.
const SHORT: u64 = 500;
/// The number with `EMEND_TEST_LONG=1`.
const LONG: u64 = 100_000;
/// The number within which everything that is broken on purpose is noticed.
const NOTICED: u64 = 2_000;
/// The number of trace lines worth showing.
const TAIL: usize = 120;

fn show(played: &Played) -> String {
    let again = play(played.seed, None, true);
    let from = again.trace.len().saturating_sub(TAIL);
    format!(
        "seed {} (EMEND_TEST_SEED={} plays it again):\n{}\nthe end of its trace:\n{}",
        played.seed,
        played.seed,
        again.violations.join("\n"),
        again.trace[from..].join("\n")
    )
}

#[test]
#[expect(clippy::print_stderr, reason = "how many schedules were played, and how fast")]
fn every_schedule_ends_with_nothing_lost_and_all_nodes_current() {
    if let Ok(seed) = env::var("EMEND_TEST_SEED") {
        let seed = seed.parse().expect("EMEND_TEST_SEED is a number");
        let played = play(seed, None, true);
        eprintln!("{}", played.trace.join("\n"));
        assert!(played.violations.is_empty(), "{}", played.violations.join("\n"));
        return;
    }
    let count = short_or_long(SHORT, LONG);
    let ScheduleRun { played, took, failed } = play_many(0, count, None);
    eprintln!(
        "{played} schedules in {took:.1?}: {:.0} a second",
        f64::from(u32::try_from(played).unwrap_or(u32::MAX)) / took.as_secs_f64()
    );
    if let Some(failed) = failed {
        panic!("{}", show(&failed));
    }
}

#[test]
fn a_seed_always_plays_the_same_schedule() {
    for seed in 0..8 {
        let (one, other) = (play(seed, None, true), play(seed, None, true));
        assert!(one.trace.len() > 50, "something happens");
        for (line, (left, right)) in one.trace.iter().zip(&other.trace).enumerate() {
            assert_eq!(left, right, "line {line} of seed {seed}");
        }
        assert_eq!(one.trace.len(), other.trace.len(), "of seed {seed}");
    }
}

/// Breaks one thing on purpose and checks that it is noticed in time.
#[expect(clippy::print_stderr, reason = "how long it took to notice")]
fn is_detected(sabotage: Sabotage) {
    let ScheduleRun { played, failed, .. } = play_many(0, NOTICED, Some(sabotage));
    match failed {
        Some(failed) => eprintln!(
            "{sabotage:?}: schedule {played}, seed {}: {:.200}",
            failed.seed, failed.violations[0]
        ),
        None => panic!("{sabotage:?} was not noticed in {played} schedules"),
    }
}

macro_rules! noticed {
    ($($name:ident: $sabotage:expr),* $(,)?) => {
        mod noticed {
            use super::*;
            $(
                #[test]
                fn $name() {
                    is_detected($sabotage);
                }
            )*
        }
    };
}

noticed! {
    what_is_acknowledged_and_not_stored: Sabotage::Feedback(FeedbackDefect::AcknowledgesUnstored),
    a_request_that_is_stored_twice: Sabotage::Feedback(FeedbackDefect::ForgetsRequestIds),
    a_failure_under_a_lease_that_is_over: Sabotage::Feedback(FeedbackDefect::IgnoresTokens),
    an_event_that_is_leased_to_two: Sabotage::Feedback(FeedbackDefect::IgnoresLeases),
    an_event_that_is_never_tried_again: Sabotage::Feedback(FeedbackDefect::NeverRetries),
    an_inbox_that_forgets: Sabotage::Learning(LearningDefect::ForgetsInbox),
    a_retraction_that_came_too_early_and_is_forgotten: Sabotage::Learning(LearningDefect::ForgetsMarks),
    a_feedback_and_its_retraction_that_miss_each_other: Sabotage::Learning(LearningDefect::LocksNoFeedback),
    a_contest_that_two_decide_at_once: Sabotage::Learning(LearningDefect::LocksNoContests),
    a_head_that_two_move_at_once: Sabotage::Learning(LearningDefect::LocksNoHead),
    what_was_rolled_back_and_stays: Sabotage::Learning(LearningDefect::KeepsUncommitted),
    a_change_that_the_tailer_does_not_see: Sabotage::Learning(LearningDefect::SkipsChanges),
    a_deletion_that_nobody_hears_of: Sabotage::Learning(LearningDefect::HidesDeletions),
    a_log_that_went_backwards_under_its_old_epoch: Sabotage::Learning(LearningDefect::MintsNoEpoch),
    a_conflation_that_drops_the_newest: Sabotage::Stream(StreamDefect::DropsNewest),
    an_update_that_is_sent_twice: Sabotage::Stream(StreamDefect::RepeatsUpdates),
    an_update_that_is_left_out: Sabotage::Stream(StreamDefect::SkipsUpdates),
    a_bookmark_that_says_too_much: Sabotage::Stream(StreamDefect::BookmarksAhead),
}
