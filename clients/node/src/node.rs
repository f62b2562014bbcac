//! A node: what was learned, kept up to date in the background.

#![expect(
    clippy::too_many_arguments,
    reason = "reading an object of JavaScript takes longer than a look-up"
)]

use std::{collections::HashMap, time::Duration};

use emend_binding::{
    Change, Changes, NodeSettings,
    answers::{NearAnswer, TextUnits},
    background,
};
use emend_client::Scope;
use napi::{
    Env, Result, Status,
    bindgen_prelude::Object,
    threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode},
};
use napi_derive::napi;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    answer::{thrown, told_of},
    running::run,
};

/// Tells JavaScript what happens. It keeps no process from ending.
type Listener = ThreadsafeFunction<String, (), String, Status, false, true, 1024>;

/// What a phrase was resolved to: the choice, the revision that applied it, whether it is the user's own, whether something
/// prohibited was learned, whether to ask the user, the choices never to offer (`None`: there are none), the revision of the state
/// that answered, the phrase in normal form, the near answer (JSON; `None`: there is none), and whether near answers are given.
type Resolved = (
    Option<String>,
    f64,
    bool,
    bool,
    bool,
    Option<Vec<String>>,
    f64,
    String,
    Option<String>,
    &'static str,
);

/// See `lib/node.js`.
#[napi]
pub struct Node {
    node: emend_binding::Node,
    /// Cancelled when it is closed: nobody waits for it any more.
    open: CancellationToken,
}

#[napi]
impl Node {
    /// Starts a node with these settings, JSON, which tells what happens to it. It waits for the copy on disk alone.
    #[napi(constructor)]
    pub fn new(settings: String, listener: Listener) -> Result<Self> {
        let settings = NodeSettings::from_json(&settings).map_err(|error| thrown(&error))?;
        let started = background::wait(emend_binding::Node::start(settings)).and_then(|started| started);
        let node = started.map_err(|error| thrown(&error))?;
        let changes = node.changes().map_err(|error| thrown(&error))?;
        let background = background::handle().map_err(|error| thrown(&error))?;
        background.spawn(tell(changes, listener));
        Ok(Self {
            node,
            open: CancellationToken::new(),
        })
    }

    /// What was learned for a phrase.
    #[napi]
    pub fn resolve(
        &self,
        namespace: String,
        phrase: String,
        kind: Option<String>,
        user: Option<String>,
        choices: Option<Vec<String>>,
        scores: Option<Vec<f64>>,
        near: Option<bool>,
    ) -> Result<Resolved> {
        let choices = choices.unwrap_or_default();
        let candidates = choices
            .iter()
            .map(|choice| &**choice)
            .zip(scores.unwrap_or_default());
        let resolved = self
            .node
            .resolve(
                &namespace,
                &phrase,
                kind.as_deref(),
                user.as_deref(),
                candidates,
                near.unwrap_or_default(),
            )
            .map_err(|error| thrown(&error))?;
        let found = resolved.found.as_ref();
        Ok((
            found.map(|found| found.value.clone()),
            found.map_or(0.0, |found| number(found.revision.0)),
            found.is_some_and(|found| found.scope == Scope::User),
            resolved.found_prohibited,
            resolved.feedback_hint,
            (!resolved.prohibited.is_empty()).then_some(resolved.prohibited),
            number(resolved.revision.0),
            resolved.phrase.as_str().to_owned(),
            resolved
                .near
                .map(|near| json!(NearAnswer::from(near)).to_string()),
            resolved.near_status.name(),
        ))
    }

    /// What else to search for where terms stand in a text.
    #[napi]
    pub fn expand(&self, namespace: String, text: String, mode: String, user: Option<String>) -> String {
        let expanded = self
            .node
            .expand(&namespace, &text, &mode, user.as_deref(), TextUnits::Utf16);
        told_of(expanded)
    }

    /// What else to search for where a term stands.
    #[napi]
    pub fn synonyms(&self, namespace: String, term: String, user: Option<String>) -> String {
        told_of(self.node.synonyms(&namespace, &term, user.as_deref()))
    }

    /// How queries of a type are searched.
    #[napi]
    pub fn tuning(&self, namespace: String, query_type: String) -> String {
        told_of(self.node.tuning(&namespace, &query_type))
    }

    /// How far a source is trusted.
    #[napi]
    pub fn trust(&self, namespace: String, host: String) -> String {
        told_of(self.node.trust(&namespace, &host))
    }

    /// Whether the sources of a host must not be shown.
    #[napi]
    pub fn is_blocked(&self, namespace: String, host: String) -> Result<bool> {
        self.node
            .is_blocked(&namespace, &host)
            .map_err(|error| thrown(&error))
    }

    /// The places of results in the order of the trust in their sources, and what they score.
    #[napi]
    pub fn rank(
        &self,
        namespace: String,
        hosts: Vec<String>,
        scores: Vec<f64>,
    ) -> Result<(Vec<u32>, Vec<f64>)> {
        let results = (0_u32..).zip(hosts).zip(scores);
        let ranked = self.node.rank(
            &namespace,
            results.map(|((place, host), score)| (place, host, score)),
        );
        let ranked = ranked.map_err(|error| thrown(&error))?;
        Ok(ranked.into_iter().map(|(place, _, score)| (place, score)).unzip())
    }

    /// What people decided about a claim.
    #[napi]
    pub fn claim_state(&self, namespace: String, claim_id: String) -> String {
        told_of(self.node.claim_state(&namespace, &claim_id))
    }

    /// The label that a person gave an edge.
    #[napi]
    pub fn edge_label(&self, namespace: String, edge_id: String) -> String {
        told_of(self.node.edge_label(&namespace, &edge_id))
    }

    /// A prompt as it is sent to the AI.
    #[napi]
    pub fn render_prompt(
        &self,
        namespace: String,
        target: String,
        label: Option<String>,
        variables: HashMap<String, String>,
        user: Option<String>,
        language: Option<String>,
    ) -> String {
        let (label, user, language) = (label.as_deref(), user.as_deref(), language.as_deref());
        told_of(
            self.node
                .render_prompt(&namespace, &target, label, variables, user, language),
        )
    }

    /// The version of a prompt that is current under a label.
    #[napi]
    pub fn prompt(&self, namespace: String, target: String, label: String) -> String {
        told_of(self.node.prompt(&namespace, &target, &label))
    }

    /// The newest rated examples of a target.
    #[napi]
    pub fn examples(&self, namespace: String, target: String) -> String {
        told_of(self.node.examples(&namespace, &target))
    }

    /// What a user knows and wants to learn.
    #[napi]
    pub fn profile(&self, namespace: String, user: String) -> String {
        told_of(self.node.profile(&namespace, &user))
    }

    /// What it holds, and how current it is.
    #[napi]
    pub fn status(&self) -> String {
        told_of(self.node.status())
    }

    /// Waits until there is something to answer from, for so many milliseconds.
    #[napi]
    pub fn ready<'env>(&self, env: &'env Env, id: u32, timeout: u32) -> Result<Object<'env>> {
        let waiting = self.node.wait_ready(Duration::from_millis(timeout.into()));
        run(env, id, &self.open, async { told_of(waiting.await) })
    }

    /// Waits until everything at or below a revision is applied.
    #[napi]
    pub fn wait_for<'env>(
        &self,
        env: &'env Env,
        id: u32,
        revision: i64,
        timeout: u32,
    ) -> Result<Object<'env>> {
        let within = Duration::from_millis(timeout.into());
        let waiting = self.node.wait_for_revision(revision, within);
        run(env, id, &self.open, async { told_of(waiting.await) })
    }

    /// Waits until near answers are by models of all that was learned.
    #[napi]
    pub fn wait_near<'env>(&self, env: &'env Env, id: u32, timeout: u32) -> Result<Object<'env>> {
        let waiting = self.node.wait_near(Duration::from_millis(timeout.into()));
        run(env, id, &self.open, async { told_of(waiting.await) })
    }

    /// Accepts an installation in place of the one whose resources it holds.
    #[napi]
    pub fn accept_installation(&self, installation: String) -> Result<()> {
        self.node
            .accept_installation(&installation)
            .map_err(|error| thrown(&error))
    }

    /// Brings its copy on disk up to date and stops.
    #[napi]
    pub fn close<'env>(&self, env: &'env Env, id: u32) -> Result<Object<'env>> {
        self.open.cancel();
        let closing = self.node.close();
        run(env, id, &CancellationToken::new(), async {
            told_of(closing.await)
        })
    }
}

/// Tells what happens to a node, until it ends or nobody listens any more. A listener that is slow is told that it missed something.
async fn tell(mut changes: Changes, listener: Listener) {
    let mut missed = 0_u64;
    while let Some(change) = changes.next().await {
        if missed > 0 && call(&listener, &lost(missed)) == Status::Ok {
            missed = 0;
        }
        match call(&listener, &change) {
            Status::Closing => return,
            Status::QueueFull => missed += 1,
            _ => {}
        }
    }
}

fn call(listener: &Listener, change: &Change) -> Status {
    listener.call(json!(change).to_string(), ThreadsafeFunctionCallMode::NonBlocking)
}

fn lost(count: u64) -> Change {
    Change {
        event: "missed",
        revision: None,
        changes: Vec::new(),
        detail: format!("{count} events were missed: the event loop was busy"),
    }
}

/// A revision as JavaScript has numbers: exact below 2^53.
#[expect(clippy::cast_precision_loss, reason = "no log has 2^53 revisions")]
fn number(revision: i64) -> f64 {
    revision as f64
}
