//! When the last-known-good copy is written: after a change, at most once in an interval, and rarely enough that writing
//! takes a small part of the time.
//!
//! It must know nothing of the copy's form.

use std::{future::pending, path::PathBuf, time::Duration};

use emend_core::Revision;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use crate::{
    cache::{self, CopyError, Label},
    replica::holdings::Holdings,
};

/// Writing takes at most one part in so many of the time.
const SHARE: u32 = 20;

/// Writes copies.
#[derive(Debug)]
pub(super) struct Saver {
    path: Option<PathBuf>,
    interval: Duration,
    dirty: bool,
    not_before: Instant,
    started: Instant,
    in_flight: Option<JoinHandle<Result<Revision, CopyError>>>,
}

/// Why [`Saver::tick`] returned.
#[derive(Debug)]
pub(super) enum SaverWake {
    /// A copy is to be written: hand it to [`Saver::start`], or say [`Saver::skip`].
    Due,
    /// It was written, of this revision.
    Saved(Result<Revision, CopyError>),
}

impl Saver {
    /// Writes to `path` if there is one.
    pub(super) fn new(path: Option<PathBuf>, interval: Duration) -> Self {
        let now = Instant::now();
        Self {
            path,
            interval,
            dirty: false,
            not_before: now,
            started: now,
            in_flight: None,
        }
    }

    /// What is held has changed.
    pub(super) fn note(&mut self) {
        self.dirty = true;
    }

    /// Whether the last change is not on disk yet.
    pub(super) fn is_dirty(&self) -> bool {
        self.path.is_some() && self.dirty
    }

    /// Waits until something is to be done. May be dropped and called again.
    pub(super) async fn tick(&mut self) -> SaverWake {
        if let Some(in_flight) = &mut self.in_flight {
            let written = in_flight.await;
            self.in_flight = None;
            self.not_before = Instant::now() + self.interval.max(self.started.elapsed() * SHARE);
            let written = written.unwrap_or_else(|error| Err(std::io::Error::other(error).into()));
            // Tried again when the interval is over.
            self.dirty |= written.is_err();
            return SaverWake::Saved(written);
        }
        if !self.is_dirty() {
            return pending().await;
        }
        sleep_until(self.not_before).await;
        SaverWake::Due
    }

    /// There is nothing worth writing now.
    pub(super) fn skip(&mut self) {
        self.dirty = false;
    }

    /// Writes this copy, on a thread of its own.
    pub(super) fn start(&mut self, label: Label, held: Holdings) {
        let Some(path) = self.path.clone() else { return };
        self.dirty = false;
        self.started = Instant::now();
        self.in_flight = Some(tokio::task::spawn_blocking(move || {
            cache::save(&path, &label, &held).map(|()| Revision(label.cursor.revision))
        }));
    }

    /// Waits for a copy that is being written.
    pub(super) async fn settle(&mut self) -> Option<SaverWake> {
        match self.in_flight {
            Some(_) => Some(self.tick().await),
            None => None,
        }
    }
}
