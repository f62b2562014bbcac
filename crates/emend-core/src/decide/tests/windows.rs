//! Windows: the newest live ratings are shown, whatever the order in which they arrive.

use std::collections::{BTreeMap, HashMap, HashSet};

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::{
    outcome::OutcomeState,
    ratings::{Example, FewShotSet, OutputTally, RatedId, RatedTexts, RatingClass, voices},
    voter::VoterKey,
};

/// What is stored of one target's ratings. Each group of events is decided on no more of it than the rules ask for.
struct Window {
    state: ContestState,
    stored: Vec<Rated>,
    outputs: HashMap<RatedId, OutputTally>,
    policy: Policy,
    revision: i64,
}

fn id(number: u128) -> FeedbackId {
    FeedbackId(Uuid::from_u128(number))
}

fn rated(number: u128, order: i64, voter: u8, output: u8, class: RatingClass) -> Rated {
    Rated {
        feedback: id(number),
        accept_order: AcceptOrder(order),
        voter: VoterKey(Uuid::from_u128(voter.into())),
        rated: RatedId(Uuid::from_u128(output.into())),
        class,
        prompt_version: String::new(),
        received_at: jiff::Timestamp::UNIX_EPOCH,
        excluded: false,
        live: false,
        texts: RatedTexts {
            input: format!("in {number}"),
            output: format!("out {number}"),
            ..RatedTexts::default()
        },
    }
}

fn recorded(rating: &Rated) -> Event {
    Event::Rated {
        rating: Box::new(rating.clone()),
        excluded: None,
    }
}

fn retracted(number: u128) -> Event {
    Event::RatingExcluded {
        feedback: id(number),
        by: Exclusion::Retraction,
    }
}

impl Window {
    fn new() -> Self {
        let key = ResourceKey::parse("research", Some(Kind::FewShotSet), "INTERPRET", "", "").unwrap();
        Self {
            state: ContestState::new(key),
            stored: Vec::new(),
            outputs: HashMap::new(),
            policy: Policy::default_for(Kind::FewShotSet),
            revision: 0,
        }
    }

    /// Fills in what a decision on these events needs, and no more.
    fn read(&mut self, events: &[Event]) {
        let mut needed: BTreeMap<FeedbackId, Rated> = BTreeMap::new();
        let mut excluded: HashMap<_, usize> = HashMap::new();
        let mut touched: HashMap<RatedId, usize> = HashMap::new();
        for event in events {
            let (rating, is_exclusion) = match event {
                Event::Rated { rating, excluded } => (Some((**rating).clone()), excluded.is_some()),
                Event::RatingExcluded { feedback, .. } => {
                    let known = self.stored.iter().find(|rating| rating.feedback == *feedback);
                    needed.extend(known.map(|known| (known.feedback, known.clone())));
                    (known.cloned(), true)
                }
                _ => (None, false),
            };
            if let Some(rating) = rating {
                *excluded.entry((rating.voter, rating.rated)).or_default() += usize::from(is_exclusion);
                *touched.entry(rating.rated).or_default() += 1;
            }
        }
        let mut newest: Vec<&Rated> = self.stored.iter().filter(|rating| !rating.excluded).collect();
        newest.sort_unstable_by_key(|rating| std::cmp::Reverse(rating.place()));
        for (voter_and_output, exclusions) in excluded {
            let same = newest
                .iter()
                .filter(|rating| (rating.voter, rating.rated) == voter_and_output);
            needed.extend(
                same.take(exclusions + 1)
                    .map(|rating| (rating.feedback, (*rating).clone())),
            );
        }
        let mut outputs: Vec<&OutputTally> = self.outputs.values().collect();
        outputs.sort_unstable_by_key(|output| std::cmp::Reverse(output.place));
        self.state.outputs = touched
            .keys()
            .filter_map(|rated| self.outputs.get(rated).copied())
            .collect();
        let window = &self.policy.window;
        let mut examples: Vec<(RatedId, RatingClass, usize)> = Vec::new();
        for (class, count) in [(Good, window.good), (Bad, window.bad)] {
            let others = outputs
                .iter()
                .filter(|output| output.class() == Some(class) && !touched.contains_key(&output.rated));
            for output in others.take(count as usize) {
                self.state.outputs.push(**output);
                examples.push((output.rated, class, 0));
            }
            examples.extend(touched.iter().map(|(rated, events)| (*rated, class, *events)));
        }
        for (rated, class, events) in examples {
            let live = newest
                .iter()
                .filter(|rating| rating.live && rating.rated == rated && rating.class == class);
            let live = live.take(voices(class) as usize + events);
            needed.extend(live.map(|rating| (rating.feedback, (*rating).clone())));
        }
        self.state.ratings = needed.into_values().collect();
    }

    fn apply(&mut self, events: &[Event]) -> Vec<Decision> {
        self.read(events);
        let mut decisions = Vec::new();
        for event in events {
            let nothing = ContestState::new(self.state.key.clone());
            let state = std::mem::replace(&mut self.state, nothing);
            let mut decision = decide(state, event, &self.policy, Timestamp::UNIX_EPOCH).unwrap();
            if decision.resource.is_some() {
                self.revision += 1;
                decision.stamp(Revision(self.revision));
            }
            self.state = decision.after.clone();
            decisions.push(decision);
        }
        for rating in std::mem::take(&mut self.state.ratings) {
            self.stored.retain(|stored| stored.feedback != rating.feedback);
            self.stored.push(rating);
        }
        for output in std::mem::take(&mut self.state.outputs) {
            self.outputs.insert(output.rated, output);
        }
        decisions
    }

    fn tell(&mut self, event: Event) -> (OutcomeState, Option<Reason>) {
        let outcome = self.apply(&[event]).pop().unwrap().outcome.unwrap();
        (outcome.state, outcome.reason)
    }

    fn set(&self) -> FewShotSet {
        match self.state.resource.as_ref().map(|current| &current.value.learned) {
            Some(Learned::FewShotSet(set)) => set.clone(),
            _ => FewShotSet::default(),
        }
    }

    fn shown(&self) -> (Vec<u128>, Vec<u128>) {
        let ids = |examples: &[Example]| {
            examples
                .iter()
                .map(|example| example.feedback.0.as_u128())
                .collect()
        };
        let set = self.set();
        (ids(&set.good), ids(&set.bad))
    }
}

use RatingClass::{Bad, Good, Neutral};

#[test]
fn a_rating_is_told_whether_its_output_is_an_example_of_its_class() {
    let mut window = Window::new();
    window.policy.window.good = 2;
    let tell = |window: &mut Window, number, voter, output, class| {
        let order = i64::try_from(number).unwrap();
        window.tell(recorded(&rated(number, order, voter, output, class)))
    };
    let applied = (OutcomeState::Applied, None);
    let without_effect = |reason| (OutcomeState::NoEffect, Some(reason));
    assert_eq!(tell(&mut window, 10, 1, 1, Good), applied);
    assert_eq!(tell(&mut window, 20, 1, 2, Good), applied);
    assert_eq!(tell(&mut window, 30, 2, 1, Good), applied);
    assert_eq!(window.shown(), (vec![30, 20], vec![]));
    assert_eq!(
        tell(&mut window, 5, 3, 1, Good),
        applied,
        "its output is shown, by a newer rating"
    );
    assert_eq!(window.revision, 3, "what changes nothing is not published");
    assert_eq!(
        tell(&mut window, 7, 3, 3, Good),
        without_effect(Reason::NotInWindow)
    );
    assert_eq!(
        tell(&mut window, 40, 3, 2, Neutral),
        without_effect(Reason::Neutral)
    );
    assert_eq!(tell(&mut window, 15, 1, 2, Bad), without_effect(Reason::Replaced));
    assert_eq!(tell(&mut window, 45, 4, 1, Bad), without_effect(Reason::Outvoted));
    assert_eq!(window.revision, 3);
    assert_eq!(tell(&mut window, 50, 1, 2, Bad), applied);
    assert_eq!(window.shown(), (vec![30, 7], vec![50]));
    assert_eq!(
        window.tell(retracted(50)),
        (OutcomeState::Withdrawn, Some(Reason::Retracted))
    );
    assert_eq!(
        window.shown(),
        (vec![30, 20], vec![]),
        "the one that it had replaced counts again"
    );
    assert_eq!(
        window.tell(retracted(30)),
        without_effect(Reason::Retracted),
        "others still say that it is good"
    );
    assert_eq!(window.shown(), (vec![20, 10], vec![]));
    assert_eq!(
        window.tell(retracted(10)),
        (OutcomeState::Withdrawn, Some(Reason::Retracted)),
        "as many say that it is bad"
    );
    assert_eq!(window.shown(), (vec![20, 7], vec![]));
}

#[test]
fn a_rating_whose_exclusion_came_first_is_never_shown() {
    let mut window = Window::new();
    for (number, excluded, reason) in [
        (1, Exclusion::Retraction, Reason::Retracted),
        (2, Exclusion::Redaction, Reason::Redacted),
    ] {
        let event = Event::Rated {
            rating: Box::new(rated(number, 1, 1, 1, Good)),
            excluded: Some(excluded),
        };
        assert_eq!(window.tell(event), (OutcomeState::NoEffect, Some(reason)));
    }
    assert_eq!((window.set(), window.revision), (FewShotSet::default(), 0));
}

#[test]
fn with_nothing_left_to_show_there_is_no_resource() {
    let mut window = Window::new();
    window.apply(&[recorded(&rated(1, 1, 1, 1, Bad))]);
    let redacted = Event::RatingExcluded {
        feedback: id(1),
        by: Exclusion::Redaction,
    };
    let decision = window.apply(&[redacted]).pop().unwrap();
    assert_eq!(
        decision.resource,
        Some(ResourceChange::Delete { candidate: None })
    );
    assert_eq!((decision.cause, window.state.resource), (Cause::Erasure, None));
}

#[test]
fn while_frozen_nothing_is_added_and_what_is_excluded_goes() {
    let mut window = Window::new();
    window.apply(&[
        recorded(&rated(1, 1, 1, 1, Good)),
        recorded(&rated(2, 2, 2, 2, Good)),
    ]);
    window.policy.frozen = true;
    let waits = (OutcomeState::Pending, Some(Reason::Frozen));
    assert_eq!(window.tell(recorded(&rated(3, 3, 3, 3, Good))), waits);
    let never_counted = Event::Rated {
        rating: Box::new(rated(4, 4, 4, 1, Good)),
        excluded: Some(Exclusion::Redaction),
    };
    assert_eq!(
        window.tell(never_counted),
        (OutcomeState::NoEffect, Some(Reason::Redacted))
    );
    assert_eq!(window.shown(), (vec![2, 1], vec![]));
    assert_eq!(
        window.tell(retracted(1)),
        (OutcomeState::Withdrawn, Some(Reason::Retracted))
    );
    assert_eq!(window.shown(), (vec![2], vec![]));
    assert!(window.apply(&[Event::PolicyChanged])[0].resource.is_none());
    window.policy.frozen = false;
    let released = window.apply(&[Event::PolicyChanged]).pop().unwrap();
    assert_eq!(
        (released.cause, window.shown()),
        (Cause::Policy, (vec![3, 2], vec![]))
    );
}

#[test]
fn while_frozen_an_example_goes_with_any_rating_that_may_be_heard_in_it() {
    let mut window = Window::new();
    window.apply(&[1, 2, 3].map(|number| {
        let voter = u8::try_from(number).unwrap();
        recorded(&rated(number, number.try_into().unwrap(), voter, 1, Bad))
    }));
    window.policy.frozen = true;
    window.apply(&[recorded(&rated(4, 4, 1, 1, Good))]);
    let redacted = Event::RatingExcluded {
        feedback: id(1),
        by: Exclusion::Redaction,
    };
    assert_eq!(
        window.tell(redacted),
        (OutcomeState::Withdrawn, Some(Reason::Redacted)),
        "it is live no longer, and its issues may still be shown"
    );
    assert_eq!(window.shown(), (vec![], vec![]));
    window.policy.frozen = false;
    window.apply(&[Event::PolicyChanged]);
    assert_eq!(window.shown(), (vec![], vec![3]));
}

#[test]
fn a_set_that_has_no_room_waits_for_it() {
    let mut window = Window::new();
    window.state.full = true;
    let decision = window.tell(recorded(&rated(1, 1, 1, 1, Good)));
    assert_eq!(decision, (OutcomeState::Pending, Some(Reason::ResourceLimit)));
    window.state.full = false;
    window.apply(&[recorded(&rated(2, 2, 2, 1, Neutral))]);
    assert_eq!(window.shown(), (vec![1], vec![]));
}

#[test]
fn a_smaller_window_shows_fewer_and_a_larger_one_more() {
    let mut window = Window::new();
    for number in 1..=9_u8 {
        window.apply(&[recorded(&rated(number.into(), number.into(), 1, number, Good))]);
    }
    window.policy.window.good = 1;
    window.apply(&[Event::PolicyChanged]);
    assert_eq!(window.shown().0, [9]);
    window.policy.window.good = 20;
    window.apply(&[Event::PolicyChanged]);
    assert_eq!(window.shown().0, [9, 8, 7, 6, 5, 4, 3, 2, 1]);
    window.policy.window.good = 0;
    window.apply(&[Event::PolicyChanged]);
    assert_eq!(window.state.resource, None);
}

#[test]
fn people_set_ratings_and_nothing_else() {
    let value = ResourceValue::new("INTERPRET", Learned::FewShotSet(FewShotSet::default()));
    for event in [
        Event::Put {
            value,
            origin: Origin::Operator,
            reason: None,
        },
        Event::Delete { reason: None },
        Event::Revert {
            revision: Revision(1),
            restore: None,
            reason: "no".into(),
        },
        Event::Erase,
    ] {
        let window = Window::new();
        let refused = decide(window.state, &event, &window.policy, Timestamp::UNIX_EPOCH).unwrap_err();
        assert_eq!(refused.refusal, Refusal::Window, "{event:?}");
    }
}

#[test]
fn only_windows_are_made_of_ratings() {
    for (kind, key, qualifier) in [
        (Kind::EntityAlias, "interpret", ""),
        (Kind::DomainRule, "example.org", "human"),
    ] {
        let key = ResourceKey::parse("research", Some(kind), key, qualifier, "").unwrap();
        let policy = Policy::default_for(kind);
        let event = recorded(&rated(1, 1, 1, 1, Good));
        let refused = decide(ContestState::new(key), &event, &policy, Timestamp::UNIX_EPOCH).unwrap_err();
        assert_eq!(refused.refusal, Refusal::WrongKind);
    }
}

/// The set by the definition: of each voter and output the newest rating that is not excluded counts; of these each output
/// once, where more say that it is good, or bad, at the place of the newest that says so.
fn expected(ratings: &[Rated], excluded: &HashSet<FeedbackId>, policy: &Policy) -> Option<Learned> {
    let mut newest: HashMap<_, &Rated> = HashMap::new();
    for rating in ratings
        .iter()
        .filter(|rating| !excluded.contains(&rating.feedback))
    {
        let known = newest.entry((rating.voter, rating.rated)).or_insert(rating);
        if known.place() < rating.place() {
            *known = rating;
        }
    }
    let mut of_outputs: BTreeMap<RatedId, Vec<&Rated>> = BTreeMap::new();
    for rating in newest.into_values() {
        of_outputs.entry(rating.rated).or_default().push(rating);
    }
    let mut examples = Vec::new();
    for (rated, mut ratings) in of_outputs {
        let count = |class| ratings.iter().filter(|rating| rating.class == class).count();
        let class = match count(Good).cmp(&count(Bad)) {
            std::cmp::Ordering::Greater => Good,
            std::cmp::Ordering::Less => Bad,
            std::cmp::Ordering::Equal => continue,
        };
        ratings.retain(|rating| rating.class == class);
        ratings.sort_by_key(|rating| std::cmp::Reverse(rating.place()));
        let newest = ratings[0];
        let heard = ratings.len().min(16);
        let bad = if class == Bad { &ratings[..heard] } else { &[] };
        let corrected = bad.iter().map(|rating| &rating.texts.corrected);
        let mut issues: Vec<(String, usize)> = Vec::new();
        for issue in bad.iter().flat_map(|rating| &rating.texts.issues) {
            match issues.iter_mut().find(|(known, _)| known == issue) {
                Some((_, count)) => *count += 1,
                None => issues.push((issue.clone(), 1)),
            }
        }
        issues.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let example = Example {
            feedback: newest.feedback,
            rated,
            input: newest.texts.input.clone(),
            output: newest.texts.output.clone(),
            corrected: corrected
                .into_iter()
                .find(|text| !text.is_empty())
                .cloned()
                .unwrap_or_default(),
            issues: issues.into_iter().map(|(issue, _)| issue).collect(),
        };
        examples.push((newest.place(), class, example));
    }
    examples.sort_by_key(|(place, ..)| std::cmp::Reverse(*place));
    let newest_of = |class, count: u32| {
        let block = examples.iter().filter(move |(_, other, _)| *other == class);
        block
            .take(count as usize)
            .map(|(.., example)| example.clone())
            .collect()
    };
    let set = FewShotSet {
        good: newest_of(Good, policy.window.good),
        bad: newest_of(Bad, policy.window.bad),
        ..FewShotSet::default()
    };
    (!set.is_empty()).then_some(Learned::FewShotSet(set))
}

proptest! {
    #[test]
    fn any_order_of_arrival_gives_the_same_set(
        ratings in proptest::collection::vec((0i64..24, 0u8..24, any::<u8>(), any::<u8>(), 0u8..4), 1..48),
        shuffle in any::<prop::sample::Index>(),
        seeds in proptest::collection::vec(any::<u64>(), 96),
        outputs in 1u8..5,
        classes in 1u8..4,
        group in 1usize..6,
        good in 0u32..4,
        bad in 0u32..3,
    ) {
        let all: Vec<Rated> = (1..)
            .zip(&ratings)
            .map(|(number, &(order, voter, output, class, _))| {
                let class = [Bad, Good, Neutral][usize::from(class % classes)];
                let mut rating = rated(number, order, voter, output % outputs, class);
                // Some say nothing of what is wrong, and some say the same.
                if number % 3 > 0 {
                    rating.texts.issues = vec![format!("issue {}", number % 5)];
                    rating.texts.corrected = format!("corrected {number}");
                }
                rating
            })
            .collect();
        // A quarter of them is excluded.
        let excluded: HashSet<FeedbackId> =
            all.iter().zip(&ratings).filter(|(_, rating)| rating.4 == 0).map(|(rating, _)| rating.feedback).collect();
        // Recorded (false) and excluded (true), in an order by the seeds.
        let mut arrivals: Vec<(u64, usize, bool)> = (0..all.len())
            .flat_map(|index| [(seeds[index], index, false), (seeds[index + all.len()], index, true)])
            .filter(|(_, index, is_exclusion)| !is_exclusion || excluded.contains(&all[*index].feedback))
            .collect();
        arrivals.sort_unstable();
        let middle = shuffle.index(arrivals.len());
        arrivals.rotate_left(middle);

        let mut window = Window::new();
        window.policy.window.good = good;
        window.policy.window.bad = bad;
        let (mut marked, mut known) = (HashSet::new(), HashSet::new());
        for arrivals in arrivals.chunks(group) {
            let mut events = Vec::new();
            for &(_, index, is_exclusion) in arrivals {
                let rating = &all[index];
                if !is_exclusion {
                    known.insert(rating.feedback);
                    let excluded = marked.contains(&rating.feedback).then_some(Exclusion::Redaction);
                    events.push(Event::Rated { rating: Box::new(rating.clone()), excluded });
                } else if marked.insert(rating.feedback) && known.contains(&rating.feedback) {
                    events.push(Event::RatingExcluded { feedback: rating.feedback, by: Exclusion::Retraction });
                }
            }
            window.apply(&events);
        }
        let shown = window.state.resource.as_ref().map(|current| current.value.learned.clone());
        prop_assert_eq!(shown, expected(&all, &excluded, &window.policy));
        for rating in &window.stored {
            prop_assert!(!(rating.live && rating.excluded));
        }
        for output in window.outputs.values() {
            let live = |class| {
                let live = window.stored.iter().filter(|rating| rating.live && rating.rated == output.rated);
                live.filter(|rating| rating.class == class).map(Rated::place).collect::<Vec<_>>()
            };
            let (good, bad) = (live(Good), live(Bad));
            prop_assert_eq!((output.good as usize, output.bad as usize), (good.len(), bad.len()));
            let place = match output.class() {
                Some(Good) => good.into_iter().max(),
                Some(_) => bad.into_iter().max(),
                None => None,
            };
            prop_assert_eq!(output.place, place);
        }
    }
}
