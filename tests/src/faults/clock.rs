//! A clock for a single process, which a test sets while the process runs. It affects the wall clock only: the
//! monotonic clock continues undisturbed, as it does on a computer whose time is corrected.

use std::{collections::BTreeSet, ffi::OsString, fs, path::PathBuf};

use emend_base::testing::faketime;
use tempfile::TempDir;

use super::fleet::Member;

/// Where the library keeps the state that a process shares with its children.
const SHARED: &str = "/dev/shm";

/// The clock of one process.
#[derive(Debug)]
pub struct OwnClock {
    library: PathBuf,
    directory: TempDir,
    ahead: i64,
    processes: BTreeSet<u32>,
}

impl OwnClock {
    /// A clock that is right; `None` if the library is missing, after one line of output that says so.
    ///
    /// # Panics
    /// If it can't be set.
    pub fn right() -> Option<Self> {
        let library = faketime()?;
        let clock = Self {
            library,
            directory: tempfile::tempdir().expect("a directory"),
            ahead: 0,
            processes: BTreeSet::new(),
        };
        clock.write();
        Some(clock)
    }

    /// Starts a member with this clock.
    ///
    /// # Panics
    /// If it is already running, or does not become ready.
    pub async fn starts(&mut self, member: &mut Member) {
        let shown = self.directory.path().join("shown");
        let variables: [(&str, OsString); 4] = [
            ("LD_PRELOAD", self.library.clone().into()),
            ("FAKETIME_TIMESTAMP_FILE", shown.into()),
            // Makes each reading of the clock read the file.
            ("FAKETIME_NO_CACHE", "1".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ];
        let variables = variables.map(|(name, value)| (name.into(), value));
        member.environment = variables.into();
        member.start().await;
        self.processes.insert(member.process().id());
    }

    /// Steps to this many seconds ahead of the right time; if negative, behind it.
    ///
    /// # Panics
    /// If the clock can't be set.
    pub fn steps_to(&mut self, ahead: i64) {
        self.ahead = ahead;
        self.write();
    }

    /// Writes the file atomically, so that no reader sees half a number.
    fn write(&self) {
        let (next, shown) = (
            self.directory.path().join("next"),
            self.directory.path().join("shown"),
        );
        fs::write(&next, format!("{:+}\n", self.ahead)).expect("a file");
        fs::rename(next, shown).expect("the file takes its place");
    }
}

impl Drop for OwnClock {
    /// Removes shared memory, which a killed process leaves behind.
    fn drop(&mut self) {
        for process in &self.processes {
            for shared in ["faketime_shm", "sem.faketime_sem"] {
                let _ = fs::remove_file(format!("{SHARED}/{shared}_{process}"));
            }
        }
    }
}
