//! The rules, one sentence each, and the properties that hold whatever comes in whatever order.

mod kept;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::{
    contest::Voter,
    ids::{AcceptOrder, Caller, FeedbackId, ReporterId, UserId},
    kinds::Kind,
    outcome::OutcomeState,
    policy::Counting,
    resource::{Learned, ResourceKey},
};

/// A contest played step by step; revisions count up as the log would.
struct Play {
    state: ContestState,
    policy: Policy,
    now: Timestamp,
    revision: i64,
    next: i64,
}

impl Play {
    fn new(kind: Kind) -> Self {
        Self::scoped(kind, "")
    }

    fn scoped(kind: Kind, user: &str) -> Self {
        let qualifier = if kind == Kind::Prohibition { "a" } else { "" };
        let key = ResourceKey::parse("fund-admin", Some(kind), "set up a csa", qualifier, user).unwrap();
        Self {
            state: ContestState::new(key),
            policy: Policy::default_for(kind),
            now: Timestamp::UNIX_EPOCH,
            revision: 0,
            next: 0,
        }
    }

    fn value(&self, choice: &str) -> ResourceValue {
        ResourceValue::new(
            "Set up a CSA",
            Learned::of(self.state.key.kind, choice.to_owned()),
        )
    }

    fn id(&self, choice: &str) -> CandidateId {
        self.value(choice).candidate_id(self.state.id())
    }

    fn ballot(&mut self, voter: &Voter, choice: &str) -> Ballot {
        self.next += 1;
        let caller = match voter {
            Voter::Reporter(_) => Caller::anonymous(),
            Voter::Derived { caller, .. } => caller.clone(),
        };
        Ballot {
            feedback_id: FeedbackId(uuid::Uuid::from_u128(u128::try_from(self.next).unwrap())),
            accept_order: AcceptOrder(self.next),
            voter: voter.key(&self.state.key.namespace),
            identified: voter.is_identified(),
            caller,
            candidate: self.id(choice),
            received_at: self.now,
        }
    }

    fn event(&mut self, event: &Event) -> Result<Decision, Refusal> {
        let decided = decide(self.state.clone(), event, &self.policy, self.now);
        let mut decision = decided.map_err(|refused| {
            assert_eq!(
                refused.state, self.state,
                "a refused event leaves everything as it was"
            );
            refused.refusal
        })?;
        if decision.resource.is_some() {
            self.revision += 1;
            decision.stamp(Revision(self.revision));
        }
        self.state = decision.after.clone();
        Ok(decision)
    }

    fn cast(&mut self, voter: &Voter, choice: &str) -> (Ballot, Outcome) {
        let ballot = self.ballot(voter, choice);
        let event = Event::Recorded {
            ballot: ballot.clone(),
            value: self.value(choice),
            origin: Origin::Votes,
            personal_data: false,
        };
        let decision = self.event(&event).unwrap();
        (ballot, decision.outcome.unwrap())
    }

    fn vote(&mut self, reporter: &str, choice: &str) -> Outcome {
        self.cast(&reporter_named(reporter), choice).1
    }

    fn votes(&mut self, reporters: std::ops::Range<u32>, choice: &str) -> Outcome {
        reporters
            .map(|n| self.vote(&format!("r{n}"), choice))
            .last()
            .unwrap()
    }

    fn status(&self, choice: &str) -> Status {
        self.state.candidate(self.id(choice)).unwrap().status
    }

    fn applied(&self) -> Option<&str> {
        self.state
            .resource
            .as_ref()
            .map(|current| current.value.learned.maps_to())
    }
}

fn reporter_named(id: &str) -> Voter {
    Voter::Reporter(ReporterId::parse(id).unwrap())
}

fn session(caller: &str, session: &str) -> Voter {
    Voter::Derived {
        caller: Caller::parse(caller).unwrap(),
        session: Some(session.to_owned()),
    }
}

#[test]
fn low_risk_is_applied_with_the_first_vote() {
    let mut play = Play::new(Kind::EntityAlias);
    let outcome = play.vote("jane", "a");
    assert_eq!(
        (outcome.state, outcome.auto_applied, outcome.was_new),
        (OutcomeState::Applied, true, true)
    );
    assert_eq!((play.applied(), outcome.revision), (Some("a"), Revision(1)));
}

#[test]
fn medium_risk_is_pending_at_one_and_two_and_applied_at_three() {
    let mut play = Play::new(Kind::InvocationPhrase);
    let first = play.vote("r1", "a");
    assert_eq!(
        (first.state, first.confirmations_needed),
        (OutcomeState::Pending, 2)
    );
    assert_eq!(
        first.message,
        "Noted: “Set up a CSA” means the verb “a”. It needs 2 more confirmations."
    );
    let second = play.vote("r2", "a");
    assert_eq!(
        (second.state, second.confirmations_needed),
        (OutcomeState::Pending, 1)
    );
    assert!(second.message.ends_with("It needs 1 more confirmation."));
    let third = play.vote("r3", "a");
    assert_eq!((third.state, third.auto_applied), (OutcomeState::Applied, true));
    assert_eq!((third.occurrences, third.reporters), (3, 3));
}

#[test]
fn further_confirmations_raise_counts_and_write_nothing() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.votes(0..3, "a");
    let fourth = play.vote("r9", "a");
    assert_eq!(
        (fourth.state, fourth.auto_applied),
        (OutcomeState::Applied, false)
    );
    assert_eq!(
        (fourth.occurrences, fourth.revision, play.revision),
        (4, Revision(1), 1)
    );
}

#[test]
fn the_same_reporter_three_times_is_one_confirmation() {
    let mut play = Play::new(Kind::InvocationPhrase);
    for _ in 0..3 {
        play.vote("jane", "a");
    }
    let candidate = &play.state.candidates[0];
    assert_eq!(
        (candidate.occurrences, candidate.reporters, candidate.net),
        (3, 1, 1)
    );
    assert_eq!(play.status("a"), Status::Pending);
}

#[test]
fn where_the_policy_counts_occurrences_the_same_reporter_counts_each_time() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.policy.counting = Counting::Occurrences;
    for _ in 0..3 {
        play.vote("jane", "a");
    }
    assert_eq!(play.applied(), Some("a"));
}

#[test]
fn where_the_policy_counts_occurrences_who_changes_his_mind_takes_all_he_said_before_along() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.policy.counting = Counting::Occurrences;
    for _ in 0..2 {
        play.vote("jane", "a");
    }
    play.vote("jane", "b");
    assert_eq!(
        play.vote("joe", "a").confirmations_needed,
        3,
        "what jane said before of `a` counts no more"
    );
    play.vote("jane", "a");
    assert_eq!(
        play.applied(),
        Some("a"),
        "who comes back supports it with all he said of it"
    );
}

#[test]
fn a_rival_with_one_vote_makes_four_necessary() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.vote("rival", "b");
    let third = play.votes(0..3, "a");
    assert_eq!(
        (third.state, third.reason),
        (OutcomeState::Pending, Some(Reason::Rivals))
    );
    assert_eq!(third.confirmations_needed, 1);
    assert_eq!(play.votes(3..4, "a").state, OutcomeState::Applied);
}

#[test]
fn the_incumbent_stays_until_beaten_by_the_threshold() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.votes(0..3, "a");
    play.votes(10..15, "b");
    assert_eq!(play.applied(), Some("a"), "net 2 is not enough");
    play.votes(15..16, "b");
    assert_eq!(
        (play.applied(), play.status("a")),
        (Some("b"), Status::Superseded)
    );
    play.vote("r0", "a");
    assert_eq!(
        play.status("a"),
        Status::Pending,
        "back to pending with the next vote"
    );
}

#[test]
fn a_tie_changes_nothing() {
    let mut play = Play::new(Kind::EntityAlias);
    play.vote("jane", "a");
    play.vote("joe", "b");
    assert_eq!((play.applied(), play.status("b")), (Some("a"), Status::Pending));
}

#[test]
fn a_reporter_who_changes_his_mind_moves_his_vote() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.votes(0..2, "a");
    play.vote("r0", "b");
    let net = |play: &Play, choice| play.state.candidate(play.id(choice)).unwrap().net;
    assert_eq!((net(&play, "a"), net(&play, "b")), (0, 0));
}

#[test]
fn an_older_correction_that_arrives_late_does_not_move_the_vote_back() {
    let mut play = Play::new(Kind::InvocationPhrase);
    let jane = reporter_named("jane");
    let late = play.ballot(&jane, "b");
    play.vote("jane", "a");
    let event = Event::Recorded {
        value: play.value("b"),
        ballot: late,
        origin: Origin::Votes,
        personal_data: false,
    };
    play.event(&event).unwrap();
    assert_eq!(play.state.candidate(play.id("a")).unwrap().reporters, 1);
    assert_eq!(play.state.candidate(play.id("b")).unwrap().reporters, 0);
}

#[test]
fn sessions_of_one_caller_count_together_as_one() {
    let mut play = Play::new(Kind::InvocationPhrase);
    for n in 0..5 {
        play.cast(&session("web", &n.to_string()), "a");
    }
    assert_eq!(play.state.candidates[0].net, 1);
    play.cast(&session("app", "1"), "a");
    play.vote("jane", "a");
    assert_eq!(play.applied(), Some("a"));
}

#[test]
fn high_risk_awaits_review_whatever_its_count() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.policy.risk = RiskLevel::High;
    let outcome = play.votes(0..9, "a");
    assert_eq!(
        (outcome.state, outcome.reason),
        (OutcomeState::AwaitingReview, Some(Reason::HighRisk))
    );
    assert_eq!(play.applied(), None);
}

#[test]
fn a_users_own_phrase_is_low_risk() {
    let mut play = Play::scoped(Kind::InvocationPhrase, "jane");
    assert_eq!(play.vote("jane", "a").state, OutcomeState::Applied);
    assert_eq!(play.state.key.user, Some(UserId::parse("jane").unwrap()));
}

#[test]
fn retraction_below_the_threshold_withdraws_and_the_next_vote_reopens() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.votes(0..2, "a");
    let (ballot, _) = play.cast(&reporter_named("last"), "a");
    assert_eq!(play.applied(), Some("a"));
    let decision = play.event(&Event::Retracted { ballot }).unwrap();
    assert_eq!((decision.cause, play.applied()), (Cause::Retraction, None));
    assert_eq!(play.status("a"), Status::Withdrawn);
    assert_eq!(play.vote("again", "a").state, OutcomeState::Applied);
}

#[test]
fn retraction_above_the_threshold_and_of_a_repeated_vote_changes_nothing() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.votes(0..3, "a");
    let (again, _) = play.cast(&reporter_named("r0"), "a");
    play.event(&Event::Retracted { ballot: again }).unwrap();
    assert_eq!(play.applied(), Some("a"));
    let (fourth, _) = play.cast(&reporter_named("r9"), "a");
    play.event(&Event::Retracted { ballot: fourth }).unwrap();
    assert_eq!(play.applied(), Some("a"));
}

#[test]
fn a_voters_earlier_choice_counts_again_when_the_later_is_retracted() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.vote("jane", "a");
    let (ballot, _) = play.cast(&reporter_named("jane"), "b");
    play.event(&Event::Retracted { ballot }).unwrap();
    assert_eq!(play.state.candidate(play.id("a")).unwrap().reporters, 1);
    assert_eq!(play.status("b"), Status::Withdrawn);
}

#[test]
fn retracting_a_rivals_vote_promotes_who_then_wins() {
    let mut play = Play::new(Kind::InvocationPhrase);
    let (rival, _) = play.cast(&reporter_named("rival"), "b");
    play.votes(0..3, "a");
    play.event(&Event::Retracted { ballot: rival }).unwrap();
    assert_eq!(play.applied(), Some("a"));
}

#[test]
fn rivals_decay_and_a_raised_threshold_never_withdraw() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.votes(0..4, "a");
    play.votes(10..13, "b");
    assert_eq!(play.applied(), Some("a"));
    play.policy.half_life = Some(SignedDuration::from_hours(1));
    play.now += SignedDuration::from_hours(1000);
    play.policy.threshold = 100;
    play.event(&Event::PolicyChanged).unwrap();
    assert_eq!(play.applied(), Some("a"));
    let (ballot, _) = play.cast(&reporter_named("r3"), "a");
    play.event(&Event::Retracted { ballot }).unwrap();
    assert_eq!(
        play.applied(),
        Some("a"),
        "four supporters are left, three had been enough"
    );
}

#[test]
fn votes_decay_by_half_life() {
    let mut play = Play::new(Kind::InvocationPhrase);
    play.policy.half_life = Some(SignedDuration::from_hours(24));
    play.votes(0..2, "a");
    play.now += SignedDuration::from_hours(48);
    assert_eq!(
        play.votes(2..3, "a").state,
        OutcomeState::Pending,
        "0.25 + 0.25 + 1 rounds to 2"
    );
    assert_eq!(play.votes(3..4, "a").state, OutcomeState::Applied);
}

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
fn rejecting_what_is_applied_takes_it_away_and_is_nobodys_rival() {
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

/// One step of a made-up history: who says what, and whether it is taken back later.
#[derive(Debug, Clone)]
struct Step {
    reporter: u8,
    choice: u8,
    retracted: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step =
        (0u8..6, 0u8..3, proptest::bool::weighted(0.2)).prop_map(|(reporter, choice, retracted)| Step {
            reporter,
            choice,
            retracted,
        });
    proptest::collection::vec(step, 1..25)
}

/// The figures of all candidates, which must not depend on order.
fn figures(state: &ContestState) -> Vec<(CandidateId, u64, u64)> {
    let mut figures: Vec<_> = state
        .candidates
        .iter()
        .filter(|candidate| candidate.occurrences > 0)
        .map(|candidate| (candidate.id, candidate.occurrences, candidate.reporters))
        .collect();
    figures.sort_unstable();
    figures
}

proptest! {
    #[test]
    fn votes_and_counts_do_not_depend_on_delivery_order(steps in steps(), seed in any::<u64>()) {
        let mut play = Play::new(Kind::InvocationPhrase);
        let mut events = Vec::new();
        for step in &steps {
            let choice = ["a", "b", "c"][usize::from(step.choice)];
            let ballot = play.ballot(&reporter_named(&format!("r{}", step.reporter)), choice);
            events.push((ballot, play.value(choice), step.retracted));
        }
        let run = |order: &[usize]| {
            let mut play = Play::new(Kind::InvocationPhrase);
            for &index in order {
                let (ballot, value, _) = events[index].clone();
                play.event(&Event::Recorded { ballot, value, origin: Origin::Votes, personal_data: false }).unwrap();
            }
            for &index in order {
                let (ballot, _, retracted) = events[index].clone();
                if retracted {
                    play.event(&Event::Retracted { ballot }).unwrap();
                }
            }
            figures(&play.state)
        };
        let forwards: Vec<usize> = (0..events.len()).collect();
        let mut shuffled = forwards.clone();
        shuffled.sort_by_key(|&index| (index as u64 + 1).wrapping_mul(seed | 1));
        prop_assert_eq!(run(&forwards), run(&shuffled));
    }

    #[test]
    fn after_every_step_the_invariants_hold(steps in steps()) {
        let mut play = Play::new(Kind::InvocationPhrase);
        for step in steps {
            let choice = ["a", "b", "c"][usize::from(step.choice)];
            let (ballot, outcome) = play.cast(&reporter_named(&format!("r{}", step.reporter)), choice);
            prop_assert!(outcome.state != OutcomeState::Pending || outcome.confirmations_needed >= 1);
            if step.retracted {
                play.event(&Event::Retracted { ballot }).unwrap();
            }
            let applied: Vec<_> =
                play.state.candidates.iter().filter(|candidate| candidate.status == Status::Applied).collect();
            prop_assert!(applied.len() <= 1, "at most one value applies");
            prop_assert_eq!(
                applied.first().map(|candidate| candidate.value.clone()),
                play.state.resource.as_ref().map(|current| current.value.clone()),
                "what is applied is the resource"
            );
            let winner = play.state.candidates.iter().find(|candidate| candidate.net >= 3);
            prop_assert!(winner.is_none_or(|winner| winner.status == Status::Applied), "who wins is applied");
        }
    }

    #[test]
    fn replaying_the_decisions_changes_gives_the_resource(steps in steps()) {
        let mut play = Play::new(Kind::InvocationPhrase);
        let mut replayed: Option<ResourceValue> = None;
        for step in steps {
            let choice = ["a", "b", "c"][usize::from(step.choice)];
            let ballot = play.ballot(&reporter_named(&format!("r{}", step.reporter)), choice);
            let value = play.value(choice);
            let mut decisions = vec![
                play.event(&Event::Recorded { ballot: ballot.clone(), value, origin: Origin::Votes, personal_data: false }).unwrap(),
            ];
            if step.retracted {
                decisions.push(play.event(&Event::Retracted { ballot }).unwrap());
            }
            for decision in decisions {
                match decision.resource {
                    Some(ResourceChange::Put { value, .. }) => replayed = Some(value),
                    Some(ResourceChange::Delete { .. }) => replayed = None,
                    None => {}
                }
            }
            let current = play.state.resource.as_ref().map(|current| current.value.clone());
            prop_assert_eq!(&replayed, &current);
        }
    }
}
