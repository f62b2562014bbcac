//! What votes do: confirmations, rivals, voter identity, retractions, decay.

use super::*;

#[test]
fn low_risk_is_applied_with_the_first_vote() {
    let mut scenario = Scenario::new(Kind::EntityAlias);
    let outcome = scenario.vote("jane", "a");
    assert_eq!(
        (outcome.state, outcome.auto_applied, outcome.was_new),
        (OutcomeState::Applied, true, true)
    );
    assert_eq!((scenario.applied(), outcome.revision), (Some("a"), Revision(1)));
}

#[test]
fn medium_risk_is_pending_at_one_and_two_and_applied_at_three() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    let first = scenario.vote("r1", "a");
    assert_eq!(
        (first.state, first.confirmations_needed),
        (OutcomeState::Pending, 2)
    );
    assert_eq!(
        first.message,
        "Proposed: “Set up a CSA” means the verb “a”. It needs 2 more confirmations."
    );
    let second = scenario.vote("r2", "a");
    assert_eq!(
        (second.state, second.confirmations_needed),
        (OutcomeState::Pending, 1)
    );
    assert!(second.message.ends_with("It needs 1 more confirmation."));
    let third = scenario.vote("r3", "a");
    assert_eq!((third.state, third.auto_applied), (OutcomeState::Applied, true));
    assert_eq!((third.occurrences, third.reporters), (3, 3));
}

#[test]
fn further_confirmations_raise_counts_and_write_nothing() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.votes(0..3, "a");
    let fourth = scenario.vote("r9", "a");
    assert_eq!(
        (fourth.state, fourth.auto_applied),
        (OutcomeState::Applied, false)
    );
    assert_eq!(
        (fourth.occurrences, fourth.revision, scenario.revision),
        (4, Revision(1), 1)
    );
}

#[test]
fn the_same_reporter_three_times_is_one_confirmation() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    for _ in 0..3 {
        scenario.vote("jane", "a");
    }
    let candidate = &scenario.state.candidates[0];
    assert_eq!(
        (candidate.occurrences, candidate.reporters, candidate.net),
        (3, 1, 1)
    );
    assert_eq!(scenario.status("a"), Status::Pending);
}

#[test]
fn with_counted_occurrences_the_same_reporter_counts_each_time() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.policy.votes.counting = Counting::Occurrences;
    for _ in 0..3 {
        scenario.vote("jane", "a");
    }
    assert_eq!(scenario.applied(), Some("a"));
}

#[test]
fn with_counted_occurrences_a_changed_mind_moves_all_earlier_votes() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.policy.votes.counting = Counting::Occurrences;
    for _ in 0..2 {
        scenario.vote("jane", "a");
    }
    scenario.vote("jane", "b");
    assert_eq!(
        scenario.vote("joe", "a").confirmations_needed,
        3,
        "what jane said before of `a` counts no more"
    );
    scenario.vote("jane", "a");
    assert_eq!(
        scenario.applied(),
        Some("a"),
        "who comes back supports it with all he said of it"
    );
}

#[test]
fn a_rival_with_one_vote_makes_four_necessary() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.vote("rival", "b");
    let third = scenario.votes(0..3, "a");
    assert_eq!(
        (third.state, third.reason),
        (OutcomeState::Pending, Some(Reason::Rivals))
    );
    assert_eq!(third.confirmations_needed, 1);
    assert_eq!(scenario.votes(3..4, "a").state, OutcomeState::Applied);
}

#[test]
fn the_incumbent_stays_until_beaten_by_the_threshold() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.votes(0..3, "a");
    scenario.votes(10..15, "b");
    assert_eq!(scenario.applied(), Some("a"), "net 2 is not enough");
    scenario.votes(15..16, "b");
    assert_eq!(
        (scenario.applied(), scenario.status("a")),
        (Some("b"), Status::Superseded)
    );
    scenario.vote("r0", "a");
    assert_eq!(
        scenario.status("a"),
        Status::Pending,
        "back to pending with the next vote"
    );
}

#[test]
fn a_tie_changes_nothing() {
    let mut scenario = Scenario::new(Kind::EntityAlias);
    scenario.vote("jane", "a");
    scenario.vote("joe", "b");
    assert_eq!(
        (scenario.applied(), scenario.status("b")),
        (Some("a"), Status::Pending)
    );
}

#[test]
fn a_changed_mind_moves_the_vote() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.votes(0..2, "a");
    scenario.vote("r0", "b");
    let net = |scenario: &Scenario, choice| scenario.state.candidate(scenario.id(choice)).unwrap().net;
    assert_eq!((net(&scenario, "a"), net(&scenario, "b")), (0, 0));
}

#[test]
fn an_older_correction_that_arrives_late_does_not_move_the_vote_back() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    let jane = reporter_named("jane");
    let late = scenario.ballot(&jane, "b");
    scenario.vote("jane", "a");
    let event = Event::Recorded {
        value: scenario.value("b"),
        ballot: late,
        origin: Origin::Votes,
        personal_data: false,
        sender: Roles::default(),
        retracted_by: None,
    };
    scenario.event(&event).unwrap();
    assert_eq!(scenario.state.candidate(scenario.id("a")).unwrap().reporters, 1);
    assert_eq!(scenario.state.candidate(scenario.id("b")).unwrap().reporters, 0);
}

#[test]
fn sessions_of_one_caller_count_together_as_one() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    for n in 0..5 {
        scenario.cast(&session("web", &n.to_string()), "a");
    }
    assert_eq!(scenario.state.candidates[0].net, 1);
    scenario.cast(&session("app", "1"), "a");
    scenario.vote("jane", "a");
    assert_eq!(scenario.applied(), Some("a"));
}

#[test]
fn high_risk_awaits_review_whatever_its_count() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.policy.votes.risk = RiskLevel::High;
    let outcome = scenario.votes(0..9, "a");
    assert_eq!(
        (outcome.state, outcome.reason),
        (OutcomeState::AwaitingReview, Some(Reason::HighRisk))
    );
    assert_eq!(scenario.applied(), None);
}

#[test]
fn a_users_own_phrase_is_low_risk() {
    let mut scenario = Scenario::scoped(Kind::InvocationPhrase, "jane");
    assert_eq!(scenario.vote("jane", "a").state, OutcomeState::Applied);
    assert_eq!(scenario.state.key.user, Some(UserId::parse("jane").unwrap()));
}

#[test]
fn retraction_below_the_threshold_withdraws_and_the_next_vote_reopens() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.votes(0..2, "a");
    let (ballot, _) = scenario.cast(&reporter_named("last"), "a");
    assert_eq!(scenario.applied(), Some("a"));
    let decision = scenario
        .event(&Event::Retracted {
            ballot,
            sender: Roles::default(),
        })
        .unwrap();
    assert_eq!((decision.cause, scenario.applied()), (Cause::Retraction, None));
    assert_eq!(scenario.status("a"), Status::Withdrawn);
    assert_eq!(scenario.vote("again", "a").state, OutcomeState::Applied);
}

#[test]
fn retraction_above_the_threshold_and_of_a_repeated_vote_changes_nothing() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.votes(0..3, "a");
    let (again, _) = scenario.cast(&reporter_named("r0"), "a");
    scenario
        .event(&Event::Retracted {
            ballot: again,
            sender: Roles::default(),
        })
        .unwrap();
    assert_eq!(scenario.applied(), Some("a"));
    let (fourth, _) = scenario.cast(&reporter_named("r9"), "a");
    scenario
        .event(&Event::Retracted {
            ballot: fourth,
            sender: Roles::default(),
        })
        .unwrap();
    assert_eq!(scenario.applied(), Some("a"));
}

#[test]
fn a_voters_earlier_choice_counts_again_when_the_later_is_retracted() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.vote("jane", "a");
    let (ballot, _) = scenario.cast(&reporter_named("jane"), "b");
    scenario
        .event(&Event::Retracted {
            ballot,
            sender: Roles::default(),
        })
        .unwrap();
    assert_eq!(scenario.state.candidate(scenario.id("a")).unwrap().reporters, 1);
    assert_eq!(scenario.status("b"), Status::Withdrawn);
}

#[test]
fn retracting_a_rivals_vote_promotes_the_new_winner() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    let (rival, _) = scenario.cast(&reporter_named("rival"), "b");
    scenario.votes(0..3, "a");
    scenario
        .event(&Event::Retracted {
            ballot: rival,
            sender: Roles::default(),
        })
        .unwrap();
    assert_eq!(scenario.applied(), Some("a"));
}

#[test]
fn rivals_decay_and_a_raised_threshold_never_withdraw() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.votes(0..4, "a");
    scenario.votes(10..13, "b");
    assert_eq!(scenario.applied(), Some("a"));
    scenario.policy.votes.half_life = Some(SignedDuration::from_hours(1));
    scenario.now += SignedDuration::from_hours(1000);
    scenario.policy.votes.threshold = 100;
    scenario.event(&Event::PolicyChanged).unwrap();
    assert_eq!(scenario.applied(), Some("a"));
    let (ballot, _) = scenario.cast(&reporter_named("r3"), "a");
    scenario
        .event(&Event::Retracted {
            ballot,
            sender: Roles::default(),
        })
        .unwrap();
    assert_eq!(
        scenario.applied(),
        Some("a"),
        "four supporters are left, three had been enough"
    );
}

#[test]
fn votes_decay_by_half_life() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.policy.votes.half_life = Some(SignedDuration::from_hours(24));
    scenario.votes(0..2, "a");
    scenario.now += SignedDuration::from_hours(48);
    assert_eq!(
        scenario.votes(2..3, "a").state,
        OutcomeState::Pending,
        "0.25 + 0.25 + 1 rounds to 2"
    );
    assert_eq!(scenario.votes(3..4, "a").state, OutcomeState::Applied);
}

#[test]
fn what_was_mined_waits_for_a_person_until_votes_carry_it() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    let value = scenario.value("a");
    let mined = Event::Mined { value };
    let waits = |scenario: &Scenario| {
        let candidate = &scenario.state.candidates[0];
        assert_eq!(
            (candidate.status, candidate.reason, candidate.origin),
            (Status::AwaitingReview, Some(Reason::PersonDecides), Origin::Mined)
        );
        assert_eq!(candidate.reporters, 0);
    };
    let needed = |scenario: &Scenario| scenario.state.candidates[0].confirmations_needed();
    assert_eq!(scenario.event(&mined).unwrap().outcome, None);
    waits(&scenario);
    assert_eq!(needed(&scenario), 3, "votes carry it as they would any other");
    scenario.event(&mined).unwrap();
    assert_eq!(scenario.state.candidates.len(), 1, "it is proposed once");

    let (ballot, first) = scenario.cast(&reporter_named("r1"), "a");
    assert_eq!(
        (first.state, first.was_new),
        (OutcomeState::AwaitingReview, false)
    );
    assert_eq!(needed(&scenario), 2);
    let sender = Roles::default();
    scenario.event(&Event::Retracted { ballot, sender }).unwrap();
    waits(&scenario);
    scenario.votes(2..5, "a");
    assert_eq!(scenario.applied(), Some("a"));
    assert_eq!(needed(&scenario), 0);
}

#[test]
fn only_what_votes_decide_is_mined() {
    let mut scenario = Scenario::new(Kind::ClaimState);
    let value = scenario.value("rejected");
    let refused = scenario.event(&Event::Mined { value }).unwrap_err();
    assert_eq!(refused, Refusal::NotByVotes);
}
