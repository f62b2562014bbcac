//! `cargo xtask dist`: what is handed to others: the three programs in an archive, what they are made of, and checksums of
//! both, in target/dist. Equal sources and tools give equal archives.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};
use toml::Value;

use crate::{
    dependencies::read_toml,
    process::{self, Workspace},
};

/// Programs and the packages that they come from.
const PROGRAMS: [(&str, &str); 3] = [
    ("emend", "crates/emend-cli"),
    ("feedback-svc", "services/feedback-svc"),
    ("learning-svc", "services/learning-svc"),
];
/// What goes with them.
const PAPERS: [&str; 4] = ["CHANGELOG.md", "LICENSE", "README.md", "docs/configuration.md"];
const CYCLONEDX_VERSION: &str = "0.5.9";
const SUMS: &str = "SHA256SUMS";

/// Builds with that profile, packs, and tries what was packed.
pub(crate) fn dist(workspace: &Workspace, profile: &str, may_install: bool) -> Result<()> {
    let name = format!("emend-{}-{}", version(workspace)?, host(workspace)?);
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
    pack(workspace, &dist, &name)?;
    fs::remove_dir_all(&packed)?;
    for (program, package) in PROGRAMS {
        describe(workspace, &dist, program, package, may_install)?;
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
        .and_then(Value::as_str)
        .map(str::to_owned)
        .context("the workspace has no version")
}

fn host(workspace: &Workspace) -> Result<String> {
    let told = process::output(workspace.command("rustc").arg("-vV"))?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .context("rustc does not say what it builds for")
}

/// Builds the programs; answers with the directory in which they are.
fn build(workspace: &Workspace, profile: &str) -> Result<PathBuf> {
    let mut command = workspace.cargo(["build", "--locked", "--bins", "--profile", profile]);
    for (_, directory) in PROGRAMS {
        let package = Path::new(directory).file_name().unwrap_or_default();
        command.arg("--package").arg(package);
    }
    process::run(&mut command)?;
    // cargo's one exception.
    Ok(workspace.target(if profile == "dev" { "debug" } else { profile }))
}

/// One archive of a directory, in which nothing tells who packed it or when.
fn pack(workspace: &Workspace, dist: &Path, name: &str) -> Result<()> {
    let committed = process::output(workspace.command("git").args([
        "-c",
        "safe.directory=*",
        "log",
        "-1",
        "--format=%ct",
    ]));
    let time = committed.map_or_else(|_| "0".to_owned(), |time| time.trim().to_owned());
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
            .arg(format!("--mtime=@{time}"))
            .args(["--use-compress-program=gzip -9n", "--create", "--file"])
            .arg(dist.join(format!("{name}.tar.gz")))
            .arg("--directory")
            .arg(dist)
            .arg(name),
    )
}

/// What a program is made of, as CycloneDX.
fn describe(
    workspace: &Workspace,
    dist: &Path,
    program: &str,
    package: &str,
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
    // It writes beside the manifest.
    let written = workspace.path(package).join(format!("{program}.cdx.json"));
    process::run(
        workspace
            .command(&tool)
            .args(["cyclonedx", "--format=json", "--quiet", "--manifest-path"])
            .arg(workspace.path(package).join("Cargo.toml"))
            .arg(format!("--override-filename={program}.cdx")),
    )?;
    let moved = fs::copy(&written, dist.join(format!("{program}.cdx.json")));
    for path in sboms(workspace, program)? {
        fs::remove_file(path)?;
    }
    moved.with_context(|| written.display().to_string())?;
    Ok(())
}

/// Those beside all of the workspace's manifests: it describes the members that a package depends on, too.
fn sboms(workspace: &Workspace, program: &str) -> Result<Vec<PathBuf>> {
    let told = process::output(workspace.command("find").args([
        ".",
        "-name",
        &format!("{program}.cdx.json"),
        "-not",
        "-path",
        "./target/*",
    ]))?;
    Ok(told.lines().map(|path| workspace.path(path)).collect())
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

/// The sums are right, each program in the archive starts, and each description names what it is made of.
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
    for (program, _) in PROGRAMS {
        let told = process::output(
            workspace
                .command(scratch.join(name).join(program))
                .arg("--version"),
        )?;
        ensure!(told.starts_with(program), "{program} --version says {told:?}");
        let described = fs::read_to_string(dist.join(format!("{program}.cdx.json")))?;
        for part in [
            "\"bomFormat\": \"CycloneDX\"",
            "\"name\": \"tonic\"",
            "\"name\": \"rustls\"",
        ] {
            if !described.contains(part) {
                bail!("{program}.cdx.json does not have {part}");
            }
        }
    }
    fs::remove_dir_all(&scratch)?;
    Ok(())
}
