//! `cargo xtask dist`: the release artefacts in target/dist: an archive of the three programs, their bills of
//! materials, and checksums of both. Reproducible: equal sources, tools and paths give equal files.

mod sbom;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

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
        sbom::describe(workspace, &dist, program, package, &committed, may_install)?;
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
        sbom::is_whole(workspace, dist, program, package)?;
    }
    fs::remove_dir_all(&scratch)?;
    Ok(())
}
