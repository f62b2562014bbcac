//! Keeps a [`LearnedView`] up to date: subscribes to learning-svc, resumes where it left off, verifies what it holds,
//! repairs itself, reports what it has applied, and keeps a copy on disk to start from while learning-svc is unreachable.

mod confirmed;
mod delays;
mod ended;
pub(crate) mod engine;
mod events;
#[cfg(feature = "testing")]
mod holding;
mod learned;
mod mirror;
mod report;
mod reporter;
mod saver;
mod session;
mod settings;
mod transport;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use emend_base::{Backoff, Lifecycle, lifecycle::Shutdown};
use emend_core::{InstallationId, Revision};
use tokio::{sync::watch, time::Instant};

#[cfg(feature = "testing")]
pub use self::holding::{HeldResource, Holding};
#[cfg(test)]
pub(crate) use self::report::reported;
use self::{
    confirmed::Confirmations,
    engine::Engine,
    events::{Emitter, Observable},
    mirror::Mirror,
    reporter::Reporter,
    saver::Saver,
    session::Session,
};
pub use self::{
    confirmed::{Confirmed, Refused},
    events::{Events, Observed, SubscriberEvent},
    learned::{LearnedResource, LearnedState},
    settings::{ConfigError, SubscriberBuilder},
};
use crate::{
    ServerAddress, cache,
    view::{LearnedView, Origin},
};

/// Makes nodes. See [`Subscriber::builder`].
#[derive(Debug)]
pub struct Subscriber;

impl Subscriber {
    /// Sets up the node `node_id` (1 to 128 characters of `[A-Za-z0-9._-]`), subscribed to the learning-svc at
    /// `address`.
    pub fn builder(address: impl Into<ServerAddress>, node_id: impl Into<String>) -> SubscriberBuilder {
        SubscriberBuilder::new(address.into(), node_id.into())
    }
}

impl SubscriberBuilder {
    /// Loads the copy from disk, if there is one, and starts the subscriber as a task of `lifecycle`. When this
    /// returns, the view answers from the copy, whether or not learning-svc can be reached.
    pub async fn spawn(self, lifecycle: &Lifecycle) -> Result<NodeHandle, ConfigError> {
        self.spawn_observed(lifecycle).await.map(|(node, _)| node)
    }

    /// Like [`SubscriberBuilder::spawn`], and also returns the events from the first one on.
    pub async fn spawn_observed(self, lifecycle: &Lifecycle) -> Result<(NodeHandle, Events), ConfigError> {
        let settings = self.settings()?;
        let (publisher, view) =
            LearnedView::with_vectors(&self.entropy, Arc::clone(&self.clock), self.vectors.clone());
        let emitter = Emitter::new();
        let events = emitter.observe();
        let mut engine = Engine::new(&view, publisher, settings.mirrored.clone());
        if let Some(path) = self.copy.clone() {
            engine = restored(engine, &view, path, settings.subscription(), &emitter).await;
        }
        let engine = Arc::new(Mutex::new(engine));
        let accepted = watch::Sender::new(self.accepted_installation);
        let lifecycle = lifecycle.child();
        let node = NodeHandle {
            view: view.clone(),
            observable: emitter.observable(),
            lifecycle: lifecycle.clone(),
            accepted: accepted.clone(),
            engine: Arc::clone(&engine),
        };
        let session = Session {
            transport: self.transport(&settings),
            settings,
            engine,
            view,
            events: emitter,
            reporter: Reporter::new(self.report_interval),
            confirmations: self.confirmed.map(Confirmations::new),
            saver: Saver::new(self.copy, self.copy_interval),
            mirror: Mirror::new(self.mirror.map(|mirror| mirror.directory)),
            near_at: Instant::now(),
            backoff: Backoff::new(self.backoff, self.entropy),
            clock: self.clock,
            accepted,
            mismatches: 0,
            violations: 0,
        };
        lifecycle.spawn("subscriber", session.run(lifecycle.soft().clone()));
        Ok((node, events))
    }
}

/// The engine, restored from the copy if there is a valid one.
async fn restored(
    mut engine: Engine,
    view: &LearnedView,
    path: PathBuf,
    subscription: u64,
    emitter: &Emitter,
) -> Engine {
    let shared = view.clone();
    let shown = path.display().to_string();
    let loading = tokio::task::spawn_blocking(move || {
        let header = match cache::load(&path, subscription) {
            Ok(None) => Ok(None),
            Ok(Some(copy)) => {
                let (header, count) = (copy.header.clone(), copy.held.len());
                engine.restore(&shared, copy);
                Ok(Some((header, count)))
            }
            Err(error) => Err(error),
        };
        (engine, header)
    });
    let (engine, loaded) = session::ended(loading.await).await;
    match loaded {
        Ok(None) => {}
        Ok(Some((header, count))) => {
            let revision = Revision(header.cursor.revision);
            tracing::info!(%revision, count, path = shown, "started from the copy on disk");
            view.update_status(|status| {
                status.revision = revision;
                status.installation = header.installation;
                status.epoch = Some(header.cursor.epoch);
                status.origin = Origin::DiskCopy {
                    written_at: header.written_at,
                };
                status.current_at = header.current_at;
            });
            emitter.emit(SubscriberEvent::Restored { revision, count });
        }
        Err(error) => {
            tracing::error!(%error, path = shown, "the copy on disk cannot be used; starting without");
            emitter.emit(SubscriberEvent::CopyRefused {
                error: error.to_string(),
            });
        }
    }
    engine
}

/// A handle to a running node. The node keeps running when this is dropped and ends with its lifecycle.
#[derive(Debug, Clone)]
pub struct NodeHandle {
    view: LearnedView,
    observable: Observable,
    lifecycle: Lifecycle,
    accepted: watch::Sender<Option<InstallationId>>,
    engine: Arc<Mutex<Engine>>,
}

impl NodeHandle {
    /// The view that the node answers from.
    pub fn view(&self) -> &LearnedView {
        &self.view
    }

    /// The events from now on.
    pub fn events(&self) -> Events {
        self.observable.observe()
    }

    /// Accepts this installation in place of the one whose resources the node holds, once one of its servers answers:
    /// the node then takes its snapshot, which replaces all that is held, also in the copy on disk. If it is
    /// [the one that answers](crate::Staleness::other_installation), the node connects again at once.
    pub fn accept_installation(&self, installation: InstallationId) {
        self.accepted.send_replace(Some(installation));
    }

    /// Stops this node alone, after bringing its copy on disk up to date. Returns within `grace` plus two seconds.
    pub async fn shutdown(&self, grace: Duration) -> Shutdown {
        self.lifecycle.shutdown(grace).await
    }
}
