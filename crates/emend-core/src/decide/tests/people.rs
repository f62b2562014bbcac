//! What people decide, and what votes can change about it.

use super::*;

#[test]
fn an_approved_value_is_pinned_and_not_replaced_by_votes() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.vote("jane", "a");
    let id = scenario.id("a");
    let approve = Event::Approve {
        is_second: false,
        candidate: id,
        edited: None,
        reason: None,
    };
    let decision = scenario.event(&approve).unwrap();
    assert_eq!(
        (decision.cause, scenario.applied(), scenario.state.pinned),
        (Cause::Review, Some("a"), true)
    );
    let outcome = scenario.votes(10..20, "b");
    assert_eq!(
        (outcome.state, outcome.reason),
        (OutcomeState::AwaitingReview, Some(Reason::Pinned))
    );
    assert_eq!(scenario.applied(), Some("a"));
    assert_eq!(scenario.event(&approve), Err(Refusal::AlreadyApplied));
}

#[test]
fn a_pinned_value_is_not_withdrawn_by_retraction() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    let (ballot, _) = scenario.cast(&reporter_named("jane"), "a");
    let id = scenario.id("a");
    scenario
        .event(&Event::Approve {
            is_second: false,
            candidate: id,
            edited: None,
            reason: None,
        })
        .unwrap();
    scenario
        .event(&Event::Retracted {
            ballot,
            sender: Roles::default(),
        })
        .unwrap();
    assert_eq!(scenario.applied(), Some("a"));
}

#[test]
fn an_edited_approval_is_a_candidate_of_its_own() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.vote("jane", "a");
    let (id, edited) = (scenario.id("a"), scenario.value("b"));
    scenario
        .event(&Event::Approve {
            is_second: false,
            candidate: id,
            edited: Some(edited),
            reason: Some("typo".into()),
        })
        .unwrap();
    let made = scenario.state.candidate(scenario.id("b")).unwrap();
    assert_eq!(
        (made.origin, made.edited_from, made.status),
        (Origin::Review, Some(id), Status::Applied)
    );
    assert_eq!(
        (scenario.status("a"), scenario.applied()),
        (Status::Superseded, Some("b"))
    );
}

#[test]
fn a_rejected_value_is_not_reopened_by_votes_and_says_why() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.vote("jane", "a");
    let id = scenario.id("a");
    scenario
        .event(&Event::Reject {
            candidate: id,
            reason: "not a verb".into(),
        })
        .unwrap();
    let outcome = scenario.votes(0..9, "a");
    assert_eq!(
        (outcome.state, scenario.applied()),
        (OutcomeState::Rejected, None)
    );
    assert!(
        outcome.message.ends_with("It was rejected before."),
        "{}",
        outcome.message
    );
    assert_eq!(outcome.decision_reason.as_deref(), Some("not a verb"));
    let twice = Event::Reject {
        candidate: id,
        reason: "x".into(),
    };
    assert_eq!(scenario.event(&twice), Err(Refusal::AlreadyRejected));
}

#[test]
fn rejecting_an_applied_value_removes_it_and_lets_a_rival_apply() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.votes(0..5, "a");
    scenario.votes(10..13, "b");
    let id = scenario.id("a");
    scenario
        .event(&Event::Reject {
            candidate: id,
            reason: "wrong".into(),
        })
        .unwrap();
    assert_eq!(
        (scenario.applied(), scenario.status("b")),
        (Some("b"), Status::Applied)
    );
}

#[test]
fn a_put_value_is_pinned_and_putting_it_again_writes_nothing() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    let put = Event::Put {
        value: scenario.value("a"),
        origin: Origin::Operator,
        reason: None,
    };
    assert!(scenario.event(&put).unwrap().resource.is_some());
    assert!(scenario.event(&put).unwrap().resource.is_none());
    scenario.votes(0..9, "b");
    assert_eq!((scenario.applied(), scenario.revision), (Some("a"), 1));
}

#[test]
fn a_deleted_value_comes_back_only_by_a_person_but_another_may_be_learned() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.votes(0..3, "a");
    scenario.event(&Event::Delete { reason: None }).unwrap();
    assert_eq!(scenario.applied(), None);
    let outcome = scenario.votes(3..9, "a");
    assert_eq!(
        (outcome.state, outcome.reason),
        (OutcomeState::AwaitingReview, Some(Reason::Deleted))
    );
    assert_eq!(
        scenario.event(&Event::Delete { reason: None }),
        Err(Refusal::NoResource)
    );
    scenario.votes(20..40, "b");
    assert_eq!(scenario.applied(), Some("b"));
}

#[test]
fn a_reverted_value_is_held_whatever_arrives_late() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.votes(0..3, "a");
    scenario
        .event(&Event::Revert {
            revision: Revision::default(),
            restore: None,
            reason: "wrong".into(),
        })
        .unwrap();
    assert_eq!(
        (scenario.applied(), scenario.status("a"), scenario.state.pinned),
        (None, Status::AwaitingReview, true)
    );
    let outcome = scenario.votes(3..20, "a");
    assert_eq!(
        (outcome.state, outcome.reason),
        (OutcomeState::AwaitingReview, Some(Reason::Reverted))
    );
    let id = scenario.id("a");
    scenario
        .event(&Event::Approve {
            is_second: false,
            candidate: id,
            edited: None,
            reason: None,
        })
        .unwrap();
    assert_eq!(scenario.applied(), Some("a"), "a person may");
}

#[test]
fn a_reverted_value_that_nobody_else_proposes_waits_only_once_somebody_does() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    let value = scenario.value("a");
    let put = Event::Put {
        value,
        origin: Origin::Operator,
        reason: None,
    };
    scenario.event(&put).unwrap();
    scenario
        .event(&Event::Revert {
            revision: Revision::default(),
            restore: None,
            reason: "a slip".into(),
        })
        .unwrap();
    assert_eq!(
        (scenario.applied(), scenario.status("a")),
        (None, Status::Withdrawn)
    );
    let outcome = scenario.votes(0..1, "a");
    assert_eq!(
        (outcome.state, outcome.reason),
        (OutcomeState::AwaitingReview, Some(Reason::Reverted))
    );
}

#[test]
fn once_an_edited_approval_is_reverted_what_was_proposed_waits_again() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.votes(0..3, "before");
    scenario.vote("jane", "a");
    let (candidate, edited) = (scenario.id("a"), scenario.value("b"));
    let approve = Event::Approve {
        is_second: false,
        candidate,
        edited: Some(edited),
        reason: None,
    };
    scenario.event(&approve).unwrap();
    let restore = Some(scenario.value("before"));
    scenario
        .event(&Event::Revert {
            revision: Revision::default(),
            restore,
            reason: "wrong".into(),
        })
        .unwrap();
    assert_eq!(scenario.applied(), Some("before"));
    assert_eq!(scenario.status("b"), Status::Withdrawn, "nobody proposed it");
    let original = scenario.state.candidate(candidate).unwrap();
    assert_eq!(
        (original.status, original.reason),
        (Status::AwaitingReview, Some(Reason::Reverted))
    );
    let outcome = scenario.votes(3..20, "a");
    assert_eq!(outcome.state, OutcomeState::AwaitingReview, "a person decides");
}

#[test]
fn an_edit_of_what_applied_is_reverted_to_that() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.votes(0..3, "a");
    let (candidate, edited) = (scenario.id("a"), scenario.value("b"));
    let approve = Event::Approve {
        is_second: false,
        candidate,
        edited: Some(edited),
        reason: None,
    };
    scenario.event(&approve).unwrap();
    let restore = Some(scenario.value("a"));
    scenario
        .event(&Event::Revert {
            revision: Revision::default(),
            restore,
            reason: "wrong".into(),
        })
        .unwrap();
    assert_eq!(scenario.applied(), Some("a"));
}

#[test]
fn reverting_restores_what_was_there_before() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.votes(0..3, "a");
    scenario.votes(10..16, "b");
    assert_eq!(scenario.applied(), Some("b"));
    let restore = Some(scenario.value("a"));
    let decision = scenario
        .event(&Event::Revert {
            revision: Revision::default(),
            restore,
            reason: "wrong".into(),
        })
        .unwrap();
    assert_eq!((decision.cause, scenario.applied()), (Cause::Revert, Some("a")));
    assert_eq!(
        (scenario.status("b"), scenario.status("a")),
        (Status::AwaitingReview, Status::Applied)
    );
}
