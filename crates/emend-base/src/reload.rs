//! Files that are read again when their content changes.
//!
//! They are polled every few seconds and compared by content, which works however they are replaced, including
//! Kubernetes' symbolic links. A file that could not be used is retried at the same interval. SIGHUP reloads at once,
//! changed or not; it never ends the process.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ring::digest::{Context, SHA256};
use tokio::signal::unix::{SignalKind, signal};

use crate::lifecycle::Lifecycle;

/// How often files are polled.
pub const INTERVAL: Duration = Duration::from_secs(2);

/// When to read files again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// If they have changed, or if their content could not be used.
    Changed,
    /// Always, because someone asked for it.
    Requested,
}

/// Something built from files.
pub trait Reload: Send + Sync {
    /// Reads the files again and returns whether something new is in force. Content that can't be used is logged, once
    /// for as long as the failure stays the same, and changes nothing. May block on the disk.
    fn reload(&self, when: When) -> bool;

    /// Whether the files' current content can't be used, so that something older is in force.
    fn is_failing(&self) -> bool;

    /// [`Reload::reload`] if the files have changed, or if their content could not be used.
    fn reload_if_changed(&self) -> bool {
        self.reload(When::Changed)
    }
}

/// Files, a hash of their content when last polled, and whether that content could be used.
#[derive(Debug)]
pub struct Watched {
    files: Vec<PathBuf>,
    seen: [u8; 32],
    /// Why the content can't be used, if it can't.
    failure: Option<String>,
    /// Whether there is a failure, to be read without waiting for a reload.
    failing: Arc<AtomicBool>,
}

impl Watched {
    /// Construct it before reading the files, so that a change in between is noticed.
    pub fn new(files: Vec<PathBuf>) -> Self {
        let seen = contents(&files);
        Self {
            files,
            seen,
            failure: None,
            failing: Arc::default(),
        }
    }

    /// Watches these files from now on. Returns whether they differ from the previous ones; if so, read them after this
    /// call, so that a change in between is noticed.
    #[must_use]
    pub fn follow(&mut self, files: Vec<PathBuf>) -> bool {
        let are_others = files != self.files;
        if are_others {
            self.seen = contents(&files);
            self.files = files;
        }
        are_others
    }

    /// Whether to read the files now. The caller then reports the outcome with `succeeded` or `failed`.
    pub fn is_due(&mut self, when: When) -> bool {
        let has_changed = self.has_changed();
        has_changed || self.failure.is_some() || when == When::Requested
    }

    /// The content is in force.
    pub fn succeeded(&mut self) {
        self.failure = None;
        self.failing.store(false, Ordering::Relaxed);
    }

    /// The content can't be used; the files stay due until it can. Returns whether to report the failure.
    #[must_use]
    pub fn failed(&mut self, why: String, when: When) -> bool {
        let is_known = self.failure.as_ref() == Some(&why);
        self.failure = Some(why);
        self.failing.store(true, Ordering::Relaxed);
        !is_known || when == When::Requested
    }

    /// Whether what the files held when they were last read was unusable, readable by others at any time.
    pub fn failing(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.failing)
    }

    /// Whether the content has changed since the last call.
    fn has_changed(&mut self) -> bool {
        let now = contents(&self.files);
        std::mem::replace(&mut self.seen, now) != now
    }
}

/// One hash over all files; an unreadable file hashes as such.
fn contents(files: &[PathBuf]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for file in files {
        let read = fs::read(file);
        let length = read.as_ref().map_or(u64::MAX, |bytes| bytes.len() as u64);
        context.update(&length.to_le_bytes());
        context.update(read.as_deref().unwrap_or_default());
    }
    let mut hash = [0; 32];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

/// Polls the files every `interval`, and reloads them on SIGHUP, while `lifecycle` runs. SIGHUP is handled even without
/// files: sending it to every process of a host must end none.
pub fn spawn(all: Vec<Arc<dyn Reload>>, interval: Duration, lifecycle: &Lifecycle) {
    let mut hangup = match signal(SignalKind::hangup()) {
        Ok(hangup) => Some(hangup),
        Err(error) => {
            tracing::error!(%error, "can't listen for SIGHUP");
            None
        }
    };
    if all.is_empty() {
        // Once registered, the handler stays until the process ends.
        return;
    }
    let soft = lifecycle.soft().clone();
    lifecycle.spawn("read changed files", async move {
        loop {
            let asked = async {
                match &mut hangup {
                    Some(hangup) => hangup.recv().await,
                    None => std::future::pending().await,
                }
            };
            let when = tokio::select! {
                () = soft.cancelled() => return,
                () = tokio::time::sleep(interval) => When::Changed,
                _ = asked => When::Requested,
            };
            let all = all.clone();
            let looked = tokio::task::spawn_blocking(move || {
                for one in &all {
                    one.reload(when);
                }
            });
            if let Err(error) = looked.await {
                tracing::error!(%error, "can't look at files that may have changed");
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_once_also_when_a_file_appears_or_disappears() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "one").unwrap();
        let mut watched = Watched::new(vec![file.clone()]);
        assert!(!watched.has_changed());
        fs::write(&file, "two").unwrap();
        assert!(watched.has_changed());
        assert!(!watched.has_changed());
        fs::remove_file(&file).unwrap();
        assert!(watched.has_changed());
        fs::write(&file, "").unwrap();
        assert!(watched.has_changed(), "empty is not absent");
    }

    #[test]
    fn a_failed_reload_is_retried_and_logged_once_for_each_reason() {
        let directory = tempfile::tempdir().unwrap();
        let mut watched = Watched::new(vec![directory.path().join("file")]);
        assert!(!watched.is_due(When::Changed));
        assert!(watched.is_due(When::Requested));
        assert!(watched.failed("no".to_owned(), When::Changed));
        for _ in 0..2 {
            assert!(watched.is_due(When::Changed));
            assert!(!watched.failed("no".to_owned(), When::Changed), "it is known");
        }
        assert!(
            watched.failed("no".to_owned(), When::Requested),
            "who asks is told"
        );
        assert!(watched.failed("nor so".to_owned(), When::Changed));
        watched.succeeded();
        assert!(!watched.is_due(When::Changed));
    }

    #[test]
    fn content_that_moves_between_files_is_a_change() {
        let directory = tempfile::tempdir().unwrap();
        let files = [directory.path().join("a"), directory.path().join("b")];
        fs::write(&files[0], "xy").unwrap();
        fs::write(&files[1], "z").unwrap();
        let mut watched = Watched::new(files.to_vec());
        fs::write(&files[0], "x").unwrap();
        fs::write(&files[1], "yz").unwrap();
        assert!(watched.has_changed());
    }
}
