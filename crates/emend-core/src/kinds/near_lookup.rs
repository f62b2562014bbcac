//! How phrases that nobody corrected are answered by what was learned for similar ones. Decided by rulings of whoever sets values,
//! so that it reaches nodes as what they answer with does: equal resources, equal near answers.

#![expect(clippy::ref_option, reason = "the same signatures for all kinds")]

use std::{borrow::Cow, fmt, str::FromStr};

use super::{Field, Form, KindRules, Learned, Rule, RulingRules, newest};
use crate::{
    roles::Role,
    violation::{Invalid, Violations},
};

/// The confidence from which on a near answer is given unless somebody set another, in thousandths.
const DEFAULT_MIN_CONFIDENCE: u16 = 800;
/// How many hexadecimal digits the hash of a file of vectors has.
const HASH_DIGITS: usize = 64;

/// How near answers are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum NearMethod {
    /// By words and character n-grams.
    #[default]
    Lexical,
    /// Not at all.
    Off,
}

impl NearMethod {
    /// All, each with its name.
    pub const ALL: [(Self, &'static str); 2] = [(Self::Lexical, "lexical"), (Self::Off, "off")];

    /// The name.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.into_iter().find(|(method, _)| *method == self);
        named.map_or("", |(_, name)| name)
    }
}

/// How phrases of one kind that nobody corrected are answered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NearLookup {
    /// In thousandths.
    min_confidence: u16,
    method: NearMethod,
    vectors: String,
    /// As one line.
    line: String,
}

impl Default for NearLookup {
    fn default() -> Self {
        Self::of(DEFAULT_MIN_CONFIDENCE, NearMethod::default(), String::new())
    }
}

impl NearLookup {
    /// The confidence from which on an answer is given, 0.0 to 1.0 in steps of 0.001; the method; and the SHA-256 of the file of
    /// vectors, empty for none. What is `None` has its default.
    pub fn new(
        min_confidence: Option<f64>,
        method: Option<NearMethod>,
        vectors: &str,
    ) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let min_confidence = match min_confidence {
            None => Some(DEFAULT_MIN_CONFIDENCE),
            Some(confidence) => violations.check("min_confidence", thousandths(confidence)),
        };
        let vectors = violations.check("vectors", parse_hash(vectors));
        let parsed = min_confidence
            .zip(vectors)
            .map(|(confidence, vectors)| Self::of(confidence, method.unwrap_or_default(), vectors));
        violations.finish(parsed)
    }

    fn of(min_confidence: u16, method: NearMethod, vectors: String) -> Self {
        let shown = if vectors.is_empty() { "none" } else { &vectors };
        let line = format!(
            "min_confidence={} method={} vectors={shown}",
            f64::from(min_confidence) / 1_000.0,
            method.name(),
        );
        Self {
            min_confidence,
            method,
            vectors,
            line,
        }
    }

    /// The confidence from which on a near answer is given, 0.0 to 1.0.
    pub fn min_confidence(&self) -> f64 {
        f64::from(self.min_confidence) / 1_000.0
    }

    /// How near answers are found.
    pub const fn method(&self) -> NearMethod {
        self.method
    }

    /// The SHA-256 of the file of vectors, 64 hexadecimal digits; empty: none are used.
    pub fn vectors(&self) -> &str {
        &self.vectors
    }
}

impl fmt::Display for NearLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl FromStr for NearLookup {
    type Err = Invalid;

    /// Reads NAME=VALUE pairs, each at most once: `min_confidence=0.8 method=lexical vectors=none`.
    fn from_str(line: &str) -> Result<Self, Invalid> {
        let (mut confidence, mut method, mut vectors) = (None, None, None);
        for word in line.split_whitespace() {
            let known = word.split_once('=').ok_or_else(|| {
                Invalid::new(format!(
                    "must be NAME=VALUE, separated by spaces; {word:?} is not"
                ))
            })?;
            let is_repeated = match known {
                ("min_confidence", value) => {
                    let parsed = value.parse::<f64>();
                    let parsed = parsed.map_err(|_| {
                        Invalid::new(format!("must have a number as min_confidence, not {value:?}"))
                    });
                    confidence.replace(parsed?).is_some()
                }
                ("method", value) => method.replace(parse_method(value)?).is_some(),
                ("vectors", value) => vectors.replace(value).is_some(),
                (name, _) => {
                    let names = "min_confidence, method, vectors";
                    return Err(Invalid::new(format!("must set one of {names}, not {name:?}")));
                }
            };
            if is_repeated {
                return Err(Invalid::new(format!("must not set {} twice", known.0)));
            }
        }
        if confidence.is_none() && method.is_none() && vectors.is_none() {
            return Err(Invalid::new("must set min_confidence, method or vectors"));
        }
        let vectors = vectors.filter(|hash| *hash != "none").unwrap_or_default();
        Self::new(confidence, method, vectors).map_err(|violations| Invalid::new(violations.to_string()))
    }
}

fn parse_method(name: &str) -> Result<NearMethod, Invalid> {
    let known = NearMethod::ALL.into_iter().find(|(_, known)| *known == name);
    known.map(|(method, _)| method).ok_or_else(|| {
        let names = NearMethod::ALL.map(|(_, name)| name).join(", ");
        Invalid::new(format!("must have one of {names} as method, not {name:?}"))
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is within 0 and 1,000"
)]
fn thousandths(confidence: f64) -> Result<u16, Invalid> {
    if !(0.0..=1.0).contains(&confidence) {
        return Err(Invalid::new(format!("must be 0.0 to 1.0, is {confidence}")));
    }
    Ok((confidence * 1_000.0).round() as u16)
}

fn parse_hash(hash: &str) -> Result<String, Invalid> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if hash.is_empty() || (hash.len() == HASH_DIGITS && hash.bytes().all(is_digit)) {
        return Ok(hash.to_owned());
    }
    Err(Invalid::new(format!(
        "must be {HASH_DIGITS} hexadecimal digits in lower case, or empty"
    )))
}

pub(super) const RULES: KindRules = KindRules {
    name: "near_lookup",
    number: 12,
    summary: "How phrases that nobody corrected are answered",
    short_name: "near",
    aliases: &["near-lookup"],
    key: Form::OneOf(&["invocation_phrase", "entity_alias"]),
    qualifier: None,
    rule: Rule::Ruling(RulingRules {
        in_force: |newest_first| newest(newest_first, &Learned::NearLookup(None)),
        nothing: || Learned::NearLookup(None),
        is_high_risk: |_| false,
        needs_target: false,
        entitled: Role::Operator,
        by_corrections: false,
    }),
    parse: |line| line.parse().map(|near| Learned::NearLookup(Some(near))),
    allows: |_, _| Ok(()),
    is_answer: false,
    arrow: '⊢',
};

pub(super) fn fields(near: &Option<NearLookup>) -> Vec<Field<'_>> {
    let field = |name, text| Field {
        name,
        text,
        distinguishes: true,
    };
    let Some(near) = near else {
        return vec![field("cleared", Cow::Borrowed("true"))];
    };
    vec![
        field("min_confidence", Cow::Owned(near.min_confidence().to_string())),
        field("method", Cow::Borrowed(near.method.name())),
        field("vectors", Cow::Borrowed(near.vectors())),
    ]
}

pub(super) fn maps_to(near: &Option<NearLookup>) -> &str {
    near.as_ref().map_or("cleared", |near| &near.line)
}

pub(super) fn describe(kind: &str, near: &Option<NearLookup>) -> String {
    match near {
        Some(near) => format!("phrases of kind “{kind}” that nobody corrected are answered with {near}"),
        None => format!("phrases of kind “{kind}” that nobody corrected are answered with the defaults"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_it_sets_and_the_rest_has_its_default() {
        let hash = "0f".repeat(32);
        for (line, expected) in [
            (
                "min_confidence=0.9",
                "min_confidence=0.9 method=lexical vectors=none",
            ),
            ("method=off", "min_confidence=0.8 method=off vectors=none"),
            (
                &format!("vectors={hash} min_confidence=0"),
                &format!("min_confidence=0 method=lexical vectors={hash}"),
            ),
        ] {
            let near: NearLookup = line.parse().unwrap();
            assert_eq!(near.to_string(), expected);
            assert_eq!(near.to_string().parse(), Ok(near));
        }
    }

    #[test]
    fn what_is_wrong_in_a_line_is_said() {
        for (line, said) in [
            ("", "min_confidence, method or vectors"),
            ("high", "NAME=VALUE"),
            ("confidence=1", "must set one of min_confidence"),
            ("min_confidence=much", "a number as min_confidence"),
            ("min_confidence=1.01", "must be 0.0 to 1.0, is 1.01"),
            ("min_confidence=NaN", "must be 0.0 to 1.0"),
            ("method=magic", "one of lexical, off as method"),
            ("method=off method=off", "method twice"),
            ("vectors=0F", "64 hexadecimal digits"),
        ] {
            let refused = line.parse::<NearLookup>().unwrap_err();
            assert!(refused.0.contains(said), "{line}: {refused}");
        }
    }
}
