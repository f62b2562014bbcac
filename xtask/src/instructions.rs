//! `cargo xtask instructions`: counts the instructions of hot paths by callgrind and compares them with those in
//! benches/instructions.toml. Of a debug build, which CI has anyway: inlining is no part of it, but an allocation, a copy
//! or a search more is, and nothing else that runs on the machine changes the count. CI's build is clippy's, which leaves out what
//! rustc optimises before it generates code: a plain `cargo build` has other counts, up to a tenth lower.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::{
    debian,
    process::{self, Workspace},
    steps::Outcome,
    test,
};

const COUNTS: &str = "benches/instructions.toml";
/// The paths that `emend-benches instructions` knows.
const PATHS: [&str; 6] = ["decide", "encode", "apply", "look-up", "expand", "expand-words"];
/// How far a count may be above the one that is written down, in percent.
const TOLERANCE: u64 = 5;
/// What callgrind writes of each function is not needed.
const NOWHERE: &str = "--callgrind-out-file=/dev/null";
/// The function that does the work and nothing else.
const COUNTED: &str = "--toggle-collect=*instructions*counted*";

#[derive(Debug, Deserialize)]
struct Written {
    compiler: String,
    counts: BTreeMap<String, u64>,
}

/// Counts, and compares, or writes down what was counted.
pub(crate) fn instructions(workspace: &Workspace, may_install: bool, write: bool) -> Result<Outcome> {
    let valgrind = match valgrind(may_install) {
        Ok(valgrind) => valgrind,
        Err(error) if !may_install && !process::in_ci() => return Ok(Outcome::NotRun(format!("{error:#}"))),
        Err(error) => return Err(error),
    };
    let compiler = process::output(workspace.command("rustc").arg("--version"))?;
    let compiler = compiler.trim();
    let text = fs::read_to_string(workspace.path(COUNTS)).context(COUNTS)?;
    let written: Written = toml::from_str(&text).context(COUNTS)?;
    if !write && written.compiler != compiler {
        return Ok(Outcome::NotRun(format!(
            "{COUNTS} has counts of {}, and this is {compiler}",
            written.compiler
        )));
    }
    test::build(workspace)?;
    let mut counts = BTreeMap::new();
    for path in PATHS {
        let count = count(workspace, &valgrind, path)?;
        eprintln!("{path}: {count} instructions");
        counts.insert(path.to_owned(), count);
    }
    if write {
        fs::write(workspace.path(COUNTS), with_counts(&text, compiler, &counts)?).context(COUNTS)?;
        return Ok(Outcome::Done);
    }
    let findings = findings(&written.counts, &counts);
    if !findings.is_empty() {
        bail!("{}", findings.join("; "));
    }
    Ok(Outcome::Done)
}

fn valgrind(may_install: bool) -> Result<PathBuf> {
    let found = || process::find_program("valgrind");
    if let Some(program) = found() {
        return Ok(program);
    }
    debian::install(&["valgrind"], may_install).context("valgrind is missing")?;
    found().context("valgrind was installed, but is not in PATH")
}

fn count(workspace: &Workspace, valgrind: &PathBuf, path: &str) -> Result<u64> {
    let output = workspace
        .command(valgrind)
        .args(["--tool=callgrind", NOWHERE, COUNTED])
        .arg(workspace.target("debug/emend-benches"))
        .args(["instructions", path])
        .output()
        .context("valgrind")?;
    let told = String::from_utf8_lossy(&output.stderr);
    let collected = told.lines().find_map(|line| line.split_once("Collected : "));
    let count = collected.and_then(|(_, count)| count.trim().parse().ok());
    match count {
        Some(count) if output.status.success() && count > 0 => Ok(count),
        _ => bail!("{path}: nothing was counted:\n{told}"),
    }
}

/// What takes more than it may, and what is not written down.
fn findings(written: &BTreeMap<String, u64>, counts: &BTreeMap<String, u64>) -> Vec<String> {
    let finding = |(path, &count): (&String, &u64)| {
        let Some(&before) = written.get(path) else {
            return Some(format!("{COUNTS} has no count of {path}"));
        };
        (count * 100 > before * (100 + TOLERANCE))
            .then(|| format!("{path} takes {count} instructions, more than {TOLERANCE} % above {before}"))
    };
    counts.iter().filter_map(finding).collect()
}

/// The file with other counts, its comment kept.
fn with_counts(text: &str, compiler: &str, counts: &BTreeMap<String, u64>) -> Result<String> {
    let comment = text.lines().take_while(|line| line.starts_with('#'));
    let mut written = String::new();
    for line in comment {
        writeln!(written, "{line}")?;
    }
    writeln!(written, "compiler = \"{compiler}\"\n\n[counts]")?;
    for (path, count) in counts {
        writeln!(written, "{path} = {count}")?;
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::findings;

    fn counts(entries: &[(&str, u64)]) -> BTreeMap<String, u64> {
        entries
            .iter()
            .map(|&(path, count)| (path.to_owned(), count))
            .collect()
    }

    #[test]
    fn more_than_a_twentieth_above_is_found() {
        let written = counts(&[("decide", 1_000), ("apply", 1_000)]);
        assert_eq!(
            findings(&written, &counts(&[("decide", 1_050), ("apply", 10)])).len(),
            0
        );
        assert_eq!(
            findings(&written, &counts(&[("decide", 1_051), ("apply", 1_000)])).len(),
            1
        );
        assert_eq!(findings(&written, &counts(&[("encode", 1)])).len(), 1);
    }
}
