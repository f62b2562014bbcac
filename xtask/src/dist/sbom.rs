//! Bills of materials (CycloneDX): which crates a program is made of, as cargo-cyclonedx writes them, less what only
//! tests bring.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::PROGRAMS;
use crate::{
    dependencies::read_toml,
    process::{self, Workspace},
};

const CYCLONEDX_VERSION: &str = "0.5.9";

/// Writes a program's bill of materials (CycloneDX).
pub(super) fn describe(
    workspace: &Workspace,
    dist: &Path,
    program: &str,
    package: &str,
    committed: &str,
    may_install: bool,
) -> Result<()> {
    let root = workspace.target(format!("tools/cargo-cyclonedx-{CYCLONEDX_VERSION}"));
    let tool = root.join("bin/cargo-cyclonedx");
    if !tool.is_file() {
        ensure!(
            may_install,
            "cargo-cyclonedx is missing: run without --no-install"
        );
        process::run(
            workspace
                .cargo([
                    "install",
                    "cargo-cyclonedx",
                    "--locked",
                    "--version",
                    CYCLONEDX_VERSION,
                    "--root",
                ])
                .arg(&root),
        )?;
    }
    // The tool writes beside the manifest.
    let written = workspace.path(package).join(format!("{program}.cdx.json"));
    process::run(
        workspace
            .command(&tool)
            .args(["cyclonedx", "--format=json", "--spec-version=1.5", "--quiet"])
            .arg("--manifest-path")
            .arg(workspace.path(package).join("Cargo.toml"))
            .arg(format!("--override-filename={program}.cdx"))
            // This also omits the serial number, which would differ each time.
            .env("SOURCE_DATE_EPOCH", committed),
    )?;
    let described = fs::read_to_string(&written);
    for path in sboms(workspace, program)? {
        fs::remove_file(path)?;
    }
    let described = described.with_context(|| written.display().to_string())?;
    // Workspace packages are identified by their path on this machine, which must not be published.
    let described = described.replace(&format!("file://{}/", checkout(workspace)?), "file:");
    let mut described = serde_json::from_str(&described)?;
    leave(&mut described, &made_of(workspace, package)?)?;
    let text = format!("{described:#}\n");
    fs::write(dist.join(format!("{program}.cdx.json")), text)?;
    Ok(())
}

/// The checkout's path, as cargo writes it.
fn checkout(workspace: &Workspace) -> Result<String> {
    let root = workspace.path(".").canonicalize()?;
    Ok(root.to_string_lossy().into_owned())
}

/// The files beside all manifests of the workspace: the tool also describes the members that a package depends on.
fn sboms(workspace: &Workspace, program: &str) -> Result<Vec<PathBuf>> {
    let printed = process::output(workspace.command("find").args([
        ".",
        "-name",
        &format!("{program}.cdx.json"),
        "-not",
        "-path",
        "./target/*",
    ]))?;
    Ok(printed.lines().map(|path| workspace.path(path)).collect())
}

/// Checks that a bill of materials names every crate in the program and does not reveal where it was built.
pub(super) fn is_whole(workspace: &Workspace, dist: &Path, program: &str, package: &str) -> Result<()> {
    let text = fs::read_to_string(dist.join(format!("{program}.cdx.json")))?;
    ensure!(
        !text.contains(&format!("file://{}", checkout(workspace)?)),
        "{program}.cdx.json names a directory of this machine"
    );
    let described: Value = serde_json::from_str(&text)?;
    let components = described["components"].as_array().context("components")?;
    let named: BTreeSet<Crate> = components.iter().filter_map(crate_of).collect();
    let missing: Vec<Crate> = made_of(workspace, package)?.difference(&named).cloned().collect();
    ensure!(missing.is_empty(), "{program}.cdx.json lacks {missing:?}");
    Ok(())
}

/// A crate's name and version.
type Crate = (String, String);

/// The crates that a package's program is built from, build dependencies included, itself excluded; with the features
/// they have when all programs are built together.
fn made_of(workspace: &Workspace, package: &str) -> Result<BTreeSet<Crate>> {
    let name_of = |directory: &str| {
        let manifest = read_toml(workspace, &format!("{directory}/Cargo.toml"))?;
        let name = manifest.get("package").and_then(|package| package.get("name"));
        let name = name.and_then(|name| name.as_str()).map(str::to_owned);
        name.with_context(|| format!("{directory}/Cargo.toml names no package"))
    };
    let mut tree = workspace.cargo([
        "tree",
        "--locked",
        "--edges=normal,build",
        "--prefix=depth",
        "--format= {p}",
    ]);
    let programs = PROGRAMS.map(|(_, directory)| directory);
    // What is no program is built by itself.
    let built: &[&str] = if programs.contains(&package) {
        &programs
    } else {
        &[package]
    };
    for directory in built {
        tree.args(["--package", &name_of(directory)?]);
    }
    let parts = parts(&process::output(&mut tree)?);
    let package = name_of(package)?;
    let root = parts.keys().find(|(name, _)| *name == package);
    let root = root.with_context(|| format!("cargo tree has no {package}"))?;
    let (mut found, mut left) = (BTreeSet::new(), vec![root]);
    while let Some(one) = left.pop() {
        left.extend(parts[one].iter().filter(|part| found.insert((*part).clone())));
    }
    Ok(found)
}

/// Each crate's dependencies, from cargo's tree, which expands each crate only once.
fn parts(tree: &str) -> BTreeMap<Crate, BTreeSet<Crate>> {
    let mut parts = BTreeMap::<Crate, BTreeSet<Crate>>::new();
    let mut above: Vec<Crate> = Vec::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        let depth = words.next().and_then(|depth| depth.parse().ok());
        let (Some(depth), Some(name), Some(version)) = (depth, words.next(), words.next()) else {
            continue;
        };
        let one = (name.to_owned(), version.trim_start_matches('v').to_owned());
        above.truncate(depth);
        if let Some(whole) = above.last() {
            parts.entry(whole.clone()).or_default().insert(one.clone());
        }
        parts.entry(one.clone()).or_default();
        above.push(one);
    }
    parts
}

fn crate_of(component: &Value) -> Option<Crate> {
    let text = |key| component[key].as_str().map(str::to_owned);
    Some((text("name")?, text("version")?))
}

/// Keeps only these crates in a bill of materials: the tool also includes features that only tests enable, which pull
/// in more crates.
fn leave(description: &mut Value, crates: &BTreeSet<Crate>) -> Result<()> {
    let components = description["components"].as_array_mut().context("components")?;
    components.retain(|one| crate_of(one).is_some_and(|one| crates.contains(&one)));
    let left = components.iter().map(|one| one["bom-ref"].clone());
    let mut left: Vec<Value> = left.collect();
    left.push(description["metadata"]["component"]["bom-ref"].clone());
    let dependencies = description["dependencies"]
        .as_array_mut()
        .context("dependencies")?;
    dependencies.retain(|one| left.contains(&one["ref"]));
    for parts in dependencies
        .iter_mut()
        .filter_map(|one| one.get_mut("dependsOn")?.as_array_mut())
    {
        parts.retain(|one| left.contains(one));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::{Crate, leave, parts};

    fn named(name: &str, version: &str) -> Crate {
        (name.to_owned(), version.to_owned())
    }

    #[test]
    fn dependencies_are_read_from_cargo_tree() {
        let tree = "0 emend-cli v0.1.0 (/here)\n1 anyhow v1.0.1\n1 serde v1.0.2\n2 serde_derive v1.0.2 (proc-macro)\n\n\
                    0 feedback-svc v0.1.0 (/here)\n1 serde v1.0.2 (*)\n";
        let parts = parts(tree);
        let of = |name: &str, version: &str| &parts[&named(name, version)];
        assert_eq!(
            *of("emend-cli", "0.1.0"),
            BTreeSet::from([named("anyhow", "1.0.1"), named("serde", "1.0.2")])
        );
        assert_eq!(
            *of("serde", "1.0.2"),
            BTreeSet::from([named("serde_derive", "1.0.2")])
        );
        assert_eq!(
            *of("feedback-svc", "0.1.0"),
            BTreeSet::from([named("serde", "1.0.2")])
        );
    }

    #[test]
    fn crates_outside_a_program_are_left_out_everywhere() {
        let component =
            |name: &str| json!({"name": name, "version": "1.0.0", "bom-ref": format!("{name}#1")});
        let mut description = json!({
            "metadata": {"component": {"name": "emend", "bom-ref": "emend#1"}},
            "components": [component("anyhow"), component("rcgen")],
            "dependencies": [
                {"ref": "emend#1", "dependsOn": ["anyhow#1", "rcgen#1"]}, {"ref": "anyhow#1"}, {"ref": "rcgen#1"},
            ],
        });
        leave(&mut description, &BTreeSet::from([named("anyhow", "1.0.0")])).unwrap();
        assert!(!description.to_string().contains("rcgen"), "{description}");
        assert_eq!(
            description["dependencies"],
            json!([{"ref": "emend#1", "dependsOn": ["anyhow#1"]}, {"ref": "anyhow#1"}])
        );
    }
}
