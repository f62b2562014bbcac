//! Generated documents, and checks that documents agree with what they describe. `cargo xtask docs` writes the API
//! reference (from the protos), the dashboard (from its table), the rules for the Prometheus operator (from Prometheus'
//! own), the chart of docs/performance.md (from its table) and the examples in documents (from the programs they are
//! taken from). It makes tests write what is generated from the code: docs/configuration.md and the lists of environment
//! variables and of names above public suffixes. Lint fails if one of the former is out of date, a link is broken, or a
//! metric is named that does not exist; those tests fail if one of the latter is out of date.

pub(crate) mod api;
pub(crate) mod markdown;
mod metrics;
mod performance;
mod snippets;

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::{
    dashboard,
    observability::{self, told},
    process::{self, Workspace},
    steps::{Outcome, Steps},
    tools,
};

/// Makes tests write what they would otherwise compare.
const UPDATE_VARIABLE: &str = "EMEND_UPDATE_DOCS";

/// `cargo xtask docs`: writes all generated documents.
pub(crate) fn docs(workspace: &Workspace, may_install: bool) -> Result<()> {
    let mut written = without_tools(workspace)?;
    written.push(api::page(workspace, &tools::buf(workspace, may_install)?)?);
    for (path, text) in written {
        let file = workspace.path(&path);
        if fs::read_to_string(&file).is_ok_and(|old| old == text) {
            continue;
        }
        fs::write(&file, text).with_context(|| path.display().to_string())?;
        eprintln!("wrote {}", path.display());
    }
    let tests = [
        "test",
        "--quiet",
        "--package=emend-cli",
        "--test=cli",
        "up_to_date",
    ];
    process::run(workspace.cargo(tests).env(UPDATE_VARIABLE, "1"))
}

/// Checks that everything generated is up to date and that the documents agree with what they name.
pub(crate) fn check(workspace: &Workspace, may_install: bool, steps: &mut Steps) {
    steps.run("documents", || {
        let pages = markdown::pages(workspace)?;
        let mut findings = markdown::link_findings(workspace, &pages);
        findings.extend(metrics::findings(workspace, &pages)?);
        findings.extend(stale(workspace, without_tools(workspace)?));
        told(&findings)?;
        Ok(Outcome::Done)
    });
    steps.run("API reference", || {
        let buf = match tools::buf(workspace, may_install) {
            Ok(buf) => buf,
            Err(error) if !may_install && !process::in_ci() => {
                return Ok(Outcome::NotRun(format!("{error:#}")));
            }
            Err(error) => return Err(error),
        };
        told(&stale(workspace, vec![api::page(workspace, &buf)?]))?;
        Ok(Outcome::Done)
    });
}

/// A file of the repository and its content.
type Written = (PathBuf, String);

fn without_tools(workspace: &Workspace) -> Result<Vec<Written>> {
    let mut written = vec![
        (dashboard::PATH.into(), dashboard::json()),
        (
            observability::PROMETHEUS_RULE.into(),
            observability::prometheus_rule(workspace)?,
        ),
        performance::chart(workspace)?,
    ];
    for page in markdown::pages(workspace)? {
        let filled = snippets::fill(&page.text, |path| {
            fs::read_to_string(workspace.path(path)).with_context(|| path.to_owned())
        });
        let text = filled.with_context(|| page.path.display().to_string())?;
        written.push((page.path, text));
    }
    Ok(written)
}

fn stale(workspace: &Workspace, written: Vec<Written>) -> Vec<String> {
    let is_stale =
        |(path, text): &Written| fs::read_to_string(workspace.path(path)).ok().as_ref() != Some(text);
    let stale = written.into_iter().filter(is_stale);
    stale
        .map(|(path, _)| format!("{} is out of date: `cargo xtask docs` writes it", path.display()))
        .collect()
}

/// A required string.
fn text<'a>(value: &'a serde_json::Value, key: &str) -> Result<&'a str> {
    match value.get(key).and_then(serde_json::Value::as_str) {
        Some(text) => Ok(text),
        None => bail!("{key} is missing in {value}"),
    }
}
