//! What a node answers, with the names of the wire contract. A look-up itself ([`Node::resolve`](crate::Node::resolve)) has no
//! such form: it is answered thousands of times a second.

use std::collections::BTreeMap;

use emend_client::{
    Attempt, ClaimDecided, EdgeDecided, Example, ExpandedText, FewShotSet, LearnedAnswer, Near, Origin,
    Profile, PromptInForce, Rendered, RetryPlan, Scope, SourceTrust, Staleness, Step, Tuning,
};
use serde::Serialize;

/// In what the places in a text are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextUnits {
    /// Unicode scalar values, as Python counts.
    CodePoints,
    /// UTF-16 code units, as JavaScript counts.
    Utf16,
    /// Bytes of UTF-8, as Go and Rust count.
    Bytes,
}

impl TextUnits {
    fn count(self, text: &str) -> usize {
        match self {
            Self::CodePoints => text.chars().count(),
            Self::Utf16 => text.encode_utf16().count(),
            Self::Bytes => text.len(),
        }
    }
}

/// Whether an answer is the user's own (`user`) or everybody's (`global`).
pub const fn scope(answer: &LearnedAnswer) -> &'static str {
    match answer.scope {
        Scope::User => "user",
        Scope::Global => "global",
    }
}

/// What a phrase that nobody corrected most likely means.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NearAnswer {
    /// The choice.
    pub choice: String,
    /// How likely it is right, 0.0 to 1.0.
    pub confidence: f64,
    /// The nearest phrases that were learned, the nearest first.
    pub because: Vec<NearPhrase>,
    /// The model that answered: equal models give equal answers.
    pub model: String,
}

/// A phrase that was learned.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NearPhrase {
    /// In normal form.
    pub phrase: String,
    /// What it means.
    pub choice: String,
    /// How similar it is, 0.0 to 1.0.
    pub similarity: f64,
}

impl From<Near> for NearAnswer {
    fn from(near: Near) -> Self {
        let because = near.because.into_iter().map(|neighbour| NearPhrase {
            phrase: neighbour.phrase.to_string(),
            choice: neighbour.choice.to_string(),
            similarity: neighbour.similarity.into(),
        });
        Self {
            choice: near.choice.to_string(),
            confidence: near.confidence.into(),
            because: because.collect(),
            model: near.revision.to_string(),
        }
    }
}

/// An expanded text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expanded {
    /// The text as it was.
    pub original: String,
    /// Where terms stand for which there is something else to search, from left to right.
    pub groups: Vec<Group>,
    /// As one text: by keyword with `A OR B` where a term stands, by embedding with the representatives behind it.
    pub text: String,
}

/// What to search for where a term stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Group {
    /// Where it begins in the original.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// What to search for, as people write it.
    pub alternatives: Vec<String>,
}

impl Expanded {
    pub(crate) fn new(expanded: ExpandedText, units: TextUnits) -> Self {
        let original = &expanded.original;
        let groups = expanded.groups.iter().map(|group| {
            let start = units.count(&original[..group.span.start]);
            Group {
                start,
                end: start + units.count(&original[group.span.clone()]),
                alternatives: group.alternatives.clone(),
            }
        });
        Self {
            groups: groups.collect(),
            text: expanded.render(),
            original: expanded.original,
        }
    }
}

/// How queries of a type are searched.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchTuning {
    /// How many results, 1 to 100.
    pub top_k: u32,
    /// The score from which on results are given, 0.0 to 1.0.
    pub min_score: f64,
    /// Names of confidence and the score from which on a result has it, from the highest down.
    pub confidences: Vec<Confidence>,
    /// What lists of results weigh when they are merged, by name.
    pub weights: BTreeMap<String, f64>,
    /// Where to search; empty: where the node does without being told.
    pub namespaces: Vec<String>,
    /// What the user is told when no attempt found anything; empty: the node's own text.
    pub suggestion: String,
    /// The searches to try until one finds something, first the one as configured.
    pub retry_plan: Vec<SearchAttempt>,
}

/// A name of confidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Confidence {
    /// The name.
    pub name: String,
    /// The least score that has it.
    pub min_score: f64,
}

/// One search of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchAttempt {
    /// Which one, from 1.
    pub number: usize,
    /// Where to search; empty: where the node does without being told.
    pub namespaces: Vec<String>,
    /// Where to search beside that.
    pub more_namespaces: Vec<String>,
    /// The score from which on results are given, 0.0 to 1.0.
    pub min_score: f64,
    /// How many results, 1 to 100.
    pub top_k: u32,
    /// Whether the text is embedded with its synonyms.
    pub expand: bool,
}

impl From<&Tuning> for SearchTuning {
    fn from(tuning: &Tuning) -> Self {
        let confidences = tuning.confidences().map(|(name, min_score)| Confidence {
            name: name.to_owned(),
            min_score,
        });
        let weights = tuning.weights().map(|(name, weight)| (name.to_owned(), weight));
        let attempts = RetryPlan::new(tuning).filter_map(|step| match step {
            Step::Search(attempt) => Some(SearchAttempt::from(attempt)),
            Step::Suggest(_) => None,
        });
        Self {
            top_k: tuning.top_k(),
            min_score: tuning.min_score(),
            confidences: confidences.collect(),
            weights: weights.collect(),
            namespaces: tuning.namespaces().to_vec(),
            suggestion: tuning.suggestion().to_owned(),
            retry_plan: attempts.collect(),
        }
    }
}

impl From<Attempt<'_>> for SearchAttempt {
    fn from(attempt: Attempt<'_>) -> Self {
        Self {
            number: attempt.number,
            namespaces: attempt.namespaces.to_vec(),
            more_namespaces: attempt.more_namespaces.into_iter().map(str::to_owned).collect(),
            min_score: attempt.min_score,
            top_k: attempt.top_k,
            expand: attempt.expand,
        }
    }
}

/// How far a source is trusted.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trust {
    /// `primary`, `government`, `academic`, `trusted`, `low`, `unverified` (also where nothing was decided) or `blocked`.
    pub level: &'static str,
    /// What a result from it weighs in a ranking, 0.0 to 1.0.
    pub weight: f64,
    /// It must not be shown.
    pub blocked: bool,
    /// The pattern of domains whose rule decided; empty: none did.
    pub pattern: String,
    /// Who made the rule; empty: there is none.
    pub layer: &'static str,
    /// What it decided; empty: there is none.
    pub decision: &'static str,
    /// The revision that applied it; 0: there is none.
    pub revision: i64,
}

impl From<SourceTrust> for Trust {
    fn from(trust: SourceTrust) -> Self {
        let (weight, blocked) = (trust.weight(), trust.is_blocked());
        let decided = trust.decided_by.as_ref();
        Self {
            level: trust.level.name(),
            weight,
            blocked,
            layer: decided.map_or("", |decided| decided.layer.name()),
            decision: decided.map_or("", |decided| decided.decision.name()),
            revision: decided.map_or(0, |decided| decided.revision.0),
            pattern: trust
                .decided_by
                .map_or_else(String::new, |decided| decided.pattern),
        }
    }
}

/// A prompt as it is sent to the AI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RenderedPrompt {
    /// The whole text.
    pub text: String,
    /// The version of the prompt: it belongs to ratings of what it makes.
    pub version: u32,
    /// The settings of the model that belong to it, by name.
    pub settings: BTreeMap<String, String>,
}

impl From<Rendered> for RenderedPrompt {
    fn from(rendered: Rendered) -> Self {
        Self {
            settings: settings(&rendered.prompt),
            text: rendered.text,
            version: rendered.version,
        }
    }
}

/// The version of a prompt that is current under a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurrentPrompt {
    /// Its text, with `{{name}}` where variables stand.
    pub text: String,
    /// Its version.
    pub version: u32,
    /// Its variables, and what stands there where a call says nothing; null: each call must say.
    pub variables: BTreeMap<String, Option<String>>,
    /// The settings of the model, by name.
    pub settings: BTreeMap<String, String>,
    /// The revision that made it current.
    pub revision: i64,
}

fn settings(prompt: &emend_client::Prompt) -> BTreeMap<String, String> {
    let settings = prompt.settings().iter();
    settings
        .map(|setting| (setting.name.clone(), setting.value.clone()))
        .collect()
}

impl From<PromptInForce> for CurrentPrompt {
    fn from(current: PromptInForce) -> Self {
        let prompt = &current.prompt;
        let variables = prompt.variables().iter();
        Self {
            text: prompt.text().to_owned(),
            version: prompt.version,
            variables: variables
                .map(|variable| (variable.name.clone(), variable.default.clone()))
                .collect(),
            settings: settings(prompt),
            revision: current.revision.0,
        }
    }
}

/// The newest rated examples for what an AI is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Examples {
    /// The language of the headings around them: `en` or `ja`.
    pub language: &'static str,
    /// Examples of good outputs.
    pub good: Vec<RatedExample>,
    /// Examples to avoid.
    pub bad: Vec<RatedExample>,
}

/// One rated output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RatedExample {
    /// What the AI was given.
    pub input: String,
    /// What it made of it.
    pub output: String,
    /// What it should have made of it; empty if nobody said.
    pub corrected: String,
    /// What is wrong with the output, most named first.
    pub issues: Vec<String>,
}

impl From<&FewShotSet> for Examples {
    fn from(set: &FewShotSet) -> Self {
        let examples = |examples: &[Example]| examples.iter().map(RatedExample::from).collect();
        Self {
            language: set.language.name(),
            good: examples(&set.good),
            bad: examples(&set.bad),
        }
    }
}

impl From<&Example> for RatedExample {
    fn from(example: &Example) -> Self {
        Self {
            input: example.input.clone(),
            output: example.output.clone(),
            corrected: example.corrected.clone(),
            issues: example.issues.clone(),
        }
    }
}

/// What a user knows and wants to learn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UserProfile {
    /// How many years of experience the user has, if that is known.
    pub experience_years: Option<u32>,
    /// What the user is a specialist in.
    pub specialties: Vec<String>,
    /// The technologies that the user knows.
    pub known_technologies: Vec<String>,
    /// What the user wants to learn.
    pub learning_goals: Vec<String>,
}

impl From<Profile> for UserProfile {
    fn from(profile: Profile) -> Self {
        Self {
            experience_years: profile.experience_years,
            specialties: profile.specialties.into_values().collect(),
            known_technologies: profile.known_technologies.into_values().collect(),
            learning_goals: profile.learning_goals.into_values().collect(),
        }
    }
}

/// What people decided about a claim or an edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decided {
    /// Of a claim `rejected` or `restored`; of an edge `supports`, `refutes` or `neutral`.
    pub state: String,
    /// Why a claim was rejected, as a code; empty if nobody said.
    pub reason_code: String,
    /// The revision that applied it.
    pub revision: i64,
}

impl From<ClaimDecided> for Decided {
    fn from(decided: ClaimDecided) -> Self {
        let word = decided.state.word();
        Self {
            state: word.split_once(':').map_or(word, |(state, _)| state).to_owned(),
            reason_code: decided.state.reason_code().to_owned(),
            revision: decided.revision.0,
        }
    }
}

impl From<EdgeDecided> for Decided {
    fn from(decided: EdgeDecided) -> Self {
        Self {
            state: decided.relation.name().to_owned(),
            reason_code: String::new(),
            revision: decided.revision.0,
        }
    }
}

/// What a node holds, and how current it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Status {
    /// Whether its stream is open.
    pub connected: bool,
    /// The revision at or below which everything is applied.
    pub revision: i64,
    /// Whose resources it answers from; empty before the first state.
    pub installation: String,
    /// The installation that answers instead, and that it was not told to accept; empty: none.
    pub other_installation: String,
    /// The epoch of the log that the revision belongs to; empty before the first state.
    pub epoch: String,
    /// Where its state came from: `nothing`, `disk_copy` or `stream`.
    pub origin: &'static str,
    /// How long ago it was known to hold everything there was, in seconds; null: never.
    pub age_seconds: Option<f64>,
    /// Something is missing or wrong, and a new snapshot is on its way.
    pub in_doubt: bool,
    /// Why the last stream ended, for people; empty while one is open.
    pub last_error: String,
}

impl Status {
    pub(crate) fn new(staleness: Staleness, last_error: String) -> Self {
        Self {
            last_error: if staleness.connected {
                String::new()
            } else {
                last_error
            },
            connected: staleness.connected,
            revision: staleness.revision.0,
            installation: staleness
                .installation
                .map_or_else(String::new, |id| id.to_string()),
            other_installation: staleness
                .other_installation
                .map_or_else(String::new, |id| id.to_string()),
            epoch: staleness.epoch.unwrap_or_default(),
            origin: match staleness.origin {
                Origin::Nothing => "nothing",
                Origin::DiskCopy { .. } => "disk_copy",
                Origin::Stream => "stream",
            },
            age_seconds: staleness.age.map(|age| age.as_secs_f64()),
            in_doubt: staleness.in_doubt,
        }
    }
}

#[cfg(test)]
mod tests {
    use emend_client::{ExpandMode, OrGroup};

    use super::*;

    #[test]
    fn places_are_counted_as_the_language_counts() {
        let original = "𠮷の顔".to_owned();
        let expanded = ExpandedText {
            groups: vec![OrGroup {
                span: 7..10,
                alternatives: vec!["顔".to_owned(), "face".to_owned()],
            }],
            original,
            mode: ExpandMode::Keyword,
        };
        let places = |units| {
            let group = Expanded::new(expanded.clone(), units).groups.remove(0);
            (group.start, group.end)
        };
        assert_eq!(places(TextUnits::CodePoints), (2, 3));
        assert_eq!(places(TextUnits::Utf16), (3, 4));
        assert_eq!(places(TextUnits::Bytes), (7, 10));
    }

    #[test]
    fn a_plan_has_its_searches_in_order() {
        let tuning = SearchTuning::from(&Tuning::default());
        let numbers: Vec<_> = tuning.retry_plan.iter().map(|attempt| attempt.number).collect();
        assert_eq!(numbers, [1, 2, 3]);
        assert!(tuning.retry_plan[2].expand);
    }
}
