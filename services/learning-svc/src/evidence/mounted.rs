//! The mounted trust file: read again when it changes, and applied in the name of the system.
//!
//! A file that can't be read or applied changes nothing. Why is logged once, and shown by readiness and metrics until it is
//! mended; the service stays ready meanwhile. A replica that comes up with an older file than the one in force does nothing.

use std::{
    fs, mem,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use emend_base::{
    Error, Lifecycle,
    reload::{Reload, Watched, When},
    telemetry::metrics::prometheus::Gauge,
};
use emend_core::{Caller, Violations};
use emend_serve::health::Readiness;
use learning_store::actor::Actor;
use tokio::{sync::Notify, time::sleep};

use super::trust_file::{Format, ReadTrustFile};
use crate::evidence::Evidence;

/// The name under which readiness tells what is wrong.
const SUBJECT: &str = "trust file";

/// After how long it is tried again to apply a file that could not be applied.
const RETRY: Duration = Duration::from_secs(30);

/// Errors that readiness names at most; the log names all.
const SHOWN: usize = 10;

/// A mounted trust file.
#[derive(Debug)]
pub struct MountedTrustFile {
    path: PathBuf,
    readiness: Readiness,
    errors: Gauge,
    state: Mutex<State>,
    unreadable: Arc<AtomicBool>,
    refused: AtomicBool,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    watched: Watched,
    /// What was read and is not yet applied everywhere.
    pending: Option<Arc<ReadTrustFile>>,
    /// Why it could not be applied.
    refusal: Option<String>,
}

impl MountedTrustFile {
    /// The file at `path`, in TOML if its name ends in `.toml`, otherwise in YAML; not read yet. `errors` shows how many errors
    /// it has.
    pub fn new(path: PathBuf, readiness: Readiness, errors: Gauge) -> Self {
        let watched = Watched::new(vec![path.clone()]);
        Self {
            path,
            readiness,
            errors,
            unreadable: watched.failing(),
            refused: AtomicBool::new(false),
            changed: Notify::new(),
            state: Mutex::new(State {
                watched,
                pending: None,
                refusal: None,
            }),
        }
    }

    /// Applies what was read last, if it is not in force yet. Whether nothing is left to be done until the file changes.
    pub async fn apply_once(&self, evidence: &Evidence) -> bool {
        let pending = self.state().pending.clone();
        let Some(read) = pending else {
            return true;
        };
        let applied = self.apply(evidence, &read).await;
        let mut state = self.state();
        let is_newest = state.pending.as_ref().is_some_and(|now| Arc::ptr_eq(now, &read));
        if !is_newest {
            // It changed meanwhile: what became of the old one is of no interest.
            return false;
        }
        match applied {
            Ok(()) => state.pending = None,
            Err(error) if is_passing(&error) => {
                tracing::warn!(%error, file = %self.path.display(), "the trust file can't be applied now");
            }
            Err(error) => {
                let refusal = error.to_string();
                if state.refusal.as_ref() != Some(&refusal) {
                    tracing::error!(%error, file = %self.path.display(), "the trust file can't be applied");
                }
                self.show(1, Some(&refusal));
                state.refusal = Some(refusal);
                self.refused.store(true, Ordering::Relaxed);
            }
        }
        state.pending.is_none()
    }

    async fn apply(&self, evidence: &Evidence, read: &ReadTrustFile) -> Result<(), Error> {
        let system = Actor::caller(Caller::system());
        let (file, own) = (self.path.display(), read.file.version);
        let mut unchanged = Vec::new();
        for namespace in &read.file.namespaces {
            let done = evidence.apply_trust_file(read, namespace, &system).await?;
            let (version, set, ended) = (done.version, done.set, done.ended);
            if done.applied {
                tracing::info!(%file, %namespace, version, set, ended, "the trust file was applied");
            } else if version > own {
                tracing::info!(%file, %namespace, version, own, "a newer trust file is in force");
            } else if done.differs {
                unchanged.push(namespace.as_str());
            }
        }
        if unchanged.is_empty() {
            return Ok(());
        }
        Err(Error::invalid(
            "version",
            format!(
                "must be raised when the file is changed: {own} is in force with other content in {}",
                unchanged.join(", ")
            ),
        ))
    }

    /// Applies the file whenever it was read, until the service stops.
    pub async fn run(self: Arc<Self>, evidence: Evidence, lifecycle: Lifecycle) {
        let soft = lifecycle.soft().clone();
        loop {
            let is_done = self.apply_once(&evidence).await;
            tokio::select! {
                () = soft.cancelled() => return,
                () = self.changed.notified() => {}
                () = sleep(RETRY), if !is_done => {}
            }
        }
    }

    /// Shows how many errors the file has, and which.
    fn show(&self, count: usize, why: Option<&str>) {
        self.errors.set(i64::try_from(count).unwrap_or(i64::MAX));
        self.readiness.note(SUBJECT, why.map(str::to_owned));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reload for MountedTrustFile {
    fn reload(&self, when: When) -> bool {
        let mut state = self.state();
        if !state.watched.is_due(when) {
            return false;
        }
        match read(&self.path) {
            Ok(read) => {
                state.watched.succeeded();
                state.pending = Some(Arc::new(read));
                state.refusal = None;
                self.refused.store(false, Ordering::Relaxed);
                self.show(0, None);
                self.changed.notify_one();
                true
            }
            Err(violations) => {
                let all = violations.to_string();
                let violations = violations.into_vec();
                let (count, shown) = (violations.len(), violations.iter().take(SHOWN));
                let mut why: Vec<String> = shown.map(ToString::to_string).collect();
                if count > SHOWN {
                    why.push(format!("and {} more, which the log names", count - SHOWN));
                }
                self.show(count, Some(&why.join("; ")));
                // What was read before and could not be applied is not what is mounted any more.
                mem::take(&mut state.pending);
                if state.watched.failed(all.clone(), when) {
                    tracing::error!(
                        file = %self.path.display(),
                        "the trust file can't be used; what was applied before stays in force: {all}"
                    );
                }
                false
            }
        }
    }

    fn is_failing(&self) -> bool {
        self.unreadable.load(Ordering::Relaxed) || self.refused.load(Ordering::Relaxed)
    }
}

fn read(path: &Path) -> Result<ReadTrustFile, Violations> {
    let text = fs::read_to_string(path).map_err(|error| {
        let mut violations = Violations::new();
        violations.add("", format!("can't be read: {error}"));
        violations
    })?;
    ReadTrustFile::read(&text, Format::of(path))
}

/// Whether the same file may be applied later.
fn is_passing(error: &Error) -> bool {
    matches!(
        error,
        Error::Unavailable { .. } | Error::Aborted { .. } | Error::DeadlineExceeded | Error::Internal(_)
    )
}
