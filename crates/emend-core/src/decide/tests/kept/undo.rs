//! A person's decision that is undone never was, whatever happened before it; votes that came since count.

use std::collections::BTreeMap;

use super::*;

/// What a decision may change of candidates that votes decide about, and of their contest.
#[derive(Debug, PartialEq)]
struct Standing {
    applies: Option<String>,
    pinned: bool,
    candidates: BTreeMap<
        CandidateId,
        (
            Status,
            Option<crate::candidate::Hold>,
            Option<String>,
            ResourceValue,
        ),
    >,
}

fn standing(state: &ContestState) -> Standing {
    let candidates = state.candidates.iter().map(|candidate| {
        let kept = (
            candidate.status,
            candidate.hold,
            candidate.decision_reason.clone(),
            candidate.value.clone(),
        );
        (candidate.id, kept)
    });
    Standing {
        applies: state
            .resource
            .as_ref()
            .map(|current| current.value.learned.maps_to().to_owned()),
        pinned: state.pinned,
        candidates: candidates.collect(),
    }
}

fn undo(decision: &Decision) -> Event {
    Event::Undo {
        decision: Box::new(decision.undoable.clone().unwrap()),
    }
}

/// The value that the log of resource changes comes to.
fn replay(log: &[Option<ResourceValue>]) -> Option<String> {
    let last = log.last()?.as_ref()?;
    Some(last.learned.maps_to().to_owned())
}

proptest! {
    #[test]
    fn a_decision_that_is_undone_gives_back_what_was_before(
        steps in proptest::collection::vec(step(), 0..60),
        choice in 0usize..4,
        edit in proptest::option::of(0usize..4),
        rejects in any::<bool>(),
    ) {
        let mut scenario = Scenario::new(Kind::InvocationPhrase);
        let (mut live, mut log) = (Vec::new(), Vec::new());
        let mut write = |decision: &Decision| match &decision.resource {
            Some(crate::ResourceChange::Put { value, .. }) => log.push(Some(value.clone())),
            Some(crate::ResourceChange::Delete { .. }) => log.push(None),
            None => {}
        };
        for step in steps {
            let Some(event) = event_of(&step, &mut scenario, &mut live) else { continue };
            if let Ok(decision) = scenario.event(&event) {
                write(&decision);
            }
        }
        let before = standing(&scenario.state);
        let candidate = scenario.id(CHOICES[choice]);
        let review = if rejects {
            Event::Reject { candidate, reason: "no".to_owned() }
        } else {
            // In another wording too, which replaces that of the first reporter.
            let edited = edit.map(|edit| ResourceValue {
                display: "another wording".to_owned(),
                ..scenario.value(CHOICES[edit])
            });
            Event::Approve { is_second: false, candidate, edited, reason: None }
        };
        let Ok(reviewed) = scenario.event(&review) else { return Ok(()) };
        write(&reviewed);
        let undone = scenario.event(&undo(&reviewed)).unwrap();
        write(&undone);
        prop_assert_eq!(undone.cause, Cause::Undo);
        let mut after = standing(&scenario.state);
        // A candidate that the decision made is withdrawn.
        after.candidates.retain(|id, kept| before.candidates.contains_key(id) || kept.0 != Status::Withdrawn);
        prop_assert_eq!(&after, &before);
        prop_assert_eq!(replay(&log), before.applies);
        prop_assert_eq!(scenario.event(&undo(&reviewed)), Err(Refusal::NotTheLastDecision), "only once");
    }
}

fn reject(scenario: &Scenario, choice: &str) -> Event {
    Event::Reject {
        candidate: scenario.id(choice),
        reason: "no".to_owned(),
    }
}

#[test]
fn votes_that_came_since_a_rejection_count_once_it_is_undone() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.vote("jane", "a");
    let rejected = scenario.event(&reject(&scenario, "a")).unwrap();
    scenario.votes(0..4, "a");
    assert_eq!(
        (scenario.status("a"), scenario.applied()),
        (Status::Rejected, None)
    );
    let undone = scenario.event(&undo(&rejected)).unwrap();
    assert_eq!(
        (scenario.status("a"), scenario.applied()),
        (Status::Applied, Some("a"))
    );
    assert_eq!(undone.cause, Cause::Undo);
}

#[test]
fn what_others_propose_since_does_not_prevent_an_undo_and_what_was_decided_does() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.vote("jane", "a");
    let approve = Event::Approve {
        is_second: false,
        candidate: scenario.id("a"),
        edited: None,
        reason: None,
    };
    let approved = scenario.event(&approve).unwrap();
    scenario.vote("tom", "b");
    scenario.event(&undo(&approved)).unwrap();
    assert_eq!(
        (scenario.status("a"), scenario.applied(), scenario.state.pinned),
        (Status::Pending, None, false)
    );

    let approved = scenario.event(&approve).unwrap();
    let other = reject(&scenario, "b");
    scenario.event(&other).unwrap();
    assert_eq!(scenario.event(&undo(&approved)), Err(Refusal::NotTheLastDecision));
}

#[test]
fn a_retraction_that_withdrew_what_was_superseded_is_not_undone_with_it() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    let (ballot, _) = scenario.cast(&reporter_named("jane"), "a");
    let id = scenario.id("a");
    let rejected = scenario.event(&reject(&scenario, "a")).unwrap();
    scenario
        .event(&Event::Retracted {
            ballot,
            sender: Roles::default(),
        })
        .unwrap();
    scenario.event(&undo(&rejected)).unwrap();
    let candidate = scenario.state.candidate(id).unwrap();
    assert_eq!((candidate.status, candidate.occurrences), (Status::Pending, 0));
    assert_eq!(scenario.applied(), None);
}
