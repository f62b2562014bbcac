//! When the last-known-good copy is written: after a change, at most once per interval, and rarely enough that writing
//! takes a small share of the time.

use std::{future::pending, path::PathBuf, time::Duration};

use emend_core::Revision;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use crate::{
    cache::{self, CopyError, Header},
    replica::holdings::Holdings,
};

/// Writing takes at most a twentieth of the time.
const TIMES_AS_LONG_IDLE: u32 = 20;

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
    /// A copy is due: hand it to [`Saver::start`], or call [`Saver::skip`].
    Due,
    /// The write has finished; on success, the revision that was saved.
    Saved(Result<Revision, CopyError>),
}

impl Saver {
    /// Writes to `path`; without one, never writes.
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

    /// Notes that what is held has changed.
    pub(super) fn note(&mut self) {
        self.dirty = true;
    }

    /// Whether there is a change that is not on disk yet.
    pub(super) fn is_dirty(&self) -> bool {
        self.path.is_some() && self.dirty
    }

    /// Waits until there is something to do. Cancel-safe.
    pub(super) async fn tick(&mut self) -> SaverWake {
        if let Some(in_flight) = &mut self.in_flight {
            let written = in_flight.await;
            self.in_flight = None;
            self.not_before = Instant::now() + self.interval.max(self.started.elapsed() * TIMES_AS_LONG_IDLE);
            let written = written.unwrap_or_else(|error| Err(std::io::Error::other(error).into()));
            // After an error, retried when the interval is over.
            self.dirty |= written.is_err();
            return SaverWake::Saved(written);
        }
        if !self.is_dirty() {
            return pending().await;
        }
        sleep_until(self.not_before).await;
        SaverWake::Due
    }

    /// Notes that there is nothing worth writing now.
    pub(super) fn skip(&mut self) {
        self.dirty = false;
    }

    /// Writes this copy on a blocking thread.
    pub(super) fn start(&mut self, header: Header, held: Holdings) {
        let Some(path) = self.path.clone() else { return };
        self.dirty = false;
        self.started = Instant::now();
        self.in_flight = Some(tokio::task::spawn_blocking(move || {
            cache::save(&path, &header, &held).map(|()| Revision(header.cursor.revision))
        }));
    }

    /// Waits for a write in progress.
    pub(super) async fn finish_write(&mut self) -> Option<SaverWake> {
        match self.in_flight {
            Some(_) => Some(self.tick().await),
            None => None,
        }
    }
}
