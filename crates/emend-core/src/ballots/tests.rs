//! The maintained tally equals the one counted from scratch, under any sequence of ballots and policies.

use jiff::SignedDuration;
use proptest::prelude::*;

use super::{tally::signed, *};
use crate::{
    candidate::{Candidate, Status},
    ids::{Namespace, ReporterId},
    kinds::Kind,
    voter::Voter,
};

/// Something that happens to the ballots of a contest.
#[derive(Debug, Clone)]
enum Step {
    /// A voter supports one of four candidates; the ballot was accepted before the `late` ballots preceding it.
    Cast { voter: u8, choice: u8, late: i64 },
    /// One of the ballots is retracted.
    TakeBack(usize),
    /// The policy changes.
    Policy {
        occurrences: bool,
        derived: u32,
        counted: u32,
        half_life: Option<i64>,
    },
    /// Hours pass.
    Wait(i64),
    /// The holder drops all but the ballots that count and this many more.
    Forget(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0u8..12, 0u8..4, prop_oneof![4 => Just(0), 1 => 1i64..30])
            .prop_map(|(voter, choice, late)| Step::Cast { voter, choice, late }),
        3 => any::<usize>().prop_map(Step::TakeBack),
        1 => (any::<bool>(), 1u32..4, 1u32..12, proptest::option::weighted(0.3, 1i64..100)).prop_map(
            |(occurrences, derived, counted, half_life)| Step::Policy { occurrences, derived, counted, half_life }
        ),
        1 => (1i64..200).prop_map(Step::Wait),
        1 => (0usize..8).prop_map(Step::Forget),
    ]
}

/// Six reporters, and three sessions of each of two callers.
fn voter(number: u8) -> (Voter, Caller) {
    let caller = Caller::parse(if number.is_multiple_of(2) { "web" } else { "app" }).unwrap();
    let reporter = (number < 6).then(|| ReporterId::parse(&format!("r{number}")).unwrap());
    let session = Some(number.to_string());
    (Voter::new(reporter, caller.clone(), session), caller)
}

fn candidate(choice: u8) -> CandidateId {
    CandidateId(uuid::Uuid::from_u128(u128::from(choice)))
}

struct Scenario {
    policy: Policy,
    now: Timestamp,
    next: i64,
    /// All ballots of the contest.
    all: Vec<Ballot>,
    /// The ballots held, maintained incrementally.
    ballots: Ballots,
}

impl Scenario {
    fn new() -> Self {
        Self {
            policy: {
                let mut policy = Policy::default_for(Kind::InvocationPhrase);
                policy.votes.max_counted_feedback = 8;
                policy
            },
            now: Timestamp::UNIX_EPOCH,
            next: 0,
            all: Vec::new(),
            ballots: Ballots::default(),
        }
    }

    fn ballot(&mut self, number: u8, choice: u8, late: i64) -> Ballot {
        self.next += 1;
        let (voter, caller) = voter(number);
        Ballot {
            feedback_id: FeedbackId(uuid::Uuid::from_u128(u128::try_from(self.next).unwrap())),
            accept_order: AcceptOrder(self.next - late),
            voter: voter.key(&Namespace::parse("bank").unwrap()),
            identified: voter.is_identified(),
            caller,
            candidate: candidate(choice),
            received_at: self.now,
        }
    }

    fn counted(&self) -> usize {
        self.policy.votes.max_counted_feedback as usize
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Cast { voter, choice, late } => {
                let ballot = self.ballot(voter, choice, late);
                self.all.push(ballot.clone());
                self.ballots.insert(ballot);
            }
            Step::TakeBack(which) if !self.all.is_empty() => {
                let ballot = self.all.swap_remove(which % self.all.len());
                self.ballots.remove(&ballot);
            }
            Step::TakeBack(_) => {}
            Step::Policy {
                occurrences,
                derived,
                counted,
                half_life,
            } => {
                self.policy.votes.counting = if occurrences {
                    Counting::Occurrences
                } else {
                    Counting::DistinctVoters
                };
                self.policy.votes.max_derived_voters = derived;
                self.policy.votes.max_counted_feedback = counted;
                self.policy.votes.half_life = half_life.map(SignedDuration::from_hours);
            }
            Step::Wait(hours) => self.now += SignedDuration::from_hours(hours),
            Step::Forget(more) => self.ballots.forget_beyond(self.counted() + more),
        }
        // Reload the ballots if those held may not be enough, as their holder does.
        if !self.ballots.cover(self.counted()) {
            let mut newest = self.all.clone();
            newest.sort_by_key(SortKey::of);
            newest.truncate(self.counted());
            self.ballots = Ballots::new(newest, self.all.len() <= self.counted());
        }
    }
}

proptest! {
    #[test]
    fn an_incremental_tally_equals_a_full_count(
        steps in proptest::collection::vec(step(), 1..80)
    ) {
        let mut scenario = Scenario::new();
        for step in steps {
            scenario.step(&step);
            let kept = scenario.ballots.tally(&scenario.policy, scenario.now);
            let counted = Tally::count(&scenario.all, &scenario.policy, scenario.now);
            prop_assert_eq!(kept, counted, "after {:?}", step);
        }
    }

    #[test]
    fn nets_are_each_candidates_lead_over_the_strongest_other(
        supporters in proptest::collection::vec((0u64..5, any::<bool>()), 1..7)
    ) {
        let tally = Tally {
            supporters: (0..).zip(&supporters).map(|(choice, (counted, _))| {
                (candidate(choice), Support { counted: *counted, ..Support::default() })
            }).collect(),
        };
        let candidates: Vec<Candidate> = (0..).zip(&supporters)
            .map(|(choice, (_, rejected))| some_candidate(candidate(choice), *rejected))
            .collect();
        let standings = tally.standings(&candidates);
        for one in &candidates {
            let strongest = candidates
                .iter()
                .filter(|rival| rival.id != one.id && rival.status != Status::Rejected)
                .map(|rival| tally.of(rival.id).counted)
                .max()
                .unwrap_or(0);
            prop_assert_eq!(standings.net(one.id), signed(tally.of(one.id).counted) - signed(strongest));
        }
    }
}

fn some_candidate(id: CandidateId, rejected: bool) -> Candidate {
    Candidate {
        id,
        value: crate::ResourceValue::new("a", crate::Learned::Verb("v".to_owned())),
        status: if rejected {
            Status::Rejected
        } else {
            Status::Pending
        },
        reason: None,
        origin: crate::Origin::Votes,
        edited_from: None,
        hold: None,
        decision_reason: None,
        occurrences: 0,
        reporters: 0,
        net: 0,
        risk: crate::RiskLevel::Medium,
        threshold: 3,
        policy_version: 0,
        applied_threshold: None,
        applied_revision: crate::Revision::default(),
        ruling: None,
        proposal: None,
    }
}

#[test]
fn an_older_ballot_is_not_added_to_an_incomplete_list() {
    let mut scenario = Scenario::new();
    let ballots: Vec<Ballot> = (0..6).map(|voter| scenario.ballot(voter, 0, 0)).collect();
    let mut held = Ballots::new(ballots[3..].to_vec(), false);
    held.insert(ballots[0].clone());
    assert_eq!(held.len(), 3, "ballots 1 and 2, which are not held, are newer");
    assert!(held.cover(3) && !held.cover(4));
    let mut all = Ballots::new(ballots[3..].to_vec(), true);
    all.insert(ballots[0].clone());
    assert!(all.cover(usize::MAX) && all.len() == 4);
}

#[test]
fn only_the_oldest_ballots_are_forgotten_and_never_ones_that_count() {
    let mut scenario = Scenario::new();
    let ballots: Vec<Ballot> = (0..12).map(|voter| scenario.ballot(voter, 0, 0)).collect();
    let mut held = Ballots::new(ballots.clone(), true);
    held.tally(&scenario.policy, scenario.now);
    held.forget_beyond(10);
    assert!(held.iter().eq(ballots[2..].iter().rev()));
    held.forget_beyond(0);
    assert_eq!(held.len(), 8, "eight count");
    assert!(!held.cover(9), "and it is known that there are others");
}
