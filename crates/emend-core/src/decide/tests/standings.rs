//! What has become of a correction, after others have said more.

use uuid::Uuid;

use super::{
    rulings::{REPORTER, REVIEWER, Rulings},
    *,
};
use crate::{
    contest::CurrentResource,
    ratings::{Example, FewShotSet, Rated, RatedId, RatedTexts, RatingClass},
    standing::{RatingPlace, Standing},
    voter::VoterKey,
};

impl Scenario {
    /// What a voter for that choice is told now.
    fn standing(&self, choice: &str, retracted: bool) -> Standing {
        let candidate = self.state.candidate(self.id(choice)).unwrap();
        Standing::of(candidate, retracted, revision_of(&self.state))
    }

    fn retract(&mut self, ballot: &Ballot) {
        let event = Event::Retracted {
            ballot: ballot.clone(),
            sender: Roles::default(),
        };
        self.event(&event).unwrap();
    }
}

impl Rulings {
    fn standing(&self, order: i64, retracted: bool) -> Standing {
        let candidate = self.state.candidate(self.id(order)).unwrap();
        Standing::of(candidate, retracted, revision_of(&self.state))
    }
}

fn revision_of(state: &ContestState) -> Option<Revision> {
    state.resource.as_ref().map(|resource| resource.revision)
}

fn short(standing: &Standing) -> (OutcomeState, Option<Reason>, i64) {
    (standing.state, standing.reason, standing.revision.0)
}

use OutcomeState::{Applied, AwaitingReview, NoEffect, Pending, Rejected, Withdrawn};

#[test]
fn the_first_voter_is_told_when_others_made_it_apply_and_when_they_took_it_back() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.vote("ana", "a");
    let standing = scenario.standing("a", false);
    assert_eq!(short(&standing), (Pending, Some(Reason::BelowThreshold), 0));
    assert_eq!((standing.confirmations_needed, standing.reporters), (2, 1));
    assert_eq!(standing.message, "It needs 2 more confirmations.");
    scenario.vote("ben", "a");
    let (third, _) = scenario.cast(&reporter_named("chloe"), "a");
    let standing = scenario.standing("a", false);
    assert_eq!(short(&standing), (Applied, None, 1));
    assert_eq!(
        (standing.reporters, standing.message.as_str()),
        (3, "It applies.")
    );

    scenario.retract(&third);
    let standing = scenario.standing("a", false);
    assert_eq!(short(&standing), (Withdrawn, Some(Reason::Retracted), 0));
    assert_eq!(
        standing.message,
        "It applies no longer: too many of its supporters took it back."
    );
    let of_third = scenario.standing("a", true);
    assert_eq!(short(&of_third), (NoEffect, Some(Reason::Retracted), 0));
    assert_eq!(of_third.message, "Without effect: it was retracted.");

    scenario.vote("dan", "a");
    assert_eq!(short(&scenario.standing("a", false)), (Applied, None, 3));
    // What is retracted counts for nothing, whatever others say.
    assert_eq!(
        short(&scenario.standing("a", true)),
        (NoEffect, Some(Reason::Retracted), 0)
    );
}

#[test]
fn a_vote_for_what_another_answer_replaced_waits_for_more() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.votes(0..3, "a");
    scenario.votes(3..9, "b");
    let standing = scenario.standing("a", false);
    assert_eq!(short(&standing), (Pending, Some(Reason::Rivals), 0));
    assert_eq!(
        standing.message,
        "Another answer took its place. It needs 6 more confirmations."
    );
    assert_eq!(short(&scenario.standing("b", false)), (Applied, None, 2));
}

#[test]
fn what_people_decided_is_said_without_their_words() {
    let mut scenario = Scenario::new(Kind::InvocationPhrase);
    scenario.votes(0..3, "a");
    let delete = Event::Delete {
        reason: Some("SECRET".into()),
    };
    scenario.event(&delete).unwrap();
    let standing = scenario.standing("a", false);
    assert_eq!(short(&standing), (Withdrawn, Some(Reason::Deleted), 0));
    assert_eq!(standing.message, "It applies no longer: it was deleted before.");

    scenario.vote("zoe", "b");
    let reject = Event::Reject {
        candidate: scenario.id("b"),
        reason: "SECRET".into(),
    };
    scenario.event(&reject).unwrap();
    let standing = scenario.standing("b", false);
    assert_eq!(short(&standing), (Rejected, None, 0));
    assert_eq!(standing.message, "It was rejected.");
}

#[test]
fn a_ruling_is_superseded_and_comes_back_at_the_revision_that_brought_it_back() {
    let mut rulings = Rulings::new();
    rulings.rule(1, "block", REVIEWER);
    rulings.rule(2, "academic", REVIEWER);
    let standing = rulings.standing(1, false);
    assert_eq!(short(&standing), (NoEffect, Some(Reason::NewerRuling), 0));
    assert_eq!(standing.message, "Without effect: a newer ruling is in force.");
    assert_eq!(short(&rulings.standing(2, false)), (Applied, None, 2));
    rulings.retract(2, REVIEWER);
    assert_eq!(short(&rulings.standing(1, false)), (Applied, None, 3));
    assert_eq!(
        short(&rulings.standing(2, true)),
        (NoEffect, Some(Reason::Retracted), 0)
    );
    rulings.revert(1, None);
    assert_eq!(
        short(&rulings.standing(1, false)),
        (Withdrawn, Some(Reason::Reverted), 0)
    );
}

#[test]
fn a_ruling_that_was_taken_back_without_right_still_applies() {
    let mut rulings = Rulings::new();
    rulings.rule(1, "block", REPORTER);
    let waits = rulings.standing(1, false);
    assert_eq!(short(&waits), (AwaitingReview, Some(Reason::NotEntitled), 0));
    rulings.approve(1).unwrap();
    rulings.retract(1, REPORTER);
    assert_eq!(short(&rulings.standing(1, true)), (Applied, None, 1));
}

#[test]
fn a_clearance_applies_only_if_it_ever_cleared_something() {
    let mut rulings = Rulings::new();
    rulings.rule(1, "clear", REVIEWER);
    assert_eq!(
        short(&rulings.standing(1, false)),
        (NoEffect, Some(Reason::NothingToClear), 0)
    );
    rulings.rule(2, "block", REVIEWER);
    rulings.rule(3, "clear", REVIEWER);
    assert_eq!(short(&rulings.standing(3, false)), (Applied, None, 2));
}

#[test]
fn a_rating_is_shown_or_it_is_said_why_not() {
    let rated = |class, live| Rated {
        feedback: FeedbackId(Uuid::from_u128(1)),
        accept_order: AcceptOrder(1),
        voter: VoterKey(Uuid::from_u128(1)),
        rated: RatedId(Uuid::from_u128(1)),
        class,
        prompt_version: String::new(),
        received_at: jiff::Timestamp::UNIX_EPOCH,
        excluded: false,
        live,
        texts: RatedTexts::default(),
    };
    let showing = |feedback| CurrentResource {
        revision: Revision(7),
        value: ResourceValue::new(
            "INTERPRET",
            Learned::FewShotSet(FewShotSet {
                good: vec![Example {
                    feedback: FeedbackId(Uuid::from_u128(feedback)),
                    rated: RatedId(Uuid::from_u128(feedback)),
                    input: "SECRET".into(),
                    output: String::new(),
                    corrected: String::new(),
                    issues: Vec::new(),
                }],
                ..FewShotSet::default()
            }),
        ),
    };
    let Rule::Window(rules) = &Kind::FewShotSet.rules().rule else {
        panic!("a window decides")
    };
    let (mine, other) = (showing(1), showing(2));
    let open = Policy::default_for(Kind::FewShotSet);
    let frozen = Policy {
        frozen: true,
        ..open.clone()
    };
    let full = open.window.good;
    let (good, replaced) = (rated(RatingClass::Good, true), rated(RatingClass::Good, false));
    let neutral = rated(RatingClass::Neutral, true);
    let (retracted, redacted) = (Some(Exclusion::Retraction), Some(Exclusion::Redaction));
    for (rating, excluded, newer, resource, policy, expected) in [
        (&good, None, 0, Some(&mine), &open, (Applied, None, 7)),
        (&good, None, 0, Some(&mine), &frozen, (Applied, None, 7)),
        (
            &replaced,
            None,
            1,
            Some(&other),
            &open,
            (NoEffect, Some(Reason::Replaced), 0),
        ),
        (
            &good,
            None,
            full,
            Some(&other),
            &open,
            (NoEffect, Some(Reason::NotInWindow), 0),
        ),
        (
            &good,
            None,
            full,
            Some(&other),
            &frozen,
            (NoEffect, Some(Reason::NotInWindow), 0),
        ),
        (
            &good,
            None,
            0,
            Some(&other),
            &frozen,
            (Pending, Some(Reason::Frozen), 0),
        ),
        (
            &good,
            None,
            0,
            None,
            &open,
            (Pending, Some(Reason::ResourceLimit), 0),
        ),
        (
            &neutral,
            None,
            0,
            Some(&other),
            &open,
            (NoEffect, Some(Reason::Neutral), 0),
        ),
        (
            &replaced,
            retracted,
            0,
            None,
            &open,
            (NoEffect, Some(Reason::Retracted), 0),
        ),
        (
            &replaced,
            redacted,
            0,
            None,
            &open,
            (NoEffect, Some(Reason::Redacted), 0),
        ),
    ] {
        let place = RatingPlace {
            excluded,
            class: Some(RatingClass::Good),
            newer,
        };
        let standing = Standing::of_rating(Kind::FewShotSet, rules, rating, place, resource, policy);
        assert_eq!(short(&standing), expected, "{place:?} {standing:?}");
        assert!(!standing.message.contains("SECRET"));
    }
    // More raters say that it is bad, or as many.
    for class in [Some(RatingClass::Bad), None] {
        let place = RatingPlace {
            excluded: None,
            class,
            newer: 0,
        };
        let standing = Standing::of_rating(Kind::FewShotSet, rules, &good, place, Some(&other), &open);
        assert_eq!(short(&standing), (NoEffect, Some(Reason::Outvoted), 0));
        assert_eq!(
            standing.message,
            "Without effect: at least as many ratings of its output say otherwise."
        );
    }
}
