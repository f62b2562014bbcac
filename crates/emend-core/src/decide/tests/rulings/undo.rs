//! Decisions on rulings are undone: what is in force follows from what is left.

use super::*;

fn standings(rulings: &Rulings) -> Vec<(CandidateId, Status, Option<Reason>)> {
    let candidates = rulings.state.candidates.iter();
    let mut standings: Vec<_> = candidates
        .map(|candidate| (candidate.id, candidate.status, candidate.reason))
        .collect();
    standings.sort_unstable_by_key(|(id, ..)| *id);
    standings
}

fn undo(decision: &Decision) -> Event {
    Event::Undo {
        decision: Box::new(decision.undoable.clone().unwrap()),
    }
}

proptest! {
    #[test]
    fn a_decision_that_is_undone_gives_back_what_was_before(
        said in proptest::collection::vec((1i64..30, 0usize..4, any::<bool>()), 1..12),
        approved in proptest::collection::vec(1i64..30, 0..3),
        reviewed in 1i64..30,
        edit in proptest::option::of(0usize..3),
        rejects in any::<bool>(),
    ) {
        const WORDS: [&str; 4] = ["block", "low", "academic", "unblock"];
        let mut rulings = Rulings::new();
        for (order, word, is_entitled) in said {
            if rulings.state.candidate(rulings.id(order)).is_none() {
                rulings.rule(order, WORDS[word], if is_entitled { REVIEWER } else { REPORTER });
            }
        }
        for order in approved {
            let _ = rulings.approve(order);
        }
        let before = standings(&rulings);
        let applied = rulings.applies().map(str::to_owned);
        let candidate = rulings.id(reviewed);
        let review = if rejects {
            Event::Reject { candidate, reason: "no".to_owned() }
        } else {
            Event::Approve { is_second: false, candidate, edited: edit.map(|edit| Rulings::value(WORDS[edit])), reason: None }
        };
        let Ok(decided) = rulings.apply(&review) else { return Ok(()) };
        let undone = rulings.apply(&undo(&decided)).unwrap();
        prop_assert_eq!(undone.cause, Cause::Undo);
        let mut after = standings(&rulings);
        // What the reviewer wrote instead is withdrawn.
        after.retain(|(id, status, _)| before.iter().any(|(known, ..)| known == id) || *status != Status::Withdrawn);
        prop_assert_eq!(after, before);
        prop_assert_eq!(rulings.applies().map(str::to_owned), applied);
    }
}

#[test]
fn a_newer_ruling_that_came_into_force_since_prevents_an_undo() {
    let mut rulings = Rulings::new();
    rulings.rule(1, "block", REPORTER);
    let approved = rulings.approve(1).unwrap();
    rulings.rule(2, "low", REPORTER);
    let again = rulings.apply(&undo(&approved)).unwrap();
    assert_eq!(
        rulings.status(1),
        (Status::AwaitingReview, Some(Reason::NotEntitled))
    );
    assert_eq!((rulings.applies(), again.undoable), (None, None));

    let approved = rulings.approve(1).unwrap();
    rulings.rule(3, "academic", REVIEWER);
    assert_eq!(rulings.apply(&undo(&approved)), Err(Refusal::NotTheLastDecision));
    assert_eq!(rulings.applies(), Some("academic"));
}
