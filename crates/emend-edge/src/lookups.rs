//! What can be asked: each look-up is what it takes and what a node answers.

pub mod evidence;
pub mod outputs;

use emend_binding::{
    Error, Node,
    answers::{self, Expanded, Group, NearAnswer, SearchAttempt, SearchTuning, TextUnits},
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;

use self::{
    evidence::{BlockedIn, ClaimOf, EdgeOf, Rank, TrustIn},
    outputs::{ExamplesOf, ProfileOf, PromptOf, PromptText},
};
use crate::fragment::{Engine, Field, Operator, Target, fragment};

/// The most candidates, or results to rank, of one look-up.
const MOST: usize = 1_000;

/// Something that can be asked. The schema of what it takes says what is wrong with a request, too.
pub trait Lookup: DeserializeOwned + JsonSchema + Send {
    /// What is answered. None of its fields is named `revision`: an answer says there which revision answered.
    type Answer: Serialize + JsonSchema;

    /// Its name in addresses.
    const NAME: &str;

    /// The user whose own is asked for, too.
    fn user(&self) -> Option<&str> {
        None
    }

    /// Whether it needs the right to act for users.
    fn is_for_a_user(&self) -> bool {
        false
    }

    /// What the node answers for a namespace.
    fn answer(self, node: &Node, namespace: &str) -> Result<Self::Answer, Error>;
}

/// Who goes through all look-ups.
pub(crate) trait Visitor {
    /// One of them.
    fn visit<L: Lookup + 'static>(&mut self);
}

/// Shows all look-ups to a visitor.
pub(crate) fn each(visitor: &mut impl Visitor) {
    visitor.visit::<Resolve>();
    visitor.visit::<Expand>();
    visitor.visit::<Synonyms>();
    visitor.visit::<TuningOf>();
    visitor.visit::<RetryPlanOf>();
    visitor.visit::<TrustIn>();
    visitor.visit::<BlockedIn>();
    visitor.visit::<Rank>();
    visitor.visit::<PromptOf>();
    visitor.visit::<PromptText>();
    visitor.visit::<ExamplesOf>();
    visitor.visit::<ProfileOf>();
    visitor.visit::<ClaimOf>();
    visitor.visit::<EdgeOf>();
}

/// What was learned for a phrase, what never to offer, and whether to ask the user.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ResolveLookup")]
pub struct Resolve {
    /// What somebody typed.
    phrase: String,
    /// `invocation_phrase` (the default) or `entity_alias`.
    kind: Option<String>,
    /// Whose own answers count first; refused where the edge holds nothing of users' own.
    user: Option<String>,
    /// What the backend would answer by itself.
    #[serde(default)]
    #[schemars(length(max = MOST))]
    candidates: Vec<Candidate>,
    /// Where nothing was learned for the phrase, answer by what was for similar ones, too.
    #[serde(default, deserialize_with = "flag")]
    near: bool,
}

/// A choice of the backend.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// What it would answer.
    value: String,
    /// 0.0 to 1.0.
    score: f64,
}

/// The answer for a phrase.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Resolved {
    /// What was learned, never a prohibited choice.
    choice: Option<String>,
    /// 1.0 for what was learned; 0.0 where nothing was.
    score: f64,
    /// `user` or `global`: whether it is the user's own or everybody's.
    scope: Option<&'static str>,
    /// The revision that applied it.
    learned_at_revision: Option<i64>,
    /// Choices to leave out, sorted.
    prohibited: Vec<String>,
    /// Ask the user.
    feedback_hint: bool,
    /// The phrase as it was looked up.
    normalized: String,
    /// What was learned for similar phrases, where that was asked for and nothing was for this one.
    near: Option<NearAnswer>,
    /// Whether near answers are given: `not_asked`, `ready`, `without_vectors`, `fitting`, `off` or `too_many`.
    near_status: &'static str,
}

impl Lookup for Resolve {
    type Answer = Resolved;

    const NAME: &str = "resolve";

    fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    fn answer(self, node: &Node, namespace: &str) -> Result<Resolved, Error> {
        few("candidates", self.candidates.len())?;
        let candidates = self
            .candidates
            .iter()
            .map(|candidate| (&*candidate.value, candidate.score));
        let found = node.resolve(
            namespace,
            &self.phrase,
            self.kind.as_deref(),
            self.user.as_deref(),
            candidates,
            self.near,
        )?;
        Ok(Resolved {
            near: found.near.map(NearAnswer::from),
            near_status: found.near_status.name(),
            score: found.found.as_ref().map_or(0.0, |found| found.score),
            scope: found.found.as_ref().map(answers::scope),
            learned_at_revision: found.found.as_ref().map(|found| found.revision.0),
            choice: found.found.map(|found| found.value),
            prohibited: found.prohibited,
            feedback_hint: found.feedback_hint,
            normalized: found.phrase.to_string(),
        })
    }
}

/// A text with what else to search for where terms stand in it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpandLookup")]
pub struct Expand {
    /// What somebody typed.
    text: String,
    /// `keyword` (the default) or `embedding`: what is embedded has its representatives behind it.
    #[serde(default)]
    mode: Mode,
    /// Whose own synonyms count, too; refused where the edge holds nothing of users' own.
    user: Option<String>,
    /// In what places are counted: `code_points` (the default), `utf16` or `bytes`.
    #[serde(default)]
    units: Units,
    /// The engine that is to take it.
    #[serde(rename = "as")]
    engine: Option<Engine>,
    /// Which of the engine's fields are searched: NAME or NAME^BOOST.
    #[serde(default, deserialize_with = "one_or_many")]
    fields: Vec<String>,
    /// The index or collection, where the engine's query names it.
    #[serde(default)]
    index: String,
    /// How many of the words a result must have: `and` (all, the default) or `or` (any).
    #[serde(default)]
    operator: Operator,
}

/// In what places are counted.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Units {
    #[default]
    CodePoints,
    Utf16,
    Bytes,
}

/// What is expanded.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Keyword,
    Embedding,
}

/// An expanded text: itself, or as the query of an engine.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ExpandedFor {
    /// Whether there was something else to search for.
    expanded: bool,
    /// The text as it was; without `as`.
    #[serde(skip_serializing_if = "Option::is_none")]
    original: Option<String>,
    /// Where terms stand for which there is something else to search, from left to right; without `as`.
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<Vec<Group>>,
    /// As one text: by keyword with `A OR B` where a term stands, by embedding with the representatives behind it; without `as`.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The engine's query, or the part of one: JSON where the engine takes JSON, otherwise a text; with `as`.
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<Value>,
}

impl ExpandedFor {
    /// As it is.
    fn anybody(expanded: Expanded) -> Self {
        Self {
            expanded: !expanded.groups.is_empty(),
            original: Some(expanded.original),
            groups: Some(expanded.groups),
            text: Some(expanded.text),
            query: None,
        }
    }
}

impl Lookup for Expand {
    type Answer = ExpandedFor;

    const NAME: &str = "expand";

    fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    fn answer(self, node: &Node, namespace: &str) -> Result<ExpandedFor, Error> {
        let mode = match self.mode {
            Mode::Keyword => "keyword",
            Mode::Embedding => "embedding",
        };
        let user = self.user.as_deref();
        let Some(engine) = self.engine else {
            let units = match self.units {
                Units::CodePoints => TextUnits::CodePoints,
                Units::Utf16 => TextUnits::Utf16,
                Units::Bytes => TextUnits::Bytes,
            };
            let expanded = node.expand(namespace, &self.text, mode, user, units)?;
            return Ok(ExpandedFor::anybody(expanded));
        };
        if self.index.is_empty() && matches!(engine, Engine::Meilisearch | Engine::Typesense) {
            return Err(Error::of_field(
                "index",
                "must be given: the query of this engine names it",
            ));
        }
        let target = Target {
            fields: fields(&self.fields)?,
            index: self.index,
            operator: self.operator,
        };
        let expanded = node.expand(namespace, &self.text, mode, user, TextUnits::Bytes)?;
        Ok(ExpandedFor {
            expanded: !expanded.groups.is_empty(),
            query: Some(fragment(engine, &expanded, &target)),
            ..ExpandedFor::default()
        })
    }
}

/// What else to search for where a term stands.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SynonymsLookup")]
pub struct Synonyms {
    /// The term.
    term: String,
    /// Whose own synonyms count, too; refused where the edge holds nothing of users' own.
    user: Option<String>,
}

/// What else to search for, the representatives first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SynonymsOfTerm {
    /// As people write them.
    synonyms: Vec<String>,
}

impl Lookup for Synonyms {
    type Answer = SynonymsOfTerm;

    const NAME: &str = "synonyms";

    fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    fn answer(self, node: &Node, namespace: &str) -> Result<SynonymsOfTerm, Error> {
        let synonyms = node.synonyms(namespace, &self.term, self.user.as_deref())?;
        Ok(SynonymsOfTerm { synonyms })
    }
}

/// How queries of a type are searched, with the plan of what to try.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TuningLookup")]
pub struct TuningOf {
    /// The type of the queries, as the application names it.
    query_type: String,
}

impl Lookup for TuningOf {
    type Answer = SearchTuning;

    const NAME: &str = "tuning";

    fn answer(self, node: &Node, namespace: &str) -> Result<SearchTuning, Error> {
        node.tuning(namespace, &self.query_type)
    }
}

/// The searches to try for queries of a type until one finds something.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RetryPlanLookup")]
pub struct RetryPlanOf {
    /// The type of the queries, as the application names it.
    query_type: String,
}

/// A plan of searches.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RetryPlan {
    /// The searches, first the one as configured.
    attempts: Vec<SearchAttempt>,
    /// What the user is told when none of them found anything; empty: the application's own text.
    suggestion: String,
}

impl Lookup for RetryPlanOf {
    type Answer = RetryPlan;

    const NAME: &str = "retry-plan";

    fn answer(self, node: &Node, namespace: &str) -> Result<RetryPlan, Error> {
        let tuning = node.tuning(namespace, &self.query_type)?;
        Ok(RetryPlan {
            attempts: tuning.retry_plan,
            suggestion: tuning.suggestion,
        })
    }
}

fn few(field: &str, count: usize) -> Result<(), Error> {
    if count <= MOST {
        return Ok(());
    }
    Err(Error::of_field(
        field,
        format!("must be at most {MOST}, are {count}"),
    ))
}

/// A truth, or its name: an address has texts alone.
fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Flag {
        Truth(bool),
        Name(String),
    }
    match Flag::deserialize(deserializer)? {
        Flag::Truth(is) => Ok(is),
        Flag::Name(name) => name
            .parse()
            .map_err(|_| serde::de::Error::custom("must be true or false")),
    }
}

/// A list, or what an address says: one text, with commas between its items.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(text) => text.split(',').map(str::to_owned).collect(),
        OneOrMany::Many(texts) => texts,
    })
}

fn fields(texts: &[String]) -> Result<Vec<Field>, Error> {
    let parsed = texts.iter().enumerate().map(|(place, text)| {
        let parsed = text.parse::<Field>();
        parsed.map_err(|error| Error::of_field(&format!("fields[{place}]"), error.to_string()))
    });
    parsed.collect()
}
