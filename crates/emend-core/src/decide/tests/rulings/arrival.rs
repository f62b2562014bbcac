//! What rulings are about and rulings themselves arrive in any order, and end alike.

use super::*;

/// The rule of domains for a kind whose keys name something that may be known later.
const OF_A_LATE_TARGET: Rule = {
    let Rule::Ruling(rules) = Kind::DomainRule.rules().rule else {
        panic!("domains are decided by rulings")
    };
    Rule::Ruling(RulingRules {
        needs_target: true,
        ..rules
    })
};

proptest! {
    #[test]
    fn a_target_that_arrives_late_finds_what_was_decided(
        words in proptest::collection::vec(
            (proptest::sample::select(vec!["block", "unblock", "academic", "clear"]), any::<bool>()), 1..6,
        ),
        place in 0usize..7,
    ) {
        let run = |known_from: usize| {
            let mut rulings = Rulings { rule: OF_A_LATE_TARGET, ..Rulings::new() };
            rulings.state.target = Target::Unknown;
            for (at, (word, entitled)) in words.iter().enumerate() {
                if at == known_from {
                    rulings.apply_at(&Event::TargetArrived).unwrap();
                }
                let sender = if *entitled { REVIEWER } else { REPORTER };
                let outcome = rulings.rule(10 * i64::try_from(at).unwrap() + 1, word, sender);
                if at < known_from {
                    assert_eq!(rulings.applies(), None);
                    let waits = (OutcomeState::Pending, Some(Reason::TargetNotFound));
                    assert_eq!((outcome.state, outcome.reason) == waits, *entitled);
                }
            }
            if known_from >= words.len() {
                let arrived = rulings.apply_at(&Event::TargetArrived).unwrap();
                assert_eq!(arrived.resource.is_some(), rulings.applies().is_some());
            }
            // What is deleted and comes back finds the same.
            let before = rulings.figures();
            let gone = rulings.apply_at(&Event::TargetGone).unwrap();
            assert_eq!(gone.resource.is_some(), before.0.is_some());
            assert_eq!(rulings.applies(), None);
            rulings.apply_at(&Event::TargetArrived).unwrap();
            assert_eq!(rulings.figures(), before);
            before
        };
        prop_assert_eq!(run(0), run(place));
    }
}

#[test]
fn a_decision_about_a_citation_never_takes_effect_whenever_that_is_found_out() {
    for (sender, known_at_once) in [
        (REVIEWER, true),
        (REVIEWER, false),
        (REPORTER, true),
        (REPORTER, false),
    ] {
        let mut rulings = Rulings {
            rule: OF_A_LATE_TARGET,
            ..Rulings::new()
        };
        rulings.state.target = if known_at_once {
            Target::NotCorrectable
        } else {
            Target::Unknown
        };
        let outcome = rulings.rule(1, "block", sender);
        let never = (OutcomeState::NoEffect, Some(Reason::NotCorrectable));
        assert_eq!((outcome.state, outcome.reason) == never, known_at_once);
        rulings.state.target = Target::NotCorrectable;
        rulings.apply_at(&Event::TargetArrived).unwrap();
        let [ruling] = &rulings.state.candidates[..] else {
            panic!("one ruling")
        };
        assert_eq!(
            (ruling.status, ruling.reason),
            (Status::Superseded, Some(Reason::NotCorrectable))
        );
        assert_eq!(rulings.state.resource, None);
    }
}

#[test]
fn a_decision_about_what_is_not_known_yet_says_when_it_takes_effect() {
    for (kind, word, message) in [
        (
            Kind::ClaimState,
            "rejected",
            "Noted: claim “c1” is rejected. It takes effect when the claim is upserted: it is not known yet.",
        ),
        (
            Kind::EdgeLabel,
            "refutes",
            "Noted: the label of edge “c1” is refutes. It takes effect when the edge is upserted: it is not known yet.",
        ),
    ] {
        let mut state = ContestState::new(ResourceKey::parse("research", Some(kind), "c1", "", "").unwrap());
        state.target = Target::Unknown;
        let mut rulings = Rulings {
            state,
            policy: Policy::default_for(kind),
            rule: kind.rules().rule,
            ..Rulings::new()
        };
        let recorded = Event::Recorded {
            ballot: rulings.ballot(1),
            value: ResourceValue::new("c1", Learned::of(kind, word.to_owned()).unwrap()),
            origin: Origin::Votes,
            personal_data: false,
            sender: roles(REVIEWER),
            retracted_by: None,
        };
        let outcome = rulings.apply_at(&recorded).unwrap().outcome.unwrap();
        assert_eq!(
            (outcome.reason, &*outcome.message),
            (Some(Reason::TargetNotFound), message)
        );
        rulings.apply_at(&Event::TargetArrived).unwrap();
        let applied = rulings.state.resource.as_ref().unwrap();
        assert_eq!(applied.value.learned.maps_to(), word);
        // What an operator deletes is decided by nobody.
        rulings.apply(&Event::Delete { reason: None }).unwrap();
        assert_eq!(rulings.state.resource, None);
    }
}

/// What happens to one feedback: recorded, and perhaps retracted.
#[derive(Debug, Clone)]
struct SentRuling {
    word: &'static str,
    sender: &'static str,
    retracted_by: Option<&'static str>,
}

/// What an operator does, after some of the events.
#[derive(Debug, Clone)]
enum Done {
    Put(&'static str),
    Delete,
    Approve(usize),
    Reject(usize),
}

fn sent_ruling() -> impl Strategy<Value = SentRuling> {
    let words = proptest::sample::select(vec![
        "block",
        "unblock",
        "unblock:low",
        "academic",
        "primary",
        "clear",
    ]);
    let senders = proptest::sample::select(vec![REPORTER, REVIEWER, "operator"]);
    let by = proptest::option::weighted(0.4, proptest::sample::select(vec![REPORTER, REVIEWER]));
    (words, senders, by).prop_map(|(word, sender, retracted_by)| SentRuling {
        word,
        sender,
        retracted_by,
    })
}

fn done() -> impl Strategy<Value = Done> {
    prop_oneof![
        proptest::sample::select(vec!["block", "low"]).prop_map(Done::Put),
        Just(Done::Delete),
        (0usize..8).prop_map(Done::Approve),
        (0usize..8).prop_map(Done::Reject),
    ]
}

/// An event of a feedback: that it was recorded, or that it was retracted.
type Arrival = (usize, bool);

impl Rulings {
    /// An event arrives. A retraction that comes first is a mark that the recorded one finds.
    fn arrives(&mut self, all: &[SentRuling], marks: &mut Vec<usize>, (index, retraction): Arrival) {
        let SentRuling {
            word,
            sender,
            retracted_by,
        } = &all[index];
        let order = 10 * i64::try_from(index).unwrap() + 1;
        let known = self.state.candidate(self.id(order)).is_some();
        match (retraction, known) {
            (false, _) => {
                let by = marks.contains(&index).then_some(*retracted_by).flatten();
                self.recorded(order, word, sender, by);
            }
            (true, true) => {
                self.retract(order, retracted_by.unwrap());
            }
            (true, false) => marks.push(index),
        }
    }

    /// What the operator does, at an accept order that does not depend on what arrived. What does not exist yet can't be
    /// decided on.
    fn does(&mut self, done: &Done, order: i64) {
        self.state.next_order = AcceptOrder(order);
        let id = |index: &usize| self.id(10 * i64::try_from(*index).unwrap() + 1);
        let event = match done {
            Done::Put(word) => Event::Put {
                value: Self::value(word),
                origin: Origin::Operator,
                reason: None,
            },
            Done::Delete => Event::Put {
                value: Self::value("unblock"),
                origin: Origin::Import,
                reason: None,
            },
            Done::Approve(index) => Event::Approve {
                is_second: false,
                candidate: id(index),
                edited: None,
                reason: None,
            },
            Done::Reject(index) => Event::Reject {
                candidate: id(index),
                reason: "no".into(),
            },
        };
        let _ = self.apply_at(&event);
    }

    /// All that must not depend on the order of arrival.
    fn figures(&self) -> (Option<ResourceValue>, Vec<Figures>) {
        let mut rulings: Vec<_> = self
            .state
            .candidates
            .iter()
            .map(|candidate| {
                let approved = candidate.ruling.as_ref().is_some_and(|ruling| ruling.approved);
                (candidate.id, candidate.is_effective(), candidate.status, approved)
            })
            .collect();
        rulings.sort_unstable_by_key(|ruling| ruling.0);
        (
            self.state.resource.as_ref().map(|current| current.value.clone()),
            rulings,
        )
    }
}

/// A ruling, whether it is effective, its status, and whether a person approved it.
type Figures = (CandidateId, bool, Status, bool);

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_arrival_does_not_matter(
        all in proptest::collection::vec(sent_ruling(), 1..7),
        steps in proptest::collection::vec((any::<u16>(), done()), 0..5),
        seed in any::<u64>(),
    ) {
        let arrivals: Vec<Arrival> = (0..all.len())
            .flat_map(|index| {
                let retracted = all[index].retracted_by.map(|_| (index, true));
                [Some((index, false)), retracted].into_iter().flatten()
            })
            .collect();
        let mut shuffled = arrivals.clone();
        shuffled.sort_by_key(|&(index, retraction)| {
            (2 * index as u64 + u64::from(retraction) + 1).wrapping_mul(seed | 1)
        });
        // Approvals and rejections are of what was there in both, so they come last; what is put comes in between.
        let run = |arrivals: &[Arrival]| {
            let mut rulings = Rulings::new();
            let mut marks = Vec::new();
            for (place, arrival) in arrivals.iter().enumerate() {
                for (number, (at, done)) in steps.iter().enumerate() {
                    let before = usize::from(*at) % arrivals.len();
                    if before == place && matches!(done, Done::Put(_) | Done::Delete) {
                        rulings.does(done, i64::try_from(10 * number + 5).unwrap());
                    }
                }
                rulings.arrives(&all, &mut marks, *arrival);
            }
            for (number, (_, done)) in steps.iter().enumerate() {
                if matches!(done, Done::Approve(_) | Done::Reject(_)) {
                    rulings.does(done, i64::try_from(10 * number + 5).unwrap());
                }
            }
            rulings.figures()
        };
        prop_assert_eq!(run(&arrivals), run(&shuffled));
    }

    #[test]
    fn a_retraction_and_an_approval_change_places_freely(
        sender in proptest::sample::select(vec![REPORTER, REVIEWER]),
        by in proptest::sample::select(vec![REPORTER, REVIEWER]),
        reject in any::<bool>(),
    ) {
        let run = |retracted_first: bool| {
            let mut rulings = Rulings::new();
            rulings.rule(1, "block", sender);
            if retracted_first {
                rulings.retract(1, by);
            }
            let _ = if reject { rulings.reject(1) } else { rulings.approve(1) };
            if !retracted_first {
                rulings.retract(1, by);
            }
            let effective = rulings.state.candidate(rulings.id(1)).unwrap().is_effective();
            (rulings.applies().map(str::to_owned), effective)
        };
        prop_assert_eq!(run(true), run(false));
    }

    #[test]
    fn what_is_kept_of_a_ruling_says_whether_it_is_effective(
        all in proptest::collection::vec(sent_ruling(), 1..7),
    ) {
        let mut rulings = Rulings::new();
        for index in 0..all.len() {
            rulings.arrives(&all, &mut Vec::new(), (index, false));
            if all[index].retracted_by.is_some() {
                rulings.arrives(&all, &mut Vec::new(), (index, true));
            }
        }
        for (index, sent) in all.iter().enumerate() {
            let id = rulings.id(10 * i64::try_from(index).unwrap() + 1);
            let ruling = rulings.state.candidate(id).unwrap();
            let is_entitled = |names: &str| roles(names).permit(Role::Reviewer);
            let taken_back = sent.retracted_by.is_some_and(is_entitled);
            prop_assert_eq!(ruling.is_effective(), is_entitled(sent.sender) && !taken_back);
            let kept = ruling.ruling.as_ref().unwrap();
            prop_assert_eq!(&kept.roles, &roles(sent.sender));
            prop_assert_eq!(kept.taken_back == TakenBack::No, sent.retracted_by.is_none());
        }
    }
}
