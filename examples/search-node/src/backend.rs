//! A search as this backend does it: what was learned for the query first; then the index, with synonyms, as the query type's
//! tuning says, without what is prohibited or blocked; and if nothing is found, the steps of the tuning.

use std::{collections::BTreeSet, fmt, sync::Arc};

use anyhow::{Context as _, Result};
use emend_client::{
    Attempt, Entropy, ExpandMode, ExpandedText, Kind, LearnedView, Namespace, QueryRecorder, Resolution,
    RetryPlan, Step, SystemClock, Tuning,
    proto::feedback::v1::{Query, QueryResult},
};

pub use crate::{
    asked::{Asked, QUERY_TYPE},
    meaning::VectorSearch,
};
use crate::{
    asked::{Question, for_embedding},
    click::Click,
    corpus::Record,
    embedding::Embedder,
    index::SearchIndex,
    meaning::{Port, QueryMeaning},
    query::{Part, parts},
    ranking::{Bounds, Hit},
};

/// Where is searched if no tuning says.
pub const NAMESPACES: [&str; 3] = ["effects", "products", "qa"];
/// What users are told if nothing was found and the tuning says nothing.
const SUGGESTION: &str =
    "見つかりませんでした。別の言葉で検索してください。 Nothing was found. Try other words.";
/// How many scores the event of a search has.
const LOGGED_SCORES: usize = 5;

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
    /// Whether vectors were searched, too.
    pub vector_search: VectorSearch,
    /// What these vectors are called; empty: none were searched.
    pub embedding_version: String,
    /// The text that was embedded last; empty: none was.
    pub embedded: String,
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
    index: Arc<SearchIndex>,
    learned: LearnedView,
    namespace: Namespace,
    entropy: Entropy,
    recorder: Option<QueryRecorder>,
    embedding: Option<Port>,
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

/// A question, with what was learned about it.
struct Understood<'q> {
    question: &'q Question<'q>,
    /// By keyword.
    expanded: ExpandedText,
    /// What to embed where a step says so.
    for_embedding: String,
    tuning: Arc<Tuning>,
    answer: Option<Resolution>,
    blocked: Vec<String>,
}

impl Backend {
    /// A backend of one search application.
    pub fn new(
        index: impl Into<Arc<SearchIndex>>,
        learned: LearnedView,
        namespace: Namespace,
        entropy: Entropy,
    ) -> Self {
        Self {
            index: index.into(),
            learned,
            namespace,
            entropy,
            recorder: None,
            embedding: None,
        }
    }

    /// The same, recording what is searched.
    #[must_use]
    pub fn recording(mut self, recorder: QueryRecorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// The same, searching vectors, too, where the index has those of this embedder.
    #[must_use]
    pub fn embedding(mut self, embedder: Box<dyn Embedder>) -> Self {
        self.embedding = Some(Port::new(embedder, SystemClock::shared()));
        self
    }

    /// The search application.
    pub const fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// What was learned, as far as it is known here.
    pub const fn learned(&self) -> &LearnedView {
        &self.learned
    }

    /// Searches. An error that is [`Violations`](emend_client::Violations) is the caller's.
    pub async fn search(&self, asked: &Asked) -> Result<Found> {
        let question = Question::parse(asked)?;
        let found = self.run(self.understood(&question)?).await?;
        if let Some(recorder) = &self.recorder
            && question.is_recorded
        {
            // What finds no room is counted by the recorder; a search never waits for it.
            recorder.query(self.recorded(&question, &found));
        }
        Ok(found)
    }

    /// Records a click on a result. An error that is [`Violations`](emend_client::Violations) is the caller's.
    pub fn click(&self, click: &Click) -> Result<()> {
        let interaction = click.parse(&self.index)?;
        if let Some(recorder) = &self.recorder {
            recorder.interaction(interaction);
        }
        Ok(())
    }

    /// All texts of one card or product, its whole text first.
    pub fn texts(&self, subject: &str) -> Result<Vec<Record>> {
        self.index.records_of(subject)
    }

    /// The id of a new session.
    pub(crate) fn new_session(&self) -> String {
        self.entropy.uuid_v4().to_string()
    }

    /// What was learned about a question.
    fn understood<'q>(&self, question: &'q Question<'q>) -> Result<Understood<'q>> {
        let (namespace, user) = (&self.namespace, question.user.as_ref());
        if question.without_learning {
            return Ok(Understood {
                question,
                expanded: ExpandedText {
                    original: question.text.to_owned(),
                    mode: ExpandMode::Keyword,
                    groups: Vec::new(),
                },
                for_embedding: question.text.to_owned(),
                tuning: Arc::default(),
                answer: None,
                blocked: Vec::new(),
            });
        }
        // One reading, so that all of it is of one revision.
        let reading = self.learned.read();
        let expand = |mode| reading.expand(namespace, question.text, mode, user);
        let (expanded, for_embedding) = match &question.expansion {
            Some(tried) => (tried.clone(), for_embedding(tried)),
            None => (
                expand(ExpandMode::Keyword),
                expand(ExpandMode::Embedding).render(),
            ),
        };
        let mut blocked = Vec::new();
        for host in self.index.hosts()? {
            if self.learned.is_blocked(namespace, &host)? {
                blocked.push(host);
            }
        }
        Ok(Understood {
            question,
            expanded,
            for_embedding,
            tuning: match &question.tuning {
                Some(tried) => Arc::clone(tried),
                None => reading.tuning(namespace, question.query_type),
            },
            answer: self.answer(question, &[]),
            blocked,
        })
    }

    /// The search as a rating of it is understood by.
    fn recorded(&self, question: &Question<'_>, found: &Found) -> Query {
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
            embedding_version: found.embedding_version.clone(),
            index_version: self.index.version(),
            build: env!("CARGO_PKG_VERSION").to_owned(),
            session_id: question.session_id.to_owned(),
            // Said also where nothing was found: left out it is not known.
            hit_count: i32::try_from(found.titles.len()).ok(),
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

    async fn run(&self, understood: Understood<'_>) -> Result<Found> {
        let Understood {
            question,
            expanded,
            for_embedding,
            tuning,
            answer,
            blocked,
        } = understood;
        let parts = parts(&self.index.words, &expanded)?;
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
        let mut meaning = QueryMeaning::new(self.embedding.as_ref(), &tuning);
        let (mut titles, mut attempts, mut top_k, mut suggestion) = (Vec::new(), 0, 0, String::new());
        for step in RetryPlan::new(&tuning) {
            match step {
                Step::Search(attempt) => {
                    let text = if attempt.expand {
                        &for_embedding
                    } else {
                        question.text
                    };
                    meaning.embed(text).await;
                    titles = self.attempt(&parts, &mut meaning, &attempt, &mut bounds, &tuning)?;
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
            vector_search: meaning.state,
            embedding_version: meaning.version(),
            embedded: meaning.embedded,
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
        meaning: &mut QueryMeaning<'_>,
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
        let hits = self.index.search(parts, meaning.of_query(), bounds)?;
        meaning.note(hits.with_vectors);
        let title = |hit: Hit| Title {
            confidence: tuning.confidence(hit.score).unwrap_or_default().to_owned(),
            record: hit.record,
            score: hit.score,
            learned: false,
        };
        Ok(hits.titles.into_iter().map(title).collect())
    }
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
        vector_search = ?found.vector_search,
        embedded = found.embedded,
        ?scores,
        "searched"
    );
}
