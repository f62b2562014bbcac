//! What a subscriber lets others see: every message as it was applied. Bounded; who is slow misses some and is told how
//! many, and nobody waits for him.
//!
//! It must know nothing of what is done with it.

use std::{sync::Arc, time::Duration};

use emend_core::Revision;
use jiff::Timestamp;
use tokio::sync::broadcast::{self, error::RecvError};

use crate::replica::{Applied, Installed};

/// How many events are kept for those who are slow.
const CAPACITY: usize = 256;

/// Something that happened to a subscriber.
#[derive(Debug, Clone, PartialEq)]
pub enum SubscriberEvent {
    /// Started from the copy on disk.
    Restored {
        /// Everything up to here is applied.
        revision: Revision,
        /// How many resources it holds.
        count: usize,
    },
    /// There is a file for the copy on disk that cannot be used.
    CopyRefused {
        /// Why.
        error: String,
    },
    /// A stream is open.
    Connected,
    /// The stream goes on from what was held.
    Resumed {
        /// Where it goes on.
        revision: Revision,
    },
    /// A snapshot replaced all that was held.
    Snapshot {
        /// What it was.
        snapshot: Installed,
        /// When it was visible in the view.
        applied_at: Timestamp,
    },
    /// An update is visible in the view.
    Updated {
        /// What changed.
        update: Applied,
        /// When it was visible.
        applied_at: Timestamp,
    },
    /// Nothing at or below this revision is missing.
    Bookmark {
        /// Everything up to here is applied.
        revision: Revision,
    },
    /// The digests differ from the server's; a snapshot will be asked for.
    DigestMismatch {
        /// Which groups, for people.
        differences: Vec<String>,
    },
    /// The stream is closed.
    Disconnected {
        /// Why, for people.
        reason: String,
        /// After which time another is opened.
        retry_in: Duration,
    },
    /// A copy was written to disk.
    Saved {
        /// Of what revision.
        revision: Revision,
    },
}

/// What an observer gets.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed {
    /// The next event.
    Event(Arc<SubscriberEvent>),
    /// So many were missed, because the observer was slow.
    Missed(u64),
}

/// Sends events to whoever observes.
#[derive(Debug, Clone)]
pub(super) struct Emitter(broadcast::Sender<Arc<SubscriberEvent>>);

impl Emitter {
    pub(super) fn new() -> Self {
        Self(broadcast::Sender::new(CAPACITY))
    }

    pub(super) fn emit(&self, event: SubscriberEvent) {
        // Fails if nobody observes, which is fine.
        let _ = self.0.send(Arc::new(event));
    }

    pub(super) fn observe(&self) -> Events {
        Events(self.0.subscribe())
    }

    pub(super) fn observable(&self) -> Observable {
        Observable(self.0.downgrade())
    }
}

/// Lets others observe without keeping events alive: they end when the subscriber does.
#[derive(Debug, Clone)]
pub(super) struct Observable(broadcast::WeakSender<Arc<SubscriberEvent>>);

impl Observable {
    pub(super) fn observe(&self) -> Events {
        // Of a subscriber that has ended there are no events.
        let sender = self.0.upgrade().unwrap_or_else(|| broadcast::Sender::new(1));
        Events(sender.subscribe())
    }
}

/// The events from the moment on when it was made.
#[derive(Debug)]
pub struct Events(broadcast::Receiver<Arc<SubscriberEvent>>);

impl Events {
    /// Waits for the next event; `None` once the subscriber has ended.
    pub async fn next(&mut self) -> Option<Observed> {
        match self.0.recv().await {
            Ok(event) => Some(Observed::Event(event)),
            Err(RecvError::Lagged(missed)) => Some(Observed::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }
}
