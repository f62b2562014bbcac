//! Review: every proposal is a version, and a person decides about each, once.

mod undo;

use super::*;
use crate::{candidate::Verdict, kinds::ReviewRules, resource::proposal_of};

/// One key of a kind that only these tests have, decided by review.
struct Reviewed {
    state: ContestState,
    rule: Rule,
    policy: Policy,
    revision: i64,
}

impl Reviewed {
    fn new(rejection_closes_to_generators: bool) -> Self {
        let key = ResourceKey::parse("assistant", Some(Kind::InvocationPhrase), "summarize", "", "").unwrap();
        Self {
            state: ContestState::new(key),
            rule: Rule::Review(ReviewRules {
                rejection_closes_to_generators,
                of_users: false,
                numbered_with: None,
                numbered: |_, _| {},
            }),
            policy: Policy::default_for(Kind::InvocationPhrase),
            revision: 0,
        }
    }

    fn value(text: &str) -> ResourceValue {
        ResourceValue::new("summarize", Learned::Verb(text.to_owned()))
    }

    fn apply(&mut self, event: &Event) -> Result<Decision, Refusal> {
        let decided = decide_by(
            &self.rule,
            self.state.clone(),
            event,
            &self.policy,
            Timestamp::UNIX_EPOCH,
        );
        let mut decision = decided.map_err(|refused| {
            assert_eq!(refused.state, self.state, "a refusal changes nothing");
            refused.refusal
        })?;
        if decision.resource.is_some() {
            self.revision += 1;
            decision.stamp(Revision(self.revision));
        }
        self.state = decision.after.clone();
        Ok(decision)
    }

    fn generated(&mut self, text: &str) -> Result<CandidateId, Refusal> {
        let event = Event::Proposed {
            proposal: text.as_bytes().to_vec(),
            value: Self::value(text),
        };
        self.apply(&event).map(|decision| decision.subject.unwrap())
    }

    fn corrected(&mut self, number: u128, text: &str) -> (Ballot, Outcome) {
        let feedback = FeedbackId(uuid::Uuid::from_u128(number));
        let caller = Caller::anonymous();
        let ballot = Ballot {
            feedback_id: feedback,
            accept_order: AcceptOrder(1),
            voter: Voter::new(None, caller.clone(), None).key(&self.state.key.namespace),
            identified: false,
            caller,
            candidate: proposal_of(self.state.id(), 0, feedback.0.as_bytes()),
            received_at: Timestamp::UNIX_EPOCH,
        };
        let event = Event::Recorded {
            ballot: ballot.clone(),
            value: Self::value(text),
            origin: Origin::Votes,
            personal_data: false,
            sender: Roles::default(),
            retracted_by: None,
        };
        let outcome = self.apply(&event).unwrap().outcome.unwrap();
        (ballot, outcome)
    }

    fn put(&mut self, text: &str) -> CandidateId {
        let event = Event::Put {
            value: Self::value(text),
            origin: Origin::Operator,
            reason: None,
        };
        self.apply(&event).unwrap().subject.unwrap()
    }

    fn approve(&mut self, candidate: CandidateId) -> Result<Decision, Refusal> {
        self.apply(&Event::Approve {
            is_second: false,
            candidate,
            edited: None,
            reason: None,
        })
    }

    fn edit(&mut self, candidate: CandidateId, text: &str) -> Result<Decision, Refusal> {
        self.apply(&Event::Approve {
            is_second: false,
            candidate,
            edited: Some(Self::value(text)),
            reason: None,
        })
    }

    fn reject(&mut self, candidate: CandidateId) -> Result<Decision, Refusal> {
        self.apply(&Event::Reject {
            candidate,
            reason: "no".into(),
        })
    }

    fn make_current(&mut self, candidate: CandidateId) -> Result<Decision, Refusal> {
        let made = self.state.candidate(candidate).unwrap();
        self.apply(&Event::MakeCurrent {
            version: made.proposal.map_or(0, |kept| kept.version),
            value: made.value.clone(),
            reason: None,
        })
    }

    fn applies(&self) -> Option<&str> {
        let resource = self.state.resource.as_ref();
        resource.map(|current| current.value.learned.maps_to())
    }

    fn version(&self, candidate: CandidateId) -> u32 {
        self.state.candidate(candidate).unwrap().proposal.unwrap().version
    }

    fn status(&self, candidate: CandidateId) -> (Status, Option<Reason>) {
        let candidate = self.state.candidate(candidate).unwrap();
        (candidate.status, candidate.reason)
    }
}

#[test]
fn a_proposal_waits_for_a_person_and_is_then_the_current_version() {
    let mut reviewed = Reviewed::new(false);
    let first = reviewed.put("one");
    let better = reviewed.generated("two").unwrap();
    assert_eq!(
        reviewed.status(better),
        (Status::AwaitingReview, Some(Reason::PersonDecides))
    );
    assert_eq!(reviewed.applies(), Some("one"));
    let approved = reviewed.approve(better).unwrap();
    assert_eq!((approved.cause, approved.subject), (Cause::Review, Some(better)));
    assert_eq!(reviewed.applies(), Some("two"));
    assert_eq!(reviewed.status(first).0, Status::Superseded);
    assert_eq!((reviewed.version(first), reviewed.version(better)), (1, 2));
    assert_eq!(reviewed.state.versions.current, 2);
}

#[test]
fn what_is_decided_is_decided_for_good() {
    let mut reviewed = Reviewed::new(false);
    let [one, two] = ["one", "two"].map(|text| reviewed.generated(text).unwrap());
    reviewed.approve(one).unwrap();
    assert_eq!(reviewed.approve(one), Err(Refusal::AlreadyApplied));
    assert_eq!(reviewed.reject(one), Err(Refusal::AlreadyApplied));
    reviewed.reject(two).unwrap();
    assert_eq!(reviewed.approve(two), Err(Refusal::AlreadyRejected));
    assert_eq!(reviewed.reject(two), Err(Refusal::AlreadyRejected));
    assert_eq!(reviewed.applies(), Some("one"));
}

#[test]
fn what_was_made_for_another_version_is_not_approved() {
    let mut reviewed = Reviewed::new(false);
    let [one, two] = ["one", "two"].map(|text| reviewed.generated(text).unwrap());
    reviewed.approve(one).unwrap();
    assert_eq!(reviewed.approve(two), Err(Refusal::BaseChanged));
    assert_eq!(
        reviewed.status(two),
        (Status::Superseded, Some(Reason::BaseChanged)),
        "it may still be rejected"
    );
    reviewed.reject(two).unwrap();
    // The same text for the version that is current now is another proposal.
    let again = reviewed.generated("two").unwrap();
    assert_ne!(again, two);
    reviewed.approve(again).unwrap();
    assert_eq!(reviewed.applies(), Some("two"));
}

#[test]
fn to_put_or_to_make_current_closes_what_is_open() {
    let mut reviewed = Reviewed::new(false);
    let first = reviewed.put("one");
    let open = reviewed.generated("two").unwrap();
    let second = reviewed.put("three");
    assert_eq!(
        reviewed.status(open),
        (Status::Superseded, Some(Reason::BaseChanged))
    );
    assert_eq!(reviewed.approve(open), Err(Refusal::BaseChanged));
    let open = reviewed.generated("four").unwrap();
    reviewed.make_current(first).unwrap();
    assert_eq!(
        (reviewed.applies(), reviewed.state.versions.current),
        (Some("one"), 1)
    );
    assert_eq!(reviewed.status(open).0, Status::Superseded);
    assert_eq!(reviewed.make_current(first), Err(Refusal::AlreadyApplied));
    assert_eq!(reviewed.make_current(open), Err(Refusal::NotApproved));
    reviewed.make_current(second).unwrap();
    assert_eq!(reviewed.applies(), Some("three"));
}

#[test]
fn numbers_of_versions_are_never_given_again() {
    let mut reviewed = Reviewed::new(false);
    let rejected = reviewed.generated("one").unwrap();
    reviewed.reject(rejected).unwrap();
    let next = reviewed.put("two");
    assert_eq!((reviewed.version(rejected), reviewed.version(next)), (1, 2));
    reviewed.apply(&Event::Delete { reason: None }).unwrap();
    assert_eq!(reviewed.applies(), None);
    let after = reviewed.put("two");
    assert_eq!(reviewed.version(after), 3, "equal text is a version of its own");
}

/// A version that was made in another contest, which counts its versions with this one, keeps its number.
#[test]
fn a_version_of_another_contest_becomes_current_under_its_own_number() {
    let mut reviewed = Reviewed::new(false);
    reviewed.put("one");
    reviewed.state.versions.last = 7;
    let open = reviewed.generated("eight").unwrap();
    let event = Event::MakeCurrent {
        version: 5,
        value: Reviewed::value("five"),
        reason: Some("as in production".into()),
    };
    let used = reviewed.apply(&event).unwrap().subject.unwrap();
    assert_eq!((reviewed.applies(), reviewed.version(used)), (Some("five"), 5));
    assert_eq!(
        reviewed.status(open),
        (Status::Superseded, Some(Reason::BaseChanged))
    );
    assert_eq!(reviewed.apply(&event), Err(Refusal::AlreadyApplied));
    let next = reviewed.put("nine");
    assert_eq!(reviewed.version(next), 9);
    reviewed.apply(&event).unwrap();
    assert_eq!(reviewed.state.candidates.len(), 4, "no second one is made of it");
}

/// The value of a prompt says the number of its version.
#[test]
fn a_version_writes_its_number_into_its_value() {
    let key = ResourceKey::parse("assistant", Some(Kind::Prompt), "SUMMARIZE_DAILY", "", "").unwrap();
    let mut reviewed = Reviewed {
        state: ContestState::new(key),
        rule: Kind::Prompt.rules().rule,
        policy: Policy::default_for(Kind::Prompt),
        revision: 0,
    };
    let value = |text: &str| {
        ResourceValue::new(
            "SUMMARIZE_DAILY",
            Learned::of(Kind::Prompt, text.to_owned()).unwrap(),
        )
    };
    let version = |reviewed: &Reviewed| match &reviewed.state.resource.as_ref().unwrap().value.learned {
        Learned::Prompt(prompt) => (prompt.version, prompt.text().to_owned()),
        other => panic!("{other:?}"),
    };
    let put = |text| Event::Put {
        value: value(text),
        origin: Origin::Operator,
        reason: None,
    };
    reviewed.apply(&put("one")).unwrap();
    assert_eq!(version(&reviewed), (1, "one".into()));
    let event = Event::Proposed {
        proposal: b"p".to_vec(),
        value: value("two"),
    };
    let proposed = reviewed.apply(&event).unwrap().subject.unwrap();
    // Approved with what it says anyway, it is not edited.
    let event = Event::Approve {
        is_second: false,
        candidate: proposed,
        edited: Some(value("two")),
        reason: None,
    };
    assert_eq!(reviewed.apply(&event).unwrap().subject, Some(proposed));
    assert_eq!(version(&reviewed), (2, "two".into()));
    let before = reviewed.state.candidates[0].value.clone();
    let event = Event::Revert {
        revision: Revision(2),
        restore: Some(before),
        reason: "worse".into(),
    };
    reviewed.apply(&event).unwrap();
    assert_eq!(version(&reviewed), (1, "one".into()));
}

#[test]
fn an_edited_approval_is_a_version_of_its_own() {
    let mut reviewed = Reviewed::new(false);
    let proposed = reviewed.generated("one").unwrap();
    let event = Event::Approve {
        is_second: false,
        candidate: proposed,
        edited: Some(Reviewed::value("won")),
        reason: Some("spelling".into()),
    };
    let written = reviewed.apply(&event).unwrap().subject.unwrap();
    assert_eq!(reviewed.applies(), Some("won"));
    assert_eq!(
        reviewed.status(proposed),
        (Status::Superseded, Some(Reason::Edited))
    );
    assert_eq!(reviewed.approve(proposed), Err(Refusal::AlreadyApplied));
    assert_eq!(reviewed.reject(proposed), Err(Refusal::AlreadyApplied));
    let candidate = reviewed.state.candidate(written).unwrap();
    assert_eq!(
        (candidate.origin, candidate.edited_from),
        (Origin::Review, Some(proposed))
    );
    assert_eq!(candidate.decision_reason.as_deref(), Some("spelling"));
}

#[test]
fn a_rejection_closes_to_generators_where_the_kind_says_so_and_not_to_people() {
    let mut entry = Reviewed::new(true);
    let proposed = entry.generated("rust").unwrap();
    entry.reject(proposed).unwrap();
    assert_eq!(entry.generated("rust"), Err(Refusal::RejectedForGood));
    assert!(entry.generated("go").is_ok(), "another value was not rejected");
    let (_, outcome) = entry.corrected(1, "rust");
    assert_eq!(outcome.state, OutcomeState::AwaitingReview);
    entry.put("rust");
    assert_eq!(entry.applies(), Some("rust"));
    let mut prompt = Reviewed::new(false);
    let proposed = prompt.generated("one").unwrap();
    prompt.reject(proposed).unwrap();
    assert!(prompt.generated("one more").is_ok());
}

#[test]
fn who_takes_a_correction_back_closes_it_while_it_is_open() {
    let mut reviewed = Reviewed::new(false);
    let (open, _) = reviewed.corrected(1, "one");
    let retraction = |ballot: &Ballot| Event::Retracted {
        ballot: ballot.clone(),
        sender: Roles::default(),
    };
    reviewed.apply(&retraction(&open)).unwrap();
    assert_eq!(
        reviewed.status(open.candidate),
        (Status::Withdrawn, Some(Reason::Retracted))
    );
    assert_eq!(reviewed.approve(open.candidate), Err(Refusal::BaseChanged));
    let (approved, _) = reviewed.corrected(2, "two");
    reviewed.approve(approved.candidate).unwrap();
    let outcome = reviewed.apply(&retraction(&approved)).unwrap().outcome.unwrap();
    assert_eq!(outcome.state, OutcomeState::NoEffect);
    assert_eq!(reviewed.applies(), Some("two"), "what a person applied stays");
}

#[test]
fn a_revert_makes_the_version_before_current_again() {
    let mut reviewed = Reviewed::new(false);
    let first = reviewed.put("one");
    reviewed.put("two");
    let revert = |restore: Option<&str>| Event::Revert {
        revision: Revision(2),
        restore: restore.map(Reviewed::value),
        reason: "worse".into(),
    };
    reviewed.apply(&revert(Some("one"))).unwrap();
    assert_eq!(
        (reviewed.applies(), reviewed.state.versions.current),
        (Some("one"), reviewed.version(first))
    );
    assert_eq!(reviewed.state.candidates.len(), 2, "no version is made for it");
    reviewed.apply(&revert(None)).unwrap();
    assert_eq!((reviewed.applies(), reviewed.state.versions.current), (None, 0));
}

/// Also a proposal that was open is closed: it was made for the version that was reverted.
#[test]
fn a_revert_closes_what_is_open() {
    for restore in [Some("one"), None] {
        let mut reviewed = Reviewed::new(false);
        reviewed.put("one");
        reviewed.put("two");
        let open = reviewed.generated("three").unwrap();
        let revert = Event::Revert {
            revision: Revision(2),
            restore: restore.map(Reviewed::value),
            reason: "worse".into(),
        };
        reviewed.apply(&revert).unwrap();
        assert_eq!(
            reviewed.status(open),
            (Status::Superseded, Some(Reason::BaseChanged))
        );
        assert_eq!(reviewed.approve(open), Err(Refusal::BaseChanged));
    }
}

#[test]
fn of_an_erased_user_nothing_stays_open_or_current() {
    let mut reviewed = Reviewed::new(false);
    reviewed.put("one");
    let open = reviewed.generated("two").unwrap();
    reviewed.apply(&Event::Erase).unwrap();
    assert_eq!(reviewed.applies(), None);
    assert_eq!(
        reviewed.state.candidate(open).unwrap().proposal.unwrap().verdict,
        Verdict::Closed
    );
}

#[test]
fn kinds_that_are_decided_in_another_way_refuse_what_is_for_review() {
    for kind in [Kind::InvocationPhrase, Kind::DomainRule] {
        let mut reviewed = Reviewed::new(false);
        reviewed.rule = kind.rules().rule;
        let id = reviewed.put(if kind == Kind::DomainRule { "block" } else { "one" });
        assert_eq!(reviewed.make_current(id), Err(Refusal::NotByReview));
        assert_eq!(reviewed.generated("two"), Err(Refusal::NotByReview));
    }
}

#[test]
fn two_reviewers_approve_a_proposal_or_another_text() {
    for edit in [None, Some("edited")] {
        let mut review = Reviewed::new(false);
        review.policy.reviewers_needed = 2;
        let proposed = review.generated("proposed").unwrap();
        let approve = |candidate, edited: Option<&str>, is_second| Event::Approve {
            candidate,
            edited: edited.map(Reviewed::value),
            reason: None,
            is_second,
        };
        let first = review.apply(&approve(proposed, edit, false)).unwrap();
        let approved = first.subject.unwrap();
        assert!(review.state.candidate(approved).unwrap().awaits_second());
        assert_eq!((review.applies(), approved == proposed), (None, edit.is_none()));
        let undo = Event::Undo {
            decision: Box::new(first.undoable.unwrap()),
        };
        review.apply(&undo).unwrap();
        let first = review.apply(&approve(proposed, edit, false)).unwrap();
        let second = review
            .apply(&approve(first.subject.unwrap(), None, true))
            .unwrap();
        assert_eq!(review.applies(), Some(edit.unwrap_or("proposed")));
        assert!(second.resource.is_some());
    }
}
