//! A small disk for one process: a file system in memory that only the process sees, which a test fills and frees.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use emend_runtime::testing::skipped;
use tokio::process::Command;

use super::fleet::Member;
use crate::harness::process::run;

/// A small disk at some directory.
#[derive(Debug)]
pub struct SmallDisk {
    directory: PathBuf,
    unshare: &'static [&'static str],
}

/// Bytes that a test leaves free, or takes.
const BALLAST: &str = "ballast";

impl SmallDisk {
    /// A disk at that directory for whoever is started within it; `None` where the system allows none, after the one line
    /// that says so.
    pub async fn at(directory: &Path) -> Option<Self> {
        // Root makes a mount namespace; others, where the system lets them, within a user namespace of their own.
        for unshare in [
            ["--mount"].as_slice(),
            ["--user", "--map-root-user", "--mount"].as_slice(),
        ] {
            let disk = Self {
                directory: directory.to_owned(),
                unshare,
            };
            let mut command = Command::new("unshare");
            command.args(disk.arguments("64k")).arg("true");
            if run("unshare", command).await.is_ok() {
                return Some(disk);
            }
        }
        skipped("the system lets this user mount no file system, so there is no disk to fill");
        None
    }

    /// Starts a member with this disk from its next start on. Each start makes a new, empty disk.
    pub fn hold(&self, member: &mut Member, size: &str) {
        member.within = [OsString::from("unshare")].into();
        member.within.extend(self.arguments(size));
    }

    /// `unshare … sh -c 'mount …; exec "$@"' sh`, to be followed by a program and its arguments.
    fn arguments(&self, size: &str) -> Vec<OsString> {
        let script = format!(
            "mount -t tmpfs -o size={size},mode=0700 tmpfs '{}' && exec \"$@\"",
            self.directory.display()
        );
        let mut arguments: Vec<OsString> = self.unshare.iter().map(Into::into).collect();
        arguments.extend(["--", "sh", "-c", &script, "sh"].map(Into::into));
        arguments
    }

    /// Takes all the room that is left.
    ///
    /// # Panics
    /// If the process does not run.
    pub fn fill(&self, member: &mut Member) {
        let file = member.sees(&self.directory).join(BALLAST);
        let mut ballast = fs::File::options()
            .create(true)
            .append(true)
            .open(file)
            .expect("a file");
        let block = [0_u8; 4096];
        while std::io::Write::write_all(&mut ballast, &block).is_ok() {}
    }

    /// Gives it back.
    ///
    /// # Panics
    /// If the process does not run, or nothing was taken.
    pub fn free(&self, member: &mut Member) {
        fs::remove_file(member.sees(&self.directory).join(BALLAST)).expect("the ballast is there");
    }
}
