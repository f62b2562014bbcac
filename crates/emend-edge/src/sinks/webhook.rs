//! Every revision of some search applications, in order, to a receiver over HTTP: at least once, a repeat with the same id.
//!
//! The stream only says that there is something new. What is delivered is read from the log, from the revision that was delivered
//! last, which is kept on disk. Signed as Standard Webhooks are, so that receivers have libraries for it.

mod log;
mod place;
mod signature;

use std::{path::PathBuf, time::Duration};

use emend_base::{Backoff, Entropy, SharedClock};
use emend_binding::{Client, ConnectionSettings, Error, FieldNames};
use emend_client::{Cursor, NodeHandle, Origin, Refused, proto::common::v1::ResourceKey};
use serde_json::{Value, json};
use tokio::time::Instant;

use self::{
    log::{Listed, Log, Page, Part},
    place::{Anew, History, Place},
    signature::Secret,
};
use super::{
    config::WebhookConfig,
    error::{Problem, SinkError},
    fail_points,
    file::blocking,
    reporting::Reporting,
    stepped::{BACKOFF, Next, Stepped},
};

/// How long a receiver may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How often it is looked for what the stream did not tell of.
const LOOKS: Duration = Duration::from_mins(1);

/// Delivers revisions.
pub(super) struct Delivering {
    config: WebhookConfig,
    namespaces: Vec<String>,
    log: Log,
    note: PathBuf,
    /// How far was delivered; `None`: not read yet.
    place: Option<Place>,
    node: NodeHandle,
    reporting: Reporting,
    clock: SharedClock,
    backoff: Backoff,
    /// What is being delivered.
    current: Option<(ResourceKey, i64)>,
}

impl Delivering {
    pub(super) fn new(
        config: WebhookConfig,
        namespaces: Vec<String>,
        connection: ConnectionSettings,
        remembered_in: PathBuf,
        node: NodeHandle,
        reporting: Reporting,
        (clock, entropy): (SharedClock, Entropy),
    ) -> Result<Self, Error> {
        Ok(Self {
            config,
            namespaces,
            log: Log(Client::new(connection, FieldNames::SnakeCase)?),
            note: remembered_in,
            place: None,
            node,
            reporting,
            clock,
            backoff: Backoff::new(BACKOFF, entropy),
            current: None,
        })
    }

    /// Delivers everything at or below a state of the log. Returns false where it can't be told yet which log that is.
    async fn step(&mut self, position: &Cursor) -> Result<bool, SinkError> {
        if !self.begin(position).await? {
            return Ok(false);
        }
        let mut due = self.namespaces.clone();
        while let Some(namespace) = due.pop() {
            if !self.catch_up(&namespace).await? {
                if !self.is_confirmed(position) {
                    return Ok(false);
                }
                self.tell_lost(&namespace).await?;
                due.clone_from(&self.namespaces);
            }
        }
        Ok(true)
    }

    /// Whether the stream says that the state is of the log as it is now: one that was restored may be listed before the stream has
    /// told of it.
    fn is_confirmed(&self, position: &Cursor) -> bool {
        let known = self.node.view().staleness();
        known.connected && known.origin == Origin::Stream && known.epoch.as_ref() == Some(&position.epoch)
    }

    /// Finds the place where it goes on. What was delivered of another log, or of what this one was before it was restored, says
    /// nothing of this one: then it begins again, with the first revision, and says so. Returns false where the state is a copy from
    /// before that, until the stream is open.
    async fn begin(&mut self, position: &Cursor) -> Result<bool, SinkError> {
        let known = self.node.view().staleness();
        let history = History {
            epoch: position.epoch.clone(),
            installation: known.installation.map(|installation| installation.to_string()),
        };
        let mut place = if let Some(place) = self.place.take() {
            place
        } else {
            let note = self.note.clone();
            let read = blocking(&self.note, move || Place::read(&note)).await?;
            let start = || Place::new(history.clone(), &self.namespaces, self.config.after);
            let mut place = read.unwrap_or_else(start);
            place.know(&self.namespaces, self.config.after);
            place
        };
        let differs = place.meets(&history);
        self.place = Some(place);
        if differs && !known.connected {
            return Ok(false);
        }
        if differs {
            let id = format!("{}.epoch", history.epoch);
            self.begin_anew(&id, history, Anew::OtherLog).await?;
        }
        Ok(true)
    }

    /// Tells that the log has lost what was delivered of a search application.
    async fn tell_lost(&mut self, namespace: &str) -> Result<(), SinkError> {
        let Some(place) = &self.place else {
            return Ok(());
        };
        let history = place.history.clone();
        let id = format!("{}.lost.{}", history.epoch, place.lost(namespace));
        self.begin_anew(&id, history, Anew::RevisionsLost).await
    }

    /// Begins again with the first revision, once the receiver knows.
    async fn begin_anew(&mut self, id: &str, history: History, why: Anew) -> Result<(), SinkError> {
        tracing::warn!(
            reason = why.reason(),
            "the log is not that of which was delivered: everything is delivered again"
        );
        let place = Place::new(history, &self.namespaces, 0);
        let body = json!({
            "id": id,
            "type": "emend.epoch",
            "reason": why.reason(),
            "epoch": place.history.epoch,
            "installation_id": place.history.installation,
            "continues_after": place.after,
        });
        self.send(id, &body).await?;
        self.keep(place).await
    }

    async fn keep(&mut self, place: Place) -> Result<(), SinkError> {
        let (note, kept) = (self.note.clone(), place.clone());
        blocking(&self.note, move || kept.write(&note)).await?;
        self.place = Some(place);
        Ok(())
    }

    fn after(&self, namespace: &str) -> i64 {
        self.place.as_ref().map_or(0, |place| place.after(namespace))
    }

    /// Delivers what follows in one search application. The log is listed from its end, page by page, until what was delivered, and
    /// delivered from there: the pages below the first stay the same while the log grows, and the first is kept as it was. Returns
    /// false, and delivers nothing, if the log no longer has what was delivered last.
    async fn catch_up(&mut self, namespace: &str) -> Result<bool, SinkError> {
        let after = self.after(namespace);
        let first = self.log.page(namespace, "").await?;
        let mut last = first.committed_at(after);
        let mut tokens = Vec::new();
        let mut next = first.next_above(after);
        while let Some(token) = next {
            let page = self.log.page(namespace, &token).await?;
            last = last.or_else(|| page.committed_at(after));
            next = page.next_above(after);
            tokens.push(token);
        }
        let place = self.place.as_ref();
        if place.is_some_and(|place| place.is_lost(namespace, last.as_deref())) {
            return Ok(false);
        }
        for token in tokens.iter().rev() {
            let page = self.log.page(namespace, token).await?;
            self.deliver_page(namespace, &page).await?;
        }
        self.deliver_page(namespace, &first).await?;
        Ok(true)
    }

    async fn deliver_page(&mut self, namespace: &str, page: &Page) -> Result<(), SinkError> {
        for revision in page.revisions.iter().rev() {
            if revision.revision > self.after(namespace) {
                let parts = self.log.parts(namespace, page, revision).await?;
                self.deliver(namespace, revision, parts).await?;
            }
        }
        Ok(())
    }

    async fn deliver(&mut self, namespace: &str, listed: &Listed, parts: Vec<Part>) -> Result<(), SinkError> {
        let Some(mut place) = self.place.clone() else {
            return Ok(());
        };
        let (count, revision, epoch) = (parts.len(), listed.revision, place.history.epoch.clone());
        for (index, part) in parts.into_iter().enumerate() {
            let number = index + 1;
            let id = format!("{epoch}.{namespace}.{revision}.{number}.{}", part.content());
            let body = json!({
                "id": id,
                "type": "emend.revision",
                "epoch": epoch,
                "namespace": namespace,
                "part": number,
                "is_last_part": number == count,
                "revision": part.0,
            });
            self.current = Some((part.first_key(namespace), revision));
            self.send(&id, &body).await?;
        }
        self.current = None;
        self.reporting.gauges.wrote();
        fail_points::DELIVERED.pass();
        place.deliver(namespace, revision, &listed.committed_at);
        // What was delivered of one epoch says nothing of another.
        let held = self.node.position().filter(|position| position.epoch == epoch);
        let confirmed = held.map(|position| Cursor {
            revision: place.least(&self.namespaces),
            ..position
        });
        self.keep(place).await?;
        // All along: catching up may take long.
        if let Some(confirmed) = confirmed.filter(|confirmed| confirmed.revision > 0) {
            self.reporting.confirm(confirmed, Vec::new());
        }
        fail_points::KEPT.pass();
        Ok(())
    }

    async fn send(&self, id: &str, body: &Value) -> Result<(), SinkError> {
        let secret = Secret::read(&self.config.secret_file)?;
        let body = body.to_string();
        let headers = secret.headers(id, self.clock.now(), &body)?;
        let client = self.config.access.client("the receiver", TIMEOUT)?;
        client.deliver(&headers, body.into()).await?;
        Ok(())
    }
}

impl Stepped for Delivering {
    async fn run_once(&mut self) -> Next {
        let Some(position) = self.node.position() else {
            return Next::idle(Instant::now() + LOOKS);
        };
        let next = match self.step(&position).await {
            Ok(is_delivered) => {
                self.backoff.reset();
                if is_delivered {
                    self.reporting.confirm(position.clone(), Vec::new());
                }
                Next::idle(Instant::now() + LOOKS)
            }
            Err(error) => {
                let wait = error.wait(self.backoff.next());
                tracing::warn!(%error, retry_in = ?wait, "a revision can't be delivered");
                let current = self.current.take().filter(|_| error.problem == Problem::Refused);
                let refused = current.map(|(key, revision)| Refused {
                    key,
                    revision,
                    error: error.words,
                });
                self.reporting.report(error.problem, refused);
                Next::after(wait)
            }
        };
        self.reporting.show_lag(&position);
        next
    }
}
