//! A contest carried from event to event decides like one whose ballots are counted from scratch each time.

mod undo;

use proptest::prelude::*;

use super::*;
use crate::{ballots::Ballots, policy::VotesPolicy};

/// A generated step; its numbers select voters, choices and ballots.
#[derive(Debug, Clone)]
enum Step {
    /// `late`: accepted before this many earlier ones.
    Vote {
        voter: u8,
        choice: u8,
        late: i64,
        personal_data: bool,
    },
    Retract(usize),
    Policy {
        occurrences: bool,
        threshold: u32,
        derived: u32,
        counted: u32,
        half_life: Option<i64>,
        risk: u8,
    },
    Approve(u8),
    Reject(u8),
    Put(u8),
    Delete,
    Revert(Option<u8>),
    Wait(i64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0u8..14, 0u8..4, prop_oneof![4 => Just(0), 1 => 1i64..30], proptest::bool::weighted(0.02)).prop_map(
            |(voter, choice, late, personal_data)| Step::Vote { voter, choice, late, personal_data }
        ),
        6 => any::<usize>().prop_map(Step::Retract),
        2 => (any::<bool>(), 1u32..5, 1u32..4, 1u32..15, proptest::option::weighted(0.3, 1i64..100), 0u8..6).prop_map(
            |(occurrences, threshold, derived, counted, half_life, risk)| Step::Policy {
                occurrences, threshold, derived, counted, half_life, risk,
            }
        ),
        1 => (0u8..4).prop_map(Step::Approve),
        1 => (0u8..4).prop_map(Step::Reject),
        1 => (0u8..4).prop_map(Step::Put),
        1 => Just(Step::Delete),
        1 => proptest::option::of(0u8..4).prop_map(Step::Revert),
        2 => (1i64..100).prop_map(Step::Wait),
    ]
}

/// Eight reporters, and sessions of two callers.
fn voter(number: u8) -> Voter {
    match number {
        0..8 => reporter_named(&format!("r{number}")),
        _ => session(
            if number.is_multiple_of(2) { "web" } else { "app" },
            &number.to_string(),
        ),
    }
}

const CHOICES: [&str; 4] = ["a", "b", "c", "d"];

/// The event of a step; `None` if it only changes the policy or the time.
fn event_of(step: &Step, scenario: &mut Scenario, live: &mut Vec<Ballot>) -> Option<Event> {
    let value = |scenario: &Scenario, choice: u8| scenario.value(CHOICES[usize::from(choice)]);
    Some(match *step {
        Step::Vote {
            voter: number,
            choice,
            late,
            personal_data,
        } => {
            let mut ballot = scenario.ballot(&voter(number), CHOICES[usize::from(choice)]);
            ballot.accept_order.0 -= late;
            live.push(ballot.clone());
            Event::Recorded {
                value: value(scenario, choice),
                ballot,
                origin: Origin::Votes,
                personal_data,
                sender: Roles::default(),
                retracted_by: None,
            }
        }
        Step::Retract(_) if live.is_empty() => return None,
        Step::Retract(which) => Event::Retracted {
            ballot: live.swap_remove(which % live.len()),
            sender: Roles::default(),
        },
        Step::Policy {
            occurrences,
            threshold,
            derived,
            counted,
            half_life,
            risk,
        } => {
            scenario.policy.version += 1;
            scenario.policy.votes = VotesPolicy {
                risk: match risk {
                    0 => RiskLevel::High,
                    1 => RiskLevel::Low,
                    _ => RiskLevel::Medium,
                },
                threshold,
                counting: if occurrences {
                    Counting::Occurrences
                } else {
                    Counting::DistinctVoters
                },
                half_life: half_life.map(SignedDuration::from_hours),
                max_derived_voters: derived,
                max_counted_feedback: counted,
            };
            Event::PolicyChanged
        }
        Step::Approve(choice) => Event::Approve {
            is_second: false,
            candidate: value(scenario, choice).candidate_id(scenario.state.id()),
            edited: None,
            reason: None,
        },
        Step::Reject(choice) => Event::Reject {
            candidate: value(scenario, choice).candidate_id(scenario.state.id()),
            reason: "no".to_owned(),
        },
        Step::Put(choice) => Event::Put {
            value: value(scenario, choice),
            origin: Origin::Operator,
            reason: None,
        },
        Step::Delete => Event::Delete { reason: None },
        Step::Revert(choice) => Event::Revert {
            revision: Revision::default(),
            restore: choice.map(|choice| value(scenario, choice)),
            reason: "wrong".to_owned(),
        },
        Step::Wait(hours) => {
            scenario.now += SignedDuration::from_hours(hours);
            return None;
        }
    })
}

proptest! {
    #[test]
    fn decisions_on_kept_ballots_equal_decisions_on_a_full_count(
        steps in proptest::collection::vec(step(), 1..80)
    ) {
        let mut scenario = Scenario::new(Kind::InvocationPhrase);
        let mut live = Vec::new();
        for step in steps {
            let before = live.clone();
            let Some(event) = event_of(&step, &mut scenario, &mut live) else { continue };
            let from_nothing = ContestState {
                ballots: Ballots::new(before, true),
                ..scenario.state.clone()
            };
            let expected = decide(from_nothing, &event, &scenario.policy, scenario.now);
            let carried = decide(scenario.state.clone(), &event, &scenario.policy, scenario.now);
            prop_assert_eq!(&carried, &expected, "{:?}", step);
            if let Ok(decision) = &expected {
                let tally = crate::ballots::Tally::count(&live, &scenario.policy, scenario.now);
                for candidate in &decision.after.candidates {
                    prop_assert_eq!(candidate.reporters, tally.of(candidate.id).voters, "{:?}", step);
                }
            }
            let _ = scenario.event(&event);
        }
    }
}
