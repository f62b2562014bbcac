//! From live ratings to a set of examples: an output stands in it once, whoever rated it.

use jiff::Timestamp;
use uuid::Uuid;

use super::{Example, FewShotSet, RatedTexts, RatingClass, WindowPolicy};
use crate::{
    ids::{AcceptOrder, FeedbackId},
    text::cut,
    voter::VoterKey,
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

/// Where a rating stands among all of its contest: the greater accept order is newer; where they are equal, the greater id.
pub type Place = (AcceptOrder, FeedbackId);

impl Rated {
    /// Which of two ratings is newer: the one with the greater place.
    pub fn place(&self) -> Place {
        (self.accept_order, self.feedback)
    }
}

/// What the live ratings of one output come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutputTally {
    /// The output.
    pub rated: RatedId,
    /// How many live ratings say that it is good.
    pub good: u32,
    /// How many say that it is bad. Neutral ones count for neither.
    pub bad: u32,
    /// The place of the newest live rating of its class; none where it has none.
    pub place: Option<Place>,
}

impl OutputTally {
    /// An output that nobody rated.
    pub const fn new(rated: RatedId) -> Self {
        Self {
            rated,
            good: 0,
            bad: 0,
            place: None,
        }
    }

    /// What it counts as: what more of its live ratings say, good or bad; nothing where neither is more.
    pub const fn class(&self) -> Option<RatingClass> {
        if self.good > self.bad {
            Some(RatingClass::Good)
        } else if self.bad > self.good {
            Some(RatingClass::Bad)
        } else {
            None
        }
    }

    /// Counts a rating that becomes live, or is live no longer. Its place is then to be found anew.
    pub(crate) fn count(&mut self, class: RatingClass, live: bool) {
        let count = match class {
            RatingClass::Good => &mut self.good,
            RatingClass::Bad => &mut self.bad,
            RatingClass::Neutral => return,
        };
        *count = if live {
            count.saturating_add(1)
        } else {
            count.saturating_sub(1)
        };
    }

    /// Finds its place among these ratings.
    pub(crate) fn find_place<'a>(&mut self, ratings: impl IntoIterator<Item = &'a Rated>) {
        let class = self.class();
        self.place = ratings
            .into_iter()
            .filter(|rating| rating.live && rating.rated == self.rated && Some(rating.class) == class)
            .map(Rated::place)
            .max();
    }
}

/// How many of the newest live bad ratings of an output say what is wrong with it, and what is right.
pub const VOICES: u32 = 16;

/// How many of the newest live ratings of an output of this class its example is made of.
pub const fn voices(class: RatingClass) -> u32 {
    match class {
        RatingClass::Good => 1,
        RatingClass::Neutral => 0,
        RatingClass::Bad => VOICES,
    }
}

/// What a field of a value takes beside its text, at most: numbers and lengths in the encoding.
const FIELD_BYTES: usize = 8;

/// The set that these outputs come to: the newest of each class, as many as the policy says, each once. Of the ratings those
/// are needed that examples are made of: [`voices`]. The newest that fit in `max_bytes` are in it; an example that does not
/// fit leaves its room to older ones.
pub fn set_of(
    outputs: &[OutputTally],
    ratings: &[Rated],
    policy: &WindowPolicy,
    max_bytes: usize,
) -> FewShotSet {
    let mut newest: Vec<(Place, RatingClass, RatedId)> = outputs
        .iter()
        .filter_map(|output| Some((output.place?, output.class()?, output.rated)))
        .collect();
    newest.sort_unstable_by(|a, b| b.cmp(a));
    let mut room = RatingClass::ALL.map(|class| (class, policy.room(class)));
    newest.retain(|(_, class, _)| {
        let left = room.iter_mut().find(|(shown, left)| shown == class && *left > 0);
        left.map(|(_, left)| *left -= 1).is_some()
    });
    let mut set = FewShotSet {
        language: policy.language,
        ..FewShotSet::default()
    };
    let mut bytes = FIELD_BYTES;
    for (_, class, rated) in newest {
        let Some(example) = example(rated, class, ratings, policy.max_text_chars as usize) else {
            continue;
        };
        let with = bytes + size(&example);
        if with > max_bytes {
            continue;
        }
        bytes = with;
        match class {
            RatingClass::Good => set.good.push(example),
            RatingClass::Bad => set.bad.push(example),
            RatingClass::Neutral => {}
        }
    }
    set
}

/// What the newest live ratings of an output of its class say together.
fn example(rated: RatedId, class: RatingClass, ratings: &[Rated], max_chars: usize) -> Option<Example> {
    let mut voices_of: Vec<&Rated> = ratings
        .iter()
        .filter(|rating| rating.live && rating.rated == rated && rating.class == class)
        .collect();
    voices_of.sort_unstable_by_key(|rating| std::cmp::Reverse(rating.place()));
    voices_of.truncate(voices(class) as usize);
    let newest = voices_of.first()?;
    let shown = |text: &str| {
        let mut text = text.to_owned();
        cut(&mut text, max_chars);
        text
    };
    let mut example = Example {
        feedback: newest.feedback,
        rated,
        input: shown(&newest.texts.input),
        output: shown(&newest.texts.output),
        corrected: String::new(),
        issues: Vec::new(),
    };
    if class == RatingClass::Bad {
        let right = |rating: &&'_ Rated| rating.texts.right().map(shown);
        example.corrected = voices_of.iter().find_map(right).unwrap_or_default();
        example.issues = issues_of(&voices_of, shown);
    }
    Some(example)
}

/// The issues of these ratings, each once, most named first; of those named as often, what the newer rating names first.
fn issues_of(newest_first: &[&Rated], shown: impl Fn(&str) -> String) -> Vec<String> {
    let mut named: Vec<(String, usize)> = Vec::new();
    for rating in newest_first {
        let mut own: Vec<String> = Vec::new();
        for issue in rating.texts.issues.iter().map(|issue| shown(issue)) {
            if !own.contains(&issue) {
                own.push(issue);
            }
        }
        for issue in own {
            match named.iter_mut().find(|(known, _)| *known == issue) {
                Some((_, count)) => *count += 1,
                None => named.push((issue, 1)),
            }
        }
    }
    named.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    named.into_iter().map(|(issue, _)| issue).collect()
}

/// The bytes that an example takes in an encoded value, at most.
fn size(example: &Example) -> usize {
    let id = example.feedback.to_string();
    let rated = example.rated.0.to_string();
    let texts = [&id, &rated, &example.input, &example.output, &example.corrected];
    let texts = texts.into_iter().chain(&example.issues);
    texts.map(|text| text.len() + FIELD_BYTES).sum::<usize>() + FIELD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    use RatingClass::{Bad, Good, Neutral};

    /// A live rating at this place, of an output of its own.
    fn rated(place: i64, class: RatingClass) -> Rated {
        Rated {
            feedback: FeedbackId(Uuid::from_u128(u128::try_from(place).unwrap())),
            accept_order: AcceptOrder(place),
            voter: VoterKey(Uuid::nil()),
            rated: RatedId(Uuid::from_u128(u128::try_from(place).unwrap())),
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

    /// The same of one output.
    fn of_one(place: i64, class: RatingClass) -> Rated {
        Rated {
            rated: RatedId(Uuid::nil()),
            ..rated(place, class)
        }
    }

    fn outputs(examples: &[Example]) -> Vec<&str> {
        examples.iter().map(|example| example.output.as_str()).collect()
    }

    fn tallies(live: &[Rated]) -> Vec<OutputTally> {
        let mut outputs: Vec<OutputTally> = Vec::new();
        for rating in live {
            if !outputs.iter().any(|known| known.rated == rating.rated) {
                outputs.push(OutputTally::new(rating.rated));
            }
            for output in outputs.iter_mut().filter(|known| known.rated == rating.rated) {
                output.count(rating.class, true);
            }
        }
        for output in &mut outputs {
            output.find_place(live);
        }
        outputs
    }

    fn set(live: &[Rated], policy: &WindowPolicy, max_bytes: usize) -> FewShotSet {
        set_of(&tallies(live), live, policy, max_bytes)
    }

    fn whole(live: &[Rated]) -> FewShotSet {
        set(live, &WindowPolicy::default(), usize::MAX)
    }

    #[test]
    fn the_newest_five_good_and_three_bad_are_shown_newest_first() {
        let live: Vec<Rated> = (1..=12)
            .map(|place| {
                rated(
                    place,
                    [Good, Bad, Neutral][usize::from(place % 3 == 0) + usize::from(place == 12)],
                )
            })
            .collect();
        let set = whole(&live);
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
    fn an_output_stands_once_in_the_block_that_more_raters_name() {
        for (classes, good, bad) in [
            (&[Good, Good, Good][..], vec!["out 3"], vec![]),
            (&[Good, Good, Good, Bad], vec!["out 3"], vec![]),
            (&[Bad, Good, Bad], vec![], vec!["out 3"]),
            (&[Good, Bad, Neutral], vec![], vec![]),
            (&[Neutral, Neutral, Bad, Neutral], vec![], vec!["out 3"]),
            (&[Neutral], vec![], vec![]),
        ] {
            let live: Vec<Rated> = (1..)
                .zip(classes)
                .map(|(place, class)| of_one(place, *class))
                .collect();
            let set = whole(&live);
            assert_eq!(
                (outputs(&set.good), outputs(&set.bad)),
                (good, bad),
                "{classes:?}"
            );
        }
    }

    #[test]
    fn a_bad_output_shows_the_newest_correction_and_each_issue_once_most_named_first() {
        let mut live: Vec<Rated> = (1..=20).map(|place| of_one(place, Bad)).collect();
        live.push(of_one(21, Good));
        for rating in &mut live {
            let place = rating.accept_order.0;
            rating.texts.corrected = match place {
                // Beyond the newest 16.
                4 => "too old".into(),
                9 => "older".into(),
                _ => String::new(),
            };
            rating.texts.judgement = if place == 12 {
                "newest".into()
            } else {
                String::new()
            };
            rating.texts.issues = match place {
                1..=4 => vec!["forgotten".into()],
                5..=8 => vec!["vague".into()],
                15 => vec!["late".into(), "long".into()],
                16 => vec!["long".into(), "once".into(), "once".into(), "once".into()],
                _ => Vec::new(),
            };
        }
        let set = whole(&live);
        assert_eq!((set.good.len(), set.bad.len()), (0, 1));
        let shown = &set.bad[0];
        assert_eq!(shown.output, "out 20");
        assert_eq!(shown.feedback, live[19].feedback);
        assert_eq!(shown.corrected, "newest");
        assert_eq!(shown.issues, ["vague", "long", "once", "late"]);
    }

    #[test]
    fn of_ratings_at_one_place_the_greater_id_is_newer() {
        let mut live = [rated(7, Good), rated(8, Good)];
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
        let mut one = rated(1, Bad);
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
        let live = [rated(1, Good), rated(2, Bad), rated(3, Good)];
        let whole = whole(&live);
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
        let mut live = [rated(1, Good), rated(2, Bad), rated(3, Good)];
        live[2].texts.output = "long ".repeat(100);
        let set = set(&live, &WindowPolicy::default(), 400);
        assert_eq!(
            (outputs(&set.good), outputs(&set.bad)),
            (vec!["out 1"], vec!["out 2"])
        );
    }
}
