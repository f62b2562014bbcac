//! The node. A look-up is answered by an object, everything else by JSON.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use emend_binding::{
    Error, NodeSettings,
    answers::{self, NearAnswer, TextUnits},
    background,
};
use emend_client::{Resolution, Scope};
use pyo3::{Py, PyAny, PyResult, Python, pyclass, pymethods};
use serde::Serialize;

use crate::{
    error::raised,
    events::Changes,
    waiting::{Task, start, wait},
};

/// What a node answers for a phrase.
#[pyclass(frozen, module = "emend")]
pub(crate) struct Hit(Resolution);

#[pymethods]
impl Hit {
    /// What was learned for the phrase, never a prohibited choice; ``None``: nothing was.
    #[getter]
    fn choice(&self) -> Option<&str> {
        self.0.found.as_ref().map(|found| &*found.value)
    }

    /// The score of the learned choice, 1.0; 0.0 without one.
    #[getter]
    fn score(&self) -> f64 {
        self.0.found.as_ref().map_or(0.0, |found| found.score)
    }

    /// ``"user"`` or ``"global"``: whether it is the user's own or everybody's; ``None`` without one.
    #[getter]
    fn scope(&self) -> Option<&'static str> {
        self.0.found.as_ref().map(|found| match found.scope {
            Scope::User => "user",
            Scope::Global => "global",
        })
    }

    /// The choices to leave out, sorted.
    #[getter]
    fn prohibited(&self) -> &[String] {
        &self.0.prohibited
    }

    /// Whether something was learned that is prohibited.
    #[getter]
    fn match_prohibited(&self) -> bool {
        self.0.found_prohibited
    }

    /// Whether to ask the user.
    #[getter]
    fn feedback_hint(&self) -> bool {
        self.0.feedback_hint
    }

    /// What was learned for similar phrases; ``None``: nothing that is similar enough, or nobody asked for it, or something was
    /// learned for the phrase itself.
    #[getter]
    fn near(&self) -> Option<Near> {
        self.0.near.clone().map(|near| Near(near.into()))
    }

    /// Whether near answers are given: ``"not_asked"``, ``"ready"``, ``"without_vectors"``, ``"fitting"``, ``"off"`` or
    /// ``"too_many"``.
    #[getter]
    fn near_status(&self) -> &'static str {
        self.0.near_status.name()
    }

    /// The phrase as it was looked up, normalised.
    #[getter]
    fn normalized_phrase(&self) -> &str {
        self.0.phrase.as_str()
    }

    /// The revision of the state that answered.
    #[getter]
    fn revision(&self) -> i64 {
        self.0.revision.0
    }

    /// The revision that learned the choice; ``None`` without one.
    #[getter]
    fn learned_revision(&self) -> Option<i64> {
        self.0.found.as_ref().map(|found| found.revision.0)
    }

    fn __repr__(&self) -> String {
        let quoted = |text: &str| format!("{text:?}");
        format!(
            "Hit(choice={}, prohibited={:?}, feedback_hint={})",
            self.choice().map_or_else(|| "None".to_owned(), quoted),
            self.0.prohibited,
            if self.0.feedback_hint { "True" } else { "False" },
        )
    }
}

/// What a phrase that nobody corrected most likely means.
#[pyclass(frozen, module = "emend")]
pub(crate) struct Near(NearAnswer);

#[pymethods]
impl Near {
    /// The choice, never a prohibited one.
    #[getter]
    fn choice(&self) -> &str {
        &self.0.choice
    }

    /// How likely it is right, 0.0 to 1.0.
    #[getter]
    fn confidence(&self) -> f64 {
        self.0.confidence
    }

    /// The nearest phrases that were learned, the nearest first.
    #[getter]
    fn because(&self) -> Vec<NearPhrase> {
        self.0.because.iter().cloned().map(NearPhrase).collect()
    }

    /// The model that answered: equal models give equal answers.
    #[getter]
    fn model(&self) -> &str {
        &self.0.model
    }

    fn __repr__(&self) -> String {
        format!(
            "Near(choice={:?}, confidence={:.3})",
            self.0.choice, self.0.confidence
        )
    }
}

/// A phrase that was learned.
#[pyclass(frozen, module = "emend")]
pub(crate) struct NearPhrase(answers::NearPhrase);

#[pymethods]
impl NearPhrase {
    /// The phrase, in normal form.
    #[getter]
    fn phrase(&self) -> &str {
        &self.0.phrase
    }

    /// What it means.
    #[getter]
    fn choice(&self) -> &str {
        &self.0.choice
    }

    /// How similar it is, 0.0 to 1.0.
    #[getter]
    fn similarity(&self) -> f64 {
        self.0.similarity
    }

    fn __repr__(&self) -> String {
        let answers::NearPhrase {
            phrase,
            choice,
            similarity,
        } = &self.0;
        format!("NearPhrase(phrase={phrase:?}, choice={choice:?}, similarity={similarity:.3})")
    }
}

/// A node.
#[pyclass(frozen, module = "emend._emend")]
pub(crate) struct Node(emend_binding::Node);

fn json<T: Serialize>(answer: Result<T, Error>) -> PyResult<String> {
    let answer = answer.map_err(|error| raised(&error))?;
    Ok(serde_json::to_string(&answer).unwrap_or_default())
}

fn within(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        let why = format!("must be a number of seconds that is not negative, is {seconds}");
        raised(&Error::of_field("timeout", why))
    })
}

#[pymethods]
impl Node {
    #[new]
    fn new(py: Python<'_>, settings: &str) -> PyResult<Self> {
        let settings = NodeSettings::from_json(settings).map_err(|error| raised(&error))?;
        let started = py.detach(|| background::wait(emend_binding::Node::start(settings)));
        match started {
            Ok(Ok(node)) => Ok(Self(node)),
            Ok(Err(error)) | Err(error) => Err(raised(&error)),
        }
    }

    #[pyo3(signature = (namespace, phrase, candidates=None, kind=None, user=None, near=false))]
    #[expect(
        clippy::needless_pass_by_value,
        clippy::too_many_arguments,
        reason = "arguments from Python are taken, not lent, and as many as it names"
    )]
    fn resolve(
        &self,
        py: Python<'_>,
        namespace: &str,
        phrase: &str,
        candidates: Option<Vec<(String, f64)>>,
        kind: Option<&str>,
        user: Option<&str>,
        near: bool,
    ) -> PyResult<Hit> {
        let candidates = candidates.iter().flatten();
        let candidates = candidates.map(|(value, score)| (&**value, *score));
        let resolve = || self.0.resolve(namespace, phrase, kind, user, candidates, near);
        // An encoder takes milliseconds, for which Python's other threads go on.
        let resolved = if near { py.detach(resolve) } else { resolve() };
        resolved.map(Hit).map_err(|error| raised(&error))
    }

    fn is_blocked(&self, namespace: &str, host: &str) -> PyResult<bool> {
        self.0.is_blocked(namespace, host).map_err(|error| raised(&error))
    }

    fn synonyms(&self, namespace: &str, term: &str, user: Option<&str>) -> PyResult<Vec<String>> {
        self.0
            .synonyms(namespace, term, user)
            .map_err(|error| raised(&error))
    }

    /// The places and weighed scores of results, best first.
    fn rank(&self, namespace: &str, sources: Vec<(String, f64)>) -> PyResult<Vec<(usize, f64)>> {
        let sources = sources.into_iter().enumerate();
        let ranked = self
            .0
            .rank(
                namespace,
                sources.map(|(place, (host, score))| (place, host, score)),
            )
            .map_err(|error| raised(&error))?;
        Ok(ranked
            .into_iter()
            .map(|(place, _, score)| (place, score))
            .collect())
    }

    fn expand(&self, namespace: &str, text: &str, mode: &str, user: Option<&str>) -> PyResult<String> {
        json(self.0.expand(namespace, text, mode, user, TextUnits::CodePoints))
    }

    fn tuning(&self, namespace: &str, query_type: &str) -> PyResult<String> {
        json(self.0.tuning(namespace, query_type))
    }

    fn trust(&self, namespace: &str, host: &str) -> PyResult<String> {
        json(self.0.trust(namespace, host))
    }

    fn render_prompt(
        &self,
        namespace: &str,
        target: &str,
        label: Option<&str>,
        variables: HashMap<String, String>,
        user: Option<&str>,
        language: Option<&str>,
    ) -> PyResult<String> {
        json(
            self.0
                .render_prompt(namespace, target, label, variables, user, language),
        )
    }

    fn prompt(&self, namespace: &str, target: &str, label: &str) -> PyResult<String> {
        json(self.0.prompt(namespace, target, label))
    }

    fn examples(&self, namespace: &str, target: &str) -> PyResult<String> {
        json(self.0.examples(namespace, target))
    }

    fn profile(&self, namespace: &str, user: &str) -> PyResult<String> {
        json(self.0.profile(namespace, user))
    }

    fn claim_state(&self, namespace: &str, claim_id: &str) -> PyResult<String> {
        json(self.0.claim_state(namespace, claim_id))
    }

    fn edge_label(&self, namespace: &str, edge_id: &str) -> PyResult<String> {
        json(self.0.edge_label(namespace, edge_id))
    }

    fn status(&self) -> PyResult<String> {
        json(self.0.status())
    }

    fn wait_ready(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        wait(py, self.0.wait_ready(within(seconds)?))
    }

    fn start_wait_ready(&self, seconds: f64, done: Py<PyAny>) -> PyResult<Task> {
        start(self.0.wait_ready(within(seconds)?), done)
    }

    fn wait_near(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        wait(py, self.0.wait_near(within(seconds)?))
    }

    fn start_wait_near(&self, seconds: f64, done: Py<PyAny>) -> PyResult<Task> {
        start(self.0.wait_near(within(seconds)?), done)
    }

    fn wait_for_revision(&self, py: Python<'_>, revision: i64, seconds: f64) -> PyResult<()> {
        wait(py, self.0.wait_for_revision(revision, within(seconds)?))
    }

    fn start_wait_for_revision(&self, revision: i64, seconds: f64, done: Py<PyAny>) -> PyResult<Task> {
        start(self.0.wait_for_revision(revision, within(seconds)?), done)
    }

    fn accept_installation(&self, installation: &str) -> PyResult<()> {
        self.0
            .accept_installation(installation)
            .map_err(|error| raised(&error))
    }

    fn changes(&self) -> PyResult<Changes> {
        let changes = self.0.changes().map_err(|error| raised(&error))?;
        Ok(Changes(Mutex::new(changes)))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, self.0.close())
    }

    fn start_close(&self, done: Py<PyAny>) -> PyResult<Task> {
        start(self.0.close(), done)
    }
}
