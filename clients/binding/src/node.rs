//! A node: `emend-client`'s subscriber in the background, and what it answers.

use std::{
    mem, process,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use emend_client::{
    ExpandMode, InstallationId, Kind, Language, LearnedView, Lifecycle, Namespace, NodeHandle, Observed,
    RenderOptions, Resolution, Revision, SubscriberEvent, UserId,
};
use tonic::Code;

use crate::{
    Changes, Error, NodeSettings,
    answers::{
        CurrentPrompt, Decided, Examples, Expanded, RenderedPrompt, SearchTuning, Status, TextUnits, Trust,
        UserProfile,
    },
    background,
};

/// How long a node may take to end.
const GRACE: Duration = Duration::from_secs(2);

/// A node. It connects and stays current in the background; a look-up never waits. After a fork its child's copy only says that
/// it is of another process.
#[derive(Debug)]
pub struct Node {
    /// Always there, until this is dropped.
    running: Option<Running>,
    process: u32,
}

#[derive(Debug)]
struct Running {
    handle: NodeHandle,
    view: LearnedView,
    lifecycle: Lifecycle,
    last_error: Arc<Mutex<String>>,
}

impl Node {
    /// Starts a node. When the future is done, it answers from its copy on disk, if there is one, whether or not the service can
    /// be reached.
    pub async fn start(settings: NodeSettings) -> Result<Self, Error> {
        let builder = settings.builder()?;
        let running = background::run(async move {
            let lifecycle = Lifecycle::new();
            let (handle, mut events) = builder.spawn_observed(&lifecycle).await?;
            let last_error = Arc::<Mutex<String>>::default();
            let noted = Arc::clone(&last_error);
            lifecycle.spawn("note why streams end", async move {
                while let Some(observed) = events.next().await {
                    note(&observed, &noted);
                }
            });
            Ok::<_, Error>(Running {
                view: handle.view().clone(),
                handle,
                lifecycle,
                last_error,
            })
        });
        Ok(Self {
            running: Some(running.await??),
            process: process::id(),
        })
    }

    /// Answers for a phrase: what was learned for the user or for everybody, what never to offer, and whether to ask the user.
    /// `candidates` are what the backend would answer by itself: (value, score from 0.0 to 1.0). Kind `None`:
    /// `invocation_phrase`. With `near` it also answers by what was learned for similar phrases, where nothing was for this one.
    /// It never waits.
    #[inline]
    pub fn resolve<'c>(
        &self,
        namespace: &str,
        phrase: &str,
        kind: Option<&str>,
        user: Option<&str>,
        candidates: impl IntoIterator<Item = (&'c str, f64)>,
        near: bool,
    ) -> Result<Resolution, Error> {
        let view = self.view()?;
        let namespace = namespace_of(namespace)?;
        let kind = match kind {
            None => Kind::InvocationPhrase,
            Some(kind) => Kind::parse_any(kind).map_err(Error::invalid("kind"))?,
        };
        let user = user_of(user)?;
        let resolved = if near {
            view.resolve_near(&namespace, kind, phrase, user.as_ref(), candidates)
        } else {
            view.resolve(&namespace, kind, phrase, user.as_ref(), candidates)
        };
        resolved.map_err(Error::invalid("phrase"))
    }

    /// What else to search for where a term stands, its representatives first.
    pub fn synonyms(&self, namespace: &str, term: &str, user: Option<&str>) -> Result<Vec<String>, Error> {
        self.view()?
            .synonyms(&namespace_of(namespace)?, term, user_of(user)?.as_ref())
            .map_err(Error::invalid("term"))
    }

    /// A text with what else to search for where terms stand in it. Mode: `keyword` or `embedding`.
    pub fn expand(
        &self,
        namespace: &str,
        text: &str,
        mode: &str,
        user: Option<&str>,
        units: TextUnits,
    ) -> Result<Expanded, Error> {
        let mode = match mode {
            "keyword" => ExpandMode::Keyword,
            "embedding" => ExpandMode::Embedding,
            _ => {
                return Err(Error::of_field(
                    "mode",
                    format!("must be keyword or embedding, is {mode:?}"),
                ));
            }
        };
        let expanded = self
            .view()?
            .expand(&namespace_of(namespace)?, text, mode, user_of(user)?.as_ref());
        Ok(Expanded::new(expanded, units))
    }

    /// How queries of a type are searched, with its plan of what to try.
    pub fn tuning(&self, namespace: &str, query_type: &str) -> Result<SearchTuning, Error> {
        let tuning = self.view()?.tuning(&namespace_of(namespace)?, query_type);
        Ok(SearchTuning::from(&*tuning))
    }

    /// How far a source is trusted, by its host.
    pub fn trust(&self, namespace: &str, host: &str) -> Result<Trust, Error> {
        let trust = self.view()?.trust(&namespace_of(namespace)?, host);
        trust.map(Trust::from).map_err(Error::invalid("host"))
    }

    /// Whether the sources of a host must not be shown.
    pub fn is_blocked(&self, namespace: &str, host: &str) -> Result<bool, Error> {
        let blocked = self.view()?.is_blocked(&namespace_of(namespace)?, host);
        blocked.map_err(Error::invalid("host"))
    }

    /// Orders results, each with its source's host and its score: without those of blocked sources, scores weighed by trust, the
    /// best first.
    pub fn rank<T>(
        &self,
        namespace: &str,
        results: impl IntoIterator<Item = (T, String, f64)>,
    ) -> Result<Vec<(T, String, f64)>, Error> {
        Ok(self.view()?.rank(&namespace_of(namespace)?, results))
    }

    /// The prompt of a target as it is sent to the AI; `None`: no version is current under the label (default: production).
    pub fn render_prompt(
        &self,
        namespace: &str,
        target: &str,
        label: Option<&str>,
        variables: impl IntoIterator<Item = (String, String)>,
        user: Option<&str>,
        language: Option<&str>,
    ) -> Result<Option<RenderedPrompt>, Error> {
        let user = user_of(user)?;
        let language = language.map(|code| Language::parse(code).map_err(Error::invalid("language")));
        let options = RenderOptions {
            label,
            variables: variables.into_iter().collect(),
            user: user.as_ref(),
            language: language.transpose()?,
        };
        let rendered = self.view()?.render(&namespace_of(namespace)?, target, &options)?;
        Ok(rendered.map(RenderedPrompt::from))
    }

    /// The version of a prompt that is current under a label; `None`: none is.
    pub fn prompt(&self, namespace: &str, target: &str, label: &str) -> Result<Option<CurrentPrompt>, Error> {
        let current = self.view()?.prompt(&namespace_of(namespace)?, target, label);
        Ok(current.map(CurrentPrompt::from))
    }

    /// The newest rated examples of a target.
    pub fn examples(&self, namespace: &str, target: &str) -> Result<Examples, Error> {
        let set = self.view()?.few_shot_set(&namespace_of(namespace)?, target);
        Ok(Examples::from(&*set))
    }

    /// What a user knows and wants to learn; only where the node includes what is users' own.
    pub fn profile(&self, namespace: &str, user: &str) -> Result<UserProfile, Error> {
        let user = UserId::parse(user).map_err(Error::invalid("user"))?;
        Ok(self.view()?.profile(&namespace_of(namespace)?, &user).into())
    }

    /// What people decided about a claim; `None`: nothing.
    pub fn claim_state(&self, namespace: &str, claim_id: &str) -> Result<Option<Decided>, Error> {
        let decided = self.view()?.claim_state(&namespace_of(namespace)?, claim_id);
        Ok(decided.map(Decided::from))
    }

    /// The label that a person gave an edge; `None`: the model's applies.
    pub fn edge_label(&self, namespace: &str, edge_id: &str) -> Result<Option<Decided>, Error> {
        let decided = self.view()?.edge_label(&namespace_of(namespace)?, edge_id);
        Ok(decided.map(Decided::from))
    }

    /// What it holds, and how current it is.
    pub fn status(&self) -> Result<Status, Error> {
        let running = self.running()?;
        Ok(Status::new(running.view.staleness(), running.last_error()))
    }

    /// Waits until it has a state to answer from: the copy on disk, or the stream's first.
    pub fn wait_ready(&self, within: Duration) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        self.waits(within, "the node has no state yet", |view| async move {
            view.wait_until_filled().await;
        })
    }

    /// Waits until near answers are by models of all that was learned. Has them made, if nobody asked for one before.
    pub fn wait_near(&self, within: Duration) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        self.waits(
            within,
            "the models of near answers are not made yet",
            |view| async move {
                view.wait_until_near().await;
            },
        )
    }

    /// Waits until everything at or below a revision is applied, to read one's own writes.
    pub fn wait_for_revision(
        &self,
        revision: i64,
        within: Duration,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let what = format!("revision {revision} is not applied yet");
        self.waits(within, &what, move |view| async move {
            view.wait_for_revision(Revision(revision)).await;
        })
    }

    /// What happens to it from now on.
    pub fn changes(&self) -> Result<Changes, Error> {
        Ok(Changes(self.running()?.handle.events()))
    }

    /// Accepts this installation in place of the one whose resources it holds.
    pub fn accept_installation(&self, installation: &str) -> Result<(), Error> {
        let installation = InstallationId::parse(installation).map_err(Error::invalid("installation"))?;
        self.running()?.handle.accept_installation(installation);
        Ok(())
    }

    /// Brings its copy on disk up to date and ends. Look-ups go on with what it holds. In a child that was forked there is
    /// nothing to end.
    pub fn close(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let lifecycle = self.running().ok().map(|running| running.lifecycle.clone());
        async move {
            if let Some(lifecycle) = lifecycle {
                background::run(async move { lifecycle.shutdown(GRACE).await }).await?;
            }
            Ok(())
        }
    }

    fn waits<U, F>(
        &self,
        within: Duration,
        what: &str,
        until: U,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<U, F>
    where
        U: FnOnce(LearnedView) -> F,
        F: Future<Output = ()> + Send + 'static,
    {
        let what = what.to_owned();
        let running = self
            .running()
            .map(|running| (until(running.view.clone()), Arc::clone(&running.last_error)));
        async move {
            let (reached, last_error) = running?;
            let waited = background::run(tokio::time::timeout(within, reached)).await?;
            waited.map_err(|_| {
                let why = last_error.lock().unwrap_or_else(PoisonError::into_inner);
                let because = if why.is_empty() {
                    String::new()
                } else {
                    format!(": {why}")
                };
                Error::timed_out(format!("{what}, after {} s{because}", within.as_secs_f64()))
            })
        }
    }

    fn view(&self) -> Result<&LearnedView, Error> {
        self.running().map(|running| &running.view)
    }

    fn running(&self) -> Result<&Running, Error> {
        background::check(self.process, "node")?;
        let ended = || Error::new(Code::FailedPrecondition, "CLOSED", "the node is closed");
        self.running.as_ref().ok_or_else(ended)
    }
}

impl Running {
    fn last_error(&self) -> String {
        let last = self.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        last.clone()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let Some(running) = self.running.take() else {
            return;
        };
        if self.process == process::id() {
            running.lifecycle.soft().cancel();
        } else {
            // What would be told that it is gone has no threads here.
            mem::forget(running);
        }
    }
}

fn note(observed: &Observed, last_error: &Mutex<String>) {
    let Observed::Event(event) = observed else { return };
    let why = match &**event {
        SubscriberEvent::Disconnected { reason, .. } => reason.clone(),
        SubscriberEvent::Connected => String::new(),
        _ => return,
    };
    *last_error.lock().unwrap_or_else(PoisonError::into_inner) = why;
}

fn namespace_of(raw: &str) -> Result<Namespace, Error> {
    Namespace::parse(raw).map_err(Error::invalid("namespace"))
}

fn user_of(raw: Option<&str>) -> Result<Option<UserId>, Error> {
    raw.map(UserId::parse).transpose().map_err(Error::invalid("user"))
}
