//! Debian packages: installed where this runs as root and may, else named for the reader to install.

use std::process::Command;

use anyhow::{Result, bail};

use crate::process;

/// Whether this process is root's.
pub(crate) fn is_root() -> bool {
    process::output(Command::new("id").arg("-u")).is_ok_and(|uid| uid.trim() == "0")
}

/// Installs packages by apt; fails with what to do by hand where it may not or cannot.
pub(crate) fn install(packages: &[&str], may_install: bool) -> Result<()> {
    let by_hand = format!("apt-get install --no-install-recommends {}", packages.join(" "));
    if !may_install || !is_root() || process::find_program("apt-get").is_none() {
        bail!("install it, on Debian by `{by_hand}`");
    }
    let install = || {
        process::run(
            Command::new("apt-get")
                .args([
                    "install",
                    "--yes",
                    "--quiet",
                    "--no-install-recommends",
                    "-o",
                    "DPkg::Lock::Timeout=300",
                ])
                .args(packages)
                .env("DEBIAN_FRONTEND", "noninteractive")
                .stdin(std::process::Stdio::null()),
        )
    };
    // A fresh container has no package lists yet; where they are there, the update is not worth its time.
    install().or_else(|_| {
        process::run(Command::new("apt-get").args(["update", "--quiet"]))?;
        install()
    })
}
