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

#[test]
fn a_value_with_the_id_of_another_is_refused_whoever_proposes_it() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.vote("dana", "create_csa");
    let known = scenario.id("create_csa");
    // As if the hash of both were the same.
    scenario.state.candidate_mut(known).unwrap().value = scenario.value("create_isda");
    let value = scenario.value("create_csa");
    let ballot = scenario.ballot(&reporter_named("mia"), "create_csa");
    for event in [
        Event::Recorded {
            ballot,
            value: value.clone(),
            origin: Origin::Votes,
            personal_data: false,
            sender: Roles::default(),
            retracted_by: None,
        },
        Event::Mined { value: value.clone() },
        Event::Put {
            value: value.clone(),
            origin: Origin::Operator,
            reason: None,
        },
        Event::Approve {
            is_second: false,
            candidate: known,
            edited: Some(value.clone()),
            reason: None,
        },
        Event::Revert {
            revision: Revision(1),
            restore: Some(value.clone()),
            reason: "wrong".to_owned(),
        },
    ] {
        assert_eq!(scenario.event(&event).unwrap_err(), Refusal::SameId, "{event:?}");
    }
}
