//! What people decide, and what votes can change about it.

use super::*;

#[test]
fn an_approved_value_is_pinned_and_not_replaced_by_votes() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.vote("jane", "a");
    let id = play.id("a");
    let approve = Event::Approve {
        candidate: id,
        edited: None,
        reason: None,
    };
    let decision = play.event(&approve).unwrap();
    assert_eq!(
        (decision.cause, play.applied(), play.state.pinned),
        (Cause::Review, Some("a"), true)
    );
    let outcome = play.votes(10..20, "b");
    assert_eq!(
        (outcome.state, outcome.reason),
        (OutcomeState::AwaitingReview, Some(Reason::Pinned))
    );
    assert_eq!(play.applied(), Some("a"));
    assert_eq!(play.event(&approve), Err(Refusal::AlreadyApplied));
}

#[test]
fn a_pinned_value_is_not_withdrawn_by_retraction() {
    let mut play = Play::new(Kind::InvocationPhrase);
    let (ballot, _) = play.cast(&reporter_named("jane"), "a");
    let id = play.id("a");
    play.event(&Event::Approve {
        candidate: id,
        edited: None,
        reason: None,
    })
    .unwrap();
    play.event(&Event::Retracted { ballot }).unwrap();
    assert_eq!(play.applied(), Some("a"));
}

#[test]
fn an_edited_approval_is_a_candidate_of_its_own() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.vote("jane", "a");
    let (id, edited) = (play.id("a"), play.value("b"));
    play.event(&Event::Approve {
        candidate: id,
        edited: Some(edited),
        reason: Some("typo".into()),
    })
    .unwrap();
    let made = play.state.candidate(play.id("b")).unwrap();
    assert_eq!(
        (made.origin, made.edited_from, made.status),
        (Origin::Review, Some(id), Status::Applied)
    );
    assert_eq!(
        (play.status("a"), play.applied()),
        (Status::Superseded, Some("b"))
    );
}

#[test]
fn a_rejected_value_is_not_reopened_by_votes_and_says_why() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.vote("jane", "a");
    let id = play.id("a");
    play.event(&Event::Reject {
        candidate: id,
        reason: "not a verb".into(),
    })
    .unwrap();
    let outcome = play.votes(0..9, "a");
    assert_eq!((outcome.state, play.applied()), (OutcomeState::Rejected, None));
    assert!(
        outcome.message.contains("rejected before: not a verb"),
        "{}",
        outcome.message
    );
    let twice = Event::Reject {
        candidate: id,
        reason: "x".into(),
    };
    assert_eq!(play.event(&twice), Err(Refusal::AlreadyRejected));
}

#[test]
fn rejecting_an_applied_value_removes_it_and_lets_a_rival_apply() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.votes(0..5, "a");
    play.votes(10..13, "b");
    let id = play.id("a");
    play.event(&Event::Reject {
        candidate: id,
        reason: "wrong".into(),
    })
    .unwrap();
    assert_eq!((play.applied(), play.status("b")), (Some("b"), Status::Applied));
}

#[test]
fn a_put_value_is_pinned_and_putting_it_again_writes_nothing() {
    let mut play = Play::new(Kind::InvocationPhrase);
    let put = Event::Put {
        value: play.value("a"),
        origin: Origin::Operator,
        reason: None,
    };
    assert!(play.event(&put).unwrap().resource.is_some());
    assert!(play.event(&put).unwrap().resource.is_none());
    play.votes(0..9, "b");
    assert_eq!((play.applied(), play.revision), (Some("a"), 1));
}

#[test]
fn a_deleted_value_comes_back_only_by_a_person_but_another_may_be_learned() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.votes(0..3, "a");
    play.event(&Event::Delete { reason: None }).unwrap();
    assert_eq!(play.applied(), None);
    let outcome = play.votes(3..9, "a");
    assert_eq!(
        (outcome.state, outcome.reason),
        (OutcomeState::AwaitingReview, Some(Reason::Deleted))
    );
    assert_eq!(
        play.event(&Event::Delete { reason: None }),
        Err(Refusal::NoResource)
    );
    play.votes(20..40, "b");
    assert_eq!(play.applied(), Some("b"));
}

#[test]
fn a_reverted_value_is_held_whatever_arrives_late() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.votes(0..3, "a");
    play.event(&Event::Revert {
        restore: None,
        reason: "wrong".into(),
    })
    .unwrap();
    assert_eq!(
        (play.applied(), play.status("a"), play.state.pinned),
        (None, Status::AwaitingReview, true)
    );
    let outcome = play.votes(3..20, "a");
    assert_eq!(
        (outcome.state, outcome.reason),
        (OutcomeState::AwaitingReview, Some(Reason::Reverted))
    );
    let id = play.id("a");
    play.event(&Event::Approve {
        candidate: id,
        edited: None,
        reason: None,
    })
    .unwrap();
    assert_eq!(play.applied(), Some("a"), "a person may");
}

#[test]
fn reverting_restores_what_was_there_before() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.votes(0..3, "a");
    play.votes(10..16, "b");
    assert_eq!(play.applied(), Some("b"));
    let restore = Some(play.value("a"));
    let decision = play
        .event(&Event::Revert {
            restore,
            reason: "wrong".into(),
        })
        .unwrap();
    assert_eq!((decision.cause, play.applied()), (Cause::Revert, Some("a")));
    assert_eq!(
        (play.status("b"), play.status("a")),
        (Status::AwaitingReview, Status::Applied)
    );
}
