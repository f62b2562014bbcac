//! A search as this backend does it: what was learned for the query first; then the index, with synonyms, as the query type's
//! tuning says, without what is prohibited or blocked; and if nothing is found, the steps of the tuning.

use std::{collections::BTreeSet, fmt};

use anyhow::{Context as _, Result};
use emend_client::{
    Attempt, Entropy, ExpandMode, ExpandedText, Kind, LearnedView, Namespace, OrGroup, QueryRecorder,
    Resolution, RetryPlan, Step, Tuning, UserId,
    proto::feedback::v1::{Query, QueryResult},
};

use crate::{
    corpus::Record,
    index::SearchIndex,
    query::{Part, parts},
    ranking::{Bounds, Hit},
};

/// Where is searched if no tuning says.
pub const NAMESPACES: [&str; 3] = ["effects", "products", "qa"];
/// The type of queries that have none.
pub const QUERY_TYPE: &str = "HYBRID";
/// The most characters of a query.
const QUERY_CHARS: usize = 1_000;
/// The most groups of an expansion, and alternatives of one.
const GROUPS: usize = 100;
/// The most characters of a query type and of an id.
const NAME_CHARS: usize = 128;
/// What users are told if nothing was found and the tuning says nothing.
const SUGGESTION: &str =
    "見つかりませんでした。別の言葉で検索してください。 Nothing was found. Try other words.";
/// How many scores the event of a search has.
const LOGGED_SCORES: usize = 5;

/// What is asked.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// What the user typed, 1 to 1,000 characters.
    pub query: String,
    /// By which tuning it is searched; empty: [`QUERY_TYPE`].
    pub query_type: String,
    /// The user; empty: nobody in particular.
    pub user_id: String,
    /// The user's session; empty: none.
    pub session_id: String,
    /// What else to search for where terms stand in the query, in place of what was learned, to try it out; not recorded.
    pub expansion: Option<Vec<OrGroup>>,
    /// As if nothing had been learned, to compare with; not recorded.
    pub without_learning: bool,
}

/// What is wrong with what is asked: field and reason, all at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid(pub Vec<(&'static str, String)>);

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self
            .0
            .iter()
            .map(|(field, why)| format!("{field}: {why}"))
            .collect();
        f.write_str(&all.join("; "))
    }
}

impl std::error::Error for Invalid {}

/// One title that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Title {
    /// The record that fits best.
    pub record: Record,
    /// How well it fits, 0.0 to 1.0.
    pub score: f64,
    /// The confidence of that score by the tuning's names; empty: none.
    pub confidence: String,
    /// Whether people taught it as the answer.
    pub learned: bool,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The id of this search.
    pub query_id: String,
    /// The best first.
    pub titles: Vec<Title>,
    /// The query with its synonyms.
    pub expanded: String,
    /// How many searches it took, from 1.
    pub attempts: usize,
    /// Where the last of them searched.
    pub namespaces: BTreeSet<String>,
    /// From which score on it took results.
    pub min_score: f64,
    /// How many titles it took at most.
    pub top_k: u32,
    /// What to tell the user; empty if something was found.
    pub suggestion: String,
    /// Whether to ask the user if it was right.
    pub feedback_hint: bool,
    /// The newest revision that was considered.
    pub revision: i64,
}

/// Searches the index by what was learned.
pub struct Backend {
    index: SearchIndex,
    learned: LearnedView,
    namespace: Namespace,
    entropy: Entropy,
    recorder: Option<QueryRecorder>,
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

/// A question that is valid.
struct Question<'a> {
    text: &'a str,
    query_type: &'a str,
    user: Option<UserId>,
}

impl Backend {
    /// A backend of one search application.
    pub const fn new(
        index: SearchIndex,
        learned: LearnedView,
        namespace: Namespace,
        entropy: Entropy,
    ) -> Self {
        Self {
            index,
            learned,
            namespace,
            entropy,
            recorder: None,
        }
    }

    /// The same, recording what is searched.
    #[must_use]
    pub fn recording(mut self, recorder: QueryRecorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// What was learned, as far as it is known here.
    pub const fn learned(&self) -> &LearnedView {
        &self.learned
    }

    /// Searches. An error that is [`Invalid`] is the caller's.
    pub fn search(&self, asked: &Asked) -> Result<Found> {
        let question = parse(asked)?;
        let with = |groups: &[OrGroup]| ExpandedText {
            original: question.text.to_owned(),
            mode: ExpandMode::Keyword,
            groups: groups.to_vec(),
        };
        if asked.without_learning {
            return self.run(&question, &with(&[]), &Tuning::default(), None, Vec::new());
        }
        let (namespace, user) = (&self.namespace, question.user.as_ref());
        let expanded = match &asked.expansion {
            Some(groups) => with(groups),
            None => self
                .learned
                .expand(namespace, question.text, ExpandMode::Keyword, user),
        };
        let tuning = self.learned.tuning(namespace, question.query_type);
        let answer = self.answer(&question, &[]);
        let mut blocked = Vec::new();
        for host in self.index.hosts()? {
            if self.learned.is_blocked(namespace, &host)? {
                blocked.push(host);
            }
        }
        let found = self.run(&question, &expanded, &tuning, answer, blocked)?;
        if let (Some(recorder), None) = (&self.recorder, &asked.expansion) {
            // What finds no room is counted by the recorder; a search never waits for it.
            recorder.query(self.recorded(asked, &question, &found));
        }
        Ok(found)
    }

    /// The search as a rating of it is understood by.
    fn recorded(&self, asked: &Asked, question: &Question<'_>, found: &Found) -> Query {
        let result = |title: &Title| QueryResult {
            title: title.record.title.clone(),
            score: title.score,
            object_id: title.record.of().to_owned(),
        };
        Query {
            query_id: found.query_id.clone(),
            query_text: question.text.to_owned(),
            query_type: question.query_type.to_owned(),
            top_results: found.titles.iter().map(result).collect(),
            namespaces: found.namespaces.iter().cloned().collect(),
            min_score: Some(found.min_score),
            index_version: self.index.version(),
            build: env!("CARGO_PKG_VERSION").to_owned(),
            session_id: asked.session_id.clone(),
            ..Query::default()
        }
    }

    /// What was learned for the whole query, of choices that were found; `None` for one that is too long to be taught.
    fn answer(&self, question: &Question<'_>, found: &[(&str, f64)]) -> Option<Resolution> {
        let user = question.user.as_ref();
        let choices = found.iter().copied();
        let resolved = self
            .learned
            .resolve(&self.namespace, Kind::EntityAlias, question.text, user, choices);
        resolved.ok()
    }

    fn run(
        &self,
        question: &Question<'_>,
        expanded: &ExpandedText,
        tuning: &Tuning,
        answer: Option<Resolution>,
        blocked: Vec<String>,
    ) -> Result<Found> {
        let parts = parts(&self.index.words, expanded);
        let mut bounds = Bounds {
            prohibited: answer
                .as_ref()
                .map_or_else(Vec::new, |answer| answer.prohibited.clone()),
            blocked,
            ..Bounds::default()
        };
        let taught = answer.as_ref().and_then(|answer| answer.found.as_ref());
        let taught = match taught {
            Some(answer) => self.index.record_of(&answer.value)?,
            None => None,
        };
        let (mut titles, mut attempts, mut top_k, mut suggestion) = (Vec::new(), 0, 0, String::new());
        for step in RetryPlan::new(tuning) {
            match step {
                Step::Search(attempt) => {
                    titles = self.attempt(&parts, &attempt, &mut bounds, tuning)?;
                    (attempts, top_k) = (attempt.number, attempt.top_k);
                }
                Step::Suggest("") => SUGGESTION.clone_into(&mut suggestion),
                Step::Suggest(text) => text.clone_into(&mut suggestion),
            }
            if !titles.is_empty() || taught.is_some() {
                break;
            }
        }
        if let Some(record) = taught {
            titles.retain(|title: &Title| title.record.title != record.title);
            let confidence = tuning.confidence(1.0).unwrap_or_default().to_owned();
            titles.insert(
                0,
                Title {
                    record,
                    score: 1.0,
                    confidence,
                    learned: true,
                },
            );
            titles.truncate(bounds.top_k);
        }
        let choices: Vec<(&str, f64)> = titles
            .iter()
            .map(|title| (title.record.of(), title.score))
            .collect();
        let hint = match &answer {
            Some(_) => self
                .answer(question, &choices)
                .is_some_and(|answer| answer.feedback_hint),
            None => false,
        };
        let found = Found {
            query_id: self.entropy.uuid_v4().to_string(),
            expanded: expanded.render(),
            attempts,
            namespaces: bounds.namespaces,
            min_score: bounds.min_score,
            top_k,
            suggestion,
            feedback_hint: hint,
            revision: answer.map_or(0, |answer| answer.revision.0),
            titles,
        };
        log(question, &found);
        Ok(found)
    }

    fn attempt(
        &self,
        parts: &[Part],
        attempt: &Attempt<'_>,
        bounds: &mut Bounds,
        tuning: &Tuning,
    ) -> Result<Vec<Title>> {
        let own: Vec<&str> = match attempt.namespaces {
            [] => NAMESPACES.to_vec(),
            named => named.iter().map(|name| &**name).collect(),
        };
        let all = own.into_iter().chain(attempt.more_namespaces.iter().copied());
        bounds.namespaces = all.map(str::to_owned).collect();
        bounds.min_score = attempt.min_score;
        bounds.top_k = usize::try_from(attempt.top_k).context("top_k")?;
        let hits = self.index.search(parts, bounds)?;
        let title = |hit: Hit| Title {
            confidence: tuning.confidence(hit.score).unwrap_or_default().to_owned(),
            record: hit.record,
            score: hit.score,
            learned: false,
        };
        Ok(hits.into_iter().map(title).collect())
    }
}

fn parse(asked: &Asked) -> Result<Question<'_>, Invalid> {
    let mut violations = Vec::new();
    let text = &*asked.query;
    let count = text.trim().chars().count();
    if !(1..=QUERY_CHARS).contains(&count) {
        violations.push((
            "query",
            format!("must have 1 to {QUERY_CHARS} characters, has {count}"),
        ));
    }
    let count = asked.query_type.chars().count();
    if count > NAME_CHARS {
        let why = format!("must have at most {NAME_CHARS} characters, has {count}");
        violations.push(("query_type", why));
    }
    let count = asked.session_id.chars().count();
    if count > NAME_CHARS {
        let why = format!("must have at most {NAME_CHARS} characters, has {count}");
        violations.push(("session_id", why));
    }
    let groups = asked.expansion.as_deref().unwrap_or_default();
    if let Err(why) = check_groups(text, groups) {
        violations.push(("expansion", why));
    }
    let user = (!asked.user_id.is_empty())
        .then(|| UserId::parse(&asked.user_id))
        .transpose();
    let user = user.unwrap_or_else(|invalid| {
        violations.push(("user_id", invalid.to_string()));
        None
    });
    let query_type = match &*asked.query_type {
        "" => QUERY_TYPE,
        named => named,
    };
    if violations.is_empty() {
        Ok(Question {
            text,
            query_type,
            user,
        })
    } else {
        Err(Invalid(violations))
    }
}

fn check_groups(text: &str, groups: &[OrGroup]) -> Result<(), String> {
    let bounds = 1..=GROUPS;
    if groups.len() > GROUPS {
        return Err(format!("must have at most {GROUPS} groups, has {}", groups.len()));
    }
    let mut from = 0;
    for group in groups {
        let OrGroup { span, alternatives } = group;
        if span.start < from || span.is_empty() || text.get(span.clone()).is_none() {
            return Err(format!(
                "{span:?} is no part of the query behind the group before it"
            ));
        }
        if !bounds.contains(&alternatives.len()) {
            let count = alternatives.len();
            return Err(format!(
                "{span:?} must have 1 to {GROUPS} alternatives, has {count}"
            ));
        }
        from = span.end;
    }
    Ok(())
}

/// One event for each search.
fn log(question: &Question<'_>, found: &Found) {
    let scores: Vec<f64> = found
        .titles
        .iter()
        .take(LOGGED_SCORES)
        .map(|title| title.score)
        .collect();
    tracing::debug!(
        query = question.text,
        expanded = found.expanded,
        query_type = question.query_type,
        namespaces = ?found.namespaces,
        min_score = found.min_score,
        top_k = found.top_k,
        attempts = found.attempts,
        ?scores,
        "searched"
    );
}
