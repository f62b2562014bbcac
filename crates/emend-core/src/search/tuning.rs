//! How queries of one type are searched: how many results, from which score on, where, and what is tried when nothing is
//! found.

mod word;

use crate::violation::{Invalid, Violations, bounded_text};

/// How many results a search has where nobody says.
pub const DEFAULT_TOP_K: u32 = 10;
/// The score below which results are left out where nobody says.
pub const DEFAULT_MIN_SCORE: f64 = 0.4;
/// The most results of a search.
pub const MAX_TOP_K: u32 = 100;
/// Where everything is searched: what the default plan adds to a query's namespaces.
pub const COMBINED: &str = "combined";
/// The most confidences, and the most weights.
const MAX_NAMED: usize = 16;
/// The most search namespaces in one list.
const MAX_NAMESPACES: usize = 32;
/// The most steps of a plan, beside the first search.
const MAX_STEPS: usize = 8;
/// The largest weight.
const MAX_WEIGHT: f64 = 100.0;
/// The most characters of a name.
const NAME_CHARS: usize = 64;
/// The most characters of a suggestion.
const SUGGESTION_CHARS: usize = 300;

/// A number that is finite and not negative, equal to itself.
#[derive(Debug, Clone, Copy)]
pub struct Decimal(f64);

impl Decimal {
    fn parse(value: f64, max: f64) -> Result<Self, Invalid> {
        if (0.0..=max).contains(&value) {
            // Not -0.0, which is another one in bits.
            Ok(Self(value + 0.0))
        } else {
            Err(Invalid::new(format!("must be 0.0 to {max:?}, is {value}")))
        }
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Decimal {}

impl std::hash::Hash for Decimal {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// How queries of one type are searched.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tuning {
    top_k: u32,
    min_score: Decimal,
    confidences: Vec<(String, Decimal)>,
    weights: Vec<(String, Decimal)>,
    namespaces: Vec<String>,
    retry: Vec<RetryStep>,
    suggestion: String,
}

/// What is changed when nothing was found; what earlier steps changed stays.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RetryStep {
    /// Search namespaces that are searched, too.
    pub namespaces: Vec<String>,
    /// How much the minimum score is lowered, 0.0 to 1.0.
    pub lower_min_score_by: Decimal,
    /// At least so many results, 1 to 100; 0: as many as before.
    pub top_k: u32,
    /// The text is embedded again, with its synonyms.
    pub expand: bool,
}

/// What makes a [`Tuning`], unchecked.
#[derive(Debug, Clone, Default)]
pub struct TuningFields {
    /// How many results, 1 to 100; default 10.
    pub top_k: Option<i64>,
    /// The score from which on results are given, 0.0 to 1.0; default 0.4.
    pub min_score: Option<f64>,
    /// Names of confidence, and the score from which on a result is of that confidence, 0.0 to 1.0; at most 16.
    pub confidences: Vec<(String, f64)>,
    /// What each list of results weighs when they are merged, by name, 0.0 to 100.0; at most 16.
    pub weights: Vec<(String, f64)>,
    /// Where to search, at most 32; empty: where the node does without being told.
    pub namespaces: Vec<String>,
    /// What is tried when nothing is found, at most 8 steps; default: [`Tuning::default_retry`].
    pub retry: Option<Vec<RetryStepFields>>,
    /// What the user is told when no step found anything, at most 300 characters; empty: the node's own text.
    pub suggestion: String,
}

/// What makes a [`RetryStep`], unchecked.
#[derive(Debug, Clone, Default)]
pub struct RetryStepFields {
    /// Search namespaces that are searched, too; at most 32.
    pub namespaces: Vec<String>,
    /// How much the minimum score is lowered, 0.0 to 1.0.
    pub lower_min_score_by: f64,
    /// At least so many results, 1 to 100; 0: as many as before.
    pub top_k: i64,
    /// The text is embedded again, with its synonyms.
    pub expand: bool,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            top_k: DEFAULT_TOP_K,
            min_score: Decimal(DEFAULT_MIN_SCORE),
            confidences: Vec::new(),
            weights: Vec::new(),
            namespaces: Vec::new(),
            retry: Self::default_retry(),
            suggestion: String::new(),
        }
    }
}

impl Tuning {
    /// Checks the fields; violations name those of the wire contract. Confidences are sorted from the highest score down,
    /// weights by name.
    pub fn new(fields: TuningFields) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let top_k = fields.top_k.unwrap_or(DEFAULT_TOP_K.into());
        let top_k = violations.check("top_k", parse_top_k(top_k, 1));
        let min_score = fields.min_score.unwrap_or(DEFAULT_MIN_SCORE);
        let min_score = violations.check("min_score", Decimal::parse(min_score, 1.0));
        let mut confidences = named(
            &mut violations,
            ("confidences", "min_score"),
            &fields.confidences,
            1.0,
        );
        let mut weights = named(
            &mut violations,
            ("weights", "weight"),
            &fields.weights,
            MAX_WEIGHT,
        );
        confidences.sort_by(|one, other| other.1.get().total_cmp(&one.1.get()).then(one.0.cmp(&other.0)));
        weights.sort_by(|one, other| one.0.cmp(&other.0));
        let namespaces = parse_namespaces(&mut violations, "namespaces", &fields.namespaces);
        let retry = fields.retry.map_or_else(Self::default_retry, |steps| {
            check_count(&mut violations, "retry.steps", steps.len(), MAX_STEPS);
            let steps = steps.iter().enumerate().take(MAX_STEPS);
            steps
                .filter_map(|(place, step)| {
                    parse_step(&mut violations, &format!("retry.steps[{place}]"), step)
                })
                .collect()
        });
        let suggestion = violations.check(
            "suggestion",
            bounded_text(&fields.suggestion, 0, SUGGESTION_CHARS),
        );
        let parsed = (|| {
            Some(Self {
                top_k: top_k?,
                min_score: min_score?,
                confidences,
                weights,
                namespaces,
                retry,
                suggestion: suggestion?,
            })
        })();
        violations.finish(parsed)
    }

    /// What is tried where nobody says otherwise: everything is searched, too, from a score that is lower by 0.1 on and for 20
    /// results; then with synonyms.
    pub fn default_retry() -> Vec<RetryStep> {
        vec![
            RetryStep {
                namespaces: vec![COMBINED.to_owned()],
                lower_min_score_by: Decimal(0.1),
                top_k: 20,
                expand: false,
            },
            RetryStep {
                namespaces: Vec::new(),
                lower_min_score_by: Decimal(0.0),
                top_k: 0,
                expand: true,
            },
        ]
    }

    /// How many results, 1 to 100.
    pub const fn top_k(&self) -> u32 {
        self.top_k
    }

    /// The score from which on results are given, 0.0 to 1.0.
    pub const fn min_score(&self) -> f64 {
        self.min_score.get()
    }

    /// Names of confidence and the score from which on a result is of that confidence, from the highest score down.
    pub fn confidences(&self) -> impl ExactSizeIterator<Item = (&str, f64)> {
        self.confidences
            .iter()
            .map(|(name, score)| (&**name, score.get()))
    }

    /// The confidence of a result with this score; `None` below all of them.
    pub fn confidence(&self, score: f64) -> Option<&str> {
        self.confidences()
            .find(|(_, from)| score >= *from)
            .map(|(name, _)| name)
    }

    /// What lists of results weigh when they are merged, by name.
    pub fn weights(&self) -> impl ExactSizeIterator<Item = (&str, f64)> {
        self.weights.iter().map(|(name, weight)| (&**name, weight.get()))
    }

    /// What a list of results weighs; `None` if nobody said.
    pub fn weight(&self, name: &str) -> Option<f64> {
        self.weights()
            .find(|(known, _)| *known == name)
            .map(|(_, weight)| weight)
    }

    /// Where to search; empty: where the node does without being told.
    pub fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    /// What is tried when nothing is found.
    pub fn retry(&self) -> &[RetryStep] {
        &self.retry
    }

    /// What the user is told when no step found anything; empty: the node's own text.
    pub fn suggestion(&self) -> &str {
        &self.suggestion
    }
}

fn parse_top_k(value: i64, min: u32) -> Result<u32, Invalid> {
    let parsed = u32::try_from(value).ok();
    parsed
        .filter(|top_k| (min..=MAX_TOP_K).contains(top_k))
        .ok_or_else(|| Invalid::new(format!("must be {min} to {MAX_TOP_K}, is {value}")))
}

fn parse_step(violations: &mut Violations, path: &str, step: &RetryStepFields) -> Option<RetryStep> {
    let namespaces = parse_namespaces(violations, &format!("{path}.namespaces"), &step.namespaces);
    let lower = Decimal::parse(step.lower_min_score_by, 1.0);
    let lower = violations.check(&format!("{path}.lower_min_score_by"), lower);
    let top_k = violations.check(&format!("{path}.top_k"), parse_top_k(step.top_k, 0));
    let step = RetryStep {
        namespaces,
        lower_min_score_by: lower?,
        top_k: top_k?,
        expand: step.expand,
    };
    if !step.expand
        && step.namespaces.is_empty()
        && step.top_k == 0
        && step.lower_min_score_by == Decimal(0.0)
    {
        violations.add(path, "must change something");
    }
    Some(step)
}

fn parse_namespaces(violations: &mut Violations, path: &str, names: &[String]) -> Vec<String> {
    check_count(violations, path, names.len(), MAX_NAMESPACES);
    let mut parsed: Vec<String> = Vec::new();
    for (place, name) in names.iter().enumerate().take(MAX_NAMESPACES) {
        let field = format!("{path}[{place}]");
        let Some(name) = violations.check(&field, parse_name(name)) else {
            continue;
        };
        if parsed.contains(&name) {
            violations.add(field, format!("is there twice: {name:?}"));
        }
        parsed.push(name);
    }
    parsed
}

fn named(
    violations: &mut Violations,
    (path, number): (&str, &str),
    entries: &[(String, f64)],
    max: f64,
) -> Vec<(String, Decimal)> {
    check_count(violations, path, entries.len(), MAX_NAMED);
    let mut parsed: Vec<(String, Decimal)> = Vec::new();
    for (place, (name, value)) in entries.iter().enumerate().take(MAX_NAMED) {
        let field = |part| format!("{path}[{place}].{part}");
        let name = violations.check(&field("name"), parse_name(name));
        let value = violations.check(&field(number), Decimal::parse(*value, max));
        if let (Some(name), Some(value)) = (name, value) {
            if parsed.iter().any(|(known, _)| *known == name) {
                violations.add(field("name"), format!("is there twice: {name:?}"));
            }
            parsed.push((name, value));
        }
    }
    parsed
}

fn check_count(violations: &mut Violations, field: &str, count: usize, max: usize) {
    if count > max {
        violations.add(field, format!("must have at most {max} entries, has {count}"));
    }
}

/// A name that the written form of a tuning can hold.
fn parse_name(raw: &str) -> Result<String, Invalid> {
    let name = bounded_text(raw, 1, NAME_CHARS)?;
    match name
        .chars()
        .find(|&c| c.is_whitespace() || matches!(c, ',' | '=' | '+'))
    {
        Some(c) => Err(Invalid::new(format!(
            "must not contain white space, commas, = or +, has {c:?}"
        ))),
        None => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_says_has_defaults() {
        let tuning = Tuning::new(TuningFields::default()).unwrap();
        assert_eq!(tuning, Tuning::default());
        assert_eq!(tuning.top_k(), 10);
        assert_eq!(Decimal(tuning.min_score()), Decimal(0.4));
        assert!(tuning.namespaces().is_empty());
    }

    #[test]
    fn every_violation_is_named() {
        let twice = |name: &str, value| vec![(name.to_owned(), value), (name.to_owned(), value)];
        let step = |fields| RetryStepFields {
            lower_min_score_by: 2.0,
            top_k: 101,
            ..fields
        };
        let refused = Tuning::new(TuningFields {
            top_k: Some(0),
            min_score: Some(f64::NAN),
            confidences: twice("high", 0.9),
            weights: vec![("a b".to_owned(), 101.0)],
            namespaces: vec![String::new(), "a".to_owned(), "a".to_owned()],
            retry: Some(vec![step(RetryStepFields::default()), RetryStepFields::default()]),
            suggestion: "x".repeat(301),
        });
        let fields: Vec<String> = refused
            .unwrap_err()
            .into_vec()
            .into_iter()
            .map(|violation| violation.field)
            .collect();
        assert_eq!(
            fields,
            [
                "top_k",
                "min_score",
                "confidences[1].name",
                "weights[0].name",
                "weights[0].weight",
                "namespaces[0]",
                "namespaces[2]",
                "retry.steps[0].lower_min_score_by",
                "retry.steps[0].top_k",
                "retry.steps[1]",
                "suggestion",
            ]
        );
        let most = TuningFields {
            top_k: Some(101),
            ..TuningFields::default()
        };
        let why = Tuning::new(most).unwrap_err().to_string();
        assert_eq!(why, "top_k: must be 1 to 100, is 101");
    }

    #[test]
    fn a_score_has_the_highest_confidence_that_it_reaches() {
        let confidences = [("low", 0.5), ("high", 0.8)].map(|(name, from)| (name.to_owned(), from));
        let tuning = Tuning::new(TuningFields {
            confidences: confidences.to_vec(),
            ..TuningFields::default()
        })
        .unwrap();
        assert_eq!(tuning.confidence(0.8), Some("high"));
        assert_eq!(tuning.confidence(0.79), Some("low"));
        assert_eq!(tuning.confidence(0.1), None);
    }
}
