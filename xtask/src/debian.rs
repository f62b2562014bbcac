//! Debian packages: installed if running as root with permission to install, otherwise named for the reader to install;
//! or unpacked without being installed.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, bail};

use crate::process;

/// Whether this process runs as root.
pub(crate) fn is_root() -> bool {
    process::output(Command::new("id").arg("-u")).is_ok_and(|uid| uid.trim() == "0")
}

/// Installs packages with apt. If that is not allowed or not possible, fails with what to do by hand.
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
    // A fresh container has no package lists yet. If they exist, an update is not worth its time.
    install().or_else(|_| {
        process::run(Command::new("apt-get").args(["update", "--quiet"]))?;
        install()
    })
}

/// Unpacks a package into a directory without installing it, so nothing it contains is started. Needs no root if the
/// package lists exist.
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
