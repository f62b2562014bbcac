//! `cargo xtask dist`: the release artefacts in target/packages: an archive of the three programs, an image of each, the packages
//! for Node and Python, their bills of materials and provenance, and checksums of all. Reproducible: equal sources, tools and paths give equal files.

mod images;
mod layers;
mod layout;
mod npm;
mod provenance;
mod runtime;
mod sbom;
mod sources;
mod stage;
mod tried;
mod wheel;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use clap::Args;

use self::{
    images::Images,
    provenance::Build,
    sources::Sources,
    tried::{Promises, console_is_served},
};
use crate::process::{self, Workspace};

/// The programs and the packages they come from.
const PROGRAMS: [(&str, &str); 3] = [
    ("emend", "crates/emend-cli"),
    ("feedback-svc", "services/feedback-svc"),
    ("learning-svc", "services/learning-svc"),
];
/// The documents in the archive.
const PAPERS: [&str; 4] = ["CHANGELOG.md", "LICENSE", "README.md", "docs/configuration.md"];
const SUMS: &str = "SHA256SUMS";

/// What is built, and what is said of that.
#[derive(Args)]
pub(crate) struct Release {
    /// The profile to build with; `dev` for trying out the packing.
    #[arg(long, default_value = "dist")]
    profile: String,
    /// Where these sources are published, for the images' labels and provenance.
    #[arg(long, value_name = "URL")]
    source: Option<String>,
    /// Who builds, for the images' provenance.
    #[arg(long, value_name = "URI", default_value = "urn:emend:builder:unnamed")]
    builder: String,
}

/// Builds, packs, and tests the result.
pub(crate) fn dist(workspace: &Workspace, release: Release, may_install: bool) -> Result<()> {
    let sources = Sources::of(workspace, release.source)?;
    let compiler = process::output(workspace.command("rustc").arg("-vV"))?;
    let host = told(&compiler, "host")?;
    let name = format!("emend-{}-{host}", sources.version);
    let directory = build(workspace, &release.profile)?;
    let dist = workspace.target("packages");
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
                .arg(directory.join(program)),
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
    pack(workspace, &dist, &name, &sources.committed)?;
    for (program, package) in PROGRAMS {
        sbom::describe(
            workspace,
            &dist,
            program,
            package,
            &sources.committed,
            may_install,
        )?;
    }
    npm::pack(workspace, &dist, &release.profile, &sources, may_install)?;
    wheel::pack(workspace, &dist, &release.profile, &sources, may_install)?;
    let build = Build {
        profile: release.profile,
        host,
        rustc: told(&compiler, "release")?,
        builder: release.builder,
        lock: fs::read(workspace.path("Cargo.lock"))?,
    };
    make_images(workspace, &dist, &packed, &sources, &build)?;
    fs::remove_dir_all(&packed)?;
    sum(workspace, &dist)?;
    try_out(workspace, &dist, &name, &sources.version)?;
    for file in files(&dist)? {
        eprintln!("{}", dist.join(file).display());
    }
    Ok(())
}

/// What the compiler says of itself.
fn told(compiler: &str, key: &str) -> Result<String> {
    let told = compiler
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
    told.map(str::to_owned)
        .with_context(|| format!("rustc does not report its {key}"))
}

/// Writes the images and their provenance.
fn make_images(
    workspace: &Workspace,
    dist: &Path,
    packed: &Path,
    sources: &Sources,
    build: &Build,
) -> Result<()> {
    let dockerfile = fs::read_to_string(workspace.path("deploy/docker/Dockerfile"))?;
    let programs = PROGRAMS.map(|(program, _)| packed.join(program));
    let images = Images::of(&programs, &dockerfile, sources, build)?;
    for (program, _) in PROGRAMS {
        let materials = fs::read(dist.join(format!("{program}.cdx.json")))?;
        let made = images.make(program, &materials, fs::read(packed.join(program))?)?;
        fs::write(dist.join(images.file(program)), made.archive)?;
        fs::write(dist.join(format!("{program}.provenance.json")), made.provenance)?;
    }
    Ok(())
}

/// The packages whose programs read vectors in what is shipped, though not where somebody tries them out.
const FEATURES: [&str; 2] = ["emend-cli", "learning-svc"];

/// Builds the programs; returns their directory.
fn build(workspace: &Workspace, profile: &str) -> Result<PathBuf> {
    let mut command = workspace.cargo(["build", "--locked", "--bins", "--profile", profile]);
    for (_, directory) in PROGRAMS {
        let package = Path::new(directory).file_name().unwrap_or_default();
        command.arg("--package").arg(package);
        let package = package.to_string_lossy();
        if FEATURES.contains(&&*package) {
            command.arg(format!("--features={package}/near-vectors"));
        }
    }
    process::run(&mut command)?;
    // cargo's one profile whose directory has another name.
    Ok(workspace.target(if profile == "dev" { "debug" } else { profile }))
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

/// Checks that the checksums match, each program does what it promises out of the archive and in its image, and each bill of
/// materials is complete.
fn try_out(workspace: &Workspace, dist: &Path, name: &str, version: &str) -> Result<()> {
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
    let promises = Promises::of(workspace, version)?;
    for (program, package) in PROGRAMS {
        promises.are_kept_by(workspace, &scratch.join(name).join(program), &scratch)?;
        sbom::is_whole(workspace, dist, program, package)?;
    }
    console_is_served(workspace, &scratch.join(name).join("emend"), &scratch)?;
    for file in files(dist)?.iter().filter(|file| file.ends_with(images::SUFFIX)) {
        promises.are_kept_in(workspace, &dist.join(file), &scratch)?;
    }
    fs::remove_dir_all(&scratch)?;
    Ok(())
}
