//! Files that are read again when what is in them changes.
//!
//! They are looked at every few seconds, by content: that works with whatever replaces them, as Kubernetes does with
//! links. SIGHUP has them looked at at once. It must know nothing of what is in them.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use ring::digest::{Context, SHA256};
use tokio::signal::unix::{SignalKind, signal};

use crate::lifecycle::Lifecycle;

/// How often files are looked at.
pub const INTERVAL: Duration = Duration::from_secs(2);

/// Something that was made of files.
pub trait Reload: Send + Sync {
    /// Reads the files again if they have changed; tells whether something new is in force. What can't be used is logged and
    /// changes nothing. May wait for the disk.
    fn reload_if_changed(&self) -> bool;
}

/// Files and what was in them when they were looked at last.
#[derive(Debug)]
pub struct Watched {
    files: Vec<PathBuf>,
    seen: [u8; 32],
}

impl Watched {
    /// To be made before the files are read, so that a change in between is found.
    pub fn new(files: Vec<PathBuf>) -> Self {
        let seen = contents(&files);
        Self { files, seen }
    }

    /// From now on these files are watched.
    pub fn follow(&mut self, files: Vec<PathBuf>) {
        if files != self.files {
            *self = Self::new(files);
        }
    }

    /// Whether something else is in them than when this was asked last.
    pub fn has_changed(&mut self) -> bool {
        let now = contents(&self.files);
        std::mem::replace(&mut self.seen, now) != now
    }
}

/// One hash over all of them; one that can't be read counts as such.
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

/// Looks at the files every `interval`, and on SIGHUP, for as long as `lifecycle` runs.
pub fn spawn(all: Vec<Arc<dyn Reload>>, interval: Duration, lifecycle: &Lifecycle) {
    if all.is_empty() {
        return;
    }
    let soft = lifecycle.soft().clone();
    lifecycle.spawn("read changed files", async move {
        let mut hangup = signal(SignalKind::hangup()).ok();
        loop {
            let asked = async {
                match &mut hangup {
                    Some(hangup) => hangup.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = soft.cancelled() => return,
                () = tokio::time::sleep(interval) => {}
                _ = asked => {}
            }
            let all = all.clone();
            let looked = tokio::task::spawn_blocking(move || {
                for one in &all {
                    one.reload_if_changed();
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
    fn a_change_is_told_once_also_where_a_file_goes_or_comes() {
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
    fn what_moves_from_one_file_to_the_next_is_a_change() {
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
