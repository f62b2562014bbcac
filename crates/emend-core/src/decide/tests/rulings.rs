//! Rulings: the newest effective one is in force, whatever arrived when.

mod arrival;
mod undo;

use proptest::prelude::*;

use super::*;
use crate::{candidate::TakenBack, kinds::HUMAN, resource::ruling_of, roles::Role};

/// Decisions about one domain, step by step.
pub(super) struct Rulings {
    pub(super) state: ContestState,
    policy: Policy,
    pub(super) revision: i64,
    clock: i64,
    rule: Rule,
}

fn roles(names: &str) -> Roles {
    Roles::parse(names.split(',').filter(|name| !name.is_empty())).unwrap()
}

fn feedback(order: i64) -> FeedbackId {
    FeedbackId(uuid::Uuid::from_u128(u128::try_from(order).unwrap()))
}

impl Rulings {
    fn of(pattern: &str) -> Self {
        let key = ResourceKey::parse("research", Some(Kind::DomainRule), pattern, HUMAN, "").unwrap();
        Self {
            state: ContestState::new(key),
            policy: Policy::default_for(Kind::DomainRule),
            revision: 0,
            clock: 1_000,
            rule: Kind::DomainRule.rules().rule,
        }
    }

    pub(super) fn new() -> Self {
        Self::of("example.org")
    }

    fn value(word: &str) -> ResourceValue {
        ResourceValue::new(
            "Example.org",
            Learned::of(Kind::DomainRule, word.to_owned()).unwrap(),
        )
    }

    pub(super) fn id(&self, order: i64) -> CandidateId {
        ruling_of(self.state.id(), feedback(order))
    }

    fn ballot(&self, order: i64) -> Ballot {
        let caller = Caller::anonymous();
        Ballot {
            feedback_id: feedback(order),
            accept_order: AcceptOrder(order),
            voter: Voter::new(None, caller.clone(), None).key(&self.state.key.namespace),
            identified: false,
            caller,
            candidate: self.id(order),
            received_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn apply(&mut self, event: &Event) -> Result<Decision, Refusal> {
        self.clock += 1_000;
        self.state.next_order = AcceptOrder(self.clock);
        self.apply_at(event)
    }

    fn apply_at(&mut self, event: &Event) -> Result<Decision, Refusal> {
        let decided = decide_by(
            &self.rule,
            self.state.clone(),
            event,
            &self.policy,
            Timestamp::UNIX_EPOCH,
        );
        let mut decision = decided.map_err(|refused| refused.refusal)?;
        if decision.resource.is_some() {
            self.revision += 1;
            decision.stamp(Revision(self.revision));
        }
        self.state = decision.after.clone();
        Ok(decision)
    }

    pub(super) fn rule(&mut self, order: i64, word: &str, sender: &str) -> Outcome {
        self.recorded(order, word, sender, None)
    }

    fn recorded(&mut self, order: i64, word: &str, sender: &str, retracted_by: Option<&str>) -> Outcome {
        let event = Event::Recorded {
            ballot: self.ballot(order),
            value: Self::value(word),
            origin: Origin::Votes,
            personal_data: false,
            sender: roles(sender),
            retracted_by: retracted_by.map(roles),
        };
        self.apply_at(&event).unwrap().outcome.unwrap()
    }

    pub(super) fn retract(&mut self, order: i64, sender: &str) -> Outcome {
        let event = Event::Retracted {
            ballot: self.ballot(order),
            sender: roles(sender),
        };
        self.apply_at(&event).unwrap().outcome.unwrap()
    }

    pub(super) fn put(&mut self, word: &str) {
        let event = Event::Put {
            value: Self::value(word),
            origin: Origin::Operator,
            reason: None,
        };
        self.apply(&event).unwrap();
    }

    pub(super) fn approve(&mut self, order: i64) -> Result<Decision, Refusal> {
        self.apply(&Event::Approve {
            is_second: false,
            candidate: self.id(order),
            edited: None,
            reason: None,
        })
    }

    fn reject(&mut self, order: i64) -> Result<Decision, Refusal> {
        self.apply(&Event::Reject {
            candidate: self.id(order),
            reason: "no".into(),
        })
    }

    pub(super) fn revert(&mut self, revision: i64, restore: Option<&str>) {
        let event = Event::Revert {
            revision: Revision(revision),
            restore: restore.map(Self::value),
            reason: "wrong".into(),
        };
        self.apply(&event).unwrap();
    }

    fn applies(&self) -> Option<&str> {
        self.state
            .resource
            .as_ref()
            .map(|current| current.value.learned.maps_to())
    }

    fn status(&self, order: i64) -> (Status, Option<Reason>) {
        let candidate = self.state.candidate(self.id(order)).unwrap();
        (candidate.status, candidate.reason)
    }
}

pub(super) const REVIEWER: &str = "reporter,subscriber,reviewer";
pub(super) const REPORTER: &str = "reporter";

#[test]
fn an_entitled_ruling_is_in_force_at_once_and_the_newer_one_replaces_it() {
    let mut rulings = Rulings::new();
    let blocked = rulings.rule(1, "block", REVIEWER);
    assert_eq!(
        (blocked.state, blocked.revision, blocked.auto_applied),
        (OutcomeState::Applied, Revision(1), true)
    );
    assert_eq!(rulings.applies(), Some("block"));
    rulings.rule(2, "academic", "operator");
    assert_eq!(rulings.applies(), Some("academic"));
    assert_eq!(rulings.status(1), (Status::Superseded, Some(Reason::NewerRuling)));
    assert!(!rulings.state.pinned);
}

#[test]
fn a_ruling_that_arrives_late_stays_behind_the_newer_one() {
    let mut rulings = Rulings::new();
    rulings.rule(5, "block", REVIEWER);
    let late = rulings.rule(3, "academic", REVIEWER);
    assert_eq!(
        (late.state, late.reason),
        (OutcomeState::NoEffect, Some(Reason::NewerRuling))
    );
    assert_eq!(rulings.applies(), Some("block"));
    // The level of an unblock comes from what was said before it, whenever that arrived.
    rulings.rule(6, "unblock", REVIEWER);
    assert_eq!(rulings.applies(), Some("unblock:academic"));
    rulings.rule(4, "low", REVIEWER);
    assert_eq!(rulings.applies(), Some("unblock:low"));
}

#[test]
fn who_is_not_entitled_waits_for_a_person() {
    let mut rulings = Rulings::new();
    let waits = rulings.rule(1, "block", REPORTER);
    assert_eq!(
        (waits.state, waits.reason),
        (OutcomeState::AwaitingReview, Some(Reason::NotEntitled))
    );
    assert_eq!(rulings.applies(), None);
    rulings.approve(1).unwrap();
    assert_eq!(rulings.applies(), Some("block"));
    assert_eq!(rulings.approve(1), Err(Refusal::AlreadyApplied));
}

#[test]
fn who_is_entitled_is_said_by_the_policy_of_the_time() {
    let mut rulings = Rulings::new();
    rulings.policy.ruling.entitled = Role::Operator;
    rulings.rule(1, "block", REVIEWER);
    rulings.rule(2, "low", "admin");
    assert_eq!(rulings.applies(), Some("low"));
    rulings.policy.ruling.entitled = Role::Reporter;
    rulings.apply(&Event::PolicyChanged).unwrap();
    assert_eq!(
        rulings.status(1).0,
        Status::AwaitingReview,
        "a changed policy concerns later rulings"
    );
    rulings.rule(3, "block", REPORTER);
    assert_eq!(rulings.applies(), Some("block"));
}

#[test]
fn a_private_suffix_waits_for_a_person_unless_an_operator_puts_it() {
    let mut rulings = Rulings::of("github.io");
    let waits = rulings.rule(1, "block", "admin");
    assert_eq!(
        (waits.state, waits.reason),
        (OutcomeState::AwaitingReview, Some(Reason::HighRisk))
    );
    rulings.put("low");
    assert_eq!(rulings.applies(), Some("low"));
}

#[test]
fn approving_an_older_ruling_leaves_the_newer_one_in_force() {
    let mut rulings = Rulings::new();
    rulings.rule(1, "block", REPORTER);
    rulings.rule(2, "academic", REVIEWER);
    let decision = rulings.approve(1).unwrap();
    assert_eq!(decision.resource, None);
    assert_eq!(rulings.applies(), Some("academic"));
    assert_eq!(rulings.status(1), (Status::Superseded, Some(Reason::NewerRuling)));
}

#[test]
fn a_rejected_ruling_is_rejected_for_good() {
    let mut rulings = Rulings::new();
    rulings.rule(1, "low", REVIEWER);
    rulings.rule(2, "block", REVIEWER);
    rulings.reject(2).unwrap();
    assert_eq!(rulings.applies(), Some("low"));
    assert_eq!(rulings.approve(2), Err(Refusal::RejectedForGood));
    assert_eq!(rulings.reject(2), Err(Refusal::AlreadyRejected));
}

#[test]
fn an_edited_approval_is_the_reviewers_own_ruling() {
    let mut rulings = Rulings::new();
    rulings.rule(1, "block", REPORTER);
    rulings.rule(2, "academic", REVIEWER);
    let edited = Some(Rulings::value("low"));
    let event = Event::Approve {
        is_second: false,
        candidate: rulings.id(1),
        edited,
        reason: None,
    };
    let decision = rulings.apply(&event).unwrap();
    assert_eq!(rulings.applies(), Some("low"));
    let written = rulings.state.candidate(decision.subject.unwrap()).unwrap();
    assert_eq!(
        (written.origin, written.edited_from),
        (Origin::Review, Some(rulings.id(1)))
    );
    assert_eq!(rulings.status(1).0, Status::Rejected);
    // Once that is reverted, what the reporter asked for waits as it did before.
    rulings.revert(2, Some("academic"));
    assert_eq!(rulings.applies(), Some("academic"));
    assert_eq!(
        rulings.status(1),
        (Status::AwaitingReview, Some(Reason::NotEntitled))
    );
    rulings.approve(1).unwrap();
    assert_eq!(rulings.status(1).0, Status::Superseded, "a newer one is in force");
}

#[test]
fn a_retraction_by_somebody_entitled_brings_back_what_was_before() {
    let mut rulings = Rulings::new();
    rulings.rule(1, "low", REVIEWER);
    rulings.rule(2, "block", REVIEWER);
    let outcome = rulings.retract(2, REVIEWER);
    assert_eq!(
        (outcome.state, outcome.revision),
        (OutcomeState::Withdrawn, Revision(3))
    );
    assert_eq!(rulings.applies(), Some("low"));
    assert_eq!(rulings.approve(2), Err(Refusal::TakenBack));
    rulings.retract(1, REVIEWER);
    assert_eq!(rulings.applies(), None);
}

#[test]
fn a_reporter_takes_back_what_waits_and_not_what_a_reviewer_approved() {
    let mut rulings = Rulings::new();
    rulings.rule(1, "block", REPORTER);
    rulings.retract(1, REPORTER);
    assert_eq!(rulings.status(1), (Status::Withdrawn, Some(Reason::Retracted)));
    rulings.rule(2, "block", REPORTER);
    rulings.approve(2).unwrap();
    let outcome = rulings.retract(2, REPORTER);
    assert_eq!(
        (outcome.state, outcome.reason),
        (OutcomeState::NoEffect, Some(Reason::NotEntitled))
    );
    assert_eq!(rulings.applies(), Some("block"));
    // Whoever is asked may still approve what its reporter no longer wants.
    rulings.approve(1).unwrap();
    assert_eq!(rulings.status(1).0, Status::Superseded);
}

#[test]
fn clearing_nothing_is_without_effect_and_still_counts() {
    let mut rulings = Rulings::new();
    let nothing = rulings.rule(5, "clear", REVIEWER);
    assert_eq!(
        (nothing.state, nothing.reason),
        (OutcomeState::NoEffect, Some(Reason::NothingToClear))
    );
    rulings.rule(4, "block", REVIEWER);
    assert_eq!(rulings.applies(), None, "it was said before it was cleared");
    rulings.rule(6, "block", REVIEWER);
    let cleared = rulings.rule(7, "clear", REVIEWER);
    assert_eq!(
        (cleared.state, cleared.auto_applied),
        (OutcomeState::Applied, true)
    );
    assert_eq!(rulings.applies(), None);
}

#[test]
fn put_and_delete_are_rulings_at_their_time() {
    let mut rulings = Rulings::new();
    rulings.put("low");
    rulings.rule(i64::from(u16::MAX), "block", REVIEWER);
    assert_eq!(
        rulings.applies(),
        Some("block"),
        "what is newer wins, also over an operator"
    );
    rulings.clock = i64::from(u16::MAX);
    rulings.apply(&Event::Delete { reason: None }).unwrap();
    assert_eq!(rulings.applies(), None);
    let deleted = rulings.apply(&Event::Delete { reason: None });
    assert_eq!(deleted, Err(Refusal::NoResource));
    let cleared = Event::Put {
        value: Rulings::value("clear"),
        origin: Origin::Operator,
        reason: None,
    };
    assert_eq!(rulings.apply(&cleared), Err(Refusal::NoValue));
}

#[test]
fn reverting_what_brought_a_ruling_into_force_takes_it_back() {
    let mut rulings = Rulings::new();
    rulings.rule(1, "low", REVIEWER);
    rulings.rule(3, "block", REVIEWER);
    rulings.rule(4, "block", REVIEWER);
    rulings.rule(2, "academic", REVIEWER);
    rulings.revert(2, Some("low"));
    assert_eq!(
        rulings.applies(),
        Some("academic"),
        "what was said late, but before it"
    );
    for order in [3, 4] {
        assert_eq!(rulings.status(order), (Status::Withdrawn, Some(Reason::Reverted)));
    }
}

#[test]
fn reverting_another_revision_rules_anew() {
    let mut rulings = Rulings::new();
    rulings.rule(1, "low", REVIEWER);
    rulings.rule(2, "block", REVIEWER);
    rulings.retract(2, REVIEWER);
    rulings.revert(3, Some("block"));
    assert_eq!(rulings.applies(), Some("block"));
    assert_eq!(rulings.status(1).0, Status::Superseded);
    // The revision that brought the new ruling can be reverted in turn.
    rulings.revert(4, Some("low"));
    assert_eq!(rulings.applies(), Some("low"));
}

#[test]
fn a_frozen_policy_lets_rulings_wait_and_people_act() {
    let mut rulings = Rulings::new();
    rulings.policy.frozen = true;
    let waits = rulings.rule(1, "block", REVIEWER);
    assert_eq!(
        (waits.state, waits.reason),
        (OutcomeState::Pending, Some(Reason::Frozen))
    );
    rulings.put("low");
    assert_eq!(rulings.applies(), Some("low"));
    rulings.rule(i64::from(u16::MAX), "academic", REVIEWER);
    rulings.policy.frozen = false;
    rulings.apply(&Event::PolicyChanged).unwrap();
    assert_eq!(rulings.applies(), Some("academic"));
    assert_eq!(rulings.status(1).0, Status::Superseded);
}

#[test]
fn a_namespace_without_room_lets_rulings_wait() {
    let mut rulings = Rulings::new();
    rulings.state.full = true;
    let waits = rulings.rule(1, "block", REVIEWER);
    assert_eq!(
        (waits.state, waits.reason),
        (OutcomeState::AwaitingReview, Some(Reason::ResourceLimit))
    );
    assert_eq!(rulings.approve(1), Err(Refusal::Full));
}

#[test]
fn a_revert_leaves_what_else_was_said() {
    let mut rulings = Rulings::new();
    rulings.rule(3, "block", REVIEWER);
    rulings.rule(5, "block", REVIEWER);
    rulings.rule(4, "low", REVIEWER);
    rulings.revert(1, None);
    assert_eq!(rulings.applies(), Some("low"));
    // What only changes what another one comes to is taken back alone.
    rulings.rule(9, "unblock", REVIEWER);
    rulings.rule(8, "academic", REVIEWER);
    assert_eq!(rulings.applies(), Some("unblock:academic"));
    rulings.revert(rulings.revision, Some("unblock:low"));
    assert_eq!(rulings.applies(), Some("unblock:low"));
}

#[test]
fn what_a_release_brought_into_force_is_taken_back_by_its_revert() {
    let mut rulings = Rulings::new();
    rulings.rule(1, "low", REVIEWER);
    rulings.policy.frozen = true;
    rulings.rule(3, "block", REVIEWER);
    // Somebody not entitled takes back nothing that only waits for the release.
    rulings.retract(3, REPORTER);
    rulings.policy.frozen = false;
    rulings.apply(&Event::PolicyChanged).unwrap();
    assert_eq!(rulings.applies(), Some("block"));
    rulings.rule(2, "academic", REVIEWER);
    rulings.revert(2, Some("low"));
    assert_eq!(rulings.applies(), Some("academic"));
}

#[test]
fn to_clear_needs_no_room() {
    let mut rulings = Rulings::new();
    rulings.state.full = true;
    rulings.rule(1, "block", REVIEWER);
    rulings.rule(2, "clear", REVIEWER);
    rulings.state.full = false;
    rulings.approve(1).unwrap();
    assert_eq!(rulings.applies(), None, "it was cleared after it was said");
}

#[test]
fn who_takes_back_what_is_not_in_force_is_not_told_that_it_was() {
    let mut rulings = Rulings::new();
    rulings.rule(1, "block", REVIEWER);
    rulings.rule(2, "block", REVIEWER);
    let outcome = rulings.retract(2, REVIEWER);
    assert_eq!(
        (outcome.state, outcome.reason),
        (OutcomeState::NoEffect, Some(Reason::Retracted))
    );
    assert_eq!(rulings.applies(), Some("block"));
}

#[test]
fn two_reviewers_approve_what_they_were_asked_or_other_words() {
    for edit in [None, Some("low")] {
        let mut rulings = Rulings::new();
        rulings.policy.reviewers_needed = 2;
        rulings.rule(1, "block", "");
        let approve = |candidate, edited: Option<&str>, is_second| Event::Approve {
            candidate,
            edited: edited.map(Rulings::value),
            reason: None,
            is_second,
        };
        let first = rulings.apply(&approve(rulings.id(1), edit, false)).unwrap();
        let approved = first.subject.unwrap();
        let waits = |rulings: &Rulings| rulings.state.candidate(approved).unwrap().awaits_second();
        assert!(waits(&rulings) && first.resource.is_none());
        rulings.rule(2, "academic", "");
        assert!(waits(&rulings), "what else is said leaves it as it is");
        rulings.apply(&approve(approved, None, true)).unwrap();
        assert_eq!(rulings.applies(), Some(edit.unwrap_or("block")));
        let original = rulings.state.candidate(rulings.id(1)).unwrap();
        assert_eq!(original.status == Status::Rejected, edit.is_some());
    }
}

#[test]
fn what_was_rejected_for_a_reason_of_its_own_stays_so_once_an_edit_is_reverted() {
    let mut rulings = Rulings::new();
    rulings.policy.reviewers_needed = 2;
    rulings.rule(1, "block", "");
    let approve = |candidate, edited: Option<&str>, is_second| Event::Approve {
        candidate,
        edited: edited.map(Rulings::value),
        reason: None,
        is_second,
    };
    let first = rulings
        .apply(&approve(rulings.id(1), Some("low"), false))
        .unwrap();
    rulings.reject(1).unwrap();
    rulings
        .apply(&approve(first.subject.unwrap(), None, true))
        .unwrap();
    assert_eq!(rulings.applies(), Some("low"));
    rulings.revert(1, None);
    assert_eq!(rulings.applies(), None);
    let original = rulings.state.candidate(rulings.id(1)).unwrap();
    assert_eq!(
        (original.status, original.decision_reason.as_deref()),
        (Status::Rejected, Some("no"))
    );
}
