//! Clocks that lie: a process's clock that steps back an hour and forward again, and two replicas whose clocks differ.
//! The later statement counts all the same, and nothing waits until a clock has caught up.

use std::{collections::BTreeMap, sync::Mutex};

use emend_base::SystemClock;
use emend_proto::{
    common::v1::{ResourceKind, Scope},
    feedback::v1::{SubmitFeedbackRequest, Wait},
};
use emend_tests::{
    faults::{Fleet, Run, Storage, bounded, clock::OwnClock, rounds},
    harness::{Feedback, NAMESPACE, eventually, says, verb, wait::holds},
};
use uuid::Uuid;

/// In seconds, like all of these.
const HOUR: i64 = 3_600;
/// How far one of two replicas' clocks is ahead of the other's.
const FAST: i64 = 5;
/// Longer than any lease of an event and any wait for its next attempt.
const LONGEST_WAIT: i64 = 5 * 60;
const PHRASE: &str = "what jane wants";
const CHOICES: [&str; 3] = ["create_csa", "create_isda", "create_gmra"];

/// The true time, in milliseconds since 1970.
fn now() -> i64 {
    SystemClock::shared().now().as_millisecond()
}

/// A reporter who says something different each time, one after the other, with user scope: what they said last is what
/// they get.
#[derive(Debug, Default)]
struct UndecidedReporter {
    said: usize,
    last_order: i64,
}

impl UndecidedReporter {
    /// The last acknowledged choice.
    fn choice(&self) -> &'static str {
        CHOICES[self.said % CHOICES.len()]
    }

    /// Makes another choice, which is newer than the last whatever the clocks say. Answers with the time by the clock
    /// of the process that accepted it, in milliseconds.
    async fn changes_their_mind(&mut self, run: &mut Run, feedback: &Feedback) -> i64 {
        self.said += 1;
        let request = SubmitFeedbackRequest {
            request_id: request_id(self.said),
            scope: Scope::User.into(),
            wait: Wait::Recorded.into(),
            ..says("jane", verb(PHRASE, self.choice()))
        };
        run.record.asked.ask(&request);
        let stored = feedback.submit(request.clone()).await;
        assert!(
            stored.accept_order > self.last_order,
            "accept order {} came after {}",
            stored.accept_order,
            self.last_order
        );
        self.last_order = stored.accept_order;
        let id: Uuid = stored.feedback_id.parse().unwrap();
        run.record.acknowledge(&request, stored);
        let (seconds, nanos) = id.get_timestamp().unwrap().to_unix();
        i64::try_from(seconds).unwrap() * 1_000 + i64::from(nanos / 1_000_000)
    }

    /// Checks that every statement is stored and evaluated, and that the last one counts. Answers with when that was
    /// decided, by learning-svc's clock, in milliseconds.
    async fn last_statement_counts(&self, run: &Run, feedback: &Feedback) -> i64 {
        let learning = run.fleet.learning_clients().remove(0);
        let stored = feedback.list(feedback.list_request(NAMESPACE)).await;
        let own: BTreeMap<String, _> = stored
            .into_iter()
            .map(|stored| (stored.request_id.clone(), stored))
            .collect();
        let mut last_order = 0;
        for number in 1..=self.said {
            let stored = &own[&request_id(number)];
            assert!(
                stored.accept_order > last_order,
                "{stored:?} came after {last_order}"
            );
            last_order = stored.accept_order;
            feedback.delivered(NAMESPACE, &stored.feedback_id).await;
        }
        let resolved = learning
            .resolve(ResourceKind::InvocationPhrase, PHRASE, "jane")
            .await;
        let found = resolved.r#match.map(|found| found.value);
        assert_eq!(found.as_deref(), Some(self.choice()), "what was said last counts");

        let candidate = learning.candidate_for(PHRASE, self.choice()).await;
        let history = learning.candidate(&candidate.candidate_id).await.history;
        let newest = history.iter().max_by_key(|transition| transition.revision);
        let at = newest.and_then(|transition| transition.at).unwrap();
        at.seconds * 1_000 + i64::from(at.nanos / 1_000_000)
    }
}

fn request_id(number: usize) -> String {
    format!("jane-{number}")
}

/// Checks that an act between two moments is timed between them by the process's own clock.
fn assert_between(began: i64, at: i64, ahead: i64) {
    let by_its_clock = (began + ahead * 1_000)..=(now() + ahead * 1_000);
    assert!(by_its_clock.contains(&at), "{at} is not in {by_its_clock:?}");
}

/// Each process's clock in turn steps back an hour and later forward again, while events wait under leases from before.
async fn either_clock_steps(name: &str, storage: Storage) {
    let Some(mut feedback_clock) = OwnClock::right() else {
        return;
    };
    let Some(mut learning_clock) = OwnClock::right() else {
        return;
    };
    let is_the_databases = matches!(storage, Storage::Sqlite { .. });
    let mut fleet = Fleet::stopped(storage, 1, 1).await;
    learning_clock.starts(&mut fleet.learning[0]).await;
    feedback_clock.starts(&mut fleet.feedback[0]).await;
    let mut run = Run::begin(name, fleet).await;
    let feedback = run.fleet.feedback_clients().remove(0);
    let mut jane = UndecidedReporter::default();
    for _ in 0..rounds(1, 20) {
        for ahead in [-HOUR, 0] {
            run.goes_on().await;
            run.fleet.learning[0].stop().await;
            jane.changes_their_mind(&mut run, &feedback).await;
            run.load().goes_on_by(10).await;
            assert!(!run.fleet.leases().await.is_empty(), "events wait under leases");

            feedback_clock.steps_to(ahead);
            let began = now();
            let said_at = jane.changes_their_mind(&mut run, &feedback).await;
            assert_between(began, said_at, ahead);
            let database_ahead = if is_the_databases { ahead } else { 0 };
            nothing_is_held_for_long(&run.fleet, database_ahead).await;

            learning_clock.starts(&mut run.fleet.learning[0]).await;
            jane.last_statement_counts(&run, &feedback).await;
            run.goes_on().await;
            run.fleet.feedback[0].is_ready().await;
        }
        for ahead in [-HOUR, 0] {
            run.goes_on().await;
            jane.changes_their_mind(&mut run, &feedback).await;
            learning_clock.steps_to(ahead);
            let began = now();
            jane.changes_their_mind(&mut run, &feedback).await;
            let decided_at = jane.last_statement_counts(&run, &feedback).await;
            assert_between(began, decided_at, ahead);
            run.goes_on().await;
            run.fleet.learning[0].is_ready().await;
        }
    }
    run.ends_well().await;
}

/// No event waits until a clock that was set back has caught up.
async fn nothing_is_held_for_long(fleet: &Fleet, database_ahead: i64) {
    eventually("no event is held for long", || async {
        let leases = fleet.leases().await;
        let longest = leases
            .values()
            .map(|lease| (lease.until_us - lease.read_at_us) / 1_000_000 - database_ahead)
            .max();
        holds(longest.is_none_or(|longest| longest <= LONGEST_WAIT), || {
            format!("{longest:?} s")
        })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_steps_loses_doubles_and_delays_nothing_on_sqlite() {
    bounded(either_clock_steps("clock-sqlite", Storage::sqlite())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_steps_loses_doubles_and_delays_nothing_on_postgresql() {
    bounded(async {
        if let Some(storage) = Storage::postgres().await {
            either_clock_steps("clock-postgres", storage).await;
        }
    })
    .await;
}

/// Every current lease runs to its end, and none is taken over before.
async fn leases_last_until_their_end(fleet: &Fleet) {
    let first = fleet.leases().await;
    assert!(!first.is_empty(), "events wait under leases");
    let last = Mutex::new(first.clone());
    eventually("the leases come to their ends", || async {
        let leases = fleet.leases().await;
        let mut last = last.lock().unwrap();
        for (event, lease) in &leases {
            if let Some(before) = last.get(event)
                && before.token != lease.token
            {
                let early = before.until_us - lease.read_at_us;
                assert!(early <= 0, "a lease was taken over {early} µs before its end");
            }
        }
        let still = first
            .iter()
            .filter(|(event, lease)| leases.get(*event).is_some_and(|now| now.token == lease.token))
            .count();
        *last = leases;
        holds(still == 0, || format!("{still} of {} go on", first.len()))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_with_different_clocks_count_the_later_vote_and_keep_their_leases() {
    bounded(async {
        let Some(mut clock) = OwnClock::right() else {
            return;
        };
        let Some(storage) = Storage::postgres().await else {
            return;
        };
        let mut fleet = Fleet::stopped(storage, 2, 2).await;
        clock.steps_to(FAST);
        clock.starts(&mut fleet.feedback[1]).await;
        fleet.start_all().await;
        let mut run = Run::begin("skew", fleet).await;
        let feedback = run.fleet.feedback_clients();
        let ahead = [0, FAST];
        let mut jane = UndecidedReporter::default();
        for _ in 0..rounds(2, 20) {
            for _ in 0..5 {
                for _ in 0..=run.dice.below(4) {
                    let via = jane.said % 2;
                    let began = now();
                    let said_at = jane.changes_their_mind(&mut run, &feedback[via]).await;
                    assert_between(began, said_at, ahead[via]);
                }
                jane.last_statement_counts(&run, &feedback[jane.said % 2]).await;
            }
            run.goes_on().await;
        }
        for member in &mut run.fleet.learning {
            member.stop().await;
        }
        run.load().goes_on_by(20).await;
        for client in &feedback {
            jane.changes_their_mind(&mut run, client).await;
        }
        leases_last_until_their_end(&run.fleet).await;
        run.fleet.start_all().await;
        jane.last_statement_counts(&run, &feedback[0]).await;
        run.goes_on().await;
        run.ends_well().await;
    })
    .await;
}
