//! Debian packages: installed where this runs as root and may, else named for the reader to install; or unpacked without
//! being installed.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, bail};

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

/// Unpacks a package into a directory, and installs nothing: what it would start, it does not start. Takes no root where
/// the package lists are there.
pub(crate) fn unpack(package: &str, directory: &Path) -> Result<()> {
    if process::find_program("apt-get").is_none() {
        bail!("{package} comes as a Debian package, and apt-get is missing");
    }
    fs::create_dir_all(directory)?;
    let download = || {
        process::run(
            Command::new("apt-get")
                .args(["download", "--quiet", package])
                .current_dir(directory)
                .stdin(std::process::Stdio::null()),
        )
    };
    download().or_else(|error| {
        if !is_root() {
            return Err(error);
        }
        process::run(Command::new("apt-get").args(["update", "--quiet"]))?;
        download()
    })?;
    for entry in fs::read_dir(directory)? {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "deb") {
            process::run(
                Command::new("dpkg-deb")
                    .arg("--extract")
                    .arg(&file)
                    .arg(directory),
            )
            .with_context(|| format!("cannot unpack {}", file.display()))?;
            fs::remove_file(&file)?;
        }
    }
    Ok(())
}
