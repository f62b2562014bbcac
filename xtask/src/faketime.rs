//! libfaketime, which gives a process under test its own clock. Tests look for it in the same place.

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::{debian, steps::Outcome};

/// Debian installs it in an architecture directory below this one.
const LIBRARIES: &str = "/usr/lib";
const LIBRARY: &str = "faketime/libfaketime.so.1";

/// Makes sure that it is installed. If installing is allowed, its absence is an error.
pub(crate) fn provide(may_install: bool) -> Result<Outcome> {
    if is_there() {
        return Ok(Outcome::Done);
    }
    match debian::install(&["libfaketime"], may_install).context("libfaketime is missing") {
        Ok(()) if is_there() => Ok(Outcome::Done),
        Ok(()) => bail!("libfaketime was installed, but is nowhere below {LIBRARIES}"),
        Err(error) if !may_install => Ok(Outcome::NotRun(format!("{error:#}"))),
        Err(error) => Err(error),
    }
}

fn is_there() -> bool {
    let directories = fs::read_dir(LIBRARIES).into_iter().flatten().flatten();
    directories
        .map(|directory| directory.path().join(LIBRARY))
        .any(|library| library.is_file())
}
