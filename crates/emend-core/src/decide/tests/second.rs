//! Where the policy needs two reviewers.

use super::*;

/// A contest of a verb under such a policy, in which "a" waits with one vote.
fn of_two(risk: RiskLevel) -> Scenario {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.policy.reviewers_needed = 2;
    scenario.policy.votes.risk = risk;
    scenario.vote("jane", "a");
    scenario
}

impl Scenario {
    fn approve(&mut self, choice: &str, edited: Option<&str>, is_second: bool) -> Result<Decision, Refusal> {
        let event = Event::Approve {
            candidate: self.id(choice),
            edited: edited.map(|edited| self.value(edited)),
            reason: Some("seen it".to_owned()),
            is_second,
        };
        self.event(&event)
    }

    fn now_stands(&self, choice: &str) -> (Status, Option<Reason>) {
        let candidate = self.state.candidate(self.id(choice)).unwrap();
        (candidate.status, candidate.reason)
    }
}

const APPROVED_ONCE: (Status, Option<Reason>) = (Status::AwaitingReview, Some(Reason::SecondReviewer));

#[test]
fn a_first_approval_waits_and_the_second_decides() {
    for risk in [RiskLevel::Low, RiskLevel::Medium, RiskLevel::High] {
        let mut scenario = Scenario::new(Kind::InvocationPhrase);
        scenario.policy.votes.risk = RiskLevel::High;
        scenario.vote("jane", "a");
        scenario.policy.votes.risk = risk;
        scenario.policy.reviewers_needed = 2;
        let first = scenario.approve("a", None, false).unwrap();
        assert_eq!(scenario.now_stands("a"), APPROVED_ONCE);
        assert_eq!((first.resource, first.cause), (None, Cause::Review));
        let [noted] = &first.transitions[..] else {
            panic!(
                "it is in the history, though the status stays: {:?}",
                first.transitions
            );
        };
        assert_eq!(
            (noted.from, noted.to),
            (Some(Status::AwaitingReview), Status::AwaitingReview)
        );
        // Votes neither apply it nor take it from the second reviewer.
        scenario.votes(10..20, "a");
        assert_eq!(scenario.now_stands("a"), APPROVED_ONCE);
        scenario.approve("a", None, true).unwrap();
        assert_eq!((scenario.applied(), scenario.state.pinned), (Some("a"), true));
    }
}

#[test]
fn a_users_own_contest_needs_one() {
    let mut scenario = Scenario::scoped(Kind::InvocationPhrase, "jane");
    scenario.policy.reviewers_needed = 2;
    scenario.votes(1..2, "a");
    scenario.approve("a", Some("b"), false).unwrap();
    assert_eq!(scenario.applied(), Some("b"));
}

#[test]
fn another_value_waits_for_its_own_second_reviewer() {
    let mut scenario = of_two(RiskLevel::High);
    scenario.approve("a", None, false).unwrap();
    scenario.approve("a", Some("b"), false).unwrap();
    assert_eq!(
        (scenario.now_stands("a"), scenario.now_stands("b")),
        (APPROVED_ONCE, APPROVED_ONCE)
    );
    assert_eq!(
        scenario.state.candidate(scenario.id("b")).unwrap().edited_from,
        Some(scenario.id("a"))
    );
    scenario.approve("b", None, true).unwrap();
    assert_eq!(scenario.applied(), Some("b"));
    assert_eq!(
        scenario.now_stands("a").0,
        Status::Superseded,
        "it was approved in other words"
    );
}

#[test]
fn what_applies_is_not_put_in_other_words_by_one() {
    let mut scenario = of_two(RiskLevel::High);
    scenario.approve("a", None, true).unwrap();
    let mut reworded = scenario.value("a");
    "Set up  a CSA!".clone_into(&mut reworded.display);
    let event = Event::Approve {
        candidate: scenario.id("a"),
        edited: Some(reworded),
        reason: None,
        is_second: false,
    };
    assert_eq!(scenario.event(&event), Err(Refusal::AlreadyApplied));
}

#[test]
fn one_rejection_is_enough_and_a_first_approval_is_undone() {
    let mut scenario = of_two(RiskLevel::High);
    let before = scenario.now_stands("a");
    let first = scenario.approve("a", Some("b"), false).unwrap();
    let undo = |decision: Decision| Event::Undo {
        decision: Box::new(decision.undoable.unwrap()),
    };
    scenario.event(&undo(first)).unwrap();
    assert_eq!(scenario.now_stands("a"), before);
    assert_eq!(
        scenario.now_stands("b"),
        (Status::Withdrawn, Some(Reason::Undone))
    );

    let first = scenario.approve("a", None, false).unwrap();
    let undone = scenario.event(&undo(first)).unwrap();
    assert_eq!((scenario.now_stands("a"), undone.transitions.len()), (before, 1));
    scenario.approve("a", None, false).unwrap();
    let second = scenario.approve("a", None, true).unwrap();
    scenario.event(&undo(second)).unwrap();
    assert_eq!(
        (scenario.now_stands("a"), scenario.applied()),
        (APPROVED_ONCE, None)
    );
    let reject = Event::Reject {
        candidate: scenario.id("a"),
        reason: "no".to_owned(),
    };
    scenario.event(&reject).unwrap();
    assert_eq!(scenario.now_stands("a").0, Status::Rejected);
}

#[test]
fn a_first_approval_ends_with_the_last_supporter() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.policy.reviewers_needed = 2;
    scenario.policy.votes.risk = RiskLevel::High;
    let (ballot, _) = scenario.cast(&reporter_named("jane"), "a");
    scenario.approve("a", None, false).unwrap();
    let sender = Roles::default();
    scenario.event(&Event::Retracted { ballot, sender }).unwrap();
    assert_eq!(scenario.now_stands("a").0, Status::Withdrawn);
    scenario.vote("tom", "a");
    assert_eq!(
        scenario.now_stands("a"),
        (Status::AwaitingReview, Some(Reason::HighRisk))
    );
}

#[test]
fn what_was_mined_lacks_no_votes_where_only_people_decide() {
    let mined = |risk| {
        let mut scenario = Scenario::new(Kind::InvocationPhrase);
        scenario.policy.votes.risk = risk;
        scenario.policy.reviewers_needed = 2;
        let value = scenario.value("a");
        scenario.event(&Event::Mined { value }).unwrap();
        scenario
    };
    let lacks = |scenario: &Scenario| scenario.state.candidates[0].confirmations_needed();
    assert_eq!(lacks(&mined(RiskLevel::High)), 0);
    let mut approved = mined(RiskLevel::Medium);
    assert_eq!(lacks(&approved), 3);
    approved.approve("a", None, false).unwrap();
    assert_eq!((approved.now_stands("a"), lacks(&approved)), (APPROVED_ONCE, 0));
}
