//! `cargo xtask dist`: the release artefacts in target/dist: an archive of the three programs, their bills of
//! materials, and checksums of both. Reproducible: equal sources, tools and paths give equal files.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::{
    dependencies::read_toml,
    process::{self, Workspace},
};

/// The programs and the packages they come from.
const PROGRAMS: [(&str, &str); 3] = [
    ("emend", "crates/emend-cli"),
    ("feedback-svc", "services/feedback-svc"),
    ("learning-svc", "services/learning-svc"),
];
/// The documents in the archive.
const PAPERS: [&str; 4] = ["CHANGELOG.md", "LICENSE", "README.md", "docs/configuration.md"];
const CYCLONEDX_VERSION: &str = "0.5.9";
const SUMS: &str = "SHA256SUMS";

/// Builds with `profile`, packs, and tests the result.
pub(crate) fn dist(workspace: &Workspace, profile: &str, may_install: bool) -> Result<()> {
    let name = format!("emend-{}-{}", version(workspace)?, host(workspace)?);
    let committed = committed(workspace);
    let built = build(workspace, profile)?;
    let dist = workspace.target("dist");
    if dist.exists() {
        fs::remove_dir_all(&dist)?;
    }
    let packed = dist.join(&name);
    fs::create_dir_all(&packed)?;
    for (program, _) in PROGRAMS {
        let stripped = packed.join(program);
        process::run(
            workspace
                .command("strip")
                .arg("-o")
                .arg(&stripped)
                .arg(built.join(program)),
        )
        .context("binutils' strip")?;
    }
    for paper in PAPERS {
        let paper = Path::new(paper);
        fs::copy(
            workspace.path(paper),
            packed.join(paper.file_name().unwrap_or_default()),
        )?;
    }
    pack(workspace, &dist, &name, &committed)?;
    fs::remove_dir_all(&packed)?;
    for (program, package) in PROGRAMS {
        describe(workspace, &dist, program, package, &committed, may_install)?;
    }
    sum(workspace, &dist)?;
    try_out(workspace, &dist, &name)?;
    for file in files(&dist)? {
        eprintln!("{}", dist.join(file).display());
    }
    Ok(())
}

fn version(workspace: &Workspace) -> Result<String> {
    let manifest = read_toml(workspace, "Cargo.toml")?;
    let version = manifest
        .get("workspace")
        .and_then(|table| table.get("package")?.get("version"));
    version
        .and_then(toml::Value::as_str)
        .map(str::to_owned)
        .context("the workspace has no version")
}

fn host(workspace: &Workspace) -> Result<String> {
    let printed = process::output(workspace.command("rustc").arg("-vV"))?;
    let host = printed.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .context("rustc does not report its target")
}

/// Builds the programs; returns their directory.
fn build(workspace: &Workspace, profile: &str) -> Result<PathBuf> {
    let mut command = workspace.cargo([
        "build",
        "--locked",
        "--bins",
        "--features",
        "emend-cli/mcp",
        "--profile",
        profile,
    ]);
    for (_, directory) in PROGRAMS {
        let package = Path::new(directory).file_name().unwrap_or_default();
        command.arg("--package").arg(package);
    }
    process::run(&mut command)?;
    // cargo's one profile whose directory has another name.
    Ok(workspace.target(if profile == "dev" { "debug" } else { profile }))
}

/// The commit time of the sources in seconds since 1970, the only time recorded in the artefacts. 0 outside a
/// repository.
fn committed(workspace: &Workspace) -> String {
    let printed = process::output(workspace.command("git").args([
        "-c",
        "safe.directory=*",
        "log",
        "-1",
        "--format=%ct",
    ]));
    printed.map_or_else(|_| "0".to_owned(), |time| time.trim().to_owned())
}

/// Archives a directory without any trace of who packed it or when.
fn pack(workspace: &Workspace, dist: &Path, name: &str, committed: &str) -> Result<()> {
    process::run(
        workspace
            .command("tar")
            .args([
                "--sort=name",
                "--owner=0",
                "--group=0",
                "--numeric-owner",
                "--mode=u+rwX,go+rX,go-w",
            ])
            .arg(format!("--mtime=@{committed}"))
            .args(["--use-compress-program=gzip -9n", "--create", "--file"])
            .arg(dist.join(format!("{name}.tar.gz")))
            .arg("--directory")
            .arg(dist)
            .arg(name),
    )
}

/// Writes a program's bill of materials (CycloneDX).
fn describe(
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

fn files(dist: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dist)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn sum(workspace: &Workspace, dist: &Path) -> Result<()> {
    let sums = process::output(
        workspace
            .command("sha256sum")
            .args(files(dist)?)
            .current_dir(dist),
    )?;
    fs::write(dist.join(SUMS), sums)?;
    Ok(())
}

/// Checks that the checksums match, each program in the archive starts, and each bill of materials is complete.
fn try_out(workspace: &Workspace, dist: &Path, name: &str) -> Result<()> {
    process::run(
        workspace
            .command("sha256sum")
            .args(["--check", "--quiet", SUMS])
            .current_dir(dist),
    )?;
    let scratch = dist.join("tried");
    fs::create_dir_all(&scratch)?;
    process::run(
        workspace
            .command("tar")
            .arg("--extract")
            .arg("--file")
            .arg(dist.join(format!("{name}.tar.gz")))
            .arg("--directory")
            .arg(&scratch),
    )?;
    for (program, package) in PROGRAMS {
        let printed = process::output(
            workspace
                .command(scratch.join(name).join(program))
                .arg("--version"),
        )?;
        ensure!(
            printed.starts_with(program),
            "{program} --version says {printed:?}"
        );
        is_whole(workspace, dist, program, package)?;
    }
    fs::remove_dir_all(&scratch)?;
    Ok(())
}

/// Checks that a bill of materials names every crate in the program and does not reveal where it was built.
fn is_whole(workspace: &Workspace, dist: &Path, program: &str, package: &str) -> Result<()> {
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
        let name = Path::new(directory).file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    let mut tree = workspace.cargo([
        "tree",
        "--locked",
        "--edges=normal,build",
        "--prefix=depth",
        "--format= {p}",
    ]);
    for (_, directory) in PROGRAMS {
        tree.args(["--package", &name_of(directory)]);
    }
    let parts = parts(&process::output(&mut tree)?);
    let package = name_of(package);
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
