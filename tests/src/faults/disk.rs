//! A full disk for one process, which a test fills and frees while the process runs: either a small file system in
//! memory that only the process sees, if the system allows one to be mounted; or, anywhere, a limit on the size of
//! files that the process writes. The first reports that no space is left (ENOSPC), the second that the file is too
//! large (EFBIG), which SQLite takes for a disk that does not work.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use emend_base::testing::skipped;
use tokio::process::Command;

use super::fleet::Member;
use crate::harness::process::run;

/// Enough for the write-ahead log and more.
const SIZE: &str = "96m";
/// The file with which a test uses up the space.
const BALLAST: &str = "ballast";
/// The file size limit of a full disk, in bytes: one page, so that nothing can be written.
const FULL: &str = "4096";

/// A disk that can be full.
#[derive(Debug)]
pub enum Disk {
    /// A file system mounted at `directory` with these arguments of `unshare`.
    Mounted {
        /// The mount point, which everybody sees; only the process sees the contents.
        directory: PathBuf,
        /// The arguments with which the system allows this user to mount.
        unshare: &'static [&'static str],
    },
    /// A limit on file size.
    SizeLimit,
}

impl Disk {
    /// A file system of its own at `directory` for members started with it; `None` if the system does not allow this
    /// user to mount one, as in most containers.
    pub async fn mounted(directory: &Path) -> Option<Self> {
        // Root needs only a mount namespace; other users, if allowed at all, need it within a user namespace of their
        // own.
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

    /// The directory's own disk, with a limit on file size; `None` without util-linux, after one line of output that
    /// says so.
    pub async fn size_limit() -> Option<Self> {
        let mut command = Command::new("prlimit");
        command.arg("--version");
        if run("prlimit", command).await.is_err() {
            skipped("prlimit (of util-linux) is missing, so there is no disk to fill");
            return None;
        }
        Some(Self::SizeLimit)
    }

    /// Starts a member on this disk from its next start on. A mounted one is new and empty at each start.
    pub fn hold(&self, member: &mut Member) {
        member.within = match self {
            Self::Mounted { directory, unshare } => {
                let unsharing = mounting(directory, unshare, SIZE);
                std::iter::once("unshare".into()).chain(unsharing).collect()
            }
            // Unless it ignores SIGXFSZ, a process that writes beyond the limit is killed.
            Self::SizeLimit => ["sh", "-c", r#"trap "" XFSZ && exec "$@""#, "sh"]
                .map(Into::into)
                .into(),
        };
    }

    /// Fills the disk: nothing can be written any more.
    ///
    /// # Panics
    /// If the process is not running.
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

    /// Makes room again.
    ///
    /// # Panics
    /// If the process is not running, or the disk was not full.
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

/// Sets the soft limit of a running process.
async fn limit_files(member: &mut Member, bound: &str) {
    let mut command = Command::new("prlimit");
    command
        .args(["--pid", &member.process().id().to_string()])
        .arg(format!("--fsize={bound}:"));
    run("prlimit", command).await.expect("the bound is set");
}
