//! A subscriber's observable events: every message as it is applied. The buffer is bounded: a slow observer misses some
//! events, learns how many, and delays nobody.

use std::{sync::Arc, time::Duration};

use emend_base::status::Explained;
use emend_core::{InstallationId, Revision};
use jiff::Timestamp;
use tokio::sync::broadcast::{self, error::RecvError};

use crate::replica::{Applied, Installed};

/// How many events are buffered for slow observers.
const CAPACITY: usize = 256;

/// Something that happened to a subscriber.
#[derive(Debug, Clone, PartialEq)]
pub enum SubscriberEvent {
    /// The node started from the copy on disk.
    Restored {
        /// Everything up to here is applied.
        revision: Revision,
        /// How many resources the copy holds.
        count: usize,
    },
    /// The copy on disk exists but cannot be used.
    CopyRefused {
        /// Why.
        error: String,
    },
    /// A stream is open.
    Connected,
    /// The stream resumed from the state that was held.
    Resumed {
        /// The revision it resumed from.
        revision: Revision,
    },
    /// A snapshot replaced all that was held.
    Snapshot {
        /// The snapshot.
        snapshot: Installed,
        /// When it became visible in the view.
        applied_at: Timestamp,
    },
    /// An update is visible in the view.
    Updated {
        /// The changes.
        update: Applied,
        /// When they became visible.
        applied_at: Timestamp,
    },
    /// Nothing at or below this revision is missing.
    Bookmark {
        /// Everything up to here is applied.
        revision: Revision,
        /// How long ago the server last read its log to the end: what is applied may be as old. It grows while the server's
        /// database is away.
        age: Duration,
    },
    /// The digests differ from the server's; a snapshot will be requested.
    DigestMismatch {
        /// The groups that differ, in words for people.
        differences: Vec<String>,
    },
    /// Another installation answers than the one whose resources the node holds. The node keeps what it holds and tries
    /// again; see [`NodeHandle::accept_installation`](super::NodeHandle::accept_installation). Sent once until the
    /// node's own installation answers again or yet another one does.
    InstallationMismatch {
        /// Whose resources the node holds.
        held: InstallationId,
        /// Whose server answers.
        answering: InstallationId,
    },
    /// The stream is closed.
    Disconnected {
        /// Why, in words for people.
        reason: String,
        /// How long until another is opened.
        retry_in: Duration,
        /// The status with which the server refused or ended it; `None` where it gave none.
        status: Option<Box<Explained>>,
    },
    /// A copy was written to disk.
    Saved {
        /// The revision that it holds.
        revision: Revision,
    },
    /// The mirror of prompts was brought up to date.
    Mirrored {
        /// The names of files that were written.
        written: Vec<String>,
        /// The names of files that were removed, since their prompts are gone.
        removed: Vec<String>,
        /// The names of files that were not written, since there is a file that the mirror did not write.
        foreign: Vec<String>,
    },
}

/// What an observer gets.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed {
    /// The next event.
    Event(Arc<SubscriberEvent>),
    /// This many events were missed because the observer was slow.
    Missed(u64),
}

/// Sends events to the observers.
#[derive(Debug, Clone)]
pub(super) struct Emitter(broadcast::Sender<Arc<SubscriberEvent>>);

impl Emitter {
    pub(super) fn new() -> Self {
        Self(broadcast::Sender::new(CAPACITY))
    }

    pub(super) fn emit(&self, event: SubscriberEvent) {
        // Fails if there are no observers, which is fine.
        let _ = self.0.send(Arc::new(event));
    }

    pub(super) fn observe(&self) -> Events {
        Events(self.0.subscribe())
    }

    pub(super) fn observable(&self) -> Observable {
        Observable(self.0.downgrade())
    }
}

/// Lets others observe without keeping the channel open: events end when the subscriber does.
#[derive(Debug, Clone)]
pub(super) struct Observable(broadcast::WeakSender<Arc<SubscriberEvent>>);

impl Observable {
    pub(super) fn observe(&self) -> Events {
        // A subscriber that has ended has no more events.
        let sender = self.0.upgrade().unwrap_or_else(|| broadcast::Sender::new(1));
        Events(sender.subscribe())
    }
}

/// The events since this was created.
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
