//! Ratings: what can be rated, how, and what each rating counts as.

use uuid::Uuid;

use super::{
    RatedId,
    own::{self, OwnTarget},
};
use crate::{
    kinds::Kind,
    personal_data,
    violation::{Violations, bounded_prose, bounded_text},
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

/// The most characters of an input, an output or a corrected text.
pub const RATED_TEXT_CHARS: usize = 32_768;
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

/// A valid rating.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rating {
    /// What was asked for: the key of the few-shot set.
    pub target: String,
    /// The value given.
    pub value: String,
    /// What the value counts as.
    pub class: RatingClass,
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

impl Rating {
    /// Parses a rating, new or stored: one whose texts were erased has none. What it counts as is what `counts_as` says, or
    /// else what its value counts as now, where the application has these targets of its own.
    pub fn parse(fields: RatingFields<'_>, own: &[OwnTarget]) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let target = violations.check("target", Kind::FewShotSet.rules().key.parse(fields.target));
        let value = violations.check("value", bounded_text(fields.value, 1, NAME_CHARS));
        let target_id = violations.check("target_id", bounded_text(fields.target_id, 1, TARGET_ID_CHARS));
        let prompt_version = violations.check(
            "prompt_version",
            bounded_text(fields.prompt_version, 0, NAME_CHARS),
        );
        // Of a rating that was erased there is no text at all.
        let texts = [
            fields.input_text,
            fields.output_text,
            fields.corrected_text,
            fields.correct_judgement,
        ];
        let is_erased = fields.issues.is_empty() && texts.iter().all(|text| text.is_empty());
        let required = usize::from(!is_erased);
        let mut text = |field, raw, min, max| violations.check(field, bounded_prose(raw, min, max));
        let input = text("input_text", fields.input_text, required, RATED_TEXT_CHARS);
        let output = text("output_text", fields.output_text, required, RATED_TEXT_CHARS);
        let corrected = text("corrected_text", fields.corrected_text, 0, RATED_TEXT_CHARS);
        let judgement = text("correct_judgement", fields.correct_judgement, 0, JUDGEMENT_CHARS);
        let issues = issues(&mut violations, fields.issues);
        let class = match (fields.counts_as, &target, &value) {
            (Some(class), ..) => Some(class),
            (None, Some(target), Some(value)) => class_of(&mut violations, own, target, value),
            _ => None,
        };
        let parsed = (|| {
            Some(Self {
                target: target?,
                value: value?,
                class: class?,
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
        })();
        violations.finish(parsed)
    }

    /// Checks what makes a new rating invalid, though not a stored one: among other things whether its target and value can
    /// be given now, where the application has these targets of its own.
    pub fn check_new(&self, own: &[OwnTarget]) -> Result<(), Violations> {
        let mut violations = Violations::new();
        let class = class_of(&mut violations, own, &self.target, &self.value);
        if class.is_some_and(|class| class != self.class) {
            violations.add("counts_as", "is output only: what the value counts as");
        }
        for (field, text) in [
            ("input_text", &self.texts.input),
            ("output_text", &self.texts.output),
        ] {
            if text.is_empty() {
                violations.add(field, format!("is required: 1 to {RATED_TEXT_CHARS} characters"));
            }
        }
        let is_judgement = own::target(own, &self.target).is_some_and(|target| target.is_judgement());
        if !is_judgement && !self.texts.judgement.is_empty() {
            violations.add(
                "correct_judgement",
                format!("must be empty: {} is no judgement", self.target),
            );
        }
        violations.finish(Some(()))
    }

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
            mask(text, RATED_TEXT_CHARS);
        }
        mask(judgement, JUDGEMENT_CHARS);
        for issue in issues {
            mask(issue, ISSUE_CHARS);
        }
        self
    }

    /// The pseudonym of what was rated.
    pub fn rated_id(&self) -> RatedId {
        RatedId(Uuid::new_v5(&RATED, self.target_id.as_bytes()))
    }
}

/// The UUID namespace of rated outputs (RFC 9562, version 5).
const RATED: Uuid = Uuid::from_u128(0x3f0f_4ab1_5c1e_4c43_9a55_7d2b_9b1c_0e04);

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

/// Cuts a text to its first `max` characters.
pub(super) fn cut(text: &mut String, max: usize) {
    if let Some((end, _)) = text.char_indices().nth(max) {
        text.truncate(end);
    }
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
        let parsed = Rating::parse(rating, &[]).and_then(|parsed| parsed.check_new(&[]));
        let violations = parsed.unwrap_err().into_vec();
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
            let rating = Rating::parse(fields, &own);
            rating.and_then(|rating| rating.check_new(&own).map(|()| rating.class))
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
        let refused = parsed("interpret", "GOOD").unwrap_err().to_string();
        assert!(
            refused.contains(
                "target: must be one of INTERPRET, SUMMARIZE_HOURLY, SUMMARIZE_DAILY, EVALUATE, TASK_EXTRACT, TRIAGE"
            ),
            "{refused}"
        );
    }

    #[test]
    fn every_violated_field_is_named() {
        let long = "é".repeat(RATED_TEXT_CHARS + 1);
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
        assert!(Rating::parse(erased, &[]).is_ok(), "as it is stored");
        assert_eq!(fields(erased), ["counts_as", "input_text", "output_text"]);
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
        let parsed = Rating::parse(of_judgement, &[]).unwrap();
        assert_eq!(parsed.check_new(&[]), Ok(()));
    }

    #[test]
    fn a_stored_rating_stays_what_it_is_when_its_target_is_no_longer_there() {
        let stored = RatingFields {
            target: "TRIAGE",
            value: "RIGHT",
            counts_as: Some(RatingClass::Good),
            ..rating()
        };
        let parsed = Rating::parse(stored, &[]).unwrap();
        assert_eq!(parsed.class, RatingClass::Good);
        assert_eq!(fields(stored), ["target"], "a new one is refused");
    }

    #[test]
    fn texts_are_masked_and_cut_to_their_limits() {
        let input = format!("{} a@b.org", "x".repeat(RATED_TEXT_CHARS - 8));
        let issues = ["ask a@b.org".to_owned()];
        let fields = RatingFields {
            input_text: &input,
            output_text: "call +44 20 7946 0958",
            issues: &issues,
            ..rating()
        };
        let masked = Rating::parse(fields, &[]);
        let texts = masked.unwrap().masked().texts;
        assert_eq!(texts.input.chars().count(), RATED_TEXT_CHARS);
        assert!(texts.input.ends_with(" [email]"), "exactly as long");
        assert_eq!(texts.output, "call [phone]");
        assert_eq!(texts.issues, ["ask [email]"]);
    }
}
