//! What policies and limits prevent: personal data, full namespaces, thresholds, kinds without rivals.

use super::*;

#[test]
fn personal_data_awaits_review_at_once() {
    let mut play = Play::new(Kind::EntityAlias);
    let ballot = play.ballot(&reporter_named("jane"), "a");
    let event = Event::Recorded {
        value: play.value("a"),
        ballot,
        origin: Origin::Votes,
        personal_data: true,
    };
    let outcome = play.event(&event).unwrap().outcome.unwrap();
    assert_eq!(
        (outcome.state, outcome.reason),
        (OutcomeState::AwaitingReview, Some(Reason::PersonalData))
    );
}

#[test]
fn a_full_namespace_sends_to_review_and_refuses_people() {
    let mut play = Play::new(Kind::EntityAlias);
    play.state.full = true;
    let outcome = play.vote("jane", "a");
    assert_eq!(
        (outcome.state, outcome.reason),
        (OutcomeState::AwaitingReview, Some(Reason::ResourceLimit))
    );
    let put = Event::Put {
        value: play.value("a"),
        origin: Origin::Operator,
        reason: None,
    };
    assert_eq!(play.event(&put), Err(Refusal::Full));
}

#[test]
fn a_lowered_threshold_promotes_what_was_pending() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.votes(0..2, "a");
    play.policy.threshold = 2;
    play.policy.version = 1;
    let decision = play.event(&Event::PolicyChanged).unwrap();
    assert_eq!(
        (decision.cause, decision.policy_version, play.applied()),
        (Cause::Policy, 1, Some("a"))
    );
}

#[test]
fn prohibitions_have_no_rivals() {
    let mut play = Play::new(Kind::Prohibition);
    play.votes(0..3, "a");
    assert_eq!(play.applied(), Some("a"));
}
