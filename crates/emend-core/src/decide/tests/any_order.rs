//! Properties of any history, in any order of delivery.

use proptest::prelude::*;

use super::*;

/// One step of a generated history: a vote, and whether it is retracted later.
#[derive(Debug, Clone)]
struct Step {
    reporter: u8,
    choice: u8,
    retracted: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step =
        (0u8..6, 0u8..3, proptest::bool::weighted(0.2)).prop_map(|(reporter, choice, retracted)| Step {
            reporter,
            choice,
            retracted,
        });
    proptest::collection::vec(step, 1..25)
}

/// The figures of all candidates, which must not depend on the order.
fn figures(state: &ContestState) -> Vec<(CandidateId, u64, u64)> {
    let mut figures: Vec<_> = state
        .candidates
        .iter()
        .filter(|candidate| candidate.occurrences > 0)
        .map(|candidate| (candidate.id, candidate.occurrences, candidate.reporters))
        .collect();
    figures.sort_unstable();
    figures
}

proptest! {
    #[test]
    fn votes_and_counts_do_not_depend_on_delivery_order(steps in steps(), seed in any::<u64>()) {
        let mut scenario = Scenario::new(Kind::InvocationPhrase);
        let mut events = Vec::new();
        for step in &steps {
            let choice = ["a", "b", "c"][usize::from(step.choice)];
            let ballot = scenario.ballot(&reporter_named(&format!("r{}", step.reporter)), choice);
            events.push((ballot, scenario.value(choice), step.retracted));
        }
        let run = |order: &[usize]| {
            let mut scenario = Scenario::new(Kind::InvocationPhrase);
            for &index in order {
                let (ballot, value, _) = events[index].clone();
                scenario.event(&Event::Recorded { ballot, value, origin: Origin::Votes, personal_data: false, sender: Roles::default(), retracted_by: None }).unwrap();
            }
            for &index in order {
                let (ballot, _, retracted) = events[index].clone();
                if retracted {
                    scenario.event(&Event::Retracted { ballot, sender: Roles::default() }).unwrap();
                }
            }
            figures(&scenario.state)
        };
        let forwards: Vec<usize> = (0..events.len()).collect();
        let mut shuffled = forwards.clone();
        shuffled.sort_by_key(|&index| (index as u64 + 1).wrapping_mul(seed | 1));
        prop_assert_eq!(run(&forwards), run(&shuffled));
    }

    #[test]
    fn after_every_step_the_invariants_hold(steps in steps()) {
        let mut scenario = Scenario::new(Kind::InvocationPhrase);
        for step in steps {
            let choice = ["a", "b", "c"][usize::from(step.choice)];
            let (ballot, outcome) = scenario.cast(&reporter_named(&format!("r{}", step.reporter)), choice);
            prop_assert!(outcome.state != OutcomeState::Pending || outcome.confirmations_needed >= 1);
            if step.retracted {
                scenario.event(&Event::Retracted { ballot, sender: Roles::default() }).unwrap();
            }
            let applied: Vec<_> =
                scenario.state.candidates.iter().filter(|candidate| candidate.status == Status::Applied).collect();
            prop_assert!(applied.len() <= 1, "at most one value applies");
            prop_assert_eq!(
                applied.first().map(|candidate| candidate.value.clone()),
                scenario.state.resource.as_ref().map(|current| current.value.clone()),
                "what is applied is the resource"
            );
            let winner = scenario.state.candidates.iter().find(|candidate| candidate.net >= 3);
            prop_assert!(winner.is_none_or(|winner| winner.status == Status::Applied), "who wins is applied");
        }
    }

    #[test]
    fn replaying_the_decisions_changes_gives_the_resource(steps in steps()) {
        let mut scenario = Scenario::new(Kind::InvocationPhrase);
        let mut replayed: Option<ResourceValue> = None;
        for step in steps {
            let choice = ["a", "b", "c"][usize::from(step.choice)];
            let ballot = scenario.ballot(&reporter_named(&format!("r{}", step.reporter)), choice);
            let value = scenario.value(choice);
            let mut decisions = vec![
                scenario.event(&Event::Recorded { ballot: ballot.clone(), value, origin: Origin::Votes, personal_data: false, sender: Roles::default(), retracted_by: None }).unwrap(),
            ];
            if step.retracted {
                decisions.push(scenario.event(&Event::Retracted { ballot, sender: Roles::default() }).unwrap());
            }
            for decision in decisions {
                match decision.resource {
                    Some(ResourceChange::Put { value, .. }) => replayed = Some(value),
                    Some(ResourceChange::Delete { .. }) => replayed = None,
                    None => {}
                }
            }
            let current = scenario.state.resource.as_ref().map(|current| current.value.clone());
            prop_assert_eq!(&replayed, &current);
        }
    }
}
