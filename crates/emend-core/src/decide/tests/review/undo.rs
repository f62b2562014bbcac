//! A proposal that was rejected or approved is open again, and what was current before is so again.

use super::*;

fn undo(decision: &Decision) -> Event {
    Event::Undo {
        decision: Box::new(decision.undoable.clone().unwrap()),
    }
}

#[test]
fn a_rejected_proposal_is_open_again_and_can_be_approved() {
    let mut reviewed = Reviewed::new(true);
    reviewed.put("one");
    let better = reviewed.generated("two").unwrap();
    let before = reviewed.state.candidate(better).cloned();
    let rejected = reviewed.reject(better).unwrap();
    assert_eq!(
        reviewed.generated("two"),
        Err(Refusal::RejectedForGood),
        "nobody generates it anew"
    );
    reviewed.apply(&undo(&rejected)).unwrap();
    assert_eq!(reviewed.state.candidate(better).cloned(), before);
    reviewed.approve(better).unwrap();
    assert_eq!(reviewed.applies(), Some("two"));
}

#[test]
fn a_proposal_that_was_closed_when_it_was_rejected_is_closed_again() {
    let mut reviewed = Reviewed::new(false);
    reviewed.put("one");
    let better = reviewed.generated("two").unwrap();
    reviewed.put("three");
    let rejected = reviewed.reject(better).unwrap();
    reviewed.apply(&undo(&rejected)).unwrap();
    assert_eq!(
        reviewed.status(better),
        (Status::Superseded, Some(Reason::BaseChanged))
    );
    assert!(reviewed.approve(better).is_err());
}

#[test]
fn an_approved_proposal_is_open_again_and_the_version_before_is_current() {
    let mut reviewed = Reviewed::new(false);
    reviewed.put("one");
    let (better, worse) = (
        reviewed.generated("two").unwrap(),
        reviewed.generated("three").unwrap(),
    );
    let before = reviewed.state.clone();
    let rejected = reviewed.reject(worse).unwrap();
    let approved = reviewed.approve(better).unwrap();
    assert_eq!(reviewed.apply(&undo(&rejected)), Err(Refusal::NotTheLastDecision));
    reviewed.apply(&undo(&approved)).unwrap();
    assert_eq!(reviewed.applies(), Some("one"));
    assert_eq!(reviewed.state.versions, before.versions);
    let kept = |state: &ContestState| {
        let candidate = state.candidate(better).unwrap();
        (candidate.status, candidate.reason, candidate.proposal)
    };
    assert_eq!(kept(&reviewed.state), kept(&before));
    // It was made for what is current again, so it can be approved again, under the same number.
    reviewed.approve(better).unwrap();
    assert_eq!(reviewed.applies(), Some("two"));
    assert_eq!(reviewed.state.versions.current, 2);
}

#[test]
fn the_first_version_of_all_is_taken_back_and_so_is_an_edited_one() {
    let mut reviewed = Reviewed::new(false);
    let first = reviewed.generated("one").unwrap();
    let approved = reviewed.approve(first).unwrap();
    reviewed.apply(&undo(&approved)).unwrap();
    assert_eq!((reviewed.applies(), reviewed.state.versions.current), (None, 0));
    let edited = reviewed.edit(first, "one, edited").unwrap();
    let written = edited.subject.unwrap();
    assert_eq!(reviewed.applies(), Some("one, edited"));
    reviewed.apply(&undo(&edited)).unwrap();
    assert_eq!(reviewed.applies(), None);
    assert_eq!(
        reviewed.status(written),
        (Status::Withdrawn, Some(Reason::Undone))
    );
    assert_eq!(
        reviewed.status(first),
        (Status::AwaitingReview, Some(Reason::PersonDecides))
    );
}
