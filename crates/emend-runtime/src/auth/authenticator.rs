//! Who is known now: the state that was read last, and the streams that hang on it.
//!
//! When the files change they are read again, and each stream's caller is looked at again. Files that are not right leave
//! everything as it was.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;

use super::{
    config::{self, ConfigError, Loaded},
    directory::{Directory, Identity},
    role::Role,
    standing::{Presented, Seats, Standing, Supervision},
};
use crate::{
    clock::SharedClock,
    error::Error,
    reload::{Reload, Watched},
};

/// Knows who calls.
pub struct Authenticator {
    path: PathBuf,
    clock: SharedClock,
    directory: ArcSwap<Directory>,
    watched: Mutex<Watched>,
    seats: Seats,
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Authenticator {
    /// Reads the file at `path` and those that it names. Tokens expire by `clock`.
    pub fn load(path: &Path, clock: SharedClock) -> Result<Self, ConfigError> {
        let mut watched = Watched::new(vec![path.to_owned()]);
        let Loaded { directory, files } = config::load(path, &clock)?;
        watched.follow(files);
        Ok(Self {
            path: path.to_owned(),
            clock,
            directory: ArcSwap::from_pointee(directory),
            watched: Mutex::new(watched),
            seats: Seats::default(),
        })
    }

    pub(super) fn identify(&self, presented: &Presented) -> Result<Identity, Error> {
        presented.identify(&self.directory.load())
    }

    pub(super) fn permit(&self, presented: Presented, role: Role) -> Result<Standing, Error> {
        presented.permit(&self.directory.load(), role)
    }

    pub(super) fn supervise(&self, standing: Standing) -> Supervision {
        self.seats
            .take(standing, &self.clock, || self.directory.load_full())
    }
}

impl Reload for Authenticator {
    fn reload_if_changed(&self) -> bool {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if !watched.has_changed() {
            return false;
        }
        match config::load(&self.path, &self.clock) {
            Ok(Loaded { directory, files }) => {
                watched.follow(files);
                let directory = Arc::new(directory);
                self.directory.store(Arc::clone(&directory));
                self.seats.check(&directory);
                tracing::info!(file = %self.path.display(), "read again who may do what");
                true
            }
            Err(error) => {
                tracing::error!(%error, "who may do what stays as it was: the new file can't be used");
                false
            }
        }
    }
}
