//! Connects the search to Emend: asks for learned answers first, and submits users' corrections.

use std::time::Duration;

use anyhow::Result;
use emend_client::{FeedbackClient, Kind, Lifecycle, Namespace, NodeHandle, Origin, Submission, Subscriber};
use serde_json::{Value, json};

use crate::{Arguments, index::Index};

/// A search backend that combines learned answers with its own index.
pub(crate) struct SearchNode {
    namespace: Namespace,
    index: Index,
    learned: NodeHandle,
    feedback: FeedbackClient,
}

/// The result of a search.
pub(crate) struct Found {
    verb: Option<String>,
    /// The revision that taught it, if it was learned.
    revision: Option<i64>,
    prohibited: Vec<String>,
    ask_user: bool,
}

impl SearchNode {
    /// When this returns, the node answers from its copy on disk, if there is one, while the stream is being opened.
    // [subscribe]
    pub(crate) async fn start(
        arguments: &Arguments,
        namespace: Namespace,
        feedback: FeedbackClient,
        lifecycle: &Lifecycle,
    ) -> Result<Self> {
        let mut subscriber = Subscriber::builder(format!("http://{}", arguments.learning), &arguments.node)
            .version(env!("CARGO_PKG_VERSION"))
            .namespace(namespace.to_string())
            .bookmark_interval(Duration::from_secs(arguments.bookmark_seconds));
        if let Some(file) = &arguments.state {
            subscriber = subscriber.copy(file);
        }
        if let Some(installation) = arguments.accept_installation {
            subscriber = subscriber.accept_installation(installation);
        }
        Ok(Self {
            learned: subscriber.spawn(lifecycle).await?,
            index: Index::new(),
            namespace,
            feedback,
        })
    }
    // [/subscribe]

    /// Returns once the stream has confirmed what the node holds.
    // [current]
    pub(crate) async fn current(&self) {
        let mut events = self.learned.events();
        while self.learned.view().staleness().origin != Origin::Stream {
            // An event is only a wake-up; the view has the state. `None`: the node has stopped.
            if events.next().await.is_none() {
                return;
            }
        }
    }
    // [/current]

    /// Learned answers come first; a prohibited choice is never returned.
    // [search]
    pub(crate) fn search(&self, phrase: &str) -> Result<Found> {
        let own = self.index.search(phrase);
        let answer = self.learned.view().resolve(
            &self.namespace,
            Kind::InvocationPhrase,
            phrase,
            None,
            own.iter().copied(),
        )?;
        let allowed = |verb: &&str| !answer.prohibited.iter().any(|prohibited| prohibited == verb);
        let own = own.iter().map(|(verb, _)| *verb).find(allowed);
        Ok(Found {
            revision: answer.found.as_ref().map(|found| found.revision.0),
            verb: answer.found.map(|found| found.value).or(own.map(str::to_owned)),
            prohibited: answer.prohibited,
            ask_user: answer.feedback_hint,
        })
    }
    // [/search]

    /// Submits a user's correction and, if it applies at once, waits until the node answers with it.
    // [correct]
    pub(crate) async fn correct(&self, reporter: &str, phrase: &str, right: &str) -> Result<Value> {
        let chosen = self.search(phrase)?.verb.filter(|chosen| chosen != right);
        let mut submission = Submission::verb(self.namespace.to_string(), phrase, right)
            .reporter(reporter)
            .client("verb-node-rust/1.0")
            .wait_evaluated();
        if let Some(chosen) = chosen {
            submission = submission.system_choice(chosen);
        }
        // Retried while the server is down or overloaded, yet stored once, thanks to its request id.
        let recorded = self.feedback.submit(submission).await?;
        if let Some(revision) = recorded.applied_revision() {
            let seen = self.learned.view().wait_for_revision(revision);
            let _ = tokio::time::timeout(Duration::from_secs(5), seen).await;
        }
        let outcome = recorded.outcome();
        Ok(json!({
            "state": recorded.state().as_str_name().trim_start_matches("OUTCOME_STATE_"),
            "confirmations_needed": outcome.map(|outcome| outcome.confirmations_needed),
        }))
    }
    // [/correct]

    /// The node's revision, and how stale it may be.
    // [status]
    pub(crate) fn status(&self) -> Value {
        let staleness = self.learned.view().staleness();
        json!({
            "connected": staleness.connected,
            "revision": staleness.revision.0,
            "age_ms": staleness.age.map(|age| age.as_millis()),
            "in_doubt": staleness.in_doubt,
            "other_installation": staleness.other_installation.map(|id| id.to_string()),
        })
    }
    // [/status]
}

impl Found {
    /// The answer as JSON.
    pub(crate) fn json(self) -> Value {
        match self.revision {
            Some(revision) => json!({"verb": self.verb, "learned": true, "revision": revision}),
            None => json!({
                "verb": self.verb, "learned": false, "prohibited": self.prohibited, "ask_user": self.ask_user,
            }),
        }
    }
}
