//! The rules, one sentence each, and properties that hold for any events in any order.

mod any_order;

mod bounds;
mod kept;
mod people;
mod review;
mod rulings;
mod second;
mod standings;
mod votes;
mod windows;

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::{
    ballots::Ballot,
    candidate::{Origin, Reason, Status},
    contest::Target,
    ids::{AcceptOrder, Caller, CandidateId, FeedbackId, ReporterId, Revision, UserId},
    kinds::{Kind, Learned, RulingRules},
    outcome::{Outcome, OutcomeState},
    policy::Counting,
    ratings::Rated,
    resource::ResourceKey,
    roles::{RiskLevel, Roles},
    voter::Voter,
};

/// A contest played step by step; revisions increase as in the log.
struct Scenario {
    state: ContestState,
    policy: Policy,
    now: Timestamp,
    revision: i64,
    next: i64,
}

impl Scenario {
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
            Learned::of(self.state.key.kind, choice.to_owned()).unwrap(),
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
            sender: Roles::default(),
            retracted_by: None,
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
