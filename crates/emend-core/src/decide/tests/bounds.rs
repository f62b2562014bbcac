//! What policies and limits prevent: personal data, full namespaces, thresholds, kinds without rivals.

use super::*;

#[test]
fn personal_data_awaits_review_at_once() {
    let mut scenario = Scenario::new(Kind::EntityAlias);
    let ballot = scenario.ballot(&reporter_named("jane"), "a");
    let event = Event::Recorded {
        value: scenario.value("a"),
        ballot,
        origin: Origin::Votes,
        personal_data: true,
        sender: Roles::default(),
        retracted_by: None,
    };
    let outcome = scenario.event(&event).unwrap().outcome.unwrap();
    assert_eq!(
        (outcome.state, outcome.reason),
        (OutcomeState::AwaitingReview, Some(Reason::PersonalData))
    );
}

#[test]
fn a_full_namespace_sends_to_review_and_refuses_people() {
    let mut scenario = Scenario::new(Kind::EntityAlias);
    scenario.state.full = true;
    let outcome = scenario.vote("jane", "a");
    assert_eq!(
        (outcome.state, outcome.reason),
        (OutcomeState::AwaitingReview, Some(Reason::ResourceLimit))
    );
    let put = Event::Put {
        value: scenario.value("a"),
        origin: Origin::Operator,
        reason: None,
    };
    assert_eq!(scenario.event(&put), Err(Refusal::Full));
}

#[test]
fn a_lowered_threshold_promotes_what_was_pending() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.votes(0..2, "a");
    scenario.policy.votes.threshold = 2;
    scenario.policy.version = 1;
    let decision = scenario.event(&Event::PolicyChanged).unwrap();
    assert_eq!(
        (decision.cause, decision.policy_version, scenario.applied()),
        (Cause::Policy, 1, Some("a"))
    );
}

#[test]
fn prohibitions_have_no_rivals() {
    let mut scenario = Scenario::new(Kind::Prohibition);
    scenario.votes(0..3, "a");
    assert_eq!(scenario.applied(), Some("a"));
}
