//! Finds unused dependencies: those that a package's manifest names but its sources do not mention, and those of the
//! workspace that no package uses. It searches the text, so it can miss one, but never reports one that is used by
//! name. Dependencies used only by generated code are listed in `package.metadata.cargo-machete.ignored`, as for that
//! tool.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use toml::{Table, Value};

use crate::{dependencies::read_toml, process::Workspace, steps::Outcome};

/// Checks all packages of the workspace.
pub(crate) fn check(workspace: &Workspace) -> Result<Outcome> {
    let root = read_toml(workspace, "Cargo.toml")?;
    let table = root
        .get("workspace")
        .and_then(Value::as_table)
        .context("Cargo.toml has no workspace")?;
    let members = table
        .get("members")
        .and_then(Value::as_array)
        .context("workspace.members is missing")?;
    let mut findings = Vec::new();
    let mut taken = BTreeSet::new();
    for member in members.iter().filter_map(Value::as_str) {
        let manifest = read_toml(workspace, &format!("{member}/Cargo.toml"))?;
        let names = dependency_names(&manifest);
        let sources = read_sources(&workspace.path(member))?;
        let unused = names
            .iter()
            .filter(|name| !mentions(&sources, &name.replace('-', "_")));
        findings.extend(unused.map(|name| format!("{member} does not use {name}")));
        taken.extend(names);
        taken.extend(ignored(&manifest));
    }
    let offered = table
        .get("dependencies")
        .and_then(Value::as_table)
        .context("workspace.dependencies is missing")?;
    findings.extend(
        offered
            .keys()
            .filter(|name| !taken.contains(*name))
            .map(|name| format!("no package takes {name}")),
    );
    if !findings.is_empty() {
        bail!("{}", findings.join("\n"));
    }
    Ok(Outcome::Done)
}

/// The dependencies of all three kinds, except ignored ones.
fn dependency_names(manifest: &Table) -> BTreeSet<String> {
    let ignored = ignored(manifest);
    ["dependencies", "dev-dependencies", "build-dependencies"]
        .iter()
        .filter_map(|kind| manifest.get(*kind)?.as_table())
        .flat_map(Table::keys)
        .filter(|name| !ignored.contains(*name))
        .cloned()
        .collect()
}

fn ignored(manifest: &Table) -> BTreeSet<String> {
    let list = (|| {
        manifest
            .get("package")?
            .get("metadata")?
            .get("cargo-machete")?
            .get("ignored")?
            .as_array()
    })();
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn read_sources(directory: &Path) -> Result<String> {
    let mut text = String::new();
    let mut directories: Vec<PathBuf> = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text += &fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            }
        }
    }
    Ok(text)
}

/// Whether `name` occurs as a whole word.
fn mentions(sources: &str, name: &str) -> bool {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    sources
        .match_indices(name)
        .any(|(at, _)| !sources[..at].ends_with(is_word) && !sources[at + name.len()..].starts_with(is_word))
}

#[cfg(test)]
mod tests {
    use toml::toml;

    use super::{dependency_names, mentions};

    #[test]
    fn a_name_counts_only_as_a_word() {
        assert!(mentions("use prost::Message;", "prost"));
        assert!(mentions("prost", "prost"));
        assert!(!mentions("use prost_types::Any; use tonic_prost as _;", "prost"));
    }

    #[test]
    fn dependencies_of_all_kinds_are_checked_unless_ignored() {
        let manifest = toml! {
            [package.metadata.cargo-machete]
            ignored = ["generated"]
            [dependencies]
            a = "1"
            generated = "1"
            [dev-dependencies]
            b = "1"
            [build-dependencies]
            c = "1"
        };
        assert_eq!(
            dependency_names(&manifest).into_iter().collect::<Vec<_>>(),
            ["a", "b", "c"]
        );
    }
}
