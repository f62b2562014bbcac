//! A full disk for one process, which a test fills and frees while the process runs: a small file system in memory that only
//! the process sees, where the system lets one be mounted; or, anywhere, a bound on the size of the files that the process
//! writes. The first says that there is no room (ENOSPC), the second that the file gets too large (EFBIG), which SQLite
//! takes for a disk that does not work.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use emend_runtime::testing::skipped;
use tokio::process::Command;

use super::fleet::Member;
use crate::harness::process::run;

/// Room for the write-ahead log and more.
const SIZE: &str = "96m";
/// Bytes that a test takes of a file system.
const BALLAST: &str = "ballast";
/// No longer may files get, in bytes, when they may get no longer: as long as a page, so that nothing can be written.
const FULL: &str = "4096";

/// A disk that can be full.
#[derive(Debug)]
pub enum Disk {
    /// A file system at that directory, made by this `unshare`.
    Mounted {
        /// As everybody sees it; only the process sees what is in it.
        directory: PathBuf,
        /// The arguments by which the system lets this user mount something.
        unshare: &'static [&'static str],
    },
    /// Files may get no longer.
    SizeLimit,
}

impl Disk {
    /// A file system of its own at that directory for whoever is started with it; `None` where the system lets this user
    /// mount none, as in most containers.
    pub async fn mounted(directory: &Path) -> Option<Self> {
        // Root makes a mount namespace; others, where the system lets them, within a user namespace of their own.
        for unshare in [
            ["--mount"].as_slice(),
            ["--user", "--map-root-user", "--mount"].as_slice(),
        ] {
            let mut command = Command::new("unshare");
            command.args(mounting(directory, unshare, "64k")).arg("true");
            if run("unshare", command).await.is_ok() {
                return Some(Self::Mounted {
                    directory: directory.to_owned(),
                    unshare,
                });
            }
        }
        None
    }

    /// The directory's own disk, with a bound on files; `None` without util-linux, after the one line that says so.
    pub async fn size_limit() -> Option<Self> {
        let mut command = Command::new("prlimit");
        command.arg("--version");
        if run("prlimit", command).await.is_err() {
            skipped("prlimit (of util-linux) is missing, so there is no disk to fill");
            return None;
        }
        Some(Self::SizeLimit)
    }

    /// Starts a member with this disk from its next start on. A mounted one is new and empty with each start.
    pub fn hold(&self, member: &mut Member) {
        member.within = match self {
            Self::Mounted { directory, unshare } => {
                let unsharing = mounting(directory, unshare, SIZE);
                std::iter::once("unshare".into()).chain(unsharing).collect()
            }
            // Whoever writes beyond the bound is killed, unless he does not heed the signal.
            Self::SizeLimit => ["sh", "-c", r#"trap "" XFSZ && exec "$@""#, "sh"]
                .map(Into::into)
                .into(),
        };
    }

    /// Nothing can be written any more.
    ///
    /// # Panics
    /// If the process does not run.
    pub async fn fill(&self, member: &mut Member) {
        match self {
            Self::Mounted { directory, .. } => {
                let file = member.sees(directory).join(BALLAST);
                let mut ballast = fs::File::options()
                    .create(true)
                    .append(true)
                    .open(file)
                    .expect("a file");
                let block = [0_u8; 4096];
                while std::io::Write::write_all(&mut ballast, &block).is_ok() {}
            }
            Self::SizeLimit => limit_files(member, FULL).await,
        }
    }

    /// There is room again.
    ///
    /// # Panics
    /// If the process does not run, or there was room.
    pub async fn free(&self, member: &mut Member) {
        match self {
            Self::Mounted { directory, .. } => {
                fs::remove_file(member.sees(directory).join(BALLAST)).expect("the ballast is there");
            }
            Self::SizeLimit => limit_files(member, "unlimited").await,
        }
    }
}

/// Arguments of `unshare`, to be followed by a program and its arguments.
fn mounting(directory: &Path, unshare: &[&str], size: &str) -> Vec<OsString> {
    let script = format!(
        "mount -t tmpfs -o size={size},mode=0700 tmpfs '{}' && exec \"$@\"",
        directory.display()
    );
    let mut arguments: Vec<OsString> = unshare.iter().map(Into::into).collect();
    arguments.extend(["--", "sh", "-c", &script, "sh"].map(Into::into));
    arguments
}

/// Sets the soft bound of a running process.
async fn limit_files(member: &mut Member, bound: &str) {
    let mut command = Command::new("prlimit");
    command
        .args(["--pid", &member.process().id().to_string()])
        .arg(format!("--fsize={bound}:"));
    run("prlimit", command).await.expect("the bound is set");
}
