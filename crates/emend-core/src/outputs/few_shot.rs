//! From live ratings to a set of examples.

use jiff::Timestamp;
use uuid::Uuid;

use super::{RatedTexts, RatingClass, rating::cut};
use crate::{
    contest::VoterKey,
    ids::{AcceptOrder, FeedbackId},
    kinds::{Example, FewShotSet},
    policy::WindowPolicy,
};

/// The pseudonym of what was rated: equal for all ratings of one target id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RatedId(pub Uuid);

/// A rating as a window holds it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rated {
    /// Its feedback.
    pub feedback: FeedbackId,
    /// Its place among all ratings.
    pub accept_order: AcceptOrder,
    /// Who rated.
    pub voter: VoterKey,
    /// What was rated.
    pub rated: RatedId,
    /// What it counts as.
    pub class: RatingClass,
    /// The version of the prompt that made the output, as the rating says; may be empty.
    pub prompt_version: String,
    /// When its feedback was received.
    pub received_at: Timestamp,
    /// It was retracted or redacted, and never counts again.
    pub excluded: bool,
    /// It is the newest of its voter's ratings of that output that are not excluded.
    pub live: bool,
    /// What it says; empty where it is excluded.
    pub texts: RatedTexts,
}

impl Rated {
    /// Which of two ratings is newer: the one with the greater place; where they are equal, that with the greater id.
    pub fn place(&self) -> (AcceptOrder, FeedbackId) {
        (self.accept_order, self.feedback)
    }
}

/// What a field of a value takes beside its text, at most: numbers and lengths in the encoding.
const FIELD_BYTES: usize = 8;

/// The set that these live ratings come to: the newest of each class, as many as the policy says. The newest that fit in
/// `max_bytes` are in it; an example that does not fit leaves its room to older ones.
pub fn set_of(live: &[&Rated], policy: &WindowPolicy, max_bytes: usize) -> FewShotSet {
    let mut newest: Vec<&Rated> = live.to_vec();
    newest.sort_unstable_by_key(|rated| std::cmp::Reverse(rated.place()));
    let of = |class, count: u32| {
        newest
            .iter()
            .filter(move |rated| rated.class == class)
            .take(count as usize)
    };
    let mut shown: Vec<&Rated> = [RatingClass::Good, RatingClass::Bad]
        .into_iter()
        .flat_map(|class| of(class, policy.room(class)))
        .copied()
        .collect();
    shown.sort_unstable_by_key(|rated| std::cmp::Reverse(rated.place()));
    let mut set = FewShotSet {
        language: policy.language,
        ..FewShotSet::default()
    };
    let mut bytes = FIELD_BYTES;
    for rated in shown {
        let example = example(rated, policy.max_text_chars as usize);
        let with = bytes + size(&example);
        if with > max_bytes {
            continue;
        }
        bytes = with;
        match rated.class {
            RatingClass::Good => set.good.push(example),
            RatingClass::Bad => set.bad.push(example),
            RatingClass::Neutral => {}
        }
    }
    set
}

fn example(rated: &Rated, max_chars: usize) -> Example {
    let is_bad = rated.class == RatingClass::Bad;
    let shown = |text: &str| {
        let mut text = text.to_owned();
        cut(&mut text, max_chars);
        text
    };
    let texts = &rated.texts;
    let right = if texts.corrected.is_empty() {
        &texts.judgement
    } else {
        &texts.corrected
    };
    Example {
        feedback: rated.feedback,
        input: shown(&texts.input),
        output: shown(&texts.output),
        corrected: if is_bad { shown(right) } else { String::new() },
        issues: if is_bad {
            texts.issues.iter().map(|issue| shown(issue)).collect()
        } else {
            Vec::new()
        },
    }
}

/// The bytes that an example takes in an encoded value, at most.
fn size(example: &Example) -> usize {
    let id = example.feedback.to_string();
    let texts = [&id, &example.input, &example.output, &example.corrected];
    let texts = texts.into_iter().chain(&example.issues);
    texts.map(|text| text.len() + FIELD_BYTES).sum::<usize>() + FIELD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rated(place: i64, class: RatingClass) -> Rated {
        Rated {
            feedback: FeedbackId(Uuid::from_u128(u128::try_from(place).unwrap())),
            accept_order: AcceptOrder(place),
            voter: VoterKey(Uuid::nil()),
            rated: RatedId(Uuid::nil()),
            class,
            prompt_version: String::new(),
            received_at: Timestamp::UNIX_EPOCH,
            excluded: false,
            live: true,
            texts: RatedTexts {
                input: format!("in {place}"),
                output: format!("out {place}"),
                issues: vec!["wrong".into()],
                corrected: "right".into(),
                judgement: String::new(),
            },
        }
    }

    fn outputs(examples: &[Example]) -> Vec<&str> {
        examples.iter().map(|example| example.output.as_str()).collect()
    }

    fn set(live: &[Rated], policy: &WindowPolicy, max_bytes: usize) -> FewShotSet {
        set_of(&live.iter().collect::<Vec<_>>(), policy, max_bytes)
    }

    #[test]
    fn the_newest_five_good_and_three_bad_are_shown_newest_first() {
        use RatingClass::{Bad, Good, Neutral};
        let live: Vec<Rated> = (1..=12)
            .map(|place| {
                rated(
                    place,
                    [Good, Bad, Neutral][usize::from(place % 3 == 0) + usize::from(place == 12)],
                )
            })
            .collect();
        let set = set(&live, &WindowPolicy::default(), usize::MAX);
        assert_eq!(
            outputs(&set.good),
            ["out 11", "out 10", "out 8", "out 7", "out 5"]
        );
        assert_eq!(outputs(&set.bad), ["out 9", "out 6", "out 3"]);
        assert!(
            set.good
                .iter()
                .all(|good| good.corrected.is_empty() && good.issues.is_empty())
        );
        assert!(
            set.bad
                .iter()
                .all(|bad| bad.corrected == "right" && bad.issues == ["wrong"])
        );
    }

    #[test]
    fn of_ratings_at_one_place_the_greater_id_is_newer() {
        let mut live = [rated(7, RatingClass::Good), rated(8, RatingClass::Good)];
        live[1].accept_order = AcceptOrder(7);
        let policy = WindowPolicy {
            good: 1,
            ..WindowPolicy::default()
        };
        assert_eq!(outputs(&set(&live, &policy, usize::MAX).good), ["out 8"]);
        live.reverse();
        assert_eq!(outputs(&set(&live, &policy, usize::MAX).good), ["out 8"]);
    }

    #[test]
    fn texts_are_cut_at_a_character() {
        let mut one = rated(1, RatingClass::Bad);
        one.texts.input = "é".repeat(300);
        one.texts.issues = vec!["日".repeat(300)];
        let policy = WindowPolicy {
            max_text_chars: 100,
            ..WindowPolicy::default()
        };
        let set = set(&[one], &policy, usize::MAX);
        assert_eq!(set.bad[0].input, "é".repeat(100));
        assert_eq!(set.bad[0].issues, ["日".repeat(100)]);
    }

    #[test]
    fn a_set_that_would_be_too_large_goes_without_its_oldest_examples() {
        let live = [
            rated(1, RatingClass::Good),
            rated(2, RatingClass::Bad),
            rated(3, RatingClass::Good),
        ];
        let whole = set(&live, &WindowPolicy::default(), usize::MAX);
        let bytes = FIELD_BYTES + whole.examples().map(size).sum::<usize>();
        assert_eq!(set(&live, &WindowPolicy::default(), bytes), whole);
        let smaller = set(&live, &WindowPolicy::default(), bytes - 1);
        assert_eq!(
            (outputs(&smaller.good), outputs(&smaller.bad)),
            (vec!["out 3"], vec!["out 2"])
        );
        assert!(set(&live, &WindowPolicy::default(), 10).is_empty());
    }

    #[test]
    fn an_example_that_alone_is_too_large_leaves_its_room_to_the_others() {
        let mut live = [
            rated(1, RatingClass::Good),
            rated(2, RatingClass::Bad),
            rated(3, RatingClass::Good),
        ];
        live[2].texts.output = "long ".repeat(100);
        let set = set(&live, &WindowPolicy::default(), 300);
        assert_eq!(
            (outputs(&set.good), outputs(&set.bad)),
            (vec!["out 1"], vec!["out 2"])
        );
    }
}
