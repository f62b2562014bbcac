//! Ratings: what can be rated, how, and what each rating counts as.

use uuid::Uuid;

use super::{
    RatedId, alias,
    own::{self, OwnTarget},
};
use crate::{
    normalize::parse_exact,
    personal_data,
    text::cut,
    violation::{Invalid, Violations, bounded_prose, bounded_text},
};

/// What a rating counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RatingClass {
    /// The output is an example to follow.
    Good,
    /// It is neither; such a rating replaces an earlier one of its reporter and is never an example.
    Neutral,
    /// The output is an example to avoid.
    Bad,
}

impl RatingClass {
    /// All classes, in the order of their numbers on the wire.
    pub const ALL: [Self; 3] = [Self::Good, Self::Neutral, Self::Bad];

    /// The number on the wire and in databases.
    pub const fn number(self) -> i32 {
        match self {
            Self::Good => 1,
            Self::Neutral => 2,
            Self::Bad => 3,
        }
    }

    /// The class with this number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.number() == number)
    }

    /// The name: GOOD, NEUTRAL or BAD.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "GOOD",
            Self::Neutral => "NEUTRAL",
            Self::Bad => "BAD",
        }
    }
}

/// What can be rated, and with which values.
#[derive(Debug, Clone, Copy)]
pub struct RatingTarget {
    /// Its name; the key of its few-shot set.
    pub name: &'static str,
    /// The values that a rating may have.
    pub values: &'static [RatingValue],
    /// Whether a rating may say what the right judgement is.
    pub is_judgement: bool,
}

/// One value of a rating.
#[derive(Debug, Clone, Copy)]
pub struct RatingValue {
    /// Its name.
    pub name: &'static str,
    /// What it counts as.
    pub class: RatingClass,
}

const GOOD: RatingValue = RatingValue {
    name: "GOOD",
    class: RatingClass::Good,
};
const NEUTRAL: RatingValue = RatingValue {
    name: "NEUTRAL",
    class: RatingClass::Neutral,
};
const BAD: RatingValue = RatingValue {
    name: "BAD",
    class: RatingClass::Bad,
};

/// What can be rated in every namespace.
pub const TARGETS: &[RatingTarget] = &[
    RatingTarget {
        name: "INTERPRET",
        values: &[GOOD, BAD],
        is_judgement: false,
    },
    RatingTarget {
        name: "SUMMARIZE_HOURLY",
        values: &[GOOD, NEUTRAL, BAD],
        is_judgement: false,
    },
    RatingTarget {
        name: "SUMMARIZE_DAILY",
        values: &[GOOD, NEUTRAL, BAD],
        is_judgement: false,
    },
    RatingTarget {
        name: "EVALUATE",
        values: &[
            RatingValue {
                name: "CORRECT",
                class: RatingClass::Good,
            },
            RatingValue {
                name: "FALSE_POSITIVE",
                class: RatingClass::Bad,
            },
            RatingValue {
                name: "MISSED",
                class: RatingClass::Bad,
            },
        ],
        is_judgement: true,
    },
    RatingTarget {
        name: "TASK_EXTRACT",
        values: &[
            RatingValue {
                name: "APPROVED",
                class: RatingClass::Good,
            },
            RatingValue {
                name: "REJECTED",
                class: RatingClass::Bad,
            },
        ],
        is_judgement: false,
    },
];

/// The most bytes of an input, an output or a corrected text: 256 KiB. An example shows the beginning of them.
pub const RATED_TEXT_BYTES: usize = 256 << 10;
/// The most issues of one rating.
pub const MAX_ISSUES: usize = 10;
/// The most characters of one issue.
const ISSUE_CHARS: usize = 256;
/// The most characters of a judgement.
pub const JUDGEMENT_CHARS: usize = 256;
/// The most characters of a target id.
const TARGET_ID_CHARS: usize = 256;
/// The most characters of a prompt version, and of a value.
const NAME_CHARS: usize = 128;

/// A valid rating. `C` is what it counts as: `()` where that is not known.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rating<C = RatingClass> {
    /// What was asked for: the key of the few-shot set.
    pub target: String,
    /// The value given.
    pub value: String,
    /// What the value counts as.
    pub class: C,
    /// Which output was rated, by the application's own id.
    pub target_id: String,
    /// The version of the prompt that made it; may be empty.
    pub prompt_version: String,
    /// What can be erased.
    pub texts: RatedTexts,
}

/// The texts of a rating: personal parts, kept apart from all that counts. All empty once they are erased.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RatedTexts {
    /// What the AI was given.
    pub input: String,
    /// What it made of it.
    pub output: String,
    /// What is wrong with that.
    pub issues: Vec<String>,
    /// What it should have made of it; may be empty.
    pub corrected: String,
    /// The right judgement; may be empty.
    pub judgement: String,
}

impl RatedTexts {
    /// What is right, where they say: the corrected text, else the judgement.
    pub fn right(&self) -> Option<&str> {
        [&self.corrected, &self.judgement]
            .into_iter()
            .find(|text| !text.is_empty())
            .map(String::as_str)
    }
}

/// The fields of a rating as somebody sent or stored it.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    missing_docs,
    reason = "named as in emend.common.v1.Rating, which describes them"
)]
pub struct RatingFields<'a> {
    pub target: &'a str,
    pub value: &'a str,
    pub target_id: &'a str,
    pub input_text: &'a str,
    pub output_text: &'a str,
    pub prompt_version: &'a str,
    pub issues: &'a [String],
    pub corrected_text: &'a str,
    pub correct_judgement: &'a str,
    pub counts_as: Option<RatingClass>,
}

/// Why a new rating is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedRating {
    /// All that is wrong with it.
    pub violations: Violations,
    /// The rating of a target of the application's own, where only its settings refuse it: they have no such target or value, say
    /// that it counts otherwise, or that it is no judgement. It may have been stored before they said so.
    pub refused_by_settings: Option<Box<Rating<()>>>,
}

impl From<Violations> for RefusedRating {
    fn from(violations: Violations) -> Self {
        Self {
            violations,
            refused_by_settings: None,
        }
    }
}

impl Rating {
    /// Parses a rating as it was stored or travels: one whose texts were erased has none. Without `counts_as` it counts as what
    /// its value does in every namespace.
    pub fn parse(fields: RatingFields<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let target = parse_target(&mut violations, fields);
        let details = Details::parse(&mut violations, fields, !fields.has_no_text());
        let class = match (fields.counts_as, &target) {
            (Some(class), _) => Some(class),
            (None, Some((target, value))) => class_of(&mut violations, &[], target, value),
            (None, None) => None,
        };
        let parsed = target.zip(details).zip(class);
        violations.finish(parsed.map(|((target, details), class)| details.of(target, class)))
    }

    /// Parses a rating as somebody gives it, where the application has these targets of its own.
    pub fn parse_new(fields: RatingFields<'_>, own: &[OwnTarget]) -> Result<Self, RefusedRating> {
        let mut violations = Violations::new();
        let fields = RatingFields {
            target: alias::target_name(fields.target),
            ..fields
        };
        let target = parse_target(&mut violations, fields);
        let details = Details::parse(&mut violations, fields, true);
        let is_otherwise_valid = violations.is_empty();
        let class = target
            .as_ref()
            .and_then(|(target, value)| class_of(&mut violations, own, target, value));
        if class.is_some() && fields.counts_as.is_some_and(|stated| Some(stated) != class) {
            violations.add("counts_as", "is output only: what the value counts as");
        }
        if let (Some((name, _)), Some(details)) = (&target, &details)
            && own::target(own, name).is_some_and(|target| !target.is_judgement())
            && !details.texts.judgement.is_empty()
        {
            violations.add(
                "correct_judgement",
                format!("must be empty: {name} is no judgement"),
            );
        }
        match (target.zip(details), class) {
            (Some((target, details)), Some(class)) if violations.is_empty() => Ok(details.of(target, class)),
            (given, _) => Err(RefusedRating {
                refused_by_settings: given
                    .filter(|((name, _), _)| {
                        is_otherwise_valid && TARGETS.iter().all(|target| target.name != name)
                    })
                    .map(|(target, details)| Box::new(details.of(target, ()))),
                violations,
            }),
        }
    }
}

impl<C> Rating<C> {
    /// The same with personal data in its texts masked. A mask may be longer than what it hides: the result is cut to the
    /// limit.
    #[must_use]
    pub fn masked(mut self) -> Self {
        let RatedTexts {
            input,
            output,
            issues,
            corrected,
            judgement,
        } = &mut self.texts;
        for text in [input, output, corrected] {
            mask(text, RATED_TEXT_BYTES);
            text.truncate(text.floor_char_boundary(RATED_TEXT_BYTES));
        }
        mask(judgement, JUDGEMENT_CHARS);
        for issue in issues {
            mask(issue, ISSUE_CHARS);
        }
        self
    }
}

impl Rating {
    /// What an example shows of its texts. Where the output is a judgement, the first issue of a bad one is the value: which error
    /// it is.
    pub fn shown_texts(&self) -> RatedTexts {
        let mut texts = self.texts.clone();
        let is_judgement = alias::target_named(&self.target).is_some_and(|target| target.is_judgement)
            || !texts.judgement.is_empty();
        let is_erased = texts == RatedTexts::default();
        if is_judgement && !is_erased && self.class == RatingClass::Bad {
            texts.issues.insert(0, self.value.clone());
        }
        texts
    }
}

impl<C> Rating<C> {
    /// The pseudonym of what was rated.
    pub fn rated_id(&self) -> RatedId {
        RatedId(Uuid::new_v5(&RATED, self.target_id.as_bytes()))
    }
}

/// The UUID namespace of rated outputs (RFC 9562, version 5).
const RATED: Uuid = Uuid::from_u128(0x3f0f_4ab1_5c1e_4c43_9a55_7d2b_9b1c_0e04);

impl RatingFields<'_> {
    /// Whether it has no text at all, as a rating whose texts were erased.
    fn has_no_text(&self) -> bool {
        let texts = [
            self.input_text,
            self.output_text,
            self.corrected_text,
            self.correct_judgement,
        ];
        self.issues.is_empty() && texts.iter().all(|text| text.is_empty())
    }
}

/// What is rated, and the value given.
fn parse_target(violations: &mut Violations, fields: RatingFields<'_>) -> Option<(String, String)> {
    let target = violations.check("target", parse_exact(fields.target));
    let value = violations.check("value", bounded_text(fields.value, 1, NAME_CHARS));
    target.zip(value)
}

/// The other fields of a rating.
struct Details {
    target_id: String,
    prompt_version: String,
    texts: RatedTexts,
}

impl Details {
    fn parse(violations: &mut Violations, fields: RatingFields<'_>, needs_texts: bool) -> Option<Self> {
        let target_id = violations.check("target_id", bounded_text(fields.target_id, 1, TARGET_ID_CHARS));
        let prompt_version = violations.check(
            "prompt_version",
            bounded_text(fields.prompt_version, 0, NAME_CHARS),
        );
        let required = usize::from(needs_texts);
        let mut text = |field, raw, min| violations.check(field, rated_text(raw, min));
        let input = text("input_text", fields.input_text, required);
        let output = text("output_text", fields.output_text, required);
        let corrected = text("corrected_text", fields.corrected_text, 0);
        let judgement = bounded_prose(fields.correct_judgement, 0, JUDGEMENT_CHARS);
        let judgement = violations.check("correct_judgement", judgement);
        let issues = issues(violations, fields.issues);
        Some(Self {
            target_id: target_id?,
            prompt_version: prompt_version?,
            texts: RatedTexts {
                input: input?,
                output: output?,
                issues: issues?,
                corrected: corrected?,
                judgement: judgement?,
            },
        })
    }

    fn of<C>(self, (target, value): (String, String), class: C) -> Rating<C> {
        Rating {
            target,
            value,
            class,
            target_id: self.target_id,
            prompt_version: self.prompt_version,
            texts: self.texts,
        }
    }
}

/// A text that was rated, or that is right.
fn rated_text(raw: &str, min: usize) -> Result<String, Invalid> {
    let length = raw.trim().len();
    if length > RATED_TEXT_BYTES {
        return Err(Invalid::new(format!(
            "must have at most {RATED_TEXT_BYTES} bytes (256 KiB), has {length}"
        )));
    }
    bounded_prose(raw, min, RATED_TEXT_BYTES)
}

/// What a value of a target counts as.
fn class_of(violations: &mut Violations, own: &[OwnTarget], name: &str, value: &str) -> Option<RatingClass> {
    let Some(target) = own::target(own, name) else {
        let known = TARGETS.iter().map(|target| target.name);
        let known = own::listed(known.chain(own.iter().map(OwnTarget::name)));
        violations.add("target", format!("must be one of {known}, is {name:?}"));
        return None;
    };
    let class = target.class_of(value);
    if class.is_none() {
        let known = own::listed(target.values());
        violations.add(
            "value",
            format!("must be one of {known} with {name}, is {value:?}"),
        );
    }
    class
}

fn issues(violations: &mut Violations, raw: &[String]) -> Option<Vec<String>> {
    if raw.len() > MAX_ISSUES {
        violations.add(
            "issues",
            format!("must have at most {MAX_ISSUES} entries, has {}", raw.len()),
        );
        return None;
    }
    let mut issues = Vec::with_capacity(raw.len());
    for (index, issue) in raw.iter().enumerate() {
        issues.push(violations.check(&format!("issues[{index}]"), bounded_prose(issue, 1, ISSUE_CHARS))?);
    }
    Some(issues)
}

fn mask(text: &mut String, max: usize) {
    let masked = personal_data::mask(text);
    if *masked != **text {
        *text = masked.into_owned();
    }
    cut(text, max);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rating() -> RatingFields<'static> {
        RatingFields {
            target: "INTERPRET",
            value: "GOOD",
            target_id: "q-1",
            input_text: "what happened?",
            output_text: "nothing",
            ..RatingFields::default()
        }
    }

    fn fields(rating: RatingFields<'_>) -> Vec<String> {
        let violations = Rating::parse_new(rating, &[]).unwrap_err().violations.into_vec();
        violations.into_iter().map(|violation| violation.field).collect()
    }

    #[test]
    fn each_target_has_its_own_values() {
        let own = [OwnTarget::parse(
            "TRIAGE",
            [("RIGHT", RatingClass::Good), ("WRONG", RatingClass::Bad)],
            false,
        )
        .unwrap()];
        let parsed = |target, value| {
            let fields = RatingFields {
                target,
                value,
                ..rating()
            };
            let rating = Rating::parse_new(fields, &own);
            rating
                .map(|rating| rating.class)
                .map_err(|refused| refused.violations)
        };
        assert_eq!(parsed("INTERPRET", "GOOD"), Ok(RatingClass::Good));
        assert_eq!(parsed(" INTERPRET ", "BAD"), Ok(RatingClass::Bad));
        for (target, value, class) in [
            ("SUMMARIZE_HOURLY", "GOOD", RatingClass::Good),
            ("SUMMARIZE_HOURLY", "NEUTRAL", RatingClass::Neutral),
            ("SUMMARIZE_DAILY", "NEUTRAL", RatingClass::Neutral),
            ("EVALUATE", "CORRECT", RatingClass::Good),
            ("EVALUATE", "FALSE_POSITIVE", RatingClass::Bad),
            ("EVALUATE", "MISSED", RatingClass::Bad),
            ("TASK_EXTRACT", "APPROVED", RatingClass::Good),
            ("TASK_EXTRACT", "REJECTED", RatingClass::Bad),
            ("TRIAGE", "RIGHT", RatingClass::Good),
            ("TRIAGE", "WRONG", RatingClass::Bad),
        ] {
            assert_eq!(parsed(target, value), Ok(class), "{target} {value}");
        }
        let refused = parsed("TRIAGE", "right").unwrap_err().to_string();
        assert!(
            refused.contains("value: must be one of RIGHT, WRONG with TRIAGE"),
            "{refused}"
        );
        let refused = parsed("INTERPRET", "NEUTRAL").unwrap_err().to_string();
        assert!(
            refused.contains("value: must be one of GOOD, BAD with INTERPRET"),
            "{refused}"
        );
        assert_eq!(
            parsed("interpret", "GOOD"),
            Ok(RatingClass::Good),
            "another spelling"
        );
        let refused = parsed("triage", "RIGHT").unwrap_err().to_string();
        assert!(
            refused.contains(
                "target: must be one of INTERPRET, SUMMARIZE_HOURLY, SUMMARIZE_DAILY, EVALUATE, TASK_EXTRACT, TRIAGE"
            ),
            "{refused}"
        );
    }

    #[test]
    fn every_violated_field_is_named() {
        let long = "é".repeat(RATED_TEXT_BYTES / 2 + 1);
        let many = vec![String::new(); MAX_ISSUES + 1];
        let wrong = RatingFields {
            target: "",
            value: "",
            target_id: "",
            input_text: &long,
            output_text: "\u{7}",
            prompt_version: &long,
            issues: &many,
            corrected_text: &long,
            correct_judgement: &long,
            counts_as: None,
        };
        assert_eq!(
            fields(wrong),
            [
                "target",
                "value",
                "target_id",
                "prompt_version",
                "input_text",
                "output_text",
                "corrected_text",
                "correct_judgement",
                "issues",
            ]
        );
        let empty = ["fine".to_owned(), " ".to_owned()];
        assert_eq!(
            fields(RatingFields {
                issues: &empty,
                ..rating()
            }),
            ["issues[1]"]
        );
    }

    #[test]
    fn a_new_rating_has_texts_and_says_nothing_that_is_output_only() {
        let erased = RatingFields {
            input_text: "",
            output_text: "",
            counts_as: Some(RatingClass::Bad),
            ..rating()
        };
        assert!(Rating::parse(erased).is_ok(), "as it is stored");
        assert_eq!(fields(erased), ["input_text", "output_text", "counts_as"]);
        let half = RatingFields {
            output_text: " ",
            ..rating()
        };
        assert_eq!(fields(half), ["output_text"]);
        let judged = RatingFields {
            correct_judgement: "right",
            ..rating()
        };
        assert_eq!(fields(judged), ["correct_judgement"]);
        let of_judgement = RatingFields {
            target: "EVALUATE",
            value: "MISSED",
            ..judged
        };
        assert!(Rating::parse_new(of_judgement, &[]).is_ok());
    }

    #[test]
    fn a_stored_rating_stays_what_it_is_when_its_target_is_no_longer_there() {
        let stored = RatingFields {
            target: "TRIAGE",
            value: "RIGHT",
            counts_as: Some(RatingClass::Good),
            ..rating()
        };
        let parsed = Rating::parse(stored).unwrap();
        assert_eq!(parsed.class, RatingClass::Good);
        assert_eq!(fields(stored), ["target"], "a new one is refused");
    }

    #[test]
    fn a_rating_is_handed_back_where_only_its_target_is_unknown() {
        let handed_back = |fields| {
            let refused = Rating::parse_new(fields, &[]).unwrap_err();
            refused.refused_by_settings.map(|rating| rating.target)
        };
        let unknown = RatingFields {
            target: " TRIAGE ",
            ..rating()
        };
        assert_eq!(handed_back(unknown).as_deref(), Some("TRIAGE"));
        let without_text = RatingFields {
            input_text: "",
            ..unknown
        };
        assert_eq!(handed_back(without_text), None);
        assert_eq!(fields(without_text), ["input_text", "target"], "all at once");
        let otherwise_counted = RatingFields {
            counts_as: Some(RatingClass::Bad),
            ..rating()
        };
        assert_eq!(
            handed_back(otherwise_counted),
            None,
            "every namespace has its target"
        );
    }

    #[test]
    fn a_rating_is_handed_back_where_the_settings_have_changed_since() {
        let own = OwnTarget::parse("TRIAGE", [("RIGHT", RatingClass::Good)], false).unwrap();
        let right = RatingFields {
            target: "TRIAGE",
            value: "RIGHT",
            ..rating()
        };
        let counted_otherwise = RatingFields {
            counts_as: Some(RatingClass::Bad),
            ..right
        };
        let of_a_judgement = RatingFields {
            correct_judgement: "wrong",
            ..right
        };
        for (fields, field) in [
            (counted_otherwise, "counts_as"),
            (of_a_judgement, "correct_judgement"),
        ] {
            let refused = Rating::parse_new(fields, std::slice::from_ref(&own)).unwrap_err();
            assert!(refused.refused_by_settings.is_some(), "{field}");
            let named = refused
                .violations
                .into_vec()
                .into_iter()
                .map(|violation| violation.field);
            assert_eq!(named.collect::<Vec<_>>(), [field]);
        }
    }

    #[test]
    fn an_example_of_a_wrong_judgement_says_which_error_it_is() {
        for (target, value, issues) in [
            (
                "evaluate",
                "FALSE_POSITIVE",
                &["FALSE_POSITIVE", "too strict"][..],
            ),
            ("EVALUATE", "MISSED", &["MISSED", "too strict"]),
            ("EVALUATE", "CORRECT", &["too strict"]),
            ("INTERPRET", "BAD", &["too strict"]),
        ] {
            let said = ["too strict".to_owned()];
            let fields = RatingFields {
                target,
                value,
                issues: &said,
                ..rating()
            };
            let shown = Rating::parse_new(fields, &[]).unwrap().shown_texts();
            assert_eq!(shown.issues, issues, "{target} {value}");
        }
        let erased = RatingFields {
            target: "EVALUATE",
            value: "MISSED",
            input_text: "",
            output_text: "",
            ..rating()
        };
        let shown = Rating::parse(erased).unwrap().shown_texts();
        assert_eq!(shown, RatedTexts::default(), "nothing of what was erased");
    }

    #[test]
    fn texts_are_masked_and_cut_to_their_limits() {
        let input = format!("xx{} a@b.org", "語".repeat((RATED_TEXT_BYTES - 10) / 3));
        let issues = ["ask a@b.org".to_owned()];
        let fields = RatingFields {
            input_text: &input,
            output_text: "call +44 20 7946 0958",
            issues: &issues,
            ..rating()
        };
        let masked = Rating::parse(fields);
        let texts = masked.unwrap().masked().texts;
        assert_eq!(texts.input.len(), RATED_TEXT_BYTES);
        assert!(texts.input.ends_with("語 [email]"), "exactly as long");
        assert_eq!(texts.output, "call [phone]");
        assert_eq!(texts.issues, ["ask [email]"]);
    }
}
