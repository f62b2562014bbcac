//! Checks what may be in the dependency tree and that each direct dependency is accounted for: deny.toml's licences,
//! bans and sources against Cargo.lock, and the workspace's dependencies against docs/dependencies.md. Works offline;
//! advisories are left to cargo-deny.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use anyhow::{Context as _, Result, bail};
use spdx::{Expression, Licensee, ParseMode};
use toml::{Table, Value};

use crate::{
    process::{self, Workspace},
    steps::Outcome,
};

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Runs all checks and reports every finding at once.
pub(crate) fn check(workspace: &Workspace) -> Result<Outcome> {
    let deny = read_toml(workspace, "deny.toml")?;
    let lock = read_toml(workspace, "Cargo.lock")?;
    let manifest = read_toml(workspace, "Cargo.toml")?;
    let page = fs::read_to_string(workspace.path("docs/dependencies.md")).context("docs/dependencies.md")?;
    // Only what is built on this machine: for other platforms cargo would have to download their crates.
    let tree = process::output(&mut workspace.cargo([
        "tree",
        "--locked",
        "--workspace",
        "--edges=normal,build,dev",
        "--prefix=none",
        "--no-dedupe",
        "--format={p}\t{l}\t",
    ]))?;

    let mut findings = licence_findings(&tree, &deny)?;
    findings.extend(ban_findings(&lock, &deny)?);
    findings.extend(source_findings(&lock)?);
    findings.extend(page_findings(&manifest, &page)?);
    if !findings.is_empty() {
        bail!("{}", findings.join("\n"));
    }
    if process::find_program("cargo-deny").is_some() {
        process::run(&mut workspace.cargo(["deny", "--offline", "check", "bans", "licenses", "sources"]))?;
    }
    Ok(Outcome::Done)
}

/// Reads a TOML file of the checkout.
pub(crate) fn read_toml(workspace: &Workspace, path: &str) -> Result<Table> {
    let text = fs::read_to_string(workspace.path(path)).with_context(|| path.to_owned())?;
    text.parse().with_context(|| path.to_owned())
}

/// Packages whose licence deny.toml does not allow. `tree`: lines of package, tab, SPDX expression, tab; what may follow is
/// Cargo's mark "(*)" of a package that depends on itself for its tests.
fn licence_findings(tree: &str, deny: &Table) -> Result<Vec<String>> {
    let allowed = strings(at(deny, &["licenses", "allow"])?)
        .map(|id| Licensee::parse(id).with_context(|| format!("deny.toml allows {id}")))
        .collect::<Result<Vec<_>>>()?;
    let packages: BTreeSet<&str> = tree.lines().filter(|line| line.contains('\t')).collect();
    let mut findings = Vec::new();
    for (package, rest) in packages.iter().filter_map(|line| line.split_once('\t')) {
        let licence = rest.split_once('\t').map_or(rest, |(licence, _)| licence);
        let satisfied = Expression::parse_mode(licence, ParseMode::LAX).is_ok_and(|expression| {
            expression.evaluate(|required| allowed.iter().any(|own| own.satisfies(required)))
        });
        if !satisfied {
            findings.push(format!(
                "{package}: the licence \"{licence}\" is not among those deny.toml allows"
            ));
        }
    }
    Ok(findings)
}

/// Packages that are banned, or present more than once although that is denied.
fn ban_findings(lock: &Table, deny: &Table) -> Result<Vec<String>> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages(lock)? {
        versions
            .entry(text(package, "name")?)
            .or_default()
            .push(text(package, "version")?);
    }
    let mut findings = Vec::new();
    for ban in tables(at(deny, &["bans", "deny"])?) {
        let name = text(ban, "crate")?;
        let found = versions.get(name).map(Vec::as_slice).unwrap_or_default();
        if ban.get("deny-multiple-versions").and_then(Value::as_bool) == Some(true) {
            if found.len() > 1 {
                findings.push(format!(
                    "there is more than one version of {name}: {}",
                    found.join(", ")
                ));
            }
        } else if !found.is_empty() {
            let reason = ban.get("reason").and_then(Value::as_str).unwrap_or_default();
            findings.push(format!(
                "{name} is banned ({reason}); `cargo tree -i {name}` shows what brings it"
            ));
        }
    }
    Ok(findings)
}

/// Packages that come neither from this checkout nor from crates.io.
fn source_findings(lock: &Table) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for package in packages(lock)? {
        if let Some(source) = package
            .get("source")
            .and_then(Value::as_str)
            .filter(|source| *source != CRATES_IO)
        {
            findings.push(format!("{} comes from {source}", text(package, "name")?));
        }
    }
    Ok(findings)
}

/// Dependencies without a line on the page, and lines whose dependency is gone. A line begins with "- `name`".
fn page_findings(manifest: &Table, page: &str) -> Result<Vec<String>> {
    let dependencies = at(manifest, &["workspace", "dependencies"])?
        .as_table()
        .context("workspace.dependencies")?;
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

fn packages(lock: &Table) -> Result<impl Iterator<Item = &Table>> {
    Ok(tables(at(lock, &["package"])?))
}

fn at<'a>(table: &'a Table, path: &[&str]) -> Result<&'a Value> {
    let (first, rest) = path
        .split_first()
        .context("invariant: a path has at least one part")?;
    let value = table.get(*first).with_context(|| format!("{first} is missing"))?;
    rest.iter().try_fold(value, |value, part| {
        value.get(*part).with_context(|| format!("{part} is missing"))
    })
}

fn tables(value: &Value) -> impl Iterator<Item = &Table> {
    value.as_array().into_iter().flatten().filter_map(Value::as_table)
}

fn strings(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn text<'a>(table: &'a Table, key: &str) -> Result<&'a str> {
    table
        .get(key)
        .and_then(Value::as_str)
        .with_context(|| format!("{key} is missing"))
}

#[cfg(test)]
mod tests {
    use toml::{Table, toml};

    use super::{ban_findings, licence_findings, page_findings, source_findings};

    fn deny() -> Table {
        toml! {
            [licenses]
            allow = ["MIT", "MPL-2.0", "Unicode-3.0"]
            [bans]
            deny = [{ crate = "bad", reason = "it is" }, { crate = "one", deny-multiple-versions = true }]
        }
    }

    #[test]
    fn a_licence_passes_when_what_is_allowed_satisfies_its_expression() {
        let tree = "a v1\tMIT OR GPL-3.0\nb v1\tMIT/Apache-2.0\nc v1\tMPL-2.0+\nd v1\t(MIT OR Apache-2.0) AND Unicode-3.0\n";
        assert_eq!(licence_findings(tree, &deny()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_disallowed_or_missing_licence_is_found_once() {
        let tree = "a v1\tMIT AND GPL-3.0\na v1\tMIT AND GPL-3.0\nb v1\t\n";
        let findings = licence_findings(tree, &deny()).unwrap();
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(
            findings[0].starts_with("a v1") && findings[1].starts_with("b v1"),
            "{findings:?}"
        );
    }

    #[test]
    fn a_banned_crate_and_a_second_version_are_found() {
        let lock = toml! {
            package = [
                { name = "bad", version = "1.0.0" },
                { name = "one", version = "1.0.0" },
                { name = "one", version = "2.0.0" },
                { name = "two", version = "1.0.0" },
                { name = "two", version = "2.0.0" },
            ]
        };
        let findings = ban_findings(&lock, &deny()).unwrap();
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(
            findings[0].contains("it is") && findings[1].contains("1.0.0, 2.0.0"),
            "{findings:?}"
        );
    }

    #[test]
    fn a_crate_from_another_source_is_found() {
        let lock = toml! {
            package = [{ name = "a", version = "1.0.0" }, { name = "b", version = "1.0.0", source = "git+https://example.com/b" }]
        };
        assert_eq!(
            source_findings(&lock).unwrap(),
            ["b comes from git+https://example.com/b"]
        );
    }

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
